//! Dictionaries of pages whose values repeat, and of dictionary columns.

use super::interner::Interner;
use super::options::EncodingOptions;
use crate::format::file::FileVersion;
use crate::format::file::encoding::{Values, encode_general_lz4, encode_variable_block, flat, general_lz4, variable};
use crate::format::proto::CompressiveEncoding;

/// Bytes of a number of a value, of columns that are no dictionary columns.
const INDEX_BYTES: usize = 4;
/// Pages of fewer values keep them.
const MIN_VALUES: usize = 64;
/// Values that are looked at before all of them are.
const SAMPLE: usize = 4096;
/// Bytes of a dictionary that are worth compressing.
const MIN_COMPRESSED_BYTES: usize = 128;

/// The distinct values of a page as its dictionary buffer.
pub(crate) struct Dictionary {
    pub(crate) item_count: u64,
    pub(crate) description: CompressiveEncoding,
    pub(crate) block: Vec<u8>,
}

impl Dictionary {
    /// `None` when the values are not of a kind that dictionaries hold, or too large for the offsets.
    pub(crate) fn encode(
        items: &Values,
        version: FileVersion,
        bits_per_offset: u64,
        options: &EncodingOptions,
    ) -> Option<Dictionary> {
        let (mut block, mut description) = match items {
            Values::Variable { offsets, data } => {
                (encode_variable_block(offsets, data, bits_per_offset).ok()?, variable(bits_per_offset))
            }
            Values::Fixed { byte_width, bytes } => (bytes.clone(), flat(*byte_width as u64 * 8)),
            _ => return None,
        };
        if version >= FileVersion::V2_2 && options.compress_dictionary && block.len() >= MIN_COMPRESSED_BYTES {
            let compressed = encode_general_lz4(&block).ok()?;
            if compressed.len() < block.len() {
                (block, description) = (compressed, general_lz4(description));
            }
        }
        Some(Dictionary { item_count: items.len() as u64, description, block })
    }

    /// The bytes of the dictionary, and of the numbers in it without what packing them costs.
    pub(crate) fn size(&self, value_count: usize) -> usize {
        let index_bits = (u64::BITS - self.item_count.saturating_sub(1).leading_zeros()) as usize;
        self.block.len() + value_count * index_bits / 8
    }
}

/// The values of a page as numbers in a dictionary; `None` when too few of them repeat.
pub(crate) fn deduplicate(
    values: &Values,
    version: FileVersion,
    bits_per_offset: u64,
    options: &EncodingOptions,
) -> Option<(Dictionary, Values)> {
    let count = values.len();
    let view = ValueView::of(values)?;
    (count >= MIN_VALUES).then_some(())?;
    let most = count / options.dictionary_divisor;
    view.repeats_enough(count, most).then_some(())?;
    let most_bytes = view.plain_bytes();
    let mut interner = Interner::new();
    let mut indices = Vec::with_capacity(count * INDEX_BYTES);
    for index in 0..count {
        indices.extend_from_slice(&interner.number(view.value(index)).to_le_bytes());
        if interner.len() > most || interner.data_bytes() > most_bytes {
            return None;
        }
    }
    let byte_width = match values {
        Values::Fixed { byte_width, .. } => Some(*byte_width),
        _ => None,
    };
    let dictionary = Dictionary::encode(&interner.into_values(byte_width), version, bits_per_offset, options)?;
    Some((dictionary, Values::Fixed { byte_width: INDEX_BYTES, bytes: indices }))
}

/// Values that a dictionary can hold.
enum ValueView<'a> {
    Fixed { byte_width: usize, bytes: &'a [u8] },
    Variable { offsets: &'a [u64], data: &'a [u8] },
}

impl<'a> ValueView<'a> {
    fn of(values: &'a Values) -> Option<ValueView<'a>> {
        match values {
            Values::Fixed { byte_width, bytes } => Some(ValueView::Fixed { byte_width: *byte_width, bytes }),
            Values::Variable { offsets, data } => Some(ValueView::Variable { offsets, data }),
            _ => None,
        }
    }

    fn value(&self, index: usize) -> &'a [u8] {
        match self {
            ValueView::Fixed { byte_width, bytes } => &bytes[index * byte_width..(index + 1) * byte_width],
            ValueView::Variable { offsets, data } => &data[offsets[index] as usize..offsets[index + 1] as usize],
        }
    }

    fn plain_bytes(&self) -> usize {
        match self {
            ValueView::Fixed { bytes, .. } => bytes.len(),
            ValueView::Variable { data, .. } => data.len(),
        }
    }

    /// Whether a part of the values says that at most `most` of all are distinct: one spread over the page, whose repeats tell how
    /// many there are to draw from, or one of neighbours, when equal values lie together.
    fn repeats_enough(&self, count: usize, most: usize) -> bool {
        let distinct = |indices: &mut dyn Iterator<Item = usize>| {
            let mut interner = Interner::new();
            indices.for_each(|index| {
                interner.number(self.value(index));
            });
            interner.len()
        };
        let sample = count.min(SAMPLE);
        if distinct(&mut (0..sample)) <= sample / 4 {
            return true;
        }
        let spread = distinct(&mut (0..sample).map(|at| at * (count / sample)));
        let repeats = (sample - spread).max(1) as u64;
        // Of a population of this size, so many draws meet so many acquaintances.
        let population = (sample as u64 * sample as u64 / 2) / repeats;
        population <= most as u64 || (count == sample && spread <= most)
    }
}
