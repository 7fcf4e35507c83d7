//! Expressions over batches, in three-valued logic: a mask of true, false and null.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StructArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};

use super::bind::{ColumnRef, Expr};
use crate::batch::cast::cast;
use crate::batch::compare::{CompareOp, compare_columns, compare_value};
use crate::batch::like::Pattern;
use crate::error::{Error, Result};

/// The mask of a batch.
pub(super) fn evaluate(expr: &Expr, batch: &RecordBatch) -> Result<BooleanArray> {
    let rows = batch.num_rows();
    Ok(match expr {
        Expr::Constant(Some(value)) => constant(*value, rows),
        Expr::Constant(None) => BooleanArray::new_null(rows),
        Expr::Column(column) => column_of(column, batch)?.as_boolean().clone(),
        Expr::Not(operand) => {
            let (values, nulls) = evaluate(operand, batch)?.into_parts();
            BooleanArray::new(!&values, nulls)
        }
        Expr::And(operands) => fold(operands, batch, and)?,
        Expr::Or(operands) => fold(operands, batch, or)?,
        Expr::Compare { column, op, value } => {
            let column = plain(column_of(column, batch)?)?;
            compare_value(*op, &column, value).ok_or_else(|| incomparable(&column))?
        }
        Expr::NotNullThen { column, value } => {
            let nulls = column_of(column, batch)?.logical_nulls();
            BooleanArray::new(constant(*value, rows).values().clone(), nulls)
        }
        Expr::CompareColumns { left, op, right, compare_as } => {
            let left = converted(&column_of(left, batch)?, compare_as)?;
            let right = converted(&column_of(right, batch)?, compare_as)?;
            compare_columns(*op, &left, &right).ok_or_else(|| incomparable(&left))?
        }
        Expr::IsNull { column } => {
            let nulls = column_of(column, batch)?.logical_nulls();
            let is_null = nulls.map_or_else(|| BooleanBuffer::new_unset(rows), |nulls| !nulls.inner());
            BooleanArray::new(is_null, None)
        }
        Expr::IsBool { operand, value, .. } => {
            let (values, nulls) = evaluate(operand, batch)?.into_parts();
            let equal = if *value { values } else { !&values };
            BooleanArray::new(nulls.map_or(equal.clone(), |nulls| &equal & nulls.inner()), None)
        }
        Expr::In { column, values, has_null } => {
            let found = is_in(&plain(column_of(column, batch)?)?, values)?;
            if *has_null { or(&found, &BooleanArray::new_null(rows)) } else { found }
        }
        Expr::Like { column, pattern } => like(&column_of(column, batch)?, pattern)?,
    })
}

fn constant(value: bool, rows: usize) -> BooleanArray {
    let values = if value { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) };
    BooleanArray::new(values, None)
}

fn fold(
    operands: &[Expr],
    batch: &RecordBatch,
    combine: impl Fn(&BooleanArray, &BooleanArray) -> BooleanArray,
) -> Result<BooleanArray> {
    let mut masks = operands.iter().map(|operand| evaluate(operand, batch));
    let first = masks.next().ok_or_else(|| Error::internal("a chain without operands"))??;
    masks.try_fold(first, |left, right| Ok(combine(&left, &right?)))
}

/// False if either is false, null if either is null then.
fn and(left: &BooleanArray, right: &BooleanArray) -> BooleanArray {
    let values = left.values() & right.values();
    let nulls = known(left, right, |values| !values);
    BooleanArray::new(values, nulls)
}

/// True if either is true, null if either is null then.
fn or(left: &BooleanArray, right: &BooleanArray) -> BooleanArray {
    // A null slot may hold any bit: only valid ones count.
    let valid = |array: &BooleanArray| match array.nulls() {
        Some(nulls) => array.values() & nulls.inner(),
        None => array.values().clone(),
    };
    let values = &valid(left) | &valid(right);
    let nulls = known(left, right, BooleanBuffer::clone);
    BooleanArray::new(values, nulls)
}

/// Where the answer is known: both sides are, or one of them decides alone.
fn known(
    left: &BooleanArray,
    right: &BooleanArray,
    decides: impl Fn(&BooleanBuffer) -> BooleanBuffer,
) -> Option<NullBuffer> {
    if left.nulls().is_none() && right.nulls().is_none() {
        return None;
    }
    let validity = |array: &BooleanArray| {
        array.nulls().map_or_else(|| BooleanBuffer::new_set(array.len()), |nulls| nulls.inner().clone())
    };
    let (left_valid, right_valid) = (validity(left), validity(right));
    let both = &left_valid & &right_valid;
    let by_left = &left_valid & &decides(left.values());
    let by_right = &right_valid & &decides(right.values());
    Some(NullBuffer::new(&(&both | &by_left) | &by_right))
}

/// A column of the batch; a member of a null struct is null.
fn column_of(column: &ColumnRef, batch: &RecordBatch) -> Result<ArrayRef> {
    let absent = || Error::internal(format!("the batch lacks column \"{}\"", column.root));
    let mut array = batch.column_by_name(&column.root).ok_or_else(absent)?.clone();
    for member in &column.members {
        let parent: &StructArray = array.as_struct_opt().ok_or_else(absent)?;
        let child = parent.column_by_name(member).ok_or_else(absent)?.clone();
        array = match parent.nulls() {
            None => child,
            Some(nulls) => {
                let nulls = NullBuffer::union(Some(nulls), child.logical_nulls().as_ref());
                let data = child.to_data().into_builder().nulls(nulls).build();
                arrow_array::make_array(data.map_err(|error| Error::internal(error.to_string()))?)
            }
        };
    }
    if array.data_type() != &column.data_type {
        return Err(Error::internal(format!("column \"{}\" is {}", column.root, array.data_type())));
    }
    Ok(array)
}

fn converted(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    cast(array, to).map_err(|_| Error::invalid_input(format!("a value of {} does not fit {to}", array.data_type())))
}

/// Dictionaries as their values.
fn plain(array: ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Dictionary(_, values) => converted(&array, values),
        _ => Ok(array),
    }
}

fn incomparable(array: &ArrayRef) -> Error {
    Error::not_supported(format!("comparing values of type {} in a filter", array.data_type()))
}

/// Above this many values a hash set beats comparing with each.
const FEW_VALUES: usize = 8;

fn is_in(array: &ArrayRef, values: &[ArrayRef]) -> Result<BooleanArray> {
    if values.len() > FEW_VALUES
        && let Some(found) = is_in_set(array, values)
    {
        return Ok(found);
    }
    let none = BooleanArray::new(BooleanBuffer::new_unset(array.len()), array.logical_nulls());
    values.iter().try_fold(none, |found, value| {
        let equal = compare_value(CompareOp::Eq, array, value).ok_or_else(|| incomparable(array))?;
        Ok(or(&found, &equal))
    })
}

/// Membership by hash, for types whose equal values have equal bytes.
fn is_in_set(array: &ArrayRef, values: &[ArrayRef]) -> Option<BooleanArray> {
    fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef, values: &[ArrayRef]) -> BooleanArray
    where
        T::Native: std::hash::Hash + Eq,
    {
        let set: HashSet<T::Native> =
            values.iter().filter_map(|value| value.as_primitive::<T>().iter().next()?).collect();
        let array = array.as_primitive::<T>();
        let found = BooleanBuffer::collect_bool(array.len(), |row| set.contains(&array.value(row)));
        BooleanArray::new(found, array.nulls().cloned())
    }
    macro_rules! bytes {
        ($cast:expr) => {{
            let set: HashSet<_> = values.iter().filter_map(|value| $cast(value.as_ref()).iter().next()?).collect();
            let array = $cast(array.as_ref());
            let found = BooleanBuffer::collect_bool(array.len(), |row| set.contains(array.value(row)));
            BooleanArray::new(found, array.nulls().cloned())
        }};
    }
    Some(match array.data_type() {
        DataType::Int8 => primitive::<Int8Type>(array, values),
        DataType::Int16 => primitive::<Int16Type>(array, values),
        DataType::Int32 => primitive::<Int32Type>(array, values),
        DataType::Int64 => primitive::<Int64Type>(array, values),
        DataType::UInt8 => primitive::<UInt8Type>(array, values),
        DataType::UInt16 => primitive::<UInt16Type>(array, values),
        DataType::UInt32 => primitive::<UInt32Type>(array, values),
        DataType::UInt64 => primitive::<UInt64Type>(array, values),
        DataType::Date32 => primitive::<Date32Type>(array, values),
        DataType::Date64 => primitive::<Date64Type>(array, values),
        DataType::Timestamp(TimeUnit::Second, _) => primitive::<TimestampSecondType>(array, values),
        DataType::Timestamp(TimeUnit::Millisecond, _) => primitive::<TimestampMillisecondType>(array, values),
        DataType::Timestamp(TimeUnit::Microsecond, _) => primitive::<TimestampMicrosecondType>(array, values),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => primitive::<TimestampNanosecondType>(array, values),
        DataType::Utf8 => bytes!(AsArray::as_string::<i32>),
        DataType::LargeUtf8 => bytes!(AsArray::as_string::<i64>),
        DataType::Binary => bytes!(AsArray::as_binary::<i32>),
        DataType::LargeBinary => bytes!(AsArray::as_binary::<i64>),
        _ => return None,
    })
}

fn like(array: &ArrayRef, pattern: &Pattern) -> Result<BooleanArray> {
    fn matched<'a>(values: impl Iterator<Item = Option<&'a str>>, pattern: &Pattern) -> BooleanArray {
        values.map(|value| value.map(|text| pattern.matches(text))).collect()
    }
    Ok(match array.data_type() {
        DataType::Utf8 => matched(array.as_string::<i32>().iter(), pattern),
        DataType::LargeUtf8 => matched(array.as_string::<i64>().iter(), pattern),
        DataType::Utf8View => matched(array.as_string_view().iter(), pattern),
        DataType::Dictionary(_, values) => like(&converted(array, values)?, pattern)?,
        other => return Err(Error::internal(format!("LIKE over {other}"))),
    })
}
