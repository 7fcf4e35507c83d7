//! Import: a table from its files.
//!
//! 1. A new directory is registered, not yet live, under a lease.
//! 2. Files come one after the other; only paths of a table's layout are taken.
//! 3. The newest version must open, and every file that it names must be there with the size that it says.
//! 4. The directory gets its name. After a failure nothing remains.

use std::rc::Rc;

use bytes::Bytes;

use crate::collections::SortedMap;
use crate::error::{Error, Result};
use crate::format::table::layout;
use crate::store::{ListOptions, ObjectWriter, Path};
use crate::table::Consistency;
use crate::table::create::NewDirectory;
use crate::table::database::Engine;
use crate::table::handle::Table;
use crate::table::snapshot::Snapshot;
use crate::table::staging::{MAX_STAGED_BYTES, Staged, StagedWriter};
use crate::table::{paths, versions};

/// A table being imported; nothing is visible before `finish`.
pub struct Import {
    engine: Rc<Engine>,
    new: NewDirectory,
    staged: Staged,
    open: Option<Box<dyn ObjectWriter>>,
}

impl Import {
    pub(crate) fn new(engine: Rc<Engine>, new: NewDirectory) -> Import {
        Import { engine, new, staged: Staged::default(), open: None }
    }

    /// Starts the next file; the one before it is complete.
    ///
    /// # Errors
    /// `InvalidInput` for a path that is no file of a table.
    pub async fn begin_file(&mut self, path: &str) -> Result<()> {
        self.end_file().await?;
        let parsed = Path::parse(path)?;
        if !is_table_file(&parsed) {
            return Err(Error::invalid_input(format!("{path:?} is no path of a file of a table")));
        }
        let (store, dir) = (self.engine.store.clone(), self.new.dir.clone());
        self.open = Some(Box::new(StagedWriter::new(store, dir, parsed, self.staged.clone())));
        Ok(())
    }

    /// # Errors
    /// `InvalidInput` before the first `begin_file`.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        match &mut self.open {
            Some(open) => open.write(bytes).await,
            None => Err(Error::invalid_input("bytes before the first file of an import")),
        }
    }

    /// Checks that the newest version opens and that every file it names is there, then gives the table its name.
    ///
    /// # Errors
    /// `NotFound` for a file that is missing, `Corrupt` for one of another size or bytes that are no manifest, `NotSupported` for
    /// features that this build does not read, `TableExists`. Nothing remains then.
    pub async fn finish(mut self, consistency: Consistency) -> Result<Table> {
        let made = match self.end_file().await {
            Ok(()) => self.check().await,
            Err(error) => Err(error),
        };
        self.new.settle(self.engine, made, consistency).await
    }

    /// Leaves no table.
    pub async fn abort(mut self) -> Result<()> {
        if let Some(open) = self.open.take() {
            // The directory goes as a whole.
            let _ = open.abort().await;
        }
        self.new.abandon(&self.engine).await;
        Ok(())
    }

    async fn end_file(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        open.finish().await?;
        let staged = std::mem::take(&mut *self.staged.borrow_mut());
        for (path, bytes) in staged {
            debug_assert!(bytes.len() as u64 <= MAX_STAGED_BYTES);
            self.engine.store.put(&self.new.dir, &path, bytes).await.map_err(|error| match error {
                Error::OutcomeUnknown { message } => Error::Unavailable { reason: message },
                other => other,
            })?;
        }
        Ok(())
    }

    async fn check(&self) -> Result<Rc<Snapshot>> {
        let listed = versions::all(self.engine.store.as_ref(), &self.new.dir).await?;
        let Some(newest) = listed.last() else {
            return Err(Error::NotFound { what: "a manifest (_versions/*.manifest) among the imported files".into() });
        };
        let snapshot = versions::load(&self.engine, &self.new.dir, newest).await?;
        let sizes = self.sizes().await?;
        for fragment in &snapshot.manifest.fragments {
            for file in &fragment.files {
                let path = paths::data_file(&file.path);
                let found = *sizes.get(&path).ok_or_else(|| snapshot.missing_file(&path))?;
                if let Some(size) = file.size_bytes.filter(|size| *size != found) {
                    return Err(Error::corrupt(format!("{found} bytes, the manifest says {size}")).at(&path));
                }
            }
            if let Some(deletion) = &fragment.deletion {
                let path = paths::deletion_file(fragment.id, deletion);
                if !sizes.contains_key(&path) {
                    return Err(snapshot.missing_file(&path));
                }
            }
        }
        Ok(snapshot)
    }

    async fn sizes(&self) -> Result<SortedMap<Path, u64>> {
        let mut sizes = SortedMap::new();
        for folder in [layout::data_folder(), layout::deletions_folder()] {
            let folder = Path::default().join(folder);
            let listing = self.engine.store.list(&self.new.dir, &folder, &ListOptions::default()).await?;
            sizes.extend(listing.objects.into_iter().map(|object| (object.path, object.size_bytes)));
        }
        Ok(sizes)
    }
}

/// Folders of a table, those of features included that this build only carries along.
const FOLDERS: [&str; 8] =
    ["data", "_versions", "_deletions", "_transactions", "_indices", "_refs", "_mem_wal", "tree"];

/// Whether a path is one of a table's layout: a file below one of its folders.
pub(crate) fn is_table_file(path: &Path) -> bool {
    path.as_str().split_once('/').is_some_and(|(folder, _)| FOLDERS.contains(&folder))
}
