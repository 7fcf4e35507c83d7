//! Predicates over batches: the filter dialect of LanceDB, three-valued, without I/O.
//!
//! Text becomes a typed expression against a schema (`parse`), which is evaluated batch by batch (`eval`).

use std::collections::BTreeSet;

use arrow_array::{BooleanArray, RecordBatch};

use crate::error::{Error, Result};
use crate::format::table::Schema;

/// What an evaluation may know besides the batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct EvalContext {
    /// `now()`, in nanoseconds since the Unix epoch: the same for a whole statement.
    pub now_ns: u64,
}

/// A filter, checked against a schema: every name is bound, every type fits, the result is boolean.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {}

impl Filter {
    /// Parses and checks a filter.
    ///
    /// # Errors
    /// `InvalidInput` with the position (1-based, in characters) and what was expected; for an unknown column or function the closest
    /// name; for types both of them. `NotSupported` for SQL that this build does not evaluate.
    pub fn parse(text: &str, schema: &Schema) -> Result<Filter> {
        let _ = (text, schema);
        Err(Error::not_supported("filters"))
    }

    /// Names of the top-level columns that the filter reads, system columns such as `_rowid` included.
    pub fn columns(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// Which rows match; null where the filter is neither true nor false. `batch` has at least `columns()`.
    ///
    /// # Errors
    /// `InvalidInput` for what only the values show, such as a division by zero.
    pub fn evaluate(&self, batch: &RecordBatch, context: &EvalContext) -> Result<BooleanArray> {
        let _ = (batch, context);
        Err(Error::not_supported("filters"))
    }
}
