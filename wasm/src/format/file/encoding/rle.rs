//! Run length encoding: the value of each run, and its length in a byte. Longer runs are several entries.
//!
//! ```text
//! chunk: values | lengths, in a buffer each
//! block: bytes of the values u64 | values | lengths
//! ```

use std::ops::Range;

use super::{Values, byte_width, child, compression, describe, flat, reserve};
use crate::error::{Error, Result};
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::{CompressiveEncoding, Rle};

/// The description of runs of values of 8, 16, 32 or 64 bits.
pub fn rle(bits_per_value: u64) -> CompressiveEncoding {
    describe(Compression::Rle(Box::new(Rle {
        values: Some(Box::new(flat::flat(bits_per_value))),
        run_lengths: Some(Box::new(flat::flat(8))),
    })))
}

/// Bytes of a value: 1, 2, 4 or 8.
pub(super) fn value_bytes(rle: &Rle) -> Result<usize> {
    let values = child(rle.values.as_deref(), "run length")?;
    let lengths = child(rle.run_lengths.as_deref(), "run length")?;
    let (Compression::Flat(values), Compression::Flat(lengths)) = (compression(values)?, compression(lengths)?) else {
        return Err(Error::not_supported("run length encoding of compressed runs"));
    };
    match (flat::bits(values)?, flat::bits(lengths)?) {
        (bits @ (8 | 16 | 32 | 64), 8) => byte_width(bits),
        (bits, lengths) => Err(Error::not_supported(format!("runs of {bits} bits with lengths of {lengths} bits"))),
    }
}

pub(super) fn split_block(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (size, runs) = bytes
        .split_first_chunk::<8>()
        .ok_or_else(|| Error::corrupt(format!("a block of runs of {} bytes", bytes.len())))?;
    let size = u64::from_le_bytes(*size);
    usize::try_from(size)
        .ok()
        .and_then(|size| runs.split_at_checked(size))
        .ok_or_else(|| Error::corrupt(format!("{size} bytes of run values in a block of {}", bytes.len())))
}

pub(super) fn decode(
    width: usize,
    values: &[u8],
    lengths: &[u8],
    count: usize,
    take: Range<usize>,
    out: &mut Values,
) -> Result<()> {
    let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    if total != count as u64 || lengths.contains(&0) || values.len() as u64 != lengths.len() as u64 * width as u64 {
        return Err(Error::corrupt(format!(
            "{} runs of {total} values in {} bytes, {count} values of {width} bytes expected",
            lengths.len(),
            values.len()
        )));
    }
    let out = out.fixed_bytes(width)?;
    // At most 255 times the runs that are there.
    reserve(out, take.len().saturating_mul(width))?;
    let mut start = 0usize;
    for (value, length) in values.chunks_exact(width).zip(lengths) {
        let end = start + usize::from(*length);
        let taken = end.min(take.end).saturating_sub(start.max(take.start));
        repeat(value, taken, out);
        start = end;
        if start >= take.end {
            break;
        }
    }
    Ok(())
}

/// Values of `byte_width` bytes as the two buffers of a chunk.
pub fn encode_rle_chunk(values: &[u8], byte_width: usize) -> (Vec<u8>, Vec<u8>) {
    let (mut runs, mut lengths) = (Vec::new(), Vec::<u8>::new());
    let mut previous: &[u8] = &[];
    for value in values.chunks_exact(byte_width) {
        match lengths.last_mut() {
            Some(length) if *length < u8::MAX && previous == value => *length += 1,
            _ => {
                runs.extend_from_slice(value);
                lengths.push(1);
                previous = value;
            }
        }
    }
    (runs, lengths)
}

/// Values of `byte_width` bytes as a block.
pub fn encode_rle_block(values: &[u8], byte_width: usize) -> Vec<u8> {
    let (runs, lengths) = encode_rle_chunk(values, byte_width);
    let mut out = Vec::with_capacity(8 + runs.len() + lengths.len());
    out.extend_from_slice(&(runs.len() as u64).to_le_bytes());
    out.extend_from_slice(&runs);
    out.extend_from_slice(&lengths);
    out
}

fn repeat(value: &[u8], n: usize, out: &mut Vec<u8>) {
    if n == 0 {
        return;
    }
    let start = out.len();
    out.extend_from_slice(value);
    let mut done = 1;
    while done < n {
        let more = done.min(n - done);
        out.extend_from_within(start..start + more * value.len());
        done += more;
    }
}
