//! Optimize: compaction and cleanup of a table in one call, and how large it is.

use crate::error::Result;
use crate::table::cleanup::{self, CleanupOptions, CleanupStats};
use crate::table::handle::Table;
use crate::table::stats::{self, TableStats};
use crate::table::{CompactOptions, CompactPlan, CompactResult, commit, compact, versions};

/// What `optimize` is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptimizeOptions {
    pub compact: CompactOptions,
    pub cleanup: CleanupOptions,
}

/// What `optimize` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OptimizeResult {
    pub compaction: CompactResult,
    pub cleanup: CleanupStats,
}

impl Table {
    /// Compacts, then cleans up. Everything is checked before anything is written: options, tags, writers that are under way.
    ///
    /// # Errors
    /// As [`Table::compact`] and [`Table::cleanup`].
    pub async fn optimize(&self, options: &OptimizeOptions) -> Result<OptimizeResult> {
        let standing = self.writable()?;
        let engine = self.engine();
        let done = async {
            // What it does depends on no row that the caller saw, and an old version would be rewritten in vain.
            let latest = versions::latest(engine, &standing.dir).await?.ok_or_else(commit::gone)?;
            let checked = cleanup::check(engine, &latest, &options.cleanup).await?;
            let (compaction, compacted) = compact::compact(engine, latest, &options.compact).await?;
            self.advance(compacted.clone());
            let cleanup = cleanup::run(engine, &compacted, &checked).await?;
            Ok(OptimizeResult { compaction, cleanup })
        };
        done.await.map_err(|error| self.name_it(error))
    }

    /// Writes small fragments and fragments with many deleted rows anew, in two versions; none when there is nothing to do.
    ///
    /// # Errors
    /// `InvalidInput` on a checked-out handle; `Conflict` when the table was overwritten or restored meanwhile; `Contention`,
    /// `TableNotFound`, `OutcomeUnknown` as an append. After any error every row is where it was.
    pub async fn compact(&self, options: &CompactOptions) -> Result<CompactResult> {
        let standing = self.writable()?;
        let engine = self.engine();
        let compacted = async {
            let latest = versions::latest(engine, &standing.dir).await?.ok_or_else(commit::gone)?;
            compact::compact(engine, latest, options).await
        };
        let (result, snapshot) = compacted.await.map_err(|error| self.name_it(error))?;
        self.advance(snapshot);
        Ok(result)
    }

    /// What `compact` would do with the version that the handle stands on.
    pub async fn compact_plan(&self, options: &CompactOptions) -> Result<CompactPlan> {
        compact::plan(&self.current().await?.manifest, options)
    }

    /// The size of the version that the handle stands on.
    pub async fn stats(&self) -> Result<TableStats> {
        let snapshot = self.current().await?;
        self.engine().check_there(&snapshot.dir).map_err(|error| self.name_it(error))?;
        stats::stats(self.engine(), &snapshot).await.map_err(|error| self.name_it(error))
    }
}
