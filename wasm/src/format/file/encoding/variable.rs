//! Variable: offsets of 32 or 64 bits, then the bytes of the values.
//!
//! ```text
//! chunk: (n + 1) offsets from the start of this buffer | bytes | padding to the size of an offset
//! block: offset bits, start of bytes (one offset word each) | (n + 1) offsets from the start of the bytes | bytes
//! ```

use std::ops::Range;

use super::{Values, child, compression, describe, flat, reserve};
use crate::error::{Error, Result};
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::{CompressiveEncoding, Variable};

/// The byte that LanceDB pads with.
const PADDING: u8 = 0x48;

/// The description of values with offsets of 32 or 64 bits.
pub fn variable(offset_bits: u64) -> CompressiveEncoding {
    describe(Compression::Variable(Box::new(Variable {
        offsets: Some(Box::new(flat::flat(offset_bits))),
        values: None,
    })))
}

pub(super) fn offset_bits(variable: &Variable) -> Result<u64> {
    if variable.values.is_some() {
        return Err(Error::not_supported("buffer compression inside the variable encoding"));
    }
    match compression(child(variable.offsets.as_deref(), "variable")?)? {
        Compression::Flat(offsets) => match flat::bits(offsets)? {
            bits @ (32 | 64) => Ok(bits),
            bits => Err(Error::not_supported(format!("offsets of {bits} bits"))),
        },
        _ => Err(Error::not_supported("compressed offsets of variable values")),
    }
}

pub(super) fn decode_chunk(
    offset_bits: u64,
    bytes: &[u8],
    count: usize,
    take: Range<usize>,
    out: &mut Values,
) -> Result<()> {
    let end = offsets_end(offset_bits, 0, count, bytes.len())?;
    append(offset_bits, bytes, bytes, end as u64, take, out)
}

pub(super) fn decode_block(offset_bits: u64, bytes: &[u8], count: usize, out: &mut Values) -> Result<()> {
    let word = word_bytes(offset_bits);
    let mut header = read_offsets(offset_bits, bytes.get(..2 * word).unwrap_or_default());
    let (Some(found), Some(start)) = (header.next(), header.next()) else {
        return Err(Error::corrupt(format!("a block of variable values of {} bytes", bytes.len())));
    };
    // The first word of a 64-bit block is as wide as its offsets.
    if found != offset_bits {
        return Err(Error::corrupt(format!("offsets of {found} bits in a block, {offset_bits} expected")));
    }
    let end = offsets_end(offset_bits, 2 * word, count, bytes.len())?;
    let values = usize::try_from(start)
        .ok()
        .filter(|start| *start >= end)
        .and_then(|start| bytes.get(start..))
        .ok_or_else(|| Error::corrupt(format!("values at byte {start} of a block of {}", bytes.len())))?;
    append(offset_bits, &bytes[2 * word..end], values, 0, 0..count, out)
}

/// Calls `each` with the stored bytes of the values of `take`.
pub(super) fn for_each<'a>(
    offset_bits: u64,
    bytes: &'a [u8],
    count: usize,
    take: Range<usize>,
    mut each: impl FnMut(&'a [u8]) -> Result<()>,
) -> Result<()> {
    let first = offsets_end(offset_bits, 0, count, bytes.len())? as u64;
    let mut offsets = read_offsets(offset_bits, taken_offsets(offset_bits, bytes, &take));
    let mut start = offsets.next().unwrap_or(first);
    if start < first {
        return Err(bad_offset(start, first, bytes.len()));
    }
    for end in offsets {
        let value = to_range(start, end).and_then(|range| bytes.get(range));
        each(value.ok_or_else(|| bad_offset(end, start, bytes.len()))?)?;
        start = end;
    }
    Ok(())
}

/// A chunk of the values between `offsets`, which may start anywhere in `data`.
///
/// # Errors
/// `InvalidInput` when the chunk is longer than its offsets can say, or `offsets` do not fit `data`.
pub fn encode_variable_chunk(offsets: &[u64], data: &[u8], offset_bits: u64) -> Result<Vec<u8>> {
    let word = word_bytes(offset_bits);
    let (first, values) = slice(offsets, data)?;
    let start = (offsets.len().max(1) * word) as u64;
    let mut out = Vec::with_capacity(offsets.len() * word + values.len() + word);
    write_offsets(offsets, first, start, values.len(), offset_bits, &mut out)?;
    out.extend_from_slice(values);
    out.resize(out.len().next_multiple_of(word), PADDING);
    Ok(out)
}

/// A block of the values between `offsets`, which may start anywhere in `data`.
///
/// # Errors
/// As [`encode_variable_chunk`].
pub fn encode_variable_block(offsets: &[u64], data: &[u8], offset_bits: u64) -> Result<Vec<u8>> {
    let word = word_bytes(offset_bits);
    let (first, values) = slice(offsets, data)?;
    let start = ((2 + offsets.len().max(1)) * word) as u64;
    let mut out = Vec::with_capacity((offsets.len() + 3) * word + values.len());
    out.extend_from_slice(&offset_bits.to_le_bytes()[..word]);
    out.extend_from_slice(&start.to_le_bytes()[..word]);
    write_offsets(offsets, first, 0, values.len(), offset_bits, &mut out)?;
    out.extend_from_slice(values);
    Ok(out)
}

fn append(
    offset_bits: u64,
    offset_bytes: &[u8],
    values: &[u8],
    lowest: u64,
    take: Range<usize>,
    out: &mut Values,
) -> Result<()> {
    let (offsets, data) = out.variable_parts()?;
    let mut taken = read_offsets(offset_bits, taken_offsets(offset_bits, offset_bytes, &take));
    let first = taken.next().unwrap_or(lowest);
    if first < lowest {
        return Err(bad_offset(first, lowest, values.len()));
    }
    reserve(offsets, take.len())?;
    let base = data.len() as u64;
    let mut last = first;
    for offset in taken {
        if offset < last {
            return Err(bad_offset(offset, last, values.len()));
        }
        // `last` is checked against the values below; till then these may be wild.
        offsets.push(base.wrapping_add(offset - first));
        last = offset;
    }
    let taken = to_range(first, last)
        .and_then(|range| values.get(range))
        .ok_or_else(|| bad_offset(last, first, values.len()))?;
    reserve(data, taken.len())?;
    data.extend_from_slice(taken);
    Ok(())
}

fn word_bytes(offset_bits: u64) -> usize {
    if offset_bits == 32 { 4 } else { 8 }
}

fn to_range(start: u64, end: u64) -> Option<Range<usize>> {
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

/// Where the offsets of `count` values end that start at `start`.
fn offsets_end(offset_bits: u64, start: usize, count: usize, len: usize) -> Result<usize> {
    count
        .checked_add(1)
        .and_then(|n| n.checked_mul(word_bytes(offset_bits)))
        .and_then(|bytes| bytes.checked_add(start))
        .filter(|end| *end <= len)
        .ok_or_else(|| Error::corrupt(format!("{count} variable values in {len} bytes")))
}

/// The bytes of the offsets around `take`, of offsets that are known to be there.
fn taken_offsets<'a>(offset_bits: u64, bytes: &'a [u8], take: &Range<usize>) -> &'a [u8] {
    let word = word_bytes(offset_bits);
    &bytes[take.start * word..(take.end + 1) * word]
}

fn read_offsets(offset_bits: u64, bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (narrow, wide) = if offset_bits == 32 { (bytes, &[][..]) } else { (&[][..], bytes) };
    let narrow = narrow.as_chunks::<4>().0.iter().map(|word| u64::from(u32::from_le_bytes(*word)));
    narrow.chain(wide.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)))
}

fn slice<'a>(offsets: &[u64], data: &'a [u8]) -> Result<(u64, &'a [u8])> {
    let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
    let values = to_range(first, last).and_then(|range| data.get(range));
    Ok((first, values.ok_or_else(|| Error::invalid_input(format!("offsets {first}..{last} of {} bytes", data.len())))?))
}

fn write_offsets(offsets: &[u64], first: u64, start: u64, len: usize, bits: u64, out: &mut Vec<u8>) -> Result<()> {
    let limit = if bits == 32 { u64::from(u32::MAX) } else { u64::MAX };
    if limit - start < len as u64 {
        return Err(Error::invalid_input(format!("{len} bytes of values for offsets of {bits} bits")));
    }
    let word = word_bytes(bits);
    for offset in if offsets.is_empty() { &[0] } else { offsets } {
        out.extend_from_slice(&(offset.wrapping_sub(first).wrapping_add(start)).to_le_bytes()[..word]);
    }
    Ok(())
}

fn bad_offset(offset: u64, previous: u64, len: usize) -> Error {
    Error::corrupt(format!("offset {offset} of a variable value, after {previous}, in {len} bytes"))
}
