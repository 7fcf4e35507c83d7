//! Drop: a schema without some fields.
//!
//! Where a column's struct or list is told only by columns that go (which rows are null, how long the lists are), and where a fragment
//! would have no file left, the rest is written to a new file: only then files are written.

use std::rc::Rc;

use arrow_array::{ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use async_trait::async_trait;

use crate::collections::SortedSet;
use crate::error::{Error, Result};
use crate::format::table::{Field, FieldId, Fragment, Operation, Schema, of_children};
use crate::table::commit::{Change, Execution};
use crate::table::database::Engine;
use crate::table::evolve::column_files::{ColumnFiles, ColumnMaker, with_file};
use crate::table::evolve::{fields, project};
use crate::table::snapshot::Snapshot;
use crate::table::spread;

pub(super) struct Drop<'a> {
    engine: &'a Rc<Engine>,
    paths: &'a [String],
}

impl<'a> Drop<'a> {
    pub(super) fn new(engine: &'a Rc<Engine>, paths: &'a [String]) -> Drop<'a> {
        Drop { engine, paths }
    }
}

#[async_trait(?Send)]
impl Execution for Drop<'_> {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        let before = &base.manifest.schema;
        let schema = dropped(before, self.paths)?;
        let orphans: Vec<(usize, Vec<Field>)> = base
            .manifest
            .fragments
            .iter()
            .enumerate()
            .map(|(at, fragment)| (at, orphans(before, &schema, fragment)))
            .filter(|(_, fields)| !fields.is_empty())
            .collect();
        if orphans.is_empty() {
            return Ok(Some(project(before, schema)));
        }
        let mut files = ColumnFiles::new(self.engine, base)?;
        let fragments = match write_orphans(&mut files, &schema, orphans).await {
            Ok(fragments) => fragments,
            Err(error) => return Err(files.abort(error).await),
        };
        Ok(Some(files.finish(Operation::Merge { fragments, schema, preserves_nullability: true })))
    }
}

async fn write_orphans(
    files: &mut ColumnFiles<'_>,
    schema: &Schema,
    orphans: Vec<(usize, Vec<Field>)>,
) -> Result<Vec<Fragment>> {
    let base = files.base().clone();
    let mut fragments = base.manifest.fragments.clone();
    for (at, columns) in orphans {
        let reads: Vec<Field> =
            columns.iter().filter_map(|field| base.manifest.schema.field_by_id(field.id)).cloned().collect();
        let file_schema = Schema { fields: columns, metadata: schema.metadata.clone() };
        let file = files.write(at, &file_schema, &Remainder { reads, schema: &file_schema }).await?;
        if let Some(fragment) = fragments.get_mut(at) {
            *fragment = with_file(fragment, file, schema);
        }
    }
    Ok(fragments)
}

fn dropped(before: &Schema, paths: &[String]) -> Result<Schema> {
    let mut gone: SortedSet<FieldId> = SortedSet::new();
    for path in paths {
        let place = fields::locate(&before.fields, path).ok_or_else(|| fields::no_column(path))?;
        let around = (1..place.len()).filter_map(|length| fields::field_at(&before.fields, &place[..length]));
        for outer in around {
            if outer.is_one_column() {
                return Err(Error::not_supported(format!("to drop \"{path}\", a part of a column")));
            }
            if matches!(outer.data_type, DataType::Map(_, _)) {
                return Err(Error::not_supported(format!("to drop \"{path}\", a part of a map")));
            }
        }
        gone.extend(fields::field_at(&before.fields, &place).map(|field| field.id));
    }
    let left = fields::without(&before.fields, &gone);
    if left.is_empty() {
        return Err(Error::invalid_input("Cannot drop all columns from a dataset"));
    }
    Ok(Schema { fields: left, metadata: before.metadata.clone() })
}

/// The columns that have to be written anew, as they are in `after`.
fn orphans(before: &Schema, after: &Schema, fragment: &Fragment) -> Vec<Field> {
    let is_stored = |field: &Field| !spread::parts(field, &fragment.files).is_empty();
    let mut orphans: Vec<Field> = after
        .fields
        .iter()
        .filter(|field| !is_stored(field) && before.field_by_id(field.id).is_some_and(is_stored))
        .cloned()
        .collect();
    // A fragment without a file has no rows for other readers.
    if orphans.is_empty() && !fragment.files.is_empty() && !after.fields.iter().any(is_stored) {
        orphans.extend(after.fields.first().cloned());
    }
    orphans
}

/// What is left of columns.
struct Remainder<'a> {
    reads: Vec<Field>,
    schema: &'a Schema,
}

impl ColumnMaker for Remainder<'_> {
    fn reads(&self) -> &[Field] {
        &self.reads
    }

    fn make(&self, columns: &[ArrayRef], _rows: usize, _first_row: u64) -> Result<Vec<ArrayRef>> {
        let part = |(array, field): (&ArrayRef, &Field)| part_of(array.to_data(), field).map(make_array);
        columns.iter().zip(&self.schema.fields).map(part).collect()
    }
}

/// An array with only the members that a field has.
fn part_of(data: ArrayData, field: &Field) -> Result<ArrayData> {
    if *data.data_type() == field.data_type {
        return Ok(data);
    }
    let lacking = || Error::internal("a member of a column that was read for it");
    let children: Vec<ArrayData> = match data.data_type() {
        DataType::Struct(members) => field
            .children
            .iter()
            .map(|child| {
                let at = members.iter().position(|member| *member.name() == child.name).ok_or_else(lacking)?;
                part_of(data.child_data().get(at).cloned().ok_or_else(lacking)?, child)
            })
            .collect::<Result<_>>()?,
        _ => {
            let items = data.child_data().first().cloned().ok_or_else(lacking)?;
            vec![part_of(items, field.children.first().ok_or_else(lacking)?)?]
        }
    };
    let data_type = of_children(&field.data_type, &field.children);
    let part = data.into_builder().data_type(data_type).child_data(children).build();
    part.map_err(|error| Error::internal(error.to_string()))
}
