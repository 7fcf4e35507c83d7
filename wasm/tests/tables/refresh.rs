//! Handles that look for others' commits when what they know is old.

use std::cell::Cell;
use std::rc::Rc;

use lancelet::error::{Error, ErrorCode};
use lancelet::store::fault::{Fault, Faults};
use lancelet::store::observed::Op;
use lancelet::table::{Consistency, Database, Table};

use crate::builders::{World, append, block_on};

/// A handle that sees commits after a second at the latest, whose store takes a turn for every operation and may fail.
struct Eventual {
    world: World,
    writer: Table,
    table: Table,
    faults: Rc<Faults>,
    counted: Cell<u64>,
    is_failing: Rc<Cell<bool>>,
}

impl Eventual {
    async fn open(age_ms: u64) -> Eventual {
        let world = World::new();
        let writer = world.create("t", 0..1).await;
        let is_failing = Rc::new(Cell::new(false));
        let fails = is_failing.clone();
        let plan = Box::new(move |_, _: &Op| match fails.get() {
            true => Fault::Fail(Error::Unavailable { reason: "gone for a while".into() }),
            false => Fault::None,
        });
        let (store, faults) = Faults::around(world.store.clone(), plan);
        let database = Database::new(store, world.env.clone());
        let table = database.open_table("t", Consistency::Eventual(age_ms)).await.unwrap();
        let counted = Cell::new(faults.seen());
        Eventual { world, writer, table, faults, counted, is_failing }
    }

    async fn rows(&self) -> u64 {
        self.table.count_rows(None).await.unwrap()
    }

    /// Operations of the store that were begun since the last time.
    fn operations(&self) -> u64 {
        let seen = self.faults.seen();
        seen - self.counted.replace(seen)
    }
}

#[test]
fn a_read_near_the_end_of_the_interval_begins_to_look_and_does_not_wait() {
    block_on(async {
        let handle = Eventual::open(1_000).await;
        append(&handle.writer, 1..2).await;
        handle.world.env.advance_ms(749);
        assert_eq!((handle.rows().await, handle.operations()), (1, 0));
        handle.world.env.advance_ms(1);
        assert_eq!((handle.rows().await, handle.operations()), (1, 1));
        // Each read carries it on; none begins another.
        let mut reads = 0;
        while handle.rows().await == 1 {
            reads += 1;
            assert!(reads < 10);
        }
        // A list again and the manifest, for all of these reads.
        assert_eq!(handle.operations(), 2);
        // What was found counts from when the look began, at 750.
        append(&handle.writer, 2..3).await;
        handle.world.env.advance_ms(749);
        assert_eq!((handle.rows().await, handle.operations()), (2, 0));
    });
}

#[test]
fn a_read_after_the_interval_waits_for_the_look_that_was_begun() {
    block_on(async {
        let handle = Eventual::open(20_000).await;
        handle.world.env.advance_ms(16_999);
        assert_eq!((handle.rows().await, handle.operations()), (1, 0));
        handle.world.env.advance_ms(1);
        assert_eq!((handle.rows().await, handle.operations()), (1, 1));
        handle.world.env.advance_ms(5_000);
        assert_eq!((handle.rows().await, handle.operations()), (1, 0));
        // It says how things were at 17,000: the interval from there ends at 37,000.
        append(&handle.writer, 1..2).await;
        handle.world.env.advance_ms(11_999);
        assert_eq!((handle.rows().await, handle.operations()), (1, 0));
        handle.world.env.advance_ms(3_001);
        assert_eq!(handle.rows().await, 2);
    });
}

#[test]
fn a_look_that_is_older_than_the_interval_is_begun_anew() {
    block_on(async {
        let handle = Eventual::open(1_000).await;
        handle.world.env.advance_ms(800);
        assert_eq!((handle.rows().await, handle.operations()), (1, 1));
        append(&handle.writer, 1..2).await;
        handle.world.env.advance_ms(1_000);
        assert_eq!(handle.rows().await, 2);
    });
}

#[test]
fn a_look_ahead_that_fails_is_told_by_nobody_and_one_that_is_waited_for_is() {
    block_on(async {
        let handle = Eventual::open(1_000).await;
        handle.is_failing.set(true);
        handle.world.env.advance_ms(800);
        assert_eq!((handle.rows().await, handle.rows().await), (1, 1));
        handle.world.env.advance_ms(200);
        assert_eq!(handle.table.count_rows(None).await.unwrap_err().code(), ErrorCode::Unavailable);
        handle.is_failing.set(false);
        append(&handle.writer, 1..2).await;
        assert_eq!(handle.rows().await, 2);
    });
}

#[test]
fn a_clock_that_goes_back_makes_a_handle_look() {
    block_on(async {
        let handle = Eventual::open(1_000).await;
        append(&handle.writer, 1..2).await;
        handle.world.env.set_ms(1);
        assert_eq!(handle.rows().await, 2);
    });
}
