//! Mini-block pages: chunks of a power of two of values, each with the levels up to its last value.

use std::ops::Range;

use super::dictionary_encode::{Dictionary, INDEX_BYTES};
use super::leaf_values::copy_bits;
use super::levels_build::LeafPath;
use super::page_encode::{EncodedPage, PageContent, bits_per_offset, describe_plain};
use crate::format::file::FileVersion;
use crate::format::file::encoding::{
    Values, bitpack_width, encode_level_chunks, inline_bitpack_encode, inline_bitpacking, packed_bytes,
};
use crate::format::proto::page_layout::Layout;
use crate::format::proto::{CompressiveEncoding, MiniBlockLayout, PageLayout};

/// Values per chunk, and the bytes of values that a chunk aims at.
const MAX_CHUNK_VALUES: usize = 4096;
const CHUNK_VALUE_BYTES: usize = 8186;
/// Values of a bitpacked chunk.
const PACKED_VALUES: usize = 1024;
/// The number of levels and the bytes of their blocks are 16-bit numbers; so many levels fit in every form.
const MAX_CHUNK_LEVELS: usize = 32_767;
/// A chunk's word of 2.1 has 12 bits for its size in units of 8 bytes, the word of 2.2 has 28.
const MAX_CHUNK_BYTES_2_1: usize = 32_768;
const MAX_CHUNK_BYTES_2_2: usize = 1 << 31;

/// Level entries without a slot that a page may take so that every chunk has room for them, and a chunk of values besides.
pub(crate) fn max_invisible_entries(path: &LeafPath, version: FileVersion) -> usize {
    let levels = if version >= FileVersion::V2_2 {
        MAX_CHUNK_LEVELS
    } else {
        // Bit-packed levels take at most 128 bytes per 1024 and bit; a chunk's values and header get 9 KiB.
        let bits = |greatest: u16| (16 - greatest.leading_zeros()) as usize;
        let block = 128 * (bits(path.max_rep) + bits(path.max_def)).max(1);
        ((MAX_CHUNK_BYTES_2_1 - 9 * 1024) / block * 1024).min(MAX_CHUNK_LEVELS)
    };
    levels.saturating_sub(MAX_CHUNK_VALUES).max(1024)
}

struct Chunk {
    values: Range<usize>,
    levels: Range<usize>,
}

/// `None` when a chunk would be larger than the version's numbers can say.
pub(crate) fn encode(path: &LeafPath, version: FileVersion, page: &PageContent) -> Option<EncodedPage> {
    let codec = ValueCodec::choose(path, version, page);
    if let Some(encoded) = encode_with(path, version, page, &codec, CHUNK_VALUE_BYTES) {
        return Some(encoded);
    }
    // Chunks of fewer values leave more room for levels.
    let codec = ValueCodec::Plain { bits_per_offset: bits_per_offset(&path.leaf) };
    [2048, 512, 128, 16].into_iter().find_map(|target| encode_with(path, version, page, &codec, target))
}

fn encode_with(
    path: &LeafPath,
    version: FileVersion,
    page: &PageContent,
    codec: &ValueCodec,
    target: usize,
) -> Option<EncodedPage> {
    let values = codec.values(page);
    let chunks = plan_chunks(path, page, codec, target)?;
    let large = version >= FileVersion::V2_2;
    let blocks = |levels: &[u16]| {
        let of_chunks: Vec<_> = chunks.iter().filter_map(|chunk| levels.get(chunk.levels.clone())).collect();
        (!levels.is_empty()).then(|| encode_level_chunks(&of_chunks, large))
    };
    let (rep, def) = (blocks(&page.rep), blocks(&page.def));
    let (mut words, mut data, mut index) = (Vec::new(), Vec::new(), Vec::new());
    for (number, chunk) in chunks.iter().enumerate() {
        let start = data.len();
        let block =
            |of_page: &Option<(_, Vec<Vec<u8>>)>| of_page.as_ref().and_then(|(_, blocks)| blocks.get(number).cloned());
        let levels = [block(&rep), block(&def)];
        push_chunk(&mut data, chunk.levels.len(), &levels, &codec.buffers(values, chunk.values.clone()), large)?;
        let size = data.len() - start;
        // The last chunk's number of values is what the others leave.
        let log = if number + 1 < chunks.len() { chunk.values.len().trailing_zeros() } else { 0 };
        let word = (u32::try_from(size / 8 - 1).ok()? << 4) | log;
        if large {
            (size <= MAX_CHUNK_BYTES_2_2).then_some(())?;
            words.extend_from_slice(&word.to_le_bytes());
        } else {
            (size <= MAX_CHUNK_BYTES_2_1).then_some(())?;
            words.extend_from_slice(&u16::try_from(word).ok()?.to_le_bytes());
        }
        if path.has_lists() {
            let (ends, partial) = rows_of(path, &page.rep, chunk.levels.clone());
            index.extend_from_slice(&ends.to_le_bytes());
            index.extend_from_slice(&partial.to_le_bytes());
        }
    }
    let mut buffers = vec![words, data];
    let (dictionary, num_dictionary_items) = match codec {
        ValueCodec::Dictionary(dictionary) => {
            buffers.push(dictionary.block.clone());
            (Some(dictionary.description.clone()), dictionary.item_count)
        }
        _ => (None, 0),
    };
    if path.has_lists() {
        buffers.push(index);
    }
    let layout = MiniBlockLayout {
        rep_compression: rep.map(|(encoding, _)| encoding),
        def_compression: def.map(|(encoding, _)| encoding),
        value_compression: Some(codec.describe(path, values)),
        dictionary,
        num_dictionary_items,
        layers: path.page_layers(!page.def.is_empty()),
        num_buffers: codec.buffers(values, 0..0).len() as u64,
        repetition_index_depth: u32::from(path.has_lists()),
        num_items: page.values.len() as u64,
        has_large_chunk: large,
    };
    Some(EncodedPage {
        row_count: page.row_count,
        layout: PageLayout { layout: Some(Layout::MiniBlock(layout)) },
        buffers,
    })
}

/// Rows that end in a chunk, and the entries after the last of them when the next chunk goes on with their row.
fn rows_of(path: &LeafPath, rep: &[u16], levels: Range<usize>) -> (u64, u64) {
    let starts_row = |entry: usize| rep.get(entry).is_none_or(|rep| *rep == path.max_rep);
    let ends = (levels.start + 1..=levels.end).filter(|entry| starts_row(*entry)).count() as u64;
    if starts_row(levels.end) {
        return (ends, 0);
    }
    let last_start = levels.clone().rev().find(|entry| *entry == levels.start || starts_row(*entry));
    (ends, (levels.end - last_start.unwrap_or(levels.start)) as u64)
}

fn plan_chunks(path: &LeafPath, page: &PageContent, codec: &ValueCodec, target: usize) -> Option<Vec<Chunk>> {
    let values = codec.values(page);
    let count = values.len();
    let mut chunks = Vec::new();
    let (mut value, mut level) = (0, 0);
    while value < count {
        let range = value..value + codec.chunk_values(values, value, target);
        let levels = if page.def.is_empty() {
            0..0
        } else {
            // Up to the last value's entry; the last chunk takes what comes after it, too.
            let start = level;
            if range.end == count {
                level = page.def.len();
            } else {
                let mut missing = range.len();
                while missing > 0 {
                    missing -= usize::from(*page.def.get(level)? <= path.max_visible);
                    level += 1;
                }
            }
            (level - start <= MAX_CHUNK_LEVELS).then_some(())?;
            start..level
        };
        value = range.end;
        chunks.push(Chunk { values: range, levels });
    }
    Some(chunks)
}

/// How values lie in the chunks of a page.
enum ValueCodec {
    /// As in memory.
    Plain { bits_per_offset: u64 },
    /// Each chunk in as few bits as its greatest value needs.
    Bitpacked { byte_width: usize },
    /// Numbers of values in a dictionary, bitpacked.
    Dictionary(Dictionary),
}

impl ValueCodec {
    fn choose(path: &LeafPath, version: FileVersion, page: &PageContent) -> ValueCodec {
        let plain = ValueCodec::Plain { bits_per_offset: bits_per_offset(&path.leaf) };
        match &page.values {
            Values::Fixed { byte_width: byte_width @ (1 | 2 | 4 | 8), bytes } => {
                let chunk_bytes = PACKED_VALUES * byte_width;
                let packed: usize = bytes
                    .chunks(chunk_bytes)
                    .map(|chunk| byte_width + packed_bytes(bitpack_width(chunk, *byte_width)))
                    .sum();
                // A chunk costs a word and a header, too, and there may be four times as many.
                let saves = packed + bytes.len().div_ceil(chunk_bytes) * 16 < bytes.len();
                if saves { ValueCodec::Bitpacked { byte_width: *byte_width } } else { plain }
            }
            Values::Variable { offsets, data } => {
                match Dictionary::of(offsets, data, version, bits_per_offset(&path.leaf)) {
                    Some(dictionary) => ValueCodec::Dictionary(dictionary),
                    None => plain,
                }
            }
            _ => plain,
        }
    }

    /// What the chunks hold: the values of the page, or their numbers in the dictionary.
    fn values<'a>(&'a self, page: &'a PageContent) -> &'a Values {
        match self {
            ValueCodec::Dictionary(dictionary) => &dictionary.indices,
            ValueCodec::Plain { .. } | ValueCodec::Bitpacked { .. } => &page.values,
        }
    }

    fn describe(&self, path: &LeafPath, values: &Values) -> CompressiveEncoding {
        match self {
            ValueCodec::Plain { .. } => describe_plain(&path.leaf, values),
            ValueCodec::Bitpacked { byte_width } => inline_bitpacking(*byte_width as u64 * 8),
            ValueCodec::Dictionary(_) => inline_bitpacking(INDEX_BYTES as u64 * 8),
        }
    }

    /// Values of the chunk that starts at `start`: a power of two of at least 2, or all that are left.
    fn chunk_values(&self, values: &Values, start: usize, target: usize) -> usize {
        let left = values.len() - start;
        let ValueCodec::Plain { bits_per_offset } = self else { return left.min(PACKED_VALUES) };
        let fits = |count: usize| plain_bytes(values, start..start + count, *bits_per_offset) <= target;
        if left <= MAX_CHUNK_VALUES && fits(left) {
            return left;
        }
        let mut count = 1 << left.min(MAX_CHUNK_VALUES).ilog2();
        while count > 2 && !fits(count) {
            count /= 2;
        }
        count
    }

    fn buffers(&self, values: &Values, range: Range<usize>) -> Vec<Vec<u8>> {
        let packed = |byte_width: usize| match values {
            Values::Fixed { bytes, .. } => {
                vec![inline_bitpack_encode(&bytes[range.start * byte_width..range.end * byte_width], byte_width)]
            }
            _ => Vec::new(),
        };
        match self {
            ValueCodec::Plain { bits_per_offset } => {
                let mut buffers = Vec::new();
                plain_buffers(values, range, *bits_per_offset, &mut buffers);
                buffers
            }
            ValueCodec::Bitpacked { byte_width } => packed(*byte_width),
            ValueCodec::Dictionary(_) => packed(INDEX_BYTES),
        }
    }
}

fn plain_bytes(values: &Values, range: Range<usize>, bits_per_offset: u64) -> usize {
    match values {
        // No leaf of the writer is a packed struct.
        Values::Struct { .. } | Values::Nulls { .. } => 0,
        Values::Bits { .. } => range.len().div_ceil(8),
        Values::Fixed { byte_width, .. } => byte_width * range.len(),
        Values::Variable { offsets, .. } => {
            let data = offsets[range.end] - offsets[range.start];
            (data as usize).saturating_add((range.len() + 1) * bits_per_offset as usize / 8)
        }
        Values::FixedSizeList { dimension, validity, items, .. } => {
            let inner = range.start * dimension..range.end * dimension;
            let bitmap = validity.as_ref().map_or(0, |_| inner.len().div_ceil(8));
            bitmap + plain_bytes(items, inner, bits_per_offset)
        }
    }
}

fn plain_buffers(values: &Values, range: Range<usize>, bits_per_offset: u64, buffers: &mut Vec<Vec<u8>>) {
    match values {
        Values::Struct { .. } | Values::Nulls { .. } => buffers.push(Vec::new()),
        Values::Bits { bitmap, .. } => buffers.push(copy_bits(bitmap, range.start, range.len())),
        Values::Fixed { byte_width, bytes } => {
            buffers.push(bytes[range.start * byte_width..range.end * byte_width].to_vec());
        }
        Values::Variable { offsets, data } => {
            let width = bits_per_offset as usize / 8;
            let first = offsets[range.start];
            let base = ((range.len() + 1) * width) as u64;
            let bytes = &data[first as usize..offsets[range.end] as usize];
            let mut out = Vec::with_capacity(base as usize + bytes.len() + width);
            for offset in &offsets[range.start..=range.end] {
                out.extend_from_slice(&(base + offset - first).to_le_bytes()[..width]);
            }
            out.extend_from_slice(bytes);
            out.resize(out.len().next_multiple_of(width), b'H');
            buffers.push(out);
        }
        Values::FixedSizeList { dimension, validity, items, .. } => {
            let inner = range.start * dimension..range.end * dimension;
            if let Some(bitmap) = validity {
                buffers.push(copy_bits(bitmap, inner.start, inner.len()));
            }
            plain_buffers(items, inner, bits_per_offset, buffers);
        }
    }
}

/// Header, levels, buffers, each padded to 8 bytes; the chunk itself starts at a multiple of 8.
fn push_chunk(
    out: &mut Vec<u8>,
    level_count: usize,
    levels: &[Option<Vec<u8>>],
    buffers: &[Vec<u8>],
    large: bool,
) -> Option<()> {
    out.extend_from_slice(&u16::try_from(level_count).ok()?.to_le_bytes());
    for block in levels.iter().flatten() {
        out.extend_from_slice(&u16::try_from(block.len()).ok()?.to_le_bytes());
    }
    for buffer in buffers {
        if large {
            out.extend_from_slice(&u32::try_from(buffer.len()).ok()?.to_le_bytes());
        } else {
            out.extend_from_slice(&u16::try_from(buffer.len()).ok()?.to_le_bytes());
        }
    }
    out.resize(out.len().next_multiple_of(8), 0xfe);
    for block in levels.iter().flatten().chain(buffers) {
        out.extend_from_slice(block);
        out.resize(out.len().next_multiple_of(8), 0xfe);
    }
    Some(())
}
