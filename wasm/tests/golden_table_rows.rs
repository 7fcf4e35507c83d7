//! Tables that pylance made are imported and scanned to the rows that pylance reads of them (`tests/golden/README.md`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod builders;

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::FieldRef;
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use lancelet::table::{Consistency, ScanOptions, Table};

use builders::{World, block_on, columns, scan};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pylance-14.0.2/tables")
}

fn cases() -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn files(root: &Path) -> Vec<(String, Bytes)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
                found.push((name, Bytes::from(std::fs::read(&path).unwrap())));
            }
        }
    }
    found.sort();
    found
}

async fn import(world: &World, case: &str) -> lancelet::Result<Table> {
    let mut import = world.database.import_table(case).await?;
    for (path, bytes) in files(&folder().join(case).join("table")) {
        import.begin_file(&path).await?;
        import.write(bytes).await?;
    }
    import.finish(Consistency::Lazy).await
}

fn expected(case: &str) -> RecordBatch {
    let file = std::fs::File::open(folder().join(case).join("expected.arrows")).unwrap();
    let reader = StreamReader::try_new(file, None).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    concat_batches(&schema, &batches).unwrap()
}

async fn rows(table: &Table) -> lancelet::Result<RecordBatch> {
    let mut scan = table.scan(ScanOptions::default()).await?;
    let mut batches = Vec::new();
    while let Some(batch) = scan.next().await? {
        batches.push(batch);
    }
    let schema = scan.schema();
    scan.close().await?;
    Ok(concat_batches(&schema, &batches).unwrap())
}

/// What is wrong with the rows of a table, if anything.
async fn differences(case: &str) -> lancelet::Result<Vec<String>> {
    let world = World::new();
    let table = import(&world, case).await?;
    let (got, expected) = (rows(&table).await?, expected(case));
    let counted = table.count_rows(None).await?;
    if (got.num_rows() as u64, got.num_columns()) != (counted, expected.num_columns()) {
        return Ok(vec![format!("{} rows ({counted} counted) of {}", got.num_rows(), got.schema())]);
    }
    let names = expected.schema();
    let columns = expected.columns().iter().zip(names.fields()).filter_map(|(column, field)| {
        let Some(ours) = got.column_by_name(field.name()) else { return Some(format!("no column {}", field.name())) };
        let is_same = ours.to_data() == column.to_data();
        (!is_same).then(|| format!("{}: {ours:?}\nexpected {column:?}", field.name()))
    });
    Ok(columns.collect())
}

#[test]
fn t3_every_table_is_read_as_its_writer_reads_it() {
    let cases = cases();
    let mut failures = Vec::new();
    for case in &cases {
        let found = block_on(differences(case)).unwrap_or_else(|error| vec![error.to_string()]);
        failures.extend(found.into_iter().map(|difference| format!("{case}: {difference}")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(cases.len() >= 5);
}

// F9
#[test]
fn members_of_a_blob_are_columns_and_can_be_filtered_by() {
    for case in ["blobs_2_0", "blobs_2_1", "blobs_2_2"] {
        let expected = expected(case);
        let schema = expected.schema();
        let described = |field: &&FieldRef| field.metadata().get("lance-encoding:blob").is_some_and(|on| on == "true");
        let name = schema.fields().iter().find(described).unwrap().name();
        let structs = expected.column_by_name(name).unwrap().as_struct();
        let sizes = structs.column_by_name("size").unwrap().as_primitive::<UInt64Type>();
        let sizes: Vec<Option<u64>> =
            (0..sizes.len()).map(|row| structs.is_valid(row).then(|| sizes.value(row))).collect();
        block_on(async {
            let world = World::new();
            let table = import(&world, case).await.unwrap();
            // What the table takes is not what it gives.
            let stored = table.schema().await.unwrap();
            assert_ne!(stored.field_with_name(name).unwrap().data_type(), structs.data_type(), "{case}");
            let member = format!("{name}.size");
            let options =
                |filter: Option<String>| ScanOptions { columns: columns(&[&member]), filter, ..Default::default() };
            let read = |batches: Vec<RecordBatch>| -> Vec<Option<u64>> {
                batches
                    .iter()
                    .flat_map(|b| b.column(0).as_primitive::<UInt64Type>().iter().collect::<Vec<_>>())
                    .collect()
            };
            assert_eq!(read(scan(&table, options(None)).await), sizes, "{case}");
            let some: Vec<_> = sizes.iter().copied().filter(|size| size.is_some_and(|size| size > 0)).collect();
            assert!(!some.is_empty() && some.len() < sizes.len(), "{case}");
            assert_eq!(read(scan(&table, options(Some(format!("{member} > 0")))).await), some, "{case}");
        });
    }
}
