//! Tables that LanceDB wrote and whose schema changed: members of structs cast, dropped and renamed, columns added with and without
//! values. The leaves of a column then lie in several data files of a fragment.

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_ipc::reader::StreamReader;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use lancelet::table::{Consistency, ScanOptions, Table};

use crate::builders::{World, block_on, columns, filtered, scan};

fn folder(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/lancedb-0.39.0/evolved").join(version)
}

fn expected(version: &str) -> RecordBatch {
    let file = std::fs::File::open(folder(version).join("expected.arrows")).unwrap();
    let reader = StreamReader::try_new(file, None).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    concat_batches(&schema, &batches).unwrap()
}

async fn open(world: &World, version: &str) -> Table {
    let root = folder(version).join("table");
    let mut import = world.database.import_table("t").await.unwrap();
    for part in ["data", "_deletions", "_versions"] {
        for file in std::fs::read_dir(root.join(part)).unwrap() {
            let file = file.unwrap();
            import.begin_file(&format!("{part}/{}", file.file_name().into_string().unwrap())).await.unwrap();
            import.write(std::fs::read(file.path()).unwrap().into()).await.unwrap();
        }
    }
    import.finish(Consistency::Lazy).await.unwrap()
}

fn one(batches: &[RecordBatch]) -> RecordBatch {
    concat_batches(&batches[0].schema(), batches).unwrap()
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch.column_by_name(name).unwrap()
}

// F11
#[test]
fn columns_spread_over_data_files_are_read_as_lancedb_reads_them() {
    for version in ["v2_1", "v2_2"] {
        let expected = expected(version);
        block_on(async {
            let world = World::new();
            let table = open(&world, version).await;
            let all = one(&scan(&table, ScanOptions::default()).await);
            assert_eq!((all.num_rows(), all.num_columns()), (56, 6), "{version}");
            for (at, field) in expected.schema().fields().iter().enumerate() {
                assert_eq!(all.schema().field(at).name(), field.name(), "{version}");
                assert_eq!(all.column(at).data_type(), field.data_type(), "{version} {}", field.name());
                assert_eq!(all.column(at).to_data(), expected.column(at).to_data(), "{version} {}", field.name());
            }
            // Added without values: no file has the column.
            assert_eq!(column(&all, "later").null_count(), 56);
        });
    }
}

#[test]
fn members_and_few_rows_of_spread_columns_are_read_from_the_files_that_have_them() {
    block_on(async {
        let world = World::new();
        let table = open(&world, "v2_2").await;
        let expected = expected("v2_2");
        let options = ScanOptions { columns: columns(&["s.a", "s.in.y", "l"]), ..filtered("id in (5, 20, 41, 64)") };
        let some = one(&scan(&table, options).await);
        let ids: Vec<i32> = column(&expected, "id").as_primitive::<arrow_array::types::Int32Type>().values().to_vec();
        let rows: Vec<u32> = [5, 20, 41, 64].map(|id| ids.iter().position(|x| *x == id).unwrap() as u32).to_vec();
        let wanted = take_record_batch(&expected, &UInt32Array::from(rows)).unwrap();
        let structs = column(&wanted, "s").as_struct();
        let member = |at: usize, array: &ArrayRef| structs.is_valid(at) && array.is_valid(at);
        let a = column(&some, "s.a").as_primitive::<Int64Type>();
        for at in 0..4 {
            let source = structs.column_by_name("a").unwrap();
            assert_eq!(a.is_valid(at), member(at, source));
            if a.is_valid(at) {
                assert_eq!(a.value(at), source.as_primitive::<Int64Type>().value(at));
            }
        }
        assert_eq!(column(&some, "l").to_data(), column(&wanted, "l").to_data());
        assert_eq!(column(&some, "s.in.y").len(), 4);
    });
}
