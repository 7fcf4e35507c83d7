//! The Lance data file.
//!
//! ```text
//! page buffers, each at a multiple of 64
//! global buffer 0: FileDescriptor
//! ColumnMetadata of column 0, 1, ...
//! column offset table: { position u64, size u64 } per column
//! global buffer offset table
//! footer, 40 bytes, ending in "LANC"
//! ```
//!
//! A column is a list of pages; a page is a range of rows with a structural layout (`layout`) whose values are held by compressive
//! encodings (`encoding`). Struct validity and list offsets are not columns: they are levels in each leaf's pages. Files of 2.0 have the
//! same container, and pages of another kind (`arrays`).

mod arrays;
pub mod column;
pub mod encoding;
pub mod footer;
pub mod layout;
mod page_cache;
pub mod reader;
pub mod writer;

pub(crate) use layout::array::null_array;
pub use reader::{FileReader, FileSource};
pub use writer::{FileSummary, FileWriter};

use crate::error::{Error, Result};

/// The version of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileVersion {
    V2_0,
    V2_1,
    V2_2,
}

impl FileVersion {
    /// The version of new tables.
    pub const DEFAULT: FileVersion = FileVersion::V2_2;

    /// From a manifest's `data_format.version`.
    ///
    /// # Errors
    /// `NotSupported` for any other version.
    pub fn parse(text: &str) -> Result<FileVersion> {
        match text {
            "2.0" => Ok(FileVersion::V2_0),
            "2.1" => Ok(FileVersion::V2_1),
            "2.2" => Ok(FileVersion::V2_2),
            other => Err(FileVersion::unknown(other)),
        }
    }

    fn unknown(version: &str) -> Error {
        Error::not_supported(format!("data file version {version}, this build reads 2.0, 2.1 and 2.2"))
    }

    pub fn as_str(self) -> &'static str {
        match self {
            FileVersion::V2_0 => "2.0",
            FileVersion::V2_1 => "2.1",
            FileVersion::V2_2 => "2.2",
        }
    }

    /// Major and minor number, as a manifest's data file carries them.
    pub fn numbers(self) -> (u32, u32) {
        match self {
            FileVersion::V2_0 => (2, 0),
            FileVersion::V2_1 => (2, 1),
            FileVersion::V2_2 => (2, 2),
        }
    }
}
