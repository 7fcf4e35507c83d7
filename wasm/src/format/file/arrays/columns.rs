//! Rows of one column on their way from pages to values.

use std::ops::Range;
use std::rc::Rc;

use arrow_schema::DataType;

use super::MAX_UNSTORED_BYTES;
use super::encoding::Encoding;
use super::pieces::Pieces;
use super::read::{Cache, slot_bytes};
use super::slots::Slots;
use crate::error::{Error, Result};
use crate::format::file::column::{Column, PageRows};
use crate::format::file::encoding::Values;
use crate::format::file::layout::append::{Indices, checked_index, empty_values};
use crate::format::file::layout::assemble::in_column;
use crate::format::file::layout::leaf::Dictionary;
use crate::format::file::reader::in_page;

/// The pages of a column that hold the rows of a read.
pub(super) struct Pages {
    pub(super) column: u32,
    /// The names from the top-level field on, for errors.
    pub(super) name: String,
    parts: Vec<Part>,
}

/// Rows of one page.
struct Part {
    page: usize,
    row_count: u64,
    rows: Vec<Range<u64>>,
    encoding: Rc<Encoding>,
}

/// What the values of a column are collected in.
pub(super) struct Collected {
    pub(super) slots: Slots,
    /// The values that the slots are keys of.
    pub(super) dictionary: Option<Dictionary>,
}

/// Lists of some rows, and the items that they own.
pub(super) struct Lists {
    /// The end of each, counted from the first item that was read.
    pub(super) ends: Vec<u64>,
    pub(super) valid: Slots,
    /// Ascending, disjoint rows of the column of items.
    pub(super) items: Vec<Range<u64>>,
}

impl Pages {
    /// # Errors
    /// `Corrupt` when the column does not have the rows or the pages are not what they should be; `NotSupported` naming the encoding.
    pub(super) fn of(
        (column, name): (u32, &str),
        pages: &Column,
        rows: &[Range<u64>],
        cache: &mut Cache,
    ) -> Result<Pages> {
        if let Some(last) = rows.last().filter(|last| last.end > pages.row_count) {
            let reason = format!("{} rows, row {} is needed", pages.row_count, last.end - 1);
            return Err(in_column(Error::corrupt(reason), name));
        }
        let mut parts = Vec::new();
        for PageRows { page: number, rows } in pages.split(rows) {
            let Some(page) = pages.pages.get(number) else { continue };
            let encoding = match cache.pages.get((column, number)) {
                Some(encoding) => encoding,
                None => Rc::new(Encoding::of_page(page).map_err(|e| in_page(e, name, number))?),
            };
            parts.push(Part { page: number, row_count: page.row_count, rows, encoding });
        }
        Ok(Pages { column, name: name.to_owned(), parts })
    }

    /// Asks for the bytes that are missing; `true` when there are none.
    pub(super) fn ask(&self, pieces: &mut Pieces) -> Result<bool> {
        let mut is_ready = true;
        for part in &self.parts {
            let ready = part.encoding.ask(&part.rows, part.row_count, pieces);
            is_ready &= ready.map_err(|e| in_page(e, &self.name, part.page))?;
        }
        Ok(is_ready)
    }

    /// Keeps what was learnt of the pages.
    pub(super) fn remember(&self, cache: &mut Cache) {
        for part in &self.parts {
            cache.pages.put((self.column, part.page), part.encoding.clone(), part.encoding.cost_bytes());
        }
    }

    /// Refuses more values than bytes stand for. The rows of a read are the caller's, but items of lists are claims.
    pub(super) fn check_unstored(&self, data_type: &DataType) -> Result<()> {
        let slot_bytes = slot_bytes(data_type);
        let unstored = |part: &Part| {
            let count = part.rows.iter().map(|rows| rows.end - rows.start).sum();
            part.encoding.unstored_bytes(count, slot_bytes)
        };
        let total = self.parts.iter().map(unstored).fold(0, u64::saturating_add);
        match total <= MAX_UNSTORED_BYTES {
            true => Ok(()),
            false => Err(in_column(Error::corrupt(format!("{total} bytes of nulls in lists")), &self.name)),
        }
    }

    /// The values, all of whose bytes are there.
    pub(super) fn values(&self, data_type: &DataType, pieces: &Pieces) -> Result<Collected> {
        let (values, mut dictionary) = match data_type {
            DataType::Dictionary(_, value_type) => {
                let keys = Values::Fixed { byte_width: 4, bytes: Vec::new() };
                (keys, Some(Dictionary::new(empty_values(value_type).map_err(|e| in_column(e, &self.name))?)))
            }
            other => (empty_values(other).map_err(|e| in_column(e, &self.name))?, None),
        };
        let mut slots = Slots::new(values);
        for part in &self.parts {
            let decoded = match &mut dictionary {
                None => part.encoding.decode(&part.rows, pieces, &mut slots),
                Some(dictionary) => part.keys(dictionary, pieces, &mut slots),
            };
            decoded.map_err(|e| in_page(e, &self.name, part.page))?;
        }
        Ok(Collected { slots, dictionary })
    }

    /// The members of a packed struct, one after the other. `members` are those of the struct in order.
    pub(super) fn members(&self, members: &[&DataType], pieces: &Pieces) -> Result<Vec<Values>> {
        let all = members.iter().map(|member| empty_values(member).map_err(|e| in_column(e, &self.name)));
        let mut all = all.collect::<Result<Vec<_>>>()?;
        for part in &self.parts {
            let split = part.members(&mut all, pieces);
            split.map_err(|e| in_page(e, &self.name, part.page))?;
        }
        Ok(all)
    }

    /// Lists of the column; `item_bases` are the first items of its pages.
    pub(super) fn lists(&self, item_bases: &[u64], pieces: &Pieces) -> Result<Lists> {
        let mut lists = Lists { ends: Vec::new(), valid: Slots::new(Values::Nulls { len: 0 }), items: Vec::new() };
        for part in &self.parts {
            let base = item_bases.get(part.page).copied().unwrap_or_default();
            part.lists(base, &mut lists, pieces).map_err(|e| in_page(e, &self.name, part.page))?;
        }
        Ok(lists)
    }
}

impl Part {
    /// Appends keys into `dictionary`, which learns the values of this page that are used.
    fn keys(&self, dictionary: &mut Dictionary, pieces: &Pieces, out: &mut Slots) -> Result<()> {
        let Encoding::Dictionary { indices, .. } = &*self.encoding else {
            return match &*self.encoding {
                Encoding::Nulls => self.encoding.decode(&self.rows, pieces, out),
                _ => Err(Error::corrupt("a dictionary column without a dictionary")),
            };
        };
        let items = self.encoding.items(pieces, &dictionary.values)?;
        let indices = indices.numbers(&self.rows, pieces)?;
        let mut known: Vec<Option<u32>> = vec![None; items.values.len()];
        let start = out.values.len();
        for (at, index) in Indices::new(&indices, 0..indices.len())?.enumerate() {
            // Item 0 is none of the page's.
            let index = checked_index(index, items.values.len() - 1)? + 1;
            let is_null = items.is_null(index);
            let key = match known.get(index).copied().flatten() {
                Some(key) => key,
                None if is_null => 0,
                None => dictionary.key(&items.values, index)?,
            };
            if let Some(slot) = known.get_mut(index) {
                *slot = Some(key);
            }
            let Values::Fixed { bytes, .. } = &mut out.values else {
                return Err(Error::internal("keys are 32-bit values"));
            };
            bytes.extend_from_slice(&key.to_le_bytes());
            if is_null {
                out.mark_null(start + at);
            }
        }
        Ok(())
    }

    fn members(&self, members: &mut [Values], pieces: &Pieces) -> Result<()> {
        let Encoding::PackedStruct { widths, .. } = &*self.encoding else {
            return Err(Error::corrupt("a packed struct that is stored as something else"));
        };
        if widths.len() != members.len() {
            let found = widths.len();
            return Err(Error::corrupt(format!("a packed struct of {found} members, {} expected", members.len())));
        }
        for rows in &self.rows {
            let bytes = self.encoding.packed_rows(rows, pieces)?;
            let row_bytes: usize = widths.iter().sum();
            let mut from = 0;
            for (member, width) in members.iter_mut().zip(widths) {
                for row in bytes.chunks_exact(row_bytes.max(1)) {
                    push_bytes(member, row.get(from..from + width).unwrap_or_default())?;
                }
                from += width;
            }
        }
        Ok(())
    }

    fn lists(&self, base: u64, lists: &mut Lists, pieces: &Pieces) -> Result<()> {
        let Encoding::List { ends, item_count } = &*self.encoding else {
            return Err(Error::corrupt("a list that is stored as something else"));
        };
        for rows in &self.rows {
            let spans = ends.spans(rows, *item_count, pieces)?;
            let start = lists.ends.len();
            let before = lists.ends.last().copied().unwrap_or_default();
            let place = |end: u64| base.checked_add(end).ok_or_else(|| Error::corrupt("more items than 2^64"));
            let items = place(spans.start)?..place(spans.end())?;
            let total = before.checked_add(items.end - items.start);
            total.ok_or_else(|| Error::corrupt("more items than 2^64"))?;
            lists.ends.extend(spans.ends.iter().map(|end| before + (end - spans.start)));
            spans.nulls.iter().for_each(|at| lists.valid.mark_null(start + at));
            lists.valid.values = Values::Nulls { len: lists.ends.len() };
            match lists.items.last_mut() {
                Some(last) if last.end == items.start => last.end = items.end,
                _ if items.is_empty() => {}
                _ => lists.items.push(items),
            }
        }
        Ok(())
    }
}

/// Appends one value, or one fixed-size list of values, of its bytes.
fn push_bytes(values: &mut Values, stored: &[u8]) -> Result<()> {
    match values {
        Values::Fixed { byte_width, bytes } if stored.len() == *byte_width => bytes.extend_from_slice(stored),
        Values::FixedSizeList { dimension, len, items, .. } if stored.len().is_multiple_of(*dimension) => {
            let width = stored.len() / *dimension;
            stored.chunks_exact(width.max(1)).try_for_each(|item| push_bytes(items, item))?;
            *len += 1;
        }
        _ => return Err(Error::corrupt(format!("a member of a packed struct that has {} bytes", stored.len()))),
    }
    Ok(())
}
