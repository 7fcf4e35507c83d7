//! Metadata of fields: what is written beside a field for people, other tools, and the encodings of files to come.

use std::rc::Rc;

use async_trait::async_trait;

use crate::collections::SortedMap;
use crate::error::{Error, Result};
use crate::format::table::schema::{PRIMARY_KEY_POSITION, nullable_key};
use crate::format::table::{Field, FieldId, Operation, Schema, UpdateMap};
use crate::table::commit::{Change, Execution};
use crate::table::evolve::{FieldMetadata, fields};
use crate::table::snapshot::Snapshot;

pub(super) struct Describe<'a> {
    pub(super) updates: &'a [FieldMetadata],
}

#[async_trait(?Send)]
impl Execution for Describe<'_> {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        let field_metadata = updates(&base.manifest.schema, self.updates)?;
        let operation =
            Operation::UpdateConfig { config: None, table_metadata: None, schema_metadata: None, field_metadata };
        Ok(Some(Change::of(operation)))
    }
}

fn updates(schema: &Schema, updates: &[FieldMetadata]) -> Result<SortedMap<FieldId, UpdateMap>> {
    let mut all: SortedMap<FieldId, UpdateMap> = SortedMap::new();
    for update in updates {
        let place = fields::locate(&schema.fields, &update.path);
        let field = place.and_then(|place| fields::field_at(&schema.fields, &place));
        let field = field.ok_or_else(|| Error::NotFound { what: format!("Field '{}' not found.", update.path) })?;
        let map = all.or_default(field.id);
        if update.replaces {
            *map = UpdateMap { entries: Vec::new(), replaces: true };
        }
        for (key, value) in &update.entries {
            map.entries.retain(|(known, _)| known != key);
            map.entries.push((key.clone(), value.clone()));
        }
        check(field, map)?;
        let is_new_key =
            field.primary_key_position == 0 && map.entries.iter().any(|(key, _)| key == PRIMARY_KEY_POSITION);
        if is_new_key && schema.all_fields().into_iter().any(|field| field.primary_key_position > 0) {
            return Err(key_is_set());
        }
    }
    Ok(all)
}

/// Stored values are read by what some keys say.
fn check(field: &Field, update: &UpdateMap) -> Result<()> {
    let mut after = field.clone();
    update.apply(&mut after.metadata);
    after.read_primary_key();
    let layout = |field: &Field| (field.is_packed_struct(), field.is_blob_v2(), field.is_legacy_blob());
    if layout(field) != layout(&after) {
        let message = format!("the metadata of \"{}\" that say how its values are stored cannot change", field.name);
        return Err(Error::invalid_input(message));
    }
    if field.primary_key_position > 0 && after.primary_key_position != field.primary_key_position {
        return Err(key_is_set());
    }
    if after.primary_key_position > 0 && after.nullable {
        return Err(nullable_key(&field.name));
    }
    Ok(())
}

fn key_is_set() -> Error {
    Error::invalid_input("the unenforced primary key is a reserved key and cannot be changed once set")
}
