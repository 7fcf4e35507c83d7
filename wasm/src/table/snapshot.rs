//! Snapshot: one version of a table, immutable, held open.

use std::rc::Rc;

use crate::error::Error;
use crate::format::table::Manifest;
use crate::store::{DirId, Path};

/// One version of one directory.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) dir: DirId,
    /// Where the manifest lies.
    pub(crate) path: Path,
    pub(crate) manifest: Rc<Manifest>,
}

impl Snapshot {
    pub(crate) fn version(&self) -> u64 {
        self.manifest.version.0
    }

    /// A file that this version names and that is not there.
    pub(crate) fn missing_file(&self, path: &Path) -> Error {
        Error::NotFound { what: format!("file {path} of version {}", self.version()) }
    }
}
