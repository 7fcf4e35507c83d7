//! The executor: futures of calls, polled from the event loop.
//!
//! A poll may trap. JavaScript calls `run` itself, inside a `try`, and so learns of it; an executor that polled from a microtask of its
//! own would end a Node process by an uncaught exception instead.
//!
//! 1. `promise` stores a future and makes it ready. 2. Becoming ready asks the host, once, to call `run` soon.
//! 3. `run` polls what is ready. A future that waits for a promise of the store becomes ready when that promise settles.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;

use crate::bindings::error::to_js;
use crate::error::Result;

#[wasm_bindgen]
extern "C" {
    /// `EngineHost` of `src/engine/wasm.ts`.
    pub type JsHost;

    /// Asks for a call of `runTasks` soon.
    #[wasm_bindgen(method, structural)]
    fn schedule(this: &JsHost);

    /// Tells the message of a panic; the trap follows.
    #[wasm_bindgen(method, structural)]
    fn panicked(this: &JsHost, message: &str);
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    static HOST: RefCell<Option<JsHost>> = const { RefCell::new(None) };
    static TASKS: RefCell<HashMap<u64, Task>> = RefCell::new(HashMap::new());
    static READY: RefCell<VecDeque<u64>> = const { RefCell::new(VecDeque::new()) };
    static IS_SCHEDULED: Cell<bool> = const { Cell::new(false) };
    static NEXT_ID: Cell<u64> = const { Cell::new(0) };
}

pub fn start(host: JsHost) {
    HOST.set(Some(host));
    std::panic::set_hook(Box::new(|info| {
        let message = info.to_string();
        HOST.with_borrow(|host| {
            if let Some(host) = host {
                host.panicked(&message);
            }
        });
    }));
}

/// A promise of what `future` comes to.
pub fn promise<T: Into<JsValue>>(future: impl Future<Output = Result<T>> + 'static) -> Promise {
    settled_by(Box::pin(async move { future.await.map(Into::into) }))
}

/// Not for every future again: the engine has a hundred.
fn settled_by(future: Pin<Box<dyn Future<Output = Result<JsValue>>>>) -> Promise {
    let mut future = Some(future);
    Promise::new(&mut |resolve: Function, reject: Function| {
        let Some(future) = future.take() else { return };
        spawn(Box::pin(async move {
            let (settle, value) = match future.await {
                Ok(value) => (resolve, value),
                Err(error) => (reject, to_js(&error)),
            };
            // The functions of a promise do not throw.
            let _ = settle.call1(&JsValue::UNDEFINED, &value);
        }));
    })
}

pub fn run() {
    IS_SCHEDULED.set(false);
    // Only what is ready now: a task that wakes itself waits for the next turn.
    let ready = READY.take();
    for id in ready {
        let Some(mut task) = TASKS.with_borrow_mut(|tasks| tasks.remove(&id)) else { continue };
        let waker = Waker::from(Arc::new(TaskWaker { id }));
        if let Poll::Pending = task.as_mut().poll(&mut Context::from_waker(&waker)) {
            TASKS.with_borrow_mut(|tasks| tasks.insert(id, task));
        }
    }
}

fn spawn(task: Task) {
    let id = NEXT_ID.get();
    NEXT_ID.set(id + 1);
    TASKS.with_borrow_mut(|tasks| tasks.insert(id, task));
    make_ready(id);
}

fn make_ready(id: u64) {
    READY.with_borrow_mut(|ready| {
        if !ready.contains(&id) {
            ready.push_back(id);
        }
    });
    if !IS_SCHEDULED.replace(true) {
        HOST.with_borrow(|host| {
            if let Some(host) = host {
                host.schedule();
            }
        });
    }
}

struct TaskWaker {
    id: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        make_ready(self.id);
    }
}
