//! Who lives in a tab, and what each does.

use std::rc::Rc;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lancelet::store::fault::yield_once;
use lancelet::table::{
    CleanupOptions, CompactOptions, Consistency, MergeOptions, NewValue, OptimizeOptions, ScanOptions, Table, Update,
    When,
};
use lancelet::{ErrorCode, Result};

use crate::invariants::{holds, reads_its_version};
use crate::model::{Deed, N, Rows, Seen, SeenRow};
use crate::world::{Tab, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Appender,
    Deleter,
    Updater,
    Upserter,
    Compactor,
    Cleaner,
    Tagger,
    Overwriter,
    Restorer,
    Reader,
    Recreator,
    Changer,
}

/// How often each is cast.
pub const CAST: [(Role, u64); 12] = [
    (Role::Appender, 6),
    (Role::Deleter, 5),
    (Role::Updater, 4),
    (Role::Upserter, 4),
    (Role::Compactor, 4),
    (Role::Cleaner, 3),
    (Role::Tagger, 1),
    (Role::Reader, 3),
    (Role::Overwriter, 1),
    (Role::Restorer, 1),
    (Role::Recreator, 1),
    (Role::Changer, 5),
];

/// One of a tab's inhabitants.
pub struct Actor {
    pub world: Rc<World>,
    pub tab: Rc<Tab>,
    pub number: usize,
}

pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new(N, DataType::Int64, false)]))
}

pub fn batch(rows: &Rows) -> RecordBatch {
    wide_batch(rows, &schema(), 0, false)
}

/// Rows of a schema, with one value in every other column, or in those that take no nulls.
fn wide_batch(rows: &Rows, schema: &SchemaRef, other: i64, leaves_nulls: bool) -> RecordBatch {
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        let values: Vec<i64> = match field.name().as_str() {
            name if leaves_nulls && field.is_nullable() && name != N => {
                return new_null_array(field.data_type(), rows.len());
            }
            "id" => rows.keys().copied().collect(),
            N => rows.values().copied().collect(),
            _ => vec![other; rows.len()],
        };
        match field.data_type() {
            DataType::Int32 => {
                Arc::new(Int32Array::from_iter_values(values.iter().map(|n| i32::try_from(*n).unwrap())))
            }
            _ => Arc::new(Int64Array::from_iter_values(values)),
        }
    });
    RecordBatch::try_new(schema.clone(), columns.collect()).unwrap()
}

/// The rows that a new table begins with: one to tell lives apart, three to be changed.
pub fn first_rows(life: i64) -> Rows {
    Rows::from([(-life, 0), (1, 0), (2, 0), (3, 0)])
}

pub async fn append_rows(table: &Table, rows: &Rows, other: i64, leaves_nulls: bool) -> Result<u64> {
    let batch = wide_batch(rows, &table.schema().await?, other, leaves_nulls);
    let mut append = table.append().await?;
    append.write(&batch).await?;
    append.finish().await
}

/// The whole version that the handle stands on.
pub async fn read(table: &Table) -> Result<Seen> {
    let schema = table.schema().await?;
    let mut seen = Seen::default();
    for field in schema.fields().iter().skip(1) {
        let is_wide = *field.data_type() == DataType::Int64;
        let note = field.metadata().get("note").cloned();
        seen.columns.push((field.name().clone(), is_wide, field.is_nullable(), note));
    }
    let system = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"].map(str::to_owned);
    let columns = schema.fields().iter().map(|field| field.name().clone()).chain(system);
    let options = ScanOptions { columns: Some(columns.collect()), ..ScanOptions::default() };
    let mut running = table.scan(options).await?;
    while let Some(batch) = running.next().await? {
        let version = |at: usize, row: usize| batch.column(at).as_primitive::<UInt64Type>().value(row);
        let last = seen.columns.len();
        for row in 0..batch.num_rows() {
            let id = integer(batch.column(0), row).expect("an id");
            let values = (1..=last).map(|at| integer(batch.column(at), row)).collect();
            let (row_id, created_at, updated_at) =
                (version(last + 1, row), version(last + 2, row), version(last + 3, row));
            let twice = seen.rows.insert(id, SeenRow { values, row_id, created_at, updated_at });
            assert!(twice.is_none(), "the row {id} is there twice: {seen:?}");
        }
    }
    Ok(seen)
}

fn integer(array: &ArrayRef, row: usize) -> Option<i64> {
    let value = || match array.data_type() {
        DataType::Int32 => i64::from(array.as_primitive::<Int32Type>().value(row)),
        _ => array.as_primitive::<Int64Type>().value(row),
    };
    array.is_valid(row).then(value)
}

impl Actor {
    pub async fn live(self, role: Role) {
        match role {
            Role::Appender => self.append().await,
            Role::Deleter => self.delete().await,
            Role::Updater => self.update().await,
            Role::Upserter => self.upsert().await,
            Role::Compactor => self.compact().await,
            Role::Cleaner => self.clean().await,
            Role::Tagger => self.tag().await,
            Role::Overwriter => self.overwrite().await,
            Role::Restorer => self.restore().await,
            Role::Reader => self.read().await,
            Role::Recreator => self.recreate().await,
            Role::Changer => self.change_schema().await,
        }
    }

    pub(crate) async fn open(&self) -> Option<Table> {
        for _ in 0..20 {
            match self.tab.database().open_table("t", Consistency::Lazy).await {
                Ok(table) => return Some(table),
                Err(error) => self.tab.may_meet(&error),
            }
            yield_once().await;
        }
        None
    }

    /// Does a deed on a handle; a new handle when it failed.
    pub(crate) async fn attempt(
        &self,
        table: Table,
        deed: Deed,
        work: impl AsyncFnOnce(&Table) -> Result<(u64, Option<u64>)>,
    ) -> Option<Table> {
        // Where nothing newer is asked for; a delete or an update looks by itself.
        let base = match deed {
            Deed::Append(..) | Deed::Upsert(_) | Deed::Overwrite(_) | Deed::Describe { .. } => {
                table.version().await.ok()
            }
            _ => None,
        };
        let outcome = self.world.attempt(self.number, (deed.clone(), base), work(&table)).await;
        let checked = match outcome {
            // Whoever writes reads its own writes.
            Ok(version) if self.world.below(4) == 0 => match reads_its_version(&self.world, &table).await {
                Ok((stands, _)) => {
                    assert!(stands >= version, "a handle on version {stands} wrote version {version}");
                    Ok(())
                }
                Err(error) => Err(error),
            },
            outcome => outcome.map(|_| ()),
        };
        match checked {
            Ok(()) => Some(table),
            Err(error) => {
                self.tab.may(&error, &deed);
                self.open().await
            }
        }
    }

    async fn append(&self) {
        let Some(mut table) = self.open().await else { return };
        for turn in 0..3 {
            let id = (self.number as i64 + 1) * 100 + turn;
            let rows = Rows::from([(id, 0), (id + 50, 1)]);
            let other = 7_000 + id;
            let leaves_nulls = self.world.below(2) == 0;
            // Columns that it does not know yet are null in its rows in any case.
            if self.world.below(2) == 0
                && let Err(error) = table.checkout_latest().await
            {
                self.tab.may_meet(&error);
            }
            let deed = Deed::Append(rows.clone(), other, leaves_nulls);
            let work = async |table: &Table| Ok((append_rows(table, &rows, other, leaves_nulls).await?, None));
            let Some(next) = self.attempt(table, deed, work).await else { return };
            table = next;
        }
    }

    async fn delete(&self) {
        let Some(mut table) = self.open().await else { return };
        for _ in 0..3 {
            yield_once().await;
            let Some(id) = self.some_id() else { continue };
            let work = async |table: &Table| {
                // Which rows match is said by the version that the delete reads.
                table.checkout_latest().await?;
                let result = table.delete(&format!("id = {id}")).await?;
                Ok((result.version, Some(result.deleted_rows)))
            };
            let Some(next) = self.attempt(table, Deed::Delete(id), work).await else { return };
            table = next;
        }
    }

    async fn update(&self) {
        let Some(mut table) = self.open().await else { return };
        for _ in 0..3 {
            // One of few, so that updaters meet.
            let id = 1 + self.world.below(3) as i64;
            let columns = vec![("n".to_owned(), NewValue::Sql("n + 1".to_owned()))];
            let update = Update { filter: Some(format!("id = {id}")), columns };
            let work = async |table: &Table| {
                table.checkout_latest().await?;
                let result = table.update(&update).await?;
                Ok((result.version, Some(result.updated_rows)))
            };
            let Some(next) = self.attempt(table, Deed::Increment(id), work).await else { return };
            table = next;
        }
    }

    async fn upsert(&self) {
        let Some(mut table) = self.open().await else { return };
        for turn in 0..3 {
            // Keys that every upserter has, some of them in the table from its beginning.
            let first = 2 + self.world.below(4) as i64;
            let n = self.number as i64 * 100_000 + turn * 1_000;
            let rows = Rows::from([(first, n), (first + 2, n)]);
            let options = MergeOptions {
                on: vec!["id".to_owned()],
                matched_update: When::Always,
                not_matched_insert: true,
                ..MergeOptions::default()
            };
            let work = async |table: &Table| {
                let mut merge = table.merge_insert(options).await?;
                merge.write(&batch(&rows))?;
                let result = merge.finish().await?;
                assert_eq!(result.inserted_rows + result.updated_rows, rows.len() as u64);
                Ok((result.version, Some(result.updated_rows)))
            };
            let Some(next) = self.attempt(table, Deed::Upsert(rows.clone()), work).await else { return };
            table = next;
        }
    }

    async fn compact(&self) {
        let Some(mut table) = self.open().await else { return };
        for _ in 0..3 {
            for _ in 0..self.world.below(6) {
                yield_once().await;
            }
            let work = async |table: &Table| {
                table.compact(&CompactOptions::default()).await?;
                Ok((table.version().await?, None))
            };
            let Some(next) = self.attempt(table, Deed::Tidy, work).await else { return };
            table = next;
        }
    }

    async fn clean(&self) {
        let Some(mut table) = self.open().await else { return };
        for turn in 0..3 {
            for _ in 0..self.world.below(12) {
                yield_once().await;
            }
            self.world.is_cleaned.set(true);
            // Everything but the newest version; refused while somebody writes. Or what every writer may be met with.
            let all = CleanupOptions { older_than_ms: Some(0), delete_unverified: true, error_if_tagged: false };
            let old = CleanupOptions { older_than_ms: Some(700_000), delete_unverified: false, ..all };
            let cleaned = match self.world.below(3) {
                0 => table.cleanup(&old).await.map(|_| ()),
                1 => table.cleanup(&all).await.map(|_| ()),
                _ => {
                    let options = OptimizeOptions { cleanup: all, ..OptimizeOptions::default() };
                    let work = async |table: &Table| {
                        table.optimize(&options).await?;
                        Ok((table.version().await?, None))
                    };
                    self.world.attempt(self.number, (Deed::Tidy, None), work(&table)).await.map(|_| ())
                }
            };
            self.world.note(format!("actor {} cleaned up, {turn}: {cleaned:?}", self.number));
            if let Err(error) = cleaned {
                if error.code() != ErrorCode::Contention {
                    self.tab.may_meet(&error);
                }
                let Some(next) = self.open().await else { return };
                table = next;
            }
        }
    }

    async fn tag(&self) {
        for turn in 0..3 {
            let Some(table) = self.open().await else { return };
            let name = format!("tag-{}-{turn}", self.number);
            let tagged = async {
                let version = table.version().await?;
                table.create_tag(&name, version).await?;
                assert_eq!(table.tag_version(&name).await?, version);
                // Behind its tag a version stays, whatever is cleaned up; what is read is the version's.
                table.checkout_tag(&name).await?;
                reads_its_version(&self.world, &table).await?;
                table.checkout_latest().await?;
                if self.world.below(2) == 0 { table.delete_tag(&name).await } else { Ok(()) }
            };
            if let Err(error) = tagged.await {
                self.tab.may_meet(&error);
            }
        }
    }

    async fn overwrite(&self) {
        let Some(mut table) = self.open().await else { return };
        for turn in 0..2 {
            let rows = first_rows((self.number as i64 + 1) * 10 + 5 + turn);
            let work = async |table: &Table| {
                let mut overwrite = table.overwrite().await?;
                overwrite.write(&batch(&rows)).await?;
                Ok((overwrite.finish().await?, None))
            };
            let Some(next) = self.attempt(table, Deed::Overwrite(rows.clone()), work).await else { return };
            table = next;
        }
    }

    async fn restore(&self) {
        for _ in 0..2 {
            for _ in 0..self.world.below(10) {
                yield_once().await;
            }
            let Some(table) = self.open().await else { return };
            let checked_out = async {
                let version = self.world.below(table.version().await?) + 1;
                table.checkout(version).await?;
                Ok(version)
            };
            match checked_out.await {
                Ok(version) => {
                    let work = async |table: &Table| Ok((table.restore().await?, None));
                    if self.attempt(table, Deed::Restore(version), work).await.is_none() {
                        return;
                    }
                }
                Err(error) => self.tab.may_meet(&error),
            }
        }
    }

    /// A row of the newest version that is no row of the table's beginning.
    fn some_id(&self) -> Option<i64> {
        let dir = self.world.live_dir()?;
        let ids: Vec<i64> = self.world.states(&dir).last()?.rows.keys().copied().filter(|id| *id >= 100).collect();
        let at = self.world.below(ids.len().max(1) as u64);
        ids.get(usize::try_from(at).unwrap()).copied()
    }

    async fn read(&self) {
        for _ in 0..2 {
            let Some(table) = self.open().await else { return };
            let held = async {
                table.checkout(table.version().await?).await?;
                let first = reads_its_version(&self.world, &table).await?;
                for _ in 0..2 {
                    yield_once().await;
                    holds(&self.world, &self.tab, &table, &first).await?;
                }
                table.close().await
            };
            if let Err(error) = held.await {
                self.tab.may_meet(&error);
            }
        }
    }

    async fn recreate(&self) {
        for turn in 0..2 {
            for _ in 0..15 {
                yield_once().await;
            }
            self.world.note(format!("actor {} drops the table", self.number));
            self.world.is_dropping.set(true);
            if let Err(error) = self.tab.database().drop_table("t").await {
                self.tab.may_meet(&error);
            }
            let rows = first_rows((self.number as i64 + 1) * 10 + turn);
            let made = self.world.attempt(self.number, (Deed::Create(rows.clone()), None), async {
                let mut create = self.tab.database().create_table("t", schema()).await?;
                create = create.with_stable_row_ids(self.world.has_row_ids);
                create.write(&batch(&rows)).await?;
                create.finish(Consistency::Lazy).await?;
                Ok((1, Some(rows.len() as u64)))
            });
            if let Err(error) = made.await {
                self.tab.may(&error, &Deed::Create(rows));
            }
        }
    }
}
