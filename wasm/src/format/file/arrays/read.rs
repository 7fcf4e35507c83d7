//! Reads rows of a file of 2.0: which columns a field is made of, what is read of each, and the arrays that they give.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait, StructArray};
use arrow_schema::{DataType, FieldRef, Fields};

use super::columns::{Lists, Pages};
use super::encoding::Encoding;
use super::pieces::Pieces;
use crate::error::{Error, Result};
use crate::format::file::column::Column;
use crate::format::file::layout::array::{arrow_error, leaf_array, null_array, offset_buffer};
use crate::format::file::layout::assemble::in_column;
use crate::format::file::page_cache::PageCache;
use crate::format::file::reader::{FileReader, in_page};
use crate::format::table::{Field, FieldId};

/// A level of lists takes one step or two, and schemas nest by 64 at most.
const MAX_STEPS: usize = 256;

/// What an open file keeps of its pages.
#[derive(Default)]
pub(in crate::format::file) struct Cache {
    pub(super) pages: PageCache<Encoding>,
    /// Of a column of lists: the first item of each page, and at last the number of all items.
    item_bases: HashMap<u32, Rc<Vec<u64>>>,
}

/// A part of a field.
enum Node {
    /// The file has no column of it: nulls.
    Missing,
    Values(Leaf),
    /// A struct that is one column; also what stands for a blob.
    Packed(Leaf),
    List {
        pages: Leaf,
        lists: Option<Lists>,
        child: Box<Node>,
    },
    Struct {
        name: String,
        children: Vec<Node>,
    },
}

/// A column.
struct Leaf {
    column: u32,
    name: String,
    data_type: DataType,
    pages: Option<Pages>,
}

/// Reads rows of fields, as [`FileReader::read`] says it.
pub(in crate::format::file) async fn read(
    reader: &FileReader,
    fields: &[&Field],
    column_of: &dyn Fn(FieldId) -> Option<u32>,
    rows: &[Range<u64>],
    row_count: usize,
) -> Result<Vec<ArrayRef>> {
    let mut names = Vec::new();
    let mut nodes = fields
        .iter()
        .map(|field| resolve(field, &field.name, false, column_of, &mut names))
        .collect::<Result<Vec<_>>>()?;
    let mut columns = HashMap::new();
    for (column, name, is_item) in names {
        let decoded = reader.column(column).await.map_err(|e| in_column(e, &name))?;
        if !is_item && decoded.row_count != reader.row_count() {
            let reason = format!("{} rows in a file of {}", decoded.row_count, reader.row_count());
            return Err(in_column(Error::corrupt(reason), &name));
        }
        columns.insert(column, decoded);
    }
    let reading = Reading { columns, cache: reader.arrays() };
    for node in &mut nodes {
        reading.begin(node, rows, false)?;
    }
    let mut pieces = Pieces::default();
    for _ in 0..MAX_STEPS {
        let mut is_ready = true;
        for node in &mut nodes {
            is_ready &= reading.advance(node, &mut pieces)?;
        }
        let fetched = pieces.fetch(reader).await?;
        if is_ready {
            let arrays = nodes.iter_mut().zip(fields).map(|(node, field)| {
                let array = reading.finish(node, &field.data_type, row_count, &pieces)?;
                match array.len() == row_count {
                    true => Ok(array),
                    false => {
                        let reason = format!("{} rows, expected {row_count}", array.len());
                        Err(in_column(Error::corrupt(reason), &field.name))
                    }
                }
            });
            return arrays.collect();
        }
        if !fetched {
            return Err(Error::internal("a read that asks for nothing"));
        }
    }
    Err(Error::corrupt("a read of too many steps"))
}

/// The columns of a field. `columns` takes each with its name and whether it holds items of lists.
fn resolve(
    field: &Field,
    name: &str,
    is_item: bool,
    column_of: &dyn Fn(FieldId) -> Option<u32>,
    columns: &mut Vec<(u32, String, bool)>,
) -> Result<Node> {
    let refuse = |what: &str| Err(Error::not_supported(format!("{what} (column {name:?})")));
    let own = column_of(field.id);
    let mut leaf = |column: u32| {
        columns.push((column, name.to_owned(), is_item));
        Leaf { column, name: name.to_owned(), data_type: field.data_type.clone(), pages: None }
    };
    if field.is_packed_struct() || field.is_legacy_blob() {
        return Ok(own.map_or(Node::Missing, |column| Node::Packed(leaf(column))));
    }
    match (&field.data_type, field.children.as_slice()) {
        (DataType::Struct(fields), children) if fields.len() == children.len() => {
            let nodes = children
                .iter()
                .map(|child| resolve(child, &format!("{name}.{}", child.name), is_item, column_of, columns));
            let nodes = nodes.collect::<Result<Vec<_>>>()?;
            match own.is_none() && nodes.iter().all(|node| matches!(node, Node::Missing)) {
                true => Ok(Node::Missing),
                false => Ok(Node::Struct { name: name.to_owned(), children: nodes }),
            }
        }
        (DataType::List(_) | DataType::LargeList(_), [child]) => {
            let Some(column) = own else { return Ok(Node::Missing) };
            let pages = leaf(column);
            let child = resolve(child, &format!("{name}.{}", child.name), true, column_of, columns)?;
            Ok(Node::List { pages, lists: None, child: Box::new(child) })
        }
        (DataType::Map(_, _), _) => refuse("maps in a data file of version 2.0"),
        (DataType::FixedSizeList(_, _), [_]) => refuse("fixed-size lists of structs in a data file of version 2.0"),
        (_, []) => Ok(own.map_or(Node::Missing, |column| Node::Values(leaf(column)))),
        (other, children) => refuse(&format!("type {other} of {} fields", children.len())),
    }
}

struct Reading<'a> {
    columns: HashMap<u32, Rc<Column>>,
    /// Never borrowed over an await.
    cache: &'a RefCell<Cache>,
}

impl Reading<'_> {
    /// Says which rows are read of a node.
    fn begin(&self, node: &mut Node, rows: &[Range<u64>], is_item: bool) -> Result<()> {
        match node {
            Node::Missing => Ok(()),
            Node::Struct { children, .. } => children.iter_mut().try_for_each(|child| self.begin(child, rows, is_item)),
            // The items of a list wait for it.
            Node::Values(leaf) | Node::Packed(leaf) | Node::List { pages: leaf, .. } => {
                let column = self.column(leaf.column)?;
                let pages = Pages::of((leaf.column, &leaf.name), &column, rows, &mut self.cache.borrow_mut())?;
                if is_item {
                    pages.check_unstored(&leaf.data_type)?;
                }
                leaf.pages = Some(pages);
                Ok(())
            }
        }
    }

    /// Asks for what a node still needs; `true` when it needs nothing.
    fn advance(&self, node: &mut Node, pieces: &mut Pieces) -> Result<bool> {
        match node {
            Node::Missing => Ok(true),
            Node::Values(leaf) | Node::Packed(leaf) => leaf.pages()?.ask(pieces),
            Node::Struct { children, .. } => {
                let mut is_ready = true;
                for child in children {
                    is_ready &= self.advance(child, pieces)?;
                }
                Ok(is_ready)
            }
            Node::List { pages: leaf, lists, child } => {
                if lists.is_none() {
                    let pages = leaf.pages()?;
                    if !pages.ask(pieces)? {
                        return Ok(false);
                    }
                    let found = pages.lists(&self.item_bases(leaf)?, pieces)?;
                    self.begin(child, &found.items, true)?;
                    *lists = Some(found);
                }
                self.advance(child, pieces)
            }
        }
    }

    /// The array of a node that needs nothing more, of `len` rows.
    fn finish(&self, node: &mut Node, data_type: &DataType, len: usize, pieces: &Pieces) -> Result<ArrayRef> {
        match (node, data_type) {
            (Node::Missing, _) => null_array(data_type, len),
            (Node::Values(leaf), _) => {
                let collected = leaf.pages()?.values(data_type, pieces)?;
                self.remember(leaf)?;
                let (values, nulls) = collected.slots.finish();
                leaf_array(values, collected.dictionary, data_type, len, nulls).map_err(|e| in_column(e, &leaf.name))
            }
            (Node::Packed(leaf), DataType::Struct(fields)) => self.packed(leaf, fields, len, pieces),
            (Node::Struct { name, children }, DataType::Struct(fields)) => {
                let arrays = children.iter_mut().zip(fields);
                let arrays = arrays.map(|(child, field)| self.finish(child, field.data_type(), len, pieces));
                struct_array(fields, arrays.collect::<Result<_>>()?, len).map_err(|e| in_column(e, name))
            }
            (Node::List { pages: leaf, lists, child }, DataType::List(item)) => {
                let lists = lists.take().ok_or_else(|| Error::internal("lists that were not read"))?;
                self.list::<i32>(leaf, lists, child, item, pieces)
            }
            (Node::List { pages: leaf, lists, child }, DataType::LargeList(item)) => {
                let lists = lists.take().ok_or_else(|| Error::internal("lists that were not read"))?;
                self.list::<i64>(leaf, lists, child, item, pieces)
            }
            (_, other) => Err(Error::internal(format!("a column of type {other} is resolved as another type"))),
        }
    }

    fn list<O: OffsetSizeTrait>(
        &self,
        leaf: &Leaf,
        lists: Lists,
        child: &mut Node,
        item: &FieldRef,
        pieces: &Pieces,
    ) -> Result<ArrayRef> {
        let total = lists.ends.last().copied().unwrap_or_default();
        let item_count = usize::try_from(total).ok().and_then(O::from_usize).map(|count| count.as_usize());
        let item_count = item_count.ok_or_else(|| {
            in_column(Error::schema(format!("{total} items in one array of {}", leaf.data_type)), &leaf.name)
        })?;
        let items = self.finish(child, item.data_type(), item_count, pieces)?;
        let (_, nulls) = lists.valid.finish();
        let mut ends = lists.ends;
        ends.insert(0, 0);
        let array = offset_buffer::<O, _>(ends, |end| usize::try_from(end).ok().and_then(O::from_usize))
            .and_then(|ends| GenericListArray::<O>::try_new(item.clone(), ends, items, nulls).map_err(arrow_error));
        self.remember(leaf)?;
        array.map(|array| Arc::new(array) as ArrayRef).map_err(|e| in_column(e, &leaf.name))
    }

    fn packed(&self, leaf: &Leaf, fields: &Fields, len: usize, pieces: &Pieces) -> Result<ArrayRef> {
        let types: Vec<&DataType> = fields.iter().map(|field| field.data_type()).collect();
        let members = leaf.pages()?.members(&types, pieces)?.into_iter().zip(&types);
        self.remember(leaf)?;
        let arrays = members.map(|(values, data_type)| leaf_array(values, None, data_type, len, None));
        let array = arrays.collect::<Result<_>>().and_then(|arrays| struct_array(fields, arrays, len));
        array.map_err(|e| in_column(e, &leaf.name))
    }

    fn column(&self, column: u32) -> Result<Rc<Column>> {
        self.columns.get(&column).cloned().ok_or_else(|| Error::internal("a column whose metadata was not read"))
    }

    fn remember(&self, leaf: &Leaf) -> Result<()> {
        leaf.pages()?.remember(&mut self.cache.borrow_mut());
        Ok(())
    }

    /// The first item of each page of a column of lists.
    fn item_bases(&self, leaf: &Leaf) -> Result<Rc<Vec<u64>>> {
        if let Some(bases) = self.cache.borrow().item_bases.get(&leaf.column) {
            return Ok(bases.clone());
        }
        let column = self.column(leaf.column)?;
        let mut bases = Vec::with_capacity(column.pages.len());
        let mut next = 0u64;
        for (number, page) in column.pages.iter().enumerate() {
            bases.push(next);
            let items = match Encoding::of_page(page) {
                Ok(Encoding::List { item_count, .. }) => next.checked_add(item_count),
                Ok(_) => {
                    return Err(in_page(Error::corrupt("a list that is stored as something else"), &leaf.name, number));
                }
                Err(error) => return Err(in_page(error, &leaf.name, number)),
            };
            next = items.ok_or_else(|| in_page(Error::corrupt("more items than 2^64"), &leaf.name, number))?;
        }
        let bases = Rc::new(bases);
        self.cache.borrow_mut().item_bases.insert(leaf.column, bases.clone());
        Ok(bases)
    }
}

impl Leaf {
    fn pages(&self) -> Result<&Pages> {
        self.pages.as_ref().ok_or_else(|| Error::internal("a column whose rows are not known"))
    }
}

fn struct_array(fields: &Fields, arrays: Vec<ArrayRef>, len: usize) -> Result<ArrayRef> {
    let array = StructArray::try_new_with_length(fields.clone(), arrays, None, len);
    Ok(Arc::new(array.map_err(arrow_error)?))
}

/// Bytes of a value in memory, at least.
pub(super) fn slot_bytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::FixedSizeList(item, size) => {
            slot_bytes(item.data_type()).saturating_mul(u64::try_from(*size).unwrap_or(0))
        }
        DataType::FixedSizeBinary(size) => u64::try_from(*size).unwrap_or(0),
        DataType::Null => 0,
        other => other.primitive_width().map_or(8, |width| width as u64),
    }
}
