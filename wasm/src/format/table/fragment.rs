//! Fragments: horizontal slices of a table, and the files that hold them.

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
