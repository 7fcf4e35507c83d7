//! General compression: the first buffer of the values, a block, or one value, as LZ4 or zstd.
//!
//! ```text
//! LZ4:  size u32 | a block without a frame
//! zstd: size u64 | frames        (old files: a frame without a size in front)
//! ```
//!
//! The size is a claim. It is at most what the values inside can need, and never more than [`MAX_BYTES`]. LZ4 cannot expand more than
//! 255 times, which is checked before memory is taken. zstd can: its output grows as it is decoded and stops at the size. A frame may
//! ask for a window of [`MIN_WINDOW`], or of its size up to [`MAX_WINDOW`].

use std::io::Read;
use std::ops::Range;

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use super::{
    Values, byte_stream_split, child, compression, describe, fixed_size_list, flat, packed_struct, reserve, rle,
};
use crate::error::{Error, Result};
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::{BufferCompression, CompressionScheme, CompressiveEncoding, General};

/// The most that a compressed buffer may expand to: a single value can be as large.
const MAX_BYTES: u64 = 1 << 30;
const MIN_WINDOW: u64 = 8 << 20;
const MAX_WINDOW: u64 = 128 << 20;
const LZ4_MAX_RATIO: u64 = 255;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The description of `values` whose first buffer, or whose block, is compressed with LZ4.
pub fn general_lz4(values: CompressiveEncoding) -> CompressiveEncoding {
    describe(Compression::General(Box::new(General {
        compression: Some(BufferCompression { scheme: CompressionScheme::Lz4 as i32, level: None }),
        values: Some(Box::new(values)),
    })))
}

/// A buffer as LZ4.
///
/// # Errors
/// `InvalidInput` for a buffer of 4 GiB or more.
pub fn encode_general_lz4(bytes: &[u8]) -> Result<Vec<u8>> {
    let size = u32::try_from(bytes.len())
        .map_err(|_| Error::invalid_input(format!("{} bytes to compress at once", bytes.len())))?;
    let mut out = size.to_le_bytes().to_vec();
    out.extend_from_slice(&lz4_flex::block::compress(bytes));
    Ok(out)
}

/// The encoding of what is compressed.
pub(super) fn inner(general: &General) -> Result<&CompressiveEncoding> {
    scheme(general)?;
    let values = child(general.values.as_deref(), "general")?;
    match compression(values)? {
        Compression::General(_) => Err(Error::not_supported("general compression of compressed values")),
        _ => Ok(values),
    }
}

pub(super) fn scheme(general: &General) -> Result<CompressionScheme> {
    let scheme = general.compression.as_ref().map_or(0, |compression| compression.scheme);
    match CompressionScheme::try_from(scheme) {
        Ok(scheme @ (CompressionScheme::Lz4 | CompressionScheme::Zstd)) => Ok(scheme),
        _ => Err(Error::not_supported(format!("compression scheme {scheme}"))),
    }
}

pub(super) fn decode_chunk(
    general: &General,
    buffers: &[&[u8]],
    count: usize,
    take: Range<usize>,
    out: &mut Values,
) -> Result<()> {
    let values = inner(general)?;
    let Some((first, rest)) = buffers.split_first() else {
        return Err(Error::corrupt("a compressed chunk without a value buffer"));
    };
    let plain = Decompressor::new(scheme(general)?).decompress(first, first_buffer_limit(values, count as u64)?)?;
    let mut plain_buffers = vec![plain.as_slice()];
    plain_buffers.extend_from_slice(rest);
    super::decode_chunk(values, &plain_buffers, count, take, out)
}

pub(super) fn decode_block(general: &General, bytes: &[u8], count: usize) -> Result<Values> {
    let values = inner(general)?;
    let plain = Decompressor::new(scheme(general)?).decompress(bytes, block_limit(values, count as u64)?)?;
    super::decode_block(values, &plain, count)
}

/// Keeps what one decompression can leave to the next.
pub(super) enum Decompressor {
    Lz4,
    Zstd(Box<FrameDecoder>),
}

impl Decompressor {
    pub(super) fn new(scheme: CompressionScheme) -> Decompressor {
        match scheme {
            CompressionScheme::Zstd => Decompressor::Zstd(Box::new(FrameDecoder::new())),
            CompressionScheme::Lz4 | CompressionScheme::Unspecified => Decompressor::Lz4,
        }
    }

    /// One value of its own: nothing is known about its size.
    pub(super) fn decompress_value(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        self.decompress(bytes, MAX_BYTES)
    }

    fn decompress(&mut self, bytes: &[u8], limit: u64) -> Result<Vec<u8>> {
        match self {
            Decompressor::Lz4 => lz4(bytes, limit),
            Decompressor::Zstd(decoder) => zstd(decoder, bytes, limit),
        }
    }
}

fn lz4(bytes: &[u8], limit: u64) -> Result<Vec<u8>> {
    let (size, block) = bytes
        .split_first_chunk::<4>()
        .ok_or_else(|| Error::corrupt(format!("an LZ4 buffer of {} bytes", bytes.len())))?;
    let size = u32::from_le_bytes(*size);
    let most = limit.min((block.len() as u64).saturating_mul(LZ4_MAX_RATIO));
    if u64::from(size) > most {
        return Err(Error::corrupt(format!("an LZ4 buffer that says it has {size} bytes, at most {most} possible")));
    }
    let size = size as usize;
    let mut out = Vec::new();
    reserve(&mut out, size)?;
    out.resize(size, 0);
    match lz4_flex::block::decompress_into(block, &mut out) {
        Ok(written) if written == size => Ok(out),
        Ok(written) => Err(Error::corrupt(format!("an LZ4 buffer of {written} bytes, {size} expected"))),
        Err(error) => Err(Error::corrupt(format!("an LZ4 buffer: {error}"))),
    }
}

fn zstd(decoder: &mut FrameDecoder, bytes: &[u8], limit: u64) -> Result<Vec<u8>> {
    // A size that reads like the magic would be far above the limit.
    let (size, mut frames) = match bytes.split_first_chunk::<8>() {
        _ if bytes.starts_with(&ZSTD_MAGIC) => (None, bytes),
        Some((size, frames)) => (Some(u64::from_le_bytes(*size)), frames),
        None => return Err(Error::corrupt(format!("a zstd buffer of {} bytes", bytes.len()))),
    };
    let most = size.unwrap_or(limit);
    if most > limit {
        return Err(Error::corrupt(format!("a zstd buffer that says it has {most} bytes, at most {limit} possible")));
    }
    decoder.set_max_window_size(most.clamp(MIN_WINDOW, MAX_WINDOW));
    let mut out = Vec::new();
    while !frames.is_empty() {
        let before = frames.len();
        // One byte more than there may be shows that there is more.
        let room = most.saturating_add(1) - out.len() as u64;
        let failed = |error: &dyn std::fmt::Display| Error::corrupt(format!("a zstd buffer: {error}"));
        StreamingDecoder::new_with_decoder(&mut frames, &mut *decoder)
            .map_err(|error| failed(&error))?
            .take(room)
            .read_to_end(&mut out)
            .map_err(|error| failed(&error))?;
        if out.len() as u64 > most || frames.len() == before {
            return Err(Error::corrupt(format!("a zstd buffer of more than {most} bytes")));
        }
    }
    match size {
        Some(size) if size != out.len() as u64 => {
            Err(Error::corrupt(format!("a zstd buffer of {} bytes, {size} expected", out.len())))
        }
        _ => Ok(out),
    }
}

/// Bytes that the first buffer of a chunk of `count` values can have.
fn first_buffer_limit(encoding: &CompressiveEncoding, count: u64) -> Result<u64> {
    let limit = match compression(encoding)? {
        Compression::Flat(values) => flat::size(flat::bits(values)?, count)?,
        Compression::ByteStreamSplit(split) => flat::size(byte_stream_split::value_bytes(split)? as u64 * 8, count)?,
        // A run each.
        Compression::Rle(runs) => flat::size(rle::value_bytes(runs)? as u64 * 8, count)?,
        Compression::FixedSizeList(list) => {
            let items = count.saturating_mul(fixed_size_list::dimension(list)? as u64);
            match list.has_validity {
                true => items.div_ceil(8),
                false => first_buffer_limit(child(list.values.as_deref(), "fixed size list")?, items)?,
            }
        }
        Compression::PackedStruct(packed) => {
            count.saturating_mul(packed_struct::widths(packed)?.iter().sum::<usize>() as u64)
        }
        // A word of the width and 1024 values of 64 bits.
        Compression::InlineBitpacking(_) => 8 + 1024 * 8,
        _ => MAX_BYTES,
    };
    Ok(limit.min(MAX_BYTES))
}

/// Bytes that a block of `count` values can have.
fn block_limit(encoding: &CompressiveEncoding, count: u64) -> Result<u64> {
    match compression(encoding)? {
        Compression::Rle(runs) => {
            let run = (rle::value_bytes(runs)? + 1) as u64;
            Ok(count.saturating_mul(run).saturating_add(8).min(MAX_BYTES))
        }
        _ => first_buffer_limit(encoding, count),
    }
}
