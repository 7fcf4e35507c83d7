//! Values of a leaf on their way from Arrow arrays into a page: bulk copies of slot ranges, placeholders for nulls.

use std::cell::RefCell;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef, Fields};

use super::interner::Interner;
use crate::error::{Error, Result};
use crate::format::file::encoding::Values;

/// What the format stores for one slot of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeafType {
    Null,
    Bits,
    Fixed {
        byte_width: usize,
    },
    Variable {
        large: bool,
    },
    FixedSizeList {
        dimension: usize,
        item: Box<LeafType>,
    },
    /// Keys of so many bytes; the values are of fixed or of variable length.
    Dictionary {
        key_bytes: usize,
        max_values: usize,
        value: Box<LeafType>,
    },
    /// Struct members side by side.
    Packed(Vec<LeafType>),
    /// A struct without members: there are rows, and no values.
    EmptyStruct,
}

impl LeafType {
    /// `None` for a type that no leaf of a page has.
    pub(crate) fn of(data_type: &DataType) -> Option<LeafType> {
        let byte_width = match data_type {
            DataType::Null => return Some(LeafType::Null),
            DataType::Dictionary(key, value) => {
                let value = match LeafType::of(value)? {
                    value @ (LeafType::Fixed { .. } | LeafType::Variable { .. }) => Box::new(value),
                    _ => return None,
                };
                let (key_bytes, max_values) = match **key {
                    DataType::Int8 => (1, 1 << 7),
                    DataType::UInt8 => (1, 1 << 8),
                    DataType::Int16 => (2, 1 << 15),
                    DataType::UInt16 => (2, 1 << 16),
                    DataType::Int32 | DataType::UInt32 => (4, i32::MAX as usize),
                    DataType::Int64 | DataType::UInt64 => (8, i32::MAX as usize),
                    _ => return None,
                };
                return Some(LeafType::Dictionary { key_bytes, max_values, value });
            }
            DataType::Struct(members) if members.is_empty() => return Some(LeafType::EmptyStruct),
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
                    LeafType::Null
                    | LeafType::Variable { .. }
                    | LeafType::Dictionary { .. }
                    | LeafType::Packed(_)
                    | LeafType::EmptyStruct => None,
                    item => Some(LeafType::FixedSizeList { dimension, item: Box::new(item) }),
                };
            }
            _ => return None,
        };
        Some(LeafType::Fixed { byte_width })
    }

    /// A struct that is stored row by row; `None` when a member has no place in a row.
    pub(crate) fn packed(members: &Fields) -> Option<LeafType> {
        let member = |member: &FieldRef| match LeafType::of(member.data_type())? {
            leaf @ (LeafType::Fixed { .. } | LeafType::Variable { .. }) => Some(leaf),
            _ => None,
        };
        members.iter().map(member).collect::<Option<_>>().map(LeafType::Packed)
    }

    /// Whether slots have a length of their own.
    pub(crate) fn is_variable(&self) -> bool {
        self.bits_per_slot().is_none()
    }

    /// No values yet.
    pub(crate) fn empty_values(&self) -> Values {
        match self {
            LeafType::Null | LeafType::EmptyStruct => Values::Nulls { len: 0 },
            LeafType::Dictionary { key_bytes, .. } => Values::Fixed { byte_width: *key_bytes, bytes: Vec::new() },
            LeafType::Packed(members) => {
                Values::Struct { fields: members.iter().map(LeafType::empty_values).collect(), len: 0 }
            }
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
            LeafType::Null | LeafType::EmptyStruct => Some(0),
            LeafType::Dictionary { key_bytes, .. } => Some(*key_bytes as u64 * 8),
            LeafType::Packed(members) => members.iter().map(LeafType::bits_per_slot).sum(),
            LeafType::Bits => Some(1),
            LeafType::Fixed { byte_width } => Some(*byte_width as u64 * 8),
            LeafType::Variable { .. } => None,
            LeafType::FixedSizeList { dimension, item } => item.bits_per_slot()?.checked_mul(*dimension as u64),
        }
    }
}

/// Where the items of each list begin and end.
pub(crate) enum Offsets {
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
}

// Arrow's offsets are never negative.
impl Offsets {
    pub(crate) fn list_count(&self) -> usize {
        match self {
            Offsets::Small(offsets) => offsets.len() - 1,
            Offsets::Large(offsets) => offsets.len() - 1,
        }
    }

    pub(crate) fn at(&self, index: usize) -> usize {
        match self {
            Offsets::Small(offsets) => offsets[index] as usize,
            Offsets::Large(offsets) => offsets[index] as usize,
        }
    }

    /// Items of one list.
    pub(crate) fn items(&self, list: usize) -> Range<usize> {
        self.at(list)..self.at(list + 1)
    }

    /// The list that an item belongs to.
    pub(crate) fn list_of(&self, item: usize) -> usize {
        let after = match self {
            Offsets::Small(offsets) => offsets.partition_point(|offset| *offset as usize <= item),
            Offsets::Large(offsets) => offsets.partition_point(|offset| *offset as usize <= item),
        };
        after.saturating_sub(1)
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
    Dictionary(DictionarySource),
    Packed(Vec<LeafSource>),
}

/// A dictionary array, whose values get other numbers in a page: there, each occurs once, and only if it is used.
pub(crate) struct DictionarySource {
    key_bytes: usize,
    keys: Vec<usize>,
    values: Box<LeafSource>,
    value_count: usize,
    /// The page that the numbers are those of, and the number of each value, or [`UNKNOWN`].
    numbers: RefCell<(u64, Vec<u32>)>,
}

const UNKNOWN: u32 = u32::MAX;

/// The dictionary of the page being filled.
pub(crate) struct PageDictionary {
    /// Tells pages apart.
    page: u64,
    interner: Interner,
    byte_width: Option<usize>,
    max_values: usize,
}

impl PageDictionary {
    /// `None` for a leaf that is no dictionary column.
    pub(crate) fn of(leaf: &LeafType) -> Option<PageDictionary> {
        let LeafType::Dictionary { max_values, value, .. } = leaf else { return None };
        let byte_width = match **value {
            LeafType::Fixed { byte_width } => Some(byte_width),
            _ => None,
        };
        Some(PageDictionary { page: 1, interner: Interner::new(), byte_width, max_values: *max_values })
    }

    /// Whether the values of a source may be more than the page's keys can number, beside those that are there.
    pub(crate) fn may_overflow(&self, source: &LeafSource) -> bool {
        matches!(source, LeafSource::Dictionary(source) if self.interner.len() + source.value_count > self.max_values)
    }

    /// The values of the page that ends here.
    pub(crate) fn take(&mut self) -> Values {
        self.page += 1;
        std::mem::replace(&mut self.interner, Interner::new()).into_values(self.byte_width)
    }
}

impl DictionarySource {
    /// Appends the keys of a range of slots, none of which is null.
    pub(crate) fn append_to(&self, values: &mut Values, dictionary: &mut PageDictionary, slots: Range<usize>) {
        let Values::Fixed { bytes, .. } = values else { return };
        let (page, numbers) = &mut *self.numbers.borrow_mut();
        if *page != dictionary.page {
            *page = dictionary.page;
            numbers.clear();
            numbers.resize(self.value_count, UNKNOWN);
        }
        for key in &self.keys[slots] {
            let number = &mut numbers[*key];
            if *number == UNKNOWN {
                *number = dictionary.interner.number(self.values.value(*key));
            }
            bytes.extend_from_slice(&u64::from(*number).to_le_bytes()[..self.key_bytes]);
        }
    }
}

impl LeafSource {
    /// # Errors
    /// `Schema` when the array is not one of the leaf's type.
    pub(crate) fn of(array: &ArrayRef, leaf: &LeafType) -> Result<LeafSource> {
        let wrong = || Error::schema(format!("an array of type {} does not fit its column", array.data_type()));
        if let LeafType::Packed(members) = leaf {
            return packed_source(array, members);
        }
        if LeafType::of(array.data_type()).as_ref() != Some(leaf) {
            return Err(wrong());
        }
        if let LeafType::Dictionary { key_bytes, value, .. } = leaf {
            let array = array.as_any_dictionary_opt().ok_or_else(wrong)?;
            let value_count = array.values().len();
            // Without values every key is a null.
            let keys = if value_count == 0 { Vec::new() } else { array.normalized_keys() };
            return Ok(LeafSource::Dictionary(DictionarySource {
                key_bytes: *key_bytes,
                keys,
                values: Box::new(LeafSource::of(array.values(), value)?),
                value_count,
                numbers: RefCell::new((0, Vec::new())),
            }));
        }
        let data = array.to_data();
        let buffer = |index: usize| data.buffers().get(index).cloned().ok_or_else(wrong);
        Ok(match leaf {
            LeafType::Null | LeafType::EmptyStruct => LeafSource::Null,
            LeafType::Dictionary { .. } | LeafType::Packed(_) => return Err(wrong()),
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
            LeafSource::Dictionary(source) => count * source.key_bytes as u64,
            LeafSource::Packed(members) => members.iter().map(|member| member.raw_bytes(slots.clone())).sum(),
        }
    }

    /// The bytes of a slot, which is one of fixed or of variable length.
    fn value(&self, slot: usize) -> &[u8] {
        match self {
            LeafSource::Fixed { byte_width, bytes } => &bytes[slot * byte_width..(slot + 1) * byte_width],
            LeafSource::Variable32 { offsets, data } => &data[offset32(offsets, slot)..offset32(offsets, slot + 1)],
            LeafSource::Variable64 { offsets, data } => &data[offset64(offsets, slot)..offset64(offsets, slot + 1)],
            _ => &[],
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
            (LeafSource::Packed(members), Values::Struct { fields, len }) => {
                for (member, field) in members.iter().zip(fields) {
                    member.append_to(field, slots.clone());
                }
                *len += slots.len();
            }
            _ => {}
        }
    }
}

/// The members of a struct array that is stored row by row, where only the row can be null.
fn packed_source(array: &ArrayRef, members: &[LeafType]) -> Result<LeafSource> {
    let wrong = || Error::schema(format!("an array of type {} does not fit its column", array.data_type()));
    let rows = array.as_struct_opt().filter(|rows| rows.num_columns() == members.len()).ok_or_else(wrong)?;
    for (member, name) in rows.columns().iter().zip(rows.column_names()) {
        let Some(nulls) = member.logical_nulls().filter(|nulls| nulls.null_count() > 0) else { continue };
        if let Some(row) = (0..rows.len()).find(|row| nulls.is_null(*row) && rows.is_valid(*row)) {
            return Err(Error::schema(format!(
                "member \"{name}\" of a packed struct takes no nulls, but row {row} of the batch has one"
            )));
        }
    }
    let sources = rows.columns().iter().zip(members).map(|(member, leaf)| LeafSource::of(member, leaf));
    Ok(LeafSource::Packed(sources.collect::<Result<_>>()?))
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
