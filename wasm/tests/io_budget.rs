//! What operations cost in calls to the store and bytes: most slowness is I/O.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod builders;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use builders::{World, append, block_on, columns, filtered, ids, int64s, scan};
use lancelet::format::table::{Manifest, Version, layout};
use lancelet::store::counting::{Counted, Counter};
use lancelet::store::{ListOptions, Path};
use lancelet::table::{Consistency, Database, Rows, ScanOptions, Table};

/// Another tab on the same store, whose operations are counted.
fn counted(world: &World) -> (Database, Rc<Counter>) {
    let (store, counter) = Counter::around(world.store.clone());
    (Database::new(store, Rc::new(lancelet::env::FixedEnv::new(77, 1_700_000_000_000_000_000))), counter)
}

async fn open(database: &Database) -> Table {
    database.open_table("t", Consistency::Lazy).await.unwrap()
}

fn calls(counter: &Counter) -> Vec<&'static str> {
    counter.take().iter().map(|counted| counted.op.name).collect()
}

fn read_bytes(counted: &[Counted]) -> u64 {
    counted.iter().map(|counted| counted.read_bytes).sum()
}

#[test]
fn opening_a_table_takes_one_listing_and_one_read() {
    block_on(async {
        let world = World::new();
        world.table(&[0..1, 1..2, 2..3]).await;
        let (database, counter) = counted(&world);
        open(&database).await;
        assert_eq!(calls(&counter), ["lookup", "list", "get"]);
    });
}

#[test]
fn creating_a_small_table_takes_one_commit() {
    block_on(async {
        let world = World::new();
        let (database, counter) = counted(&world);
        let mut create = database.create_table("t", builders::schema()).await.unwrap();
        create.write(&builders::batch(0..100)).await.unwrap();
        create.finish(Consistency::Lazy).await.unwrap();
        assert_eq!(calls(&counter), ["lookup", "create_dir", "token", "commit", "publish_dir"]);
    });
}

#[test]
fn an_append_of_a_row_is_one_commit() {
    block_on(async {
        let world = World::new();
        world.table(&[0..1]).await;
        let (database, counter) = counted(&world);
        let table = open(&database).await;
        counter.take();
        append(&table, 1..2).await;
        assert_eq!(calls(&counter), ["lease", "token", "list", "turn", "commit", "release"]);
        append(&table, 2..3).await;
        assert_eq!(calls(&counter), ["lease", "token", "list", "turn", "commit", "release"]);
    });
}

#[test]
fn a_stale_append_reads_each_newer_version_once() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..1]).await;
        let (database, counter) = counted(&world);
        let stale = open(&database).await;
        append(&table, 1..2).await;
        append(&table, 2..3).await;
        counter.take();
        append(&stale, 3..4).await;
        assert_eq!(calls(&counter), ["lease", "token", "list", "turn", "get", "get", "commit", "release"]);
    });
}

fn manifests_read(counted: &[Counted]) -> usize {
    counted.iter().filter(|counted| counted.op.name == "get" && counted.op.path.starts_with("_versions/")).count()
}

/// Handles that stand on one version: what each does is judged by all that the others did since, like so many calls at once.
async fn handles(database: &Database, count: usize) -> Vec<Table> {
    let mut handles = Vec::new();
    for _ in 0..count {
        handles.push(open(database).await);
    }
    handles
}

#[test]
fn a_hundred_deletes_at_once_read_no_version_that_their_own_engine_made() {
    block_on(async {
        let world = World::new();
        world.table(&[0..100]).await;
        let (database, counter) = counted(&world);
        let handles = handles(&database, 100).await;
        counter.take();
        let mut most = 0;
        for (id, table) in handles.iter().enumerate() {
            assert_eq!(table.delete(&format!("id = {id}")).await.unwrap().version, 3 + id as u64);
            let counted = counter.take();
            assert_eq!(manifests_read(&counted), 0, "{counted:?}");
            most = most.max(counted.iter().filter(|counted| counted.op.name == "list").count());
        }
        // The versions in between need not be listed either.
        assert_eq!(most, 1);
    });
}

#[test]
fn what_others_committed_is_read_once_by_all_changes_that_began_before() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..300]).await;
        let (database, counter) = counted(&world);
        let handles = handles(&database, 100).await;
        for id in 100..200 {
            table.delete(&format!("id = {id}")).await.unwrap();
        }
        counter.take();
        for (id, stale) in handles.iter().enumerate() {
            assert_eq!(stale.delete(&format!("id = {id}")).await.unwrap().version, 103 + id as u64);
        }
        assert_eq!(manifests_read(&counter.take()), 100);
        assert_eq!(ids(&open(&database).await).await, (200..300).collect::<Vec<_>>());
    });
}

#[test]
fn a_delete_reads_the_columns_of_its_predicate_and_commits_once() {
    block_on(async {
        let world = World::new();
        world.table(&[0..1_000]).await;
        let (database, counter) = counted(&world);
        let table = open(&database).await;
        counter.take();
        table.delete("id < 10").await.unwrap();
        let calls = calls(&counter);
        assert_eq!(calls[..3], ["lease", "token", "list"]);
        assert_eq!(calls[calls.len() - 3..], ["turn", "commit", "release"]);
        assert!(calls[3..calls.len() - 3].iter().all(|call| *call == "get_ranges"), "{calls:?}");
        assert!(calls.len() <= 8, "{calls:?}");
        table.delete("true").await.unwrap();
        // The rows of a fragment are known without reading it; what was deleted before is remembered or read.
        let calls = self::calls(&counter);
        assert!(!calls.contains(&"get_ranges"), "{calls:?}");
    });
}

/// Lets a table of one fragment have so many versions, all of the same content.
async fn with_versions(world: &World, versions: u64) {
    world.create("t", 0..1_000).await;
    let dir = world.store.lookup("t").await.unwrap().unwrap();
    let folder = Path::default().join(layout::versions_folder());
    let listing = world.store.list(&dir, &folder, &ListOptions::default()).await.unwrap();
    let first = world.store.get(&dir, &listing.objects[0].path).await.unwrap();
    let mut manifest = Manifest::decode(&first).unwrap();
    for version in 2..=versions {
        manifest.version = Version(version);
        let path = Path::default().join(&layout::manifest_path(manifest.version));
        world.store.put(&dir, &path, manifest.encode().into()).await.unwrap();
    }
}

#[test]
fn a_table_of_ten_thousand_versions_costs_what_one_of_ten_costs() {
    block_on(async {
        let mut costs = Vec::new();
        for versions in [10, 10_000] {
            let world = World::new();
            with_versions(&world, versions).await;
            let (database, counter) = counted(&world);
            let table = open(&database).await;
            let opening = calls(&counter);
            assert_eq!(append(&table, 1_000..1_001).await, versions + 1);
            let adding = calls(&counter);
            assert_eq!(table.delete("id < 10").await.unwrap().deleted_rows, 10);
            let deleting = calls(&counter);
            costs.push([opening, adding, deleting]);
        }
        assert_eq!(costs[0], costs[1]);
    });
}

#[test]
fn a_count_without_a_filter_reads_nothing() {
    block_on(async {
        let world = World::new();
        world.table(&[0..1_000]).await;
        let (database, counter) = counted(&world);
        let table = open(&database).await;
        counter.take();
        assert_eq!(table.count_rows(None).await.unwrap(), 1_000);
        assert_eq!(calls(&counter), Vec::<&str>::new());
    });
}

#[test]
fn a_second_scan_reads_no_footers_again() {
    block_on(async {
        let world = World::new();
        world.table(&[0..10_000, 10_000..20_000]).await;
        let (database, counter) = counted(&world);
        let table = open(&database).await;
        counter.take();
        assert_eq!(ids(&table).await.len(), 20_000);
        let first = counter.take();
        assert_eq!(ids(&table).await.len(), 20_000);
        let second = counter.take();
        let reads = |counted: &[Counted]| counted.iter().filter(|counted| counted.op.name == "get_ranges").count();
        // Footer and values of each fragment; then values only.
        assert!(reads(&first) <= 6, "{first:?}");
        assert!(reads(&second) <= 2, "{second:?}");
        assert!(read_bytes(&second) < read_bytes(&first));
        assert_eq!(second.iter().filter(|counted| counted.op.name != "get_ranges").count(), 2, "lease and release");
    });
}

#[test]
fn a_small_data_file_is_read_whole_once_and_many_of_them_stay() {
    block_on(async {
        let world = World::new();
        let fragments: Vec<_> = (0..200).map(|id| id..id + 1).collect();
        world.table(&fragments).await;
        let (database, counter) = counted(&world);
        let table = open(&database).await;
        counter.take();
        assert_eq!(ids(&table).await.len(), 200);
        assert_eq!(calls(&counter).iter().filter(|call| **call == "get_ranges").count(), 200);
        assert_eq!(table.count_rows(Some("name IS NOT NULL")).await.unwrap(), 133);
        assert_eq!(calls(&counter), ["lease", "release"]);
    });
}

#[test]
fn an_offset_passes_over_fragments_without_opening_them() {
    block_on(async {
        let world = World::new();
        world.table(&[0..10_000, 10_000..20_000, 20_000..30_000]).await;
        let (database, counter) = counted(&world);
        let table = open(&database).await;
        counter.take();
        let options = ScanOptions { offset: 15_000, limit: Some(5), ..ScanOptions::default() };
        let batches = scan(&table, options).await;
        assert_eq!(int64s(&batches, "id"), (15_000..15_005).collect::<Vec<_>>());
        let mut paths: Vec<String> = counter
            .take()
            .into_iter()
            .filter(|counted| counted.op.name == "get_ranges")
            .map(|counted| counted.op.path)
            .collect();
        paths.dedup();
        assert_eq!(paths.len(), 1, "{paths:?}");
    });
}

/// `id` and a text of a kilobyte, which is stored as it is.
async fn wide_table(world: &World, rows: i64) {
    let plain = HashMap::from([("lance-encoding:compression".to_owned(), "none".to_owned())]);
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("text", DataType::Utf8, false).with_metadata(plain),
    ]));
    let texts = (0..rows).map(|id| Some(format!("{:064x}", id.wrapping_mul(0x09e3_779b_97f4_a7c1)).repeat(16)));
    let arrays: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from_iter_values(0..rows)), Arc::new(StringArray::from_iter(texts))];
    let mut create = world.database.create_table("t", schema.clone()).await.unwrap();
    create.write(&RecordBatch::try_new(schema, arrays).unwrap()).await.unwrap();
    create.finish(Consistency::Lazy).await.unwrap();
}

#[test]
fn a_filter_reads_its_column_and_of_the_others_the_rows_that_are_left() {
    block_on(async {
        let world = World::new();
        wide_table(&world, 8_000).await;
        let (database, counter) = counted(&world);
        let table = open(&database).await;
        counter.take();
        assert_eq!(scan(&table, ScanOptions::default()).await.iter().map(RecordBatch::num_rows).sum::<usize>(), 8_000);
        let whole = read_bytes(&counter.take());
        assert!(whole > 8_000_000, "{whole}");
        assert_eq!(table.count_rows(Some("id >= 4000")).await.unwrap(), 4_000);
        let count = read_bytes(&counter.take());
        assert!(count < 100_000, "{count}");
        let one = scan(&table, filtered("id = 4321")).await;
        assert_eq!(int64s(&one, "id"), [4_321]);
        let point = read_bytes(&counter.take());
        assert!(point < whole / 8, "{point} of {whole}");
        let projected = ScanOptions { columns: columns(&["id"]), ..filtered("id = 4321") };
        scan(&table, projected).await;
        let narrow = read_bytes(&counter.take());
        assert!(narrow < 100_000, "{narrow}");
    });
}

#[test]
fn a_limit_reads_no_more_than_its_rows_need() {
    block_on(async {
        let world = World::new();
        wide_table(&world, 8_000).await;
        let (database, counter) = counted(&world);
        let table = open(&database).await;
        counter.take();
        let options = ScanOptions { limit: Some(3), ..ScanOptions::default() };
        assert_eq!(int64s(&scan(&table, options).await, "id"), [0, 1, 2]);
        let read = read_bytes(&counter.take());
        assert!(read < 1_500_000, "{read}");
    });
}

#[test]
fn a_thousand_random_rows_take_three_ranges_of_each_page_at_most() {
    block_on(async {
        let world = World::new();
        world.table(&[0..200_000]).await;
        let (database, counter) = counted(&world);
        let table = open(&database).await;
        let take = |offsets: Vec<u64>| ScanOptions { rows: Some(Rows::Offsets(offsets)), ..ScanOptions::default() };
        // Opens the file, and the two pages of its two columns.
        assert_eq!(int64s(&scan(&table, take(vec![7])).await, "id"), [7]);
        counter.take();
        let offsets: Vec<u64> = (0..1_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 200_000).collect();
        let got = int64s(&scan(&table, take(offsets.clone())).await, "id");
        let mut wanted: Vec<i64> = offsets.into_iter().map(|offset| offset as i64).collect();
        wanted.sort_unstable();
        assert_eq!(got, wanted);
        let reads: Vec<Counted> = counter.take().into_iter().filter(|c| c.op.name == "get_ranges").collect();
        let ranges: u64 = reads.iter().map(|counted| counted.op.ranges).sum();
        assert!(ranges <= 2 * 3, "{reads:?}");
    });
}

#[test]
fn a_thousand_of_eight_thousand_long_texts_take_no_range_each() {
    block_on(async {
        let world = World::new();
        wide_table(&world, 8_000).await;
        let (database, counter) = counted(&world);
        let table = open(&database).await;
        let take = |offsets: Vec<u64>| ScanOptions { rows: Some(Rows::Offsets(offsets)), ..ScanOptions::default() };
        scan(&table, take(vec![7])).await;
        counter.take();
        let rows: Vec<u64> = (0..1_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 8_000).collect();
        assert_eq!(int64s(&scan(&table, take(rows)).await, "id").len(), 1_000);
        let reads: Vec<Counted> = counter.take().into_iter().filter(|c| c.op.name == "get_ranges").collect();
        let ranges: u64 = reads.iter().map(|counted| counted.op.ranges).sum();
        assert!(ranges <= 2 * 3, "{reads:?}");
        // Sixteen times what the rows have, and no more than the file.
        assert!(read_bytes(&reads) < 9_000_000, "{reads:?}");
    });
}
