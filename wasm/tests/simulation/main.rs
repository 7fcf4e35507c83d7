//! Seeded tabs over one store, and what they do to each other. Every store operation yields; a seeded loop decides who goes on. One tab
//! meets a fault, at its operations in turn: it is lost before or after the operation, the answer is lost, or it is frozen while all
//! clocks go on past every deadline, and thawed.
//!
//! `SIM_SEED=42` repeats one seed, `SIM_SEEDS=1000` runs so many of them. A failure prints the end of its trace.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod actors;
#[path = "../builders/mod.rs"]
mod builders;
mod changer;
mod invariants;
mod model;
mod world;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use actors::{Actor, CAST, Role, batch, first_rows, schema};
use builders::block_on;
use lancelet::table::Consistency;
use model::Deed;
use world::{FAULTS, Fault, SLEEP_MS, Tab, World};

/// Seeds of an ordinary run.
const SEEDS: u64 = 60;
const TABS: usize = 3;
/// A run with a fault for every so many operations of the tab.
const STRIDE: u64 = 17;
const MAX_STEPS: u64 = 1_000_000;

type Life = Pin<Box<dyn Future<Output = ()>>>;

/// Who lives in each tab: two actors each, chosen by the seed.
fn cast(world: &World) -> Vec<Vec<Role>> {
    if world.seed / (TABS * FAULTS.len()) as u64 % 4 == 3 {
        // Whoever is frozen is sure to meet replaced rows and versions that are gone.
        return vec![
            vec![Role::Appender, Role::Upserter],
            vec![Role::Overwriter, Role::Cleaner],
            vec![Role::Cleaner, Role::Appender],
        ];
    }
    let total: u64 = CAST.iter().map(|(_, weight)| weight).sum();
    let role = || {
        let mut at = world.below(total);
        for (role, weight) in CAST {
            if at < weight {
                return role;
            }
            at -= weight;
        }
        CAST[0].0
    };
    (0..TABS).map(|_| vec![role(), role()]).collect()
}

/// One run; how many operations each tab made.
fn run(world: &Rc<World>, fault: Option<(usize, u64, Fault)>) -> Vec<u64> {
    create(world);
    let cast = cast(world);
    world.note(format!("cast: {cast:?}"));
    let count = |role: Role| cast.iter().flatten().filter(|other| **other == role).count();
    world.changers.set(count(Role::Changer));
    world.has_cleaner.set(count(Role::Cleaner) > 0);
    let mut lives: Vec<Option<Life>> = Vec::new();
    let mut tabs: Vec<Rc<Tab>> = Vec::new();
    for (at, roles) in cast.into_iter().enumerate() {
        let tab = world.add_tab(at, fault.filter(|(tab, _, _)| *tab == at).map(|(_, op, fault)| (op, fault)));
        tabs.push(tab.clone());
        let actors = roles.into_iter().map(|role| {
            let (world, number) = (world.clone(), world.enlist());
            let actor = Actor { world: world.clone(), tab: tab.clone(), number };
            async move { world.acting(number, actor.live(role)).await }
        });
        // Actors of one tab share its engine: their commits queue, and what one has read another remembers.
        let together = futures_util::future::join_all(actors.collect::<Vec<_>>());
        lives.push(Some(Box::pin(async move {
            together.await;
        })));
    }
    let mut context = Context::from_waker(Waker::noop());
    loop {
        let step = world.steps.replace(world.steps.get() + 1);
        assert!(step < MAX_STEPS, "no progress");
        if tabs.iter().any(|tab| tab.jump_at.get().is_some_and(|at| at <= step)) {
            tabs.iter().for_each(|tab| tab.jump_at.set(tab.jump_at.get().filter(|at| *at > step)));
            world.jump(SLEEP_MS);
        }
        let awake: Vec<usize> = (0..TABS).filter(|at| lives[*at].is_some() && !tabs[*at].is_asleep()).collect();
        for (at, tab) in tabs.iter().enumerate().filter(|(_, tab)| tab.is_asleep()) {
            let is_over = tab.asleep_until.get().is_some_and(|until| until <= step) || awake.is_empty();
            if lives[at].is_some() && is_over {
                // Whoever sleeps to the end wakes up long after everybody else is done.
                world.jump(SLEEP_MS);
                tab.asleep_until.set(None);
                world.note(format!("tab {at} wakes up"));
            }
        }
        if awake.is_empty() {
            if lives.iter().all(Option::is_none) {
                break;
            }
            continue;
        }
        let at = awake[usize::try_from(world.below(awake.len() as u64)).unwrap()];
        tabs[at].pass(world.below(20));
        let is_done = lives[at].as_mut().unwrap().as_mut().poll(&mut context).is_ready();
        if is_done || tabs[at].is_lost.get() {
            lives[at] = None;
        }
    }
    invariants::deeds_are_as_told(world);
    block_on(invariants::table_is_whole(world));
    tabs.iter().map(|tab| tab.ops.get()).collect()
}

/// The table, by a tab that then is of no more interest.
fn create(world: &Rc<World>) {
    let tab = world.add_tab(TABS, None);
    let actor = world.enlist();
    let rows = first_rows(1);
    let made = world.attempt(actor, (Deed::Create(rows.clone()), None), async {
        let create = tab.database().create_table("t", schema()).await?;
        let mut create = create.with_stable_row_ids(world.has_row_ids);
        create.write(&batch(&rows)).await?;
        create.finish(Consistency::Lazy).await?;
        Ok((1, Some(4)))
    });
    block_on(world.acting(actor, made)).unwrap();
    world.tabs.borrow_mut().clear();
}

/// Runs a seed and, when an invariant breaks, tells what led there.
fn told(seed: u64, fault: Option<(usize, u64, Fault)>) -> Vec<u64> {
    let world = World::new(seed);
    let outcome = catch_unwind(AssertUnwindSafe(|| run(&world, fault)));
    outcome.unwrap_or_else(|_| {
        let trace = world.trace.borrow();
        let from = trace.len().saturating_sub(150);
        panic!("SIM_SEED={seed} with fault {fault:?}; its last steps:\n{}", trace[from..].join("\n"));
    })
}

/// Runs a seed without a fault, then with one at every n-th operation of one tab.
fn campaign(seed: u64, stride: u64) {
    let ops = told(seed, None);
    let tab = usize::try_from(seed).unwrap() % TABS;
    let fault = FAULTS[usize::try_from(seed).unwrap() / TABS % FAULTS.len()];
    for op in (seed % stride..ops[tab]).step_by(usize::try_from(stride).unwrap()) {
        told(seed, Some((tab, op, fault)));
    }
}

#[test]
fn no_fault_loses_doubles_or_tears_anything() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("SIM_SEED") {
        campaign(seed, 1);
        return;
    }
    let from = number("SIM_FROM").unwrap_or(0);
    for seed in from..from + number("SIM_SEEDS").unwrap_or(SEEDS) {
        campaign(seed, STRIDE);
    }
}

#[test]
fn a_seed_repeats_its_run() {
    let trace = |seed| {
        let world = World::new(seed);
        run(&world, Some((0, 20, Fault::Nap)));
        world.trace.take()
    };
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}
