//! Database: the tables of one store, and what all their handles share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use arrow_schema::SchemaRef;

use crate::collections::{SortedMap, SortedSet};
use crate::env::{Env, now_ms};
use crate::error::{Error, Result};
use crate::format::file::{FileVersion, FileWriter};
use crate::format::table::Schema;
use crate::store::{DirId, RenameOutcome, Store};
use crate::table::Consistency;
use crate::table::cache::Cache;
use crate::table::commit::{self, Queue};
use crate::table::create::{CreateMode, CreateTable, NewDirectory, Replaces};
use crate::table::export::Export;
use crate::table::handle::Table;
use crate::table::import::Import;
use crate::table::lease::Leases;
use crate::table::versions;

/// Characters of a table name at most: file systems end at 255 bytes, with a suffix.
const MAX_NAME_CHARS: usize = 200;
/// How often an operation that names its directory is repeated when its answer is lost.
const MAX_REPEATS: u32 = 5;

/// The tables of one store.
#[derive(Clone)]
pub struct Database {
    engine: Rc<Engine>,
}

/// What the handles of one database share.
pub(crate) struct Engine {
    pub(crate) store: Rc<dyn Store>,
    pub(crate) env: Rc<dyn Env>,
    pub(crate) leases: Rc<Leases>,
    pub(crate) cache: Cache,
    queues: RefCell<SortedMap<DirId, Rc<Queue>>>,
    /// Directories of tables that were dropped here: what is in memory of them is of no table.
    dropped: RefCell<SortedSet<DirId>>,
    /// Versions that the last cleanup of a directory by `maintain` left.
    pub(crate) kept_versions: RefCell<SortedMap<DirId, u64>>,
    /// Until then nobody waits for a turn: somebody waited in vain.
    pub(crate) turnless_until_ms: Cell<u64>,
}

impl Engine {
    /// For what is answered from memory, or found missing.
    ///
    /// # Errors
    /// `TableNotFound` after the table was dropped through this engine.
    pub(crate) fn check_there(&self, dir: &DirId) -> Result<()> {
        if self.dropped.borrow().contains(dir) { Err(commit::gone()) } else { Ok(()) }
    }

    /// Where commits to a directory queue.
    pub(crate) fn queue(&self, dir: &DirId) -> Rc<Queue> {
        let mut queues = self.queues.borrow_mut();
        queues.retain(|other, queue| other == dir || Rc::strong_count(queue) > 1);
        queues.or_insert_with(dir.clone(), || Rc::new(Queue::new())).clone()
    }
}

impl Database {
    pub fn new(store: Rc<dyn Store>, env: Rc<dyn Env>) -> Database {
        let leases = Rc::new(Leases::new(store.clone(), env.clone()));
        Database {
            engine: Rc::new(Engine {
                store,
                env,
                leases,
                cache: Cache::new(),
                queues: RefCell::default(),
                dropped: RefCell::default(),
                kept_versions: RefCell::default(),
                turnless_until_ms: Cell::new(0),
            }),
        }
    }

    pub(crate) fn of(engine: Rc<Engine>) -> Database {
        Database { engine }
    }

    /// Names in byte order.
    pub async fn table_names(&self) -> Result<Vec<String>> {
        Ok(self.engine.store.tables().await?.into_iter().map(|entry| entry.name).collect())
    }

    /// Starts a table of a schema. `finish` without a `write` makes an empty one.
    ///
    /// # Errors
    /// `InvalidInput` for a bad name, `TableExists`, `Schema` for a schema that cannot be stored.
    pub async fn create_table(&self, name: &str, schema: SchemaRef) -> Result<CreateTable> {
        self.create_table_with(name, schema, None, CreateMode::Create).await
    }

    /// As [`Database::create_table`], with data files of a version: the table keeps to it; and perhaps over a table that is there,
    /// which keeps its own version where none is given.
    ///
    /// # Errors
    /// Also `NotSupported` for a type that the version has no place for.
    pub async fn create_table_with(
        &self,
        name: &str,
        schema: SchemaRef,
        format: impl Into<Option<FileVersion>>,
        mode: CreateMode,
    ) -> Result<CreateTable> {
        check_name(name)?;
        let format = format.into();
        let stored = Schema::from_arrow(&schema)?;
        let replaces = match mode {
            CreateMode::Create => None,
            CreateMode::Overwrite => match self.open_table(name, Consistency::Lazy).await {
                Ok(table) => {
                    let overwrite = table.overwrite_as(Some(schema), format).await?;
                    return Ok(CreateTable::over(self.engine.clone(), overwrite));
                }
                Err(Error::TableNotFound { .. }) => Some(Replaces { schema, format }),
                Err(error) => return Err(error),
            },
        };
        let format = format.unwrap_or(FileVersion::DEFAULT);
        FileWriter::check(&stored, format)?;
        let new = match mode {
            CreateMode::Create => self.new_directory(name).await?,
            // Whoever takes the name meanwhile is replaced.
            CreateMode::Overwrite => NewDirectory::create(&self.engine, name).await?,
        };
        Ok(CreateTable::new(self.engine.clone(), new, stored, format, replaces))
    }

    /// # Errors
    /// `TableNotFound`; `NotSupported` for feature flags or a data format that this build does not read; `Corrupt`.
    pub async fn open_table(&self, name: &str, consistency: Consistency) -> Result<Table> {
        // Dropped and made again between the two steps: then the name points at another directory.
        for _ in 0..MAX_REPEATS {
            let dir = self.lookup(name).await?;
            match versions::latest(&self.engine, &dir).await {
                Ok(Some(snapshot)) => return Ok(Table::new(self.engine.clone(), name, snapshot, consistency)),
                Ok(None) | Err(Error::TableNotFound { .. }) => {}
                Err(Error::Corrupt { path, offset, reason }) if path.starts_with("_versions/") => {
                    let reason = format!("{reason}; without this file the table is what it was one version before");
                    return Err(Error::Corrupt { path, offset, reason });
                }
                Err(error) => return Err(error),
            }
            if self.engine.store.lookup(name).await?.as_ref() == Some(&dir) {
                return Err(Error::corrupt(format!("table '{name}' has no version")).at("_versions"));
            }
        }
        Err(Error::TableNotFound { name: name.to_owned() })
    }

    /// # Errors
    /// `TableNotFound`.
    pub async fn drop_table(&self, name: &str) -> Result<()> {
        let dir = self.lookup(name).await?;
        // It names the directory: repeated after a lost answer, it can't hit a new table of the same name.
        repeat_lost(async || self.engine.store.drop_dir(&dir).await).await?;
        self.engine.cache.forget(&dir);
        self.engine.dropped.borrow_mut().insert(dir);
        // Best effort: the table is gone, and what is left of it goes with the next sweep.
        let _ = self.engine.store.sweep(now_ms(self.engine.env.as_ref())).await;
        Ok(())
    }

    /// Gives a table another name; handles on it stay with it.
    ///
    /// # Errors
    /// `TableNotFound`; `TableExists` for the new name; `InvalidInput` for a bad one; `OutcomeUnknown`.
    pub async fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        check_name(to)?;
        let dir = self.lookup(from).await?;
        let attempts = Cell::new(0u32);
        let outcome = repeat_lost(async || {
            attempts.set(attempts.get() + 1);
            self.engine.store.rename_dir(&dir, from, to).await
        })
        .await?;
        let error = match outcome {
            RenameOutcome::Renamed => return Ok(()),
            RenameOutcome::Exists => Error::TableExists { name: to.to_owned() },
            RenameOutcome::Gone => Error::TableNotFound { name: from.to_owned() },
        };
        // When an answer was lost the table may have got the new name, and yet another one since.
        if attempts.get() > 1 && self.engine.store.lookup(from).await?.as_ref() != Some(&dir) {
            let message = format!("the answer to renaming table '{from}' was lost, and then: {error}");
            return Err(Error::OutcomeUnknown { message });
        }
        Err(error)
    }

    /// All versions of a table as files, `_versions` last.
    ///
    /// # Errors
    /// `TableNotFound`, `Corrupt`.
    pub async fn export_table(&self, name: &str) -> Result<Export> {
        let dir = self.lookup(name).await?;
        Export::begin(self.engine.clone(), name, dir).await
    }

    /// Starts taking a table's files under a free name.
    ///
    /// # Errors
    /// `InvalidInput` for a bad name, `TableExists`.
    pub async fn import_table(&self, name: &str) -> Result<Import> {
        check_name(name)?;
        let new = self.new_directory(name).await?;
        Ok(Import::new(self.engine.clone(), new))
    }

    /// Renews every lease that this engine holds and sweeps what nobody can reach; to be called about every 10 seconds while `holds_leases`.
    pub async fn maintain(&self) -> Result<()> {
        let renewed = self.engine.leases.renew_all().await;
        let swept = self.engine.store.sweep(now_ms(self.engine.env.as_ref())).await;
        renewed.and(swept)
    }

    pub fn holds_leases(&self) -> bool {
        !self.engine.leases.is_empty()
    }

    async fn lookup(&self, name: &str) -> Result<DirId> {
        let found = self.engine.store.lookup(name).await?;
        found.ok_or_else(|| Error::TableNotFound { name: name.to_owned() })
    }

    async fn new_directory(&self, name: &str) -> Result<NewDirectory> {
        if self.engine.store.lookup(name).await?.is_some() {
            return Err(Error::TableExists { name: name.to_owned() });
        }
        NewDirectory::create(&self.engine, name).await
    }
}

/// Repeats an operation that finds its own deed when it was done already.
///
/// # Errors
/// `OutcomeUnknown` when an answer was lost and no later one said what became of it.
pub(crate) async fn repeat_lost<T>(operation: impl AsyncFn() -> Result<T>) -> Result<T> {
    let mut lost = None;
    for _ in 0..MAX_REPEATS {
        match operation().await {
            Err(error @ (Error::OutcomeUnknown { .. } | Error::Unavailable { .. })) => lost = Some(error),
            Err(error) if lost.is_some() => lost = Some(error),
            other => return other,
        }
    }
    let message = lost.map(|error| error.to_string()).unwrap_or_default();
    Err(Error::OutcomeUnknown { message: format!("the answer was lost again and again: {message}") })
}

fn check_name(name: &str) -> Result<()> {
    let fault = if name.is_empty() {
        "Table names cannot be empty strings".to_owned()
    } else if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')) {
        "Table names can only contain alphanumeric characters, underscores, hyphens, and periods".to_owned()
    } else if name == "." {
        "Table name cannot be a single dot.".to_owned()
    } else if name == ".." {
        "Table name cannot be two dots.".to_owned()
    } else if name.len() > MAX_NAME_CHARS {
        format!("Table names have at most {MAX_NAME_CHARS} characters, this one has {}", name.len())
    } else {
        return Ok(());
    };
    Err(Error::invalid_input(format!("Invalid table name (\"{name}\"): {fault}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_with_the_words_of_lancedb() {
        let fault = |name: &str| check_name(name).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(fault("").ends_with("(\"\"): Table names cannot be empty strings"));
        assert!(fault("a/b").contains("can only contain alphanumeric characters, underscores, hyphens, and periods"));
        assert!(fault(".").contains("Table name cannot be a single dot."));
        assert!(fault("..").contains("Table name cannot be two dots."));
        assert!(fault(&"a".repeat(201)).contains("at most 200"));
        for good in ["a", ".x", "-x", "_x", "A.b-c_9", &"a".repeat(200)] {
            assert_eq!(fault(good), "");
        }
    }
}
