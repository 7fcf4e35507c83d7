//! Fields whose leaves lie in several data files of a fragment, as after a member of a struct was cast or added: each file is read for
//! what it has, and the parts are put together.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeListArray, GenericListArray, OffsetSizeTrait, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef};

use crate::error::{Error, Result};
use crate::format::file::null_array;
use crate::format::table::{DataFile, Field, FieldId, of_children};

/// The column of a field in a data file.
pub(crate) fn column_of(file: &DataFile, id: FieldId) -> Option<u32> {
    let at = file.fields.iter().position(|field| *field == id)?;
    u32::try_from(*file.column_indices.get(at)?).ok()
}

/// Which files hold which part of a field: indices into `files`, with what is to be read of each.
pub(crate) fn parts(field: &Field, files: &[DataFile]) -> Vec<(usize, Field)> {
    let owner_of = |id: FieldId| files.iter().position(|file| column_of(file, id).is_some());
    let mut owners = Vec::new();
    collect_owners(field, &owner_of, &mut owners);
    owners.sort_unstable();
    owners.dedup();
    match owners.as_slice() {
        [owner] => vec![(*owner, field.clone())],
        owners => owners.iter().filter_map(|owner| Some((*owner, part(field, *owner, &owner_of)?))).collect(),
    }
}

fn collect_owners(field: &Field, owner_of: &dyn Fn(FieldId) -> Option<usize>, owners: &mut Vec<usize>) {
    match field.is_one_column() {
        true => owners.extend(owner_of(field.id)),
        false => field.children.iter().for_each(|child| collect_owners(child, owner_of, owners)),
    }
}

/// A field with only the leaves that lie in one file.
fn part(field: &Field, owner: usize, owner_of: &dyn Fn(FieldId) -> Option<usize>) -> Option<Field> {
    if field.is_one_column() {
        return (owner_of(field.id) == Some(owner)).then(|| field.clone());
    }
    let children: Vec<Field> = field.children.iter().filter_map(|child| part(child, owner, owner_of)).collect();
    let data_type = match (&field.data_type, children.as_slice()) {
        (_, []) => return None,
        (data_type, children) => of_children(data_type, children),
    };
    Some(Field { data_type, children, ..field.clone() })
}

/// Puts the parts of a field together; members that no part has are null.
///
/// # Errors
/// `Corrupt` when the files do not agree on what is null and where lists begin.
pub(crate) fn merge(data_type: &DataType, parts: &[ArrayRef]) -> Result<ArrayRef> {
    let first = match parts {
        [only] if only.data_type() == data_type => return Ok(only.clone()),
        [first, ..] => first,
        [] => return Err(Error::internal("no parts of a field")),
    };
    let (len, nulls) = (first.len(), first.nulls());
    if parts.iter().any(|part| part.len() != len || part.nulls() != nulls) {
        return Err(disagree());
    }
    let nulls = nulls.cloned();
    let merged: std::result::Result<ArrayRef, ArrowError> = match data_type {
        DataType::Struct(fields) => {
            let structs = parts.iter().map(|part| cast(part.as_any().downcast_ref::<StructArray>()));
            let structs = structs.collect::<Result<Vec<_>>>()?;
            let member = |field: &FieldRef| {
                let columns: Vec<ArrayRef> =
                    structs.iter().filter_map(|part| part.column_by_name(field.name())).cloned().collect();
                match columns.as_slice() {
                    [] => null_array(field.data_type(), len),
                    columns => merge(field.data_type(), columns),
                }
            };
            let columns = fields.iter().map(member).collect::<Result<Vec<_>>>()?;
            StructArray::try_new_with_length(fields.clone(), columns, nulls, len).map(|array| Arc::new(array) as _)
        }
        DataType::FixedSizeList(item, size) => {
            let values = parts
                .iter()
                .map(|part| cast(part.as_any().downcast_ref::<FixedSizeListArray>()).map(|list| list.values().clone()));
            let values = merge(item.data_type(), &values.collect::<Result<Vec<_>>>()?)?;
            FixedSizeListArray::try_new(item.clone(), *size, values, nulls).map(|array| Arc::new(array) as _)
        }
        DataType::List(item) => lists::<i32>(item, parts, nulls)?,
        DataType::LargeList(item) => lists::<i64>(item, parts, nulls)?,
        // Lance has no map without its keys or values.
        other => return Err(Error::not_supported(format!("a column of type {other} in several data files"))),
    };
    merged.map_err(|error| Error::corrupt(error.to_string()))
}

fn lists<O: OffsetSizeTrait>(
    item: &FieldRef,
    parts: &[ArrayRef],
    nulls: Option<NullBuffer>,
) -> Result<std::result::Result<ArrayRef, ArrowError>> {
    let (offsets, values) = list_parts::<O>(parts)?;
    let values = merge(item.data_type(), &values)?;
    Ok(GenericListArray::<O>::try_new(item.clone(), offsets, values, nulls).map(|array| Arc::new(array) as _))
}

/// Offsets that all parts have, and the items of each.
fn list_parts<O: OffsetSizeTrait>(parts: &[ArrayRef]) -> Result<(OffsetBuffer<O>, Vec<ArrayRef>)> {
    let mut common: Option<OffsetBuffer<O>> = None;
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        let list = cast(part.as_any().downcast_ref::<GenericListArray<O>>())?;
        all.push(list.values().clone());
        if common.get_or_insert_with(|| list.offsets().clone()) != list.offsets() {
            return Err(disagree());
        }
    }
    Ok((common.ok_or_else(disagree)?, all))
}

fn cast<T>(array: Option<T>) -> Result<T> {
    array.ok_or_else(|| Error::internal("a part of a field of another type"))
}

fn disagree() -> Error {
    Error::corrupt("the data files of a fragment do not agree on what is null and where lists begin")
}
