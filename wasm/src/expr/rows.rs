//! Functions row by row: their arguments as scalars, their results as arrays.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, ArrayRef, BooleanArray, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::arithmetic::numbers_as;
use super::convert::{Domain, cannot, domain_of, texts};
use super::eval::plain_value;
use super::functions::{self, Function, Scalar};
use super::tree::{Expr, Input, Kind};
use crate::batch::cast::CastError;
use crate::batch::numbers::Numbers;
use crate::error::{Error, Result};

/// An argument's values; a constant text is not repeated.
enum Argument {
    Text(StringArray),
    One(StringArray),
    Number(Numbers, Option<NullBuffer>),
}

impl Argument {
    fn of(expr: &Expr, is_float: bool, input: &Input) -> Result<Argument> {
        match (domain_of(&expr.data_type), &expr.kind) {
            (Some(Domain::Text), Kind::Constant(text)) => texts(text).map(Argument::One),
            (Some(Domain::Text), _) => texts(&plain_value(expr, input)?).map(Argument::Text),
            (Some(domain), _) => {
                let domain = if is_float { Domain::Float } else { domain };
                numbers_as(expr, domain, input).map(|(numbers, nulls)| Argument::Number(numbers, nulls))
            }
            (None, _) => Err(Error::internal(format!("an argument of type {}", expr.data_type))),
        }
    }

    fn scalar(&self, row: usize) -> Scalar<'_> {
        match self {
            Argument::Text(texts) if texts.is_valid(row) => Scalar::Text(Cow::Borrowed(texts.value(row))),
            Argument::One(texts) if texts.is_valid(0) => Scalar::Text(Cow::Borrowed(texts.value(0))),
            Argument::Number(numbers, nulls) if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) => match numbers
            {
                Numbers::Int(values) => Scalar::Int(values[row]),
                Numbers::Float(values) => Scalar::Float(values[row]),
            },
            _ => Scalar::Null,
        }
    }
}

/// The function of each row.
pub(super) fn call(function: Function, args: &[Expr], expr: &Expr, input: &Input) -> Result<ArrayRef> {
    let rows = input.rows();
    // Where the result has the type of the arguments, they are of one domain; else numbers come as doubles, and counts as they are.
    let takes_floats = matches!(expr.data_type, DataType::Float64 | DataType::Float32) || function == Function::IsNan;
    let takes_own = matches!(function, Function::Abs | Function::Greatest | Function::Least);
    let is_float = |at: usize| takes_floats && !takes_own && !(function == Function::Round && at == 1);
    let arguments =
        args.iter().enumerate().map(|(at, arg)| Argument::of(arg, is_float(at), input)).collect::<Result<Vec<_>>>()?;
    let mut scalars: Vec<Scalar> = Vec::with_capacity(arguments.len());
    let mut text = StringBuilder::new();
    let (mut ints, mut floats, mut valid) = (Vec::new(), Vec::new(), Vec::with_capacity(rows));
    let mut text_bytes = 0_usize;
    let is_text = expr.data_type == DataType::Utf8;
    for row in 0..rows {
        scalars.clear();
        scalars.extend(arguments.iter().map(|argument| argument.scalar(row)));
        let result = functions::call(function, &scalars).map_err(|message| input.fails(row, message))?;
        valid.push(result != Scalar::Null);
        match result {
            Scalar::Text(value) => {
                text_bytes = text_bytes.saturating_add(value.len());
                if text_bytes > i32::MAX as usize {
                    return Err(cannot(&CastError::TooLong));
                }
                text.append_value(value);
            }
            Scalar::Bool(value) => ints.push(i128::from(value)),
            Scalar::Int(value) => ints.push(value),
            // Which NaN a library gives is up to the platform.
            Scalar::Float(value) if value.is_nan() && function != Function::Sqrt => floats.push(f64::NAN),
            Scalar::Float(value) => floats.push(value),
            Scalar::Null if is_text => text.append_null(),
            Scalar::Null => {
                ints.push(0);
                floats.push(0.0);
            }
        }
    }
    if is_text {
        return Ok(Arc::new(text.finish()));
    }
    let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
    let is_float = matches!(domain_of(&expr.data_type), Some(Domain::Float));
    narrow(if is_float { Numbers::Float(floats) } else { Numbers::Int(ints) }, nulls, expr, input)
}

fn narrow(numbers: Numbers, nulls: Option<NullBuffer>, expr: &Expr, input: &Input) -> Result<ArrayRef> {
    numbers.narrow(nulls, &expr.data_type).map_err(|error| match error {
        CastError::Row(row) => input.fails(row, format_args!("overflow: the result does not fit {}", expr.data_type)),
        other => cannot(&other),
    })
}

/// A part of a date, or the beginning of one.
pub(super) fn date(expr: &Expr, input: &Input) -> Result<ArrayRef> {
    let (Kind::DatePart(part, operand) | Kind::DateTruncate(part, operand)) = &expr.kind else {
        return Err(Error::internal("no part of a date"));
    };
    let (Numbers::Int(mut nanos), nulls) = numbers_as(operand, Domain::Time, input)? else {
        return Err(Error::internal("a date that is no number"));
    };
    let is_part = matches!(expr.kind, Kind::DatePart(..));
    let unit = super::convert::nanos_of(&expr.data_type);
    for value in &mut nanos {
        *value = if is_part { part.of(*value) } else { part.truncate(*value).unwrap_or_default().div_euclid(unit) };
    }
    narrow(Numbers::Int(nanos), nulls, expr, input)
}

/// Whether a mask holds anywhere in a range of its rows.
pub(super) fn holds(mask: &BooleanArray, row: usize) -> bool {
    mask.is_valid(row) && mask.value(row)
}
