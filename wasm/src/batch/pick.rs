//! Rows put together from several arrays of one type: `take` without a kernel per type.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, make_array, new_empty_array, new_null_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::DataType;

use crate::batch::cast::CastError;

/// For each row, the array and the row in it whose value it is; `None` is null.
pub type Pick = Option<(usize, usize)>;

/// # Errors
/// `TooLong` for more than 32-bit offsets reach; `Types` for arrays of several types.
pub fn pick(arrays: &[ArrayRef], picks: &[Pick], data_type: &DataType) -> Result<ArrayRef, CastError> {
    if picks.is_empty() {
        return Ok(new_empty_array(data_type));
    }
    if arrays.iter().any(|array| array.data_type() != data_type) {
        return Err(CastError::Types);
    }
    if picks.iter().all(Option::is_none) {
        return Ok(new_null_array(data_type, picks.len()));
    }
    let data: Vec<_> = arrays.iter().map(|array| array.to_data()).collect();
    let mut rows = MutableArrayData::new(data.iter().collect(), true, picks.len());
    let mut at = 0;
    while let Some(first) = picks.get(at) {
        // Neighbours that stay neighbours are copied at once.
        let is_next = |(count, pick): (usize, &Pick)| match (first, pick) {
            (None, None) => true,
            (Some((array, row)), Some((other, next))) => array == other && row + count == *next,
            _ => false,
        };
        let count = picks[at..].iter().enumerate().take_while(|(count, pick)| is_next((*count, *pick))).count();
        match first {
            None => rows.try_extend_nulls(count),
            Some((array, row)) => rows.try_extend(*array, *row, row + count),
        }
        .map_err(|_| CastError::TooLong)?;
        at += count;
    }
    Ok(make_array(rows.freeze()))
}

/// The rows of some ranges, one after the other.
///
/// # Errors
/// `TooLong` for more than 32-bit offsets reach.
pub fn ranges(array: &ArrayRef, ranges: &[Range<usize>]) -> Result<ArrayRef, CastError> {
    let data = array.to_data();
    let mut rows = MutableArrayData::new(vec![&data], false, ranges.iter().map(Range::len).sum());
    for range in ranges {
        rows.try_extend(0, range.start, range.end).map_err(|_| CastError::TooLong)?;
    }
    Ok(make_array(rows.freeze()))
}

/// The first value of an array, as often as asked.
///
/// # Errors
/// `TooLong` for more than 32-bit offsets reach.
pub fn repeat(value: &ArrayRef, count: usize) -> Result<ArrayRef, CastError> {
    if value.is_empty() || value.is_null(0) {
        return Ok(new_null_array(value.data_type(), count));
    }
    pick(std::slice::from_ref(value), &vec![Some((0, 0)); count], value.data_type())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;

    use super::*;

    #[test]
    fn ranges_keep_values_and_nulls() {
        let array: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some("b"), None, Some("d"), Some("e")]));
        let expected = StringArray::from(vec![Some("b"), None, Some("e")]);
        let kept = ranges(&array, &[1..3, 4..5]).unwrap();
        assert_eq!(kept.as_ref(), &expected as &dyn Array);
        assert_eq!(ranges(&array, &[]).unwrap().len(), 0);
    }

    #[test]
    fn rows_come_from_any_array_in_any_order() {
        let left: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some("b"), None]));
        let right: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
        let picks = [Some((1, 1)), Some((0, 0)), Some((0, 1)), Some((0, 2)), None, Some((1, 0))];
        let picked = pick(&[left, right.clone()], &picks, &DataType::Utf8).unwrap();
        let expected = StringArray::from(vec![Some("y"), Some("a"), Some("b"), None, None, Some("x")]);
        assert_eq!(picked.as_ref(), &expected as &dyn Array);
        assert_eq!(repeat(&right, 3).unwrap().as_ref(), &StringArray::from(vec!["x"; 3]) as &dyn Array);
    }
}
