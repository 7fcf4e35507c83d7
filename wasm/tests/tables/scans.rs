//! Scans: projection, filter, limit, offset, row ids, deletion vectors, missing files.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use lancelet::ErrorCode;
use lancelet::store::{ListOptions, Path};
use lancelet::table::{Consistency, Rows, ScanOptions, Table};

use crate::builders::{World, block_on, columns, drain, filtered, id_in, ids, int64s, names, row_ids, scan};

async fn ids_of(table: &Table, options: ScanOptions) -> Vec<i64> {
    int64s(&scan(table, options).await, "id")
}

#[test]
fn columns_come_in_the_order_asked() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 1..3).await;
        let options = ScanOptions { columns: columns(&["name", "id"]), ..ScanOptions::default() };
        let batches = scan(&table, options).await;
        let schema = batches[0].schema();
        let found: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(found, ["name", "id"]);
        assert_eq!((int64s(&batches, "id"), names(&batches)), (vec![1, 2], vec![Some("n1".into()), Some("n2".into())]));
    });
}

#[test]
fn columns_that_are_unknown_or_named_twice_are_refused() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1).await;
        let fault = async |names: &[&str]| {
            let options = ScanOptions { columns: columns(names), ..ScanOptions::default() };
            table.scan(options).await.err().unwrap()
        };
        let unknown = fault(&["nam"]).await;
        assert_eq!(unknown.code(), ErrorCode::NotFound);
        assert!(unknown.to_string().contains("did you mean \"name\"?"), "{unknown}");
        assert_eq!(fault(&["id", "id"]).await.to_string(), "invalid input, duplicate column name: id");
        assert!(!world.database.holds_leases());
    });
}

#[test]
fn a_scan_of_no_columns_has_no_rows() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..3).await;
        let options = ScanOptions { columns: Some(vec![]), ..ScanOptions::default() };
        assert_eq!(scan(&table, options.clone()).await, []);
        let with_id = ScanOptions { with_row_id: true, ..options };
        assert_eq!(row_ids(&scan(&table, with_id).await), [0, 1, 2]);
    });
}

#[test]
fn expressions_come_behind_the_columns_and_read_each_column_once() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10, 10..20]).await;
        table.delete("id = 11").await.unwrap();
        let options = ScanOptions {
            columns: columns(&["id"]),
            expressions: vec!["id * 2".into(), "name".into(), "_rowid".into()],
            offset: 1,
            ..filtered("id >= 9 AND id < 13")
        };
        let batches = scan(&table, options).await;
        let schema = batches[0].schema();
        let found: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(found, ["id", "id * 2", "name", "_rowid"]);
        assert_eq!((int64s(&batches, "id"), int64s(&batches, "id * 2")), (vec![10, 12], vec![20, 24]));
        assert_eq!(row_ids(&batches), [1 << 32, (1 << 32) + 2]);
        let only = ScanOptions { columns: Some(vec![]), expressions: vec!["7".into()], ..filtered("id < 3") };
        assert_eq!(int64s(&scan(&table, only).await, "7"), [7, 7, 7]);
    });
}

#[test]
fn an_expression_that_fails_names_the_row_of_the_result() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10, 10..20]).await;
        let scan = async |text: &str| {
            let options = ScanOptions { expressions: vec![text.into()], batch_rows: Some(4), ..filtered("id > 4") };
            let mut scan = table.scan(options).await?;
            while scan.next().await?.is_some() {}
            Ok::<(), lancelet::Error>(())
        };
        let late = scan("1 / (id - 17)").await.unwrap_err().to_string();
        assert!(late.contains("row 12"), "{late}");
        let unknown = scan("idd + 1").await.unwrap_err();
        assert_eq!(unknown.code(), ErrorCode::InvalidInput);
        assert!(unknown.to_string().contains("\"idd + 1\""), "{unknown}");
    });
}

#[test]
fn a_member_of_a_null_struct_is_null() {
    block_on(async {
        let world = World::new();
        let inner: Fields =
            vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Int64, false)].into();
        let schema = Arc::new(Schema::new(vec![Field::new("s", DataType::Struct(inner.clone()), true)]));
        let members: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(vec![1, 2, 3])), Arc::new(Int64Array::from(vec![4, 5, 6]))];
        let structs: ArrayRef = Arc::new(StructArray::new(inner, members, Some(vec![true, false, true].into())));
        let mut create = world.database.create_table("t", schema.clone()).await.unwrap();
        create.write(&RecordBatch::try_new(schema, vec![structs]).unwrap()).await.unwrap();
        let table = create.finish(Consistency::Lazy).await.unwrap();
        let options = ScanOptions { columns: columns(&["s.b", "s.a"]), ..ScanOptions::default() };
        let batches = scan(&table, options).await;
        let values = |at: usize| batches[0].column(at).as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
        assert_eq!((values(0), values(1)), (vec![Some(4), None, Some(6)], vec![Some(1), None, Some(3)]));
        assert!(batches[0].schema().field(0).is_nullable());
    });
}

#[test]
fn a_filter_keeps_its_rows_and_other_columns_fit_them() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10, 10..20]).await;
        let batches = scan(&table, filtered("id >= 8 AND id < 12")).await;
        assert_eq!(int64s(&batches, "id"), [8, 9, 10, 11]);
        assert_eq!(names(&batches), [Some("n8".into()), None, Some("n10".into()), Some("n11".into())]);
        let by_name = ScanOptions { columns: columns(&["id"]), ..filtered("name = 'n4'") };
        assert_eq!(ids_of(&table, by_name).await, [4]);
        assert_eq!(ids_of(&table, filtered("name IS NULL AND id > 12")).await, [15, 18]);
        assert_eq!(ids_of(&table, filtered("id > 99")).await, Vec::<i64>::new());
    });
}

#[test]
fn limit_and_offset_count_live_matching_rows() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10, 10..20, 20..30]).await;
        table.delete("id IN (0, 1, 5, 12, 29)").await.unwrap();
        let live: Vec<i64> = (0..30).filter(|id| ![0, 1, 5, 12, 29].contains(id)).collect();
        let even: Vec<i64> = live.iter().copied().filter(|id| id % 2 == 0).collect();
        for offset in 0..27 {
            for limit in [None, Some(0), Some(1), Some(7), Some(40)] {
                let expected = |rows: &[i64]| -> Vec<i64> {
                    rows.iter().copied().skip(offset).take(limit.unwrap_or(99) as usize).collect()
                };
                let options =
                    ScanOptions { limit, offset: offset as u64, batch_rows: Some(4), ..ScanOptions::default() };
                assert_eq!(ids_of(&table, options.clone()).await, expected(&live), "{offset} {limit:?}");
                let options = ScanOptions { filter: Some(id_in((0..30).step_by(2))), ..options };
                assert_eq!(ids_of(&table, options).await, expected(&even), "{offset} {limit:?}");
            }
        }
    });
}

#[test]
fn batches_have_at_most_the_rows_asked() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10, 10..13]).await;
        let sizes = async |options: ScanOptions| {
            scan(&table, options).await.iter().map(RecordBatch::num_rows).collect::<Vec<_>>()
        };
        let small = ScanOptions { batch_rows: Some(4), ..ScanOptions::default() };
        assert_eq!(sizes(small.clone()).await, [4, 4, 2, 3]);
        assert_eq!(sizes(ScanOptions { filter: Some("id > 2".into()), ..small.clone() }).await, [4, 3, 3]);
        let none = ScanOptions { batch_rows: Some(0), ..small };
        assert_eq!(table.scan(none).await.err().unwrap().code(), ErrorCode::InvalidInput);
    });
}

#[test]
fn row_ids_are_addresses_and_can_be_filtered() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3, 3..5]).await;
        table.delete("id = 1").await.unwrap();
        let options = ScanOptions { with_row_id: true, ..ScanOptions::default() };
        let batches = scan(&table, options).await;
        assert_eq!(row_ids(&batches), [0, 2, 1 << 32, 1 << 32 | 1]);
        assert_eq!(batches[0].schema().fields().last().unwrap().name(), "_rowid");
        assert_eq!(ids_of(&table, filtered("_rowid >= 4294967296")).await, [3, 4]);
    });
}

#[test]
fn a_scattered_selection_reads_the_right_rows() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1_000).await;
        for step in [2, 7, 97] {
            let expected: Vec<i64> = (1..1_000).step_by(step).collect();
            let batches = scan(&table, filtered(&id_in(expected.clone()))).await;
            assert_eq!(int64s(&batches, "id"), expected);
            let expected: Vec<_> = expected.iter().map(|id| (id % 3 != 0).then(|| format!("n{id}"))).collect();
            assert_eq!(names(&batches), expected);
        }
        table.delete(&id_in((0..1_000).step_by(2))).await.unwrap();
        assert_eq!(ids(&table).await, (0..1_000).filter(|id| id % 2 == 1).collect::<Vec<_>>());
    });
}

#[test]
fn counts_agree_with_scans() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10, 10..20]).await;
        table.delete("id < 3").await.unwrap();
        assert_eq!(table.count_rows(None).await.unwrap(), 17);
        assert_eq!(table.count_rows(Some("id < 5 OR name IS NULL")).await.unwrap(), 7);
        assert_eq!(table.count_rows(Some("id > 99")).await.unwrap(), 0);
        assert_eq!(table.count_rows(Some("nope = 1")).await.unwrap_err().code(), ErrorCode::InvalidInput);
        assert!(!world.database.holds_leases());
    });
}

#[test]
fn a_scan_holds_its_lease_until_it_ends_or_is_closed() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..3).await;
        let mut running = table.scan(ScanOptions::default()).await.unwrap();
        assert!(running.next().await.unwrap().is_some());
        assert!(world.database.holds_leases());
        assert!(running.next().await.unwrap().is_none());
        assert!(!world.database.holds_leases());
        assert!(running.next().await.unwrap().is_none());
        let closed = table.scan(ScanOptions::default()).await.unwrap();
        closed.close().await.unwrap();
        assert!(!world.database.holds_leases());
        drop(table.scan(ScanOptions::default()).await.unwrap());
        assert!(world.database.holds_leases(), "an abandoned lease is ended by maintenance");
        world.database.maintain().await.unwrap();
        assert!(!world.database.holds_leases());
    });
}

#[test]
fn a_scan_reads_its_version_whatever_is_committed_meanwhile() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..5, 5..10]).await;
        let mut running = table.scan(ScanOptions { batch_rows: Some(2), ..ScanOptions::default() }).await.unwrap();
        let first = running.next().await.unwrap().unwrap();
        table.delete("true").await.unwrap();
        let mut found = int64s(&[first], "id");
        found.extend(int64s(&drain(running).await, "id"));
        assert_eq!(found, (0..10).collect::<Vec<_>>());
    });
}

#[test]
fn a_missing_data_file_is_named_with_its_version() {
    block_on(async {
        let world = World::new();
        world.table(&[0..5]).await;
        let dir = world.store.lookup("t").await.unwrap().unwrap();
        let data = Path::parse("data").unwrap();
        let file = world.store.list(&dir, &data, &ListOptions::default()).await.unwrap().objects[0].path.clone();
        world.store.delete(&dir, &file).await.unwrap();
        let table = world.tab(9).open_table("t", Consistency::Lazy).await.unwrap();
        assert_eq!(table.count_rows(None).await.unwrap(), 5);
        let mut running = table.scan(ScanOptions::default()).await.unwrap();
        let error = running.next().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::NotFound);
        assert_eq!(error.to_string(), format!("file {file} of version 2 was not found"));
    });
}

/// Fragments of the ids 0..4, 10..13 and 20..22 without the ids 1, 2 and 20.
async fn table_with_gaps(world: &World) -> Table {
    let table = world.table(&[0..4, 10..13, 20..22]).await;
    table.delete(&id_in([1, 2, 20])).await.unwrap();
    table
}

#[test]
fn offsets_count_live_rows_and_come_in_the_tables_order() {
    block_on(async {
        let world = World::new();
        let table = table_with_gaps(&world).await;
        let taken = async |offsets: &[u64]| {
            let rows = Some(Rows::Offsets(offsets.to_vec()));
            ids_of(&table, ScanOptions { rows, ..ScanOptions::default() }).await
        };
        assert_eq!(taken(&[0, 1, 2, 3, 4, 5]).await, [0, 3, 10, 11, 12, 21]);
        assert_eq!(taken(&[5, 1, 3]).await, [3, 11, 21]);
        assert_eq!(taken(&[3, 1, 3, 2, 3]).await, [3, 10, 11, 11, 11]);
        assert_eq!(taken(&[6, u64::MAX, 4]).await, [12]);
        assert_eq!(taken(&[]).await, []);
    });
}

#[test]
fn row_ids_give_each_row_once_and_those_of_no_live_row_are_passed_over() {
    block_on(async {
        let world = World::new();
        let table = table_with_gaps(&world).await;
        let all = ScanOptions { with_row_id: true, ..ScanOptions::default() };
        let known = row_ids(&scan(&table, all).await);
        assert_eq!(known, [0, 3, 1 << 32, (1 << 32) + 1, (1 << 32) + 2, (2 << 32) + 1]);
        let taken = async |numbers: &[u64]| {
            let rows = Some(Rows::Ids(numbers.to_vec()));
            ids_of(&table, ScanOptions { rows, ..ScanOptions::default() }).await
        };
        assert_eq!(taken(&[known[5], known[1], known[1]]).await, [3, 21]);
        assert_eq!(taken(&[1, 4, 2 << 32, (2 << 32) + 2, 3 << 32, u64::MAX, known[2]]).await, [10]);
    });
}

#[test]
fn taken_rows_come_in_batches_with_offset_and_limit() {
    block_on(async {
        let world = World::new();
        let table = table_with_gaps(&world).await;
        let rows = Some(Rows::Offsets(vec![0, 1, 2, 3, 4, 5]));
        let options = ScanOptions { rows, batch_rows: Some(2), offset: 1, limit: Some(4), ..ScanOptions::default() };
        let batches = scan(&table, options).await;
        assert_eq!(int64s(&batches, "id"), [3, 10, 11, 12]);
        assert!(batches.iter().all(|batch| batch.num_rows() <= 2));
    });
}

#[test]
fn taken_rows_take_no_filter() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..3).await;
        let options = ScanOptions { rows: Some(Rows::Ids(vec![1])), ..filtered("id > 0") };
        assert_eq!(table.scan(options).await.err().unwrap().code(), ErrorCode::InvalidInput);
        assert!(!world.database.holds_leases());
    });
}

#[test]
fn batches_of_long_values_have_few_rows() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..0).await;
        let mut state = 1u32;
        let mut letter = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b' ' + (state >> 24) as u8 % 90)
        };
        let texts: Vec<String> = (0..150).map(|_| (0..100_000).map(|_| letter()).collect()).collect();
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from_iter_values(0..150)), Arc::new(StringArray::from_iter_values(&texts))];
        let mut append = table.append().await.unwrap();
        append.write(&RecordBatch::try_new(crate::builders::schema(), columns).unwrap()).await.unwrap();
        append.finish().await.unwrap();

        let batches = scan(&table, ScanOptions::default()).await;
        assert!(batches.iter().all(|batch| batch.num_rows() <= 60), "{:?}", batches[0].num_rows());
        assert_eq!(names(&batches), texts.iter().map(|text| Some(text.clone())).collect::<Vec<_>>());
        let ids_alone = ScanOptions { columns: crate::builders::columns(&["id"]), ..ScanOptions::default() };
        assert_eq!(scan(&table, ids_alone).await.len(), 1);
    });
}
