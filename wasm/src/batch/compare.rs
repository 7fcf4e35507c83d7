//! Comparison of columns with values and with each other.
//!
//! Floats compare in a total order: NaN equals itself and is the greatest, and the zeros are equal. Nulls stay null. `arrow-ord` would do
//! this for every type that Arrow has, nested ones included, and for 150 KB of brotli.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, i256};
use arrow_schema::DataType;

use crate::batch::numbers::native;

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOp {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

impl CompareOp {
    /// The operator with its sides exchanged.
    #[must_use]
    pub fn flipped(self) -> CompareOp {
        match self {
            CompareOp::Eq => CompareOp::Eq,
            CompareOp::NotEq => CompareOp::NotEq,
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::LtEq => CompareOp::GtEq,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::GtEq => CompareOp::LtEq,
        }
    }

    /// Whether the operator holds for two values in this order.
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            CompareOp::Eq => ordering == Ordering::Equal,
            CompareOp::NotEq => ordering != Ordering::Equal,
            CompareOp::Lt => ordering == Ordering::Less,
            CompareOp::LtEq => ordering != Ordering::Greater,
            CompareOp::Gt => ordering == Ordering::Greater,
            CompareOp::GtEq => ordering != Ordering::Less,
        }
    }
}

/// Compares each value of `left` with the one value of `right`.
///
/// `None` when the arrays are not of one comparable type, or `right` is empty.
pub fn compare_value(op: CompareOp, left: &ArrayRef, right: &ArrayRef) -> Option<BooleanArray> {
    if right.is_empty() || left.data_type() != right.data_type() {
        return None;
    }
    compare(op, left, right, 0)
}

/// Compares two columns row by row.
///
/// `None` when they are not of one comparable type and length.
pub fn compare_columns(op: CompareOp, left: &ArrayRef, right: &ArrayRef) -> Option<BooleanArray> {
    if left.len() != right.len() || left.data_type() != right.data_type() {
        return None;
    }
    let mask = compare(op, left, right, 1)?;
    let nulls = NullBuffer::union(mask.nulls(), right.nulls());
    Some(BooleanArray::new(mask.values().clone(), nulls))
}

/// A value that has a place in a total order.
trait Total: Copy {
    fn eq(self, other: Self) -> bool;
    fn lt(self, other: Self) -> bool;
}

macro_rules! total_of_ord {
    ($($native:ty),*) => {$(
        impl Total for $native {
            fn eq(self, other: Self) -> bool {
                self == other
            }

            fn lt(self, other: Self) -> bool {
                self < other
            }
        }
    )*};
}

macro_rules! total_of_float {
    ($($native:ty),*) => {$(
        impl Total for $native {
            fn eq(self, other: Self) -> bool {
                self == other || (self.is_nan() && other.is_nan())
            }

            fn lt(self, other: Self) -> bool {
                self < other || (other.is_nan() && !self.is_nan())
            }
        }
    )*};
}

total_of_ord!(bool, i8, i16, i32, i64, i128, i256, u8, u16, u32, u64, &[u8]);
total_of_float!(half::f16, f32, f64);

/// Row `i` of the left with row `i * step` of the right: 1 for columns, 0 for one value.
fn compare(op: CompareOp, left: &ArrayRef, right: &ArrayRef, step: usize) -> Option<BooleanArray> {
    let right_row = |row: usize| row * step;
    // By the type of the numbers, which dates, times and decimals share: each copy of `mask` costs.
    macro_rules! numbers {
        ($native:ty) => {{
            let (left, right) = (native::<$native>(left)?, native::<$native>(right)?);
            mask::<$native>(op, left.len(), |row| left[row], |row| right[right_row(row)])
        }};
    }
    macro_rules! values {
        ($left:expr, $right:expr) => {{
            let (left, right) = ($left, $right);
            mask(op, left.len(), |row| left.value(row), |row| right.value(right_row(row)))
        }};
    }
    macro_rules! bytes {
        ($left:expr, $right:expr) => {{
            let (left, right) = ($left, $right);
            mask::<&[u8]>(op, left.len(), |row| left.value(row).as_ref(), |row| right.value(right_row(row)).as_ref())
        }};
    }
    use DataType as D;
    let values = match left.data_type() {
        D::Boolean => values!(left.as_boolean(), right.as_boolean()),
        D::Int8 => numbers!(i8),
        D::Int16 => numbers!(i16),
        D::Int32 | D::Date32 | D::Time32(_) => numbers!(i32),
        D::Int64 | D::Date64 | D::Time64(_) | D::Timestamp(_, _) | D::Duration(_) => numbers!(i64),
        D::UInt8 => numbers!(u8),
        D::UInt16 => numbers!(u16),
        D::UInt32 => numbers!(u32),
        D::UInt64 => numbers!(u64),
        D::Float16 => numbers!(half::f16),
        D::Float32 => numbers!(f32),
        D::Float64 => numbers!(f64),
        D::Decimal128(_, _) => numbers!(i128),
        D::Decimal256(_, _) => numbers!(i256),
        D::Utf8 => bytes!(left.as_string::<i32>(), right.as_string::<i32>()),
        D::LargeUtf8 => bytes!(left.as_string::<i64>(), right.as_string::<i64>()),
        D::Binary => bytes!(left.as_binary::<i32>(), right.as_binary::<i32>()),
        D::LargeBinary => bytes!(left.as_binary::<i64>(), right.as_binary::<i64>()),
        D::FixedSizeBinary(_) => bytes!(left.as_fixed_size_binary(), right.as_fixed_size_binary()),
        _ => return None,
    };
    Some(BooleanArray::new(values, left.nulls().cloned()))
}

/// Two loops serve six operators: the others are their negations or have their sides exchanged.
fn mask<T: Total>(op: CompareOp, rows: usize, left: impl Fn(usize) -> T, right: impl Fn(usize) -> T) -> BooleanBuffer {
    let (is_equality, is_swapped, is_negated) = match op {
        CompareOp::Eq => (true, false, false),
        CompareOp::NotEq => (true, false, true),
        CompareOp::Lt => (false, false, false),
        CompareOp::GtEq => (false, false, true),
        CompareOp::Gt => (false, true, false),
        CompareOp::LtEq => (false, true, true),
    };
    let values = match (is_equality, is_swapped) {
        (true, _) => BooleanBuffer::collect_bool(rows, |row| left(row).eq(right(row))),
        (false, false) => BooleanBuffer::collect_bool(rows, |row| left(row).lt(right(row))),
        (false, true) => BooleanBuffer::collect_bool(rows, |row| right(row).lt(left(row))),
    };
    if is_negated { !&values } else { values }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, Int32Array, StringArray};

    use super::*;

    const OPS: [CompareOp; 6] =
        [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];

    fn rows(mask: &BooleanArray) -> Vec<Option<bool>> {
        mask.iter().collect()
    }

    #[test]
    fn six_operators_agree_with_the_order_of_integers_and_text() {
        let numbers: Vec<Option<i32>> = vec![Some(-3), Some(7), None, Some(i32::MAX), Some(7)];
        let array: ArrayRef = Arc::new(Int32Array::from(numbers.clone()));
        let seven: ArrayRef = Arc::new(Int32Array::from(vec![7]));
        let texts = ["", "a", "ab", "b", "\u{e9}"];
        let strings: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let ab: ArrayRef = Arc::new(StringArray::from(vec!["ab"]));
        for op in OPS {
            let expected: Vec<_> = numbers.iter().map(|number| number.map(|number| op.holds(number.cmp(&7)))).collect();
            assert_eq!(compare_value(op, &array, &seven).map(|mask| rows(&mask)), Some(expected), "{op:?}");
            let expected: Vec<_> = texts.iter().map(|text| Some(op.holds(text.cmp(&"ab")))).collect();
            assert_eq!(compare_value(op, &strings, &ab).map(|mask| rows(&mask)), Some(expected), "{op:?}");
        }
    }

    #[test]
    fn floats_have_one_zero_and_one_greatest_nan() {
        let left: ArrayRef = Arc::new(Float64Array::from(vec![0.0, f64::NAN, f64::NAN, f64::INFINITY, 1.0]));
        let right: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, -f64::NAN, 1.0, f64::NAN, 2.0]));
        let holds = |op| rows(&compare_columns(op, &left, &right).unwrap());
        assert_eq!(holds(CompareOp::Eq), [true, true, false, false, false].map(Some));
        assert_eq!(holds(CompareOp::Gt), [false, false, true, false, false].map(Some));
        assert_eq!(holds(CompareOp::LtEq), [true, true, false, true, true].map(Some));
    }

    #[test]
    fn a_null_on_either_side_is_null_and_other_types_do_not_compare() {
        let left: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
        let right: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None]));
        let mask = compare_columns(CompareOp::Eq, &left, &right).unwrap();
        assert_eq!(rows(&mask), [Some(true), None, None]);
        let text: ArrayRef = Arc::new(StringArray::from(vec!["1", "2", "3"]));
        assert_eq!(compare_columns(CompareOp::Eq, &left, &text), None);
    }
}
