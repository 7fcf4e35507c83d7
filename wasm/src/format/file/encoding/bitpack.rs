//! Bitpacking: blocks of 1024 unsigned values of T bits, of which the low `width` bits are kept, in the FastLanes order.
//!
//! A block is `width` rows of 128 bytes. A row has a word of T bits for each of `1024 / T` lanes, and a lane is the stream of its T values,
//! LSB first, through its words. Value `ORDER[r / 8] * 16 + r % 8 * 128 + lane` is the lane's value `r`. All lanes shift alike, hence the
//! loops over lanes vectorise.
//!
//! ```text
//! inline (up to 1024 values): width in a word of T bits | block
//! out of line: blocks of 1024 values | the rest: words of T bits if that is shorter than a block, else one block
//! ```

use std::ops::{BitAnd, BitOr, BitOrAssign, Range, Shl, Shr};

use super::{Values, byte_width, child, compression, describe, flat, reserve};
use crate::error::{Error, Result};
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::{CompressiveEncoding, InlineBitpacking, OutOfLineBitpacking};

/// Values of a block.
const BLOCK: usize = 1024;
/// Bytes of one bit of each value of a block.
const ROW_BYTES: usize = BLOCK / 8;
const ORDER: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];
/// Up to so many values are picked out of a block; for more, all of it is unpacked.
const MAX_PICKS: usize = 16;
/// A width of 0 stores nothing, so nothing but this bounds a count.
const MAX_ZEROS: usize = 1 << 24;

/// A word of a block.
pub(super) trait Word:
    Copy
    + Default
    + PartialEq
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitOrAssign
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    const BITS: u32;
    const ONES: Self;
    /// `BITS / 8` bytes: a whole array is one load or store, where a slice would be a copy of some length.
    type Bytes: Copy;
    fn split(bytes: &[u8]) -> &[Self::Bytes];
    fn split_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
    fn load(bytes: Self::Bytes) -> Self;
    fn store(self) -> Self::Bytes;
    fn leading_zeros(self) -> u32;
}

macro_rules! word {
    ($($word:ty)*) => {$(
        impl Word for $word {
            const BITS: u32 = <$word>::BITS;
            const ONES: Self = <$word>::MAX;
            type Bytes = [u8; size_of::<$word>()];
            #[inline(always)]
            fn split(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks().0
            }
            #[inline(always)]
            fn split_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
                bytes.as_chunks_mut().0
            }
            #[inline(always)]
            fn load(bytes: Self::Bytes) -> Self {
                <$word>::from_le_bytes(bytes)
            }
            #[inline(always)]
            fn store(self) -> Self::Bytes {
                self.to_le_bytes()
            }
            #[inline(always)]
            fn leading_zeros(self) -> u32 {
                self.leading_zeros()
            }
        }
    )*};
}
word!(u8 u16 u32 u64);

/// `$body` with `$word` the type of words of `$bytes` bytes.
macro_rules! with_word {
    ($bytes:expr, $word:ident => $body:expr) => {
        match $bytes {
            1 => {
                type $word = u8;
                $body
            }
            2 => {
                type $word = u16;
                $body
            }
            4 => {
                type $word = u32;
                $body
            }
            _ => {
                type $word = u64;
                $body
            }
        }
    };
}

/// The description of chunks of bitpacked values of 8, 16, 32 or 64 bits.
pub fn inline_bitpacking(bits_per_value: u64) -> CompressiveEncoding {
    describe(Compression::InlineBitpacking(InlineBitpacking {
        uncompressed_bits_per_value: bits_per_value,
        values: None,
    }))
}

/// The description of a block of bitpacked values of 8, 16, 32 or 64 bits.
pub fn out_of_line_bitpacking(bits_per_value: u64, width: u32) -> CompressiveEncoding {
    describe(Compression::OutOfLineBitpacking(Box::new(OutOfLineBitpacking {
        uncompressed_bits_per_value: bits_per_value,
        values: Some(Box::new(flat::flat(u64::from(width)))),
    })))
}

/// Bits that the largest of the values needs. `byte_width` is 1, 2, 4 or 8.
pub fn bitpack_width(values: &[u8], byte_width: usize) -> u32 {
    fn width<W: Word>(values: &[u8]) -> u32 {
        let mut all = W::default();
        for value in W::split(values) {
            all |= W::load(*value);
        }
        W::BITS - all.leading_zeros()
    }
    with_word!(byte_width, W => width::<W>(values))
}

/// Bytes of `width` bits of each value of a block.
pub fn packed_bytes(width: u32) -> usize {
    ROW_BYTES * width as usize
}

/// Packs a chunk of up to 1024 values of 1, 2, 4 or 8 bytes with the least width.
pub fn inline_bitpack_encode(values: &[u8], byte_width: usize) -> Vec<u8> {
    assert!(values.len() <= BLOCK * byte_width, "a bitpacked chunk holds up to 1024 values");
    let width = bitpack_width(values, byte_width);
    let mut out = Vec::with_capacity(byte_width + packed_bytes(width));
    out.extend_from_slice(&u64::from(width).to_le_bytes()[..byte_width]);
    with_word!(byte_width, W => pack_bytes::<W>(values, width, &mut out));
    out
}

/// Packs a block of any number of values of 1, 2, 4 or 8 bytes, none of which needs more than `width` bits.
pub fn out_of_line_bitpack_encode(values: &[u8], byte_width: usize, width: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len().div_ceil(BLOCK * byte_width) * packed_bytes(width));
    for block in values.chunks(BLOCK * byte_width) {
        // Of the same length, the reader takes it for words.
        if block.len() < BLOCK * byte_width && block.len() <= packed_bytes(width) {
            out.extend_from_slice(block);
        } else {
            with_word!(byte_width, W => pack_bytes::<W>(block, width, &mut out));
        }
    }
    out
}

/// Bytes of an unpacked value: 1, 2, 4 or 8.
pub(super) fn inline_word_bytes(packed: &InlineBitpacking) -> Result<usize> {
    if packed.values.is_some() {
        return Err(Error::not_supported("buffer compression inside the inline bitpacking encoding"));
    }
    word_bytes(packed.uncompressed_bits_per_value)
}

/// Bytes of an unpacked value, and bits of a packed one.
pub(super) fn out_of_line_widths(packed: &OutOfLineBitpacking) -> Result<(usize, u32)> {
    let bytes = word_bytes(packed.uncompressed_bits_per_value)?;
    match compression(child(packed.values.as_deref(), "out-of-line bitpacking")?)? {
        Compression::Flat(values) if values.data.is_none() => {
            if values.bits_per_value > packed.uncompressed_bits_per_value {
                let unpacked = packed.uncompressed_bits_per_value;
                return Err(Error::corrupt(format!("{unpacked} bits packed into {}", values.bits_per_value)));
            }
            // At most 64.
            Ok((bytes, values.bits_per_value as u32))
        }
        _ => Err(Error::not_supported("out-of-line bitpacking of compressed values")),
    }
}

pub(super) fn decode_inline(
    packed: &InlineBitpacking,
    bytes: &[u8],
    count: usize,
    take: Range<usize>,
    out: &mut Values,
) -> Result<()> {
    let word = inline_word_bytes(packed)?;
    let out = out.fixed_bytes(word)?;
    with_word!(word, W => {
        if take.len() <= MAX_PICKS {
            let (packed, width) = inline_block::<W>(bytes, count)?;
            let mut picked = [W::default(); MAX_PICKS];
            for (slot, index) in picked.iter_mut().zip(take.clone()) {
                *slot = pick(packed, width, index);
            }
            return extend_bytes(out, &picked[..take.len()]);
        }
        let mut block = [W::default(); BLOCK];
        unpack_inline::<W>(bytes, count, &mut block)?;
        extend_bytes(out, block.get(take).unwrap_or_default())
    })
}

pub(super) fn decode_out_of_line(
    packed: &OutOfLineBitpacking,
    bytes: &[u8],
    count: usize,
    out: &mut Values,
) -> Result<()> {
    let (word, width) = out_of_line_widths(packed)?;
    let out = out.fixed_bytes(word)?;
    with_word!(word, W => unpack_out_of_line::<W>(bytes, width, count, |values| extend_bytes(out, values)))
}

/// As [`decode_inline`], of all values, without the detour over bytes.
pub(super) fn inline_words<W: Word>(bytes: &[u8], count: usize) -> Result<Vec<W>> {
    let mut block = [W::default(); BLOCK];
    unpack_inline(bytes, count, &mut block)?;
    Ok(block.get(..count).unwrap_or_default().to_vec())
}

/// As [`decode_out_of_line`], without the detour over bytes.
pub(super) fn out_of_line_words<W: Word>(bytes: &[u8], width: u32, count: usize) -> Result<Vec<W>> {
    let mut out = Vec::new();
    unpack_out_of_line::<W>(bytes, width, count, |values| {
        reserve(&mut out, values.len())?;
        out.extend_from_slice(values);
        Ok(())
    })?;
    Ok(out)
}

fn word_bytes(bits: u64) -> Result<usize> {
    match bits {
        8 | 16 | 32 | 64 => byte_width(bits),
        bits => Err(Error::not_supported(format!("bitpacking of values of {bits} bits"))),
    }
}

fn unpack_inline<W: Word>(bytes: &[u8], count: usize, out: &mut [W; BLOCK]) -> Result<()> {
    let (packed, width) = inline_block::<W>(bytes, count)?;
    unpack(packed, width, out);
    Ok(())
}

/// The packed values of a chunk and their width.
fn inline_block<W: Word>(bytes: &[u8], count: usize) -> Result<(&[u8], u32)> {
    let cut = || Error::corrupt(format!("{count} bitpacked values in {} bytes", bytes.len()));
    if count > BLOCK {
        return Err(cut());
    }
    let (header, packed) = bytes.split_at_checked(size_of::<W>()).ok_or_else(cut)?;
    let mut width = [0; 8];
    width[..header.len()].copy_from_slice(header);
    let width = u64::from_le_bytes(width);
    if width > u64::from(W::BITS) {
        return Err(Error::corrupt(format!("{} bits packed into {width}", W::BITS)));
    }
    // At most 64.
    let width = width as u32;
    Ok((packed.get(..packed_bytes(width)).ok_or_else(cut)?, width))
}

fn unpack_out_of_line<W: Word>(
    bytes: &[u8],
    width: u32,
    count: usize,
    mut each: impl FnMut(&[W]) -> Result<()>,
) -> Result<()> {
    let (blocks, tail) = (count / BLOCK, count % BLOCK);
    let cut = || Error::corrupt(format!("{count} values of {width} bits packed in {} bytes", bytes.len()));
    if width == 0 && count > MAX_ZEROS {
        return Err(cut());
    }
    let whole = blocks.checked_mul(packed_bytes(width)).ok_or_else(cut)?;
    let (whole, rest) = bytes.split_at_checked(whole).ok_or_else(cut)?;
    let mut block = [W::default(); BLOCK];
    for i in 0..blocks {
        unpack(&whole[i * packed_bytes(width)..][..packed_bytes(width)], width, &mut block);
        each(&block)?;
    }
    if tail == 0 {
        return Ok(());
    }
    if rest.len() == tail * size_of::<W>() {
        for (slot, word) in block.iter_mut().zip(W::split(rest)) {
            *slot = W::load(*word);
        }
    } else {
        unpack(rest.get(..packed_bytes(width)).ok_or_else(cut)?, width, &mut block);
    }
    each(&block[..tail])
}

fn extend_bytes<W: Word>(out: &mut Vec<u8>, words: &[W]) -> Result<()> {
    let start = out.len();
    reserve(out, size_of_val(words))?;
    out.resize(start + size_of_val(words), 0);
    for (bytes, word) in W::split_mut(&mut out[start..]).iter_mut().zip(words) {
        *bytes = word.store();
    }
    Ok(())
}

fn pack_bytes<W: Word>(values: &[u8], width: u32, out: &mut Vec<u8>) {
    let mut block = [W::default(); BLOCK];
    for (slot, value) in block.iter_mut().zip(W::split(values)) {
        *slot = W::load(*value);
    }
    let start = out.len();
    out.resize(start + packed_bytes(width), 0);
    pack(&block, width, &mut out[start..]);
}

/// Index of value `row` of lane 0.
fn first_of_row(row: u32) -> usize {
    let row = row as usize;
    ORDER[row / 8 % 8] * 16 + row % 8 * 128
}

/// `packed` has `packed_bytes(width)` bytes; `width` is at most that of a word.
fn unpack<W: Word>(packed: &[u8], width: u32, out: &mut [W; BLOCK]) {
    if width == 0 {
        out.fill(W::default());
        return;
    }
    let lanes = BLOCK / W::BITS as usize;
    let mask = W::ONES >> (W::BITS - width);
    let words = |row: u32| W::split(&packed[row as usize * ROW_BYTES..][..ROW_BYTES]);
    for row in 0..W::BITS {
        let (word, shift) = (row * width / W::BITS, row * width % W::BITS);
        let slots = out[first_of_row(row)..][..lanes].iter_mut();
        let low = words(word);
        if shift + width <= W::BITS {
            for (slot, low) in slots.zip(low) {
                *slot = (W::load(*low) >> shift) & mask;
            }
        } else {
            for ((slot, low), high) in slots.zip(low).zip(words(word + 1)) {
                *slot = (W::load(*low) >> shift | W::load(*high) << (W::BITS - shift)) & mask;
            }
        }
    }
}

/// One value of what [`unpack`] unpacks.
fn pick<W: Word>(packed: &[u8], width: u32, index: usize) -> W {
    if width == 0 {
        return W::default();
    }
    let lanes = BLOCK / W::BITS as usize;
    let (in_row, lane) = (index % 128, index % lanes);
    // `ORDER` is its own inverse.
    let row = (ORDER[(in_row - lane) / 16] * 8 + index / 128) as u32;
    let (word, shift) = (row * width / W::BITS, row * width % W::BITS);
    let at = |word: u32| W::split(packed).get(word as usize * lanes + lane).map_or(W::default(), |word| W::load(*word));
    let low = at(word) >> shift;
    let value = if shift + width <= W::BITS { low } else { low | at(word + 1) << (W::BITS - shift) };
    value & (W::ONES >> (W::BITS - width))
}

/// The inverse of [`unpack`], into zeros.
fn pack<W: Word>(values: &[W; BLOCK], width: u32, packed: &mut [u8]) {
    if width == 0 {
        return;
    }
    let lanes = BLOCK / W::BITS as usize;
    let mask = W::ONES >> (W::BITS - width);
    for row in 0..W::BITS {
        let (word, shift) = (row * width / W::BITS, row * width % W::BITS);
        let values = &values[first_of_row(row)..][..lanes];
        let low = W::split_mut(&mut packed[word as usize * ROW_BYTES..][..ROW_BYTES]);
        for (low, value) in low.iter_mut().zip(values) {
            *low = (W::load(*low) | (*value & mask) << shift).store();
        }
        if shift + width > W::BITS {
            let high = W::split_mut(&mut packed[(word as usize + 1) * ROW_BYTES..][..ROW_BYTES]);
            for (high, value) in high.iter_mut().zip(values) {
                *high = ((*value & mask) >> (W::BITS - shift)).store();
            }
        }
    }
}
