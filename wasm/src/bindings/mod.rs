//! The wasm edge: what `src/engine` calls. Each method converts and forwards.
//!
//! What crosses: numbers, strings, bytes (Arrow IPC streams, file contents) and plain objects. Every call that does I/O returns a promise,
//! which the executor in `tasks` drives; the calls themselves borrow nothing beyond their return, so that any number may run at once.

mod columns;
mod database;
mod env;
mod error;
mod existing;
mod export;
mod handle;
mod lsm;
mod merge;
mod optimize;
mod options;
mod retention;
mod scan;
mod table;
mod tasks;
mod update;
mod write;

use wasm_bindgen::prelude::*;

use tasks::JsHost;

/// Starts the engine in this instance. `host` runs its tasks and hears of a panic before the trap.
#[wasm_bindgen]
pub fn start(host: JsHost) {
    tasks::start(host);
}

/// Runs what is ready to go on. To be called soon after each `schedule`, from the event loop.
#[wasm_bindgen(js_name = runTasks)]
pub fn run_tasks() {
    tasks::run();
}

/// Gives up this instance, which trapped: the next call to the module begins with a new one.
#[wasm_bindgen]
pub fn reset() {
    wasm_bindgen::handler::schedule_reinit();
}

/// The version of the engine.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
