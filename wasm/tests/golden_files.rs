//! Data files that LanceDB wrote are read to the rows that it was given (`tests/golden/README.md`).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod one_file_store;

use std::ops::Range;
use std::path::PathBuf;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, Schema};
use arrow_select::concat::{concat, concat_batches};
use lancelet::format::file::FileVersion;
use lancelet::format::table::{Field, FieldId};
use one_file_store::{OneFileStore, block_on};

fn folder(case: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/lancedb-0.39.0").join(case)
}

fn cases() -> Vec<String> {
    let is_case = |name: &String| folder(name).join("expected.arrows").is_file();
    let mut cases: Vec<_> =
        std::fs::read_dir(folder("")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    cases.retain(is_case);
    cases.sort();
    cases
}

/// The data files of a case, with the version that their name says.
fn files(case: &str) -> Vec<(FileVersion, Vec<u8>)> {
    let names =
        [(FileVersion::V2_0, "v2_0.lance"), (FileVersion::V2_1, "v2_1.lance"), (FileVersion::V2_2, "v2_2.lance")];
    names
        .into_iter()
        .filter_map(|(version, name)| Some((version, std::fs::read(folder(case).join(name)).ok()?)))
        .collect()
}

fn expected(case: &str) -> RecordBatch {
    let file = std::fs::File::open(folder(case).join("expected.arrows")).unwrap();
    let reader = StreamReader::try_new(file, None).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    concat_batches(&schema, &batches).unwrap()
}

/// Lance fields of an Arrow schema: ids in pre-order.
fn fields(schema: &Schema) -> Vec<Field> {
    fn field(arrow: &arrow_schema::Field, next: &mut i32) -> Field {
        let id = FieldId(*next);
        *next += 1;
        let children = match arrow.data_type() {
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => vec![field(item, next)],
            DataType::FixedSizeList(item, _) if matches!(item.data_type(), DataType::Struct(_)) => {
                vec![field(item, next)]
            }
            DataType::Struct(fields) => fields.iter().map(|child| field(child, next)).collect(),
            _ => Vec::new(),
        };
        Field {
            id,
            name: arrow.name().clone(),
            data_type: arrow.data_type().clone(),
            nullable: arrow.is_nullable(),
            metadata: arrow.metadata().iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            children,
            primary_key_position: 0,
        }
    }
    let mut next = 0;
    schema.fields().iter().map(|child| field(child, &mut next)).collect()
}

/// Columns are the leaves in pre-order; in 2.0 all fields are.
fn column_ids(fields: &[Field], version: FileVersion) -> Vec<FieldId> {
    fn columns(field: &Field, version: FileVersion, ids: &mut Vec<FieldId>) {
        let is_leaf = field.is_one_column();
        if is_leaf || version == FileVersion::V2_0 {
            ids.push(field.id);
        }
        if !is_leaf {
            field.children.iter().for_each(|child| columns(child, version, ids));
        }
    }
    let mut ids = Vec::new();
    fields.iter().for_each(|field| columns(field, version, &mut ids));
    ids
}

struct Table {
    fields: Vec<Field>,
    columns: Vec<FieldId>,
}

impl Table {
    fn new(schema: &Schema, version: FileVersion) -> Table {
        let fields = fields(schema);
        Table { columns: column_ids(&fields, version), fields }
    }

    fn read(&self, file: &OneFileStore, rows: &[Range<u64>]) -> lancelet::Result<Vec<ArrayRef>> {
        block_on(async {
            let reader = file.open().await?;
            let fields: Vec<&Field> = self.fields.iter().collect();
            reader.read(&fields, &|id| self.column(id), rows).await
        })
    }

    fn column(&self, id: FieldId) -> Option<u32> {
        self.columns.iter().position(|column| *column == id).map(|at| at as u32)
    }
}

fn assert_same(context: &str, name: &str, got: &ArrayRef, expected: &ArrayRef) {
    assert_eq!(got.data_type(), expected.data_type(), "{context} {name}");
    assert_eq!(got.len(), expected.len(), "{context} {name}");
    if got.to_data() != expected.to_data() {
        let at = (0..got.len()).find(|i| got.slice(*i, 1).to_data() != expected.slice(*i, 1).to_data());
        let show = |array: &ArrayRef| at.map(|i| format!("{:?}", array.slice(i, 1)));
        panic!("{context} {name}: row {at:?}\n got {:?}\n expected {:?}", show(got), show(expected));
    }
}

// F9, V1 to V13, L1 to L14, L16, L17: `tests/golden/README.md` says which case has what.
#[test]
fn every_column_of_every_file_is_what_was_written() {
    let mut columns = 0;
    for case in cases() {
        let expected = expected(&case);
        for (version, bytes) in files(&case) {
            let table = Table::new(&expected.schema(), version);
            let file = OneFileStore::new(bytes);
            let context = format!("{case} {}", version.as_str());
            let (found, row_count) = block_on(async {
                let reader = file.open().await.unwrap();
                (reader.version(), reader.row_count())
            });
            assert_eq!((found, row_count), (version, expected.num_rows() as u64), "{context}");
            let all = 0..expected.num_rows() as u64;
            let got = table.read(&file, &[all]).unwrap_or_else(|e| panic!("{context}: {e}"));
            for (i, array) in got.iter().enumerate() {
                assert_same(&context, expected.schema().field(i).name(), array, expected.column(i));
                columns += 1;
            }
        }
    }
    assert!(columns > 200, "only {columns} columns were compared");
}

// L6, L7, L10
#[test]
fn any_ranges_are_the_slices_of_all_rows() {
    let mut random = Random(7);
    for case in cases() {
        let expected = expected(&case);
        let row_count = expected.num_rows() as u64;
        for (version, bytes) in files(&case) {
            let table = Table::new(&expected.schema(), version);
            let file = OneFileStore::new(bytes);
            let reader = block_on(file.open()).unwrap();
            let fields: Vec<&Field> = table.fields.iter().collect();
            for round in 0..12 {
                let ranges = random.ranges(row_count, round);
                let got = block_on(reader.read(&fields, &|id| table.column(id), &ranges));
                let context = format!("{case} {} rows {ranges:?}", version.as_str());
                let got = got.unwrap_or_else(|e| panic!("{context}: {e}"));
                for (i, array) in got.iter().enumerate() {
                    let all = expected.column(i);
                    let slices: Vec<ArrayRef> =
                        ranges.iter().map(|r| all.slice(r.start as usize, (r.end - r.start) as usize)).collect();
                    let slices: Vec<&dyn Array> = slices.iter().map(|slice| slice.as_ref()).collect();
                    let wanted = if slices.is_empty() { all.slice(0, 0) } else { concat(&slices).unwrap() };
                    assert_same(&context, expected.schema().field(i).name(), array, &wanted);
                }
            }
        }
    }
}

/// Reads everything in batches; the errors that a damaged file may give are values, too.
fn read_all(file: &OneFileStore, table: &Table, row_count: u64) -> lancelet::Result<()> {
    block_on(async {
        let reader = file.open().await?;
        // What the file claims is not what a caller takes: rows come in batches, from both ends.
        let claimed = reader.row_count();
        let batches = [
            0..claimed.min(row_count),
            claimed.saturating_sub(50)..claimed,
            claimed / 2..(claimed / 2 + 7).min(claimed),
        ];
        let mut first_error = Ok(());
        for field in &table.fields {
            for rows in &batches {
                match reader.read(&[field], &|id| table.column(id), std::slice::from_ref(rows)).await {
                    Ok(arrays) => {
                        assert_eq!(arrays[0].len() as u64, rows.end - rows.start);
                        // A value of a few bytes may stand for many, but not for any number of them.
                        assert!(arrays[0].get_array_memory_size() < 64 << 20, "{}", arrays[0].get_array_memory_size());
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
        let expected = expected(&case);
        let row_count = expected.num_rows() as u64;
        for (version, bytes) in files(&case) {
            let table = Table::new(&expected.schema(), version);
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
                match read_all(&OneFileStore::new(damaged), &table, row_count) {
                    Ok(()) => values += 1,
                    Err(lancelet::Error::Internal { reason }) => panic!("{case} {}: {reason}", version.as_str()),
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

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// Ascending, disjoint rows: none, single ones, adjoining ones, long ones.
    fn ranges(&mut self, row_count: u64, round: u64) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        let mut at = self.below(row_count);
        let longest = [1, 3, 20, row_count][round as usize % 4];
        while at < row_count && ranges.len() < 30 {
            let end = (at + self.below(longest + 1)).min(row_count);
            ranges.push(at..end);
            at = end + self.below(longest * 2);
        }
        ranges
    }
}
