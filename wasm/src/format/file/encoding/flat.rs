//! Flat: values side by side, little endian; booleans as bits, LSB first.

use std::ops::Range;

use super::{Values, bitmap, byte_width, describe, reserve};
use crate::error::{Error, Result};
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::{CompressiveEncoding, Flat};

/// The description of values of `bits_per_value` bits: 1, or a multiple of 8.
pub fn flat(bits_per_value: u64) -> CompressiveEncoding {
    describe(Compression::Flat(Flat { bits_per_value, data: None }))
}

/// 1, or a multiple of 8 that a value may have.
pub(super) fn bits(flat: &Flat) -> Result<u64> {
    if flat.data.is_some() {
        return Err(Error::not_supported("buffer compression inside the flat encoding"));
    }
    if flat.bits_per_value != 1 {
        byte_width(flat.bits_per_value)?;
    }
    Ok(flat.bits_per_value)
}

pub(super) fn decode(bits: u64, bytes: &[u8], count: usize, take: Range<usize>, out: &mut Values) -> Result<()> {
    let needed = size(bits, count as u64)?;
    if (bytes.len() as u64) < needed {
        return Err(Error::corrupt(format!("{count} flat values of {bits} bits in {} bytes", bytes.len())));
    }
    if bits == 1 {
        let Values::Bits { bitmap, len } = out else { return Err(out.mismatch("booleans")) };
        reserve(bitmap, take.len() / 8 + 1)?;
        bitmap::append(bitmap, *len, bytes, take.start, take.len());
        *len += take.len();
        return Ok(());
    }
    let width = byte_width(bits)?;
    // In range of the buffer, hence no overflow.
    let taken = &bytes[take.start * width..take.end * width];
    // A full-zip page has a byte for a boolean.
    if let (Values::Bits { bitmap, len }, 1) = (&mut *out, width) {
        for value in taken {
            bitmap::push(bitmap, *len, *value != 0);
            *len += 1;
        }
        return Ok(());
    }
    let out = out.fixed_bytes(width)?;
    reserve(out, taken.len())?;
    out.extend_from_slice(taken);
    Ok(())
}

/// Bytes of `count` values.
pub(super) fn size(bits: u64, count: u64) -> Result<u64> {
    count
        .checked_mul(bits)
        .map(|bits| bits.div_ceil(8))
        .ok_or_else(|| Error::corrupt(format!("{count} values of {bits} bits")))
}
