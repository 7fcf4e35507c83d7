//! The engine of lancelet: Lance tables over a store of bytes.
//!
//! The modules below are the layers, lowest first. A module names only modules above it in this list
//! (`tests/layering.rs` holds that):
//!
//! - [`mod@collections`], [`mod@error`], [`mod@env`]: sorted maps; what may go wrong; the only source of time and randomness.
//! - [`mod@store`]: bytes by path, commits, directories, leases. No values.
//! - [`mod@batch`]: columns in memory (Arrow), the IPC stream, casts, LIKE. No I/O.
//! - [`mod@format`]: values to bytes and back: data files, manifests, deletion files.
//! - [`mod@expr`]: predicates over batches. No I/O.
//! - [`mod@table`]: versions: create, open, append, delete, scan, commit.
//! - [`mod@lsm`]: the write path through logs: shards beside a table's versions.
//! - `bindings`: the wasm edge (wasm32 only).

pub mod batch;
#[cfg(target_arch = "wasm32")]
mod bindings;
pub mod collections;
pub mod env;
pub mod error;
pub mod expr;
pub mod format;
pub mod lsm;
pub mod store;
pub mod table;

pub use error::{Error, ErrorCode, Result};
