//! Reads a data file by the schema that it brings along, and holds every array against what was asked for.

use std::ops::Range;

use arrow_array::Array;
use bytes::Bytes;
use lancelet::format::table::Field;

use super::one_file_store::file_schema::FileSchema;
use super::one_file_store::{OneFileStore, block_on};

/// Rows that are read at once: what a file claims is not what a caller takes.
const MAX_ROWS: u64 = 4096;
/// Columns of one file that are read.
const MAX_COLUMNS: usize = 64;
/// Calls of the store for one read: metadata of every leaf, indexes of pages, values, and what lies outside of the metadata.
const MAX_CALLS: usize = 6;

/// Reads every column, from both ends and from the middle.
pub fn read_file(bytes: &[u8]) {
    let Ok(schema) = FileSchema::of_file(bytes) else { return };
    let store = OneFileStore::new(Bytes::copy_from_slice(bytes));
    let Ok(reader) = block_on(store.open()) else { return };
    assert!(store.requests.borrow().len() <= MAX_CALLS, "{} calls to open", store.requests.borrow().len());
    let row_count = reader.row_count();
    let middle = row_count / 2;
    let wanted: [&[Range<u64>]; 3] = [
        &[0..row_count.min(MAX_ROWS)],
        &[row_count.saturating_sub(50)..row_count],
        &[middle / 2..middle / 2 + u64::from(middle > 1), middle..row_count.min(middle + 7)],
    ];
    for field in schema.fields.iter().take(MAX_COLUMNS) {
        let leaf_count = 1 + count_fields(field);
        for rows in wanted {
            store.reset();
            let read = block_on(reader.read(&[field], &|id| schema.column_of(id), rows));
            let calls = store.requests.borrow().len();
            assert!(calls <= MAX_CALLS + leaf_count, "{calls} calls to read one column");
            let Ok(arrays) = read else { continue };
            assert_eq!(arrays.len(), 1);
            let count: u64 = rows.iter().map(|range| range.end - range.start).sum();
            assert_eq!(arrays[0].len() as u64, count);
            assert_eq!(arrays[0].data_type(), &field.data_type);
            if let Err(error) = arrays[0].to_data().validate_full() {
                panic!("column {:?} of type {}: {error}", field.name, field.data_type);
            }
        }
    }
}

fn count_fields(field: &Field) -> usize {
    field.children.iter().map(|child| 1 + count_fields(child)).sum()
}
