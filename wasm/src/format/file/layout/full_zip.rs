//! The full-zip layout: wide values row by row, each with its levels, directly addressable.
//!
//! ```text
//! buffer 0    entries: control word | value
//! buffer 1    row index, when values are variable or there are lists: rows + 1 offsets into buffer 0 of 1, 2, 4 or 8 bytes each
//!
//! control     (repetition << definition bits) | definition, in 0, 1, 2 or 4 bytes
//! value       fixed: its bytes, also of a null; variable: u32 or u64 length and bytes, of a null nothing
//! ```
//!
//! An entry that is not visible is a control word alone.

use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;

use super::Stretch;
use super::append::has_same_shape;
use super::leaf::Leaf;
use super::rep_def::{Layers, Stored};
use crate::error::{Error, Result};
use crate::format::file::column::Page;
use crate::format::file::encoding::{ValueDecoder, Values};
use crate::format::file::footer::read_uint;
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::full_zip_layout::Width;
use crate::format::proto::{CompressiveEncoding, FullZipLayout};

/// A page whose description is checked. Its row index may be large and is read entry by entry.
pub struct FullZip {
    layers: Rc<Layers>,
    def_bits: u32,
    rep_bits: u32,
    control_bytes: usize,
    width: ValueWidth,
    encoding: CompressiveEncoding,
    decoder: ValueDecoder,
    row_count: u64,
    entry_count: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum ValueWidth {
    /// Bytes of each value.
    Fixed(usize),
    /// Bytes of the length before each value.
    Length(usize),
}

impl FullZip {
    pub fn open(page: &Page, layout: FullZipLayout) -> Result<FullZip> {
        let layers = Rc::new(Layers::parse(&layout.layers)?);
        if (layers.max_rep > 0) != (layout.bits_rep > 0) {
            return Err(Error::corrupt(format!(
                "{} list layers, {} bits of repetition",
                layers.max_rep, layout.bits_rep
            )));
        }
        let control_bytes = match layout.bits_rep.checked_add(layout.bits_def) {
            _ if layout.bits_rep > 16 || layout.bits_def > 16 => None,
            Some(0) => Some(0),
            Some(1..=8) => Some(1),
            Some(9..=16) => Some(2),
            _ => Some(4),
        };
        let control_bytes = control_bytes
            .ok_or_else(|| Error::corrupt(format!("levels of {} and {} bits", layout.bits_rep, layout.bits_def)))?;
        let encoding = layout.value_compression.ok_or_else(|| Error::corrupt("no encoding of values"))?;
        let decoder = ValueDecoder::new(&encoding)?;
        let width = match (layout.width, decoder.fixed_bytes()) {
            (Some(Width::BitsPerValue(bits)), Some(bytes)) if u64::from(bits) == bytes as u64 * 8 => {
                ValueWidth::Fixed(bytes)
            }
            (Some(Width::BitsPerOffset(32)), None) => ValueWidth::Length(4),
            (Some(Width::BitsPerOffset(64)), None) => ValueWidth::Length(8),
            (width, bytes) => {
                return Err(Error::corrupt(format!(
                    "values of {width:?} by the layout, of {bytes:?} bytes by the encoding"
                )));
            }
        };
        if control_bytes == 0 && width == ValueWidth::Fixed(0) {
            return Err(Error::corrupt("entries of no bytes"));
        }
        Ok(FullZip {
            layers,
            def_bits: layout.bits_def,
            rep_bits: layout.bits_rep,
            control_bytes,
            width,
            encoding,
            decoder,
            row_count: page.row_count,
            entry_count: u64::from(layout.num_items),
        })
    }

    /// Bytes of a row, when all are the same.
    fn row_bytes(&self) -> Option<u64> {
        match self.width {
            ValueWidth::Fixed(bytes) if self.layers.max_rep == 0 => Some((self.control_bytes + bytes) as u64),
            ValueWidth::Fixed(_) | ValueWidth::Length(_) => None,
        }
    }

    fn is_whole(page: &Page, rows: &[Range<u64>]) -> bool {
        matches!(rows, [range] if *range == (0..page.row_count))
    }

    /// The begin and end entry of every range of rows.
    pub fn row_index_ranges(&self, page: &Page, rows: &[Range<u64>]) -> Result<Vec<Range<u64>>> {
        if self.row_bytes().is_some() || FullZip::is_whole(page, rows) {
            return Ok(Vec::new());
        }
        let index = page.buffer(1)?;
        let size = index.end - index.start;
        let entries = page.row_count.saturating_add(1);
        let width = size / entries;
        if !matches!(width, 1 | 2 | 4 | 8) || width * entries != size {
            return Err(Error::corrupt(format!("a row index of {size} bytes for {} rows", page.row_count)));
        }
        let entry = |row: u64| index.start + row * width..index.start + (row + 1) * width;
        Ok(rows.iter().flat_map(|range| [entry(range.start), entry(range.end)]).collect())
    }

    pub fn plan(&self, page: &Page, rows: &[Range<u64>], entries: &[Bytes]) -> Result<Vec<Stretch>> {
        let data = page.buffer(0)?;
        let size = data.end - data.start;
        let offset = |i: usize| -> Result<u64> {
            let entry = entries.get(i).ok_or_else(|| Error::internal("a row index entry is missing"))?;
            read_uint(entry, 0, entry.len())
        };
        let mut stretches = Vec::with_capacity(rows.len());
        for (i, range) in rows.iter().enumerate() {
            let (start, end) = match self.row_bytes() {
                Some(bytes) => (range.start.checked_mul(bytes), range.end.checked_mul(bytes)),
                None if FullZip::is_whole(page, rows) => (Some(0), Some(size)),
                None => (Some(offset(2 * i)?), Some(offset(2 * i + 1)?)),
            };
            match (start, end) {
                (Some(start), Some(end)) if start <= end && end <= size => stretches.push(Stretch {
                    bytes: data.start + start..data.start + end,
                    rows: vec![range.clone()],
                    chunks: 0..0,
                }),
                _ => return Err(Error::corrupt(format!("rows {range:?} do not lie in {size} bytes of data"))),
            }
        }
        Ok(stretches)
    }

    pub fn decode(&self, stretch: &Stretch, bytes: &[u8], leaf: &mut Leaf) -> Result<()> {
        let wanted: u64 = stretch.rows.iter().map(|range| range.end - range.start).sum();
        let stored = Stored { rep: self.rep_bits > 0, def: self.def_bits > 0 };
        leaf.begin_page(&self.layers, stored)?;
        let mut values = Values::for_encoding(&self.encoding)?;
        // Right into the leaf, when nothing has to be converted.
        let is_direct = leaf.dictionary.is_none() && has_same_shape(&values, &leaf.values);
        if is_direct {
            std::mem::swap(&mut values, &mut leaf.values);
        }
        let decoded = self.decode_entries(bytes, leaf, &mut values);
        if is_direct {
            std::mem::swap(&mut values, &mut leaf.values);
        } else if decoded.is_ok() {
            leaf.push_values(&values)?;
        }
        let (rows, entries) = decoded?;
        if rows != wanted {
            return Err(Error::corrupt(format!("{rows} rows in the bytes of {wanted}")));
        }
        if wanted == self.row_count && entries != self.entry_count {
            return Err(Error::corrupt(format!("{entries} entries, expected {}", self.entry_count)));
        }
        Ok(())
    }

    /// Appends all entries of some bytes; returns rows and entries.
    fn decode_entries(&self, bytes: &[u8], leaf: &mut Leaf, values: &mut Values) -> Result<(u64, u64)> {
        let is_raw = is_raw(&self.encoding);
        let levels = leaf.levels.last_mut().ok_or_else(|| Error::internal("no page was begun"))?;
        if let (0, ValueWidth::Fixed(width), true) = (self.control_bytes, self.width, is_raw) {
            let count = bytes.len() / width;
            if count * width != bytes.len() {
                return Err(Error::corrupt(format!("{} bytes of values of {width}", bytes.len())));
            }
            push_raw(values, bytes, count);
            levels.extend(None, None, count);
            return Ok((count as u64, count as u64));
        }
        let (mut rep, mut def) = (Vec::new(), Vec::new());
        let (mut at, mut rows, mut entries) = (0usize, 0u64, 0usize);
        let take = |at: &mut usize, size: usize| -> Result<&[u8]> {
            let value = at.checked_add(size).and_then(|end| bytes.get(*at..end));
            let value =
                value.ok_or_else(|| Error::corrupt(format!("a value of {size} bytes at {at} of {}", bytes.len())))?;
            *at += size;
            Ok(value)
        };
        let def_mask = (1u32 << self.def_bits) - 1;
        while at < bytes.len() {
            let (mut rep_level, mut def_level) = (self.layers.max_rep, 0);
            if self.control_bytes > 0 {
                let word = take(&mut at, self.control_bytes)?;
                let word = read_uint(word, 0, self.control_bytes)? as u32;
                def_level = (word & def_mask) as u16;
                if self.def_bits > 0 {
                    def.push(def_level);
                }
                if self.rep_bits > 0 {
                    rep_level =
                        word.checked_shr(self.def_bits).and_then(|rep| u16::try_from(rep).ok()).unwrap_or(u16::MAX);
                    rep.push(rep_level);
                }
            }
            if entries == 0 && rep_level != self.layers.max_rep {
                return Err(Error::corrupt("the first entry does not begin a row"));
            }
            rows += u64::from(rep_level == self.layers.max_rep);
            entries += 1;
            if def_level > self.layers.max_visible {
                continue;
            }
            match self.width {
                ValueWidth::Fixed(width) => {
                    let value = take(&mut at, width)?;
                    if is_raw { push_raw(values, value, 1) } else { self.decoder.decode(value, values)? }
                }
                ValueWidth::Length(_) if def_level > 0 => self.decoder.push_null(values)?,
                ValueWidth::Length(width) => {
                    let length = read_uint(take(&mut at, width)?, 0, width)?;
                    let length =
                        usize::try_from(length).map_err(|_| Error::corrupt(format!("a value of {length} bytes")))?;
                    self.decoder.decode(take(&mut at, length)?, values)?;
                }
            }
        }
        let rep = (self.rep_bits > 0).then_some(rep);
        let def = (self.def_bits > 0).then_some(def);
        self.layers.check_levels(rep.as_deref(), def.as_deref())?;
        levels.extend(rep.as_deref(), def.as_deref(), entries);
        Ok((rows, entries as u64))
    }
}

/// Whether stored values are the bytes of [`Values`] as they are: numbers, and lists of them without item validity.
fn is_raw(encoding: &CompressiveEncoding) -> bool {
    match &encoding.compression {
        Some(Compression::Flat(flat)) => {
            flat.data.is_none() && flat.bits_per_value > 0 && flat.bits_per_value.is_multiple_of(8)
        }
        Some(Compression::FixedSizeList(list)) => !list.has_validity && list.values.as_ref().is_some_and(|v| is_raw(v)),
        _ => false,
    }
}

fn push_raw(values: &mut Values, raw: &[u8], count: usize) {
    match values {
        Values::Fixed { bytes, .. } => bytes.extend_from_slice(raw),
        Values::FixedSizeList { dimension, len, items, .. } => {
            *len += count;
            push_raw(items, raw, count * *dimension);
        }
        Values::Bits { .. } | Values::Variable { .. } | Values::Struct { .. } | Values::Nulls { .. } => {}
    }
}
