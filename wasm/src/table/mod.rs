//! Versions of a table: create, open, append, delete, scan, commit.
//!
//! Reading: a `Table` binds a directory id and a snapshot (one version and its manifest); a scan reads the snapshot's fragments in order,
//! applies deletion vectors and the filter, and yields batches. Writing: files go to the store first, then one commit publishes the next
//! manifest, rebasing over what others committed meanwhile.

mod adapt;
mod auto_cleanup;
mod build_manifest;
mod cache;
mod cleanup;
pub(crate) mod commit;
mod compact;
mod conflict;
mod create;
pub(crate) mod database;
mod delete;
mod evolve;
mod existing;
mod export;
mod fragment_rows;
pub(crate) mod fresh;
mod handle;
mod import;
mod invariants;
mod lease;
mod lineage;
mod maintain;
mod matches;
mod merge_insert;
pub(crate) mod merged;
mod optimize;
mod paths;
mod projection;
mod refresh;
mod restore;
mod scan;
pub(crate) mod snapshot;
mod spread;
mod staging;
mod stats;
mod system_columns;
mod tags;
mod take;
mod update;
pub(crate) mod versions;
mod write;

pub use cleanup::{CleanupOptions, CleanupPreview, CleanupStats, KeepReason, KeptVersion, RemovedVersion};
pub use compact::{Bin, CompactOptions, CompactPlan, CompactResult};
pub use create::{CreateMode, CreateTable};
pub use database::Database;
pub use evolve::{Alteration, ComputedColumn, FieldMetadata, parse_type};
pub use export::{Export, ExportEntry};
pub use handle::Table;
pub use import::Import;
pub use maintain::Due;
pub use merge_insert::{MergeInsert, MergeOptions, MergeResult, When};
pub use optimize::{OptimizeOptions, OptimizeResult};
pub use scan::Scan;
pub use stats::{Spread, TableStats};
pub use tags::TagInfo;
pub use take::Rows;
pub use update::{NewValue, Update, UpdateResult};
pub use write::Append;

/// How soon a handle sees others' commits. Writes always commit on the latest version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consistency {
    /// Only after `checkout_latest` or an own write.
    #[default]
    Lazy,
    /// Every read looks for the latest version.
    Strong,
    /// A read looks when the last look is older than this many milliseconds.
    Eventual(u64),
}

/// What a delete did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeleteResult {
    pub deleted_rows: u64,
    pub version: u64,
}

/// A version as `versions` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionInfo {
    pub version: u64,
    /// Nanoseconds since the Unix epoch; 0 when the manifest records none.
    pub timestamp_ns: u64,
    /// LanceDB's totals: `total_fragments`, `total_data_files`, `total_files_size`, `total_deletion_files`,
    /// `total_deletion_file_rows`, `total_rows`, `total_data_file_rows`. Empty for a manifest that cannot be read.
    pub totals: Vec<(&'static str, u64)>,
}

/// What a scan yields.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// Output columns in order; `a.b` names a struct's member and yields a column of that name. `None` = all.
    pub columns: Option<Vec<String>>,
    /// Output columns behind those, computed from the row and named as they are written.
    pub expressions: Vec<String>,
    pub filter: Option<String>,
    /// Only these rows; without a filter.
    pub rows: Option<Rows>,
    /// At most this many rows after the filter and `offset`.
    pub limit: Option<u64>,
    pub offset: u64,
    /// Rows per batch at most; `None` = up to 65,536, of about 4 MB.
    pub batch_rows: Option<u64>,
    /// Append `_rowid`, uint64.
    pub with_row_id: bool,
    /// Whether rows of the write-ahead log are read, too: `Some(false)` leaves them out, `Some(true)` asks for a table that has one. `None` =
    /// they are read where there is one.
    pub use_lsm: Option<bool>,
}
