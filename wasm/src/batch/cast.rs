//! The few casts that the engine needs: to a type that can hold the value, or an error that names the row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, LargeBinaryArray, LargeStringArray, PrimitiveArray, StringArray, make_array,
    new_null_array,
};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, TimeUnit};

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
        (DataType::Timestamp(from_unit, _), DataType::Timestamp(to_unit, _)) => {
            let counts = time_counts(array, *from_unit, true);
            scale_time(&counts, *from_unit, *to_unit).map(|counts| timestamp(counts, *to_unit, to))
        }
        (DataType::Duration(from_unit), DataType::Duration(to_unit)) => {
            let counts = time_counts(array, *from_unit, false);
            scale_time(&counts, *from_unit, *to_unit).map(|counts| duration(counts, *to_unit))
        }
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

/// A number on its way from one type to another.
#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

fn numeric(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CastError> {
    macro_rules! from_int {
        ($type:ty) => {
            array.as_primitive::<$type>().iter().map(|value| value.map(|value| Number::Int(value.into()))).collect()
        };
    }
    macro_rules! from_float {
        ($type:ty) => {
            array.as_primitive::<$type>().iter().map(|value| value.map(|value| Number::Float(value.into()))).collect()
        };
    }
    let numbers: Vec<Option<Number>> = match array.data_type() {
        DataType::Int8 => from_int!(Int8Type),
        DataType::Int16 => from_int!(Int16Type),
        DataType::Int32 => from_int!(Int32Type),
        DataType::Int64 => from_int!(Int64Type),
        DataType::UInt8 => from_int!(UInt8Type),
        DataType::UInt16 => from_int!(UInt16Type),
        DataType::UInt32 => from_int!(UInt32Type),
        DataType::UInt64 => from_int!(UInt64Type),
        DataType::Float16 => from_float!(Float16Type),
        DataType::Float32 => from_float!(Float32Type),
        DataType::Float64 => from_float!(Float64Type),
        _ => return Err(CastError::Types),
    };
    match to {
        DataType::Int8 => to_int::<Int8Type>(&numbers),
        DataType::Int16 => to_int::<Int16Type>(&numbers),
        DataType::Int32 => to_int::<Int32Type>(&numbers),
        DataType::Int64 => to_int::<Int64Type>(&numbers),
        DataType::UInt8 => to_int::<UInt8Type>(&numbers),
        DataType::UInt16 => to_int::<UInt16Type>(&numbers),
        DataType::UInt32 => to_int::<UInt32Type>(&numbers),
        DataType::UInt64 => to_int::<UInt64Type>(&numbers),
        DataType::Float16 => to_float::<Float16Type>(&numbers, half::f16::from_f64),
        DataType::Float32 => to_float::<Float32Type>(&numbers, |value| value as f32),
        DataType::Float64 => to_float::<Float64Type>(&numbers, |value| value),
        _ => Err(CastError::Types),
    }
}

fn to_int<T>(numbers: &[Option<Number>]) -> Result<ArrayRef, CastError>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i128>,
{
    let convert = |(row, number): (usize, &Option<Number>)| -> Result<Option<T::Native>, CastError> {
        let Some(number) = number else { return Ok(None) };
        let whole = match *number {
            Number::Int(value) => Some(value),
            // A double below 2^64 in size converts to i128 exactly.
            Number::Float(value) => (value.fract() == 0.0 && value.abs() < 2e19).then_some(value as i128),
        };
        whole.and_then(|value| T::Native::try_from(value).ok()).map(Some).ok_or(CastError::Row(row))
    };
    let values: PrimitiveArray<T> = numbers.iter().enumerate().map(convert).collect::<Result<_, _>>()?;
    Ok(Arc::new(values))
}

fn to_float<T: ArrowPrimitiveType>(
    numbers: &[Option<Number>],
    narrow: impl Fn(f64) -> T::Native,
) -> Result<ArrayRef, CastError>
where
    f64: From<T::Native>,
{
    let convert = |(row, number): (usize, &Option<Number>)| -> Result<Option<T::Native>, CastError> {
        let Some(number) = number else { return Ok(None) };
        let (value, is_exact) = match *number {
            Number::Int(value) => (value as f64, value as f64 as i128 == value),
            Number::Float(value) => (value, true),
        };
        let narrowed = narrow(value);
        // Floats may lose digits, as a float32 column is asked to; whole numbers and infinities may not change.
        let keeps = match *number {
            Number::Int(_) => is_exact && f64::from(narrowed) == value,
            Number::Float(_) => f64::from(narrowed).is_finite() == value.is_finite(),
        };
        if keeps { Ok(Some(narrowed)) } else { Err(CastError::Row(row)) }
    };
    let values: PrimitiveArray<T> = numbers.iter().enumerate().map(convert).collect::<Result<_, _>>()?;
    Ok(Arc::new(values))
}

fn time_counts(array: &ArrayRef, unit: TimeUnit, is_timestamp: bool) -> Vec<Option<i64>> {
    match (unit, is_timestamp) {
        (TimeUnit::Second, true) => array.as_primitive::<TimestampSecondType>().iter().collect(),
        (TimeUnit::Millisecond, true) => array.as_primitive::<TimestampMillisecondType>().iter().collect(),
        (TimeUnit::Microsecond, true) => array.as_primitive::<TimestampMicrosecondType>().iter().collect(),
        (TimeUnit::Nanosecond, true) => array.as_primitive::<TimestampNanosecondType>().iter().collect(),
        (TimeUnit::Second, false) => array.as_primitive::<DurationSecondType>().iter().collect(),
        (TimeUnit::Millisecond, false) => array.as_primitive::<DurationMillisecondType>().iter().collect(),
        (TimeUnit::Microsecond, false) => array.as_primitive::<DurationMicrosecondType>().iter().collect(),
        (TimeUnit::Nanosecond, false) => array.as_primitive::<DurationNanosecondType>().iter().collect(),
    }
}

fn scale_time(counts: &[Option<i64>], from: TimeUnit, to: TimeUnit) -> Result<Vec<Option<i64>>, CastError> {
    let per_second = |unit| match unit {
        TimeUnit::Second => 1_i64,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let (from, to) = (per_second(from), per_second(to));
    let convert = |(row, count): (usize, &Option<i64>)| -> Result<Option<i64>, CastError> {
        let Some(count) = count else { return Ok(None) };
        let scaled = if to >= from {
            count.checked_mul(to / from)
        } else {
            (count % (from / to) == 0).then_some(count / (from / to))
        };
        scaled.map(Some).ok_or(CastError::Row(row))
    };
    counts.iter().enumerate().map(convert).collect()
}

fn timestamp(counts: Vec<Option<i64>>, unit: TimeUnit, to: &DataType) -> ArrayRef {
    match unit {
        TimeUnit::Second => primitive::<TimestampSecondType>(counts, to),
        TimeUnit::Millisecond => primitive::<TimestampMillisecondType>(counts, to),
        TimeUnit::Microsecond => primitive::<TimestampMicrosecondType>(counts, to),
        TimeUnit::Nanosecond => primitive::<TimestampNanosecondType>(counts, to),
    }
}

fn duration(counts: Vec<Option<i64>>, unit: TimeUnit) -> ArrayRef {
    let to = DataType::Duration(unit);
    match unit {
        TimeUnit::Second => primitive::<DurationSecondType>(counts, &to),
        TimeUnit::Millisecond => primitive::<DurationMillisecondType>(counts, &to),
        TimeUnit::Microsecond => primitive::<DurationMicrosecondType>(counts, &to),
        TimeUnit::Nanosecond => primitive::<DurationNanosecondType>(counts, &to),
    }
}

fn primitive<T: ArrowPrimitiveType<Native = i64>>(values: Vec<Option<i64>>, to: &DataType) -> ArrayRef {
    Arc::new(values.into_iter().collect::<PrimitiveArray<T>>().with_data_type(to.clone()))
}

#[cfg(test)]
mod tests {
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
