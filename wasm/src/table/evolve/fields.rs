//! Fields that change: paths, names, ids. Pure.

use arrow_schema::{DataType, Field as ArrowField};

use crate::collections::SortedSet;
use crate::error::{Error, Result};
use crate::format::table::schema::{self, RESERVED_NAMES};
use crate::format::table::{Field, FieldId, Manifest, Schema, logical_type, of_children};

/// The id of a field that has none yet.
pub(super) const NO_ID: FieldId = FieldId(-1);

pub(super) fn parse_type(text: &str) -> Result<DataType> {
    let unknown = || Error::invalid_input(format!("Invalid data type: {{\"type\":\"{text}\"}}"));
    logical_type::parse_leaf_text(text).map_err(|_| unknown())
}

/// Positions on the way from the schema to a field. A name that holds dots wins over the path that it looks like.
pub(super) fn locate(fields: &[Field], path: &str) -> Option<Vec<usize>> {
    if let Some(at) = fields.iter().position(|field| field.name == path) {
        return Some(vec![at]);
    }
    fields.iter().enumerate().find_map(|(at, field)| {
        let rest = path.strip_prefix(field.name.as_str())?.strip_prefix('.')?;
        let mut place = locate(&field.children, rest)?;
        place.insert(0, at);
        Some(place)
    })
}

pub(super) fn field_at<'a>(fields: &'a [Field], place: &[usize]) -> Option<&'a Field> {
    let (first, rest) = place.split_first()?;
    let field = fields.get(*first)?;
    if rest.is_empty() { Some(field) } else { field_at(&field.children, rest) }
}

/// Changes a field; the types of those around it follow.
pub(super) fn change_at(fields: &mut [Field], place: &[usize], change: &mut dyn FnMut(&mut Field)) {
    let Some((first, rest)) = place.split_first() else { return };
    let Some(field) = fields.get_mut(*first) else { return };
    if rest.is_empty() {
        change(field);
    } else {
        change_at(&mut field.children, rest, change);
        field.data_type = of_children(&field.data_type, &field.children);
    }
}

/// Takes fields away, and structs and lists that have nothing left.
pub(in crate::table) fn without(fields: &[Field], gone: &SortedSet<FieldId>) -> Vec<Field> {
    fields
        .iter()
        .filter(|field| !gone.contains(&field.id))
        .filter_map(|field| {
            if field.children.is_empty() {
                return Some(field.clone());
            }
            let children = without(&field.children, gone);
            if children.is_empty() {
                return None;
            }
            let data_type = of_children(&field.data_type, &children);
            Some(Field { data_type, children, ..field.clone() })
        })
        .collect()
}

/// Gives ids to the fields that have none, depth first.
pub(super) fn assign_ids(fields: &mut [Field], next_id: &mut i32) -> Result<()> {
    for field in fields {
        if field.id == NO_ID {
            field.id = FieldId(*next_id);
            *next_id = next_id.checked_add(1).ok_or_else(|| Error::not_supported("more than 2^31 fields"))?;
        }
        assign_ids(&mut field.children, next_id)?;
    }
    Ok(())
}

pub(super) fn next_id(manifest: &Manifest) -> Result<i32> {
    let max = manifest.max_field_id().map_or(-1, |id| id.0);
    max.checked_add(1).ok_or_else(|| Error::not_supported("more than 2^31 fields"))
}

/// Takes the ids of a field and of all in it.
pub(super) fn forget_ids(field: &mut Field) {
    field.id = NO_ID;
    field.children.iter_mut().for_each(forget_ids);
}

/// The stored form of a field that comes to a place, which may be behind the last one there; without ids.
///
/// # Errors
/// As [`schema::new_field`].
pub(super) fn new_field(schema: &Schema, place: &[usize], field: &ArrowField) -> Result<Field> {
    let around: Vec<&Field> =
        (1..place.len()).filter_map(|length| field_at(&schema.fields, &place[..length])).collect();
    schema::new_field(&around, field)
}

/// A new name of a column or of a struct's member.
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::schema("a column name is empty"));
    }
    if name.contains('.') {
        let message = format!("Top level field {name} cannot contain `.`. Maybe you meant to create a struct field?");
        return Err(Error::schema(message));
    }
    if name.contains('`') {
        return Err(Error::schema(format!("column name \"{name}\" holds a backtick")));
    }
    Ok(())
}

/// As [`check_name`], of a column.
pub(super) fn check_column_name(name: &str) -> Result<()> {
    check_name(name)?;
    if RESERVED_NAMES.contains(&name) {
        return Err(Error::schema(format!("column name \"{name}\" is reserved")));
    }
    Ok(())
}

/// No two columns, and no two members of one struct, have one name.
pub(super) fn check_distinct(fields: &[Field]) -> Result<()> {
    let mut names = SortedSet::new();
    for field in fields {
        if !names.insert(field.name.as_str()) {
            return Err(Error::schema(format!("Duplicate field name \"{}\" in schema", field.name)));
        }
        check_distinct(&field.children)?;
    }
    Ok(())
}

/// Whether rows of the old schema fit the new one: no field that is new or was nullable takes no nulls.
pub(super) fn preserves_nullability(before: &Schema, after: &Schema) -> bool {
    let required = |schema: &Schema| -> SortedSet<FieldId> {
        schema.all_fields().into_iter().filter(|field| !field.nullable).map(|field| field.id).collect()
    };
    let before = required(before);
    required(after).iter().all(|id| before.contains(id))
}

pub(super) fn no_column(path: &str) -> Error {
    Error::NotFound { what: format!("Column {path} does not exist in the dataset") }
}

#[cfg(test)]
mod tests {
    use arrow_schema::Schema as ArrowSchema;

    use super::*;

    fn schema() -> Schema {
        let int = |name: &str| ArrowField::new(name, DataType::Int32, true);
        let inner = ArrowField::new("in", DataType::Struct(vec![int("y")].into()), true);
        let members = DataType::Struct(vec![int("a"), inner].into());
        Schema::from_arrow(&ArrowSchema::new(vec![int("id"), ArrowField::new("st", members, true)])).unwrap()
    }

    fn gone(schema: &Schema, paths: &[&str]) -> Vec<String> {
        let ids = paths.iter().map(|path| field_at(&schema.fields, &locate(&schema.fields, path).unwrap()).unwrap().id);
        let left = Schema { fields: without(&schema.fields, &ids.collect()), ..Schema::default() };
        left.all_fields().into_iter().map(|field| format!("{} {}", field.id.0, field.name)).collect()
    }

    #[test]
    fn a_struct_goes_with_its_last_member() {
        let schema = schema();
        assert_eq!(gone(&schema, &["st.in.y"]), ["0 id", "1 st", "2 a"]);
        assert_eq!(gone(&schema, &["st.a"]), ["0 id", "1 st", "3 in", "4 y"]);
        assert_eq!(gone(&schema, &["st.a", "st.in.y"]), ["0 id"]);
        assert_eq!(gone(&schema, &["st", "st.a"]), ["0 id"]);
        let left = without(&schema.fields, &[FieldId(2)].into());
        assert_eq!(left[1].to_arrow().data_type(), &left[1].data_type);
    }

    #[test]
    fn ids_are_given_depth_first_to_those_that_have_none() {
        let mut schema = schema();
        change_at(&mut schema.fields, &[1, 1], &mut forget_ids);
        assign_ids(&mut schema.fields, &mut 9).unwrap();
        let ids: Vec<i32> = schema.all_fields().iter().map(|field| field.id.0).collect();
        assert_eq!(ids, [0, 1, 2, 9, 10]);
    }

    #[test]
    fn nullability_is_preserved_unless_a_field_takes_no_nulls_any_more() {
        let before = schema();
        let mut after = schema();
        change_at(&mut after.fields, &[1, 0], &mut |field| field.nullable = false);
        assert!(!preserves_nullability(&before, &after));
        assert!(preserves_nullability(&after, &before));
        let mut moved = after.clone();
        change_at(&mut moved.fields, &[1, 0], &mut |field| field.id = FieldId(9));
        assert!(!preserves_nullability(&after, &moved));
    }
}
