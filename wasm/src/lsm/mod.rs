//! The write path through logs: a base table, and shards beside it that take upserts by key.
//!
//! A row's shard follows from its key (`route`). A shard's rows are in its log, then in generations, then in the base table; of rows with
//! one key the newest counts.

mod key;
mod route;
mod spec;
mod stats;

pub use key::keyed_schema;
pub use route::{Router, bucket_ids};
pub use spec::{SpecKind, SpecOptions};
pub use stats::{GenerationStats, LsmStats, ShardStats};
