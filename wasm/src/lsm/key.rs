//! The unenforced primary key: a column whose values tell rows apart. Nobody checks that they do.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Schema as ArrowSchema};
use async_trait::async_trait;

use crate::collections::SortedMap;
use crate::error::{Error, Result};
use crate::format::table::schema::{PRIMARY_KEY_POSITION, nullable_key};
use crate::format::table::{Operation, UpdateMap};
use crate::table::Table;
use crate::table::commit::{Change, Execution};
use crate::table::snapshot::Snapshot;

/// A schema with a column as its primary key, which takes no nulls.
///
/// # Errors
/// `InvalidInput` for a column that is not there or of a type that is no key, and for another column than one that is the key.
pub fn keyed_schema(schema: &ArrowSchema, column: &str) -> Result<ArrowSchema> {
    let at = schema.index_of(column);
    let at = at.map_err(|_| Error::invalid_input(format!("primaryKey: column '{column}' not found in the schema")))?;
    let mut fields: Vec<FieldRef> = schema.fields().to_vec();
    for (other, field) in fields.iter_mut().enumerate() {
        if other != at {
            if field.metadata().contains_key(PRIMARY_KEY_POSITION) {
                let name = field.name();
                return Err(Error::invalid_input(format!("primaryKey: column '{name}' is the primary key already")));
            }
            continue;
        }
        if !is_key(field.data_type()) {
            let text = format!("primaryKey: {}", unfit(column, field.data_type()));
            return Err(Error::invalid_input(text));
        }
        let mut metadata: HashMap<String, String> = field.metadata().clone().into_iter().collect();
        metadata.insert(PRIMARY_KEY_POSITION.to_owned(), "1".to_owned());
        *field = Arc::new(field.as_ref().clone().with_nullable(false).with_metadata(metadata));
    }
    Ok(ArrowSchema::new_with_metadata(fields, schema.metadata().clone()))
}

struct SetKey<'a> {
    column: &'a str,
}

impl Table {
    /// Makes a column the table's unenforced primary key, for good. The version that has it.
    ///
    /// # Errors
    /// `InvalidInput` for a column that is not there or of a type that is no key, and when there is a key; `Schema` for a column that takes
    /// nulls; `Conflict`, `Contention`, `TableNotFound`, `OutcomeUnknown` as an append.
    pub async fn set_unenforced_primary_key(&self, column: &str) -> Result<u64> {
        self.evolve(&mut SetKey { column }).await
    }
}

#[async_trait(?Send)]
impl Execution for SetKey<'_> {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        let fault = |text: String| Error::invalid_input(format!("set_unenforced_primary_key: {text}"));
        let (schema, column) = (&base.manifest.schema, self.column);
        let field = schema.fields.iter().find(|field| field.name == column);
        let field = field.ok_or_else(|| fault(format!("column '{column}' not found on table")))?;
        if schema.all_fields().into_iter().any(|field| field.primary_key_position > 0) {
            let text = "an unenforced primary key is already set on this table; changing it is not supported";
            return Err(fault(text.to_owned()));
        }
        if !is_key(&field.data_type) {
            return Err(fault(unfit(column, &field.data_type)));
        }
        if field.nullable {
            return Err(nullable_key(column));
        }
        let mut metadata = field.metadata.clone();
        metadata.insert(PRIMARY_KEY_POSITION.to_owned(), "1".to_owned());
        let entries = metadata.into_iter().map(|(key, value)| (key, Some(value))).collect();
        let field_metadata = SortedMap::from([(field.id, UpdateMap { entries, replaces: true })]);
        let operation =
            Operation::UpdateConfig { config: None, table_metadata: None, schema_metadata: None, field_metadata };
        Ok(Some(Change::of(operation)))
    }
}

fn unfit(column: &str, data_type: &DataType) -> String {
    format!(
        "column '{column}' has dtype {data_type} which is not supported as a primary key. Supported: Int32, Int64, Utf8, \
         LargeUtf8, Binary, LargeBinary, FixedSizeBinary"
    )
}

fn is_key(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int32
            | DataType::Int64
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::FixedSizeBinary(_)
    )
}
