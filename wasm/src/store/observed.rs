//! A store around a store: every operation passes one hook. Counting and fault injection are two such hooks.

use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    CommitOutcome, CommitRequest, DeleteOutcome, DirId, LeaseId, LeaseOutcome, LeaseRequest, ListOptions, Listing,
    LiveLease, ObjectMeta, ObjectWriter, Path, Pins, PublishOutcome, RefOutcome, RefRequest, RemoveOutcome,
    RemoveRequest, RenameOutcome, Store, TableEntry, Token, Turn,
};
use crate::error::Result;

/// An operation on its way to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The trait method's name; `writer.write`, `writer.finish`, `writer.abort` for streams.
    pub name: &'static str,
    /// The object or folder, empty where there is none.
    pub path: String,
    /// Bytes handed to the store.
    pub written_bytes: u64,
    /// Ranges asked for; 0 where the operation reads no ranges.
    pub ranges: u64,
}

/// What happens around each operation.
pub trait Hook {
    /// Runs `call` or does not, and answers. `read_bytes` measures an answer.
    fn around<T>(
        &self,
        op: Op,
        call: impl Future<Output = Result<T>>,
        read_bytes: impl Fn(&T) -> u64,
    ) -> impl Future<Output = Result<T>>;
}

/// A store whose operations pass a hook.
pub struct Observed<H> {
    inner: Rc<dyn Store>,
    hook: Rc<H>,
}

impl<H> Observed<H> {
    pub fn new(inner: Rc<dyn Store>, hook: Rc<H>) -> Observed<H> {
        Observed { inner, hook }
    }
}

fn op(name: &'static str, path: impl ToString) -> Op {
    Op { name, path: path.to_string(), written_bytes: 0, ranges: 0 }
}

fn write_op(name: &'static str, path: &Path, bytes: &Bytes) -> Op {
    Op { written_bytes: bytes.len() as u64, ..op(name, path) }
}

fn nothing<T>(_: &T) -> u64 {
    0
}

#[async_trait(?Send)]
impl<H: Hook + 'static> Store for Observed<H> {
    async fn tables(&self) -> Result<Vec<TableEntry>> {
        self.hook.around(op("tables", ""), self.inner.tables(), nothing).await
    }

    async fn lookup(&self, name: &str) -> Result<Option<DirId>> {
        self.hook.around(op("lookup", name), self.inner.lookup(name), nothing).await
    }

    async fn create_dir(&self, now_ms: u64, expires_ms: u64) -> Result<DirId> {
        self.hook.around(op("create_dir", ""), self.inner.create_dir(now_ms, expires_ms), nothing).await
    }

    async fn publish_dir(&self, name: &str, id: &DirId) -> Result<PublishOutcome> {
        self.hook.around(op("publish_dir", name), self.inner.publish_dir(name, id), nothing).await
    }

    async fn rename_dir(&self, id: &DirId, from: &str, to: &str) -> Result<RenameOutcome> {
        self.hook.around(op("rename_dir", from), self.inner.rename_dir(id, from, to), nothing).await
    }

    async fn drop_dir(&self, id: &DirId) -> Result<()> {
        self.hook.around(op("drop_dir", ""), self.inner.drop_dir(id), nothing).await
    }

    async fn sweep(&self, now_ms: u64) -> Result<()> {
        self.hook.around(op("sweep", ""), self.inner.sweep(now_ms), nothing).await
    }

    async fn put(&self, dir: &DirId, path: &Path, bytes: Bytes) -> Result<()> {
        let op = write_op("put", path, &bytes);
        self.hook.around(op, self.inner.put(dir, path, bytes), nothing).await
    }

    async fn put_if_absent(&self, dir: &DirId, path: &Path, bytes: Bytes) -> Result<bool> {
        let op = write_op("put_if_absent", path, &bytes);
        self.hook.around(op, self.inner.put_if_absent(dir, path, bytes), nothing).await
    }

    async fn writer(&self, dir: &DirId, path: &Path) -> Result<Box<dyn ObjectWriter>> {
        let inner = self.hook.around(op("writer", path), self.inner.writer(dir, path), nothing).await?;
        Ok(Box::new(ObservedWriter { inner, hook: self.hook.clone(), path: path.clone() }))
    }

    async fn get(&self, dir: &DirId, path: &Path) -> Result<Bytes> {
        self.hook.around(op("get", path), self.inner.get(dir, path), |bytes| bytes.len() as u64).await
    }

    async fn get_ranges(&self, dir: &DirId, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let op = Op { ranges: ranges.len() as u64, ..op("get_ranges", path) };
        let size = |parts: &Vec<Bytes>| parts.iter().map(|part| part.len() as u64).sum();
        self.hook.around(op, self.inner.get_ranges(dir, path, ranges), size).await
    }

    async fn head(&self, dir: &DirId, path: &Path) -> Result<Option<ObjectMeta>> {
        self.hook.around(op("head", path), self.inner.head(dir, path), nothing).await
    }

    async fn list(&self, dir: &DirId, prefix: &Path, options: &ListOptions) -> Result<Listing> {
        self.hook.around(op("list", prefix), self.inner.list(dir, prefix, options), nothing).await
    }

    async fn delete(&self, dir: &DirId, path: &Path) -> Result<DeleteOutcome> {
        self.hook.around(op("delete", path), self.inner.delete(dir, path), nothing).await
    }

    async fn token(&self, dir: &DirId, folder: &Path) -> Result<Token> {
        self.hook.around(op("token", folder), self.inner.token(dir, folder), nothing).await
    }

    async fn commit(&self, request: CommitRequest) -> Result<CommitOutcome> {
        let objects: usize = request.objects.iter().map(|(_, bytes)| bytes.len()).sum();
        let written_bytes = (objects + request.publish.1.len()) as u64;
        let op = Op { written_bytes, ..op("commit", &request.publish.0) };
        self.hook.around(op, self.inner.commit(request), nothing).await
    }

    async fn lease(&self, request: LeaseRequest) -> Result<LeaseOutcome> {
        let op = op("lease", &request.manifest);
        self.hook.around(op, self.inner.lease(request), nothing).await
    }

    async fn renew(&self, lease: &LeaseId, now_ms: u64, expires_ms: u64) -> Result<bool> {
        self.hook.around(op("renew", ""), self.inner.renew(lease, now_ms, expires_ms), nothing).await
    }

    async fn release(&self, lease: &LeaseId) -> Result<()> {
        self.hook.around(op("release", ""), self.inner.release(lease), nothing).await
    }

    async fn leases(&self, dir: &DirId, now_ms: u64) -> Result<Vec<LiveLease>> {
        self.hook.around(op("leases", ""), self.inner.leases(dir, now_ms), nothing).await
    }

    async fn pins(&self, dir: &DirId) -> Result<Pins> {
        self.hook.around(op("pins", ""), self.inner.pins(dir), nothing).await
    }

    async fn put_ref(&self, request: RefRequest) -> Result<RefOutcome> {
        let op = write_op("put_ref", &request.path, &request.bytes);
        self.hook.around(op, self.inner.put_ref(request), nothing).await
    }

    async fn remove(&self, request: RemoveRequest) -> Result<RemoveOutcome> {
        self.hook.around(op("remove", ""), self.inner.remove(request), nothing).await
    }

    async fn turn(&self, dir: &DirId, wait_ms: u64) -> Result<Option<Box<dyn Turn>>> {
        self.hook.around(op("turn", ""), self.inner.turn(dir, wait_ms), nothing).await
    }
}

struct ObservedWriter<H> {
    inner: Box<dyn ObjectWriter>,
    hook: Rc<H>,
    path: Path,
}

#[async_trait(?Send)]
impl<H: Hook> ObjectWriter for ObservedWriter<H> {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let op = write_op("writer.write", &self.path, &bytes);
        self.hook.around(op, self.inner.write(bytes), nothing).await
    }

    async fn finish(self: Box<Self>) -> Result<u64> {
        let Self { inner, hook, path } = *self;
        hook.around(op("writer.finish", &path), inner.finish(), nothing).await
    }

    async fn abort(self: Box<Self>) -> Result<()> {
        let Self { inner, hook, path } = *self;
        hook.around(op("writer.abort", &path), inner.abort(), nothing).await
    }
}
