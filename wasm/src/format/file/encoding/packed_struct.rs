//! Packed structs: the fields of a row side by side.
//!
//! ```text
//! packed struct           fields of a fixed number of bytes; the rows of a mini-block chunk side by side
//! variable packed struct  a row of a full-zip page: fields of a fixed number of bytes, or their length and that many bytes
//! ```
//!
//! A null row of the first has bytes, of the second none. Fields have no nulls.

use std::ops::Range;

use super::{ValueDecoder, Values, byte_width, child, compression, describe, flat, reserve};
use crate::error::{Error, Result};
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::field_encoding::Width;
use crate::format::proto::{CompressiveEncoding, FieldEncoding, PackedStruct, VariablePackedStruct};

/// The description of rows whose fields have so many bits.
pub fn packed_struct(bits_per_value: Vec<u64>) -> CompressiveEncoding {
    let rows = flat::flat(bits_per_value.iter().sum());
    describe(Compression::PackedStruct(Box::new(PackedStruct { bits_per_value, values: Some(Box::new(rows)) })))
}

/// The description of rows of fields of any length.
pub fn variable_packed_struct(fields: Vec<FieldEncoding>) -> CompressiveEncoding {
    describe(Compression::VariablePackedStruct(VariablePackedStruct { fields }))
}

/// The bytes of each field.
pub(super) fn widths(packed: &PackedStruct) -> Result<Vec<usize>> {
    let Compression::Flat(rows) = compression(child(packed.values.as_deref(), "packed struct")?)? else {
        return Err(Error::not_supported("a packed struct of compressed rows"));
    };
    let row = flat::bits(rows)?;
    let widths = packed.bits_per_value.iter().map(|bits| byte_width(*bits)).collect::<Result<Vec<_>>>()?;
    let total = widths.iter().try_fold(0u64, |total, width| total.checked_add(*width as u64 * 8));
    if widths.is_empty() || total != Some(row) {
        return Err(Error::corrupt(format!("fields of {:?} bits in a packed row of {row}", packed.bits_per_value)));
    }
    Ok(widths)
}

pub(super) fn decode(widths: &[usize], bytes: &[u8], count: usize, take: Range<usize>, out: &mut Values) -> Result<()> {
    let row: usize = widths.iter().sum();
    if count.checked_mul(row).is_none_or(|needed| bytes.len() < needed) {
        return Err(Error::corrupt(format!("{count} packed rows of {row} bytes in {}", bytes.len())));
    }
    let Values::Struct { fields, len } = out else { return Err(out.mismatch("packed rows")) };
    if fields.len() != widths.len() {
        return Err(Error::corrupt(format!("packed rows of {} fields, {} expected", widths.len(), fields.len())));
    }
    // In range of the buffer, hence no overflow.
    let rows = &bytes[take.start * row..take.end * row];
    let mut at = 0;
    for (field, width) in fields.iter_mut().zip(widths) {
        let field = field.fixed_bytes(*width)?;
        reserve(field, take.len() * width)?;
        rows.chunks_exact(row).for_each(|row| field.extend_from_slice(&row[at..at + width]));
        at += width;
    }
    *len += take.len();
    Ok(())
}

/// A field of a variable row.
pub(super) struct PackedField {
    width: FieldWidth,
    decoder: ValueDecoder,
}

#[derive(Clone, Copy)]
enum FieldWidth {
    Fixed(usize),
    /// Bytes of the length in front.
    Length(usize),
}

impl PackedField {
    pub(super) fn all(packed: &VariablePackedStruct) -> Result<Vec<PackedField>> {
        let field = |field: &crate::format::proto::FieldEncoding| {
            let decoder = ValueDecoder::new(child(field.value.as_ref(), "packed field")?)?;
            let width = match (field.width, decoder.fixed_bytes()) {
                (Some(Width::BitsPerValue(bits)), Some(bytes)) if bits == bytes as u64 * 8 => FieldWidth::Fixed(bytes),
                (Some(Width::BitsPerLength(bits @ (8 | 16 | 32 | 64))), None) => FieldWidth::Length(bits as usize / 8),
                (width, bytes) => {
                    return Err(Error::corrupt(format!(
                        "a packed field of {width:?} whose values have {bytes:?} bytes"
                    )));
                }
            };
            Ok(PackedField { width, decoder })
        };
        packed.fields.iter().map(field).collect()
    }
}

/// Appends one row.
pub(super) fn decode_row(packed: &[PackedField], row: &[u8], out: &mut Values) -> Result<()> {
    let Values::Struct { fields, len } = out else { return Err(out.mismatch("packed rows")) };
    if fields.len() != packed.len() {
        return Err(Error::corrupt(format!("packed rows of {} fields, {} expected", packed.len(), fields.len())));
    }
    let mut rest = row;
    let mut take = |size: usize| {
        let (value, after) = rest.split_at_checked(size).ok_or_else(|| {
            Error::corrupt(format!("a field of {size} bytes at the last {} of a packed row", rest.len()))
        })?;
        rest = after;
        Ok::<_, Error>(value)
    };
    for (PackedField { width, decoder }, field) in packed.iter().zip(fields) {
        let size = match *width {
            FieldWidth::Fixed(bytes) => bytes,
            FieldWidth::Length(bytes) => {
                let mut length = [0; 8];
                take(bytes)?.iter().zip(&mut length).for_each(|(from, to)| *to = *from);
                let length = u64::from_le_bytes(length);
                usize::try_from(length).map_err(|_| Error::corrupt(format!("a packed field of {length} bytes")))?
            }
        };
        decoder.decode(take(size)?, field)?;
    }
    if !rest.is_empty() {
        return Err(Error::corrupt(format!("{} bytes behind the last field of a packed row", rest.len())));
    }
    *len += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::flat::flat;
    use super::*;
    use crate::format::proto::{CompressiveEncoding, FieldEncoding};

    fn fixed(byte_width: usize, bytes: &[u8]) -> Values {
        Values::Fixed { byte_width, bytes: bytes.to_vec() }
    }

    fn packed(bits: &[u64], row: u64) -> CompressiveEncoding {
        let packed = PackedStruct { bits_per_value: bits.to_vec(), values: Some(Box::new(flat(row))) };
        CompressiveEncoding { compression: Some(Compression::PackedStruct(Box::new(packed))) }
    }

    // V13
    #[test]
    fn fields_of_packed_rows_come_apart() {
        let encoding = packed(&[16, 8], 24);
        let mut out = Values::for_encoding(&encoding).unwrap();
        super::super::decode_chunk(&encoding, &[&[1, 0, 2, 3, 0, 4, 5, 0, 6]], 3, 1..3, &mut out).unwrap();
        assert_eq!(out, Values::Struct { fields: vec![fixed(2, &[3, 0, 5, 0]), fixed(1, &[4, 6])], len: 2 });
        assert!(super::super::decode_chunk(&encoding, &[&[0; 8]], 3, 0..3, &mut out).is_err());
        assert!(Values::for_encoding(&packed(&[16, 8], 32)).is_err(), "fields are as wide as the row");
        assert!(Values::for_encoding(&packed(&[32, 1], 33)).is_err(), "LanceDB cannot read such a row");
        assert!(Values::for_encoding(&packed(&[], 0)).is_err());
    }

    // V13
    #[test]
    fn a_row_of_fields_with_lengths_ends_with_its_last_field() {
        let field = |value, width| FieldEncoding { value: Some(value), width: Some(width) };
        let fields =
            vec![field(flat(16), Width::BitsPerValue(16)), field(super::super::variable(32), Width::BitsPerLength(32))];
        let encoding = CompressiveEncoding {
            compression: Some(Compression::VariablePackedStruct(VariablePackedStruct { fields })),
        };
        let decoder = ValueDecoder::new(&encoding).unwrap();
        assert_eq!(decoder.fixed_bytes(), None);
        let mut out = Values::for_encoding(&encoding).unwrap();
        decoder.decode(&[1, 2, 2, 0, 0, 0, b'h', b'i'], &mut out).unwrap();
        decoder.push_null(&mut out).unwrap();
        let text = Values::Variable { offsets: vec![0, 2, 2], data: b"hi".to_vec() };
        assert_eq!(out, Values::Struct { fields: vec![fixed(2, &[1, 2, 0, 0]), text], len: 2 });
        for wrong in [&[1][..], &[1, 2, 2, 0, 0, 0, b'h'], &[1, 2, 0, 0, 0, 0, 9], &[1, 2, 255, 255, 255, 255]] {
            assert!(decoder.decode(wrong, &mut out.clone()).is_err(), "{wrong:?}");
        }
    }
}
