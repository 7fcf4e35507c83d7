//! Matches: the live rows of a snapshot that a filter keeps, window by window, reading only the filter's columns.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field as ArrowField, Schema as ArrowSchema, SchemaRef};

use crate::collections::SortedSet;
use crate::error::{Error, Result};
use crate::expr::Filter;
use crate::format::table::{Field, Schema};
use crate::table::database::Engine;
use crate::table::fragment_rows::{FragmentRows, MAX_READ_ROWS, keep_rows, pick_rows, row_count};
use crate::table::snapshot::Snapshot;
use crate::table::system_columns::SystemColumn;

/// The columns that an expression reads.
pub(crate) struct Reads {
    /// Top-level fields of the table.
    pub(crate) fields: Vec<Field>,
    system: Vec<SystemColumn>,
    schema: SchemaRef,
}

/// A filter bound to a snapshot's schema.
pub(crate) struct BoundFilter {
    filter: Filter,
    reads: Reads,
}

/// The rows of a snapshot, optionally filtered.
pub(crate) struct Matches {
    engine: Rc<Engine>,
    snapshot: Rc<Snapshot>,
    filter: Option<BoundFilter>,
    /// Live rows to pass over before the first window; only without a filter.
    skip: u64,
    fragment: usize,
    current: Option<Position>,
}

struct Position {
    rows: Rc<FragmentRows>,
    /// Rows that the filter's columns are read of at once; unknown without a filter.
    at_once: u64,
    /// Live rows of the fragment before the next window.
    live_done: u64,
}

/// Rows of one fragment.
pub(crate) struct Window {
    pub(crate) fragment: Rc<FragmentRows>,
    /// Physical offsets, ascending and disjoint; never empty.
    pub(crate) rows: Vec<Range<u64>>,
    /// Values of the filter's stored columns in these rows, in the order of `filter_fields`.
    pub(crate) columns: Vec<ArrayRef>,
}

impl BoundFilter {
    /// # Errors
    /// As [`Filter::parse`].
    pub(crate) fn new(text: &str, schema: &Schema) -> Result<BoundFilter> {
        let filter = Filter::parse(text, schema)?;
        let reads = Reads::new(&filter.columns(), schema);
        Ok(BoundFilter { filter, reads })
    }

    fn evaluate(&self, fragment: &FragmentRows, rows: &[Range<u64>], stored: &[ArrayRef]) -> Result<BooleanArray> {
        let batch = self.reads.batch(fragment, rows, stored.to_vec())?;
        let mask = self.filter.evaluate(&batch)?;
        if mask.len() != batch.num_rows() {
            return Err(Error::internal("a filter answered for another number of rows"));
        }
        Ok(mask)
    }
}

impl Reads {
    pub(crate) fn new(names: &SortedSet<String>, schema: &Schema) -> Reads {
        let fields: Vec<Field> = schema.fields.iter().filter(|field| names.contains(&field.name)).cloned().collect();
        let is_stored = |name: &str| fields.iter().any(|field| field.name == name);
        let is_read = |column: &SystemColumn| names.contains(column.name()) && !is_stored(column.name());
        let system: Vec<SystemColumn> = SystemColumn::ALL.into_iter().filter(is_read).collect();
        let arrow: Vec<ArrowField> =
            fields.iter().map(Field::to_arrow).chain(system.iter().map(|column| column.field())).collect();
        let schema = Arc::new(ArrowSchema::new(arrow));
        Reads { fields, system, schema }
    }

    /// Rows of a fragment with these columns; `columns` are the values of `fields` there.
    pub(crate) fn batch(
        &self,
        fragment: &FragmentRows,
        rows: &[Range<u64>],
        mut columns: Vec<ArrayRef>,
    ) -> Result<RecordBatch> {
        let count = usize::try_from(row_count(rows)).map_err(|_| Error::internal("more rows than memory"))?;
        for column in &self.system {
            columns.push(fragment.system(*column, rows)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|error| Error::internal(error.to_string()))
    }
}

impl Matches {
    pub(crate) fn new(engine: Rc<Engine>, snapshot: Rc<Snapshot>, mut filter: Option<BoundFilter>) -> Matches {
        if let Some(bound) = &mut filter {
            bound.filter.set_now(engine.env.now_ns());
        }
        Matches { engine, snapshot, filter, skip: 0, fragment: 0, current: None }
    }

    /// Passes over rows without reading them; before the first window and without a filter.
    pub(crate) fn skip(&mut self, rows: u64) {
        self.skip = rows;
    }

    pub(crate) fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    pub(crate) fn filter_fields(&self) -> &[Field] {
        self.filter.as_ref().map_or(&[], |filter| &filter.reads.fields)
    }

    /// The next rows; at most `max_rows` without a filter.
    pub(crate) async fn next(&mut self, max_rows: u64) -> Result<Option<Window>> {
        loop {
            let Some(position) = &mut self.current else {
                let Some(fragment) = self.snapshot.manifest.fragments.get(self.fragment) else { return Ok(None) };
                let live = fragment.live_rows();
                if live <= self.skip {
                    self.skip -= live;
                    self.fragment += 1;
                    continue;
                }
                let rows = FragmentRows::open(&self.engine, &self.snapshot, self.fragment).await?;
                let at_once = match &self.filter {
                    Some(filter) => rows.rows_at_once(&filter.reads.fields.iter().collect::<Vec<_>>()).await?,
                    None => MAX_READ_ROWS,
                };
                let live_done = std::mem::take(&mut self.skip);
                self.current = Some(Position { rows: Rc::new(rows), at_once, live_done });
                continue;
            };
            let wanted = if self.filter.is_some() { position.at_once } else { max_rows };
            let fragment = position.rows.clone();
            let start = fragment.offset_of_live(position.live_done);
            let end = fragment.offset_of_live(position.live_done.saturating_add(wanted));
            let rows = fragment.live(start..end);
            if rows.is_empty() {
                self.current = None;
                self.fragment += 1;
                continue;
            }
            // Moved on only when the rows were read: a failed call may be repeated.
            let live_done = position.live_done.saturating_add(row_count(&rows));
            let window = match &self.filter {
                None => Some(Window { fragment, rows, columns: Vec::new() }),
                Some(filter) => matching(filter, fragment, rows).await?,
            };
            position.live_done = live_done;
            if let Some(window) = window {
                return Ok(Some(window));
            }
        }
    }
}

async fn matching(filter: &BoundFilter, fragment: Rc<FragmentRows>, rows: Vec<Range<u64>>) -> Result<Option<Window>> {
    let fields: Vec<&Field> = filter.reads.fields.iter().collect();
    let columns = if fields.is_empty() { Vec::new() } else { fragment.read(&fields, &rows).await? };
    let mask = filter.evaluate(&fragment, &rows, &columns)?;
    let kept = keep_rows(&rows, &mask);
    if kept.is_empty() {
        return Ok(None);
    }
    if kept == rows {
        return Ok(Some(Window { fragment, rows, columns }));
    }
    let columns = pick_rows(&columns, &keep_rows(&[0..mask.len() as u64], &mask), 0)?;
    Ok(Some(Window { fragment, rows: kept, columns }))
}
