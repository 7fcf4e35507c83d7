//! Snapshot: one version of a table, immutable, held open.

use std::rc::Rc;

use crate::error::Error;
use crate::format::table::Manifest;
use crate::store::{DirId, Path};
use crate::table::merged::Parts;

/// One version of one directory.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) dir: DirId,
    /// Where the manifest lies.
    pub(crate) path: Path,
    pub(crate) manifest: Rc<Manifest>,
    /// Where it is not what was committed: see `merged`.
    pub(crate) parts: Option<Rc<Parts>>,
}

impl Snapshot {
    pub(crate) fn version(&self) -> u64 {
        self.manifest.version.0
    }

    /// Where the files of this version lie in the directory: a table within another one has its files beside its manifests, too.
    pub(crate) fn root(&self) -> Path {
        self.path.parent().parent()
    }

    /// The path of a file of this version.
    pub(crate) fn file(&self, path: &Path) -> Path {
        self.root().join(path.as_str())
    }

    /// A file that this version names and that is not there.
    pub(crate) fn missing_file(&self, path: &Path) -> Error {
        Error::NotFound { what: format!("file {path} of version {}", self.version()) }
    }
}
