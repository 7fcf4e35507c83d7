//! Column files: columns of the rows that there are, as one new data file per fragment.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::SchemaRef;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::file::{FileVersion, FileWriter};
use crate::format::table::{DataFile, Field, FieldId, Fragment, Operation, Schema};
use crate::store::Path;
use crate::table::commit::Change;
use crate::table::database::Engine;
use crate::table::fragment_rows::{FragmentRows, row_count};
use crate::table::snapshot::Snapshot;
use crate::table::staging::Staged;
use crate::table::write;

/// Small files that wait for the commit in memory at most, together.
const MAX_STAGED_BYTES: usize = 8 << 20;

/// What makes columns of others.
pub(super) trait ColumnMaker {
    /// The columns that it is given.
    fn reads(&self) -> &[Field];

    /// The new columns of some live rows; `first_row` counts the table's live rows before them.
    ///
    /// # Errors
    /// Naming column and row of a value that cannot be made.
    fn make(&self, columns: &[ArrayRef], rows: usize, first_row: u64) -> Result<Vec<ArrayRef>>;
}

/// Files on their way into a commit.
pub(super) struct ColumnFiles<'a> {
    engine: &'a Rc<Engine>,
    base: Rc<Snapshot>,
    format: FileVersion,
    staged: Staged,
    /// Every file that may lie in the store.
    begun: Vec<Path>,
}

impl<'a> ColumnFiles<'a> {
    /// # Errors
    /// `NotSupported` for a table of a data format that is not written.
    pub(super) fn new(engine: &'a Rc<Engine>, base: &Rc<Snapshot>) -> Result<ColumnFiles<'a>> {
        let format = FileVersion::parse(&base.manifest.data_format)?;
        Ok(ColumnFiles { engine, base: base.clone(), format, staged: Staged::default(), begun: Vec::new() })
    }

    pub(super) fn base(&self) -> &Rc<Snapshot> {
        &self.base
    }

    /// Writes the columns of a schema for all rows of a fragment.
    ///
    /// # Errors
    /// What reading, making and writing say; then `abort` is to be called.
    pub(super) async fn write(&mut self, at: usize, schema: &Schema, maker: &dyn ColumnMaker) -> Result<DataFile> {
        let mut open =
            write::open_file(self.engine, &self.base.dir, (schema, self.format), &self.staged, &mut self.begun)?;
        let rows = FragmentRows::open(self.engine, &self.base, at).await?;
        if let Err(error) = write_rows(&mut open.writer, &rows, self.live_before(at), self.format, schema, maker).await
        {
            // The first error is the one that counts.
            let _ = open.writer.abort().await;
            return Err(error);
        }
        let (file, _) = open.finish().await?;
        self.spill().await?;
        Ok(file)
    }

    fn live_before(&self, at: usize) -> u64 {
        let fragments = self.base.manifest.fragments.iter().take(at);
        fragments.fold(0, |total, fragment| total.saturating_add(fragment.live_rows()))
    }

    /// Many small files are too much for the memory, too.
    async fn spill(&mut self) -> Result<()> {
        let total: usize = self.staged.borrow().iter().map(|(_, bytes)| bytes.len()).sum();
        if total <= MAX_STAGED_BYTES {
            return Ok(());
        }
        let staged = std::mem::take(&mut *self.staged.borrow_mut());
        for (path, bytes) in staged {
            self.engine.store.put(&self.base.dir, &path, bytes).await?;
        }
        Ok(())
    }

    /// The change that brings the files.
    pub(super) fn finish(mut self, operation: Operation) -> Change {
        let objects: Vec<(Path, Bytes)> = std::mem::take(&mut *self.staged.borrow_mut());
        self.begun.retain(|path| !objects.iter().any(|(object, _)| object == path));
        Change { objects, files: self.begun, ..Change::of(operation) }
    }

    /// Removes what was written. Best effort: nothing names these files, and cleanup finds what is left of them.
    pub(super) async fn abort(self, error: Error) -> Error {
        let staged = std::mem::take(&mut *self.staged.borrow_mut());
        for path in &self.begun {
            if !staged.iter().any(|(object, _)| object == path) {
                let _ = self.engine.store.delete(&self.base.dir, path).await;
            }
        }
        error
    }
}

/// A fragment with a new file: fields that lie there lie in no other file, and files without a field of the schema go.
pub(super) fn with_file(fragment: &Fragment, file: DataFile, schema: &Schema) -> Fragment {
    let mut files = fragment.files.clone();
    for other in &mut files {
        for id in &mut other.fields {
            if file.fields.contains(id) {
                *id = FieldId::TOMBSTONE;
            }
        }
    }
    files.retain(|file| file.fields.iter().any(|id| schema.field_by_id(*id).is_some()));
    files.push(file);
    Fragment { files, ..fragment.clone() }
}

async fn write_rows(
    writer: &mut FileWriter,
    rows: &FragmentRows,
    live_before: u64,
    format: FileVersion,
    schema: &Schema,
    maker: &dyn ColumnMaker,
) -> Result<()> {
    let arrow: SchemaRef = Arc::new(schema.to_arrow());
    let reads: Vec<&Field> = maker.reads().iter().collect();
    let at_once = rows.rows_at_once(&reads).await?;
    // Format 2.0 has no null structs, and a column may take no nulls at all: rows that are deleted then get the first live row's values.
    let needs_values = format == FileVersion::V2_0 || schema.all_fields().iter().any(|field| !field.nullable);
    let filler = match rows.fragment().deletion {
        Some(_) if needs_values => {
            let first = rows.offset_of_live(0);
            let live = rows.live(first..first.saturating_add(1));
            maker.make(&rows.read(&reads, &live).await?, usize_of(row_count(&live))?, live_before)?
        }
        _ => Vec::new(),
    };
    let (mut start, mut first_row) = (0, live_before);
    while start < rows.physical_rows() {
        let window = start..start.saturating_add(at_once).min(rows.physical_rows());
        let live = rows.live(window.clone());
        let count = row_count(&live);
        let columns = rows.read(&reads, &live).await?;
        let mut made = maker.make(&columns, usize_of(count)?, first_row)?;
        if count < window.end - window.start {
            for (at, array) in made.iter_mut().enumerate() {
                *array = with_deleted(array, filler.get(at), &live, &window)?;
            }
        }
        let row_count = usize_of(window.end - window.start)?;
        let options = RecordBatchOptions::new().with_row_count(Some(row_count));
        let batch = RecordBatch::try_new_with_options(arrow.clone(), made, &options)
            .map_err(|error| Error::internal(error.to_string()))?;
        writer.write(&batch).await?;
        start = window.end;
        first_row = first_row.saturating_add(count);
    }
    Ok(())
}

fn usize_of(rows: u64) -> Result<usize> {
    usize::try_from(rows).map_err(|_| Error::internal("more rows than memory"))
}

/// The values of live rows, with values for the deleted rows between them.
fn with_deleted(
    array: &ArrayRef,
    filler: Option<&ArrayRef>,
    live: &[Range<u64>],
    window: &Range<u64>,
) -> Result<ArrayRef> {
    let failed = |error: arrow_schema::ArrowError| Error::internal(error.to_string());
    let data = array.to_data();
    let filler = filler.map(|filler| filler.to_data());
    let capacity = usize_of(window.end - window.start)?;
    let sources: Vec<_> = std::iter::once(&data).chain(filler.as_ref()).collect();
    let mut all = MutableArrayData::new(sources, filler.is_none(), capacity);
    let (mut row, mut taken) = (window.start, 0);
    let end = window.end..window.end;
    for range in live.iter().chain([&end]) {
        let gap = usize_of(range.start.saturating_sub(row))?;
        match filler {
            None => all.try_extend_nulls(gap).map_err(failed)?,
            Some(_) => {
                for _ in 0..gap {
                    all.try_extend(1, 0, 1).map_err(failed)?;
                }
            }
        }
        let count = usize_of(range.end.saturating_sub(range.start))?;
        all.try_extend(0, taken, taken + count).map_err(failed)?;
        taken += count;
        row = range.end;
    }
    Ok(make_array(all.freeze()))
}
