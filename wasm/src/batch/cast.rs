//! The casts that the engine needs: to a type that can hold the value, or an error that names the row.
//!
//! Values of fixed width go over one wide type each (`numbers`, 256-bit decimals here): a reader per source and a writer per target instead
//! of a kernel per pair.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, LargeBinaryArray, LargeStringArray, StringArray, make_array, new_null_array,
};
use arrow_buffer::{ArrowNativeType, Buffer, i256};
use arrow_data::ArrayData;
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

/// Casts an array to a type that holds each of its values unchanged: wider or narrower numbers and decimals, other lengths of text and
/// binary, other units of time, dates and times of timestamps, dictionaries and their values, columns of nothing but nulls to anything.
/// Only floats may lose digits, as a narrower float is asked to.
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
        (_, DataType::Dictionary(_, values)) => pack(&cast(array, values)?, to),
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, DataType::Utf8 | DataType::LargeUtf8) => {
            text(array, to)
        }
        (DataType::Binary | DataType::LargeBinary | DataType::BinaryView, DataType::Binary | DataType::LargeBinary) => {
            binary(array, to)
        }
        (
            DataType::Decimal128(_, from_scale) | DataType::Decimal256(_, from_scale),
            DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale),
        ) => decimals(&array.to_data(), *from_scale, to, *precision, *scale),
        _ => match (clock(from), clock(to)) {
            (Some(from), Some(to_clock)) if from.reaches(&to_clock) => times(array, &from, to, &to_clock),
            (None, None) => numeric(array, to),
            _ => Err(CastError::Types),
        },
    }
}

/// What is casted to what when a column gets another type: within a family, so that the meaning of the values stays.
pub fn is_family(from: &DataType, to: &DataType) -> bool {
    use DataType as D;
    let is_text = |data_type: &D| matches!(data_type, D::Utf8 | D::LargeUtf8);
    let is_binary = |data_type: &D| matches!(data_type, D::Binary | D::LargeBinary);
    let is_decimal = |data_type: &D| matches!(data_type, D::Decimal128(_, _) | D::Decimal256(_, _));
    match (from, to) {
        (D::Dictionary(_, from), to) => is_family(from, to),
        (from, D::Dictionary(_, to)) => is_family(from, to),
        (D::FixedSizeList(_, from_size), D::FixedSizeList(_, size)) if from_size != size => false,
        (
            D::List(from) | D::LargeList(from) | D::FixedSizeList(from, _),
            D::List(to) | D::LargeList(to) | D::FixedSizeList(to, _),
        ) => is_family(from.data_type(), to.data_type()),
        // Which instants local times are in another zone is for calendars to say.
        (D::Timestamp(_, None), D::Timestamp(_, Some(zone))) => matches!(zone.as_ref(), "UTC" | "Z" | "+00:00"),
        (D::Boolean, D::Boolean) => true,
        (from, to) => match (clock(from), clock(to)) {
            (Some(from), Some(to)) => from.reaches(&to),
            (None, None) => {
                (from.is_integer() && to.is_integer())
                    || (from.is_floating() && to.is_floating())
                    || (is_text(from) && is_text(to))
                    || (is_binary(from) && is_binary(to))
                    || (is_decimal(from) && is_decimal(to))
            }
            _ => false,
        },
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

/// Distinct values, and a key to one of them for each row.
fn pack(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CastError> {
    let DataType::Dictionary(key_type, _) = to else { return Err(CastError::Types) };
    let data = array.to_data();
    let mut keys: Vec<i128> = Vec::with_capacity(data.len());
    let mut known: HashMap<&[u8], i128> = HashMap::new();
    let mut distinct = MutableArrayData::new(vec![&data], false, 0);
    for row in 0..data.len() {
        if data.is_null(row) {
            keys.push(0);
            continue;
        }
        let next = known.len() as i128;
        let key = *known.entry(value_bytes(&data, row).ok_or(CastError::Types)?).or_insert(next);
        if key == next {
            distinct.try_extend(0, row, row + 1).map_err(|_| CastError::TooLong)?;
        }
        keys.push(key);
    }
    let keys = Numbers::Int(keys).narrow(data.nulls().cloned(), key_type)?.into_data();
    let builder = keys.into_builder().data_type(to.clone()).add_child_data(distinct.freeze());
    builder.build().map(make_array).map_err(|_| CastError::Types)
}

/// The bytes of a value of fixed or variable width.
fn value_bytes(data: &ArrayData, row: usize) -> Option<&[u8]> {
    fn between<O: ArrowNativeType>(data: &ArrayData, row: usize) -> Option<&[u8]> {
        let offsets = data.buffer::<O>(0);
        let (start, end) = (offsets.get(row)?.as_usize(), offsets.get(row + 1)?.as_usize());
        data.buffers().get(1)?.get(start..end)
    }
    let at = data.offset() + row;
    match data.data_type() {
        DataType::Utf8 | DataType::Binary => between::<i32>(data, row),
        DataType::LargeUtf8 | DataType::LargeBinary => between::<i64>(data, row),
        DataType::FixedSizeBinary(width) => {
            let width = usize::try_from(*width).ok()?;
            data.buffers().first()?.get(at * width..(at + 1) * width)
        }
        other => {
            let width = other.primitive_width()?;
            data.buffers().first()?.get(at * width..(at + 1) * width)
        }
    }
}

/// Floats may lose digits, as a float32 column is asked to; whole numbers and infinities may not change.
fn numeric(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CastError> {
    let numbers = Numbers::of(array).ok_or(CastError::Types)?;
    let nulls = array.nulls().cloned();
    let first = |differs: &dyn Fn(usize) -> bool| (0..array.len()).find(|row| array.is_valid(*row) && differs(*row));
    match (&numbers, to.is_integer()) {
        _ if matches!(array.data_type(), DataType::Decimal128(..) | DataType::Boolean)
            || matches!(to, DataType::Decimal128(..) | DataType::Boolean) =>
        {
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

/// `precision` and `scale` are those of `to`.
fn decimals(data: &ArrayData, from_scale: i8, to: &DataType, precision: u8, scale: i8) -> Result<ArrayRef, CastError> {
    let mut values: Vec<i256> = match data.data_type() {
        DataType::Decimal128(_, _) => {
            data.buffer::<i128>(0).iter().take(data.len()).map(|value| i256::from_i128(*value)).collect()
        }
        _ => data.buffer::<i256>(0).iter().take(data.len()).copied().collect(),
    };
    let ten = i256::from_i128(10);
    let limit = ten.checked_pow(precision.into()).ok_or(CastError::Types)?;
    let digits = i32::from(scale) - i32::from(from_scale);
    let factor = ten.checked_pow(digits.unsigned_abs()).ok_or(CastError::Types)?;
    for (row, value) in values.iter_mut().enumerate() {
        let scaled = if digits >= 0 {
            value.checked_mul(factor)
        } else {
            value.checked_rem(factor).filter(|rest| *rest == i256::ZERO).and_then(|_| value.checked_div(factor))
        };
        *value = match scaled.filter(|value| *value < limit && *value > -limit) {
            Some(scaled) => scaled,
            None if data.is_null(row) => i256::ZERO,
            None => return Err(CastError::Row(row)),
        };
    }
    let buffer = match to {
        // A precision of 38 or less was checked.
        DataType::Decimal128(_, _) => Buffer::from_vec(values.iter().map(|value| value.as_i128()).collect::<Vec<_>>()),
        _ => Buffer::from_vec(values),
    };
    let data = ArrayData::builder(to.clone()).len(data.len()).nulls(data.nulls().cloned()).add_buffer(buffer).build();
    data.map(make_array).map_err(|_| CastError::Types)
}

const DAY_NS: i128 = 86_400_000_000_000;

/// What the numbers of a type of time count, and since when.
struct Clock {
    kind: ClockKind,
    unit_ns: i128,
}

#[derive(PartialEq, Eq)]
enum ClockKind {
    Date,
    Timestamp,
    TimeOfDay,
    Duration,
}

impl Clock {
    fn reaches(&self, to: &Clock) -> bool {
        use ClockKind as K;
        self.kind == to.kind
            || matches!((&self.kind, &to.kind), (K::Date, K::Timestamp) | (K::Timestamp, K::Date | K::TimeOfDay))
    }
}

fn clock(data_type: &DataType) -> Option<Clock> {
    let unit_ns = |unit: &TimeUnit| 1_000_000_000 / per_second(*unit);
    let (kind, unit_ns) = match data_type {
        DataType::Date32 => (ClockKind::Date, DAY_NS),
        DataType::Date64 => (ClockKind::Date, unit_ns(&TimeUnit::Millisecond)),
        DataType::Timestamp(unit, _) => (ClockKind::Timestamp, unit_ns(unit)),
        DataType::Time32(unit) | DataType::Time64(unit) => (ClockKind::TimeOfDay, unit_ns(unit)),
        DataType::Duration(unit) => (ClockKind::Duration, unit_ns(unit)),
        _ => return None,
    };
    Some(Clock { kind, unit_ns })
}

fn times(array: &ArrayRef, from: &Clock, to: &DataType, to_clock: &Clock) -> Result<ArrayRef, CastError> {
    let Some(Numbers::Int(mut counts)) = Numbers::of(array) else { return Err(CastError::Types) };
    let is_within_a_day = to_clock.kind == ClockKind::TimeOfDay && from.kind == ClockKind::Timestamp;
    for (row, count) in counts.iter_mut().enumerate() {
        let ns = *count * from.unit_ns;
        let is_part = is_within_a_day && !(0..DAY_NS).contains(&ns);
        if (ns % to_clock.unit_ns != 0 || is_part) && array.is_valid(row) {
            return Err(CastError::Row(row));
        }
        *count = ns / to_clock.unit_ns;
    }
    Numbers::Int(counts).narrow(array.nulls().cloned(), to)
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Int8Type, TimestampMicrosecondType};
    use arrow_array::{
        Date32Array, Decimal128Array, Decimal256Array, DictionaryArray, Float32Array, Float64Array, Int32Array,
        Int64Array, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray, UInt64Array,
    };

    use arrow_buffer::NullBuffer;

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

    #[test]
    fn what_lies_under_a_null_is_not_at_fault() {
        let nulls = NullBuffer::from(vec![true, false]);
        let array: ArrayRef = Arc::new(Int64Array::new(vec![1, 1 << 40].into(), Some(nulls)));
        assert_eq!(
            cast(&array, &DataType::Int8).unwrap().as_primitive::<Int8Type>().iter().collect::<Vec<_>>(),
            [Some(1), None]
        );
        let slice = array.slice(1, 1);
        assert_eq!(cast(&slice, &DataType::Int32).unwrap().null_count(), 1);
    }

    #[test]
    fn floats_lose_digits_but_not_their_size() {
        let array: ArrayRef = Arc::new(Float64Array::from(vec![0.1, f64::INFINITY, -2.5]));
        let narrow = cast(&array, &DataType::Float32);
        assert_eq!(narrow.as_deref(), Ok(&Float32Array::from(vec![0.1, f32::INFINITY, -2.5]) as &dyn Array));
        let large: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 1e300]));
        assert_eq!(cast(&large, &DataType::Float32).map(|_| ()), Err(CastError::Row(1)));
        let half: ArrayRef = Arc::new(Float32Array::from(vec![65_504.0, 70_000.0]));
        assert_eq!(cast(&half, &DataType::Float16).map(|_| ()), Err(CastError::Row(1)));
        let max: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
        assert_eq!(cast(&max, &DataType::Float64).map(|_| ()), Err(CastError::Row(0)));
    }

    #[test]
    fn decimals_change_scale_and_width_only_without_loss() {
        let array: ArrayRef = Arc::new(
            Decimal128Array::from(vec![Some(12_300), None, Some(-500)]).with_precision_and_scale(10, 4).unwrap(),
        );
        let fewer = cast(&array, &DataType::Decimal128(5, 2)).unwrap();
        let expected = Decimal128Array::from(vec![Some(123), None, Some(-5)]).with_precision_and_scale(5, 2).unwrap();
        assert_eq!(fewer.as_ref(), &expected as &dyn Array);
        let wide = cast(&array, &DataType::Decimal256(40, 6)).unwrap();
        let expected = vec![Some(1_230_000), None, Some(-50_000)].into_iter().map(|v| v.map(i256::from_i128));
        let expected = Decimal256Array::from_iter(expected).with_precision_and_scale(40, 6).unwrap();
        assert_eq!(wide.as_ref(), &expected as &dyn Array);
        assert_eq!(cast(&array, &DataType::Decimal128(10, 1)).map(|_| ()), Err(CastError::Row(0)));
        assert_eq!(cast(&array, &DataType::Decimal128(4, 4)).map(|_| ()), Err(CastError::Row(0)));
        assert_eq!(cast(&wide, array.data_type()), Ok(array));
    }

    #[test]
    fn dates_and_times_of_day_are_parts_of_timestamps_that_have_nothing_else() {
        const DAY_US: i64 = 86_400_000_000;
        let stamp = |value: i64| -> ArrayRef { Arc::new(TimestampMicrosecondArray::from(vec![value])) };
        assert_eq!(cast(&stamp(-DAY_US), &DataType::Date32).as_deref(), Ok(&Date32Array::from(vec![-1]) as &dyn Array));
        assert_eq!(cast(&stamp(DAY_US + 1), &DataType::Date32).map(|_| ()), Err(CastError::Row(0)));
        let time = DataType::Time64(TimeUnit::Microsecond);
        assert_eq!(cast(&stamp(5), &time).as_deref(), Ok(&Time64MicrosecondArray::from(vec![5]) as &dyn Array));
        assert_eq!(cast(&stamp(DAY_US), &time).map(|_| ()), Err(CastError::Row(0)));
        let date: ArrayRef = Arc::new(Date32Array::from(vec![2]));
        let stamps = cast(&date, stamp(0).data_type()).unwrap();
        assert_eq!(stamps.as_primitive::<TimestampMicrosecondType>().values(), &[2 * DAY_US]);
        assert_eq!(cast(&date, &time).map(|_| ()), Err(CastError::Types));
    }

    #[test]
    fn dictionaries_are_made_of_values_and_values_of_dictionaries() {
        let to = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let array: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), Some("b"), None, Some("a"), Some("b")]));
        let packed = cast(&array.slice(1, 4), &to).unwrap();
        let dictionary: &DictionaryArray<Int8Type> = packed.as_dictionary();
        assert_eq!(dictionary.keys().iter().collect::<Vec<_>>(), [Some(0), None, Some(1), Some(0)]);
        assert_eq!(dictionary.values().as_ref(), &StringArray::from(vec!["b", "a"]) as &dyn Array);
        assert_eq!(cast(&packed, &DataType::Utf8), Ok(array.slice(1, 4)));
        let many: ArrayRef = Arc::new(StringArray::from_iter_values((0..130).map(|n| n.to_string())));
        assert_eq!(cast(&many, &to).map(|_| ()), Err(CastError::Row(128)));
        let numbers = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Int64));
        let array: ArrayRef = Arc::new(Int64Array::from(vec![7, 7, 9]));
        assert_eq!(cast(&cast(&array, &numbers).unwrap(), &DataType::Int64), Ok(array));
    }

    #[test]
    fn families_are_those_of_lancedb() {
        use DataType as D;
        let item = |data_type: D| Arc::new(arrow_schema::Field::new("item", data_type, true));
        let fixed = |data_type: D, size: i32| D::FixedSizeList(item(data_type), size);
        let dict = D::Dictionary(Box::new(D::Int8), Box::new(D::Utf8));
        let stamp = |zone: Option<&str>| D::Timestamp(TimeUnit::Millisecond, zone.map(Into::into));
        for (from, to) in [
            (D::Int8, D::UInt64),
            (D::Float64, D::Float16),
            (D::Utf8, D::LargeUtf8),
            (D::LargeBinary, D::Binary),
            (D::Date32, stamp(None)),
            (stamp(None), D::Time32(TimeUnit::Second)),
            (stamp(None), stamp(Some("UTC"))),
            (stamp(Some("Asia/Tokyo")), stamp(None)),
            (D::Decimal128(10, 2), D::Decimal256(40, 4)),
            (fixed(D::Float32, 2), fixed(D::Float16, 2)),
            (fixed(D::Float32, 2), D::List(item(D::Float64))),
            (D::LargeList(item(D::Int64)), fixed(D::Int8, 3)),
            (dict.clone(), D::LargeUtf8),
            (D::Utf8, dict.clone()),
        ] {
            assert!(is_family(&from, &to), "{from} to {to}");
        }
        for (from, to) in [
            (D::Int32, D::Float64),
            (D::Utf8, D::Int32),
            (D::Utf8, D::Binary),
            (D::Date32, D::Time32(TimeUnit::Second)),
            (D::Time32(TimeUnit::Second), stamp(None)),
            (D::Duration(TimeUnit::Second), stamp(None)),
            (stamp(None), stamp(Some("Asia/Tokyo"))),
            (D::Int64, stamp(None)),
            (D::Decimal128(10, 2), D::Int32),
            (D::Boolean, D::Int8),
            (D::Null, D::Int32),
            (fixed(D::Float32, 2), fixed(D::Float32, 3)),
            (D::List(item(D::Utf8)), D::List(item(D::Int8))),
            (dict, D::Int32),
        ] {
            assert!(!is_family(&from, &to), "{from} to {to}");
        }
    }
}
