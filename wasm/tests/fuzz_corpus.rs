//! The inputs of the fuzzers, run once each: `fuzz/seeds` (real bytes, cut small) and `fuzz/crashers` (what once broke something, named
//! by the defect).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../fuzz/src/lib.rs"]
#[allow(dead_code, reason = "the fuzzers use the rest")]
mod fuzz;

use std::path::{Path, PathBuf};

#[global_allocator]
static ALLOCATOR: fuzz::allocation::Limited = fuzz::allocation::Limited;

fn inputs(kind: &str, target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(kind).join(target);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn replay(kind: &str, least: usize) {
    for (name, target) in fuzz::TARGETS {
        let files = inputs(kind, name);
        assert!(files.len() >= least, "{} {kind} of {name}", files.len());
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            // The test's output of a failure ends with the input that made it.
            println!("{}", file.display());
            fuzz::run(target, &bytes);
        }
    }
}

#[test]
fn seeds_are_read_without_a_defect() {
    replay("seeds", 3);
}

#[test]
fn what_once_broke_something_does_not_any_more() {
    replay("crashers", 0);
}

#[test]
fn a_memory_hungry_target_is_told() {
    let greedy: fuzz::Target = |bytes| drop(vec![1u8; fuzz::MEMORY_LIMIT - bytes.len()]);
    fuzz::run(greedy, &[0; 100]);
    let (result, most) = fuzz::allocation::most_in_use(1000, || Vec::<u8>::new().try_reserve(2000).is_err());
    assert!(result && most >= 2000);
}

#[test]
fn page_seeds_are_pages_that_decode() {
    let mut rows = 0;
    for file in inputs("seeds", "page") {
        let bytes = fuzz::input::PageInput::parse(&std::fs::read(&file).unwrap()).to_file();
        let schema = fuzz::one_file_store::file_schema::FileSchema::of_file(&bytes).unwrap();
        let store = fuzz::one_file_store::OneFileStore::new(bytes);
        fuzz::one_file_store::block_on(async {
            let reader = store.open().await.unwrap();
            let fields: Vec<_> = schema.fields.iter().collect();
            let all = [0..reader.row_count()];
            let read = reader.read(&fields, &|id| schema.column_of(id), &all).await;
            rows += read.unwrap_or_else(|error| panic!("{}: {error}", file.display()))[0].len();
        });
    }
    assert!(rows > 1000, "{rows} rows");
}
