//! Transaction: what a commit changes, against the version that it read.

use std::collections::BTreeMap;

use prost::Message;

use crate::error::{Error, Result};
use crate::format::proto;
use crate::format::proto::transaction::{self as wire, Operation as Wire};
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

/// The vocabulary of changes: everything that conflict rules look at.
///
/// Operations that we do not write carry only what those rules need: they are read from others' commits and never published, since
/// their bytes would say less than they did.
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

impl Transaction {
    /// Reads a transaction: a section of a manifest, or a file of `_transactions/`.
    pub fn decode(bytes: &[u8]) -> Result<Transaction> {
        let message =
            proto::Transaction::decode(bytes).map_err(|error| Error::corrupt(format!("transaction: {error}")))?;
        let operation = match message.operation.map_or(Ok(Operation::Unknown), Operation::from_proto) {
            // The version may be readable though one of the files or types that once led to it is not.
            Err(Error::NotSupported { .. }) => Operation::Unknown,
            other => other?,
        };
        Ok(Transaction { read_version: message.read_version, uuid: message.uuid, operation })
    }

    /// The bytes of a transaction; exact for `Append`, `Delete` and `Overwrite`.
    pub fn encode(&self) -> Vec<u8> {
        let message = proto::Transaction {
            read_version: self.read_version,
            uuid: self.uuid.clone(),
            operation: self.operation.to_proto(),
            ..proto::Transaction::default()
        };
        message.encode_to_vec()
    }
}

impl Operation {
    /// The name of the operation, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Append { .. } => "Append",
            Operation::Delete { .. } => "Delete",
            Operation::Overwrite { .. } => "Overwrite",
            Operation::CreateIndex => "CreateIndex",
            Operation::Rewrite { .. } => "Rewrite",
            Operation::Merge { .. } => "Merge",
            Operation::Restore { .. } => "Restore",
            Operation::ReserveFragments { .. } => "ReserveFragments",
            Operation::Update { .. } => "Update",
            Operation::Project { .. } => "Project",
            Operation::UpdateConfig => "UpdateConfig",
            Operation::DataReplacement { .. } => "DataReplacement",
            Operation::UpdateMemWalState => "UpdateMemWalState",
            Operation::Clone => "Clone",
            Operation::UpdateBases => "UpdateBases",
            Operation::Unknown => "an unknown operation",
        }
    }

    fn from_proto(operation: Wire) -> Result<Operation> {
        Ok(match operation {
            Wire::Append(append) => Operation::Append { fragments: fragments(append.fragments)? },
            Wire::Delete(delete) => Operation::Delete {
                updated: fragments(delete.updated_fragments)?,
                deleted: ids(delete.deleted_fragment_ids),
                predicate: delete.predicate,
            },
            Wire::Overwrite(overwrite) => Operation::Overwrite {
                fragments: fragments(overwrite.fragments)?,
                schema: Schema::from_proto(&overwrite.schema, &overwrite.schema_metadata)?,
                config: overwrite.config_upsert_values,
            },
            Wire::CreateIndex(_) => Operation::CreateIndex,
            Wire::Rewrite(rewrite) => {
                let old = rewrite.groups.into_iter().flat_map(|group| group.old_fragments);
                Operation::Rewrite { old: old.map(|fragment| FragmentId(fragment.id)).collect() }
            }
            Wire::Merge(merge) => Operation::Merge { preserves_nullability: merge.preserves_nullability },
            Wire::Restore(restore) => Operation::Restore { version: restore.version },
            Wire::ReserveFragments(reserve) => Operation::ReserveFragments { count: reserve.num_fragments },
            Wire::Update(update) => Operation::Update {
                removed: ids(update.removed_fragment_ids),
                updated: fragments(update.updated_fragments)?,
                new: fragments(update.new_fragments)?,
            },
            Wire::Project(project) => Operation::Project { preserves_nullability: project.preserves_nullability },
            Wire::UpdateConfig(_) => Operation::UpdateConfig,
            Wire::DataReplacement(replacement) => Operation::DataReplacement {
                fragments: replacement.replacements.into_iter().map(|group| FragmentId(group.fragment_id)).collect(),
            },
            Wire::UpdateMemWalState(_) => Operation::UpdateMemWalState,
            Wire::Clone(_) => Operation::Clone,
            Wire::UpdateBases(_) => Operation::UpdateBases,
        })
    }

    fn to_proto(&self) -> Option<Wire> {
        Some(match self {
            Operation::Append { fragments } => Wire::Append(wire::Append { fragments: messages(fragments) }),
            Operation::Delete { updated, deleted, predicate } => Wire::Delete(wire::Delete {
                updated_fragments: messages(updated),
                deleted_fragment_ids: numbers(deleted),
                predicate: predicate.clone(),
            }),
            Operation::Overwrite { fragments, schema, config } => Wire::Overwrite(wire::Overwrite {
                fragments: messages(fragments),
                schema: schema.to_proto(),
                schema_metadata: schema.metadata_to_proto(),
                config_upsert_values: config.clone(),
                initial_bases: Vec::new(),
            }),
            Operation::CreateIndex => Wire::CreateIndex(wire::CreateIndex::default()),
            Operation::Rewrite { old } => {
                let fragment = |id: &FragmentId| proto::DataFragment { id: id.0, ..Default::default() };
                let old_fragments = old.iter().map(fragment).collect();
                let groups = vec![wire::RewriteGroup { old_fragments, new_fragments: Vec::new() }];
                Wire::Rewrite(wire::Rewrite { groups, rewritten_indices: Vec::new() })
            }
            Operation::Merge { preserves_nullability } => {
                Wire::Merge(wire::Merge { preserves_nullability: *preserves_nullability, ..Default::default() })
            }
            Operation::Restore { version } => Wire::Restore(wire::Restore { version: *version }),
            Operation::ReserveFragments { count } => {
                Wire::ReserveFragments(wire::ReserveFragments { num_fragments: *count })
            }
            Operation::Update { removed, updated, new } => Wire::Update(wire::Update {
                removed_fragment_ids: numbers(removed),
                updated_fragments: messages(updated),
                new_fragments: messages(new),
                ..Default::default()
            }),
            Operation::Project { preserves_nullability } => {
                Wire::Project(wire::Project { preserves_nullability: *preserves_nullability, ..Default::default() })
            }
            Operation::UpdateConfig => Wire::UpdateConfig(wire::UpdateConfig::default()),
            Operation::DataReplacement { fragments } => {
                let group = |id: &FragmentId| wire::DataReplacementGroup { fragment_id: id.0, new_file: None };
                Wire::DataReplacement(wire::DataReplacement { replacements: fragments.iter().map(group).collect() })
            }
            Operation::UpdateMemWalState => Wire::UpdateMemWalState(proto::Opaque {}),
            Operation::Clone => Wire::Clone(proto::Opaque {}),
            Operation::UpdateBases => Wire::UpdateBases(wire::UpdateBases::default()),
            Operation::Unknown => return None,
        })
    }
}

fn fragments(messages: Vec<proto::DataFragment>) -> Result<Vec<Fragment>> {
    messages.into_iter().map(Fragment::from_proto).collect()
}

fn messages(fragments: &[Fragment]) -> Vec<proto::DataFragment> {
    fragments.iter().map(Fragment::to_proto).collect()
}

fn ids(numbers: Vec<u64>) -> Vec<FragmentId> {
    numbers.into_iter().map(FragmentId).collect()
}

fn numbers(ids: &[FragmentId]) -> Vec<u64> {
    ids.iter().map(|id| id.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::table::{DataFile, FieldId};

    fn fragment() -> Fragment {
        let file = DataFile {
            path: "f.lance".into(),
            fields: vec![FieldId(0), FieldId(-2)],
            column_indices: vec![0, 1],
            major_version: 2,
            minor_version: 2,
            size_bytes: Some(10),
            base_id: None,
        };
        Fragment {
            id: FragmentId(3),
            files: vec![file],
            deletion: None,
            physical_rows: 4,
            row_ids: Some(vec![1]),
            last_updated_at_versions: Some(vec![]),
            created_at_versions: None,
        }
    }

    #[test]
    fn every_operation_keeps_what_conflict_rules_need() {
        let ids = vec![FragmentId(1), FragmentId(300)];
        let operations = [
            Operation::Append { fragments: vec![fragment()] },
            Operation::Delete { updated: vec![fragment()], deleted: ids.clone(), predicate: "x > 1".into() },
            Operation::Overwrite {
                fragments: vec![fragment()],
                schema: Schema { fields: vec![], metadata: BTreeMap::from([("a".into(), "b".into())]) },
                config: BTreeMap::from([("k".into(), "v".into())]),
            },
            Operation::CreateIndex,
            Operation::Rewrite { old: ids.clone() },
            Operation::Merge { preserves_nullability: true },
            Operation::Restore { version: 9 },
            Operation::ReserveFragments { count: 2 },
            Operation::Update { removed: ids.clone(), updated: vec![fragment()], new: vec![fragment()] },
            Operation::Project { preserves_nullability: true },
            Operation::UpdateConfig,
            Operation::DataReplacement { fragments: ids },
            Operation::UpdateMemWalState,
            Operation::Clone,
            Operation::UpdateBases,
            Operation::Unknown,
        ];
        for operation in operations {
            let transaction = Transaction { read_version: 4, uuid: "u".into(), operation };
            assert_eq!(Transaction::decode(&transaction.encode()).unwrap(), transaction);
        }
    }

    #[test]
    fn a_newer_writers_transaction_is_an_unknown_operation() {
        // read_version 5, field 115 and field 200 with two bytes each.
        let bytes = [0x08, 5, 0x9a, 0x07, 2, 8, 1, 0xc2, 0x0c, 2, 8, 1];
        let transaction = Transaction::decode(&bytes).unwrap();
        assert_eq!(transaction, Transaction { read_version: 5, uuid: String::new(), operation: Operation::Unknown });
    }

    #[test]
    fn an_operation_on_things_without_words_here_is_unknown() {
        let fragment = proto::DataFragment { overlays: vec![proto::Opaque {}], ..Default::default() };
        let append = wire::Append { fragments: vec![fragment] };
        let message = proto::Transaction { operation: Some(Wire::Append(append)), ..Default::default() };
        assert_eq!(Transaction::decode(&message.encode_to_vec()).unwrap().operation, Operation::Unknown);
    }

    #[test]
    fn bytes_that_are_no_message_are_corrupt() {
        assert!(matches!(Transaction::decode(&[0x12, 0xff, 1]), Err(Error::Corrupt { .. })));
    }
}
