//! Stable row ids: which id and which versions a row has, through everything that moves rows.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use lancelet::format::file::FileVersion;
use lancelet::table::{Consistency, CreateMode, Rows, ScanOptions, Table};

use crate::builders::*;

/// A table with stable row ids and one fragment of `rows`.
async fn stable(world: &World, name: &str, rows: std::ops::Range<i64>) -> Table {
    stable_of(world, name, rows, FileVersion::DEFAULT).await
}

async fn stable_of(world: &World, name: &str, rows: std::ops::Range<i64>, format: FileVersion) -> Table {
    let create = world.database.create_table_with(name, schema(), Some(format), CreateMode::Create).await.unwrap();
    let mut create = create.with_stable_row_ids(true);
    if !rows.is_empty() {
        create.write(&batch(rows)).await.unwrap();
    }
    create.finish(Consistency::Lazy).await.unwrap()
}

/// `id`, `_rowid`, `_row_created_at_version`, `_row_last_updated_at_version` of every row, in order.
async fn lineage(table: &Table, options: ScanOptions) -> Vec<(i64, u64, u64, u64)> {
    let names = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"];
    let batches = scan(table, ScanOptions { columns: columns(&names), ..options }).await;
    let system = |name: &str| -> Vec<u64> {
        let values = |batch: &arrow_array::RecordBatch| {
            batch.column_by_name(name).unwrap().as_primitive::<UInt64Type>().values().to_vec()
        };
        batches.iter().flat_map(values).collect()
    };
    let (ids, created, updated) = (system(names[1]), system(names[2]), system(names[3]));
    int64s(&batches, "id").into_iter().zip(ids).zip(created).zip(updated).map(|(((a, b), c), d)| (a, b, c, d)).collect()
}

async fn all(table: &Table) -> Vec<(i64, u64, u64, u64)> {
    lineage(table, ScanOptions::default()).await
}

#[test]
fn t26_t27_ids_count_on_through_appends_deletes_overwrites_and_restores() {
    block_on(async {
        let world = World::new();
        for format in [FileVersion::V2_0, FileVersion::V2_1, FileVersion::V2_2] {
            let name = format!("t{}", format.as_str());
            let table = stable_of(&world, &name, 0..3, format).await;
            append(&table, 10..12).await;
            table.delete("id in (1, 10)").await.unwrap();
            assert_eq!(all(&table).await, [(0, 0, 1, 1), (2, 2, 1, 1), (11, 4, 2, 2)]);
            table.delete("true").await.unwrap();
            append(&table, 20..21).await;
            assert_eq!(all(&table).await, [(20, 5, 5, 5)]);
            let mut overwrite = table.overwrite().await.unwrap();
            overwrite.write(&batch(30..32)).await.unwrap();
            overwrite.finish().await.unwrap();
            assert_eq!(all(&table).await, [(30, 6, 6, 6), (31, 7, 6, 6)]);
            table.checkout(2).await.unwrap();
            table.restore().await.unwrap();
            append(&table, 40..41).await;
            let restored = [(0, 0, 1, 1), (1, 1, 1, 1), (2, 2, 1, 1), (10, 3, 2, 2), (11, 4, 2, 2), (40, 8, 8, 8)];
            assert_eq!(all(&table).await, restored);
        }
    });
}

#[test]
fn a_table_made_empty_gives_ids_from_zero() {
    block_on(async {
        let world = World::new();
        let table = stable(&world, "t", 0..0).await;
        append(&table, 5..7).await;
        assert_eq!(all(&table).await, [(5, 0, 2, 2), (6, 1, 2, 2)]);
    });
}

#[test]
fn filters_see_ids_and_versions() {
    block_on(async {
        let world = World::new();
        let table = stable(&world, "t", 0..3).await;
        append(&table, 10..13).await;
        table.delete("_rowid = 4").await.unwrap();
        let found = |filter: &'static str| {
            let table = table.clone();
            async move { int64s(&scan(&table, filtered(filter)).await, "id") }
        };
        assert_eq!(found("_row_created_at_version > 1").await, [10, 12]);
        assert_eq!(found("_row_last_updated_at_version = 1 and id > 0").await, [1, 2]);
        assert_eq!(found("_rowid >= 2").await, [2, 10, 12]);
        assert_eq!(found("_rowaddr >= 4294967296").await, [10, 12]);
    });
}

#[test]
fn rows_are_taken_by_stable_id_in_the_order_of_the_table() {
    block_on(async {
        let world = World::new();
        let table = stable(&world, "t", 0..3).await;
        append(&table, 10..13).await;
        table.delete("id = 11").await.unwrap();
        let rows = Rows::Ids(vec![5, 0, 99, 4, 5, 3]);
        let taken = lineage(&table, ScanOptions { rows: Some(rows), ..ScanOptions::default() }).await;
        assert_eq!(taken, [(0, 0, 1, 1), (10, 3, 2, 2), (12, 5, 2, 2)]);
    });
}

#[test]
fn rows_without_stable_ids_are_of_version_one() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2, 5..6]).await;
        assert_eq!(all(&table).await, [(0, 0, 1, 1), (1, 1, 1, 1), (5, 1 << 32, 1, 1)]);
    });
}

#[test]
fn concurrent_appends_give_no_id_twice() {
    block_on(async {
        let world = World::new();
        let table = stable(&world, "t", 0..2).await;
        let other = world.tab(99).open_table("t", Consistency::Lazy).await.unwrap();
        let mut first = table.append().await.unwrap();
        let mut second = other.append().await.unwrap();
        first.write(&batch(10..13)).await.unwrap();
        second.write(&batch(20..22)).await.unwrap();
        assert_eq!(second.finish().await.unwrap(), 2);
        assert_eq!(first.finish().await.unwrap(), 3);
        let (ids, versions): (Vec<u64>, Vec<u64>) = all(&table).await.into_iter().map(|row| (row.1, row.2)).unzip();
        assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(versions, [1, 1, 2, 2, 3, 3, 3]);
    });
}
