//! Predicates over batches: the filter dialect of LanceDB, three-valued, without I/O.
//!
//! Text becomes tokens (`lex`), tokens become syntax (`parse`), syntax becomes a typed expression against a schema (`bind`), which is
//! evaluated batch by batch (`eval`). A literal takes the type of the column that it is compared with, or the filter is refused: there
//! are no implicit casts.

mod bind;
mod calendar;
mod eval;
mod lex;
mod literal;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use arrow_array::{BooleanArray, RecordBatch};

pub use crate::batch::compare::CompareOp;
use crate::error::Result;
use crate::format::table::Schema;
use bind::Expr;
pub use literal::Literal;

/// A filter, checked against a schema: every name is bound, every type fits, the result is boolean.
#[derive(Debug, Clone)]
pub struct Filter {
    expr: Expr,
}

impl Filter {
    /// Parses and checks a filter.
    ///
    /// # Errors
    /// `InvalidInput` with the position (1-based, in characters) and what was expected; for an unknown column the closest name; for types
    /// both of them. `NotSupported` for SQL that this build does not evaluate.
    pub fn parse(text: &str, schema: &Schema) -> Result<Filter> {
        Ok(Filter { expr: bind::bind(&parse::parse(text)?, schema)? })
    }

    /// Names of the top-level columns that the filter reads, system columns such as `_rowid` included.
    pub fn columns(&self) -> BTreeSet<String> {
        let mut columns = BTreeSet::new();
        self.expr.visit_columns(&mut |column| {
            columns.insert(column.root.clone());
        });
        columns
    }

    /// Which rows match; null where the filter is neither true nor false. `batch` has at least `columns()`.
    ///
    /// # Errors
    /// `InvalidInput` for what only the values show; `Internal` for a batch that lacks a column.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        eval::evaluate(&self.expr, batch)
    }
}
