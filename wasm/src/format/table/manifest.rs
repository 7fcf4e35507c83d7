//! Manifest: the complete state of one version of a table.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::format::table::fragment::Fragment;
use crate::format::table::schema::Schema;
use crate::format::table::transaction::Transaction;

/// The number of a version; the first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// The state of one version.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    pub version: Version,
    pub schema: Schema,
    /// Ascending by id.
    pub fragments: Vec<Fragment>,
    /// The highest fragment id ever given; `None` = no fragment ever existed.
    pub max_fragment_id: Option<u32>,
    /// Nanoseconds since the Unix epoch; `None` = not recorded.
    pub timestamp_ns: Option<u64>,
    pub reader_flags: u64,
    pub writer_flags: u64,
    pub next_row_id: u64,
    /// Version of the data files, such as `2.2`.
    pub data_format: String,
    pub config: BTreeMap<String, String>,
    pub table_metadata: BTreeMap<String, String>,
    pub base_paths: Vec<crate::format::proto::BasePath>,
    pub branch: Option<String>,
    pub writer: Option<crate::format::proto::WriterVersion>,
    /// File name below `_transactions/`; empty = none.
    pub transaction_file: String,
    /// The index section, byte for byte; `None` = no indices.
    pub index_section: Option<Bytes>,
    /// The transaction that made this version, when it is inline.
    pub transaction: Option<Transaction>,
}
