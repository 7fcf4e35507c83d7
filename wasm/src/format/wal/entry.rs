//! An entry of a shard's log: an Arrow IPC stream of the table's columns and `_tombstone`, which tells rows that delete their key.
//!
//! The schema's metadata say whose it is (`writer_epoch`), and whether it only bars writers of earlier epochs (`fence_sentinel`).

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use crate::batch::ipc;
use crate::error::{Error, Result};

const WRITER_EPOCH: &str = "writer_epoch";
const FENCE_SENTINEL: &str = "fence_sentinel";

/// The column that says whether a row deletes its key.
pub const TOMBSTONE: &str = "_tombstone";

/// What one write, or several at once, put into the log.
#[derive(Debug, Clone, PartialEq)]
pub struct WalEntry {
    pub writer_epoch: u64,
    pub is_sentinel: bool,
    /// All of one schema.
    pub batches: Vec<RecordBatch>,
}

impl WalEntry {
    /// One that bars writers of earlier epochs.
    pub fn sentinel(writer_epoch: u64) -> WalEntry {
        WalEntry { writer_epoch, is_sentinel: true, batches: Vec::new() }
    }

    /// # Errors
    /// `Corrupt` for bytes that are no entry, a stream that is cut off among them.
    pub fn decode(bytes: &[u8]) -> Result<WalEntry> {
        let corrupt = |reason: String| Error::corrupt(format!("entry of a write-ahead log: {reason}"));
        let (schema, batches) = ipc::decode_stream(bytes).map_err(|error| corrupt(error.to_string()))?;
        let epoch = schema.metadata().get(WRITER_EPOCH).and_then(|text| text.parse().ok());
        let writer_epoch = epoch.ok_or_else(|| corrupt("it does not tell its writer".to_owned()))?;
        let is_sentinel = schema.metadata().get(FENCE_SENTINEL).is_some_and(|text| text == "true");
        Ok(WalEntry { writer_epoch, is_sentinel, batches })
    }

    /// # Errors
    /// `Schema` for batches of several schemas; `NotSupported` for what a stream has no place for.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut metadata = HashMap::from([(WRITER_EPOCH.to_owned(), self.writer_epoch.to_string())]);
        if self.is_sentinel {
            metadata.insert(FENCE_SENTINEL.to_owned(), "true".to_owned());
        }
        let fields = self.batches.first().map(|batch| batch.schema_ref().fields().clone()).unwrap_or_default();
        ipc::encode_batches(&Schema::new_with_metadata(fields, metadata), &self.batches)
    }

    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, BooleanArray, Int64Array};
    use arrow_schema::{DataType, Field};
    use std::sync::Arc;

    fn entry(writer_epoch: u64, rows: i64) -> WalEntry {
        let fields = vec![Field::new("id", DataType::Int64, false), Field::new(TOMBSTONE, DataType::Boolean, false)];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(0..rows)),
            Arc::new(BooleanArray::from(vec![false; usize::try_from(rows).unwrap()])),
        ];
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        WalEntry { writer_epoch, is_sentinel: false, batches: vec![batch] }
    }

    #[test]
    fn an_entry_tells_its_writer_and_its_rows() {
        let written = entry(7, 3);
        let found = WalEntry::decode(&written.encode().unwrap()).unwrap();
        assert_eq!((found.writer_epoch, found.is_sentinel, found.rows()), (7, false, 3));
        assert_eq!(found.batches[0].columns(), written.batches[0].columns());
        let sentinel = WalEntry::sentinel(2);
        assert_eq!(WalEntry::decode(&sentinel.encode().unwrap()), Ok(sentinel));
    }

    #[test]
    fn an_entry_that_is_cut_off_or_of_nobody_is_corrupt() {
        let whole = entry(7, 3).encode().unwrap();
        // The end of the stream is marked: only what lies behind the last batch may be missing.
        for end in (0..whole.len() - 8).step_by(7) {
            assert!(matches!(WalEntry::decode(&whole[..end]), Err(Error::Corrupt { .. })), "{end}");
        }
        for metadata in [&[][..], &[("writer_epoch", "x")], &[("writer_epoch", "-1")]] {
            let metadata: HashMap<String, String> =
                metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let schema = Schema::new_with_metadata(Vec::<Field>::new(), metadata);
            let bytes = ipc::encode_schema(&schema).unwrap();
            assert!(matches!(WalEntry::decode(&bytes), Err(Error::Corrupt { .. })), "{schema}");
        }
    }
}
