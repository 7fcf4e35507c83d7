//! Bytes by path: the contract that every backend keeps, and the suite in `conformance` proves.
//!
//! A table is a **directory** with an id that is never used again; a table's name is a row that points at an id, so that a handle
//! stays with its table when the name goes to another one. Every operation names the id.
//!
//! - `put` replaces and is atomic: a reader sees the old bytes, the new bytes, or nothing, never a part.
//! - `put_if_absent` is atomic among all tabs, workers and processes: of any number of callers exactly one gets `true`.
//! - When a write returns, its bytes survive a closed tab, and a power cut as far as the backend can.
//! - `get_ranges` returns exactly the bytes asked, in the order asked; ranges are half-open.
//! - `list` is in byte order of the path and sees every write that returned before it began.
//! - `commit` is one transaction: all of it happens, or nothing.
//! - No operation holds a lock after it returns, except a `Turn`, which is for fairness only and is never needed for safety.
//! - Time comes in with each call that compares it: a store reads no clock for leases.

#[cfg(any(test, feature = "testing"))]
pub mod conformance;
#[cfg(any(test, feature = "testing"))]
pub mod counting;
#[cfg(any(test, feature = "testing"))]
pub mod fault;
#[cfg(target_arch = "wasm32")]
pub mod host;
pub mod memory;
#[cfg(any(test, feature = "testing"))]
pub mod observed;
mod path;

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::Result;
pub use path::Path;

/// The id of a table's directory. Opaque; never used again once given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirId(pub String);

/// The folder of references to versions: what changes below it moves the pins.
pub const REFS_FOLDER: &str = "_refs";

/// The id of a lease.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub String);

/// Changes whenever an object appears in or leaves a folder. Opaque; only equality means something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(pub String);

/// An object as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    pub path: Path,
    pub size_bytes: u64,
    /// When the object was last written, in milliseconds since the Unix epoch, by the store's clock.
    pub modified_ms: u64,
}

/// What of a prefix to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Only paths greater than this one.
    pub after: Option<Path>,
    /// Do not descend: objects deeper than one level below the prefix are folded into `Listing::folders`.
    pub shallow: bool,
    /// At most this many objects.
    pub limit: Option<u32>,
}

/// The answer of `list`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// In byte order of the path.
    pub objects: Vec<ObjectMeta>,
    /// Folders directly below the prefix, only with `shallow`.
    pub folders: Vec<Path>,
}

/// A live table as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEntry {
    pub name: String,
    pub id: DirId,
}

/// One commit: see [`Store::commit`].
#[derive(Debug, Clone)]
pub struct CommitRequest {
    pub dir: DirId,
    /// Small objects that become visible together with `publish`; they replace what stands at their path.
    pub objects: Vec<(Path, Bytes)>,
    /// The manifest: must be absent.
    pub publish: (Path, Bytes),
    /// The token of the folder of `publish`, read before the caller looked at that folder.
    pub token: Token,
    /// Files that must exist, `objects` of this commit aside.
    pub requires: Vec<Path>,
    /// The version that is published, when it does not build on what its readers stand on (an overwrite, a restore): every later lease of
    /// the directory tells it, so that a handle from before it is known also when the versions in between were removed.
    pub replaces: Option<u64>,
}

/// How a commit ended. Only `Committed` changed anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitOutcome {
    Committed,
    /// Something stands at the path of `publish`.
    Exists,
    /// The folder changed since its token was read.
    Moved,
    /// The directory is not live.
    Gone,
    /// A required file is not there.
    Missing(Path),
}

/// How publishing a directory under a name ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishOutcome {
    /// The name points at the directory; also when it did already, or when the directory was renamed or dropped since.
    Published,
    /// The name points at another directory.
    Exists,
    /// The directory's lease ran out and it was swept.
    Gone,
}

/// How renaming ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenameOutcome {
    /// The new name points at the directory; also when it did already.
    Renamed,
    /// The new name points at another directory.
    Exists,
    /// The directory is not live under the old name.
    Gone,
}

/// Whether a delete took the bytes, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// Gone, or was never there.
    Deleted,
    /// The object is gone from every listing; its bytes are still held open somewhere and go with a later sweep.
    Busy,
}

/// What a lease keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseKind {
    /// From the first look until the answer; keeps every version from the one read.
    Write,
    /// Until the stream ends; keeps that version.
    Scan,
    /// A handle on an old version; keeps that version.
    Checkout,
}

/// A lease to be taken: the store checks in the same transaction that the directory is live and the manifest exists.
#[derive(Debug, Clone)]
pub struct LeaseRequest {
    pub dir: DirId,
    pub kind: LeaseKind,
    pub version: u64,
    /// The manifest of `version`.
    pub manifest: Path,
    pub now_ms: u64,
    pub expires_ms: u64,
}

/// How taking a lease ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseOutcome {
    Taken {
        id: LeaseId,
        /// The newest version that was committed as [`CommitRequest::replaces`]; 0 = none.
        replaced: u64,
    },
    /// The directory is not live.
    Gone,
    /// The manifest is not there.
    Missing,
}

/// A lease that has not run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveLease {
    pub kind: LeaseKind,
    pub version: u64,
}

/// Changes whenever an old version may have come to new life: by a change below `_refs/`, or by a commit that `replaces`. Opaque; only
/// equality means something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pins(pub String);

/// A reference (a tag, a branch) to be written: see [`Store::put_ref`].
#[derive(Debug, Clone)]
pub struct RefRequest {
    pub dir: DirId,
    /// Below `_refs/`.
    pub path: Path,
    pub bytes: Bytes,
    /// The manifest that it refers to: must be there.
    pub manifest: Path,
    pub mode: RefMode,
}

/// What a reference must find at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefMode {
    /// Nothing.
    Create,
    /// An object, which it replaces.
    Replace,
}

/// How writing a reference ended. Only `Written` changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefOutcome {
    Written,
    /// The directory is not live.
    Gone,
    /// The manifest is not there.
    Missing,
    /// `Create`, and something is at the path.
    Exists,
    /// `Replace`, and nothing is at the path.
    Absent,
}

/// What a cleanup takes: see [`Store::remove`].
#[derive(Debug, Clone)]
pub struct RemoveRequest {
    pub dir: DirId,
    /// Old versions and their manifests.
    pub manifests: Vec<(u64, Path)>,
    /// Files that no version names any more once `manifests` are gone.
    pub files: Vec<Path>,
    /// As read before the first look at versions and references.
    pub pins: Pins,
    /// The folder of versions and its token, as read before the first look, when `files` has some that no version named: one that is
    /// committed since may name them.
    pub token: Option<(Path, Token)>,
    /// Nobody may be writing: `files` may be those of a write under way.
    pub needs_no_writer: bool,
    pub now_ms: u64,
}

/// How removing ended. Only `Removed` changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoveOutcome {
    /// What was there of the request is gone from every listing.
    Removed {
        manifests: u64,
        /// Of all objects whose bytes are gone.
        bytes: u64,
        /// Objects whose bytes are still held open somewhere and go with a later sweep.
        busy: u64,
    },
    /// The pins or the token moved, or a live lease is on one of the versions.
    Moved,
    /// A live write lease is there, and `needs_no_writer`.
    Contended,
    /// The directory is not live.
    Gone,
}

/// A place in the queue of writers of one directory; dropping it lets the next one go.
pub trait Turn {}

/// Bytes by path: see the module's text for what every backend promises.
///
/// # Errors
/// `NotFound` for an object that is not there, `TableNotFound` for a directory that takes no writes, `InvalidInput` for a range outside
/// of the object, `Quota`, `Unavailable`, `Contention`, `Storage` as their texts say. A write that failed changed nothing, unless the
/// error is `OutcomeUnknown`.
#[async_trait(?Send)]
pub trait Store {
    /// Live tables in byte order of their names.
    async fn tables(&self) -> Result<Vec<TableEntry>>;

    /// The directory that a name points at.
    async fn lookup(&self, name: &str) -> Result<Option<DirId>>;

    /// Registers a new directory in the state `creating`, under a lease that ends at `expires_ms`. A lost answer costs nothing: the
    /// directory is swept when its lease ran out.
    async fn create_dir(&self, now_ms: u64, expires_ms: u64) -> Result<DirId>;

    /// Makes a `creating` directory live under a free name, in one transaction.
    async fn publish_dir(&self, name: &str, id: &DirId) -> Result<PublishOutcome>;

    /// Moves the name of a live directory.
    async fn rename_dir(&self, id: &DirId, from: &str, to: &str) -> Result<RenameOutcome>;

    /// Takes a live directory's name away; its objects go when no lease holds it. A directory that is not live is success.
    async fn drop_dir(&self, id: &DirId) -> Result<()>;

    /// Deletes what nobody can reach any more: directories that were dropped and have no live lease, or were never published and whose
    /// lease ran out, and bodies that were busy when their object was deleted. Rows first, in one transaction per directory.
    async fn sweep(&self, now_ms: u64) -> Result<()>;

    /// Writes an object, replacing what was there. Needs a `creating` or `live` directory.
    async fn put(&self, dir: &DirId, path: &Path, bytes: Bytes) -> Result<()>;

    /// Writes an object unless one is there; `false` leaves it as it was.
    async fn put_if_absent(&self, dir: &DirId, path: &Path, bytes: Bytes) -> Result<bool>;

    /// Starts streaming one object.
    async fn writer(&self, dir: &DirId, path: &Path) -> Result<Box<dyn ObjectWriter>>;

    /// The whole object.
    async fn get(&self, dir: &DirId, path: &Path) -> Result<Bytes>;

    /// Ranges of one object, in the order asked.
    async fn get_ranges(&self, dir: &DirId, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;

    /// Size and time of one object; `None` when it is not there.
    async fn head(&self, dir: &DirId, path: &Path) -> Result<Option<ObjectMeta>>;

    /// Objects below a folder (every object with the empty path).
    async fn list(&self, dir: &DirId, prefix: &Path, options: &ListOptions) -> Result<Listing>;

    /// Deletes one object.
    async fn delete(&self, dir: &DirId, path: &Path) -> Result<DeleteOutcome>;

    /// The token of a folder.
    async fn token(&self, dir: &DirId, folder: &Path) -> Result<Token>;

    /// In one strictly durable transaction: checks that the directory is live (or `creating`: a table's first version), `publish` absent, the token unmoved and every path of
    /// `requires` there, then writes `objects` and `publish`.
    async fn commit(&self, request: CommitRequest) -> Result<CommitOutcome>;

    /// Takes a lease.
    async fn lease(&self, request: LeaseRequest) -> Result<LeaseOutcome>;

    /// Moves the end of a lease that has not run out; `false` when it has: it never comes back to life. The lease of a `creating`
    /// directory goes by the directory's id.
    async fn renew(&self, lease: &LeaseId, now_ms: u64, expires_ms: u64) -> Result<bool>;

    /// Ends a lease. One that is not there is success.
    async fn release(&self, lease: &LeaseId) -> Result<()>;

    /// The live leases of a directory; rows of expired ones are deleted.
    async fn leases(&self, dir: &DirId, now_ms: u64) -> Result<Vec<LiveLease>>;

    /// The pins of a directory.
    async fn pins(&self, dir: &DirId) -> Result<Pins>;

    /// Writes a reference to a version, in one transaction with the look at its manifest.
    async fn put_ref(&self, request: RefRequest) -> Result<RefOutcome>;

    /// In one strictly durable transaction: checks that the directory is live, that neither pins nor token moved, that no live lease is on
    /// one of the versions (a write lease is on its version and every newer one), and that nobody writes where the request says so; then
    /// takes the manifests and the rows of the files. Bodies go afterwards. Where it is not one transaction, manifests go first: a crash
    /// leaves files that nobody names, and never a version without its files.
    async fn remove(&self, request: RemoveRequest) -> Result<RemoveOutcome>;

    /// Waits for a place among the writers of a directory, at most `wait_ms`; `None` when the time ran out, and the caller goes on
    /// without (a frozen tab may hold the place).
    async fn turn(&self, dir: &DirId, wait_ms: u64) -> Result<Option<Box<dyn Turn>>>;
}

/// One object being streamed: nothing of it is visible before `finish` returns.
#[async_trait(?Send)]
pub trait ObjectWriter {
    /// Appends bytes.
    async fn write(&mut self, bytes: Bytes) -> Result<()>;

    /// Publishes the object with the promises of `put` and returns its size.
    async fn finish(self: Box<Self>) -> Result<u64>;

    /// Leaves nothing.
    async fn abort(self: Box<Self>) -> Result<()>;
}
