//! Changes while the tab is lost at every store operation: the old version is there, or the new one.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use arrow_schema::{DataType, Field, Schema};
use lancelet::Result;
use lancelet::env::FixedEnv;
use lancelet::store::fault::{Fault, Faults, Plan};
use lancelet::store::{ListOptions, Path};
use lancelet::table::{Alteration, CleanupOptions, Consistency, Database, ScanOptions, Table};

use crate::builders::{World, batch, block_on, ids, scan};
use crate::write_spec;

/// Polls until it is done, or waits for ever: the tab was lost.
fn run_until_lost<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..10_000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
    }
    None
}

/// A tab that is lost at its operation of that number, and whether it came so far.
fn lost_at(at: u64, crash: &Fault) -> (Plan, Rc<Cell<bool>>) {
    let (hit, crash) = (Rc::new(Cell::new(false)), crash.clone());
    let was_hit = hit.clone();
    let plan: Plan = Box::new(move |number, _| {
        if number != at {
            return Fault::None;
        }
        hit.set(true);
        crash.clone()
    });
    (plan, was_hit)
}

async fn change(table: &Table, which: usize) -> Result<u64> {
    match which {
        0 => {
            let cast = Alteration {
                path: "id".to_owned(),
                rename: Some("key".to_owned()),
                nullable: None,
                data_type: Some(DataType::Int32),
            };
            table.alter_columns(&[cast]).await
        }
        1 => table.drop_columns(&["name".to_owned()]).await,
        _ => table.add_null_columns(&Schema::new(vec![Field::new("d", DataType::Int8, true)])).await,
    }
}

#[test]
fn k1_k4_a_tab_lost_anywhere_in_a_change_leaves_the_old_version_or_the_new_one() {
    for which in 0..3 {
        for crash in [Fault::CrashBefore, Fault::CrashAfter] {
            let (mut old, mut new) = (0, 0);
            for at in 0.. {
                let world = World::seeded(at);
                block_on(world.table(&[0..5, 5..9]));
                let (plan, was_hit) = lost_at(at, &crash);
                let (store, _) = Faults::around(world.store.clone(), plan);
                let env = Rc::new(FixedEnv::new(99, 1_700_000_000_000_000_000));
                let database = Database::new(store, env);
                let done = run_until_lost(async {
                    let table = database.open_table("t", Consistency::Lazy).await?;
                    change(&table, which).await
                });
                block_on(async {
                    let table = world.open("t").await;
                    let rows: usize =
                        scan(&table, ScanOptions::default()).await.iter().map(|batch| batch.num_rows()).sum();
                    assert_eq!(rows, 9);
                    let version = table.version().await.unwrap();
                    if version == 3 {
                        assert_eq!(ids(&table).await, (0..9).collect::<Vec<_>>());
                        old += 1;
                    } else {
                        assert_eq!(version, 4);
                        new += 1;
                    }
                    // Others are not held up.
                    if version == 3 {
                        assert_eq!(change(&table, which).await.unwrap(), 4);
                    }
                });
                if !was_hit.get() {
                    assert!(matches!(done, Some(Ok(4))));
                    break;
                }
            }
            assert!(old > 3 && new > 1, "{which} {crash:?}: {old} {new}");
        }
    }
}

const APPENDED: i64 = 40_000;

/// An append of so many rows that they are a file before the commit, or a delete of a row of each fragment, whose files come with it.
async fn change_rows(table: &Table, is_append: bool) -> Result<u64> {
    if !is_append {
        return Ok(table.delete("id in (0, 5)").await?.version);
    }
    let mut append = table.append().await?;
    append.write(&batch(9..APPENDED)).await?;
    append.finish().await
}

async fn count_files(world: &World, folder: &str) -> usize {
    let dir = world.store.lookup("t").await.unwrap().unwrap();
    world.store.list(&dir, &Path::parse(folder).unwrap(), &ListOptions::default()).await.unwrap().objects.len()
}

#[test]
fn k1_k2_k4_a_tab_lost_anywhere_in_an_append_or_a_delete_leaves_the_old_rows_or_the_new_ones() {
    for (is_append, folder, files) in [(true, "data", 2), (false, "_deletions", 0)] {
        let new_ids: Vec<i64> =
            if is_append { (0..APPENDED).collect() } else { (0..9).filter(|id| ![0, 5].contains(id)).collect() };
        for crash in [Fault::CrashBefore, Fault::CrashAfter] {
            let (mut old, mut new, mut orphans) = (0, 0, 0);
            for at in 0.. {
                let world = World::seeded(at);
                block_on(world.table(&[0..5, 5..9]));
                let (plan, was_hit) = lost_at(at, &crash);
                let (store, _) = Faults::around(world.store.clone(), plan);
                let database = Database::new(store, Rc::new(FixedEnv::new(99, 1_700_000_000_000_000_000)));
                let done = run_until_lost(async {
                    change_rows(&database.open_table("t", Consistency::Lazy).await?, is_append).await
                });
                if !was_hit.get() {
                    assert!(matches!(done, Some(Ok(4))));
                    break;
                }
                block_on(async {
                    let table = world.open("t").await;
                    if table.version().await.unwrap() == 4 {
                        assert_eq!(ids(&table).await, new_ids);
                        new += 1;
                        return;
                    }
                    assert_eq!((table.version().await.unwrap(), ids(&table).await), (3, (0..9).collect()));
                    old += 1;
                    orphans += usize::from(count_files(&world, folder).await > files);
                    // What no version names goes with the next cleanup, once the lease of who was lost has run out.
                    world.env.advance_ms(3_600_000);
                    let all = CleanupOptions { older_than_ms: Some(0), delete_unverified: true, error_if_tagged: true };
                    table.cleanup(&all).await.unwrap();
                    assert_eq!(count_files(&world, folder).await, files);
                    assert_eq!(change_rows(&table, is_append).await.unwrap(), 4);
                    assert_eq!(ids(&table).await, new_ids);
                });
            }
            assert!(old > 2 && new > 0 && (orphans > 0) == is_append, "{is_append} {crash:?}: {old} {new} {orphans}");
        }
    }
}

async fn replace_rows(table: &Table) -> Result<u64> {
    let mut write = table.overwrite().await?;
    write.write(&batch(7..9)).await?;
    write.finish().await
}

#[test]
fn k1_k4_a_tab_lost_while_rows_and_log_are_replaced_leaves_all_of_the_old_ones_or_none_for_good() {
    for crash in [Fault::CrashBefore, Fault::CrashAfter] {
        let (mut old, mut new) = (0, 0);
        for at in 0.. {
            let world = World::seeded(at);
            block_on(async {
                write_spec::table(&world).await;
                write_spec::fill(&world, &[&[1, 40]]).await;
            });
            let (plan, was_hit) = lost_at(at, &crash);
            let (store, _) = Faults::around(world.store.clone(), plan);
            let database = Database::new(store, Rc::new(FixedEnv::new(99, 1_700_000_000_000_000_000)));
            let done =
                run_until_lost(async { replace_rows(&database.open_table("t", Consistency::Lazy).await?).await });
            block_on(async {
                let table = world.open("t").await;
                if table.lsm_write_spec().await.unwrap().is_some() {
                    assert_eq!(table.version().await.unwrap(), 5);
                    let mut found = ids(&table).await;
                    found.sort_unstable();
                    assert_eq!(found, [0, 1, 2, 3, 4, 5, 40]);
                    old += 1;
                    replace_rows(&table).await.unwrap();
                } else {
                    new += 1;
                }
                assert_eq!(ids(&table).await, [7, 8]);
                // Shards of the same ids: what the lost tab left of them must be gone.
                table.set_lsm_write_spec(&write_spec::bucket("id", 2)).await.unwrap();
                assert_eq!(ids(&table).await, [7, 8]);
            });
            if !was_hit.get() {
                assert!(matches!(done, Some(Ok(6))));
                break;
            }
        }
        assert!(old > 2 && new > 1, "{crash:?}: {old} {new}");
    }
}
