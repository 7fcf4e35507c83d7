//! The mini-block layout: small values in chunks, each of which is decoded as a whole.
//!
//! ```text
//! buffer 0    a word per chunk, u16 or (large chunks) u32: log2 of its values in 4 bits, above them its bytes / 8 - 1
//! buffer 1    the chunks
//! next        the dictionary, if there is one
//! last        the repetition index, if there is one: two u64 per chunk, rows that end in it and levels after the last of them
//!
//! chunk       u16 levels | u16 bytes of repetition levels | u16 bytes of definition levels | u16 or u32 bytes of each value buffer
//!             repetition levels | definition levels | value buffers, each padded to a multiple of 8
//! ```
//!
//! The levels of a chunk end with its last visible item; the last chunk has what is left.

use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;

use super::leaf::Leaf;
use super::rep_def::{Layers, Stored};
use super::{Stretch, to_usize};
use crate::error::{Error, Result};
use crate::format::file::column::Page;
use crate::format::file::encoding::{self, Values};
use crate::format::file::footer::{read_u16, read_u32, read_u64};
use crate::format::proto::{CompressiveEncoding, MiniBlockLayout};

/// Which buffers make the index of a page.
pub fn index_buffers(layout: &MiniBlockLayout) -> impl Iterator<Item = usize> + use<> {
    let dictionary = usize::from(layout.dictionary.is_some());
    let repetition_index = usize::from(layout.repetition_index_depth > 0);
    std::iter::once(0).chain(2..2 + dictionary + repetition_index)
}

/// A page whose chunk table, repetition index and dictionary are decoded.
pub struct MiniBlock {
    layout: MiniBlockLayout,
    layers: Rc<Layers>,
    /// Where each chunk begins in the data buffer, and where the last one ends.
    offsets: Vec<u64>,
    /// The first visible item of each chunk, and the number of items.
    items: Vec<u64>,
    /// Rows per chunk, of a page with a repetition index.
    rows: Option<ChunkRows>,
    dictionary: Option<Values>,
}

/// Which rows begin in which chunk.
struct ChunkRows {
    /// The first row that begins in each chunk or later, and the number of rows.
    first: Vec<u64>,
    /// Whether the last row of the chunk goes on in the next one.
    goes_on: Vec<bool>,
}

/// One chunk, taken apart.
struct Chunk<'a> {
    level_count: usize,
    rep: &'a [u8],
    def: &'a [u8],
    values: Vec<&'a [u8]>,
}

impl MiniBlock {
    /// Decodes the index of a page of the buffers that [`index_buffers`] lists.
    pub fn open(page: &Page, layout: MiniBlockLayout, buffers: &[Bytes]) -> Result<MiniBlock> {
        let layers = Rc::new(Layers::parse(&layout.layers)?);
        if (layers.max_rep > 0) != layout.rep_compression.is_some() {
            return Err(Error::corrupt(format!("{} list layers, and repetition levels do not fit", layers.max_rep)));
        }
        let data = page.buffer(1)?;
        let mut buffers = buffers.iter();
        let mut next = || buffers.next().ok_or_else(|| Error::corrupt("a buffer is missing"));
        let (offsets, items) = chunk_table(&layout, next()?, data.end - data.start)?;
        let dictionary = match &layout.dictionary {
            Some(dictionary) => {
                let count = to_usize(layout.num_dictionary_items, "a dictionary")?;
                let values = encoding::decode_block(dictionary, next()?, count)?;
                if values.len() != count {
                    return Err(Error::corrupt(format!("{} of {count} dictionary values", values.len())));
                }
                Some(values)
            }
            None => None,
        };
        let rows = match layout.repetition_index_depth {
            0 => None,
            1 => Some(ChunkRows::decode(next()?, offsets.len() - 1, page.row_count)?),
            depth => return Err(Error::not_supported(format!("a repetition index of depth {depth}"))),
        };
        if layers.max_rep == 0 && layout.num_items != page.row_count {
            return Err(Error::corrupt(format!("{} items in {} rows", layout.num_items, page.row_count)));
        }
        Ok(MiniBlock { layout, layers, offsets, items, rows, dictionary })
    }

    pub fn cost_bytes(&self) -> usize {
        let dictionary = self.dictionary.as_ref().map_or(0, memory_bytes);
        1024 + (self.offsets.len() + self.items.len()) * 8
            + self.rows.as_ref().map_or(0, |r| r.first.len() * 9)
            + dictionary
    }

    fn chunk_count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The chunks that hold some rows; rows whose chunks are the same or adjoin go together.
    pub fn plan(&self, page: &Page, rows: &[Range<u64>]) -> Result<Vec<Stretch>> {
        let data = page.buffer(1)?;
        let mut stretches: Vec<Stretch> = Vec::new();
        for range in rows {
            if range.is_empty() {
                continue;
            }
            let chunks = match (&self.rows, self.layers.max_rep) {
                (Some(rows), _) => rows.chunks_of(range),
                // Where rows begin is known only by walking the levels from the first on.
                (None, 1..) => 0..self.chunk_count(),
                (None, 0) => chunk_of(&self.items, range.start)..chunk_of(&self.items, range.end - 1) + 1,
            };
            match stretches.last_mut() {
                Some(last) if chunks.start <= last.chunks.end => {
                    last.chunks.end = last.chunks.end.max(chunks.end);
                    last.rows.push(range.clone());
                }
                _ => stretches.push(Stretch { bytes: 0..0, rows: vec![range.clone()], chunks }),
            }
        }
        for stretch in &mut stretches {
            let at = |chunk: usize| {
                let offset = self.offsets.get(chunk).ok_or_else(|| Error::corrupt("more rows than its chunks hold"))?;
                Ok(data.start + offset)
            };
            stretch.bytes = at(stretch.chunks.start)?..at(stretch.chunks.end)?;
        }
        Ok(stretches)
    }

    /// Appends the rows of a stretch of chunks.
    pub fn decode(&self, stretch: &Stretch, bytes: &[u8], leaf: &mut Leaf) -> Result<()> {
        let stored = Stored { rep: self.layers.max_rep > 0, def: self.layout.def_compression.is_some() };
        leaf.begin_page(&self.layers, stored)?;
        let value = required(&self.layout.value_compression, "values")?;
        let value = (value, &Values::for_encoding(value)?);
        let base = self.offsets.get(stretch.chunks.start).copied().unwrap_or(0);
        let first_row = self.rows.as_ref().and_then(|rows| rows.first.get(stretch.chunks.start)).copied();
        let mut walk = RowWalk { rows: &stretch.rows, next: first_row.unwrap_or(0), is_wanted: false, found: 0 };
        if let (false, Some(wanted)) = (stored.rep, row_total(&stretch.rows)) {
            leaf.reserve(wanted, bytes.len());
        }
        let mut takes = Vec::new();
        for chunk in stretch.chunks.clone() {
            let in_chunk = |e: Error| in_chunk(e, chunk);
            let (Some(&[start, end]), Some(&[first_item, end_item])) =
                (self.offsets.get(chunk..chunk + 2), self.items.get(chunk..chunk + 2))
            else {
                return Err(Error::internal(format!("no chunk {chunk}")));
            };
            let count = to_usize(end_item - first_item, "a chunk")?;
            let chunk_bytes = bytes
                .get((start - base) as usize..(end - base) as usize)
                .ok_or_else(|| in_chunk(Error::corrupt("its bytes are missing")))?;
            let parts = self.split(chunk_bytes).map_err(in_chunk)?;
            takes.clear();
            if stored.rep {
                self.take_rows_by_levels(&parts, count, &mut walk, leaf, &mut takes).map_err(in_chunk)?;
            } else {
                self.take_rows_by_number(&parts, first_item..end_item, &stretch.rows, leaf, &mut takes)
                    .map_err(in_chunk)?;
            }
            leaf.push_chunk(value, &parts.values, count, &takes, self.dictionary.as_ref()).map_err(in_chunk)?;
        }
        if stored.rep {
            let wanted: u64 = stretch.rows.iter().map(|range| range.end - range.start).sum();
            if walk.found != wanted {
                return Err(Error::corrupt(format!("{} of {wanted} rows in chunks {:?}", walk.found, stretch.chunks)));
            }
        }
        Ok(())
    }

    /// Rows are items: the overlap of the chunk with each range.
    fn take_rows_by_number(
        &self,
        chunk: &Chunk<'_>,
        items: Range<u64>,
        rows: &[Range<u64>],
        leaf: &mut Leaf,
        takes: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        let count = (items.end - items.start) as usize;
        let def = self.def_levels(chunk)?;
        if def.as_ref().is_some_and(|def| def.len() != count) {
            return Err(Error::corrupt(format!("{} levels for {count} items", chunk.level_count)));
        }
        self.layers.check_levels(None, def.as_deref())?;
        let from = rows.partition_point(|range| range.end <= items.start);
        for range in rows.iter().skip(from).take_while(|range| range.start < items.end) {
            let start = (range.start.max(items.start) - items.start) as usize;
            let end = (range.end.min(items.end) - items.start) as usize;
            push_levels(leaf, None, def.as_deref(), start..end)?;
            takes.push(start..end);
        }
        Ok(())
    }

    /// Rows begin where the repetition level is the largest.
    fn take_rows_by_levels(
        &self,
        chunk: &Chunk<'_>,
        count: usize,
        walk: &mut RowWalk<'_>,
        leaf: &mut Leaf,
        takes: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        let rep_compression = required(&self.layout.rep_compression, "repetition levels")?;
        let rep = encoding::decode_levels(rep_compression, chunk.rep, chunk.level_count)?;
        let def = self.def_levels(chunk)?;
        if rep.len() != chunk.level_count || def.as_ref().is_some_and(|def| def.len() != chunk.level_count) {
            return Err(Error::corrupt(format!("fewer levels than {}", chunk.level_count)));
        }
        self.layers.check_levels(Some(&rep), def.as_deref())?;
        let visible = def.as_ref().map_or(rep.len(), |def| self.layers.count_visible(def));
        if visible != count {
            return Err(Error::corrupt(format!("levels of {visible} visible items, expected {count}")));
        }
        let visible_in = |range: Range<usize>| match &def {
            Some(def) => self.layers.count_visible(def.get(range).unwrap_or_default()),
            None => range.len(),
        };
        let (mut start, mut item) = (0, 0);
        while start < rep.len() {
            // A run of entries of rows that are all wanted, or all not. What comes first may belong to a row of an earlier chunk.
            if rep.get(start) == Some(&self.layers.max_rep) {
                walk.step();
            }
            let mut end = start + 1;
            while let Some(level) = rep.get(end) {
                if *level == self.layers.max_rep {
                    if walk.peek() != walk.is_wanted {
                        break;
                    }
                    walk.step();
                }
                end += 1;
            }
            let visible = visible_in(start..end);
            if walk.is_wanted {
                push_levels(leaf, Some(&rep), def.as_deref(), start..end)?;
                if visible > 0 {
                    takes.push(item..item + visible);
                }
            }
            item += visible;
            start = end;
        }
        Ok(())
    }

    fn def_levels(&self, chunk: &Chunk<'_>) -> Result<Option<Vec<u16>>> {
        match &self.layout.def_compression {
            Some(compression) => encoding::decode_levels(compression, chunk.def, chunk.level_count).map(Some),
            None => Ok(None),
        }
    }

    /// Takes a chunk apart.
    fn split<'a>(&self, chunk: &'a [u8]) -> Result<Chunk<'a>> {
        let mut at = 2;
        let level_count = usize::from(read_u16(chunk, 0)?);
        let mut level_bytes = |is_stored: bool| -> Result<usize> {
            if !is_stored {
                return Ok(0);
            }
            at += 2;
            read_u16(chunk, at - 2).map(usize::from)
        };
        let rep_bytes = level_bytes(self.layout.rep_compression.is_some())?;
        let def_bytes = level_bytes(self.layout.def_compression.is_some())?;
        let size_width = if self.layout.has_large_chunk { 4 } else { 2 };
        let buffer_count = usize::try_from(self.layout.num_buffers)
            .ok()
            .filter(|count| count.saturating_mul(size_width) <= chunk.len())
            .ok_or_else(|| Error::corrupt(format!("{} value buffers", self.layout.num_buffers)))?;
        let mut sizes = Vec::with_capacity(buffer_count);
        for i in 0..buffer_count {
            let at = at + i * size_width;
            sizes.push(if size_width == 4 { read_u32(chunk, at)? } else { u32::from(read_u16(chunk, at)?) });
        }
        at = (at + buffer_count * size_width).next_multiple_of(8);
        let mut take = |size: usize, what: &str| -> Result<&'a [u8]> {
            let bytes = at.checked_add(size).and_then(|end| chunk.get(at..end));
            let bytes = bytes
                .ok_or_else(|| Error::corrupt(format!("{size} bytes of {what} at {at} in {} bytes", chunk.len())))?;
            at = (at + size).next_multiple_of(8);
            Ok(bytes)
        };
        let rep = take(rep_bytes, "repetition levels")?;
        let def = take(def_bytes, "definition levels")?;
        let values = sizes.into_iter().map(|size| take(size as usize, "values")).collect::<Result<_>>()?;
        Ok(Chunk { level_count, rep, def, values })
    }
}

/// Which row the walk over levels is in.
struct RowWalk<'a> {
    /// Wanted rows that did not end yet.
    rows: &'a [Range<u64>],
    /// The row that begins next.
    next: u64,
    /// Whether the current row is wanted; entries before the first begin belong to a row that is not.
    is_wanted: bool,
    /// Wanted rows that began.
    found: u64,
}

impl RowWalk<'_> {
    /// Whether the row that begins next is wanted.
    fn peek(&mut self) -> bool {
        while let Some((first, rest)) = self.rows.split_first() {
            if self.next < first.end {
                return first.start <= self.next;
            }
            self.rows = rest;
        }
        false
    }

    fn step(&mut self) {
        self.is_wanted = self.peek();
        self.next += 1;
        self.found += u64::from(self.is_wanted);
    }
}

fn push_levels(leaf: &mut Leaf, rep: Option<&[u16]>, def: Option<&[u16]>, range: Range<usize>) -> Result<()> {
    let levels = leaf.levels.last_mut().ok_or_else(|| Error::internal("no page was begun"))?;
    let rep = rep.and_then(|rep| rep.get(range.clone()));
    levels.extend(rep, def.and_then(|def| def.get(range.clone())), range.len());
    Ok(())
}

impl ChunkRows {
    fn decode(bytes: &[u8], chunk_count: usize, row_count: u64) -> Result<ChunkRows> {
        if bytes.len() as u64 != chunk_count as u64 * 16 {
            return Err(Error::corrupt(format!(
                "a repetition index of {} bytes for {chunk_count} chunks",
                bytes.len()
            )));
        }
        let mut rows = ChunkRows { first: vec![0], goes_on: Vec::with_capacity(chunk_count) };
        let (mut row, mut went_on) = (0u64, false);
        for chunk in 0..chunk_count {
            let (ends, rest) = (read_u64(bytes, chunk * 16)?, read_u64(bytes, chunk * 16 + 8)?);
            let goes_on = rest > 0;
            row = ends
                .checked_add(u64::from(goes_on))
                .and_then(|begins| begins.checked_sub(u64::from(went_on)))
                .and_then(|begins| row.checked_add(begins))
                .filter(|row| *row <= row_count)
                .ok_or_else(|| Error::corrupt(format!("repetition index: {ends} rows end in chunk {chunk}")))?;
            rows.first.push(row);
            rows.goes_on.push(goes_on);
            went_on = goes_on;
        }
        if row != row_count || went_on {
            return Err(Error::corrupt(format!("a repetition index of {row} rows in a page of {row_count}")));
        }
        Ok(rows)
    }

    /// The chunks that hold rows `a..b`, which are not none.
    fn chunks_of(&self, rows: &Range<u64>) -> Range<usize> {
        let first = chunk_of(&self.first, rows.start);
        let mut last = chunk_of(&self.first, rows.end - 1);
        // The last row may go on through chunks in which no row begins.
        while self.first.get(last + 1) == Some(&rows.end) && self.goes_on.get(last) == Some(&true) {
            last += 1;
            if self.first.get(last) != self.first.get(last + 1) {
                break;
            }
        }
        first..last + 1
    }
}

fn row_total(rows: &[Range<u64>]) -> Option<usize> {
    rows.iter().map(|range| range.end - range.start).sum::<u64>().try_into().ok()
}

/// The last chunk that begins at or before a position.
fn chunk_of(begins: &[u64], position: u64) -> usize {
    begins.partition_point(|begin| *begin <= position).saturating_sub(1)
}

/// Decodes the chunk words into byte offsets and first items, one more each than there are chunks.
fn chunk_table(layout: &MiniBlockLayout, words: &[u8], data_bytes: u64) -> Result<(Vec<u64>, Vec<u64>)> {
    let width = if layout.has_large_chunk { 4 } else { 2 };
    if !words.len().is_multiple_of(width) {
        return Err(Error::corrupt(format!("a chunk table of {} bytes", words.len())));
    }
    let count = words.len() / width;
    let (mut offsets, mut items) = (Vec::with_capacity(count + 1), Vec::with_capacity(count + 1));
    let (mut offset, mut item) = (0u64, 0u64);
    for chunk in 0..count {
        let word = if width == 4 { read_u32(words, chunk * 4)? } else { u32::from(read_u16(words, chunk * 2)?) };
        offsets.push(offset);
        items.push(item);
        offset += (u64::from(word >> 4) + 1) * 8;
        let log = word & 15;
        if chunk + 1 == count {
            item = item.max(layout.num_items);
        } else if log == 0 {
            return Err(Error::corrupt(format!("chunk {chunk} of {count} has no size")));
        } else {
            item += 1 << log;
        }
        if item > layout.num_items {
            return Err(Error::corrupt(format!("{count} chunks hold more than {} items", layout.num_items)));
        }
    }
    if offset != data_bytes || item != layout.num_items {
        return Err(Error::corrupt(format!(
            "{count} chunks of {offset} bytes and {item} items, expected {data_bytes} and {}",
            layout.num_items
        )));
    }
    offsets.push(offset);
    items.push(item);
    Ok((offsets, items))
}

fn required<'a>(encoding: &'a Option<CompressiveEncoding>, what: &str) -> Result<&'a CompressiveEncoding> {
    encoding.as_ref().ok_or_else(|| Error::corrupt(format!("no encoding of {what}")))
}

fn in_chunk(error: Error, chunk: usize) -> Error {
    match error {
        // An offset within a chunk would read as one in the file.
        Error::Corrupt { path, reason, .. } => {
            Error::Corrupt { path, offset: None, reason: format!("chunk {chunk}: {reason}") }
        }
        other => other,
    }
}

fn memory_bytes(values: &Values) -> usize {
    match values {
        Values::Fixed { bytes, .. } => bytes.len(),
        Values::Bits { bitmap, .. } => bitmap.len(),
        Values::Variable { offsets, data } => offsets.len() * 8 + data.len(),
        Values::FixedSizeList { items, .. } => memory_bytes(items),
        Values::Struct { fields, .. } => fields.iter().map(memory_bytes).sum(),
        Values::Nulls { .. } => 0,
    }
}
