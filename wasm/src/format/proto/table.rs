//! Package lance.table: manifests and index sections.

use prost::Message;

use super::{Any, BytesEntry, Field, Opaque, StringEntry};

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
    #[prost(message, repeated, tag = "5")]
    pub schema_metadata: Vec<BytesEntry>,
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
    #[prost(message, repeated, tag = "16")]
    pub config: Vec<StringEntry>,
    #[prost(message, repeated, tag = "18")]
    pub base_paths: Vec<BasePath>,
    #[prost(message, repeated, tag = "19")]
    pub table_metadata: Vec<StringEntry>,
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
