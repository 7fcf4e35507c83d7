//! Numbers of every type as wide ones and back: one kernel where there would be one for each type.
//!
//! Whole numbers of all widths, dates, times and the unscaled values of decimals are 128-bit integers here, floats are doubles.

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::batch::cast::CastError;

/// The values of an array; where it is null, any.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    Int(Vec<i128>),
    Float(Vec<f64>),
}

impl Numbers {
    /// `None` for types that are no numbers (and for 256 bits).
    pub fn of(array: &ArrayRef) -> Option<Numbers> {
        use DataType as D;
        Some(match array.data_type() {
            D::Boolean => {
                let data = array.to_data();
                let (bits, offset) = (data.buffers().first()?, data.offset());
                let bit = |at: usize| arrow_buffer::bit_util::get_bit(bits, offset + at);
                Numbers::Int((0..array.len()).map(|at| i128::from(bit(at))).collect())
            }
            D::Int8 => int::<i8>(array)?,
            D::Int16 => int::<i16>(array)?,
            D::Int32 | D::Date32 | D::Time32(_) => int::<i32>(array)?,
            D::Int64 | D::Date64 | D::Time64(_) | D::Timestamp(_, _) | D::Duration(_) => int::<i64>(array)?,
            D::UInt8 => int::<u8>(array)?,
            D::UInt16 => int::<u16>(array)?,
            D::UInt32 => int::<u32>(array)?,
            D::UInt64 => int::<u64>(array)?,
            D::Decimal128(_, _) => int::<i128>(array)?,
            D::Float16 => float::<half::f16>(array)?,
            D::Float32 => float::<f32>(array)?,
            D::Float64 => float::<f64>(array)?,
            _ => return None,
        })
    }

    pub fn len(&self) -> usize {
        match self {
            Numbers::Int(values) => values.len(),
            Numbers::Float(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers as an array of a type: integers as one of the integer kinds, doubles as one of the floats.
    ///
    /// # Errors
    /// `Row` for the first value that the type has no place for; `Types` for integers as floats and the reverse.
    pub fn narrow(&self, nulls: Option<NullBuffer>, to: &DataType) -> Result<ArrayRef, CastError> {
        use DataType as D;
        let is_valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let buffer = match (self, to) {
            (Numbers::Int(values), D::Boolean) => {
                let bits = arrow_buffer::BooleanBuffer::collect_bool(values.len(), |row| values[row] != 0);
                bits.into_inner()
            }
            (Numbers::Int(values), D::Int8) => ints::<i8>(values, &is_valid)?,
            (Numbers::Int(values), D::Int16) => ints::<i16>(values, &is_valid)?,
            (Numbers::Int(values), D::Int32 | D::Date32 | D::Time32(_)) => ints::<i32>(values, &is_valid)?,
            (Numbers::Int(values), D::Int64 | D::Date64 | D::Time64(_) | D::Timestamp(_, _) | D::Duration(_)) => {
                ints::<i64>(values, &is_valid)?
            }
            (Numbers::Int(values), D::UInt8) => ints::<u8>(values, &is_valid)?,
            (Numbers::Int(values), D::UInt16) => ints::<u16>(values, &is_valid)?,
            (Numbers::Int(values), D::UInt32) => ints::<u32>(values, &is_valid)?,
            (Numbers::Int(values), D::UInt64) => ints::<u64>(values, &is_valid)?,
            (Numbers::Int(values), D::Decimal128(precision, _)) => {
                let limit = 10_i128.checked_pow(u32::from(*precision)).ok_or(CastError::Types)?;
                if let Some(row) = (0..values.len()).find(|row| is_valid(*row) && values[*row].abs() >= limit) {
                    return Err(CastError::Row(row));
                }
                Buffer::from_vec(values.clone())
            }
            (Numbers::Float(values), D::Float16) => {
                floats(values, &is_valid, half::f16::from_f64, half::f16::is_finite)?
            }
            (Numbers::Float(values), D::Float32) => floats(values, &is_valid, |value| value as f32, f32::is_finite)?,
            (Numbers::Float(values), D::Float64) => Buffer::from_vec(values.clone()),
            _ => return Err(CastError::Types),
        };
        let data = ArrayData::builder(to.clone()).len(self.len()).add_buffer(buffer).nulls(nulls);
        data.build().map(make_array).map_err(|_| CastError::Types)
    }
}

/// The values of a primitive array as the numbers that they are kept as.
pub(super) fn native<T: ArrowNativeType>(array: &ArrayRef) -> Option<ScalarBuffer<T>> {
    let data = array.to_data();
    Some(ScalarBuffer::new(data.buffers().first()?.clone(), data.offset(), data.len()))
}

fn int<T: ArrowNativeType + Into<i128>>(array: &ArrayRef) -> Option<Numbers> {
    Some(Numbers::Int(native::<T>(array)?.iter().map(|value| (*value).into()).collect()))
}

fn float<T: ArrowNativeType + Into<f64>>(array: &ArrayRef) -> Option<Numbers> {
    Some(Numbers::Float(native::<T>(array)?.iter().map(|value| (*value).into()).collect()))
}

fn ints<T: ArrowNativeType + TryFrom<i128> + Default>(
    values: &[i128],
    is_valid: &dyn Fn(usize) -> bool,
) -> Result<Buffer, CastError> {
    let mut narrowed = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        narrowed.push(match T::try_from(*value) {
            Ok(value) => value,
            Err(_) if is_valid(row) => return Err(CastError::Row(row)),
            Err(_) => T::default(),
        });
    }
    Ok(Buffer::from_vec(narrowed))
}

fn floats<T: ArrowNativeType>(
    values: &[f64],
    is_valid: &dyn Fn(usize) -> bool,
    narrow: fn(f64) -> T,
    is_finite: fn(T) -> bool,
) -> Result<Buffer, CastError> {
    let mut narrowed = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        let narrow = narrow(*value);
        if is_finite(narrow) != value.is_finite() && is_valid(row) {
            return Err(CastError::Row(row));
        }
        narrowed.push(narrow);
    }
    Ok(Buffer::from_vec(narrowed))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float32Array, Int8Array, Int64Array, TimestampMillisecondArray, UInt64Array};
    use arrow_schema::TimeUnit;

    use super::*;

    #[test]
    fn numbers_come_back_as_they_went_also_from_a_slice() {
        let arrays: [ArrayRef; 4] = [
            Arc::new(Int8Array::from(vec![Some(-128), None, Some(127)])),
            Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(0), None])),
            Arc::new(Float32Array::from(vec![Some(f32::MIN), Some(f32::INFINITY), None])),
            Arc::new(TimestampMillisecondArray::from(vec![Some(i64::MIN), None, Some(7)]).with_timezone("+02:00")),
        ];
        for array in arrays.iter().flat_map(|array| [array.clone(), array.slice(1, 2)]) {
            let back = Numbers::of(&array).unwrap().narrow(array.nulls().cloned(), array.data_type());
            assert_eq!(back.as_ref(), Ok(&array));
        }
    }

    #[test]
    fn a_number_without_a_place_names_its_row_unless_it_is_null() {
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![1, 300, 400]));
        let numbers = Numbers::of(&wide).unwrap();
        let nulls = NullBuffer::from(vec![true, false, true]);
        assert_eq!(numbers.narrow(Some(nulls), &DataType::UInt8), Err(CastError::Row(2)));
        assert_eq!(numbers.narrow(None, &DataType::Decimal128(2, 0)), Err(CastError::Row(1)));
        assert_eq!(numbers.narrow(None, &DataType::Float64), Err(CastError::Types));
        assert_eq!(Numbers::Float(vec![1.0, 1e300]).narrow(None, &DataType::Float32), Err(CastError::Row(1)));
        let time = numbers.narrow(None, &DataType::Timestamp(TimeUnit::Second, None)).unwrap();
        assert_eq!(Numbers::of(&time), Some(numbers));
    }
}
