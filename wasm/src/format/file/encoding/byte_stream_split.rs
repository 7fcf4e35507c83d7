//! Byte stream split: the first bytes of all values, then their second bytes, and so on. Compresses better than values side by side.

use std::ops::Range;

use super::{Values, byte_width, child, compression, describe, flat, reserve};
use crate::error::{Error, Result};
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::{ByteStreamSplit, CompressiveEncoding};

/// Bytes of a value.
pub(super) fn value_bytes(split: &ByteStreamSplit) -> Result<usize> {
    match compression(child(split.values.as_deref(), "byte stream split")?)? {
        Compression::Flat(values) => byte_width(flat::bits(values)?),
        _ => Err(Error::not_supported("byte stream split of compressed values")),
    }
}

/// The description of values of `bits_per_value` bits whose bytes lie in planes.
pub fn byte_stream_split(bits_per_value: u64) -> CompressiveEncoding {
    describe(Compression::ByteStreamSplit(Box::new(ByteStreamSplit {
        values: Some(Box::new(flat::flat(bits_per_value))),
    })))
}

/// The first bytes of all values, the second ones, and so on.
pub fn byte_stream_split_encode(values: &[u8], byte_width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len());
    for plane in 0..byte_width {
        out.extend(values.iter().skip(plane).step_by(byte_width));
    }
    out
}

pub(super) fn decode(width: usize, bytes: &[u8], count: usize, take: Range<usize>, out: &mut Values) -> Result<()> {
    if count.checked_mul(width) != Some(bytes.len()) {
        return Err(Error::corrupt(format!("{count} split values of {width} bytes in {} bytes", bytes.len())));
    }
    let out = out.fixed_bytes(width)?;
    let old = out.len();
    reserve(out, take.len() * width)?;
    out.resize(old + take.len() * width, 0);
    for (plane, stream) in bytes.chunks_exact(count.max(1)).enumerate() {
        let values = out[old..].iter_mut().skip(plane).step_by(width);
        values.zip(&stream[take.clone()]).for_each(|(value, byte)| *value = *byte);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // V12
    #[test]
    fn the_bytes_of_a_value_are_a_plane_apart() {
        let mut out = Values::Fixed { byte_width: 2, bytes: vec![9, 9] };
        decode(2, &[1, 2, 3, 0x11, 0x12, 0x13], 3, 1..3, &mut out).unwrap();
        assert_eq!(out, Values::Fixed { byte_width: 2, bytes: vec![9, 9, 2, 0x12, 3, 0x13] });
        assert!(decode(2, &[1, 2, 3], 2, 0..2, &mut out).is_err());
        assert!(decode(2, &[1, 2, 3, 4], usize::MAX, 0..2, &mut out).is_err());
        assert!(decode(4, &[1, 2, 3, 4], 1, 0..1, &mut out).is_err());
    }

    #[test]
    fn split_values_come_back() {
        for byte_width in [4, 8] {
            let bytes: Vec<u8> = (0..byte_width as u8 * 7).map(|byte| byte.wrapping_mul(91)).collect();
            let split = byte_stream_split_encode(&bytes, byte_width);
            let encoding = byte_stream_split(byte_width as u64 * 8);
            let mut out = Values::for_encoding(&encoding).unwrap();
            crate::format::file::encoding::decode_chunk(&encoding, &[&split], 7, 0..7, &mut out).unwrap();
            assert_eq!(out, Values::Fixed { byte_width, bytes });
        }
    }
}
