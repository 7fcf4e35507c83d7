//! Writes a data file: batches to pages to footer, append-only.

use arrow_array::RecordBatch;

use crate::error::{Error, Result};
use crate::format::file::FileVersion;
use crate::format::table::{FieldId, Schema};
use crate::store::ObjectWriter;

/// What a finished file holds, as its manifest entry says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSummary {
    pub row_count: u64,
    pub size_bytes: u64,
    /// The field of each column.
    pub fields: Vec<FieldId>,
    pub column_indices: Vec<i32>,
    pub version: FileVersion,
}

/// A data file being written. Holds at most about one page per column in memory.
pub struct FileWriter {}

impl FileWriter {
    /// Starts a file of a schema.
    ///
    /// # Errors
    /// `NotSupported` naming the column and its type when the format has no place for it or the version is not written.
    pub fn new(output: Box<dyn ObjectWriter>, schema: &Schema, version: FileVersion) -> Result<FileWriter> {
        let _ = (output, schema, version);
        Err(Error::not_supported("writing data files"))
    }

    /// Appends rows. The batch has the schema's columns in order, and their types.
    ///
    /// # Errors
    /// `Schema` naming column and row, such as a null in a column that takes none; errors of the store. The file is then of no use:
    /// abort it.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let _ = batch;
        Err(Error::not_supported("writing data files"))
    }

    /// Bytes handed to the output so far; what is buffered for the current pages comes on top.
    pub fn written_bytes(&self) -> u64 {
        0
    }

    /// Writes the last pages and the footer and publishes the file.
    pub async fn finish(self) -> Result<FileSummary> {
        Err(Error::not_supported("writing data files"))
    }

    /// Leaves nothing.
    pub async fn abort(self) -> Result<()> {
        Ok(())
    }
}
