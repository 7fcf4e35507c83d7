//! Schedules by hand: what others do between the steps of an operation, when its tab is frozen past its lease or loses an answer.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use lancelet::env::FixedEnv;
use lancelet::store::observed::{Hook, Observed, Op};
use lancelet::table::{CleanupOptions, CompactOptions, CompactResult, Consistency, Database, Table};
use lancelet::{Error, ErrorCode, Result};

use crate::builders::{World, append, batch, block_on, id_in, ids, schema};

/// Longer than a lease.
const FROZEN_MS: u64 = 60_000;

type Interlude = Box<dyn FnOnce()>;

/// A tab's way to the store.
struct Schedule {
    /// What happens before the n-th operation of a name.
    before: RefCell<Option<(&'static str, u32, Interlude)>>,
    /// Of commits, from 0: their answers are lost.
    lost: Vec<u32>,
    commits: Cell<u32>,
}

impl Hook for Schedule {
    async fn around<T>(&self, op: Op, call: impl Future<Output = Result<T>>, _: impl Fn(&T) -> u64) -> Result<T> {
        let is_now = self.before.borrow_mut().as_mut().is_some_and(|(name, left, _)| {
            let is_meant = *name == op.name;
            let is_now = is_meant && *left == 0;
            *left -= u32::from(is_meant && !is_now);
            is_now
        });
        if is_now && let Some((_, _, interlude)) = self.before.take() {
            interlude();
        }
        if op.name != "commit" {
            return call.await;
        }
        let number = self.commits.replace(self.commits.get() + 1);
        let answer = call.await?;
        if self.lost.contains(&number) {
            return Err(Error::OutcomeUnknown { message: "the answer was lost".into() });
        }
        Ok(answer)
    }
}

/// A table in a tab, where something happens before the n-th operation of a name.
async fn tab(world: &World, before: Option<(&'static str, u32, Interlude)>, lost: &[u32]) -> Table {
    let schedule = Schedule { before: RefCell::new(before), lost: lost.to_vec(), commits: Cell::new(0) };
    let store = Rc::new(Observed::new(world.store.clone(), Rc::new(schedule)));
    let database = Database::new(store, Rc::new(FixedEnv::new(4_711, 1_700_000_000_000_000_000)));
    database.open_table("t", Consistency::Lazy).await.unwrap()
}

/// Every operation that writes, by name.
const WRITES: [&str; 4] = ["append", "delete", "overwrite", "compact"];

async fn write(table: &Table, what: &str) -> Result<()> {
    match what {
        "append" => {
            let mut append = table.append().await?;
            append.write(&batch(500..501)).await?;
            append.finish().await.map(|_| ())
        }
        "delete" => table.delete("id = 3").await.map(|_| ()),
        "overwrite" => {
            let mut overwrite = table.overwrite().await?;
            overwrite.write(&batch(500..501)).await?;
            overwrite.finish().await.map(|_| ())
        }
        _ => table.compact(&CompactOptions::default()).await.map(|_| ()),
    }
}

/// Another tab, whose clock goes on beyond the leases of the first.
async fn later(world: &World) -> Table {
    world.env.advance_ms(FROZEN_MS);
    world.open("t").await
}

async fn prune(table: &Table) {
    let options = CleanupOptions { older_than_ms: Some(0), delete_unverified: true, ..CleanupOptions::default() };
    table.cleanup(&options).await.unwrap();
}

async fn versions(table: &Table) -> Vec<u64> {
    table.versions().await.unwrap().iter().map(|info| info.version).collect()
}

/// What others do, on the world's own tab.
fn interlude(world: &Rc<World>, what: impl AsyncFnOnce(&World) + 'static) -> Interlude {
    let world = world.clone();
    Box::new(move || block_on(what(&world)))
}

#[test]
fn t19_e1_10_a_prune_between_look_and_put_is_a_conflict_and_nothing_is_executed_again() {
    for what in WRITES {
        block_on(async {
            let world = Rc::new(World::new());
            world.table(&[0..10, 10..20]).await;
            let pruned = interlude(&world, async |world| {
                let other = later(world).await;
                let mut overwrite = other.overwrite().await.unwrap();
                overwrite.write(&batch(90..92)).await.unwrap();
                overwrite.finish().await.unwrap();
                append(&other, 92..93).await;
                prune(&other).await;
                assert_eq!(versions(&other).await, [5]);
            });
            let table = tab(&world, Some(("commit", 0, pruned)), &[]).await;
            let refused = write(&table, what).await.unwrap_err();
            assert_eq!(refused.code(), ErrorCode::Conflict, "{what}: {refused}");
            let other = world.open("t").await;
            assert_eq!((versions(&other).await, ids(&other).await), (vec![5], vec![90, 91, 92]), "{what}");
        });
    }
}

#[test]
fn a_prune_of_a_lost_commit_is_an_unknown_outcome() {
    for what in WRITES {
        block_on(async {
            let world = Rc::new(World::new());
            world.table(&[0..10, 10..20]).await;
            let pruned = interlude(&world, async |world| {
                let other = later(world).await;
                append(&other, 92..93).await;
                prune(&other).await;
            });
            // The look after the lost answer comes when its version is gone.
            let looks = if what == "compact" { 2 } else { 1 };
            let table = tab(&world, Some(("token", looks, pruned)), &[0]).await;
            let refused = write(&table, what).await.unwrap_err();
            assert_eq!(refused.code(), ErrorCode::OutcomeUnknown, "{what}: {refused}");
        });
    }
}

#[test]
fn a_lost_answer_of_a_commit_that_took_effect_is_found_and_nothing_is_done_twice() {
    block_on(async {
        let world = World::new();
        world.table(&[0..10, 10..20]).await;
        // Both commits of the compaction.
        let table = tab(&world, None, &[0, 2]).await;
        let result = table.compact(&CompactOptions::default()).await.unwrap();
        let expected = CompactResult { fragments_removed: 2, fragments_added: 1, files_removed: 2, files_added: 1 };
        assert_eq!((result, table.version().await.unwrap()), (expected, 5));
        let other = world.open("t").await;
        assert_eq!(ids(&other).await, (0..20).collect::<Vec<_>>());
        assert_eq!(versions(&other).await, [1, 2, 3, 4, 5]);
        let table = tab(&world, None, &[0]).await;
        let result = table.delete(&id_in(0..5)).await.unwrap();
        assert_eq!((result.deleted_rows, result.version), (5, 6));
    });
}

#[test]
fn a_table_that_is_dropped_and_made_again_is_another_table() {
    for (what, op) in WRITES.into_iter().flat_map(|what| ["lease", "commit"].map(|op| (what, op))) {
        block_on(async {
            let world = Rc::new(World::new());
            world.table(&[0..10, 10..20]).await;
            let made_again = interlude(&world, async |world| {
                world.database.drop_table("t").await.unwrap();
                world.create("t", 70..73).await;
                world.database.maintain().await.unwrap();
            });
            let table = tab(&world, Some((op, 0, made_again)), &[]).await;
            let refused = write(&table, what).await.unwrap_err();
            assert_eq!(refused.code(), ErrorCode::TableNotFound, "{what}: {refused}");
            let other = world.open("t").await;
            assert_eq!((versions(&other).await, ids(&other).await), (vec![1], vec![70, 71, 72]), "{what}");
            let again = write(&table, what).await.unwrap_err();
            assert_eq!(again.code(), ErrorCode::TableNotFound, "{what}: {again}");
        });
    }
}

#[test]
fn a_table_that_is_swept_before_a_commit_looks_is_gone() {
    for what in WRITES {
        block_on(async {
            let world = Rc::new(World::new());
            world.table(&[0..10, 10..20]).await;
            let swept = interlude(&world, async |world| {
                world.env.advance_ms(FROZEN_MS);
                world.database.drop_table("t").await.unwrap();
                world.database.maintain().await.unwrap();
            });
            // Whoever was overtaken, or has reserved its ids, looks again after it has read the token.
            let looks = if what == "compact" { 3 } else { 1 };
            let table = tab(&world, Some(("list", looks, swept)), &[]).await;
            let refused = write(&table, what).await.unwrap_err();
            assert_eq!(refused.code(), ErrorCode::TableNotFound, "{what}: {refused}");
        });
    }
}

/// Rows that no commit takes along.
async fn write_large(table: &Table) -> Result<u64> {
    let mut append = table.append().await?;
    append.write(&batch(1_000..60_000)).await?;
    append.finish().await
}

#[test]
fn a_writer_that_is_frozen_past_its_lease_loses_its_file_and_is_told_so() {
    block_on(async {
        let world = Rc::new(World::new());
        world.table(&[0..10]).await;
        let cleaned = interlude(&world, async |world| prune(&later(world).await).await);
        let table = tab(&world, Some(("commit", 0, cleaned)), &[]).await;
        let refused = write_large(&table).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Conflict);
        assert!(refused.to_string().contains("data/"), "{refused}");
        let other = world.open("t").await;
        assert_eq!(ids(&other).await, (0..10).collect::<Vec<_>>());
        assert_eq!(versions(&other).await.last(), Some(&2));
        assert!(write_large(&table).await.unwrap() > 2);
    });
}

#[test]
fn e1_9_a_writer_under_its_lease_loses_nothing_whatever_a_cleanup_asks_for() {
    block_on(async {
        let world = Rc::new(World::new());
        world.table(&[0..10]).await;
        let refused = interlude(&world, async |world| {
            let other = world.open("t").await;
            append(&other, 10..11).await;
            let all = CleanupOptions { older_than_ms: Some(0), delete_unverified: true, ..CleanupOptions::default() };
            let refused = other.cleanup(&all).await.unwrap_err();
            assert_eq!(refused.code(), ErrorCode::Contention);
        });
        let table = tab(&world, Some(("commit", 0, refused)), &[]).await;
        assert_eq!(write_large(&table).await.unwrap(), 4);
        assert_eq!(table.count_rows(None).await.unwrap(), 59_011);
    });
}

#[test]
fn t12_a_compaction_yields_to_changes_of_its_rows_and_plans_again() {
    block_on(async {
        let world = Rc::new(World::new());
        world.table(&[0..10, 10..20]).await;
        let changed = interlude(&world, async |world| {
            let other = world.open("t").await;
            other.delete("id = 15").await.unwrap();
            append(&other, 20..30).await;
        });
        // Its ids are reserved, its file is written.
        let table = tab(&world, Some(("commit", 1, changed)), &[]).await;
        let result = table.compact(&CompactOptions::default()).await.unwrap();
        assert_eq!((result.fragments_removed, result.fragments_added, result.files_removed), (3, 1, 4));
        let expected: Vec<i64> = (0..15).chain(16..30).collect();
        assert_eq!(ids(&table).await, expected);
    });
}

#[test]
fn a_compaction_goes_on_top_of_appends_and_is_a_conflict_with_an_overwrite() {
    block_on(async {
        let world = Rc::new(World::new());
        world.table(&[0..10, 10..20]).await;
        let appended = interlude(&world, async |world| {
            append(&world.open("t").await, 20..30).await;
        });
        // Before the ids are taken: what was appended has the lower one.
        let table = tab(&world, Some(("commit", 0, appended)), &[]).await;
        let result = table.compact(&CompactOptions::default()).await.unwrap();
        assert_eq!(result.fragments_removed, 2);
        assert_eq!(ids(&table).await, (20..30).chain(0..20).collect::<Vec<_>>());
        let overwritten = interlude(&world, async |world| {
            let mut create = world.open("t").await.overwrite().await.unwrap();
            create.write(&batch(0..1)).await.unwrap();
            create.finish().await.unwrap();
        });
        let table = tab(&world, Some(("commit", 1, overwritten)), &[]).await;
        let refused = table.compact(&CompactOptions::default()).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Conflict);
        assert_eq!(ids(&world.open("t").await).await, [0]);
        assert_eq!(world.open("t").await.schema().await.unwrap(), schema());
    });
}
