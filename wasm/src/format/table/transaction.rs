//! Transaction: what a commit changes, against the version that it read.

use prost::Message;

use crate::collections::SortedMap;
use crate::error::{Error, Result};
use crate::format::proto;
use crate::format::proto::transaction::{self as wire, Operation as Wire};
use crate::format::table::fragment::{DataFile, Fragment, FragmentId};
use crate::format::table::schema::{FieldId, Schema};

/// A change of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    /// 0 for the creation of a table.
    pub read_version: u64,
    /// Hyphenated UUID.
    pub uuid: String,
    pub operation: Operation,
}

/// The vocabulary of changes: everything that building a version and the conflict rules look at.
///
/// What carries a wire message whole (`CreateIndex`) or nothing is read from others' commits and never published.
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
        /// Added to the config that the table has.
        config: SortedMap<String, String>,
    },
    CreateIndex {
        new: Vec<proto::IndexMetadata>,
        removed: Vec<proto::IndexMetadata>,
    },
    Rewrite {
        groups: Vec<RewriteGroup>,
    },
    Merge {
        /// All fragments of the table.
        fragments: Vec<Fragment>,
        schema: Schema,
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
        /// Fields whose values were changed in place, in `updated`.
        fields_modified: Vec<u32>,
        /// Fields that have other values in `new` than the rows that went: indices on others may keep their fragments.
        fields_preserving: Vec<u32>,
        /// Whether the writer says which keys it inserted.
        has_key_filter: bool,
    },
    Project {
        schema: Schema,
        preserves_nullability: bool,
    },
    UpdateConfig {
        config: Option<UpdateMap>,
        table_metadata: Option<UpdateMap>,
        schema_metadata: Option<UpdateMap>,
        field_metadata: SortedMap<FieldId, UpdateMap>,
    },
    DataReplacement {
        replacements: Vec<Replacement>,
    },
    UpdateMemWalState,
    Clone,
    UpdateBases,
    /// An operation that this build does not know, or none at all.
    Unknown,
}

/// Fragments whose rows moved into others.
#[derive(Debug, Clone, PartialEq)]
pub struct RewriteGroup {
    pub old: Vec<Fragment>,
    /// With the ids that were reserved for them.
    pub new: Vec<Fragment>,
}

/// A data file that took the place of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    pub fragment: FragmentId,
    pub file: Option<DataFile>,
}

/// A change of a map of texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpdateMap {
    /// `None` removes the key.
    pub entries: Vec<(String, Option<String>)>,
    /// Everything else goes.
    pub replaces: bool,
}

impl UpdateMap {
    pub fn apply(&self, map: &mut SortedMap<String, String>) {
        if self.replaces {
            map.clear();
        }
        for (key, value) in &self.entries {
            match value {
                Some(value) => map.insert(key.clone(), value.clone()),
                None => map.remove(key),
            };
        }
    }

    fn from_proto(message: wire::UpdateMap) -> UpdateMap {
        let entries = message.entries.into_iter().map(|entry| (entry.key, entry.value)).collect();
        UpdateMap { entries, replaces: message.replace }
    }

    fn to_proto(&self) -> wire::UpdateMap {
        let entry =
            |(key, value): &(String, Option<String>)| wire::UpdateMapEntry { key: key.clone(), value: value.clone() };
        wire::UpdateMap { entries: self.entries.iter().map(entry).collect(), replace: self.replaces }
    }
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

    /// The bytes of a transaction.
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
            Operation::CreateIndex { .. } => "CreateIndex",
            Operation::Rewrite { .. } => "Rewrite",
            Operation::Merge { .. } => "Merge",
            Operation::Restore { .. } => "Restore",
            Operation::ReserveFragments { .. } => "ReserveFragments",
            Operation::Update { .. } => "Update",
            Operation::Project { .. } => "Project",
            Operation::UpdateConfig { .. } => "UpdateConfig",
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
                config: proto::from_entries(overwrite.config_upsert_values),
            },
            Wire::CreateIndex(create) => {
                Operation::CreateIndex { new: create.new_indices, removed: create.removed_indices }
            }
            Wire::Rewrite(rewrite) => {
                let group = |group: wire::RewriteGroup| {
                    Ok(RewriteGroup { old: fragments(group.old_fragments)?, new: fragments(group.new_fragments)? })
                };
                Operation::Rewrite { groups: rewrite.groups.into_iter().map(group).collect::<Result<_>>()? }
            }
            Wire::Merge(merge) => Operation::Merge {
                fragments: fragments(merge.fragments)?,
                schema: Schema::from_proto(&merge.schema, &merge.schema_metadata)?,
                preserves_nullability: merge.preserves_nullability,
            },
            Wire::Restore(restore) => Operation::Restore { version: restore.version },
            Wire::ReserveFragments(reserve) => Operation::ReserveFragments { count: reserve.num_fragments },
            Wire::Update(update) => Operation::Update {
                removed: ids(update.removed_fragment_ids),
                updated: fragments(update.updated_fragments)?,
                new: fragments(update.new_fragments)?,
                fields_modified: update.fields_modified,
                fields_preserving: update.fields_for_preserving_frag_bitmap,
                has_key_filter: update.inserted_rows.is_some(),
            },
            Wire::Project(project) => Operation::Project {
                schema: Schema::from_proto(&project.schema, &[])?,
                preserves_nullability: project.preserves_nullability,
            },
            Wire::UpdateConfig(update) => Operation::UpdateConfig {
                config: update.config_updates.map(UpdateMap::from_proto),
                table_metadata: update.table_metadata_updates.map(UpdateMap::from_proto),
                schema_metadata: update.schema_metadata_updates.map(UpdateMap::from_proto),
                field_metadata: update
                    .field_metadata_updates
                    .into_iter()
                    .map(|entry| (FieldId(entry.key), UpdateMap::from_proto(entry.value.unwrap_or_default())))
                    .collect(),
            },
            Wire::DataReplacement(message) => {
                let replacement = |group: wire::DataReplacementGroup| {
                    let file = group.new_file.map(DataFile::from_proto).transpose()?;
                    Ok(Replacement { fragment: FragmentId(group.fragment_id), file })
                };
                let replacements = message.replacements.into_iter().map(replacement).collect::<Result<_>>()?;
                Operation::DataReplacement { replacements }
            }
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
                config_upsert_values: proto::to_entries(config),
                initial_bases: Vec::new(),
            }),
            Operation::CreateIndex { new, removed } => {
                Wire::CreateIndex(wire::CreateIndex { new_indices: new.clone(), removed_indices: removed.clone() })
            }
            Operation::Rewrite { groups } => {
                let group = |group: &RewriteGroup| wire::RewriteGroup {
                    old_fragments: messages(&group.old),
                    new_fragments: messages(&group.new),
                };
                let groups = groups.iter().map(group).collect();
                Wire::Rewrite(wire::Rewrite { groups, rewritten_indices: Vec::new() })
            }
            Operation::Merge { fragments, schema, preserves_nullability } => Wire::Merge(wire::Merge {
                fragments: messages(fragments),
                schema: schema.to_proto(),
                schema_metadata: schema.metadata_to_proto(),
                preserves_nullability: *preserves_nullability,
            }),
            Operation::Restore { version } => Wire::Restore(wire::Restore { version: *version }),
            Operation::ReserveFragments { count } => {
                Wire::ReserveFragments(wire::ReserveFragments { num_fragments: *count })
            }
            Operation::Update { removed, updated, new, fields_modified, fields_preserving, has_key_filter } => {
                Wire::Update(wire::Update {
                    removed_fragment_ids: numbers(removed),
                    updated_fragments: messages(updated),
                    new_fragments: messages(new),
                    fields_modified: fields_modified.clone(),
                    fields_for_preserving_frag_bitmap: fields_preserving.clone(),
                    update_mode: 0,
                    inserted_rows: has_key_filter.then_some(proto::Opaque {}),
                })
            }
            Operation::Project { schema, preserves_nullability } => Wire::Project(wire::Project {
                schema: schema.to_proto(),
                preserves_nullability: *preserves_nullability,
            }),
            Operation::UpdateConfig { config, table_metadata, schema_metadata, field_metadata } => {
                Wire::UpdateConfig(wire::UpdateConfig {
                    config_updates: config.as_ref().map(UpdateMap::to_proto),
                    table_metadata_updates: table_metadata.as_ref().map(UpdateMap::to_proto),
                    schema_metadata_updates: schema_metadata.as_ref().map(UpdateMap::to_proto),
                    field_metadata_updates: field_metadata
                        .iter()
                        .map(|(id, map)| wire::FieldUpdate { key: id.0, value: Some(map.to_proto()) })
                        .collect(),
                })
            }
            Operation::DataReplacement { replacements } => {
                let group = |replacement: &Replacement| wire::DataReplacementGroup {
                    fragment_id: replacement.fragment.0,
                    new_file: replacement.file.as_ref().map(DataFile::to_proto),
                };
                Wire::DataReplacement(wire::DataReplacement { replacements: replacements.iter().map(group).collect() })
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
                schema: Schema { fields: vec![], metadata: SortedMap::from([("a".into(), "b".into())]) },
                config: SortedMap::from([("k".into(), "v".into())]),
            },
            Operation::CreateIndex {
                new: vec![proto::IndexMetadata { name: "i".into(), fields: vec![1], ..Default::default() }],
                removed: vec![proto::IndexMetadata::default()],
            },
            Operation::Rewrite { groups: vec![RewriteGroup { old: vec![fragment()], new: vec![] }] },
            Operation::Merge { fragments: vec![fragment()], schema: Schema::default(), preserves_nullability: true },
            Operation::Restore { version: 9 },
            Operation::ReserveFragments { count: 2 },
            Operation::Update {
                removed: ids,
                updated: vec![fragment()],
                new: vec![fragment()],
                fields_modified: vec![1],
                fields_preserving: vec![2, 3],
                has_key_filter: true,
            },
            Operation::Project { schema: Schema::default(), preserves_nullability: true },
            Operation::UpdateConfig {
                config: Some(UpdateMap { entries: vec![("a".into(), None)], replaces: true }),
                table_metadata: Some(UpdateMap::default()),
                schema_metadata: None,
                field_metadata: SortedMap::from([(
                    FieldId(2),
                    UpdateMap { entries: vec![("k".into(), Some("v".into()))], replaces: false },
                )]),
            },
            Operation::DataReplacement {
                replacements: vec![Replacement { fragment: FragmentId(4), file: fragment().files.pop() }],
            },
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
    fn a_change_of_a_map_adds_replaces_and_removes() {
        let mut map = SortedMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
        let entries = vec![("a".to_owned(), None), ("c".to_owned(), Some("3".to_owned()))];
        UpdateMap { entries: entries.clone(), replaces: false }.apply(&mut map);
        assert_eq!(map, SortedMap::from([("b".to_owned(), "2".to_owned()), ("c".to_owned(), "3".to_owned())]));
        UpdateMap { entries, replaces: true }.apply(&mut map);
        assert_eq!(map, SortedMap::from([("c".to_owned(), "3".to_owned())]));
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
