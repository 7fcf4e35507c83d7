//! What an engine remembers of immutable files: manifests, deletion vectors, open data files, where row ids lie.
//!
//! A path of a directory never gets other bytes, and neither is used again, so nothing here can be stale; a cleaned-up version may still
//! be remembered, which is why opening an old version takes a lease first.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::marker::PhantomData;
use std::rc::Rc;

use crate::format::file::FileReader;
use crate::format::table::{DeletionVector, Manifest, RowIdIndex};
use crate::format::wal::ShardId;
use crate::store::{DirId, Path};
use crate::table::VersionInfo;
use crate::table::snapshot::Snapshot;

type Key = (DirId, Path);

/// What a view is made of: a version, and of each shard beside it the version of its manifest and its last entry.
pub(crate) type ViewKey = (DirId, u64, Vec<(ShardId, u64, Option<u64>)>);

/// The caches of one engine.
pub(crate) struct Cache {
    pub(crate) manifests: Recent<Manifest>,
    pub(crate) deletions: Recent<DeletionVector>,
    pub(crate) readers: Recent<FileReader>,
    /// By the path of the manifest.
    pub(crate) row_ids: Recent<RowIdIndex>,
    /// What `versions` tells of each version: small, and otherwise one read per version and call.
    infos: RefCell<HashMap<(DirId, u64), VersionInfo>>,
    /// The last view over a version and its shards.
    view: RefCell<Option<(ViewKey, Rc<Snapshot>)>>,
}

/// What open files keep of their bytes: 64 large ones, or a thousand that are small.
const READER_BYTES: usize = 64 * (64 * 1024 + READER_COST);
/// What an open file takes besides.
const READER_COST: usize = 2 * 1024;
/// Enough that a long history of one table does not push out itself; beyond it everything is forgotten at once.
const MAX_INFOS: usize = 20_000;

impl Cache {
    pub(crate) fn new() -> Cache {
        Cache {
            manifests: Recent::new(16),
            deletions: Recent::new(64),
            readers: Recent::new(READER_BYTES),
            row_ids: Recent::new(4),
            infos: RefCell::default(),
            view: RefCell::default(),
        }
    }

    pub(crate) fn keep_reader(&self, dir: &DirId, path: &Path, reader: FileReader) -> Rc<FileReader> {
        let weight = reader.kept_bytes().saturating_add(READER_COST);
        self.readers.insert_heavy(dir, path, reader, weight)
    }

    pub(crate) fn info(&self, dir: &DirId, version: u64) -> Option<VersionInfo> {
        self.infos.borrow().get(&(dir.clone(), version)).cloned()
    }

    pub(crate) fn remember_info(&self, dir: &DirId, info: &VersionInfo) {
        let mut infos = self.infos.borrow_mut();
        if infos.len() >= MAX_INFOS {
            infos.clear();
        }
        infos.insert((dir.clone(), info.version), info.clone());
    }

    pub(crate) fn view(&self, key: &ViewKey) -> Option<Rc<Snapshot>> {
        self.view.borrow().as_ref().filter(|(known, _)| known == key).map(|(_, view)| view.clone())
    }

    pub(crate) fn keep_view(&self, key: ViewKey, view: &Rc<Snapshot>) {
        self.view.replace(Some((key, view.clone())));
    }

    /// Forgets a directory that was dropped.
    pub(crate) fn forget(&self, dir: &DirId) {
        self.manifests.forget(dir);
        self.deletions.forget(dir);
        self.readers.forget(dir);
        self.row_ids.forget(dir);
        self.infos.borrow_mut().retain(|(other, _), _| other != dir);
        self.view.borrow_mut().take_if(|((other, ..), _)| other == dir);
    }
}

/// The most recently used values, by directory and path.
pub(crate) struct Recent<V> {
    entries: Entries,
    of: PhantomData<V>,
}

impl<V: 'static> Recent<V> {
    /// `capacity` is what all values weigh together at most.
    fn new(capacity: usize) -> Recent<V> {
        Recent { entries: Entries { capacity, recent: RefCell::default() }, of: PhantomData }
    }

    pub(crate) fn get(&self, dir: &DirId, path: &Path) -> Option<Rc<V>> {
        self.entries.get(dir, path)?.downcast().ok()
    }

    /// Keeps a value that weighs 1.
    pub(crate) fn insert(&self, dir: &DirId, path: &Path, value: V) -> Rc<V> {
        self.insert_heavy(dir, path, value, 1)
    }

    /// Keeps a value, and of the others the most recently used that fit beside it.
    pub(crate) fn insert_heavy(&self, dir: &DirId, path: &Path, value: V, weight: usize) -> Rc<V> {
        let value = Rc::new(value);
        self.entries.insert(Entry { key: (dir.clone(), path.clone()), weight, value: value.clone() });
        value
    }

    fn forget(&self, dir: &DirId) {
        self.entries.forget(dir);
    }
}

/// Values of any type, so that their bookkeeping is there once.
struct Entries {
    capacity: usize,
    /// Most recent last.
    recent: RefCell<VecDeque<Entry>>,
}

struct Entry {
    key: Key,
    weight: usize,
    value: Rc<dyn Any>,
}

impl Entries {
    fn get(&self, dir: &DirId, path: &Path) -> Option<Rc<dyn Any>> {
        let mut recent = self.recent.borrow_mut();
        // What is used in turn is found at the front.
        let at = recent.iter().position(|Entry { key: (d, p), .. }| d == dir && p == path)?;
        let entry = recent.remove(at)?;
        let value = entry.value.clone();
        recent.push_back(entry);
        Some(value)
    }

    fn insert(&self, entry: Entry) {
        let mut recent = self.recent.borrow_mut();
        recent.retain(|other| other.key != entry.key);
        let mut total = recent.iter().fold(entry.weight, |total, other| total.saturating_add(other.weight));
        while total > self.capacity
            && let Some(oldest) = recent.pop_front()
        {
            total = total.saturating_sub(oldest.weight);
        }
        recent.push_back(entry);
    }

    fn forget(&self, dir: &DirId) {
        self.recent.borrow_mut().retain(|Entry { key: (other, _), .. }| other != dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_value_goes_first() {
        let (dir, path) = (DirId("d".into()), |name: &str| Path::parse(name).unwrap());
        let recent = Recent::new(2);
        recent.insert(&dir, &path("a"), 1);
        recent.insert(&dir, &path("b"), 2);
        recent.get(&dir, &path("a"));
        recent.insert(&dir, &path("c"), 3);
        assert_eq!(recent.get(&dir, &path("a")).as_deref(), Some(&1));
        assert_eq!(recent.get(&dir, &path("b")), None);
        assert_eq!(recent.get(&dir, &path("c")).as_deref(), Some(&3));
    }

    #[test]
    fn heavy_values_leave_room_for_fewer_and_the_newest_always_stays() {
        let (dir, path) = (DirId("d".into()), |name: &str| Path::parse(name).unwrap());
        let recent = Recent::new(10);
        let kept = |names: [&str; 3]| names.map(|name| recent.get(&dir, &path(name)).is_some());
        recent.insert_heavy(&dir, &path("a"), (), 4);
        recent.insert_heavy(&dir, &path("b"), (), 4);
        recent.insert_heavy(&dir, &path("c"), (), 6);
        assert_eq!(kept(["a", "b", "c"]), [false, true, true]);
        recent.insert_heavy(&dir, &path("c"), (), 11);
        assert_eq!(kept(["a", "b", "c"]), [false, false, true]);
        for (name, weight) in [("c", 1), ("a", 4), ("b", 4), ("d", 9)] {
            recent.insert_heavy(&dir, &path(name), (), weight);
        }
        assert_eq!(kept(["a", "b", "d"]), [false, false, true], "each that is in the way goes");
    }
}
