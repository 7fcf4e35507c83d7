//! Compaction: what it rewrites, what it keeps, and how it meets others' commits.

use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use lancelet::ErrorCode;
use lancelet::format::file::FileVersion;
use lancelet::store::fault::{Fault, Faults, Plan};
use lancelet::store::{ListOptions, Path};
use lancelet::table::{CompactOptions, CompactResult, Consistency, CreateMode, Database, ScanOptions, Table};

use crate::builders::{World, append, block_on, id_in, ids, row_ids, scan, schema};

async fn compact(table: &Table) -> CompactResult {
    table.compact(&CompactOptions::default()).await.unwrap()
}

/// Fragments, data files, deletion files of the version that the handle stands on.
async fn totals(table: &Table) -> [u64; 3] {
    let infos = table.versions().await.unwrap();
    let version = table.version().await.unwrap();
    let info = infos.iter().find(|info| info.version == version).unwrap();
    ["total_fragments", "total_data_files", "total_deletion_files"]
        .map(|name| info.totals.iter().find(|(key, _)| *key == name).unwrap().1)
}

async fn files(world: &World, folder: &str) -> Vec<String> {
    let dir = world.store.lookup("t").await.unwrap().unwrap();
    let prefix = Path::default().join(folder);
    let listing = world.store.list(&dir, &prefix, &ListOptions::default()).await.unwrap();
    listing.objects.into_iter().map(|object| object.path.to_string()).collect()
}

/// Rows whose file is too large to be written by a commit.
fn large(first: i64) -> RecordBatch {
    let rows = first..first + 3_000;
    let text =
        |id: i64| (0..8).map(|part: i64| format!("{:016x}", (id * 8 + part).wrapping_mul(0x9e37_79b9))).collect();
    let names = rows.clone().map(|id| Some::<String>(text(id)));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from_iter_values(rows.clone())), Arc::new(StringArray::from_iter(names))];
    RecordBatch::try_new(schema(), columns).unwrap()
}

async fn append_large(table: &Table, first: i64) {
    let mut append = table.append().await.unwrap();
    append.write(&large(first)).await.unwrap();
    append.finish().await.unwrap();
}

#[test]
fn two_fragments_of_a_row_become_one_in_two_versions() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1).await;
        append(&table, 1..2).await;
        assert_eq!(table.version().await.unwrap(), 2);
        let result = compact(&table).await;
        let expected = CompactResult { fragments_removed: 2, fragments_added: 1, files_removed: 2, files_added: 1 };
        assert_eq!(result, expected);
        assert_eq!(table.version().await.unwrap(), 4);
        assert_eq!(ids(&table).await, [0, 1]);
        assert_eq!(totals(&table).await, [1, 1, 0]);
        let other = world.open("t").await;
        assert_eq!(ids(&other).await, [0, 1]);
        table.checkout(2).await.unwrap();
        assert_eq!(ids(&table).await, [0, 1]);
    });
}

#[test]
fn nothing_to_do_is_no_version() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10]).await;
        let version = table.version().await.unwrap();
        assert_eq!(compact(&table).await, CompactResult::default());
        assert_eq!(table.version().await.unwrap(), version);
        append(&table, 10..20).await;
        compact(&table).await;
        let version = table.version().await.unwrap();
        assert_eq!(compact(&table).await, CompactResult::default());
        assert_eq!(table.version().await.unwrap(), version, "what was compacted is compact");
        let empty = world.create("empty", 0..0).await;
        assert_eq!(compact(&empty).await, CompactResult::default());
    });
}

#[test]
fn deleted_rows_go_and_their_files_are_counted() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..1_000]).await;
        table.delete(&id_in(0..100)).await.unwrap();
        assert_eq!(compact(&table).await, CompactResult::default(), "a tenth is not much");
        table.delete(&id_in([500])).await.unwrap();
        let result = compact(&table).await;
        let expected = CompactResult { fragments_removed: 1, fragments_added: 1, files_removed: 2, files_added: 1 };
        assert_eq!(result, expected);
        assert_eq!(totals(&table).await, [1, 1, 0]);
        assert_eq!(ids(&table).await, (100..500).chain(501..1_000).collect::<Vec<_>>());
    });
}

#[test]
fn scattered_live_rows_keep_their_order_over_fragments() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..300, 300..400, 400..1_000]).await;
        let gone: Vec<i64> = (0..1_000).filter(|id| id % 3 == 1).collect();
        table.delete(&id_in(gone)).await.unwrap();
        let before = ids(&table).await;
        let result = compact(&table).await;
        assert_eq!((result.fragments_removed, result.fragments_added, result.files_removed), (3, 1, 6));
        assert_eq!(ids(&table).await, before);
        assert_eq!(table.count_rows(Some("name is null")).await.unwrap(), 334);
    });
}

#[test]
fn whole_fragments_stay_where_they_are() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10, 10..20, 20..200, 200..210, 210..220]).await;
        let options = CompactOptions { target_rows_per_fragment: 100, ..CompactOptions::default() };
        let plan = table.compact_plan(&options).await.unwrap();
        assert_eq!(plan.to_string(), "0, 1 -> 20 rows\n3, 4 -> 20 rows\n");
        let result = table.compact(&options).await.unwrap();
        assert_eq!((result.fragments_removed, result.fragments_added), (4, 2));
        // New fragments have new ids, and fragments are in the order of their ids.
        let expected: Vec<i64> = (20..200).chain(0..20).chain(200..220).collect();
        assert_eq!(ids(&table).await, expected);
        append(&table, 220..221).await;
        assert_eq!(ids(&table).await.last(), Some(&220));
    });
}

#[test]
fn data_files_of_every_version_are_compacted() {
    block_on(async {
        for format in [FileVersion::V2_0, FileVersion::V2_1, FileVersion::V2_2] {
            let world = World::new();
            let mut create =
                world.database.create_table_with("t", schema(), Some(format), CreateMode::Create).await.unwrap();
            create.write(&crate::builders::batch(0..500)).await.unwrap();
            let table = create.finish(Consistency::Lazy).await.unwrap();
            append(&table, 500..900).await;
            table.delete(&id_in(100..300)).await.unwrap();
            assert_eq!(compact(&table).await.fragments_added, 1);
            assert_eq!(ids(&table).await, (0..100).chain(300..900).collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_compaction_plans_on_the_newest_version() {
    block_on(async {
        let world = World::new();
        let stale = world.table(&[0..10, 10..20]).await;
        let other = world.open("t").await;
        other.delete("id < 5").await.unwrap();
        append(&other, 20..30).await;
        assert_eq!(compact(&stale).await.fragments_removed, 3);
        assert_eq!(ids(&stale).await, (5..30).collect::<Vec<_>>());
        // The other way round the delete is executed again on the fragment that its rows went to.
        let result = other.delete("id >= 25").await.unwrap();
        assert_eq!((result.deleted_rows, result.version), (5, stale.version().await.unwrap() + 1));
        other.checkout_latest().await.unwrap();
        assert_eq!(ids(&other).await, (5..25).collect::<Vec<_>>());
    });
}

/// A tab whose operations meet a plan.
fn faulty(world: &World, plan: Plan) -> (Database, Rc<Faults>) {
    let (store, faults) = Faults::around(world.store.clone(), plan);
    (Database::new(store, Rc::new(lancelet::env::FixedEnv::new(99, 1_700_000_000_000_000_000))), faults)
}

#[test]
fn k6_a_compaction_that_fails_leaves_no_file_behind() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..0).await;
        append_large(&table, 0).await;
        append_large(&table, 3_000).await;
        let before = files(&world, "data").await;
        assert_eq!(before.len(), 2);
        let full = || Fault::Fail(lancelet::Error::Quota { needed_bytes: None });
        // The commit of the ids, that of the fragments, and the new file itself.
        for (name, number) in [("commit", 0), ("commit", 1), ("writer.write", 1), ("writer.finish", 0)] {
            let seen = std::cell::Cell::new(0);
            let plan: Plan = Box::new(move |_, op| {
                let is_meant = op.name == name && seen.replace(seen.get() + u32::from(op.name == name)) == number;
                if is_meant { full() } else { Fault::None }
            });
            let (database, _) = faulty(&world, plan);
            let tab = database.open_table("t", Consistency::Lazy).await.unwrap();
            let failed = tab.compact(&CompactOptions::default()).await.unwrap_err();
            assert_eq!(failed.code(), ErrorCode::Quota, "{name} {number}");
            assert_eq!(files(&world, "data").await, before, "{name} {number}");
            let again = world.open("t").await;
            assert_eq!(ids(&again).await.len(), 6_000);
        }
        table.checkout_latest().await.unwrap();
        assert_eq!(compact(&table).await.fragments_added, 1);
        assert_eq!(ids(&table).await, (0..6_000).collect::<Vec<_>>());
        // The ids that were reserved for nothing are not given to anybody.
        let addresses = ScanOptions { with_row_id: true, ..ScanOptions::default() };
        let first = row_ids(&scan(&table, addresses).await)[0];
        assert!(first >> 32 > 2, "fragment {}", first >> 32);
    });
}

#[test]
fn fragments_of_full_files_are_left_alone() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..0).await;
        for first in 0..3 {
            append_large(&table, first * 3_000).await;
        }
        append(&table, 9_000..9_001).await;
        append(&table, 9_001..9_002).await;
        let options = CompactOptions { target_bytes_per_fragment: 100 << 10, ..CompactOptions::default() };
        let result = table.compact(&options).await.unwrap();
        assert_eq!((result.fragments_removed, result.fragments_added), (2, 1));
        assert_eq!(ids(&table).await, (0..9_002).collect::<Vec<_>>());
        assert_eq!(table.compact(&options).await.unwrap(), CompactResult::default());
    });
}

#[test]
fn a_checked_out_handle_compacts_nothing() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..1, 1..2]).await;
        table.checkout(2).await.unwrap();
        let refused = table.compact(&CompactOptions::default()).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidInput);
        assert!(refused.to_string().contains("table cannot be modified when a specific version is checked out"));
        assert_eq!(table.versions().await.unwrap().len(), 3);
    });
}

#[test]
fn stats_tell_rows_fragments_and_bytes() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10, 10..30, 30..60]).await;
        table.delete("id < 5").await.unwrap();
        let stats = table.stats().await.unwrap();
        assert_eq!(
            (stats.live_rows, stats.fragment_count, stats.small_fragment_count, stats.index_count),
            (55, 3, 3, 0)
        );
        assert_eq!((stats.fragment_rows.min, stats.fragment_rows.max, stats.fragment_rows.mean), (10, 30, 20));
        let dir = world.store.lookup("t").await.unwrap().unwrap();
        let data = world.store.list(&dir, &Path::default().join("data"), &ListOptions::default()).await.unwrap();
        assert_eq!(stats.total_bytes, data.objects.iter().map(|object| object.size_bytes).sum::<u64>());
    });
}
