//! The world: one store, tabs with clocks of their own, and what really happened.
//!
//! Every commit that takes effect is written down with the deed that it belongs to, so that afterwards no outcome is unknown: the model of
//! a version is the deeds up to it, applied in order.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending, poll_fn};
use std::rc::{Rc, Weak};
use std::task::Poll;

use futures_util::FutureExt;
use lancelet::env::{Env, FixedEnv};
use lancelet::format::table::layout;
use lancelet::store::fault::yield_once;
use lancelet::store::memory::MemoryStore;
use lancelet::store::observed::{Hook, Observed, Op};
use lancelet::store::{DirId, Path, Store};
use lancelet::table::Database;
use lancelet::{Error, ErrorCode, Result};

use crate::builders::block_on;
use crate::invariants::Checked;
use crate::model::{Deed, State};

pub const START_NS: u64 = 1_700_000_000_000_000_000;
/// Longer than any lease and any wait.
pub const SLEEP_MS: u64 = 700_000;
/// How often a host renews leases.
const RENEW_EVERY_MS: u64 = 8_000;
/// Steps between falling asleep and the jump of all clocks.
const STEPS_TO_JUMP: u64 = 15;

/// How a deed ended for its actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Not yet, or its tab was lost.
    No,
    /// The version that did it and, where the answer tells it, the number of rows; 0 for a deed that needed no version.
    Done {
        version: u64,
        rows: Option<u64>,
    },
    Failed,
    Unknown,
}

#[derive(Debug)]
pub struct Record {
    pub deed: Deed,
    /// The version that its handle stood on, where nothing newer was asked for.
    pub base: Option<u64>,
    pub ended: Ended,
}

/// What happens to the tab that meets a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    LostBefore,
    LostAfter,
    AnswerLost,
    /// Frozen until everybody else is done.
    Sleep,
    /// Frozen past every timeout, and thawed while others still work.
    Nap,
}

pub const FAULTS: [Fault; 5] = [Fault::LostBefore, Fault::LostAfter, Fault::AnswerLost, Fault::Sleep, Fault::Nap];

/// Operations that change something: their answers may be lost.
const WRITES: [&str; 9] =
    ["commit", "publish_dir", "drop_dir", "create_dir", "lease", "release", "put_ref", "remove", "sweep"];

/// Operations that say when they were begun.
const TIMED: [&str; 4] = ["create_dir", "lease", "leases", "remove"];

pub struct World {
    pub seed: u64,
    pub memory: Rc<dyn Store>,
    /// Its randomness is the schedule.
    pub env: Rc<FixedEnv>,
    pub tabs: RefCell<Vec<Rc<Tab>>>,
    pub deeds: RefCell<Vec<Record>>,
    /// The deeds of each table that ever was, by version from 1.
    pub lives: RefCell<BTreeMap<DirId, Vec<usize>>>,
    /// The model of their versions, as far as it was asked for.
    states: RefCell<BTreeMap<DirId, Vec<Rc<State>>>>,
    /// Whether rows have stable ids.
    pub has_row_ids: bool,
    /// How many change the schema.
    pub changers: Cell<usize>,
    pub has_cleaner: Cell<bool>,
    /// The first versions of tables that have no name yet.
    unborn: RefCell<BTreeSet<usize>>,
    /// The deed of each actor.
    doing: RefCell<Vec<Option<usize>>>,
    /// The actor that is being polled.
    acting: Cell<usize>,
    /// Whether anybody began to drop the table.
    pub is_dropping: Cell<bool>,
    /// Whether a cleanup may have removed versions.
    pub is_cleaned: Cell<bool>,
    /// Whether clocks went on past every timeout while tabs were at work.
    pub has_jumped: Cell<bool>,
    pub steps: Cell<u64>,
    pub trace: RefCell<Vec<String>>,
    pub checked: Checked,
}

/// A tab: an engine and its way to the store.
pub struct Tab {
    pub world: Weak<World>,
    pub number: usize,
    pub env: Rc<FixedEnv>,
    pub database: RefCell<Option<Database>>,
    pub ops: Cell<u64>,
    /// The operation that meets the fault.
    fault: Option<(u64, Fault)>,
    pub was_hit: Cell<bool>,
    /// Operations under way that said when they were begun: to them a jump of all clocks is as a freeze.
    timed: Cell<u32>,
    pub is_lost: Cell<bool>,
    /// The step at which it wakes up; `u64::MAX` = when everybody else is done.
    pub asleep_until: Cell<Option<u64>>,
    /// The step at which time goes on past all timeouts for a nap.
    pub jump_at: Cell<Option<u64>>,
    /// Renewing leases is no operation of an actor.
    is_host: Cell<bool>,
    renewed_ms: Cell<u64>,
}

impl World {
    pub fn new(seed: u64) -> Rc<World> {
        let env = Rc::new(FixedEnv::new(seed * 1_000, START_NS));
        Rc::new(World {
            seed,
            memory: Rc::new(MemoryStore::new(env.clone())),
            env,
            tabs: RefCell::default(),
            deeds: RefCell::default(),
            lives: RefCell::default(),
            states: RefCell::default(),
            // Of every fault and every tab a share.
            has_row_ids: seed % 7 < 3,
            changers: Cell::new(0),
            has_cleaner: Cell::new(false),
            unborn: RefCell::default(),
            doing: RefCell::default(),
            acting: Cell::new(0),
            is_dropping: Cell::new(false),
            is_cleaned: Cell::new(false),
            has_jumped: Cell::new(false),
            steps: Cell::new(0),
            trace: RefCell::default(),
            checked: Checked::default(),
        })
    }

    pub fn below(&self, end: u64) -> u64 {
        self.env.random_u64() % end
    }

    pub fn add_tab(self: &Rc<World>, number: usize, fault: Option<(u64, Fault)>) -> Rc<Tab> {
        // Clocks differ by up to some seconds; no two tabs draw the same ids.
        let start_ns = START_NS + number as u64 * 2_500_000_000;
        let tab = Rc::new(Tab {
            world: Rc::downgrade(self),
            number,
            env: Rc::new(FixedEnv::new(self.seed * 1_000 + number as u64 + 1, start_ns)),
            database: RefCell::default(),
            ops: Cell::new(0),
            fault,
            was_hit: Cell::new(false),
            timed: Cell::new(0),
            is_lost: Cell::new(false),
            asleep_until: Cell::new(None),
            jump_at: Cell::new(None),
            is_host: Cell::new(false),
            renewed_ms: Cell::new(start_ns / 1_000_000),
        });
        let store: Rc<dyn Store> = Rc::new(Observed::new(self.memory.clone(), tab.clone()));
        tab.database.replace(Some(Database::new(store, tab.env.clone())));
        self.tabs.borrow_mut().push(tab.clone());
        tab
    }

    /// The directory that the name points at now.
    pub fn live_dir(&self) -> Option<DirId> {
        block_on(self.memory.lookup("t")).unwrap()
    }

    /// Gives a new actor its number.
    pub fn enlist(&self) -> usize {
        let mut doing = self.doing.borrow_mut();
        doing.push(None);
        doing.len() - 1
    }

    /// Runs a life as that of an actor: what is committed while it is polled is its deed.
    pub async fn acting<T>(&self, actor: usize, life: impl Future<Output = T>) -> T {
        let mut life = std::pin::pin!(life);
        poll_fn(|context| {
            self.acting.set(actor);
            life.as_mut().poll(context)
        })
        .await
    }

    /// Does a deed; the answer of one that was done.
    pub async fn attempt(
        &self,
        actor: usize,
        (deed, base): (Deed, Option<u64>),
        work: impl Future<Output = Result<(u64, Option<u64>)>>,
    ) -> Result<u64> {
        let number = self.deeds.borrow().len();
        self.deeds.borrow_mut().push(Record { deed, base, ended: Ended::No });
        self.doing.borrow_mut()[actor] = Some(number);
        let outcome = work.await;
        self.doing.borrow_mut()[actor] = None;
        let ended = match &outcome {
            Ok((version, rows)) => Ended::Done { version: *version, rows: *rows },
            Err(Error::OutcomeUnknown { .. }) => Ended::Unknown,
            Err(_) => Ended::Failed,
        };
        self.note(format!("actor {actor}: deed {number} {:?}: {ended:?}", self.deeds.borrow()[number].deed));
        self.deeds.borrow_mut()[number].ended = ended;
        outcome.map(|(version, _)| version)
    }

    fn deed(&self) -> Option<usize> {
        self.doing.borrow().get(self.acting.get()).copied().flatten()
    }

    /// The clock that is furthest ahead.
    pub fn latest_ms(&self) -> u64 {
        let tabs = self.tabs.borrow();
        tabs.iter().map(|tab| tab.env.now_ns()).max().unwrap_or(START_NS) / 1_000_000
    }

    pub fn note(&self, line: String) {
        self.trace.borrow_mut().push(line);
    }

    /// Whether anybody began a deed of a kind.
    pub fn any(&self, is: impl Fn(&Deed) -> bool) -> bool {
        self.deeds.borrow().iter().any(|record| is(&record.deed))
    }

    /// Whether a manifest stands in the live directory.
    fn has(&self, path: &str) -> Option<(DirId, bool)> {
        let dir = self.live_dir()?;
        let found = block_on(self.memory.head(&dir, &Path::default().join(path))).unwrap();
        Some((dir, found.is_some()))
    }

    /// Runs an operation on the store and writes down what it did.
    async fn observe<T>(&self, op: &Op, call: impl Future<Output = Result<T>>) -> Result<T> {
        let before = if op.name == "commit" { self.has(&op.path) } else { None };
        // Memory answers at once: nothing comes between the effect and its record.
        let answer = call.now_or_never().expect("memory answers at once");
        match op.name {
            "commit" if answer.is_ok() => self.committed(op, before),
            "publish_dir" if answer.is_ok() => {
                // A table that is known already had the name first.
                if let (Some(dir), Some(deed)) = (self.live_dir(), self.deed())
                    && !self.lives.borrow().contains_key(&dir)
                    && self.unborn.borrow_mut().remove(&deed)
                {
                    self.lives.borrow_mut().insert(dir, vec![deed]);
                }
            }
            _ => {}
        }
        if WRITES.contains(&op.name) || op.name == "delete" {
            self.checked.check(self);
        }
        answer
    }

    fn committed(&self, op: &Op, before: Option<(DirId, bool)>) {
        let deed = self.deed().expect("a commit of no deed");
        if matches!(self.deeds.borrow()[deed].deed, Deed::Create(_)) {
            self.unborn.borrow_mut().insert(deed);
            return;
        }
        let (Some((dir, false)), Some((_, true))) = (before, self.has(&op.path)) else { return };
        let name = op.path.rsplit('/').next().unwrap();
        let version = layout::parse_manifest_name(name).expect("a manifest's name").0.0;
        let mut lives = self.lives.borrow_mut();
        let history = lives.get_mut(&dir).expect("a table that nobody made");
        history.push(deed);
        assert_eq!(version, history.len() as u64, "a version that does not follow the last one");
        self.note(format!("    version {version} is deed {deed}"));
    }

    /// Everybody's clock goes on; who is awake keeps its leases.
    pub fn jump(&self, ms: u64) {
        self.note(format!("all clocks go on by {ms} ms"));
        self.has_jumped.set(true);
        for tab in self.tabs.borrow().iter().filter(|tab| tab.timed.get() > 0) {
            tab.was_hit.set(true);
        }
        for _ in 0..ms.div_ceil(RENEW_EVERY_MS) {
            self.env.advance_ms(RENEW_EVERY_MS);
            let tabs = self.tabs.borrow().clone();
            tabs.iter().for_each(|tab| tab.env.advance_ms(RENEW_EVERY_MS));
            tabs.iter().for_each(|tab| tab.renew());
        }
    }

    /// The model of every version of a table, from 1.
    pub fn states(&self, dir: &DirId) -> Vec<Rc<State>> {
        let (deeds, lives, mut all) = (self.deeds.borrow(), self.lives.borrow(), self.states.borrow_mut());
        let states = all.entry(dir.clone()).or_default();
        for number in lives.get(dir).into_iter().flatten().skip(states.len()) {
            let record = &deeds[*number];
            let next = record.deed.apply(states, record.base);
            states.push(Rc::new(next));
        }
        states.clone()
    }
}

impl Tab {
    pub fn database(&self) -> Database {
        self.database.borrow().clone().unwrap()
    }

    pub fn is_asleep(&self) -> bool {
        self.asleep_until.get().is_some()
    }

    /// What the host does every some seconds.
    pub fn renew(&self) {
        if self.is_asleep() || self.is_lost.get() {
            return;
        }
        self.is_host.set(true);
        block_on(self.database().maintain()).unwrap();
        self.is_host.set(false);
        self.renewed_ms.set(self.env.now_ns() / 1_000_000);
    }

    pub fn pass(&self, ms: u64) {
        self.env.advance_ms(ms);
        if self.env.now_ns() / 1_000_000 >= self.renewed_ms.get() + RENEW_EVERY_MS {
            self.renew();
        }
    }

    /// Errors that an actor of this tab may meet.
    pub fn may_meet(&self, error: &Error) {
        self.may(error, &Deed::Tidy);
    }

    /// Errors that a deed may meet.
    pub fn may(&self, error: &Error, deed: &Deed) {
        let world = self.world.upgrade().unwrap();
        let is_replaced = world.any(Deed::is_replacing);
        // Whoever alone changes the schema finds it as it was.
        let is_crowded = world.changers.get() > 1 || is_replaced || world.is_dropping.get() || self.was_hit.get();
        let is_crossed = deed.is_of_schema() && is_crowded;
        let is_allowed = match error.code() {
            ErrorCode::TableNotFound => world.is_dropping.get(),
            // An idle handle keeps nothing.
            ErrorCode::NotFound => world.is_dropping.get() || world.is_cleaned.get() || is_crossed,
            ErrorCode::TableExists => matches!(deed, Deed::Create(_)) && world.is_dropping.get(),
            ErrorCode::AlreadyExists => is_crossed,
            // Rows with nulls came meanwhile.
            ErrorCode::InvalidInput => is_crossed || matches!(deed, Deed::LetNulls { is_nullable: false, .. }),
            ErrorCode::Schema => match deed {
                // The handle stood on a version that is gone.
                Deed::Append(..) => world.is_cleaned.get() && world.any(Deed::is_of_schema),
                Deed::Upsert(_) | Deed::Overwrite(_) => world.any(Deed::is_narrowing),
                _ => is_crossed,
            },
            ErrorCode::Conflict => {
                let is_overtaken = self.was_hit.get() && world.is_cleaned.get();
                let is_misfit = matches!(deed, Deed::Append(..))
                    && world.any(|deed| deed.is_narrowing() || matches!(deed, Deed::Cast { .. } | Deed::Drop(_)));
                is_overtaken || is_replaced || is_crossed || is_misfit
            }
            // Writers of one memory do not queue: whoever is slow may be overtaken until it is late.
            ErrorCode::Contention => world.has_jumped.get(),
            ErrorCode::OutcomeUnknown | ErrorCode::Timeout | ErrorCode::Unavailable => self.was_hit.get(),
            _ => false,
        };
        assert!(is_allowed, "a tab met {error:?} at {deed:?}");
    }
}

impl Hook for Tab {
    async fn around<T>(&self, op: Op, call: impl Future<Output = Result<T>>, _: impl Fn(&T) -> u64) -> Result<T> {
        let world = self.world.upgrade().unwrap();
        if self.is_host.get() {
            return call.await;
        }
        let number = self.ops.replace(self.ops.get() + 1);
        let is_timed = u32::from(TIMED.contains(&op.name));
        self.timed.set(self.timed.get() + is_timed);
        yield_once().await;
        self.timed.set(self.timed.get() - is_timed);
        let fault = self.fault.filter(|(at, _)| *at == number).map(|(_, fault)| fault);
        self.was_hit.set(self.was_hit.get() || fault.is_some());
        let told = fault.map_or_else(String::new, |fault| format!(": {fault:?}"));
        world.note(format!("tab {} op {number}: {} {}{told}", self.number, op.name, op.path));
        match fault {
            None => world.observe(&op, call).await,
            Some(Fault::LostBefore) => {
                self.is_lost.set(true);
                pending().await
            }
            Some(Fault::LostAfter) => {
                let _ = world.observe(&op, call).await;
                self.is_lost.set(true);
                pending().await
            }
            Some(Fault::AnswerLost) if WRITES.contains(&op.name) => {
                world.observe(&op, call).await?;
                Err(Error::OutcomeUnknown { message: format!("the answer of {} was lost", op.name) })
            }
            Some(Fault::AnswerLost) => world.observe(&op, call).await,
            Some(Fault::Sleep | Fault::Nap) => {
                let step = world.steps.get();
                let (wake, jump) = match fault {
                    Some(Fault::Nap) => (step + STEPS_TO_JUMP + 20 + world.below(100), Some(step + STEPS_TO_JUMP)),
                    _ => (u64::MAX, None),
                };
                self.asleep_until.set(Some(wake));
                self.jump_at.set(jump);
                poll_fn(|_| if self.is_asleep() { Poll::Pending } else { Poll::Ready(()) }).await;
                world.observe(&op, call).await
            }
        }
    }
}
