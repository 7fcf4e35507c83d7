//! Mini-block pages: chunks of a power of two of values, each with the levels up to its last value.

use std::ops::Range;

use super::leaf_values::copy_bits;
use super::level_block::LevelForm;
use super::levels_build::LeafPath;
use super::page_encode::{EncodedPage, PageContent, bits_per_offset, describe_plain};
use crate::format::file::FileVersion;
use crate::format::file::encoding::Values;
use crate::format::proto::page_layout::Layout;
use crate::format::proto::{CompressiveEncoding, MiniBlockLayout, PageLayout};

/// Values per chunk, and the bytes of values that a chunk aims at.
const MAX_CHUNK_VALUES: usize = 4096;
const CHUNK_VALUE_BYTES: usize = 8186;
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
    let mut target = CHUNK_VALUE_BYTES;
    loop {
        if let Some(encoded) = encode_with(path, version, page, target) {
            return Some(encoded);
        }
        // Smaller chunks leave more room for levels.
        if target < 64 {
            return None;
        }
        target /= 4;
    }
}

fn encode_with(path: &LeafPath, version: FileVersion, page: &PageContent, target: usize) -> Option<EncodedPage> {
    let codec = ValueCodec::choose(path, page);
    let chunks = plan_chunks(path, page, &codec, target)?;
    let blocks: Vec<_> = chunks.iter().map(|chunk| chunk.levels.clone()).collect();
    let form = |levels: &[u16]| (!levels.is_empty()).then(|| LevelForm::choose(levels, &blocks, version));
    let (rep_form, def_form) = (form(&page.rep), form(&page.def));
    let large = version >= FileVersion::V2_2;
    let (mut words, mut data, mut index) = (Vec::new(), Vec::new(), Vec::new());
    for (number, chunk) in chunks.iter().enumerate() {
        let start = data.len();
        let block =
            |form: Option<LevelForm>, levels: &[u16]| form.map(|form| form.encode(&levels[chunk.levels.clone()]));
        push_chunk(
            &mut data,
            chunk.levels.len(),
            block(rep_form, &page.rep),
            block(def_form, &page.def),
            &codec.buffers(&page.values, chunk.values.clone()),
            large,
        )?;
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
    let layout = MiniBlockLayout {
        rep_compression: rep_form.map(LevelForm::describe),
        def_compression: def_form.map(LevelForm::describe),
        value_compression: Some(codec.describe(path, &page.values)),
        dictionary: None,
        num_dictionary_items: 0,
        layers: path.page_layers(!page.def.is_empty()),
        num_buffers: codec.buffers(&page.values, 0..0).len() as u64,
        repetition_index_depth: u32::from(path.has_lists()),
        num_items: page.values.len() as u64,
        has_large_chunk: large,
    };
    let mut buffers = vec![words, data];
    if path.has_lists() {
        buffers.push(index);
    }
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
    let count = page.values.len();
    let mut chunks = Vec::new();
    let (mut value, mut level) = (0, 0);
    while value < count {
        let values = value..value + codec.chunk_values(&page.values, value, target);
        let levels = if page.def.is_empty() {
            0..0
        } else {
            // Up to the last value's entry; the last chunk takes what comes after it, too.
            let start = level;
            if values.end == count {
                level = page.def.len();
            } else {
                let mut missing = values.len();
                while missing > 0 {
                    missing -= usize::from(*page.def.get(level)? <= path.max_visible);
                    level += 1;
                }
            }
            (level - start <= MAX_CHUNK_LEVELS).then_some(())?;
            start..level
        };
        value = values.end;
        chunks.push(Chunk { values, levels });
    }
    Some(chunks)
}

/// How values lie in the chunks of a page.
enum ValueCodec {
    /// As in memory.
    Plain { bits_per_offset: u64 },
}

impl ValueCodec {
    fn choose(path: &LeafPath, _page: &PageContent) -> ValueCodec {
        ValueCodec::Plain { bits_per_offset: bits_per_offset(&path.leaf) }
    }

    fn describe(&self, path: &LeafPath, values: &Values) -> CompressiveEncoding {
        match self {
            ValueCodec::Plain { .. } => describe_plain(&path.leaf, values),
        }
    }

    /// Values of the chunk that starts at `start`: a power of two of at least 2, or all that are left.
    fn chunk_values(&self, values: &Values, start: usize, target: usize) -> usize {
        let left = values.len() - start;
        let fits = |count: usize| match self {
            ValueCodec::Plain { bits_per_offset } => {
                plain_bytes(values, start..start + count, *bits_per_offset) <= target
            }
        };
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
        let mut buffers = Vec::new();
        match self {
            ValueCodec::Plain { bits_per_offset } => plain_buffers(values, range, *bits_per_offset, &mut buffers),
        }
        buffers
    }
}

fn plain_bytes(values: &Values, range: Range<usize>, bits_per_offset: u64) -> usize {
    match values {
        Values::Nulls { .. } => 0,
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
        Values::Nulls { .. } => buffers.push(Vec::new()),
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
    rep: Option<Vec<u8>>,
    def: Option<Vec<u8>>,
    buffers: &[Vec<u8>],
    large: bool,
) -> Option<()> {
    out.extend_from_slice(&u16::try_from(level_count).ok()?.to_le_bytes());
    for block in [&rep, &def].into_iter().flatten() {
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
    for block in [&rep, &def].into_iter().flatten().chain(buffers) {
        out.extend_from_slice(block);
        out.resize(out.len().next_multiple_of(8), 0xfe);
    }
    Some(())
}
