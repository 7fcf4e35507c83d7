//! Repetition and definition levels: 16-bit values in a block.

use super::{Values, bitpack, compression, decode_block, flat, rle};
use crate::error::{Error, Result};
use crate::format::proto::CompressiveEncoding;
use crate::format::proto::compressive_encoding::Compression;

/// A chunk has 16 bits for the size of its encoded levels.
const MAX_CHUNK_BYTES: usize = u16::MAX as usize;

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
    let (encoding, blocks) = encode_level_chunks(&[levels], allow_rle);
    (encoding, blocks.into_iter().next().unwrap_or_default())
}

/// The levels of the chunks of a page, which share one description: the smallest of the forms that the file's version has, of those that
/// fit every chunk.
pub fn encode_level_chunks(chunks: &[&[u16]], allow_rle: bool) -> (CompressiveEncoding, Vec<Vec<u8>>) {
    let words: Vec<Vec<u8>> =
        chunks.iter().map(|levels| levels.iter().flat_map(|level| level.to_le_bytes()).collect()).collect();
    let blocks = |encode: &dyn Fn(&[u8]) -> Vec<u8>| words.iter().map(|chunk| encode(chunk)).collect::<Vec<_>>();
    let cost = |blocks: &[Vec<u8>]| {
        let too_long = blocks.iter().any(|block| block.len() > MAX_CHUNK_BYTES);
        (too_long, blocks.iter().map(Vec::len).sum::<usize>())
    };
    // A width of 0 is not known to be understood out of line.
    let width = words.iter().map(|chunk| bitpack::bitpack_width(chunk, 2)).max().unwrap_or(0).max(1);
    let mut forms = vec![(
        bitpack::out_of_line_bitpacking(16, width),
        blocks(&|chunk| bitpack::out_of_line_bitpack_encode(chunk, 2, width)),
    )];
    if chunks.iter().all(|levels| levels.len() <= 1024) {
        forms.push((bitpack::inline_bitpacking(16), blocks(&|chunk| bitpack::inline_bitpack_encode(chunk, 2))));
    }
    if allow_rle {
        forms.push((rle::rle(16), blocks(&|chunk| rle::encode_rle_block(chunk, 2))));
    }
    // The first of equals: what every reader has.
    let mut best = (flat::flat(16), words.clone());
    for form in forms {
        if cost(&form.1) < cost(&best.1) {
            best = form;
        }
    }
    best
}

fn not_levels(found: &str) -> Error {
    Error::corrupt(format!("levels are 16-bit values, found {found}"))
}
