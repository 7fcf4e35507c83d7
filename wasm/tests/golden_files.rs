//! Data files that LanceDB and pylance wrote are read to the rows that it was given (`tests/golden/README.md`).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod one_file_store;

use std::ops::Range;
use std::path::PathBuf;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_select::concat::{concat, concat_batches};
use lancelet::format::file::{FileReader, FileVersion};
use lancelet::format::table::Field;
use one_file_store::file_schema::FileSchema;
use one_file_store::random::Random;
use one_file_store::{OneFileStore, block_on};

/// A folder of data files of one content: `v2_0.lance` and so on, and `expected.arrows`.
struct Case {
    name: String,
    folder: PathBuf,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for writer in ["lancedb-0.39.0", "pylance-14.0.2"] {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(writer);
        for entry in std::fs::read_dir(root).unwrap() {
            let folder = entry.unwrap().path();
            if folder.join("expected.arrows").is_file() {
                let name = format!("{writer} {}", folder.file_name().unwrap().to_string_lossy());
                cases.push(Case { name, folder });
            }
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

impl Case {
    /// The data files, with the version that their name says.
    fn files(&self) -> Vec<(FileVersion, Vec<u8>)> {
        [FileVersion::V2_0, FileVersion::V2_1, FileVersion::V2_2]
            .into_iter()
            .filter_map(|version| {
                let name = format!("v{}.lance", version.as_str().replace('.', "_"));
                Some((version, std::fs::read(self.folder.join(name)).ok()?))
            })
            .collect()
    }

    fn expected(&self) -> RecordBatch {
        let file = std::fs::File::open(self.folder.join("expected.arrows")).unwrap();
        let reader = StreamReader::try_new(file, None).unwrap();
        let schema = reader.schema();
        let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
        concat_batches(&schema, &batches).unwrap()
    }
}

/// What is wrong with an array, if anything.
fn difference(got: &ArrayRef, expected: &ArrayRef) -> Option<String> {
    if (got.data_type(), got.len()) != (expected.data_type(), expected.len()) {
        let [got, expected] = [got, expected].map(|array| format!("{} of {}", array.len(), array.data_type()));
        return Some(format!("{got}, expected {expected}"));
    }
    if got.to_data() == expected.to_data() {
        return None;
    }
    let at = (0..got.len()).find(|i| got.slice(*i, 1).to_data() != expected.slice(*i, 1).to_data());
    let show = |array: &ArrayRef| at.map(|i| format!("{:?}", array.slice(i, 1)));
    Some(format!("row {at:?}\n got {:?}\n expected {:?}", show(got), show(expected)))
}

/// Reads some rows of a file and says what is wrong with them.
fn differences(file: &FileReader, schema: &FileSchema, ranges: &[Range<u64>], expected: &RecordBatch) -> Vec<String> {
    // Some files have a column more, which only makes the others' pages small.
    let names = expected.schema();
    let field = |name: &str| schema.fields.iter().find(|field| field.name == name).unwrap();
    let fields: Vec<&Field> = names.fields().iter().map(|column| field(column.name())).collect();
    let got = match block_on(file.read(&fields, &|id| schema.column_of(id), ranges)) {
        Ok(arrays) => arrays,
        Err(error) => return vec![error.to_string()],
    };
    assert_eq!(got.len(), expected.num_columns());
    let columns = got.iter().zip(expected.columns()).zip(names.fields()).filter_map(|((array, all), field)| {
        let slices: Vec<_> =
            ranges.iter().map(|rows| all.slice(rows.start as usize, (rows.end - rows.start) as usize)).collect();
        let slices: Vec<&dyn Array> = slices.iter().map(|slice| slice.as_ref()).collect();
        let wanted = if slices.is_empty() { all.slice(0, 0) } else { concat(&slices).unwrap() };
        difference(array, &wanted).map(|difference| format!("{}: {difference}", field.name()))
    });
    columns.collect()
}

// F9, V1 to V13, L1 to L14, L16, L17: `tests/golden/README.md` says which case has what.
#[test]
fn every_column_of_every_file_is_what_was_written() {
    let (mut columns, mut failures) = (0, Vec::new());
    for case in cases() {
        let expected = case.expected();
        for (version, bytes) in case.files() {
            let schema = FileSchema::of_file(&bytes).unwrap();
            let file = block_on(OneFileStore::new(bytes).open()).unwrap();
            let context = format!("{} {}", case.name, version.as_str());
            assert_eq!((file.version(), file.row_count()), (version, expected.num_rows() as u64), "{context}");
            let found = differences(&file, &schema, &[0..file.row_count()], &expected);
            failures.extend(found.into_iter().map(|difference| format!("{context}: {difference}")));
            columns += expected.num_columns();
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(columns > 500, "only {columns} columns were compared");
}

// L6, L7, L10
#[test]
fn any_ranges_are_the_slices_of_all_rows() {
    let mut random = Random(7);
    let mut failures = Vec::new();
    for case in cases() {
        let expected = case.expected();
        let row_count = expected.num_rows() as u64;
        for (version, bytes) in case.files() {
            let schema = FileSchema::of_file(&bytes).unwrap();
            let file = block_on(OneFileStore::new(bytes).open()).unwrap();
            for round in 0..12 {
                let ranges = ranges(&mut random, row_count, round);
                let found = differences(&file, &schema, &ranges, &expected);
                let context = format!("{} {} rows {ranges:?}", case.name, version.as_str());
                failures.extend(found.into_iter().map(|difference| format!("{context}: {difference}")));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Reads everything in batches; the errors that a damaged file may give are values, too.
fn read_all(file: &OneFileStore, schema: &FileSchema, expected: &RecordBatch) -> lancelet::Result<()> {
    block_on(async {
        let reader = file.open().await?;
        let row_count = expected.num_rows() as u64;
        // What the file claims is not what a caller takes: rows come in batches, from both ends.
        let claimed = reader.row_count();
        let batches = [
            0..claimed.min(row_count),
            claimed.saturating_sub(50)..claimed,
            claimed / 2..(claimed / 2 + 7).min(claimed),
        ];
        let mut first_error = Ok(());
        for field in schema.fields.iter().filter(|field| expected.column_by_name(&field.name).is_some()) {
            for rows in &batches {
                match reader.read(&[field], &|id| schema.column_of(id), std::slice::from_ref(rows)).await {
                    Ok(arrays) => {
                        assert_eq!(arrays[0].len() as u64, rows.end - rows.start);
                        // The longest value of a dictionary may stand in every row, and no more.
                        let size = arrays[0].get_array_memory_size();
                        let most = 2 * file.size_bytes() as usize * arrays[0].len() + (16 << 20);
                        assert!(size < most, "{size} bytes of {} for {rows:?}", field.data_type);
                    }
                    Err(error) if first_error.is_ok() => first_error = Err(error),
                    Err(_) => {}
                }
            }
        }
        first_error
    })
}

// F1
#[test]
fn damaged_files_give_errors_or_values_and_never_panic() {
    let mut random = Random(11);
    let (mut errors, mut values) = (0, 0);
    for case in cases() {
        let expected = case.expected();
        for (version, bytes) in case.files() {
            let schema = FileSchema::of_file(&bytes).unwrap();
            // The descriptions of pages are few bytes among many: damage lands there every other time.
            let metadata = bytes.len() as u64 - 40 - metadata_bytes(&bytes);
            for round in 0..10u64 {
                let mut damaged = bytes.clone();
                match round % 8 {
                    0 => damaged.truncate(random.below(bytes.len() as u64) as usize),
                    1 => drop(damaged.drain(..random.below(bytes.len() as u64) as usize)),
                    n => {
                        for _ in 0..n {
                            let from = if round % 2 == 0 { 0 } else { metadata };
                            let at = (from + random.below(bytes.len() as u64 - from)) as usize;
                            damaged[at] = match random.below(4) {
                                0 => 0xff,
                                1 => 0,
                                2 => damaged[at] ^ (1 << random.below(8)),
                                _ => random.next() as u8,
                            };
                        }
                    }
                }
                match read_all(&OneFileStore::new(damaged), &schema, &expected) {
                    Ok(()) => values += 1,
                    Err(lancelet::Error::Internal { reason }) => panic!("{} {}: {reason}", case.name, version.as_str()),
                    Err(_) => errors += 1,
                }
            }
        }
    }
    assert!(errors > 100 && values > 10, "{errors} errors, {values} files whose damage shows in values only");
}

/// From the metadata of the first column to the footer.
fn metadata_bytes(file: &[u8]) -> u64 {
    let footer = file.len() - 40;
    footer as u64 - u64::from_le_bytes(file[footer..footer + 8].try_into().unwrap())
}

/// Ascending, disjoint rows: none, single ones, adjoining ones, long ones.
fn ranges(random: &mut Random, row_count: u64, round: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    let mut at = random.below(row_count);
    let longest = [1, 3, 20, row_count][round as usize % 4];
    while at < row_count && ranges.len() < 30 {
        let end = (at + random.below(longest + 1)).min(row_count);
        ranges.push(at..end);
        at = end + random.below(longest * 2);
    }
    ranges
}
