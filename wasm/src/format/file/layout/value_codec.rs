//! How the values of a page are compressed: chosen from the values by the size that each form would have.

use std::borrow::Cow;
use std::ops::Range;

use super::dictionary_encode::{Dictionary, deduplicate};
use super::leaf_values::{LeafType, copy_bits};
use super::levels_build::LeafPath;
use super::options::{ByteStreamSplit, EncodingOptions, ValueCompression};
use super::page_encode::{PageContent, bits_per_offset, describe_plain};
use crate::format::file::FileVersion;
use crate::format::file::encoding::{
    FsstEncoder, Values, bitpack_width, byte_stream_split, byte_stream_split_encode, encode_general_lz4,
    encode_rle_chunk, fsst, general_lz4, inline_bitpack_encode, inline_bitpacking, packed_bytes, rle,
};
use crate::format::proto::CompressiveEncoding;

/// Values per chunk.
const MAX_CHUNK_VALUES: usize = 4096;
const PACKED_VALUES: usize = 1024;
const RLE_VALUES: usize = 4096;
/// What a chunk costs besides its values, about.
const CHUNK_OVERHEAD: usize = 20;
/// FSST begins where its symbol table is small beside the values, and values are long enough to have symbols.
const MIN_FSST_BYTES: usize = 32 << 10;
const MIN_FSST_VALUE: u64 = 5;
/// What the symbol table costs.
const FSST_TABLE_BYTES: usize = 2312;
/// Bytes that LZ4 is tried on, in pieces about as large as chunks.
const LZ4_TRIAL_BYTES: usize = 64 << 10;
const LZ4_PIECE_BYTES: usize = 8 << 10;

/// How values lie in the chunks of a mini-block page.
pub(crate) struct ValueCodec<'a> {
    /// What the chunks hold: the values of the page, their codes, or their numbers in the dictionary.
    pub(crate) values: Cow<'a, Values>,
    pub(crate) dictionary: Option<Dictionary>,
    form: Form,
    around: Around,
    leaf: &'a LeafType,
    bits_per_offset: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As in memory.
    Plain,
    /// Each chunk in as few bits as its greatest value needs.
    Bitpacked,
    /// Runs of equal values.
    Rle,
    /// First bytes, second bytes, and so on.
    Split,
}

enum Around {
    Nothing,
    /// The values are codes of this symbol table.
    Fsst(Vec<u8>),
    /// The first buffer of each chunk is compressed.
    Lz4,
}

impl<'a> ValueCodec<'a> {
    /// `known` is what [`repeats_much`] found.
    pub(crate) fn choose(
        path: &'a LeafPath,
        version: FileVersion,
        page: &'a PageContent,
        known: Option<(Dictionary, Values)>,
    ) -> Option<ValueCodec<'a>> {
        let options = &path.options;
        let bits_per_offset = bits_per_offset(&path.leaf);
        let codec = |values, dictionary, form, around| ValueCodec {
            values,
            dictionary,
            form,
            around,
            leaf: &path.leaf,
            bits_per_offset,
        };
        let values = &page.values;
        if let Some(items) = &page.dictionary {
            let dictionary = Dictionary::encode(items, version, bits_per_offset, options)?;
            let (form, _) = fixed_form(values, options);
            return Some(codec(Cow::Borrowed(values), Some(dictionary), form, Around::Nothing));
        }
        let plain_size = plain_bytes(values, 0..values.len(), bits_per_offset);
        let (mut form, mut size) = match options.compression {
            ValueCompression::None => (Form::Plain, plain_size),
            _ => fixed_form(values, options),
        };
        let (mut around, mut dictionary, mut stored) = (Around::Nothing, None, Cow::Borrowed(values));
        let automatic = matches!(options.compression, ValueCompression::Automatic);
        if automatic
            && takes_dictionary(values, version)
            && let Some((found, indices)) = known.or_else(|| deduplicate(values, version, bits_per_offset, options))
        {
            let (index_form, index_size) = fixed_form(&indices, options);
            let found_size = found.block.len() + index_size;
            let pays = match options.dictionary_ratio {
                Some(ratio) => (found_size as f64) < ratio * plain_size as f64,
                None => found_size < size,
            };
            if pays {
                (form, size, dictionary, stored) = (index_form, found_size, Some(found), Cow::Owned(indices));
            }
        }
        // A dictionary that leaves next to nothing is not worth comparing with.
        let is_settled = dictionary.is_some() && (size * 4 <= plain_size || options.dictionary_ratio.is_some());
        if !is_settled && let Some((codes, table)) = fsst_codes(values, options.compression, size, bits_per_offset) {
            (form, around, dictionary, stored) = (Form::Plain, Around::Fsst(table), None, Cow::Owned(codes));
        }
        if options.compression == ValueCompression::Lz4
            && version >= FileVersion::V2_2
            && let Some(split) = lz4_form(values, options, size)
        {
            (form, around) = (split, Around::Lz4);
        }
        Some(codec(stored, dictionary, form, around))
    }

    /// The same, but in the form whose chunks can have any size.
    pub(crate) fn into_plain(self, page: &'a PageContent) -> ValueCodec<'a> {
        let is_of_dictionary = page.dictionary.is_some();
        ValueCodec {
            values: Cow::Borrowed(&page.values),
            dictionary: self.dictionary.filter(|_| is_of_dictionary),
            form: Form::Plain,
            around: Around::Nothing,
            ..self
        }
    }

    pub(crate) fn describe(&self) -> CompressiveEncoding {
        let bits = |values: &Values| match values {
            Values::Fixed { byte_width, .. } => *byte_width as u64 * 8,
            _ => 0,
        };
        let inner = match self.form {
            Form::Plain => describe_plain(self.leaf, &self.values),
            Form::Bitpacked => inline_bitpacking(bits(&self.values)),
            Form::Rle => rle(bits(&self.values)),
            Form::Split => byte_stream_split(bits(&self.values)),
        };
        match &self.around {
            Around::Nothing => inner,
            Around::Fsst(table) => fsst(table.clone(), inner),
            Around::Lz4 => general_lz4(inner),
        }
    }

    /// Values of the chunk that starts at `start`: a power of two of at least 2, or all that are left.
    pub(crate) fn chunk_values(&self, start: usize, target: usize) -> usize {
        let left = self.values.len() - start;
        match self.form {
            Form::Bitpacked => return left.min(PACKED_VALUES),
            Form::Rle => return left.min(RLE_VALUES),
            Form::Plain | Form::Split => {}
        }
        let fits = |count: usize| plain_bytes(&self.values, start..start + count, self.bits_per_offset) <= target;
        if left <= MAX_CHUNK_VALUES && fits(left) {
            return left;
        }
        let mut count = 1 << left.min(MAX_CHUNK_VALUES).ilog2();
        while count > 2 && !fits(count) {
            count /= 2;
        }
        count
    }

    /// Value buffers of a chunk.
    pub(crate) fn buffer_count(&self) -> usize {
        match self.form {
            Form::Rle => 2,
            _ => plain_buffer_count(&self.values),
        }
    }

    /// Appends the buffers of a chunk, each padded to 8 bytes, and their sizes without padding. The chunk begins at a multiple of 8.
    pub(crate) fn append_buffers(&self, range: Range<usize>, out: &mut Vec<u8>, sizes: &mut Vec<usize>) -> Option<()> {
        let fixed = || match &*self.values {
            Values::Fixed { byte_width, bytes } => {
                Some((*byte_width, &bytes[range.start * byte_width..range.end * byte_width]))
            }
            _ => None,
        };
        let mut push = |buffer: &[u8]| {
            out.extend_from_slice(buffer);
            sizes.push(buffer.len());
            pad(out);
        };
        match (self.form, &self.around) {
            (Form::Plain, Around::Nothing | Around::Fsst(_)) => {
                plain_buffers(&self.values, range.clone(), self.bits_per_offset, out, sizes);
            }
            (Form::Plain, Around::Lz4) => {
                let (mut plain, mut plain_sizes) = (Vec::new(), Vec::new());
                plain_buffers(&self.values, range.clone(), self.bits_per_offset, &mut plain, &mut plain_sizes);
                push(&encode_general_lz4(&plain[..*plain_sizes.first()?]).ok()?);
            }
            (Form::Bitpacked, _) => {
                let (byte_width, bytes) = fixed()?;
                push(&inline_bitpack_encode(bytes, byte_width));
            }
            (Form::Rle, _) => {
                let (byte_width, bytes) = fixed()?;
                let (values, lengths) = encode_rle_chunk(bytes, byte_width);
                push(&values);
                push(&lengths);
            }
            (Form::Split, around) => {
                let (byte_width, bytes) = fixed()?;
                let split = byte_stream_split_encode(bytes, byte_width);
                match around {
                    Around::Lz4 => push(&encode_general_lz4(&split).ok()?),
                    _ => push(&split),
                }
            }
        }
        Some(())
    }
}

/// The values of a page that are full-zip, and their description. LanceDB cannot read nulls among single values as LZ4, so that these are
/// codes as well where LZ4 is asked for.
pub(crate) fn full_zip_values<'a>(path: &LeafPath, values: &'a Values) -> (Cow<'a, Values>, CompressiveEncoding) {
    let plain = describe_plain(&path.leaf, values);
    let bits_per_offset = bits_per_offset(&path.leaf);
    let size = plain_bytes(values, 0..values.len(), bits_per_offset);
    let compression = match path.options.compression {
        ValueCompression::Lz4 => ValueCompression::Automatic,
        other => other,
    };
    match fsst_codes(values, compression, size, bits_per_offset) {
        Some((codes, table)) => (Cow::Owned(codes), fsst(table, plain)),
        None => (Cow::Borrowed(values), plain),
    }
}

/// The dictionary of values that repeat, when it leaves so little that it also serves values that would lie alone, and their numbers in it.
pub(crate) fn repeats_much(path: &LeafPath, version: FileVersion, values: &Values) -> Option<(Dictionary, Values)> {
    let bits_per_offset = bits_per_offset(&path.leaf);
    let is_possible = path.options.compression == ValueCompression::Automatic && takes_dictionary(values, version);
    let found = is_possible.then(|| deduplicate(values, version, bits_per_offset, &path.options)).flatten()?;
    let plain = plain_bytes(values, 0..values.len(), bits_per_offset);
    (found.0.size(values.len()) * 4 < plain).then_some(found)
}

fn takes_dictionary(values: &Values, version: FileVersion) -> bool {
    match values {
        Values::Variable { .. } => true,
        Values::Fixed { byte_width: 16, .. } => true,
        Values::Fixed { byte_width: 8, .. } => version >= FileVersion::V2_2,
        _ => false,
    }
}

/// The smallest form of values of a fixed width, and its size.
fn fixed_form(values: &Values, options: &EncodingOptions) -> (Form, usize) {
    let plain = (Form::Plain, plain_bytes(values, 0..values.len(), 32));
    let Values::Fixed { byte_width: byte_width @ (1 | 2 | 4 | 8), bytes } = values else { return plain };
    let chunk_bytes = PACKED_VALUES * byte_width;
    let packed: usize = bytes
        .chunks(chunk_bytes)
        .map(|chunk| byte_width + packed_bytes(bitpack_width(chunk, *byte_width)) + CHUNK_OVERHEAD)
        .sum();
    let runs = run_count(bytes, *byte_width);
    let entries = runs + values.len() / 255;
    let run_bytes = entries * (byte_width + 1) + values.len().div_ceil(RLE_VALUES) * CHUNK_OVERHEAD;
    let mut best = plain;
    if packed < best.1 {
        best = (Form::Bitpacked, packed);
    }
    let few = (runs as f64) < options.rle_threshold * values.len() as f64;
    if few && run_bytes < best.1 {
        best = (Form::Rle, run_bytes);
    }
    best
}

fn run_count(bytes: &[u8], byte_width: usize) -> usize {
    fn count<const N: usize>(bytes: &[u8]) -> usize {
        let values = bytes.as_chunks::<N>().0;
        let changes = values.iter().zip(values.get(1..).unwrap_or_default()).filter(|(a, b)| a != b).count();
        changes + usize::from(!values.is_empty())
    }
    match byte_width {
        1 => count::<1>(bytes),
        2 => count::<2>(bytes),
        4 => count::<4>(bytes),
        _ => count::<8>(bytes),
    }
}

/// Codes and symbol table when they are smaller than `size` bytes.
fn fsst_codes(
    values: &Values,
    compression: ValueCompression,
    size: usize,
    bits_per_offset: u64,
) -> Option<(Values, Vec<u8>)> {
    let Values::Variable { offsets, data } = values else { return None };
    let is_asked_for = compression == ValueCompression::Fsst;
    let is_worth_a_try = compression == ValueCompression::Automatic
        && data.len() >= MIN_FSST_BYTES
        && offsets.windows(2).any(|pair| pair[1] - pair[0] >= MIN_FSST_VALUE);
    (is_asked_for || is_worth_a_try).then_some(())?;
    let encoder = FsstEncoder::train(offsets, data)?;
    let offset_bytes = values.len() * bits_per_offset as usize / 8;
    let expected = encoder.estimate(data.len()) + offset_bytes + FSST_TABLE_BYTES;
    (is_asked_for || expected < size).then(|| (encoder.encode(offsets, data), encoder.table()))
}

/// The form that LZ4 goes around, when it is smaller than `size` bytes.
fn lz4_form(values: &Values, options: &EncodingOptions, size: usize) -> Option<Form> {
    let (data, byte_width, rest) = match values {
        Values::Fixed { byte_width, bytes } => (bytes, *byte_width, 0),
        Values::Variable { offsets, data } => (data, 1, offsets.len() * 2),
        _ => return None,
    };
    let piece = (LZ4_PIECE_BYTES / byte_width).max(1) * byte_width;
    let trial = |encode: &dyn Fn(&[u8]) -> Vec<u8>| {
        let pieces = data.chunks(piece).take(LZ4_TRIAL_BYTES / LZ4_PIECE_BYTES);
        let (plain, compressed) = pieces.fold((0, 0), |(plain, compressed), piece| {
            (plain + piece.len(), compressed + encode_general_lz4(&encode(piece)).map_or(piece.len(), |out| out.len()))
        });
        (data.len() as u64 * compressed as u64 / (plain as u64).max(1)) as usize + rest
    };
    let plain = trial(&<[u8]>::to_vec);
    if matches!(byte_width, 4 | 8) && matches!(values, Values::Fixed { .. }) {
        let split = trial(&|piece| byte_stream_split_encode(piece, byte_width));
        match options.byte_stream_split {
            ByteStreamSplit::On => return Some(Form::Split),
            ByteStreamSplit::Automatic if split < plain.min(size) => return Some(Form::Split),
            ByteStreamSplit::Automatic | ByteStreamSplit::Off => {}
        }
    }
    (plain < size).then_some(Form::Plain)
}

fn plain_buffer_count(values: &Values) -> usize {
    match values {
        Values::FixedSizeList { validity, items, .. } => usize::from(validity.is_some()) + plain_buffer_count(items),
        _ => 1,
    }
}

pub(crate) fn plain_bytes(values: &Values, range: Range<usize>, bits_per_offset: u64) -> usize {
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
        Values::Struct { fields, .. } => {
            fields.iter().map(|field| plain_bytes(field, range.clone(), bits_per_offset)).sum()
        }
    }
}

fn plain_buffers(
    values: &Values,
    range: Range<usize>,
    bits_per_offset: u64,
    out: &mut Vec<u8>,
    sizes: &mut Vec<usize>,
) {
    let start = out.len();
    match values {
        Values::Nulls { .. } => {}
        Values::Bits { bitmap, .. } => out.extend(copy_bits(bitmap, range.start, range.len())),
        Values::Fixed { byte_width, bytes } => {
            out.extend_from_slice(&bytes[range.start * byte_width..range.end * byte_width]);
        }
        Values::Variable { offsets, data } => {
            let width = bits_per_offset as usize / 8;
            let first = offsets[range.start];
            let base = ((range.len() + 1) * width) as u64;
            let bytes = &data[first as usize..offsets[range.end] as usize];
            let offsets = offsets[range.start..=range.end].iter().map(|offset| base + offset - first);
            out.reserve(base as usize + bytes.len() + width);
            match width {
                4 => offsets.for_each(|offset| out.extend_from_slice(&(offset as u32).to_le_bytes())),
                _ => offsets.for_each(|offset| out.extend_from_slice(&offset.to_le_bytes())),
            }
            out.extend_from_slice(bytes);
            out.resize(start + (out.len() - start).next_multiple_of(width), b'H');
        }
        Values::FixedSizeList { dimension, validity, items, .. } => {
            let inner = range.start * dimension..range.end * dimension;
            if let Some(bitmap) = validity {
                out.extend(copy_bits(bitmap, inner.start, inner.len()));
                sizes.push(out.len() - start);
                pad(out);
            }
            return plain_buffers(items, inner, bits_per_offset, out, sizes);
        }
        Values::Struct { fields, .. } => {
            for row in range {
                for field in fields {
                    if let Values::Fixed { byte_width, bytes } = field {
                        out.extend_from_slice(&bytes[row * byte_width..(row + 1) * byte_width]);
                    }
                }
            }
        }
    }
    sizes.push(out.len() - start);
    pad(out);
}

/// Buffers of a chunk begin at multiples of 8, as the chunk does.
pub(crate) fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(8), 0xfe);
}
