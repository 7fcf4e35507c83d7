//! The few casts that the engine needs: to a type that can hold the value, or an error that names the row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, LargeBinaryArray, LargeStringArray, StringArray, make_array, new_null_array,
};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, TimeUnit};

use crate::batch::numbers::Numbers;

/// Why a value could not be cast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CastError {
    /// No cast between these types.
    Types,
    /// The value of this row has no place in the target type.
    Row(usize),
    /// Together the values are longer than 32-bit offsets reach.
    TooLong,
}

/// Casts an array to a type that holds each of its values unchanged: wider or narrower numbers, other lengths of text and binary, other
/// units of time, dictionaries to their values, columns of nothing but nulls to anything.
///
/// # Errors
/// `CastError::Row` for the first value that would change, `CastError::Types` where there is no such cast.
pub fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CastError> {
    let from = array.data_type();
    if from == to {
        return Ok(array.clone());
    }
    match (from, to) {
        _ if array.logical_null_count() == array.len() => Ok(new_null_array(to, array.len())),
        (DataType::Dictionary(_, values), _) => cast(&unpack(array, values)?, to),
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, DataType::Utf8 | DataType::LargeUtf8) => {
            text(array, to)
        }
        (DataType::Binary | DataType::LargeBinary | DataType::BinaryView, DataType::Binary | DataType::LargeBinary) => {
            binary(array, to)
        }
        (DataType::Timestamp(from_unit, _), DataType::Timestamp(to_unit, _))
        | (DataType::Duration(from_unit), DataType::Duration(to_unit)) => time(array, *from_unit, *to_unit, to),
        _ if from.is_numeric() && to.is_numeric() => numeric(array, to),
        _ => Err(CastError::Types),
    }
}

/// The values that a dictionary's keys point at.
fn unpack(array: &ArrayRef, values: &DataType) -> Result<ArrayRef, CastError> {
    let dictionary = array.as_any_dictionary();
    if dictionary.values().is_empty() {
        return Ok(new_null_array(values, array.len()));
    }
    let data = dictionary.values().to_data();
    let mut unpacked = MutableArrayData::new(vec![&data], true, array.len());
    for (row, key) in dictionary.normalized_keys().into_iter().enumerate() {
        if array.is_null(row) { unpacked.try_extend_nulls(1) } else { unpacked.try_extend(0, key, key + 1) }
            .map_err(|_| CastError::TooLong)?;
    }
    Ok(make_array(unpacked.freeze()))
}

/// Whether values of these lengths have a place behind 32-bit offsets.
fn check_length(lengths: impl Iterator<Item = usize>) -> Result<(), CastError> {
    let total = lengths.fold(0_u64, |total, length| total.saturating_add(length as u64));
    if total > i32::MAX as u64 { Err(CastError::TooLong) } else { Ok(()) }
}

fn text(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CastError> {
    fn collect<'a>(
        values: impl Iterator<Item = Option<&'a str>> + Clone,
        to: &DataType,
    ) -> Result<ArrayRef, CastError> {
        if *to == DataType::LargeUtf8 {
            return Ok(Arc::new(values.collect::<LargeStringArray>()));
        }
        check_length(values.clone().flatten().map(str::len))?;
        Ok(Arc::new(values.collect::<StringArray>()))
    }
    match array.data_type() {
        DataType::Utf8View => collect(array.as_string_view().iter(), to),
        DataType::LargeUtf8 => collect(array.as_string::<i64>().iter(), to),
        _ => collect(array.as_string::<i32>().iter(), to),
    }
}

fn binary(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CastError> {
    fn collect<'a>(
        values: impl Iterator<Item = Option<&'a [u8]>> + Clone,
        to: &DataType,
    ) -> Result<ArrayRef, CastError> {
        if *to == DataType::LargeBinary {
            return Ok(Arc::new(values.collect::<LargeBinaryArray>()));
        }
        check_length(values.clone().flatten().map(<[u8]>::len))?;
        Ok(Arc::new(values.collect::<BinaryArray>()))
    }
    match array.data_type() {
        DataType::BinaryView => collect(array.as_binary_view().iter(), to),
        DataType::LargeBinary => collect(array.as_binary::<i64>().iter(), to),
        _ => collect(array.as_binary::<i32>().iter(), to),
    }
}

/// Floats may lose digits, as a float32 column is asked to; whole numbers and infinities may not change.
fn numeric(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CastError> {
    let numbers = Numbers::of(array).ok_or(CastError::Types)?;
    let nulls = array.nulls().cloned();
    let first = |differs: &dyn Fn(usize) -> bool| (0..array.len()).find(|row| array.is_valid(*row) && differs(*row));
    match (&numbers, to.is_integer()) {
        _ if matches!(array.data_type(), DataType::Decimal128(..)) || matches!(to, DataType::Decimal128(..)) => {
            Err(CastError::Types)
        }
        (Numbers::Int(_), true) | (Numbers::Float(_), false) => numbers.narrow(nulls, to),
        (Numbers::Float(values), true) => {
            // A double below 2^64 in size converts to an integer exactly.
            match first(&|row| values[row].fract() != 0.0 || values[row].abs() >= 2e19) {
                Some(row) => Err(CastError::Row(row)),
                None => Numbers::Int(values.iter().map(|value| *value as i128).collect()).narrow(nulls, to),
            }
        }
        (Numbers::Int(values), false) => {
            let floats = Numbers::Float(values.iter().map(|value| *value as f64).collect()).narrow(nulls, to)?;
            let Some(Numbers::Float(back)) = Numbers::of(&floats) else { return Err(CastError::Types) };
            match first(&|row| back[row] as i128 != values[row]) {
                Some(row) => Err(CastError::Row(row)),
                None => Ok(floats),
            }
        }
    }
}

/// How many of a unit make a second.
pub fn per_second(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn time(array: &ArrayRef, from: TimeUnit, to_unit: TimeUnit, to: &DataType) -> Result<ArrayRef, CastError> {
    let Some(Numbers::Int(mut counts)) = Numbers::of(array) else { return Err(CastError::Types) };
    let (from, to_unit) = (per_second(from), per_second(to_unit));
    for (row, count) in counts.iter_mut().enumerate() {
        let scaled = *count * to_unit;
        if scaled % from != 0 && array.is_valid(row) {
            return Err(CastError::Row(row));
        }
        *count = scaled / from;
    }
    Numbers::Int(counts).narrow(array.nulls().cloned(), to)
}

#[cfg(test)]
mod tests {
    use arrow_array::types::TimestampMicrosecondType;
    use arrow_array::{Float64Array, Int32Array, Int64Array, TimestampMillisecondArray};

    use super::*;

    #[test]
    fn numbers_that_fit_are_cast_and_others_name_their_row() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(300)]));
        let narrow = cast(&array, &DataType::Int32);
        assert_eq!(narrow.as_deref(), Ok(&Int32Array::from(vec![Some(1), None, Some(300)]) as &dyn Array));
        assert_eq!(cast(&array, &DataType::Int8).map(|_| ()), Err(CastError::Row(2)));
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![2.0, 1.5]));
        assert_eq!(cast(&floats, &DataType::Int32).map(|_| ()), Err(CastError::Row(1)));
        let large: ArrayRef = Arc::new(Int64Array::from(vec![(1 << 53) + 1]));
        assert_eq!(cast(&large, &DataType::Float64).map(|_| ()), Err(CastError::Row(0)));
    }

    #[test]
    fn times_change_their_unit_only_without_loss() {
        let array: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1_000, 1_500]));
        assert_eq!(cast(&array, &DataType::Timestamp(TimeUnit::Second, None)).map(|_| ()), Err(CastError::Row(1)));
        let fine = cast(&array, &DataType::Timestamp(TimeUnit::Microsecond, None)).unwrap();
        assert_eq!(fine.as_primitive::<TimestampMicrosecondType>().values(), &[1_000_000, 1_500_000]);
    }

    #[test]
    fn nulls_are_nulls_of_any_type() {
        let array: ArrayRef = Arc::new(Int32Array::from(vec![None, None]));
        assert_eq!(cast(&array, &DataType::Boolean), Ok(new_null_array(&DataType::Boolean, 2)));
    }

    #[test]
    fn unrelated_types_have_no_cast() {
        let array: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
        assert_eq!(cast(&array, &DataType::Int32).map(|_| ()), Err(CastError::Types));
    }
}
