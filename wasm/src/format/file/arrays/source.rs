//! The arrays of a field on their way into pages, checked for what a file of 2.0 does not take.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::format::file::layout::leaf_values::{LeafSource, LeafType, Offsets};
use crate::format::table::Field;

/// A field's array.
pub(super) enum Source {
    Struct(Vec<Source>),
    List { ends: Offsets, nulls: Option<NullBuffer>, items: Box<Source> },
    Values { source: LeafSource, nulls: Option<NullBuffer> },
    Dictionary { keys: Vec<u32>, nulls: NullBuffer, items: LeafSource, item_count: usize },
    Packed(Vec<LeafSource>),
}

/// Which slots of an array count, and in which rows they lie.
struct Place<'a> {
    name: &'a str,
    row_of: &'a dyn Fn(usize) -> u64,
    /// Whether a slot is one that a reader sees: below a null list there may be anything.
    is_seen: &'a dyn Fn(usize) -> bool,
}

impl Source {
    /// The array of a top-level field, whose first row is `first_row` of the file.
    ///
    /// # Errors
    /// `Schema` naming column and row for a null where none may be, and for arrays of another shape; `NotSupported` naming column and
    /// row for a null struct.
    pub(super) fn of(field: &Field, array: &ArrayRef, first_row: u64) -> Result<Source> {
        let row_of = |row: usize| first_row.saturating_add(row as u64);
        Source::below(field, array, &Place { name: &field.name, row_of: &row_of, is_seen: &|_| true })
    }

    fn below(field: &Field, array: &ArrayRef, place: &Place<'_>) -> Result<Source> {
        let wrong = || Error::schema(format!("column \"{}\" does not take {}", place.name, array.data_type()));
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let first_null = nulls.as_ref().and_then(|nulls| {
            (0..nulls.len()).find(|slot| nulls.is_null(*slot) && (place.is_seen)(*slot)).map(place.row_of)
        });
        if let Some(row) = first_null.filter(|_| !field.nullable) {
            return Err(Error::schema(format!("column \"{}\" takes no nulls, but row {row} has one", place.name)));
        }
        if let (Some(row), DataType::Struct(_)) = (first_null, &field.data_type) {
            return Err(Error::not_supported(format!(
                "null structs in data format 2.0 (column \"{}\", row {row})",
                place.name
            )));
        }
        let name = |child: &Field| format!("{}.{}", place.name, child.name);
        match (&field.data_type, field.children.as_slice()) {
            (DataType::Struct(_), children) => {
                let array = array.as_struct_opt().filter(|array| array.num_columns() == children.len());
                let columns = array.ok_or_else(wrong)?.columns();
                let sources = children
                    .iter()
                    .zip(columns)
                    .map(|(child, column)| Source::below(child, column, &Place { name: &name(child), ..*place }));
                let sources = sources.collect::<Result<Vec<_>>>()?;
                match field.is_packed_struct() {
                    false => Ok(Source::Struct(sources)),
                    true => packed(sources, children, place),
                }
            }
            (DataType::List(_), [item]) => {
                let list = array.as_list_opt::<i32>().ok_or_else(wrong)?;
                Source::list(item, Offsets::Small(list.offsets().clone()), nulls, list.values(), place)
            }
            (DataType::LargeList(_), [item]) => {
                let list = array.as_list_opt::<i64>().ok_or_else(wrong)?;
                Source::list(item, Offsets::Large(list.offsets().clone()), nulls, list.values(), place)
            }
            (DataType::Dictionary(_, value_type), _) => {
                let dictionary = array.as_any_dictionary_opt().ok_or_else(wrong)?;
                let leaf = LeafType::of(value_type).ok_or_else(wrong)?;
                let values = dictionary.values();
                let nulls = nulls.unwrap_or_else(|| NullBuffer::new_valid(array.len()));
                // Keys of nulls may be anything; of no values, all are.
                let mut keys = match values.is_empty() {
                    true => vec![0; array.len()],
                    false => dictionary.normalized_keys(),
                };
                keys.iter_mut().enumerate().filter(|(at, _)| nulls.is_null(*at)).for_each(|(_, key)| *key = 0);
                let keys = keys.into_iter().map(|key| u32::try_from(key).map_err(|_| wrong()));
                let keys = keys.collect::<Result<Vec<_>>>()?;
                Ok(Source::Dictionary { keys, nulls, items: LeafSource::of(values, &leaf)?, item_count: values.len() })
            }
            (data_type, _) => {
                let leaf = LeafType::of(data_type).ok_or_else(wrong)?;
                Ok(Source::Values { source: LeafSource::of(array, &leaf)?, nulls })
            }
        }
    }

    fn list(
        item: &Field,
        ends: Offsets,
        nulls: Option<NullBuffer>,
        items: &ArrayRef,
        place: &Place<'_>,
    ) -> Result<Source> {
        let below = {
            let row_of = |slot: usize| (place.row_of)(ends.list_of(slot));
            let len = ends.list_count();
            let is_seen = |slot: usize| {
                let list = ends.list_of(slot);
                let is_null = || nulls.as_ref().is_some_and(|nulls| nulls.is_null(list));
                list < len && ends.items(list).contains(&slot) && !is_null() && (place.is_seen)(list)
            };
            let name = format!("{}.{}", place.name, item.name);
            Source::below(item, items, &Place { name: &name, row_of: &row_of, is_seen: &is_seen })?
        };
        Ok(Source::List { ends, nulls, items: Box::new(below) })
    }

    /// Bytes that a range of slots takes in pages, about.
    pub(super) fn raw_bytes(&self, slots: Range<usize>) -> u64 {
        let count = slots.len() as u64;
        match self {
            Source::Struct(children) => children.iter().map(|child| child.raw_bytes(slots.clone())).sum(),
            Source::List { ends, items, .. } => count * 8 + items.raw_bytes(ends.at(slots.start)..ends.at(slots.end)),
            Source::Values { source, .. } => source.raw_bytes(slots),
            Source::Dictionary { .. } => count * 4,
            Source::Packed(members) => members.iter().map(|member| member.raw_bytes(slots.clone())).sum(),
        }
    }
}

fn packed(members: Vec<Source>, fields: &[Field], place: &Place<'_>) -> Result<Source> {
    let members = members.into_iter().zip(fields).map(|(member, field)| {
        let nulls = match &member {
            Source::Values { nulls, source: LeafSource::FixedSizeList { nulls: item_nulls, .. } } => {
                if item_nulls.is_some() {
                    return Err(Error::not_supported(format!(
                        "null items in a packed struct (column \"{}.{}\")",
                        place.name, field.name
                    )));
                }
                nulls
            }
            Source::Values { nulls, .. } => nulls,
            _ => return Err(Error::internal("a packed struct of nested members")),
        };
        let is_null = |nulls: &NullBuffer, slot: usize| nulls.is_null(slot) && (place.is_seen)(slot);
        let first_null = nulls.as_ref().and_then(|nulls| (0..nulls.len()).find(|slot| is_null(nulls, *slot)));
        if let Some(slot) = first_null {
            let row = (place.row_of)(slot);
            let name = format!("{}.{}", place.name, field.name);
            return Err(Error::not_supported(format!("nulls in a packed struct (column \"{name}\", row {row})")));
        }
        match member {
            Source::Values { source, .. } => Ok(source),
            _ => Err(Error::internal("a packed struct of nested members")),
        }
    });
    Ok(Source::Packed(members.collect::<Result<_>>()?))
}
