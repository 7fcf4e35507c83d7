//! What the fuzzers run, one function per target: bytes in, and a panic for a defect.
//!
//! An error is a fine answer. Defects are: a panic, memory beyond [`MEMORY_LIMIT`], more reads than the store's budget, an array that
//! Arrow calls invalid, or one of another type or length than asked for. `tests/fuzz_corpus.rs` runs the same functions over
//! `seeds/` and `crashers/`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a defect is told by panicking")]

pub mod allocation;
mod filter;
pub mod input;
pub mod reading;

#[path = "../../tests/one_file_store/mod.rs"]
pub mod one_file_store;

use std::rc::Rc;

use arrow_array::Array;
use bytes::Bytes;
use lancelet::format::file::column::Column;
use lancelet::format::file::encoding::decode_levels;
use lancelet::format::file::footer::{Footer, decode_table};
use lancelet::format::file::layout::rep_def::{Layers, Levels, ListOffsets, Stored, Validity};
use lancelet::format::proto::CompressiveEncoding;
use lancelet::format::table::fragment::DeletionFileKind;
use lancelet::format::table::{DeletionVector, Manifest, Transaction, feature};
use prost::Message;

use input::{Input, PageInput};

/// Bytes that no input of a few kilobytes may make the engine take.
pub const MEMORY_LIMIT: usize = 256 << 20;

/// A fuzzed function.
pub type Target = fn(&[u8]);

/// Every target, by name.
pub const TARGETS: [(&str, Target); 10] = [
    ("footer", footer),
    ("column_metadata", column_metadata),
    ("page", page),
    ("levels", levels),
    ("deletion_file", deletion_file),
    ("manifest", manifest),
    ("transaction", transaction),
    ("filter_text", filter_text),
    ("ipc", ipc),
    ("file", file),
];

/// Runs a target within the limit of memory. A request beyond it ends the process where memory cannot be had to fail.
pub fn run(target: Target, bytes: &[u8]) {
    let ((), most) = allocation::most_in_use(MEMORY_LIMIT, || target(bytes));
    assert!(most <= MEMORY_LIMIT, "{most} bytes of memory for an input of {} bytes", bytes.len());
}

/// A claimed size (u64), then the end of a data file.
pub fn footer(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let size_bytes = input.u64();
    let tail = input.rest();
    let Ok(footer) = Footer::decode(tail, size_bytes) else { return };
    for table in [&footer.column_table, &footer.global_table] {
        assert!(table.start <= table.end && table.end <= size_bytes - 40);
        let start = size_bytes.checked_sub(tail.len() as u64);
        let at = |position: u64| usize::try_from(position.checked_sub(start?)?).ok();
        let Some(bytes) = at(table.start).zip(at(table.end)).and_then(|(from, to)| tail.get(from..to)) else {
            continue;
        };
        for range in decode_table(bytes, table.start, size_bytes).unwrap_or_default() {
            assert!(range.start <= range.end && range.end <= size_bytes);
        }
    }
}

/// A claimed size of the file (u64), then the metadata of a column.
pub fn column_metadata(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let size_bytes = input.u64();
    let Ok(column) = Column::decode(Bytes::copy_from_slice(input.rest()), size_bytes) else { return };
    let mut rows = 0;
    for page in &column.pages {
        assert_eq!(page.first_row, rows);
        rows += page.row_count;
        assert!(page.buffers.iter().all(|buffer| buffer.start <= buffer.end && buffer.end <= size_bytes));
        let _ = page.layout();
    }
    assert_eq!(column.row_count, rows);
    let wanted = [0..rows.min(3), rows.max(6) / 2..rows.max(6) / 2 + 2, rows.max(12) - 3..rows.max(12)];
    let wanted: Vec<_> = wanted.into_iter().filter(|range| range.end <= rows).collect();
    let got: u64 = column.split(&wanted).iter().flat_map(|part| &part.rows).map(|range| range.end - range.start).sum();
    assert_eq!(got, wanted.iter().map(|range| range.end - range.start).sum());
}

/// One page of one leaf, as [`PageInput`] puts it together: made a file, and read.
pub fn page(bytes: &[u8]) {
    reading::read_file(&PageInput::parse(bytes).to_file());
}

/// A data file, read by the schema in its own descriptor.
pub fn file(bytes: &[u8]) {
    reading::read_file(bytes);
}

/// Layers, then blocks of repetition and definition levels with their encodings: made validity and offsets, layer by layer.
pub fn levels(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let layers: Vec<i32> = (0..input.u8().min(80)).map(|_| i32::from(input.u8())).collect();
    let count = usize::from(input.u16());
    let mut block = || -> Option<Vec<u16>> {
        let is_stored = input.u8() & 1 == 1;
        let encoding = CompressiveEncoding::decode(input.sized()).ok()?;
        let block = input.sized();
        let levels = decode_levels(&encoding, block, count).ok().filter(|_| is_stored)?;
        assert_eq!(levels.len(), count);
        Some(levels)
    };
    let (rep, def) = (block(), block());
    let Ok(parsed) = Layers::parse(&layers) else { return };
    let parsed = Rc::new(parsed);
    if parsed.check_levels(rep.as_deref(), def.as_deref()).is_err() {
        return;
    }
    assert!(def.as_deref().map_or(0, |def| parsed.count_visible(def)) <= count);
    let mut levels = Levels::new(parsed, Stored { rep: rep.is_some(), def: def.is_some() });
    levels.extend(rep.as_deref(), def.as_deref(), count);
    let mut slots = usize::MAX;
    for layer in layers {
        let (mut offsets, mut validity) = (ListOffsets::default(), Validity::default());
        // 1 and 3 are items, the others are lists.
        let is_item = matches!(layer, 1 | 3);
        let taken = match is_item {
            true => levels.take_items(&mut validity),
            false => levels.take_lists(&mut offsets, &mut validity),
        };
        if taken.is_err() {
            return;
        }
        let len = validity.slot_count();
        assert!(len <= count);
        assert!(validity.finish().is_none_or(|nulls| nulls.len() == len));
        if is_item {
            slots = len;
        } else {
            assert_eq!(offsets.starts.len(), len);
            assert!(offsets.starts.is_sorted());
            assert!(offsets.starts.last().is_none_or(|start| *start <= offsets.items));
            assert!(slots == usize::MAX || offsets.items as usize <= slots.max(count));
            slots = len;
        }
    }
}

/// The form (a byte), then a deletion file.
pub fn deletion_file(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kind = if input.u8() & 1 == 1 { DeletionFileKind::Bitmap } else { DeletionFileKind::Array };
    let Ok(vector) = DeletionVector::decode(kind, input.rest()) else { return };
    assert_eq!(vector.check(vector.len(), 0), Ok(()));
    assert!(vector.check(vector.len() + 1, 0).is_err());
    if let Some(row) = vector.rows.max() {
        assert!(vector.contains(row));
        assert!(vector.check(vector.len(), u64::from(row).max(1)).is_err() || row == 0);
    }
    assert_eq!(DeletionVector::decode(DeletionFileKind::Bitmap, &vector.encode_bitmap()).as_ref(), Ok(&vector));
}

/// A manifest file.
pub fn manifest(bytes: &[u8]) {
    let Ok(manifest) = Manifest::decode(&Bytes::copy_from_slice(bytes)) else { return };
    let _ = (feature::check_readable(&manifest), feature::check_writable(&manifest), manifest.indices());
    let _ = (feature::flags_for(&manifest), manifest.max_field_id(), manifest.live_rows());
    let _ = (manifest.schema.to_arrow(), manifest.schema.leaves().len());
    assert_eq!(Manifest::decode(&manifest.encode().into()).as_ref(), Ok(&manifest));
}

/// A transaction file.
pub fn transaction(bytes: &[u8]) {
    let Ok(transaction) = Transaction::decode(bytes) else { return };
    let _ = transaction.operation.name();
    assert_eq!(Transaction::decode(&transaction.encode()).as_ref(), Ok(&transaction));
}

/// The text of a filter: parsed, bound to a schema of most types, evaluated.
pub fn filter_text(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        filter::evaluate(text);
    }
}

/// An Arrow IPC stream, as a caller hands it in.
pub fn ipc(bytes: &[u8]) {
    let Ok((schema, batches)) = lancelet::batch::ipc::decode_stream(bytes) else { return };
    for batch in &batches {
        for column in batch.columns() {
            column.to_data().validate_full().unwrap_or_else(|error| panic!("{}: {error}", column.data_type()));
        }
    }
    let again = lancelet::batch::ipc::encode_batches(&schema, &batches).unwrap();
    let (_, decoded) = lancelet::batch::ipc::decode_stream(&again).unwrap();
    assert_eq!(decoded.len(), batches.len());
    for (ours, theirs) in decoded.iter().zip(&batches) {
        assert_eq!(ours.num_rows(), theirs.num_rows());
        for (a, b) in ours.columns().iter().zip(theirs.columns()) {
            // Floats are compared by their bits here: a NaN is itself.
            assert!(a.to_data() == b.to_data() || format!("{a:?}") == format!("{b:?}"));
        }
    }
}
