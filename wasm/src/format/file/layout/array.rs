//! Values and validity of a leaf as an Arrow array.

use std::sync::Arc;

use arrow_array::types::{ByteArrayType, GenericBinaryType, GenericStringType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, GenericByteArray, NullArray, OffsetSizeTrait, StructArray,
    make_array, new_null_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};

use super::append::MAX_NULL_BYTES;
use super::leaf::Dictionary;
use crate::error::{Error, Result};
use crate::format::file::encoding::Values;

/// Makes an array of `len` values.
///
/// # Errors
/// `Corrupt` when there are not that many, or they are not what the type asks for (UTF-8, offsets).
pub fn leaf_array(
    values: Values,
    dictionary: Option<Dictionary>,
    data_type: &DataType,
    len: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    match (data_type, dictionary) {
        (DataType::Dictionary(key_type, value_type), Some(dictionary)) => {
            dictionary_array(values, dictionary, data_type, key_type, value_type, len, nulls)
        }
        _ => array(values, data_type, len, nulls),
    }
}

/// An array of nulls, of which every buffer is as long as the type says.
///
/// # Errors
/// `NotSupported` for more bytes than we make of nothing.
pub fn null_array(data_type: &DataType, len: usize) -> Result<ArrayRef> {
    if null_bytes(data_type).saturating_mul(len as u64) > MAX_NULL_BYTES {
        return Err(Error::not_supported(format!("{len} nulls of type {data_type} at once")));
    }
    Ok(new_null_array(data_type, len))
}

fn null_bytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::FixedSizeList(item, size) => {
            u64::try_from(*size).unwrap_or(0).saturating_mul(null_bytes(item.data_type()).max(1))
        }
        DataType::FixedSizeBinary(size) => u64::try_from(*size).unwrap_or(0),
        DataType::Struct(fields) => {
            fields.iter().fold(1, |total, field| total.saturating_add(null_bytes(field.data_type())))
        }
        other => other.primitive_width().map_or(8, |width| width as u64),
    }
}

fn array(values: Values, data_type: &DataType, len: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    if values.len() != len {
        return Err(Error::corrupt(format!("{} values in {len} slots", values.len())));
    }
    Ok(match (data_type, values) {
        (DataType::Null, Values::Nulls { .. }) => Arc::new(NullArray::new(len)),
        (DataType::Struct(_), Values::Nulls { .. }) => Arc::new(StructArray::new_empty_fields(len, nulls)),
        (DataType::Boolean, Values::Bits { bitmap, .. }) => {
            if bitmap.len() < len.div_ceil(8) {
                return Err(Error::internal(format!("{} bytes of {len} booleans", bitmap.len())));
            }
            Arc::new(BooleanArray::new(BooleanBuffer::new(Buffer::from_vec(bitmap), 0, len), nulls))
        }
        (DataType::Utf8, Values::Variable { offsets, data }) => {
            byte_array::<GenericStringType<i32>>(offsets, data, nulls)?
        }
        (DataType::LargeUtf8, Values::Variable { offsets, data }) => {
            byte_array::<GenericStringType<i64>>(offsets, data, nulls)?
        }
        (DataType::Binary, Values::Variable { offsets, data }) => {
            byte_array::<GenericBinaryType<i32>>(offsets, data, nulls)?
        }
        (DataType::LargeBinary, Values::Variable { offsets, data }) => {
            byte_array::<GenericBinaryType<i64>>(offsets, data, nulls)?
        }
        (DataType::FixedSizeList(item, dimension), Values::FixedSizeList { items, validity, .. }) => {
            let item_count = items.len();
            let item_nulls = match validity {
                Some(bits) if bits.len() < item_count.div_ceil(8) => {
                    return Err(Error::corrupt(format!("{} bytes of validity for {item_count} items", bits.len())));
                }
                Some(bits) => {
                    let nulls = NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, item_count));
                    (nulls.null_count() > 0).then_some(nulls)
                }
                None => None,
            };
            let items = array(*items, item.data_type(), item_count, item_nulls)?;
            Arc::new(FixedSizeListArray::try_new(item.clone(), *dimension, items, nulls).map_err(arrow_error)?)
        }
        (DataType::Struct(members), Values::Struct { fields, .. }) => {
            if members.len() != fields.len() {
                return Err(Error::internal(format!("{} fields of values for {data_type}", fields.len())));
            }
            let arrays = fields.into_iter().zip(members);
            let arrays = arrays.map(|(values, member)| array(values, member.data_type(), len, None));
            let arrays = arrays.collect::<Result<_>>()?;
            Arc::new(StructArray::try_new_with_length(members.clone(), arrays, nulls, len).map_err(arrow_error)?)
        }
        (data_type, Values::Fixed { bytes, .. }) => fixed_width_array(bytes, data_type, len, nulls)?,
        (data_type, _) => return Err(Error::internal(format!("values of another shape than {data_type}"))),
    })
}

fn fixed_width_array(bytes: Vec<u8>, data_type: &DataType, len: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone()).len(len).add_buffer(Buffer::from_vec(bytes)).nulls(nulls);
    // Bytes are aligned as the allocator pleases: 128-bit values may have to move.
    Ok(make_array(data.align_buffers(true).build().map_err(arrow_error)?))
}

fn byte_array<T: ByteArrayType>(offsets: Vec<u64>, data: Vec<u8>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    if !offsets.is_sorted() || offsets.last().is_none_or(|end| *end > data.len() as u64) {
        return Err(Error::internal("offsets of a column are out of order"));
    }
    let offsets = offset_buffer::<T::Offset, _>(offsets, |end| T::Offset::from_usize(end as usize))?;
    let array = GenericByteArray::<T>::try_new(offsets, Buffer::from_vec(data), nulls).map_err(arrow_error)?;
    Ok(Arc::new(array))
}

/// Offsets of a list or of values of variable length. They are sorted.
///
/// # Errors
/// `Schema` when the last does not fit.
pub fn offset_buffer<O: OffsetSizeTrait, T: Copy>(
    offsets: Vec<T>,
    convert: impl Fn(T) -> Option<O>,
) -> Result<OffsetBuffer<O>> {
    let fits = offsets.last().is_none_or(|end| convert(*end).is_some());
    let converted: Option<Vec<O>> = if fits { offsets.into_iter().map(convert).collect() } else { None };
    let converted =
        converted.ok_or_else(|| Error::schema("more than 2147483647 items or bytes in one array of a 32-bit type"))?;
    Ok(OffsetBuffer::new(ScalarBuffer::from(converted)))
}

fn dictionary_array(
    keys: Values,
    dictionary: Dictionary,
    data_type: &DataType,
    key_type: &DataType,
    value_type: &DataType,
    len: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let Values::Fixed { bytes, .. } = keys else { return Err(Error::internal("keys are 32-bit values")) };
    if bytes.len() != len * 4 {
        return Err(Error::corrupt(format!("{} keys in {len} slots", bytes.len() / 4)));
    }
    let value_count = dictionary.values.len();
    let largest = match key_type {
        DataType::Int8 => i8::MAX as usize,
        DataType::UInt8 => usize::from(u8::MAX),
        DataType::Int16 => i16::MAX as usize,
        DataType::UInt16 => usize::from(u16::MAX),
        _ => i32::MAX as usize,
    };
    if value_count > largest.saturating_add(1) {
        return Err(Error::schema(format!("{value_count} distinct values do not fit into {data_type}")));
    }
    let width = key_type.primitive_width().unwrap_or(4);
    let keys = match width {
        4 => bytes,
        _ => {
            // The keys are smaller than the type's maximum: cutting them or adding zeros keeps their value.
            let mut keys = Vec::with_capacity(len * width);
            for key in bytes.chunks_exact(4) {
                keys.extend(key.iter().copied().chain(std::iter::repeat(0)).take(width));
            }
            keys
        }
    };
    let values = array(dictionary.values, value_type, value_count, None)?;
    let data = ArrayData::builder(data_type.clone())
        .len(len)
        .add_buffer(Buffer::from_vec(keys))
        .add_child_data(values.to_data())
        .nulls(nulls)
        .align_buffers(true);
    Ok(make_array(data.build().map_err(arrow_error)?))
}

/// Arrow refused what the file holds.
pub fn arrow_error(error: ArrowError) -> Error {
    let text = match error {
        ArrowError::InvalidArgumentError(text) => text,
        other => other.to_string(),
    };
    Error::corrupt(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    // L15
    #[test]
    fn items_beyond_31_bits_fit_large_lists_alone() {
        let end = i64::from(i32::MAX);
        let small = |end: i64| offset_buffer::<i32, i64>(vec![0, end], |end| i32::try_from(end).ok());
        assert_eq!(small(end).unwrap()[1], i32::MAX);
        assert_eq!(small(end + 1).unwrap_err().code(), crate::error::ErrorCode::Schema);
        assert_eq!(offset_buffer::<i64, i64>(vec![0, end + 1], Some).unwrap()[1], end + 1);
    }

    #[test]
    fn nulls_are_made_up_to_a_size() {
        let wide = DataType::FixedSizeBinary(1 << 20);
        assert_eq!(null_array(&wide, 3).unwrap().null_count(), 3);
        assert!(null_array(&wide, 257).is_err());
        assert!(null_array(&DataType::Struct(vec![arrow_schema::Field::new("w", wide, true)].into()), 256).is_err());
    }
}
