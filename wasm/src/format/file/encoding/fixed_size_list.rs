//! Fixed-size lists of primitives: the items of all lists side by side; item validity in buffers of its own, outermost level first.
//!
//! In a mini-block chunk each level of validity is a buffer over all lists of the chunk. In a full-zip page a row has its own bitmaps,
//! padded to bytes, before its items.

use std::ops::Range;

use super::{Values, bitmap, buffer, child, compression, describe, flat, reserve};
use crate::error::{Error, Result};
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::{CompressiveEncoding, FixedSizeList};

/// What all-null items that meet stored ones may grow to.
pub(super) const MAX_NULL_BYTES: u64 = 256 << 20;

/// The description of lists of `dimension` items.
pub fn fixed_size_list(dimension: u64, has_validity: bool, values: CompressiveEncoding) -> CompressiveEncoding {
    describe(Compression::FixedSizeList(Box::new(FixedSizeList {
        items_per_value: dimension,
        values: Some(Box::new(values)),
        has_validity,
    })))
}

pub(super) fn dimension(list: &FixedSizeList) -> Result<usize> {
    // Arrow has 31 bits for it.
    match i32::try_from(list.items_per_value) {
        Ok(1..) => Ok(list.items_per_value as usize),
        _ => Err(Error::not_supported(format!("fixed size lists of {} items", list.items_per_value))),
    }
}

/// Whether no item is stored because all are null.
pub(super) fn all_null(list: &FixedSizeList) -> Result<bool> {
    match compression(child(list.values.as_deref(), "fixed size list")?)? {
        Compression::Constant(constant) => match (&constant.value, list.has_validity) {
            (None, true) => Ok(true),
            _ => Err(Error::not_supported("constant items of a fixed size list")),
        },
        _ => Ok(false),
    }
}

pub(super) fn decode(
    list: &FixedSizeList,
    buffers: &[&[u8]],
    count: usize,
    take: Range<usize>,
    out: &mut Values,
) -> Result<()> {
    let dim = dimension(list)?;
    let count = count.checked_mul(dim).ok_or_else(|| Error::corrupt(format!("{count} lists of {dim} items")))?;
    // No overflow: within `count`.
    let item_take = take.start * dim..take.end * dim;
    let Values::FixedSizeList { dimension, len, validity, items } = out else {
        return Err(out.mismatch(&format!("lists of {dim} items")));
    };
    if *dimension != dim {
        return Err(out.mismatch(&format!("lists of {dim} items")));
    }
    let existing =
        len.checked_mul(dim).ok_or_else(|| Error::corrupt(format!("{len} lists of {dim} items before a chunk")))?;
    let rest = if list.has_validity {
        let bits = buffer(buffers, 0)?;
        if bits.len() < count.div_ceil(8) {
            return Err(Error::corrupt(format!("validity of {count} items in {} bytes", bits.len())));
        }
        let validity = validity.get_or_insert_with(|| {
            let mut all = Vec::new();
            bitmap::append_run(&mut all, 0, existing, true);
            all
        });
        reserve(validity, item_take.len() / 8 + 1)?;
        bitmap::append(validity, existing, bits, item_take.start, item_take.len());
        &buffers[1..]
    } else {
        buffers
    };
    if all_null(list)? {
        push_nulls(items, item_take.len())?;
    } else {
        let values = child(list.values.as_deref(), "fixed size list")?;
        if let Values::Nulls { len } = **items {
            let mut stored = Values::for_encoding(values)?;
            push_nulls(&mut stored, len)?;
            **items = stored;
        }
        super::decode_chunk(values, rest, count, item_take.clone(), items)?;
        // Only now, when the items are there.
        if let (Some(validity), false) = (validity, list.has_validity) {
            bitmap::append_run(validity, existing, item_take.len(), true);
        }
    }
    *len += take.len();
    Ok(())
}

/// Bytes of the parts of one row, in their order.
pub(super) fn row_segments(encoding: &CompressiveEncoding) -> Result<Vec<usize>> {
    let mut segments = Vec::new();
    let (mut encoding, mut items, mut total) = (encoding, 1u64, 0u64);
    loop {
        let (bytes, next) = match compression(encoding)? {
            Compression::Flat(values) => (Some(flat::size(flat::bits(values)?, items)?), None),
            Compression::FixedSizeList(list) => {
                items = items
                    .checked_mul(dimension(list)? as u64)
                    .ok_or_else(|| Error::corrupt("a fixed size list of more items than memory can hold"))?;
                let values = if all_null(list)? { None } else { list.values.as_deref() };
                (list.has_validity.then(|| items.div_ceil(8)), values)
            }
            _ => return Err(Error::not_supported("compressed items of a fixed size list")),
        };
        if let Some(bytes) = bytes {
            total = total.saturating_add(bytes);
            if total > super::MAX_ROW_BYTES || segments.len() > super::MAX_DEPTH {
                return Err(Error::not_supported(format!("values of {total} bytes")));
            }
            // Below the limit of a row.
            segments.push(bytes as usize);
        }
        match next {
            Some(next) => encoding = next,
            None => return Ok(segments),
        }
    }
}

fn push_nulls(items: &mut Values, n: usize) -> Result<()> {
    if (n as u64).saturating_mul(stored_bytes(items)) > MAX_NULL_BYTES {
        return Err(Error::corrupt(format!("{n} null items beside stored ones")));
    }
    items.push_placeholders(n);
    Ok(())
}

/// Bytes that a placeholder takes.
pub(super) fn stored_bytes(values: &Values) -> u64 {
    match values {
        Values::Fixed { byte_width, .. } => *byte_width as u64,
        Values::Bits { .. } => 1,
        Values::Variable { .. } => 8,
        Values::FixedSizeList { dimension, items, .. } => {
            (*dimension as u64).saturating_mul(stored_bytes(items).max(1))
        }
        Values::Struct { fields, .. } => {
            fields.iter().fold(0, |total, field| total.saturating_add(stored_bytes(field)))
        }
        Values::Nulls { .. } => 0,
    }
}
