//! Package lance.table: transactions and their operations.

use prost::{Message, Oneof};

use super::{
    Any, BasePath, BytesEntry, DataFile, DataFragment, Field, IndexFile, IndexMetadata, Opaque, StringEntry, Uuid,
};

#[derive(Clone, PartialEq, Message)]
pub struct Transaction {
    #[prost(uint64, tag = "1")]
    pub read_version: u64,
    #[prost(string, tag = "2")]
    pub uuid: String,
    #[prost(string, tag = "3")]
    pub tag: String,
    #[prost(message, repeated, tag = "4")]
    pub transaction_properties: Vec<StringEntry>,
    #[prost(
        oneof = "transaction::Operation",
        tags = "100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114"
    )]
    pub operation: Option<transaction::Operation>,
}

pub mod transaction {
    use super::{
        BasePath, BytesEntry, DataFile, DataFragment, Field, IndexFile, IndexMetadata, Message, Oneof, Opaque,
        StringEntry, Uuid,
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
        #[prost(message, repeated, tag = "3")]
        pub schema_metadata: Vec<BytesEntry>,
        #[prost(message, repeated, tag = "4")]
        pub config_upsert_values: Vec<StringEntry>,
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
        #[prost(message, repeated, tag = "3")]
        pub schema_metadata: Vec<BytesEntry>,
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
        #[prost(message, repeated, tag = "9")]
        pub field_metadata_updates: Vec<FieldUpdate>,
    }

    /// An entry of a map from field ids.
    #[derive(Clone, PartialEq, Message)]
    pub struct FieldUpdate {
        #[prost(int32, tag = "1")]
        pub key: i32,
        #[prost(message, optional, tag = "2")]
        pub value: Option<UpdateMap>,
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
