//! Deletion vector: which rows of a fragment are deleted, in memory and as a file.
//!
//! Two forms of files: a portable roaring bitmap (`.bin`), which we write, and an Arrow IPC file (`.arrow`) with one column
//! `row_id: UInt32 not null`, whose buffers LanceDB declares as compressed with ZSTD. Both hold the whole set, not a difference.

use std::io::Read;

use arrow_ipc::{CompressionType, Footer, MessageHeader, Type};
use roaring::RoaringBitmap;
use ruzstd::decoding::StreamingDecoder;

use crate::error::{Error, Result};
use crate::format::table::fragment::DeletionFileKind;

/// Physical row offsets of a fragment that are deleted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeletionVector {
    pub rows: RoaringBitmap,
}

/// Rows of an array that we are willing to unpack: LanceDB writes up to 5,000, and a few packed bytes may claim any number.
const MAX_ARRAY_ROWS: u64 = 1 << 24;
const ROW_WIDTH: u64 = 4;
const ARROW_MAGIC: &[u8] = b"ARROW1";
/// Opens every message of a stream since Arrow 0.15.
const CONTINUATION: u32 = u32::MAX;
/// Instead of the unpacked length: the buffer is not packed.
const NOT_PACKED: i64 = -1;
/// A decoder keeps a window of this many bytes for the smallest frames.
const MIN_WINDOW: u64 = 1 << 20;

impl DeletionVector {
    /// Reads a deletion file.
    pub fn decode(kind: DeletionFileKind, bytes: &[u8]) -> Result<DeletionVector> {
        let rows = match kind {
            DeletionFileKind::Bitmap => decode_bitmap(bytes)?,
            DeletionFileKind::Array => decode_array(bytes)?,
        };
        Ok(DeletionVector { rows })
    }

    /// The bytes of a `.bin` file.
    pub fn encode_bitmap(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.rows.serialized_size());
        // Writing to memory cannot fail.
        let written = self.rows.serialize_into(&mut bytes);
        debug_assert!(written.is_ok());
        bytes
    }

    /// Whether the vector is the one that the manifest speaks of: all counts of a table come from the manifest, so a vector of
    /// another size would make them wrong without a sign. `physical_rows` 0 means unknown.
    pub fn check(&self, deleted_rows: u64, physical_rows: u64) -> Result<()> {
        if self.len() != deleted_rows {
            return Err(Error::corrupt(format!("{} rows are deleted, the manifest says {deleted_rows}", self.len())));
        }
        match self.rows.max() {
            Some(max) if physical_rows != 0 && u64::from(max) >= physical_rows => {
                Err(Error::corrupt(format!("row {max} is deleted, the fragment has {physical_rows} rows")))
            }
            _ => Ok(()),
        }
    }

    /// How many rows are deleted.
    pub fn len(&self) -> u64 {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn contains(&self, row: u32) -> bool {
        self.rows.contains(row)
    }

    /// The rows that either vector deletes.
    #[must_use]
    pub fn union(&self, other: &DeletionVector) -> DeletionVector {
        DeletionVector { rows: &self.rows | &other.rows }
    }
}

fn decode_bitmap(mut bytes: &[u8]) -> Result<RoaringBitmap> {
    // The decoder checks order and counts, and allocates per container of at most 8 KiB as it reads.
    let rows = RoaringBitmap::deserialize_from(&mut bytes)
        .map_err(|error| Error::corrupt(format!("deletion bitmap: {error}")))?;
    if !bytes.is_empty() {
        return Err(Error::corrupt(format!("deletion bitmap: {} bytes after its end", bytes.len())));
    }
    Ok(rows)
}

fn corrupt(reason: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("deletion array: {reason}"))
}

fn decode_array(bytes: &[u8]) -> Result<RoaringBitmap> {
    // "ARROW1" padded to 8 | messages | footer | i32 length of the footer | "ARROW1"
    let (Some(rest), true) = (bytes.strip_suffix(ARROW_MAGIC), bytes.starts_with(ARROW_MAGIC)) else {
        return Err(corrupt("not an Arrow file"));
    };
    let (rest, length) = rest.split_last_chunk::<4>().ok_or_else(|| corrupt("no footer"))?;
    let start = usize::try_from(i32::from_le_bytes(*length)).ok().and_then(|length| rest.len().checked_sub(length));
    let start = start.ok_or_else(|| corrupt("the footer is not inside the file"))?;
    let footer = arrow_ipc::root_as_footer(&rest[start..]).map_err(corrupt)?;
    check_schema(&footer)?;
    let blocks = footer.recordBatches().unwrap_or_default();
    if blocks.len() != 1 {
        return Err(corrupt(format!("{} batches, 1 expected", blocks.len())));
    }
    let block = blocks.get(0);
    let metadata = slice(bytes, block.offset(), i64::from(block.metaDataLength()))?;
    let body_offset =
        block.offset().checked_add(i64::from(block.metaDataLength())).ok_or_else(|| corrupt("offsets"))?;
    decode_batch(metadata, slice(bytes, body_offset, block.bodyLength())?)
}

fn check_schema(footer: &Footer) -> Result<()> {
    let fields = footer.schema().and_then(|schema| schema.fields()).unwrap_or_default();
    if fields.len() != 1 {
        return Err(corrupt(format!("{} columns, 1 expected", fields.len())));
    }
    let field = fields.get(0);
    let is_uint32 = field.type_type() == Type::Int
        && field.type_as_int().is_some_and(|int| int.bitWidth() == 32 && !int.is_signed())
        && field.dictionary().is_none();
    if !is_uint32 || field.nullable() || field.name() != Some("row_id") {
        return Err(corrupt("its column is not row_id: UInt32 not null"));
    }
    Ok(())
}

fn decode_batch(metadata: &[u8], body: &[u8]) -> Result<RoaringBitmap> {
    // [ u32 continuation ] | i32 length of the message | message, padded
    let message = match metadata.split_first_chunk::<4>() {
        Some((first, rest)) if u32::from_le_bytes(*first) == CONTINUATION => rest.get(4..),
        Some((_, rest)) => Some(rest),
        None => None,
    };
    let message =
        arrow_ipc::root_as_message(message.ok_or_else(|| corrupt("a message is cut off"))?).map_err(corrupt)?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        _ => None,
    };
    let batch = batch.ok_or_else(|| corrupt("no batch where the footer says"))?;
    let (nodes, buffers) = (batch.nodes().unwrap_or_default(), batch.buffers().unwrap_or_default());
    if nodes.len() != 1 || buffers.len() != 2 {
        return Err(corrupt(format!("{} nodes and {} buffers, 1 and 2 expected", nodes.len(), buffers.len())));
    }
    let (node, buffer) = (nodes.get(0), buffers.get(1));
    let count = u64::try_from(node.length()).map_err(|_| corrupt("negative length"))?;
    if node.null_count() != 0 || batch.length() != node.length() {
        return Err(corrupt("its column has nulls or another length than its batch"));
    }
    if count > MAX_ARRAY_ROWS {
        return Err(Error::not_supported(format!("deletion array of {count} rows, more than {MAX_ARRAY_ROWS}")));
    }
    let stored = slice(body, buffer.offset(), buffer.length())?;
    // At most 2^26, which also fits 32-bit addresses.
    let length = count * ROW_WIDTH;
    match batch.compression() {
        None => collect(stored, length),
        Some(_) if stored.is_empty() => collect(stored, length),
        Some(compression) => {
            let (unpacked, packed) = stored.split_first_chunk::<8>().ok_or_else(|| corrupt("a buffer is cut off"))?;
            match i64::from_le_bytes(*unpacked) {
                NOT_PACKED => collect(packed, length),
                _ if compression.codec() != CompressionType::ZSTD => {
                    Err(Error::not_supported("deletion array compressed with LZ4"))
                }
                claim if u64::try_from(claim).is_ok_and(|claim| claim >= length) => {
                    collect(&unpack(packed, length)?, length)
                }
                claim => Err(corrupt(format!("a buffer of {claim} bytes for {count} rows"))),
            }
        }
    }
}

/// The first `length` bytes of a ZSTD frame.
fn unpack(packed: &[u8], length: u64) -> Result<Vec<u8>> {
    let decoder = StreamingDecoder::new_with_max_window_size(packed, length.max(MIN_WINDOW)).map_err(corrupt)?;
    let mut bytes = Vec::new();
    decoder.take(length).read_to_end(&mut bytes).map_err(corrupt)?;
    Ok(bytes)
}

fn collect(values: &[u8], length: u64) -> Result<RoaringBitmap> {
    let values = usize::try_from(length).ok().and_then(|length| values.get(..length));
    let values = values.ok_or_else(|| corrupt(format!("fewer than {length} bytes of values")))?;
    let (rows, _) = values.as_chunks::<4>();
    // Values come in any order; sorted, each lands at the end of its container.
    let mut rows: Vec<u32> = rows.iter().map(|row| u32::from_le_bytes(*row)).collect();
    rows.sort_unstable();
    let count = rows.len() as u64;
    let rows: RoaringBitmap = rows.into_iter().collect();
    if rows.len() != count {
        return Err(corrupt("a row occurs twice"));
    }
    Ok(rows)
}

fn slice(bytes: &[u8], offset: i64, length: i64) -> Result<&[u8]> {
    let range = || {
        let start = usize::try_from(offset).ok()?;
        bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    };
    range().ok_or_else(|| corrupt(format!("{length} bytes at {offset} are not inside its {} bytes", bytes.len())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, RecordBatch, UInt32Array};
    use arrow_schema::{DataType, Field, Schema};
    use proptest::prelude::*;

    use super::*;

    fn vector(rows: impl IntoIterator<Item = u32>) -> DeletionVector {
        DeletionVector { rows: rows.into_iter().collect() }
    }

    fn arrow_file(name: &str, nullable: bool, batches: &[ArrayRef]) -> Vec<u8> {
        let data_type = batches.first().map_or(DataType::UInt32, |batch| batch.data_type().clone());
        let schema = Arc::new(Schema::new(vec![Field::new(name, data_type, nullable)]));
        let mut bytes = Vec::new();
        let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut bytes, &schema).unwrap();
        for batch in batches {
            writer.write(&RecordBatch::try_new(schema.clone(), vec![batch.clone()]).unwrap()).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        bytes
    }

    fn rows(rows: &[u32]) -> ArrayRef {
        Arc::new(UInt32Array::from(rows.to_vec()))
    }

    fn reason(kind: DeletionFileKind, bytes: &[u8]) -> String {
        match DeletionVector::decode(kind, bytes) {
            Err(Error::Corrupt { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bitmaps_survive_with_and_without_runs() {
        let mut runs = vector(0..5000);
        runs.rows.insert(u32::MAX);
        assert!(runs.rows.optimize());
        for vector in [vector([]), vector([3]), vector((0..200_000).step_by(3)), runs] {
            let decoded = DeletionVector::decode(DeletionFileKind::Bitmap, &vector.encode_bitmap()).unwrap();
            assert_eq!(decoded, vector);
            assert_eq!(decoded.len(), vector.rows.iter().count() as u64);
        }
    }

    #[test]
    fn a_run_container_of_another_writer_is_read() {
        // Cookie 0x303b with 1 container, its run flag, key 0 of 10 values, 2 runs: 1..=4 and 20..=25.
        let bytes = [0x3b, 0x30, 0, 0, 1, 0, 0, 9, 0, 2, 0, 1, 0, 3, 0, 20, 0, 5, 0];
        let decoded = DeletionVector::decode(DeletionFileKind::Bitmap, &bytes).unwrap();
        assert_eq!(decoded.rows.iter().collect::<Vec<_>>(), [1, 2, 3, 4, 20, 21, 22, 23, 24, 25]);
        assert_eq!(decoded.union(&vector([0, 1])), vector([0, 1, 2, 3, 4, 20, 21, 22, 23, 24, 25]));
    }

    #[test]
    fn damaged_bitmaps_are_corrupt() {
        let bytes = vector((0..100_000).step_by(2)).encode_bitmap();
        for cut in (0..bytes.len()).step_by(7) {
            reason(DeletionFileKind::Bitmap, &bytes[..cut]);
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(reason(DeletionFileKind::Bitmap, &longer), "deletion bitmap: 1 bytes after its end");
        // 2^32 - 1 containers claimed.
        reason(DeletionFileKind::Bitmap, &[0x3a, 0x30, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn arrays_are_read_in_any_order() {
        let bytes = arrow_file("row_id", false, &[rows(&[7, 1, u32::MAX, 3])]);
        let decoded = DeletionVector::decode(DeletionFileKind::Array, &bytes).unwrap();
        assert_eq!(decoded, vector([1, 3, 7, u32::MAX]));
        let empty = arrow_file("row_id", false, &[rows(&[])]);
        assert!(DeletionVector::decode(DeletionFileKind::Array, &empty).unwrap().is_empty());
    }

    #[test]
    fn arrays_of_another_shape_are_corrupt() {
        let shape = "deletion array: its column is not row_id: UInt32 not null";
        let array = |bytes: &[u8]| reason(DeletionFileKind::Array, bytes);
        assert_eq!(array(&arrow_file("row", false, &[rows(&[1])])), shape);
        assert_eq!(array(&arrow_file("row_id", true, &[rows(&[1])])), shape);
        assert_eq!(array(&arrow_file("row_id", false, &[Arc::new(Int32Array::from(vec![1]))])), shape);
        assert_eq!(array(&arrow_file("row_id", false, &[])), "deletion array: 0 batches, 1 expected");
        assert_eq!(
            array(&arrow_file("row_id", false, &[rows(&[1]), rows(&[2])])),
            "deletion array: 2 batches, 1 expected"
        );
        assert_eq!(array(&arrow_file("row_id", false, &[rows(&[2, 2])])), "deletion array: a row occurs twice");
        assert_eq!(array(b"ARROW1"), "deletion array: no footer");
        assert_eq!(array(b""), "deletion array: not an Arrow file");
    }

    #[test]
    fn a_vector_that_the_manifest_does_not_speak_of_is_corrupt() {
        let vector = vector([1, 9]);
        assert_eq!(vector.check(2, 10), Ok(()));
        assert_eq!(vector.check(2, 0), Ok(()));
        let reason = |result: Result<()>| result.unwrap_err().to_string();
        assert!(reason(vector.check(3, 10)).ends_with("2 rows are deleted, the manifest says 3"));
        assert!(reason(vector.check(2, 9)).ends_with("row 9 is deleted, the fragment has 9 rows"));
        assert!(vector.contains(9) && !vector.contains(2));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_vector_or_an_error(
            changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..6),
            cut in any::<u16>(),
        ) {
            let mut runs = vector((0..3000).chain(70_000..70_100).chain([90_000, 90_002]));
            runs.rows.optimize();
            let files = [
                (DeletionFileKind::Bitmap, runs.encode_bitmap()),
                (DeletionFileKind::Array, arrow_file("row_id", false, &[rows(&[5, 1, 2])])),
            ];
            for (kind, mut bytes) in files {
                for (at, value) in &changes {
                    let at = usize::from(*at) % bytes.len();
                    bytes[at] = *value;
                }
                let _ = DeletionVector::decode(kind, &bytes);
                let _ = DeletionVector::decode(kind, &bytes[..usize::from(cut) % bytes.len()]);
            }
        }
    }
}
