//! Package lance.table: the index entry that stands for a write-ahead log, and the manifests of its shards.

use bytes::Bytes;
use prost::Message;

use super::{StringEntry, Uuid};

#[derive(Clone, PartialEq, Message)]
pub struct MemWalIndexDetails {
    /// Shards there are at most; 0 = not known beforehand.
    #[prost(uint32, tag = "2")]
    pub num_shards: u32,
    #[prost(message, repeated, tag = "7")]
    pub sharding_specs: Vec<ShardingSpec>,
    #[prost(string, repeated, tag = "8")]
    pub maintained_indexes: Vec<String>,
    /// Per shard the newest generation whose rows are in the base table.
    #[prost(message, repeated, tag = "9")]
    pub compacted_sstables: Vec<CompactedSsTable>,
    #[prost(message, repeated, tag = "11")]
    pub writer_config_defaults: Vec<StringEntry>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ShardingSpec {
    #[prost(uint32, tag = "1")]
    pub spec_id: u32,
    #[prost(message, repeated, tag = "2")]
    pub fields: Vec<ShardingField>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ShardingField {
    #[prost(string, tag = "1")]
    pub field_id: String,
    #[prost(int32, repeated, tag = "2")]
    pub source_ids: Vec<i32>,
    #[prost(string, tag = "3")]
    pub transform: String,
    #[prost(string, tag = "5")]
    pub result_type: String,
    #[prost(message, repeated, tag = "6")]
    pub parameters: Vec<StringEntry>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CompactedSsTable {
    #[prost(message, optional, tag = "1")]
    pub shard_id: Option<Uuid>,
    #[prost(uint64, tag = "2")]
    pub generation: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct ShardManifest {
    #[prost(uint64, tag = "1")]
    pub version: u64,
    #[prost(uint64, tag = "2")]
    pub writer_epoch: u64,
    #[prost(uint64, tag = "3")]
    pub replay_after_wal_entry_position: u64,
    #[prost(uint64, tag = "4")]
    pub wal_entry_position_last_seen: u64,
    #[prost(uint64, tag = "6")]
    pub current_generation: u64,
    #[prost(message, repeated, tag = "8")]
    pub sstables: Vec<SsTable>,
    #[prost(uint32, tag = "10")]
    pub shard_spec_id: u32,
    #[prost(message, optional, tag = "11")]
    pub shard_id: Option<Uuid>,
    /// Messages, kept as they are.
    #[prost(bytes = "bytes", repeated, tag = "14")]
    pub shard_field_entries: Vec<Bytes>,
    /// 0 active, 1 sealed.
    #[prost(int32, tag = "15")]
    pub status: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct SsTable {
    #[prost(uint64, tag = "1")]
    pub generation: u64,
    /// The folder in that of the shard.
    #[prost(string, tag = "2")]
    pub path: String,
    #[prost(uint64, optional, tag = "3")]
    pub in_memory_bytes: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub physical_rows: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub primary_key_bytes: Option<u64>,
}
