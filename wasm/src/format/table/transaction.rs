//! Transaction: what a commit changes, against the version that it read.

use std::collections::BTreeMap;

use crate::format::table::fragment::{Fragment, FragmentId};
use crate::format::table::schema::Schema;

/// A change of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    /// 0 for the creation of a table.
    pub read_version: u64,
    /// Hyphenated UUID.
    pub uuid: String,
    pub operation: Operation,
}

/// The vocabulary of changes: everything that conflict rules look at. Operations that we do not write carry what those rules need.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    Append {
        fragments: Vec<Fragment>,
    },
    Delete {
        updated: Vec<Fragment>,
        deleted: Vec<FragmentId>,
        predicate: String,
    },
    Overwrite {
        fragments: Vec<Fragment>,
        schema: Schema,
        config: BTreeMap<String, String>,
    },
    CreateIndex,
    Rewrite {
        old: Vec<FragmentId>,
    },
    Merge {
        preserves_nullability: bool,
    },
    Restore {
        version: u64,
    },
    ReserveFragments {
        count: u32,
    },
    Update {
        removed: Vec<FragmentId>,
        updated: Vec<Fragment>,
        new: Vec<Fragment>,
    },
    Project {
        preserves_nullability: bool,
    },
    UpdateConfig,
    DataReplacement {
        fragments: Vec<FragmentId>,
    },
    UpdateMemWalState,
    Clone,
    UpdateBases,
    /// An operation that this build does not know, or none at all.
    Unknown,
}
