//! Values of some rows of a page: which bytes they need, and what they are.

use std::ops::Range;

use bytes::Bytes;

use super::encoding::{BLOCK, Encoding, Ends, Stored};
use super::pieces::Pieces;
use super::slots::{Slots, empty_like};
use crate::error::{Error, Result};
use crate::format::file::encoding::{self, Values, decode_block, decode_chunk, out_of_line_bitpacking};
use crate::format::file::layout::append::{self, Indices, append, checked_index};

/// Values, or lists, of adjoining rows.
pub(super) struct Spans {
    /// Where the first begins.
    pub(super) start: u64,
    pub(super) ends: Vec<u64>,
    /// Indices of the nulls, ascending.
    pub(super) nulls: Vec<usize>,
}

impl Encoding {
    /// Asks for the bytes of some values: ascending, disjoint rows of the `count` that there are. `true` when they are all there, and
    /// [`Encoding::decode`] may be called. What is to be asked for may depend on what was fetched: then ask again.
    ///
    /// # Errors
    /// `Corrupt` for ends that contradict each other.
    pub(super) fn ask(&self, rows: &[Range<u64>], count: u64, pieces: &mut Pieces) -> Result<bool> {
        Ok(match self {
            Encoding::Flat { bits, buffer } => buffer.ask(rows.iter().map(|rows| flat_bytes(rows, *bits)), pieces),
            Encoding::Nulls | Encoding::Struct => true,
            Encoding::Nullable { validity, values } => {
                // Both at once.
                validity.ask(rows, count, pieces)? & values.ask(rows, count, pieces)?
            }
            Encoding::FixedSizeList { dimension, items } => {
                items.ask(&scaled(rows, *dimension), count.saturating_mul(*dimension), pieces)?
            }
            Encoding::List { ends, .. } => ends.ask(rows, count, pieces)?,
            Encoding::Binary { ends, bytes } => {
                let has_ends = ends.ask(rows, count, pieces)?;
                if matches!(rows, [all] if *all == (0..count)) {
                    // No end has to be known to know which bytes all values are.
                    return Ok(has_ends & bytes.ask([0..bytes.size()], pieces));
                }
                if !has_ends {
                    return Ok(false);
                }
                let limit = bytes.limit();
                let mut data = Vec::with_capacity(rows.len());
                for rows in rows {
                    let spans = ends.spans(rows, limit, pieces)?;
                    data.push(spans.start..spans.end());
                }
                bytes.ask(data, pieces)
            }
            Encoding::Dictionary { indices, items, item_count, decoded } => {
                let has_indices = indices.ask(rows, count, pieces)?;
                let has_items = match decoded.get() {
                    Some(_) => true,
                    None => items.ask(std::slice::from_ref(&(0..*item_count)), *item_count, pieces)?,
                };
                has_indices & has_items
            }
            Encoding::Fsst { values, .. } => values.ask(rows, count, pieces)?,
            Encoding::FixedSizeBinary { byte_width, bytes } => {
                bytes.ask(rows.iter().map(|rows| rows.start * byte_width..rows.end * byte_width), pieces)
            }
            Encoding::PackedStruct { row_bytes, buffer, .. } => {
                ask_all(rows.iter().map(|rows| within(buffer, &flat_bytes(rows, row_bytes * 8))), pieces)
            }
            Encoding::Bitpacked { packed_bits, buffer, .. } => {
                ask_all(rows.iter().map(|rows| within(buffer, &flat_bytes(rows, *packed_bits))), pieces)
            }
            Encoding::BitpackedBlocks { packed_bits, buffer, .. } => {
                ask_all(rows.iter().map(|rows| within(buffer, &block_bytes(rows, *packed_bits))), pieces)
            }
        })
    }

    /// Appends the values of rows that were asked for.
    ///
    /// # Errors
    /// `Corrupt` when they are not of the shape of `out`, or contradict each other.
    pub(super) fn decode(&self, rows: &[Range<u64>], pieces: &Pieces, out: &mut Slots) -> Result<()> {
        let start = out.values.len();
        match self {
            Encoding::Nulls => out.push_nulls(row_count(rows)?)?,
            Encoding::Nullable { validity, values } => {
                values.decode(rows, pieces, out)?;
                let mut at = start;
                for rows in rows {
                    let Encoding::Flat { bits: 1, buffer } = &**validity else {
                        return Err(Error::internal("validity that is no bitmap"));
                    };
                    let bits = buffer.get(&flat_bytes(rows, 1), pieces)?;
                    let count = to_usize(rows.end - rows.start)?;
                    out.mark(at, &bits, (rows.start % 8) as usize, count);
                    at += count;
                }
            }
            Encoding::FixedSizeList { dimension, items } => {
                let count = row_count(rows)?;
                let Values::FixedSizeList { dimension: expected, len, validity, items: values } = &mut out.values
                else {
                    return Err(wrong_shape(&format!("lists of {dimension}"), &out.values));
                };
                if *expected as u64 != *dimension {
                    return Err(Error::corrupt(format!("lists of {dimension} in a column of lists of {expected}")));
                }
                let inner = std::mem::replace(&mut **values, Values::Nulls { len: 0 });
                let mut inner = Slots::with_validity(inner, validity.take());
                items.decode(&scaled(rows, *dimension), pieces, &mut inner)?;
                let (inner, valid) = inner.into_parts();
                (**values, *validity) = (inner, valid);
                *len += count;
            }
            Encoding::Dictionary { indices, .. } => {
                let items = self.items(pieces, &out.values)?;
                let indices = indices.numbers(rows, pieces)?;
                push_items(out, items, &indices)?;
            }
            Encoding::Fsst { values, decoder, .. } => {
                let mut stored = Slots::new(Values::Variable { offsets: vec![0], data: Vec::new() });
                values.decode(rows, pieces, &mut stored)?;
                if !matches!(out.values, Values::Variable { .. }) {
                    return Err(wrong_shape("values of variable length", &out.values));
                }
                for at in 0..stored.values.len() {
                    decoder.decode(append::value_bytes(&stored.values, at)?, &mut out.values)?;
                    if stored.is_null(at) {
                        out.mark_null(start + at);
                    }
                }
            }
            Encoding::Struct | Encoding::List { .. } | Encoding::PackedStruct { .. } => {
                return Err(Error::corrupt("a nested encoding in a column of values"));
            }
            Encoding::Flat { .. }
            | Encoding::Binary { .. }
            | Encoding::FixedSizeBinary { .. }
            | Encoding::Bitpacked { .. }
            | Encoding::BitpackedBlocks { .. } => {
                rows.iter().try_for_each(|rows| self.decode_range(rows, pieces, out))?;
            }
        }
        if out.values.len() != start + row_count(rows)? {
            return Err(Error::internal("another number of values than rows"));
        }
        Ok(())
    }

    fn decode_range(&self, rows: &Range<u64>, pieces: &Pieces, out: &mut Slots) -> Result<()> {
        let count = to_usize(rows.end - rows.start)?;
        match self {
            Encoding::Flat { bits, buffer } => {
                let bytes = buffer.get(&flat_bytes(rows, *bits), pieces)?;
                let skipped = if *bits == 1 { (rows.start % 8) as usize } else { 0 };
                let take = skipped..skipped + count;
                decode_chunk(&encoding::flat(*bits), &[&bytes], skipped + count, take, &mut out.values)
            }
            Encoding::Binary { ends, bytes } => {
                let spans = ends.spans(rows, bytes.limit(), pieces)?;
                let stored = bytes.get(&(spans.start..spans.end()), pieces)?;
                let start = out.values.len();
                let Values::Variable { offsets, data } = &mut out.values else {
                    return Err(wrong_shape("values of variable length", &out.values));
                };
                reserve(data, stored.len())?;
                reserve(offsets, count)?;
                let base = data.len() as u64;
                data.extend_from_slice(&stored);
                offsets.extend(spans.ends.iter().map(|end| base + (end - spans.start)));
                spans.nulls.iter().for_each(|at| out.mark_null(start + at));
                Ok(())
            }
            Encoding::FixedSizeBinary { byte_width, bytes } => {
                let stored = bytes.get(&(rows.start * byte_width..rows.end * byte_width), pieces)?;
                match &mut out.values {
                    Values::Variable { offsets, data } => {
                        reserve(data, stored.len())?;
                        reserve(offsets, count)?;
                        let base = data.len() as u64;
                        data.extend_from_slice(&stored);
                        offsets.extend((1..=count as u64).map(|i| base + i * byte_width));
                        Ok(())
                    }
                    values => decode_chunk(&encoding::flat(byte_width * 8), &[&stored], count, 0..count, values),
                }
            }
            Encoding::Bitpacked { packed_bits, byte_width, is_signed, buffer } => {
                let stored = pieces.get(&within(buffer, &flat_bytes(rows, *packed_bits)))?;
                let first_bit = rows.start * packed_bits % 8;
                let mut unpacked = Vec::new();
                reserve(&mut unpacked, count * byte_width)?;
                for i in 0..count as u64 {
                    let value = read_bits(&stored, first_bit + i * packed_bits, *packed_bits as u32, *is_signed);
                    unpacked.extend_from_slice(value.to_le_bytes().get(..*byte_width).unwrap_or_default());
                }
                append(&mut out.values, &Values::Fixed { byte_width: *byte_width, bytes: unpacked }, 0..count)
            }
            Encoding::BitpackedBlocks { packed_bits, byte_width, buffer } => {
                let stored = pieces.get(&within(buffer, &block_bytes(rows, *packed_bits)))?;
                let skipped = rows.start / BLOCK * BLOCK;
                let blocks = to_usize(rows.end.div_ceil(BLOCK) * BLOCK - skipped)?;
                let packing = out_of_line_bitpacking(*byte_width as u64 * 8, *packed_bits as u32);
                let unpacked = decode_block(&packing, &stored, blocks)?;
                let from = to_usize(rows.start - skipped)?;
                append(&mut out.values, &unpacked, from..from + count)
            }
            _ => Err(Error::internal("an encoding that is not decoded by ranges")),
        }
    }

    /// The distinct values of a dictionary, each index one higher than in the file: the first is the null that index 0 of a column of
    /// strings means.
    pub(super) fn items(&self, pieces: &Pieces, like: &Values) -> Result<&Slots> {
        let Encoding::Dictionary { items, item_count, decoded, .. } = self else {
            return Err(Error::corrupt("a dictionary column without a dictionary"));
        };
        if let Some(decoded) = decoded.get() {
            return Ok(decoded);
        }
        let mut slots = Slots::new(empty_like(like));
        slots.push_nulls(1)?;
        items.decode(std::slice::from_ref(&(0..*item_count)), pieces, &mut slots)?;
        Ok(decoded.get_or_init(|| slots))
    }

    /// Rows of a packed struct, side by side.
    pub(super) fn packed_rows(&self, rows: &Range<u64>, pieces: &Pieces) -> Result<Bytes> {
        match self {
            Encoding::PackedStruct { row_bytes, buffer, .. } => {
                pieces.get(&within(buffer, &flat_bytes(rows, row_bytes * 8)))
            }
            _ => Err(Error::corrupt("a packed struct that is stored as something else")),
        }
    }

    /// Values that are numbers of 1, 2, 4 or 8 bytes.
    pub(super) fn numbers(&self, rows: &[Range<u64>], pieces: &Pieces) -> Result<Values> {
        let byte_width = match self {
            Encoding::Flat { bits: bits @ (8 | 16 | 32 | 64), .. } => (bits / 8) as usize,
            Encoding::Bitpacked { byte_width, .. } | Encoding::BitpackedBlocks { byte_width, .. } => *byte_width,
            _ => return Err(Error::not_supported("this encoding of offsets or indices")),
        };
        let mut out = Slots::new(Values::Fixed { byte_width, bytes: Vec::new() });
        self.decode(rows, pieces, &mut out)?;
        Ok(out.values)
    }
}

impl Ends {
    fn ask(&self, rows: &[Range<u64>], count: u64, pieces: &mut Pieces) -> Result<bool> {
        self.numbers.ask(&with_previous(rows), count, pieces)
    }

    /// Where the values of a range of rows lie, none of them behind `limit`.
    ///
    /// # Errors
    /// `Corrupt` for ends that are out of order.
    pub(super) fn spans(&self, rows: &Range<u64>, limit: u64, pieces: &Pieces) -> Result<Spans> {
        let needed = with_previous(std::slice::from_ref(rows));
        let numbers = self.numbers.numbers(&needed, pieces)?;
        let mut spans = Spans { start: 0, ends: Vec::new(), nulls: Vec::new() };
        reserve(&mut spans.ends, numbers.len())?;
        let mut last = 0;
        let skipped = usize::from(rows.start > 0);
        for (at, number) in Indices::new(&numbers, 0..numbers.len())?.enumerate() {
            let is_null = self.null_adjustment > 0 && number >= self.null_adjustment;
            let end = if is_null { number - self.null_adjustment } else { number };
            if end < last || end > limit {
                return Err(Error::corrupt(format!("the end {end} after {last}, the last is {limit}")));
            }
            last = end;
            if at < skipped {
                spans.start = end;
                continue;
            }
            if is_null {
                spans.nulls.push(at - skipped);
            }
            spans.ends.push(end);
        }
        Ok(spans)
    }
}

impl Spans {
    pub(super) fn end(&self) -> u64 {
        self.ends.last().copied().unwrap_or(self.start)
    }
}

impl Stored {
    /// Bytes in the file.
    fn size(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Bytes that there can be: unknown before a compressed buffer is there.
    fn limit(&self) -> u64 {
        match &self.compressed {
            Some(compressed) => compressed.plain.get().map_or(u64::MAX, |plain| plain.len() as u64),
            None => self.size(),
        }
    }

    /// Asks for parts of the buffer; for all of it when it is compressed.
    fn ask(&self, parts: impl IntoIterator<Item = Range<u64>>, pieces: &mut Pieces) -> bool {
        match &self.compressed {
            Some(compressed) => compressed.plain.get().is_some() || pieces.ask(self.range.clone()),
            None => ask_all(parts.into_iter().map(|part| within(&self.range, &part)), pieces),
        }
    }

    /// A part of the buffer that was asked for.
    fn get(&self, part: &Range<u64>, pieces: &Pieces) -> Result<Bytes> {
        let Some(compressed) = &self.compressed else {
            // Of a page that is read whole, the buffer was asked for.
            let bytes = pieces.find(&within(&self.range, part));
            let bytes = bytes.or_else(|| pieces.find(&self.range).and_then(|bytes| cut(&bytes, part)));
            return bytes.ok_or_else(|| Error::internal("bytes of a page that nobody asked for"));
        };
        let plain = match compressed.plain.get() {
            Some(plain) => plain,
            None => {
                let mut value = Values::Variable { offsets: vec![0], data: Vec::new() };
                compressed.decoder.decode(&pieces.get(&self.range)?, &mut value)?;
                let Values::Variable { data, .. } = value else {
                    return Err(Error::internal("a buffer that is no value"));
                };
                compressed.plain.get_or_init(|| Bytes::from(data))
            }
        };
        cut(plain, part).ok_or_else(|| Error::corrupt(format!("bytes {part:?} of a buffer of {}", plain.len())))
    }
}

/// Appends items by index, 0 being a null.
fn push_items(out: &mut Slots, items: &Slots, indices: &Values) -> Result<()> {
    let (start, len) = (out.values.len(), items.values.len());
    let mut bytes = 0usize;
    for index in Indices::new(indices, 0..indices.len())? {
        bytes = bytes.saturating_add(append::value_bytes(&items.values, checked_index(index, len)?)?.len());
    }
    if let Values::Variable { data, .. } = &mut out.values {
        reserve(data, bytes)?;
    }
    append::gather(&mut out.values, &items.values, indices, 0..indices.len())?;
    for (at, index) in Indices::new(indices, 0..indices.len())?.enumerate() {
        if items.is_null(checked_index(index, len)?) {
            out.mark_null(start + at);
        }
    }
    Ok(())
}

/// Bytes of values of `bits` bits; the rows lie in the page, whose values fit into their buffer.
fn flat_bytes(rows: &Range<u64>, bits: u64) -> Range<u64> {
    rows.start.saturating_mul(bits) / 8..rows.end.saturating_mul(bits).div_ceil(8)
}

fn block_bytes(rows: &Range<u64>, packed_bits: u64) -> Range<u64> {
    let size = BLOCK / 8 * packed_bits;
    rows.start / BLOCK * size..rows.end.div_ceil(BLOCK) * size
}

/// A part of a buffer as a place in the file.
fn within(buffer: &Range<u64>, part: &Range<u64>) -> Range<u64> {
    buffer.start.saturating_add(part.start)..buffer.start.saturating_add(part.end)
}

fn cut(bytes: &Bytes, part: &Range<u64>) -> Option<Bytes> {
    let (start, end) = (usize::try_from(part.start).ok()?, usize::try_from(part.end).ok()?);
    (start <= end && end <= bytes.len()).then(|| bytes.slice(start..end))
}

fn ask_all(ranges: impl Iterator<Item = Range<u64>>, pieces: &mut Pieces) -> bool {
    ranges.fold(true, |all, range| pieces.ask(range) & all)
}

fn scaled(rows: &[Range<u64>], dimension: u64) -> Vec<Range<u64>> {
    let scale = |row: u64| row.saturating_mul(dimension);
    rows.iter().map(|rows| scale(rows.start)..scale(rows.end)).collect()
}

/// The rows, each range with the row before it.
fn with_previous(rows: &[Range<u64>]) -> Vec<Range<u64>> {
    rows.iter()
        .map(|rows| if rows.is_empty() { rows.clone() } else { rows.start.saturating_sub(1)..rows.end })
        .collect()
}

fn row_count(rows: &[Range<u64>]) -> Result<usize> {
    to_usize(rows.iter().map(|rows| rows.end - rows.start).sum())
}

fn to_usize(value: u64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::corrupt(format!("{value} values at once")))
}

fn reserve<T>(out: &mut Vec<T>, n: usize) -> Result<()> {
    out.try_reserve(n).map_err(|_| Error::corrupt(format!("{n} more values than memory can hold")))
}

/// `bits` bits, at most 64, from bit `at` of a stream on.
fn read_bits(stream: &[u8], at: u64, bits: u32, is_signed: bool) -> u64 {
    let mut window = [0; 16];
    let from = usize::try_from(at / 8).unwrap_or(usize::MAX);
    for (slot, byte) in window.iter_mut().zip(stream.get(from..).unwrap_or_default()).take(9) {
        *slot = *byte;
    }
    let value = (u128::from_le_bytes(window) >> (at % 8)) as u64;
    let unused = 64 - bits;
    match is_signed {
        true => ((value << unused) as i64 >> unused) as u64,
        false => value << unused >> unused,
    }
}

fn wrong_shape(found: &str, expected: &Values) -> Error {
    Error::corrupt(format!("{found} in a column of {}", append::describe(expected)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_a_stream_are_read_from_the_lowest_on() {
        // 5 bits each: 1, 31, 16, 2
        let stream = [0b1110_0001, 0b0100_0011, 0b0000_0001];
        let read = |is_signed| (0..4).map(|i| read_bits(&stream, i * 5, 5, is_signed)).collect::<Vec<_>>();
        assert_eq!(read(false), [1, 31, 16, 2]);
        assert_eq!(read(true).iter().map(|value| *value as i64).collect::<Vec<_>>(), [1, -1, -16, 2]);
        assert_eq!(read_bits(&[0xff; 9], 3, 64, false), u64::MAX);
    }
}
