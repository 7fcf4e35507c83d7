//! Casts of SQL: between numbers, booleans, text, dates and timestamps, with truncation where SQL truncates.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use super::calendar::{self, NANOS_PER_DAY};
use super::tree::Input;
use crate::batch::cast::{CastError, cast, per_second};
use crate::batch::floats;
use crate::batch::numbers::Numbers;
use crate::batch::pick::{Pick, pick};
use crate::error::{Error, Result};

/// What the values of a type are, for arithmetic and for comparing them with values of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    Bool,
    Int,
    /// Integers that are so many powers of ten too large.
    Decimal(i8),
    Float,
    /// Nanoseconds since the epoch.
    Time,
    Text,
    Binary,
}

impl Domain {
    pub fn is_number(self) -> bool {
        matches!(self, Domain::Int | Domain::Decimal(_) | Domain::Float)
    }
}

/// `None` for types that have no casts here.
pub(super) fn domain_of(data_type: &DataType) -> Option<Domain> {
    use DataType as D;
    Some(match data_type {
        D::Dictionary(_, values) => return domain_of(values),
        D::Boolean => Domain::Bool,
        D::Decimal128(_, scale) => Domain::Decimal(*scale),
        D::Float16 | D::Float32 | D::Float64 => Domain::Float,
        D::Date32 | D::Date64 | D::Timestamp(_, _) => Domain::Time,
        D::Utf8 | D::LargeUtf8 | D::Utf8View => Domain::Text,
        D::Binary | D::LargeBinary | D::BinaryView => Domain::Binary,
        other if other.is_integer() => Domain::Int,
        _ => return None,
    })
}

/// Whether values of a type have a cast to another.
pub(super) fn is_possible(from: &DataType, to: &DataType) -> bool {
    use Domain::{Binary, Bool, Decimal, Float, Int, Text, Time};
    if from == to || *from == DataType::Null {
        return true;
    }
    let (Some(from), Some(to)) = (domain_of(from), domain_of(to)) else { return false };
    match (from, to) {
        (Binary, Binary | Text) | (Text, _) | (_, Text) => true,
        (Binary, _) | (_, Binary) => false,
        (Time, Time | Int) | (Int, Time) => true,
        (Time, _) | (_, Time) => false,
        (Bool | Int | Decimal(_) | Float, Bool | Int | Decimal(_) | Float) => true,
    }
}

/// Whether values of a type may stand for those of another, as far as types say.
pub(super) fn is_assignable(from: &DataType, to: &DataType) -> bool {
    if from == to || *from == DataType::Null {
        return true;
    }
    match (domain_of(from), domain_of(to)) {
        (None, None) => true,
        (Some(from), Some(to)) => from == to || (from.is_number() && to.is_number()),
        _ => false,
    }
}

/// How many nanoseconds one of a temporal type is.
pub(super) fn nanos_of(data_type: &DataType) -> i128 {
    match data_type {
        DataType::Date32 => NANOS_PER_DAY,
        DataType::Date64 => 1_000_000,
        DataType::Timestamp(unit, _) => per_second(TimeUnit::Nanosecond) / per_second(*unit),
        _ => 1,
    }
}

fn power_of_ten(exponent: i8) -> f64 {
    10_f64.powi(i32::from(exponent))
}

/// Casts an array.
///
/// # Errors
/// `InvalidInput` with the value and its row for a value that the type has no place for; null instead with `is_try`.
pub(super) fn convert(array: &ArrayRef, to: &DataType, is_try: bool, input: &Input) -> Result<ArrayRef> {
    let from = array.data_type();
    if from == to {
        return Ok(array.clone());
    }
    if let DataType::Dictionary(_, values) = from {
        return convert(&plain(array, values)?, to, is_try, input);
    }
    if let DataType::Dictionary(keys, values) = to {
        return dictionary(&convert(array, values, is_try, input)?, keys, to);
    }
    let (from_domain, to_domain) = (domain_of(from), domain_of(to));
    let rows = array.len();
    if (from_domain == to_domain && matches!(to_domain, Some(Domain::Text | Domain::Binary)))
        || array.logical_null_count() == rows
    {
        return cast(array, to).map_err(|error| cannot(&error));
    }
    let mut bad = vec![false; rows];
    let result = match (from_domain, to_domain) {
        (Some(Domain::Text), Some(Domain::Binary)) => {
            let bytes: BinaryArray = texts(array)?.iter().map(|text| text.map(str::as_bytes)).collect();
            return cast(&(Arc::new(bytes) as ArrayRef), to).map_err(|error| cannot(&error));
        }
        (Some(Domain::Binary), Some(Domain::Text)) => {
            let bytes = cast(array, &DataType::Binary).map_err(|error| cannot(&error))?;
            let read = |(row, bytes): (usize, Option<&[u8]>)| {
                let text = bytes.map(std::str::from_utf8);
                bad[row] = matches!(text, Some(Err(_)));
                text.and_then(std::result::Result::ok).map(str::to_owned)
            };
            let read: StringArray = bytes.as_binary::<i32>().iter().enumerate().map(read).collect();
            cast(&(Arc::new(read) as ArrayRef), to).map_err(|error| cannot(&error))?
        }
        (Some(_), Some(Domain::Text)) => {
            let texts: StringArray = (0..rows).map(|row| text_of(array, row)).collect();
            return cast(&(Arc::new(texts) as ArrayRef), to).map_err(|error| cannot(&error));
        }
        (Some(Domain::Text), Some(domain)) => {
            let texts = texts(array)?;
            let read = |row: usize| -> Option<i128> { parse(texts.value(row), domain, to) };
            let mut floats = vec![0.0; rows];
            let mut ints = vec![0; rows];
            for row in (0..rows).filter(|row| texts.is_valid(*row)) {
                if domain == Domain::Float {
                    let value = floats::parse(texts.value(row));
                    bad[row] = value.is_none();
                    floats[row] = value.unwrap_or_default();
                } else {
                    let value = read(row);
                    bad[row] = value.is_none();
                    ints[row] = value.unwrap_or_default();
                }
            }
            let numbers = if domain == Domain::Float { Numbers::Float(floats) } else { Numbers::Int(ints) };
            fit(numbers, array, &mut bad, to)?
        }
        (Some(from_domain), Some(to_domain)) => {
            let numbers = Numbers::of(array).ok_or_else(|| no_cast(from, to))?;
            let numbers = scaled(numbers, (from_domain, from), (to_domain, to), &mut bad);
            fit(numbers, array, &mut bad, to)?
        }
        _ => return Err(no_cast(from, to)),
    };
    match (0..rows).find(|row| bad[*row] && array.is_valid(*row)) {
        Some(row) if !is_try => {
            let value = text_of(array, row).unwrap_or_default();
            Err(input.fails(row, format_args!("cannot cast {value:?} to {to}")))
        }
        Some(_) => {
            let good: NullBuffer = bad.iter().map(|bad| !bad).collect();
            let nulls = NullBuffer::union(result.nulls(), Some(&good));
            with_nulls(&result, nulls)
        }
        None => Ok(result),
    }
}

/// The dictionary of an array's values.
fn dictionary(array: &ArrayRef, keys: &DataType, to: &DataType) -> Result<ArrayRef> {
    let is_too_small = || Error::invalid_input(format!("more different values than {to} has keys for"));
    let mut places: HashMap<String, i128> = HashMap::new();
    let mut picks: Vec<Pick> = Vec::new();
    let mut own = vec![0; array.len()];
    for (row, own) in own.iter_mut().enumerate() {
        // Different values have different texts, binary aside.
        let Some(text) = text_of(array, row) else { continue };
        *own = *places.entry(text).or_insert_with(|| {
            picks.push(Some((0, row)));
            picks.len() as i128 - 1
        });
    }
    let values = pick(std::slice::from_ref(array), &picks, array.data_type()).map_err(|error| cannot(&error))?;
    let own = Numbers::Int(own).narrow(array.logical_nulls(), keys).map_err(|_| is_too_small())?;
    let data = own.to_data().into_builder().data_type(to.clone()).add_child_data(values.to_data()).build();
    data.map(arrow_array::make_array).map_err(|error| Error::internal(error.to_string()))
}

/// The same values with other nulls.
pub(super) fn with_nulls(array: &ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let data = array.to_data().into_builder().nulls(nulls).build();
    data.map(arrow_array::make_array).map_err(|error| Error::internal(error.to_string()))
}

/// Numbers as an array; values out of its range become any, and bad.
fn fit(numbers: Numbers, array: &ArrayRef, bad: &mut [bool], to: &DataType) -> Result<ArrayRef> {
    let numbers = match numbers {
        Numbers::Int(mut values) => {
            if let Some((least, greatest)) = range_of(to) {
                for (value, bad) in values.iter_mut().zip(bad.iter_mut()) {
                    if *value < least || *value > greatest {
                        (*value, *bad) = (0, true);
                    }
                }
            }
            Numbers::Int(values)
        }
        Numbers::Float(mut values) => {
            let greatest = match to {
                DataType::Float16 => 65_519.0,
                DataType::Float32 => f64::from(f32::MAX),
                _ => f64::MAX,
            };
            for (value, bad) in values.iter_mut().zip(bad.iter_mut()) {
                if value.is_finite() && value.abs() > greatest {
                    (*value, *bad) = (0.0, true);
                }
            }
            Numbers::Float(values)
        }
    };
    numbers.narrow(array.nulls().cloned(), to).map_err(|error| cannot(&error))
}

fn range_of(data_type: &DataType) -> Option<(i128, i128)> {
    use DataType as D;
    Some(match data_type {
        D::Int8 => (i8::MIN.into(), i8::MAX.into()),
        D::Int16 => (i16::MIN.into(), i16::MAX.into()),
        D::Int32 | D::Date32 => (i32::MIN.into(), i32::MAX.into()),
        D::Int64 | D::Date64 | D::Timestamp(_, _) => (i64::MIN.into(), i64::MAX.into()),
        D::UInt8 => (0, u8::MAX.into()),
        D::UInt16 => (0, u16::MAX.into()),
        D::UInt32 => (0, u32::MAX.into()),
        D::UInt64 => (0, u64::MAX.into()),
        D::Decimal128(precision, _) => {
            let limit = 10_i128.checked_pow(u32::from(*precision))? - 1;
            (-limit, limit)
        }
        _ => return None,
    })
}

/// Numbers of one type's meaning as those of another's.
fn scaled(numbers: Numbers, from: (Domain, &DataType), to: (Domain, &DataType), bad: &mut [bool]) -> Numbers {
    let scale = |domain: Domain| if let Domain::Decimal(scale) = domain { scale } else { 0 };
    let (from_scale, to_scale) = (scale(from.0), scale(to.0));
    match (numbers, to.0) {
        (Numbers::Int(values), Domain::Float) => {
            let factor = power_of_ten(from_scale);
            Numbers::Float(values.into_iter().map(|value| value as f64 / factor).collect())
        }
        (Numbers::Float(values), Domain::Float) => Numbers::Float(values),
        (Numbers::Float(values), Domain::Bool) => {
            Numbers::Int(values.into_iter().map(|value| i128::from(value != 0.0)).collect())
        }
        (Numbers::Float(values), _) => {
            let factor = power_of_ten(to_scale);
            let whole = |(row, value): (usize, f64)| {
                let value = if to_scale == 0 { value.trunc() } else { (value * factor).round() };
                // A double below this has an integer of 128 bits, and NaN is not below.
                let is_whole = value.abs() < 1.7e38;
                bad[row] |= !is_whole;
                if is_whole { value as i128 } else { 0 }
            };
            Numbers::Int(values.into_iter().enumerate().map(whole).collect())
        }
        (Numbers::Int(values), Domain::Bool) => {
            Numbers::Int(values.into_iter().map(|value| i128::from(value != 0)).collect())
        }
        (Numbers::Int(values), _) => {
            let (multiply, divide) = match (from.0, to.0) {
                (Domain::Time, Domain::Time) => (nanos_of(from.1), nanos_of(to.1)),
                _ => (ten_to(to_scale - from_scale), ten_to(from_scale - to_scale)),
            };
            let is_floor = from.0 == Domain::Time;
            let change = |(row, value): (usize, i128)| {
                let Some(scaled) = value.checked_mul(multiply) else {
                    bad[row] = true;
                    return 0;
                };
                match (is_floor, to.0) {
                    (true, _) => scaled.div_euclid(divide),
                    // Half away from zero, and integers are cut.
                    (_, Domain::Decimal(_)) if divide > 1 => {
                        (scaled + scaled.signum() * (divide / 2)).checked_div(divide).unwrap_or_default()
                    }
                    _ => scaled / divide,
                }
            };
            Numbers::Int(values.into_iter().enumerate().map(change).collect())
        }
    }
}

pub(super) fn ten_to(exponent: i8) -> i128 {
    10_i128.checked_pow(u32::from(exponent.max(0).unsigned_abs())).unwrap_or(i128::MAX)
}

/// Text as an integer of a type: a whole number, a decimal's unscaled value, a boolean, a count of time.
fn parse(text: &str, domain: Domain, to: &DataType) -> Option<i128> {
    match domain {
        Domain::Int => text.parse().ok(),
        Domain::Bool => match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Some(1),
            "false" | "f" | "no" | "n" | "off" | "0" => Some(0),
            _ => None,
        },
        Domain::Time if *to == DataType::Date32 => calendar::parse_date(text)
            .map(i128::from)
            .or_else(|| Some(calendar::parse_timestamp(text)? / NANOS_PER_DAY)),
        Domain::Time => calendar::parse_timestamp(text).map(|nanos| nanos.div_euclid(nanos_of(to))),
        Domain::Decimal(scale) => {
            let (sign, digits) = match text.strip_prefix('-') {
                Some(digits) => (-1, digits),
                None => (1, text.strip_prefix('+').unwrap_or(text)),
            };
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            if whole.len() + fraction.len() == 0 || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
                return None;
            }
            let kept = fraction.get(..fraction.len().min(usize::from(scale.unsigned_abs())))?;
            let round_up = fraction.as_bytes().get(kept.len()).is_some_and(|digit| *digit >= b'5');
            let unscaled: i128 = format!("{whole}{kept}").parse().ok()?;
            let missing = i8::try_from(kept.len()).ok().map(|kept| scale - kept)?;
            Some(sign * (unscaled.checked_mul(ten_to(missing))? + i128::from(round_up)))
        }
        Domain::Float | Domain::Text | Domain::Binary => None,
    }
}

/// A value as text; `None` for null.
pub(super) fn text_of(array: &ArrayRef, row: usize) -> Option<String> {
    let one = array.slice(row, 1);
    if one.logical_null_count() > 0 {
        return None;
    }
    let data_type = array.data_type();
    Some(match (domain_of(data_type), Numbers::of(&one)) {
        (Some(Domain::Text), _) => texts(&one).ok()?.value(0).to_owned(),
        (Some(Domain::Bool), Some(Numbers::Int(values))) => (*values.first()? != 0).to_string(),
        (Some(Domain::Decimal(scale)), Some(Numbers::Int(values))) => {
            let value = *values.first()?;
            let digits =
                format!("{:0>width$}", value.unsigned_abs(), width = usize::from(scale.max(0).unsigned_abs()) + 1);
            let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale.max(0).unsigned_abs()));
            let sign = if value < 0 { "-" } else { "" };
            if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
        }
        (Some(Domain::Time), Some(Numbers::Int(values))) => {
            let value = *values.first()?;
            if *data_type == DataType::Date32 {
                calendar::format_date(value)
            } else {
                calendar::format_timestamp(value * nanos_of(data_type))
            }
        }
        (_, Some(Numbers::Int(values))) => values.first()?.to_string(),
        // A float32 has fewer digits than its double shows.
        (_, Some(Numbers::Float(values))) if *data_type == DataType::Float32 => {
            format!("{:?}", *values.first()? as f32)
        }
        (_, Some(Numbers::Float(values))) => format!("{:?}", values.first()?),
        _ => format!("a value of {data_type}"),
    })
}

/// Text of any kind with 32-bit offsets.
pub(super) fn texts(array: &ArrayRef) -> Result<StringArray> {
    let plain = match array.data_type() {
        DataType::Dictionary(_, values) => plain(array, values)?,
        _ => array.clone(),
    };
    let texts = cast(&plain, &DataType::Utf8).map_err(|error| cannot(&error))?;
    texts.as_string_opt::<i32>().cloned().ok_or_else(|| Error::internal("text that is none"))
}

/// The values of a dictionary's keys.
pub(super) fn plain(array: &ArrayRef, values: &DataType) -> Result<ArrayRef> {
    cast(array, values).map_err(|error| cannot(&error))
}

fn no_cast(from: &DataType, to: &DataType) -> Error {
    Error::not_supported(format!("a cast from {from} to {to}"))
}

pub(super) fn cannot(error: &CastError) -> Error {
    match error {
        CastError::TooLong => Error::not_supported("more than 2 GB of text in one batch"),
        other => Error::internal(format!("a cast that was possible: {other:?}")),
    }
}
