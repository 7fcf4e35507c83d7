//! Projection: which columns a scan yields, and where they come from.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StructArray, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema, SchemaRef};

use crate::collections::SortedSet;
use crate::error::{Error, Result};
use crate::expr::Value;
use crate::format::table::{Field, Schema};
use crate::table::ScanOptions;
use crate::table::matches::Reads;
use crate::table::system_columns::{ROW_ID, SystemColumn};

/// The columns of a scan, in order.
pub(crate) struct Projection {
    pub(crate) columns: Vec<Column>,
    /// The top-level fields to be read, each once, with only what is on the way to the columns.
    pub(crate) stored: Vec<Field>,
    pub(crate) schema: SchemaRef,
}

/// One output column.
pub(crate) enum Column {
    Stored {
        /// The place of its field among `stored`.
        at: usize,
        /// Names of the members on the way down to the column.
        members: Vec<String>,
    },
    System(SystemColumn),
    /// An expression over the row.
    Computed {
        value: Box<Value>,
        reads: Reads,
        /// The places of the fields that it reads among `stored`.
        at: Vec<usize>,
    },
}

impl Projection {
    /// # Errors
    /// `NotFound` for an unknown column, with the closest name; `InvalidInput` for one named twice; as [`Value::parse`] for expressions.
    pub(crate) fn new(schema: &Schema, options: &ScanOptions) -> Result<Projection> {
        let columns = options.columns.as_deref();
        let all: Vec<String>;
        let names: &[String] = match columns {
            Some(names) => names,
            None => {
                all = schema.fields.iter().map(|field| field.name.clone()).collect();
                &all
            }
        };
        let mut projection = Vec::new();
        let mut stored = Vec::new();
        let mut fields: Vec<ArrowField> = Vec::new();
        let mut seen = SortedSet::new();
        // A top-level column may be named like a path; the whole name wins.
        for name in names {
            if !seen.insert(name.as_str()) {
                return Err(Error::invalid_input(format!("duplicate column name: {name}")));
            }
            let (column, field) = resolve(schema, name, columns.is_none(), &mut stored)?;
            projection.push(column);
            fields.push(field);
        }
        for text in &options.expressions {
            let value =
                Box::new(Value::parse(text, schema).map_err(|error| error.of_expression(&format!("\"{text}\"")))?);
            fields.push(ArrowField::new(text, value.data_type().clone(), value.is_nullable()));
            let reads = Reads::new(&value.columns(), schema);
            let at = reads.fields.iter().map(|field| place(&mut stored, field.clone())).collect();
            projection.push(Column::Computed { value, reads, at });
        }
        if options.with_row_id && seen.insert(ROW_ID) {
            projection.push(Column::System(SystemColumn::RowId));
            fields.push(SystemColumn::RowId.field());
        }
        let metadata = schema.to_arrow().metadata().clone();
        let schema = Arc::new(ArrowSchema::new_with_metadata(fields, metadata));
        Ok(Projection { columns: projection, stored, schema })
    }

    /// Sets the time of `now()`, nanoseconds since the epoch.
    pub(crate) fn set_now(&mut self, now_ns: u64) {
        for column in &mut self.columns {
            if let Column::Computed { value, .. } = column {
                value.set_now(now_ns);
            }
        }
    }
}

/// Where a field is among those to be read.
fn place(stored: &mut Vec<Field>, field: Field) -> usize {
    stored.iter().position(|other| *other == field).unwrap_or_else(|| {
        stored.push(field);
        stored.len() - 1
    })
}

fn resolve(schema: &Schema, name: &str, is_whole: bool, stored: &mut Vec<Field>) -> Result<(Column, ArrowField)> {
    if let Some(field) = schema.fields.iter().find(|field| field.name == name) {
        return Ok((Column::Stored { at: place(stored, field.clone()), members: Vec::new() }, field.to_arrow()));
    }
    if let Some(column) = SystemColumn::named(name).filter(|_| !is_whole) {
        return Ok((Column::System(column), column.field()));
    }
    let Some((pruned, members)) = schema.fields.iter().find_map(|field| prune(field, name)) else {
        // Also says which name is the closest.
        let closest = schema.require(name).err();
        return Err(closest.unwrap_or_else(|| Error::NotFound { what: format!("column \"{name}\"") }));
    };
    let (mut leaf, mut nullable) = (&pruned, pruned.nullable);
    for member in &members {
        let Some(child) = leaf.children.iter().find(|child| child.name == *member) else { break };
        leaf = child;
        nullable |= leaf.nullable;
    }
    let field = leaf.to_arrow().with_name(name).with_nullable(nullable);
    Ok((Column::Stored { at: place(stored, pruned), members }, field))
}

/// A field with only what `path` names, and the members on the way there. What lies in one column stays whole.
fn prune(field: &Field, path: &str) -> Option<(Field, Vec<String>)> {
    if field.name == path {
        return Some((field.clone(), Vec::new()));
    }
    let rest = path.strip_prefix(field.name.as_str())?.strip_prefix('.')?;
    if !matches!(field.data_type, DataType::Struct(_)) {
        return None;
    }
    let (child, mut members) = field.children.iter().find_map(|child| prune(child, rest))?;
    members.insert(0, child.name.clone());
    if field.is_one_column() {
        return Some((field.clone(), members));
    }
    let data_type = DataType::Struct(vec![child.to_arrow()].into());
    Some((Field { data_type, children: vec![child], ..field.clone() }, members))
}

/// Goes down into structs: a member of a null struct is null.
pub(crate) fn extract(array: &ArrayRef, members: &[String]) -> Result<ArrayRef> {
    let mut array = array.clone();
    for member in members {
        let parent = array.as_any().downcast_ref::<StructArray>();
        let Some((parent, child)) = parent.and_then(|parent| Some((parent, parent.column_by_name(member)?))) else {
            return Err(Error::internal(format!("no member {member} in a column that was read for it")));
        };
        let nulls = NullBuffer::union(parent.nulls(), child.nulls());
        let data = child.to_data().into_builder().nulls(nulls).build();
        array = make_array(data.map_err(|error| Error::internal(error.to_string()))?);
    }
    Ok(array)
}

/// Bytes of a row of this type in memory, about: variable-length values are taken for short ones.
pub(crate) fn row_bytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| row_bytes(field.data_type())).sum(),
        DataType::FixedSizeList(item, size) => {
            row_bytes(item.data_type()).saturating_mul(u64::try_from(*size).unwrap_or(0))
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
            row_bytes(item.data_type()).saturating_mul(8)
        }
        DataType::FixedSizeBinary(size) => u64::try_from(*size).unwrap_or(0),
        DataType::Boolean | DataType::Null => 1,
        other => other.primitive_width().map_or(32, |width| width as u64),
    }
}
