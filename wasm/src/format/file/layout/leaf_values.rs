//! Values of a leaf on their way from Arrow arrays into a page: bulk copies of slot ranges, placeholders for nulls.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::format::file::encoding::Values;

/// What the format stores for one slot of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeafType {
    Null,
    Bits,
    Fixed { byte_width: usize },
    Variable { large: bool },
    FixedSizeList { dimension: usize, item: Box<LeafType> },
}

impl LeafType {
    /// `None` for a type that no leaf of a page has.
    pub(crate) fn of(data_type: &DataType) -> Option<LeafType> {
        let byte_width = match data_type {
            DataType::Null => return Some(LeafType::Null),
            DataType::Boolean => return Some(LeafType::Bits),
            DataType::Utf8 | DataType::Binary => return Some(LeafType::Variable { large: false }),
            DataType::LargeUtf8 | DataType::LargeBinary => return Some(LeafType::Variable { large: true }),
            DataType::Int8 | DataType::UInt8 => 1,
            DataType::Int16 | DataType::UInt16 | DataType::Float16 => 2,
            DataType::Int32 | DataType::UInt32 | DataType::Float32 | DataType::Date32 | DataType::Time32(_) => 4,
            DataType::Int64
            | DataType::UInt64
            | DataType::Float64
            | DataType::Date64
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
            | DataType::Duration(_) => 8,
            DataType::Decimal128(_, _) => 16,
            DataType::Decimal256(_, _) => 32,
            DataType::FixedSizeBinary(width) => usize::try_from(*width).ok().filter(|width| *width > 0)?,
            DataType::FixedSizeList(item, dimension) => {
                let dimension = usize::try_from(*dimension).ok().filter(|dimension| *dimension > 0)?;
                return match LeafType::of(item.data_type())? {
                    LeafType::Null | LeafType::Variable { .. } => None,
                    item => Some(LeafType::FixedSizeList { dimension, item: Box::new(item) }),
                };
            }
            _ => return None,
        };
        Some(LeafType::Fixed { byte_width })
    }

    /// No values yet.
    pub(crate) fn empty_values(&self) -> Values {
        match self {
            LeafType::Null => Values::Nulls { len: 0 },
            LeafType::Bits => Values::Bits { bitmap: Vec::new(), len: 0 },
            LeafType::Fixed { byte_width } => Values::Fixed { byte_width: *byte_width, bytes: Vec::new() },
            LeafType::Variable { .. } => Values::Variable { offsets: vec![0], data: Vec::new() },
            LeafType::FixedSizeList { dimension, item } => Values::FixedSizeList {
                dimension: *dimension,
                len: 0,
                validity: None,
                items: Box::new(item.empty_values()),
            },
        }
    }

    /// Bits of one slot without validity; `None` when slots have a length of their own.
    pub(crate) fn bits_per_slot(&self) -> Option<u64> {
        match self {
            LeafType::Null => Some(0),
            LeafType::Bits => Some(1),
            LeafType::Fixed { byte_width } => Some(*byte_width as u64 * 8),
            LeafType::Variable { .. } => None,
            LeafType::FixedSizeList { dimension, item } => item.bits_per_slot()?.checked_mul(*dimension as u64),
        }
    }
}

/// The buffers of a leaf array, slot 0 first.
pub(crate) enum LeafSource {
    Null,
    Bits(BooleanBuffer),
    Fixed { byte_width: usize, bytes: Buffer },
    Variable32 { offsets: ScalarBuffer<i32>, data: Buffer },
    Variable64 { offsets: ScalarBuffer<i64>, data: Buffer },
    FixedSizeList { dimension: usize, nulls: Option<NullBuffer>, items: Box<LeafSource> },
}

impl LeafSource {
    /// # Errors
    /// `Schema` when the array is not one of the leaf's type.
    pub(crate) fn of(array: &ArrayRef, leaf: &LeafType) -> Result<LeafSource> {
        let wrong = || Error::schema(format!("an array of type {} does not fit its column", array.data_type()));
        if LeafType::of(array.data_type()).as_ref() != Some(leaf) {
            return Err(wrong());
        }
        let data = array.to_data();
        let buffer = |index: usize| data.buffers().get(index).cloned().ok_or_else(wrong);
        Ok(match leaf {
            LeafType::Null => LeafSource::Null,
            LeafType::Bits => LeafSource::Bits(BooleanBuffer::new(buffer(0)?, data.offset(), data.len())),
            LeafType::Fixed { byte_width } => LeafSource::Fixed {
                byte_width: *byte_width,
                bytes: buffer(0)?.slice_with_length(data.offset() * byte_width, data.len() * byte_width),
            },
            // An empty array may come without its one offset.
            LeafType::Variable { .. } if data.is_empty() => {
                LeafSource::Variable32 { offsets: ScalarBuffer::from(vec![0]), data: Buffer::default() }
            }
            LeafType::Variable { large: false } => LeafSource::Variable32 {
                offsets: ScalarBuffer::new(buffer(0)?, data.offset(), data.len() + 1),
                data: buffer(1)?,
            },
            LeafType::Variable { large: true } => LeafSource::Variable64 {
                offsets: ScalarBuffer::new(buffer(0)?, data.offset(), data.len() + 1),
                data: buffer(1)?,
            },
            LeafType::FixedSizeList { dimension, item } => {
                let list = array.as_any().downcast_ref::<arrow_array::FixedSizeListArray>().ok_or_else(wrong)?;
                let items = list.values();
                LeafSource::FixedSizeList {
                    dimension: *dimension,
                    nulls: items.nulls().filter(|nulls| nulls.null_count() > 0).cloned(),
                    items: Box::new(LeafSource::of(items, item)?),
                }
            }
        })
    }

    /// Bytes that a range of slots takes in a page, about.
    pub(crate) fn raw_bytes(&self, slots: Range<usize>) -> u64 {
        let count = slots.len() as u64;
        match self {
            LeafSource::Null => 0,
            LeafSource::Bits(_) => count.div_ceil(8),
            LeafSource::Fixed { byte_width, .. } => count * *byte_width as u64,
            LeafSource::Variable32 { offsets, .. } => {
                (offset32(offsets, slots.end) - offset32(offsets, slots.start)) as u64 + count * 8
            }
            LeafSource::Variable64 { offsets, .. } => {
                (offset64(offsets, slots.end) - offset64(offsets, slots.start)) as u64 + count * 8
            }
            LeafSource::FixedSizeList { dimension, items, .. } => {
                items.raw_bytes(slots.start * dimension..slots.end * dimension)
            }
        }
    }

    /// Appends the values of a range of slots, none of which is null.
    pub(crate) fn append_to(&self, values: &mut Values, slots: Range<usize>) {
        match (self, values) {
            (LeafSource::Null, Values::Nulls { len }) => *len += slots.len(),
            (LeafSource::Bits(source), Values::Bits { bitmap, len }) => append_bits(bitmap, len, source, slots),
            (LeafSource::Fixed { byte_width, bytes: source }, Values::Fixed { bytes, .. }) => {
                bytes.extend_from_slice(&source[slots.start * byte_width..slots.end * byte_width]);
            }
            (LeafSource::Variable32 { offsets: source, data: source_data }, Values::Variable { offsets, data }) => {
                let first = offset32(source, slots.start);
                let base = data.len() as u64;
                data.extend_from_slice(&source_data[first..offset32(source, slots.end)]);
                offsets.extend(slots.map(|slot| base + (offset32(source, slot + 1) - first) as u64));
            }
            (LeafSource::Variable64 { offsets: source, data: source_data }, Values::Variable { offsets, data }) => {
                let first = offset64(source, slots.start);
                let base = data.len() as u64;
                data.extend_from_slice(&source_data[first..offset64(source, slots.end)]);
                offsets.extend(slots.map(|slot| base + (offset64(source, slot + 1) - first) as u64));
            }
            (
                LeafSource::FixedSizeList { dimension, nulls, items: source },
                Values::FixedSizeList { len, validity, items, .. },
            ) => {
                let inner = slots.start * dimension..slots.end * dimension;
                let mut bits = *len * dimension;
                let nulls = nulls.as_ref().map(NullBuffer::inner);
                let any_null = nulls.is_some_and(|bits| bits.slice(inner.start, inner.len()).has_false());
                if any_null && validity.is_none() {
                    let mut bitmap = Vec::new();
                    append_ones(&mut bitmap, &mut 0, bits);
                    *validity = Some(bitmap);
                }
                if let Some(bitmap) = validity {
                    match nulls {
                        Some(nulls) => append_bits(bitmap, &mut bits, nulls, inner.clone()),
                        None => append_ones(bitmap, &mut bits, inner.len()),
                    }
                }
                source.append_to(items, inner);
                *len += slots.len();
            }
            _ => {}
        }
    }
}

/// Appends placeholders for nulls that own a slot: zeros, so that what lies under a null never reaches a file.
pub(crate) fn append_placeholders(values: &mut Values, count: usize) {
    match values {
        Values::Nulls { len } => *len += count,
        Values::Bits { bitmap, len } => {
            *len += count;
            bitmap.resize(len.div_ceil(8), 0);
        }
        Values::Fixed { byte_width, bytes } => bytes.resize(bytes.len() + count * *byte_width, 0),
        Values::Variable { offsets, data } => offsets.resize(offsets.len() + count, data.len() as u64),
        Values::FixedSizeList { dimension, len, validity, items } => {
            if let Some(bitmap) = validity {
                append_ones(bitmap, &mut (*len * *dimension), count * *dimension);
            }
            append_placeholders(items, count * *dimension);
            *len += count;
        }
        Values::Struct { fields, len } => {
            fields.iter_mut().for_each(|field| append_placeholders(field, count));
            *len += count;
        }
    }
}

/// Bytes that the values take, about.
pub(crate) fn raw_bytes(values: &Values) -> u64 {
    match values {
        Values::Nulls { .. } => 0,
        Values::Bits { bitmap, .. } => bitmap.len() as u64,
        Values::Fixed { bytes, .. } => bytes.len() as u64,
        Values::Variable { offsets, data } => data.len() as u64 + offsets.len() as u64 * 8,
        Values::FixedSizeList { validity, items, .. } => {
            validity.as_ref().map_or(0, |bitmap| bitmap.len() as u64) + raw_bytes(items)
        }
        Values::Struct { fields, .. } => fields.iter().map(raw_bytes).sum(),
    }
}

/// Bits `start..start + count` of a bitmap, moved to bit 0; bits after the last are 0.
pub(crate) fn copy_bits(bitmap: &[u8], start: usize, count: usize) -> Vec<u8> {
    let mut out = vec![0; count.div_ceil(8)];
    let (first, shift) = (start / 8, start % 8);
    for (index, byte) in out.iter_mut().enumerate() {
        let low = bitmap.get(first + index).copied().unwrap_or(0) >> shift;
        let high = match shift {
            0 => 0,
            _ => bitmap.get(first + index + 1).copied().unwrap_or(0) << (8 - shift),
        };
        *byte = low | high;
    }
    clear_tail(&mut out, count);
    out
}

fn clear_tail(bitmap: &mut [u8], count: usize) {
    if let (Some(last), rest @ 1..) = (bitmap.last_mut(), count % 8) {
        *last &= (1 << rest) - 1;
    }
}

fn append_bits(bitmap: &mut Vec<u8>, len: &mut usize, source: &BooleanBuffer, range: Range<usize>) {
    let count = range.len();
    if len.is_multiple_of(8) {
        bitmap.extend_from_slice(&copy_bits(source.values(), source.offset() + range.start, count));
        *len += count;
        return;
    }
    for index in range {
        push_bit(bitmap, len, source.value(index));
    }
}

fn append_ones(bitmap: &mut Vec<u8>, len: &mut usize, count: usize) {
    let mut left = count;
    while left > 0 && !len.is_multiple_of(8) {
        push_bit(bitmap, len, true);
        left -= 1;
    }
    *len += left;
    bitmap.resize(len.div_ceil(8), 0xff);
    if left > 0 {
        clear_tail(bitmap, *len);
    }
}

fn push_bit(bitmap: &mut Vec<u8>, len: &mut usize, bit: bool) {
    if len.is_multiple_of(8) {
        bitmap.push(0);
    }
    if let Some(last) = bitmap.last_mut() {
        *last |= u8::from(bit) << (*len % 8);
    }
    *len += 1;
}

// Arrow's offsets are never negative.
fn offset32(offsets: &ScalarBuffer<i32>, index: usize) -> usize {
    offsets[index] as usize
}

fn offset64(offsets: &ScalarBuffer<i64>, index: usize) -> usize {
    offsets[index] as usize
}
