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

/// A page without a single value. The levels tell nulls, null lists and empty lists apart.
pub(crate) fn encode_nulls(path: &LeafPath, version: FileVersion, page: &PageContent) -> EncodedPage {
    let mut layout = ConstantLayout { layers: path.page_layers(true), ..ConstantLayout::default() };
    let mut buffers = Vec::new();
    if !path.is_flat() {
        let packed = version >= FileVersion::V2_2;
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
    finish(page, layout, buffers)
}

/// A page that holds one value again and again, without levels; `None` when it does not, or when the value has no such form.
pub(crate) fn encode_scalar(path: &LeafPath, page: &PageContent) -> Option<EncodedPage> {
    let mut layout = ConstantLayout { layers: path.page_layers(false), ..ConstantLayout::default() };
    let mut buffers = Vec::new();
    match &page.values {
        Values::Bits { bitmap, len } => {
            let first = bitmap.first()? & 1;
            let same = (0..*len).all(|index| (bitmap[index / 8] >> (index % 8)) & 1 == first);
            layout.inline_value = same.then(|| Bytes::from(vec![first]));
            same.then_some(())?;
        }
        Values::Fixed { byte_width, bytes } if *byte_width <= MAX_INLINE_BYTES => {
            let first = bytes.get(..*byte_width)?;
            bytes.chunks_exact(*byte_width).all(|value| value == first).then_some(())?;
            layout.inline_value = Some(Bytes::copy_from_slice(first));
        }
        Values::Variable { offsets, data } => {
            let [start, end, ..] = offsets.as_slice() else { return None };
            let length = usize::try_from(end - start).ok()?;
            let value = data.get(..length)?;
            let same = offsets.windows(2).all(|pair| matches!(pair, [a, b] if (b - a) as usize == length))
                && (length == 0 || data.chunks_exact(length).all(|other| other == value));
            same.then_some(())?;
            buffers.push(scalar_buffer(&path.leaf, value)?);
        }
        _ => return None,
    }
    Some(finish(page, layout, buffers))
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
