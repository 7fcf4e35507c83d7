//! Refresh: when a handle looks for what others committed.
//!
//! A lazy handle never looks by itself, a strong one on every read, an eventual one when what it knows is older than its interval. In the
//! last part of the interval a read begins to look and does not wait: reads that follow carry the look on, and the one that finds the
//! interval over waits for what is left of it. A look counts from when it began.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use crate::env::now_ms;
use crate::error::Result;
use crate::store::DirId;
use crate::table::database::Engine;
use crate::table::snapshot::Snapshot;
use crate::table::{Consistency, commit, versions};

/// How long before its end an interval is, at most, looked beyond.
const MAX_AHEAD_MS: u64 = 3_000;

/// What one handle knows of its last look.
pub(crate) struct Refresh {
    consistency: Consistency,
    looked_ms: Cell<u64>,
    ahead: RefCell<Option<Ahead>>,
}

/// A look that nobody waits for.
struct Ahead {
    begun_ms: u64,
    look: Look,
}

type Look = Pin<Box<dyn Future<Output = Result<Option<Rc<Snapshot>>>>>>;

impl Refresh {
    pub(crate) fn new(consistency: Consistency, now_ms: u64) -> Refresh {
        Refresh { consistency, looked_ms: Cell::new(now_ms), ahead: RefCell::default() }
    }

    /// The handle was just brought to the latest version.
    pub(crate) fn looked(&self, now_ms: u64) {
        self.looked_ms.set(now_ms);
        self.ahead.take();
    }

    /// The latest version, where it is time to look and it is newer than `standing`.
    pub(crate) async fn newer(&self, engine: &Rc<Engine>, standing: &Snapshot) -> Result<Option<Rc<Snapshot>>> {
        let age_ms = match self.consistency {
            Consistency::Lazy => return Ok(None),
            Consistency::Strong => return look(engine.clone(), standing.dir.clone(), standing.version()).await,
            Consistency::Eventual(age_ms) => age_ms,
        };
        let now = now_ms(engine.env.as_ref());
        // A clock that went back says nothing about how old the last look is.
        let left_ms = now.checked_sub(self.looked_ms.get()).map_or(0, |since_ms| age_ms.saturating_sub(since_ms));
        if left_ms > 0 {
            let is_near = left_ms <= MAX_AHEAD_MS.min(age_ms / 4);
            return Ok(if is_near { self.look_ahead(engine, standing, now).await } else { None });
        }
        if let Some(Ahead { begun_ms, look }) = self.ahead.take()
            && now.checked_sub(begun_ms).is_some_and(|since_ms| since_ms < age_ms)
            && let Ok(found) = look.await
        {
            self.looked_ms.set(begun_ms);
            return Ok(found);
        }
        let found = look(engine.clone(), standing.dir.clone(), standing.version()).await?;
        self.looked_ms.set(now);
        Ok(found)
    }

    /// Begins a look or carries it on, without waiting. One that fails is forgotten: the next one tells.
    async fn look_ahead(&self, engine: &Rc<Engine>, standing: &Snapshot, now: u64) -> Option<Rc<Snapshot>> {
        let begun = self.ahead.take();
        let mut ahead = begun.unwrap_or_else(|| Ahead {
            begun_ms: now,
            look: Box::pin(look(engine.clone(), standing.dir.clone(), standing.version())),
        });
        match poll_fn(|context| Poll::Ready(ahead.look.as_mut().poll(context))).await {
            Poll::Pending => {
                self.ahead.replace(Some(ahead));
                None
            }
            Poll::Ready(Ok(found)) => {
                self.looked_ms.set(ahead.begun_ms);
                found
            }
            Poll::Ready(Err(_)) => None,
        }
    }
}

async fn look(engine: Rc<Engine>, dir: DirId, known: u64) -> Result<Option<Rc<Snapshot>>> {
    let newest = versions::newest(engine.store.as_ref(), &dir).await?.ok_or_else(commit::gone)?;
    if newest.version <= known {
        return Ok(None);
    }
    Ok(Some(versions::latest(&engine, &dir).await?.ok_or_else(commit::gone)?))
}
