//! What an engine remembers of immutable files: manifests, transactions, deletion vectors, open data files, where row ids lie.
//!
//! A path of a directory never gets other bytes, and neither is used again, so nothing here can be stale; a cleaned-up version may still
//! be remembered, which is why opening an old version takes a lease first.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::format::file::FileReader;
use crate::format::table::{DeletionVector, Manifest, RowIdIndex, Transaction};
use crate::store::{DirId, Path};
use crate::table::VersionInfo;

type Key = (DirId, Path);

/// The caches of one engine.
pub(crate) struct Cache {
    pub(crate) manifests: Recent<Manifest>,
    pub(crate) deletions: Recent<DeletionVector>,
    pub(crate) readers: Recent<FileReader>,
    /// By the path of the manifest.
    pub(crate) row_ids: Recent<RowIdIndex>,
    /// What `versions` tells of each version: small, and otherwise one read per version and call.
    infos: RefCell<BTreeMap<(DirId, u64), VersionInfo>>,
    /// What the conflict rules ask of commits: of many changes at once each is judged by all the others.
    commits: RefCell<BTreeMap<(DirId, u64), Rc<Transaction>>>,
}

/// Enough that a long history of one table does not push out itself; beyond it everything is forgotten at once.
const MAX_INFOS: usize = 20_000;
/// More changes than are under way at once; beyond it the oldest versions are forgotten first. Each is small (`conflict::gist`).
const MAX_COMMITS: usize = 8_192;

impl Cache {
    pub(crate) fn new() -> Cache {
        Cache {
            manifests: Recent::new(16),
            deletions: Recent::new(64),
            readers: Recent::new(64),
            row_ids: Recent::new(4),
            infos: RefCell::default(),
            commits: RefCell::default(),
        }
    }

    pub(crate) fn commit(&self, dir: &DirId, version: u64) -> Option<Rc<Transaction>> {
        self.commits.borrow().get(&(dir.clone(), version)).cloned()
    }

    pub(crate) fn remember_commit(&self, dir: &DirId, version: u64, gist: Transaction) {
        let mut commits = self.commits.borrow_mut();
        if commits.len() >= MAX_COMMITS {
            commits.pop_first();
        }
        commits.insert((dir.clone(), version), Rc::new(gist));
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

    /// Forgets a directory that was dropped.
    pub(crate) fn forget(&self, dir: &DirId) {
        self.manifests.forget(dir);
        self.deletions.forget(dir);
        self.readers.forget(dir);
        self.row_ids.forget(dir);
        self.infos.borrow_mut().retain(|(other, _), _| other != dir);
        self.commits.borrow_mut().retain(|(other, _), _| other != dir);
    }
}

/// The most recently used values, by directory and path.
pub(crate) struct Recent<V> {
    capacity: usize,
    /// Most recent last.
    entries: RefCell<VecDeque<(Key, Rc<V>)>>,
}

impl<V> Recent<V> {
    fn new(capacity: usize) -> Recent<V> {
        Recent { capacity, entries: RefCell::default() }
    }

    pub(crate) fn get(&self, dir: &DirId, path: &Path) -> Option<Rc<V>> {
        let mut entries = self.entries.borrow_mut();
        let at = entries.iter().position(|((d, p), _)| d == dir && p == path)?;
        let entry = entries.remove(at)?;
        let value = entry.1.clone();
        entries.push_back(entry);
        Some(value)
    }

    pub(crate) fn insert(&self, dir: &DirId, path: &Path, value: V) -> Rc<V> {
        let value = Rc::new(value);
        let mut entries = self.entries.borrow_mut();
        entries.retain(|((d, p), _)| d != dir || p != path);
        while entries.len() >= self.capacity {
            entries.pop_front();
        }
        entries.push_back(((dir.clone(), path.clone()), value.clone()));
        value
    }

    fn forget(&self, dir: &DirId) {
        self.entries.borrow_mut().retain(|((other, _), _)| other != dir);
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
}
