//! Fragments: horizontal slices of a table, and the files that hold them.

use crate::error::{Error, Result};
use crate::format::proto;
use crate::format::table::schema::FieldId;

/// The id of a fragment: never given again in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FragmentId(pub u64);

/// A horizontal slice of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Fragment {
    pub id: FragmentId,
    /// Each holds other columns of the same rows.
    pub files: Vec<DataFile>,
    pub deletion: Option<DeletionFile>,
    /// Rows of the data files, deleted ones included.
    pub physical_rows: u64,
    /// Stable row ids and row versions, kept byte for byte.
    pub row_ids: Option<Vec<u8>>,
    pub last_updated_at_versions: Option<Vec<u8>>,
    pub created_at_versions: Option<Vec<u8>>,
}

/// Columns of a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// File name below `data/`.
    pub path: String,
    /// The field of each column, aligned with `column_indices`; -2 marks a dropped column.
    pub fields: Vec<FieldId>,
    pub column_indices: Vec<i32>,
    pub major_version: u32,
    pub minor_version: u32,
    /// `None` = unknown.
    pub size_bytes: Option<u64>,
    /// The base path the file lies under; `None` = the table's own directory.
    pub base_id: Option<u32>,
}

/// Which rows of a fragment are deleted: a file in `_deletions/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionFile {
    pub kind: DeletionFileKind,
    pub read_version: u64,
    pub id: u64,
    pub deleted_rows: u64,
    pub base_id: Option<u32>,
}

/// The two forms of a deletion file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionFileKind {
    /// An Arrow IPC file, `.arrow`.
    Array,
    /// A portable roaring bitmap, `.bin`.
    Bitmap,
}

impl Fragment {
    /// Rows that are not deleted.
    pub fn live_rows(&self) -> u64 {
        self.physical_rows.saturating_sub(self.deletion.as_ref().map_or(0, |deletion| deletion.deleted_rows))
    }
}

/// Row offsets of a row address have 32 bits.
const MAX_ROWS: u64 = 1 << 32;

impl Fragment {
    pub(super) fn from_proto(fragment: proto::DataFragment) -> Result<Fragment> {
        let id = fragment.id;
        if !fragment.overlays.is_empty() {
            return Err(Error::not_supported(format!("fragment {id}: data overlays")));
        }
        let is_external = [
            &fragment.external_row_ids,
            &fragment.external_last_updated_at_versions,
            &fragment.external_created_at_versions,
        ]
        .iter()
        .any(|file| file.is_some());
        if is_external {
            return Err(Error::not_supported(format!("fragment {id}: row ids or row versions in files of their own")));
        }
        if id > u64::from(u32::MAX) || fragment.physical_rows > MAX_ROWS {
            return Err(Error::corrupt(format!(
                "fragment {id} of {} rows: more than row addresses can hold",
                fragment.physical_rows
            )));
        }
        let deletion = fragment.deletion_file.map(DeletionFile::from_proto).transpose()?;
        if let Some(deletion) = &deletion
            && fragment.physical_rows != 0
            && deletion.deleted_rows > fragment.physical_rows
        {
            return Err(Error::corrupt(format!(
                "fragment {id}: {} rows deleted of {}",
                deletion.deleted_rows, fragment.physical_rows
            )));
        }
        Ok(Fragment {
            id: FragmentId(id),
            files: fragment.files.into_iter().map(DataFile::from_proto).collect::<Result<_>>()?,
            deletion,
            physical_rows: fragment.physical_rows,
            row_ids: fragment.inline_row_ids,
            last_updated_at_versions: fragment.inline_last_updated_at_versions,
            created_at_versions: fragment.inline_created_at_versions,
        })
    }

    pub(super) fn to_proto(&self) -> proto::DataFragment {
        proto::DataFragment {
            id: self.id.0,
            files: self.files.iter().map(DataFile::to_proto).collect(),
            deletion_file: self.deletion.as_ref().map(DeletionFile::to_proto),
            physical_rows: self.physical_rows,
            inline_row_ids: self.row_ids.clone(),
            inline_last_updated_at_versions: self.last_updated_at_versions.clone(),
            inline_created_at_versions: self.created_at_versions.clone(),
            ..proto::DataFragment::default()
        }
    }
}

impl DataFile {
    pub(super) fn from_proto(file: proto::DataFile) -> Result<DataFile> {
        // The name becomes part of a path: it must not lead out of the table.
        let is_bad = |segment: &str| matches!(segment, "" | "." | "..") || segment.contains(['\\', '\0']);
        if file.path.split('/').any(is_bad) {
            return Err(Error::corrupt(format!("data file path {:?} is not a plain relative path", file.path)));
        }
        // Format 0.1 has no column indices; it is refused later, by its version.
        if file.column_indices.len() != file.fields.len()
            && (file.file_major_version >= 2 || !file.column_indices.is_empty())
        {
            return Err(Error::corrupt(format!(
                "data file {}: {} fields, {} column indices",
                file.path,
                file.fields.len(),
                file.column_indices.len()
            )));
        }
        Ok(DataFile {
            path: file.path,
            fields: file.fields.into_iter().map(FieldId).collect(),
            column_indices: file.column_indices,
            major_version: file.file_major_version,
            minor_version: file.file_minor_version,
            size_bytes: (file.file_size_bytes != 0).then_some(file.file_size_bytes),
            base_id: file.base_id,
        })
    }

    pub(super) fn to_proto(&self) -> proto::DataFile {
        proto::DataFile {
            path: self.path.clone(),
            fields: self.fields.iter().map(|field| field.0).collect(),
            column_indices: self.column_indices.clone(),
            file_major_version: self.major_version,
            file_minor_version: self.minor_version,
            file_size_bytes: self.size_bytes.unwrap_or(0),
            base_id: self.base_id,
        }
    }
}

impl DeletionFile {
    fn from_proto(file: proto::DeletionFile) -> Result<DeletionFile> {
        let kind = match file.file_type {
            0 => DeletionFileKind::Array,
            1 => DeletionFileKind::Bitmap,
            other => return Err(Error::not_supported(format!("deletion file of type {other}"))),
        };
        Ok(DeletionFile {
            kind,
            read_version: file.read_version,
            id: file.id,
            deleted_rows: file.num_deleted_rows,
            base_id: file.base_id,
        })
    }

    fn to_proto(&self) -> proto::DeletionFile {
        proto::DeletionFile {
            file_type: match self.kind {
                DeletionFileKind::Array => 0,
                DeletionFileKind::Bitmap => 1,
            },
            read_version: self.read_version,
            id: self.id,
            num_deleted_rows: self.deleted_rows,
            base_id: self.base_id,
        }
    }
}
