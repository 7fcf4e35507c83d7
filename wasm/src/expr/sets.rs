//! Membership in a list of many values, by hash: for types whose equal values have equal bytes.

use std::collections::HashSet;

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

/// The bytes of the values of an array.
enum Bytes<'a> {
    Fixed { width: usize, bytes: &'a [u8] },
    Small(ScalarBuffer<i32>, &'a [u8]),
    Large(ScalarBuffer<i64>, &'a [u8]),
}

impl<'a> Bytes<'a> {
    fn of(data: &'a ArrayData) -> Option<Bytes<'a>> {
        let (offset, len) = (data.offset(), data.len());
        let first = data.buffers().first()?;
        Some(match data.data_type() {
            DataType::Utf8 | DataType::Binary => {
                Bytes::Small(ScalarBuffer::new(first.clone(), offset, len + 1), data.buffers().get(1)?.as_slice())
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                Bytes::Large(ScalarBuffer::new(first.clone(), offset, len + 1), data.buffers().get(1)?.as_slice())
            }
            // Zeros have a sign and NaN several forms: equal floats may have other bytes.
            other if other.is_floating() => return None,
            other => {
                let width = other.primitive_width()?;
                Bytes::Fixed { width, bytes: first.as_slice().get(offset * width..(offset + len) * width)? }
            }
        })
    }

    fn value(&self, row: usize) -> &'a [u8] {
        let (start, end, bytes) = match self {
            Bytes::Fixed { width, bytes } => (row * width, (row + 1) * width, *bytes),
            Bytes::Small(offsets, bytes) => (offsets[row] as usize, offsets[row + 1] as usize, *bytes),
            Bytes::Large(offsets, bytes) => (offsets[row] as usize, offsets[row + 1] as usize, *bytes),
        };
        bytes.get(start..end).unwrap_or_default()
    }
}

/// `None` for types that have no hash here.
pub(super) fn is_in_set(array: &ArrayRef, values: &[ArrayRef]) -> Option<BooleanArray> {
    if array.is_empty() || values.iter().any(|value| value.data_type() != array.data_type() || value.len() != 1) {
        return None;
    }
    let wanted: Vec<ArrayData> = values.iter().map(|value| value.to_data()).collect();
    let set: HashSet<&[u8]> = wanted.iter().map(|data| Some(Bytes::of(data)?.value(0))).collect::<Option<_>>()?;
    let data = array.to_data();
    let bytes = Bytes::of(&data)?;
    let found = BooleanBuffer::collect_bool(array.len(), |row| set.contains(bytes.value(row)));
    Some(BooleanArray::new(found, array.nulls().cloned()))
}
