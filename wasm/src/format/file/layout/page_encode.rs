//! A page: which structural layout holds its levels and values.
//!
//! Constant when there is nothing but nulls or a single value, full-zip for wide values, mini-block for the rest.

use super::constant_encode;
use super::full_zip_encode;
use super::leaf_values::LeafType;
use super::levels_build::LeafPath;
use super::mini_block_encode;
use super::options::Structure;
use super::value_codec::repeats_much;
use crate::error::{Error, Result};
use crate::format::file::FileVersion;
use crate::format::file::encoding::{Values, fixed_size_list, flat, packed_struct, variable, variable_packed_struct};
use crate::format::proto::field_encoding::Width;
use crate::format::proto::{CompressiveEncoding, FieldEncoding, PageLayout};

/// Values of at least so many bytes get a full-zip page, where each can be read alone.
const WIDE_VALUE_BYTES: u64 = 256;

/// What a page holds, in memory.
pub(crate) struct PageContent {
    pub(crate) row_count: u64,
    /// One per entry; empty without lists.
    pub(crate) rep: Vec<u16>,
    /// One per entry; empty when every entry is 0 and there are no lists.
    pub(crate) def: Vec<u16>,
    /// One per visible entry; of a dictionary column the keys.
    pub(crate) values: Values,
    /// The values of a dictionary column.
    pub(crate) dictionary: Option<Values>,
}

/// A page ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EncodedPage {
    pub(crate) row_count: u64,
    pub(crate) layout: PageLayout,
    pub(crate) buffers: Vec<Vec<u8>>,
}

impl PageContent {
    /// Level entries, whether they are stored or not.
    pub(crate) fn entry_count(&self) -> usize {
        match (self.rep.len(), self.def.len()) {
            (0, 0) => self.values.len(),
            (rep, def) => rep.max(def),
        }
    }

    fn is_all_null(&self) -> bool {
        match self.values {
            Values::Nulls { .. } => true,
            _ => !self.def.is_empty() && !self.def.contains(&0),
        }
    }
}

/// # Errors
/// `NotSupported` naming the column when no layout of the version can hold the page.
pub(crate) fn encode_page(path: &LeafPath, version: FileVersion, mut page: PageContent) -> Result<EncodedPage> {
    // Readers take what such a page holds for rows that are there, whatever its levels say.
    if path.leaf == LeafType::EmptyStruct && !page.def.is_empty() {
        return Err(Error::not_supported(format!("nulls in column \"{}\", a struct of no fields", path.name())));
    }
    if page.is_all_null() {
        return Ok(constant_encode::encode_nulls(path, version, &page));
    }
    // Layers without a code, all of them: every reader understands that.
    if !page.def.iter().any(|def| *def != 0) {
        page.def = Vec::new();
    }
    let compact;
    let path = match (!page.def.is_empty()).then(|| path.with_used_codes(&page.def)).flatten() {
        Some((smaller, def)) => {
            (compact, page.def) = (smaller, def);
            &compact
        }
        None => path,
    };
    if version >= FileVersion::V2_2
        && let Some(encoded) = constant_encode::encode_scalar(path, &page)
    {
        return Ok(encoded);
    }
    let full_zip_allowed = page.dictionary.is_none() && (page.def.is_empty() || !path.has_items_outside_lists());
    let mut known = None;
    let is_wide = match (path.options.structure, &page.values) {
        // Rows of members of their own length have no other place.
        (_, Values::Struct { .. }) => path.leaf.is_variable(),
        (Some(structure), _) => structure == Structure::FullZip,
        (None, values) if is_wide(path, values) => {
            known = repeats_much(path, version, values);
            known.is_none()
        }
        (None, _) => false,
    };
    if full_zip_allowed && is_wide {
        return full_zip_encode::encode(path, page);
    }
    let has_chunks = !matches!(page.values, Values::Struct { .. }) || !path.leaf.is_variable();
    if has_chunks && let Some(encoded) = mini_block_encode::encode(path, version, &page, known) {
        return Ok(encoded);
    }
    // What no chunk can hold, such as a row of more empty lists than a chunk counts.
    if full_zip_allowed && !matches!(page.values, Values::Struct { .. }) {
        return full_zip_encode::encode(path, page);
    }
    Err(Error::not_supported(format!(
        "values of this size in column \"{}\" in a data file of version {}",
        path.name(),
        version.as_str()
    )))
}

fn is_wide(path: &LeafPath, values: &Values) -> bool {
    match (path.leaf.bits_per_slot(), values) {
        (Some(bits), _) => bits >= WIDE_VALUE_BYTES * 8,
        (None, Values::Variable { offsets, .. }) => {
            offsets.windows(2).any(|pair| matches!(pair, [start, end] if end - start >= WIDE_VALUE_BYTES))
        }
        (None, _) => false,
    }
}

/// Bits of an offset of a leaf with values of their own length.
pub(crate) fn bits_per_offset(leaf: &LeafType) -> u64 {
    match leaf {
        LeafType::Variable { large: true } => 64,
        LeafType::Dictionary { value, .. } => bits_per_offset(value),
        _ => 32,
    }
}

/// The plain description of values: as they lie in memory.
pub(crate) fn describe_plain(leaf: &LeafType, values: &Values) -> CompressiveEncoding {
    match values {
        Values::Nulls { .. } => flat(0),
        Values::Struct { fields, .. } => describe_packed(leaf, fields),
        Values::Bits { .. } => flat(1),
        Values::Fixed { byte_width, .. } => flat(*byte_width as u64 * 8),
        Values::Variable { .. } => variable(bits_per_offset(leaf)),
        Values::FixedSizeList { dimension, validity, items, .. } => {
            fixed_size_list(*dimension as u64, validity.is_some(), describe_plain(leaf, items))
        }
    }
}

/// Rows of members side by side: of a fixed size each, or of any with their lengths in front.
fn describe_packed(leaf: &LeafType, fields: &[Values]) -> CompressiveEncoding {
    let members = match leaf {
        LeafType::Packed(members) => members.as_slice(),
        _ => &[],
    };
    if !leaf.is_variable() {
        return packed_struct(members.iter().filter_map(LeafType::bits_per_slot).collect());
    }
    let member = |(leaf, values): (&LeafType, &Values)| {
        let width = match leaf.bits_per_slot() {
            Some(bits) => Width::BitsPerValue(bits),
            None => Width::BitsPerLength(bits_per_offset(leaf)),
        };
        FieldEncoding { value: Some(describe_plain(leaf, values)), width: Some(width) }
    };
    variable_packed_struct(members.iter().zip(fields).map(member).collect())
}
