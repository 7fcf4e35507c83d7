//! System columns: what a scan and a filter can ask of a row beside its stored columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_schema::{DataType, Field as ArrowField};

use crate::error::Result;
use crate::format::table::Fragment;
use crate::table::lineage;

/// A column of every table, uint64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemColumn {
    /// The stable row id, or the row address in a table without them.
    RowId,
    /// Fragment and physical offset.
    RowAddress,
    /// The version that inserted the row; 1 in a table without stable row ids.
    CreatedAt,
    /// The version that changed the row last; 1 in a table without stable row ids.
    LastUpdatedAt,
}

/// The system column of row ids.
pub(crate) const ROW_ID: &str = "_rowid";

impl SystemColumn {
    pub(crate) const ALL: [SystemColumn; 4] =
        [SystemColumn::RowId, SystemColumn::RowAddress, SystemColumn::CreatedAt, SystemColumn::LastUpdatedAt];

    pub(crate) fn name(self) -> &'static str {
        match self {
            SystemColumn::RowId => ROW_ID,
            SystemColumn::RowAddress => "_rowaddr",
            SystemColumn::CreatedAt => "_row_created_at_version",
            SystemColumn::LastUpdatedAt => "_row_last_updated_at_version",
        }
    }

    pub(crate) fn named(name: &str) -> Option<SystemColumn> {
        SystemColumn::ALL.into_iter().find(|column| column.name() == name)
    }

    pub(crate) fn field(self) -> ArrowField {
        ArrowField::new(self.name(), DataType::UInt64, true)
    }

    /// The values of rows of a fragment of a table that has stable row ids, or has not.
    ///
    /// # Errors
    /// `Corrupt` for sequences that do not fit the fragment.
    pub(crate) fn values(self, fragment: &Fragment, rows: &[Range<u64>], has_row_ids: bool) -> Result<ArrayRef> {
        let mut values: Vec<u64> = Vec::new();
        let versions = match self {
            SystemColumn::RowId if has_row_ids => {
                let ids = lineage::row_ids(fragment)?;
                for range in rows {
                    ids.runs(range.clone(), &mut |run| values.extend(run));
                }
                return Ok(Arc::new(UInt64Array::from(values)));
            }
            SystemColumn::RowId | SystemColumn::RowAddress => {
                let first = fragment.id.0 << 32;
                values.extend(rows.iter().cloned().flatten().map(|offset| first | offset));
                return Ok(Arc::new(UInt64Array::from(values)));
            }
            SystemColumn::CreatedAt => lineage::created_at(fragment)?,
            SystemColumn::LastUpdatedAt => lineage::last_updated_at(fragment)?,
        };
        for range in rows {
            versions.runs(range.clone(), &mut |rows, version| {
                // As many as there are rows in memory.
                values.extend(std::iter::repeat_n(version, rows as usize));
            });
        }
        Ok(Arc::new(UInt64Array::from(values)))
    }
}
