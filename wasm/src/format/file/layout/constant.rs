//! The constant layout: one value, or null, in every visible entry of a page.
//!
//! ```text
//! value in the description   no buffers | repetition, definition levels
//! value in buffer 0          one buffer | value, repetition, definition levels
//! null                       no buffers | repetition, definition levels
//! ```
//!
//! Either of the two level buffers may be empty: no such levels. Levels are u16, or a block where the layout says so.

use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;

use super::leaf::Leaf;
use super::rep_def::{Layers, Stored};
use super::to_usize;
use crate::error::{Error, Result};
use crate::format::file::column::Page;
use crate::format::file::encoding;
use crate::format::file::footer::{read_u16, read_u32, read_uint};
use crate::format::proto::{CompressiveEncoding, ConstantLayout};

/// A page, all of it.
pub struct Constant {
    layers: Rc<Layers>,
    /// The value; `None` for null.
    value: Option<Bytes>,
    rep: Option<Vec<u16>>,
    def: Option<Vec<u16>>,
    /// The first entry of each row, and the number of entries, with repetition levels.
    row_starts: Option<Vec<usize>>,
}

impl Constant {
    pub fn open(page: &Page, layout: ConstantLayout, buffers: &[Bytes]) -> Result<Constant> {
        let layers = Rc::new(Layers::parse(&layout.layers)?);
        let (value, levels) = match (&layout.inline_value, buffers) {
            (Some(value), []) => (Some(value.clone()), None),
            (Some(value), [rep, def]) => (Some(value.clone()), Some((rep, def))),
            (None, [value]) => (Some(scalar(value)?), None),
            (None, [value, rep, def]) => (Some(scalar(value)?), Some((rep, def))),
            (None, []) => (None, None),
            (None, [rep, def]) => (None, Some((rep, def))),
            (_, other) => return Err(Error::corrupt(format!("{} buffers in a constant page", other.len()))),
        };
        let (rep, def) = match levels {
            Some((rep, def)) => (
                decode_levels(rep, &layout.rep_compression, layout.num_rep_values)?,
                decode_levels(def, &layout.def_compression, layout.num_def_values)?,
            ),
            None => (None, None),
        };
        if (layers.max_rep > 0) != rep.is_some() && page.row_count > 0 {
            return Err(Error::corrupt(format!("{} list layers, and repetition levels do not fit", layers.max_rep)));
        }
        layers.check_levels(rep.as_deref(), def.as_deref())?;
        if let (Some(rep), Some(def)) = (&rep, &def)
            && rep.len() != def.len()
        {
            return Err(Error::corrupt(format!("{} repetition and {} definition levels", rep.len(), def.len())));
        }
        let row_starts = match &rep {
            Some(rep) if rep.first().is_some_and(|level| *level != layers.max_rep) => {
                return Err(Error::corrupt("the first entry does not begin a row"));
            }
            Some(rep) => {
                let begins =
                    rep.iter().enumerate().filter(|(_, level)| **level == layers.max_rep).map(|(entry, _)| entry);
                Some(begins.chain(std::iter::once(rep.len())).collect::<Vec<_>>())
            }
            None => None,
        };
        let rows = match (&row_starts, &def) {
            (Some(starts), _) => starts.len() as u64 - 1,
            (None, Some(def)) => def.len() as u64,
            (None, None) => page.row_count,
        };
        if rows != page.row_count {
            return Err(Error::corrupt(format!("levels of {rows} rows in a page of {}", page.row_count)));
        }
        Ok(Constant { layers, value, rep, def, row_starts })
    }

    pub fn cost_bytes(&self) -> usize {
        let levels = self.rep.as_ref().map_or(0, Vec::len) * 2 + self.def.as_ref().map_or(0, Vec::len) * 2;
        1024 + levels + self.row_starts.as_ref().map_or(0, Vec::len) * 8 + self.value.as_ref().map_or(0, Bytes::len)
    }

    pub fn decode(&self, rows: &[Range<u64>], leaf: &mut Leaf) -> Result<()> {
        // The leaf of a page of nulls needs no levels to say so.
        let is_implied_null = self.value.is_none() && self.layers.leaf_is_nullable() && !leaf.is_empty_struct();
        let stored = Stored { rep: self.rep.is_some(), def: self.def.is_some() || is_implied_null };
        leaf.begin_page(&self.layers, stored)?;
        for range in rows {
            let (start, end) = (to_usize(range.start, "a row")?, to_usize(range.end, "a row")?);
            let entries = match &self.row_starts {
                Some(starts) => match (starts.get(start), starts.get(end)) {
                    (Some(start), Some(end)) => *start..*end,
                    _ => return Err(Error::internal(format!("rows {range:?} outside of the page"))),
                },
                None => start..end,
            };
            let levels = leaf.levels.last_mut().ok_or_else(|| Error::internal("no page was begun"))?;
            let rep = self.rep.as_ref().and_then(|rep| rep.get(entries.clone()));
            let visible = match &self.def {
                Some(def) => {
                    let def = def.get(entries.clone()).unwrap_or_default();
                    if is_implied_null && def.contains(&0) {
                        let def: Vec<u16> = def.iter().map(|level| (*level).max(1)).collect();
                        levels.extend(rep, Some(&def), entries.len());
                    } else {
                        levels.extend(rep, Some(def), entries.len());
                    }
                    self.layers.count_visible(def)
                }
                None => {
                    if is_implied_null {
                        if let Some(rep) = rep {
                            levels.extend(Some(rep), None, 0);
                        }
                        levels.extend_def(1, entries.len())?;
                    } else {
                        levels.extend(rep, None, entries.len());
                    }
                    entries.len()
                }
            };
            match &self.value {
                Some(value) => leaf.push_scalar(value, visible)?,
                None => leaf.push_nulls(visible)?,
            }
        }
        Ok(())
    }
}

/// The value of an Arrow array of length 1, as its buffers: u32 count, u32 size of each, their bytes.
fn scalar(bytes: &Bytes) -> Result<Bytes> {
    let count = read_u32(bytes, 0)? as usize;
    let mut at = count.checked_mul(4).and_then(|sizes| sizes.checked_add(4));
    let mut parts = Vec::new();
    for i in 0..count {
        let size = read_u32(bytes, 4 + i * 4)? as usize;
        let start = at.ok_or_else(|| Error::corrupt("a constant's sizes overflow"))?;
        at = start.checked_add(size).filter(|end| *end <= bytes.len());
        let end = at.ok_or_else(|| {
            Error::corrupt(format!("a constant's buffer of {size} bytes at {start} of {}", bytes.len()))
        })?;
        parts.push(bytes.slice(start..end));
    }
    match parts.as_slice() {
        [value] => Ok(value.clone()),
        [offsets, data] if matches!(offsets.len(), 8 | 16) => {
            let width = offsets.len() / 2;
            let (start, end) = (read_uint(offsets, 0, width)?, read_uint(offsets, width, width)?);
            if start > end || end > data.len() as u64 {
                return Err(Error::corrupt(format!("a constant at {start}..{end} of {} bytes", data.len())));
            }
            Ok(data.slice(start as usize..end as usize))
        }
        other => Err(Error::corrupt(format!("a constant of {} buffers", other.len()))),
    }
}

fn decode_levels(bytes: &Bytes, compression: &Option<CompressiveEncoding>, count: u64) -> Result<Option<Vec<u16>>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    if let Some(compression) = compression {
        let count = to_usize(count, "levels")?;
        let levels = encoding::decode_levels(compression, bytes, count)?;
        return match levels.len() == count {
            true => Ok(Some(levels)),
            false => Err(Error::corrupt(format!("{} of {count} levels", levels.len()))),
        };
    }
    if !bytes.len().is_multiple_of(2) {
        return Err(Error::corrupt(format!("levels of {} bytes", bytes.len())));
    }
    (0..bytes.len() / 2).map(|i| read_u16(bytes, i * 2)).collect::<Result<_>>().map(Some)
}
