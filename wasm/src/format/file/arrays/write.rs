//! Pages of a file of 2.0: rows gather in the columns of a schema, each of which cuts pages of its own.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::DataType;

use super::page_encode::{
    ArrayPage, encode_dictionary, encode_list, encode_packed, encode_struct, encode_values, max_items,
};
use super::source::Source;
use crate::error::{Error, Result};
use crate::format::file::encoding::{Values, bitmap};
use crate::format::file::layout::append::empty_values;
use crate::format::file::layout::assemble::in_column;
use crate::format::file::layout::leaf::Dictionary;
use crate::format::file::layout::leaf_values::{LeafSource, LeafType, append_placeholders, raw_bytes};
use crate::format::file::layout::page_build::PAGE_BYTES;
use crate::format::table::{Field, FieldId, Schema};

/// What is taken at once when a page is nearly full.
const MIN_STEP_BYTES: u64 = 256 << 10;

/// The columns of a schema.
pub(in crate::format::file) struct ArrayColumns {
    fields: Vec<Field>,
    columns: Vec<Column>,
    ids: Vec<FieldId>,
}

/// The rows of a batch, on their way into pages.
pub(in crate::format::file) struct ArrayRows {
    first_row: u64,
    sources: Vec<Source>,
}

/// Pages with the column of each.
type Pages = Vec<(usize, ArrayPage)>;

/// What gathers for a page of one column, and the columns below it.
struct Column {
    index: usize,
    name: String,
    /// Below a list.
    is_item: bool,
    /// Rows of the pages that were cut.
    cut_rows: u64,
    /// The row of the file in which the page begins that gathers.
    first_row: u64,
    has_pages: bool,
    content: Content,
}

enum Content {
    Values { leaf: LeafType, values: Values, valid: Validity, is_text: bool },
    Dictionary { keys: Vec<u32>, valid: Validity, dictionary: Dictionary, key_type: DataType, value_type: DataType },
    Packed { members: Vec<LeafType>, rows: Vec<u8>, row_count: u64 },
    List { ends: Vec<u64>, valid: Validity, item_count: u64, items: Box<Column> },
    Struct { row_count: u64, members: Vec<Column> },
}

/// A bit for each row.
#[derive(Default)]
pub(super) struct Validity {
    pub(super) bits: Vec<u8>,
    pub(super) len: usize,
    pub(super) null_count: usize,
}

impl Validity {
    fn push(&mut self, count: usize, is_valid: bool) {
        bitmap::append_run(&mut self.bits, self.len, count, is_valid);
        self.len += count;
        self.null_count += if is_valid { 0 } else { count };
    }

    pub(super) fn is_null(&self, at: usize) -> bool {
        self.bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 0)
    }
}

impl ArrayColumns {
    /// # Errors
    /// `NotSupported` naming the column and its type.
    pub(in crate::format::file) fn new(schema: &Schema) -> Result<ArrayColumns> {
        let mut ids = Vec::new();
        let columns = schema.fields.iter().map(|field| Column::new(field, &field.name, false, &mut ids));
        Ok(ArrayColumns { columns: columns.collect::<Result<_>>()?, fields: schema.fields.clone(), ids })
    }

    /// The field of each column.
    pub(in crate::format::file) fn ids(&self) -> &[FieldId] {
        &self.ids
    }

    /// Looks at the rows of a batch, before any of them is taken.
    ///
    /// # Errors
    /// `Schema` and `NotSupported`, naming column and row.
    pub(in crate::format::file) fn look_at(&self, batch: &RecordBatch, first_row: u64) -> Result<ArrayRows> {
        let sources = self.fields.iter().zip(batch.columns());
        let sources = sources.map(|(field, array)| Source::of(field, array, first_row));
        Ok(ArrayRows { first_row, sources: sources.collect::<Result<_>>()? })
    }

    /// Takes rows of one top-level field from the start of a range, at least one: about as many as make a page. Returns how many, and
    /// the pages that are full.
    ///
    /// # Errors
    /// `Schema` when a dictionary has more values than its keys can name.
    pub(in crate::format::file) fn take(
        &mut self,
        field: usize,
        rows: &ArrayRows,
        range: Range<usize>,
    ) -> Result<(usize, Pages)> {
        let (Some(column), Some(source)) = (self.columns.get_mut(field), rows.sources.get(field)) else {
            return Err(Error::internal("a batch of another number of columns"));
        };
        let mut count = range.len();
        while count > 1 && source.raw_bytes(range.start..range.start + count) > PAGE_BYTES {
            count = count.div_ceil(2);
        }
        let mut pages = Vec::new();
        let row = rows.first_row.saturating_add(range.start as u64);
        column.append(source, range.start..range.start + count, row, &mut pages)?;
        Ok((count, pages))
    }

    /// The last pages.
    ///
    /// # Errors
    /// As [`ArrayColumns::take`].
    pub(in crate::format::file) fn finish(&mut self) -> Result<Pages> {
        let mut pages = Vec::new();
        self.columns.iter_mut().try_for_each(|column| column.finish(&mut pages))?;
        Ok(pages)
    }
}

impl Column {
    fn new(field: &Field, name: &str, is_item: bool, ids: &mut Vec<FieldId>) -> Result<Column> {
        let refuse = |what: String| Err(Error::not_supported(format!("{what} in data format 2.0 (column \"{name}\")")));
        if field.is_legacy_blob() || field.is_blob_v2() {
            return refuse("writing blobs".to_owned());
        }
        let index = ids.len();
        ids.push(field.id);
        let is_list = matches!(field.data_type, DataType::List(_) | DataType::LargeList(_));
        let mut child = |child: &Field| Column::new(child, &format!("{name}.{}", child.name), is_item || is_list, ids);
        let content = match (&field.data_type, field.children.as_slice()) {
            (DataType::Struct(_), children) if field.is_packed_struct() => {
                let members = children.iter().map(|child| LeafType::of(&child.data_type).filter(has_bytes));
                match members.collect::<Option<Vec<_>>>() {
                    Some(members) => Content::Packed { members, rows: Vec::new(), row_count: 0 },
                    None => return refuse(format!("a packed struct of type {}", field.data_type)),
                }
            }
            (DataType::Struct(_), children) => {
                let members = children.iter().map(&mut child).collect::<Result<Vec<_>>>()?;
                Content::Struct { row_count: 0, members }
            }
            (DataType::List(_) | DataType::LargeList(_), [item]) => {
                let items = Box::new(child(item)?);
                Content::List { ends: Vec::new(), valid: Validity::default(), item_count: 0, items }
            }
            // LanceDB does not know the type.
            (DataType::Dictionary(_, value_type), _) if matches!(**value_type, DataType::FixedSizeBinary(_)) => {
                return refuse(format!("a dictionary of {value_type}"));
            }
            (DataType::Dictionary(key_type, value_type), _) => Content::Dictionary {
                keys: Vec::new(),
                valid: Validity::default(),
                dictionary: Dictionary::new(empty_values(value_type)?),
                key_type: (**key_type).clone(),
                value_type: (**value_type).clone(),
            },
            (data_type, []) => match LeafType::of(data_type) {
                Some(leaf) => Content::Values {
                    values: leaf.empty_values(),
                    leaf,
                    valid: Validity::default(),
                    is_text: matches!(data_type, DataType::Utf8),
                },
                None => return refuse(format!("type {data_type}")),
            },
            (DataType::Map(_, _), _) => return refuse("maps".to_owned()),
            (DataType::FixedSizeList(_, _), _) => return refuse("fixed-size lists of structs".to_owned()),
            (data_type, _) => return refuse(format!("type {data_type}")),
        };
        Ok(Column { index, name: name.to_owned(), is_item, cut_rows: 0, first_row: 0, has_pages: false, content })
    }

    /// Takes slots that belong to rows of the file from `row` on.
    fn append(&mut self, source: &Source, slots: Range<usize>, row: u64, pages: &mut Pages) -> Result<()> {
        let mut slots = slots;
        while !slots.is_empty() {
            if let (Content::Dictionary { dictionary, key_type, .. }, Source::Dictionary { item_count, .. }) =
                (&self.content, source)
                && !dictionary.values.is_empty()
                && dictionary.values.len() + item_count >= max_items(key_type)
            {
                self.cut(pages)?;
            }
            if self.row_count() == 0 {
                self.first_row = if self.is_item { row } else { self.cut_rows };
            }
            let mut count = slots.len();
            // Members and items cut pages of their own.
            if !matches!(self.content, Content::Struct { .. } | Content::List { .. }) {
                let budget = PAGE_BYTES.saturating_sub(self.raw_bytes()).max(MIN_STEP_BYTES);
                while count > 1 && source.raw_bytes(slots.start..slots.start + count) > budget {
                    count = count.div_ceil(2);
                }
            }
            self.append_step(source, slots.start..slots.start + count, row, pages)?;
            slots.start += count;
            if self.raw_bytes() >= PAGE_BYTES {
                self.cut(pages)?;
            }
        }
        Ok(())
    }

    fn append_step(&mut self, source: &Source, slots: Range<usize>, row: u64, pages: &mut Pages) -> Result<()> {
        match (&mut self.content, source) {
            (Content::Values { values, valid, .. }, Source::Values { source, nulls }) => {
                let mut start = slots.start;
                while start < slots.end {
                    let is_null = |slot: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(slot));
                    let run_is_null = is_null(start);
                    let mut end = if nulls.is_none() { slots.end } else { start + 1 };
                    while end < slots.end && is_null(end) == run_is_null {
                        end += 1;
                    }
                    match run_is_null {
                        true => append_placeholders(values, end - start),
                        false => source.append_to(values, start..end),
                    }
                    valid.push(end - start, !run_is_null);
                    start = end;
                }
            }
            (
                Content::Dictionary { keys, valid, dictionary, value_type, .. },
                Source::Dictionary { keys: source, nulls, items, .. },
            ) => {
                let mut known: HashMap<u32, u32> = HashMap::new();
                for slot in slots {
                    valid.push(1, nulls.is_valid(slot));
                    let Some(item) = source.get(slot).filter(|_| nulls.is_valid(slot)) else {
                        keys.push(0);
                        continue;
                    };
                    let key = match known.get(item) {
                        Some(key) => *key,
                        None => {
                            let mut value = empty_values(value_type)?;
                            items.append_to(&mut value, *item as usize..*item as usize + 1);
                            let key = dictionary.key(&value, 0)?;
                            known.insert(*item, key);
                            key
                        }
                    };
                    keys.push(key);
                }
            }
            (Content::Packed { members, rows, row_count }, Source::Packed(sources)) => {
                let parts = members.iter().zip(sources).map(|(leaf, source)| member_bytes(leaf, source, slots.clone()));
                let parts = parts.collect::<Result<Vec<_>>>()?;
                for row in 0..slots.len() {
                    for (bytes, width) in &parts {
                        rows.extend_from_slice(bytes.get(row * width..(row + 1) * width).unwrap_or_default());
                    }
                }
                *row_count += slots.len() as u64;
            }
            (Content::List { ends, valid, item_count, items }, Source::List { ends: source, nulls, items: below }) => {
                let mut run = 0..0;
                for list in slots {
                    let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(list));
                    valid.push(1, !is_null);
                    // What lies below a null list belongs to nobody.
                    let owned = if is_null { 0..0 } else { source.items(list) };
                    *item_count += owned.len() as u64;
                    ends.push(*item_count);
                    if owned.is_empty() {
                        continue;
                    }
                    if owned.start != run.end {
                        items.append(below, run, row, pages)?;
                        run = owned.start..owned.start;
                    }
                    run.end = owned.end;
                }
                items.append(below, run, row, pages)?;
            }
            (Content::Struct { row_count, members }, Source::Struct(sources)) => {
                *row_count += slots.len() as u64;
                for (member, source) in members.iter_mut().zip(sources) {
                    member.append(source, slots.clone(), row, pages)?;
                }
            }
            _ => return Err(Error::internal("an array of another kind than its column")),
        }
        Ok(())
    }

    fn finish(&mut self, pages: &mut Pages) -> Result<()> {
        // A reader looks for a page of items, be it one of none.
        if self.row_count() > 0 || self.is_item && !self.has_pages {
            self.cut(pages)?;
        }
        match &mut self.content {
            Content::List { items, .. } => items.finish(pages),
            Content::Struct { members, .. } => members.iter_mut().try_for_each(|member| member.finish(pages)),
            _ => Ok(()),
        }
    }

    fn cut(&mut self, pages: &mut Pages) -> Result<()> {
        let row_count = self.row_count();
        let mut page = match &mut self.content {
            Content::Values { leaf, values, valid, is_text } => {
                let values = std::mem::replace(values, leaf.empty_values());
                encode_values(values, std::mem::take(valid), *is_text)?
            }
            Content::Dictionary { keys, valid, dictionary, key_type, value_type } => {
                let used = std::mem::replace(dictionary, Dictionary::new(empty_values(value_type)?));
                let page = encode_dictionary(std::mem::take(keys), std::mem::take(valid), used.values, key_type);
                page.map_err(|error| in_column(error, &self.name))?
            }
            Content::Packed { members, rows, row_count } => {
                encode_packed(members, std::mem::take(rows), std::mem::take(row_count))
            }
            Content::List { ends, valid, item_count, .. } => {
                encode_list(std::mem::take(ends), std::mem::take(valid), std::mem::take(item_count))
            }
            Content::Struct { row_count, .. } => encode_struct(std::mem::take(row_count)),
        };
        page.first_row = self.first_row;
        self.cut_rows += row_count;
        self.has_pages = true;
        pages.push((self.index, page));
        Ok(())
    }

    fn row_count(&self) -> u64 {
        match &self.content {
            Content::Values { valid, .. } | Content::Dictionary { valid, .. } | Content::List { valid, .. } => {
                valid.len as u64
            }
            Content::Packed { row_count, .. } | Content::Struct { row_count, .. } => *row_count,
        }
    }

    fn raw_bytes(&self) -> u64 {
        match &self.content {
            Content::Values { values, .. } => raw_bytes(values),
            Content::Dictionary { keys, dictionary, .. } => keys.len() as u64 * 4 + raw_bytes(&dictionary.values),
            Content::Packed { rows, .. } => rows.len() as u64,
            Content::List { ends, .. } => ends.len() as u64 * 8,
            Content::Struct { .. } => 0,
        }
    }
}

/// Whether a value is a whole number of bytes, so that it fits into a packed struct.
fn has_bytes(leaf: &LeafType) -> bool {
    match leaf {
        LeafType::Fixed { .. } => true,
        LeafType::FixedSizeList { item, .. } => has_bytes(item),
        _ => false,
    }
}

/// The values of a member of a packed struct side by side, and the bytes of one.
fn member_bytes(leaf: &LeafType, source: &LeafSource, slots: Range<usize>) -> Result<(Vec<u8>, usize)> {
    let mut values = leaf.empty_values();
    source.append_to(&mut values, slots);
    let mut width = 1;
    loop {
        match values {
            Values::Fixed { byte_width, bytes } => return Ok((bytes, width * byte_width)),
            Values::FixedSizeList { dimension, items, .. } => {
                width *= dimension;
                values = *items;
            }
            _ => return Err(Error::internal("a member of a packed struct without a width")),
        }
    }
}
