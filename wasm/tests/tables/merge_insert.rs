//! Merge insert: which rows change, what becomes of the others, and what concurrent ones do to each other.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use lancelet::error::Error;
use lancelet::table::{Consistency, CreateMode, MergeOptions, MergeResult, ScanOptions, Table, When};

use crate::builders::*;

/// `id` and `name` of every row, by id.
async fn rows(table: &Table) -> Vec<(i64, String)> {
    let batches = scan(table, ScanOptions::default()).await;
    let names = names(&batches).into_iter().map(|name| name.unwrap_or_else(|| "-".to_owned()));
    let mut rows: Vec<_> = int64s(&batches, "id").into_iter().zip(names).collect();
    rows.sort();
    rows
}

fn source(ids: &[i64], name: &str) -> RecordBatch {
    let names = ids.iter().map(|_| name);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(ids.to_vec())), Arc::new(StringArray::from_iter_values(names))];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn upsert() -> MergeOptions {
    MergeOptions {
        on: vec!["id".to_owned()],
        matched_update: When::Always,
        not_matched_insert: true,
        ..MergeOptions::default()
    }
}

async fn merge(table: &Table, options: MergeOptions, batches: &[RecordBatch]) -> Result<MergeResult, Error> {
    let mut merge = table.merge_insert(options).await?;
    for batch in batches {
        if let Err(error) = merge.write(batch) {
            merge.abort().await.unwrap();
            return Err(error);
        }
    }
    merge.finish().await
}

fn result(version: u64, inserted_rows: u64, updated_rows: u64, deleted_rows: u64) -> MergeResult {
    MergeResult { version, inserted_rows, updated_rows, deleted_rows, attempts: 1 }
}

fn pairs(rows: &[(i64, &str)]) -> Vec<(i64, String)> {
    rows.iter().map(|(id, name)| (*id, (*name).to_owned())).collect()
}

#[test]
fn an_upsert_updates_matched_rows_and_inserts_others() {
    block_on(async {
        let table = World::new().table(&[0..3, 10..12]).await;
        let done = merge(&table, upsert(), &[source(&[11, 1], "u"), source(&[20, 0], "u")]).await.unwrap();
        assert_eq!(done, result(4, 1, 3, 0));
        let expected = [(0, "u"), (1, "u"), (2, "n2"), (10, "n10"), (11, "u"), (20, "u")];
        assert_eq!(rows(&table).await, pairs(&expected));
    });
}

#[test]
fn insert_only_and_update_only_leave_the_others() {
    block_on(async {
        let table = World::new().table(&[0..2]).await;
        let insert = MergeOptions { matched_update: When::Never, ..upsert() };
        assert_eq!(merge(&table, insert, &[source(&[1, 1, 5], "i")]).await.unwrap(), result(3, 1, 0, 0));
        let update = MergeOptions { not_matched_insert: false, ..upsert() };
        assert_eq!(merge(&table, update, &[source(&[1, 9], "u")]).await.unwrap(), result(4, 0, 1, 0));
        assert_eq!(rows(&table).await, pairs(&[(0, "-"), (1, "u"), (5, "i")]));
    });
}

#[test]
fn a_condition_chooses_among_the_matched_rows() {
    block_on(async {
        let table = World::new().table(&[0..6]).await;
        let when = When::If("target.name is not null and source.id < 5 and source.name = 'u'".to_owned());
        let options = MergeOptions { matched_update: when, ..upsert() };
        let done = merge(&table, options, &[source(&[5, 4, 3, 2], "u"), source(&[2, 1, 9], "v")]).await.unwrap();
        assert_eq!(done, result(3, 1, 2, 0));
        let expected = [(0, "-"), (1, "n1"), (2, "u"), (3, "-"), (4, "u"), (5, "n5"), (9, "v")];
        assert_eq!(rows(&table).await, pairs(&expected));
    });
}

#[test]
fn target_rows_that_the_source_lacks_are_deleted() {
    block_on(async {
        let table = World::new().table(&[0..4, 10..12]).await;
        let options =
            MergeOptions { not_matched_by_source_delete: When::If("name is not null".to_owned()), ..upsert() };
        assert_eq!(merge(&table, options, &[source(&[1, 7], "u")]).await.unwrap(), result(4, 1, 1, 3));
        assert_eq!(rows(&table).await, pairs(&[(0, "-"), (1, "u"), (3, "-"), (7, "u")]));
        let options = MergeOptions {
            matched_update: When::Never,
            not_matched_insert: false,
            not_matched_by_source_delete: When::Always,
            ..upsert()
        };
        assert_eq!(merge(&table, options, &[source(&[1, 3, 99], "x")]).await.unwrap(), result(5, 0, 0, 2));
        assert_eq!(rows(&table).await, pairs(&[(1, "u"), (3, "-")]));
    });
}

#[test]
fn a_part_of_the_columns_updates_them_and_inserts_nulls() {
    block_on(async {
        let table = World::new().table(&[0..2]).await;
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 7]));
        let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        assert_eq!(merge(&table, upsert(), &[batch]).await.unwrap(), result(3, 1, 1, 0));
        assert_eq!(rows(&table).await, pairs(&[(0, "-"), (1, "n1"), (7, "-")]));
        let on_name = MergeOptions { on: vec!["name".to_owned()], ..upsert() };
        let names: ArrayRef = Arc::new(StringArray::from(vec!["n1"]));
        let batch = RecordBatch::try_from_iter([("name", names)]).unwrap();
        let error = merge(&table, on_name.clone(), std::slice::from_ref(&batch)).await.unwrap_err();
        let expected = "target column(s) [\"id\"] are non-nullable and not provided by the source";
        assert!(error.to_string().contains(expected), "{error}");
        let update = MergeOptions { not_matched_insert: false, ..on_name };
        assert_eq!(merge(&table, update, &[batch]).await.unwrap(), result(4, 0, 1, 0));
    });
}

#[test]
fn nulls_match_nothing_and_several_columns_match_together() {
    block_on(async {
        let table = World::new().table(&[0..4]).await;
        let on = vec!["name".to_owned(), "id".to_owned()];
        let options = MergeOptions { on, ..upsert() };
        let names = StringArray::from(vec![None, None, Some("n1"), Some("n1"), Some("n2")]);
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![0, 0, 1, 2, 2])), Arc::new(names)];
        let batch = RecordBatch::try_new(schema(), columns).unwrap();
        assert_eq!(merge(&table, options, &[batch]).await.unwrap(), result(3, 3, 2, 0));
        let expected = [(0, "-"), (0, "-"), (0, "-"), (1, "n1"), (2, "n1"), (2, "n2"), (3, "-")];
        assert_eq!(rows(&table).await, pairs(&expected));
    });
}

#[test]
fn no_rows_commit_a_version() {
    block_on(async {
        let table = World::new().table(&[0..2]).await;
        assert_eq!(merge(&table, upsert(), &[]).await.unwrap(), result(3, 0, 0, 0));
        let options = MergeOptions { not_matched_by_source_delete: When::Always, ..upsert() };
        assert_eq!(merge(&table, options, &[]).await.unwrap(), result(4, 0, 0, 2));
    });
}

#[test]
fn ambiguous_sources_are_refused_with_key_and_rows() {
    block_on(async {
        let table = World::new().table(&[0..3]).await;
        let error = merge(&table, upsert(), &[source(&[7, 1], "a"), source(&[1], "b")]).await.unwrap_err();
        let expected = "Ambiguous merge inserts are prohibited: multiple source rows match the same target row on (id = 1): source rows 1 and 2";
        assert!(error.to_string().contains(expected), "{error}");
        let error = merge(&table, upsert(), &[source(&[7, 8], "a"), source(&[7], "b")]).await.unwrap_err();
        let expected = "source rows 0 and 2 have the same new key (id = 7)";
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(table.version().await.unwrap(), 2);
    });
}

#[test]
fn options_that_cannot_be_are_refused_before_anything_is_read() {
    block_on(async {
        let table = World::new().table(&[0..2]).await;
        let error = async |options: MergeOptions| table.merge_insert(options).await.err().unwrap().to_string();
        let none = MergeOptions { matched_update: When::Never, not_matched_insert: false, ..upsert() };
        assert!(error(none).await.contains("The merge insert job is not configured to change the data in any way"));
        let on = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let unknown = MergeOptions { on: on(&["id", "zz"]), ..upsert() };
        assert!(
            error(unknown).await.contains("Merge insert key column 'zz' does not exist in schema; there are id, name")
        );
        let nothing = MergeOptions { on: on(&[]), ..upsert() };
        assert!(error(nothing).await.contains("A merge insert operation requires join keys"));
        let filter = MergeOptions { matched_update: When::If("target.zz = 1".to_owned()), ..upsert() };
        assert!(error(filter).await.contains("zz"));
        let filter = MergeOptions { not_matched_by_source_delete: When::If("target.id = 1".to_owned()), ..upsert() };
        assert!(error(filter).await.contains("target"));
        let late = MergeOptions { timeout_ms: Some(0), ..upsert() };
        let late = merge(&table, late, &[source(&[1], "x")]).await.unwrap_err();
        assert_eq!(late, Error::Timeout { message: "merge insert timed out".to_owned() });
        let extra: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("id", extra.clone()), ("zz", extra.clone())]).unwrap();
        assert!(merge(&table, upsert(), &[batch]).await.unwrap_err().to_string().contains("zz"));
        let batch = RecordBatch::try_from_iter([("zz", extra)]).unwrap();
        let error = merge(&table, upsert(), &[batch]).await.unwrap_err().to_string();
        assert!(error.contains("lack the merge insert key column 'id'"), "{error}");
        assert_eq!(table.version().await.unwrap(), 2);
    });
}

#[test]
fn a_key_column_is_found_in_another_case() {
    block_on(async {
        let table = World::new().table(&[0..2]).await;
        let options = MergeOptions { on: vec!["ID".to_owned()], ..upsert() };
        assert_eq!(merge(&table, options, &[source(&[1], "u")]).await.unwrap(), result(3, 0, 1, 0));
    });
}

#[test]
fn updated_rows_keep_their_stable_ids() {
    block_on(async {
        let world = World::new();
        let create = world.database.create_table_with("t", schema(), None, CreateMode::Create).await;
        let mut create = create.unwrap().with_stable_row_ids(true);
        create.write(&batch(0..4)).await.unwrap();
        let table = create.finish(Consistency::Lazy).await.unwrap();
        append(&table, 10..12).await;
        merge(&table, upsert(), &[source(&[50, 11, 2, 40, 0], "u")]).await.unwrap();
        table.compact(&Default::default()).await.unwrap();
        let names = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"];
        let batches = scan(&table, ScanOptions { columns: columns(&names), ..ScanOptions::default() }).await;
        let ids: Vec<_> = int64s(&batches, "id").into_iter().zip(row_ids(&batches)).collect();
        assert_eq!(ids, [(1, 1), (3, 3), (10, 4), (0, 0), (2, 2), (11, 5), (50, 6), (40, 7)]);
        let found = |filter: &'static str| {
            let table = table.clone();
            async move { int64s(&scan(&table, filtered(filter)).await, "id") }
        };
        assert_eq!(found("_row_last_updated_at_version = 3").await, [0, 2, 11, 50, 40]);
        assert_eq!(found("_row_created_at_version = 3").await, [50, 40]);
        assert_eq!(found("_row_created_at_version = 2").await, [10, 11]);
    });
}

/// Everybody begins on the same version.
async fn at_once(tables: &[Table], sources: &[Vec<i64>]) -> Vec<MergeResult> {
    let mut merges = Vec::new();
    for (number, ids) in sources.iter().enumerate() {
        let mut merge = tables[number % tables.len()].merge_insert(upsert()).await.unwrap();
        merge.write(&source(ids, &format!("m{number}"))).unwrap();
        merges.push(merge);
    }
    futures_util::future::join_all(merges.into_iter().map(|merge| merge.finish()))
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

fn check_versions(results: &[MergeResult], first: u64) {
    let mut versions: Vec<u64> = results.iter().map(|result| result.version).collect();
    versions.sort_unstable();
    assert_eq!(versions, Vec::from_iter(first..first + results.len() as u64));
}

#[test]
fn concurrent_upserts_of_one_new_key_insert_one_row() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3]).await;
        let other = world.tab(99).open_table("t", Consistency::Lazy).await.unwrap();
        let results = at_once(&[table.clone(), other], &vec![vec![50, 1]; 100]).await;
        check_versions(&results, 3);
        assert_eq!(results.iter().map(|result| result.inserted_rows).sum::<u64>(), 1);
        assert_eq!(results.iter().map(|result| result.updated_rows).sum::<u64>(), 199);
        table.checkout_latest().await.unwrap();
        let ids: Vec<i64> = rows(&table).await.into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [0, 1, 2, 50]);
    });
}

#[test]
fn concurrent_upserts_of_other_keys_all_stay() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..1]).await;
        let sources: Vec<Vec<i64>> = (0..20).map(|number| vec![100 + number, 0]).collect();
        let results = at_once(std::slice::from_ref(&table), &sources).await;
        check_versions(&results, 3);
        let ids: Vec<i64> = rows(&table).await.into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, Vec::from_iter(std::iter::once(0).chain(100..120)));
    });
}

#[test]
fn an_upsert_sees_what_was_appended_and_deleted_since() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..4]).await;
        let other = world.tab(99).open_table("t", Consistency::Lazy).await.unwrap();
        let mut merge = table.merge_insert(upsert()).await.unwrap();
        merge.write(&source(&[1, 2, 50], "u")).unwrap();
        append(&other, 50..52).await;
        other.delete("id = 2").await.unwrap();
        let done = merge.finish().await.unwrap();
        assert_eq!(done, MergeResult { attempts: 2, ..result(5, 1, 2, 0) });
        let expected = [(0, "-"), (1, "u"), (2, "u"), (3, "-"), (50, "u"), (51, "-")];
        assert_eq!(rows(&table).await, pairs(&expected));
    });
}

#[test]
fn an_update_passes_an_append_without_another_execution() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..4]).await;
        let other = world.tab(99).open_table("t", Consistency::Lazy).await.unwrap();
        let mut merge = table.merge_insert(MergeOptions { not_matched_insert: false, ..upsert() }).await.unwrap();
        merge.write(&source(&[1, 50], "u")).unwrap();
        append(&other, 50..51).await;
        other.delete("id = 3").await.unwrap();
        assert_eq!(merge.finish().await.unwrap(), result(5, 0, 1, 0));
        assert_eq!(rows(&table).await, pairs(&[(0, "-"), (1, "u"), (2, "n2"), (50, "n50")]));
    });
}

#[test]
fn many_windows_of_a_large_target_are_joined() {
    block_on(async {
        let world = World::new();
        let total = 70_000;
        let ranges: [Range<i64>; 2] = [0..total, total..total + 5];
        let table = world.table(&ranges).await;
        let wanted: Vec<i64> = (0..total + 1000).filter(|id| id % 7 == 3).collect();
        let done = merge(&table, upsert(), &[source(&wanted, "u")]).await.unwrap();
        let known = wanted.iter().filter(|id| **id < total + 5).count() as u64;
        assert_eq!(done, result(4, wanted.len() as u64 - known, known, 0));
        let found = scan(&table, filtered("name = 'u'")).await;
        let mut ids = int64s(&found, "id");
        ids.sort_unstable();
        assert_eq!(ids, wanted);
        assert_eq!(table.count_rows(None).await.unwrap(), total as u64 + 5 + done.inserted_rows);
    });
}

#[test]
fn keys_of_nested_types_are_joined() {
    block_on(async {
        let world = World::new();
        let item = Arc::new(Field::new("item", DataType::Int32, true));
        let schema = Arc::new(Schema::new(vec![
            Field::new("k", DataType::List(item), true),
            Field::new("v", DataType::Int64, true),
        ]));
        let batch = |lists: Vec<Option<Vec<Option<i32>>>>, values: Vec<i64>| {
            let lists = arrow_array::ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(lists);
            let columns: Vec<ArrayRef> = vec![Arc::new(lists), Arc::new(Int64Array::from(values))];
            RecordBatch::try_new(schema.clone(), columns).unwrap()
        };
        let mut create = world.database.create_table("t", schema.clone()).await.unwrap();
        create.write(&batch(vec![Some(vec![Some(1), None]), None, Some(vec![])], vec![0, 1, 2])).await.unwrap();
        let table = create.finish(Consistency::Lazy).await.unwrap();
        let options = MergeOptions { on: vec!["k".to_owned()], ..upsert() };
        let rows = batch(vec![Some(vec![]), Some(vec![Some(1), None]), Some(vec![Some(1)])], vec![10, 11, 12]);
        assert_eq!(merge(&table, options, &[rows]).await.unwrap(), result(2, 1, 2, 0));
        let mut values = int64s(&scan(&table, ScanOptions::default()).await, "v");
        values.sort_unstable();
        assert_eq!(values, [1, 10, 11, 12]);
    });
}
