//! Lance fields: the schema of a table, with an id for every node of its type tree.
//!
//! On disk the tree is one list in pre-order; a field names its parent by id, -1 stands for none.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema};

use crate::collections::{SortedMap, SortedSet};
use crate::error::{Error, Result};
use crate::format::proto;
use crate::format::table::closest::closest;
use crate::format::table::logical_type::{
    self, BLOB_V2_EXTENSION, EXTENSION_NAME, JSON_EXTENSION, LogicalType, encoding_hint,
};

/// Columns that the engine makes up; no table may have one of its own.
pub const RESERVED_NAMES: [&str; 6] = ["_rowid", "_rowaddr", "_rowoffset", "_distance", "_score", "_tombstone"];

/// Levels of a type tree: every walk over it recurses, and the stack of a worker is small.
pub const MAX_DEPTH: usize = 64;

/// Metadata of a field whose values lie outside of its column, and of what describes them.
const BLOB_KEY: &str = "lance-encoding:blob";
/// What is read of such a value.
const BLOB_DESCRIPTION: [(&str, DataType); 2] = [("position", DataType::UInt64), ("size", DataType::UInt64)];
/// The same of a value that may lie outside of the data file.
const BLOB_V2_DESCRIPTION: [(&str, DataType); 5] = [
    ("kind", DataType::UInt8),
    ("position", DataType::UInt64),
    ("size", DataType::UInt64),
    ("blob_id", DataType::UInt32),
    ("blob_uri", DataType::Utf8),
];

/// Parent of a top-level field.
const NO_PARENT: i32 = -1;

/// Metadata of a field that is part of the table's key, which nobody enforces: its 1-based position, or only that it is.
pub const PRIMARY_KEY_POSITION: &str = "lance-schema:unenforced-primary-key:position";
const PRIMARY_KEY: &str = "lance-schema:unenforced-primary-key";

/// The id of a field: kept through renames, never given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldId(pub i32);

impl FieldId {
    /// Marks a column of a data file whose values lie elsewhere, or belong to no column any more.
    pub const TOMBSTONE: FieldId = FieldId(-2);
}

/// A node of the type tree. Fixed-size lists of primitives are leaves: their item has no node.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub id: FieldId,
    pub name: String,
    /// The whole type, children included.
    pub data_type: DataType,
    pub nullable: bool,
    pub metadata: SortedMap<String, String>,
    /// Struct members; the item of a list; the entries of a map.
    pub children: Vec<Field>,
    /// 1-based position in the unenforced primary key; 0 = not part of it.
    pub primary_key_position: u32,
}

/// The fields of a table, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schema {
    pub fields: Vec<Field>,
    pub metadata: SortedMap<String, String>,
}

impl Schema {
    /// The schema of a new table: ids are given depth first, from 0. Types that have a stored form of their own (views, items of
    /// fixed-size lists) take it, so [`Schema::to_arrow`] may differ from the argument.
    ///
    /// `Schema` for names that a table cannot have, `NotSupported` for types that Lance does not store; both name the column.
    pub fn from_arrow(schema: &ArrowSchema) -> Result<Schema> {
        if let Some(field) = schema.fields().iter().find(|field| RESERVED_NAMES.contains(&field.name().as_str())) {
            return Err(Error::schema(format!("column name \"{}\" is reserved", field.name())));
        }
        Schema::from_arrow_with_reserved_names(schema)
    }

    /// As [`Schema::from_arrow`], for files of our own that hold system columns.
    pub fn from_arrow_with_reserved_names(schema: &ArrowSchema) -> Result<Schema> {
        if schema.fields().is_empty() {
            return Err(Error::schema("a table needs at least one column"));
        }
        check_names(schema.fields(), None)?;
        if let Some(field) = schema.fields().iter().find(|field| field.name().contains('.')) {
            return Err(Error::schema(format!("column name \"{}\" holds a \".\"", field.name())));
        }
        let mut next_id = 0;
        let fields = schema
            .fields()
            .iter()
            .map(|field| field_from_arrow(field, &mut next_id, field.name(), Above::default()))
            .collect::<Result<_>>()?;
        Ok(Schema { fields, metadata: sorted(schema.metadata()) })
    }

    /// The schema of the batches that the table gives and takes.
    pub fn to_arrow(&self) -> ArrowSchema {
        let fields: Fields = self.fields.iter().map(Field::to_arrow).collect();
        ArrowSchema::new_with_metadata(fields, to_arrow(&self.metadata))
    }

    /// The schema of what is read: see [`Field::as_read`].
    pub fn as_read(&self) -> Cow<'_, Schema> {
        match self.fields.iter().any(Field::has_blob) {
            false => Cow::Borrowed(self),
            true => Cow::Owned(Schema {
                fields: self.fields.iter().map(Field::as_read).collect(),
                metadata: self.metadata.clone(),
            }),
        }
    }

    /// The fields as they stand in a manifest or a data file.
    pub fn to_proto(&self) -> Vec<proto::Field> {
        let mut list = Vec::new();
        self.fields.iter().for_each(|field| field.push_proto(NO_PARENT, &mut list));
        list
    }

    /// The metadata as it stands in a manifest.
    pub fn metadata_to_proto(&self) -> Vec<proto::BytesEntry> {
        metadata_to_proto(&self.metadata)
    }

    /// Reads the fields and the metadata of a manifest. `NotSupported` for a type that this build does not know, `Corrupt` for a list
    /// that is no tree.
    pub fn from_proto(list: &[proto::Field], metadata: &[proto::BytesEntry]) -> Result<Schema> {
        // A parent stands before its children: this excludes cycles, and lets the tree be built from the back without recursion.
        let mut positions = HashMap::with_capacity(list.len());
        let mut depths: Vec<usize> = Vec::with_capacity(list.len());
        let mut children_of: Vec<Vec<Field>> = vec![Vec::new(); list.len()];
        let mut parents = Vec::with_capacity(list.len());
        for (i, field) in list.iter().enumerate() {
            let parent = match field.parent_id {
                NO_PARENT => None,
                id => Some(*positions.get(&id).ok_or_else(|| {
                    Error::corrupt(format!(
                        "field {} \"{}\": no field {id} before it to be its parent",
                        field.id, field.name
                    ))
                })?),
            };
            let depth = parent.map_or(1, |parent: usize| depths[parent] + 1);
            if depth > MAX_DEPTH {
                return Err(Error::corrupt(format!("field {}: nested deeper than {MAX_DEPTH}", field.id)));
            }
            if field.id < 0 {
                return Err(Error::corrupt(format!("field \"{}\" has the id {}", field.name, field.id)));
            }
            if positions.insert(field.id, i).is_some() {
                return Err(Error::corrupt(format!("two fields have the id {}", field.id)));
            }
            depths.push(depth);
            parents.push(parent);
        }
        let mut fields = Vec::new();
        for (i, field) in list.iter().enumerate().rev() {
            let mut children = std::mem::take(&mut children_of[i]);
            children.reverse();
            let built = field_from_proto(field, children)?;
            match parents[i] {
                Some(parent) => children_of[parent].push(built),
                None => fields.push(built),
            }
        }
        fields.reverse();
        let mut names = SortedSet::new();
        if let Some(field) = fields.iter().find(|field| !names.insert(field.name.as_str())) {
            return Err(Error::corrupt(format!("two columns are called \"{}\"", field.name)));
        }
        Ok(Schema { metadata: metadata_from_proto(metadata)?, fields })
    }

    /// The fields that are columns of a data file of format 2.1 or later, in the order of these columns.
    pub fn leaves(&self) -> Vec<&Field> {
        let mut leaves = Vec::new();
        self.fields.iter().for_each(|field| field.push_leaves(&mut leaves));
        leaves
    }

    /// The top-level field of this exact name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field that a dotted path names: `a.b` is the member `b` of the column `a`, or a column called so.
    pub fn field_path(&self, path: &str) -> Option<&Field> {
        find_path(&self.fields, path)
    }

    /// The top-level field of this exact name; `NotFound` proposes the nearest one.
    pub fn require(&self, name: &str) -> Result<&Field> {
        self.field(name).ok_or_else(|| {
            let near = closest(name, self.fields.iter().map(|field| field.name.as_str()));
            let hint = near.map_or(String::new(), |near| format!(" (did you mean \"{near}\"?)"));
            Error::NotFound { what: format!("column \"{name}\"{hint}") }
        })
    }

    /// Any field of the tree, by id.
    pub fn field_by_id(&self, id: FieldId) -> Option<&Field> {
        self.all_fields().into_iter().find(|field| field.id == id)
    }

    /// Every field of the tree, in pre-order.
    pub fn all_fields(&self) -> Vec<&Field> {
        let mut all = Vec::new();
        let mut stack: Vec<&Field> = self.fields.iter().rev().collect();
        while let Some(field) = stack.pop() {
            all.push(field);
            stack.extend(field.children.iter().rev());
        }
        all
    }

    /// The highest id in use; `None` for a schema without fields.
    pub fn max_id(&self) -> Option<FieldId> {
        self.all_fields().into_iter().map(|field| field.id).max()
    }
}

impl Field {
    /// The field as Arrow knows it, without ids.
    pub fn to_arrow(&self) -> ArrowField {
        ArrowField::new(&self.name, self.data_type.clone(), self.nullable).with_metadata(to_arrow(&self.metadata))
    }

    /// Whether all of the field lies in one column: a struct that is stored row by row.
    pub fn is_packed_struct(&self) -> bool {
        let set = |key| self.metadata.get(key).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        matches!(self.data_type, DataType::Struct(_)) && (set("packed") || set("lance-encoding:packed"))
    }

    /// Whether the field is a descriptor of values that may lie outside of the data file.
    pub fn is_blob_v2(&self) -> bool {
        self.metadata.get(EXTENSION_NAME).is_some_and(|name| name == BLOB_V2_EXTENSION)
    }

    /// Whether the field is a large value that lies elsewhere in its data file, as data files before 2.2 have them.
    pub fn is_legacy_blob(&self) -> bool {
        self.metadata.get(BLOB_KEY).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Whether all of the field lies in one column of a data file of format 2.1 or later.
    pub fn is_one_column(&self) -> bool {
        self.children.is_empty() || self.is_packed_struct() || self.is_blob_v2() || self.is_legacy_blob()
    }

    /// The field as it is read: of a blob, at any depth, the description of where its bytes lie.
    pub fn as_read(&self) -> Field {
        let mut field = self.clone();
        if self.is_blob_v2() {
            field.metadata.remove(EXTENSION_NAME);
            field.metadata.insert("lance-encoding:packed".to_owned(), "true".to_owned());
            field.metadata.insert(BLOB_KEY.to_owned(), "true".to_owned());
            field.describe(&BLOB_V2_DESCRIPTION, false);
        } else if self.is_legacy_blob() {
            field.describe(&BLOB_DESCRIPTION, true);
        } else {
            field.children = self.children.iter().map(Field::as_read).collect();
            field.data_type = of_children(&self.data_type, &field.children);
        }
        field
    }

    /// Takes the position in the primary key from the metadata, after they changed.
    pub fn read_primary_key(&mut self) {
        let position = self.metadata.get(PRIMARY_KEY_POSITION).and_then(|text| text.parse().ok());
        let is_set = self.metadata.get(PRIMARY_KEY).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        self.primary_key_position = position.unwrap_or(u32::from(is_set));
    }

    fn describe(&mut self, members: &[(&str, DataType)], nullable: bool) {
        let member = |(name, data_type): &(&str, DataType)| Field {
            id: FieldId(-1),
            name: (*name).to_owned(),
            data_type: data_type.clone(),
            nullable,
            metadata: SortedMap::new(),
            children: Vec::new(),
            primary_key_position: 0,
        };
        self.children = members.iter().map(member).collect();
        self.data_type = DataType::Struct(self.children.iter().map(Field::to_arrow).collect());
    }

    fn has_blob(&self) -> bool {
        self.is_blob_v2() || self.is_legacy_blob() || self.children.iter().any(Field::has_blob)
    }

    fn push_leaves<'a>(&'a self, leaves: &mut Vec<&'a Field>) {
        if self.is_one_column() {
            leaves.push(self);
        } else {
            self.children.iter().for_each(|child| child.push_leaves(leaves));
        }
    }

    fn push_proto(&self, parent_id: i32, list: &mut Vec<proto::Field>) {
        list.push(proto::Field {
            name: self.name.clone(),
            id: self.id.0,
            parent_id,
            logical_type: logical_type::encode(&self.data_type, &self.metadata),
            nullable: self.nullable,
            encoding: encoding_hint(&self.data_type),
            dictionary: matches!(self.data_type, DataType::Dictionary(_, _)).then(proto::Dictionary::default),
            metadata: metadata_to_proto(&self.metadata),
            unenforced_primary_key: self.primary_key_position > 0,
            unenforced_primary_key_position: self.primary_key_position,
            ..proto::Field::default()
        });
        self.children.iter().for_each(|child| child.push_proto(self.id.0, list));
    }
}

/// The stored form of a new field that lies in `around`, from the outermost inwards; its ids are -1.
///
/// # Errors
/// `Schema` for names of members and `NotSupported` for types that Lance does not store.
pub fn new_field(around: &[&Field], field: &ArrowField) -> Result<Field> {
    let above = Above {
        fields: around.len(),
        has_list: around
            .iter()
            .any(|field| matches!(field.data_type, DataType::List(_) | DataType::LargeList(_) | DataType::Map(_, _))),
        has_fixed_list: around.iter().any(|field| matches!(field.data_type, DataType::FixedSizeList(_, _))),
    };
    let mut field = field_from_arrow(field, &mut 0, field.name(), above)?;
    let mut stack = vec![&mut field];
    while let Some(field) = stack.pop() {
        field.id = FieldId(-1);
        stack.extend(field.children.iter_mut());
    }
    Ok(field)
}

/// What a field lies in. LanceDB has no reader for lists and fixed-size lists of structs in each other, nor for lists of empty structs.
#[derive(Clone, Copy, Default)]
struct Above {
    fields: usize,
    has_list: bool,
    has_fixed_list: bool,
}

fn field_from_arrow(field: &ArrowField, next_id: &mut i32, path: &str, above: Above) -> Result<Field> {
    if above.fields >= MAX_DEPTH {
        return Err(Error::not_supported(format!("column \"{path}\": nested deeper than {MAX_DEPTH}")));
    }
    let id = FieldId(*next_id);
    *next_id += 1;
    let refused = |what: &str| Error::not_supported(format!("column \"{path}\" of type {what}"));
    let above = Above { fields: above.fields + 1, ..above };
    let mut child =
        |inner: &ArrowField, above: Above| field_from_arrow(inner, next_id, &format!("{path}.{}", inner.name()), above);
    let in_list = Above { has_list: true, ..above };
    let (data_type, children) = match field.data_type() {
        DataType::List(_) | DataType::LargeList(_) | DataType::Map(_, _) if above.has_fixed_list => {
            return Err(refused("list in a fixed-size list of structs"));
        }
        DataType::Struct(members) if members.is_empty() && (above.has_list || above.has_fixed_list) => {
            return Err(refused("struct of no fields in a list"));
        }
        DataType::Struct(members) => {
            check_names(members, Some(path))?;
            let children = members.iter().map(|member| child(member, above)).collect::<Result<Vec<_>>>()?;
            (DataType::Struct(children.iter().map(Field::to_arrow).collect()), children)
        }
        DataType::List(item) => {
            let item = child(item, in_list)?;
            (DataType::List(Arc::new(item.to_arrow())), vec![item])
        }
        DataType::LargeList(item) => {
            let item = child(item, in_list)?;
            (DataType::LargeList(Arc::new(item.to_arrow())), vec![item])
        }
        DataType::Map(entries, _) => {
            if !is_map_entries(entries.data_type()) {
                return Err(refused("map without key and value"));
            }
            let entries = child(entries, in_list)?;
            (DataType::Map(Arc::new(entries.to_arrow()), false), vec![entries])
        }
        DataType::FixedSizeList(item, size) if matches!(item.data_type(), DataType::Struct(_)) => {
            if *size <= 0 {
                return Err(refused("fixed-size list of no items"));
            }
            if above.has_list {
                return Err(refused("fixed-size list of structs in a list"));
            }
            let item = child(item, Above { has_fixed_list: true, ..above })?;
            (DataType::FixedSizeList(Arc::new(item.to_arrow()), *size), vec![item])
        }
        leaf => (logical_type::stored_leaf(leaf).map_err(refused)?, Vec::new()),
    };
    let mut field = Field {
        id,
        name: field.name().clone(),
        data_type,
        nullable: field.is_nullable(),
        metadata: sorted(field.metadata()),
        children,
        primary_key_position: 0,
    };
    field.read_primary_key();
    if field.primary_key_position > 0 && field.nullable {
        return Err(nullable_key(&field.name));
    }
    Ok(field)
}

/// A column of the primary key that takes nulls.
pub fn nullable_key(path: &str) -> Error {
    Error::schema(format!("Primary key column and all its ancestors must not be nullable: \"{path}\""))
}

fn field_from_proto(field: &proto::Field, children: Vec<Field>) -> Result<Field> {
    let kind = logical_type::parse(&field.logical_type).map_err(|error| match error {
        Error::NotSupported { feature } => Error::not_supported(format!("column \"{}\" of {feature}", field.name)),
        other => other,
    })?;
    let wrong = |what: &str| {
        Error::corrupt(format!(
            "field {} \"{}\" of type {}: {what}, it has {} children",
            field.id,
            field.name,
            field.logical_type,
            children.len()
        ))
    };
    let only_child = || match children.as_slice() {
        [child] => Ok(Arc::new(child.to_arrow())),
        _ => Err(wrong("one child expected")),
    };
    let data_type = match kind {
        LogicalType::Leaf(_) if !children.is_empty() => return Err(wrong("no child expected")),
        LogicalType::Leaf(data_type) => data_type,
        LogicalType::Struct => {
            let mut names = SortedSet::new();
            if !children.iter().all(|child| names.insert(child.name.as_str())) {
                return Err(wrong("two members have one name"));
            }
            DataType::Struct(children.iter().map(Field::to_arrow).collect())
        }
        LogicalType::List => DataType::List(only_child()?),
        LogicalType::LargeList => DataType::LargeList(only_child()?),
        LogicalType::Map => {
            let entries = only_child()?;
            if !is_map_entries(entries.data_type()) {
                return Err(wrong("entries of key and value expected"));
            }
            DataType::Map(entries, false)
        }
        LogicalType::FixedSizeListOfStruct(size) => {
            let item = only_child()?;
            if !matches!(item.data_type(), DataType::Struct(_)) {
                return Err(wrong("a struct expected"));
            }
            DataType::FixedSizeList(item, size)
        }
    };
    let mut metadata = metadata_from_proto(&field.metadata)?;
    if field.logical_type == "json" {
        // The type alone says it on disk; in Arrow only the extension name can.
        metadata.or_insert_with(EXTENSION_NAME.to_owned(), || JSON_EXTENSION.to_owned());
    }
    let primary_key_position = match field.unenforced_primary_key_position {
        // Older writers set the flag alone.
        0 => u32::from(field.unenforced_primary_key),
        position => position,
    };
    let name = field.name.clone();
    Ok(Field {
        id: FieldId(field.id),
        name,
        data_type,
        nullable: field.nullable,
        metadata,
        children,
        primary_key_position,
    })
}

fn is_map_entries(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(members) if members.len() == 2)
}

fn check_names(fields: &Fields, parent: Option<&str>) -> Result<()> {
    let place = parent.map_or(String::new(), |parent| format!(" in column \"{parent}\""));
    let mut names = SortedSet::new();
    for field in fields {
        let name = field.name().as_str();
        if name.is_empty() {
            return Err(Error::schema(format!("a column name is empty{place}")));
        }
        if name.contains('`') {
            return Err(Error::schema(format!("column name \"{name}\"{place} holds a backtick")));
        }
        if !names.insert(name) {
            return Err(Error::schema(format!("column name \"{name}\"{place} is there twice")));
        }
    }
    Ok(())
}

fn find_path<'a>(fields: &'a [Field], path: &str) -> Option<&'a Field> {
    fields.iter().find(|field| field.name == path).or_else(|| {
        fields.iter().find_map(|field| {
            let rest = path.strip_prefix(field.name.as_str())?.strip_prefix('.')?;
            find_path(&field.children, rest)
        })
    })
}

/// A type with other children.
pub fn of_children(data_type: &DataType, children: &[Field]) -> DataType {
    match (data_type, children) {
        (DataType::Struct(_), children) => DataType::Struct(children.iter().map(Field::to_arrow).collect()),
        (DataType::List(_), [item]) => DataType::List(Arc::new(item.to_arrow())),
        (DataType::LargeList(_), [item]) => DataType::LargeList(Arc::new(item.to_arrow())),
        (DataType::Map(_, sorted), [entries]) => DataType::Map(Arc::new(entries.to_arrow()), *sorted),
        (DataType::FixedSizeList(_, size), [item]) => DataType::FixedSizeList(Arc::new(item.to_arrow()), *size),
        (leaf, _) => leaf.clone(),
    }
}

fn metadata_to_proto(metadata: &SortedMap<String, String>) -> Vec<proto::BytesEntry> {
    metadata
        .iter()
        .map(|(key, value)| proto::BytesEntry { key: key.clone(), value: value.clone().into_bytes() })
        .collect()
}

/// Of a key that stands twice the later value holds, as for every map of the wire.
fn metadata_from_proto(metadata: &[proto::BytesEntry]) -> Result<SortedMap<String, String>> {
    metadata
        .iter()
        .map(|entry| match String::from_utf8(entry.value.clone()) {
            Ok(value) => Ok((entry.key.clone(), value)),
            Err(_) => Err(Error::corrupt(format!("schema metadata \"{}\" is not UTF-8", entry.key))),
        })
        .collect()
}

fn to_arrow(metadata: &SortedMap<String, String>) -> arrow_schema::Metadata {
    metadata.iter().collect()
}

fn sorted(metadata: &arrow_schema::Metadata) -> SortedMap<String, String> {
    metadata.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

#[cfg(test)]
mod tests;
