//! Export: every file of a table, so that a copy in this order is a table at every moment or none at all.

use std::rc::Rc;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::table::layout;
use crate::store::{DirId, LeaseKind, ListOptions, Path};
use crate::table::commit;
use crate::table::database::Engine;
use crate::table::import::is_table_file;
use crate::table::lease::{Lease, Taken};
use crate::table::{paths, versions};

/// An object of an exported table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportEntry {
    pub path: String,
    pub size_bytes: u64,
}

/// A table being exported: its objects cannot be cleaned up until it is closed.
pub struct Export {
    engine: Rc<Engine>,
    name: String,
    dir: DirId,
    entries: Vec<ExportEntry>,
    lease: Lease,
}

impl Export {
    pub(crate) async fn begin(engine: Rc<Engine>, name: &str, dir: DirId) -> Result<Export> {
        let gone = || Error::TableNotFound { name: name.to_owned() };
        for _ in 0..8 {
            let listed = versions::all(engine.store.as_ref(), &dir).await?;
            let Some(oldest) = listed.first() else { return Err(gone()) };
            // A write lease keeps the version it names and all newer ones: one lease for the whole history.
            let lease = match engine.leases.take(LeaseKind::Write, &dir, oldest.version, &oldest.path).await? {
                Taken::Lease(lease) => lease,
                Taken::Gone => return Err(gone()),
                Taken::Missing => continue,
            };
            // Versions first: of a version that is listed, every file is there when the other folders are.
            let entries = match entries(&engine, &dir).await {
                Ok(entries) => entries,
                Err(error) => {
                    lease.release().await;
                    return Err(error);
                }
            };
            return Ok(Export { engine, name: name.to_owned(), dir, entries, lease });
        }
        Err(Error::Contention {
            message: format!("versions of table '{name}' were removed faster than it was exported"),
        })
    }

    pub fn entries(&self) -> &[ExportEntry] {
        &self.entries
    }

    /// Bytes of one entry.
    ///
    /// # Errors
    /// `NotFound` for a path that is no entry, `InvalidInput` for a range outside of it.
    pub async fn read(&self, path: &str, offset: u64, length: u64) -> Result<Bytes> {
        let entry = self.entries.iter().find(|entry| entry.path == path);
        let entry = entry.ok_or_else(|| Error::NotFound { what: format!("file {path} of table '{}'", self.name) })?;
        let end = offset.checked_add(length).filter(|end| *end <= entry.size_bytes);
        let Some(end) = end else {
            let size = entry.size_bytes;
            return Err(Error::invalid_input(format!("bytes {offset} to +{length} of {path}, which has {size}")));
        };
        if length == 0 {
            return Ok(Bytes::new());
        }
        let bytes =
            self.engine.store.get_ranges(&self.dir, &Path::parse(path)?, &[offset..end]).await.map_err(|error| {
                match error {
                    Error::TableNotFound { .. } => Error::TableNotFound { name: self.name.clone() },
                    other => other,
                }
            })?;
        bytes.into_iter().next().ok_or_else(|| Error::internal("the store answered without the range"))
    }

    pub async fn close(self) -> Result<()> {
        self.lease.release().await;
        Ok(())
    }
}

async fn entries(engine: &Engine, dir: &DirId) -> Result<Vec<ExportEntry>> {
    let folder = paths::versions_folder();
    let manifests = engine.store.list(dir, &folder, &ListOptions::default()).await?.objects;
    let all = engine.store.list(dir, &Path::default(), &ListOptions::default()).await?.objects;
    // The hint is only ever a hint, and a copy's may be old: a table without one is whole.
    let hint = layout::version_hint_path();
    let is_wanted = |path: &Path| is_table_file(path) && path.as_str() != hint;
    let others = all.into_iter().filter(|object| !object.path.is_below(&folder));
    let entries: Vec<ExportEntry> = others
        .chain(manifests)
        .filter(|object| is_wanted(&object.path))
        .map(|object| ExportEntry { path: object.path.as_str().to_owned(), size_bytes: object.size_bytes })
        .collect();
    if entries.is_empty() { Err(commit::gone()) } else { Ok(entries) }
}
