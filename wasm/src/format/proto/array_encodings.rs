//! Package lance.encodings: the encoding trees that describe the pages of 2.0.
//!
//! Not re-exported beside the package of 2.1: messages of both have the same names.

use prost::{Message, Oneof};

use super::Opaque;

#[derive(Clone, PartialEq, Message)]
pub struct ArrayEncoding {
    #[prost(
        oneof = "array_encoding::Kind",
        tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21"
    )]
    pub kind: Option<array_encoding::Kind>,
}

pub mod array_encoding {
    use super::{
        Binary, Bitpacked, BitpackedForNonNeg, Dictionary, FixedSizeBinary, FixedSizeList, Flat, Fsst, List, Nullable,
        Oneof, Opaque, PackedStruct,
    };

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Kind {
        #[prost(message, tag = "1")]
        Flat(Flat),
        #[prost(message, tag = "2")]
        Nullable(Box<Nullable>),
        #[prost(message, tag = "3")]
        FixedSizeList(Box<FixedSizeList>),
        #[prost(message, tag = "4")]
        List(Box<List>),
        #[prost(message, tag = "5")]
        Struct(Opaque),
        #[prost(message, tag = "6")]
        Binary(Box<Binary>),
        #[prost(message, tag = "7")]
        Dictionary(Box<Dictionary>),
        #[prost(message, tag = "8")]
        Fsst(Box<Fsst>),
        #[prost(message, tag = "9")]
        PackedStruct(PackedStruct),
        #[prost(message, tag = "10")]
        Bitpacked(Bitpacked),
        #[prost(message, tag = "11")]
        FixedSizeBinary(Box<FixedSizeBinary>),
        #[prost(message, tag = "12")]
        BitpackedForNonNeg(BitpackedForNonNeg),
        // The rest belongs to versions of 2.1 that were never released.
        #[prost(message, tag = "13")]
        Constant(Opaque),
        #[prost(message, tag = "14")]
        InlineBitpacking(Opaque),
        #[prost(message, tag = "15")]
        OutOfLineBitpacking(Opaque),
        #[prost(message, tag = "16")]
        Variable(Opaque),
        #[prost(message, tag = "17")]
        PackedStructFixedWidthMiniBlock(Opaque),
        #[prost(message, tag = "18")]
        Block(Opaque),
        #[prost(message, tag = "19")]
        Rle(Opaque),
        #[prost(message, tag = "20")]
        GeneralMiniBlock(Opaque),
        #[prost(message, tag = "21")]
        ByteStreamSplit(Opaque),
    }
}

/// A buffer of the page, of the column or of the file.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Buffer {
    #[prost(uint32, tag = "1")]
    pub buffer_index: u32,
    /// 0 page, 1 column, 2 file.
    #[prost(int32, tag = "2")]
    pub buffer_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Compression {
    /// "none", "lz4" or "zstd".
    #[prost(string, tag = "1")]
    pub scheme: String,
    #[prost(int32, optional, tag = "2")]
    pub level: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Flat {
    #[prost(uint64, tag = "1")]
    pub bits_per_value: u64,
    #[prost(message, optional, tag = "2")]
    pub buffer: Option<Buffer>,
    #[prost(message, optional, tag = "3")]
    pub compression: Option<Compression>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Nullable {
    #[prost(oneof = "nullable::Nulls", tags = "1, 2, 3")]
    pub nulls: Option<nullable::Nulls>,
}

pub mod nullable {
    use super::{NoNulls, Oneof, Opaque, SomeNulls};

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Nulls {
        #[prost(message, tag = "1")]
        No(Box<NoNulls>),
        #[prost(message, tag = "2")]
        Some(Box<SomeNulls>),
        #[prost(message, tag = "3")]
        All(Opaque),
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct NoNulls {
    #[prost(message, optional, boxed, tag = "1")]
    pub values: Option<Box<ArrayEncoding>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SomeNulls {
    #[prost(message, optional, boxed, tag = "1")]
    pub validity: Option<Box<ArrayEncoding>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub values: Option<Box<ArrayEncoding>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FixedSizeList {
    #[prost(uint32, tag = "1")]
    pub dimension: u32,
    #[prost(message, optional, boxed, tag = "2")]
    pub items: Option<Box<ArrayEncoding>>,
    #[prost(bool, tag = "3")]
    pub has_validity: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct List {
    #[prost(message, optional, boxed, tag = "1")]
    pub offsets: Option<Box<ArrayEncoding>>,
    #[prost(uint64, tag = "2")]
    pub null_offset_adjustment: u64,
    #[prost(uint64, tag = "3")]
    pub num_items: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Binary {
    #[prost(message, optional, boxed, tag = "1")]
    pub indices: Option<Box<ArrayEncoding>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub bytes: Option<Box<ArrayEncoding>>,
    #[prost(uint64, tag = "3")]
    pub null_adjustment: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Dictionary {
    #[prost(message, optional, boxed, tag = "1")]
    pub indices: Option<Box<ArrayEncoding>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub items: Option<Box<ArrayEncoding>>,
    #[prost(uint32, tag = "3")]
    pub num_dictionary_items: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Fsst {
    #[prost(message, optional, boxed, tag = "1")]
    pub binary: Option<Box<ArrayEncoding>>,
    #[prost(bytes = "bytes", tag = "2")]
    pub symbol_table: bytes::Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub struct PackedStruct {
    #[prost(message, repeated, tag = "1")]
    pub inner: Vec<ArrayEncoding>,
    #[prost(message, optional, tag = "2")]
    pub buffer: Option<Buffer>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Bitpacked {
    #[prost(uint64, tag = "1")]
    pub compressed_bits_per_value: u64,
    #[prost(uint64, tag = "2")]
    pub uncompressed_bits_per_value: u64,
    #[prost(message, optional, tag = "3")]
    pub buffer: Option<Buffer>,
    #[prost(bool, tag = "4")]
    pub signed: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct FixedSizeBinary {
    #[prost(message, optional, boxed, tag = "1")]
    pub bytes: Option<Box<ArrayEncoding>>,
    #[prost(uint32, tag = "2")]
    pub byte_width: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct BitpackedForNonNeg {
    #[prost(uint64, tag = "1")]
    pub compressed_bits_per_value: u64,
    #[prost(uint64, tag = "2")]
    pub uncompressed_bits_per_value: u64,
    #[prost(message, optional, tag = "3")]
    pub buffer: Option<Buffer>,
}
