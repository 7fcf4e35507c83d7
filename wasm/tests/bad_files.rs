//! Files that were cut short or had bytes flipped give an error that names the file, or rows: as many as there are, of their types.
//!
//! The format has no checksums, so a flipped value is another value. `LANCELET_FULL=1` tries every cut and 10,000 flips of each file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../fuzz/src/allocation.rs"]
mod allocation;
mod one_file_store;

use std::path::Path;
use std::rc::Rc;

use arrow_array::Array;
use bytes::Bytes;
use lancelet::Error;
use lancelet::format::file::{FileReader, FileSource};
use lancelet::store::{DirId, Path as StorePath};
use one_file_store::file_schema::FileSchema;
use one_file_store::random::Random;
use one_file_store::{OneFileStore, block_on};

#[global_allocator]
static ALLOCATOR: allocation::Limited = allocation::Limited;

/// Of every version, of every layout.
const FILES: [&str; 5] = [
    "pylance-14.0.2/scalars/v2_0.lance",
    "pylance-14.0.2/large_lists/v2_0.lance",
    "pylance-14.0.2/full_zip/v2_1.lance",
    "pylance-14.0.2/dictionaries/v2_2.lance",
    "pylance-14.0.2/maps/v2_2.lance",
];
const PATH: &str = "data/file.lance";
/// Calls of the store for opening, and for reading one column.
const MAX_CALLS: usize = 12;
/// Memory for a file of a few kilobytes.
const MEMORY_LIMIT: usize = 64 << 20;

fn is_full() -> bool {
    std::env::var("LANCELET_FULL").is_ok_and(|value| value == "1")
}

struct Golden {
    bytes: Vec<u8>,
    schema: FileSchema,
    row_count: u64,
}

fn golden(name: &str) -> Golden {
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)).unwrap();
    let schema = FileSchema::of_file(&bytes).unwrap();
    let row_count = block_on(OneFileStore::new(bytes.clone()).open()).unwrap().row_count();
    Golden { bytes, schema, row_count }
}

/// Names the damage when a test fails by panicking anywhere below.
struct Damage<'a>(&'a str, String);

impl Drop for Damage<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: {}", self.0, self.1);
        }
    }
}

/// What an attempt to read everything came to.
#[derive(Default)]
struct Outcome {
    /// Errors, of the file or of a column.
    errors: Vec<Error>,
    columns_read: usize,
}

/// Opens a file that is said to have `claimed` bytes and reads every column by itself, as the manifest's rows.
fn read(golden: &Golden, bytes: Vec<u8>, claimed: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let store = OneFileStore::new(Bytes::from(bytes));
    let source = FileSource {
        store: Rc::new(store.clone()),
        dir: DirId("dir".to_owned()),
        path: StorePath::parse(PATH).unwrap(),
    };
    let reader = match block_on(FileReader::open(source, Some(claimed))) {
        Ok(reader) => reader,
        Err(error) => {
            outcome.errors.push(error);
            return outcome;
        }
    };
    assert!(store.requests.borrow().len() <= MAX_CALLS);
    if reader.row_count() != golden.row_count {
        // A table compares it with the fragment's rows, and refuses the file.
        let reason = format!("{} rows", reader.row_count());
        outcome.errors.push(Error::Corrupt { path: PATH.to_owned(), offset: None, reason });
        return outcome;
    }
    let rows = 0..golden.row_count;
    for field in &golden.schema.fields {
        store.reset();
        let read = block_on(reader.read(&[field], &|id| golden.schema.column_of(id), std::slice::from_ref(&rows)));
        assert!(store.requests.borrow().len() <= MAX_CALLS);
        match read {
            Ok(arrays) => {
                assert_eq!((arrays.len(), arrays[0].len() as u64), (1, golden.row_count));
                assert_eq!(arrays[0].data_type(), &field.data_type);
                arrays[0].to_data().validate_full().unwrap();
                outcome.columns_read += 1;
            }
            Err(error) => {
                if let Error::Corrupt { offset: None, reason, .. } | Error::NotSupported { feature: reason } = &error {
                    assert!(reason.contains(&field.name), "no place in {error:?}");
                }
                outcome.errors.push(error);
            }
        }
    }
    outcome
}

/// The errors that bad bytes may give, all of which say which file it is.
fn check(errors: &[Error]) {
    for error in errors {
        assert!(matches!(error, Error::Corrupt { .. } | Error::NotSupported { .. }), "{error:?}");
        assert!(error.to_string().contains(PATH), "no path in {error}");
    }
}

fn read_within_limits(golden: &Golden, bytes: Vec<u8>, claimed: u64) -> Outcome {
    let size = bytes.len();
    let (outcome, most) = allocation::most_in_use(MEMORY_LIMIT, || read(golden, bytes, claimed));
    assert!(most <= MEMORY_LIMIT, "{most} bytes of memory for a file of {size}");
    check(&outcome.errors);
    outcome
}

#[test]
fn a_file_that_is_cut_anywhere_is_corrupt() {
    for name in FILES {
        let golden = golden(name);
        let size = golden.bytes.len();
        for end in (0..size).step_by(if is_full() { 1 } else { 41 }) {
            let _damage = Damage(name, format!("cut at {end}"));
            let cut = golden.bytes[..end].to_vec();
            // The manifest says how long it was, or does not know.
            for claimed in [size, end] {
                let outcome = read_within_limits(&golden, cut.clone(), claimed as u64);
                assert!(matches!(outcome.errors[..], [Error::Corrupt { .. }]), "{:?}", outcome.errors);
            }
        }
    }
}

#[test]
fn flipped_bytes_give_errors_that_name_the_file_or_rows() {
    for (seed, name) in FILES.into_iter().enumerate() {
        let golden = golden(name);
        let size = golden.bytes.len() as u64;
        let mut random = Random(seed as u64);
        let (mut errors, mut columns_read) = (0, 0);
        for round in 0..if is_full() { 10_000 } else { 150 } {
            let mut bytes = golden.bytes.clone();
            let mut flipped = Vec::new();
            for _ in 0..=random.below(3) {
                let at = random.below(size) as usize;
                bytes[at] = match random.below(4) {
                    0 => 0xff,
                    1 => 0,
                    2 => bytes[at] ^ (1 << random.below(8)),
                    _ => random.next() as u8,
                };
                flipped.push((at, bytes[at]));
            }
            let _damage = Damage(name, format!("round {round}, bytes {flipped:?}"));
            let outcome = read_within_limits(&golden, bytes, size);
            errors += outcome.errors.len();
            columns_read += outcome.columns_read;
        }
        assert!(errors > 20 && columns_read > 20, "{name}: {errors} errors, {columns_read} columns read");
    }
}
