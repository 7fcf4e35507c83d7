//! Versions: checkout, consistency, conflicts, gaps, naming schemes.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use bytes::Bytes;
use lancelet::ErrorCode;
use lancelet::store::{ListOptions, Path};
use lancelet::table::{Consistency, DeleteResult, Table};

use crate::builders::{World, append, batch, block_on, ids};

/// Polls all of them in turn until each is done.
pub fn together<T: 'static>(futures: Vec<Pin<Box<dyn Future<Output = T>>>>) -> Vec<T> {
    let mut context = Context::from_waker(Waker::noop());
    let results: Vec<RefCell<Option<T>>> = futures.iter().map(|_| RefCell::new(None)).collect();
    let mut running: Vec<_> = futures.into_iter().enumerate().collect();
    while !running.is_empty() {
        running.retain_mut(|(at, future)| match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => {
                results[*at].replace(Some(value));
                false
            }
            std::task::Poll::Pending => true,
        });
    }
    results.into_iter().map(|result| result.into_inner().unwrap()).collect()
}

#[test]
fn a_checked_out_handle_reads_its_version_and_refuses_writes() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2, 2..4]).await;
        table.delete("id = 0").await.unwrap();
        table.checkout(3).await.unwrap();
        assert_eq!(ids(&table).await, [0, 1, 2, 3]);
        assert_eq!(table.version().await.unwrap(), 3);
        assert_eq!(table.versions().await.unwrap().len(), 4);
        let message = "invalid input, table cannot be modified when a specific version is checked out: checkoutLatest() or restore() first";
        assert_eq!(table.append().await.err().unwrap().to_string(), message);
        assert_eq!(table.delete("true").await.unwrap_err().to_string(), message);
        assert_eq!(table.checkout(9).await.unwrap_err().code(), ErrorCode::NotFound);
        assert_eq!(table.checkout(0).await.unwrap_err().code(), ErrorCode::NotFound);
        assert_eq!(table.version().await.unwrap(), 3);
        table.checkout(2).await.unwrap();
        assert_eq!(ids(&table).await, [0, 1]);
        table.checkout_latest().await.unwrap();
        assert_eq!(ids(&table).await, [1, 2, 3]);
        assert!(!world.database.holds_leases());
    });
}

#[test]
fn a_checkout_holds_a_lease_that_closing_ends() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2, 2..4]).await;
        assert!(!world.database.holds_leases());
        table.checkout(2).await.unwrap();
        assert!(world.database.holds_leases());
        table.close().await.unwrap();
        assert!(!world.database.holds_leases());
        assert_eq!(table.version().await.unwrap_err().to_string(), "Table t is closed");
        assert_eq!(table.append().await.err().unwrap().code(), ErrorCode::Closed);
        assert_eq!(table.checkout_latest().await.unwrap_err().code(), ErrorCode::Closed);
        table.close().await.unwrap();
    });
}

#[test]
fn clones_share_what_is_checked_out() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2]).await;
        let clone = table.clone();
        table.checkout(1).await.unwrap();
        assert_eq!(clone.version().await.unwrap(), 1);
    });
}

#[test]
fn t29_consistency_says_when_a_handle_looks() {
    block_on(async {
        let world = World::new();
        let writer = world.create("t", 0..1).await;
        let open = async |consistency| world.database.open_table("t", consistency).await.unwrap();
        let (lazy, strong) = (open(Consistency::Lazy).await, open(Consistency::Strong).await);
        let eventual = open(Consistency::Eventual(1_000)).await;
        append(&writer, 1..2).await;
        let counts = async || {
            let mut counts = Vec::new();
            for table in [&lazy, &strong, &eventual] {
                counts.push(table.count_rows(None).await.unwrap());
            }
            counts
        };
        assert_eq!(counts().await, [1, 2, 1]);
        world.env.advance_ms(749);
        assert_eq!(counts().await, [1, 2, 1]);
        // In the last quarter it looks, and has the answer at once of a store that has it.
        world.env.advance_ms(1);
        assert_eq!(counts().await, [1, 2, 2]);
        assert_eq!(append(&lazy, 2..3).await, 3);
        assert_eq!(counts().await, [3, 3, 2]);
    });
}

#[test]
fn a_stale_append_goes_on_top_of_what_others_committed() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..2).await;
        let stale = world.open("t").await;
        append(&table, 2..4).await;
        table.delete("id = 1").await.unwrap();
        assert_eq!(append(&stale, 4..5).await, 4);
        assert_eq!(ids(&stale).await, [0, 2, 3, 4]);
    });
}

#[test]
fn stale_deletes_of_other_rows_of_a_fragment_are_merged() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..6).await;
        let (first, second, third) = (world.open("t").await, world.open("t").await, world.open("t").await);
        assert_eq!(first.delete("id = 1").await.unwrap(), DeleteResult { deleted_rows: 1, version: 2 });
        assert_eq!(second.delete("id = 3").await.unwrap(), DeleteResult { deleted_rows: 1, version: 3 });
        // The same row again: executed again on the latest version, where it is gone.
        assert_eq!(third.delete("id IN (1, 4)").await.unwrap(), DeleteResult { deleted_rows: 1, version: 4 });
        assert_eq!(ids(&third).await, [0, 2, 5]);
    });
}

#[test]
fn stale_deletes_that_empty_a_fragment_together_remove_it() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..4).await;
        let (first, second) = (world.open("t").await, world.open("t").await);
        first.delete("id < 2").await.unwrap();
        second.delete("id >= 2").await.unwrap();
        assert_eq!(second.versions().await.unwrap().pop().unwrap().totals[0], ("total_fragments", 0));
    });
}

#[test]
fn t9_e1_13_concurrent_deletes_of_distinct_rows_through_one_handle_all_succeed() {
    let world = World::new();
    let table = block_on(world.create("t", 0..8));
    let deletes = (0..8).map(|id| -> Pin<Box<dyn Future<Output = DeleteResult>>> {
        let table = table.clone();
        Box::pin(async move { table.delete(&format!("id = {id}")).await.unwrap() })
    });
    let results = together(deletes.collect());
    let mut versions: Vec<u64> = results.iter().map(|result| result.version).collect();
    versions.sort_unstable();
    assert_eq!(versions, (2..10).collect::<Vec<_>>());
    assert!(results.iter().all(|result| result.deleted_rows == 1));
    assert_eq!(block_on(table.count_rows(None)).unwrap(), 0);
    assert_eq!(block_on(table.version()).unwrap(), 9);
}

async fn dir_and_manifests(world: &World) -> (lancelet::store::DirId, Vec<Path>) {
    let dir = world.store.lookup("t").await.unwrap().unwrap();
    let listing = world.store.list(&dir, &Path::parse("_versions").unwrap(), &ListOptions::default()).await.unwrap();
    (dir, listing.objects.into_iter().map(|object| object.path).collect())
}

/// Removes a version as a cleanup would; the newest one is the first.
async fn prune(world: &World, version: u64) {
    let (dir, manifests) = dir_and_manifests(world).await;
    let at = manifests.len() - usize::try_from(version).unwrap();
    world.store.delete(&dir, &manifests[at]).await.unwrap();
}

#[test]
fn t19_a_gap_that_appears_while_an_append_runs_is_a_conflict() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1).await;
        let stale = world.open("t").await;
        let mut rows = stale.append().await.unwrap();
        rows.write(&batch(9..10)).await.unwrap();
        append(&table, 1..2).await;
        append(&table, 2..3).await;
        prune(&world, 2).await;
        let error = rows.finish().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Conflict);
        assert_eq!(
            error.to_string(),
            "Append conflicts with a cleanup of versions that this change did not see, committed as version 2"
        );
        table.checkout_latest().await.unwrap();
        assert_eq!(ids(&table).await, [0, 1, 2]);
    });
}

#[test]
fn a_handle_whose_version_was_pruned_writes_on_the_latest() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1).await;
        let (pruned, gapped) = (world.open("t").await, world.open("t").await);
        append(&table, 1..2).await;
        append(&table, 2..3).await;
        prune(&world, 2).await;
        assert_eq!(append(&gapped, 3..4).await, 4);
        let (dir, manifests) = dir_and_manifests(&world).await;
        world.store.delete(&dir, manifests.last().unwrap()).await.unwrap();
        let gone = pruned.scan(Default::default()).await.err().unwrap().to_string();
        assert!(gone.starts_with("version 1 of table 't' does not exist any more"), "{gone}");
        assert_eq!(pruned.count_rows(None).await.unwrap(), 1);
        assert_eq!(append(&pruned, 4..5).await, 5);
        assert_eq!(ids(&pruned).await, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn versions_tell_their_totals_and_times() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..4]).await;
        table.delete("id < 3").await.unwrap();
        let versions = table.versions().await.unwrap();
        assert_eq!(versions.iter().map(|info| info.version).collect::<Vec<_>>(), [1, 2, 3]);
        let start = 1_700_000_000_000_000_000;
        assert_eq!(versions.iter().map(|info| info.timestamp_ns - start).collect::<Vec<_>>(), [0, 1, 2]);
        let values: Vec<u64> = versions[2].totals.iter().map(|(_, value)| *value).collect();
        assert_eq!([&values[..2], &values[3..]].concat(), [1, 1, 1, 3, 1, 4]);
        assert!(values[2] > 0);
    });
}

/// Renames the manifests to the old scheme.
async fn rename_to_v1(world: &World, keep: usize) {
    let (dir, manifests) = dir_and_manifests(world).await;
    for (path, version) in manifests.iter().rev().zip(1u64..).skip(keep) {
        let bytes = world.store.get(&dir, path).await.unwrap();
        let old = Path::parse(&format!("_versions/{version}.manifest")).unwrap();
        world.store.put(&dir, &old, bytes).await.unwrap();
        world.store.delete(&dir, path).await.unwrap();
    }
}

#[test]
fn t7_a_table_of_the_old_naming_scheme_is_read_and_keeps_it() {
    block_on(async {
        let world = World::new();
        let mut fragments: Vec<_> = (0..11).map(|at| at..at + 1).collect();
        world.table(&fragments).await;
        rename_to_v1(&world, 0).await;
        let table: Table = world.open("t").await;
        assert_eq!(table.version().await.unwrap(), 12);
        assert_eq!(append(&table, 11..12).await, 13);
        fragments.push(11..12);
        let (_, manifests) = dir_and_manifests(&world).await;
        assert!(manifests.contains(&Path::parse("_versions/13.manifest").unwrap()));
        table.checkout(2).await.unwrap();
        assert_eq!(ids(&table).await, [0]);
        assert_eq!(ids(&world.open("t").await).await, (0..12).collect::<Vec<_>>());
    });
}

#[test]
fn t7_a_table_of_both_naming_schemes_is_refused() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..1, 1..2]).await;
        rename_to_v1(&world, 1).await;
        let error = table.versions().await.unwrap_err();
        assert_eq!(error.to_string(), "corrupt data in _versions: manifests of both naming schemes");
    });
}

#[test]
fn a_manifest_that_contradicts_its_name_is_corrupt() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..1]).await;
        let (dir, manifests) = dir_and_manifests(&world).await;
        let bytes = world.store.get(&dir, &manifests[1]).await.unwrap();
        world.store.put(&dir, &manifests[0], bytes).await.unwrap();
        let opened = world.tab(9).open_table("t", Consistency::Lazy).await;
        assert_eq!(opened.err().unwrap().code(), ErrorCode::Corrupt);
        world.store.put(&dir, &manifests[0], Bytes::from_static(b"torn")).await.unwrap();
        let torn = world.tab(9).open_table("t", Consistency::Lazy).await.err().unwrap();
        assert_eq!(torn.code(), ErrorCode::Corrupt);
        let remedy = "; without this file the table is what it was one version before";
        assert!(torn.to_string().contains(manifests[0].as_str()) && torn.to_string().ends_with(remedy), "{torn}");
        // A handle that is open already goes on reading.
        assert_eq!(ids(&table).await, [0]);
        world.store.delete(&dir, &manifests[0]).await.unwrap();
        let before = world.tab(9).open_table("t", Consistency::Lazy).await.unwrap();
        assert_eq!((before.version().await.unwrap(), ids(&before).await), (1, vec![]));
    });
}

#[test]
fn a_damaged_old_version_does_not_hide_the_others() {
    block_on(async {
        let world = World::new();
        world.table(&[0..1]).await;
        let (dir, manifests) = dir_and_manifests(&world).await;
        world.store.put(&dir, &manifests[1], Bytes::from_static(b"torn")).await.unwrap();
        let table = world.tab(9).open_table("t", Consistency::Lazy).await.unwrap();
        let versions = table.versions().await.unwrap();
        assert_eq!(versions.iter().map(|info| (info.version, info.totals.len())).collect::<Vec<_>>(), [(1, 0), (2, 7)]);
    });
}

#[test]
fn leases_are_renewed_by_maintenance_and_run_out_without() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..1]).await;
        table.checkout(1).await.unwrap();
        for _ in 0..6 {
            world.env.advance_ms(10_000);
            world.database.maintain().await.unwrap();
        }
        assert!(world.database.holds_leases());
        world.env.advance_ms(30_001);
        world.database.maintain().await.unwrap();
        assert!(!world.database.holds_leases(), "a lease that ran out does not come back to life");
    });
}

#[test]
fn a_clone_of_a_table_handle_moves_with_it() {
    block_on(async {
        let world = World::new();
        let table = Rc::new(world.create("t", 0..1).await);
        let clone = Table::clone(&table);
        append(&clone, 1..2).await;
        assert_eq!(table.version().await.unwrap(), 2);
    });
}
