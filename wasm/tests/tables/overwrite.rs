//! Overwrite and restore, and what becomes of changes that meet them or a change of the schema.

use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lancelet::ErrorCode;
use lancelet::format::file::FileVersion;
use lancelet::store::{ListOptions, Path};
use lancelet::table::{Consistency, CreateMode, ScanOptions, Table};

use crate::builders::{World, append, batch, block_on, ids, scan, schema};

async fn overwrite(table: &Table, rows: std::ops::Range<i64>) -> lancelet::Result<u64> {
    let mut overwrite = table.overwrite().await?;
    overwrite.write(&batch(rows)).await?;
    overwrite.finish().await
}

fn other_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("k", DataType::Int32, true)]))
}

#[test]
fn an_overwrite_replaces_every_row_and_keeps_the_history() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2, 2..4]).await;
        assert_eq!(overwrite(&table, 7..9).await.unwrap(), 4);
        assert_eq!(ids(&table).await, [7, 8]);
        table.checkout(3).await.unwrap();
        assert_eq!(ids(&table).await, [0, 1, 2, 3]);
        assert_eq!(table.overwrite().await.err().unwrap().code(), ErrorCode::InvalidInput);
        table.checkout_latest().await.unwrap();
        // Fragment ids go on: an address of an old version is never one of a new row.
        append(&table, 9..10).await;
        let addresses = ScanOptions { with_row_id: true, ..ScanOptions::default() };
        assert_eq!(crate::builders::row_ids(&scan(&table, addresses).await), [2 << 32, (2 << 32) + 1, 3 << 32]);
    });
}

#[test]
fn an_overwrite_without_rows_empties_the_table() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2]).await;
        assert_eq!(table.overwrite().await.unwrap().finish().await.unwrap(), 3);
        assert_eq!(table.count_rows(None).await.unwrap(), 0);
        assert_eq!(append(&table, 1..3).await, 4);
        assert_eq!(ids(&table).await, [1, 2]);
    });
}

#[test]
fn creating_over_a_table_changes_its_schema_and_its_format() {
    block_on(async {
        let world = World::new();
        let old = world.table(&[0..2]).await;
        let over =
            world.database.create_table_with("t", other_schema(), Some(FileVersion::V2_1), CreateMode::Overwrite);
        let mut create = over.await.unwrap();
        let rows = RecordBatch::try_new(other_schema(), vec![Arc::new(Int32Array::from(vec![Some(5), None]))]).unwrap();
        create.write(&rows).await.unwrap();
        let table = create.finish(Consistency::Lazy).await.unwrap();
        assert_eq!(table.version().await.unwrap(), 3);
        let read = scan(&table, ScanOptions::default()).await;
        assert_eq!(read[0].column(0).as_ref(), rows.column(0).as_ref());
        old.checkout(2).await.unwrap();
        assert_eq!(ids(&old).await, [0, 1]);

        let fresh = world.database.create_table_with("u", schema(), None, CreateMode::Overwrite);
        let fresh = fresh.await.unwrap().finish(Consistency::Lazy).await.unwrap();
        assert_eq!(fresh.version().await.unwrap(), 1);
        let taken = world.database.create_table_with("u", schema(), None, CreateMode::Create).await;
        assert_eq!(taken.err().unwrap().code(), ErrorCode::TableExists);
    });
}

#[test]
fn of_tabs_that_create_one_missing_table_over_another_each_succeeds_and_the_last_one_wins() {
    block_on(async {
        let world = World::new();
        let tabs = [world.database.clone(), world.tab(5), world.tab(6), world.tab(7)];
        let mut creations = Vec::new();
        for (tab, first) in tabs.iter().zip([10, 20, 30]) {
            let mut create = tab.create_table_with("t", schema(), None, CreateMode::Overwrite).await.unwrap();
            // Enough that it does not lie in the commit.
            create.write(&batch(first * 10_000..first * 10_000 + 50_000)).await.unwrap();
            creations.push(create);
        }
        let format = Some(FileVersion::V2_1);
        let mut other = tabs[3].create_table_with("t", other_schema(), format, CreateMode::Overwrite).await.unwrap();
        let rows = RecordBatch::try_new(other_schema(), vec![Arc::new(Int32Array::from(vec![Some(5), None]))]).unwrap();
        other.write(&rows).await.unwrap();

        for (create, (version, first)) in creations.into_iter().zip([(1, 10), (2, 20), (3, 30)]) {
            let table = create.finish(Consistency::Lazy).await.unwrap();
            assert_eq!(table.version().await.unwrap(), version);
            assert_eq!(ids(&table).await, (first * 10_000..first * 10_000 + 50_000).collect::<Vec<_>>());
        }
        let table = other.finish(Consistency::Lazy).await.unwrap();
        assert_eq!(table.version().await.unwrap(), 4);
        let read = scan(&table, ScanOptions::default()).await;
        assert_eq!(read[0].column(0).as_ref(), rows.column(0).as_ref());
        assert!(tabs.iter().all(|tab| !tab.holds_leases()));
    });
}

#[test]
fn a_creation_over_a_table_that_came_and_went_meanwhile_makes_its_own() {
    block_on(async {
        let world = World::new();
        let mut create = world.tab(5).create_table_with("t", schema(), None, CreateMode::Overwrite).await.unwrap();
        create.write(&batch(3..5)).await.unwrap();
        world.create("t", 0..2).await;
        world.database.drop_table("t").await.unwrap();
        let table = create.finish(Consistency::Lazy).await.unwrap();
        assert_eq!((table.version().await.unwrap(), ids(&table).await), (1, vec![3, 4]));
        assert_eq!(ids(&world.open("t").await).await, [3, 4]);
    });
}

#[test]
fn an_aborted_overwrite_leaves_the_table_and_no_file() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2]).await;
        let mut over = table.overwrite().await.unwrap();
        over.write(&batch(0..60_000)).await.unwrap();
        over.abort().await.unwrap();
        assert_eq!(ids(&table).await, [0, 1]);
        let dir = world.store.lookup("t").await.unwrap().unwrap();
        let data = world.store.list(&dir, &Path::parse("data").unwrap(), &ListOptions::default()).await.unwrap();
        assert_eq!(data.objects.len(), 1);
    });
}

#[test]
fn t13_an_append_and_a_delete_that_meet_an_overwrite_are_conflicts_and_an_overwrite_takes_appends() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2]).await;
        let stale = world.open("t").await;
        let mut pending = stale.append().await.unwrap();
        pending.write(&batch(4..6)).await.unwrap();
        overwrite(&table, 7..9).await.unwrap();
        let error = pending.finish().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Conflict);
        assert!(error.to_string().contains("Append") && error.to_string().contains("Overwrite"), "{error}");
        assert_eq!(stale.delete("true").await.unwrap_err().code(), ErrorCode::Conflict);
        stale.checkout_latest().await.unwrap();

        let mut pending = stale.overwrite().await.unwrap();
        append(&table, 10..12).await;
        pending.write(&batch(1..3)).await.unwrap();
        assert_eq!(pending.finish().await.unwrap(), 5);
        assert_eq!(ids(&stale).await, [1, 2]);
    });
}

#[test]
fn t14_two_overwrites_of_one_version_are_a_conflict_that_names_both() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2]).await;
        let stale = world.open("t").await;
        let mut pending = stale.overwrite().await.unwrap();
        pending.write(&batch(4..60_000)).await.unwrap();
        overwrite(&table, 7..9).await.unwrap();
        let error = pending.finish().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Conflict);
        assert_eq!(error.to_string().matches("Overwrite").count(), 2, "{error}");
        assert_eq!(ids(&world.open("t").await).await, [7, 8]);
        assert!(!world.database.holds_leases());
    });
}

#[test]
fn t26_a_restore_is_a_new_version_and_takes_no_id_back() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2, 2..4]).await;
        let error = table.restore().await.unwrap_err();
        assert!(error.to_string().contains("you must run checkout before running restore"), "{error}");
        overwrite(&table, 7..9).await.unwrap();
        table.checkout(3).await.unwrap();
        assert_eq!(table.restore().await.unwrap(), 5);
        assert_eq!((table.version().await.unwrap(), ids(&table).await), (5, vec![0, 1, 2, 3]));
        assert!(!world.database.holds_leases());
        append(&table, 9..10).await;
        let addresses = ScanOptions { with_row_id: true, ..ScanOptions::default() };
        // Fragment 2 was the overwrite's.
        let expected = [0, 1, 1 << 32, (1 << 32) + 1, 3 << 32];
        assert_eq!(crate::builders::row_ids(&scan(&table, addresses).await), expected);
        // Later versions stay.
        table.checkout(4).await.unwrap();
        assert_eq!(ids(&table).await, [7, 8]);
    });
}

#[test]
fn a_restore_goes_over_what_others_committed_and_an_append_that_meets_it_is_a_conflict() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2]).await;
        let old = world.open("t").await;
        old.checkout(1).await.unwrap();
        let stale = world.open("t").await;
        let mut pending = stale.append().await.unwrap();
        pending.write(&batch(4..6)).await.unwrap();
        append(&table, 2..4).await;
        assert_eq!(old.restore().await.unwrap(), 4);
        assert_eq!(ids(&old).await, Vec::<i64>::new());
        assert_eq!(pending.finish().await.unwrap_err().code(), ErrorCode::Conflict);
        // The handle of the restored version lets go of its lease and follows the table again.
        append(&old, 8..9).await;
        assert_eq!(ids(&old).await, [8]);
    });
}

async fn remove_versions(world: &World, versions: std::ops::RangeInclusive<u64>) {
    let dir = world.store.lookup("t").await.unwrap().unwrap();
    for version in versions {
        let path = Path::parse(&format!("_versions/{:020}.manifest", u64::MAX - version)).unwrap();
        world.store.delete(&dir, &path).await.unwrap();
    }
}

#[test]
fn t19_e1_10_a_handle_from_before_an_overwrite_or_a_restore_is_a_conflict_also_when_the_versions_between_are_gone() {
    block_on(async {
        for restores in [false, true] {
            let world = World::new();
            let table = world.table(&[0..2]).await;
            let (stale, other) =
                (world.open("t").await, world.tab(5).open_table("t", Consistency::Lazy).await.unwrap());
            if restores {
                table.checkout(1).await.unwrap();
                table.restore().await.unwrap();
            } else {
                overwrite(&table, 7..9).await.unwrap();
            }
            append(&table, 20..21).await;
            append(&table, 21..22).await;
            let before = ids(&table).await;
            remove_versions(&world, 1..=4).await;
            for handle in [&stale, &other] {
                assert_eq!(handle.append().await.err().unwrap().code(), ErrorCode::Conflict);
                assert_eq!(handle.delete("true").await.unwrap_err().code(), ErrorCode::Conflict);
                assert_eq!(handle.overwrite().await.err().unwrap().code(), ErrorCode::Conflict);
                handle.checkout_latest().await.unwrap();
                assert_eq!(ids(handle).await, before);
                append(handle, 30..31).await;
                handle.delete("id = 30").await.unwrap();
            }
            assert!(!world.database.holds_leases());
        }
    });
}

#[test]
fn a_handle_whose_version_is_gone_writes_on_the_latest_one() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2]).await;
        let stale = world.open("t").await;
        append(&table, 2..4).await;
        append(&table, 4..6).await;
        remove_versions(&world, 1..=3).await;
        assert_eq!(append(&stale, 6..8).await, 5);
        assert_eq!(ids(&stale).await, [0, 1, 2, 3, 4, 5, 6, 7]);
    });
}

#[test]
fn t10_e1_14_a_hundred_deletes_of_the_same_rows_are_each_executed_and_delete_each_row_once() {
    block_on(async {
        let world = World::new();
        world.table(&[0..10]).await;
        // Half of them in another engine, as another tab.
        let tab = world.tab(99).open_table("t", Consistency::Lazy).await.unwrap();
        let own = Rc::new(world.open("t").await);
        let calls = (0..100).map(|at| {
            let (tab, own) = (tab.clone(), own.clone());
            let call: std::pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(async move {
                let table = if at % 2 == 0 { tab } else { own.as_ref().clone() };
                table.delete("id >= 0").await.unwrap()
            });
            call
        });
        let results = crate::versions::together(calls.collect());
        assert_eq!(results.iter().map(|result| result.deleted_rows).sum::<u64>(), 10);
        let mut versions: Vec<u64> = results.iter().map(|result| result.version).collect();
        versions.sort_unstable();
        assert_eq!(versions, (3..103).collect::<Vec<_>>());
    });
}
