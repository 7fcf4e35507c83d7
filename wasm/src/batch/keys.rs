//! Row keys: the values of some columns of a row as bytes that are equal where the values are.
//!
//! Floats are equal by their bits: a NaN equals itself, and 0 is not -0, as in LanceDB. Inside of lists and structs a null equals a null; a
//! row whose key itself has a null has no key. Bytes of fixed-size values stand as they are, others behind their length, so that no two
//! keys of the same columns can be confused.

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{Buffer, NullBuffer, bit_util};
use arrow_data::ArrayData;
use arrow_schema::DataType;

/// Key columns of a batch.
pub struct Keys {
    columns: Vec<Column>,
}

struct Column {
    nulls: Option<NullBuffer>,
    values: Values,
}

enum Values {
    Nothing,
    Bits {
        bits: Buffer,
        offset: usize,
    },
    Fixed {
        bytes: Buffer,
        width: usize,
    },
    /// Text and binary: `offsets` of `width` bytes each.
    Bytes {
        offsets: Buffer,
        width: usize,
        bytes: Buffer,
    },
    List {
        offsets: Buffer,
        width: usize,
        items: Box<Column>,
    },
    FixedList {
        size: usize,
        items: Box<Column>,
    },
    Members(Vec<Column>),
    Dictionary {
        keys: Vec<usize>,
        values: Box<Column>,
    },
}

impl Keys {
    /// `None` when a column is of a type that has no keys: views, unions and run-end encoded ones, which no table has.
    pub fn new(columns: &[ArrayRef]) -> Option<Keys> {
        Some(Keys { columns: columns.iter().map(Column::new).collect::<Option<_>>()? })
    }

    /// Puts the key of a row into `key`; whether it has one.
    pub fn read(&self, row: usize, key: &mut Vec<u8>) -> bool {
        key.clear();
        self.columns.iter().all(|column| column.is_valid(row) && column.push(row, key).is_some())
    }
}

impl Column {
    fn new(array: &ArrayRef) -> Option<Column> {
        let data = array.to_data();
        let values = match data.data_type() {
            DataType::Null => Values::Nothing,
            DataType::Boolean => Values::Bits { bits: data.buffers().first()?.clone(), offset: data.offset() },
            DataType::Utf8 | DataType::Binary => bytes(&data, 4)?,
            DataType::LargeUtf8 | DataType::LargeBinary => bytes(&data, 8)?,
            DataType::List(_) | DataType::Map(_, _) => list(&data, 4)?,
            DataType::LargeList(_) => list(&data, 8)?,
            DataType::FixedSizeList(_, size) => {
                let size = usize::try_from(*size).ok()?;
                let items = data.child_data().first()?.slice(data.offset() * size, data.len() * size);
                Values::FixedList { size, items: Box::new(Column::new(&make_array(items))?) }
            }
            DataType::Struct(_) => {
                let member = |child: &ArrayData| Column::new(&make_array(child.slice(data.offset(), data.len())));
                Values::Members(data.child_data().iter().map(member).collect::<Option<_>>()?)
            }
            DataType::Dictionary(_, _) => {
                let dictionary = arrow_array::cast::AsArray::as_any_dictionary(array.as_ref());
                let keys = if dictionary.values().is_empty() { Vec::new() } else { dictionary.normalized_keys() };
                return Some(Column {
                    nulls: array.logical_nulls(),
                    values: Values::Dictionary { keys, values: Box::new(Column::new(dictionary.values())?) },
                });
            }
            DataType::FixedSizeBinary(size) => fixed(&data, usize::try_from(*size).ok()?)?,
            other => fixed(&data, other.primitive_width()?)?,
        };
        Some(Column { nulls: array.logical_nulls(), values })
    }

    fn is_valid(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }

    fn push_nullable(&self, row: usize, key: &mut Vec<u8>) -> Option<()> {
        let is_valid = self.is_valid(row);
        key.push(u8::from(is_valid));
        if is_valid { self.push(row, key) } else { Some(()) }
    }

    /// `None` only for a row that is not there.
    fn push(&self, row: usize, key: &mut Vec<u8>) -> Option<()> {
        match &self.values {
            Values::Nothing => {}
            Values::Bits { bits, offset } => key.push(u8::from(bit_util::get_bit(bits, offset + row))),
            Values::Fixed { bytes, width } => key.extend_from_slice(bytes.get(row * width..(row + 1) * width)?),
            Values::Bytes { offsets, width, bytes } => {
                let (start, end) = (offset(offsets, *width, row)?, offset(offsets, *width, row + 1)?);
                let value = bytes.get(start..end)?;
                key.extend_from_slice(&(value.len() as u64).to_le_bytes());
                key.extend_from_slice(value);
            }
            Values::List { offsets, width, items } => {
                let (start, end) = (offset(offsets, *width, row)?, offset(offsets, *width, row + 1)?);
                key.extend_from_slice(&(end.checked_sub(start)? as u64).to_le_bytes());
                for item in start..end {
                    items.push_nullable(item, key)?;
                }
            }
            Values::FixedList { size, items } => {
                for item in row * size..(row + 1) * size {
                    items.push_nullable(item, key)?;
                }
            }
            Values::Members(members) => {
                for member in members {
                    member.push_nullable(row, key)?;
                }
            }
            Values::Dictionary { keys, values } => values.push(*keys.get(row)?, key)?,
        }
        Some(())
    }
}

fn fixed(data: &ArrayData, width: usize) -> Option<Values> {
    let bytes = data.buffers().first()?.slice_with_length(data.offset() * width, data.len() * width);
    Some(Values::Fixed { bytes, width })
}

fn bytes(data: &ArrayData, width: usize) -> Option<Values> {
    Some(Values::Bytes { offsets: offsets(data, width)?, width, bytes: data.buffers().get(1)?.clone() })
}

fn list(data: &ArrayData, width: usize) -> Option<Values> {
    let items = Column::new(&make_array(data.child_data().first()?.clone()))?;
    Some(Values::List { offsets: offsets(data, width)?, width, items: Box::new(items) })
}

fn offsets(data: &ArrayData, width: usize) -> Option<Buffer> {
    let offsets = data.buffers().first()?;
    // An array without rows may have no offsets.
    Some(if data.is_empty() { offsets.clone() } else { offsets.slice(data.offset() * width) })
}

fn offset(offsets: &Buffer, width: usize, at: usize) -> Option<usize> {
    let bytes = offsets.get(at * width..(at + 1) * width)?;
    usize::try_from(bytes.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::{
        BooleanArray, DictionaryArray, FixedSizeListArray, Float64Array, Int32Array, ListArray, StringArray,
        StructArray,
    };
    use arrow_schema::Field;
    use std::sync::Arc;

    fn keys(columns: &[ArrayRef]) -> Vec<Option<Vec<u8>>> {
        let keys = Keys::new(columns).unwrap();
        let mut bytes = Vec::new();
        (0..columns[0].len()).map(|row| keys.read(row, &mut bytes).then(|| bytes.clone())).collect()
    }

    /// Rows of the same letter have the same key, and others another.
    fn check(columns: &[ArrayRef], letters: &str) {
        let keys = keys(columns);
        for (a, letter) in letters.chars().enumerate() {
            assert_eq!(keys[a].is_none(), letter == '-', "row {a}");
            for (b, other) in letters.chars().enumerate() {
                assert_eq!(keys[a] == keys[b], letter == other, "rows {a} and {b}");
            }
        }
    }

    #[test]
    fn keys_are_equal_where_values_are() {
        let text = |values: &[Option<&str>]| -> ArrayRef { Arc::new(StringArray::from_iter(values)) };
        check(&[Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(1)]))], "ab-a");
        check(&[Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))], "ab-a");
        check(&[Arc::new(Float64Array::from(vec![f64::NAN, 0.0, -0.0, f64::NAN]))], "abca");
        check(&[text(&[Some("a"), Some(""), None, Some("a"), Some("aa")])], "ab-ac");
        check(&[text(&[Some("a"), Some("ab"), Some("a")]), text(&[Some("bc"), Some("c"), Some("bc")])], "aba");
        check(&[text(&[Some("a"), Some("a")]), text(&[None, Some("x")])], "-a");
        let mapped: DictionaryArray<Int8Type> = vec![Some("x"), Some("y"), None, Some("x")].into_iter().collect();
        check(&[Arc::new(mapped)], "ab-a");
    }

    #[test]
    fn nested_values_are_compared_whole() {
        let item = |value: Option<i32>| vec![value];
        let lists =
            vec![Some(item(Some(1))), Some(vec![]), None, Some(item(None)), Some(item(Some(1))), Some(item(None))];
        check(&[Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))], "ab-cac");
        let pairs = vec![Some(vec![Some(1), Some(2)]), Some(vec![Some(1), None]), None, Some(vec![Some(1), Some(2)])];
        check(&[Arc::new(FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(pairs, 2))], "ab-a");
        let member: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(1)]));
        check(&[Arc::new(StructArray::from(vec![(Arc::new(Field::new("a", DataType::Int32, true)), member)]))], "aba");
    }

    #[test]
    fn a_slice_has_the_keys_of_its_rows() {
        let columns: [ArrayRef; 4] = [
            Arc::new(Int32Array::from_iter_values(0..20)),
            Arc::new(StringArray::from_iter_values((0..20).map(|row| "x".repeat(row)))),
            Arc::new(BooleanArray::from_iter((0..20).map(|row| Some(row % 3 == 0)))),
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>((0..20).map(|row| Some(vec![Some(row); 3])))),
        ];
        let whole = keys(&columns);
        let part = columns.map(|column| column.slice(7, 9));
        assert_eq!(keys(&part), whole[7..16]);
    }
}
