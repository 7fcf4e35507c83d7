//! Packages lance.file and lance.file.v2: the schema and the container of a data file.

use prost::Message;

use super::BytesEntry;

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
    #[prost(message, repeated, tag = "10")]
    pub metadata: Vec<BytesEntry>,
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
    #[prost(message, repeated, tag = "5")]
    pub metadata: Vec<BytesEntry>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FileDescriptor {
    #[prost(message, optional, tag = "1")]
    pub schema: Option<Schema>,
    #[prost(uint64, tag = "2")]
    pub length: u64,
}
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
