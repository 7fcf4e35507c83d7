//! Scan: the rows of a snapshot as batches.
//!
//! Fragments go in order, deleted rows left out. Without a filter, offset and limit are arithmetic: rows that are not wanted are not
//! read. With one, its columns are read first and the other columns only where rows are left.

use std::ops::Range;
use std::rc::Rc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use crate::error::{Error, Result};
use crate::format::table::{Field, FragmentId};
use crate::table::ScanOptions;
use crate::table::database::Engine;
use crate::table::fragment_rows::{FragmentRows, MAX_READ_ROWS, row_count, split_rows};
use crate::table::lease::Lease;
use crate::table::matches::{BoundFilter, Matches, Window};
use crate::table::projection::{Column, Projection, extract};
use crate::table::snapshot::Snapshot;
use crate::table::take::{Rows, Take};

/// A running scan. It holds a lease on its version until it ends or is closed.
pub struct Scan {
    projection: Projection,
    source: Source,
    /// Rows of the current window that were not yielded yet.
    window: Option<Window>,
    /// As the caller wants it.
    batch_rows: Option<u64>,
    /// Rows of the output's columns that are read at once, in which fragment.
    at_once: Option<(FragmentId, u64)>,
    /// Matching rows still to be passed over.
    skip: u64,
    /// Rows still to be yielded.
    left: u64,
    /// Rows of the result that were yielded.
    done: u64,
    lease: Option<Lease>,
}

/// Where the rows of a scan come from.
enum Source {
    Matches(Box<Matches>),
    Take(Take),
}

/// What a scan does, checked against the snapshot before anything is leased or read.
pub(crate) struct ScanPlan {
    projection: Projection,
    filter: Option<BoundFilter>,
    rows: Option<Rows>,
    batch_rows: Option<u64>,
    offset: u64,
    limit: u64,
}

/// # Errors
/// `InvalidInput` and `NotFound` as the projection and the filter say.
pub(crate) fn plan(snapshot: &Snapshot, options: &ScanOptions) -> Result<ScanPlan> {
    let schema = &snapshot.manifest.schema.as_read();
    let projection = Projection::new(schema, options)?;
    let filter = match &options.filter {
        Some(text) => Some(BoundFilter::new(text, schema)?),
        None => None,
    };
    if options.rows.is_some() && filter.is_some() {
        return Err(Error::invalid_input("given rows take no filter"));
    }
    if options.batch_rows == Some(0) {
        return Err(Error::invalid_input("a batch has at least one row"));
    }
    let limit = if projection.columns.is_empty() { 0 } else { options.limit.unwrap_or(u64::MAX) };
    Ok(ScanPlan {
        projection,
        filter,
        rows: options.rows.clone(),
        batch_rows: options.batch_rows,
        offset: options.offset,
        limit,
    })
}

impl Scan {
    pub(crate) fn new(engine: Rc<Engine>, snapshot: Rc<Snapshot>, mut plan: ScanPlan) -> Result<Scan> {
        plan.projection.set_now(engine.env.now_ns());
        let mut skip = plan.offset;
        let source = match plan.rows {
            Some(rows) => Source::Take(Take::new(engine, snapshot, rows)?),
            None => {
                let mut matches = Matches::new(engine, snapshot, plan.filter);
                if !matches.is_filtered() {
                    matches.skip(std::mem::take(&mut skip));
                }
                Source::Matches(Box::new(matches))
            }
        };
        Ok(Scan {
            projection: plan.projection,
            source,
            window: None,
            batch_rows: plan.batch_rows,
            at_once: None,
            skip,
            left: plan.limit,
            done: 0,
            lease: None,
        })
    }

    /// Keeps the version in use until the scan ends.
    pub(crate) fn holding(self, lease: Lease) -> Scan {
        Scan { lease: Some(lease), ..self }
    }

    pub fn schema(&self) -> SchemaRef {
        self.projection.schema.clone()
    }

    /// The next batch, never an empty one; `None` at the end.
    ///
    /// # Errors
    /// `NotFound` naming version and file when the version was cleaned up under the scan; `Corrupt`; `NotSupported`.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            let most = self.batch_rows.unwrap_or(MAX_READ_ROWS).min(self.left);
            let window = match self.window.take() {
                Some(window) => window,
                None => match self.source.next(most).await? {
                    Some(window) => window,
                    None => break,
                },
            };
            let (skipped, window) = drop_rows(window, self.skip);
            self.skip -= skipped;
            let Some(window) = window else { continue };
            let want = match self.batch_rows {
                Some(rows) => rows,
                None => self.rows_at_once(&window.fragment).await?,
            };
            let (now, later) = split(window, want.min(self.left));
            let batch = self.assemble(&now).await?;
            self.left -= batch.num_rows() as u64;
            self.done += batch.num_rows() as u64;
            self.window = later;
            return Ok(Some(batch));
        }
        self.left = 0;
        self.window = None;
        if let Some(lease) = self.lease.take() {
            lease.release().await;
        }
        Ok(None)
    }

    /// Ends the scan early.
    pub async fn close(mut self) -> Result<()> {
        if let Some(lease) = self.lease.take() {
            lease.release().await;
        }
        Ok(())
    }

    async fn rows_at_once(&mut self, fragment: &FragmentRows) -> Result<u64> {
        let id = fragment.fragment().id;
        if let Some((known, rows)) = self.at_once
            && known == id
        {
            return Ok(rows);
        }
        let rows = fragment.rows_at_once(&self.projection.stored.iter().collect::<Vec<_>>()).await?;
        self.at_once = Some((id, rows));
        Ok(rows)
    }

    async fn assemble(&self, window: &Window) -> Result<RecordBatch> {
        let have = self.source.filter_fields();
        let known = |field: &Field| have.iter().position(|other| other == field).and_then(|at| window.columns.get(at));
        let mut arrays: Vec<Option<ArrayRef>> =
            self.projection.stored.iter().map(|field| known(field).cloned()).collect();
        let missing = self.projection.stored.iter().zip(&arrays).filter(|(_, array)| array.is_none());
        let missing: Vec<&Field> = missing.map(|(field, _)| field).collect();
        if !missing.is_empty() {
            let read = window.fragment.read(&missing, &window.rows).await?;
            for (array, read) in arrays.iter_mut().filter(|array| array.is_none()).zip(read) {
                *array = Some(read);
            }
        }
        let array_of = |at: usize| {
            let array = arrays.get(at).and_then(Option::as_ref);
            array.ok_or_else(|| Error::internal("a column was not read"))
        };
        let row_of = |at: usize| Some(self.done.saturating_add(at as u64));
        let fragment = window.fragment.fragment();
        let columns: Vec<ArrayRef> = self
            .projection
            .columns
            .iter()
            .map(|column| match column {
                Column::Stored { at, members } => extract(array_of(*at)?, members),
                Column::System(column) => window.fragment.system(*column, &window.rows),
                Column::Computed { value, reads, at } => {
                    let stored = at.iter().map(|at| array_of(*at).cloned()).collect::<Result<_>>()?;
                    value.evaluate(&reads.batch(&window.fragment, &window.rows, stored)?, &row_of)
                }
            })
            .collect::<Result<_>>()?;
        RecordBatch::try_new(self.projection.schema.clone(), columns)
            .map_err(|error| Error::corrupt(error.to_string()).at(format!("fragment {}", fragment.id.0)))
    }
}

impl Source {
    async fn next(&mut self, max_rows: u64) -> Result<Option<Window>> {
        match self {
            Source::Matches(matches) => matches.next(max_rows).await,
            Source::Take(take) => take.next(max_rows).await,
        }
    }

    fn filter_fields(&self) -> &[Field] {
        match self {
            Source::Matches(matches) => matches.filter_fields(),
            Source::Take(_) => &[],
        }
    }
}

/// Leaves out the first rows of a window; how many, and what is left.
fn drop_rows(window: Window, rows: u64) -> (u64, Option<Window>) {
    if rows == 0 {
        return (0, Some(window));
    }
    let count = row_count(&window.rows);
    if rows >= count {
        return (count, None);
    }
    let (_, later) = split(window, rows);
    (rows, later)
}

/// The first `count` rows of a window, and the rest.
pub(crate) fn split(window: Window, count: u64) -> (Window, Option<Window>) {
    let total = row_count(&window.rows);
    if count >= total {
        return (window, None);
    }
    let (head, tail): (Vec<Range<u64>>, _) = split_rows(&window.rows, count);
    // `count` is below the length of arrays in memory.
    let (at, left) = (count as usize, (total - count) as usize);
    let later = Window {
        fragment: window.fragment.clone(),
        rows: tail,
        columns: window.columns.iter().map(|column| column.slice(at, left)).collect(),
    };
    let now = Window {
        fragment: window.fragment,
        rows: head,
        columns: window.columns.iter().map(|column| column.slice(0, at)).collect(),
    };
    (now, Some(later))
}

/// Counts rows: without a filter from the manifest alone.
pub(crate) async fn count(engine: &Rc<Engine>, snapshot: &Rc<Snapshot>, filter: Option<&str>) -> Result<u64> {
    let Some(text) = filter else {
        return Ok(snapshot
            .manifest
            .fragments
            .iter()
            .fold(0, |total, fragment| total.saturating_add(fragment.live_rows())));
    };
    let filter = BoundFilter::new(text, &snapshot.manifest.schema.as_read())?;
    let mut matches = Matches::new(engine.clone(), snapshot.clone(), Some(filter));
    let mut count = 0u64;
    while let Some(window) = matches.next(u64::MAX).await? {
        count = count.saturating_add(row_count(&window.rows));
    }
    Ok(count)
}
