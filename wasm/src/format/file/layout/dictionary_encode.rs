//! Dictionaries of pages whose strings repeat.

use std::collections::HashMap;

use crate::format::file::FileVersion;
use crate::format::file::encoding::{Values, encode_general_lz4, encode_variable_block, general_lz4, variable};
use crate::format::proto::CompressiveEncoding;

/// Bytes of a number of a value.
pub(crate) const INDEX_BYTES: usize = 4;
/// Pages of fewer values keep them.
const MIN_VALUES: usize = 256;
/// A dictionary is given up when more than one in so many values is new.
const MIN_REPEATS: usize = 8;
/// So many values are looked at before that rule holds.
const SAMPLE: usize = 8192;
/// Bytes of a dictionary that are worth compressing.
const MIN_COMPRESSED_BYTES: usize = 256;

/// The distinct values of a page and, for each value, which of them it is.
pub(crate) struct Dictionary {
    pub(crate) item_count: u64,
    pub(crate) description: CompressiveEncoding,
    pub(crate) block: Vec<u8>,
    pub(crate) indices: Values,
}

impl Dictionary {
    /// `None` when too few values repeat for it to pay.
    pub(crate) fn of(offsets: &[u64], data: &[u8], version: FileVersion, bits_per_offset: u64) -> Option<Dictionary> {
        let count = offsets.len().saturating_sub(1);
        (count >= MIN_VALUES).then_some(())?;
        let mut numbers: HashMap<&[u8], u32> = HashMap::new();
        let (mut item_offsets, mut items) = (vec![0], Vec::new());
        let mut indices = Vec::with_capacity(count * INDEX_BYTES);
        for (position, pair) in offsets.windows(2).enumerate() {
            let value = data.get(usize::try_from(pair[0]).ok()?..usize::try_from(pair[1]).ok()?)?;
            let next = u32::try_from(numbers.len()).ok()?;
            let number = *numbers.entry(value).or_insert_with(|| {
                items.extend_from_slice(value);
                item_offsets.push(items.len() as u64);
                next
            });
            indices.extend_from_slice(&number.to_le_bytes());
            if numbers.len() > (position + 1).max(SAMPLE) / MIN_REPEATS {
                return None;
            }
        }
        (numbers.len() <= count / MIN_REPEATS).then_some(())?;
        let mut block = encode_variable_block(&item_offsets, &items, bits_per_offset).ok()?;
        let mut description = variable(bits_per_offset);
        if version >= FileVersion::V2_2 && block.len() >= MIN_COMPRESSED_BYTES {
            let compressed = encode_general_lz4(&block).ok()?;
            if compressed.len() < block.len() {
                (block, description) = (compressed, general_lz4(description));
            }
        }
        Some(Dictionary {
            item_count: numbers.len() as u64,
            description,
            block,
            indices: Values::Fixed { byte_width: INDEX_BYTES, bytes: indices },
        })
    }
}
