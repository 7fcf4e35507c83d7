//! Leases: what this engine has in use, and until when.
//!
//! A lease keeps versions and their files from being cleaned up. It lives for [`TTL_MS`] and is renewed by `Leases::renew_all`, which
//! the host calls about every 10 seconds. A lease that ran out protects nothing and never comes back to life: what its holder does then
//! is caught by the commit (a gap in the versions, a missing file) or by a missing file while reading.

use std::cell::RefCell;
use std::rc::Rc;

use crate::collections::SortedSet;
use crate::env::{Env, now_ms};
use crate::error::{Error, Result};
use crate::store::{DirId, LeaseId, LeaseKind, LeaseOutcome, LeaseRequest, Path, Store};

/// How long a lease lives without being renewed.
pub(crate) const TTL_MS: u64 = 30_000;

/// The leases of one engine.
pub(crate) struct Leases {
    store: Rc<dyn Store>,
    env: Rc<dyn Env>,
    held: RefCell<SortedSet<LeaseId>>,
    /// Leases whose holder was dropped or whose release failed; the next `renew_all` ends them.
    abandoned: RefCell<SortedSet<LeaseId>>,
}

/// A lease in use. Dropping it leaves its end to the next `renew_all`; `release` ends it now.
pub(crate) struct Lease {
    leases: Rc<Leases>,
    id: Option<LeaseId>,
    /// The newest version that replaced the table's content instead of building on it, as of the taking; 0 = none. A handle older than
    /// that must not commit what it began before it saw that version, though versions in between may be gone.
    pub(crate) replaced: u64,
}

/// How taking a lease on a snapshot ended.
pub(crate) enum Taken {
    Lease(Lease),
    /// The table was dropped.
    Gone,
    /// The version was cleaned up.
    Missing,
}

impl Leases {
    pub(crate) fn new(store: Rc<dyn Store>, env: Rc<dyn Env>) -> Leases {
        Leases { store, env, held: RefCell::default(), abandoned: RefCell::default() }
    }

    /// Takes a lease on a version, whose manifest lies at `manifest`.
    pub(crate) async fn take(
        self: &Rc<Leases>,
        kind: LeaseKind,
        dir: &DirId,
        version: u64,
        manifest: &Path,
    ) -> Result<Taken> {
        let now = now_ms(self.env.as_ref());
        let request = LeaseRequest {
            dir: dir.clone(),
            kind,
            version,
            manifest: manifest.clone(),
            now_ms: now,
            expires_ms: now.saturating_add(TTL_MS),
        };
        let mut outcome = self.store.lease(request.clone()).await;
        if matches!(outcome, Err(Error::OutcomeUnknown { .. })) {
            // A lease that was taken without our knowing it runs out.
            outcome = self.store.lease(request).await;
        }
        let outcome = outcome.map_err(|error| match error {
            // Nothing depends on it yet: whoever asked has achieved nothing.
            Error::OutcomeUnknown { message } => Error::Unavailable { reason: message },
            other => other,
        })?;
        Ok(match outcome {
            LeaseOutcome::Gone => Taken::Gone,
            LeaseOutcome::Missing => Taken::Missing,
            LeaseOutcome::Taken { id, replaced } => {
                self.held.borrow_mut().insert(id.clone());
                Taken::Lease(Lease { leases: self.clone(), id: Some(id), replaced })
            }
        })
    }

    /// The lease of a directory that this engine registered and that has no name yet: it is renewed under the directory's id.
    pub(crate) fn adopt(self: &Rc<Leases>, dir: &DirId) -> Lease {
        let id = LeaseId(dir.0.clone());
        self.held.borrow_mut().insert(id.clone());
        Lease { leases: self.clone(), id: Some(id), replaced: 0 }
    }

    /// Renews what is held and ends what was abandoned. Goes through all of them, then tells the first error.
    pub(crate) async fn renew_all(&self) -> Result<()> {
        let mut outcome = self.end_abandoned().await;
        let held: Vec<LeaseId> = self.held.borrow().iter().cloned().collect();
        for id in held {
            let now = now_ms(self.env.as_ref());
            match self.store.renew(&id, now, now.saturating_add(TTL_MS)).await {
                Ok(true) => {}
                Ok(false) => {
                    self.held.borrow_mut().remove(&id);
                }
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    /// Ends what was abandoned. Goes through all of it, then tells the first error.
    pub(crate) async fn end_abandoned(&self) -> Result<()> {
        let mut outcome = Ok(());
        let abandoned = std::mem::take(&mut *self.abandoned.borrow_mut());
        for id in abandoned {
            if let Err(error) = self.store.release(&id).await {
                self.abandoned.borrow_mut().insert(id);
                outcome = outcome.and(Err(error));
            }
        }
        outcome
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.borrow().is_empty() && self.abandoned.borrow().is_empty()
    }
}

impl Lease {
    /// Ends the lease. Best effort: one that can't be ended now is ended by the next `renew_all` or runs out, so that what was achieved
    /// under it does not fail.
    pub(crate) async fn release(mut self) {
        let Some(id) = self.id.take() else { return };
        self.leases.held.borrow_mut().remove(&id);
        if self.leases.store.release(&id).await.is_err() {
            self.leases.abandoned.borrow_mut().insert(id);
        }
    }

    /// Nothing renews the lease any more, and nothing ends it.
    pub(crate) fn forget(mut self) {
        if let Some(id) = self.id.take() {
            self.leases.held.borrow_mut().remove(&id);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.leases.held.borrow_mut().remove(&id);
            self.leases.abandoned.borrow_mut().insert(id);
        }
    }
}
