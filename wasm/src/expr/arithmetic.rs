//! Arithmetic and comparison of numbers, wide: integers and decimals of 128 bits, doubles, nanoseconds.
//!
//! A result becomes a value of its type only where it leaves the expression, and an error that names the row if it has no place there.

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use super::convert::{Domain, domain_of, nanos_of, ten_to};
use super::eval::plain_value;
use super::parse::ArithmeticOp;
use super::tree::{Expr, Input, Kind};
use crate::batch::cast::CastError;
use crate::batch::compare::CompareOp;
use crate::batch::numbers::Numbers;
use crate::error::{Error, Result};

/// Numbers with where they are null.
pub(super) type Wide = (Numbers, Option<NullBuffer>);

/// The values of a numeric expression, in the domain of its type.
pub(super) fn numbers_of(expr: &Expr, input: &Input) -> Result<Wide> {
    let domain = domain_of(&expr.data_type).ok_or_else(|| not_a_number(expr))?;
    numbers_as(expr, domain, input)
}

/// The computed value as an array of its type.
pub(super) fn narrowed(expr: &Expr, input: &Input) -> Result<ArrayRef> {
    let (numbers, nulls) = numbers_of(expr, input)?;
    let data_type = &expr.data_type;
    numbers.narrow(nulls, data_type).map_err(|error| match error {
        CastError::Row(row) => {
            let value = match &numbers {
                Numbers::Int(values) => values[row].to_string(),
                Numbers::Float(values) => format!("{:?}", values[row]),
            };
            input.fails(row, format_args!("overflow: {value} does not fit {data_type}"))
        }
        _ => not_a_number(expr),
    })
}

fn not_a_number(expr: &Expr) -> Error {
    Error::internal(format!("numbers of type {}", expr.data_type))
}

/// The values of an expression as numbers of a domain.
pub(super) fn numbers_as(expr: &Expr, domain: Domain, input: &Input) -> Result<Wide> {
    if let Some(operand) = expr.widening() {
        return numbers_as(operand, domain, input);
    }
    let (numbers, nulls) = match &expr.kind {
        Kind::Arithmetic { op, left, right } => arithmetic(*op, left, right, expr, input)?,
        Kind::Negate(operand) => {
            let (numbers, nulls) = numbers_of(operand, input)?;
            let negated = match numbers {
                Numbers::Int(values) => Numbers::Int(values.into_iter().map(i128::wrapping_neg).collect()),
                Numbers::Float(values) => Numbers::Float(values.into_iter().map(|value| -value).collect()),
            };
            (negated, nulls)
        }
        Kind::Constant(constant) => {
            let one = Numbers::of(constant).ok_or_else(|| not_a_number(expr))?;
            let rows = input.rows();
            let nulls = constant.is_null(0).then(|| NullBuffer::new_null(rows));
            let numbers = match one {
                Numbers::Int(values) => Numbers::Int(vec![values.first().copied().unwrap_or_default(); rows]),
                Numbers::Float(values) => Numbers::Float(vec![values.first().copied().unwrap_or_default(); rows]),
            };
            (numbers, nulls)
        }
        _ => {
            let array = plain_value(expr, input)?;
            let numbers = match Numbers::of(&array).ok_or_else(|| not_a_number(expr))? {
                // A NaN of a column is greater than every number, whatever its sign.
                Numbers::Float(values) if !matches!(expr.kind, Kind::Call(..)) => {
                    Numbers::Float(values.into_iter().map(|v| if v.is_nan() { f64::NAN } else { v }).collect())
                }
                numbers => numbers,
            };
            (numbers, array.nulls().cloned())
        }
    };
    let from = domain_of(&expr.data_type).ok_or_else(|| not_a_number(expr))?;
    Ok((rescaled(numbers, nulls.as_ref(), (from, expr), domain, input)?, nulls))
}

fn rescaled(
    numbers: Numbers,
    nulls: Option<&NullBuffer>,
    (from, expr): (Domain, &Expr),
    to: Domain,
    input: &Input,
) -> Result<Numbers> {
    let factor = match (from, to) {
        (Domain::Time, Domain::Time) => nanos_of(&expr.data_type),
        (Domain::Int | Domain::Bool, Domain::Decimal(scale)) => ten_to(scale),
        (Domain::Decimal(from), Domain::Decimal(to)) => ten_to(to - from),
        (Domain::Decimal(scale), Domain::Float) => {
            let Numbers::Int(values) = numbers else { return Err(not_a_number(expr)) };
            let factor = 10_f64.powi(i32::from(scale));
            return Ok(Numbers::Float(values.into_iter().map(|value| value as f64 / factor).collect()));
        }
        (Domain::Int | Domain::Bool, Domain::Float) => {
            let Numbers::Int(values) = numbers else { return Err(not_a_number(expr)) };
            return Ok(Numbers::Float(values.into_iter().map(|value| value as f64).collect()));
        }
        _ => 1,
    };
    match numbers {
        Numbers::Int(mut values) if factor != 1 => {
            for (row, value) in values.iter_mut().enumerate() {
                match value.checked_mul(factor) {
                    Some(scaled) => *value = scaled,
                    None if nulls.is_none_or(|nulls| nulls.is_valid(row)) => return Err(overflow(row, input)),
                    None => {}
                }
            }
            Ok(Numbers::Int(values))
        }
        numbers => Ok(numbers),
    }
}

fn overflow(row: usize, input: &Input) -> Error {
    input.fails(row, "overflow: the number has more than 38 digits")
}

fn arithmetic(op: ArithmeticOp, left: &Expr, right: &Expr, expr: &Expr, input: &Input) -> Result<Wide> {
    let own = domain_of(&expr.data_type).ok_or_else(|| not_a_number(expr))?;
    let scale = |expr: &Expr| match domain_of(&expr.data_type) {
        Some(Domain::Decimal(scale)) => scale,
        _ => 0,
    };
    let (left_domain, right_domain) = match (own, op) {
        // The scales add up.
        (Domain::Decimal(_), ArithmeticOp::Multiply) => (Domain::Decimal(scale(left)), Domain::Decimal(scale(right))),
        // The dividend has the digits of the quotient and of the divisor.
        (Domain::Decimal(own), ArithmeticOp::Divide) => {
            (Domain::Decimal(own.saturating_add(scale(right))), Domain::Decimal(scale(right)))
        }
        _ => (own, own),
    };
    let (left_numbers, left_nulls) = numbers_as(left, left_domain, input)?;
    let (right_numbers, right_nulls) = numbers_as(right, right_domain, input)?;
    let nulls = NullBuffer::union(left_nulls.as_ref(), right_nulls.as_ref());
    let is_valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let numbers = match (left_numbers, right_numbers) {
        (Numbers::Int(mut left), Numbers::Int(right)) => {
            for (row, (left, right)) in left.iter_mut().zip(right).enumerate() {
                let result = match op {
                    ArithmeticOp::Add => left.checked_add(right),
                    ArithmeticOp::Subtract => left.checked_sub(right),
                    ArithmeticOp::Multiply => left.checked_mul(right),
                    ArithmeticOp::Divide | ArithmeticOp::Remainder => quotient(op, *left, right),
                };
                *left = match result {
                    Some(result) => result,
                    None if !is_valid(row) => 0,
                    None if right == 0 => return Err(input.fails(row, "division by zero")),
                    None => return Err(overflow(row, input)),
                };
            }
            Numbers::Int(left)
        }
        (Numbers::Float(mut left), Numbers::Float(right)) => {
            for (left, right) in left.iter_mut().zip(right) {
                let result = match op {
                    ArithmeticOp::Add => *left + right,
                    ArithmeticOp::Subtract => *left - right,
                    ArithmeticOp::Multiply => *left * right,
                    ArithmeticOp::Divide => *left / right,
                    ArithmeticOp::Remainder => *left % right,
                };
                // What has no result is less than every number, where LanceDB's is; a NaN stays the one that it was.
                *left = match result.is_nan() {
                    false => result,
                    true if left.is_nan() => *left,
                    true if right.is_nan() => right,
                    true => -f64::NAN,
                };
            }
            Numbers::Float(left)
        }
        _ => return Err(not_a_number(expr)),
    };
    Ok((numbers, nulls))
}

/// A division by a machine's own instruction where it can be: that of 128 bits is a routine.
fn quotient(op: ArithmeticOp, left: i128, right: i128) -> Option<i128> {
    let is_divide = op == ArithmeticOp::Divide;
    match (i64::try_from(left), i64::try_from(right)) {
        (Ok(left), Ok(right)) if right != 0 && right != -1 => {
            Some(i128::from(if is_divide { left / right } else { left % right }))
        }
        _ if is_divide => left.checked_div(right),
        _ => left.checked_rem(right),
    }
}

/// Compares numbers of different types, or computed ones.
pub(super) fn compare_numbers(op: CompareOp, left: &Expr, right: &Expr, input: &Input) -> Result<BooleanArray> {
    let domains = (domain_of(&left.data_type), domain_of(&right.data_type));
    let domain = match domains {
        (Some(Domain::Float), _) | (_, Some(Domain::Float)) => Domain::Float,
        (Some(Domain::Decimal(left)), Some(Domain::Decimal(right))) => Domain::Decimal(left.max(right)),
        (Some(Domain::Decimal(scale)), _) | (_, Some(Domain::Decimal(scale))) => Domain::Decimal(scale),
        (Some(domain), _) => domain,
        _ => return Err(not_a_number(left)),
    };
    let (left_numbers, left_nulls) = numbers_as(left, domain, input)?;
    let (right_numbers, right_nulls) = numbers_as(right, domain, input)?;
    let values = match (&left_numbers, &right_numbers) {
        (Numbers::Int(left), Numbers::Int(right)) => {
            BooleanBuffer::collect_bool(left.len(), |row| op.holds(left[row].cmp(&right[row])))
        }
        // Adding zero makes one of the two zeros.
        (Numbers::Float(left), Numbers::Float(right)) => {
            BooleanBuffer::collect_bool(left.len(), |row| op.holds((left[row] + 0.0).total_cmp(&(right[row] + 0.0))))
        }
        _ => return Err(not_a_number(left)),
    };
    Ok(BooleanArray::new(values, NullBuffer::union(left_nulls.as_ref(), right_nulls.as_ref())))
}
