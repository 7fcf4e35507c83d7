//! Changes of a schema while the tab is lost at every store operation: the old version is there, or the new one.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use arrow_schema::{DataType, Field, Schema};
use lancelet::Result;
use lancelet::env::FixedEnv;
use lancelet::store::fault::{Fault, Faults, Plan};
use lancelet::table::{Alteration, Consistency, Database, ScanOptions, Table};

use crate::builders::{World, block_on, ids, scan};

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
fn a_tab_lost_anywhere_in_a_change_leaves_the_old_version_or_the_new_one() {
    for which in 0..3 {
        for crash in [Fault::CrashBefore, Fault::CrashAfter] {
            let (mut old, mut new) = (0, 0);
            for at in 0.. {
                let world = World::seeded(at);
                block_on(world.table(&[0..5, 5..9]));
                let crash = crash.clone();
                let was_hit = Rc::new(Cell::new(false));
                let hit = was_hit.clone();
                let plan: Plan = Box::new(move |number, _| {
                    if number != at {
                        return Fault::None;
                    }
                    hit.set(true);
                    crash.clone()
                });
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
