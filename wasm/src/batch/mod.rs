//! Columns in memory: which parts of Arrow the engine uses, and the little that Arrow's small crates lack.
//!
//! `arrow-cast` and `arrow-string` are left out on purpose (over 200 KB of brotli each): [`cast`] and [`like`] hold what the filter
//! dialect needs.

pub mod cast;
pub mod ipc;
pub mod like;

pub use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
pub use arrow_schema::{DataType, SchemaRef};
