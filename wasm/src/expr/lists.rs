//! Functions of lists: lengths, elements, and which values a list has.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;

use super::convert::{cannot, plain};
use super::rows::holds;
use super::tree::ListTest;
use crate::batch::compare::{CompareOp, compare_value};
use crate::batch::pick::{Pick, pick};
use crate::error::{Error, Result};

/// The items of all lists, and which of them a row has.
fn parts(list: &ArrayRef) -> Result<(ArrayRef, Vec<Range<usize>>)> {
    let of_offsets =
        |offset: &dyn Fn(usize) -> usize| (0..list.len()).map(|row| offset(row)..offset(row + 1)).collect();
    Ok(match list.data_type() {
        DataType::List(_) => {
            let list = list.as_list::<i32>();
            (list.values().clone(), of_offsets(&|row| list.offsets()[row] as usize))
        }
        DataType::LargeList(_) => {
            let list = list.as_list::<i64>();
            (list.values().clone(), of_offsets(&|row| list.offsets()[row] as usize))
        }
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or_default();
            (list.as_fixed_size_list().values().clone(), of_offsets(&|row| row * size))
        }
        other => return Err(Error::internal(format!("items of {other}"))),
    })
}

pub(super) fn lengths(list: &ArrayRef) -> Result<ArrayRef> {
    let (_, ranges) = parts(list)?;
    let lengths: Vec<u64> = ranges.iter().map(|range| range.len() as u64).collect();
    Ok(Arc::new(UInt64Array::new(lengths.into(), list.nulls().cloned())))
}

/// The element at a place from 1 on, or from the end with a negative one; null where there is none.
pub(super) fn element(list: &ArrayRef, index: i64, data_type: &DataType) -> Result<ArrayRef> {
    let (items, ranges) = parts(list)?;
    let place = |row: usize, range: &Range<usize>| -> Pick {
        let skipped = usize::try_from(index.unsigned_abs()).ok()?.checked_sub(1)?;
        (list.is_valid(row) && skipped < range.len())
            .then(|| (0, if index > 0 { range.start + skipped } else { range.end - 1 - skipped }))
    };
    let picks: Vec<Pick> = ranges.iter().enumerate().map(|(row, range)| place(row, range)).collect();
    pick(&[items], &picks, data_type).map_err(|error| cannot(&error))
}

/// A test of each list against values of its items' type.
pub(super) fn test(test: ListTest, list: &ArrayRef, wanted: &[ArrayRef]) -> Result<ArrayRef> {
    let (items, ranges) = parts(list)?;
    let items = match items.data_type() {
        DataType::Dictionary(_, values) => plain(&items, values)?,
        _ => items,
    };
    let masks = wanted
        .iter()
        .map(|value| {
            compare_value(CompareOp::Eq, &items, value)
                .ok_or_else(|| Error::not_supported(format!("comparing items of type {}", items.data_type())))
        })
        .collect::<Result<Vec<BooleanArray>>>()?;
    let has = |mask: &BooleanArray, range: &Range<usize>| range.clone().any(|at| holds(mask, at));
    let answer = |row: usize| {
        let range = &ranges[row];
        match test {
            ListTest::HasAny => masks.iter().any(|mask| has(mask, range)),
            ListTest::HasAll => masks.iter().all(|mask| has(mask, range)),
            ListTest::Equals => {
                range.len() == masks.len() && masks.iter().zip(range.clone()).all(|(mask, at)| holds(mask, at))
            }
            ListTest::Position => false,
        }
    };
    if test == ListTest::Position {
        let first = |(row, range): (usize, &Range<usize>)| {
            let mask = masks.first().filter(|_| list.is_valid(row))?;
            range.clone().position(|at| holds(mask, at)).map(|at| at as u64 + 1)
        };
        return Ok(Arc::new(ranges.iter().enumerate().map(first).collect::<UInt64Array>()));
    }
    Ok(Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(list.len(), answer), list.nulls().cloned())))
}
