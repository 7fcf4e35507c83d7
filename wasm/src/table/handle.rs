//! Table: a handle that stands on a version.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use arrow_schema::{Schema as ArrowSchema, SchemaRef};

use crate::env::now_ms;
use crate::error::{Error, Result};
use crate::format::file::FileVersion;
use crate::format::table::Schema;
use crate::format::wal::WriteSpec;
use crate::store::LeaseKind;
use crate::table::database::Engine;
use crate::table::lease::{Lease, Taken};
use crate::table::refresh::Refresh;
use crate::table::scan::{self, Scan};
use crate::table::snapshot::Snapshot;
use crate::table::write::{Append, WriteMode};
use crate::table::{Consistency, DeleteResult, ScanOptions, VersionInfo, commit, delete, fresh, restore, versions};

/// A table at its latest version, or, checked out, at an old one. Clones share that state.
#[derive(Clone)]
pub struct Table {
    state: Rc<State>,
}

struct State {
    engine: Rc<Engine>,
    name: String,
    snapshot: RefCell<Rc<Snapshot>>,
    /// Set while a version is checked out.
    pin: RefCell<Option<Lease>>,
    refresh: Refresh,
    is_closed: Cell<bool>,
}

impl Table {
    pub(crate) fn new(engine: Rc<Engine>, name: &str, snapshot: Rc<Snapshot>, consistency: Consistency) -> Table {
        let refresh = Refresh::new(consistency, now_ms(engine.env.as_ref()));
        let state = State {
            engine,
            name: name.to_owned(),
            snapshot: RefCell::new(snapshot),
            pin: RefCell::default(),
            refresh,
            is_closed: Cell::new(false),
        };
        Table { state: Rc::new(state) }
    }

    /// A handle of its own on the version that this one stands on.
    pub(crate) fn again(&self, consistency: Consistency) -> Result<Table> {
        Ok(Table::new(self.state.engine.clone(), &self.state.name, self.standing()?, consistency))
    }

    pub(crate) fn engine(&self) -> &Rc<Engine> {
        &self.state.engine
    }

    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The schema of the version this handle stands on.
    pub async fn schema(&self) -> Result<SchemaRef> {
        Ok(SchemaRef::new(self.current().await?.manifest.schema.to_arrow()))
    }

    pub async fn version(&self) -> Result<u64> {
        Ok(self.current().await?.version())
    }

    /// All versions, ascending, also while an old one is checked out.
    pub async fn versions(&self) -> Result<Vec<VersionInfo>> {
        let dir = self.standing()?.dir.clone();
        let versions = versions::infos(&self.state.engine, &dir).await.map_err(|error| self.name_it(error))?;
        // A table has at least one; the files of a dropped one are there while somebody reads them.
        let there = if versions.is_empty() { Err(commit::gone()) } else { self.state.engine.check_there(&dir) };
        there.map(|()| versions).map_err(|error| self.name_it(error))
    }

    /// Pins the handle to a version, read-only.
    ///
    /// # Errors
    /// `NotFound`; the handle is unchanged.
    pub async fn checkout(&self, version: u64) -> Result<()> {
        let standing = self.standing()?;
        let engine = &self.state.engine;
        let snapshot = versions::open(engine, &standing, version).await.map_err(|error| self.name_it(error))?;
        // Remembered manifests outlive their files: the lease says whether the version is still there.
        let lease = self.lease(LeaseKind::Checkout, &snapshot).await?;
        if self.state.is_closed.get() {
            lease.release().await;
            return Err(self.closed());
        }
        let before = self.state.pin.replace(Some(lease));
        self.state.snapshot.replace(snapshot);
        if let Some(before) = before {
            before.release().await;
        }
        Ok(())
    }

    /// Goes to the latest version and follows it again.
    pub async fn checkout_latest(&self) -> Result<()> {
        let standing = self.standing()?;
        let latest = versions::latest(&self.state.engine, &standing.dir).await.map_err(|error| self.name_it(error))?;
        let latest = latest.ok_or_else(|| self.name_it(commit::gone()))?;
        self.state.refresh.looked(now_ms(self.state.engine.env.as_ref()));
        let pin = self.state.pin.take();
        self.advance(latest);
        if let Some(pin) = pin {
            pin.release().await;
        }
        Ok(())
    }

    /// Starts an append. Batches may lack nullable columns.
    ///
    /// # Errors
    /// `InvalidInput` on a checked-out handle, `NotSupported` where `docs/format.md` says so.
    pub async fn append(&self) -> Result<Append> {
        let snapshot = self.writable()?;
        let begun = commit::begin(&self.state.engine, snapshot).await.map_err(|error| self.name_it(error))?;
        Append::new(self.clone(), self.state.engine.clone(), begun).await
    }

    /// Starts putting rows in the place of all that the table has; its schema, its config and its history stay. Indices go.
    ///
    /// # Errors
    /// As [`Table::append`].
    pub async fn overwrite(&self) -> Result<Append> {
        let snapshot = self.writable()?;
        let schema = snapshot.manifest.schema.to_arrow();
        let format = FileVersion::parse(&snapshot.manifest.data_format)?;
        self.overwrite_with(&schema, format).await
    }

    /// As [`Table::overwrite`], with another schema and data files of a version.
    ///
    /// # Errors
    /// Also `Schema` for a schema that cannot be stored, `NotSupported` for a type that the version has no place for.
    pub async fn overwrite_with(&self, schema: &ArrowSchema, format: FileVersion) -> Result<Append> {
        let snapshot = self.writable()?;
        let schema = Schema::from_arrow(schema)?;
        let engine = self.state.engine.clone();
        let begun = commit::begin(&engine, snapshot).await.map_err(|error| self.name_it(error))?;
        Append::with(self.clone(), engine, begun, (schema, format), WriteMode::Overwrite).await
    }

    /// Makes the version that is checked out the newest one, as a version of its own, and follows the latest again.
    ///
    /// # Errors
    /// `InvalidInput` when no version is checked out; `NotFound` when the version was cleaned up; `Contention`, `TableNotFound`,
    /// `OutcomeUnknown` as an append.
    pub async fn restore(&self) -> Result<u64> {
        let old = self.standing()?;
        if self.state.pin.borrow().is_none() {
            return Err(Error::invalid_input("you must run checkout before running restore"));
        }
        let engine = &self.state.engine;
        let restored = restore::restore(engine, old).await.map_err(|error| self.name_it(error))?;
        let version = restored.version();
        let pin = self.state.pin.take();
        self.advance(restored);
        if let Some(pin) = pin {
            pin.release().await;
        }
        Ok(version)
    }

    /// Deletes matching rows; commits a version also when none matches, as LanceDB does.
    ///
    /// # Errors
    /// What the filter says; `InvalidInput` on a checked-out handle; `Conflict`, `Contention`, `TableNotFound`, `OutcomeUnknown` as an
    /// append.
    pub async fn delete(&self, predicate: &str) -> Result<DeleteResult> {
        let snapshot = self.writable()?;
        let (deleted_rows, committed) =
            delete::delete(&self.state.engine, snapshot, predicate).await.map_err(|error| self.name_it(error))?;
        let version = committed.version();
        self.advance(committed);
        Ok(DeleteResult { deleted_rows, version })
    }

    pub async fn count_rows(&self, filter: Option<&str>) -> Result<u64> {
        let snapshot = self.readable(None).await?;
        if filter.is_none() {
            self.state.engine.check_there(&snapshot.dir).map_err(|error| self.name_it(error))?;
            return scan::count(&self.state.engine, &snapshot, None).await;
        }
        let lease = self.lease(LeaseKind::Scan, &snapshot).await?;
        let count = scan::count(&self.state.engine, &snapshot, filter).await;
        lease.release().await;
        count.map_err(|error| self.name_it(error))
    }

    /// # Errors
    /// `InvalidInput` and `NotFound` for columns and the filter; `NotFound` when the version was cleaned up; `Corrupt` for a
    /// write-ahead log that cannot be read.
    pub async fn scan(&self, options: ScanOptions) -> Result<Scan> {
        let snapshot = self.readable(options.use_lsm).await?;
        let plan = scan::plan(&snapshot, &options)?;
        let scan = Scan::new(self.state.engine.clone(), snapshot.clone(), plan)?;
        Ok(scan.holding(self.lease(LeaseKind::Scan, &snapshot).await?))
    }

    /// Releases the handle's lease; later calls fail with `Closed`.
    pub async fn close(&self) -> Result<()> {
        self.state.is_closed.set(true);
        let pin = self.state.pin.take();
        if let Some(pin) = pin {
            pin.release().await;
        }
        Ok(())
    }

    /// Moves the handle to a newer version, unless it is checked out; never backwards.
    pub(crate) fn advance(&self, snapshot: Rc<Snapshot>) {
        let mut standing = self.state.snapshot.borrow_mut();
        let is_pinned = self.state.pin.borrow().is_some();
        if !is_pinned && (snapshot.version() > standing.version() || snapshot.dir != standing.dir) {
            *standing = snapshot;
        }
    }

    /// Gives an error of a directory the name of its table.
    pub(crate) fn name_it(&self, error: Error) -> Error {
        match error {
            Error::TableNotFound { .. } => Error::TableNotFound { name: self.state.name.clone() },
            other => other,
        }
    }

    /// The version that a read sees.
    pub(crate) async fn current(&self) -> Result<Rc<Snapshot>> {
        let standing = self.standing()?;
        if self.state.pin.borrow().is_some() {
            return Ok(standing);
        }
        let newer = self.state.refresh.newer(&self.state.engine, &standing).await;
        if let Some(newer) = newer.map_err(|error| self.name_it(error))? {
            self.advance(newer);
        }
        self.standing()
    }

    /// What a read sees. Old versions have no rows beside them.
    async fn readable(&self, use_lsm: Option<bool>) -> Result<Rc<Snapshot>> {
        let snapshot = self.current().await?;
        let is_pinned = self.state.pin.borrow().is_some();
        match use_lsm {
            Some(false) => return Ok(snapshot),
            None if is_pinned => return Ok(snapshot),
            Some(true) if WriteSpec::find(&snapshot.manifest)?.is_none() => return Err(fresh::no_spec()),
            Some(true) if is_pinned => {
                return Err(Error::invalid_input("use_lsm(true): cannot read from a time-traveled dataset version"));
            }
            None | Some(true) => {}
        }
        fresh::view(&self.state.engine, &snapshot).await.map_err(|error| self.name_it(error))
    }

    pub(crate) fn standing(&self) -> Result<Rc<Snapshot>> {
        if self.state.is_closed.get() { Err(self.closed()) } else { Ok(self.state.snapshot.borrow().clone()) }
    }

    fn closed(&self) -> Error {
        Error::Closed { what: format!("Table {}", self.state.name) }
    }

    pub(crate) fn writable(&self) -> Result<Rc<Snapshot>> {
        let standing = self.standing()?;
        if self.state.pin.borrow().is_some() {
            let message =
                "table cannot be modified when a specific version is checked out: checkoutLatest() or restore() first";
            return Err(Error::invalid_input(message));
        }
        Ok(standing)
    }

    async fn lease(&self, kind: LeaseKind, snapshot: &Snapshot) -> Result<Lease> {
        let taken = self.state.engine.leases.take(kind, &snapshot.dir, snapshot.version(), &snapshot.path).await;
        match taken.map_err(|error| self.name_it(error))? {
            Taken::Lease(lease) => Ok(lease),
            Taken::Gone => Err(self.name_it(commit::gone())),
            Taken::Missing if kind == LeaseKind::Checkout => Err(versions::not_found(snapshot.version())),
            Taken::Missing => Err(Error::NotFound {
                what: format!(
                    "version {} of table '{}' does not exist any more: a cleanup removed it while this handle stood on it; \
                     checkoutLatest() brings the handle to the newest version",
                    snapshot.version(),
                    self.state.name
                ),
            }),
        }
    }
}
