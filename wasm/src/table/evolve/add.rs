//! Add: columns without values, which no file has and every reader takes for nulls, and columns of computed values.

use std::rc::Rc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Schema as ArrowSchema, SchemaRef};
use async_trait::async_trait;

use crate::collections::{SortedMap, SortedSet};
use crate::error::{Error, Result};
use crate::expr::Value;
use crate::format::file::{FileVersion, FileWriter};
use crate::format::table::{Field, Operation, Schema, of_children};
use crate::table::adapt;
use crate::table::commit::{Change, Execution};
use crate::table::database::Engine;
use crate::table::evolve::column_files::{ColumnFiles, ColumnMaker, with_file};
use crate::table::evolve::{ComputedColumn, fields, project};
use crate::table::snapshot::Snapshot;

/// Columns without values.
pub(super) struct AddNulls<'a> {
    fields: &'a ArrowSchema,
}

impl<'a> AddNulls<'a> {
    pub(super) fn new(fields: &'a ArrowSchema) -> AddNulls<'a> {
        AddNulls { fields }
    }
}

#[async_trait(?Send)]
impl Execution for AddNulls<'_> {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        let manifest = &base.manifest;
        let format = FileVersion::parse(&manifest.data_format)?;
        let mut schema = manifest.schema.clone();
        for (at, field) in self.fields.fields().iter().enumerate() {
            if self.fields.fields().iter().take(at).any(|other| other.name() == field.name()) {
                return Err(Error::schema(format!("Duplicate field name \"{}\" in schema", field.name())));
            }
            match schema.fields.iter().position(|known| known.name == *field.name()) {
                Some(at) => extend(&mut schema, &mut vec![at], field, format)?,
                None => {
                    fields::check_column_name(field.name())?;
                    check_nullable(field)?;
                    let added = fields::new_field(&schema, &[schema.fields.len()], field)?;
                    schema.fields.push(added);
                }
            }
        }
        fields::assign_ids(&mut schema.fields, &mut fields::next_id(manifest)?)?;
        // A type that no row could be added of is refused now; what the table has already may be of others' making.
        let is_new = |field: &&Field| manifest.schema.field_by_id(field.id).is_none_or(|before| before != *field);
        let changed = schema.fields.iter().filter(is_new).cloned().collect();
        FileWriter::check(&Schema { fields: changed, ..Schema::default() }, format)?;
        let fragments = manifest.fragments.clone();
        Ok(Some(Change::of(Operation::Merge { fragments, schema, preserves_nullability: true })))
    }
}

fn check_nullable(field: &ArrowField) -> Result<()> {
    if field.is_nullable() {
        return Ok(());
    }
    let message = format!("All-null columns must be nullable, but field '{}' is not.", field.name());
    Err(Error::invalid_input(message))
}

/// Adds what is new in `given` to the field at a place that has its name.
fn extend(schema: &mut Schema, place: &mut Vec<usize>, given: &ArrowField, format: FileVersion) -> Result<()> {
    let Some(field) = fields::field_at(&schema.fields, place).cloned() else {
        return Err(Error::internal("a field that was just there"));
    };
    let conflict = || {
        let (name, found, given) = (&field.name, &field.data_type, given.data_type());
        Error::invalid_input(format!("Type conflicts between {name}({found}) and {name}({given})"))
    };
    match (&field.data_type, given.data_type()) {
        (DataType::Struct(_), DataType::Struct(members)) if !field.is_one_column() => {
            if format < FileVersion::V2_2 {
                return Err(Error::invalid_input(format!(
                    "Column {} is a struct col, add sub column is not supported in Lance file version {}",
                    field.name,
                    format.as_str()
                )));
            }
            for member in members {
                let children = fields::field_at(&schema.fields, place).map_or(&[][..], |field| &field.children);
                match children.iter().position(|child| child.name == *member.name()) {
                    Some(at) => {
                        place.push(at);
                        extend(schema, place, member, format)?;
                        place.pop();
                    }
                    None => {
                        fields::check_name(member.name())?;
                        check_nullable(member)?;
                        let at = children.len();
                        place.push(at);
                        let added = fields::new_field(schema, place, member)?;
                        place.pop();
                        fields::change_at(&mut schema.fields, place, &mut |field| {
                            field.children.push(added.clone());
                            field.data_type = of_children(&field.data_type, &field.children);
                        });
                    }
                }
            }
            Ok(())
        }
        (DataType::List(_), DataType::List(item))
        | (DataType::LargeList(_), DataType::LargeList(item))
        | (DataType::FixedSizeList(_, _), DataType::FixedSizeList(item, _))
            if matches!(item.data_type(), DataType::Struct(_)) && !field.children.is_empty() =>
        {
            let same_size = match (&field.data_type, given.data_type()) {
                (DataType::FixedSizeList(_, found), DataType::FixedSizeList(_, size)) => found == size,
                _ => true,
            };
            if !same_size {
                return Err(conflict());
            }
            place.push(0);
            let extended = extend(schema, place, item, format);
            place.pop();
            extended
        }
        (found, given) if found == given => {
            Err(Error::AlreadyExists { what: format!("Column {} already exists in the dataset", field.name) })
        }
        _ => Err(conflict()),
    }
}

/// Columns of computed values.
pub(super) struct AddComputed<'a> {
    engine: &'a Rc<Engine>,
    columns: &'a [ComputedColumn],
}

impl<'a> AddComputed<'a> {
    pub(super) fn new(engine: &'a Rc<Engine>, columns: &'a [ComputedColumn]) -> AddComputed<'a> {
        AddComputed { engine, columns }
    }
}

#[async_trait(?Send)]
impl Execution for AddComputed<'_> {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        let before = &base.manifest.schema;
        let known = before.as_read();
        let mut files = ColumnFiles::new(self.engine, base)?;
        let (mut schema, mut values) = (before.clone(), Vec::new());
        for ComputedColumn { name, value_sql } in self.columns {
            if before.field(name).is_some() {
                return Err(Error::AlreadyExists { what: format!("Column {name} already exists in the dataset") });
            }
            fields::check_column_name(name)?;
            let which = format!("column \"{name}\"");
            let mut value = Value::parse(value_sql, &known).map_err(|error| error.of_expression(&which))?;
            value.set_now(self.engine.env.now_ns());
            let field = ArrowField::new(name, value.data_type().clone(), value.is_nullable());
            schema.fields.push(fields::new_field(before, &[before.fields.len()], &field)?);
            values.push(value);
        }
        fields::check_distinct(&schema.fields)?;
        fields::assign_ids(&mut schema.fields, &mut fields::next_id(&base.manifest)?)?;
        if values.is_empty() {
            return Ok(Some(project(before, schema)));
        }
        let added = schema.fields.get(before.fields.len()..).unwrap_or_default().to_vec();
        let file_schema = Schema { fields: added, metadata: schema.metadata.clone() };
        FileWriter::check(&file_schema, FileVersion::parse(&base.manifest.data_format)?)?;
        let maker = Computing::new(&known, &file_schema, values);
        let mut fragments = base.manifest.fragments.clone();
        for (at, fragment) in fragments.iter_mut().enumerate() {
            match files.write(at, &file_schema, &maker).await {
                Ok(file) => *fragment = with_file(fragment, file, &schema),
                Err(error) => return Err(files.abort(error).await),
            }
        }
        let preserves_nullability = fields::preserves_nullability(before, &schema);
        Ok(Some(files.finish(Operation::Merge { fragments, schema, preserves_nullability })))
    }
}

struct Computing {
    reads: Vec<Field>,
    source: SchemaRef,
    target: SchemaRef,
    values: Vec<Value>,
}

impl Computing {
    fn new(known: &Schema, added: &Schema, values: Vec<Value>) -> Computing {
        let names: SortedSet<String> = values.iter().flat_map(Value::columns).collect();
        let reads: Vec<Field> = known.fields.iter().filter(|field| names.contains(&field.name)).cloned().collect();
        let source = Schema { fields: reads.clone(), metadata: SortedMap::new() };
        Computing { reads, source: SchemaRef::new(source.to_arrow()), target: SchemaRef::new(added.to_arrow()), values }
    }
}

impl ColumnMaker for Computing {
    fn reads(&self) -> &[Field] {
        &self.reads
    }

    fn make(&self, columns: &[ArrayRef], rows: usize, first_row: u64) -> Result<Vec<ArrayRef>> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let failed = |error: ArrowError| Error::internal(error.to_string());
        let batch = RecordBatch::try_new_with_options(self.source.clone(), columns.to_vec(), &options)
            .map_err(|error| Error::corrupt(error.to_string()))?;
        let row_of = |row: usize| first_row.checked_add(row as u64);
        let values = self.values.iter().map(|value| value.evaluate(&batch, &row_of)).collect::<Result<Vec<_>>>()?;
        // Values take the stored form: views, and the items of lists, may have another.
        let given: Vec<ArrowField> = self
            .target
            .fields()
            .iter()
            .zip(&values)
            .map(|(field, array)| ArrowField::new(field.name(), array.data_type().clone(), true))
            .collect();
        let made = RecordBatch::try_new_with_options(SchemaRef::new(ArrowSchema::new(given)), values, &options);
        Ok(adapt::adapt(&made.map_err(failed)?, &self.target, first_row)?.columns().to_vec())
    }
}
