//! Commit: publish the next manifest of a table.
//!
//! 1. `begin` takes a write lease on the version that the operation reads (it keeps that version and every newer one), reads the token of
//!    `_versions`, then looks at what is newer. A version that is no longer there, or below a gap, is left for the latest one: nothing
//!    was read from it yet. Unless an overwrite or a restore came after it: then what its caller saw is not what there is now, a conflict.
//! 2. The operation reads and writes its files.
//! 3. `commit` waits in the engine's queue for the directory, then behind the writers of all tabs (`Store::turn`): all of them do, so that
//!    one that is executed again under its turn is not overtaken by shorter ones for ever. It looks at every newer version in order. One
//!    that carries our own transaction id is an earlier attempt whose answer was lost: success. A gap, now, is a conflict and is never
//!    run again: the missing version may have been an overwrite. Each other version is judged by `conflict`.
//! 4. The operation is built on the latest version, checked against the invariants and handed to the store as one transaction: the
//!    manifest, small new files, the token read before the look, and the files that must be there.
//! 5. `Exists` and `Moved`: somebody was faster, go to 3.
//! 6. An operation that others' changes make stale is executed again on the newer version, under the same lease (`conflict::rerun`). It
//!    keeps its places in both queues meanwhile, so that of many changes of the same rows each is executed about twice.
//!
//! | crash or lost answer | what is left |
//! |---|---|
//! | before step 4 | files that no manifest names; the lease runs out; cleanup takes the files |
//! | in step 4, before its effect | the same |
//! | in step 4, after its effect | a whole commit that nobody was told of |
//! | answer of step 4 lost | step 3 finds our transaction id; when a gap, a missing file or a dropped table hides it: `OutcomeUnknown` |
//! | after step 4 | a whole commit; the lease runs out |

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::lock::Mutex;
use roaring::RoaringBitmap;

use crate::collections::{SortedMap, SortedSet};
use crate::env::{format_uuid, now_ms, random_uuid};
use crate::error::{Error, Result};
use crate::format::file::FileVersion;
use crate::format::table::{DataFile, Fragment, FragmentId, Manifest, Operation, Transaction, feature};
use crate::store::{CommitOutcome, CommitRequest, LeaseKind, Path, Token, Turn};
use crate::table::build_manifest::Given;
use crate::table::conflict::{self, Ours, Rerun, Verdict};
use crate::table::database::Engine;
use crate::table::lease::{Lease, Taken};
use crate::table::snapshot::Snapshot;
use crate::table::versions::{self, Newer};
use crate::table::{auto_cleanup, build_manifest, delete, fresh, invariants, paths};

/// Attempts at most: the bound when the clock stands still.
const MAX_ATTEMPTS: u32 = 64;
/// Attempts at least: a tab that slept is late and still has met nobody.
const MIN_ATTEMPTS: u32 = 8;
/// Time at most, the wait for a turn aside.
const MAX_MS: u64 = 30_000;
/// How long a change queues behind the writers of other tabs.
const TURN_WAIT_MS: u64 = 30_000;
/// How long no change does so after one waited in vain: the tab whose turn it is may be frozen.
const TURNLESS_MS: u64 = 300_000;
/// Executions of one operation at most, and at least.
const MAX_EXECUTIONS: u32 = 64;
const MIN_EXECUTIONS: u32 = 10;
/// More changes than are under way at once. What is remembered of each is small (`conflict::gist`).
const MAX_REMEMBERED: usize = 8_192;

/// Commits of one engine to one directory queue here.
pub(crate) struct Queue {
    lock: Mutex<()>,
    /// Own commits so far: a look from before the last one is of no use.
    commits: Cell<u64>,
    remembered: RefCell<Remembered>,
}

/// What the conflict rules ask of the commits of a run of versions: of many changes at once each is judged by all the others.
#[derive(Default)]
struct Remembered {
    first: u64,
    /// `None` for one that has to be read again.
    gists: VecDeque<Option<Rc<Transaction>>>,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue { lock: Mutex::new(()), commits: Cell::new(0), remembered: RefCell::default() }
    }

    /// What is remembered of the commit of a version.
    pub(crate) fn gist(&self, version: u64) -> Option<Rc<Transaction>> {
        let remembered = self.remembered.borrow();
        let at = usize::try_from(version.checked_sub(remembered.first)?).ok()?;
        remembered.gists.get(at).cloned().flatten()
    }

    /// Remembers a commit; the ones before it, too, when it is the next of them.
    fn remember(&self, version: u64, transaction: &Transaction) {
        let gist = conflict::gist(&transaction.operation).map(|operation| {
            let (read_version, uuid) = (transaction.read_version, transaction.uuid.clone());
            Rc::new(Transaction { read_version, uuid, operation })
        });
        let mut remembered = self.remembered.borrow_mut();
        let place = version.checked_sub(remembered.first).and_then(|at| usize::try_from(at).ok());
        match place.filter(|at| *at <= remembered.gists.len()) {
            Some(at) if at < remembered.gists.len() => return,
            Some(_) => {}
            None => *remembered = Remembered { first: version, gists: VecDeque::new() },
        }
        if remembered.gists.len() >= MAX_REMEMBERED {
            remembered.gists.pop_front();
            remembered.first += 1;
        }
        remembered.gists.push_back(gist);
    }
}

/// An operation that has begun.
pub(crate) struct Begun {
    /// The version that the operation reads.
    pub(crate) base: Rc<Snapshot>,
    lease: Lease,
    queue: Rc<Queue>,
    look: Look,
    queue_commits: u64,
}

struct Look {
    token: Token,
    newer: Vec<Newer>,
}

/// What an operation wants to be committed.
pub(crate) struct Change {
    /// Without what `rows` make of the fragments of a `Delete` or an `Update`: that is filled in on the latest version.
    pub(crate) operation: Operation,
    /// Live rows of the version read that the change deletes, by physical offset in their fragment.
    pub(crate) rows: SortedMap<FragmentId, RoaringBitmap>,
    /// Small new files, committed together with the manifest.
    pub(crate) objects: Vec<(Path, Bytes)>,
    /// New files that are in the store already; removed when the change is not committed.
    pub(crate) files: Vec<Path>,
    /// It inserts rows because no row had their keys: it is executed again when others added rows since.
    pub(crate) guards_keys: bool,
    /// The version that a `Restore` brings back.
    pub(crate) restored: Option<Rc<Snapshot>>,
    /// The format of the data files after an `Overwrite`.
    pub(crate) data_format: Option<FileVersion>,
}

impl Change {
    /// A change that deletes nothing and brings no files.
    pub(crate) fn of(operation: Operation) -> Change {
        Change {
            operation,
            rows: SortedMap::new(),
            objects: Vec::new(),
            files: Vec::new(),
            guards_keys: false,
            restored: None,
            data_format: None,
        }
    }
}

/// An operation: what it makes of a version.
#[async_trait(?Send)]
pub(crate) trait Execution {
    /// Reads `base`, writes files, and says what is to be committed; `None` = nothing, and `base` is the answer. Called again, on a newer
    /// version, when others' changes made the last answer stale: what it remembers of its results is of the last call.
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>>;
}

/// A change that is in the table.
pub(crate) struct Done {
    /// The version that has it.
    pub(crate) snapshot: Rc<Snapshot>,
    /// How often it was executed.
    pub(crate) executions: u32,
}

/// How an attempt to commit ended.
enum Outcome {
    Committed(Rc<Snapshot>),
    /// The operation has to be executed again on `latest`.
    Retry {
        theirs: &'static str,
        latest: Rc<Snapshot>,
    },
}

/// What stands in a transaction after it was built on the latest version.
struct Built {
    transaction: Transaction,
    objects: Vec<(Path, Bytes)>,
}

/// Begins an operation on a version, executes it and commits it; see [`Begun::run`].
pub(crate) async fn run(engine: &Rc<Engine>, snapshot: Rc<Snapshot>, execution: &mut dyn Execution) -> Result<Done> {
    let mut begun = begin(engine, snapshot).await?;
    let done = begun.run(engine, execution).await;
    begun.release().await;
    done
}

/// Step 1.
pub(crate) async fn begin(engine: &Rc<Engine>, snapshot: Rc<Snapshot>) -> Result<Begun> {
    let seen = snapshot.version();
    let mut base = snapshot;
    for _ in 0..8 {
        feature::check_writable(&base.manifest)?;
        let lease = match engine.leases.take(LeaseKind::Write, &base.dir, base.version(), &base.path).await? {
            Taken::Lease(lease) => lease,
            Taken::Gone => return Err(gone()),
            Taken::Missing => {
                base = versions::latest(engine, &base.dir).await?.ok_or_else(gone)?;
                continue;
            }
        };
        let queue = engine.queue(&base.dir);
        let queue_commits = queue.commits.get();
        let look = look(engine, &queue, &base).await?;
        let is_whole = look.newer.iter().zip(base.version() + 1..).all(|(newer, version)| newer.version == version);
        // Where the versions in between are gone, only the store knows that what was seen is not what there is now.
        if base.version() != seen && lease.replaced > seen {
            let version = lease.replaced;
            lease.release().await;
            let (ours, theirs) = ("a change".to_owned(), "an overwrite or a restore".to_owned());
            return Err(Error::Conflict { ours, theirs, version });
        }
        if is_whole {
            return Ok(Begun { base, lease, queue, look, queue_commits });
        }
        lease.release().await;
        base = versions::latest(engine, &base.dir).await?.ok_or_else(gone)?;
    }
    Err(Error::Contention {
        message: "the latest version was cleaned up again and again before it could be leased".into(),
    })
}

impl Begun {
    /// Nothing more is to be committed.
    pub(crate) async fn release(self) {
        self.lease.release().await;
    }

    /// Executes and commits, again and again where [`conflict::rerun`] lets it. The lease stays.
    ///
    /// # Errors
    /// What the operation says; `Conflict`, `Contention`, `TableNotFound`, `OutcomeUnknown` as the module's text says. Only after
    /// `OutcomeUnknown` may the change have taken effect; after any other its files are gone, as far as that could be done.
    pub(crate) async fn run(&mut self, engine: &Rc<Engine>, execution: &mut dyn Execution) -> Result<Done> {
        let queue = self.queue.clone();
        let started_ms = now_ms(engine.env.as_ref());
        let (mut place, mut turn) = (None, None);
        for executions in 1.. {
            let Some(change) = execution.execute(&self.base).await? else {
                return Ok(Done { snapshot: self.base.clone(), executions });
            };
            if place.is_none() {
                place = Some(queue.lock.lock().await);
                turn = take_turn(engine, &self.base).await;
            }
            let outcome = self.commit(engine, &change).await;
            if !matches!(outcome, Ok(Outcome::Committed(_)) | Err(Error::OutcomeUnknown { .. })) {
                discard(engine, &self.base, &change.files).await;
            }
            let (theirs, latest) = match outcome? {
                Outcome::Committed(snapshot) => {
                    // Others go on while this one perhaps cleans up.
                    drop((place, turn));
                    fresh::after_commit(engine, &self.base, &snapshot).await;
                    auto_cleanup::after_commit(engine, &self.base, &snapshot).await;
                    return Ok(Done { snapshot, executions });
                }
                Outcome::Retry { theirs, latest } => (theirs, latest),
            };
            let ours = change.operation.name();
            match conflict::rerun(&change.operation) {
                Rerun::Never => {
                    let version = latest.version();
                    return Err(Error::Conflict { ours: ours.to_owned(), theirs: theirs.to_owned(), version });
                }
                Rerun::Yielding => (place, turn) = (None, None),
                Rerun::Holding => {}
            }
            let is_late = now_ms(engine.env.as_ref()).saturating_sub(started_ms) > MAX_MS;
            if executions >= MAX_EXECUTIONS || (is_late && executions >= MIN_EXECUTIONS) {
                let message = format!("{ours} was executed {executions} times; the last one met {theirs}");
                return Err(Error::Contention { message });
            }
            self.rebase(engine, latest).await?;
        }
        Err(Error::internal("an operation was executed for ever"))
    }

    /// Steps 3 to 5; to be called with the queue's lock.
    async fn commit(&self, engine: &Engine, change: &Change) -> Result<Outcome> {
        let fresh = (self.queue.commits.get() == self.queue_commits)
            .then(|| Look { token: self.look.token.clone(), newer: self.look.newer.clone() });
        let uuid = format_uuid(&random_uuid(engine.env.as_ref()));
        let fragments = fragments_of(change);
        let mut attempt = Attempt {
            engine,
            queue: &self.queue,
            uuid: &uuid,
            change,
            fragments: &fragments,
            base: self.base.clone(),
            cursor: self.base.clone(),
            lost: None,
        };
        let outcome = attempt.run(fresh).await;
        if matches!(outcome, Ok(Outcome::Committed(_))) {
            self.queue.commits.set(self.queue.commits.get() + 1);
        }
        outcome
    }

    /// Goes to a newer version, under the lease there is: that keeps every newer version, too.
    async fn rebase(&mut self, engine: &Engine, latest: Rc<Snapshot>) -> Result<()> {
        feature::check_writable(&latest.manifest)?;
        self.queue_commits = self.queue.commits.get();
        self.look = look(engine, &self.queue, &latest).await?;
        self.base = latest;
        Ok(())
    }
}

/// Waits behind the writers of all tabs. A wait in vain costs fairness, not safety.
async fn take_turn(engine: &Engine, snapshot: &Snapshot) -> Option<Box<dyn Turn>> {
    if now_ms(engine.env.as_ref()) < engine.turnless_until_ms.get() {
        return None;
    }
    let turn = engine.store.turn(&snapshot.dir, TURN_WAIT_MS).await.unwrap_or(None);
    if turn.is_none() {
        engine.turnless_until_ms.set(now_ms(engine.env.as_ref()).saturating_add(TURNLESS_MS));
    }
    turn
}

/// Fragments whose rows a change deletes or moves.
fn fragments_of(change: &Change) -> SortedSet<FragmentId> {
    match &change.operation {
        operation @ (Operation::Rewrite { .. } | Operation::DataReplacement { .. }) => {
            conflict::touched(operation).into_iter().collect()
        }
        _ => change.rows.keys().copied().collect(),
    }
}

/// Best effort: nothing names these files, and cleanup finds what is left of them.
async fn discard(engine: &Engine, snapshot: &Snapshot, files: &[Path]) {
    for path in files {
        let _ = engine.store.delete(&snapshot.dir, path).await;
    }
}

/// The token is read before the look: what appears in between moves it.
async fn look(engine: &Engine, queue: &Queue, cursor: &Snapshot) -> Result<Look> {
    let token = engine.store.token(&cursor.dir, &paths::versions_folder()).await?;
    let newer = versions::newer_than(engine.store.as_ref(), cursor, &|version| queue.gist(version).is_some()).await?;
    Ok(Look { token, newer })
}

struct Attempt<'a> {
    engine: &'a Engine,
    queue: &'a Queue,
    uuid: &'a str,
    change: &'a Change,
    fragments: &'a SortedSet<FragmentId>,
    /// What the operation read.
    base: Rc<Snapshot>,
    /// The newest version that was judged.
    cursor: Rc<Snapshot>,
    /// The version of an attempt whose answer was lost and that may have taken effect, or still may.
    lost: Option<u64>,
}

impl Attempt<'_> {
    async fn run(&mut self, fresh: Option<Look>) -> Result<Outcome> {
        let mut fresh = fresh;
        let started_ms = now_ms(self.engine.env.as_ref());
        for attempt in 0..MAX_ATTEMPTS {
            let is_late = now_ms(self.engine.env.as_ref()).saturating_sub(started_ms) > MAX_MS;
            if is_late && attempt >= MIN_ATTEMPTS {
                break;
            }
            let look = match fresh.take() {
                Some(look) => look,
                None => look(self.engine, self.queue, &self.cursor).await.map_err(|error| self.hidden(error))?,
            };
            match self.judge(&look.newer).await? {
                Judged::Passed => {}
                Judged::Decided(outcome) => return Ok(outcome),
                Judged::Vanished => continue,
            }
            feature::check_writable(&self.cursor.manifest).map_err(|error| self.hidden(error))?;
            let allowed = fresh::check_change(self.engine, &self.cursor, &self.change.operation).await;
            allowed.map_err(|error| self.hidden(error))?;
            let built = match self.build().await.map_err(|error| self.hidden(error))? {
                Some(built) => built,
                None => return Ok(Outcome::Retry { theirs: "a change of the same rows", latest: self.cursor.clone() }),
            };
            match self.publish(look.token, built).await? {
                Published::Committed(snapshot) => return Ok(Outcome::Committed(snapshot)),
                Published::Lost | Published::Overtaken => {}
            }
        }
        Err(self.hidden(Error::Contention {
            message: format!("{} was overtaken by other commits again and again", self.ours_name()),
        }))
    }

    /// Judges newer versions and moves the cursor over them: by what is remembered of them, and else by their manifests.
    async fn judge(&mut self, newer: &[Newer]) -> Result<Judged> {
        let change = self.change;
        let ours = Ours { operation: &change.operation, fragments: self.fragments, guards_keys: change.guards_keys };
        let mut retry = None;
        // The last version that was read: what is remembered left its schema as it was.
        let mut seen = self.cursor.clone();
        let last = newer.last().map_or(0, |newer| newer.version);
        for (newer, expected) in newer.iter().zip(self.cursor.version() + 1..) {
            if newer.version != expected {
                return Err(self.gap(expected));
            }
            let remembered = self.queue.gist(expected);
            // The last one is what ours is built on, and an attempt that took effect is what the caller gets.
            if expected == last || remembered.as_ref().is_none_or(|theirs| theirs.uuid == self.uuid) {
                seen = match versions::load_path(self.engine, &seen.dir, expected, &newer.path).await {
                    Ok(snapshot) => snapshot,
                    Err(Error::NotFound { .. }) => return Ok(Judged::Vanished),
                    Err(error) => return Err(self.hidden(error)),
                };
            }
            let theirs = match remembered {
                Some(theirs) => theirs,
                None => {
                    let theirs = versions::transaction(self.engine, &seen).await.map_err(|error| self.hidden(error))?;
                    self.queue.remember(expected, &theirs);
                    Rc::new(theirs)
                }
            };
            if theirs.uuid == self.uuid {
                return Ok(Judged::Decided(Outcome::Committed(seen)));
            }
            // Another commit stands where the lost one would have: it did not take effect and never will.
            self.lost = self.lost.filter(|lost| *lost != expected);
            match conflict::check(ours, &theirs.operation, &seen.manifest.schema) {
                Verdict::Compatible | Verdict::Rebase => {}
                Verdict::Retry => retry = Some(theirs.operation.name()),
                Verdict::RetryHere => {
                    let (theirs, latest) = (theirs.operation.name(), seen);
                    return Ok(Judged::Decided(Outcome::Retry { theirs, latest }));
                }
                Verdict::Incompatible => {
                    return Err(Error::Conflict {
                        ours: self.ours_name().to_owned(),
                        theirs: theirs.operation.name().to_owned(),
                        version: expected,
                    });
                }
            }
        }
        self.cursor = seen;
        let latest = self.cursor.clone();
        Ok(retry.map_or(Judged::Passed, |theirs| Judged::Decided(Outcome::Retry { theirs, latest })))
    }

    /// The change on the latest version; `None` when it has to be executed again.
    async fn build(&self) -> Result<Option<Built>> {
        let change = self.change;
        let mut transaction = Transaction {
            read_version: self.base.version(),
            uuid: self.uuid.to_owned(),
            operation: change.operation.clone(),
        };
        let mut objects = change.objects.clone();
        if let Operation::Delete { updated, deleted: removed, .. } | Operation::Update { updated, removed, .. } =
            &mut transaction.operation
        {
            let Some(deleted) = delete::build(self.engine, &self.base, &self.cursor, &change.rows).await? else {
                return Ok(None);
            };
            if deleted.is_rebased {
                transaction.read_version = self.cursor.version();
            }
            updated.extend(deleted.updated);
            removed.extend(deleted.removed);
            objects.extend(deleted.objects);
        }
        Ok(Some(Built { transaction, objects }))
    }

    async fn publish(&mut self, token: Token, built: Built) -> Result<Published> {
        let previous = &self.cursor.manifest;
        let transaction = built.transaction.clone();
        let given = Given {
            restored: self.change.restored.as_ref().map(|snapshot| snapshot.manifest.as_ref()),
            data_format: self.change.data_format,
        };
        let next = build_manifest::next(previous, built.transaction, given, self.engine.env.now_ns())?;
        invariants::check(previous, &next, &transaction)?;
        let path = versions::path_beside(&self.cursor, next.version.0);
        let replaces = match &transaction.operation {
            Operation::Overwrite { .. } | Operation::Restore { .. } => Some(next.version.0),
            _ => None,
        };
        let requires = new_files(previous, &next)
            .into_iter()
            .filter(|path| !built.objects.iter().any(|(object, _)| object == path))
            .collect();
        let request = CommitRequest {
            dir: self.cursor.dir.clone(),
            objects: built.objects,
            publish: (path.clone(), Bytes::from(next.encode())),
            token,
            requires,
            replaces,
        };
        match self.engine.store.commit(request).await {
            Ok(CommitOutcome::Committed) => {
                let manifest = self.engine.cache.manifests.insert(&self.cursor.dir, &path, next);
                let snapshot = Snapshot { dir: self.cursor.dir.clone(), path, manifest, parts: None };
                self.queue.remember(snapshot.version(), &transaction);
                Ok(Published::Committed(Rc::new(snapshot)))
            }
            Ok(CommitOutcome::Exists | CommitOutcome::Moved) => Ok(Published::Overtaken),
            Ok(CommitOutcome::Gone) => Err(self.hidden(gone())),
            Ok(CommitOutcome::Missing(path)) => Err(self.hidden(Error::Conflict {
                ours: self.ours_name().to_owned(),
                theirs: format!("a cleanup that took {path}"),
                version: self.cursor.version(),
            })),
            // A store that is not available may have been lost while it answered.
            Err(Error::OutcomeUnknown { .. } | Error::Unavailable { .. }) => {
                self.lost = Some(next.version.0);
                Ok(Published::Lost)
            }
            Err(error) => Err(self.hidden(error)),
        }
    }

    fn gap(&self, missing: u64) -> Error {
        self.hidden(Error::Conflict {
            ours: self.ours_name().to_owned(),
            theirs: "a cleanup of versions that this change did not see".to_owned(),
            version: missing,
        })
    }

    /// An error that may hide a lost attempt's effect must not look like a plain failure.
    fn hidden(&self, error: Error) -> Error {
        match self.lost {
            None => error,
            Some(version) => Error::OutcomeUnknown {
                message: format!(
                    "the answer of a commit of version {version} was lost and whether it took effect can't be found out: {error}"
                ),
            },
        }
    }

    fn ours_name(&self) -> &'static str {
        self.change.operation.name()
    }
}

enum Judged {
    /// Nothing newer is in the way.
    Passed,
    Decided(Outcome),
    /// A version that was listed is not there any more: cleaned up, or gone with its table. The next look tells.
    Vanished,
}

enum Published {
    Committed(Rc<Snapshot>),
    Overtaken,
    Lost,
}

/// The directory is not live: the caller knows the table's name.
pub(crate) fn gone() -> Error {
    Error::TableNotFound { name: String::new() }
}

/// Files that a version names.
pub(crate) fn files(manifest: &Manifest) -> Vec<Path> {
    manifest.fragments.iter().flat_map(|fragment| files_of(fragment, None)).collect()
}

/// Files that `next` names and `previous` does not.
fn new_files(previous: &Manifest, next: &Manifest) -> Vec<Path> {
    let old: SortedMap<FragmentId, &Fragment> =
        previous.fragments.iter().map(|fragment| (fragment.id, fragment)).collect();
    next.fragments.iter().flat_map(|fragment| files_of(fragment, old.get(&fragment.id).copied())).collect()
}

fn files_of(fragment: &Fragment, before: Option<&Fragment>) -> Vec<Path> {
    let is_new = |file: &&DataFile| !before.is_some_and(|before| before.files.contains(file));
    let mut files: Vec<Path> = fragment.files.iter().filter(is_new).map(|file| paths::data_file(&file.path)).collect();
    if let Some(deletion) = &fragment.deletion
        && before.is_none_or(|before| before.deletion.as_ref() != Some(deletion))
    {
        files.push(paths::deletion_file(fragment.id, deletion));
    }
    files
}
