//! Compressive encodings: how values lie in one buffer, or in a few.
//!
//! Decoding goes into [`Values`], which grows chunk by chunk and page by page and becomes an Arrow array once at the end. Encoding makes
//! the buffers of a chunk or of a block, and the message that describes them.
//!
//! Everything that a decoder reads is a claim: counts, widths, offsets and decompressed sizes are checked against what the bytes can
//! hold before memory is taken for them. After an error the contents of `out` are unspecified; it must be dropped.

pub(super) mod bitmap;
mod bitpack;
mod byte_stream_split;
mod fixed_size_list;
mod flat;
mod fsst;
mod fsst_encode;
mod general;
mod levels;
mod packed_struct;
mod rle;
mod value;
mod variable;

pub use bitpack::{bitpack_width, inline_bitpack_encode, inline_bitpacking, out_of_line_bitpack_encode};
pub use bitpack::{out_of_line_bitpacking, packed_bytes};
pub use byte_stream_split::{byte_stream_split, byte_stream_split_encode};
pub use fixed_size_list::fixed_size_list;
pub use flat::flat;
pub use fsst_encode::{FsstEncoder, fsst};
pub use general::{encode_general_lz4, general_lz4};
pub use levels::{decode_levels, encode_level_chunks, encode_levels};
pub use packed_struct::{packed_struct, variable_packed_struct};
pub use rle::{encode_rle_block, encode_rle_chunk, rle};
pub use value::ValueDecoder;
pub use variable::{encode_variable_block, encode_variable_chunk, variable};

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::proto::CompressiveEncoding;
use crate::format::proto::compressive_encoding::Compression;

/// Encodings nest; real ones by three or four.
const MAX_DEPTH: usize = 16;

/// The widest value, and the widest row of a fixed-size list, in bytes.
const MAX_ROW_BYTES: u64 = 256 << 20;

/// Values of one leaf without their nulls: null slots hold arbitrary values.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Little-endian values of a whole number of bytes each.
    Fixed { byte_width: usize, bytes: Vec<u8> },
    /// Booleans, LSB first.
    Bits { bitmap: Vec<u8>, len: usize },
    /// Value `i` is `data[offsets[i]..offsets[i + 1]]`; the first offset is 0.
    Variable { offsets: Vec<u64>, data: Vec<u8> },
    /// `len` lists of `dimension` items each. `validity` has a bit per item, LSB first, where the encoding has one.
    FixedSizeList { dimension: usize, len: usize, validity: Option<Vec<u8>>, items: Box<Values> },
    /// `len` rows of several fields, each as long.
    Struct { fields: Vec<Values>, len: usize },
    /// Items of which every one is null and none is stored.
    Nulls { len: usize },
}

impl Values {
    /// Empty values of the shape that an encoding decodes to.
    ///
    /// # Errors
    /// `NotSupported` naming the encoding; `Corrupt` for an incomplete description.
    pub fn for_encoding(encoding: &CompressiveEncoding) -> Result<Values> {
        shape(encoding, 0)
    }

    pub fn len(&self) -> usize {
        match self {
            Values::Fixed { byte_width, bytes } => bytes.len() / (*byte_width).max(1),
            Values::Bits { len, .. }
            | Values::FixedSizeList { len, .. }
            | Values::Struct { len, .. }
            | Values::Nulls { len } => *len,
            Values::Variable { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `n` placeholders: zeros, empty values, null items.
    fn push_placeholders(&mut self, n: usize) {
        match self {
            Values::Fixed { byte_width, bytes } => bytes.resize(bytes.len() + n * *byte_width, 0),
            Values::Bits { bitmap, len } => {
                bitmap::append_run(bitmap, *len, n, false);
                *len += n;
            }
            Values::Variable { offsets, data } => {
                let end = data.len() as u64;
                if offsets.is_empty() {
                    offsets.push(0);
                }
                offsets.resize(offsets.len() + n, end);
            }
            Values::FixedSizeList { dimension, len, validity, items } => {
                if let Some(validity) = validity {
                    bitmap::append_run(validity, *len * *dimension, n * *dimension, false);
                }
                items.push_placeholders(n * *dimension);
                *len += n;
            }
            Values::Struct { fields, len } => {
                fields.iter_mut().for_each(|field| field.push_placeholders(n));
                *len += n;
            }
            Values::Nulls { len } => *len += n,
        }
    }

    fn fixed_bytes(&mut self, width: usize) -> Result<&mut Vec<u8>> {
        if !matches!(self, Values::Fixed { byte_width, .. } if *byte_width == width) {
            return Err(self.mismatch(&format!("values of {width} bytes")));
        }
        let Values::Fixed { bytes, .. } = self else { return Err(Error::internal("values of another shape")) };
        Ok(bytes)
    }

    fn variable_parts(&mut self) -> Result<(&mut Vec<u64>, &mut Vec<u8>)> {
        match self {
            Values::Variable { offsets, data } => {
                if offsets.is_empty() {
                    offsets.push(0);
                }
                Ok((offsets, data))
            }
            other => Err(other.mismatch("values of variable length")),
        }
    }

    /// Pages of one column that do not agree on what a value is.
    fn mismatch(&self, found: &str) -> Error {
        let expected = match self {
            Values::Fixed { byte_width, .. } => format!("values of {byte_width} bytes"),
            Values::Bits { .. } => "booleans".to_string(),
            Values::Variable { .. } => "values of variable length".to_string(),
            Values::FixedSizeList { dimension, .. } => format!("lists of {dimension} items"),
            Values::Struct { fields, .. } => format!("rows of {} fields", fields.len()),
            Values::Nulls { .. } => "nulls".to_string(),
        };
        Error::corrupt(format!("{found} in a column of {expected}"))
    }
}

fn shape(encoding: &CompressiveEncoding, depth: usize) -> Result<Values> {
    if depth > MAX_DEPTH {
        return Err(Error::corrupt(format!("encodings nested deeper than {MAX_DEPTH}")));
    }
    match compression(encoding)? {
        Compression::Flat(flat) => Ok(match flat::bits(flat)? {
            1 => Values::Bits { bitmap: Vec::new(), len: 0 },
            bits => Values::Fixed { byte_width: byte_width(bits)?, bytes: Vec::new() },
        }),
        Compression::Variable(variable) => {
            variable::offset_bits(variable)?;
            Ok(Values::Variable { offsets: vec![0], data: Vec::new() })
        }
        Compression::OutOfLineBitpacking(packed) => {
            bitpack::out_of_line_widths(packed)?;
            Ok(Values::Fixed { byte_width: byte_width(packed.uncompressed_bits_per_value)?, bytes: Vec::new() })
        }
        Compression::InlineBitpacking(packed) => {
            Ok(Values::Fixed { byte_width: bitpack::inline_word_bytes(packed)?, bytes: Vec::new() })
        }
        Compression::Fsst(fsst) => {
            fsst::SymbolTable::parse(&fsst.symbol_table)?;
            match shape(child(fsst.values.as_deref(), "FSST")?, depth + 1)? {
                values @ Values::Variable { .. } => Ok(values),
                _ => Err(Error::corrupt("FSST of values that are not of variable length")),
            }
        }
        Compression::Rle(rle) => Ok(Values::Fixed { byte_width: rle::value_bytes(rle)?, bytes: Vec::new() }),
        Compression::ByteStreamSplit(split) => {
            Ok(Values::Fixed { byte_width: byte_stream_split::value_bytes(split)?, bytes: Vec::new() })
        }
        Compression::General(general) => shape(general::inner(general)?, depth + 1),
        Compression::FixedSizeList(list) => {
            let dimension = fixed_size_list::dimension(list)?;
            let values = child(list.values.as_deref(), "fixed size list")?;
            let items = match fixed_size_list::all_null(list)? {
                true => Values::Nulls { len: 0 },
                false => shape(values, depth + 1)?,
            };
            fixed_size_list::row_segments(encoding)?;
            let validity = list.has_validity.then(Vec::new);
            Ok(Values::FixedSizeList { dimension, len: 0, validity, items: Box::new(items) })
        }
        Compression::PackedStruct(packed) => {
            let field = |byte_width| Values::Fixed { byte_width, bytes: Vec::new() };
            Ok(Values::Struct { fields: packed_struct::widths(packed)?.into_iter().map(field).collect(), len: 0 })
        }
        Compression::VariablePackedStruct(packed) => {
            if packed.fields.is_empty() {
                return Err(Error::corrupt("a packed struct without fields"));
            }
            let fields = packed.fields.iter();
            let fields = fields.map(|field| shape(child(field.value.as_ref(), "packed field")?, depth + 1));
            Ok(Values::Struct { fields: fields.collect::<Result<_>>()?, len: 0 })
        }
        other => Err(unsupported(other)),
    }
}

/// Decodes a mini-block chunk of `count` values and appends the values of `take` to `out`.
///
/// `buffers` are the chunk's value buffers (padding already cut off). `out` has the encoding's shape; a column's pages may differ in
/// whether list items have validity, and all-null items meet stored ones.
///
/// # Errors
/// `Corrupt` when the buffers cannot hold what the encoding says; nothing beyond what they can hold is allocated.
pub fn decode_chunk(
    encoding: &CompressiveEncoding,
    buffers: &[&[u8]],
    count: usize,
    take: Range<usize>,
    out: &mut Values,
) -> Result<()> {
    if take.start > take.end || take.end > count {
        return Err(Error::corrupt(format!("values {}..{} of a chunk of {count}", take.start, take.end)));
    }
    if take.is_empty() {
        return Ok(());
    }
    match compression(encoding)? {
        Compression::Flat(flat) => flat::decode(flat::bits(flat)?, buffer(buffers, 0)?, count, take, out),
        Compression::Variable(variable) => {
            variable::decode_chunk(variable::offset_bits(variable)?, buffer(buffers, 0)?, count, take, out)
        }
        Compression::InlineBitpacking(packed) => bitpack::decode_inline(packed, buffer(buffers, 0)?, count, take, out),
        Compression::Fsst(fsst) => fsst::decode_chunk(fsst, buffer(buffers, 0)?, count, take, out),
        Compression::Rle(rle) => {
            rle::decode(rle::value_bytes(rle)?, buffer(buffers, 0)?, buffer(buffers, 1)?, count, take, out)
        }
        Compression::ByteStreamSplit(split) => {
            byte_stream_split::decode(byte_stream_split::value_bytes(split)?, buffer(buffers, 0)?, count, take, out)
        }
        Compression::General(general) => general::decode_chunk(general, buffers, count, take, out),
        Compression::FixedSizeList(list) => fixed_size_list::decode(list, buffers, count, take, out),
        Compression::PackedStruct(packed) => {
            packed_struct::decode(&packed_struct::widths(packed)?, buffer(buffers, 0)?, count, take, out)
        }
        Compression::OutOfLineBitpacking(_) => {
            Err(Error::not_supported("out-of-line bitpacking in a mini-block chunk"))
        }
        other => Err(unsupported(other)),
    }
}

/// Decodes a block: levels of a chunk, or a dictionary, as one opaque buffer of `count` values.
///
/// # Errors
/// As [`decode_chunk`].
pub fn decode_block(encoding: &CompressiveEncoding, bytes: &[u8], count: usize) -> Result<Values> {
    let mut out = Values::for_encoding(encoding)?;
    if count == 0 {
        return Ok(out);
    }
    match compression(encoding)? {
        Compression::Variable(variable) => {
            variable::decode_block(variable::offset_bits(variable)?, bytes, count, &mut out)?;
        }
        Compression::OutOfLineBitpacking(packed) => bitpack::decode_out_of_line(packed, bytes, count, &mut out)?,
        Compression::Rle(rle) => {
            let (values, lengths) = rle::split_block(bytes)?;
            rle::decode(rle::value_bytes(rle)?, values, lengths, count, 0..count, &mut out)?;
        }
        Compression::General(general) => return general::decode_block(general, bytes, count),
        Compression::Flat(_) | Compression::InlineBitpacking(_) | Compression::FixedSizeList(_) => {
            decode_chunk(encoding, &[bytes], count, 0..count, &mut out)?;
        }
        Compression::Fsst(_) => return Err(Error::not_supported("FSST in a block")),
        other => return Err(unsupported(other)),
    }
    Ok(out)
}

fn compression(encoding: &CompressiveEncoding) -> Result<&Compression> {
    encoding.compression.as_ref().ok_or_else(|| Error::corrupt("an encoding that is missing or unknown"))
}

fn child<'a>(encoding: Option<&'a CompressiveEncoding>, parent: &str) -> Result<&'a CompressiveEncoding> {
    encoding.ok_or_else(|| Error::corrupt(format!("{parent} encoding without the encoding of its values")))
}

fn describe(compression: Compression) -> CompressiveEncoding {
    CompressiveEncoding { compression: Some(compression) }
}

fn buffer<'a>(buffers: &[&'a [u8]], index: usize) -> Result<&'a [u8]> {
    buffers.get(index).copied().ok_or_else(|| {
        Error::corrupt(format!("a chunk of {} value buffers, at least {} expected", buffers.len(), index + 1))
    })
}

/// Bytes of a value of `bits`, a multiple of 8.
fn byte_width(bits: u64) -> Result<usize> {
    if bits == 0 || !bits.is_multiple_of(8) {
        return Err(Error::not_supported(format!("values of {bits} bits")));
    }
    match bits / 8 {
        bytes @ 1..=MAX_ROW_BYTES => {
            usize::try_from(bytes).map_err(|_| Error::not_supported(format!("values of {bits} bits")))
        }
        bytes => Err(Error::not_supported(format!("values of {bytes} bytes"))),
    }
}

/// Takes memory for `n` more elements, whose existence the caller has checked.
fn reserve<T>(out: &mut Vec<T>, n: usize) -> Result<()> {
    out.try_reserve(n).map_err(|_| Error::corrupt(format!("{n} more values than memory can hold")))
}

fn unsupported(compression: &Compression) -> Error {
    Error::not_supported(match compression {
        Compression::Flat(_) => "flat encoding here",
        Compression::Variable(_) => "variable encoding here",
        Compression::Constant(_) => "constant encoding outside an all-null fixed size list",
        Compression::OutOfLineBitpacking(_) => "out-of-line bitpacking here",
        Compression::InlineBitpacking(_) => "inline bitpacking here",
        Compression::Fsst(_) => "FSST encoding here",
        Compression::Dictionary(_) => "dictionary encoding inside a page's values",
        Compression::Rle(_) => "run length encoding here",
        Compression::ByteStreamSplit(_) => "byte stream split encoding here",
        Compression::General(_) => "general compression here",
        Compression::FixedSizeList(_) => "fixed size list encoding here",
        Compression::PackedStruct(_) => "packed structs here",
        Compression::VariablePackedStruct(_) => "packed structs of variable length here",
        Compression::Range(_) => "range encoding",
        Compression::Delta(_) => "delta encoding",
    })
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod lancedb_bytes;
#[cfg(test)]
mod tests;
