//! Wire messages of manifests and data files, one file per protobuf package. Field numbers are the Lance format's; a number is never
//! reused.
//!
//! Only fields that exist on disk are here; fields that we do not know are dropped when a message is written again, as LanceDB does.

pub mod array_encodings;
mod encodings;
mod file;
mod mem_wal;
mod row_ids;
mod table;
mod transactions;

pub use encodings::*;
pub use file::*;
pub use mem_wal::*;
pub use row_ids::*;
pub use table::*;
pub use transactions::*;

use prost::Message;

use crate::collections::SortedMap;

/// An entry of a map of strings. On the wire a map is its entries, and each type of map costs as much as a B-tree does.
#[derive(Clone, PartialEq, Message)]
pub struct StringEntry {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

/// An entry of a map from strings to bytes.
#[derive(Clone, PartialEq, Message)]
pub struct BytesEntry {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// Of a key that stands twice the later value holds.
pub fn from_entries(entries: Vec<StringEntry>) -> SortedMap<String, String> {
    entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
}

pub fn to_entries(map: &SortedMap<String, String>) -> Vec<StringEntry> {
    map.iter().map(|(key, value)| StringEntry { key: key.clone(), value: value.clone() }).collect()
}

/// A message whose content we never look at.
#[derive(Clone, PartialEq, Message)]
pub struct Opaque {}
