//! Cleanup beside writers, readers, other cleanups, crashes and lost answers.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use lancelet::ErrorCode;
use lancelet::store::conformance;
use lancelet::store::fault::{Fault, Faults, Plan};
use lancelet::store::observed::Op;
use lancelet::table::{CleanupOptions, CleanupStats, Consistency, Database, Table};

use super::{ALL, DAY_MS, clean, dir, history, manifest, numbers, older_than, paths, put, size};
use crate::builders::{World, append, batch, block_on, ids};

/// A handle whose store follows a plan.
async fn through(world: &World, plan: Plan) -> (Table, Rc<Faults>) {
    let (store, faults) = Faults::around(world.store.clone(), plan);
    let database = Database::new(store, world.env.clone());
    (database.open_table("t", Consistency::Lazy).await.unwrap(), faults)
}

/// A handle for whom `meanwhile` happens before each of the first `times` removals.
async fn overtaken(world: &World, times: u32, meanwhile: impl Fn(u32) + 'static) -> Table {
    let left = Cell::new(times);
    let plan = move |_, op: &Op| {
        if op.name == "remove" && left.get() > 0 {
            left.set(left.get() - 1);
            meanwhile(times - left.get());
        }
        Fault::None
    };
    through(world, Box::new(plan)).await.0
}

#[test]
fn c21_a_version_that_vanishes_meanwhile_is_left_to_who_took_it() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        let old = manifest(2).to_string();
        let vanished = lancelet::Error::NotFound { what: format!("file {old}") };
        let plan = move |_, op: &Op| {
            if op.name == "get" && op.path == old { Fault::Fail(vanished.clone()) } else { Fault::None }
        };
        let (other, _) = through(&world, Box::new(plan)).await;
        assert_eq!(other.cleanup(&ALL).await.unwrap().old_versions_removed, 2);
        assert_eq!(numbers(&table).await, [2, 4]);
    });
}

#[test]
fn two_cleanups_at_once_count_each_version_once() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        let (before, rival) = (size(&world).await, world.open("t").await);
        let first = Rc::new(Cell::new(CleanupStats::default()));
        let seen = first.clone();
        let second = overtaken(&world, 1, move |_| seen.set(conformance::block_on(rival.cleanup(&ALL)).unwrap())).await;
        let stats = second.cleanup(&ALL).await.unwrap();
        assert_eq!(first.get().old_versions_removed + stats.old_versions_removed, 3);
        assert_eq!(first.get().bytes_removed + stats.bytes_removed, before - size(&world).await);
        assert_eq!((numbers(&table).await, ids(&table).await), (vec![4], vec![2, 3, 4]));
    });
}

#[test]
fn c24_k7_whatever_a_crash_cuts_off_every_version_that_is_listed_is_whole() {
    let operations = {
        let world = World::new();
        block_on(async {
            history(&world, 4).await;
            put(&world, "data/orphan.lance", "rows").await;
            let (table, faults) = through(&world, Box::new(|_, _| Fault::None)).await;
            let opened = faults.seen();
            table.cleanup(&ALL).await.unwrap();
            opened..faults.seen()
        })
    };
    assert!(operations.end - operations.start > 8);
    for crash in operations {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let world = World::new();
            block_on(async {
                let table = history(&world, 4).await;
                table.delete("id = 3").await.unwrap();
                put(&world, "data/orphan.lance", "rows").await;
            });
            let (table, _) = {
                let fault = fault.clone();
                let plan = move |number, _: &Op| if number == crash { fault.clone() } else { Fault::None };
                block_on(through(&world, Box::new(plan)))
            };
            let mut cleanup = Box::pin(table.cleanup(&ALL));
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..1_000 {
                if let Poll::Ready(done) = cleanup.as_mut().poll(&mut context) {
                    panic!("crash {crash} was no crash: {done:?}");
                }
            }
            drop(cleanup);
            block_on(async {
                let table = world.open("t").await;
                for version in numbers(&table).await {
                    table.checkout(version).await.unwrap();
                    let expected: Vec<i64> = match version {
                        5 => vec![2, 4],
                        older => (2..=i64::try_from(older).unwrap()).collect(),
                    };
                    assert_eq!(ids(&table).await, expected, "version {version} after {fault:?} at {crash}");
                }
                table.checkout_latest().await.unwrap();
                clean(&world, &table, &ALL).await;
                assert_eq!((numbers(&table).await, ids(&table).await), (vec![5], vec![2, 4]));
                let left = paths(&world).await;
                assert_eq!(left.iter().filter(|path| path.starts_with("data/")).count(), 2, "{left:?}");
            });
        }
    }
}

#[test]
fn a_cleanup_whose_answer_was_lost_counts_what_it_took() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        put(&world, "data/orphan.lance", "rows").await;
        let before = size(&world).await;
        let is_lost = Cell::new(false);
        let plan = move |_, op: &Op| {
            if op.name == "remove" && !is_lost.replace(true) { Fault::LoseAnswer } else { Fault::None }
        };
        let (other, _) = through(&world, Box::new(plan)).await;
        let stats = other.cleanup(&ALL).await.unwrap();
        let gone = before - size(&world).await;
        assert_eq!(stats, CleanupStats { bytes_removed: gone, old_versions_removed: 3 });
        assert_eq!(ids(&table).await, [2, 3, 4]);
    });
}

#[test]
fn a_tag_that_comes_before_the_removal_keeps_its_version() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        let tagger = world.open("t").await;
        let other = overtaken(&world, 1, move |_| conformance::block_on(tagger.create_tag("keep", 2)).unwrap()).await;
        assert_eq!(other.cleanup(&ALL).await.unwrap().old_versions_removed, 2);
        assert_eq!(numbers(&table).await, [2, 4]);
        table.checkout_tag("keep").await.unwrap();
        assert_eq!(ids(&table).await, [2]);
    });
}

#[test]
fn a_lease_that_comes_before_the_removal_keeps_its_version() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        let reader = world.open("t").await;
        let same = reader.clone();
        let other = overtaken(&world, 1, move |_| conformance::block_on(same.checkout(2)).unwrap()).await;
        assert_eq!(other.cleanup(&ALL).await.unwrap().old_versions_removed, 2);
        assert_eq!((numbers(&table).await, ids(&reader).await), (vec![2, 4], vec![2]));
    });
}

#[test]
fn a_tag_of_a_version_that_goes_is_refused_after_the_removal() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        let stale = world.open("t").await;
        clean(&world, &table, &ALL).await;
        let error = stale.create_tag("late", 2).await.unwrap_err();
        assert_eq!(error.to_string(), "version main:2 does not exist");
        assert_eq!(stale.checkout(2).await.unwrap_err().code(), ErrorCode::NotFound);
    });
}

#[test]
fn e1_9_a_long_write_commits_whatever_a_cleanup_with_a_short_window_takes() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        let writer = world.open("t").await;
        let mut append = writer.append().await.unwrap();
        append.write(&batch(50..52)).await.unwrap();
        // Others go on; the version that the write reads grows old.
        crate::builders::append(&table, 9..10).await;
        let verified = CleanupOptions { delete_unverified: true, ..ALL };
        let refused = table.cleanup(&verified).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Contention);
        assert!(lancelet::Error::is_retryable(&refused));
        world.database.maintain().await.unwrap();
        let ten_minutes = older_than(600_000);
        world.env.advance_ms(20_000);
        world.database.maintain().await.unwrap();
        assert_eq!(clean(&world, &table, &ten_minutes).await.old_versions_removed, 2);
        assert_eq!(append.finish().await.unwrap(), 5);
        assert_eq!(ids(&writer).await, [2, 3, 9, 50, 51]);
        assert_eq!(clean(&world, &writer, &ALL).await.old_versions_removed, 2);
    });
}

#[test]
fn a_write_that_slept_past_its_lease_conflicts_and_leaves_no_trace() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        let tab = world.tab(11);
        let sleeper = tab.open_table("t", Consistency::Lazy).await.unwrap();
        let mut append = sleeper.append().await.unwrap();
        append.write(&batch(50..52)).await.unwrap();
        world.env.advance_ms(DAY_MS);
        // What is between the version that it read and the latest is gone: it may have been an overwrite.
        crate::builders::append(&table, 9..10).await;
        crate::builders::append(&table, 10..11).await;
        clean(&world, &table, &ALL).await;
        let error = append.finish().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Conflict, "{error}");
        assert_eq!((numbers(&table).await, ids(&table).await), (vec![5], vec![2, 3, 9, 10]));
    });
}

#[test]
fn busy_writers_starve_no_cleanup_and_lose_no_file() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        put(&world, "data/orphan.lance", "rows").await;
        world.env.advance_ms(8 * DAY_MS);
        let writer = world.open("t").await;
        let other = overtaken(&world, 1_000, move |time| {
            let row = 100 + i64::from(time);
            conformance::block_on(append(&writer, row..row + 1));
        })
        .await;
        // Files that no version named would be planned anew after each commit: after some tries they are left alone.
        let stats = other.cleanup(&CleanupOptions::default()).await.unwrap();
        assert_eq!(stats.old_versions_removed, 2);
        assert!(paths(&world).await.contains(&"data/orphan.lance".to_owned()));
        let asked = other.cleanup(&CleanupOptions { older_than_ms: Some(600_000), ..ALL }).await.unwrap_err();
        assert_eq!(asked.code(), ErrorCode::Contention);
        let latest = world.open("t").await;
        assert_eq!(ids(&latest).await.len(), 2 + 5 + 16);
        table.checkout_latest().await.unwrap();
        clean(&world, &table, &CleanupOptions::default()).await;
        assert!(!paths(&world).await.contains(&"data/orphan.lance".to_owned()));
    });
}

#[test]
fn an_orphan_that_a_commit_names_meanwhile_stays() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 2).await;
        // The data file of an append is there before its version, and old: its writer's clock was a week behind.
        let writer = world.open("t").await;
        let mut append = writer.append().await.unwrap();
        append.write(&batch(50..60)).await.unwrap();
        let append = Cell::new(Some(append));
        let other = overtaken(&world, 1, move |_| {
            let append = append.take().unwrap();
            conformance::block_on(append.finish()).unwrap();
        })
        .await;
        world.env.advance_ms(8 * DAY_MS);
        other.cleanup(&CleanupOptions::default()).await.unwrap();
        table.checkout_latest().await.unwrap();
        assert_eq!(ids(&table).await, [vec![2], (50..60).collect::<Vec<i64>>()].concat());
    });
}

#[test]
fn a_cleanup_of_a_dropped_table_says_so() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        let database = world.database.clone();
        let other = overtaken(&world, 1, move |_| conformance::block_on(database.drop_table("t")).unwrap()).await;
        let error = other.cleanup(&ALL).await.unwrap_err();
        assert_eq!(error.to_string(), "Table 't' was not found");
        assert_eq!(table.cleanup(&ALL).await.unwrap_err().code(), ErrorCode::TableNotFound);
    });
}

#[test]
fn a_preview_writes_nothing() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        let dir = dir(&world).await;
        world.store.put(&dir, &super::path("data/orphan.lance"), Bytes::from_static(b"rows")).await.unwrap();
        let before = super::objects(&world).await;
        let writes = Rc::new(Cell::new(0));
        let seen = writes.clone();
        let plan = move |_, op: &Op| {
            let is_write = op.written_bytes > 0 || matches!(op.name, "remove" | "delete" | "commit" | "lease");
            seen.set(seen.get() + u32::from(is_write));
            Fault::None
        };
        let (other, _) = through(&world, Box::new(plan)).await;
        let preview = other.preview_cleanup(&ALL).await.unwrap();
        assert_eq!((writes.get(), super::objects(&world).await), (0, before));
        let text = preview.to_string();
        let expected = format!(
            "version 1 goes: {} ({} bytes)\nversion 2 goes: {} ({} bytes)\nversion 3 stays: latest\n\
             file data/orphan.lance goes: of no version (4 bytes)\n",
            manifest(1),
            preview.removed[0].size_bytes,
            manifest(2),
            preview.removed[1].size_bytes,
        );
        assert_eq!(text, expected);
        assert_eq!(table.cleanup(&ALL).await.unwrap().bytes_removed, preview.size_bytes());
    });
}
