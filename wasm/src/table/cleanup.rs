//! Cleanup: removes old versions, the files that only they name, and files that no version names.
//!
//! 1. `check`, before anything is written: the options, then the tags of versions that would go.
//! 2. Read the pins and the token of `_versions`, then look (`look`): references, leases, every manifest, every file.
//! 3. Plan (`plan`, pure): which versions stay and why, which files go.
//! 4. `Store::remove`: one transaction that fails when a tag, a restore or a lease gave an old version new life since step 2, or when
//!    files that no version named are to go and a version was committed since. Then again from 2.
//!
//! | crash | what is left |
//! |---|---|
//! | before step 4, or in it before its effect | everything |
//! | in step 4, after its effect | bodies without an object, which the store sweeps; on file systems, files without a version |
//!
//! A manifest or a reference that cannot be read ends the cleanup before it took anything: what it names is not known.

mod look;
mod plan;

use crate::error::{Error, Result};
use crate::format::table::feature;
use crate::store::{LeaseKind, Path, RemoveOutcome, RemoveRequest};
use crate::table::database::Engine;
use crate::table::handle::Table;
use crate::table::snapshot::Snapshot;
use crate::table::{commit, paths, versions};

use crate::env::now_ms;
pub use plan::{CleanupPreview, KeepReason, KeptVersion, RemovedVersion};
use plan::{GarbageKind, Rules};

const NANOS_PER_MS: i128 = 1_000_000;
/// Versions and files younger than this stay unless the options say otherwise.
const DEFAULT_AGE_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
/// Versions younger than this may be needed by a write under way.
const SAFE_AGE_MS: i64 = 10 * 60 * 1_000;
/// How often a cleanup is planned again because its plan was overtaken.
const MAX_PLANS: u32 = 16;
/// From this plan on, files that no version named are left for the next cleanup: busy writers overtake them again and again.
const PLANS_WITH_UNVERIFIED: u32 = 4;

/// What a cleanup may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupOptions {
    /// Versions older than this may go; negative for a moment to come. `None` = 7 days. Under 10 minutes only with `delete_unverified`.
    pub older_than_ms: Option<i64>,
    /// Take files that no version names whatever their age; by default only those older than 7 days. Nobody may be writing.
    pub delete_unverified: bool,
    /// Fail when a version that would go has a tag, instead of keeping it.
    pub error_if_tagged: bool,
}

impl Default for CleanupOptions {
    fn default() -> CleanupOptions {
        CleanupOptions { older_than_ms: None, delete_unverified: false, error_if_tagged: true }
    }
}

/// What a cleanup took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanupStats {
    /// Of all files that are gone, manifests included.
    pub bytes_removed: u64,
    pub old_versions_removed: u64,
}

/// Options that may be followed.
pub(crate) struct Checked {
    age_ms: i64,
    delete_unverified: bool,
}

impl Table {
    /// Removes old versions and garbage, without compacting first.
    ///
    /// # Errors
    /// `InvalidInput` for an age under 10 minutes without `delete_unverified`, for tagged versions as the options say, and on a handle that
    /// is checked out; `Contention` with `delete_unverified` while somebody writes; `Corrupt` and `NotSupported` for a manifest or a
    /// reference that cannot be read. Whatever the error, no version lacks a file.
    pub async fn cleanup(&self, options: &CleanupOptions) -> Result<CleanupStats> {
        let snapshot = self.writable()?;
        let name_it = |error| self.name_it(error);
        let checked = check(self.engine(), &snapshot, options).await.map_err(name_it)?;
        run(self.engine(), &snapshot, &checked).await.map_err(name_it)
    }

    /// What a cleanup of the latest version would take and why it would leave the rest; writes nothing. Tagged versions are no error here.
    ///
    /// # Errors
    /// As `cleanup`.
    pub async fn preview_cleanup(&self, options: &CleanupOptions) -> Result<CleanupPreview> {
        let standing = self.writable()?;
        let engine = self.engine();
        let preview = async {
            let latest = versions::latest(engine, &standing.dir).await?.ok_or_else(commit::gone)?;
            let tolerant = CleanupOptions { error_if_tagged: false, ..*options };
            let checked = check(engine, &latest, &tolerant).await?;
            Ok(look::look(engine, &latest, rules(engine, &latest, &checked)).await?.plan)
        };
        preview.await.map_err(|error| self.name_it(error))
    }
}

/// Step 1. To be called before anything is written for a call that also cleans up.
///
/// # Errors
/// As [`Table::cleanup`].
pub(crate) async fn check(engine: &Engine, snapshot: &Snapshot, options: &CleanupOptions) -> Result<Checked> {
    let age_ms = options.older_than_ms.unwrap_or(DEFAULT_AGE_MS);
    if age_ms < SAFE_AGE_MS && !options.delete_unverified {
        return Err(Error::invalid_input(
            "cleanup age must be at least 10 minutes unless delete_unverified is true; \
             short cleanup windows can remove a manifest still needed by an in-progress write",
        ));
    }
    feature::check_writable(&snapshot.manifest)?;
    let checked = Checked { age_ms, delete_unverified: options.delete_unverified };
    if options.error_if_tagged {
        let tagged = look::old_tags(engine, snapshot, &rules(engine, snapshot, &checked)).await?;
        if !tagged.is_empty() {
            let list: Vec<String> = tagged.iter().map(|(name, version)| format!("{name:?}: {version}")).collect();
            return Err(Error::invalid_input(format!(
                "Cleanup error: {} tagged version(s) have been marked for cleanup. Either set \
                 `error_if_tagged_old_versions=false` or delete the following tag(s) to enable cleanup: {{{}}}",
                tagged.len(),
                list.join(", ")
            )));
        }
    }
    if options.delete_unverified {
        // What this engine gave up and has not ended yet is nobody's write.
        engine.leases.end_abandoned().await?;
        let leases = engine.store.leases(&snapshot.dir, now_ms(engine.env.as_ref())).await?;
        if leases.iter().any(|lease| lease.kind == LeaseKind::Write) {
            return Err(contended());
        }
    }
    Ok(checked)
}

/// Steps 2 to 4. `snapshot` is the newest version that the caller knows: it and all newer ones stay.
///
/// # Errors
/// `Contention`, `TableNotFound`, `Corrupt`, `NotSupported`.
pub(crate) async fn run(engine: &Engine, snapshot: &Snapshot, checked: &Checked) -> Result<CleanupStats> {
    let mut stats = CleanupStats::default();
    for attempt in 0..MAX_PLANS {
        let found = look::look(engine, snapshot, rules(engine, snapshot, checked)).await?;
        let plan = found.plan;
        let takes_unverified = checked.delete_unverified || attempt < PLANS_WITH_UNVERIFIED;
        let files: Vec<Path> = plan
            .files
            .iter()
            .filter(|file| takes_unverified || file.kind == GarbageKind::OldVersion)
            .map(|file| file.path.clone())
            .collect();
        let has_unverified = takes_unverified && plan.files.iter().any(|file| file.kind == GarbageKind::Unverified);
        if plan.removed.is_empty() && files.is_empty() {
            return Ok(stats);
        }
        let request = RemoveRequest {
            dir: snapshot.dir.clone(),
            manifests: plan.removed.iter().map(|version| (version.version, version.path.clone())).collect(),
            files: files.clone(),
            pins: found.pins,
            token: has_unverified.then_some((paths::versions_folder(), found.token)),
            needs_no_writer: checked.delete_unverified,
            now_ms: now_ms(engine.env.as_ref()),
        };
        match engine.store.remove(request).await {
            Ok(RemoveOutcome::Removed { manifests, bytes, .. }) => {
                stats.old_versions_removed += manifests;
                stats.bytes_removed += bytes;
                return Ok(stats);
            }
            Ok(RemoveOutcome::Moved) => {}
            Ok(RemoveOutcome::Contended) => return Err(contended()),
            Ok(RemoveOutcome::Gone) => return Err(commit::gone()),
            // What is not there any more was taken; the next plan takes the rest.
            Err(Error::OutcomeUnknown { .. } | Error::Unavailable { .. }) => {
                count_gone(engine, snapshot, &plan, &files, &mut stats).await?;
            }
            Err(error) => return Err(error),
        }
    }
    let message = "references and versions changed again and again while the cleanup was planned".into();
    Err(Error::Contention { message })
}

async fn count_gone(
    engine: &Engine,
    snapshot: &Snapshot,
    plan: &CleanupPreview,
    files: &[Path],
    stats: &mut CleanupStats,
) -> Result<()> {
    for version in &plan.removed {
        if engine.store.head(&snapshot.dir, &version.path).await?.is_none() {
            stats.old_versions_removed += 1;
            stats.bytes_removed += version.size_bytes;
        }
    }
    for file in plan.files.iter().filter(|file| files.contains(&file.path)) {
        if engine.store.head(&snapshot.dir, &file.path).await?.is_none() {
            stats.bytes_removed += file.size_bytes;
        }
    }
    Ok(())
}

/// The rules of this moment.
fn rules(engine: &Engine, snapshot: &Snapshot, checked: &Checked) -> Rules {
    let now_ns = engine.env.now_ns();
    // Versions of one clock tick are ordered by nanoseconds ahead of it, and no age at all means all of them; a clock that is really
    // behind makes nothing older.
    let newest_ns = snapshot.manifest.timestamp_ns.unwrap_or(0);
    let is_tick = checked.age_ms == 0 && newest_ns >= now_ns && newest_ns - now_ns < 1_000_000_000;
    let now_ns = if is_tick { newest_ns.saturating_add(1) } else { now_ns };
    let before = |age_ms: i64| {
        let ns = i128::from(now_ns) - i128::from(age_ms) * NANOS_PER_MS;
        u64::try_from(ns.clamp(0, i128::from(u64::MAX))).unwrap_or(u64::MAX)
    };
    Rules {
        keep_from: snapshot.version(),
        versions_before_ns: before(checked.age_ms),
        unverified_before_ms: (!checked.delete_unverified).then(|| before(DEFAULT_AGE_MS) / 1_000_000),
    }
}

fn contended() -> Error {
    let message = "files that no version names can't be removed while a write is under way".into();
    Error::Contention { message }
}
