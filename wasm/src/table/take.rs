//! Take: given rows of a snapshot, by offset or by row id, without reading others.
//!
//! The rows come in the table's order, and numbers of no live row are passed over. A row comes as often as its offset is given, and once
//! if its id is: as LanceDB does it.

use std::ops::Range;
use std::rc::Rc;

use crate::error::Result;
use crate::format::table::RowIdIndex;
use crate::table::database::Engine;
use crate::table::fragment_rows::FragmentRows;
use crate::table::lineage;
use crate::table::matches::Window;
use crate::table::snapshot::Snapshot;

/// Which rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// Positions among the live rows, from 0.
    Offsets(Vec<u64>),
    /// What `_rowid` says.
    Ids(Vec<u64>),
}

/// The given rows of a snapshot, window by window.
pub(crate) struct Take {
    engine: Rc<Engine>,
    snapshot: Rc<Snapshot>,
    rows: Rows,
    /// Numbers before this one are done.
    at: usize,
    fragment: usize,
    /// Live rows of the fragments before.
    live_before: u64,
    open: Option<Rc<FragmentRows>>,
}

impl Take {
    /// # Errors
    /// `Corrupt` for stable row ids that do not fit their fragments.
    pub(crate) fn new(engine: Rc<Engine>, snapshot: Rc<Snapshot>, mut rows: Rows) -> Result<Take> {
        match &mut rows {
            Rows::Offsets(numbers) => numbers.sort_unstable(),
            Rows::Ids(numbers) => {
                if lineage::is_kept(&snapshot.manifest) {
                    *numbers = addresses(&engine, &snapshot, numbers)?;
                }
                numbers.sort_unstable();
                numbers.dedup();
            }
        }
        Ok(Take { engine, snapshot, rows, at: 0, fragment: 0, live_before: 0, open: None })
    }

    /// Rows of one fragment, each once; at most `max_rows` of them.
    ///
    /// # Errors
    /// As opening a fragment.
    pub(crate) async fn next(&mut self, max_rows: u64) -> Result<Option<Window>> {
        loop {
            let Some(fragment) = self.snapshot.manifest.fragments.get(self.fragment) else { return Ok(None) };
            let (numbers, first, count) = match &self.rows {
                Rows::Offsets(numbers) => (numbers, self.live_before, fragment.live_rows()),
                Rows::Ids(numbers) => (numbers, fragment.id.0 << 32, fragment.physical_rows),
            };
            while numbers.get(self.at).is_some_and(|number| *number < first) {
                self.at += 1;
            }
            let Some(next) = numbers.get(self.at) else { return Ok(None) };
            if next - first >= count {
                self.live_before += fragment.live_rows();
                self.fragment += 1;
                self.open = None;
                continue;
            }
            let open = match &self.open {
                Some(open) => open.clone(),
                None => Rc::new(FragmentRows::open(&self.engine, &self.snapshot, self.fragment).await?),
            };
            self.open = Some(open.clone());
            let mut rows: Vec<Range<u64>> = Vec::new();
            let mut taken = 0;
            while let Some(number) = numbers.get(self.at).filter(|number| *number - first < count) {
                let offset = match self.rows {
                    Rows::Offsets(_) => Some(open.offset_of_live(number - first)),
                    Rows::Ids(_) => Some(number - first).filter(|offset| open.is_live(*offset)),
                };
                match (offset, rows.last_mut()) {
                    // A row that was just taken begins another window.
                    (Some(offset), Some(last)) if offset < last.end => break,
                    (Some(_), _) if taken == max_rows => break,
                    (Some(offset), Some(last)) if offset == last.end => last.end += 1,
                    (Some(offset), _) => rows.push(offset..offset + 1),
                    (None, _) => {}
                }
                taken += u64::from(offset.is_some());
                self.at += 1;
            }
            if !rows.is_empty() {
                return Ok(Some(Window { fragment: open, rows, columns: Vec::new() }));
            }
        }
    }
}

/// The row addresses of stable row ids, also of rows that are deleted: an updated row had another address before.
fn addresses(engine: &Engine, snapshot: &Snapshot, ids: &[u64]) -> Result<Vec<u64>> {
    let (dir, path) = (&snapshot.dir, &snapshot.path);
    // What was merged is of no path.
    let known = if snapshot.parts.is_none() { engine.cache.row_ids.get(dir, path) } else { None };
    let index = match known {
        Some(index) => index,
        None => {
            let fragments = snapshot.manifest.fragments.iter();
            let sequences = fragments.map(|fragment| Ok((fragment.id.0 << 32, lineage::row_ids(fragment)?)));
            let sequences: Vec<_> = sequences.collect::<Result<_>>().map_err(|error| error.at(path))?;
            let index = RowIdIndex::new(sequences.into_iter());
            if snapshot.parts.is_some() { Rc::new(index) } else { engine.cache.row_ids.insert(dir, path, index) }
        }
    };
    let mut addresses = Vec::new();
    ids.iter().for_each(|id| index.find(*id, &mut addresses));
    Ok(addresses)
}
