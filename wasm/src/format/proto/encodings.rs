//! Package lance.encodings21: page layouts and compressive encodings of 2.1 and later.

use prost::{Enumeration, Message, Oneof};

use super::Opaque;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum RepDefLayer {
    Unspecified = 0,
    AllValidItem = 1,
    AllValidList = 2,
    NullableItem = 3,
    NullableList = 4,
    EmptyableList = 5,
    NullAndEmptyList = 6,
}

#[derive(Clone, PartialEq, Message)]
pub struct PageLayout {
    #[prost(oneof = "page_layout::Layout", tags = "1, 2, 3, 4, 5")]
    pub layout: Option<page_layout::Layout>,
}

pub mod page_layout {
    use super::{BlobLayout, ConstantLayout, FullZipLayout, MiniBlockLayout, Oneof, Opaque};

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Layout {
        #[prost(message, tag = "1")]
        MiniBlock(MiniBlockLayout),
        #[prost(message, tag = "2")]
        Constant(ConstantLayout),
        #[prost(message, tag = "3")]
        FullZip(FullZipLayout),
        #[prost(message, tag = "4")]
        Blob(BlobLayout),
        /// 2.3 only.
        #[prost(message, tag = "5")]
        Sparse(Opaque),
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct MiniBlockLayout {
    #[prost(message, optional, tag = "1")]
    pub rep_compression: Option<CompressiveEncoding>,
    #[prost(message, optional, tag = "2")]
    pub def_compression: Option<CompressiveEncoding>,
    #[prost(message, optional, tag = "3")]
    pub value_compression: Option<CompressiveEncoding>,
    #[prost(message, optional, tag = "4")]
    pub dictionary: Option<CompressiveEncoding>,
    #[prost(uint64, tag = "5")]
    pub num_dictionary_items: u64,
    /// Innermost first.
    #[prost(enumeration = "RepDefLayer", repeated, tag = "6")]
    pub layers: Vec<i32>,
    /// Value buffers per chunk.
    #[prost(uint64, tag = "7")]
    pub num_buffers: u64,
    #[prost(uint32, tag = "8")]
    pub repetition_index_depth: u32,
    /// Visible items.
    #[prost(uint64, tag = "9")]
    pub num_items: u64,
    #[prost(bool, tag = "10")]
    pub has_large_chunk: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct ConstantLayout {
    #[prost(enumeration = "RepDefLayer", repeated, tag = "5")]
    pub layers: Vec<i32>,
    #[prost(bytes = "bytes", optional, tag = "6")]
    pub inline_value: Option<bytes::Bytes>,
    #[prost(message, optional, tag = "7")]
    pub rep_compression: Option<CompressiveEncoding>,
    #[prost(message, optional, tag = "8")]
    pub def_compression: Option<CompressiveEncoding>,
    #[prost(uint64, tag = "9")]
    pub num_rep_values: u64,
    #[prost(uint64, tag = "10")]
    pub num_def_values: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct FullZipLayout {
    #[prost(uint32, tag = "1")]
    pub bits_rep: u32,
    #[prost(uint32, tag = "2")]
    pub bits_def: u32,
    #[prost(oneof = "full_zip_layout::Width", tags = "3, 4")]
    pub width: Option<full_zip_layout::Width>,
    /// Control words.
    #[prost(uint32, tag = "5")]
    pub num_items: u32,
    #[prost(uint32, tag = "6")]
    pub num_visible_items: u32,
    #[prost(message, optional, tag = "7")]
    pub value_compression: Option<CompressiveEncoding>,
    #[prost(enumeration = "RepDefLayer", repeated, tag = "8")]
    pub layers: Vec<i32>,
}

pub mod full_zip_layout {
    use super::Oneof;

    #[derive(Clone, Copy, PartialEq, Oneof)]
    pub enum Width {
        #[prost(uint32, tag = "3")]
        BitsPerValue(u32),
        #[prost(uint32, tag = "4")]
        BitsPerOffset(u32),
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct BlobLayout {
    #[prost(message, optional, boxed, tag = "1")]
    pub inner_layout: Option<Box<PageLayout>>,
    #[prost(enumeration = "RepDefLayer", repeated, tag = "2")]
    pub layers: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CompressiveEncoding {
    #[prost(oneof = "compressive_encoding::Compression", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15")]
    pub compression: Option<compressive_encoding::Compression>,
}

pub mod compressive_encoding {
    use super::Oneof;
    use super::{
        ByteStreamSplit, Constant, DictionaryEncoding, FixedSizeList, Flat, Fsst, General, InlineBitpacking, Opaque,
        OutOfLineBitpacking, PackedStruct, Rle, Variable, VariablePackedStruct,
    };

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Compression {
        #[prost(message, tag = "1")]
        Flat(Flat),
        #[prost(message, tag = "2")]
        Variable(Box<Variable>),
        #[prost(message, tag = "3")]
        Constant(Constant),
        #[prost(message, tag = "4")]
        OutOfLineBitpacking(Box<OutOfLineBitpacking>),
        #[prost(message, tag = "5")]
        InlineBitpacking(InlineBitpacking),
        #[prost(message, tag = "6")]
        Fsst(Box<Fsst>),
        #[prost(message, tag = "7")]
        Dictionary(Box<DictionaryEncoding>),
        #[prost(message, tag = "8")]
        Rle(Box<Rle>),
        #[prost(message, tag = "9")]
        ByteStreamSplit(Box<ByteStreamSplit>),
        #[prost(message, tag = "10")]
        General(Box<General>),
        #[prost(message, tag = "11")]
        FixedSizeList(Box<FixedSizeList>),
        #[prost(message, tag = "12")]
        PackedStruct(Box<PackedStruct>),
        #[prost(message, tag = "13")]
        VariablePackedStruct(VariablePackedStruct),
        /// 2.3 only.
        #[prost(message, tag = "14")]
        Range(Opaque),
        /// 2.3 only.
        #[prost(message, tag = "15")]
        Delta(Opaque),
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct BufferCompression {
    #[prost(enumeration = "CompressionScheme", tag = "1")]
    pub scheme: i32,
    #[prost(int32, optional, tag = "2")]
    pub level: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum CompressionScheme {
    Unspecified = 0,
    Lz4 = 1,
    Zstd = 2,
}

#[derive(Clone, PartialEq, Message)]
pub struct Flat {
    #[prost(uint64, tag = "1")]
    pub bits_per_value: u64,
    #[prost(message, optional, tag = "2")]
    pub data: Option<BufferCompression>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Variable {
    #[prost(message, optional, boxed, tag = "1")]
    pub offsets: Option<Box<CompressiveEncoding>>,
    #[prost(message, optional, tag = "2")]
    pub values: Option<BufferCompression>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Constant {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub value: Option<bytes::Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OutOfLineBitpacking {
    #[prost(uint64, tag = "1")]
    pub uncompressed_bits_per_value: u64,
    #[prost(message, optional, boxed, tag = "3")]
    pub values: Option<Box<CompressiveEncoding>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InlineBitpacking {
    #[prost(uint64, tag = "1")]
    pub uncompressed_bits_per_value: u64,
    #[prost(message, optional, tag = "2")]
    pub values: Option<BufferCompression>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Fsst {
    #[prost(bytes = "bytes", tag = "1")]
    pub symbol_table: bytes::Bytes,
    #[prost(message, optional, boxed, tag = "2")]
    pub values: Option<Box<CompressiveEncoding>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DictionaryEncoding {
    #[prost(message, optional, boxed, tag = "1")]
    pub indices: Option<Box<CompressiveEncoding>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub items: Option<Box<CompressiveEncoding>>,
    #[prost(uint32, tag = "3")]
    pub num_dictionary_items: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Rle {
    #[prost(message, optional, boxed, tag = "1")]
    pub values: Option<Box<CompressiveEncoding>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub run_lengths: Option<Box<CompressiveEncoding>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ByteStreamSplit {
    #[prost(message, optional, boxed, tag = "1")]
    pub values: Option<Box<CompressiveEncoding>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct General {
    #[prost(message, optional, tag = "1")]
    pub compression: Option<BufferCompression>,
    #[prost(message, optional, boxed, tag = "3")]
    pub values: Option<Box<CompressiveEncoding>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FixedSizeList {
    #[prost(uint64, tag = "1")]
    pub items_per_value: u64,
    #[prost(message, optional, boxed, tag = "2")]
    pub values: Option<Box<CompressiveEncoding>>,
    #[prost(bool, tag = "3")]
    pub has_validity: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct PackedStruct {
    #[prost(uint64, repeated, tag = "1")]
    pub bits_per_value: Vec<u64>,
    #[prost(message, optional, boxed, tag = "2")]
    pub values: Option<Box<CompressiveEncoding>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct VariablePackedStruct {
    #[prost(message, repeated, tag = "1")]
    pub fields: Vec<FieldEncoding>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FieldEncoding {
    #[prost(message, optional, tag = "1")]
    pub value: Option<CompressiveEncoding>,
    #[prost(oneof = "field_encoding::Width", tags = "2, 3")]
    pub width: Option<field_encoding::Width>,
}

pub mod field_encoding {
    use super::Oneof;

    #[derive(Clone, Copy, PartialEq, Oneof)]
    pub enum Width {
        #[prost(uint64, tag = "2")]
        BitsPerValue(u64),
        #[prost(uint64, tag = "3")]
        BitsPerLength(u64),
    }
}
