//! Add: columns without values, which no file has and every reader takes for nulls, and columns of computed values.

use std::rc::Rc;

use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::format::file::{FileVersion, FileWriter};
use crate::format::table::{Operation, Schema, of_children};
use crate::table::commit::{Change, Execution};
use crate::table::evolve::fields;
use crate::table::snapshot::Snapshot;

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
        // A type that no row could be added of is refused now.
        FileWriter::check(&schema, format)?;
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
