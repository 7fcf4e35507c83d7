//! The source of a merge insert: rows in memory, as the table stores them, and their keys by number.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema, SchemaRef};

use crate::batch::keys::Keys;
use crate::batch::pick::{Pick, pick};
use crate::error::{Error, Result};
use crate::format::file::layout::interner::Interner;
use crate::format::table::Schema;
use crate::table::adapt;

/// The rows that come in.
pub(super) struct Source {
    /// What they are stored as.
    pub(super) target: SchemaRef,
    /// The columns that they have, in the order of the table; unknown before the first batch.
    pub(super) columns: Option<SchemaRef>,
    batches: Vec<RecordBatch>,
    /// Rows up to the end of each batch.
    ends: Vec<usize>,
}

impl Source {
    pub(super) fn new(schema: &Schema) -> Source {
        Source { target: Arc::new(schema.to_arrow()), columns: None, batches: Vec::new(), ends: Vec::new() }
    }

    pub(super) fn row_count(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    pub(super) fn push(&mut self, batch: &RecordBatch, on: &[String]) -> Result<()> {
        let columns = match &self.columns {
            Some(columns) => columns.clone(),
            None => {
                let given = batch.schema();
                if let Some(key) = on.iter().find(|key| given.column_with_name(key).is_none()) {
                    return Err(Error::schema(format!("the rows lack the merge insert key column '{key}'")));
                }
                let is_given = |field: &&Arc<ArrowField>| given.column_with_name(field.name()).is_some();
                let fields: Fields = self.target.fields().iter().filter(is_given).cloned().collect();
                self.columns.insert(Arc::new(ArrowSchema::new(fields))).clone()
            }
        };
        let first_row = self.row_count();
        if let Some(field) = columns.fields().iter().find(|field| batch.column_by_name(field.name()).is_none()) {
            let reason = format!("column \"{}\" is missing at row {first_row}, and rows before have it", field.name());
            return Err(Error::schema(reason));
        }
        let batch = adapt::adapt(batch, &columns, first_row as u64)?;
        let end = first_row.checked_add(batch.num_rows()).filter(|end| u32::try_from(*end).is_ok());
        self.ends.push(end.ok_or_else(|| Error::not_supported("more than 2^32 rows in one merge insert"))?);
        self.batches.push(batch);
        Ok(())
    }

    /// Makes the rows those of another version's schema.
    pub(super) fn fit(&mut self, schema: &Schema, on: &[String]) -> Result<()> {
        let target = Arc::new(schema.to_arrow());
        if target == self.target {
            return Ok(());
        }
        let batches = std::mem::take(&mut self.batches);
        *self = Source { target, columns: None, batches: Vec::new(), ends: Vec::new() };
        batches.iter().try_for_each(|batch| self.push(batch, on))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.columns.as_ref().is_some_and(|columns| columns.column_with_name(name).is_some())
    }

    pub(super) fn place(&self, row: u32) -> Pick {
        let row = row as usize;
        let batch = self.ends.partition_point(|end| *end <= row);
        let begin = batch.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        Some((batch, row - begin))
    }

    /// Values of a column in some rows.
    pub(super) fn take(&self, name: &str, rows: impl Iterator<Item = u32>) -> Result<ArrayRef> {
        let columns: Vec<ArrayRef> =
            self.batches.iter().filter_map(|batch| batch.column_by_name(name)).cloned().collect();
        let field = self.target.field_with_name(name).map_err(|error| Error::internal(error.to_string()))?;
        let picks: Vec<Pick> = rows.map(|row| self.place(row)).collect();
        gather(&columns, &picks, field.data_type())
    }

    /// The columns of some rows, as a batch.
    pub(super) fn batch(&self, rows: &[u32]) -> Result<RecordBatch> {
        let columns = self.columns.clone().unwrap_or_else(|| Arc::new(ArrowSchema::empty()));
        let arrays = columns.fields().iter().map(|field| self.take(field.name(), rows.iter().copied()));
        batch_of(columns.clone(), arrays.collect::<Result<_>>()?, rows.len())
    }
}

/// The keys of the source by number.
pub(super) struct KeyIndex {
    pub(super) numbers: Interner,
    /// For each key number, the first source row that has it.
    pub(super) first: Vec<u32>,
    /// For each source row, the next one of its key; its own number at the end.
    next: Vec<u32>,
    /// For each source row, the number of its key; `None` where a null is in it.
    pub(super) of_row: Vec<Option<u32>>,
}

impl KeyIndex {
    pub(super) fn new(source: &Source, on: &[String]) -> Result<KeyIndex> {
        let mut index = KeyIndex { numbers: Interner::new(), first: Vec::new(), next: Vec::new(), of_row: Vec::new() };
        let mut last: Vec<u32> = Vec::new();
        let mut key = Vec::new();
        for batch in &source.batches {
            let columns = on.iter().filter_map(|name| batch.column_by_name(name)).cloned().collect::<Vec<_>>();
            let keys = keys_of(&columns)?;
            for row in 0..batch.num_rows() {
                // Rows were counted to be fewer than 2^32.
                let at = index.next.len() as u32;
                index.next.push(at);
                let number = keys.read(row, &mut key).then(|| index.numbers.number(&key));
                index.of_row.push(number);
                let Some(number) = number else { continue };
                match last.get_mut(number as usize) {
                    Some(last) => index.next[std::mem::replace(last, at) as usize] = at,
                    None => {
                        index.first.push(at);
                        last.push(at);
                    }
                }
            }
        }
        Ok(index)
    }

    /// Source rows of a key.
    pub(super) fn rows(&self, number: u32) -> impl Iterator<Item = u32> {
        let mut row = self.first.get(number as usize).copied();
        std::iter::from_fn(move || {
            let this = row?;
            row = self.next.get(this as usize).copied().filter(|next| *next != this);
            Some(this)
        })
    }
}

pub(super) fn keys_of(columns: &[ArrayRef]) -> Result<Keys> {
    Keys::new(columns).ok_or_else(|| Error::not_supported("a merge insert key of this type"))
}

pub(super) fn gather(arrays: &[ArrayRef], picks: &[Pick], data_type: &DataType) -> Result<ArrayRef> {
    pick(arrays, picks, data_type).map_err(|error| Error::internal(format!("rows that do not go together: {error:?}")))
}

pub(super) fn batch_of(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(|error| Error::internal(error.to_string()))
}
