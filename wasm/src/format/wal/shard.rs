//! The manifest of a shard: who writes it, what of its log is in generations, and which of these there are.

use bytes::Bytes;
use prost::Message;

use crate::error::{Error, Result};
use crate::format::proto;
use crate::format::wal::ShardId;

/// The state of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShardManifest {
    pub version: u64,
    /// Of the writer that claimed the shard last.
    pub writer_epoch: u64,
    /// Entries of the log up to this one are in generations.
    pub replay_after: u64,
    pub last_seen_position: u64,
    /// The generation that the rows in memory will become.
    pub current_generation: u64,
    /// Ascending.
    pub sstables: Vec<SsTable>,
    /// `None` where the writer did not say it.
    pub shard: Option<ShardId>,
    pub spec_id: u32,
    /// What spreads rows to this shard, as it was read.
    pub entries: Vec<Bytes>,
    /// The shard takes no more writers.
    pub is_sealed: bool,
}

/// Rows that were flushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SsTable {
    pub generation: u64,
    /// The folder in that of the shard.
    pub folder: String,
    pub memory_bytes: Option<u64>,
    /// Those of one key that are not its newest among them.
    pub row_count: Option<u64>,
    pub key_bytes: Option<u64>,
}

impl ShardManifest {
    /// That of a shard which nobody has written to.
    pub fn first() -> ShardManifest {
        ShardManifest { current_generation: 1, ..ShardManifest::default() }
    }

    /// # Errors
    /// `Corrupt`.
    pub fn decode(bytes: &[u8]) -> Result<ShardManifest> {
        let message = proto::ShardManifest::decode(bytes)
            .map_err(|error| Error::corrupt(format!("manifest of a shard: {error}")))?;
        let sstable = |table: proto::SsTable| SsTable {
            generation: table.generation,
            folder: table.path,
            memory_bytes: table.in_memory_bytes,
            row_count: table.physical_rows,
            key_bytes: table.primary_key_bytes,
        };
        let sstables: Vec<SsTable> = message.sstables.into_iter().map(sstable).collect();
        if let Some([low, high]) = sstables.array_windows().find(|[low, high]| low.generation >= high.generation) {
            let (low, high) = (low.generation, high.generation);
            return Err(Error::corrupt(format!("generation {low} of a shard stands before generation {high}")));
        }
        // A folder is one segment: a path would lead out of the shard.
        let is_segment = |name: &str| {
            !matches!(name, "" | "." | "..") && !name.contains(|c: char| matches!(c, '/' | '\\') || c.is_control())
        };
        if let Some(table) = sstables.iter().find(|table| !is_segment(&table.folder)) {
            return Err(Error::corrupt(format!("{:?} is no folder of a generation", table.folder)));
        }
        Ok(ShardManifest {
            version: message.version,
            writer_epoch: message.writer_epoch,
            replay_after: message.replay_after_wal_entry_position,
            last_seen_position: message.wal_entry_position_last_seen,
            current_generation: message.current_generation,
            sstables,
            shard: message.shard_id.and_then(|uuid| uuid.bytes.try_into().ok()).map(ShardId),
            spec_id: message.shard_spec_id,
            entries: message.shard_field_entries,
            is_sealed: message.status != 0,
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let sstable = |table: &SsTable| proto::SsTable {
            generation: table.generation,
            path: table.folder.clone(),
            in_memory_bytes: table.memory_bytes,
            physical_rows: table.row_count,
            primary_key_bytes: table.key_bytes,
        };
        let message = proto::ShardManifest {
            version: self.version,
            writer_epoch: self.writer_epoch,
            replay_after_wal_entry_position: self.replay_after,
            wal_entry_position_last_seen: self.last_seen_position,
            current_generation: self.current_generation,
            sstables: self.sstables.iter().map(sstable).collect(),
            shard_spec_id: self.spec_id,
            shard_id: self.shard.map(|id| proto::Uuid { bytes: id.0.to_vec() }),
            shard_field_entries: self.entries.clone(),
            status: i32::from(self.is_sealed),
        };
        message.encode_to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As LanceDB 0.39.0 wrote it: one generation, whose rows are the first three entries of the log.
    const LANCEDB: [u8; 59] = [
        0x08, 6, 0x10, 3, 0x18, 3, 0x20, 7, 0x30, 2, 0x42, 0x19, 0x08, 1, 0x12, 14, b'a', b'a', b'2', b'a', b'f', b'6',
        b'3', b'8', b'_', b'g', b'e', b'n', b'_', b'1', 0x18, 0xa5, 1, 0x20, 3, 0x28, 0x18, 0x50, 1, 0x5a, 18, 0x0a,
        16, 0x4a, 0x38, 0x84, 0x80, 0xa2, 0x5b, 0x59, 0xa8, 0xb0, 0x58, 0x24, 0x21, 0x7f, 0x98, 0x02, 0x56,
    ];

    fn table(generation: u64, path: &str) -> proto::SsTable {
        proto::SsTable { generation, path: path.to_owned(), ..Default::default() }
    }

    fn decoded(sstables: Vec<proto::SsTable>) -> Result<ShardManifest> {
        ShardManifest::decode(&proto::ShardManifest { sstables, ..Default::default() }.encode_to_vec())
    }

    #[test]
    fn a_manifest_of_lancedb_says_what_is_flushed() {
        let expected = ShardManifest {
            version: 6,
            writer_epoch: 3,
            replay_after: 3,
            last_seen_position: 7,
            current_generation: 2,
            sstables: vec![SsTable {
                generation: 1,
                folder: "aa2af638_gen_1".into(),
                memory_bytes: Some(165),
                row_count: Some(3),
                key_bytes: Some(24),
            }],
            shard: ShardId::parse("4a388480-a25b-59a8-b058-24217f980256"),
            spec_id: 1,
            entries: Vec::new(),
            is_sealed: false,
        };
        assert_eq!(ShardManifest::decode(&LANCEDB), Ok(expected.clone()));
        assert_eq!(expected.encode(), LANCEDB);
    }

    #[test]
    fn what_is_only_kept_is_written_again() {
        let manifest = ShardManifest {
            entries: vec![Bytes::from_static(b"\x0a\x01x"), Bytes::from_static(b"")],
            is_sealed: true,
            sstables: vec![SsTable {
                generation: 7,
                folder: "f".into(),
                memory_bytes: None,
                row_count: Some(0),
                key_bytes: None,
            }],
            ..ShardManifest::first()
        };
        assert_eq!(ShardManifest::decode(&manifest.encode()), Ok(manifest));
    }

    #[test]
    fn bytes_that_are_no_manifest_are_corrupt() {
        for end in (0..LANCEDB.len()).filter(|end| *end > 10 && *end < 37) {
            assert!(matches!(ShardManifest::decode(&LANCEDB[..end]), Err(Error::Corrupt { .. })), "{end}");
        }
        assert!(matches!(decoded(vec![table(2, "a"), table(1, "b")]), Err(Error::Corrupt { .. })));
        for folder in ["", ".", "..", "../x", "a/b", "a\\b", "a\0"] {
            assert!(matches!(decoded(vec![table(1, folder)]), Err(Error::Corrupt { .. })), "{folder}");
        }
    }
}
