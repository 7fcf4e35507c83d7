//! Literals of an expression, and how they become a value of a column's type.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray, PrimitiveArray,
    StringArray,
};
use arrow_schema::{DataType, TimeUnit};

use crate::batch::floats;

/// A value as the text gives it.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    /// A whole number, any size that a 64-bit column could hold.
    Int(i128),
    /// A number with a fraction or an exponent: `unscaled / 10^scale` where that is exact, and the closest double.
    Decimal {
        value: f64,
        exact: Option<(i128, u8)>,
    },
    Text(String),
    Bytes(Vec<u8>),
    /// Days since the epoch.
    Date(i32),
    /// Nanoseconds since the epoch.
    Timestamp(i128),
}

/// A literal as a value of a column's type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fitted {
    /// The value itself, as an array of one.
    Exact(ArrayRef),
    /// No value of the type equals the literal; this one is the greatest below it.
    Above(ArrayRef),
    /// Less than every value of the type.
    BelowAll,
    /// Greater than every value of the type.
    AboveAll,
}

/// Why a literal is no value of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misfit {
    /// Another kind of value.
    Kind,
    /// The right kind, and out of the type's range.
    Range,
}

impl Literal {
    /// From digits with an optional fraction and exponent; `None` when no type could hold it.
    pub(super) fn number(text: &str) -> Option<Literal> {
        if text.bytes().all(|b| b.is_ascii_digit()) {
            return text.parse().ok().map(Literal::Int);
        }
        let value = floats::parse(text).filter(|value| value.is_finite())?;
        let exact = match text.split_once('.') {
            Some((whole, fraction)) if !text.contains(['e', 'E']) => {
                let scale = u8::try_from(fraction.len()).ok().filter(|scale| *scale <= 38);
                scale.and_then(|scale| Some((format!("{whole}{fraction}").parse().ok()?, scale)))
            }
            _ => None,
        };
        Some(Literal::Decimal { value, exact })
    }

    pub(super) fn negated(self) -> Option<Literal> {
        match self {
            Literal::Int(value) => Some(Literal::Int(-value)),
            Literal::Decimal { value, exact } => {
                Some(Literal::Decimal { value: -value, exact: exact.map(|(unscaled, scale)| (-unscaled, scale)) })
            }
            _ => None,
        }
    }

    /// The literal's kind, as messages name it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Literal::Null => "null",
            Literal::Bool(_) => "a boolean",
            Literal::Int(_) => "a whole number",
            Literal::Decimal { .. } => "a number with a fraction",
            Literal::Text(_) => "text",
            Literal::Bytes(_) => "binary",
            Literal::Date(_) => "a date",
            Literal::Timestamp(_) => "a timestamp",
        }
    }

    /// The type that the literal has where nothing else gives it one; `None` when no type holds it.
    pub(super) fn natural_type(&self) -> Option<DataType> {
        Some(match self {
            Literal::Null => DataType::Null,
            Literal::Bool(_) => DataType::Boolean,
            Literal::Int(value) if i64::try_from(*value).is_ok() => DataType::Int64,
            Literal::Int(value) if u64::try_from(*value).is_ok() => DataType::UInt64,
            Literal::Int(_) => return None,
            Literal::Decimal { .. } => DataType::Float64,
            Literal::Text(_) => DataType::Utf8,
            Literal::Bytes(_) => DataType::Binary,
            Literal::Date(_) => DataType::Date32,
            Literal::Timestamp(nanos) if nanos % 1_000 == 0 => DataType::Timestamp(TimeUnit::Microsecond, None),
            Literal::Timestamp(_) => DataType::Timestamp(TimeUnit::Nanosecond, None),
        })
    }

    /// The literal as a value of `to`. `Null` fits nowhere: comparisons with it are folded before.
    pub(super) fn fit(&self, to: &DataType) -> Result<Fitted, Misfit> {
        macro_rules! int {
            ($type:ty, $native:ty, $value:expr) => {
                exact(PrimitiveArray::<$type>::from_value(<$native>::try_from(*$value).map_err(|_| Misfit::Range)?, 1))
            };
        }
        match (to, self) {
            (DataType::Boolean, Literal::Bool(value)) => exact(BooleanArray::from(vec![*value])),
            (DataType::Int8, Literal::Int(value)) => int!(Int8Type, i8, value),
            (DataType::Int16, Literal::Int(value)) => int!(Int16Type, i16, value),
            (DataType::Int32, Literal::Int(value)) => int!(Int32Type, i32, value),
            (DataType::Int64, Literal::Int(value)) => int!(Int64Type, i64, value),
            (DataType::UInt8, Literal::Int(value)) => int!(UInt8Type, u8, value),
            (DataType::UInt16, Literal::Int(value)) => int!(UInt16Type, u16, value),
            (DataType::UInt32, Literal::Int(value)) => int!(UInt32Type, u32, value),
            (DataType::UInt64, Literal::Int(value)) => int!(UInt64Type, u64, value),
            (DataType::Float16 | DataType::Float32 | DataType::Float64, Literal::Int(value)) => {
                float(to, *value as f64)
            }
            (DataType::Float16 | DataType::Float32 | DataType::Float64, Literal::Decimal { value, .. }) => {
                float(to, *value)
            }
            (DataType::Decimal128(precision, scale), Literal::Int(value)) => decimal(*precision, *scale, *value, 0),
            (DataType::Decimal128(precision, scale), Literal::Decimal { exact, .. }) => {
                let (unscaled, own_scale) = exact.ok_or(Misfit::Range)?;
                decimal(*precision, *scale, unscaled, own_scale)
            }
            (DataType::Utf8 | DataType::Utf8View, Literal::Text(text)) => exact(StringArray::from(vec![text.as_str()])),
            (DataType::LargeUtf8, Literal::Text(text)) => exact(LargeStringArray::from(vec![text.as_str()])),
            (DataType::Binary | DataType::BinaryView, Literal::Bytes(bytes)) => {
                exact(BinaryArray::from(vec![bytes.as_slice()]))
            }
            (DataType::LargeBinary, Literal::Bytes(bytes)) => exact(LargeBinaryArray::from(vec![bytes.as_slice()])),
            (DataType::FixedSizeBinary(width), Literal::Bytes(bytes)) if bytes.len() as i64 == i64::from(*width) => {
                exact(FixedSizeBinaryArray::try_from_iter(std::iter::once(bytes)).map_err(|_| Misfit::Range)?)
            }
            (DataType::FixedSizeBinary(_), Literal::Bytes(_)) => Err(Misfit::Range),
            (DataType::Date32, Literal::Date(days)) => exact(PrimitiveArray::<Date32Type>::from_value(*days, 1)),
            (DataType::Date64, Literal::Date(days)) => {
                exact(PrimitiveArray::<Date64Type>::from_value(i64::from(*days) * 86_400_000, 1))
            }
            (DataType::Timestamp(unit, zone), Literal::Date(days)) => {
                timestamp(*unit, zone.as_ref(), i128::from(*days) * 86_400_000_000_000)
            }
            (DataType::Timestamp(unit, zone), Literal::Timestamp(nanos)) => timestamp(*unit, zone.as_ref(), *nanos),
            (DataType::Dictionary(_, values), _) => self.fit(values),
            _ => Err(Misfit::Kind),
        }
    }
}

fn exact(array: impl arrow_array::Array + 'static) -> Result<Fitted, Misfit> {
    Ok(Fitted::Exact(Arc::new(array)))
}

/// The closest value of the column's width, as LanceDB takes it: `0.1` finds a float32 that was written as 0.1.
fn float(to: &DataType, value: f64) -> Result<Fitted, Misfit> {
    // Adding zero turns -0.0 into 0.0, which compares equal to it in the dialect and not in the kernels' total order.
    let value = value + 0.0;
    match to {
        DataType::Float16 => exact(PrimitiveArray::<Float16Type>::from_value(half::f16::from_f64(value), 1)),
        DataType::Float32 => exact(PrimitiveArray::<Float32Type>::from_value(value as f32, 1)),
        _ => exact(PrimitiveArray::<Float64Type>::from_value(value, 1)),
    }
}

fn decimal(precision: u8, scale: i8, unscaled: i128, own_scale: u8) -> Result<Fitted, Misfit> {
    let shift = i32::from(scale) - i32::from(own_scale);
    let factor = 10_i128.checked_pow(shift.unsigned_abs()).ok_or(Misfit::Range)?;
    let (value, is_exact) = if shift >= 0 {
        (unscaled.checked_mul(factor), true)
    } else {
        (Some(unscaled.div_euclid(factor)), unscaled.rem_euclid(factor) == 0)
    };
    let limit = 10_i128.checked_pow(u32::from(precision)).ok_or(Misfit::Range)?;
    match value {
        Some(value) if value > -limit && value < limit => {
            let array = PrimitiveArray::<Decimal128Type>::from_value(value, 1)
                .with_data_type(DataType::Decimal128(precision, scale));
            Ok(if is_exact { Fitted::Exact(Arc::new(array)) } else { Fitted::Above(Arc::new(array)) })
        }
        _ => Ok(if unscaled < 0 { Fitted::BelowAll } else { Fitted::AboveAll }),
    }
}

fn timestamp(unit: TimeUnit, zone: Option<&Arc<str>>, nanos: i128) -> Result<Fitted, Misfit> {
    let nanos_per_unit = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let Ok(value) = i64::try_from(nanos.div_euclid(nanos_per_unit)) else {
        return Ok(if nanos < 0 { Fitted::BelowAll } else { Fitted::AboveAll });
    };
    let to = DataType::Timestamp(unit, zone.cloned());
    let array: ArrayRef = match unit {
        TimeUnit::Second => Arc::new(PrimitiveArray::<TimestampSecondType>::from_value(value, 1).with_data_type(to)),
        TimeUnit::Millisecond => {
            Arc::new(PrimitiveArray::<TimestampMillisecondType>::from_value(value, 1).with_data_type(to))
        }
        TimeUnit::Microsecond => {
            Arc::new(PrimitiveArray::<TimestampMicrosecondType>::from_value(value, 1).with_data_type(to))
        }
        TimeUnit::Nanosecond => {
            Arc::new(PrimitiveArray::<TimestampNanosecondType>::from_value(value, 1).with_data_type(to))
        }
    };
    Ok(if nanos.rem_euclid(nanos_per_unit) == 0 { Fitted::Exact(array) } else { Fitted::Above(array) })
}
