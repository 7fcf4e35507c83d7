//! Update: new values for matching rows.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Decimal128Array, DictionaryArray, FixedSizeListArray, Float32Array, Int32Array, Int64Array,
    RecordBatch, StringArray, StructArray, TimestampMillisecondArray,
};
use arrow_schema::{DataType, Field, Fields, Schema};
use futures_util::future::{join, join_all, join4};
use lancelet::ErrorCode;
use lancelet::error::Result;
use lancelet::table::{Consistency, NewValue, ScanOptions, Table, Update, UpdateResult};

use crate::builders::{World, append, batch, block_on, columns, ids, int64s, names, scan, schema};

fn sql(filter: Option<&str>, columns: &[(&str, &str)]) -> Update {
    let columns = columns.iter().map(|(name, text)| ((*name).to_owned(), NewValue::Sql((*text).to_owned()))).collect();
    Update { filter: filter.map(str::to_owned), columns }
}

fn constant(filter: &str, name: &str, value: impl Array + 'static) -> Update {
    Update { filter: Some(filter.to_owned()), columns: vec![(name.to_owned(), NewValue::Constant(Arc::new(value)))] }
}

async fn change(table: &Table, filter: &str, columns: &[(&str, &str)]) -> Result<UpdateResult> {
    table.update(&sql(Some(filter), columns)).await
}

/// Ids with names, in the order of the ids.
async fn rows(table: &Table) -> Vec<(i64, Option<String>)> {
    let batches = scan(table, ScanOptions::default()).await;
    let mut rows: Vec<_> = int64s(&batches, "id").into_iter().zip(names(&batches)).collect();
    rows.sort();
    rows
}

fn name(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, code: ErrorCode, part: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

/// A table of every kind of column, of three rows; the second is of nulls.
async fn wide_table(world: &World) -> Table {
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let items: ArrayRef = Arc::new(Float32Array::from(vec![Some(1.0), Some(2.0), None, None, Some(5.0), Some(6.0)]));
    let mut list = ListBuilder::new(Int64Builder::new());
    list.append_value([Some(1), None]);
    list.append_null();
    list.append_value([]);
    let dictionary: DictionaryArray<Int32Type> = vec![Some("red"), None, Some("blue")].into_iter().collect();
    let members = Fields::from(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]);
    let member_columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
        Arc::new(StringArray::from(vec![Some("x"), None, None])),
    ];
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(Int64Array::from(vec![0, 1, 2])), false),
        ("i", Arc::new(Int32Array::from(vec![Some(10), None, Some(30)])), true),
        ("v", Arc::new(FixedSizeListArray::new(item, 2, items, Some(vec![true, false, true].into()))), true),
        ("l", Arc::new(list.finish()), true),
        ("c", Arc::new(dictionary), true),
        ("ts", Arc::new(TimestampMillisecondArray::from(vec![Some(1_000), None, Some(3_000)])), true),
        (
            "dec",
            Arc::new(Decimal128Array::from(vec![Some(150), None, Some(-1)]).with_precision_and_scale(10, 2).unwrap()),
            true,
        ),
        ("st", Arc::new(StructArray::new(members, member_columns, Some(vec![true, false, true].into()))), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut create = world.database.create_table("t", batch.schema()).await.unwrap();
    create.write(&batch).await.unwrap();
    create.finish(Consistency::Lazy).await.unwrap()
}

async fn column(table: &Table, name: &str) -> Vec<ArrayRef> {
    let batches = scan(table, ScanOptions { columns: columns(&["id", name]), ..ScanOptions::default() }).await;
    let mut cells: Vec<(i64, ArrayRef)> = Vec::new();
    for batch in &batches {
        let ids = batch.column(0).as_primitive::<Int64Type>();
        cells.extend((0..batch.num_rows()).map(|row| (ids.value(row), batch.column(1).slice(row, 1))));
    }
    cells.sort_by_key(|(id, _)| *id);
    cells.into_iter().map(|(_, cell)| cell).collect()
}

#[test]
fn matching_rows_get_new_values_and_the_others_stay() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3, 3..6]).await;
        let result = change(&table, "id % 3 = 1", &[("name", "upper(name) || '!'")]).await.unwrap();
        assert_eq!(result, UpdateResult { updated_rows: 2, version: 4 });
        let expected = [None, name("N1!"), name("n2"), None, name("N4!"), name("n5")];
        assert_eq!(rows(&table).await, (0..6).zip(expected.clone()).collect::<Vec<_>>());
        assert_eq!(rows(&world.open("t").await).await, (0..6).zip(expected).collect::<Vec<_>>());
        assert_eq!(table.count_rows(None).await.unwrap(), 6);
        table.checkout(3).await.unwrap();
        assert_eq!(rows(&table).await[1], (1, name("n1")), "the version before is as it was");
    });
}

#[test]
fn new_values_are_all_made_of_the_old_row() {
    block_on(async {
        let world = World::new();
        let schema =
            Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Int32, true)]));
        let pair = |a: i32, b: i32| -> Vec<ArrayRef> {
            vec![Arc::new(Int32Array::from(vec![a])), Arc::new(Int32Array::from(vec![b]))]
        };
        let mut create = world.database.create_table("t", schema.clone()).await.unwrap();
        create.write(&RecordBatch::try_new(schema.clone(), pair(1, 2)).unwrap()).await.unwrap();
        let table = create.finish(Consistency::Lazy).await.unwrap();
        table.update(&sql(None, &[("a", "b"), ("b", "a")])).await.unwrap();
        let batches = scan(&table, ScanOptions::default()).await;
        assert_eq!(batches, [RecordBatch::try_new(schema, pair(2, 1)).unwrap()]);
    });
}

#[test]
fn an_update_of_nothing_is_a_version_and_one_of_everything_leaves_no_old_fragment() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3, 3..6]).await;
        let none = change(&table, "id > 99", &[("name", "'x'")]).await.unwrap();
        assert_eq!(none, UpdateResult { updated_rows: 0, version: 4 });
        assert_eq!(ids(&table).await, [0, 1, 2, 3, 4, 5]);
        let all = table.update(&sql(None, &[("name", "cast(id as string)")])).await.unwrap();
        assert_eq!(all, UpdateResult { updated_rows: 6, version: 5 });
        let expected: Vec<_> = (0..6).map(|id: i64| (id, Some(id.to_string()))).collect();
        assert_eq!(rows(&table).await, expected);
        let totals = table.versions().await.unwrap().pop().unwrap().totals;
        assert!(totals.contains(&("total_fragments", 1)), "{totals:?}");
        assert!(totals.contains(&("total_deletion_files", 0)), "{totals:?}");
    });
}

#[test]
fn a_column_may_be_updated_by_the_filter_that_names_it() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..4]).await;
        change(&table, "id >= 2", &[("id", "id * 10")]).await.unwrap();
        assert_eq!(ids(&table).await, [0, 1, 20, 30]);
        change(&table, "id >= 2", &[("id", "id / 10")]).await.unwrap();
        assert_eq!(ids(&table).await, [0, 1, 2, 3]);
    });
}

#[test]
fn columns_of_every_kind_keep_their_values_and_take_new_ones() {
    block_on(async {
        let world = World::new();
        let table = wide_table(&world).await;
        let before = scan(&table, ScanOptions::default()).await;
        table.update(&sql(None, &[("id", "id")])).await.unwrap();
        assert_eq!(scan(&table, ScanOptions::default()).await, before);

        change(&table, "id = 0", &[("v", "[7, 8.5]"), ("c", "'green'"), ("ts", "'1970-01-01T00:00:05'")])
            .await
            .unwrap();
        change(&table, "id = 1", &[("v", "null"), ("c", "'red'"), ("dec", "2.5"), ("l", "[4, 5]")]).await.unwrap();
        change(&table, "id = 2", &[("dec", "dec * 3"), ("st", "null"), ("i", "i * 2.0"), ("ts", "date '1970-01-02'")])
            .await
            .unwrap();
        let item =
            |array: &ArrayRef| array.as_fixed_size_list().value(0).as_primitive::<Float32Type>().values().to_vec();
        let vectors = column(&table, "v").await;
        assert_eq!(
            (item(&vectors[0]), vectors[1].is_null(0), item(&vectors[2])),
            (vec![7.0, 8.5], true, vec![5.0, 6.0])
        );
        let colours: Vec<_> = column(&table, "c").await;
        let text = |array: &ArrayRef| {
            let dictionary = array.as_dictionary::<Int32Type>();
            dictionary.values().as_string::<i32>().value(dictionary.keys().value(0) as usize).to_owned()
        };
        assert_eq!(colours.iter().map(text).collect::<Vec<_>>(), ["green", "red", "blue"]);
        let decimals: Vec<_> = column(&table, "dec").await;
        let unscaled = |array: &ArrayRef| array.as_primitive::<arrow_array::types::Decimal128Type>().value(0);
        assert_eq!(decimals.iter().map(unscaled).collect::<Vec<_>>(), [150, 250, -3]);
        let lists = column(&table, "l").await;
        assert_eq!(lists[1].as_list::<i32>().value(0).as_primitive::<Int64Type>().values(), &[4, 5]);
        assert!(column(&table, "st").await[2].is_null(0));
        assert_eq!(column(&table, "i").await[2].as_primitive::<Int32Type>().value(0), 60);
        let times: Vec<_> = column(&table, "ts").await;
        let millis = |array: &ArrayRef| array.as_primitive::<arrow_array::types::TimestampMillisecondType>().value(0);
        assert_eq!((millis(&times[0]), millis(&times[2])), (5_000, 86_400_000));
    });
}

#[test]
fn a_constant_goes_into_every_matching_row() {
    block_on(async {
        let world = World::new();
        let table = wide_table(&world).await;
        let members = Fields::from(vec![Field::new("b", DataType::Utf8, true)]);
        let value = StructArray::new(members, vec![Arc::new(StringArray::from(vec!["new"]))], None);
        let result = table.update(&constant("id < 2", "st", value)).await.unwrap();
        assert_eq!(result.updated_rows, 2);
        let structs = column(&table, "st").await;
        let b =
            |array: &ArrayRef| array.as_struct().column_by_name("b").unwrap().as_string::<i32>().value(0).to_owned();
        assert_eq!([b(&structs[0]), b(&structs[1])], ["new", "new"]);
        assert!(structs[0].as_struct().column_by_name("a").unwrap().is_null(0));
    });
}

#[test]
fn what_does_not_fit_changes_nothing() {
    block_on(async {
        let world = World::new();
        let table = wide_table(&world).await;
        let before = scan(&table, ScanOptions::default()).await;
        let set = |name: &'static str, text: &'static str| {
            let table = table.clone();
            async move { table.update(&sql(None, &[(name, text)])).await }
        };
        refused(set("i", "i * 2000000000").await, ErrorCode::InvalidInput, "20000000000 does not fit Int32 at row 0");
        refused(
            set("i", "i + 0.5").await,
            ErrorCode::Schema,
            "column \"i\" at row 0: the Float64 value does not fit Int32",
        );
        refused(set("i", "i / 0").await, ErrorCode::InvalidInput, "division by zero at row 0");
        refused(set("i", "id / (id - 2)").await, ErrorCode::InvalidInput, "division by zero at row 2");
        refused(set("i", "'7'").await, ErrorCode::Schema, "column \"i\" (Int32) takes no value of type Utf8");
        refused(set("c", "7").await, ErrorCode::Schema, "takes no value of type Int64");
        refused(set("v", "[1, 2, 3]").await, ErrorCode::InvalidInput, "expected 2 items, found 3");
        refused(set("v", "l").await, ErrorCode::Schema, "column \"v\"");
        refused(set("id", "null").await, ErrorCode::Schema, "column \"id\" takes no nulls and is null at row 0");
        refused(set("id", "i").await, ErrorCode::Schema, "column \"id\" takes no nulls and is null at row 1");
        refused(set("nope", "1").await, ErrorCode::InvalidInput, "Column 'nope' does not exist in dataset schema");
        refused(set("ID", "1").await, ErrorCode::InvalidInput, "did you mean \"id\"?");
        refused(set("st.a", "1").await, ErrorCode::NotSupported, "a single member of a struct");
        refused(set("i", "x + 1").await, ErrorCode::InvalidInput, "no field named \"x\"");
        refused(set("i", "i +").await, ErrorCode::InvalidInput, "character 4");
        refused(set("i", "_rowid").await, ErrorCode::NotSupported, "_rowid");
        refused(table.update(&sql(None, &[])).await, ErrorCode::InvalidInput, "at least one column must be specified");
        refused(change(&table, "", &[("i", "1")]).await, ErrorCode::InvalidInput, "character 1");
        refused(change(&table, "x = 1", &[("i", "1")]).await, ErrorCode::InvalidInput, "no field named \"x\"");
        let twice = table.update(&sql(None, &[("i", "1"), ("i", "2")])).await;
        refused(twice, ErrorCode::InvalidInput, "given two values");
        let long = table.update(&constant("id = 99", "i", Int64Array::from(vec![1_i64 << 40]))).await;
        refused(long, ErrorCode::Schema, "column \"i\" at row 0");
        let text = table.update(&constant("id = 0", "i", StringArray::from(vec!["7"]))).await;
        refused(text, ErrorCode::Schema, "column \"i\"");
        assert_eq!(table.version().await.unwrap(), 1);
        assert_eq!(scan(&table, ScanOptions::default()).await, before);
        table.checkout(1).await.unwrap();
        refused(set("i", "1").await, ErrorCode::InvalidInput, "table cannot be modified");
    });
}

#[test]
fn many_updates_of_one_row_on_one_handle_all_count() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3]).await;
        let results =
            join_all((0..20).map(|_| async { change(&table, "name = 'n1'", &[("id", "id + 1")]).await })).await;
        let mut versions: Vec<u64> = results
            .into_iter()
            .map(|result| {
                let result = result.unwrap();
                assert_eq!(result.updated_rows, 1);
                result.version
            })
            .collect();
        versions.sort_unstable();
        assert_eq!(versions, (3..23).collect::<Vec<_>>());
        assert_eq!(rows(&table).await, [(0, None), (2, name("n2")), (21, name("n1"))]);
    });
}

#[test]
fn updates_from_two_tabs_beside_deletes_and_appends_lose_nothing() {
    block_on(async {
        let world = World::new();
        let here = world.table(&[0..10]).await;
        let there = world.tab(99).open_table("t", Consistency::Lazy).await.unwrap();
        for round in 0..3 {
            let (first, second, deleted, appended) = join4(
                change(&here, "id < 5 or id >= 1000", &[("name", "'here'")]),
                change(&there, "id >= 3 and id < 1000", &[("name", "coalesce(name, '') || '+'")]),
                async { here.delete(&format!("id = {}", 9 - round)).await },
                append(&there, 1000 + round..1001 + round),
            )
            .await;
            assert!(
                first.is_ok() && second.is_ok() && deleted.is_ok() && appended > 0,
                "{first:?} {second:?} {deleted:?}"
            );
        }
        here.checkout_latest().await.unwrap();
        let ids: Vec<i64> = rows(&here).await.into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 1000, 1001, 1002]);
        let found = rows(&here).await;
        assert_eq!(found[0].1, name("here"));
        assert_eq!(found[5].1, name("n5+++"));
        // Rows 3 and 4 belong to both: whoever came second worked on what the first one wrote.
        for (_, name) in &found[3..5] {
            assert!(["here", "here+"].contains(&name.as_deref().unwrap()), "{name:?}");
        }
        assert_eq!(here.version().await.unwrap(), 2 + 12);
    });
}

#[test]
fn an_update_and_a_delete_of_the_same_row_agree_on_who_was_first() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..4]).await;
        let (updated, deleted) = join(change(&table, "id = 2", &[("name", "'x'")]), table.delete("id = 2")).await;
        let (updated, deleted) = (updated.unwrap(), deleted.unwrap());
        assert_eq!(deleted.deleted_rows, 1);
        assert_eq!(updated.updated_rows, u64::from(updated.version < deleted.version));
        assert_eq!(ids(&table).await, [0, 1, 3]);
    });
}

#[test]
fn rows_that_are_compacted_meanwhile_are_updated_where_they_went() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3, 3..6, 6..9]).await;
        let (updated, compacted) = join(
            change(&table, "id % 2 = 0", &[("name", "'even'")]),
            table.compact(&lancelet::table::CompactOptions::default()),
        )
        .await;
        assert_eq!(updated.unwrap().updated_rows, 5);
        compacted.unwrap();
        table.checkout_latest().await.unwrap();
        let found = rows(&table).await;
        assert_eq!(found.len(), 9);
        for (id, found) in found {
            let old = (id % 3 != 0).then(|| format!("n{id}"));
            assert_eq!(found, if id % 2 == 0 { name("even") } else { old }, "{id}");
        }
    });
}

#[test]
fn a_large_update_is_cut_into_batches_and_none_is_lost() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..150_000).await;
        let result = change(&table, "id % 100 < 51", &[("name", "concat('row ', id)")]).await.unwrap();
        assert_eq!(result.updated_rows, 76_500);
        assert_eq!(table.count_rows(Some("name = concat('row ', id)")).await.unwrap(), 76_500);
        assert_eq!(table.count_rows(None).await.unwrap(), 150_000);
        let mut all = ids(&table).await;
        all.sort_unstable();
        assert_eq!(all, (0..150_000).collect::<Vec<_>>());
    });
}

#[test]
fn updated_rows_keep_their_stable_ids_and_where_they_came_from() {
    block_on(async {
        let world = World::new();
        let mut create = world.database.create_table("t", schema()).await.unwrap().with_stable_row_ids(true);
        create.write(&batch(0..4)).await.unwrap();
        let table = create.finish(Consistency::Lazy).await.unwrap();
        append(&table, 4..6).await;
        change(&table, "id % 2 = 1", &[("name", "'odd'")]).await.unwrap();
        change(&table, "id = 5", &[("name", "'five'")]).await.unwrap();
        let wanted = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"];
        let batches = scan(&table, ScanOptions { columns: columns(&wanted), ..ScanOptions::default() }).await;
        let mut found: Vec<[u64; 4]> = Vec::new();
        for batch in &batches {
            let number = |name: &str, row: usize| match batch.column_by_name(name).unwrap() {
                ids if name == "id" => ids.as_primitive::<Int64Type>().value(row) as u64,
                other => other.as_primitive::<arrow_array::types::UInt64Type>().value(row),
            };
            found.extend((0..batch.num_rows()).map(|row| wanted.map(|name| number(name, row))));
        }
        found.sort_unstable();
        assert_eq!(found, [[0, 0, 1, 1], [1, 1, 1, 3], [2, 2, 1, 1], [3, 3, 1, 3], [4, 4, 2, 2], [5, 5, 2, 4]]);
    });
}
