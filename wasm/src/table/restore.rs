//! Restore: an old version becomes the newest one, under a number of its own.
//!
//! The lease of the handle that has it checked out keeps the old version's files until the commit, which asks for each of them. Later
//! versions stay in the history; ids that they gave are not given again.

use std::rc::Rc;

use async_trait::async_trait;

use crate::error::Result;
use crate::format::table::{Operation, feature};
use crate::table::commit::{self, Change, Execution};
use crate::table::database::Engine;
use crate::table::snapshot::Snapshot;
use crate::table::versions;

struct Restore {
    old: Rc<Snapshot>,
}

#[async_trait(?Send)]
impl Execution for Restore {
    async fn execute(&mut self, _: &Rc<Snapshot>) -> Result<Option<Change>> {
        let operation = Operation::Restore { version: self.old.version() };
        Ok(Some(Change { restored: Some(self.old.clone()), ..Change::of(operation) }))
    }
}

/// The snapshot of the new version, whose content is that of `old`.
pub(crate) async fn restore(engine: &Rc<Engine>, old: Rc<Snapshot>) -> Result<Rc<Snapshot>> {
    feature::check_writable(&old.manifest)?;
    let latest = versions::latest(engine, &old.dir).await?.ok_or_else(commit::gone)?;
    Ok(commit::run(engine, latest, &mut Restore { old }).await?.snapshot)
}
