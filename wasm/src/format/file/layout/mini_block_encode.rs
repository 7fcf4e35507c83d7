//! Mini-block pages: chunks of a power of two of values, each with the levels up to its last value.

use std::ops::Range;

use super::dictionary_encode::Dictionary;
use super::levels_build::LeafPath;
use super::page_encode::{EncodedPage, PageContent};
use super::value_codec::{ValueCodec, pad};
use crate::format::file::FileVersion;
use crate::format::file::encoding::{Values, encode_level_chunks};
use crate::format::proto::page_layout::Layout;
use crate::format::proto::{MiniBlockLayout, PageLayout};

/// The bytes of values that a chunk aims at, and the most values that one has.
const CHUNK_VALUE_BYTES: usize = 8186;
const MAX_CHUNK_VALUES: usize = 4096;
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

/// `None` when a chunk would be larger than the version's numbers can say. `known` is a dictionary that was found already.
pub(crate) fn encode(
    path: &LeafPath,
    version: FileVersion,
    page: &PageContent,
    known: Option<(Dictionary, Values)>,
) -> Option<EncodedPage> {
    let codec = ValueCodec::choose(path, version, page, known)?;
    if let Some(encoded) = encode_with(path, version, page, &codec, CHUNK_VALUE_BYTES) {
        return Some(encoded);
    }
    // Chunks of fewer values leave more room for levels.
    let codec = codec.into_plain(page);
    [2048, 512, 128, 16].into_iter().find_map(|target| encode_with(path, version, page, &codec, target))
}

fn encode_with(
    path: &LeafPath,
    version: FileVersion,
    page: &PageContent,
    codec: &ValueCodec,
    target: usize,
) -> Option<EncodedPage> {
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
        let levels = [&rep, &def].map(|of_page| of_page.as_ref().and_then(|(_, blocks)| blocks.get(number)));
        push_chunk(&mut data, chunk, &levels, codec, large)?;
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
    let (dictionary, num_dictionary_items) = match &codec.dictionary {
        Some(dictionary) => {
            buffers.push(dictionary.block.clone());
            (Some(dictionary.description.clone()), dictionary.item_count)
        }
        None => (None, 0),
    };
    if path.has_lists() {
        buffers.push(index);
    }
    let layout = MiniBlockLayout {
        rep_compression: rep.map(|(encoding, _)| encoding),
        def_compression: def.map(|(encoding, _)| encoding),
        value_compression: Some(codec.describe()),
        dictionary,
        num_dictionary_items,
        layers: path.page_layers(!page.def.is_empty()),
        num_buffers: codec.buffer_count() as u64,
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
    let count = codec.values.len();
    let level_count = page.rep.len().max(page.def.len());
    let mut chunks = Vec::new();
    let (mut value, mut level) = (0, 0);
    while value < count {
        let range = value..value + codec.chunk_values(value, target);
        // Up to the last value's entry; the last chunk takes what comes after it, too.
        let start = level;
        if range.end == count {
            level = level_count;
        } else if page.def.is_empty() {
            level = range.end.min(level_count);
        } else {
            let mut missing = range.len();
            while missing > 0 {
                missing -= usize::from(*page.def.get(level)? <= path.max_visible);
                level += 1;
            }
        }
        (level - start <= MAX_CHUNK_LEVELS).then_some(())?;
        value = range.end;
        chunks.push(Chunk { values: range, levels: start..level });
    }
    Some(chunks)
}

/// Header, levels, buffers, each padded to 8 bytes; the chunk itself starts at a multiple of 8.
fn push_chunk(
    out: &mut Vec<u8>,
    chunk: &Chunk,
    levels: &[Option<&Vec<u8>>],
    codec: &ValueCodec,
    large: bool,
) -> Option<()> {
    out.extend_from_slice(&u16::try_from(chunk.levels.len()).ok()?.to_le_bytes());
    for block in levels.iter().flatten() {
        out.extend_from_slice(&u16::try_from(block.len()).ok()?.to_le_bytes());
    }
    let size_bytes = if large { 4 } else { 2 };
    let sizes_start = out.len();
    out.resize(sizes_start + codec.buffer_count() * size_bytes, 0);
    pad(out);
    for block in levels.iter().flatten() {
        out.extend_from_slice(block);
        pad(out);
    }
    let mut sizes = Vec::with_capacity(2);
    codec.append_buffers(chunk.values.clone(), out, &mut sizes)?;
    for (index, size) in sizes.iter().enumerate() {
        let size = if large { u32::try_from(*size).ok()? } else { u32::from(u16::try_from(*size).ok()?) };
        let at = sizes_start + index * size_bytes;
        out.get_mut(at..at + size_bytes)?.copy_from_slice(&size.to_le_bytes()[..size_bytes]);
    }
    Some(())
}
