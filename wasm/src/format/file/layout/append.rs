//! Values put together: appended with a change of shape, taken by index from a dictionary, repeated.

use std::ops::Range;

use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::format::file::encoding::{Values, bitmap};

/// Empty values of the shape of a leaf type.
pub fn empty_values(data_type: &DataType) -> Result<Values> {
    Ok(match data_type {
        DataType::Null => Values::Nulls { len: 0 },
        DataType::Struct(fields) if fields.is_empty() => Values::Nulls { len: 0 },
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| empty_values(field.data_type()));
            Values::Struct { fields: fields.collect::<Result<_>>()?, len: 0 }
        }
        DataType::Boolean => Values::Bits { bitmap: Vec::new(), len: 0 },
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
            Values::Variable { offsets: vec![0], data: Vec::new() }
        }
        DataType::FixedSizeBinary(width) if *width > 0 => {
            Values::Fixed { byte_width: width.unsigned_abs() as usize, bytes: Vec::new() }
        }
        DataType::FixedSizeList(item, dimension) if *dimension > 0 => Values::FixedSizeList {
            dimension: dimension.unsigned_abs() as usize,
            len: 0,
            validity: None,
            items: match empty_values(item.data_type())? {
                items @ (Values::Fixed { .. } | Values::Bits { .. } | Values::FixedSizeList { .. }) => Box::new(items),
                _ => return Err(Error::not_supported(format!("type {data_type}"))),
            },
        },
        other => match other.primitive_width() {
            Some(byte_width) => Values::Fixed { byte_width, bytes: Vec::new() },
            None => return Err(Error::not_supported(format!("type {other}"))),
        },
    })
}

/// Whether one can be decoded into the other without conversion.
pub fn has_same_shape(a: &Values, b: &Values) -> bool {
    match (a, b) {
        (Values::Fixed { byte_width: a, .. }, Values::Fixed { byte_width: b, .. }) => a == b,
        (Values::Bits { .. }, Values::Bits { .. })
        | (Values::Variable { .. }, Values::Variable { .. })
        | (Values::Nulls { .. }, Values::Nulls { .. }) => true,
        (
            Values::FixedSizeList { dimension: a, validity: a_validity, items: a_items, .. },
            Values::FixedSizeList { dimension: b, validity: b_validity, items: b_items, .. },
        ) => a == b && a_validity.is_some() == b_validity.is_some() && has_same_shape(a_items, b_items),
        (Values::Struct { fields: a, .. }, Values::Struct { fields: b, .. }) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| has_same_shape(a, b))
        }
        _ => false,
    }
}

/// Values as an error names them.
pub fn describe(values: &Values) -> String {
    match values {
        Values::Fixed { byte_width, .. } => format!("{byte_width}-byte values"),
        Values::Bits { .. } => "booleans".to_owned(),
        Values::Variable { .. } => "values of variable length".to_owned(),
        Values::FixedSizeList { dimension, items, .. } => format!("lists of {dimension} {}", describe(items)),
        Values::Struct { fields, .. } => format!("rows of {} fields", fields.len()),
        Values::Nulls { .. } => "nulls".to_owned(),
    }
}

fn out_of_bounds() -> Error {
    Error::corrupt("fewer values than expected")
}

/// Appends `from[range]`, converted to the shape of `to`.
pub fn append(to: &mut Values, from: &Values, range: Range<usize>) -> Result<()> {
    let count = range.end.saturating_sub(range.start);
    if range.end > from.len() {
        return Err(out_of_bounds());
    }
    match (to, from) {
        (Values::Fixed { byte_width, bytes }, Values::Fixed { byte_width: from_width, bytes: from_bytes })
            if byte_width == from_width =>
        {
            let source = from_bytes.get(range.start * from_width..range.end * from_width);
            bytes.extend_from_slice(source.ok_or_else(out_of_bounds)?);
        }
        (Values::Bits { bitmap: bits, len }, Values::Bits { bitmap: from_bits, .. }) => {
            append_bits(bits, *len, from_bits, range.start, count)?;
            *len += count;
        }
        // A boolean of a full-zip page takes a byte.
        (Values::Bits { bitmap: bits, len }, Values::Fixed { byte_width: 1, bytes }) => {
            for byte in bytes.get(range).ok_or_else(out_of_bounds)? {
                bitmap::push(bits, *len, *byte != 0);
                *len += 1;
            }
        }
        (Values::Variable { offsets, data }, Values::Variable { offsets: from_offsets, data: from_data }) => {
            let ends = from_offsets.get(range.start..=range.end).ok_or_else(out_of_bounds)?;
            let (first, last) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
            let base = data.len() as u64;
            let source = from_data.get(first as usize..last as usize).ok_or_else(out_of_bounds)?;
            data.extend_from_slice(source);
            offsets.extend(ends.iter().skip(1).map(|end| base + (end.saturating_sub(first))));
        }
        (
            Values::FixedSizeList { dimension, len, validity, items },
            Values::FixedSizeList { dimension: from_dimension, validity: from_validity, items: from_items, .. },
        ) if dimension == from_dimension => {
            let item_range = range.start * *dimension..range.end * *dimension;
            let old = *len * *dimension;
            let added = item_range.end - item_range.start;
            if from_validity.is_some() && validity.is_none() {
                let mut bits = Vec::new();
                bitmap::append_run(&mut bits, 0, old, true);
                *validity = Some(bits);
            }
            match (validity, from_validity) {
                (Some(bits), Some(from_bits)) => append_bits(bits, old, from_bits, item_range.start, added)?,
                (Some(bits), None) => bitmap::append_run(bits, old, added, true),
                (None, _) => {}
            }
            append(items, from_items, item_range)?;
            *len += count;
        }
        (Values::Struct { fields, len }, Values::Struct { fields: from_fields, .. })
            if fields.len() == from_fields.len() =>
        {
            for (field, from) in fields.iter_mut().zip(from_fields) {
                append(field, from, range.clone())?;
            }
            *len += count;
        }
        (to, Values::Nulls { .. }) => push_nulls(to, count)?,
        (to, from) => {
            return Err(Error::corrupt(format!("{} in a column of {}", describe(from), describe(to))));
        }
    }
    Ok(())
}

/// Appends values of `dictionary` by index.
pub fn gather(to: &mut Values, dictionary: &Values, indices: &Values, take: Range<usize>) -> Result<()> {
    let len = dictionary.len();
    match (to, dictionary) {
        (Values::Fixed { byte_width, bytes }, Values::Fixed { byte_width: width, bytes: source })
            if byte_width == width =>
        {
            bytes.reserve(take.len() * *width);
            for index in Indices::new(indices, take)? {
                let at = checked_index(index, len)? * *width;
                bytes.extend_from_slice(source.get(at..at + *width).ok_or_else(out_of_bounds)?);
            }
        }
        (Values::Variable { offsets, data }, Values::Variable { offsets: source_offsets, data: source }) => {
            offsets.reserve(take.len());
            for index in Indices::new(indices, take)? {
                let index = checked_index(index, len)?;
                let [start, end] =
                    source_offsets.get(index..index + 2).and_then(|x| x.try_into().ok()).ok_or_else(out_of_bounds)?;
                let value = source.get(start as usize..end as usize).ok_or_else(out_of_bounds)?;
                // Few bytes of indices may take a long value many times.
                if data.try_reserve(value.len()).is_err() {
                    return Err(Error::not_supported(format!(
                        "{} bytes of values of a dictionary at once",
                        data.len()
                    )));
                }
                data.extend_from_slice(value);
                offsets.push(data.len() as u64);
            }
        }
        (to, _) => {
            for index in Indices::new(indices, take)? {
                let index = checked_index(index, len)?;
                append(to, dictionary, index..index + 1)?;
            }
        }
    }
    Ok(())
}

/// An index that lies in a dictionary of `len` values.
pub fn checked_index(index: u64, len: usize) -> Result<usize> {
    usize::try_from(index)
        .ok()
        .filter(|index| *index < len)
        .ok_or_else(|| Error::corrupt(format!("index {index} into a dictionary of {len} values")))
}

/// Unsigned indices of 1, 2, 4 or 8 bytes.
pub struct Indices<'a> {
    chunks: std::slice::ChunksExact<'a, u8>,
}

impl Indices<'_> {
    pub fn new(values: &Values, take: Range<usize>) -> Result<Indices<'_>> {
        match values {
            Values::Fixed { byte_width: byte_width @ (1 | 2 | 4 | 8), bytes } => {
                let bytes = bytes.get(take.start * byte_width..take.end * byte_width).ok_or_else(out_of_bounds)?;
                Ok(Indices { chunks: bytes.chunks_exact(*byte_width) })
            }
            other => Err(Error::corrupt(format!("{} as dictionary indices", describe(other)))),
        }
    }
}

impl Iterator for Indices<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let chunk = self.chunks.next()?;
        Some(match *chunk {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            _ => u64::from_le_bytes(chunk.try_into().unwrap_or_default()),
        })
    }
}

/// The bytes of one value.
pub fn value_bytes(values: &Values, index: usize) -> Result<&[u8]> {
    let bytes = match values {
        Values::Fixed { byte_width, bytes } => bytes.get(index * byte_width..(index + 1) * byte_width),
        Values::Variable { offsets, data } => match offsets.get(index..index + 2) {
            Some(&[start, end]) => data.get(start as usize..end as usize),
            _ => None,
        },
        Values::Bits { bitmap, len } if index < *len => {
            bitmap.get(index / 8).map(|byte| if byte >> (index % 8) & 1 == 1 { &[1][..] } else { &[0][..] })
        }
        // As a byte.
        Values::Bits { bitmap, len } => {
            let byte = bitmap.get(index / 8).filter(|_| index < *len);
            byte.map(|byte| if byte >> (index % 8) & 1 == 1 { &[1][..] } else { &[0] })
        }
        Values::FixedSizeList { .. } | Values::Struct { .. } | Values::Nulls { .. } => None,
    };
    bytes.ok_or_else(out_of_bounds)
}

/// One value of the shape of `like`.
pub fn scalar_values(like: &Values, scalar: &[u8]) -> Result<Values> {
    let wrong = || Error::corrupt(format!("a constant of {} bytes in a column of {}", scalar.len(), describe(like)));
    match like {
        Values::Fixed { byte_width, .. } if scalar.len() == *byte_width => {
            Ok(Values::Fixed { byte_width: *byte_width, bytes: scalar.to_vec() })
        }
        Values::Bits { .. } => match scalar {
            [byte] => Ok(Values::Bits { bitmap: vec![u8::from(*byte != 0)], len: 1 }),
            _ => Err(wrong()),
        },
        Values::Variable { .. } => {
            Ok(Values::Variable { offsets: vec![0, scalar.len() as u64], data: scalar.to_vec() })
        }
        Values::FixedSizeList { dimension, items, .. } => match &**items {
            Values::Fixed { byte_width, .. } if scalar.len() == dimension * byte_width => Ok(Values::FixedSizeList {
                dimension: *dimension,
                len: 1,
                validity: None,
                items: Box::new(Values::Fixed { byte_width: *byte_width, bytes: scalar.to_vec() }),
            }),
            _ => Err(wrong()),
        },
        Values::Fixed { .. } | Values::Struct { .. } | Values::Nulls { .. } => Err(wrong()),
    }
}

/// Makes room for `count` times `width` bytes that no bytes of the file stand for.
fn reserve(bytes: &mut Vec<u8>, count: usize, width: usize) -> Result<()> {
    count
        .checked_mul(width)
        .filter(|needed| bytes.try_reserve(*needed).is_ok())
        .map(|_| ())
        .ok_or_else(|| Error::corrupt(format!("{count} values of {width} bytes do not fit into memory")))
}

/// Makes room for `count` values that are decoded of `byte_count` bytes, where that is no more than a guess: nothing is claimed.
pub fn reserve_for(values: &mut Values, count: usize, byte_count: usize) {
    // Bit-packed zeros and long runs unfold further, into what doubling gives.
    let limit = byte_count.saturating_mul(16);
    let room = |needed: usize| needed.min(limit);
    // A guess that does not fit is none.
    let _ = match values {
        Values::Fixed { byte_width, bytes } => bytes.try_reserve(room(count.saturating_mul(*byte_width))),
        Values::Bits { bitmap, .. } => bitmap.try_reserve(room(count / 8 + 1)),
        Values::Variable { offsets, data } => {
            offsets.try_reserve(room(count)).and_then(|()| data.try_reserve(byte_count))
        }
        Values::FixedSizeList { dimension, items, .. } => {
            reserve_for(items, count.saturating_mul(*dimension), byte_count);
            Ok(())
        }
        Values::Struct { fields, .. } => {
            fields.iter_mut().for_each(|field| reserve_for(field, count, byte_count));
            Ok(())
        }
        Values::Nulls { .. } => Ok(()),
    };
}

/// Appends one value `count` times.
pub fn push_repeated(to: &mut Values, one: &Values, count: usize) -> Result<()> {
    match (to, one) {
        (Values::Fixed { byte_width, bytes }, Values::Fixed { bytes: value, .. }) => {
            reserve(bytes, count, *byte_width)?;
            if value.iter().all(|byte| *byte == 0) {
                bytes.resize(bytes.len() + count * *byte_width, 0);
            } else {
                (0..count).for_each(|_| bytes.extend_from_slice(value));
            }
        }
        (Values::Bits { bitmap: bits, len }, Values::Bits { bitmap: value, .. }) => {
            reserve(bits, count / 8 + 1, 1)?;
            bitmap::append_run(bits, *len, count, value.first().is_some_and(|byte| byte & 1 == 1));
            *len += count;
        }
        (Values::Variable { offsets, data }, Values::Variable { data: value, .. }) => {
            reserve(data, count, value.len())?;
            if offsets.try_reserve(count).is_err() {
                return Err(Error::corrupt(format!("{count} values do not fit into memory")));
            }
            for _ in 0..count {
                data.extend_from_slice(value);
                offsets.push(data.len() as u64);
            }
        }
        (to, one) => {
            for _ in 0..count {
                append(to, one, 0..1)?;
            }
        }
    }
    Ok(())
}

/// Bytes of placeholders at once: a file of a few bytes may claim any number of nulls of any width.
pub const MAX_NULL_BYTES: u64 = 256 << 20;

/// Bytes that a placeholder takes.
fn placeholder_bytes(values: &Values) -> u64 {
    match values {
        Values::Fixed { byte_width, .. } => *byte_width as u64,
        Values::Bits { .. } | Values::Nulls { .. } => 0,
        Values::Variable { .. } => 8,
        Values::FixedSizeList { dimension, items, .. } => {
            (*dimension as u64).saturating_mul(placeholder_bytes(items).max(1))
        }
        Values::Struct { fields, .. } => {
            fields.iter().fold(0, |total, field| total.saturating_add(placeholder_bytes(field)))
        }
    }
}

/// Appends placeholders for nulls.
pub fn push_nulls(to: &mut Values, count: usize) -> Result<()> {
    if placeholder_bytes(to).saturating_mul(count as u64) > MAX_NULL_BYTES {
        return Err(Error::not_supported(format!("{count} nulls of {} bytes at once", placeholder_bytes(to))));
    }
    match to {
        Values::Fixed { byte_width, bytes } => {
            reserve(bytes, count, *byte_width)?;
            bytes.resize(bytes.len() + count * *byte_width, 0);
        }
        Values::Bits { bitmap: bits, len } => {
            reserve(bits, count / 8 + 1, 1)?;
            bitmap::append_run(bits, *len, count, false);
            *len += count;
        }
        Values::Variable { offsets, data } => {
            if offsets.try_reserve(count).is_err() {
                return Err(Error::corrupt(format!("{count} values do not fit into memory")));
            }
            offsets.resize(offsets.len() + count, data.len() as u64);
        }
        Values::FixedSizeList { dimension, len, validity, items } => {
            let added = count
                .checked_mul(*dimension)
                .ok_or_else(|| Error::corrupt(format!("{count} lists of {dimension} do not fit into memory")))?;
            if let Some(bits) = validity {
                reserve(bits, added / 8 + 1, 1)?;
                bitmap::append_run(bits, *len * *dimension, added, true);
            }
            push_nulls(items, added)?;
            *len += count;
        }
        Values::Struct { fields, len } => {
            for field in fields {
                push_nulls(field, count)?;
            }
            *len += count;
        }
        Values::Nulls { len } => *len += count,
    }
    Ok(())
}

/// Appends `count` bits of `from`, from bit `start` on, to the `len` bits of `to`.
fn append_bits(to: &mut Vec<u8>, len: usize, from: &[u8], start: usize, count: usize) -> Result<()> {
    if from.len() < (start + count).div_ceil(8) {
        return Err(out_of_bounds());
    }
    bitmap::append(to, len, from, start, count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::Field;

    use super::*;

    // V9
    #[test]
    fn lists_with_and_without_item_validity_go_together() {
        let item = Arc::new(Field::new("item", DataType::UInt8, true));
        let mut all = empty_values(&DataType::FixedSizeList(item, 2)).unwrap();
        let list = |bytes: &[u8], validity: Option<Vec<u8>>| Values::FixedSizeList {
            dimension: 2,
            len: bytes.len() / 2,
            validity,
            items: Box::new(Values::Fixed { byte_width: 1, bytes: bytes.to_vec() }),
        };
        append(&mut all, &list(&[1, 2, 3, 4], None), 0..2).unwrap();
        append(&mut all, &list(&[5, 6, 7, 8], Some(vec![0b1011])), 1..2).unwrap();
        append(&mut all, &list(&[9, 10], None), 0..1).unwrap();
        assert_eq!(all, list(&[1, 2, 3, 4, 7, 8, 9, 10], Some(vec![0b1110_1111])));
    }

    // V7
    #[test]
    fn indices_beyond_the_dictionary_are_corrupt() {
        let dictionary = Values::Variable { offsets: vec![0, 1, 3], data: b"abb".to_vec() };
        let indices = |bytes: &[u8]| Values::Fixed { byte_width: 1, bytes: bytes.to_vec() };
        let mut all = Values::Variable { offsets: vec![0], data: Vec::new() };
        gather(&mut all, &dictionary, &indices(&[1, 0, 1]), 0..3).unwrap();
        assert_eq!(all, Values::Variable { offsets: vec![0, 2, 3, 5], data: b"bbabb".to_vec() });
        let error = gather(&mut all, &dictionary, &indices(&[2]), 0..1).unwrap_err();
        assert!(error.to_string().contains("index 2 into a dictionary of 2 values"));
    }

    #[test]
    fn values_of_another_shape_are_corrupt() {
        let mut all = empty_values(&DataType::Int32).unwrap();
        let error = append(&mut all, &Values::Fixed { byte_width: 8, bytes: vec![0; 8] }, 0..1).unwrap_err();
        assert!(error.to_string().contains("8-byte values in a column of 4-byte values"));
        assert!(append(&mut all, &Values::Fixed { byte_width: 4, bytes: vec![0; 4] }, 0..2).is_err());
        assert!(scalar_values(&all, &[1, 2]).is_err());
    }
}
