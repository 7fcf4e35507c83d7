//! Write: batches to data files to fragments, and the append that commits them.

use std::rc::Rc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use bytes::Bytes;

use crate::collections::{SortedMap, SortedSet};
use crate::env::random_uuid;
use crate::error::{Error, Result};
use crate::format::file::{FileVersion, FileWriter};
use crate::format::table::{DataFile, Field, FieldId, Fragment, FragmentId, Operation, Schema, layout};
use crate::store::{DirId, Path};
use crate::table::adapt;
use crate::table::commit::{Begun, Change, Execution};
use crate::table::database::Engine;
use crate::table::evolve::fields;
use crate::table::handle::Table;
use crate::table::paths;
use crate::table::snapshot::Snapshot;
use crate::table::staging::{Staged, StagedWriter};

/// Rows of a data file at most.
const MAX_FILE_ROWS: u64 = 1 << 20;
/// A data file that reached this size gets no more rows.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Rows handed to a file at once at most, so that its size is looked at in time.
const SLICE_ROWS: usize = 65_536;

/// Rows of one operation on their way into data files.
pub(crate) struct RowWriter {
    engine: Rc<Engine>,
    dir: DirId,
    schema: Rc<Schema>,
    format: FileVersion,
    arrow: SchemaRef,
    rows: u64,
    open: Option<OpenFile>,
    fragments: Vec<Fragment>,
    staged: Staged,
    /// Every file that may lie in the store.
    begun: Vec<Path>,
    max_file_rows: u64,
    max_file_bytes: u64,
    is_broken: bool,
}

/// A data file being written.
pub(crate) struct OpenFile {
    name: String,
    pub(crate) writer: FileWriter,
    rows: u64,
}

impl OpenFile {
    /// The file as a fragment names it, and its rows.
    pub(crate) async fn finish(self) -> Result<(DataFile, u64)> {
        let summary = self.writer.finish().await?;
        let (major_version, minor_version) = summary.version.numbers();
        let file = DataFile {
            path: self.name,
            fields: summary.fields,
            column_indices: summary.column_indices,
            major_version,
            minor_version,
            size_bytes: Some(summary.size_bytes),
            base_id: None,
        };
        Ok((file, summary.row_count))
    }
}

/// What a `RowWriter` made.
pub(crate) struct Written {
    pub(crate) fragments: Vec<Fragment>,
    /// Small files, to be written by the commit.
    pub(crate) objects: Vec<(Path, Bytes)>,
    /// Files that are in the store already.
    pub(crate) files: Vec<Path>,
}

impl RowWriter {
    pub(crate) fn new(engine: Rc<Engine>, dir: DirId, schema: Rc<Schema>, format: FileVersion) -> RowWriter {
        let arrow = Rc::new(schema.to_arrow());
        RowWriter {
            engine,
            dir,
            schema,
            format,
            arrow: SchemaRef::new(Rc::unwrap_or_clone(arrow)),
            rows: 0,
            open: None,
            fragments: Vec::new(),
            staged: Staged::default(),
            begun: Vec::new(),
            max_file_rows: MAX_FILE_ROWS,
            max_file_bytes: MAX_FILE_BYTES,
            is_broken: false,
        }
    }

    /// Files of any number of rows that a fragment may have, up to this size.
    pub(crate) fn in_large_files(self, max_file_bytes: u64) -> RowWriter {
        RowWriter { max_file_rows: u64::from(u32::MAX), max_file_bytes, ..self }
    }

    /// Goes on in a new file; how many fragments there are up to here.
    pub(crate) async fn end_file(&mut self) -> Result<usize> {
        self.is_broken = true;
        self.close_file().await?;
        self.is_broken = false;
        Ok(self.fragments.len())
    }

    /// # Errors
    /// `Schema` naming column and row, and then nothing of the batch was written; after any other error the writer is of no use.
    pub(crate) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.is_broken {
            return Err(Error::invalid_input("a write that failed can only be aborted"));
        }
        let batch = adapt::adapt(batch, &self.arrow, self.rows)?;
        self.is_broken = true;
        let mut offset = 0;
        while offset < batch.num_rows() {
            let open = match &mut self.open {
                Some(open) => open,
                none => none.insert(open_file(
                    &self.engine,
                    &self.dir,
                    (&self.schema, self.format),
                    &self.staged,
                    &mut self.begun,
                )?),
            };
            let room = usize::try_from(self.max_file_rows.saturating_sub(open.rows)).unwrap_or(usize::MAX);
            let count = room.min(SLICE_ROWS).min(batch.num_rows() - offset);
            open.writer.write(&batch.slice(offset, count)).await?;
            open.rows += count as u64;
            offset += count;
            if open.rows >= self.max_file_rows || open.writer.written_bytes() >= self.max_file_bytes {
                self.close_file().await?;
            }
        }
        self.rows = self.rows.saturating_add(batch.num_rows() as u64);
        self.is_broken = false;
        Ok(())
    }

    async fn close_file(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let rows = open.rows;
        let (file, physical_rows) = open.finish().await?;
        if physical_rows != rows {
            return Err(Error::internal("a data file holds another number of rows than were written"));
        }
        self.fragments.push(Fragment {
            id: FragmentId(0),
            files: vec![file],
            deletion: None,
            physical_rows,
            row_ids: None,
            last_updated_at_versions: None,
            created_at_versions: None,
        });
        Ok(())
    }

    /// Finishes the last file. The fragments have no ids yet.
    pub(crate) async fn finish(&mut self) -> Result<Written> {
        if self.is_broken {
            return Err(Error::invalid_input("a write that failed can only be aborted"));
        }
        self.close_file().await?;
        let objects = std::mem::take(&mut *self.staged.borrow_mut());
        self.begun.retain(|path| !objects.iter().any(|(object, _)| object == path));
        Ok(Written { fragments: std::mem::take(&mut self.fragments), objects, files: self.begun.clone() })
    }

    /// Removes what was written. Best effort: nothing names these files, and cleanup finds what is left of them.
    pub(crate) async fn abort(&mut self) {
        if let Some(open) = self.open.take() {
            let _ = open.writer.abort().await;
        }
        let staged = std::mem::take(&mut *self.staged.borrow_mut());
        for path in std::mem::take(&mut self.begun) {
            if !staged.iter().any(|(object, _)| *object == path) {
                let _ = self.engine.store.delete(&self.dir, &path).await;
            }
        }
    }
}

/// Starts a data file; `begun` learns its path.
pub(crate) fn open_file(
    engine: &Engine,
    dir: &DirId,
    (schema, format): (&Schema, FileVersion),
    staged: &Staged,
    begun: &mut Vec<Path>,
) -> Result<OpenFile> {
    let name = layout::data_file_name(&random_uuid(engine.env.as_ref()));
    let path = paths::data_file(&name);
    let output = StagedWriter::new(engine.store.clone(), dir.clone(), path.clone(), staged.clone());
    let writer = FileWriter::new(Box::new(output), schema, format)?;
    begun.push(path);
    Ok(OpenFile { name, writer, rows: 0 })
}

/// Rows being added to a table, or put in the place of all that it has; nothing is visible before `finish`.
pub struct Append {
    table: Table,
    writer: RowWriter,
    begun: Begun,
    mode: WriteMode,
}

/// What becomes of the rows that a table has when others are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    Append,
    Overwrite,
}

impl Append {
    /// Rows of the table's own schema and format.
    ///
    /// # Errors
    /// `NotSupported` for a table of a data format that is not written, or that has no place for one of its types.
    pub(crate) async fn new(table: Table, engine: Rc<Engine>, begun: Begun) -> Result<Append> {
        let schema = begun.base.manifest.schema.clone();
        match FileVersion::parse(&begun.base.manifest.data_format) {
            Ok(format) => Append::with(table, engine, begun, (schema, format), WriteMode::Append).await,
            Err(error) => {
                begun.release().await;
                Err(error)
            }
        }
    }

    /// Rows of a schema, in a format.
    pub(crate) async fn with(
        table: Table,
        engine: Rc<Engine>,
        begun: Begun,
        (schema, format): (Schema, FileVersion),
        mode: WriteMode,
    ) -> Result<Append> {
        if let Err(error) = FileWriter::check(&schema, format) {
            begun.release().await;
            return Err(error);
        }
        let writer = RowWriter::new(engine, begun.base.dir.clone(), Rc::new(schema), format);
        Ok(Append { table, writer, begun, mode })
    }

    /// # Errors
    /// `Schema` naming column and row, counted from the first row of the append.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).await.map_err(|error| self.table.name_it(error))
    }

    /// Commits; the version that holds the rows. An append without rows: the current version, no commit.
    ///
    /// # Errors
    /// `Conflict` when the table was overwritten or restored since it was read, when its schema was changed so that the rows do not fit
    /// any more, or when versions since then were cleaned up; `Contention`; `TableNotFound`; `OutcomeUnknown`. After every other error
    /// than the last one no row is in the table.
    pub async fn finish(mut self) -> Result<u64> {
        let outcome = self.commit().await;
        if let Err(error) = &outcome
            && !matches!(error, Error::OutcomeUnknown { .. })
        {
            self.writer.abort().await;
        }
        self.begun.release().await;
        outcome.map_err(|error| self.table.name_it(error))
    }

    async fn commit(&mut self) -> Result<u64> {
        let written = self.writer.finish().await?;
        let engine = self.writer.engine.clone();
        let mut rows =
            Rows { written, schema: self.writer.schema.clone(), format: self.writer.format, mode: self.mode };
        let done = self.begun.run(&engine, &mut rows).await?;
        let version = done.snapshot.version();
        self.table.advance(done.snapshot);
        Ok(version)
    }

    pub async fn abort(mut self) -> Result<()> {
        self.writer.abort().await;
        self.begun.release().await;
        Ok(())
    }

    /// The table that the rows are written to.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }
}

/// Rows that are in files already.
struct Rows {
    written: Written,
    /// What they were written for.
    schema: Rc<Schema>,
    format: FileVersion,
    mode: WriteMode,
}

#[async_trait(?Send)]
impl Execution for Rows {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        let operation = match self.mode {
            WriteMode::Append if self.written.fragments.is_empty() => return Ok(None),
            WriteMode::Append => {
                if !fits(&self.schema, &base.manifest.schema) || !self.forget_dropped(&base.manifest.schema) {
                    let (ours, theirs) = ("Append".to_owned(), "a change of the schema".to_owned());
                    return Err(Error::Conflict { ours, theirs, version: base.version() });
                }
                Operation::Append { fragments: self.written.fragments.clone() }
            }
            WriteMode::Overwrite => Operation::Overwrite {
                fragments: self.written.fragments.clone(),
                schema: self.schema.as_ref().clone(),
                config: SortedMap::new(),
            },
        };
        let objects = self.written.objects.clone();
        // The files stay with the writer: they are as good for the next execution.
        Ok(Some(Change { objects, data_format: Some(self.format), ..Change::of(operation) }))
    }
}

impl Rows {
    /// Values of columns that were dropped since belong to no column, also when another gets the id; `false` when no column is left.
    fn forget_dropped(&mut self, latest: &Schema) -> bool {
        let is_gone = |field: &&Field| latest.field_by_id(field.id).is_none();
        let gone: SortedSet<FieldId> =
            self.schema.all_fields().into_iter().filter(is_gone).map(|field| field.id).collect();
        if gone.is_empty() {
            return true;
        }
        let left = fields::without(&self.schema.fields, &gone);
        self.schema = Rc::new(Schema { fields: left, metadata: self.schema.metadata.clone() });
        for file in self.written.fragments.iter_mut().flat_map(|fragment| &mut fragment.files) {
            file.fields.iter_mut().filter(|id| gone.contains(id)).for_each(|id| *id = FieldId::TOMBSTONE);
        }
        !self.schema.fields.is_empty()
    }
}

/// Whether rows written for a schema are rows of a later one of the same table: it takes no column that they have under another field,
/// and asks for no value that they may lack.
fn fits(written: &Schema, latest: &Schema) -> bool {
    if written == latest {
        return true;
    }
    let (before, after) = (written.all_fields(), latest.all_fields());
    let has = |fields: &[&Field], id: FieldId| fields.iter().any(|field| field.id == id);
    // A column that was cast goes, and another comes in its place.
    let is_cast =
        before.iter().any(|field| !has(&after, field.id)) && after.iter().any(|field| !has(&before, field.id));
    let lacks = |field: &&Field| {
        !field.nullable && before.iter().find(|before| before.id == field.id).is_none_or(|before| before.nullable)
    };
    !is_cast && !after.iter().any(lacks)
}
