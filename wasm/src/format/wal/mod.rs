//! What a table with a write-ahead log keeps beside its versions, and its bytes.
//!
//! ```text
//! _mem_wal/<shard>/manifest/<version>.binpb     the state of a shard; version_hint.json names one of the newer ones
//!                  wal/<position>.arrow         rows, in the order in which they were written
//!                  <8 hex>_gen_<generation>/    rows that were flushed: a table of its own
//! ```
//!
//! Versions and positions are counted from 1. Their names are their 64 bits, the lowest one first.

pub mod entry;
pub mod layout;
pub mod shard;
pub mod spec;

pub use entry::WalEntry;
pub use layout::WalPath;
pub use shard::{ShardManifest, SsTable};
pub use spec::{ShardId, Sharding, WriteSpec};
