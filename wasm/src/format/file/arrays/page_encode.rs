//! Pages of 2.0: buffers, and the tree of encodings that describes them.

use std::collections::HashMap;

use arrow_schema::DataType;

use super::write::Validity;
use crate::error::{Error, Result};
use crate::format::file::encoding::{Values, bitmap};
use crate::format::file::layout::leaf_values::{LeafType, append_placeholders};
use crate::format::proto::Opaque;
use crate::format::proto::array_encodings::{
    self as messages, ArrayEncoding, Binary, Buffer, FixedSizeList, Flat, List, NoNulls, Nullable, PackedStruct,
    SomeNulls, array_encoding::Kind, nullable::Nulls,
};

/// Strings with fewer distinct values than this are a dictionary, as LanceDB has it.
const MAX_DISTINCT: usize = 100;

/// Offsets, the first of which is 0, and bytes.
type Strings = (Vec<u64>, Vec<u8>);

/// A page before it has a place in a file.
pub(in crate::format::file) struct ArrayPage {
    /// Rows of the column: of a column of items, items.
    pub(in crate::format::file) row_count: u64,
    /// The row of the file that it begins in.
    pub(in crate::format::file) first_row: u64,
    pub(in crate::format::file) encoding: ArrayEncoding,
    pub(in crate::format::file) buffers: Vec<Vec<u8>>,
}

/// Values with their nulls; `is_text` for strings, which may become a dictionary.
pub(super) fn encode_values(values: Values, valid: Validity, is_text: bool) -> Result<ArrayPage> {
    let (row_count, mut buffers) = (valid.len as u64, Vec::new());
    let encoding = match values {
        Values::Variable { offsets, data } => {
            let distinct = if is_text { distinct_values(&offsets, &data, &valid) } else { None };
            match distinct {
                Some(((offsets, data), indices)) => {
                    let indices = no_nulls(flat(8, indices, &mut buffers));
                    let items = binary(&offsets, data, |_| false, &mut buffers);
                    dictionary(indices, items, offsets.len() - 1)?
                }
                None => binary(&offsets, data, |at| valid.is_null(at), &mut buffers),
            }
        }
        values => nullable(values, &valid.bits, valid.null_count, &mut buffers)?,
    };
    Ok(ArrayPage { row_count, first_row: 0, encoding, buffers })
}

/// Keys of a dictionary column, and the values that they name. Nulls name a value that is null.
pub(super) fn encode_dictionary(
    mut keys: Vec<u32>,
    valid: Validity,
    mut items: Values,
    key_type: &DataType,
) -> Result<ArrayPage> {
    let has_null = valid.null_count > 0;
    let null = items.len();
    if has_null {
        append_placeholders(&mut items, 1);
        let null = u32::try_from(null).map_err(|_| Error::internal("keys of 32 bits"))?;
        keys.iter_mut().enumerate().filter(|(at, _)| valid.is_null(*at)).for_each(|(_, key)| *key = null);
    }
    let count = items.len();
    if count > max_items(key_type) {
        return Err(Error::schema(format!(
            "{count} distinct values, null among them, are too many for keys of {key_type}"
        )));
    }
    let byte_width = key_type.primitive_width().unwrap_or(4);
    let mut indices = Vec::with_capacity(keys.len() * byte_width);
    for key in keys {
        indices.extend(key.to_le_bytes().into_iter().chain(std::iter::repeat(0)).take(byte_width));
    }
    let mut buffers = Vec::new();
    let indices = no_nulls(flat(byte_width as u64 * 8, indices, &mut buffers));
    let items = match items {
        Values::Variable { offsets, data } => binary(&offsets, data, |at| has_null && at == null, &mut buffers),
        items if has_null => {
            let mut valid = Vec::new();
            bitmap::append_run(&mut valid, 0, null, true);
            bitmap::append_run(&mut valid, null, 1, false);
            some_nulls(items, valid, &mut buffers)?
        }
        items => no_nulls(plain(items, &mut buffers)?),
    };
    let encoding = dictionary(indices, items, count)?;
    Ok(ArrayPage { row_count: valid.len as u64, first_row: 0, encoding, buffers })
}

/// Values, null among them, that keys of a type can name.
pub(super) fn max_items(key_type: &DataType) -> usize {
    let largest = match key_type {
        DataType::Int8 => i8::MAX as usize,
        DataType::UInt8 => usize::from(u8::MAX),
        DataType::Int16 => i16::MAX as usize,
        DataType::UInt16 => usize::from(u16::MAX),
        // More than a page can have.
        _ => i32::MAX as usize - 1,
    };
    largest + 1
}

/// Rows of a packed struct.
pub(super) fn encode_packed(members: &[LeafType], rows: Vec<u8>, row_count: u64) -> ArrayPage {
    fn member(leaf: &LeafType) -> ArrayEncoding {
        no_nulls(match leaf {
            LeafType::FixedSizeList { dimension, item } => list_of_fixed_size(*dimension, member(item)),
            other => describe(Kind::Flat(Flat {
                bits_per_value: other.bits_per_slot().unwrap_or_default(),
                buffer: Some(Buffer::default()),
                compression: None,
            })),
        })
    }
    let inner = members.iter().map(member).collect();
    let encoding = describe(Kind::PackedStruct(PackedStruct { inner, buffer: Some(Buffer::default()) }));
    ArrayPage { row_count, first_row: 0, encoding, buffers: vec![rows] }
}

/// Lists by their ends, counted from the first item of the page.
pub(super) fn encode_list(ends: Vec<u64>, valid: Validity, item_count: u64) -> ArrayPage {
    let adjustment = item_count + 1;
    let mut buffers = Vec::new();
    let row_count = ends.len() as u64;
    let numbers = marked_ends(ends.into_iter(), adjustment, |at| valid.is_null(at));
    let offsets = no_nulls(flat(64, numbers, &mut buffers));
    let encoding = describe(Kind::List(Box::new(List {
        offsets: Some(Box::new(offsets)),
        null_offset_adjustment: adjustment,
        num_items: item_count,
    })));
    ArrayPage { row_count, first_row: 0, encoding, buffers }
}

/// Structs, whose members are columns of their own.
pub(super) fn encode_struct(row_count: u64) -> ArrayPage {
    ArrayPage { row_count, first_row: 0, encoding: describe(Kind::Struct(Opaque {})), buffers: Vec::new() }
}

fn nullable(values: Values, valid: &[u8], null_count: usize, buffers: &mut Vec<Vec<u8>>) -> Result<ArrayEncoding> {
    if null_count == values.len() {
        return Ok(describe(Kind::Nullable(Box::new(Nullable { nulls: Some(Nulls::All(Opaque {})) }))));
    }
    if null_count == 0 {
        return Ok(no_nulls(plain(values, buffers)?));
    }
    some_nulls(values, valid.to_vec(), buffers)
}

fn some_nulls(values: Values, valid: Vec<u8>, buffers: &mut Vec<Vec<u8>>) -> Result<ArrayEncoding> {
    let validity = flat(1, valid, buffers);
    let values = plain(values, buffers)?;
    let some = SomeNulls { validity: Some(Box::new(validity)), values: Some(Box::new(values)) };
    Ok(describe(Kind::Nullable(Box::new(Nullable { nulls: Some(Nulls::Some(Box::new(some))) }))))
}

fn plain(values: Values, buffers: &mut Vec<Vec<u8>>) -> Result<ArrayEncoding> {
    Ok(match values {
        Values::Fixed { byte_width, bytes } => flat(byte_width as u64 * 8, bytes, buffers),
        Values::Bits { bitmap, .. } => flat(1, bitmap, buffers),
        Values::FixedSizeList { dimension, validity, items, .. } => {
            let valid = validity.unwrap_or_default();
            let item_count = items.len();
            let is_null = |at: usize| valid.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 0);
            let null_count = (0..item_count).filter(|at| is_null(*at)).count();
            list_of_fixed_size(dimension, nullable(*items, &valid, null_count, buffers)?)
        }
        _ => return Err(Error::internal("values without a width")),
    })
}

fn list_of_fixed_size(dimension: usize, items: ArrayEncoding) -> ArrayEncoding {
    // The dimension of a type is 31 bits.
    let dimension = dimension as u32;
    describe(Kind::FixedSizeList(Box::new(FixedSizeList {
        dimension,
        items: Some(Box::new(items)),
        has_validity: false,
    })))
}

/// Values by their ends and bytes.
fn binary(
    offsets: &[u64],
    data: Vec<u8>,
    is_null: impl Fn(usize) -> bool,
    buffers: &mut Vec<Vec<u8>>,
) -> ArrayEncoding {
    let null_adjustment = data.len() as u64 + 1;
    let numbers = marked_ends(offsets.iter().skip(1).copied(), null_adjustment, is_null);
    let indices = Some(Box::new(no_nulls(flat(64, numbers, buffers))));
    let bytes = Some(Box::new(flat(8, data, buffers)));
    describe(Kind::Binary(Box::new(Binary { indices, bytes, null_adjustment })))
}

fn dictionary(indices: ArrayEncoding, items: ArrayEncoding, count: usize) -> Result<ArrayEncoding> {
    let count = u32::try_from(count).map_err(|_| Error::schema("a dictionary of more than 2^32 values"))?;
    Ok(describe(Kind::Dictionary(Box::new(messages::Dictionary {
        indices: Some(Box::new(indices)),
        items: Some(Box::new(items)),
        num_dictionary_items: count,
    }))))
}

/// The distinct values of strings, and for each string the number of its value, 0 for null; `None` when they are too many to pay.
fn distinct_values(offsets: &[u64], data: &[u8], valid: &Validity) -> Option<(Strings, Vec<u8>)> {
    let mut numbers: HashMap<&[u8], u8> = HashMap::new();
    let (mut item_offsets, mut item_data) = (vec![0], Vec::new());
    let mut indices = Vec::with_capacity(valid.len);
    for (at, window) in offsets.windows(2).enumerate() {
        if valid.is_null(at) {
            indices.push(0);
            continue;
        }
        let value = match window {
            [start, end] => data.get(*start as usize..*end as usize)?,
            _ => return None,
        };
        let number = match numbers.get(value) {
            Some(number) => *number,
            None => {
                if numbers.len() + 1 >= MAX_DISTINCT {
                    return None;
                }
                let number = numbers.len() as u8 + 1;
                numbers.insert(value, number);
                item_data.extend_from_slice(value);
                item_offsets.push(item_data.len() as u64);
                number
            }
        };
        indices.push(number);
    }
    // An index and, for each value, its end and bytes, against an end and the bytes of each.
    let with = indices.len() + item_data.len() + 8 * (item_offsets.len() - 1);
    (!numbers.is_empty() && with < 8 * indices.len() + data.len()).then_some(((item_offsets, item_data), indices))
}

/// Ends as they are stored: those of nulls are marked.
fn marked_ends(ends: impl Iterator<Item = u64>, adjustment: u64, is_null: impl Fn(usize) -> bool) -> Vec<u8> {
    let marked = ends.enumerate().map(|(at, end)| if is_null(at) { end + adjustment } else { end });
    marked.flat_map(u64::to_le_bytes).collect()
}

fn flat(bits_per_value: u64, bytes: Vec<u8>, buffers: &mut Vec<Vec<u8>>) -> ArrayEncoding {
    let buffer = Some(Buffer { buffer_index: buffers.len() as u32, buffer_type: 0 });
    buffers.push(bytes);
    describe(Kind::Flat(Flat { bits_per_value, buffer, compression: None }))
}

fn no_nulls(values: ArrayEncoding) -> ArrayEncoding {
    let values = NoNulls { values: Some(Box::new(values)) };
    describe(Kind::Nullable(Box::new(Nullable { nulls: Some(Nulls::No(Box::new(values))) })))
}

fn describe(kind: Kind) -> ArrayEncoding {
    ArrayEncoding { kind: Some(kind) }
}
