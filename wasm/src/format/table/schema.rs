//! Lance fields: the schema of a table, with an id for every node of its type tree.

use std::collections::BTreeMap;

use arrow_schema::DataType;

/// The id of a field: kept through renames, never given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldId(pub i32);

/// A node of the type tree. Fixed-size lists of primitives are leaves: their item has no node.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub id: FieldId,
    pub name: String,
    /// The whole type, children included.
    pub data_type: DataType,
    pub nullable: bool,
    pub metadata: BTreeMap<String, String>,
    /// Struct members; the item of a list; the entries of a map.
    pub children: Vec<Field>,
    /// 1-based position in the unenforced primary key; 0 = not part of it.
    pub primary_key_position: u32,
}

/// The fields of a table, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schema {
    pub fields: Vec<Field>,
    pub metadata: BTreeMap<String, String>,
}
