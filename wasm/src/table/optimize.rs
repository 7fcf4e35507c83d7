//! Optimize: compaction and cleanup of a table, and what tells whether they are due.

use crate::error::Result;
use crate::table::handle::Table;
use crate::table::stats::{self, TableStats};
use crate::table::{CompactOptions, CompactPlan, CompactResult, commit, compact, versions};

impl Table {
    /// Writes small fragments and fragments with many deleted rows anew, in two versions; none when there is nothing to do.
    ///
    /// # Errors
    /// `InvalidInput` on a checked-out handle; `Conflict` when the table was overwritten or restored meanwhile; `Contention`,
    /// `TableNotFound`, `OutcomeUnknown` as an append. After any error every row is where it was.
    pub async fn compact(&self, options: &CompactOptions) -> Result<CompactResult> {
        let standing = self.writable()?;
        let compacted = async {
            // What it does depends on no row that the caller saw, and an old version would be rewritten in vain.
            let latest = versions::latest(self.engine(), &standing.dir).await?.ok_or_else(commit::gone)?;
            compact::compact(self.engine(), latest, options).await
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
        stats::stats(self.engine(), &snapshot).await.map_err(|error| self.name_it(error))
    }
}
