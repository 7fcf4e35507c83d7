//! Adapt: a batch as the table stores it.
//!
//! Columns are taken by name; a missing nullable one becomes nulls. Values of another type of the family are cast where each of them keeps
//! its meaning (`batch::cast`); anything else is refused, and so is a null where the table takes none.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions,
    StructArray, make_array, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, Field, SchemaRef};

use crate::batch::cast::{CastError, cast};
use crate::error::{Error, Result};

/// # Errors
/// `Schema` naming the column and, where a value is at fault, the row, counted from `first_row`.
pub(crate) fn adapt(batch: &RecordBatch, schema: &SchemaRef, first_row: u64) -> Result<RecordBatch> {
    let given = batch.schema();
    for (at, field) in given.fields().iter().enumerate() {
        let name = field.name();
        if schema.field_with_name(name).is_err() {
            return Err(Error::schema(format!("found field not in schema: {name} at row {first_row}")));
        }
        if given.fields().iter().take(at).any(|other| other.name() == name) {
            return Err(Error::schema(format!("column \"{name}\" is given twice")));
        }
    }
    let rows = batch.num_rows();
    let columns = schema
        .fields()
        .iter()
        .map(|field| match batch.column_by_name(field.name()) {
            Some(column) => {
                let place = Place { path: field.name().clone(), first_row };
                column_as(column, field, None, &|at| at, &place)
            }
            None if field.is_nullable() => Ok(new_null_array(field.data_type(), rows)),
            None => Err(Error::schema(format!(
                "column \"{}\" takes no nulls and is missing, at row {first_row}",
                field.name()
            ))),
        })
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|error| Error::schema(error.to_string()))
}

/// One column as the table stores it; rows are counted from 0.
///
/// # Errors
/// As [`adapt`].
pub(crate) fn adapt_column(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    column_as(array, field, None, &|at| at, &Place { path: field.name().clone(), first_row: 0 })
}

/// Where in the batch we are, for messages.
struct Place {
    path: String,
    first_row: u64,
}

impl Place {
    fn member(&self, name: &str) -> Place {
        Place { path: format!("{}.{name}", self.path), first_row: self.first_row }
    }

    fn mismatch(&self, found: &DataType, expected: &DataType) -> Error {
        Error::schema(format!(
            "column \"{}\" at row {}: found type {found}, expected {expected}",
            self.path, self.first_row
        ))
    }
}

/// `row_of` maps a value to its row of the batch; `outer` says where a struct around it is null, so that its members don't count.
fn column_as(
    array: &ArrayRef,
    field: &Field,
    outer: Option<&NullBuffer>,
    row_of: &dyn Fn(usize) -> usize,
    place: &Place,
) -> Result<ArrayRef> {
    let array = if matches!(array.data_type(), DataType::Null) && !matches!(field.data_type(), DataType::Null) {
        new_null_array(field.data_type(), array.len())
    } else {
        array.clone()
    };
    if !field.is_nullable()
        && let Some(at) = first_null(&array, outer)
    {
        let row = place.first_row.saturating_add(row_of(at) as u64);
        return Err(Error::schema(format!("column \"{}\" takes no nulls and is null at row {row}", place.path)));
    }
    values_as(&array, field.data_type(), outer, row_of, place)
}

fn first_null(array: &ArrayRef, outer: Option<&NullBuffer>) -> Option<usize> {
    // Logical nulls: a dictionary's key may point at a null.
    let nulls = array.logical_nulls()?;
    (nulls.null_count() > 0).then_some(())?;
    (0..array.len()).find(|at| nulls.is_null(*at) && outer.is_none_or(|outer| outer.is_valid(*at)))
}

fn values_as(
    array: &ArrayRef,
    to: &DataType,
    outer: Option<&NullBuffer>,
    row_of: &dyn Fn(usize) -> usize,
    place: &Place,
) -> Result<ArrayRef> {
    use DataType as D;
    Ok(match (array.data_type(), to) {
        (D::Struct(_), D::Struct(fields)) => {
            let array = array.as_struct();
            if let Some(stranger) =
                array.fields().iter().find(|given| !fields.iter().any(|own| own.name() == given.name()))
            {
                let path = place.member(stranger.name()).path;
                return Err(Error::schema(format!("found field not in schema: {path} at row {}", place.first_row)));
            }
            let nulls = NullBuffer::union(array.nulls(), outer);
            let columns = fields
                .iter()
                .map(|field| {
                    let place = place.member(field.name());
                    match array.column_by_name(field.name()) {
                        Some(column) => column_as(column, field, nulls.as_ref(), row_of, &place),
                        None if field.is_nullable() => Ok(new_null_array(field.data_type(), array.len())),
                        None => Err(Error::schema(format!(
                            "column \"{}\" takes no nulls and is missing, at row {}",
                            place.path, place.first_row
                        ))),
                    }
                })
                .collect::<Result<Vec<_>>>()?;
            built(StructArray::try_new_with_length(fields.clone(), columns, array.nulls().cloned(), array.len()))?
        }
        (D::List(_), D::List(item)) => list_as::<i32, i32>(array, item, row_of, place)?,
        (D::LargeList(_), D::LargeList(item)) => list_as::<i64, i64>(array, item, row_of, place)?,
        (D::List(_), D::LargeList(item)) => list_as::<i32, i64>(array, item, row_of, place)?,
        (D::LargeList(_), D::List(item)) => list_as::<i64, i32>(array, item, row_of, place)?,
        (D::FixedSizeList(_, found), D::FixedSizeList(item, size)) if found == size => {
            let list = array.as_fixed_size_list();
            let width = usize::try_from(*size).unwrap_or(0).max(1);
            let place = place.member(item.name());
            // A null list has values all the same, and they don't count.
            let outer = list.nulls().map(|nulls| nulls.expand(width));
            let values = column_as(list.values(), item, outer.as_ref(), &|at| row_of(at / width), &place)?;
            let length = list.len();
            if *size == 0 {
                built(FixedSizeListArray::try_new_with_length(item.clone(), 0, values, list.nulls().cloned(), length))?
            } else {
                built(FixedSizeListArray::try_new(item.clone(), *size, values, list.nulls().cloned()))?
            }
        }
        (D::List(_), D::FixedSizeList(item, size)) => fixed_list::<i32>(array, item, *size, row_of, place)?,
        (D::LargeList(_), D::FixedSizeList(item, size)) => fixed_list::<i64>(array, item, *size, row_of, place)?,
        (D::FixedSizeList(_, _), D::List(_) | D::LargeList(_)) => {
            let list = array.as_fixed_size_list();
            let lists =
                if matches!(to, D::List(_)) { counted::<i32>(list, place)? } else { counted::<i64>(list, place)? };
            values_as(&lists, to, outer, row_of, place)?
        }
        (D::Map(_, _), D::Map(entries, is_sorted)) => {
            let map = array.as_map();
            let offsets = map.offsets();
            let row = |at: usize| row_of(list_of(offsets, at));
            let given: ArrayRef = Arc::new(map.entries().clone());
            let values = column_as(&given, entries, None, &row, &place.member(entries.name()))?;
            let values = values.as_struct().clone();
            built(MapArray::try_new(entries.clone(), offsets.clone(), values, map.nulls().cloned(), *is_sorted))?
        }
        (found, to) if found == to => array.clone(),
        (found, to) => match cast(array, to) {
            Ok(cast) => cast,
            Err(CastError::Types) => return Err(place.mismatch(found, to)),
            Err(CastError::TooLong) => return Err(too_long(place)),
            Err(CastError::Row(at)) => match outer {
                // The member of a null struct may hold anything: it is null.
                Some(outer) if outer.is_null(at) => values_as(&masked(array, outer)?, to, None, row_of, place)?,
                _ => {
                    let row = place.first_row.saturating_add(row_of(at) as u64);
                    return Err(Error::schema(format!(
                        "column \"{}\" at row {row}: the {found} value does not fit {to}",
                        place.path
                    )));
                }
            },
        },
    })
}

/// The array with nulls where `outer` has them.
fn masked(array: &ArrayRef, outer: &NullBuffer) -> Result<ArrayRef> {
    let nulls = NullBuffer::union(array.nulls(), Some(outer));
    let data = array.to_data().into_builder().nulls(nulls).build();
    data.map(make_array).map_err(|error| Error::internal(error.to_string()))
}

fn list_as<F: OffsetSizeTrait, T: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &Arc<Field>,
    row_of: &dyn Fn(usize) -> usize,
    place: &Place,
) -> Result<ArrayRef> {
    let list = array.as_list::<F>();
    let offsets = list.offsets();
    let row = |at: usize| row_of(list_of(offsets, at));
    // Values that no list holds (before the first offset, under null lists) don't count.
    let outer = unlisted(list);
    let values = column_as(list.values(), item, outer.as_ref(), &row, &place.member(item.name()))?;
    let offsets: Option<Vec<T>> = offsets.iter().map(|offset| T::from_usize(offset.as_usize())).collect();
    let offsets = offsets.ok_or_else(|| too_long(place))?;
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    built(GenericListArray::<T>::try_new(item.clone(), offsets, values, list.nulls().cloned()))
}

/// Lists of one length, or the row of one that has another.
fn fixed_list<O: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &Arc<Field>,
    size: i32,
    row_of: &dyn Fn(usize) -> usize,
    place: &Place,
) -> Result<ArrayRef> {
    let list = array.as_list::<O>();
    let width = usize::try_from(size).unwrap_or(0);
    let items = list.values().to_data();
    let mut values = MutableArrayData::new(vec![&items], true, list.len().saturating_mul(width));
    for (at, pair) in list.offsets().windows(2).enumerate() {
        let (start, end) = (pair[0].as_usize(), pair[1].as_usize());
        let extended = if list.is_null(at) {
            values.try_extend_nulls(width)
        } else if end - start == width {
            values.try_extend(0, start, end)
        } else {
            let row = place.first_row.saturating_add(row_of(at) as u64);
            let found = end - start;
            return Err(Error::schema(format!(
                "column \"{}\" at row {row}: found a list of length {found}, expected {width}",
                place.path
            )));
        };
        extended.map_err(|_| too_long(place))?;
    }
    let values = make_array(values.freeze());
    let field = Arc::new(Field::new("item", values.data_type().clone(), true));
    let lists = built(FixedSizeListArray::try_new(field, size, values, list.nulls().cloned()))?;
    values_as(&lists, &DataType::FixedSizeList(item.clone(), size), None, row_of, place)
}

/// Lists of one length as lists that say their length.
fn counted<O: OffsetSizeTrait>(list: &FixedSizeListArray, place: &Place) -> Result<ArrayRef> {
    let width = usize::try_from(list.value_length()).unwrap_or(0);
    let offsets: Option<Vec<O>> = (0..=list.len()).map(|at| O::from_usize(at.checked_mul(width)?)).collect();
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets.ok_or_else(|| too_long(place))?));
    let item = Arc::new(Field::new("item", list.value_type(), true));
    built(GenericListArray::<O>::try_new(item, offsets, list.values().clone(), list.nulls().cloned()))
}

/// Which values some valid list holds; `None` when all do.
fn unlisted<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> Option<NullBuffer> {
    let offsets = list.offsets();
    let (first, last) = (offsets.iter().next()?.as_usize(), offsets.iter().last()?.as_usize());
    if first == 0 && last == list.values().len() && list.null_count() == 0 {
        return None;
    }
    let mut held = vec![false; list.values().len()];
    for at in (0..list.len()).filter(|at| list.is_valid(*at)) {
        let (start, end) = (offsets.get(at)?.as_usize(), offsets.get(at + 1)?.as_usize());
        held.get_mut(start..end)?.fill(true);
    }
    Some(NullBuffer::from(held))
}

fn list_of<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, value: usize) -> usize {
    offsets.partition_point(|offset| offset.as_usize() <= value).saturating_sub(1)
}

fn too_long(place: &Place) -> Error {
    Error::schema(format!("column \"{}\" at row {}: more than 2 GB in one batch", place.path, place.first_row))
}

fn built<A: Array + 'static>(array: std::result::Result<A, arrow_schema::ArrowError>) -> Result<ArrayRef> {
    Ok(Arc::new(array.map_err(|error| Error::schema(error.to_string()))?))
}
