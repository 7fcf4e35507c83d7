//! Full-zip pages: each entry lies alone, its levels in a control word before its value.

use std::borrow::Cow;

use super::leaf_values::{LeafType, copy_bits};
use super::levels_build::LeafPath;
use super::page_encode::{EncodedPage, PageContent, bits_per_offset};
use super::value_codec::full_zip_values;
use crate::error::{Error, Result};
use crate::format::file::encoding::{Values, flat};
use crate::format::proto::full_zip_layout::Width;
use crate::format::proto::page_layout::Layout;
use crate::format::proto::{FullZipLayout, PageLayout};

/// # Errors
/// `NotSupported` for a value or a page beyond what the layout's 32-bit numbers say.
pub(crate) fn encode(path: &LeafPath, page: PageContent) -> Result<EncodedPage> {
    let too_large = || Error::not_supported(format!("a page of this size in column \"{}\"", path.name()));
    let (has_def, entry_count) = (!page.def.is_empty(), page.entry_count());
    let (stored, description) = full_zip_values(path, &page.values);
    // Nothing but whole values in their order: the memory that holds them is the page.
    let is_as_stored = matches!(stored, Cow::Borrowed(_)) && page.rep.is_empty() && page.def.is_empty();
    let stored = match stored {
        Cow::Borrowed(_) => None,
        Cow::Owned(codes) => Some(codes),
    };
    let values = stored.unwrap_or(page.values);
    let bits_rep = bit_length(path.max_rep);
    let bits_def = if has_def { bit_length(path.max_def) } else { 0 };
    let mut layout = FullZipLayout {
        bits_rep,
        bits_def,
        width: None,
        num_items: u32::try_from(entry_count).map_err(|_| too_large())?,
        num_visible_items: u32::try_from(values.len()).map_err(|_| too_large())?,
        value_compression: Some(description),
        layers: path.page_layers(has_def),
    };
    let control_bytes = match bits_rep + bits_def {
        0 => 0,
        1..=8 => 1,
        9..=16 => 2,
        _ => 4,
    };
    let length_bytes = match &values {
        Values::Variable { offsets, .. } => {
            let bits = bits_per_offset(&path.leaf);
            // Readers hold the lengths of 32-bit columns in signed numbers.
            if bits == 32 && offsets.windows(2).any(|pair| pair[1] - pair[0] > i32::MAX as u64) {
                return Err(too_large());
            }
            layout.width = Some(Width::BitsPerOffset(bits as u32));
            bits as usize / 8
        }
        // The length of the whole row.
        Values::Struct { .. } => {
            layout.width = Some(Width::BitsPerOffset(32));
            4
        }
        values => {
            if matches!(values, Values::Bits { .. }) {
                layout.value_compression = Some(flat(8));
            }
            let bits = u64::try_from(slot_bytes(values)).ok().and_then(|bytes| bytes.checked_mul(8));
            layout.width =
                Some(Width::BitsPerValue(bits.and_then(|bits| u32::try_from(bits).ok()).ok_or_else(too_large)?));
            0
        }
    };
    let row_count = page.row_count;
    let mut row_starts = Vec::new();
    let data = match whole_bytes(values, is_as_stored) {
        Ok(bytes) => bytes,
        Err(values) => {
            let mut data = Vec::new();
            let mut slot = 0;
            for entry in 0..entry_count {
                let rep = page.rep.get(entry).copied().unwrap_or(0);
                let def = page.def.get(entry).copied().unwrap_or(0);
                if rep == path.max_rep {
                    row_starts.push(data.len() as u64);
                }
                let word = (u32::from(rep) << bits_def) | u32::from(def);
                data.extend_from_slice(&word.to_le_bytes()[..control_bytes]);
                if def > path.max_visible {
                    continue;
                }
                if length_bytes == 0 {
                    push_slot(&values, slot, &mut data);
                } else if let (Values::Struct { fields, .. }, 0) = (&values, def) {
                    push_row(path, fields, slot, &mut data).ok_or_else(too_large)?;
                } else if let (Values::Variable { offsets, data: bytes }, 0) = (&values, def) {
                    let (start, end) = (offsets[slot], offsets[slot + 1]);
                    data.extend_from_slice(&(end - start).to_le_bytes()[..length_bytes]);
                    data.extend_from_slice(&bytes[start as usize..end as usize]);
                }
                slot += 1;
            }
            row_starts.push(data.len() as u64);
            data
        }
    };
    let mut buffers = vec![data];
    if length_bytes > 0 || path.has_lists() {
        buffers.push(row_index(&row_starts));
    }
    Ok(EncodedPage { row_count, layout: PageLayout { layout: Some(Layout::FullZip(layout)) }, buffers })
}

/// The bytes of values of a fixed width that lie as a page has them, or the values again.
fn whole_bytes(values: Values, is_as_stored: bool) -> std::result::Result<Vec<u8>, Values> {
    match values {
        Values::Fixed { bytes, .. } if is_as_stored => Ok(bytes),
        Values::FixedSizeList { validity: None, items, dimension, len } if is_as_stored => whole_bytes(*items, true)
            .map_err(|items| Values::FixedSizeList { validity: None, items: Box::new(items), dimension, len }),
        other => Err(other),
    }
}

/// A packed row with its length in front, members of variable length with theirs.
fn push_row(path: &LeafPath, fields: &[Values], slot: usize, out: &mut Vec<u8>) -> Option<()> {
    let LeafType::Packed(members) = &path.leaf else { return None };
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for (member, field) in members.iter().zip(fields) {
        match field {
            Values::Variable { offsets, data } => {
                let (from, to) = (offsets[slot], offsets[slot + 1]);
                out.extend_from_slice(&(to - from).to_le_bytes()[..bits_per_offset(member) as usize / 8]);
                out.extend_from_slice(&data[from as usize..to as usize]);
            }
            field => push_slot(field, slot, out),
        }
    }
    let length = u32::try_from(out.len() - start - 4).ok().filter(|length| *length <= i32::MAX as u32)?;
    out.get_mut(start..start + 4)?.copy_from_slice(&length.to_le_bytes());
    Some(())
}

fn bit_length(greatest: u16) -> u32 {
    16 - greatest.leading_zeros()
}

/// Offsets in the narrowest width that holds the last one.
fn row_index(starts: &[u64]) -> Vec<u8> {
    let width = match starts.last().copied().unwrap_or(0) {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    starts.iter().flat_map(|start| start.to_le_bytes().into_iter().take(width)).collect()
}

/// Bytes of one slot: validity bitmaps of fixed-size lists first, outermost first, each padded to a byte.
fn slot_bytes(values: &Values) -> usize {
    fn bytes(values: &Values, count: usize) -> usize {
        match values {
            Values::Nulls { .. } | Values::Variable { .. } | Values::Struct { .. } => 0,
            // A boolean on its own takes a byte.
            Values::Bits { .. } => count.div_ceil(8),
            Values::Fixed { byte_width, .. } => byte_width * count,
            Values::FixedSizeList { dimension, validity, items, .. } => {
                let bitmap = validity.as_ref().map_or(0, |_| (count * dimension).div_ceil(8));
                bitmap + bytes(items, count * dimension)
            }
        }
    }
    bytes(values, 1)
}

fn push_slot(values: &Values, slot: usize, out: &mut Vec<u8>) {
    let (mut values, mut start, mut count) = (values, slot, 1);
    loop {
        match values {
            Values::FixedSizeList { dimension, validity, items, .. } => {
                (start, count) = (start * dimension, count * dimension);
                if let Some(bitmap) = validity {
                    out.extend(copy_bits(bitmap, start, count));
                }
                values = items;
            }
            Values::Fixed { byte_width, bytes } => {
                out.extend_from_slice(&bytes[start * byte_width..(start + count) * byte_width]);
                return;
            }
            Values::Bits { bitmap, .. } => {
                out.extend(copy_bits(bitmap, start, count));
                return;
            }
            Values::Nulls { .. } | Values::Variable { .. } | Values::Struct { .. } => return,
        }
    }
}
