//! Update: new values for matching rows.
//!
//! 1. The filter's columns are read from the snapshot; of the rows that match, so much at a time as memory should hold, every other column,
//!    too. The new values take the places of the old ones, all of them computed from the old row.
//! 2. The rows go, full width, into new fragments. Nothing is visible yet.
//! 3. On the latest version the old rows are deleted in their fragments, and the new fragments are added: one commit.
//! 4. When others changed the same rows or moved them since, the update is executed again on the latest version: what it adds to is what
//!    they wrote.

use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field as ArrowField, Schema as ArrowSchema, SchemaRef};
use async_trait::async_trait;
use roaring::RoaringBitmap;

use crate::batch::pick::repeat;
use crate::collections::SortedMap;
use crate::error::{Error, Result};
use crate::expr::Value;
use crate::format::file::{FileVersion, FileWriter};
use crate::format::table::closest::columns_hint;
use crate::format::table::{Field, FragmentId, Operation, Schema};
use crate::table::adapt::adapt_column;
use crate::table::commit::{self, Change, Execution};
use crate::table::database::Engine;
use crate::table::delete::collect;
use crate::table::fragment_rows::row_count;
use crate::table::handle::Table;
use crate::table::lineage::Carried;
use crate::table::matches::{BoundFilter, Matches, Window};
use crate::table::scan::split;
use crate::table::snapshot::Snapshot;
use crate::table::write::{RowWriter, Written};

/// What becomes of which rows.
#[derive(Debug, Clone)]
pub struct Update {
    /// `None` = every row.
    pub filter: Option<String>,
    /// New values by the exact names of top-level columns.
    pub columns: Vec<(String, NewValue)>,
}

/// A column's new values.
#[derive(Debug, Clone)]
pub enum NewValue {
    /// An expression over the old row.
    Sql(String),
    /// The same value for every row, as an array of one.
    Constant(ArrayRef),
}

/// What an update did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateResult {
    pub updated_rows: u64,
    pub version: u64,
}

impl Table {
    /// Gives matching rows new values; commits a version also when none matches, as LanceDB does. All or nothing; rows that others change
    /// meanwhile are looked at again.
    ///
    /// # Errors
    /// `InvalidInput` without columns, for an unknown one, for what the filter and the expressions say, on a checked-out handle; `Schema`
    /// for values that the column does not take, naming column and row (among the rows that match); `NotSupported` where `docs/format.md`
    /// says so; `Conflict`, `Contention`, `TableNotFound`, `OutcomeUnknown` as an append.
    pub async fn update(&self, update: &Update) -> Result<UpdateResult> {
        let snapshot = self.writable()?;
        let engine = self.engine();
        // What is wrong with the words of the update is known before it takes a lease.
        Plan::new(update, &snapshot)?;
        let mut run = Run { engine, update, updated_rows: 0 };
        let done = commit::run(engine, snapshot, &mut run).await.map_err(|error| self.name_it(error))?;
        let version = done.snapshot.version();
        self.advance(done.snapshot);
        Ok(UpdateResult { updated_rows: run.updated_rows, version })
    }
}

/// An update bound to the schema of a version.
struct Plan {
    filter: Option<BoundFilter>,
    /// Fields of the table with their new values, in the table's order; `None` keeps the old ones.
    columns: Vec<(Field, Option<Source>)>,
    /// The top-level fields that are read: kept, or used by an expression.
    read: Vec<Field>,
    schema: SchemaRef,
    format: FileVersion,
}

enum Source {
    Expression(Value),
    Constant(ArrayRef),
}

impl Plan {
    fn new(update: &Update, base: &Snapshot) -> Result<Plan> {
        let schema = &base.manifest.schema;
        if schema.as_read().as_ref() != schema {
            return Err(Error::not_supported("update of a table with blob columns"));
        }
        let format = FileVersion::parse(&base.manifest.data_format)?;
        FileWriter::check(schema, format)?;
        if update.columns.is_empty() {
            return Err(Error::invalid_input("at least one column must be specified in an update operation"));
        }
        let filter = match &update.filter {
            Some(text) => Some(BoundFilter::new(text, schema)?),
            None => None,
        };
        let mut columns: Vec<(Field, Option<Source>)> =
            schema.fields.iter().map(|field| (field.clone(), None)).collect();
        for (name, value) in &update.columns {
            let Some((field, source)) = columns.iter_mut().find(|(field, _)| field.name == *name) else {
                return Err(no_column(name, schema));
            };
            if source.replace(new_value(value, field, schema)?).is_some() {
                return Err(Error::invalid_input(format!("column \"{name}\" is given two values")));
            }
        }
        let used = |field: &Field| {
            columns.iter().any(|(own, source)| match source {
                None => own.name == field.name,
                Some(Source::Expression(value)) => value.columns().contains(&field.name),
                Some(Source::Constant(_)) => false,
            })
        };
        let read = schema.fields.iter().filter(|field| used(field)).cloned().collect();
        Ok(Plan { filter, schema: Arc::new(schema.to_arrow()), columns, read, format })
    }

    /// The ids of the fields that get new values, those of their members with them.
    fn changed_fields(&self) -> Vec<u32> {
        fn visit(field: &Field, ids: &mut Vec<u32>) {
            ids.extend(u32::try_from(field.id.0));
            field.children.iter().for_each(|child| visit(child, ids));
        }
        let mut ids = Vec::new();
        for (field, _) in self.columns.iter().filter(|(_, source)| source.is_some()) {
            visit(field, &mut ids);
        }
        ids.sort_unstable();
        ids
    }

    /// The new rows of a window, of which `done` others were made before.
    async fn rows(&self, window: &Window, have: &[Field], done: u64) -> Result<RecordBatch> {
        let known = |field: &Field| have.iter().position(|other| other == field).and_then(|at| window.columns.get(at));
        let missing: Vec<&Field> = self.read.iter().filter(|field| known(field).is_none()).collect();
        let mut read = match missing.is_empty() {
            true => Vec::new(),
            false => window.fragment.read(&missing, &window.rows).await?,
        }
        .into_iter();
        let mut old = Vec::with_capacity(self.read.len());
        for field in &self.read {
            let array = match known(field) {
                Some(array) => array.clone(),
                None => read.next().ok_or_else(|| Error::internal("a column was not read"))?,
            };
            old.push((field.to_arrow(), array));
        }
        let count = usize::try_from(row_count(&window.rows)).map_err(|_| Error::internal("more rows than memory"))?;
        let (fields, arrays): (Vec<ArrowField>, Vec<ArrayRef>) = old.into_iter().unzip();
        let old = batch_of(Arc::new(ArrowSchema::new(fields)), arrays, count)?;
        let row_of = |at: usize| Some(done.saturating_add(at as u64));
        let new = |(field, source): &(Field, Option<Source>)| match source {
            None => old.column_by_name(&field.name).cloned().ok_or_else(|| Error::internal("a column was not read")),
            Some(Source::Constant(value)) => {
                repeat(value, count).map_err(|_| Error::not_supported("more than 2 GB of one column at once"))
            }
            Some(Source::Expression(value)) => value.evaluate(&old, &row_of),
        };
        let columns = self.columns.iter().map(new).collect::<Result<Vec<_>>>()?;
        // The writer's checks follow: an expression may be of another type than its column.
        let fields: Vec<ArrowField> = self
            .schema
            .fields()
            .iter()
            .zip(&columns)
            .map(|(field, column)| ArrowField::new(field.name(), column.data_type().clone(), true))
            .collect();
        batch_of(Arc::new(ArrowSchema::new(fields)), columns, count)
    }
}

fn batch_of(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(|error| Error::internal(error.to_string()))
}

fn new_value(value: &NewValue, field: &Field, schema: &Schema) -> Result<Source> {
    let refused = |found: &dyn std::fmt::Display| {
        Error::schema(format!("column \"{}\" ({}) takes no value of type {found}", field.name, field.data_type))
    };
    match value {
        NewValue::Constant(array) if array.len() != 1 => Err(Error::invalid_input("a constant is one value")),
        NewValue::Constant(array) => Ok(Source::Constant(adapt_column(array, &field.to_arrow())?)),
        NewValue::Sql(text) => {
            let which = format!("column \"{}\"", field.name);
            let value = Value::parse_as(text, schema, &field.data_type).map_err(|error| error.of_expression(&which))?;
            if let Some(name) = value.columns().iter().find(|name| schema.field(name).is_none()) {
                return Err(Error::not_supported(format!("{name} in the new value of a column")));
            }
            if !value.fits(&field.data_type) {
                return Err(refused(value.data_type()));
            }
            Ok(Source::Expression(value))
        }
    }
}

fn no_column(name: &str, schema: &Schema) -> Error {
    let top = name.split('.').next().unwrap_or(name);
    if schema.field_path(name).is_some() && schema.field(top).is_some() {
        return Error::not_supported(format!(
            "update of a single member of a struct: {name}; give the column \"{top}\" a new value"
        ));
    }
    let names: Vec<&str> = schema.fields.iter().map(|field| field.name.as_str()).collect();
    let hint = columns_hint(name, &names);
    Error::invalid_input(format!("Column '{name}' does not exist in dataset schema{hint}"))
}

struct Run<'a> {
    engine: &'a Rc<Engine>,
    update: &'a Update,
    updated_rows: u64,
}

#[async_trait(?Send)]
impl Execution for Run<'_> {
    async fn execute(&mut self, base: &Rc<Snapshot>) -> Result<Option<Change>> {
        let mut plan = Plan::new(self.update, base)?;
        let now_ns = self.engine.env.now_ns();
        for (_, source) in &mut plan.columns {
            if let Some(Source::Expression(value)) = source {
                value.set_now(now_ns);
            }
        }
        let mut writer =
            RowWriter::new(self.engine.clone(), base.dir.clone(), Rc::new(base.manifest.schema.clone()), plan.format);
        match write(self.engine, base, &mut plan, &mut writer).await {
            Ok((rows, written)) => {
                self.updated_rows = rows.values().map(RoaringBitmap::len).sum();
                let operation = Operation::Update {
                    removed: Vec::new(),
                    updated: Vec::new(),
                    new: written.fragments,
                    fields_modified: Vec::new(),
                    fields_preserving: plan.changed_fields(),
                    has_key_filter: false,
                };
                let (objects, files) = (written.objects, written.files);
                Ok(Some(Change { rows, objects, files, ..Change::of(operation) }))
            }
            Err(error) => {
                writer.abort().await;
                Err(error)
            }
        }
    }
}

/// Writes the new rows, window by window; which old ones they replace.
async fn write(
    engine: &Rc<Engine>,
    base: &Rc<Snapshot>,
    plan: &mut Plan,
    writer: &mut RowWriter,
) -> Result<(SortedMap<FragmentId, RoaringBitmap>, Written)> {
    let mut matches = Matches::new(engine.clone(), base.clone(), plan.filter.take());
    let have = matches.filter_fields().to_vec();
    let mut rows: SortedMap<FragmentId, RoaringBitmap> = SortedMap::new();
    let mut carried = Carried::new(&base.manifest);
    let (mut done, mut at_once) = (0, None);
    while let Some(window) = matches.next(u64::MAX).await? {
        collect(&mut rows, &window)?;
        carried.push(window.fragment.fragment(), &window.rows)?;
        let fragment = window.fragment.fragment().id;
        let limit = match at_once {
            Some((known, limit)) if known == fragment => limit,
            _ => window.fragment.rows_at_once(&plan.read.iter().collect::<Vec<_>>()).await?,
        };
        at_once = Some((fragment, limit));
        let mut left = Some(window);
        while let Some(window) = left.take() {
            let (now, later) = split(window, limit);
            let batch = plan.rows(&now, &have, done).await?;
            writer.write(&batch).await?;
            done += batch.num_rows() as u64;
            left = later;
        }
    }
    let mut written = writer.finish().await?;
    carried.give_changed(&mut written.fragments);
    Ok((rows, written))
}
