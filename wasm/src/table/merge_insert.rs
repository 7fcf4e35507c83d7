//! Merge insert: rows of a source joined with those of the table by key columns; matched rows are updated, others inserted or deleted.
//!
//! 1. The source comes in batches and is kept in memory, as the table stores it; its keys are numbered.
//! 2. The key columns of the version read are scanned fragment by fragment: which live rows have which key of the source.
//! 3. Matched rows for which the condition holds are written anew with the source's values, the columns that the source lacks as they
//!    were; then source rows without a match; target rows without a match are deleted where that is asked for. One commit.
//! 4. When others changed one of the rows since, or added rows while this one inserts any, everything but the scan of fragments that are
//!    as they were is done again on the latest version: of two that insert one key, the second finds the row of the first.
//!
//! Two source rows for one target row are an error, as in LanceDB, and so are two new source rows of one key, of which LanceDB inserts
//! both. A null in a key matches nothing.

mod source;

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema};
use async_trait::async_trait;
use roaring::RoaringBitmap;

use crate::batch::cast::cast;
use crate::batch::numbers::Numbers;
use crate::collections::SortedMap;
use crate::env::now_ms;
use crate::error::{Error, Result};
use crate::expr::Filter;
use crate::format::file::{FileVersion, FileWriter};
use crate::format::table::closest::columns_hint;
use crate::format::table::{Field, Fragment, FragmentId, Operation, Schema};
use crate::format::wal::WriteSpec;
use crate::table::commit::{self, Begun, Change, Execution};
use crate::table::database::Engine;
use crate::table::fragment_rows::FragmentRows;
use crate::table::handle::Table;
use crate::table::lineage::Carried;
use crate::table::matches::BoundFilter;
use crate::table::snapshot::Snapshot;
use crate::table::write::{RowWriter, Written};
use crate::table::{delete, fresh};

use source::{KeyIndex, Source, batch_of, gather, keys_of};

/// Rows that are put together at once.
const CHUNK_ROWS: usize = 8_192;
/// How a condition names the rows of the table, and those of the source.
const TARGET: &str = "target";
const SOURCE: &str = "source";

/// Which rows an action of a merge is for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum When {
    #[default]
    Never,
    Always,
    /// Those for which a filter is true.
    If(String),
}

/// What a merge insert does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MergeOptions {
    /// The key columns; none = the table's unenforced primary key.
    pub on: Vec<String>,
    /// Target rows take the values of their source row. The filter names columns as `target.a` and `source.a`.
    pub matched_update: When,
    /// Source rows without a target row are added.
    pub not_matched_insert: bool,
    /// Target rows without a source row are deleted. The filter names columns of the table.
    pub not_matched_by_source_delete: When,
    /// How long it may be looked at rows; a commit that has begun is not broken off. `None` = without end.
    pub timeout_ms: Option<u64>,
    /// `Some(false)`: the base table alone. `Some(true)` asks for a table with a write spec; `None` = through the write-ahead log where
    /// there is one.
    pub use_lsm: Option<bool>,
}

/// What a merge insert did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergeResult {
    pub version: u64,
    pub inserted_rows: u64,
    pub updated_rows: u64,
    pub deleted_rows: u64,
    /// How often it was executed; more than once when others were in its way.
    pub attempts: u32,
}

/// Rows being merged; nothing is visible before `finish`. All of them are in memory until then.
pub struct MergeInsert {
    table: Table,
    begun: Begun,
    merge: Merge,
}

impl Table {
    /// Starts a merge insert.
    ///
    /// # Errors
    /// `InvalidInput` for options that do nothing, for unknown key columns and filters that do not fit, and on a checked-out handle;
    /// `NotSupported` as an append.
    pub async fn merge_insert(&self, options: MergeOptions) -> Result<MergeInsert> {
        let snapshot = self.writable()?;
        let does_nothing = options.matched_update == When::Never
            && !options.not_matched_insert
            && options.not_matched_by_source_delete == When::Never;
        if does_nothing {
            let message = "The merge insert job is not configured to change the data in any way";
            return Err(Error::invalid_input(message));
        }
        match (WriteSpec::find(&snapshot.manifest)?, options.use_lsm) {
            (Some(_), Some(false)) | (None, None | Some(false)) => {}
            (None, Some(true)) => return Err(fresh::no_spec()),
            (Some(_), _) => {
                let feature = "mergeInsert through the LSM write path; useLsm(false) merges into the base table";
                return Err(Error::not_supported(feature));
            }
        }
        let schema = &snapshot.manifest.schema;
        let on = key_columns(&options.on, schema)?;
        FileWriter::check(schema, FileVersion::parse(&snapshot.manifest.data_format)?)?;
        // Filters that do not parse take no lease.
        if let When::If(text) = &options.matched_update {
            condition(text, schema)?;
        }
        if let When::If(text) = &options.not_matched_by_source_delete {
            BoundFilter::new(text, schema)?;
        }
        let engine = self.engine().clone();
        let started_ms = now_ms(engine.env.as_ref());
        let deadline_ms = options.timeout_ms.map(|timeout_ms| started_ms.saturating_add(timeout_ms));
        let source = Source::new(schema);
        let begun = commit::begin(&engine, snapshot).await.map_err(|error| self.name_it(error))?;
        let (seen, result) = (SortedMap::new(), MergeResult::default());
        let merge = Merge { engine, options: MergeOptions { on, ..options }, source, deadline_ms, seen, result };
        Ok(MergeInsert { table: self.clone(), begun, merge })
    }
}

impl MergeInsert {
    /// Takes rows of the source. Every batch has the same columns: the key, and any others of the table.
    ///
    /// # Errors
    /// `Schema` naming column and row, counted from the first row of the source.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.merge.source.push(batch, &self.merge.options.on)
    }

    /// Merges and commits; a version is committed also when nothing changes, as LanceDB does.
    ///
    /// # Errors
    /// `InvalidInput` for source rows of which one target row, or one key, has several; `Schema` for source rows that lack columns
    /// which may not be null; `Timeout`; `Conflict`, `Contention`, `TableNotFound`, `OutcomeUnknown` as an append. Only after the last
    /// one may something have changed.
    pub async fn finish(mut self) -> Result<MergeResult> {
        let engine = self.merge.engine.clone();
        let done = self.begun.run(&engine, &mut self.merge).await;
        self.begun.release().await;
        let done = done.map_err(|error| self.table.name_it(error))?;
        let result = MergeResult { version: done.snapshot.version(), attempts: done.executions, ..self.merge.result };
        self.table.advance(done.snapshot);
        Ok(result)
    }

    pub async fn abort(self) -> Result<()> {
        self.begun.release().await;
        Ok(())
    }
}

/// The names of the key columns as the table spells them.
fn key_columns(on: &[String], schema: &Schema) -> Result<Vec<String>> {
    if on.is_empty() {
        let mut key: Vec<&Field> = schema.fields.iter().filter(|field| field.primary_key_position > 0).collect();
        key.sort_by_key(|field| field.primary_key_position);
        if key.is_empty() {
            let message = "A merge insert operation requires join keys: specify `on` columns explicitly or configure a primary key in the dataset schema";
            return Err(Error::invalid_input(message));
        }
        return Ok(key.into_iter().map(|field| field.name.clone()).collect());
    }
    let mut names = Vec::with_capacity(on.len());
    for name in on {
        let find = |is_same: &dyn Fn(&str) -> bool| schema.fields.iter().find(|field| is_same(&field.name));
        let field = find(&|other| other == name).or_else(|| find(&|other| other.eq_ignore_ascii_case(name)));
        let unknown = || {
            let names: Vec<&str> = schema.fields.iter().map(|field| field.name.as_str()).collect();
            let hint = columns_hint(name, &names);
            Error::invalid_input(format!("Merge insert key column '{name}' does not exist in schema{hint}"))
        };
        names.push(field.ok_or_else(unknown)?.name.clone());
    }
    Ok(names)
}

fn condition(text: &str, schema: &Schema) -> Result<Filter> {
    Filter::parse_with(text, &[(TARGET, schema), (SOURCE, schema)])
}

/// A row of a fragment and the number of its key.
type Match = (u32, u32);

struct Merge {
    engine: Rc<Engine>,
    options: MergeOptions,
    source: Source,
    deadline_ms: Option<u64>,
    /// The matches of each fragment, as it was then.
    seen: SortedMap<FragmentId, (Fragment, Rc<Vec<Match>>)>,
    result: MergeResult,
}

#[async_trait(?Send)]
impl Execution for Merge {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        self.in_time()?;
        let schema = base.manifest.schema.clone();
        let on = key_columns(&self.options.on, &schema)?;
        self.source.fit(&schema, &on)?;
        self.check_columns(&schema)?;
        let index = KeyIndex::new(&self.source, &on)?;
        let matches = self.find(base, &on, &index).await?;

        let format = FileVersion::parse(&base.manifest.data_format)?;
        let fields_preserving = schema.all_fields().iter().filter_map(|field| u32::try_from(field.id.0).ok()).collect();
        let mut writer = RowWriter::new(self.engine.clone(), base.dir.clone(), Rc::new(schema), format);
        let written = self.write(base, &index, &matches, &mut writer).await;
        if written.is_err() {
            writer.abort().await;
        }
        let (written, mut rows) = written?;
        self.result.deleted_rows = 0;
        for (id, unmatched) in self.not_matched_by_source(base, &matches).await? {
            self.result.deleted_rows += unmatched.len();
            *rows.or_default(id) |= unmatched;
        }
        let operation = Operation::Update {
            removed: Vec::new(),
            updated: Vec::new(),
            new: written.fragments,
            fields_modified: Vec::new(),
            fields_preserving,
            has_key_filter: false,
        };
        Ok(Some(Change {
            rows,
            objects: written.objects,
            files: written.files,
            guards_keys: self.result.inserted_rows > 0,
            ..Change::of(operation)
        }))
    }
}

impl Merge {
    fn in_time(&self) -> Result<()> {
        match self.deadline_ms {
            Some(deadline_ms) if now_ms(self.engine.env.as_ref()) >= deadline_ms => {
                Err(Error::Timeout { message: "merge insert timed out".into() })
            }
            _ => Ok(()),
        }
    }

    /// New rows need every column that takes no nulls.
    fn check_columns(&self, schema: &Schema) -> Result<()> {
        if !self.options.not_matched_insert || self.source.columns.is_none() {
            return Ok(());
        }
        let is_missing = |field: &&Field| !field.nullable && !self.source.has(&field.name);
        let missing: Vec<String> =
            schema.fields.iter().filter(is_missing).map(|field| format!("{:?}", field.name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::schema(format!(
            "Cannot insert rows with a partial-schema source: target column(s) [{}] are non-nullable and not provided by the source",
            missing.join(", ")
        )))
    }

    /// Which rows of each fragment have a key of the source.
    async fn find(
        &mut self,
        base: &Rc<Snapshot>,
        on: &[String],
        index: &KeyIndex,
    ) -> Result<Vec<(usize, Rc<Vec<Match>>)>> {
        let fields: Vec<&Field> = on.iter().filter_map(|name| base.manifest.schema.field(name)).collect();
        let mut seen = std::mem::take(&mut self.seen);
        let mut found = Vec::new();
        for (at, fragment) in base.manifest.fragments.iter().enumerate() {
            let matches = match seen.remove(&fragment.id) {
                Some((before, matches)) if before == *fragment => matches,
                _ if self.source.row_count() == 0 => Rc::default(),
                _ => Rc::new(self.find_in(base, at, &fields, index).await?),
            };
            self.seen.insert(fragment.id, (fragment.clone(), matches.clone()));
            found.push((at, matches));
        }
        Ok(found)
    }

    async fn find_in(&self, base: &Rc<Snapshot>, at: usize, fields: &[&Field], index: &KeyIndex) -> Result<Vec<Match>> {
        let fragment = FragmentRows::open(&self.engine, base, at).await?;
        let at_once = fragment.rows_at_once(fields).await?;
        let (mut start, mut matches, mut key) = (0, Vec::new(), Vec::new());
        while start < fragment.physical_rows() {
            self.in_time()?;
            let end = start.saturating_add(at_once).min(fragment.physical_rows());
            let rows = fragment.live(start..end);
            let keys = keys_of(&fragment.read(fields, &rows).await?)?;
            for (row, offset) in rows.iter().cloned().flatten().enumerate() {
                if keys.read(row, &mut key)
                    && let Some(number) = index.numbers.find(&key)
                {
                    // A fragment has at most 2^32 rows.
                    matches.push((offset as u32, number));
                }
            }
            start = end;
        }
        Ok(matches)
    }

    /// Writes rows that change and rows that are new; the files, and the rows that they stand for.
    async fn write(
        &mut self,
        base: &Rc<Snapshot>,
        index: &KeyIndex,
        matches: &[(usize, Rc<Vec<Match>>)],
        writer: &mut RowWriter,
    ) -> Result<(Written, SortedMap<FragmentId, RoaringBitmap>)> {
        let mut rows: SortedMap<FragmentId, RoaringBitmap> = SortedMap::new();
        let mut carried = Carried::new(&base.manifest);
        let filter = match &self.options.matched_update {
            When::If(text) => {
                let mut filter = condition(text, &base.manifest.schema)?;
                filter.set_now(self.engine.env.now_ns());
                Some(filter)
            }
            When::Always | When::Never => None,
        };
        let updated = matches.iter().filter(|(_, matches)| !matches.is_empty());
        for (at, matches) in updated.filter(|_| self.options.matched_update != When::Never) {
            let fragment = FragmentRows::open(&self.engine, base, *at).await?;
            let changed = rows.or_default(fragment.fragment().id);
            for chunk in matches.chunks(CHUNK_ROWS) {
                self.in_time()?;
                let pairs = self.pairs(base, &fragment, index, chunk, filter.as_ref()).await?;
                if pairs.is_empty() {
                    continue;
                }
                let offsets = ranges(pairs.iter().map(|(offset, _)| *offset));
                writer.write(&self.changed(base, &fragment, &offsets, &pairs).await?).await?;
                carried.push(fragment.fragment(), &offsets)?;
                changed.extend(pairs.iter().map(|(offset, _)| *offset));
            }
        }
        rows.retain(|_, rows| !rows.is_empty());
        self.result.updated_rows = rows.values().map(RoaringBitmap::len).sum();

        let inserted = if self.options.not_matched_insert { self.new_rows(index, matches)? } else { Vec::new() };
        for chunk in inserted.chunks(CHUNK_ROWS) {
            writer.write(&self.source.batch(chunk)?).await?;
        }
        self.result.inserted_rows = inserted.len() as u64;
        let mut written = writer.finish().await?;
        carried.give_changed(&mut written.fragments);
        Ok((written, rows))
    }

    /// Target rows that change, ascending, each with its source row.
    async fn pairs(
        &self,
        base: &Snapshot,
        fragment: &FragmentRows,
        index: &KeyIndex,
        matches: &[Match],
        filter: Option<&Filter>,
    ) -> Result<Vec<(u32, u32)>> {
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(matches.len());
        for (offset, number) in matches {
            pairs.extend(index.rows(*number).map(|row| (*offset, row)));
        }
        if let Some(filter) = filter {
            let mask = filter.evaluate(&self.joined(base, fragment, &pairs, filter).await?)?;
            let mut at = 0;
            pairs.retain(|_| {
                at += 1;
                mask.is_valid(at - 1) && mask.value(at - 1)
            });
        }
        match pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            None => Ok(pairs),
            Some(twice) => Err(Error::invalid_input(format!(
                "Ambiguous merge inserts are prohibited: multiple source rows match the same target row on ({}): source rows {} and {}. Please ensure each target row is matched by at most one source row.",
                self.key_text(twice[0].1),
                twice[0].1,
                twice[1].1
            ))),
        }
    }

    /// What a condition reads of joined rows: a struct of target columns, and one of source columns.
    async fn joined(
        &self,
        base: &Snapshot,
        fragment: &FragmentRows,
        pairs: &[(u32, u32)],
        filter: &Filter,
    ) -> Result<RecordBatch> {
        let (mut fields, mut columns): (Vec<ArrowField>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        let schema = &base.manifest.schema;
        for table in filter.columns() {
            let names = filter.columns_behind(&table);
            let read: Vec<&Field> = schema.fields.iter().filter(|field| names.contains(&field.name)).collect();
            let arrays: Vec<ArrayRef> = if table == TARGET {
                let offsets = ranges(pairs.iter().map(|(offset, _)| *offset));
                // Each row once; a pair takes the values of its row.
                let (mut place, mut before, mut picks) = (0usize, None, Vec::with_capacity(pairs.len()));
                for (offset, _) in pairs {
                    place += usize::from(before.is_some_and(|before| before != offset));
                    before = Some(offset);
                    picks.push(Some((0, place)));
                }
                let arrays = fragment.read(&read, &offsets).await?;
                arrays
                    .iter()
                    .map(|array| gather(std::slice::from_ref(array), &picks, array.data_type()))
                    .collect::<Result<_>>()?
            } else {
                let missing = read.iter().find(|field| !self.source.has(&field.name));
                if let Some(field) = missing {
                    let message = format!("no column {:?} in the source that a condition names", field.name);
                    return Err(Error::invalid_input(message));
                }
                read.iter()
                    .map(|field| self.source.take(&field.name, pairs.iter().map(|(_, row)| *row)))
                    .collect::<Result<_>>()?
            };
            let members: Fields = read.iter().map(|field| field.to_arrow().with_nullable(true)).collect();
            let rows = StructArray::try_new_with_length(members.clone(), arrays, None, pairs.len())
                .map_err(|error| Error::internal(error.to_string()))?;
            fields.push(ArrowField::new(table, DataType::Struct(members), true));
            columns.push(Arc::new(rows));
        }
        batch_of(Arc::new(ArrowSchema::new(fields)), columns, pairs.len())
    }

    /// Rows with the source's values, and their own where it has none.
    async fn changed(
        &self,
        base: &Snapshot,
        fragment: &FragmentRows,
        offsets: &[Range<u64>],
        pairs: &[(u32, u32)],
    ) -> Result<RecordBatch> {
        let schema = &base.manifest.schema;
        let kept: Vec<&Field> = schema.fields.iter().filter(|field| !self.source.has(&field.name)).collect();
        let mut kept = if kept.is_empty() { Vec::new() } else { fragment.read(&kept, offsets).await? }.into_iter();
        let mut columns = Vec::with_capacity(schema.fields.len());
        for field in &schema.fields {
            columns.push(if self.source.has(&field.name) {
                self.source.take(&field.name, pairs.iter().map(|(_, row)| *row))?
            } else {
                kept.next().ok_or_else(|| Error::internal("a column was not read"))?
            });
        }
        batch_of(self.source.target.clone(), columns, pairs.len())
    }

    /// Source rows without a target row, in order.
    fn new_rows(&self, index: &KeyIndex, matches: &[(usize, Rc<Vec<Match>>)]) -> Result<Vec<u32>> {
        let mut is_matched = vec![false; index.first.len()];
        for (_, number) in matches.iter().flat_map(|(_, matches)| matches.iter()) {
            is_matched[*number as usize] = true;
        }
        let mut rows = Vec::new();
        for (row, number) in (0u32..).zip(&index.of_row) {
            if let Some(number) = number {
                if is_matched[*number as usize] {
                    continue;
                }
                let first = index.first[*number as usize];
                if first != row {
                    return Err(Error::invalid_input(format!(
                        "Ambiguous merge inserts are prohibited: source rows {first} and {row} have the same new key ({}). Please ensure each key is in at most one source row.",
                        self.key_text(row)
                    )));
                }
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Live rows of which the source has no key, where they are to be deleted.
    async fn not_matched_by_source(
        &self,
        base: &Rc<Snapshot>,
        matches: &[(usize, Rc<Vec<Match>>)],
    ) -> Result<SortedMap<FragmentId, RoaringBitmap>> {
        let filter = match &self.options.not_matched_by_source_delete {
            When::Never => return Ok(SortedMap::new()),
            When::Always => "true",
            When::If(text) => text,
        };
        let mut rows = delete::matching_rows(&self.engine, base, filter).await?;
        for (at, matches) in matches {
            let fragment = base.manifest.fragments.get(*at);
            if let Some(rows) = fragment.and_then(|fragment| rows.get_mut(&fragment.id)) {
                matches.iter().for_each(|(offset, _)| {
                    rows.remove(*offset);
                });
            }
        }
        rows.retain(|_, rows| !rows.is_empty());
        Ok(rows)
    }

    /// The key of a source row, for messages.
    fn key_text(&self, row: u32) -> String {
        let part = |name: &String| {
            let value = self.source.take(name, std::iter::once(row)).ok().and_then(|value| value_text(&value));
            format!("{name} = {}", value.unwrap_or_else(|| "...".to_owned()))
        };
        self.options.on.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

fn value_text(value: &ArrayRef) -> Option<String> {
    if let Ok(text) = cast(value, &DataType::Utf8) {
        return Some(format!("'{}'", text.as_string_opt::<i32>()?.value(0)));
    }
    match Numbers::of(value)? {
        Numbers::Int(numbers) => numbers.first().map(i128::to_string),
        Numbers::Float(numbers) => numbers.first().map(f64::to_string),
    }
}

/// Ascending numbers, some of them repeated, as ranges.
fn ranges(offsets: impl Iterator<Item = u32>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for offset in offsets.map(u64::from) {
        match ranges.last_mut() {
            Some(last) if offset < last.end => {}
            Some(last) if offset == last.end => last.end += 1,
            _ => ranges.push(offset..offset + 1),
        }
    }
    ranges
}
