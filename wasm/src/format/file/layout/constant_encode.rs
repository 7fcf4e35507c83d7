//! Constant pages: nothing but nulls, or one value in every slot.

use bytes::Bytes;

use super::leaf_values::LeafType;
use super::levels_build::LeafPath;
use super::page_encode::{EncodedPage, PageContent};
use crate::format::file::FileVersion;
use crate::format::file::encoding::{Values, encode_levels};
use crate::format::proto::page_layout::Layout;
use crate::format::proto::{ConstantLayout, PageLayout};

/// Longest value that the page description itself may hold.
const MAX_INLINE_BYTES: usize = 32;
/// Levels that a page of one value may have.
const MAX_PLAIN_LEVELS: usize = 128;

/// A page without a single value. The levels tell nulls, null lists and empty lists apart.
pub(crate) fn encode_nulls(path: &LeafPath, version: FileVersion, page: &PageContent) -> EncodedPage {
    let mut layout = ConstantLayout { layers: path.page_layers(true), ..ConstantLayout::default() };
    let mut buffers = Vec::new();
    if !path.is_flat() {
        push_levels(page, version >= FileVersion::V2_2, &mut layout, &mut buffers);
    }
    finish(page, layout, buffers)
}

/// A page that holds one value again and again, beside nulls; `None` when it does not, when the value has no such form, or when the levels
/// take more than other layouts need.
pub(crate) fn encode_scalar(path: &LeafPath, page: &PageContent) -> Option<EncodedPage> {
    let has_def = !page.def.is_empty();
    let mut layout = ConstantLayout { layers: path.page_layers(has_def), ..ConstantLayout::default() };
    let mut buffers = Vec::new();
    match &page.values {
        Values::Bits { bitmap, .. } => {
            let bit = |index: usize| (bitmap[index / 8] >> (index % 8)) & 1;
            let value = only_value(path, page, bit)?;
            layout.inline_value = Some(Bytes::from(vec![value]));
        }
        Values::Fixed { byte_width, bytes } if page.dictionary.is_none() && *byte_width <= MAX_INLINE_BYTES => {
            let value = only_value(path, page, |index| &bytes[index * byte_width..(index + 1) * byte_width])?;
            layout.inline_value = Some(Bytes::copy_from_slice(value));
        }
        Values::Variable { offsets, data } => {
            let value = only_value(path, page, |index| &data[offsets[index] as usize..offsets[index + 1] as usize])?;
            buffers.push(scalar_buffer(&path.leaf, value)?);
        }
        _ => return None,
    }
    if has_def || path.has_lists() {
        // LanceDB reads the levels of a value only as they are, which is more than chunks of one value take, except for a few.
        if page.rep.len() + page.def.len() > MAX_PLAIN_LEVELS {
            return None;
        }
        push_levels(page, false, &mut layout, &mut buffers);
    }
    Some(finish(page, layout, buffers))
}

fn push_levels(page: &PageContent, packed: bool, layout: &mut ConstantLayout, buffers: &mut Vec<Vec<u8>>) {
    let mut block = |levels: &[u16]| {
        if levels.is_empty() || !packed {
            buffers.push(levels.iter().flat_map(|level| level.to_le_bytes()).collect());
            return (None, 0);
        }
        let (encoding, bytes) = encode_levels(levels, true);
        buffers.push(bytes);
        (Some(encoding), levels.len() as u64)
    };
    (layout.rep_compression, layout.num_rep_values) = block(&page.rep);
    (layout.def_compression, layout.num_def_values) = block(&page.def);
}

/// The value of every slot that is not null, if it is the same.
fn only_value<T: PartialEq>(path: &LeafPath, page: &PageContent, value: impl Fn(usize) -> T) -> Option<T> {
    if page.def.is_empty() {
        let first = (!page.values.is_empty()).then(|| value(0))?;
        return (1..page.values.len()).all(|index| value(index) == first).then_some(first);
    }
    let mut found: Option<T> = None;
    for (slot, def) in page.def.iter().filter(|def| **def <= path.max_visible).enumerate() {
        if *def == 0 {
            let value = value(slot);
            match &found {
                Some(found) if *found != value => return None,
                Some(_) => {}
                None => found = Some(value),
            }
        }
    }
    found
}

/// The buffers of an Arrow array of one value: count, their lengths, the buffers.
fn scalar_buffer(leaf: &LeafType, value: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(value.len()).ok().filter(|length| *length <= i32::MAX as u32)?;
    let offsets = match leaf {
        LeafType::Variable { large: true } => [[0; 8], u64::from(length).to_le_bytes()].concat(),
        _ => [[0; 4], length.to_le_bytes()].concat(),
    };
    let offset_bytes = u32::try_from(offsets.len()).ok()?;
    let header = [2, offset_bytes, length].map(u32::to_le_bytes).concat();
    Some([header.as_slice(), &offsets, value].concat())
}

fn finish(page: &PageContent, layout: ConstantLayout, buffers: Vec<Vec<u8>>) -> EncodedPage {
    EncodedPage { row_count: page.row_count, layout: PageLayout { layout: Some(Layout::Constant(layout)) }, buffers }
}
