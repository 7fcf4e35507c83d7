//! A store in memory: every promise of the contract but survival.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use super::{
    CommitOutcome, CommitRequest, DeleteOutcome, DirId, LeaseId, LeaseKind, LeaseOutcome, LeaseRequest, ListOptions,
    Listing, LiveLease, ObjectMeta, ObjectWriter, Path, Pins, PublishOutcome, REFS_FOLDER, RefMode, RefOutcome,
    RefRequest, RemoveOutcome, RemoveRequest, RenameOutcome, Store, TableEntry, Token, Turn,
};
use crate::env::{Env, now_ms};
use crate::error::{Error, Result};

/// Bytes in memory. Clones share them.
#[derive(Clone)]
pub struct MemoryStore {
    state: Rc<RefCell<State>>,
    env: Rc<dyn Env>,
}

#[derive(Default)]
struct State {
    tables: BTreeMap<String, DirId>,
    dirs: BTreeMap<DirId, Directory>,
    leases: BTreeMap<LeaseId, Lease>,
    last_id: u64,
}

struct Directory {
    state: DirState,
    objects: BTreeMap<Path, Object>,
    /// How often an object appeared in or left each folder.
    moves: BTreeMap<Path, u64>,
    /// Changes below `_refs/`, and commits that replaced.
    pins: u64,
    /// The newest version that replaced.
    replaced: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DirState {
    Creating { expires_ms: u64 },
    Live,
    Dropped,
}

struct Object {
    bytes: Bytes,
    modified_ms: u64,
}

struct Lease {
    dir: DirId,
    kind: LeaseKind,
    version: u64,
    expires_ms: u64,
}

impl Lease {
    fn keeps(&self, version: u64) -> bool {
        self.version == version || (self.kind == LeaseKind::Write && self.version < version)
    }
}

impl MemoryStore {
    /// An empty store; `env` gives the times of listings.
    pub fn new(env: Rc<dyn Env>) -> MemoryStore {
        MemoryStore { state: Rc::default(), env }
    }
}

impl State {
    fn next_id(&mut self, prefix: &str) -> String {
        self.last_id += 1;
        format!("{prefix}{}", self.last_id)
    }

    /// A directory that takes writes.
    fn writable(&mut self, dir: &DirId) -> Result<&mut Directory> {
        match self.dirs.get_mut(dir) {
            Some(found) if found.state != DirState::Dropped => Ok(found),
            _ => Err(Error::TableNotFound { name: dir.0.clone() }),
        }
    }

    fn object(&self, dir: &DirId, path: &Path) -> Result<&Object> {
        self.dirs
            .get(dir)
            .and_then(|found| found.objects.get(path))
            .ok_or_else(|| Error::NotFound { what: format!("file {path}") })
    }

    fn is_live(&self, dir: &DirId) -> bool {
        self.dirs.get(dir).is_some_and(|found| found.state == DirState::Live)
    }
}

impl Directory {
    fn put(&mut self, path: &Path, bytes: Bytes, modified_ms: u64) {
        if self.objects.insert(path.clone(), Object { bytes, modified_ms }).is_none() {
            self.note_move(path);
        }
        self.note_pin(path);
    }

    /// The size of what was there.
    fn delete(&mut self, path: &Path) -> Option<u64> {
        let object = self.objects.remove(path)?;
        self.note_move(path);
        self.note_pin(path);
        Some(object.bytes.len() as u64)
    }

    fn note_move(&mut self, path: &Path) {
        *self.moves.entry(path.parent()).or_default() += 1;
    }

    fn note_pin(&mut self, path: &Path) {
        if path.is_below(&Path::default().join(REFS_FOLDER)) {
            self.pins += 1;
        }
    }

    fn pins(&self) -> Pins {
        Pins(self.pins.to_string())
    }

    fn token(&self, folder: &Path) -> Token {
        Token(self.moves.get(folder).copied().unwrap_or_default().to_string())
    }
}

#[async_trait(?Send)]
impl Store for MemoryStore {
    async fn tables(&self) -> Result<Vec<TableEntry>> {
        let state = self.state.borrow();
        Ok(state.tables.iter().map(|(name, id)| TableEntry { name: name.clone(), id: id.clone() }).collect())
    }

    async fn lookup(&self, name: &str) -> Result<Option<DirId>> {
        Ok(self.state.borrow().tables.get(name).cloned())
    }

    async fn create_dir(&self, _now_ms: u64, expires_ms: u64) -> Result<DirId> {
        let mut state = self.state.borrow_mut();
        let id = DirId(state.next_id("dir-"));
        let directory = Directory {
            state: DirState::Creating { expires_ms },
            objects: BTreeMap::new(),
            moves: BTreeMap::new(),
            pins: 0,
            replaced: 0,
        };
        state.dirs.insert(id.clone(), directory);
        Ok(id)
    }

    async fn publish_dir(&self, name: &str, id: &DirId) -> Result<PublishOutcome> {
        let state = &mut *self.state.borrow_mut();
        let Some(directory) = state.dirs.get_mut(id) else { return Ok(PublishOutcome::Gone) };
        if !matches!(directory.state, DirState::Creating { .. }) {
            return Ok(PublishOutcome::Published);
        }
        if state.tables.contains_key(name) {
            return Ok(PublishOutcome::Exists);
        }
        directory.state = DirState::Live;
        state.tables.insert(name.to_owned(), id.clone());
        Ok(PublishOutcome::Published)
    }

    async fn rename_dir(&self, id: &DirId, from: &str, to: &str) -> Result<RenameOutcome> {
        let mut state = self.state.borrow_mut();
        match state.tables.get(to) {
            Some(taken) if taken == id => return Ok(RenameOutcome::Renamed),
            Some(_) => return Ok(RenameOutcome::Exists),
            None => {}
        }
        if state.tables.get(from) != Some(id) {
            return Ok(RenameOutcome::Gone);
        }
        state.tables.remove(from);
        state.tables.insert(to.to_owned(), id.clone());
        Ok(RenameOutcome::Renamed)
    }

    async fn drop_dir(&self, id: &DirId) -> Result<()> {
        let mut state = self.state.borrow_mut();
        state.tables.retain(|_, other| other != id);
        if let Some(directory) = state.dirs.get_mut(id) {
            directory.state = DirState::Dropped;
        }
        Ok(())
    }

    async fn sweep(&self, now_ms: u64) -> Result<()> {
        let state = &mut *self.state.borrow_mut();
        state.leases.retain(|_, lease| lease.expires_ms > now_ms);
        let leases = &state.leases;
        state.dirs.retain(|id, directory| match directory.state {
            DirState::Live => true,
            DirState::Creating { expires_ms } => expires_ms > now_ms,
            DirState::Dropped => leases.values().any(|lease| lease.dir == *id),
        });
        Ok(())
    }

    async fn put(&self, dir: &DirId, path: &Path, bytes: Bytes) -> Result<()> {
        let modified_ms = now_ms(&*self.env);
        self.state.borrow_mut().writable(dir)?.put(path, bytes, modified_ms);
        Ok(())
    }

    async fn put_if_absent(&self, dir: &DirId, path: &Path, bytes: Bytes) -> Result<bool> {
        let modified_ms = now_ms(&*self.env);
        let mut state = self.state.borrow_mut();
        let directory = state.writable(dir)?;
        let is_free = !directory.objects.contains_key(path);
        if is_free {
            directory.put(path, bytes, modified_ms);
        }
        Ok(is_free)
    }

    async fn writer(&self, dir: &DirId, path: &Path) -> Result<Box<dyn ObjectWriter>> {
        self.state.borrow_mut().writable(dir)?;
        Ok(Box::new(MemoryWriter { store: self.clone(), dir: dir.clone(), path: path.clone(), bytes: BytesMut::new() }))
    }

    async fn get(&self, dir: &DirId, path: &Path) -> Result<Bytes> {
        Ok(self.state.borrow().object(dir, path)?.bytes.clone())
    }

    async fn get_ranges(&self, dir: &DirId, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let state = self.state.borrow();
        let bytes = &state.object(dir, path)?.bytes;
        ranges
            .iter()
            .map(|range| {
                let inside = range.start <= range.end && range.end <= bytes.len() as u64;
                // Both ends fit: they are at most the length of a slice.
                inside.then(|| bytes.slice(range.start as usize..range.end as usize)).ok_or_else(|| {
                    let (start, end, len) = (range.start, range.end, bytes.len());
                    Error::invalid_input(format!("range {start}..{end} is outside of {path}, which has {len} bytes"))
                })
            })
            .collect()
    }

    async fn head(&self, dir: &DirId, path: &Path) -> Result<Option<ObjectMeta>> {
        let state = self.state.borrow();
        Ok(state.object(dir, path).ok().map(|object| object.meta(path)))
    }

    async fn list(&self, dir: &DirId, prefix: &Path, options: &ListOptions) -> Result<Listing> {
        let state = self.state.borrow();
        let mut listing = Listing::default();
        let Some(directory) = state.dirs.get(dir) else { return Ok(listing) };
        for (path, object) in directory.objects.iter().filter(|(path, _)| path.is_below(prefix)) {
            if options.limit.is_some_and(|limit| listing.objects.len() >= limit as usize) {
                break;
            }
            if options.after.as_ref().is_some_and(|after| path <= after) {
                continue;
            }
            match options.shallow.then(|| path.folder_below(prefix)).flatten() {
                Some(folder) if listing.folders.last() != Some(&folder) => listing.folders.push(folder),
                Some(_) => {}
                None => listing.objects.push(object.meta(path)),
            }
        }
        // Byte order of objects is not byte order of their folders: "a-b/x" sorts before "a/x".
        listing.folders.sort();
        listing.folders.dedup();
        Ok(listing)
    }

    async fn delete(&self, dir: &DirId, path: &Path) -> Result<DeleteOutcome> {
        if let Some(directory) = self.state.borrow_mut().dirs.get_mut(dir) {
            directory.delete(path);
        }
        Ok(DeleteOutcome::Deleted)
    }

    async fn token(&self, dir: &DirId, folder: &Path) -> Result<Token> {
        let state = self.state.borrow();
        let directory = state.dirs.get(dir).ok_or_else(|| Error::TableNotFound { name: dir.0.clone() })?;
        Ok(directory.token(folder))
    }

    async fn commit(&self, request: CommitRequest) -> Result<CommitOutcome> {
        let modified_ms = now_ms(&*self.env);
        let mut state = self.state.borrow_mut();
        // A table being created commits its first version before it is live.
        let Ok(directory) = state.writable(&request.dir) else { return Ok(CommitOutcome::Gone) };
        let (manifest, bytes) = request.publish;
        if directory.objects.contains_key(&manifest) {
            return Ok(CommitOutcome::Exists);
        }
        if directory.token(&manifest.parent()) != request.token {
            return Ok(CommitOutcome::Moved);
        }
        let is_there =
            |path: &Path| directory.objects.contains_key(path) || request.objects.iter().any(|(own, _)| own == path);
        if let Some(missing) = request.requires.iter().find(|path| !is_there(path)) {
            return Ok(CommitOutcome::Missing(missing.clone()));
        }
        for (path, bytes) in request.objects {
            directory.put(&path, bytes, modified_ms);
        }
        directory.put(&manifest, bytes, modified_ms);
        if let Some(version) = request.replaces {
            directory.replaced = version;
            directory.pins += 1;
        }
        Ok(CommitOutcome::Committed)
    }

    async fn lease(&self, request: LeaseRequest) -> Result<LeaseOutcome> {
        let mut state = self.state.borrow_mut();
        if !state.is_live(&request.dir) {
            return Ok(LeaseOutcome::Gone);
        }
        if state.object(&request.dir, &request.manifest).is_err() {
            return Ok(LeaseOutcome::Missing);
        }
        let replaced = state.dirs.get(&request.dir).map_or(0, |directory| directory.replaced);
        let id = LeaseId(state.next_id("lease-"));
        let LeaseRequest { dir, kind, version, expires_ms, .. } = request;
        state.leases.insert(id.clone(), Lease { dir, kind, version, expires_ms });
        Ok(LeaseOutcome::Taken { id, replaced })
    }

    async fn renew(&self, lease: &LeaseId, now_ms: u64, expires_ms: u64) -> Result<bool> {
        let mut state = self.state.borrow_mut();
        if let Some(Directory { state: DirState::Creating { expires_ms: end }, .. }) =
            state.dirs.get_mut(&DirId(lease.0.clone()))
        {
            let is_running = *end > now_ms;
            if is_running {
                *end = expires_ms;
            }
            return Ok(is_running);
        }
        match state.leases.get_mut(lease) {
            Some(held) if held.expires_ms > now_ms => {
                held.expires_ms = expires_ms;
                Ok(true)
            }
            _ => {
                state.leases.remove(lease);
                Ok(false)
            }
        }
    }

    async fn release(&self, lease: &LeaseId) -> Result<()> {
        self.state.borrow_mut().leases.remove(lease);
        Ok(())
    }

    async fn leases(&self, dir: &DirId, now_ms: u64) -> Result<Vec<LiveLease>> {
        let mut state = self.state.borrow_mut();
        state.leases.retain(|_, lease| lease.expires_ms > now_ms);
        let own = state.leases.values().filter(|lease| lease.dir == *dir);
        Ok(own.map(|lease| LiveLease { kind: lease.kind, version: lease.version }).collect())
    }

    async fn pins(&self, dir: &DirId) -> Result<Pins> {
        let state = self.state.borrow();
        let directory = state.dirs.get(dir).ok_or_else(|| Error::TableNotFound { name: dir.0.clone() })?;
        Ok(directory.pins())
    }

    async fn put_ref(&self, request: RefRequest) -> Result<RefOutcome> {
        let modified_ms = now_ms(&*self.env);
        let mut state = self.state.borrow_mut();
        if !state.is_live(&request.dir) {
            return Ok(RefOutcome::Gone);
        }
        let directory = state.writable(&request.dir)?;
        if !directory.objects.contains_key(&request.manifest) {
            return Ok(RefOutcome::Missing);
        }
        match (request.mode, directory.objects.contains_key(&request.path)) {
            (RefMode::Create, true) => return Ok(RefOutcome::Exists),
            (RefMode::Replace, false) => return Ok(RefOutcome::Absent),
            (RefMode::Create, false) | (RefMode::Replace, true) => {}
        }
        directory.put(&request.path, request.bytes, modified_ms);
        Ok(RefOutcome::Written)
    }

    async fn remove(&self, request: RemoveRequest) -> Result<RemoveOutcome> {
        let state = &mut *self.state.borrow_mut();
        if !state.is_live(&request.dir) {
            return Ok(RemoveOutcome::Gone);
        }
        let live =
            || state.leases.values().filter(|lease| lease.dir == request.dir && lease.expires_ms > request.now_ms);
        if request.needs_no_writer && live().any(|lease| lease.kind == LeaseKind::Write) {
            return Ok(RemoveOutcome::Contended);
        }
        if request.manifests.iter().any(|(version, _)| live().any(|lease| lease.keeps(*version))) {
            return Ok(RemoveOutcome::Moved);
        }
        let Some(directory) = state.dirs.get_mut(&request.dir) else { return Ok(RemoveOutcome::Gone) };
        let has_token_moved = request.token.as_ref().is_some_and(|(folder, token)| directory.token(folder) != *token);
        if directory.pins() != request.pins || has_token_moved {
            return Ok(RemoveOutcome::Moved);
        }
        let (mut manifests, mut bytes) = (0, 0);
        for size in request.manifests.iter().filter_map(|(_, path)| directory.delete(path)) {
            manifests += 1;
            bytes += size;
        }
        bytes += request.files.iter().filter_map(|path| directory.delete(path)).sum::<u64>();
        Ok(RemoveOutcome::Removed { manifests, bytes, busy: 0 })
    }

    // The commits of one engine queue already, and no other engine shares this memory.
    async fn turn(&self, _dir: &DirId, _wait_ms: u64) -> Result<Option<Box<dyn Turn>>> {
        Ok(Some(Box::new(OwnTurn)))
    }
}

impl Object {
    fn meta(&self, path: &Path) -> ObjectMeta {
        ObjectMeta { path: path.clone(), size_bytes: self.bytes.len() as u64, modified_ms: self.modified_ms }
    }
}

struct OwnTurn;

impl Turn for OwnTurn {}

struct MemoryWriter {
    store: MemoryStore,
    dir: DirId,
    path: Path,
    bytes: BytesMut,
}

#[async_trait(?Send)]
impl ObjectWriter for MemoryWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<u64> {
        let size = self.bytes.len() as u64;
        self.store.put(&self.dir, &self.path, self.bytes.freeze()).await?;
        Ok(size)
    }

    async fn abort(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;
    use crate::env::FixedEnv;

    #[test]
    fn memory_keeps_the_contract() {
        conformance::check(|| {
            let env = Rc::new(FixedEnv::new(1, 1_000_000_000));
            Rc::new(MemoryStore::new(env))
        });
    }
}
