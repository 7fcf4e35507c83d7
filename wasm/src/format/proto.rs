//! Wire messages of manifests and data files. Field numbers are the Lance format's; a number is never reused.
//!
//! Only fields that exist on disk are here; fields that we do not know are dropped when a message is written again, as LanceDB does.

use std::collections::BTreeMap;

use prost::{Enumeration, Message, Oneof};

// ---- schema (package lance.file)

#[derive(Clone, PartialEq, Message)]
pub struct Field {
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int32, tag = "3")]
    pub id: i32,
    /// -1 for a top-level field.
    #[prost(int32, tag = "4")]
    pub parent_id: i32,
    #[prost(string, tag = "5")]
    pub logical_type: String,
    #[prost(bool, tag = "6")]
    pub nullable: bool,
    /// A hint of old readers: 0 struct and null, 1 fixed width, 2 strings and binary, 3 dictionary.
    #[prost(int32, tag = "7")]
    pub encoding: i32,
    #[prost(message, optional, tag = "8")]
    pub dictionary: Option<Dictionary>,
    #[prost(string, tag = "9")]
    pub extension_name: String,
    #[prost(btree_map = "string, bytes", tag = "10")]
    pub metadata: BTreeMap<String, Vec<u8>>,
    #[prost(bool, tag = "12")]
    pub unenforced_primary_key: bool,
    #[prost(uint32, tag = "13")]
    pub unenforced_primary_key_position: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Dictionary {
    #[prost(int64, tag = "1")]
    pub offset: i64,
    #[prost(int64, tag = "2")]
    pub length: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Schema {
    #[prost(message, repeated, tag = "1")]
    pub fields: Vec<Field>,
    #[prost(btree_map = "string, bytes", tag = "5")]
    pub metadata: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FileDescriptor {
    #[prost(message, optional, tag = "1")]
    pub schema: Option<Schema>,
    #[prost(uint64, tag = "2")]
    pub length: u64,
}

// ---- data file container (package lance.file.v2)

#[derive(Clone, PartialEq, Message)]
pub struct ColumnMetadata {
    #[prost(message, optional, tag = "1")]
    pub encoding: Option<Encoding>,
    #[prost(message, repeated, tag = "2")]
    pub pages: Vec<Page>,
    #[prost(uint64, repeated, tag = "3")]
    pub buffer_offsets: Vec<u64>,
    #[prost(uint64, repeated, tag = "4")]
    pub buffer_sizes: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Page {
    #[prost(uint64, repeated, tag = "1")]
    pub buffer_offsets: Vec<u64>,
    #[prost(uint64, repeated, tag = "2")]
    pub buffer_sizes: Vec<u64>,
    /// Rows of the page.
    #[prost(uint64, tag = "3")]
    pub length: u64,
    #[prost(message, optional, tag = "4")]
    pub encoding: Option<Encoding>,
    /// Row number of the first row; a scheduling hint, not an order.
    #[prost(uint64, tag = "5")]
    pub priority: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Encoding {
    #[prost(message, optional, tag = "2")]
    pub direct: Option<DirectEncoding>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DirectEncoding {
    /// An encoded [`Any`].
    #[prost(bytes = "bytes", tag = "1")]
    pub encoding: bytes::Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: bytes::Bytes,
}

/// Type of a page description of 2.1 and later.
pub const PAGE_LAYOUT_URL: &str = "/lance.encodings21.PageLayout";
/// Type of a page description of 2.0.
pub const ARRAY_ENCODING_URL: &str = "/lance.encodings.ArrayEncoding";
/// Type of every column description.
pub const COLUMN_ENCODING_URL: &str = "/lance.encodings.ColumnEncoding";

// ---- page layouts (package lance.encodings21)

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

/// A message whose content we never look at.
#[derive(Clone, PartialEq, Message)]
pub struct Opaque {}

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

// ---- tables (package lance.table)

#[derive(Clone, PartialEq, Message)]
pub struct Manifest {
    #[prost(message, repeated, tag = "1")]
    pub fields: Vec<Field>,
    #[prost(message, repeated, tag = "2")]
    pub fragments: Vec<DataFragment>,
    #[prost(uint64, tag = "3")]
    pub version: u64,
    #[prost(uint64, tag = "4")]
    pub version_aux_data: u64,
    #[prost(btree_map = "string, bytes", tag = "5")]
    pub schema_metadata: BTreeMap<String, Vec<u8>>,
    /// Offset of the index section; 0 is an offset, absence means none.
    #[prost(uint64, optional, tag = "6")]
    pub index_section: Option<u64>,
    #[prost(message, optional, tag = "7")]
    pub timestamp: Option<Timestamp>,
    #[prost(string, tag = "8")]
    pub tag: String,
    #[prost(uint64, tag = "9")]
    pub reader_feature_flags: u64,
    #[prost(uint64, tag = "10")]
    pub writer_feature_flags: u64,
    #[prost(uint32, optional, tag = "11")]
    pub max_fragment_id: Option<u32>,
    #[prost(string, tag = "12")]
    pub transaction_file: String,
    #[prost(message, optional, tag = "13")]
    pub writer_version: Option<WriterVersion>,
    #[prost(uint64, tag = "14")]
    pub next_row_id: u64,
    #[prost(message, optional, tag = "15")]
    pub data_format: Option<DataStorageFormat>,
    #[prost(btree_map = "string, string", tag = "16")]
    pub config: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "18")]
    pub base_paths: Vec<BasePath>,
    #[prost(btree_map = "string, string", tag = "19")]
    pub table_metadata: BTreeMap<String, String>,
    #[prost(string, optional, tag = "20")]
    pub branch: Option<String>,
    /// Offset of the inline transaction; 0 is an offset, absence means none.
    #[prost(uint64, optional, tag = "21")]
    pub transaction_section: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct WriterVersion {
    #[prost(string, tag = "1")]
    pub library: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(string, optional, tag = "3")]
    pub prerelease: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub build: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DataStorageFormat {
    #[prost(string, tag = "1")]
    pub file_format: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct BasePath {
    #[prost(uint32, tag = "1")]
    pub id: u32,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(bool, tag = "3")]
    pub is_dataset_root: bool,
    #[prost(string, tag = "4")]
    pub path: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct DataFragment {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(message, repeated, tag = "2")]
    pub files: Vec<DataFile>,
    #[prost(message, optional, tag = "3")]
    pub deletion_file: Option<DeletionFile>,
    /// Rows of the data files, deleted ones included.
    #[prost(uint64, tag = "4")]
    pub physical_rows: u64,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub inline_row_ids: Option<Vec<u8>>,
    #[prost(message, optional, tag = "6")]
    pub external_row_ids: Option<ExternalFile>,
    #[prost(bytes = "vec", optional, tag = "7")]
    pub inline_last_updated_at_versions: Option<Vec<u8>>,
    #[prost(message, optional, tag = "8")]
    pub external_last_updated_at_versions: Option<ExternalFile>,
    #[prost(bytes = "vec", optional, tag = "9")]
    pub inline_created_at_versions: Option<Vec<u8>>,
    #[prost(message, optional, tag = "10")]
    pub external_created_at_versions: Option<ExternalFile>,
    /// Unstable, refused.
    #[prost(message, repeated, tag = "11")]
    pub overlays: Vec<Opaque>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DataFile {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(int32, repeated, tag = "2")]
    pub fields: Vec<i32>,
    #[prost(int32, repeated, tag = "3")]
    pub column_indices: Vec<i32>,
    #[prost(uint32, tag = "4")]
    pub file_major_version: u32,
    #[prost(uint32, tag = "5")]
    pub file_minor_version: u32,
    /// 0 = unknown.
    #[prost(uint64, tag = "6")]
    pub file_size_bytes: u64,
    #[prost(uint32, optional, tag = "7")]
    pub base_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DeletionFile {
    /// 0 Arrow IPC, 1 roaring bitmap.
    #[prost(int32, tag = "1")]
    pub file_type: i32,
    #[prost(uint64, tag = "2")]
    pub read_version: u64,
    #[prost(uint64, tag = "3")]
    pub id: u64,
    #[prost(uint64, tag = "4")]
    pub num_deleted_rows: u64,
    #[prost(uint32, optional, tag = "7")]
    pub base_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ExternalFile {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    #[prost(uint64, tag = "3")]
    pub size: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct IndexSection {
    #[prost(message, repeated, tag = "1")]
    pub indices: Vec<IndexMetadata>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Uuid {
    #[prost(bytes = "vec", tag = "1")]
    pub bytes: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct IndexMetadata {
    #[prost(message, optional, tag = "1")]
    pub uuid: Option<Uuid>,
    #[prost(int32, repeated, tag = "2")]
    pub fields: Vec<i32>,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(uint64, tag = "4")]
    pub dataset_version: u64,
    #[prost(bytes = "vec", tag = "5")]
    pub fragment_bitmap: Vec<u8>,
    #[prost(message, optional, tag = "6")]
    pub index_details: Option<Any>,
    #[prost(int32, optional, tag = "7")]
    pub index_version: Option<i32>,
    #[prost(uint64, optional, tag = "8")]
    pub created_at: Option<u64>,
    #[prost(uint32, optional, tag = "9")]
    pub base_id: Option<u32>,
    #[prost(message, repeated, tag = "10")]
    pub files: Vec<IndexFile>,
    #[prost(int32, repeated, tag = "11")]
    pub covering_fields: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct IndexFile {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(uint64, tag = "2")]
    pub size_bytes: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Transaction {
    #[prost(uint64, tag = "1")]
    pub read_version: u64,
    #[prost(string, tag = "2")]
    pub uuid: String,
    #[prost(string, tag = "3")]
    pub tag: String,
    #[prost(btree_map = "string, string", tag = "4")]
    pub transaction_properties: BTreeMap<String, String>,
    #[prost(
        oneof = "transaction::Operation",
        tags = "100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114"
    )]
    pub operation: Option<transaction::Operation>,
}

pub mod transaction {
    use super::{
        BTreeMap, BasePath, DataFile, DataFragment, Field, IndexFile, IndexMetadata, Message, Oneof, Opaque, Uuid,
    };

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Operation {
        #[prost(message, tag = "100")]
        Append(Append),
        #[prost(message, tag = "101")]
        Delete(Delete),
        #[prost(message, tag = "102")]
        Overwrite(Overwrite),
        #[prost(message, tag = "103")]
        CreateIndex(CreateIndex),
        #[prost(message, tag = "104")]
        Rewrite(Rewrite),
        #[prost(message, tag = "105")]
        Merge(Merge),
        #[prost(message, tag = "106")]
        Restore(Restore),
        #[prost(message, tag = "107")]
        ReserveFragments(ReserveFragments),
        #[prost(message, tag = "108")]
        Update(Update),
        #[prost(message, tag = "109")]
        Project(Project),
        #[prost(message, tag = "110")]
        UpdateConfig(UpdateConfig),
        #[prost(message, tag = "111")]
        DataReplacement(DataReplacement),
        #[prost(message, tag = "112")]
        UpdateMemWalState(Opaque),
        #[prost(message, tag = "113")]
        Clone(Opaque),
        #[prost(message, tag = "114")]
        UpdateBases(UpdateBases),
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Append {
        #[prost(message, repeated, tag = "1")]
        pub fragments: Vec<DataFragment>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Delete {
        #[prost(message, repeated, tag = "1")]
        pub updated_fragments: Vec<DataFragment>,
        #[prost(uint64, repeated, tag = "2")]
        pub deleted_fragment_ids: Vec<u64>,
        #[prost(string, tag = "3")]
        pub predicate: String,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Overwrite {
        #[prost(message, repeated, tag = "1")]
        pub fragments: Vec<DataFragment>,
        #[prost(message, repeated, tag = "2")]
        pub schema: Vec<Field>,
        #[prost(btree_map = "string, bytes", tag = "3")]
        pub schema_metadata: BTreeMap<String, Vec<u8>>,
        #[prost(btree_map = "string, string", tag = "4")]
        pub config_upsert_values: BTreeMap<String, String>,
        #[prost(message, repeated, tag = "5")]
        pub initial_bases: Vec<BasePath>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct CreateIndex {
        #[prost(message, repeated, tag = "1")]
        pub new_indices: Vec<IndexMetadata>,
        #[prost(message, repeated, tag = "2")]
        pub removed_indices: Vec<IndexMetadata>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Rewrite {
        #[prost(message, repeated, tag = "3")]
        pub groups: Vec<RewriteGroup>,
        #[prost(message, repeated, tag = "4")]
        pub rewritten_indices: Vec<RewrittenIndex>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct RewriteGroup {
        #[prost(message, repeated, tag = "1")]
        pub old_fragments: Vec<DataFragment>,
        #[prost(message, repeated, tag = "2")]
        pub new_fragments: Vec<DataFragment>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct RewrittenIndex {
        #[prost(message, optional, tag = "1")]
        pub old_id: Option<Uuid>,
        #[prost(message, optional, tag = "2")]
        pub new_id: Option<Uuid>,
        #[prost(message, optional, tag = "3")]
        pub new_index_details: Option<super::Any>,
        #[prost(uint32, tag = "4")]
        pub new_index_version: u32,
        #[prost(message, repeated, tag = "5")]
        pub new_index_files: Vec<IndexFile>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Merge {
        #[prost(message, repeated, tag = "1")]
        pub fragments: Vec<DataFragment>,
        #[prost(message, repeated, tag = "2")]
        pub schema: Vec<Field>,
        #[prost(btree_map = "string, bytes", tag = "3")]
        pub schema_metadata: BTreeMap<String, Vec<u8>>,
        #[prost(bool, tag = "4")]
        pub preserves_nullability: bool,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Restore {
        #[prost(uint64, tag = "1")]
        pub version: u64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct ReserveFragments {
        #[prost(uint32, tag = "1")]
        pub num_fragments: u32,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Update {
        #[prost(uint64, repeated, tag = "1")]
        pub removed_fragment_ids: Vec<u64>,
        #[prost(message, repeated, tag = "2")]
        pub updated_fragments: Vec<DataFragment>,
        #[prost(message, repeated, tag = "3")]
        pub new_fragments: Vec<DataFragment>,
        #[prost(uint32, repeated, tag = "4")]
        pub fields_modified: Vec<u32>,
        #[prost(uint32, repeated, tag = "6")]
        pub fields_for_preserving_frag_bitmap: Vec<u32>,
        #[prost(int32, tag = "7")]
        pub update_mode: i32,
        #[prost(message, optional, tag = "8")]
        pub inserted_rows: Option<Opaque>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Project {
        #[prost(message, repeated, tag = "1")]
        pub schema: Vec<Field>,
        #[prost(bool, tag = "2")]
        pub preserves_nullability: bool,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct UpdateConfig {
        #[prost(message, optional, tag = "6")]
        pub config_updates: Option<UpdateMap>,
        #[prost(message, optional, tag = "7")]
        pub table_metadata_updates: Option<UpdateMap>,
        #[prost(message, optional, tag = "8")]
        pub schema_metadata_updates: Option<UpdateMap>,
        #[prost(btree_map = "int32, message", tag = "9")]
        pub field_metadata_updates: BTreeMap<i32, UpdateMap>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct UpdateMap {
        #[prost(message, repeated, tag = "1")]
        pub entries: Vec<UpdateMapEntry>,
        #[prost(bool, tag = "2")]
        pub replace: bool,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct UpdateMapEntry {
        #[prost(string, tag = "1")]
        pub key: String,
        #[prost(string, optional, tag = "2")]
        pub value: Option<String>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct DataReplacement {
        #[prost(message, repeated, tag = "1")]
        pub replacements: Vec<DataReplacementGroup>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct DataReplacementGroup {
        #[prost(uint64, tag = "1")]
        pub fragment_id: u64,
        #[prost(message, optional, tag = "2")]
        pub new_file: Option<DataFile>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct UpdateBases {
        #[prost(message, repeated, tag = "1")]
        pub new_bases: Vec<BasePath>,
    }
}
