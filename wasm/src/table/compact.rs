//! Compact: small fragments and fragments with many deleted rows, written anew as few whole ones.
//!
//! 1. Plan (pure): which runs of adjacent fragments become new ones. Nothing to do is no commit.
//! 2. The live rows of each run are written in order, in bounded memory. Deletion files and the data of dropped columns stay behind.
//! 3. A `ReserveFragments` commit takes the ids of the new fragments, one version; a `Rewrite` commit puts them where the old ones stood,
//!    the next. Rows that were appended meanwhile have lower ids than the new fragments and come before them.
//! 4. When others deleted, updated or rewrote rows of the old fragments meanwhile, the rewrite plans again on the newest version.
//!
//! The index section stays as it is, byte for byte: its bitmaps then name fragments that are no longer there, and the rows of the new ones
//! count as not indexed until an index is built again. A crash after the first commit skips some fragment ids, nothing else.

use std::fmt;
use std::rc::Rc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use roaring::RoaringBitmap;

use crate::error::{Error, Result};
use crate::format::file::{FileVersion, FileWriter};
use crate::format::table::index::IndexSection;
use crate::format::table::{Field, Fragment, FragmentId, Manifest, Operation, RewriteGroup};
use crate::table::commit::{self, Change, Execution};
use crate::table::database::Engine;
use crate::table::fragment_rows::{FragmentRows, row_count};
use crate::table::lineage::Carried;
use crate::table::snapshot::Snapshot;
use crate::table::write::{RowWriter, Written};

/// What counts as small, and as many deleted rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactOptions {
    /// A fragment with fewer rows, deleted ones included, is merged with its neighbours.
    pub target_rows_per_fragment: u64,
    /// A fragment whose data files have this many bytes takes no more rows, however few it has.
    pub target_bytes_per_fragment: u64,
    /// A fragment of whose rows more than this share is deleted is written anew, if need be alone.
    pub max_deleted_percent: u32,
}

impl Default for CompactOptions {
    fn default() -> CompactOptions {
        CompactOptions {
            target_rows_per_fragment: 1 << 20,
            target_bytes_per_fragment: 256 << 20,
            max_deleted_percent: 10,
        }
    }
}

/// Which fragments become new ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompactPlan {
    pub bins: Vec<Bin>,
}

/// Adjacent fragments that are written anew together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bin {
    pub fragments: Vec<FragmentId>,
    pub live_rows: u64,
}

/// What a compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactResult {
    pub fragments_removed: u64,
    pub fragments_added: u64,
    /// Data files and deletion files of the fragments that were removed.
    pub files_removed: u64,
    pub files_added: u64,
}

/// Why a fragment is written anew.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Candidate {
    /// Many of its rows are deleted.
    Alone,
    /// It is small: only worth while together with another one.
    WithNeighbours,
}

/// # Errors
/// `Corrupt` for an index section that can't be read: which indices cover a fragment is then not known.
pub(crate) fn plan(manifest: &Manifest, options: &CompactOptions) -> Result<CompactPlan> {
    let covers = index_covers(manifest)?;
    let mut plan = CompactPlan::default();
    let mut run: Vec<(&Fragment, Candidate)> = Vec::new();
    let mut run_indices = Vec::new();
    for fragment in &manifest.fragments {
        let indices = covering(&covers, fragment.id);
        let candidate = candidate(fragment, options);
        // A run goes on where the fragment is small, too, and the same indices cover it: a new fragment is wholly in an index or not.
        if candidate.is_none() || indices != run_indices {
            plan.add_run(&std::mem::take(&mut run), options);
            run_indices = indices;
        }
        run.extend(candidate.map(|candidate| (fragment, candidate)));
    }
    plan.add_run(&run, options);
    Ok(plan)
}

fn candidate(fragment: &Fragment, options: &CompactOptions) -> Option<Candidate> {
    let deleted = fragment.physical_rows.saturating_sub(fragment.live_rows());
    // Exactly the share is not more than the share. Both factors are below 2^33: this does not overflow.
    if deleted.saturating_mul(100) > fragment.physical_rows.saturating_mul(u64::from(options.max_deleted_percent)) {
        return Some(Candidate::Alone);
    }
    let is_small = fragment.physical_rows < options.target_rows_per_fragment
        && size_bytes(fragment) < options.target_bytes_per_fragment;
    // Rows of an old manifest that does not tell their number can't be weighed.
    (is_small && fragment.physical_rows > 0).then_some(Candidate::WithNeighbours)
}

/// Bytes of the data files; those of unknown size count as none.
fn size_bytes(fragment: &Fragment) -> u64 {
    fragment.files.iter().filter_map(|file| file.size_bytes).fold(0, u64::saturating_add)
}

/// The fragments that each index covers.
fn index_covers(manifest: &Manifest) -> Result<Vec<RoaringBitmap>> {
    let Some(section) = &manifest.index_section else { return Ok(Vec::new()) };
    let entries = IndexSection::decode(section)?.entries.into_iter();
    Ok(entries.map(|entry| entry.fragments.unwrap_or_default()).collect())
}

/// Which indices cover a fragment, by their places.
fn covering(covers: &[RoaringBitmap], id: FragmentId) -> Vec<usize> {
    let Ok(id) = u32::try_from(id.0) else { return Vec::new() };
    covers.iter().enumerate().filter(|(_, cover)| cover.contains(id)).map(|(at, _)| at).collect()
}

impl CompactPlan {
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// Cuts a run of candidates into bins that are each worth a fragment.
    fn add_run(&mut self, run: &[(&Fragment, Candidate)], options: &CompactOptions) {
        if let [] | [(_, Candidate::WithNeighbours)] = run {
            return;
        }
        let mut rest = run;
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(filled(rest, options).unwrap_or(rest.len()));
            // What is too little for a fragment of its own joins the one before.
            let (head, tail) = if filled(tail, options).is_some() { (head, tail) } else { (rest, &[][..]) };
            let fragments = head.iter().map(|(fragment, _)| fragment.id).collect();
            let live_rows = head.iter().map(|(fragment, _)| fragment.live_rows()).fold(0, u64::saturating_add);
            self.bins.push(Bin { fragments, live_rows });
            rest = tail;
        }
    }
}

/// How many of the first fragments fill a new one; `None` when all of them don't.
fn filled(fragments: &[(&Fragment, Candidate)], options: &CompactOptions) -> Option<usize> {
    let (mut rows, mut bytes) = (0u64, 0u64);
    for (at, (fragment, _)) in fragments.iter().enumerate() {
        let live = fragment.live_rows();
        rows = rows.saturating_add(live);
        let share = u128::from(size_bytes(fragment)) * u128::from(live) / u128::from(fragment.physical_rows.max(1));
        bytes = bytes.saturating_add(u64::try_from(share).unwrap_or(u64::MAX));
        if rows >= options.target_rows_per_fragment || bytes >= options.target_bytes_per_fragment {
            return Some(at + 1);
        }
    }
    None
}

/// One line per new fragment: `0, 1 -> 1200000 rows`.
impl fmt::Display for CompactPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for bin in &self.bins {
            let ids: Vec<String> = bin.fragments.iter().map(|id| id.0.to_string()).collect();
            writeln!(f, "{} -> {} rows", ids.join(", "), bin.live_rows)?;
        }
        Ok(())
    }
}

/// Compacts the snapshot, or a newer version where others were faster; what it did and the version after it.
///
/// # Errors
/// `NotSupported` for a table that this build does not write; what [`Begun::run`](commit::Begun::run) says.
pub(crate) async fn compact(
    engine: &Rc<Engine>,
    snapshot: Rc<Snapshot>,
    options: &CompactOptions,
) -> Result<(CompactResult, Rc<Snapshot>)> {
    let mut compaction = Compaction { engine, options, result: CompactResult::default() };
    let done = commit::run(engine, snapshot, &mut compaction).await?;
    Ok((compaction.result, done.snapshot))
}

struct Compaction<'a> {
    engine: &'a Rc<Engine>,
    options: &'a CompactOptions,
    result: CompactResult,
}

#[async_trait(?Send)]
impl Execution for Compaction<'_> {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        self.result = CompactResult::default();
        let plan = plan(&base.manifest, self.options)?;
        if plan.is_empty() {
            return Ok(None);
        }
        let schema = base.manifest.schema.clone();
        let format = FileVersion::parse(&base.manifest.data_format)?;
        FileWriter::check(&schema, format)?;
        let mut writer = RowWriter::new(self.engine.clone(), base.dir.clone(), Rc::new(schema), format)
            .in_large_files(self.options.target_bytes_per_fragment);
        let rewritten = self.rewrite(base, &plan, &mut writer).await;
        if rewritten.is_err() {
            writer.abort().await;
        }
        let (groups, written) = rewritten?;
        self.result = count(&groups);
        Ok(Some(Change { objects: written.objects, files: written.files, ..Change::of(Operation::Rewrite { groups }) }))
    }
}

impl Compaction<'_> {
    async fn rewrite(
        &self,
        base: &Rc<Snapshot>,
        plan: &CompactPlan,
        writer: &mut RowWriter,
    ) -> Result<(Vec<RewriteGroup>, Written)> {
        let mut groups: Vec<(Vec<Fragment>, usize)> = Vec::new();
        let mut carried = Carried::new(&base.manifest);
        for bin in &plan.bins {
            let mut old = Vec::new();
            for id in &bin.fragments {
                let index = base.manifest.fragments.binary_search_by_key(id, |fragment| fragment.id);
                let index = index.map_err(|_| Error::internal("a plan for another version"))?;
                old.push(copy_rows(self.engine, base, index, writer, &mut carried).await?);
            }
            groups.push((old, writer.end_file().await?));
        }
        let mut written = writer.finish().await?;
        carried.give_moved(&mut written.fragments);
        let total = written.fragments.len();
        let first = reserve(self.engine, base, total).await?;
        for (fragment, id) in written.fragments.iter_mut().zip(first..) {
            fragment.id = FragmentId(id);
        }
        let mut fragments = std::mem::take(&mut written.fragments).into_iter();
        let mut done = 0;
        let groups = groups.into_iter().map(|(old, end)| {
            let new = fragments.by_ref().take(end.saturating_sub(done)).collect();
            done = end;
            RewriteGroup { old, new }
        });
        Ok((groups.collect(), written))
    }
}

/// Copies the live rows of a fragment, some megabytes at a time.
async fn copy_rows(
    engine: &Rc<Engine>,
    base: &Rc<Snapshot>,
    index: usize,
    writer: &mut RowWriter,
    carried: &mut Carried,
) -> Result<Fragment> {
    let schema = &base.manifest.schema;
    let arrow = SchemaRef::new(schema.to_arrow());
    let fields: Vec<&Field> = schema.fields.iter().collect();
    let rows = FragmentRows::open(engine, base, index).await?;
    let at_once = rows.rows_at_once(&fields).await?;
    let mut live_done = 0u64;
    loop {
        let start = rows.offset_of_live(live_done);
        let window = rows.live(start..rows.offset_of_live(live_done.saturating_add(at_once)));
        let count = row_count(&window);
        if count == 0 {
            return Ok(rows.fragment().clone());
        }
        let columns = rows.read(&fields, &window).await?;
        let options = RecordBatchOptions::new().with_row_count(usize::try_from(count).ok());
        let batch = RecordBatch::try_new_with_options(arrow.clone(), columns, &options)
            .map_err(|error| Error::corrupt(error.to_string()).at(&base.path))?;
        writer.write(&batch).await?;
        carried.push(rows.fragment(), &window)?;
        live_done = live_done.saturating_add(count);
    }
}

/// Takes fragment ids that nobody else will be given; the first of them.
async fn reserve(engine: &Rc<Engine>, base: &Rc<Snapshot>, count: usize) -> Result<u64> {
    let count = u32::try_from(count).map_err(|_| Error::not_supported("more than 2^32 fragments"))?;
    let reserved = commit::run(engine, base.clone(), &mut Reserve { count }).await?;
    let max = reserved.snapshot.manifest.max_fragment_id.and_then(|max| max.checked_sub(count));
    max.map(|max| u64::from(max) + 1).ok_or_else(|| Error::internal("ids were reserved and are not counted"))
}

struct Reserve {
    count: u32,
}

#[async_trait(?Send)]
impl Execution for Reserve {
    async fn execute(&mut self, _: &Rc<Snapshot>) -> Result<Option<Change>> {
        Ok(Some(Change::of(Operation::ReserveFragments { count: self.count })))
    }
}

fn count(groups: &[RewriteGroup]) -> CompactResult {
    let sum = |of: &dyn Fn(&RewriteGroup) -> usize| groups.iter().map(|group| of(group) as u64).sum();
    let files = |fragments: &[Fragment]| fragments.iter().map(|fragment| fragment.files.len()).sum::<usize>();
    let deletions = |fragments: &[Fragment]| fragments.iter().filter(|fragment| fragment.deletion.is_some()).count();
    CompactResult {
        fragments_removed: sum(&|group| group.old.len()),
        fragments_added: sum(&|group| group.new.len()),
        files_removed: sum(&|group| files(&group.old) + deletions(&group.old)),
        files_added: sum(&|group| files(&group.new)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
