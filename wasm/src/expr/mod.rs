//! Expressions over batches: the SQL dialect of LanceDB's filters and values, three-valued, without I/O.
//!
//! Text becomes tokens (`lex`), tokens become syntax (`parse`), syntax becomes a typed tree against a schema (`bind`, `compute`), which is
//! evaluated batch by batch (`eval`). Predicates and values are one language but for double quotes: a name in the former, text in the
//! latter. A literal takes the type of the column that it is compared with, or the expression is refused: there are no implicit casts.

mod arithmetic;
mod bind;
mod calendar;
mod compute;
mod convert;
mod eval;
mod functions;
mod lex;
mod lists;
mod literal;
mod parse;
mod rows;
mod sets;
#[cfg(test)]
mod tests;
mod tree;
#[cfg(test)]
mod value_tests;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::DataType;

pub use crate::batch::compare::CompareOp;
use crate::collections::SortedSet;
use crate::error::Result;
use crate::format::table::Schema;
use lex::Dialect;
pub use literal::Literal;
use tree::{Expr, Input, Kind};

/// A filter, checked against a schema: every name is bound, every type fits, the result is boolean.
#[derive(Debug, Clone)]
pub struct Filter {
    expr: Expr,
    now_ns: i64,
}

impl Filter {
    /// Parses and checks a filter.
    ///
    /// # Errors
    /// `InvalidInput` with the position (1-based, in characters) and what was expected; for an unknown column the closest name; for types
    /// both of them. `NotSupported` for SQL that this build does not evaluate.
    pub fn parse(text: &str, schema: &Schema) -> Result<Filter> {
        Filter::parse_with(text, &[("", schema)])
    }

    /// A filter over rows of several tables: their columns are `prefix.name`. The batch has a struct column for each prefix, null where
    /// a table has no row.
    ///
    /// # Errors
    /// As [`Filter::parse`].
    pub fn parse_with(text: &str, tables: &[(&str, &Schema)]) -> Result<Filter> {
        let expr = bind::bind_condition(&parse::parse(text, Dialect::Predicate)?, tables)?;
        Ok(Filter { expr, now_ns: 0 })
    }

    /// Sets the time of `now()`, nanoseconds since the epoch.
    pub fn set_now(&mut self, now_ns: u64) {
        self.now_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
    }

    /// Names of the top-level columns that the filter reads, system columns such as `_rowid` included; prefixes, where there are.
    pub fn columns(&self) -> SortedSet<String> {
        columns_of(&self.expr, None)
    }

    /// Names of the columns behind a prefix that the filter reads.
    pub fn columns_behind(&self, prefix: &str) -> SortedSet<String> {
        columns_of(&self.expr, Some(prefix))
    }

    /// Which rows match; null where the filter is neither true nor false. `batch` has at least `columns()`.
    ///
    /// # Errors
    /// `InvalidInput` for what only the values show; `Internal` for a batch that lacks a column.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        eval::mask(&self.expr, &Input { batch, row_of: &|_| None, now_ns: self.now_ns })
    }
}

/// An expression for a column's values, checked against a schema.
#[derive(Debug, Clone)]
pub struct Value {
    expr: Expr,
    now_ns: i64,
}

impl Value {
    /// Parses and checks an expression.
    ///
    /// # Errors
    /// As [`Filter::parse`].
    pub fn parse(text: &str, schema: &Schema) -> Result<Value> {
        Value::new(text, schema, None)
    }

    /// An expression for a column of a type. Literals become values of it where they fit, text of a date or a time too, and computed
    /// numbers are checked against it; the value may still be of another type, which the writer casts or refuses.
    ///
    /// # Errors
    /// As [`Filter::parse`].
    pub fn parse_as(text: &str, schema: &Schema, data_type: &DataType) -> Result<Value> {
        Value::new(text, schema, Some(data_type))
    }

    fn new(text: &str, schema: &Schema, wanted: Option<&DataType>) -> Result<Value> {
        let syntax = parse::parse(text, Dialect::Value)?;
        Ok(Value { expr: bind::bind_value(&syntax, &[("", schema)], wanted)?, now_ns: 0 })
    }

    /// Sets the time of `now()`, nanoseconds since the epoch.
    pub fn set_now(&mut self, now_ns: u64) {
        self.now_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
    }

    /// Names of the top-level columns that the value is made of.
    pub fn columns(&self) -> SortedSet<String> {
        columns_of(&self.expr, None)
    }

    /// The type of the values; `Null` for an expression that is always null.
    pub fn data_type(&self) -> &DataType {
        &self.expr.data_type
    }

    /// Whether values of this kind go into a column of a type: what the writer casts where each value keeps its meaning.
    pub fn fits(&self, data_type: &DataType) -> bool {
        convert::is_assignable(&self.expr.data_type, data_type)
    }

    /// Whether a value may be null.
    pub fn is_nullable(&self) -> bool {
        self.expr.nullable
    }

    /// The values of the rows. `row_of` says what messages call a row of the batch.
    ///
    /// # Errors
    /// `InvalidInput` for what only the values show, such as an overflow, naming the row; `Internal` for a batch that lacks a column.
    pub fn evaluate(&self, batch: &RecordBatch, row_of: &dyn Fn(usize) -> Option<u64>) -> Result<ArrayRef> {
        let values = eval::value(&self.expr, &Input { batch, row_of, now_ns: self.now_ns })?;
        debug_assert_eq!(values.len(), batch.num_rows());
        Ok(values)
    }
}

/// The columns that an expression reads: roots, or the first names behind one of them.
fn columns_of(expr: &Expr, prefix: Option<&str>) -> SortedSet<String> {
    let (mut names, mut todo) = (SortedSet::new(), vec![expr]);
    while let Some(expr) = todo.pop() {
        if let Kind::Column { root, members } = &expr.kind {
            names.extend(match prefix {
                None => Some(root.clone()),
                Some(prefix) => members.first().filter(|_| root == prefix).cloned(),
            });
        }
        todo.extend(expr.children());
    }
    names
}
