//! The paths of `format::table::layout` as paths of the store.

use crate::env::format_uuid;
use crate::format::table::layout::{self, NamingScheme};
use crate::format::table::reference;
use crate::format::table::{DeletionFile, FragmentId, Version};
use crate::store::Path;

pub(crate) fn versions_folder() -> Path {
    Path::default().join(layout::versions_folder())
}

pub(crate) fn manifest(version: u64, scheme: NamingScheme) -> Path {
    Path::default().join(&scheme.manifest_path(Version(version)))
}

pub(crate) fn data_file(name: &str) -> Path {
    Path::default().join(&layout::data_file_path(name))
}

pub(crate) fn deletion_file(fragment: FragmentId, file: &DeletionFile) -> Path {
    Path::default().join(&layout::deletion_file_path(fragment, file))
}

pub(crate) fn transaction_file(name: &str) -> Path {
    Path::default().join(&layout::transaction_path(name))
}

/// Where the files of an index lie.
pub(crate) fn index_folder(uuid: &[u8; 16]) -> Path {
    Path::default().join(&layout::index_folder(&format_uuid(uuid)))
}

pub(crate) fn tags_folder() -> Path {
    Path::default().join(reference::tags_folder())
}

pub(crate) fn branches_folder() -> Path {
    Path::default().join(reference::branches_folder())
}

pub(crate) fn tag(name: &str) -> Path {
    Path::default().join(&reference::tag_path(name))
}
