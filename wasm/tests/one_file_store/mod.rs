//! A store of one object that counts how it is read.

#![allow(dead_code, reason = "every test uses a part")]

pub mod file_schema;
pub mod random;

use std::cell::RefCell;
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use bytes::Bytes;
use lancelet::error::{Error, Result};
use lancelet::format::file::{FileReader, FileSource};
use lancelet::store::{
    CommitOutcome, CommitRequest, DeleteOutcome, DirId, LeaseId, LeaseOutcome, LeaseRequest, ListOptions, Listing,
    LiveLease, ObjectMeta, ObjectWriter, Path, Pins, PublishOutcome, RefOutcome, RefRequest, RemoveOutcome,
    RemoveRequest, RenameOutcome, Store, TableEntry, Token, Turn,
};

/// Runs a future that never waits: the stores of tests answer at once.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a future of a test waits"),
    }
}

/// One object, and the requests for it.
#[derive(Clone)]
pub struct OneFileStore {
    /// The file begins with this many copies of these bytes, which are not in memory.
    pattern: Bytes,
    repeats: u64,
    /// And goes on with these.
    bytes: Bytes,
    /// The ranges of each call of `get_ranges`.
    pub requests: Rc<RefCell<Vec<Vec<Range<u64>>>>>,
}

impl OneFileStore {
    pub fn new(bytes: impl Into<Bytes>) -> OneFileStore {
        OneFileStore::repeating(Bytes::new(), 0, bytes)
    }

    /// A file of `repeats` times `pattern`, then `bytes`.
    pub fn repeating(pattern: impl Into<Bytes>, repeats: u64, bytes: impl Into<Bytes>) -> OneFileStore {
        OneFileStore { pattern: pattern.into(), repeats, bytes: bytes.into(), requests: Rc::default() }
    }

    pub fn size_bytes(&self) -> u64 {
        self.pattern.len() as u64 * self.repeats + self.bytes.len() as u64
    }

    fn cut(&self, range: &Range<u64>) -> Bytes {
        let repeated = self.pattern.len() as u64 * self.repeats;
        if range.start >= repeated {
            return self.bytes.slice((range.start - repeated) as usize..(range.end - repeated) as usize);
        }
        let mut bytes = Vec::new();
        let mut at = range.start;
        while at < range.end.min(repeated) {
            let from = (at % self.pattern.len() as u64) as usize;
            let part = (self.pattern.len() - from).min((range.end.min(repeated) - at) as usize);
            bytes.extend_from_slice(&self.pattern[from..from + part]);
            at += part as u64;
        }
        bytes.extend_from_slice(&self.bytes[..range.end.saturating_sub(repeated) as usize]);
        bytes.into()
    }

    pub async fn open(&self) -> Result<FileReader> {
        let source = FileSource {
            store: Rc::new(self.clone()),
            dir: DirId("dir".to_owned()),
            path: Path::parse("data/file.lance").unwrap(),
        };
        FileReader::open(source, Some(self.size_bytes())).await
    }

    /// Forgets the requests so far.
    pub fn reset(&self) {
        self.requests.borrow_mut().clear();
    }

    pub fn bytes_read(&self) -> u64 {
        self.requests.borrow().iter().flatten().map(|range| range.end - range.start).sum()
    }
}

fn refuse<T>() -> Result<T> {
    Err(Error::not_supported("only reads"))
}

#[async_trait(?Send)]
impl Store for OneFileStore {
    async fn get_ranges(&self, _: &DirId, _: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.requests.borrow_mut().push(ranges.to_vec());
        let cut = |range: &Range<u64>| {
            let is_inside = range.start <= range.end && range.end <= self.size_bytes();
            let outside = || Error::invalid_input(format!("{range:?} of {} bytes", self.size_bytes()));
            is_inside.then(|| self.cut(range)).ok_or_else(outside)
        };
        ranges.iter().map(cut).collect()
    }

    async fn head(&self, _: &DirId, path: &Path) -> Result<Option<ObjectMeta>> {
        Ok(Some(ObjectMeta { path: path.clone(), size_bytes: self.size_bytes(), modified_ms: 0 }))
    }

    async fn get(&self, _: &DirId, _: &Path) -> Result<Bytes> {
        Ok(self.bytes.clone())
    }

    async fn tables(&self) -> Result<Vec<TableEntry>> {
        refuse()
    }

    async fn lookup(&self, _: &str) -> Result<Option<DirId>> {
        refuse()
    }

    async fn create_dir(&self, _: u64, _: u64) -> Result<DirId> {
        refuse()
    }

    async fn publish_dir(&self, _: &str, _: &DirId) -> Result<PublishOutcome> {
        refuse()
    }

    async fn rename_dir(&self, _: &DirId, _: &str, _: &str) -> Result<RenameOutcome> {
        refuse()
    }

    async fn drop_dir(&self, _: &DirId) -> Result<()> {
        refuse()
    }

    async fn sweep(&self, _: u64) -> Result<()> {
        refuse()
    }

    async fn put(&self, _: &DirId, _: &Path, _: Bytes) -> Result<()> {
        refuse()
    }

    async fn put_if_absent(&self, _: &DirId, _: &Path, _: Bytes) -> Result<bool> {
        refuse()
    }

    async fn writer(&self, _: &DirId, _: &Path) -> Result<Box<dyn ObjectWriter>> {
        refuse()
    }

    async fn list(&self, _: &DirId, _: &Path, _: &ListOptions) -> Result<Listing> {
        refuse()
    }

    async fn delete(&self, _: &DirId, _: &Path) -> Result<DeleteOutcome> {
        refuse()
    }

    async fn token(&self, _: &DirId, _: &Path) -> Result<Token> {
        refuse()
    }

    async fn commit(&self, _: CommitRequest) -> Result<CommitOutcome> {
        refuse()
    }

    async fn lease(&self, _: LeaseRequest) -> Result<LeaseOutcome> {
        refuse()
    }

    async fn renew(&self, _: &LeaseId, _: u64, _: u64) -> Result<bool> {
        refuse()
    }

    async fn release(&self, _: &LeaseId) -> Result<()> {
        refuse()
    }

    async fn leases(&self, _: &DirId, _: u64) -> Result<Vec<LiveLease>> {
        refuse()
    }

    async fn pins(&self, _: &DirId) -> Result<Pins> {
        refuse()
    }

    async fn put_ref(&self, _: RefRequest) -> Result<RefOutcome> {
        refuse()
    }

    async fn remove(&self, _: RemoveRequest) -> Result<RemoveOutcome> {
        refuse()
    }

    async fn turn(&self, _: &DirId, _: u64) -> Result<Option<Box<dyn Turn>>> {
        refuse()
    }
}
