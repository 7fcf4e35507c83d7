//! The write spec of a table: how its rows are spread over shards, each with a log of its own.
//!
//! It is an entry of the index section that indexes nothing, and says how far each shard's generations are in the table.

use std::fmt;

use prost::Message;

use crate::collections::SortedMap;
use crate::error::{Error, Result};
use crate::format::proto::{self, IndexMetadata, MemWalIndexDetails, ShardingField, ShardingSpec, StringEntry};
use crate::format::table::{FieldId, Manifest};

/// The name of the entry.
pub const INDEX_NAME: &str = "__lance_mem_wal";
const TYPE_URL: &str = "/lance.table.MemWalIndexDetails";
/// A table has one way to spread its rows.
const SPEC_ID: u32 = 1;
/// What rows are spread by is called this, whatever it is computed of.
const RESULT: &str = "bucket";
const BUCKET: &str = "bucket";
const IDENTITY: &str = "identity";
const UNSHARDED: &str = "unsharded";
const NUM_BUCKETS: &str = "num_buckets";

/// Shards of a table at most.
pub const MAX_BUCKETS: u32 = 1024;

/// The id of a shard, which is also the name of its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardId(pub [u8; 16]);

impl ShardId {
    /// The id of a hyphenated lower-case UUID.
    pub fn parse(text: &str) -> Option<ShardId> {
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
        let mut digits = text.bytes().filter(|byte| *byte != b'-');
        let mut id = [0; 16];
        for byte in &mut id {
            *byte = digit(digits.next()?)? << 4 | digit(digits.next()?)?;
        }
        let id = ShardId(id);
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// What decides the shard of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sharding {
    /// A hash of a column's value.
    Bucket { field: FieldId, buckets: u32 },
    /// The value of a column, of the type by the name that the entry has for it.
    Identity { field: FieldId, result_type: String },
    /// There is one shard.
    Unsharded,
}

/// How a table is written through its log.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteSpec {
    pub sharding: Sharding,
    pub maintained_indexes: Vec<String>,
    /// For writers; unknown keys are theirs.
    pub config: SortedMap<String, String>,
    /// Per shard the newest generation whose rows are in the table.
    pub compacted: SortedMap<ShardId, u64>,
}

impl WriteSpec {
    /// The entry of a version, whether this build can follow it or not.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn find(manifest: &Manifest) -> Result<Option<IndexMetadata>> {
        Ok(manifest.indices()?.into_iter().find(|index| index.name == INDEX_NAME))
    }

    /// # Errors
    /// `Corrupt`; `NotSupported` for another way to spread rows.
    pub fn of(manifest: &Manifest) -> Result<Option<WriteSpec>> {
        WriteSpec::find(manifest)?.map(|index| WriteSpec::decode(&index)).transpose()
    }

    /// # Errors
    /// As [`WriteSpec::of`].
    pub fn decode(index: &IndexMetadata) -> Result<WriteSpec> {
        let corrupt = |reason: String| Error::corrupt(format!("{INDEX_NAME}: {reason}"));
        let bytes = index.index_details.as_ref().map_or(&[][..], |details| details.value.as_ref());
        let details = MemWalIndexDetails::decode(bytes).map_err(|error| corrupt(error.to_string()))?;
        let mut compacted = SortedMap::new();
        for table in details.compacted_sstables {
            let id = table.shard_id.and_then(|uuid| <[u8; 16]>::try_from(uuid.bytes).ok());
            let id = id.ok_or_else(|| corrupt("a generation of no shard".to_owned()))?;
            compacted.insert(ShardId(id), table.generation);
        }
        let field = match details.sharding_specs.as_slice() {
            [ShardingSpec { fields, .. }] => match fields.as_slice() {
                [field] => field,
                _ => return Err(Error::not_supported("an LSM write spec of several columns")),
            },
            _ => return Err(Error::not_supported("an LSM write spec that was changed")),
        };
        Ok(WriteSpec {
            sharding: sharding(field)?,
            maintained_indexes: details.maintained_indexes,
            config: proto::from_entries(details.writer_config_defaults),
            compacted,
        })
    }

    /// The details of an entry.
    pub fn encode(&self) -> proto::Any {
        let field = |source: Option<FieldId>, transform: &str, result_type: &str| ShardingField {
            field_id: RESULT.to_owned(),
            source_ids: source.into_iter().map(|id| id.0).collect(),
            transform: transform.to_owned(),
            result_type: result_type.to_owned(),
            parameters: Vec::new(),
        };
        let (num_shards, field) = match &self.sharding {
            Sharding::Bucket { field: id, buckets } => {
                let count = StringEntry { key: NUM_BUCKETS.to_owned(), value: buckets.to_string() };
                (*buckets, ShardingField { parameters: vec![count], ..field(Some(*id), BUCKET, "int32") })
            }
            Sharding::Identity { field: id, result_type } => (0, field(Some(*id), IDENTITY, result_type)),
            Sharding::Unsharded => (1, field(None, UNSHARDED, "int32")),
        };
        let compacted = self.compacted.iter().map(|(id, generation)| proto::CompactedSsTable {
            shard_id: Some(proto::Uuid { bytes: id.0.to_vec() }),
            generation: *generation,
        });
        let details = MemWalIndexDetails {
            num_shards,
            sharding_specs: vec![ShardingSpec { spec_id: SPEC_ID, fields: vec![field] }],
            maintained_indexes: self.maintained_indexes.clone(),
            compacted_sstables: compacted.collect(),
            writer_config_defaults: proto::to_entries(&self.config),
        };
        proto::Any { type_url: TYPE_URL.to_owned(), value: details.encode_to_vec().into() }
    }

    /// The column that decides the shard.
    pub fn field(&self) -> Option<FieldId> {
        match self.sharding {
            Sharding::Bucket { field, .. } | Sharding::Identity { field, .. } => Some(field),
            Sharding::Unsharded => None,
        }
    }
}

fn sharding(field: &ShardingField) -> Result<Sharding> {
    let refused = || Error::not_supported(format!("an LSM write spec of the kind \"{}\"", field.transform));
    let source = field.source_ids.first().map(|id| FieldId(*id));
    Ok(match field.transform.as_str() {
        BUCKET => {
            let count = field.parameters.iter().find(|entry| entry.key == NUM_BUCKETS);
            let buckets = count.and_then(|entry| entry.value.parse().ok());
            let buckets = buckets.filter(|count| (1..=MAX_BUCKETS).contains(count)).ok_or_else(refused)?;
            Sharding::Bucket { field: source.ok_or_else(refused)?, buckets }
        }
        IDENTITY => Sharding::Identity { field: source.ok_or_else(refused)?, result_type: field.result_type.clone() },
        UNSHARDED => Sharding::Unsharded,
        _ => return Err(refused()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(sharding: Sharding) -> WriteSpec {
        WriteSpec { sharding, maintained_indexes: vec![], config: SortedMap::new(), compacted: SortedMap::new() }
    }

    fn entry(details: proto::Any) -> IndexMetadata {
        IndexMetadata { name: INDEX_NAME.into(), index_details: Some(details), ..Default::default() }
    }

    /// Bytes of LanceDB 0.39.0.
    #[test]
    fn details_are_those_of_lancedb_byte_for_byte() {
        let config = SortedMap::from([("max_memtable_rows".to_owned(), "50".to_owned()), ("zzz".into(), "q".into())]);
        let bucket = WriteSpec { config, ..spec(Sharding::Bucket { field: FieldId(0), buckets: 4 }) };
        let mut expected =
            b"\x10\x04\x3a\x30\x08\x01\x12\x2c\x0a\x06bucket\x12\x01\x00\x1a\x06bucket*\x05int322\x10".to_vec();
        expected.extend_from_slice(b"\x0a\x0bnum_buckets\x12\x014");
        expected.extend_from_slice(b"\x5a\x17\x0a\x11max_memtable_rows\x12\x0250\x5a\x08\x0a\x03zzz\x12\x01q");
        assert_eq!(bucket.encode(), proto::Any { type_url: TYPE_URL.into(), value: expected.into() });
        let unsharded = b"\x10\x01\x3a\x1e\x08\x01\x12\x1a\x0a\x06bucket\x1a\x09unsharded*\x05int32";
        assert_eq!(spec(Sharding::Unsharded).encode().value.as_ref(), unsharded);
        let identity = Sharding::Identity { field: FieldId(1), result_type: "utf8".into() };
        let expected = b"\x3a\x1f\x08\x01\x12\x1b\x0a\x06bucket\x12\x01\x01\x1a\x08identity*\x04utf8";
        assert_eq!(spec(identity).encode().value.as_ref(), expected);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let identity = Sharding::Identity { field: FieldId(7), result_type: "int64".into() };
        for sharding in [Sharding::Bucket { field: FieldId(3), buckets: 1024 }, identity, Sharding::Unsharded] {
            let spec = WriteSpec {
                maintained_indexes: vec!["b".into(), "a".into()],
                compacted: SortedMap::from([(ShardId([1; 16]), 5), (ShardId([2; 16]), 9)]),
                ..spec(sharding)
            };
            assert_eq!(WriteSpec::decode(&entry(spec.encode())), Ok(spec));
        }
    }

    #[test]
    fn what_this_build_cannot_follow_is_refused() {
        let field = |transform: &str, buckets: &str| ShardingField {
            source_ids: vec![1],
            transform: transform.into(),
            parameters: vec![StringEntry { key: NUM_BUCKETS.into(), value: buckets.into() }],
            ..Default::default()
        };
        let decoded = |specs: Vec<Vec<ShardingField>>| {
            let sharding_specs = specs.into_iter().map(|fields| ShardingSpec { spec_id: 1, fields }).collect();
            let value = MemWalIndexDetails { sharding_specs, ..Default::default() }.encode_to_vec();
            WriteSpec::decode(&entry(proto::Any { type_url: TYPE_URL.into(), value: value.into() }))
        };
        assert!(decoded(vec![vec![field("bucket", "4")]]).is_ok());
        for refused in [
            vec![],
            vec![vec![]],
            vec![vec![field("bucket", "4"), field("bucket", "4")]],
            vec![vec![field("bucket", "4")], vec![field("bucket", "4")]],
            vec![vec![field("bucket", "0")]],
            vec![vec![field("bucket", "1025")]],
            vec![vec![field("bucket", "x")]],
            vec![vec![field("truncate", "4")]],
            vec![vec![ShardingField { source_ids: vec![], ..field("identity", "4") }]],
        ] {
            assert!(matches!(decoded(refused.clone()), Err(Error::NotSupported { .. })), "{refused:?}");
        }
        let garbled = entry(proto::Any { type_url: TYPE_URL.into(), value: vec![0xff; 3].into() });
        assert!(matches!(WriteSpec::decode(&garbled), Err(Error::Corrupt { .. })));
    }
}
