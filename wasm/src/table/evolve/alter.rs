//! Alter: other names, other types, nulls or not.
//!
//! 1. All alterations are checked against the schema, and all paths are those of the schema as it was.
//! 2. Columns that are to take no nulls are read for nulls.
//! 3. Casts are written: in each fragment that has values of the column, one file with every column that has a cast in it.

use std::rc::Rc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, SchemaRef};
use async_trait::async_trait;

use crate::batch::cast::is_family;
use crate::collections::SortedSet;
use crate::error::{Error, Result};
use crate::format::table::logical_type::EXTENSION_NAME;
use crate::format::table::schema::nullable_key;
use crate::format::table::{Field, FieldId, Fragment, IndexSection, Operation, Schema};
use crate::table::commit::{Change, Execution};
use crate::table::database::Engine;
use crate::table::evolve::column_files::{ColumnFiles, ColumnMaker, with_file};
use crate::table::evolve::{Alteration, fields, project};
use crate::table::scan::{self, Scan};
use crate::table::snapshot::Snapshot;
use crate::table::{ScanOptions, adapt, spread};

pub(super) struct Alter<'a> {
    engine: &'a Rc<Engine>,
    alterations: &'a [Alteration],
}

/// What alterations make of a schema.
struct Plan {
    schema: Schema,
    /// The columns that have a cast in them: with the new types and ids, and the names and the nullability that they had.
    casts: Vec<Field>,
    /// Paths of columns that took nulls and are to take none.
    required: Vec<String>,
}

impl<'a> Alter<'a> {
    pub(super) fn new(engine: &'a Rc<Engine>, alterations: &'a [Alteration]) -> Alter<'a> {
        Alter { engine, alterations }
    }
}

#[async_trait(?Send)]
impl Execution for Alter<'_> {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        let before = &base.manifest.schema;
        let plan = plan(base, self.alterations)?;
        for path in &plan.required {
            check_no_nulls(self.engine, base, path).await?;
        }
        let Plan { schema, casts, .. } = plan;
        if casts.is_empty() {
            return Ok(Some(project(before, schema)));
        }
        let preserves_nullability = fields::preserves_nullability(before, &schema);
        let mut files = ColumnFiles::new(self.engine, base)?;
        let fragments = match write_casts(&mut files, &schema, &casts).await {
            Ok(fragments) => fragments,
            Err(error) => return Err(files.abort(error).await),
        };
        Ok(Some(files.finish(Operation::Merge { fragments, schema, preserves_nullability })))
    }
}

async fn write_casts(files: &mut ColumnFiles<'_>, schema: &Schema, casts: &[Field]) -> Result<Vec<Fragment>> {
    let base = files.base().clone();
    let before = &base.manifest.schema;
    let mut fragments = base.manifest.fragments.clone();
    for (at, fragment) in fragments.iter_mut().enumerate() {
        // Columns that were added without values have none to be cast.
        let (reads, columns): (Vec<Field>, Vec<Field>) = casts
            .iter()
            .filter_map(|cast| Some((before.field(&cast.name)?.clone(), cast.clone())))
            .filter(|(old, _)| !spread::parts(old, &fragment.files).is_empty())
            .unzip();
        if columns.is_empty() {
            continue;
        }
        let file_schema = Schema { fields: columns, metadata: schema.metadata.clone() };
        let source = Schema { fields: reads.clone(), metadata: schema.metadata.clone() };
        let maker = Casting {
            reads,
            source: SchemaRef::new(source.to_arrow()),
            target: SchemaRef::new(file_schema.to_arrow()),
        };
        let file = files.write(at, &file_schema, &maker).await?;
        *fragment = with_file(fragment, file, schema);
    }
    Ok(fragments)
}

struct Casting {
    reads: Vec<Field>,
    source: SchemaRef,
    target: SchemaRef,
}

impl ColumnMaker for Casting {
    fn reads(&self) -> &[Field] {
        &self.reads
    }

    fn make(&self, columns: &[ArrayRef], rows: usize, first_row: u64) -> Result<Vec<ArrayRef>> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.source.clone(), columns.to_vec(), &options)
            .map_err(|error| Error::corrupt(error.to_string()))?;
        Ok(adapt::adapt(&batch, &self.target, first_row)?.columns().to_vec())
    }
}

fn plan(base: &Snapshot, alterations: &[Alteration]) -> Result<Plan> {
    let before = &base.manifest.schema;
    let mut seen = SortedSet::new();
    let (mut schema, mut stored) = (before.clone(), before.clone());
    let mut required = Vec::new();
    let mut cast_columns: SortedSet<usize> = SortedSet::new();
    let mut cast_fields: SortedSet<FieldId> = SortedSet::new();
    for alteration in alterations {
        let Alteration { path, rename, nullable, data_type } = alteration;
        if rename.is_none() && nullable.is_none() && data_type.is_none() {
            return Err(Error::invalid_input("Alteration must have a 'rename', 'dataType', or 'nullable' field."));
        }
        let place = fields::locate(&before.fields, path).ok_or_else(|| fields::no_column(&format!("\"{path}\"")))?;
        let field = fields::field_at(&before.fields, &place).ok_or_else(|| fields::no_column(path))?;
        if !seen.insert(field.id) {
            return Err(Error::invalid_input(format!("column \"{path}\" is altered twice")));
        }
        let parent = fields::field_at(&before.fields, &place[..place.len() - 1]);
        if let Some(name) = rename.as_ref().filter(|name| **name != field.name) {
            check_rename(parent, path, name)?;
            fields::change_at(&mut schema.fields, &place, &mut |field| field.name.clone_from(name));
        }
        if let Some(nullable) = *nullable
            && nullable != field.nullable
        {
            check_nullable(parent, field, path, nullable)?;
            fields::change_at(&mut schema.fields, &place, &mut |field| field.nullable = nullable);
            if !nullable {
                required.push(path.clone());
            }
        }
        if let Some(data_type) = data_type
            && let Some(cast) = cast_field(before, &place, path, data_type)?
        {
            cast_columns.extend(place.first().copied());
            cast_fields
                .extend(Schema { fields: vec![field.clone()], ..Schema::default() }.all_fields().iter().map(|f| f.id));
            for changed in [&mut schema, &mut stored] {
                fields::change_at(&mut changed.fields, &place, &mut |field| {
                    field.data_type = cast.data_type.clone();
                    field.children = cast.children.clone();
                    field.metadata = cast.metadata.clone();
                    fields::forget_ids(field);
                });
            }
        }
    }
    fields::check_distinct(&schema.fields)?;
    check_unindexed(base, &cast_fields)?;
    let next_id = fields::next_id(&base.manifest)?;
    fields::assign_ids(&mut schema.fields, &mut next_id.clone())?;
    fields::assign_ids(&mut stored.fields, &mut next_id.clone())?;
    let casts = cast_columns.into_iter().filter_map(|at| stored.fields.get(at).cloned()).collect();
    Ok(Plan { schema, casts, required })
}

fn check_rename(parent: Option<&Field>, path: &str, name: &str) -> Result<()> {
    match parent {
        None => fields::check_column_name(name),
        Some(parent) if matches!(parent.data_type, DataType::Struct(_)) => fields::check_name(name),
        Some(_) => Err(Error::invalid_input(format!("\"{path}\" is not a column and not a member of a struct"))),
    }
}

fn check_nullable(parent: Option<&Field>, field: &Field, path: &str, nullable: bool) -> Result<()> {
    if nullable && field.primary_key_position > 0 {
        return Err(nullable_key(path));
    }
    match parent {
        Some(parent) if !matches!(parent.data_type, DataType::Struct(_)) => {
            Err(Error::not_supported(format!("another nullability of \"{path}\", the items of a list")))
        }
        _ => Ok(()),
    }
}

/// The field with another type; `None` when it has it already.
fn cast_field(schema: &Schema, place: &[usize], path: &str, data_type: &DataType) -> Result<Option<Field>> {
    let field = fields::field_at(&schema.fields, place).ok_or_else(|| fields::no_column(path))?;
    let mut metadata = field.metadata.clone();
    metadata.retain(|key, _| !key.starts_with("ARROW:extension:"));
    let to = Field { data_type: data_type.clone(), metadata, ..field.clone() }.to_arrow();
    let cast = fields::new_field(schema, place, &to)?;
    if cast.data_type == field.data_type {
        return Ok(None);
    }
    let top = place.first().and_then(|at| schema.fields.get(*at));
    let is_extension = field.metadata.contains_key(EXTENSION_NAME);
    if is_extension || top.is_some_and(|top| top.as_read() != *top) || !is_family(&field.data_type, &cast.data_type) {
        let message = format!("Cannot cast column \"{path}\" from {} to {}", field.data_type, cast.data_type);
        return Err(Error::invalid_input(message));
    }
    Ok(Some(cast))
}

/// An index of a column says nothing about its new values.
fn check_unindexed(base: &Snapshot, cast: &SortedSet<FieldId>) -> Result<()> {
    let Some(bytes) = &base.manifest.index_section else { return Ok(()) };
    let indices = IndexSection::decode(bytes).map_err(|error| error.at(&base.path))?;
    let names: Vec<&str> = indices
        .entries
        .iter()
        .filter(|index| index.fields.iter().any(|id| cast.contains(id)))
        .map(|index| index.name.as_str())
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let count = names.len();
    let names = names.join(", ");
    Err(Error::invalid_input(format!(
        "Cannot cast column(s) to a new type: they have {count} index(es) attached: [{names}]; drop the index(es) first"
    )))
}

async fn check_no_nulls(engine: &Rc<Engine>, base: &Rc<Snapshot>, path: &str) -> Result<()> {
    let options = ScanOptions { columns: Some(vec![path.to_owned()]), ..ScanOptions::default() };
    let mut scan = Scan::new(engine.clone(), base.clone(), scan::plan(base, &options)?)?;
    let mut first_row = 0_u64;
    while let Some(batch) = scan.next().await? {
        if let Some(nulls) = batch.columns().first().and_then(|column| column.logical_nulls())
            && let Some(at) = (0..nulls.len()).find(|at| nulls.is_null(*at))
        {
            let row = first_row.saturating_add(at as u64);
            return Err(Error::invalid_input(format!(
                "Column \"{path}\" contains NULL values and cannot be made non-nullable: row {row} is null"
            )));
        }
        first_row = first_row.saturating_add(batch.num_rows() as u64);
    }
    Ok(())
}
