//! Create, append, delete, drop.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, NullArray, RecordBatch, StringArray, StringViewArray,
    StructArray,
};
use arrow_schema::{DataType, Field, Fields, Schema};
use lancelet::ErrorCode;
use lancelet::table::{Consistency, DeleteResult, ScanOptions};

use crate::builders::{World, append, batch, block_on, id_in, ids, int64s, names, row_ids, scan, schema};

fn one(name: &str, column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([(name, column, true)]).unwrap()
}

#[test]
fn a_table_is_there_when_its_creation_is_finished() {
    block_on(async {
        let world = World::new();
        let mut create = world.database.create_table("t", schema()).await.unwrap();
        create.write(&batch(0..3)).await.unwrap();
        assert_eq!(world.database.table_names().await.unwrap(), Vec::<String>::new());
        let table = create.finish(Consistency::Lazy).await.unwrap();
        assert_eq!(world.database.table_names().await.unwrap(), ["t"]);
        assert_eq!(table.version().await.unwrap(), 1);
        assert_eq!(ids(&world.open("t").await).await, [0, 1, 2]);
        assert_eq!(names(&scan(&table, ScanOptions::default()).await), [None, Some("n1".into()), Some("n2".into())]);
        assert_eq!(table.schema().await.unwrap(), schema());
    });
}

#[test]
fn a_table_without_rows_has_a_version_and_a_schema() {
    block_on(async {
        let world = World::new();
        let create = world.database.create_table("t", schema()).await.unwrap();
        create.finish(Consistency::Lazy).await.unwrap();
        let table = world.open("t").await;
        assert_eq!((table.version().await.unwrap(), table.count_rows(None).await.unwrap()), (1, 0));
        assert_eq!(ids(&table).await, Vec::<i64>::new());
    });
}

#[test]
fn names_are_checked_and_taken_once() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..1).await;
        let code = |name: &'static str| {
            let database = world.database.clone();
            async move { database.create_table(name, schema()).await.err().map(|error| error.code()) }
        };
        assert_eq!(code("t").await, Some(ErrorCode::TableExists));
        assert_eq!(code("a/b").await, Some(ErrorCode::InvalidInput));
        assert_eq!(code("").await, Some(ErrorCode::InvalidInput));
        assert_eq!(code("u").await, None);
    });
}

#[test]
fn of_two_creations_of_a_name_one_wins_and_the_other_leaves_nothing() {
    block_on(async {
        let world = World::new();
        let mut first = world.database.create_table("t", schema()).await.unwrap();
        let mut second = world.tab(8).create_table("t", schema()).await.unwrap();
        first.write(&batch(0..1)).await.unwrap();
        second.write(&batch(5..9)).await.unwrap();
        first.finish(Consistency::Lazy).await.unwrap();
        let error = second.finish(Consistency::Lazy).await.err().unwrap();
        assert_eq!(error.to_string(), "Table 't' already exists");
        assert_eq!(ids(&world.open("t").await).await, [0]);
    });
}

#[test]
fn a_creation_that_is_dropped_is_swept_when_its_lease_ran_out() {
    block_on(async {
        let world = World::new();
        let mut create = world.database.create_table("t", schema()).await.unwrap();
        create.write(&batch(0..100_000)).await.unwrap();
        assert!(world.database.holds_leases());
        drop(create);
        world.database.maintain().await.unwrap();
        assert!(!world.database.holds_leases());
        world.env.advance_ms(3_600_000);
        world.database.maintain().await.unwrap();
        assert_eq!(world.database.table_names().await.unwrap(), Vec::<String>::new());
        world.create("t", 0..1).await;
    });
}

#[test]
fn a_long_creation_lives_as_long_as_it_is_renewed() {
    block_on(async {
        let world = World::new();
        let mut create = world.database.create_table("t", schema()).await.unwrap();
        for at in 0..100 {
            world.env.advance_ms(10_000);
            world.database.maintain().await.unwrap();
            create.write(&batch(at..at + 1)).await.unwrap();
        }
        create.finish(Consistency::Lazy).await.unwrap();
        assert_eq!(world.open("t").await.count_rows(None).await.unwrap(), 100);
    });
}

#[test]
fn an_append_is_seen_by_its_handle_and_by_new_ones() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..2).await;
        let before = world.open("t").await;
        let mut rows = table.append().await.unwrap();
        rows.write(&batch(2..4)).await.unwrap();
        rows.write(&batch(4..4)).await.unwrap();
        rows.write(&batch(4..5)).await.unwrap();
        assert_eq!(ids(&table).await, [0, 1]);
        assert_eq!(rows.finish().await.unwrap(), 2);
        assert_eq!(ids(&table).await, [0, 1, 2, 3, 4]);
        assert_eq!(ids(&before).await, [0, 1]);
        before.checkout_latest().await.unwrap();
        assert_eq!(ids(&before).await, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn an_append_without_rows_commits_nothing() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..2).await;
        let mut rows = table.append().await.unwrap();
        rows.write(&batch(4..4)).await.unwrap();
        assert_eq!(rows.finish().await.unwrap(), 1);
        assert_eq!(table.versions().await.unwrap().len(), 1);
    });
}

#[test]
fn an_aborted_append_leaves_neither_rows_nor_files() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..2).await;
        let before = files(&world).await;
        let mut rows = table.append().await.unwrap();
        rows.write(&batch(0..200_000)).await.unwrap();
        rows.abort().await.unwrap();
        assert_eq!(files(&world).await, before);
        assert_eq!(table.version().await.unwrap(), 1);
        assert!(!world.database.holds_leases());
    });
}

async fn files(world: &World) -> Vec<String> {
    let export = world.database.export_table("t").await.unwrap();
    let paths = export.entries().iter().map(|entry| entry.path.clone()).collect();
    export.close().await.unwrap();
    paths
}

#[test]
fn many_rows_become_several_files() {
    block_on(async {
        let world = World::new();
        let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
        let numbers = |ids: std::ops::Range<i64>| one("id", Arc::new(Int64Array::from_iter_values(ids)));
        let mut create = world.database.create_table("t", schema).await.unwrap();
        create.write(&numbers(0..700_000)).await.unwrap();
        create.write(&numbers(700_000..1_048_577)).await.unwrap();
        let table = create.finish(Consistency::Lazy).await.unwrap();
        let totals = table.versions().await.unwrap().pop().unwrap().totals;
        assert_eq!(totals.first(), Some(&("total_fragments", 2)));
        let last = ScanOptions { offset: 1_048_575, with_row_id: true, ..ScanOptions::default() };
        let batches = scan(&table, last).await;
        assert_eq!(int64s(&batches, "id"), [1_048_575, 1_048_576]);
        assert_eq!(row_ids(&batches), [1_048_575, 1 << 32]);
    });
}

#[test]
fn columns_are_taken_by_name_and_missing_nullable_ones_are_null() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..0).await;
        let swapped = batch(1..3).project(&[1, 0]).unwrap();
        let mut rows = table.append().await.unwrap();
        rows.write(&swapped).await.unwrap();
        rows.write(&one("id", Arc::new(Int64Array::from(vec![9])))).await.unwrap();
        rows.finish().await.unwrap();
        let batches = scan(&table, ScanOptions::default()).await;
        assert_eq!(int64s(&batches, "id"), [1, 2, 9]);
        assert_eq!(names(&batches), [Some("n1".into()), Some("n2".into()), None]);
    });
}

#[test]
fn types_are_widened_where_nothing_is_lost() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..0).await;
        let texts: [ArrayRef; 3] = [
            Arc::new(StringViewArray::from(vec!["v"])),
            Arc::new(DictionaryArray::<Int32Type>::from_iter(["d"])),
            Arc::new(NullArray::new(1)),
        ];
        let mut rows = table.append().await.unwrap();
        for text in texts {
            let id: ArrayRef = Arc::new(Int32Array::from(vec![7]));
            rows.write(&RecordBatch::try_from_iter([("id", id), ("name", text)]).unwrap()).await.unwrap();
        }
        rows.finish().await.unwrap();
        let batches = scan(&table, ScanOptions::default()).await;
        assert_eq!(int64s(&batches, "id"), [7, 7, 7]);
        assert_eq!(names(&batches), [Some("v".into()), Some("d".into()), None]);
    });
}

#[test]
fn rows_that_do_not_fit_are_refused_with_column_and_row() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..0).await;
        let mut rows = table.append().await.unwrap();
        rows.write(&batch(0..5)).await.unwrap();
        let id: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let cases: [(RecordBatch, &str); 4] = [
            (
                RecordBatch::try_from_iter([("id", id.clone()), ("q", id)]).unwrap(),
                "schema error: found field not in schema: q at row 5",
            ),
            (
                one("name", Arc::new(StringArray::from(vec!["x"]))),
                "schema error: column \"id\" takes no nulls and is missing, at row 5",
            ),
            (
                one("id", Arc::new(Int64Array::from(vec![Some(1), None]))),
                "schema error: column \"id\" takes no nulls and is null at row 6",
            ),
            (
                one("id", Arc::new(StringArray::from(vec!["x"]))),
                "schema error: column \"id\" at row 5: found type Utf8, expected Int64",
            ),
        ];
        for (bad, message) in cases {
            assert_eq!(rows.write(&bad).await.unwrap_err().to_string(), message);
        }
        rows.finish().await.unwrap();
        assert_eq!(ids(&table).await, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn members_of_structs_are_adapted_too() {
    block_on(async {
        let world = World::new();
        let inner: Fields = vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Utf8, true)].into();
        let stored = Schema::new(vec![Field::new("s", DataType::Struct(inner), true)]);
        let mut create = world.database.create_table("t", Arc::new(stored)).await.unwrap();
        let small = |values: Vec<Option<i32>>, nulls: Option<Vec<bool>>| {
            let fields: Fields = vec![Field::new("a", DataType::Int32, true)].into();
            let values: ArrayRef = Arc::new(Int32Array::from(values));
            one("s", Arc::new(StructArray::new(fields, vec![values], nulls.map(Into::into))))
        };
        create.write(&small(vec![Some(1), None], Some(vec![true, false]))).await.unwrap();
        let error = create.write(&small(vec![Some(1), None], None)).await.unwrap_err();
        assert_eq!(error.to_string(), "schema error: column \"s.a\" takes no nulls and is null at row 3");
        let table = create.finish(Consistency::Lazy).await.unwrap();
        let options = ScanOptions { columns: crate::builders::columns(&["s.a"]), ..ScanOptions::default() };
        let batches = scan(&table, options).await;
        let column = batches[0].column(0);
        let found: Vec<Option<i64>> =
            arrow_array::cast::AsArray::as_primitive::<arrow_array::types::Int64Type>(column).iter().collect();
        assert_eq!(found, [Some(1), None]);
        assert_eq!(batches[0].schema().field(0).name(), "s.a");
    });
}

#[test]
fn a_delete_tells_how_many_rows_and_which_version() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10, 10..20]).await;
        let result = table.delete(&id_in((0..14).step_by(2))).await.unwrap();
        assert_eq!(result, DeleteResult { deleted_rows: 7, version: 4 });
        assert_eq!(ids(&table).await, [1, 3, 5, 7, 9, 11, 13, 14, 15, 16, 17, 18, 19]);
        let again = table.delete("id < 12").await.unwrap();
        assert_eq!(again, DeleteResult { deleted_rows: 6, version: 5 });
        assert_eq!(table.count_rows(None).await.unwrap(), 7);
        let totals = table.versions().await.unwrap().pop().unwrap().totals;
        assert_eq!(totals[0], ("total_fragments", 1));
        assert_eq!(
            totals[3..],
            [
                ("total_deletion_files", 1),
                ("total_deletion_file_rows", 3),
                ("total_rows", 7),
                ("total_data_file_rows", 10)
            ]
        );
    });
}

#[test]
fn a_delete_without_a_match_commits_a_version() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..3).await;
        assert_eq!(table.delete("id = 99").await.unwrap(), DeleteResult { deleted_rows: 0, version: 2 });
        assert_eq!(ids(&table).await, [0, 1, 2]);
    });
}

#[test]
fn deleting_everything_leaves_an_empty_table_that_takes_rows() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10, 10..20]).await;
        assert_eq!(table.delete("true").await.unwrap().deleted_rows, 20);
        assert_eq!(ids(&table).await, Vec::<i64>::new());
        append(&table, 50..52).await;
        assert_eq!(ids(&table).await, [50, 51]);
    });
}

#[test]
fn a_predicate_that_does_not_parse_changes_nothing() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..3).await;
        assert_eq!(table.delete("").await.unwrap_err().code(), ErrorCode::InvalidInput);
        assert_eq!(table.delete("idd = 1").await.unwrap_err().code(), ErrorCode::InvalidInput);
        assert_eq!(table.version().await.unwrap(), 1);
        assert!(!world.database.holds_leases());
    });
}

#[test]
fn a_dropped_table_is_gone_for_its_handles_and_its_name_is_free() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..3).await;
        let mut rows = table.append().await.unwrap();
        rows.write(&batch(3..4)).await.unwrap();
        world.database.drop_table("t").await.unwrap();
        assert_eq!(rows.finish().await.unwrap_err().to_string(), "Table 't' was not found");
        assert_eq!(table.delete("true").await.unwrap_err().code(), ErrorCode::TableNotFound);
        assert_eq!(table.scan(ScanOptions::default()).await.err().unwrap().code(), ErrorCode::TableNotFound);
        for error in [
            table.count_rows(None).await.unwrap_err(),
            table.count_rows(Some("id = 1")).await.unwrap_err(),
            table.stats().await.unwrap_err(),
            table.versions().await.unwrap_err(),
            table.tags().await.unwrap_err(),
            table.tag_version("a").await.unwrap_err(),
        ] {
            assert_eq!(error.to_string(), "Table 't' was not found");
        }
        world.database.maintain().await.unwrap();
        assert_eq!(table.checkout_latest().await.unwrap_err().code(), ErrorCode::TableNotFound);
        assert_eq!(world.database.drop_table("t").await.unwrap_err().code(), ErrorCode::TableNotFound);
        world.create("t", 7..8).await;
        assert_eq!(ids(&world.open("t").await).await, [7]);
        assert_eq!(world.open("t").await.count_rows(None).await.unwrap(), 1);
        assert_eq!(table.count_rows(None).await.unwrap_err().code(), ErrorCode::TableNotFound);
        assert_eq!(table.checkout_latest().await.unwrap_err().code(), ErrorCode::TableNotFound);
    });
}
