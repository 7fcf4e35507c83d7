//! Commits that meet others, cleanups and lost answers at the worst moment.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use bytes::Bytes;
use lancelet::env::FixedEnv;
use lancelet::store::observed::{Hook, Observed, Op};
use lancelet::store::{ListOptions, Path, Store};
use lancelet::table::{Consistency, Database, Table};
use lancelet::{Error, ErrorCode, Result};

use crate::builders::{World, append, batch, block_on, ids};

/// What happens at a commit.
#[derive(Clone, Copy)]
enum Event {
    Nothing,
    /// Before it, every data file that no version names is taken away.
    TakeFiles,
    /// Before it, somebody else's object appears among the versions.
    Overtake,
    /// It has its effect, and its answer is lost.
    LoseAnswer,
    /// It has no effect, and its answer is lost.
    LoseRequest,
    /// As `LoseAnswer`, and the table is dropped and swept.
    LoseAnswerAndDrop,
    /// As `LoseAnswer`, and the store is not available from then on.
    LoseAnswerAndStore,
}

/// A tab's way to the store; the event of the n-th commit comes from `events`, the last one again and again.
struct Racing {
    world: Rc<dyn Store>,
    events: Vec<Event>,
    commits: Cell<usize>,
    is_unavailable: Cell<bool>,
}

impl Racing {
    fn tab(world: &World, events: &[Event]) -> (Database, Rc<Racing>) {
        let racing = Rc::new(Racing {
            world: world.store.clone(),
            events: events.to_vec(),
            commits: Cell::new(0),
            is_unavailable: Cell::new(false),
        });
        let store = Rc::new(Observed::new(world.store.clone(), racing.clone()));
        (Database::new(store, Rc::new(FixedEnv::new(55 + events.len() as u64, 1_700_000_000_000_000_000))), racing)
    }

    async fn table(world: &World, events: &[Event]) -> (Table, Rc<Racing>) {
        let (database, racing) = Racing::tab(world, events);
        (database.open_table("t", Consistency::Lazy).await.unwrap(), racing)
    }
}

impl Hook for Racing {
    async fn around<T>(&self, op: Op, call: impl Future<Output = Result<T>>, _: impl Fn(&T) -> u64) -> Result<T> {
        if self.is_unavailable.get() {
            return Err(Error::Unavailable { reason: "the connection is lost".into() });
        }
        if op.name != "commit" {
            return call.await;
        }
        let number = self.commits.replace(self.commits.get() + 1);
        let event = self.events.get(number).or(self.events.last()).copied().unwrap_or(Event::Nothing);
        let lost = || Err(Error::OutcomeUnknown { message: "the answer was lost".into() });
        let dir = self.world.lookup("t").await?.unwrap();
        match event {
            Event::Nothing => call.await,
            Event::TakeFiles => {
                let data = Path::parse("data")?;
                for object in self.world.list(&dir, &data, &ListOptions::default()).await?.objects {
                    self.world.delete(&dir, &object.path).await?;
                }
                call.await
            }
            Event::Overtake => {
                let path = Path::parse(&format!("_versions/{}-{number}.tmp", self.events.len()))?;
                self.world.put(&dir, &path, Bytes::new()).await?;
                call.await
            }
            Event::LoseAnswer => {
                call.await?;
                lost()
            }
            Event::LoseRequest => lost(),
            Event::LoseAnswerAndDrop => {
                call.await?;
                self.world.drop_dir(&dir).await?;
                self.world.sweep(u64::MAX).await?;
                lost()
            }
            Event::LoseAnswerAndStore => {
                call.await?;
                self.is_unavailable.set(true);
                lost()
            }
        }
    }
}

async fn append_many(table: &Table, ids: std::ops::Range<i64>) -> Result<u64> {
    let mut append = table.append().await?;
    append.write(&batch(ids)).await?;
    append.finish().await
}

#[test]
fn k5_a_commit_whose_answer_was_lost_is_found_and_not_repeated() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..2).await;
        let (table, racing) = Racing::table(&world, &[Event::LoseAnswer]).await;
        assert_eq!(append_many(&table, 2..4).await.unwrap(), 2);
        assert_eq!(table.delete("id = 0").await.unwrap().version, 3);
        assert_eq!(racing.commits.get(), 2);
        assert_eq!(ids(&world.open("t").await).await, [1, 2, 3]);
    });
}

#[test]
fn a_commit_whose_request_was_lost_is_made_again() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..2).await;
        let (table, racing) = Racing::table(&world, &[Event::LoseRequest, Event::Nothing]).await;
        assert_eq!(append_many(&table, 2..4).await.unwrap(), 2);
        assert_eq!(racing.commits.get(), 2);
        assert_eq!(ids(&world.open("t").await).await, [0, 1, 2, 3]);
    });
}

#[test]
fn a_creation_whose_answer_was_lost_is_found() {
    block_on(async {
        let world = World::new();
        // The hook looks for the table by name, so there is one.
        world.create("t", 0..1).await;
        let (database, racing) = Racing::tab(&world, &[Event::LoseAnswer, Event::Nothing]);
        let mut create = database.create_table("u", crate::builders::schema()).await.unwrap();
        create.write(&batch(5..7)).await.unwrap();
        create.finish(Consistency::Lazy).await.unwrap();
        assert_eq!(racing.commits.get(), 2);
        assert_eq!(ids(&world.open("u").await).await, [5, 6]);
    });
}

#[test]
fn what_hides_a_lost_answer_is_never_a_plain_failure() {
    block_on(async {
        for event in [Event::LoseAnswerAndDrop, Event::LoseAnswerAndStore] {
            let world = World::new();
            world.create("t", 0..2).await;
            let (table, _) = Racing::table(&world, &[event]).await;
            let error = append_many(&table, 2..4).await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::OutcomeUnknown, "{error}");
        }
    });
}

#[test]
fn a_file_that_a_cleanup_took_is_a_conflict_that_names_it() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..2).await;
        let (table, _) = Racing::table(&world, &[Event::TakeFiles]).await;
        let error = append_many(&table, 0..60_000).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Conflict);
        assert!(error.to_string().contains("a cleanup that took data/"), "{error}");
        assert_eq!(world.open("t").await.version().await.unwrap(), 1);
    });
}

#[test]
fn a_commit_that_is_overtaken_once_goes_through_and_always_gives_up() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..2).await;
        let (table, racing) = Racing::table(&world, &[Event::Overtake, Event::Nothing]).await;
        assert_eq!(append_many(&table, 2..4).await.unwrap(), 2);
        assert_eq!(racing.commits.get(), 2);
        let (table, racing) = Racing::table(&world, &[Event::Overtake]).await;
        let error = append_many(&table, 4..40_000).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Contention);
        assert!(racing.commits.get() > 8);
        // What it wrote is taken away again.
        let dir = world.store.lookup("t").await.unwrap().unwrap();
        let data = world.store.list(&dir, &Path::parse("data").unwrap(), &ListOptions::default()).await.unwrap();
        assert_eq!(data.objects.len(), 2);
        append(&world.open("t").await, 4..5).await;
    });
}

/// A store on which nobody's turn comes; it counts the waits.
#[derive(Default)]
struct Frozen {
    waits: Cell<u32>,
}

impl Hook for Frozen {
    async fn around<T>(&self, op: Op, call: impl Future<Output = Result<T>>, _: impl Fn(&T) -> u64) -> Result<T> {
        if op.name != "turn" {
            return call.await;
        }
        self.waits.set(self.waits.get() + 1);
        Err(Error::Timeout { message: "whose turn it is sleeps".into() })
    }
}

#[test]
fn a_frozen_tab_whose_turn_it_is_delays_one_change_and_not_each() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..2).await;
        let frozen = Rc::new(Frozen::default());
        let store = Rc::new(Observed::new(world.store.clone(), frozen.clone()));
        let database = Database::new(store, world.env.clone());
        let table = database.open_table("t", Consistency::Lazy).await.unwrap();
        for id in 2..5 {
            append(&table, id..id + 1).await;
        }
        assert_eq!(frozen.waits.get(), 1);
        world.env.advance_ms(300_000);
        append(&table, 5..6).await;
        assert_eq!(frozen.waits.get(), 2);
        assert_eq!(ids(&table).await, [0, 1, 2, 3, 4, 5]);
    });
}
