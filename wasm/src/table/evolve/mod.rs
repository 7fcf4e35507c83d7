//! Changes of a table's schema: columns added, dropped, renamed, cast, described.
//!
//! Each reads a version, says what the next schema is, and commits once:
//! - `drop_columns`, and `alter_columns` without a cast, only write a manifest (`Project`): ids of fields stay, files without a field of
//!   the schema go, and so do indices on a field that is gone.
//! - `add_columns` and casts write one new data file per fragment with only the columns concerned, then commit them (`Merge`). Values are
//!   read and written window by window; rows that are deleted get values as well, so that every file of a fragment has as many rows.
//! - `update_field_metadata` only writes a manifest (`UpdateConfig`).
//!
//! A column lies in one file of a fragment as a whole: a cast of a struct's member writes the struct anew, and the old file's columns of
//! the members that keep their ids become tombstones (-2). Other readers find no struct whose members lie in several files.
//!
//! New fields get ids above every id that a file of the version has: a name that comes back is another column.
//!
//! | crash | what is left |
//! |---|---|
//! | while files are written | files that no manifest names; cleanup takes them |
//! | in or after the commit | as `commit` says: the old version or the new one |
//!
//! When others' commits make a change stale (rows were added, fragments were rewritten), it is executed again on the newer version: its
//! words mean the same there, or it fails as it would have if it had come later.

mod add;
mod alter;
mod column_files;
mod drop;
pub(in crate::table) mod fields;
mod metadata;

use arrow_schema::{DataType, Schema as ArrowSchema};

use crate::error::Result;
use crate::format::table::{Operation, Schema};
use crate::table::commit::{self, Change, Execution};
use crate::table::handle::Table;

/// How a column is to be altered. At least one of the three is to be given.
#[derive(Debug, Clone, PartialEq)]
pub struct Alteration {
    /// `a.b` is the member `b` of `a`.
    pub path: String,
    /// Another name, in the same place.
    pub rename: Option<String>,
    /// Whether it takes nulls.
    pub nullable: Option<bool>,
    pub data_type: Option<DataType>,
}

/// A new column of computed values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedColumn {
    pub name: String,
    /// An expression over the columns that there are.
    pub value_sql: String,
}

/// Metadata to be set for a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMetadata {
    pub path: String,
    /// `None` takes the key away.
    pub entries: Vec<(String, Option<String>)>,
    /// Everything else goes.
    pub replaces: bool,
}

/// The type that a text names, as manifests write it: `int64`, `double`, `timestamp:us:-`.
///
/// # Errors
/// `InvalidInput` for any other text.
pub fn parse_type(text: &str) -> Result<DataType> {
    fields::parse_type(text)
}

impl Table {
    /// Adds columns that are null in every row; a struct brings members to a struct that there is. The version that has them.
    ///
    /// # Errors
    /// `InvalidInput` for a field that takes no nulls, a type that conflicts with one that there is, and on a checked-out handle;
    /// `AlreadyExists`; `Schema` and `NotSupported` for names and types that a table cannot have; `Conflict`, `Contention` and `OutcomeUnknown` as an append.
    pub async fn add_null_columns(&self, fields: &ArrowSchema) -> Result<u64> {
        self.evolve(&mut add::AddNulls::new(fields)).await
    }

    /// Adds columns of computed values, of the types of their expressions.
    ///
    /// # Errors
    /// As [`Table::add_null_columns`]; what the expressions say, naming the first row that one fails for.
    pub async fn add_computed_columns(&self, columns: &[ComputedColumn]) -> Result<u64> {
        self.evolve(&mut add::AddComputed::new(self.engine(), columns)).await
    }

    /// Renames columns, casts them, lets them take nulls or not. The version that has them so.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for an alteration that is none, a cast between families of types or of an indexed column, nulls in a
    /// column that is to take none; `Schema` for a name that is there already, and naming column and row of a value that does not fit.
    pub async fn alter_columns(&self, alterations: &[Alteration]) -> Result<u64> {
        self.evolve(&mut alter::Alter::new(self.engine(), alterations)).await
    }

    /// Drops columns, or members of structs. The version that lacks them.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` when no column would be left.
    pub async fn drop_columns(&self, paths: &[String]) -> Result<u64> {
        self.evolve(&mut drop::Drop::new(self.engine(), paths)).await
    }

    /// Changes the metadata of fields.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for keys that say how stored values are laid out, or the primary key once it is set.
    pub async fn update_field_metadata(&self, updates: &[FieldMetadata]) -> Result<u64> {
        self.evolve(&mut metadata::Describe { updates }).await
    }

    /// Executes a change and follows it. The version that has it.
    pub(crate) async fn evolve(&self, execution: &mut dyn Execution) -> Result<u64> {
        let snapshot = self.writable()?;
        let done = commit::run(self.engine(), snapshot, execution).await.map_err(|error| self.name_it(error))?;
        let version = done.snapshot.version();
        self.advance(done.snapshot);
        Ok(version)
    }
}

/// A change of nothing but the schema.
fn project(before: &Schema, schema: Schema) -> Change {
    let preserves_nullability = fields::preserves_nullability(before, &schema);
    Change::of(Operation::Project { schema, preserves_nullability })
}
