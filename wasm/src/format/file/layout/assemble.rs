//! Arrays of nested fields: which leaf columns a read needs, and how their levels make structs and lists of their values.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, StructArray};
use arrow_schema::{DataType, FieldRef};

use super::array::{arrow_error, leaf_array, null_array, offset_buffer};
use super::leaf::Leaf;
use super::rep_def::{LayerKind, Levels, ListOffsets, Validity};
use crate::error::{Error, Result};
use crate::format::table::{Field, FieldId};

/// A leaf column to read.
pub struct LeafColumn {
    /// Its column in the file.
    pub column: u32,
    /// The names from the top-level field on, for errors.
    pub name: String,
    /// Rows of the column per row of the file: more than one inside of fixed-size lists.
    pub slots_per_row: u64,
    pub leaf: Leaf,
}

/// How a field is made of leaves.
pub enum Node {
    /// No column of the file holds any part of it: nulls.
    Missing,
    /// An index into the leaf columns.
    Leaf(usize),
    List(Box<Node>),
    FixedSizeList(Box<Node>, usize),
    Struct(Vec<Node>),
}

/// The tree of a top-level field; its leaves are appended to `leaves`.
///
/// # Errors
/// `NotSupported` naming the column and its type.
pub fn resolve(
    field: &Field,
    column_of: &dyn Fn(FieldId) -> Option<u32>,
    leaves: &mut Vec<LeafColumn>,
) -> Result<Node> {
    Resolve { above: Vec::new(), slots_per_row: 1, column_of, leaves }.field(field, &field.name)
}

struct Resolve<'a> {
    /// Layers above the field, outermost first.
    above: Vec<LayerKind>,
    slots_per_row: u64,
    column_of: &'a dyn Fn(FieldId) -> Option<u32>,
    leaves: &'a mut Vec<LeafColumn>,
}

impl Resolve<'_> {
    fn field(&mut self, field: &Field, name: &str) -> Result<Node> {
        let refuse = |what: &str| Err(Error::not_supported(format!("{what} (column {name:?})")));
        if field.is_one_column() {
            let Some(column) = (self.column_of)(field.id) else { return Ok(Node::Missing) };
            let shape = std::iter::once(LayerKind::Item).chain(self.above.iter().rev().copied()).collect();
            let leaf = match Leaf::new(&field.data_type, shape) {
                Ok(leaf) => leaf,
                Err(Error::NotSupported { feature }) => return refuse(&feature),
                Err(other) => return Err(other),
            };
            self.leaves.push(LeafColumn { column, name: name.to_owned(), slots_per_row: self.slots_per_row, leaf });
            return Ok(Node::Leaf(self.leaves.len() - 1));
        }
        match (&field.data_type, field.children.as_slice()) {
            (DataType::List(_) | DataType::LargeList(_) | DataType::Map(_, _), [child]) => {
                let node = self.child(LayerKind::List, child, name)?;
                Ok(if matches!(node, Node::Missing) { node } else { Node::List(Box::new(node)) })
            }
            (DataType::Struct(fields), children) if fields.len() == children.len() => {
                let nodes = children.iter().map(|child| self.child(LayerKind::Item, child, name));
                let nodes = nodes.collect::<Result<Vec<_>>>()?;
                let is_missing = nodes.iter().all(|node| matches!(node, Node::Missing));
                Ok(if is_missing { Node::Missing } else { Node::Struct(nodes) })
            }
            (DataType::FixedSizeList(_, size), [child]) if *size > 0 => {
                if self.above.contains(&LayerKind::List) {
                    // No writer has a form for them.
                    return refuse("fixed-size lists of structs inside lists");
                }
                let dimension = size.unsigned_abs();
                let outer = self.slots_per_row;
                self.slots_per_row = outer
                    .checked_mul(u64::from(dimension))
                    .ok_or_else(|| Error::not_supported(format!("fixed-size lists of this size (column {name:?})")))?;
                let node = self.child(LayerKind::Item, child, name);
                self.slots_per_row = outer;
                let node = node?;
                let is_missing = matches!(node, Node::Missing);
                Ok(if is_missing { node } else { Node::FixedSizeList(Box::new(node), dimension as usize) })
            }
            (other, children) => refuse(&format!("type {other} of {} fields", children.len())),
        }
    }

    fn child(&mut self, layer: LayerKind, child: &Field, name: &str) -> Result<Node> {
        self.above.push(layer);
        let node = self.field(child, &format!("{name}.{}", child.name));
        self.above.pop();
        node
    }
}

/// Makes the array of a top-level field of `row_count` rows.
///
/// # Errors
/// `Corrupt` when values and levels contradict each other; `Schema` when an array is too large for its type.
pub fn assemble(field: &Field, node: &Node, leaves: &mut [LeafColumn], row_count: usize) -> Result<ArrayRef> {
    let assembled = assemble_below(&field.data_type, &field.name, node, leaves)?;
    let Some((array, _)) = assembled else { return null_array(&field.data_type, row_count) };
    if array.len() != row_count {
        return Err(in_column(Error::corrupt(format!("{} rows, expected {row_count}", array.len())), &field.name));
    }
    Ok(array)
}

/// `None` when the field is missing.
fn assemble_below(
    data_type: &DataType,
    name: &str,
    node: &Node,
    leaves: &mut [LeafColumn],
) -> Result<Option<(ArrayRef, Vec<Levels>)>> {
    match (node, data_type) {
        (Node::Missing, _) => Ok(None),
        (Node::Leaf(index), _) => {
            let column = leaves.get_mut(*index).ok_or_else(|| Error::internal(format!("no leaf {index}")))?;
            let LeafColumn { name, leaf, .. } = column;
            leaf_of(leaf, data_type).map(Some).map_err(|e| in_column(e, name))
        }
        (Node::List(child), DataType::List(item)) => list::<i32>(item, name, child, leaves),
        (Node::List(child), DataType::LargeList(item)) => list::<i64>(item, name, child, leaves),
        (Node::List(child), DataType::Map(entries, is_sorted)) => {
            let child_name = format!("{name}.{}", entries.name());
            let Some((items, mut levels)) = assemble_below(entries.data_type(), &child_name, child, leaves)? else {
                return Ok(None);
            };
            let (offsets, nulls) = list_parts::<i32>(&mut levels, items.len()).map_err(|e| in_column(e, name))?;
            let items = items.as_any().downcast_ref::<StructArray>().cloned();
            let items = items.ok_or_else(|| Error::internal("the entries of a map are no struct"))?;
            let map = MapArray::try_new(entries.clone(), offsets, items, nulls, *is_sorted);
            let map = map.map_err(|e| in_column(arrow_error(e), name))?;
            Ok(Some((Arc::new(map), levels)))
        }
        (Node::FixedSizeList(child, dimension), DataType::FixedSizeList(item, size)) => {
            let child_name = format!("{name}.{}", item.name());
            let Some((items, mut levels)) = assemble_below(item.data_type(), &child_name, child, leaves)? else {
                return Ok(None);
            };
            let mut validity = Validity::default();
            for page in &mut levels {
                page.take_repeats(*dimension).map_err(|e| in_column(e, name))?;
                page.take_items(&mut validity).map_err(|e| in_column(e, name))?;
            }
            let array = FixedSizeListArray::try_new(item.clone(), *size, items, validity.finish());
            let array = array.map_err(|e| in_column(arrow_error(e), name))?;
            Ok(Some((Arc::new(array), levels)))
        }
        (Node::Struct(children), DataType::Struct(fields)) => {
            let mut arrays: Vec<Option<ArrayRef>> = Vec::with_capacity(children.len());
            let mut all_levels: Option<Vec<Levels>> = None;
            for (child, field) in children.iter().zip(fields) {
                let child_name = format!("{name}.{}", field.name());
                match assemble_below(field.data_type(), &child_name, child, leaves)? {
                    Some((array, levels)) => {
                        arrays.push(Some(array));
                        // Every child carries the levels of the struct.
                        all_levels.get_or_insert(levels);
                    }
                    None => arrays.push(None),
                }
            }
            let Some(mut levels) = all_levels else { return Ok(None) };
            let mut validity = Validity::default();
            for page in &mut levels {
                page.take_items(&mut validity).map_err(|e| in_column(e, name))?;
            }
            let len = validity.slot_count();
            let arrays = arrays.into_iter().zip(fields);
            let arrays = arrays.map(|(array, field)| array.map_or_else(|| null_array(field.data_type(), len), Ok));
            let arrays = arrays.collect::<Result<_>>()?;
            let array = StructArray::try_new_with_length(fields.clone(), arrays, validity.finish(), len);
            let array = array.map_err(|e| in_column(arrow_error(e), name))?;
            Ok(Some((Arc::new(array), levels)))
        }
        (_, other) => Err(Error::internal(format!("column {name:?} of type {other} is resolved as another type"))),
    }
}

fn leaf_of(leaf: &mut Leaf, data_type: &DataType) -> Result<(ArrayRef, Vec<Levels>)> {
    let (values, dictionary, mut levels) = leaf.take();
    let mut validity = Validity::default();
    for page in &mut levels {
        page.take_items(&mut validity)?;
    }
    let len = validity.slot_count();
    Ok((leaf_array(values, dictionary, data_type, len, validity.finish())?, levels))
}

fn list<O: OffsetSizeTrait>(
    item: &FieldRef,
    name: &str,
    child: &Node,
    leaves: &mut [LeafColumn],
) -> Result<Option<(ArrayRef, Vec<Levels>)>> {
    let child_name = format!("{name}.{}", item.name());
    let Some((items, mut levels)) = assemble_below(item.data_type(), &child_name, child, leaves)? else {
        return Ok(None);
    };
    let (offsets, nulls) = list_parts::<O>(&mut levels, items.len()).map_err(|e| in_column(e, name))?;
    let array = GenericListArray::<O>::try_new(item.clone(), offsets, items, nulls);
    let array = array.map_err(|e| in_column(arrow_error(e), name))?;
    Ok(Some((Arc::new(array), levels)))
}

type ListParts<O> = (arrow_buffer::OffsetBuffer<O>, Option<arrow_buffer::NullBuffer>);

fn list_parts<O: OffsetSizeTrait>(levels: &mut [Levels], item_count: usize) -> Result<ListParts<O>> {
    let (mut offsets, mut validity) = (ListOffsets::default(), Validity::default());
    for page in levels {
        page.take_lists(&mut offsets, &mut validity)?;
    }
    if usize::try_from(offsets.items) != Ok(item_count) {
        return Err(Error::corrupt(format!("lists of {} items, but {item_count} items", offsets.items)));
    }
    let mut all = offsets.starts;
    all.push(offsets.items);
    let offsets = offset_buffer::<O, _>(all, |end| usize::try_from(end).ok().and_then(O::from_usize))?;
    Ok((offsets, validity.finish()))
}

/// Names the column of an error.
pub fn in_column(error: Error, name: &str) -> Error {
    match error {
        Error::Corrupt { path, offset, reason } if path.is_empty() => {
            Error::Corrupt { path, offset, reason: format!("column {name:?}: {reason}") }
        }
        Error::NotSupported { feature } => Error::not_supported(format!("{feature} (column {name:?})")),
        Error::Schema { message } => Error::schema(format!("column {name:?}: {message}")),
        other => other,
    }
}
