//! A store that records its operations and bytes: most slowness is I/O.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use super::Store;
use super::observed::{Hook, Observed, Op};
use crate::error::Result;

/// What one operation cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    pub op: Op,
    pub read_bytes: u64,
}

/// The record of a counting store.
#[derive(Default)]
pub struct Counter {
    ops: RefCell<Vec<Counted>>,
}

impl Counter {
    /// Wraps a store; the counter sees all that passes.
    pub fn around(inner: Rc<dyn Store>) -> (Rc<dyn Store>, Rc<Counter>) {
        let counter = Rc::new(Counter::default());
        (Rc::new(Observed::new(inner, counter.clone())), counter)
    }

    /// What was recorded since the last call.
    pub fn take(&self) -> Vec<Counted> {
        self.ops.take()
    }
}

impl Hook for Counter {
    async fn around<T>(
        &self,
        op: Op,
        call: impl Future<Output = Result<T>>,
        read_bytes: impl Fn(&T) -> u64,
    ) -> Result<T> {
        let answer = call.await;
        let read_bytes = answer.as_ref().map(read_bytes).unwrap_or_default();
        self.ops.borrow_mut().push(Counted { op, read_bytes });
        answer
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::env::FixedEnv;
    use crate::store::Path;
    use crate::store::conformance::block_on;
    use crate::store::memory::MemoryStore;

    #[test]
    fn bytes_written_and_bytes_answered_are_counted() {
        let (store, counter) = Counter::around(Rc::new(MemoryStore::new(Rc::new(FixedEnv::new(1, 0)))));
        block_on(async {
            let dir = store.create_dir(0, 1).await.unwrap();
            let path = Path::default().join("x");
            store.put(&dir, &path, Bytes::from_static(b"0123456789")).await.unwrap();
            counter.take();
            store.get_ranges(&dir, &path, &[0..2, 5..9]).await.unwrap();
        });
        let op = Op { name: "get_ranges", path: "x".into(), written_bytes: 0, ranges: 2 };
        assert_eq!(counter.take(), [Counted { op, read_bytes: 6 }]);
    }
}
