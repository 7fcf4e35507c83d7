//! Columns in memory: which parts of Arrow the engine uses, and the little that Arrow's small crates lack.
//!
//! `arrow-cast`, `arrow-string`, `arrow-ord` and `arrow-select` are left out on purpose (over 200 KB of brotli for each of the first two,
//! 150 for the third; the last brings a kernel, or a comparator, of every type): [`cast`], [`like`], [`compare`] and [`pick`] hold what
//! the engine needs of them.

pub mod cast;
pub mod compare;
pub mod floats;
pub mod ipc;
pub mod keys;
pub mod like;
pub mod narrow;
pub mod nested;
pub mod numbers;
pub mod pick;

pub use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
pub use arrow_schema::{DataType, SchemaRef};
