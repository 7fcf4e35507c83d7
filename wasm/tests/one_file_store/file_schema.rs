//! The schema that a data file brings along.
//!
//! Readers of tables do not look at it: a table's manifest says what the columns are.

use std::ops::Range;

use bytes::Bytes;
use lancelet::format::file::FileVersion;
use lancelet::format::file::footer::{Footer, decode_table};
use lancelet::format::proto::FileDescriptor;
use lancelet::format::table::{Field, FieldId, Schema};
use lancelet::{Error, Result};
use prost::Message;

/// The schema and the columns of a file without a table.
pub struct FileSchema {
    /// As they are read: of a blob what describes it.
    pub fields: Vec<Field>,
    columns: Vec<FieldId>,
    pub version: FileVersion,
}

impl FileSchema {
    /// From the bytes of a data file.
    ///
    /// # Errors
    /// `Corrupt` when there is none.
    pub fn of_file(bytes: &[u8]) -> Result<FileSchema> {
        let footer = Footer::decode(bytes, bytes.len() as u64)?;
        let slice = |range: &Range<u64>| -> Result<&[u8]> {
            let bytes = bytes.get(range.start as usize..range.end as usize);
            bytes.ok_or_else(|| Error::corrupt(format!("{range:?} lies outside of the file")))
        };
        let globals = decode_table(slice(&footer.global_table)?, 0, bytes.len() as u64)?;
        let first = globals.first().ok_or_else(|| Error::corrupt("no descriptor"))?;
        let descriptor = FileDescriptor::decode(Bytes::copy_from_slice(slice(first)?));
        let descriptor = descriptor.map_err(|error| Error::corrupt(error.to_string()))?;
        FileSchema::new(descriptor, footer.version)
    }

    fn new(descriptor: FileDescriptor, version: FileVersion) -> Result<FileSchema> {
        let proto = descriptor.schema.unwrap_or_default();
        let mut list = proto.fields;
        // The members of a blob have no ids, and no parents either.
        list.retain(|field| field.id != -1);
        for field in list.iter_mut().filter(|field| field.logical_type == "struct") {
            // A file holds what describes the blob; the table's schema says what it is.
            if let Some(entry) = field.metadata.iter_mut().find(|entry| entry.key == "lance-encoding:blob") {
                (entry.key, entry.value) = ("ARROW:extension:name".to_owned(), b"lance.blob.v2".to_vec());
            }
        }
        let schema = Schema::from_proto(&list, &[])?;
        let mut columns = Vec::new();
        schema.fields.iter().for_each(|field| push_columns(field, version, &mut columns));
        Ok(FileSchema { fields: schema.as_read().fields.clone(), columns, version })
    }

    pub fn column_of(&self, id: FieldId) -> Option<u32> {
        self.columns.iter().position(|column| *column == id).map(|at| at as u32)
    }
}

/// Columns are the leaves in pre-order; in 2.0 all fields are. A packed struct is one column.
fn push_columns(field: &Field, version: FileVersion, columns: &mut Vec<FieldId>) {
    let is_leaf = field.is_one_column();
    if is_leaf || version == FileVersion::V2_0 {
        columns.push(field.id);
    }
    if !is_leaf {
        field.children.iter().for_each(|child| push_columns(child, version, columns));
    }
}
