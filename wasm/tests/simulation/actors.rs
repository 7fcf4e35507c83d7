//! Who lives in a tab, and what each does.

use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lancelet::store::fault::yield_once;
use lancelet::table::{
    CleanupOptions, CompactOptions, Consistency, MergeOptions, NewValue, OptimizeOptions, ScanOptions, Table, Update,
    When,
};
use lancelet::{ErrorCode, Result};

use crate::builders::int64s;
use crate::invariants::{holds, reads_its_version};
use crate::world::{Deed, State, Tab, World};

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
}

/// How often each is cast.
pub const CAST: [(Role, u64); 11] = [
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
];

/// One of a tab's inhabitants.
pub struct Actor {
    pub world: Rc<World>,
    pub tab: Rc<Tab>,
    pub number: usize,
}

pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new("n", DataType::Int64, false)]))
}

pub fn batch(rows: &State) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.keys().copied())),
        Arc::new(Int64Array::from_iter_values(rows.values().copied())),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// The rows that a new table begins with: one to tell lives apart, three to be changed.
pub fn first_rows(life: i64) -> State {
    State::from([(-life, 0), (1, 0), (2, 0), (3, 0)])
}

pub async fn append_rows(table: &Table, rows: &State) -> Result<u64> {
    let mut append = table.append().await?;
    append.write(&batch(rows)).await?;
    append.finish().await
}

/// All rows of the version that the handle stands on.
pub async fn read(table: &Table) -> Result<State> {
    let mut running = table.scan(ScanOptions::default()).await?;
    let (mut state, mut count) = (State::new(), 0);
    while let Some(batch) = running.next().await? {
        let batch = [batch];
        let rows: Vec<(i64, i64)> = int64s(&batch, "id").into_iter().zip(int64s(&batch, "n")).collect();
        count += rows.len();
        state.extend(rows);
    }
    assert_eq!(state.len(), count, "a row is there twice: {state:?}");
    Ok(state)
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
        }
    }

    async fn open(&self) -> Option<Table> {
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
    async fn attempt(
        &self,
        table: Table,
        deed: Deed,
        work: impl AsyncFnOnce(&Table) -> Result<(u64, Option<u64>)>,
    ) -> Option<Table> {
        let is_on_its_version = matches!(deed, Deed::Append(_) | Deed::Upsert(_));
        let base = if is_on_its_version { table.version().await.ok() } else { None };
        let outcome = self.world.attempt(self.number, (deed, base), work(&table)).await;
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
                self.tab.may_meet(&error);
                self.open().await
            }
        }
    }

    async fn append(&self) {
        let Some(mut table) = self.open().await else { return };
        for turn in 0..3 {
            let id = (self.number as i64 + 1) * 100 + turn;
            let rows = State::from([(id, 0), (id + 50, 1)]);
            let deed = Deed::Append(rows.clone());
            let work = async |table: &Table| Ok((append_rows(table, &rows).await?, None));
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
            let rows = State::from([(first, n), (first + 2, n)]);
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
        let history = self.world.lives.borrow().get(&dir)?.clone();
        let ids: Vec<i64> = self.world.states(&history).last()?.keys().copied().filter(|id| *id >= 100).collect();
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
                create.write(&batch(&rows)).await?;
                create.finish(Consistency::Lazy).await?;
                Ok((1, Some(rows.len() as u64)))
            });
            if let Err(error) = made.await {
                self.tab.may_meet_while_making(&error);
            }
        }
    }
}
