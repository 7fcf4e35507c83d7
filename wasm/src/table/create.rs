//! Create: a new directory, its first version, its name.
//!
//! 1. The directory is registered, not yet live, under a lease.
//! 2. Data files are written; the first manifest is committed.
//! 3. The directory gets its name, in one transaction: only now there is a table.
//!
//! A crash before step 3 leaves a directory that nobody can reach; it is swept when its lease ran out.
//!
//! Who would replace a table and finds in step 3 that somebody took the name meanwhile replaces that one: the rows go from the new
//! directory into an overwrite, whose crash story is that of `commit`; the new directory, which never got a name, is swept as above.

use std::rc::Rc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;

use crate::env::{format_uuid, now_ms, random_uuid};
use crate::error::{Error, Result};
use crate::format::file::FileVersion;
use crate::format::table::layout::NamingScheme;
use crate::format::table::{Manifest, Schema};
use crate::store::{CommitOutcome, CommitRequest, DirId, ListOptions, Path, PublishOutcome};
use crate::table::database::{Database, Engine, repeat_lost};
use crate::table::handle::Table;
use crate::table::lease::Lease;
use crate::table::scan::{self, Scan};
use crate::table::snapshot::Snapshot;
use crate::table::write::{Append, RowWriter};
use crate::table::{Consistency, ScanOptions, build_manifest, commit, invariants, paths};

/// How long a new directory lives without being renewed.
const NEW_DIR_TTL_MS: u64 = 10 * 60 * 1_000;
/// How often the first manifest is handed to the store when the answer is lost.
const MAX_REPEATS: u32 = 5;
/// How often a creation that replaces goes after a name that others give away and take again.
const MAX_TAKES: u32 = 16;

/// A directory that has no name yet.
pub(crate) struct NewDirectory {
    pub(crate) name: String,
    pub(crate) dir: DirId,
    lease: Lease,
}

impl NewDirectory {
    pub(crate) async fn create(engine: &Engine, name: &str) -> Result<NewDirectory> {
        let now = now_ms(engine.env.as_ref());
        // A directory that was registered without our knowing it is swept.
        let dir = match engine.store.create_dir(now, now.saturating_add(NEW_DIR_TTL_MS)).await {
            Err(Error::OutcomeUnknown { .. }) => engine.store.create_dir(now, now.saturating_add(NEW_DIR_TTL_MS)).await,
            other => other,
        };
        let dir = dir.map_err(|error| match error {
            Error::OutcomeUnknown { message } => Error::Unavailable { reason: message },
            other => other,
        })?;
        let lease = engine.leases.adopt(&dir);
        Ok(NewDirectory { name: name.to_owned(), dir, lease })
    }

    /// Makes a table of the directory whose first version was made, or leaves nothing of it.
    ///
    /// # Errors
    /// The one of `made`; `TableExists`; `Timeout` when the directory's lease ran out.
    pub(crate) async fn settle(
        self,
        engine: Rc<Engine>,
        made: Result<Rc<Snapshot>>,
        consistency: Consistency,
    ) -> Result<Table> {
        let published = match made {
            Ok(snapshot) => self.publish(&engine).await.map(|()| snapshot),
            Err(error) => Err(error),
        };
        self.end(engine, published, consistency).await
    }

    /// The table of a directory that has its name, or nothing.
    async fn end(self, engine: Rc<Engine>, published: Result<Rc<Snapshot>>, consistency: Consistency) -> Result<Table> {
        match published {
            Ok(snapshot) => {
                let table = Table::new(engine, &self.name, snapshot, consistency);
                self.let_go();
                Ok(table)
            }
            Err(error) => {
                // Whoever can't know whether the name was given must not take the files away.
                if matches!(error, Error::OutcomeUnknown { .. }) {
                    self.let_go();
                } else {
                    self.abandon(&engine).await;
                }
                Err(error)
            }
        }
    }

    async fn publish(&self, engine: &Engine) -> Result<()> {
        match repeat_lost(async || engine.store.publish_dir(&self.name, &self.dir).await).await? {
            PublishOutcome::Published => Ok(()),
            PublishOutcome::Exists => Err(Error::TableExists { name: self.name.clone() }),
            PublishOutcome::Gone => {
                let message = format!("table '{}' was not finished before its lease ran out", self.name);
                Err(Error::Timeout { message })
            }
        }
    }

    /// The directory is live, or left to the sweep: nothing renews it any more.
    fn let_go(self) {
        self.lease.forget();
    }

    /// Frees what the directory holds. Best effort: it was never reachable, and the sweep takes the rest.
    pub(crate) async fn abandon(self, engine: &Engine) {
        if let Ok(listing) = engine.store.list(&self.dir, &Path::default(), &ListOptions::default()).await {
            for object in listing.objects {
                let _ = engine.store.delete(&self.dir, &object.path).await;
            }
        }
        self.let_go();
    }
}

/// Whether a table of the same name may be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CreateMode {
    /// `TableExists` when there is one.
    #[default]
    Create,
    /// Its rows and its schema are replaced, in a new version of it.
    Overwrite,
}

/// A table being created; nothing is visible before `finish`.
pub struct CreateTable {
    engine: Rc<Engine>,
    target: Target,
}

enum Target {
    New(FirstVersion),
    Existing(Append),
}

/// The first version of a new directory.
struct FirstVersion {
    engine: Rc<Engine>,
    new: NewDirectory,
    schema: Schema,
    format: FileVersion,
    has_row_ids: bool,
    writer: RowWriter,
    replaces: Option<Replaces>,
}

/// What a table that others made meanwhile is replaced by.
pub(crate) struct Replaces {
    pub(crate) schema: SchemaRef,
    /// `None` = the format that it has.
    pub(crate) format: Option<FileVersion>,
}

impl CreateTable {
    /// `replaces` is for [`CreateMode::Overwrite`].
    pub(crate) fn new(
        engine: Rc<Engine>,
        new: NewDirectory,
        schema: Schema,
        format: FileVersion,
        replaces: Option<Replaces>,
    ) -> CreateTable {
        let writer = RowWriter::new(engine.clone(), new.dir.clone(), Rc::new(schema.clone()), format);
        let first = FirstVersion { engine: engine.clone(), new, schema, format, has_row_ids: false, writer, replaces };
        CreateTable { engine, target: Target::New(first) }
    }

    /// What stands in for a table that is there.
    pub(crate) fn over(engine: Rc<Engine>, overwrite: Append) -> CreateTable {
        CreateTable { engine, target: Target::Existing(overwrite) }
    }

    /// Whether the rows of a new table get ids that stay when rows move, and versions of their own. Not by default, as in LanceDB; a table
    /// that is there stays as it was made.
    pub fn with_stable_row_ids(mut self, has_row_ids: bool) -> CreateTable {
        if let Target::New(first) = &mut self.target {
            first.has_row_ids = has_row_ids;
        }
        self
    }

    /// # Errors
    /// As [`Append::write`].
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.target {
            Target::New(first) => first.writer.write(batch).await,
            Target::Existing(overwrite) => overwrite.write(batch).await,
        }
    }

    /// # Errors
    /// `TableExists` when somebody took the name meanwhile, unless it is to be replaced; `Timeout` when the directory's lease ran out.
    /// Nothing is left then. Over a table that is there, as [`Append::finish`].
    pub async fn finish(self, consistency: Consistency) -> Result<Table> {
        match self.target {
            Target::New(mut first) => {
                let made = first.make().await;
                if made.is_err() {
                    first.writer.abort().await;
                }
                match (made, first.replaces) {
                    (Ok(made), Some(replaces)) => replaces.settle(self.engine, first.new, made, consistency).await,
                    (made, _) => first.new.settle(self.engine, made, consistency).await,
                }
            }
            Target::Existing(overwrite) => {
                let table = overwrite.table().clone();
                overwrite.finish().await?;
                table.again(consistency)
            }
        }
    }

    /// Leaves no table, or the one that is there as it is.
    pub async fn abort(self) -> Result<()> {
        match self.target {
            Target::New(mut first) => {
                first.writer.abort().await;
                first.new.abandon(&self.engine).await;
                Ok(())
            }
            Target::Existing(overwrite) => overwrite.abort().await,
        }
    }
}

impl Replaces {
    /// Gives the directory its name, or its rows to the table that has the name.
    async fn settle(
        self,
        engine: Rc<Engine>,
        new: NewDirectory,
        made: Rc<Snapshot>,
        consistency: Consistency,
    ) -> Result<Table> {
        let mut last = Error::TableExists { name: new.name.clone() };
        for _ in 0..MAX_TAKES {
            match new.publish(&engine).await {
                Err(Error::TableExists { .. }) => {}
                published => return new.end(engine, published.map(|()| made), consistency).await,
            }
            match self.replace(&engine, &new.name, &made, consistency).await {
                Ok(table) => {
                    new.abandon(&engine).await;
                    return Ok(table);
                }
                // It was dropped, or replaced by somebody else: its caller saw neither, so that both are before this one.
                Err(error @ (Error::TableNotFound { .. } | Error::Conflict { .. })) => last = error,
                Err(error) => {
                    new.abandon(&engine).await;
                    return Err(error);
                }
            }
        }
        let message = format!("table '{}' was made and replaced by others again and again: {last}", new.name);
        new.abandon(&engine).await;
        Err(Error::Contention { message })
    }

    async fn replace(
        &self,
        engine: &Rc<Engine>,
        name: &str,
        made: &Rc<Snapshot>,
        consistency: Consistency,
    ) -> Result<Table> {
        let table = Database::of(engine.clone()).open_table(name, consistency).await?;
        let mut rows = Scan::new(engine.clone(), made.clone(), scan::plan(made, &ScanOptions::default())?)?;
        let mut overwrite = table.overwrite_as(Some(self.schema.clone()), self.format).await?;
        loop {
            let written = match rows.next().await {
                Ok(Some(batch)) => overwrite.write(&batch).await,
                Ok(None) => break,
                Err(error) => Err(error),
            };
            if let Err(error) = written {
                overwrite.abort().await?;
                return Err(error);
            }
        }
        overwrite.finish().await?;
        Ok(table)
    }
}

impl FirstVersion {
    async fn make(&mut self) -> Result<Rc<Snapshot>> {
        let written = self.writer.finish().await?;
        let uuid = format_uuid(&random_uuid(self.engine.env.as_ref()));
        let now_ns = self.engine.env.now_ns();
        let manifest =
            build_manifest::first(self.schema.clone(), self.format, written.fragments, self.has_row_ids, uuid, now_ns)?;
        invariants::check_fragments(&manifest)?;
        let path = paths::manifest(1, NamingScheme::V2);
        self.publish_manifest(&path, &manifest, written.objects).await?;
        let manifest = self.engine.cache.manifests.insert(&self.new.dir, &path, manifest);
        Ok(Rc::new(Snapshot { dir: self.new.dir.clone(), path, manifest, parts: None }))
    }

    async fn publish_manifest(&self, path: &Path, manifest: &Manifest, objects: Vec<(Path, Bytes)>) -> Result<()> {
        let store = &self.engine.store;
        let requires: Vec<Path> = commit::files(manifest)
            .into_iter()
            .filter(|file| !objects.iter().any(|(object, _)| object == file))
            .collect();
        let bytes = Bytes::from(manifest.encode());
        for _ in 0..MAX_REPEATS {
            let request = CommitRequest {
                dir: self.new.dir.clone(),
                objects: objects.clone(),
                publish: (path.clone(), bytes.clone()),
                token: store.token(&self.new.dir, &paths::versions_folder()).await?,
                requires: requires.clone(),
                replaces: None,
            };
            match store.commit(request).await {
                // Nobody else writes here: what stands there is ours, and its answer was lost.
                Ok(CommitOutcome::Committed | CommitOutcome::Exists) => return Ok(()),
                Ok(CommitOutcome::Moved) | Err(Error::OutcomeUnknown { .. } | Error::Unavailable { .. }) => {}
                Ok(CommitOutcome::Gone) => {
                    let message = format!("table '{}' was not finished before its lease ran out", self.new.name);
                    return Err(Error::Timeout { message });
                }
                Ok(CommitOutcome::Missing(path)) => {
                    return Err(Error::NotFound { what: format!("file {path} that was just written") });
                }
                Err(error) => return Err(error),
            }
        }
        // The directory has no name, so the table is certainly not there.
        Err(Error::Unavailable { reason: "the answers of writing the first version were lost".into() })
    }
}
