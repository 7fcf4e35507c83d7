//! A store that fails, loses answers, or loses the tab, at operations that a plan chooses. Every operation yields once, so that a loop that
//! polls several actors can interleave them anywhere.

use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use super::Store;
use super::observed::{Hook, Observed, Op};
use crate::error::{Error, Result};

/// What happens to one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    None,
    /// It fails with this error and has no effect.
    Fail(Error),
    /// It has its effect, and the caller is told that the store is not available.
    LoseAnswer,
    /// The tab is lost before it.
    CrashBefore,
    /// The tab is lost after its effect and before its answer.
    CrashAfter,
}

/// Chooses a fault for the n-th operation (from 0).
pub type Plan = Box<dyn Fn(u64, &Op) -> Fault>;

/// The hook of a faulty store.
pub struct Faults {
    plan: Plan,
    seen: Cell<u64>,
}

impl Faults {
    /// Wraps a store.
    pub fn around(inner: Rc<dyn Store>, plan: Plan) -> (Rc<dyn Store>, Rc<Faults>) {
        let faults = Rc::new(Faults { plan, seen: Cell::new(0) });
        (Rc::new(Observed::new(inner, faults.clone())), faults)
    }

    /// Operations begun so far.
    pub fn seen(&self) -> u64 {
        self.seen.get()
    }
}

impl Hook for Faults {
    async fn around<T>(&self, op: Op, call: impl Future<Output = Result<T>>, _: impl Fn(&T) -> u64) -> Result<T> {
        let number = self.seen.replace(self.seen.get() + 1);
        yield_once().await;
        match (self.plan)(number, &op) {
            Fault::None => call.await,
            Fault::Fail(error) => Err(error),
            Fault::LoseAnswer => {
                call.await?;
                Err(Error::Unavailable { reason: format!("the answer of {} was lost", op.name) })
            }
            Fault::CrashBefore => pending().await,
            Fault::CrashAfter => {
                // What the call answered can no longer matter to anybody.
                let _ = call.await;
                pending().await
            }
        }
    }
}

/// Gives the other actors a turn.
pub async fn yield_once() {
    let mut is_polled = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_polled, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::env::FixedEnv;
    use crate::error::ErrorCode;
    use crate::store::Path;
    use crate::store::conformance::block_on;
    use crate::store::memory::MemoryStore;

    #[test]
    fn a_lost_answer_leaves_the_effect_and_a_failure_does_not() {
        let memory = Rc::new(MemoryStore::new(Rc::new(FixedEnv::new(1, 0))));
        let plan: Plan = Box::new(|number, _| match number {
            1 => Fault::LoseAnswer,
            2 => Fault::Fail(Error::Quota { needed_bytes: None }),
            _ => Fault::None,
        });
        let (store, faults) = Faults::around(memory, plan);
        block_on(async {
            let dir = store.create_dir(0, 1).await.unwrap();
            let (kept, refused) = (Path::default().join("kept"), Path::default().join("refused"));
            let lost = store.put(&dir, &kept, Bytes::from_static(b"x")).await;
            assert_eq!(lost.map_err(|error| error.code()), Err(ErrorCode::Unavailable));
            let full = store.put(&dir, &refused, Bytes::from_static(b"x")).await;
            assert_eq!(full.map_err(|error| error.code()), Err(ErrorCode::Quota));
            assert!(store.head(&dir, &kept).await.unwrap().is_some());
            assert!(store.head(&dir, &refused).await.unwrap().is_none());
        });
        assert_eq!(faults.seen(), 5);
    }
}
