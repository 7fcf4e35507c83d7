//! Columns in memory: which parts of Arrow the engine uses, and the little that Arrow's small crates lack.
//!
//! `arrow-cast`, `arrow-string` and `arrow-ord` are left out on purpose (over 200 KB of brotli for each of the first two, 150 for the
//! last): [`cast`], [`like`] and [`compare`] hold what the engine needs of them. So does `take` of `arrow-select`: it brings a comparator
//! of every type.

pub mod cast;
pub mod compare;
pub mod ipc;
pub mod keys;
pub mod like;
pub mod narrow;
pub mod nested;
pub mod numbers;
pub mod pick;

pub use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
pub use arrow_schema::{DataType, SchemaRef};
