//! Repetition and definition levels: 16-bit values in a block.

use super::{Values, bitpack, compression, decode_block, flat, rle};
use crate::error::{Error, Result};
use crate::format::proto::CompressiveEncoding;
use crate::format::proto::compressive_encoding::Compression;

/// The levels of a chunk, as [`decode_block`] of 16-bit values.
///
/// # Errors
/// As [`decode_block`]; also when the encoding is not one of 16-bit values.
pub fn decode_levels(encoding: &CompressiveEncoding, bytes: &[u8], count: usize) -> Result<Vec<u16>> {
    match compression(encoding)? {
        Compression::InlineBitpacking(packed) if bitpack::inline_word_bytes(packed)? == 2 && count > 0 => {
            bitpack::inline_words(bytes, count)
        }
        Compression::OutOfLineBitpacking(packed) => match bitpack::out_of_line_widths(packed)? {
            (2, width) => bitpack::out_of_line_words(bytes, width, count),
            (bytes, _) => Err(not_levels(&format!("values of {bytes} bytes"))),
        },
        _ => match decode_block(encoding, bytes, count)? {
            Values::Fixed { byte_width: 2, bytes } => {
                Ok(bytes.as_chunks::<2>().0.iter().map(|level| u16::from_le_bytes(*level)).collect())
            }
            Values::Fixed { byte_width, .. } => Err(not_levels(&format!("values of {byte_width} bytes"))),
            _ => Err(not_levels("no integers")),
        },
    }
}

/// Levels as a block: the smallest of the forms that the file's version has.
pub fn encode_levels(levels: &[u16], allow_rle: bool) -> (CompressiveEncoding, Vec<u8>) {
    let bytes: Vec<u8> = levels.iter().flat_map(|level| level.to_le_bytes()).collect();
    let mut best = (flat::flat(16), bytes.clone());
    let mut offer = |encoding: CompressiveEncoding, block: Vec<u8>| {
        if block.len() < best.1.len() {
            best = (encoding, block);
        }
    };
    let width = bitpack::bitpack_width(&bytes, 2);
    // A width of 0 is not known to be understood out of line.
    let packed_width = width.max(1);
    offer(
        bitpack::out_of_line_bitpacking(16, packed_width),
        bitpack::out_of_line_bitpack_encode(&bytes, 2, packed_width),
    );
    if levels.len() <= 1024 {
        offer(bitpack::inline_bitpacking(16), bitpack::inline_bitpack_encode(&bytes, 2));
    }
    if allow_rle {
        offer(rle::rle(16), rle::encode_rle_block(&bytes, 2));
    }
    best
}

fn not_levels(found: &str) -> Error {
    Error::corrupt(format!("levels are 16-bit values, found {found}"))
}
