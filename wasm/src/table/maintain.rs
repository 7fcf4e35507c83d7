//! Maintain: what a table needs once small fragments or old versions pile up. Whether it is due is decided here; when there is idle time for
//! it, the host knows.
//!
//! | due | when |
//! |---|---|
//! | compaction | it would leave 16 fragments less, or take 100,000 deleted rows away |
//! | cleanup | there are 128 versions more than the last one left, and the oldest is past its retention |
//!
//! The retention is seven days, or what the table's own config says.

use std::rc::Rc;

use crate::env::now_ms;
use crate::error::Result;
use crate::format::table::Manifest;
use crate::table::auto_cleanup::AutoCleanup;
use crate::table::cleanup::{self, CleanupOptions};
use crate::table::database::Engine;
use crate::table::handle::Table;
use crate::table::snapshot::Snapshot;
use crate::table::{CompactOptions, CompactPlan, OptimizeResult, commit, compact, versions};

const MIN_FRAGMENTS: u64 = 16;
const MIN_DELETED_ROWS: u64 = 100_000;
const MIN_VERSIONS: u64 = 128;
/// How long versions are kept without a config.
const RETENTION_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
const NANOS_PER_MS: u64 = 1_000_000;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Due {
    pub compaction: bool,
    pub cleanup: bool,
}

/// What is known of a table's versions.
struct History {
    /// Versions there are, those aside that the last cleanup left.
    new_versions: u64,
    oldest_age_ms: u64,
}

impl Table {
    /// Whether `maintain` would do something now.
    ///
    /// # Errors
    /// `InvalidInput` on a handle that is checked out; what reading manifests meets.
    pub async fn needs_maintenance(&self) -> Result<Due> {
        let standing = self.writable()?;
        let latest =
            versions::latest(self.engine(), &standing.dir).await?.ok_or_else(|| self.name_it(commit::gone()))?;
        needs(self.engine(), &latest).await.map_err(|error| self.name_it(error))
    }

    /// Does what is due; `None` = nothing is. It keeps every version that is young, tagged or in use.
    ///
    /// # Errors
    /// As [`Table::optimize`].
    pub async fn maintain(&self) -> Result<Option<OptimizeResult>> {
        let standing = self.writable()?;
        let done = maintain(self.engine(), &standing).await;
        let (done, latest) = done.map_err(|error| self.name_it(error))?;
        self.advance(latest);
        Ok(done)
    }
}

async fn maintain(engine: &Rc<Engine>, standing: &Snapshot) -> Result<(Option<OptimizeResult>, Rc<Snapshot>)> {
    let mut latest = versions::latest(engine, &standing.dir).await?.ok_or_else(commit::gone)?;
    let due = needs(engine, &latest).await?;
    if due == Due::default() {
        return Ok((None, latest));
    }
    let mut done = OptimizeResult::default();
    if due.compaction {
        (done.compaction, latest) = compact::compact(engine, latest, &CompactOptions::default()).await?;
    }
    if due.cleanup {
        let age_ms = retention_ms(&latest.manifest);
        let options = CleanupOptions {
            older_than_ms: Some(i64::try_from(age_ms).unwrap_or(i64::MAX)),
            error_if_tagged: false,
            ..CleanupOptions::default()
        };
        let checked = cleanup::check(engine, &latest, &options).await?;
        done.cleanup = cleanup::run(engine, &latest, &checked).await?;
        let left = versions::all(engine.store.as_ref(), &latest.dir).await?.len() as u64;
        engine.kept_versions.borrow_mut().insert(latest.dir.clone(), left);
    }
    Ok((Some(done), latest))
}

async fn needs(engine: &Engine, latest: &Snapshot) -> Result<Due> {
    let plan = compact::plan(&latest.manifest, &CompactOptions::default())?;
    let history = history(engine, latest).await?;
    Ok(due(&latest.manifest, &plan, &history))
}

async fn history(engine: &Engine, latest: &Snapshot) -> Result<History> {
    let listed = versions::all(engine.store.as_ref(), &latest.dir).await?;
    let kept = engine.kept_versions.borrow().get(&latest.dir).copied().unwrap_or_default();
    let new_versions = (listed.len() as u64).saturating_sub(kept);
    let mut oldest_age_ms = 0;
    if new_versions >= MIN_VERSIONS
        && let Some(oldest) = listed.first()
    {
        let made_ns = versions::load(engine, &latest.dir, oldest).await?.manifest.timestamp_ns.unwrap_or(u64::MAX);
        oldest_age_ms = now_ms(engine.env.as_ref()).saturating_sub(made_ns / NANOS_PER_MS);
    }
    Ok(History { new_versions, oldest_age_ms })
}

fn due(manifest: &Manifest, plan: &CompactPlan, history: &History) -> Due {
    let before: usize = plan.bins.iter().map(|bin| bin.fragments.len()).sum();
    let planned = |id| plan.bins.iter().any(|bin| bin.fragments.contains(&id));
    let fragments = manifest.fragments.iter().filter(|fragment| planned(fragment.id));
    let deleted = fragments.map(|fragment| fragment.physical_rows.saturating_sub(fragment.live_rows()));
    let is_worth_while = before.saturating_sub(plan.bins.len()) as u64 >= MIN_FRAGMENTS
        || deleted.fold(0, u64::saturating_add) >= MIN_DELETED_ROWS;
    let is_full = history.new_versions >= MIN_VERSIONS && history.oldest_age_ms > retention_ms(manifest);
    Due { compaction: is_worth_while, cleanup: is_full }
}

fn retention_ms(manifest: &Manifest) -> u64 {
    AutoCleanup::of(&manifest.config).map_or(RETENTION_MS, |config| config.older_than_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::table::FragmentId;
    use crate::table::compact::Bin;
    use crate::table::compact::tests::manifest;

    fn planned(bins: &[std::ops::Range<u64>]) -> CompactPlan {
        let bin = |ids: &std::ops::Range<u64>| Bin { fragments: ids.clone().map(FragmentId).collect(), live_rows: 1 };
        CompactPlan { bins: bins.iter().map(bin).collect() }
    }

    fn compaction(fragments: &[(u64, u64)], bins: &[std::ops::Range<u64>]) -> bool {
        due(&manifest(fragments), &planned(bins), &History { new_versions: 0, oldest_age_ms: 0 }).compaction
    }

    #[test]
    fn a_compaction_is_due_when_it_leaves_sixteen_fragments_less() {
        assert!(!compaction(&[(1, 0); 20], &[]));
        assert!(!compaction(&[(1, 0); 20], &[0..16]));
        assert!(compaction(&[(1, 0); 20], &[0..17]));
        assert!(!compaction(&[(1, 0); 20], &[0..9, 9..17]));
        assert!(compaction(&[(1, 0); 20], &[0..9, 9..18]));
    }

    #[test]
    fn a_compaction_is_due_when_it_takes_many_deleted_rows_away() {
        assert!(!compaction(&[(900_000, 99_999)], &[0..1]));
        assert!(compaction(&[(900_000, 100_000)], &[0..1]));
        // Those of fragments that stay don't count.
        assert!(!compaction(&[(2_000_000, 200_000), (900_000, 99_999)], &[1..2]));
    }

    #[test]
    fn a_cleanup_is_due_when_there_are_many_versions_and_the_oldest_may_go() {
        const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
        let mut manifest = manifest(&[(1, 0)]);
        let cleanup = |manifest: &Manifest, new_versions, oldest_age_ms| {
            due(manifest, &planned(&[]), &History { new_versions, oldest_age_ms }).cleanup
        };
        assert!(cleanup(&manifest, 128, 8 * DAY_MS));
        assert!(!cleanup(&manifest, 127, 8 * DAY_MS));
        assert!(!cleanup(&manifest, 128, 7 * DAY_MS));
        for (key, value) in [("interval", "20"), ("older_than", "14d")] {
            manifest.config.insert(format!("lance.auto_cleanup.{key}"), value.to_owned());
        }
        assert!(!cleanup(&manifest, 128, 8 * DAY_MS));
        assert!(cleanup(&manifest, 128, 15 * DAY_MS));
    }
}
