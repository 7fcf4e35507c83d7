//! Reads rows of a data file: plan ranges, fetch them, decode columns.

use std::ops::Range;
use std::rc::Rc;

use arrow_array::ArrayRef;

use crate::error::{Error, Result};
use crate::format::file::FileVersion;
use crate::format::table::{Field, FieldId};
use crate::store::{DirId, Path, Store};

/// Where a data file lies.
#[derive(Clone)]
pub struct FileSource {
    pub store: Rc<dyn Store>,
    pub dir: DirId,
    pub path: Path,
}

/// An open data file: its metadata, and what of its pages was looked at.
pub struct FileReader {}

impl FileReader {
    /// Reads the file's footer and metadata.
    ///
    /// `size_bytes` is what the manifest says; `None` asks the store.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt` with path and offset, `NotSupported` for a version that this build does not read.
    pub async fn open(source: FileSource, size_bytes: Option<u64>) -> Result<FileReader> {
        let _ = (source, size_bytes);
        Err(Error::not_supported("reading data files"))
    }

    pub fn version(&self) -> FileVersion {
        FileVersion::V2_2
    }

    /// Rows of the file.
    pub fn row_count(&self) -> u64 {
        0
    }

    /// Reads rows of some fields, one array per field, each as long as all ranges together.
    ///
    /// `fields` are top-level fields, possibly with fewer children than the file has (a projection). `column_of` maps the id of a leaf
    /// to its column in this file; a leaf without a column reads as nulls. `rows` are ascending, disjoint, half-open row numbers of the
    /// file. I/O: one call to the store for page indexes that are not cached, one for the values of all columns, close ranges merged.
    ///
    /// # Errors
    /// `Corrupt` with path, column, page; `NotSupported` naming the encoding; `InvalidInput` for rows outside of the file.
    pub async fn read(
        &self,
        fields: &[&Field],
        column_of: &dyn Fn(FieldId) -> Option<u32>,
        rows: &[Range<u64>],
    ) -> Result<Vec<ArrayRef>> {
        let _ = (fields, column_of, rows);
        Err(Error::not_supported("reading data files"))
    }
}
