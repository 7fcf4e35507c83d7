//! Rows of one column gather here until they make a page.

use std::ops::Range;

use arrow_array::ArrayRef;

use super::leaf_values::{LeafSource, PageDictionary, append_placeholders, raw_bytes};
use super::levels_build::{LeafPath, Levels, PathArrays};
use super::mini_block_encode::max_invisible_entries;
use super::page_encode::{EncodedPage, PageContent, encode_page};
use crate::error::Result;
use crate::format::file::FileVersion;
use crate::format::file::encoding::Values;

/// Bytes of values and levels at which a page is full.
pub(crate) const PAGE_BYTES: u64 = 8 << 20;
/// What is taken from a batch at once, when a page is nearly full.
const MIN_STEP_BYTES: u64 = 256 << 10;

/// The pages of one column, one after the other.
pub(crate) struct PageBuilder {
    path: LeafPath,
    version: FileVersion,
    row_count: u64,
    rep: Vec<u16>,
    def: Vec<u16>,
    values: Values,
    /// The values that the keys of a dictionary column stand for.
    dictionary: Option<PageDictionary>,
    invisible: usize,
    max_invisible: usize,
}

impl PageBuilder {
    pub(crate) fn new(path: LeafPath, version: FileVersion) -> PageBuilder {
        let max_invisible = max_invisible_entries(&path, version);
        let values = path.leaf.empty_values();
        let dictionary = PageDictionary::of(&path.leaf);
        PageBuilder {
            path,
            version,
            row_count: 0,
            rep: Vec::new(),
            def: Vec::new(),
            values,
            dictionary,
            invisible: 0,
            max_invisible,
        }
    }

    pub(crate) fn path(&self) -> &LeafPath {
        &self.path
    }

    /// The arrays of this column in its top-level array.
    ///
    /// # Errors
    /// `Schema` when the array is of another shape.
    pub(crate) fn resolve(&self, array: &ArrayRef) -> Result<PathArrays> {
        self.path.resolve(array)
    }

    /// Takes rows from the start of a range, as many as the page has room for, at least one; `first_row` is the number of
    /// `rows.start` in the file. Returns how many, and the pages that they filled.
    ///
    /// # Errors
    /// `Schema` for a null where none may be; `NotSupported` for what no page can hold.
    pub(crate) fn take(
        &mut self,
        arrays: &PathArrays,
        rows: Range<usize>,
        first_row: u64,
    ) -> Result<(usize, Vec<EncodedPage>)> {
        let mut pages = Vec::new();
        // The keys of a page number the values of all sources that it was filled from.
        if self.dictionary.as_ref().is_some_and(|dictionary| dictionary.may_overflow(&arrays.source)) {
            pages.extend(self.flush()?);
        }
        let budget = PAGE_BYTES.saturating_sub(self.raw_bytes()).max(MIN_STEP_BYTES);
        let mut count = rows.len();
        while count > 1 && arrays.raw_bytes(rows.start..rows.start + count) > budget {
            count = count.div_ceil(2);
        }
        let rows = rows.start..rows.start + count;
        let levels = self.path.levels(arrays, rows.clone(), first_row)?;
        if self.path.has_lists() {
            self.append_nested(arrays, &levels, &mut pages)?;
        } else {
            self.append_rows(arrays, rows, &levels.def);
        }
        if self.raw_bytes() >= PAGE_BYTES {
            pages.extend(self.flush()?);
        }
        Ok((count, pages))
    }

    /// The page of what is gathered; `None` when nothing is.
    ///
    /// # Errors
    /// `NotSupported` for what no page can hold.
    pub(crate) fn flush(&mut self) -> Result<Option<EncodedPage>> {
        if self.row_count == 0 {
            return Ok(None);
        }
        let page = PageContent {
            row_count: std::mem::take(&mut self.row_count),
            rep: std::mem::take(&mut self.rep),
            def: std::mem::take(&mut self.def),
            values: std::mem::replace(&mut self.values, self.path.leaf.empty_values()),
            dictionary: self.dictionary.as_mut().map(PageDictionary::take),
        };
        self.invisible = 0;
        encode_page(&self.path, self.version, page).map(Some)
    }

    fn raw_bytes(&self) -> u64 {
        raw_bytes(&self.values) + 2 * (self.rep.len() + self.def.len()) as u64
    }

    /// Appends the values of slots of the leaf array, none of which is null.
    fn append_slots(&mut self, arrays: &PathArrays, slots: Range<usize>) {
        match (&arrays.source, &mut self.dictionary) {
            (LeafSource::Dictionary(source), Some(dictionary)) => {
                source.append_to(&mut self.values, dictionary, slots);
            }
            (source, _) => source.append_to(&mut self.values, slots),
        }
    }

    fn append_rows(&mut self, arrays: &PathArrays, rows: Range<usize>, def: &[u16]) {
        let slots = rows.start * self.path.entries_per_row..rows.end * self.path.entries_per_row;
        let slots_len = slots.len();
        if !def.is_empty() && self.def.is_empty() {
            self.def.resize(self.values.len(), 0);
        }
        if def.is_empty() {
            if !self.def.is_empty() {
                self.def.resize(self.def.len() + slots.len(), 0);
            }
            self.append_slots(arrays, slots);
        } else {
            let mut start = slots.start;
            for run in def.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
                if run.first() == Some(&0) {
                    self.append_slots(arrays, start..start + run.len());
                } else {
                    append_placeholders(&mut self.values, run.len());
                }
                start += run.len();
            }
            self.def.extend_from_slice(def);
        }
        // A page of a fixed-size list of structs counts their entries.
        self.row_count += slots_len as u64;
    }

    /// Appends entries row by row where a page has to end before too many of them own no slot.
    fn append_nested(&mut self, arrays: &PathArrays, levels: &Levels, pages: &mut Vec<EncodedPage>) -> Result<()> {
        let entries = levels.rep.len();
        let (mut from, mut row, mut rows, mut invisible) = (0, 0, 0, 0);
        for entry in 1..=entries {
            invisible += usize::from(levels.def[entry - 1] > self.path.max_visible);
            if entry < entries && levels.rep[entry] != self.path.max_rep {
                continue;
            }
            // A row ends before `entry`; it started at `row`.
            if self.invisible + invisible > self.max_invisible && self.row_count + rows > 0 {
                self.append_entries(arrays, levels, from..row, rows);
                pages.extend(self.flush()?);
                (from, rows) = (row, 0);
            }
            self.invisible += invisible;
            (row, invisible) = (entry, 0);
            rows += 1;
        }
        self.append_entries(arrays, levels, from..entries, rows);
        Ok(())
    }

    fn append_entries(&mut self, arrays: &PathArrays, levels: &Levels, entries: Range<usize>, rows: u64) {
        self.rep.extend_from_slice(&levels.rep[entries.clone()]);
        self.def.extend_from_slice(&levels.def[entries.clone()]);
        self.row_count += rows;
        let mut entry = entries.start;
        while entry < entries.end {
            let start = entry;
            match levels.def[start] {
                0 => {
                    let first = levels.slots[start];
                    while entry < entries.end && levels.def[entry] == 0 && levels.slots[entry] == first + entry - start
                    {
                        entry += 1;
                    }
                    self.append_slots(arrays, first..first + entry - start);
                }
                def if def <= self.path.max_visible => {
                    append_placeholders(&mut self.values, 1);
                    entry += 1;
                }
                _ => entry += 1,
            }
        }
    }
}
