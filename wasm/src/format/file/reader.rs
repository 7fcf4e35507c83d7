//! Reads rows of a data file: plan ranges, fetch them, decode columns.
//!
//! 1. Open: read the last 64 KiB, parse the footer; read the rest of the metadata if it begins earlier. A file that is no larger is read
//!    with that: nothing below asks the store for it again.
//! 2. Plan: rows to pages. Of a page that is new, the index (chunk table, dictionary, repetition index) is fetched and kept decoded; of a
//!    row index that may be large, the entries of the rows. Pages that need neither have their data fetched in the same request.
//! 3. Plan: pages to stretches of data, for all columns in one request.
//! 4. Decode each stretch into its leaf, then make arrays of the leaves.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use arrow_array::ArrayRef;
use bytes::Bytes;
use prost::Message;

use crate::error::{Error, Result};
use crate::format::file::FileVersion;
use crate::format::file::arrays;
use crate::format::file::column::{Column, Page, PageRows};
use crate::format::file::footer::{FOOTER_BYTES, Footer, decode_table, read_u64};
use crate::format::file::layout::assemble::{LeafColumn, assemble, in_column, resolve};
use crate::format::file::layout::byte_ranges::{ByteRanges, Fetched, Slot};
use crate::format::file::layout::{OpenPage, Stretch, index_buffers};
use crate::format::file::page_cache::PageCache;
use crate::format::proto::FileDescriptor;
use crate::format::proto::page_layout::Layout;
use crate::format::table::{Field, FieldId};
use crate::store::{DirId, Path, Store};

/// What opening reads at once: footer, tables and the metadata of most files.
const TAIL_BYTES: u64 = 64 * 1024;

/// Where a data file lies.
#[derive(Clone)]
pub struct FileSource {
    pub store: Rc<dyn Store>,
    pub dir: DirId,
    pub path: Path,
}

/// An open data file: its metadata, and what of its pages was looked at.
pub struct FileReader {
    source: FileSource,
    size_bytes: u64,
    version: FileVersion,
    row_count: u64,
    /// The end of the file, from `metadata_start` on.
    metadata: Bytes,
    metadata_start: u64,
    /// Where the metadata of each column lies.
    column_ranges: Vec<Range<u64>>,
    /// Never borrowed over an await.
    columns: RefCell<HashMap<u32, Rc<Column>>>,
    /// Never borrowed over an await.
    pages: RefCell<PageCache<OpenPage>>,
    /// The same of a file of 2.0. Never borrowed over an await.
    arrays: RefCell<arrays::Cache>,
}

/// Rows of one page of one leaf, on their way to being read.
struct PagePart<'a> {
    leaf: usize,
    key: (u32, usize),
    page: &'a Page,
    rows: Vec<Range<u64>>,
    state: PartState,
}

enum PartState {
    /// The index is being fetched; the data, too, when all of it is wanted.
    Index { layout: Box<Layout>, slots: Vec<Slot>, data: Option<(Range<u64>, Slot)> },
    /// Entries of the row index are being fetched.
    Entries { open: Rc<OpenPage>, slots: Vec<Slot> },
    /// The data is being fetched, or was.
    Data { open: Rc<OpenPage>, stretches: Vec<(Stretch, Source)> },
}

/// Where the bytes of a stretch are.
enum Source {
    First(Slot),
    Second(Slot),
    /// A part of a buffer that was fetched whole.
    Slice(Bytes),
}

impl FileReader {
    /// Reads the file's footer and metadata.
    ///
    /// `size_bytes` is what the manifest says; `None` asks the store.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt` with path and offset, `NotSupported` for a version that this build does not read.
    pub async fn open(source: FileSource, size_bytes: Option<u64>) -> Result<FileReader> {
        let size_bytes = match size_bytes {
            Some(size_bytes) => size_bytes,
            None => {
                let meta = source.store.head(&source.dir, &source.path).await?;
                meta.ok_or_else(|| Error::NotFound { what: format!("data file {}", source.path) })?.size_bytes
            }
        };
        let path = source.path.clone();
        FileReader::open_sized(source, size_bytes).await.map_err(|e| in_file(e, &path))
    }

    async fn open_sized(source: FileSource, size_bytes: u64) -> Result<FileReader> {
        if size_bytes < FOOTER_BYTES {
            return Err(Error::corrupt_at(0, format!("a file of {size_bytes} bytes has no footer")));
        }
        let mut start = size_bytes.saturating_sub(TAIL_BYTES);
        let mut metadata = fetch_one(&source, start..size_bytes).await?;
        let footer = Footer::decode(&metadata, size_bytes)?;
        let tables = footer.column_table.start.min(footer.global_table.start);
        let mut needed = footer.column_metadata_start.min(tables);
        // The schema blob lies right before the metadata, unless a writer likes it elsewhere.
        let global = |at: u64| metadata.get(usize::try_from(at.checked_sub(start)?).ok()?..);
        if let Some(descriptor) = global(footer.global_table.start).and_then(|table| read_u64(table, 0).ok())
            && needed < start
            && needed.saturating_sub(descriptor) < TAIL_BYTES
        {
            needed = needed.min(descriptor);
        }
        if needed < start {
            let head = fetch_one(&source, needed..start).await?;
            metadata = [head, metadata].concat().into();
            start = needed;
        }
        let slice = |range: &Range<u64>| {
            let (from, to) = (range.start.checked_sub(start)?, range.end.checked_sub(start)?);
            metadata.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
        };
        let table = |range: &Range<u64>| {
            let bytes = slice(range).ok_or_else(|| Error::corrupt_at(range.start, "an offset table is missing"))?;
            decode_table(bytes, range.start, size_bytes)
        };
        let column_ranges = table(&footer.column_table)?;
        let globals = table(&footer.global_table)?;
        let mut reader = FileReader {
            source,
            size_bytes,
            version: footer.version,
            row_count: 0,
            metadata,
            metadata_start: start,
            column_ranges,
            columns: RefCell::default(),
            pages: RefCell::default(),
            arrays: RefCell::default(),
        };
        let descriptor = match globals.first() {
            Some(range) => FileDescriptor::decode(reader.metadata_bytes(range).await?),
            None => Ok(FileDescriptor::default()),
        };
        reader.row_count = match (reader.column_ranges.is_empty(), descriptor) {
            // The schema blob is what it is; the pages are what is read.
            (false, descriptor) => {
                let slots = descriptor.map_or(1, |descriptor| first_column_slots(&descriptor));
                let rows = reader.column(0).await?.row_count;
                if !rows.is_multiple_of(slots) {
                    return Err(Error::corrupt(format!("{rows} rows in a first column of {slots} a row")));
                }
                rows / slots
            }
            (true, descriptor) => descriptor.map_err(|e| Error::corrupt(format!("file descriptor: {e}")))?.length,
        };
        Ok(reader)
    }

    pub fn version(&self) -> FileVersion {
        self.version
    }

    /// Rows of the file.
    pub fn row_count(&self) -> u64 {
        self.row_count
    }

    /// Bytes of the file that stay in memory as long as it is open.
    pub fn kept_bytes(&self) -> usize {
        self.metadata.len()
    }

    /// Reads rows of some fields, one array per field, each as long as all ranges together.
    ///
    /// `fields` are top-level fields, possibly with fewer children than the file has (a projection). `column_of` maps the id of a leaf
    /// (in 2.0 that of any field) to its column in this file; a leaf without a column reads as nulls. `rows` are ascending, disjoint,
    /// half-open row numbers of the file. I/O: one call to the store for page indexes that are not cached, one for the values of all
    /// columns, close ranges merged; none for bytes that opening has read.
    ///
    /// # Errors
    /// `Corrupt` with path, column, page; `NotSupported` naming the encoding; `InvalidInput` for rows outside of the file.
    pub async fn read(
        &self,
        fields: &[&Field],
        column_of: &dyn Fn(FieldId) -> Option<u32>,
        rows: &[Range<u64>],
    ) -> Result<Vec<ArrayRef>> {
        let row_count = self.check_rows(rows)?;
        self.read_checked(fields, column_of, rows, row_count).await.map_err(|e| in_file(e, &self.source.path))
    }

    /// Bytes that a column takes in the file.
    ///
    /// # Errors
    /// `Corrupt` when there is no such column.
    pub async fn column_bytes(&self, column: u32) -> Result<u64> {
        let column = self.column(column).await.map_err(|e| in_file(e, &self.source.path))?;
        let sizes = column.pages.iter().flat_map(|page| &page.buffers).map(|range| range.end - range.start);
        Ok(sizes.fold(0, u64::saturating_add))
    }

    fn check_rows(&self, rows: &[Range<u64>]) -> Result<usize> {
        let (mut end, mut count) = (0, 0u64);
        for range in rows {
            if range.start < end || range.end < range.start || range.end > self.row_count {
                return Err(Error::invalid_input(format!(
                    "rows {range:?} after row {end} in a file of {} rows",
                    self.row_count
                )));
            }
            end = range.end;
            count += range.end - range.start;
        }
        usize::try_from(count).map_err(|_| Error::invalid_input(format!("{count} rows at once")))
    }

    async fn read_checked(
        &self,
        fields: &[&Field],
        column_of: &dyn Fn(FieldId) -> Option<u32>,
        rows: &[Range<u64>],
        row_count: usize,
    ) -> Result<Vec<ArrayRef>> {
        if self.version == FileVersion::V2_0 {
            return arrays::read(self, fields, column_of, rows, row_count).await;
        }
        let mut leaves = Vec::new();
        let nodes = fields.iter().map(|field| resolve(field, column_of, &mut leaves)).collect::<Result<Vec<_>>>()?;
        let mut columns = Vec::with_capacity(leaves.len());
        for leaf in &leaves {
            let column = self.column(leaf.column).await.map_err(|e| in_column(e, &leaf.name))?;
            if Some(column.row_count) != self.row_count.checked_mul(leaf.slots_per_row) {
                let reason = format!("{} rows in a file of {}", column.row_count, self.row_count);
                return Err(in_column(Error::corrupt(reason), &leaf.name));
            }
            columns.push(column);
        }

        let mut first = ByteRanges::default();
        let mut parts = Vec::new();
        for (i, (leaf, column)) in leaves.iter().zip(&columns).enumerate() {
            // Within the column's rows, hence no overflow.
            let slots = |row: u64| row * leaf.slots_per_row;
            let rows: Vec<_> = rows.iter().map(|range| slots(range.start)..slots(range.end)).collect();
            for PageRows { page: number, rows } in column.split(&rows) {
                let Some(page) = column.pages.get(number) else { continue };
                let key = (leaf.column, number);
                let state = self.start(key, page, &rows, &mut first).map_err(|e| in_page(e, &leaf.name, number))?;
                parts.push(PagePart { leaf: i, key, page, rows, state });
            }
        }
        let fetched_first = self.fetch(&first).await?;

        let mut second = ByteRanges::default();
        for part in &mut parts {
            let name = leaves.get(part.leaf).map_or("", |leaf| &leaf.name);
            self.proceed(part, &fetched_first, &mut second).map_err(|e| in_page(e, name, part.key.1))?;
        }
        let fetched_second = self.fetch(&second).await?;

        for part in &parts {
            let Some(LeafColumn { name, leaf, .. }) = leaves.get_mut(part.leaf) else { continue };
            let PartState::Data { open, stretches } = &part.state else { continue };
            for (stretch, source) in stretches {
                let bytes = match source {
                    Source::First(slot) => fetched_first.get(*slot),
                    Source::Second(slot) => fetched_second.get(*slot),
                    Source::Slice(bytes) => bytes.clone(),
                };
                open.decode(stretch, &bytes, leaf).map_err(|e| in_page(e, name, part.key.1))?;
            }
        }
        fields.iter().zip(&nodes).map(|(field, node)| assemble(field, node, &mut leaves, row_count)).collect()
    }

    /// Asks for what a page needs first: its index, row index entries, or its data right away.
    fn start(&self, key: (u32, usize), page: &Page, rows: &[Range<u64>], first: &mut ByteRanges) -> Result<PartState> {
        let cached = self.pages.borrow().get(key);
        let open = match cached {
            Some(open) => open,
            None => {
                let layout = page.layout()?;
                let needed = index_buffers(page, &layout)?;
                if !needed.is_empty() {
                    let slots = needed.into_iter().map(|range| first.add(range)).collect();
                    let is_whole = matches!(rows, [range] if *range == (0..page.row_count));
                    let data = match &layout {
                        // A whole page needs no table to know its bytes.
                        Layout::MiniBlock(_) if is_whole => {
                            let range = page.buffer(1)?;
                            Some((range.clone(), first.add(range)))
                        }
                        _ => None,
                    };
                    return Ok(PartState::Index { layout: Box::new(layout), slots, data });
                }
                let open = Rc::new(OpenPage::open(page, layout, &[])?);
                self.pages.borrow_mut().put(key, open.clone(), open.cost_bytes());
                open
            }
        };
        let entries = open.row_index_ranges(page, rows)?;
        if !entries.is_empty() {
            return Ok(PartState::Entries { open, slots: entries.into_iter().map(|range| first.add(range)).collect() });
        }
        let stretches = open.plan(page, rows, &[])?;
        let stretches = stretches.into_iter().map(|stretch| {
            let slot = first.add(stretch.bytes.clone());
            (stretch, Source::First(slot))
        });
        Ok(PartState::Data { stretches: stretches.collect(), open })
    }

    /// Opens a page of its index, and asks for its data unless it is there.
    fn proceed(&self, part: &mut PagePart<'_>, fetched: &Fetched, second: &mut ByteRanges) -> Result<()> {
        let bytes_of = |slots: &[Slot]| slots.iter().map(|slot| fetched.get(*slot)).collect::<Vec<_>>();
        let (open, entries, data) = match &part.state {
            PartState::Data { .. } => return Ok(()),
            PartState::Entries { open, slots } => (open.clone(), bytes_of(slots), None),
            PartState::Index { layout, slots, data } => {
                // Another part of this read may have opened it.
                let cached = self.pages.borrow().get(part.key);
                let open = match cached {
                    Some(open) => open,
                    None => {
                        let open = Rc::new(OpenPage::open(part.page, (**layout).clone(), &bytes_of(slots))?);
                        self.pages.borrow_mut().put(part.key, open.clone(), open.cost_bytes());
                        open
                    }
                };
                (open, Vec::new(), data.as_ref().map(|(range, slot)| (range.start, fetched.get(*slot))))
            }
        };
        let mut stretches = Vec::new();
        for stretch in open.plan(part.page, &part.rows, &entries)? {
            let source = match &data {
                Some((start, bytes)) => {
                    let at = |position: u64| usize::try_from(position.saturating_sub(*start)).ok();
                    let range =
                        at(stretch.bytes.start).zip(at(stretch.bytes.end)).filter(|(_, end)| *end <= bytes.len());
                    let (from, to) = range.ok_or_else(|| Error::internal("a stretch outside of its buffer"))?;
                    Source::Slice(bytes.slice(from..to))
                }
                None => Source::Second(second.add(stretch.bytes.clone())),
            };
            stretches.push((stretch, source));
        }
        part.state = PartState::Data { open, stretches };
        Ok(())
    }

    /// What earlier reads left of the pages of a file of 2.0.
    pub(super) fn arrays(&self) -> &RefCell<arrays::Cache> {
        &self.arrays
    }

    pub(super) async fn fetch(&self, ranges: &ByteRanges) -> Result<Fetched> {
        let merged = ranges.merged();
        let answers = match merged.iter().map(|range| self.kept(range)).collect() {
            Some(kept) => kept,
            None => get_ranges(&self.source, &merged).await?,
        };
        ranges.cut(&merged, &answers)
    }

    pub(super) async fn column(&self, column: u32) -> Result<Rc<Column>> {
        if let Some(column) = self.columns.borrow().get(&column) {
            return Ok(column.clone());
        }
        let range = self.column_ranges.get(column as usize).cloned();
        let range = range.ok_or_else(|| {
            Error::corrupt(format!("no column {column} in a file of {} columns", self.column_ranges.len()))
        })?;
        let bytes = self.metadata_bytes(&range).await?;
        let decoded = Rc::new(Column::decode(bytes, self.size_bytes)?);
        self.columns.borrow_mut().insert(column, decoded.clone());
        Ok(decoded)
    }

    /// A range that most likely lies in the metadata that was read when the file was opened.
    async fn metadata_bytes(&self, range: &Range<u64>) -> Result<Bytes> {
        match self.kept(range) {
            Some(bytes) => Ok(bytes),
            None => fetch_one(&self.source, range.clone()).await,
        }
    }

    /// A range of what was read when the file was opened: of a small file, that is all of it.
    fn kept(&self, range: &Range<u64>) -> Option<Bytes> {
        let at = |position: u64| usize::try_from(position.checked_sub(self.metadata_start)?).ok();
        let (start, end) = (at(range.start)?, at(range.end)?);
        (start <= end && end <= self.metadata.len()).then(|| self.metadata.slice(start..end))
    }
}

/// Rows of the first column per row of the file: the sizes of the fixed-size lists of structs that its leaf lies in.
fn first_column_slots(descriptor: &FileDescriptor) -> u64 {
    let (mut slots, mut parent) = (1u64, None);
    for field in descriptor.schema.iter().flat_map(|schema| &schema.fields) {
        if parent.is_some_and(|parent| field.parent_id != parent) {
            break;
        }
        let size = field.logical_type.strip_prefix("fixed_size_list:struct:").and_then(|size| size.parse::<u64>().ok());
        slots = slots.saturating_mul(size.unwrap_or(1).max(1));
        parent = Some(field.id);
    }
    slots
}

async fn fetch_one(source: &FileSource, range: Range<u64>) -> Result<Bytes> {
    let mut ranges = ByteRanges::default();
    let slot = ranges.add(range);
    let merged = ranges.merged();
    if merged.is_empty() {
        return Ok(Bytes::new());
    }
    let answers = get_ranges(source, &merged).await?;
    Ok(ranges.cut(&merged, &answers)?.get(slot))
}

async fn get_ranges(source: &FileSource, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    source.store.get_ranges(&source.dir, &source.path, ranges).await.map_err(|e| match e {
        // Every range lies within the size that the manifest gives: the file is shorter.
        Error::InvalidInput { message } => Error::corrupt(format!("the file is shorter than expected ({message})")),
        other => other,
    })
}

/// Names the file of an error.
fn in_file(error: Error, path: &Path) -> Error {
    match error {
        Error::NotSupported { feature } => Error::not_supported(format!("{feature}, in {path}")),
        other => other.at(path),
    }
}

/// Names the column and page of an error. An offset within a page would read as one in the file.
pub(super) fn in_page(error: Error, name: &str, page: usize) -> Error {
    let error = match error {
        Error::Corrupt { path, reason, .. } if path.is_empty() => {
            Error::Corrupt { path, offset: None, reason: format!("page {page}: {reason}") }
        }
        other => other,
    };
    in_column(error, name)
}
