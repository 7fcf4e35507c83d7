//! A page's tree of array encodings, checked against the page: every buffer is there and large enough for its values.

use std::cell::OnceCell;
use std::ops::Range;

use bytes::Bytes;

use super::slots::Slots;
use crate::error::{Error, Result};
use crate::format::file::column::Page;
use crate::format::file::encoding::{ValueDecoder, variable};
use crate::format::proto::array_encodings::{self as messages, ArrayEncoding, array_encoding::Kind, nullable::Nulls};
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::{self, CompressionScheme, CompressiveEncoding};

/// Real trees nest by three or four; deeper than this is an attack on the stack.
const MAX_DEPTH: usize = 16;
/// The widest value, in bytes.
const MAX_VALUE_BYTES: u64 = 256 << 20;
/// Values of a bit-packed block.
pub(super) const BLOCK: u64 = 1024;

/// How the values of a page, or a part of them, are stored.
pub(super) enum Encoding {
    /// Values side by side: bits, LSB first, or a whole number of bytes each.
    Flat {
        bits: u64,
        buffer: Stored,
    },
    /// Nothing is stored: every value is null.
    Nulls,
    /// A bit says of each value whether it is one.
    Nullable {
        validity: Box<Encoding>,
        values: Box<Encoding>,
    },
    FixedSizeList {
        dimension: u64,
        items: Box<Encoding>,
    },
    /// Where values end, and their bytes.
    Binary {
        ends: Ends,
        bytes: Stored,
    },
    Dictionary {
        indices: Box<Encoding>,
        items: Box<Encoding>,
        item_count: u64,
        decoded: OnceCell<Slots>,
    },
    Fsst {
        values: Box<Encoding>,
        decoder: ValueDecoder,
        table_bytes: usize,
    },
    /// Values of variable length that are all of one length.
    FixedSizeBinary {
        byte_width: u64,
        bytes: Stored,
    },
    /// Row after row, the values of the members side by side.
    PackedStruct {
        widths: Vec<usize>,
        row_bytes: u64,
        buffer: Range<u64>,
    },
    /// A stream of bits, LSB first.
    Bitpacked {
        packed_bits: u64,
        byte_width: usize,
        is_signed: bool,
        buffer: Range<u64>,
    },
    /// Blocks of 1024 values in the FastLanes order.
    BitpackedBlocks {
        packed_bits: u64,
        byte_width: usize,
        buffer: Range<u64>,
    },
    /// Where lists end in the column of their items.
    List {
        ends: Ends,
        item_count: u64,
    },
    /// The members are columns of their own.
    Struct,
}

/// Ends of values or lists. The start of one is the end of the one before, and that of the first is 0.
pub(super) struct Ends {
    pub(super) numbers: Box<Encoding>,
    /// From here on a number is that of a null, above its end; 0: there are no nulls.
    pub(super) null_adjustment: u64,
}

/// A buffer, possibly compressed as a whole.
pub(super) struct Stored {
    pub(super) range: Range<u64>,
    pub(super) compressed: Option<Compressed>,
}

pub(super) struct Compressed {
    pub(super) decoder: ValueDecoder,
    pub(super) plain: OnceCell<Bytes>,
}

impl Encoding {
    /// The encoding of all rows of a page.
    ///
    /// # Errors
    /// `Corrupt` for an incomplete tree and for buffers that cannot hold the rows; `NotSupported` naming the encoding.
    pub(super) fn of_page(page: &Page) -> Result<Encoding> {
        Parser { page }.parse(Some(&page.array_encoding()?), page.row_count, 0)
    }

    /// Roughly the bytes that keeping the encoding costs, with what was decoded for good.
    pub(super) fn cost_bytes(&self) -> usize {
        let below = match self {
            Encoding::Nullable { validity, values } => validity.cost_bytes() + values.cost_bytes(),
            Encoding::FixedSizeList { items, .. } => items.cost_bytes(),
            Encoding::Binary { ends, bytes } => ends.numbers.cost_bytes() + bytes.cost_bytes(),
            Encoding::Dictionary { indices, items, decoded, .. } => {
                let decoded = decoded.get().map_or(0, |slots| memory_bytes(&slots.values));
                indices.cost_bytes() + items.cost_bytes() + decoded
            }
            Encoding::Fsst { values, table_bytes, .. } => values.cost_bytes() + table_bytes,
            Encoding::FixedSizeBinary { bytes, .. } => bytes.cost_bytes(),
            Encoding::List { ends, .. } => ends.numbers.cost_bytes(),
            Encoding::Flat { buffer, .. } => buffer.cost_bytes(),
            _ => 0,
        };
        below + size_of::<Encoding>()
    }

    /// Bytes that `count` values take in memory without a byte of the file for each, `slot_bytes` for a value.
    pub(super) fn unstored_bytes(&self, count: u64, slot_bytes: u64) -> u64 {
        match self {
            Encoding::Nulls | Encoding::BitpackedBlocks { packed_bits: 0, .. } => count.saturating_mul(slot_bytes),
            Encoding::FixedSizeList { items, .. } => items.unstored_bytes(count, slot_bytes),
            Encoding::Nullable { values, .. } => values.unstored_bytes(count, slot_bytes),
            _ => 0,
        }
    }
}

impl Stored {
    fn cost_bytes(&self) -> usize {
        let plain = self.compressed.as_ref().and_then(|compressed| compressed.plain.get());
        plain.map_or(0, |plain| plain.len())
    }
}

fn memory_bytes(values: &crate::format::file::encoding::Values) -> usize {
    use crate::format::file::encoding::Values;
    match values {
        Values::Fixed { bytes, .. } => bytes.len(),
        Values::Bits { bitmap, .. } => bitmap.len(),
        Values::Variable { offsets, data } => offsets.len() * 8 + data.len(),
        Values::FixedSizeList { items, .. } => memory_bytes(items),
        _ => 0,
    }
}

struct Parser<'a> {
    page: &'a Page,
}

impl Parser<'_> {
    fn parse(&self, message: Option<&ArrayEncoding>, count: u64, depth: usize) -> Result<Encoding> {
        if depth > MAX_DEPTH {
            return Err(Error::corrupt(format!("encodings nested deeper than {MAX_DEPTH}")));
        }
        let kind = message.and_then(|message| message.kind.as_ref());
        let kind = kind.ok_or_else(|| Error::corrupt("an encoding that is missing or unknown"))?;
        let parse = |child: &Option<Box<ArrayEncoding>>, count| self.parse(child.as_deref(), count, depth + 1);
        Ok(match kind {
            Kind::Flat(flat) => {
                let buffer = self.stored(flat)?;
                if flat.bits_per_value != 1 {
                    byte_width(flat.bits_per_value)?;
                }
                if buffer.compressed.is_none() {
                    check_size(count, flat.bits_per_value, &buffer.range)?;
                }
                Encoding::Flat { bits: flat.bits_per_value, buffer }
            }
            Kind::Nullable(nullable) => match &nullable.nulls {
                Some(Nulls::No(inner)) => parse(&inner.values, count)?,
                Some(Nulls::Some(inner)) => {
                    let validity = parse(&inner.validity, count)?;
                    if !matches!(validity, Encoding::Flat { bits: 1, .. }) {
                        return Err(Error::not_supported("validity that is no bitmap"));
                    }
                    Encoding::Nullable { validity: Box::new(validity), values: Box::new(parse(&inner.values, count)?) }
                }
                Some(Nulls::All(_)) => Encoding::Nulls,
                None => return Err(Error::corrupt("a nullable encoding that says nothing of nulls")),
            },
            Kind::FixedSizeList(list) => {
                let dimension = u64::from(list.dimension);
                let item_count = count.checked_mul(dimension).filter(|_| dimension > 0);
                let item_count = item_count
                    .ok_or_else(|| Error::corrupt(format!("{count} fixed-size lists of {dimension} items")))?;
                if list.has_validity {
                    return Err(Error::not_supported("fixed-size lists with validity of their own"));
                }
                Encoding::FixedSizeList { dimension, items: Box::new(parse(&list.items, item_count)?) }
            }
            Kind::List(list) => Encoding::List {
                ends: Ends {
                    numbers: Box::new(parse(&list.offsets, count)?),
                    null_adjustment: list.null_offset_adjustment,
                },
                item_count: list.num_items,
            },
            Kind::Struct(_) => Encoding::Struct,
            Kind::Binary(binary) => Encoding::Binary {
                ends: Ends {
                    numbers: Box::new(parse(&binary.indices, count)?),
                    null_adjustment: binary.null_adjustment,
                },
                bytes: self.bytes(binary.bytes.as_deref())?,
            },
            Kind::Dictionary(dictionary) => {
                let item_count = u64::from(dictionary.num_dictionary_items);
                let items = parse(&dictionary.items, item_count)?;
                let is_known = match &items {
                    Encoding::Binary { .. } | Encoding::Fsst { .. } | Encoding::Flat { .. } => true,
                    Encoding::Nullable { values, .. } => matches!(**values, Encoding::Flat { .. }),
                    // There is no need for more than one of them.
                    Encoding::Nulls => item_count <= 1,
                    _ => false,
                };
                if !is_known {
                    return Err(Error::not_supported("this encoding of the values of a dictionary"));
                }
                Encoding::Dictionary {
                    indices: Box::new(parse(&dictionary.indices, count)?),
                    items: Box::new(items),
                    item_count,
                    decoded: OnceCell::new(),
                }
            }
            Kind::Fsst(fsst) => {
                let values = parse(&fsst.binary, count)?;
                if !matches!(values, Encoding::Binary { .. }) {
                    return Err(Error::corrupt("FSST of values that are not of variable length"));
                }
                let decoder = ValueDecoder::new(&CompressiveEncoding {
                    compression: Some(Compression::Fsst(Box::new(proto::Fsst {
                        symbol_table: fsst.symbol_table.clone(),
                        values: Some(Box::new(variable(64))),
                    }))),
                })?;
                Encoding::Fsst { values: Box::new(values), decoder, table_bytes: 4096 }
            }
            Kind::PackedStruct(packed) => {
                let widths = packed.inner.iter().map(|member| member_width(member, 0)).collect::<Result<Vec<_>>>()?;
                let row_bytes = widths.iter().fold(0u64, |sum, width| sum.saturating_add(*width as u64));
                let buffer = self.buffer(packed.buffer.as_ref())?;
                check_size(count, row_bytes.saturating_mul(8), &buffer)?;
                Encoding::PackedStruct { widths, row_bytes, buffer }
            }
            Kind::FixedSizeBinary(fixed) => {
                let (byte_width, bytes) = (u64::from(fixed.byte_width), self.bytes(fixed.bytes.as_deref())?);
                if byte_width == 0 {
                    return Err(Error::corrupt("values of 0 bytes"));
                }
                if bytes.compressed.is_none() {
                    check_size(count, byte_width * 8, &bytes.range)?;
                }
                Encoding::FixedSizeBinary { byte_width, bytes }
            }
            Kind::Bitpacked(packed) => {
                let buffer = self.buffer(packed.buffer.as_ref())?;
                let packed_bits = packed.compressed_bits_per_value;
                let byte_width = packed_width(packed_bits, packed.uncompressed_bits_per_value)?;
                if packed_bits == 0 {
                    return Err(Error::corrupt("values of 0 bits"));
                }
                check_size(count, packed_bits, &buffer)?;
                Encoding::Bitpacked { packed_bits, byte_width, is_signed: packed.signed, buffer }
            }
            Kind::BitpackedForNonNeg(packed) => {
                let buffer = self.buffer(packed.buffer.as_ref())?;
                let packed_bits = packed.compressed_bits_per_value;
                let byte_width = packed_width(packed_bits, packed.uncompressed_bits_per_value)?;
                check_size(count.div_ceil(BLOCK), packed_bits.saturating_mul(BLOCK), &buffer)?;
                Encoding::BitpackedBlocks { packed_bits, byte_width, buffer }
            }
            Kind::Constant(_) => return Err(unreleased("constant")),
            Kind::InlineBitpacking(_) => return Err(unreleased("inline bitpacking")),
            Kind::OutOfLineBitpacking(_) => return Err(unreleased("out-of-line bitpacking")),
            Kind::Variable(_) => return Err(unreleased("variable")),
            Kind::PackedStructFixedWidthMiniBlock(_) => return Err(unreleased("mini-block packed struct")),
            Kind::Block(_) => return Err(unreleased("block")),
            Kind::Rle(_) => return Err(unreleased("run length")),
            Kind::GeneralMiniBlock(_) => return Err(unreleased("mini-block compression")),
            Kind::ByteStreamSplit(_) => return Err(unreleased("byte stream split")),
        })
    }

    /// The bytes of values of variable length.
    fn bytes(&self, message: Option<&ArrayEncoding>) -> Result<Stored> {
        let mut message = message;
        if let Some(Kind::Nullable(nullable)) = message.and_then(|message| message.kind.as_ref())
            && let Some(Nulls::No(inner)) = &nullable.nulls
        {
            message = inner.values.as_deref();
        }
        match message.and_then(|message| message.kind.as_ref()) {
            Some(Kind::Flat(flat)) if flat.bits_per_value == 8 => self.stored(flat),
            Some(_) => Err(Error::not_supported("bytes of values that are not flat")),
            None => Err(Error::corrupt("an encoding that is missing or unknown")),
        }
    }

    fn stored(&self, flat: &messages::Flat) -> Result<Stored> {
        let range = self.buffer(flat.buffer.as_ref())?;
        let scheme = match flat.compression.as_ref().map_or("", |compression| compression.scheme.as_str()) {
            "" | "none" => return Ok(Stored { range, compressed: None }),
            "lz4" => CompressionScheme::Lz4,
            "zstd" => CompressionScheme::Zstd,
            other => {
                let shown: String = other.chars().take(20).collect();
                return Err(Error::not_supported(format!("compression scheme {shown:?}")));
            }
        };
        let decoder = ValueDecoder::new(&CompressiveEncoding {
            compression: Some(Compression::General(Box::new(proto::General {
                compression: Some(proto::BufferCompression { scheme: scheme as i32, level: None }),
                values: Some(Box::new(variable(64))),
            }))),
        })?;
        Ok(Stored { range, compressed: Some(Compressed { decoder, plain: OnceCell::new() }) })
    }

    fn buffer(&self, buffer: Option<&messages::Buffer>) -> Result<Range<u64>> {
        // The first buffer of a page is the default of every field, and so is not spelt out.
        let buffer = buffer.copied().unwrap_or_default();
        match buffer.buffer_type {
            0 => self.page.buffer(buffer.buffer_index as usize),
            1 => Err(Error::not_supported("pages with buffers of the column")),
            2 => Err(Error::not_supported("pages with buffers of the file")),
            other => Err(Error::corrupt(format!("a buffer of kind {other}"))),
        }
    }
}

/// Bytes of a member of a packed struct: a value, or a fixed-size list of values.
fn member_width(message: &ArrayEncoding, depth: usize) -> Result<usize> {
    let too_wide = || Error::corrupt("a member of a packed struct that is too wide");
    if depth > MAX_DEPTH {
        return Err(Error::corrupt(format!("encodings nested deeper than {MAX_DEPTH}")));
    }
    match &message.kind {
        Some(Kind::Flat(flat)) => byte_width(flat.bits_per_value),
        Some(Kind::Nullable(nullable)) => match &nullable.nulls {
            Some(Nulls::No(inner)) => member_width(inner.values.as_deref().ok_or_else(too_wide)?, depth + 1),
            _ => Err(Error::not_supported("nulls in a packed struct")),
        },
        Some(Kind::FixedSizeList(list)) => {
            let width = member_width(list.items.as_deref().ok_or_else(too_wide)?, depth + 1)?;
            let width = width.checked_mul(list.dimension as usize).filter(|width| *width as u64 <= MAX_VALUE_BYTES);
            width.filter(|width| *width > 0).ok_or_else(too_wide)
        }
        _ => Err(Error::not_supported("this member of a packed struct")),
    }
}

fn byte_width(bits: u64) -> Result<usize> {
    match bits {
        0 => Err(Error::corrupt("values of 0 bits")),
        bits if bits.is_multiple_of(8) && bits / 8 <= MAX_VALUE_BYTES => Ok((bits / 8) as usize),
        bits => Err(Error::not_supported(format!("values of {bits} bits"))),
    }
}

fn packed_width(packed_bits: u64, bits: u64) -> Result<usize> {
    match bits {
        8 | 16 | 32 | 64 if packed_bits <= bits => Ok((bits / 8) as usize),
        8 | 16 | 32 | 64 => Err(Error::corrupt(format!("{bits} bits packed into {packed_bits}"))),
        bits => Err(Error::not_supported(format!("bitpacking of values of {bits} bits"))),
    }
}

fn check_size(count: u64, bits: u64, buffer: &Range<u64>) -> Result<()> {
    let size = buffer.end - buffer.start;
    match count.checked_mul(bits) {
        Some(needed) if needed.div_ceil(8) <= size => Ok(()),
        _ => Err(Error::corrupt(format!("{count} values of {bits} bits in {size} bytes"))),
    }
}

fn unreleased(encoding: &str) -> Error {
    Error::not_supported(format!("the {encoding} array encoding, which no released version of 2.0 writes"))
}
