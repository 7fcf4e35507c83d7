//! Compressed bodies: each buffer of a batch as an LZ4 frame or a zstd frame, as `pyarrow` writes Feather files.
//!
//! ```text
//! buffer: i64 size of the content, -1: it is not compressed | frame
//! LZ4 frame: magic | flags | block sizes | [u64 content size] | [u32 dictionary] | header sum
//!            | (u32 size, highest bit: not compressed | block | [u32 sum])... | u32 0 | [u32 sum]
//! ```
//!
//! The sizes are claims: LZ4 cannot expand more than 255 times, which is checked before memory is taken; zstd can, its output grows as
//! it is decoded. The check sums are not looked at, as nothing else in a stream has any.

use std::io::Read;

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::{
    BodyCompression, CompressionType, DictionaryBatch, DictionaryBatchBuilder, RecordBatch, RecordBatchBuilder,
};
use flatbuffers::{FlatBufferBuilder, WIPOffset};
use ruzstd::decoding::StreamingDecoder;

use super::{ALIGNMENT, invalid};
use crate::error::{Error, Result};

/// The most that the buffers of one batch may expand to.
const MAX_BYTES: u64 = 1 << 30;
const NOT_COMPRESSED: i64 = -1;
const LZ4_MAX_RATIO: u64 = 255;
const LZ4_MAGIC: u32 = 0x184d_2204;
/// A block refers to at most this much of what is in front of it.
const LZ4_WINDOW: usize = 64 << 10;
const MIN_ZSTD_WINDOW: u64 = 8 << 20;

/// A batch as its message would be without compression, and the body that belongs to it.
pub(super) struct Plain {
    message: Vec<u8>,
    pub body: Buffer,
}

impl Plain {
    pub(super) fn batch(&self) -> Result<RecordBatch<'_>> {
        flatbuffers::root::<RecordBatch>(&self.message).map_err(invalid)
    }

    pub(super) fn dictionary(&self) -> Result<DictionaryBatch<'_>> {
        flatbuffers::root::<DictionaryBatch>(&self.message).map_err(invalid)
    }
}

pub(super) fn expand_batch(batch: &RecordBatch, compression: BodyCompression, body: &Buffer) -> Result<Plain> {
    let mut builder = FlatBufferBuilder::new();
    let (root, body) = expand(&mut builder, batch, compression, body)?;
    builder.finish_minimal(root);
    Ok(Plain { message: builder.finished_data().to_vec(), body })
}

pub(super) fn expand_dictionary(
    dictionary: &DictionaryBatch,
    batch: &RecordBatch,
    compression: BodyCompression,
    body: &Buffer,
) -> Result<Plain> {
    let mut builder = FlatBufferBuilder::new();
    let (data, body) = expand(&mut builder, batch, compression, body)?;
    let mut root = DictionaryBatchBuilder::new(&mut builder);
    root.add_id(dictionary.id());
    root.add_data(data);
    root.add_isDelta(dictionary.isDelta());
    let root = root.finish();
    builder.finish_minimal(root);
    Ok(Plain { message: builder.finished_data().to_vec(), body })
}

fn expand<'b>(
    builder: &mut FlatBufferBuilder<'b>,
    batch: &RecordBatch,
    compression: BodyCompression,
    body: &Buffer,
) -> Result<(WIPOffset<RecordBatch<'b>>, Buffer)> {
    let mut plain = MutableBuffer::new(body.len());
    let mut buffers = Vec::new();
    for buffer in batch.buffers().into_iter().flatten() {
        let range = || {
            let start = usize::try_from(buffer.offset()).ok()?;
            body.get(start..start.checked_add(usize::try_from(buffer.length()).ok()?)?)
        };
        let stored = range().ok_or_else(|| invalid("a buffer is not inside its body"))?;
        let start = plain.len();
        let left = MAX_BYTES.saturating_sub(start as u64);
        expand_buffer(stored, compression.codec(), left, &mut plain)?;
        buffers.push(arrow_ipc::Buffer::new(start as i64, (plain.len() - start) as i64));
        plain.resize(plain.len().next_multiple_of(ALIGNMENT), 0);
    }
    let nodes: Vec<_> = batch.nodes().into_iter().flatten().copied().collect();
    let nodes = builder.create_vector(&nodes);
    let buffers = builder.create_vector(&buffers);
    let counts: Option<Vec<i64>> = batch.variadicBufferCounts().map(|counts| counts.iter().collect());
    let counts = counts.map(|counts| builder.create_vector(&counts));
    let mut root = RecordBatchBuilder::new(builder);
    root.add_length(batch.length());
    root.add_nodes(nodes);
    root.add_buffers(buffers);
    if let Some(counts) = counts {
        root.add_variadicBufferCounts(counts);
    }
    Ok((root.finish(), plain.into()))
}

fn expand_buffer(stored: &[u8], codec: CompressionType, limit: u64, out: &mut MutableBuffer) -> Result<()> {
    // Empty buffers are left as they are.
    let Some((size, packed)) = stored.split_first_chunk::<8>() else {
        return if stored.is_empty() { Ok(()) } else { Err(invalid("a compressed buffer is cut off")) };
    };
    let size = match i64::from_le_bytes(*size) {
        NOT_COMPRESSED => {
            out.extend_from_slice(packed);
            return Ok(());
        }
        size => u64::try_from(size).ok().filter(|size| *size <= limit),
    };
    let size = size.ok_or_else(|| invalid(format!("more than {MAX_BYTES} bytes in one compressed batch")))?;
    match codec {
        CompressionType::LZ4_FRAME => lz4_frame(packed, size, out),
        CompressionType::ZSTD => zstd(packed, size, out),
        other => Err(Error::not_supported(format!("Arrow streams compressed with {other:?}"))),
    }
}

fn zstd(packed: &[u8], size: u64, out: &mut MutableBuffer) -> Result<()> {
    let start = out.len() as u64;
    let decoder = StreamingDecoder::new_with_max_window_size(packed, size.max(MIN_ZSTD_WINDOW)).map_err(invalid)?;
    let mut decoder = decoder.take(size);
    let mut chunk = [0_u8; 8 << 10];
    loop {
        match decoder.read(&mut chunk).map_err(invalid)? {
            0 => break,
            read => out.extend_from_slice(chunk.get(..read).unwrap_or_default()),
        }
    }
    check_size(out.len() as u64 - start, size)
}

fn lz4_frame(packed: &[u8], size: u64, out: &mut MutableBuffer) -> Result<()> {
    let mut frame = Reader { bytes: packed };
    if frame.u32()? != LZ4_MAGIC {
        return Err(invalid("no LZ4 frame"));
    }
    let &[flags, _block_sizes] = frame.take()?;
    if flags >> 6 != 1 {
        return Err(invalid("an LZ4 frame of another version"));
    }
    let has = |bit: u32| flags & (1 << bit) != 0;
    let (has_dictionary, has_content_sum, has_content_size, has_block_sums) = (has(0), has(2), has(3), has(4));
    if has_dictionary {
        return Err(Error::not_supported("LZ4 frames with a dictionary"));
    }
    if has_content_size {
        frame.take::<8>()?;
    }
    frame.take::<1>()?;
    if size > (packed.len() as u64).saturating_mul(LZ4_MAX_RATIO) {
        return Err(invalid(format!("{} bytes of LZ4 that say they hold {size}", packed.len())));
    }
    let size = size as usize;
    let mut plain = vec![0; size];
    let mut filled = 0;
    loop {
        let head = frame.u32()?;
        if head == 0 {
            break;
        }
        let block = frame.slice((head & 0x7fff_ffff) as usize)?;
        let (done, free) = plain.split_at_mut(filled);
        if head >> 31 == 1 {
            let free = free.get_mut(..block.len()).ok_or_else(|| invalid("an LZ4 frame of more than its size"))?;
            free.copy_from_slice(block);
            filled += block.len();
        } else {
            let window = done.get(done.len().saturating_sub(LZ4_WINDOW)..).unwrap_or_default();
            filled += lz4_flex::block::decompress_into_with_dict(block, free, window).map_err(invalid)?;
        }
        if has_block_sums {
            frame.take::<4>()?;
        }
    }
    if has_content_sum {
        frame.take::<4>()?;
    }
    out.extend_from_slice(&plain);
    check_size(filled as u64, size as u64)
}

fn check_size(found: u64, size: u64) -> Result<()> {
    if found == size { Ok(()) } else { Err(invalid(format!("a compressed buffer of {found} bytes, {size} expected"))) }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<&'a [u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or_else(|| invalid("an LZ4 frame is cut off"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32> {
        self.take().map(|word| u32::from_le_bytes(*word))
    }

    fn slice(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(|| invalid("a block of LZ4 is cut off"))?;
        self.bytes = rest;
        Ok(taken)
    }
}
