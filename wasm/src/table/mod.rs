//! Versions of a table: create, open, append, delete, scan, commit.
//!
//! Reading: a `Table` binds a directory id and a snapshot (one version and its manifest); a scan reads the snapshot's fragments in order,
//! applies deletion vectors and the filter, and yields batches. Writing: files go to the store first, then one commit publishes the next
//! manifest, rebasing over what others committed meanwhile.

use std::rc::Rc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;

use crate::env::Env;
use crate::error::{Error, Result};
use crate::store::Store;

/// The tables of one store.
#[derive(Clone)]
pub struct Database {
    #[expect(dead_code)]
    store: Rc<dyn Store>,
    #[expect(dead_code)]
    env: Rc<dyn Env>,
}

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

/// A table at its latest version, or, checked out, at an old one. Clones share that state.
#[derive(Clone)]
pub struct Table {}

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
    /// `total_deletion_file_rows`, `total_rows`, `total_data_file_rows`.
    pub totals: Vec<(&'static str, u64)>,
}

/// What a scan yields.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// Output columns in order; `a.b` names a struct's member and yields a column of that name. `None` = all.
    pub columns: Option<Vec<String>>,
    pub filter: Option<String>,
    /// At most this many rows after the filter and `offset`.
    pub limit: Option<u64>,
    pub offset: u64,
    /// Rows per batch at most; `None` = 8,192 to 65,536, chosen by the width of the rows.
    pub batch_rows: Option<u64>,
    /// Append `_rowid`, uint64.
    pub with_row_id: bool,
}

/// A running scan. It holds a lease on its version until it ends or is closed.
pub struct Scan {}

/// Rows being appended; nothing is visible before `finish`.
pub struct Append {}

/// A table being created; nothing is visible before `finish`.
pub struct CreateTable {}

/// An object of an exported table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportEntry {
    pub path: String,
    pub size_bytes: u64,
}

/// A table being exported: its objects cannot be cleaned up until it is closed.
pub struct Export {}

/// A table being imported: nothing is visible before `finish`.
pub struct Import {}

fn missing<T>() -> Result<T> {
    Err(Error::not_supported("tables"))
}

impl Database {
    pub fn new(store: Rc<dyn Store>, env: Rc<dyn Env>) -> Database {
        Database { store, env }
    }

    /// Names in byte order.
    pub async fn table_names(&self) -> Result<Vec<String>> {
        missing()
    }

    /// Starts a table of a schema. `finish` without a `write` makes an empty one.
    ///
    /// # Errors
    /// `InvalidInput` for a bad name, `TableExists`, `Schema` for a schema that cannot be stored.
    pub async fn create_table(&self, name: &str, schema: SchemaRef) -> Result<CreateTable> {
        let _ = (name, schema);
        missing()
    }

    /// # Errors
    /// `TableNotFound`; `NotSupported` for feature flags or a data format that this build does not read; `Corrupt`.
    pub async fn open_table(&self, name: &str, consistency: Consistency) -> Result<Table> {
        let _ = (name, consistency);
        missing()
    }

    /// # Errors
    /// `TableNotFound`.
    pub async fn drop_table(&self, name: &str) -> Result<()> {
        let _ = name;
        missing()
    }

    /// All versions of a table as files, `_versions` last.
    pub async fn export_table(&self, name: &str) -> Result<Export> {
        let _ = name;
        missing()
    }

    /// Starts taking a table's files under a free name.
    pub async fn import_table(&self, name: &str) -> Result<Import> {
        let _ = name;
        missing()
    }

    /// Renews every lease that this engine holds and sweeps what nobody can reach; to be called about every 10 seconds while `holds_leases`.
    pub async fn maintain(&self) -> Result<()> {
        missing()
    }

    pub fn holds_leases(&self) -> bool {
        false
    }
}

impl Table {
    pub fn name(&self) -> &str {
        ""
    }

    /// The schema of the version this handle stands on.
    pub async fn schema(&self) -> Result<SchemaRef> {
        missing()
    }

    pub async fn version(&self) -> Result<u64> {
        missing()
    }

    /// All versions, ascending, also while an old one is checked out.
    pub async fn versions(&self) -> Result<Vec<VersionInfo>> {
        missing()
    }

    /// Pins the handle to a version, read-only.
    ///
    /// # Errors
    /// `NotFound`; the handle is unchanged.
    pub async fn checkout(&self, version: u64) -> Result<()> {
        let _ = version;
        missing()
    }

    pub async fn checkout_latest(&self) -> Result<()> {
        missing()
    }

    /// Starts an append. Batches may lack nullable columns.
    ///
    /// # Errors
    /// `InvalidInput` on a checked-out handle, `NotSupported` where `docs/format.md` says so.
    pub async fn append(&self) -> Result<Append> {
        missing()
    }

    /// Deletes matching rows; commits a version also when none matches, as LanceDB does.
    pub async fn delete(&self, predicate: &str) -> Result<DeleteResult> {
        let _ = predicate;
        missing()
    }

    pub async fn count_rows(&self, filter: Option<&str>) -> Result<u64> {
        let _ = filter;
        missing()
    }

    pub async fn scan(&self, options: ScanOptions) -> Result<Scan> {
        let _ = options;
        missing()
    }

    /// Releases the handle's lease; later calls fail with `Closed`.
    pub async fn close(&self) -> Result<()> {
        missing()
    }
}

impl Scan {
    pub fn schema(&self) -> SchemaRef {
        SchemaRef::new(arrow_schema::Schema::empty())
    }

    /// The next batch, never an empty one; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        missing()
    }

    /// Ends the scan early.
    pub async fn close(self) -> Result<()> {
        missing()
    }
}

impl Append {
    /// # Errors
    /// `Schema` naming column and row, counted from the first row of the append.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let _ = batch;
        missing()
    }

    /// Commits; the version that holds the rows. Without rows: the current version, no commit.
    pub async fn finish(self) -> Result<u64> {
        missing()
    }

    pub async fn abort(self) -> Result<()> {
        missing()
    }
}

impl CreateTable {
    /// # Errors
    /// As [`Append::write`].
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let _ = batch;
        missing()
    }

    pub async fn finish(self, consistency: Consistency) -> Result<Table> {
        let _ = consistency;
        missing()
    }

    pub async fn abort(self) -> Result<()> {
        missing()
    }
}

impl Export {
    pub fn entries(&self) -> &[ExportEntry] {
        &[]
    }

    /// Bytes of one entry.
    pub async fn read(&self, path: &str, offset: u64, length: u64) -> Result<Bytes> {
        let _ = (path, offset, length);
        missing()
    }

    pub async fn close(self) -> Result<()> {
        missing()
    }
}

impl Import {
    /// Starts the next file; the one before it is complete.
    pub async fn begin_file(&mut self, path: &str) -> Result<()> {
        let _ = path;
        missing()
    }

    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let _ = bytes;
        missing()
    }

    /// Checks that the newest version opens and that every file it names is there, then gives the table its name.
    pub async fn finish(self, consistency: Consistency) -> Result<Table> {
        let _ = consistency;
        missing()
    }

    pub async fn abort(self) -> Result<()> {
        missing()
    }
}
