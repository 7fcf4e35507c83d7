//! Compressive encodings: how values lie in one buffer, or in a few.
//!
//! Decoding goes into [`Values`], which grows chunk by chunk and page by page and becomes an Arrow array once at the end. Encoding makes
//! the buffers of a chunk or of a block, and the message that describes them.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::proto::CompressiveEncoding;

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
    /// Items of which every one is null and none is stored.
    Nulls { len: usize },
}

impl Values {
    /// Empty values of the shape that an encoding decodes to.
    ///
    /// # Errors
    /// `NotSupported` naming the encoding; `Corrupt` for an incomplete description.
    pub fn for_encoding(encoding: &CompressiveEncoding) -> Result<Values> {
        let _ = encoding;
        Err(Error::not_supported("encodings"))
    }

    pub fn len(&self) -> usize {
        match self {
            Values::Fixed { byte_width, bytes } => bytes.len() / (*byte_width).max(1),
            Values::Bits { len, .. } | Values::FixedSizeList { len, .. } | Values::Nulls { len } => *len,
            Values::Variable { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Decodes a mini-block chunk of `count` values and appends the values of `take` to `out`.
///
/// `buffers` are the chunk's value buffers (padding already cut off). `out` has the encoding's shape.
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
    let _ = (encoding, buffers, count, take, out);
    Err(Error::not_supported("encodings"))
}

/// Decodes a block: levels of a chunk, or a dictionary, as one opaque buffer of `count` values.
///
/// # Errors
/// As [`decode_chunk`].
pub fn decode_block(encoding: &CompressiveEncoding, bytes: &[u8], count: usize) -> Result<Values> {
    let _ = (encoding, bytes, count);
    Err(Error::not_supported("encodings"))
}

/// The levels of a chunk, as [`decode_block`] of 16-bit values.
///
/// # Errors
/// As [`decode_chunk`]; also when the encoding is not one of 16-bit values.
pub fn decode_levels(encoding: &CompressiveEncoding, bytes: &[u8], count: usize) -> Result<Vec<u16>> {
    let _ = (encoding, bytes, count);
    Err(Error::not_supported("encodings"))
}

/// Decodes single values of a full-zip page, where each value lies alone.
pub struct ValueDecoder {}

impl ValueDecoder {
    /// # Errors
    /// As [`Values::for_encoding`].
    pub fn new(encoding: &CompressiveEncoding) -> Result<ValueDecoder> {
        let _ = encoding;
        Err(Error::not_supported("encodings"))
    }

    /// Bytes of one stored value, `None` when values have a length of their own.
    pub fn fixed_bytes(&self) -> Option<usize> {
        None
    }

    /// Appends one value.
    ///
    /// # Errors
    /// As [`decode_chunk`].
    pub fn decode(&self, stored: &[u8], out: &mut Values) -> Result<()> {
        let _ = (stored, out);
        Err(Error::not_supported("encodings"))
    }

    /// Appends a placeholder for a null that has no stored bytes.
    pub fn push_null(&self, out: &mut Values) {
        let _ = out;
    }
}

/// Levels as a block: the smallest of the forms that the file's version has.
pub fn encode_levels(levels: &[u16], allow_rle: bool) -> (CompressiveEncoding, Vec<u8>) {
    let _ = (levels, allow_rle);
    (CompressiveEncoding { compression: None }, Vec::new())
}
