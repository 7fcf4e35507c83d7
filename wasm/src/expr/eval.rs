//! Expressions over batches: an array of the values of the rows; conditions in three-valued logic.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};

use super::arithmetic::{compare_numbers, narrowed, numbers_of};
use super::convert::{Domain, cannot, convert, domain_of, plain, with_nulls};
use super::lists;
use super::rows;
use super::tree::{Expr, Input, Kind};
use crate::batch::cast::cast;
use crate::batch::compare::{CompareOp, compare_columns, compare_value};
use crate::batch::like::Pattern;
use crate::batch::pick::{Pick, pick, repeat};
use crate::error::{Error, Result};

/// The mask of a condition.
pub(super) fn mask(expr: &Expr, input: &Input) -> Result<BooleanArray> {
    let values = value(expr, input)?;
    values.as_boolean_opt().cloned().ok_or_else(|| Error::internal("a condition that is no boolean"))
}

/// The values of an expression: an array of its type, as long as the batch.
pub(super) fn value(expr: &Expr, input: &Input) -> Result<ArrayRef> {
    let rows = input.rows();
    let mask: BooleanArray = match &expr.kind {
        Kind::Column { root, members } => {
            let path = members.iter().map(String::as_str);
            let absent = || Error::internal(format!("the batch lacks column \"{root}\""));
            let column = input.batch.column_by_name(root).ok_or_else(absent)?.clone();
            let array = path.clone().try_fold(column, |array, name| member(&array, name))?;
            if array.data_type() != &expr.data_type {
                return Err(Error::internal(format!("column \"{root}\" is {}", array.data_type())));
            }
            return Ok(array);
        }
        Kind::Member(operand, name) => return member(&value(operand, input)?, name),
        Kind::Element(operand, index) => return lists::element(&value(operand, input)?, *index, &expr.data_type),
        Kind::Constant(constant) => return repeat(constant, rows).map_err(|error| cannot(&error)),
        Kind::Now => {
            let now: ArrayRef = Arc::new(Int64Array::from(vec![input.now_ns; rows]));
            return convert(&now, &DataType::Timestamp(TimeUnit::Nanosecond, None), false, input);
        }
        Kind::Arithmetic { .. } | Kind::Negate(_) => return narrowed(expr, input),
        Kind::Cast { operand, is_try } => {
            return convert(&value(operand, input)?, &expr.data_type, *is_try, input);
        }
        Kind::Case { branches, otherwise } => return case(branches, otherwise.as_deref(), &expr.data_type, input),
        Kind::Coalesce(operands) => return coalesce(operands, &expr.data_type, input),
        Kind::NullIf(operand, other) => {
            let array = value(operand, input)?;
            let equal = compare(CompareOp::Eq, operand, other, input)?;
            let kept: NullBuffer = equal.iter().map(|equal| equal != Some(true)).collect();
            let nulls = NullBuffer::union(array.logical_nulls().as_ref(), Some(&kept));
            return with_nulls(&array, nulls);
        }
        Kind::Call(function, args) => return rows::call(*function, args, expr, input),
        Kind::DatePart(_, _) | Kind::DateTruncate(_, _) => return rows::date(expr, input),
        Kind::Length(operand) => return lists::lengths(&value(operand, input)?),
        Kind::ListTest { test, list, items } => return lists::test(*test, &value(list, input)?, items),
        Kind::Not(operand) => {
            let (values, nulls) = mask(operand, input)?.into_parts();
            BooleanArray::new(!&values, nulls)
        }
        Kind::And(operands) => fold(operands, input, and)?,
        Kind::Or(operands) => fold(operands, input, or)?,
        Kind::Compare { op, left, right } => compare(*op, left, right, input)?,
        Kind::Decided { operand, value: answer } => {
            let nulls = nulls_of(operand, input)?;
            let values = if *answer { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) };
            BooleanArray::new(values, nulls)
        }
        Kind::IsNull(operand) => {
            let nulls = nulls_of(operand, input)?;
            let is_null = nulls.map_or_else(|| BooleanBuffer::new_unset(rows), |nulls| !nulls.inner());
            BooleanArray::new(is_null, None)
        }
        Kind::IsBool { operand, value } => {
            let (values, nulls) = mask(operand, input)?.into_parts();
            let equal = if *value { values } else { !&values };
            BooleanArray::new(nulls.map_or(equal.clone(), |nulls| &equal & nulls.inner()), None)
        }
        Kind::In { operand, values, has_null } => {
            let found = is_in(&plain_value(operand, input)?, values)?;
            if *has_null { or(&found, &BooleanArray::new_null(rows)) } else { found }
        }
        Kind::Like { operand, pattern } => like(&plain_value(operand, input)?, pattern)?,
    };
    Ok(Arc::new(mask))
}

fn nulls_of(operand: &Expr, input: &Input) -> Result<Option<NullBuffer>> {
    // A computed number need not fit its type to be null or not.
    if operand.is_wide() {
        return Ok(numbers_of(operand, input)?.1);
    }
    Ok(value(operand, input)?.logical_nulls())
}

fn fold(
    operands: &[Expr],
    input: &Input,
    combine: fn(&BooleanArray, &BooleanArray) -> BooleanArray,
) -> Result<BooleanArray> {
    let mut masks = operands.iter().map(|operand| mask(operand, input));
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
    decides: fn(&BooleanBuffer) -> BooleanBuffer,
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

/// A member of a struct; that of a null struct is null.
fn member(array: &ArrayRef, name: &str) -> Result<ArrayRef> {
    let absent = || Error::internal(format!("the batch lacks member \"{name}\""));
    let parent: &StructArray = array.as_struct_opt().ok_or_else(absent)?;
    let child = parent.column_by_name(name).ok_or_else(absent)?.clone();
    match parent.nulls() {
        None => Ok(child),
        Some(nulls) => with_nulls(&child, NullBuffer::union(Some(nulls), child.logical_nulls().as_ref())),
    }
}

/// The values; those of dictionaries instead of keys.
pub(super) fn plain_value(expr: &Expr, input: &Input) -> Result<ArrayRef> {
    let array = value(expr, input)?;
    match array.data_type() {
        DataType::Dictionary(_, values) => plain(&array, values),
        _ => Ok(array),
    }
}

fn incomparable(array: &ArrayRef) -> Error {
    Error::not_supported(format!("comparing values of type {} in a filter", array.data_type()))
}

fn compare(op: CompareOp, left: &Expr, right: &Expr, input: &Input) -> Result<BooleanArray> {
    if left.is_wide() || right.is_wide() {
        return compare_numbers(op, left, right, input);
    }
    let left_values = plain_value(left, input)?;
    if let Kind::Constant(constant) = &right.kind
        && constant.data_type() == left_values.data_type()
    {
        if constant.is_null(0) {
            return Ok(BooleanArray::new_null(input.rows()));
        }
        return compare_value(op, &left_values, constant).ok_or_else(|| incomparable(&left_values));
    }
    let right_values = plain_value(right, input)?;
    if left_values.data_type() == right_values.data_type() {
        return compare_columns(op, &left_values, &right_values).ok_or_else(|| incomparable(&left_values));
    }
    let wide = match domain_of(left_values.data_type()) {
        Some(Domain::Text) => DataType::LargeUtf8,
        Some(Domain::Binary) => DataType::LargeBinary,
        _ => return compare_numbers(op, left, right, input),
    };
    let widened = |array: &ArrayRef| cast(array, &wide).map_err(|error| cannot(&error));
    compare_columns(op, &widened(&left_values)?, &widened(&right_values)?).ok_or_else(|| incomparable(&left_values))
}

/// Evaluates on some rows of the input.
fn on_rows(expr: &Expr, rows: &[usize], input: &Input) -> Result<ArrayRef> {
    if rows.len() == input.rows() {
        return value(expr, input);
    }
    let picks: Vec<Pick> = rows.iter().map(|row| Some((0, *row))).collect();
    let column = |column: &ArrayRef| {
        pick(std::slice::from_ref(column), &picks, column.data_type()).map_err(|error| cannot(&error))
    };
    let columns = input.batch.columns().iter().map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let batch = RecordBatch::try_new_with_options(input.batch.schema(), columns, &options)
        .map_err(|error| Error::internal(error.to_string()))?;
    let row_of = |at: usize| (input.row_of)(*rows.get(at)?);
    value(expr, &Input { batch: &batch, row_of: &row_of, now_ns: input.now_ns })
}

/// Values that are put together from those of several expressions, each evaluated only on the rows that it decides.
struct Assembly {
    arrays: Vec<ArrayRef>,
    picks: Vec<Pick>,
    /// Rows that are not decided.
    open: Vec<usize>,
}

impl Assembly {
    fn new(rows: usize) -> Assembly {
        Assembly { arrays: Vec::new(), picks: vec![None; rows], open: (0..rows).collect() }
    }

    /// Gives `rows` the values of an array, one after the other, if `takes` says so.
    fn give(&mut self, rows: &[usize], array: ArrayRef, takes: impl Fn(usize) -> bool) {
        for (at, row) in rows.iter().enumerate().filter(|(at, _)| takes(*at)) {
            self.picks[*row] = Some((self.arrays.len(), at));
        }
        self.arrays.push(array);
    }

    fn finish(self, data_type: &DataType) -> Result<ArrayRef> {
        pick(&self.arrays, &self.picks, data_type).map_err(|error| cannot(&error))
    }
}

fn case(branches: &[(Expr, Expr)], otherwise: Option<&Expr>, data_type: &DataType, input: &Input) -> Result<ArrayRef> {
    let mut assembly = Assembly::new(input.rows());
    for (condition, value) in branches {
        if assembly.open.is_empty() {
            break;
        }
        let holds = on_rows(condition, &assembly.open, input)?;
        let holds = holds.as_boolean_opt().ok_or_else(|| Error::internal("a condition that is no boolean"))?;
        let open = std::mem::take(&mut assembly.open);
        let mut mine = Vec::new();
        for (at, row) in open.into_iter().enumerate() {
            if holds.is_valid(at) && holds.value(at) { mine.push(row) } else { assembly.open.push(row) }
        }
        if !mine.is_empty() {
            let array = on_rows(value, &mine, input)?;
            assembly.give(&mine, array, |_| true);
        }
    }
    if let Some(otherwise) = otherwise
        && !assembly.open.is_empty()
    {
        let open = std::mem::take(&mut assembly.open);
        let array = on_rows(otherwise, &open, input)?;
        assembly.give(&open, array, |_| true);
    }
    assembly.finish(data_type)
}

fn coalesce(operands: &[Expr], data_type: &DataType, input: &Input) -> Result<ArrayRef> {
    let mut assembly = Assembly::new(input.rows());
    for operand in operands {
        if assembly.open.is_empty() {
            break;
        }
        let open = std::mem::take(&mut assembly.open);
        let array = on_rows(operand, &open, input)?;
        let nulls = array.logical_nulls();
        let is_valid = |at: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
        assembly.open = open.iter().enumerate().filter(|(at, _)| !is_valid(*at)).map(|(_, row)| *row).collect();
        assembly.give(&open, array, is_valid);
    }
    assembly.finish(data_type)
}

/// Above this many values a hash set beats comparing with each.
const FEW_VALUES: usize = 8;

fn is_in(array: &ArrayRef, values: &[ArrayRef]) -> Result<BooleanArray> {
    if values.len() > FEW_VALUES
        && let Some(found) = super::sets::is_in_set(array, values)
    {
        return Ok(found);
    }
    let none = BooleanArray::new(BooleanBuffer::new_unset(array.len()), array.logical_nulls());
    values.iter().try_fold(none, |found, value| {
        let equal = compare_value(CompareOp::Eq, array, value).ok_or_else(|| incomparable(array))?;
        Ok(or(&found, &equal))
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
        other => return Err(Error::internal(format!("LIKE over {other}"))),
    })
}
