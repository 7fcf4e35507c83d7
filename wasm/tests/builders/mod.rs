//! Table states made by the real write path, and what tests ask of them.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lancelet::env::FixedEnv;
use lancelet::store::Store;
use lancelet::store::memory::MemoryStore;
use lancelet::table::{Consistency, Database, Scan, ScanOptions, Table};

pub use lancelet::store::conformance::block_on;

/// A database in memory, and the clock it runs by.
pub struct World {
    pub store: Rc<dyn Store>,
    pub env: Rc<FixedEnv>,
    pub database: Database,
}

impl World {
    pub fn new() -> World {
        World::seeded(7)
    }

    pub fn seeded(seed: u64) -> World {
        let env = Rc::new(FixedEnv::new(seed, 1_700_000_000_000_000_000));
        let store: Rc<dyn Store> = Rc::new(MemoryStore::new(env.clone()));
        let database = Database::new(store.clone(), env.clone());
        World { store, env, database }
    }

    /// Another engine on the same store: another tab.
    pub fn tab(&self, seed: u64) -> Database {
        let env = Rc::new(FixedEnv::new(seed, 1_700_000_000_000_000_000));
        Database::new(self.store.clone(), env)
    }

    /// A table `t` with one fragment per range.
    pub async fn table(&self, fragments: &[Range<i64>]) -> Table {
        let table = self.create("t", 0..0).await;
        for rows in fragments {
            append(&table, rows.clone()).await;
        }
        table
    }

    pub async fn create(&self, name: &str, rows: Range<i64>) -> Table {
        let mut create = self.database.create_table(name, schema()).await.unwrap();
        create.write(&batch(rows)).await.unwrap();
        create.finish(Consistency::Lazy).await.unwrap()
    }

    pub async fn open(&self, name: &str) -> Table {
        self.database.open_table(name, Consistency::Lazy).await.unwrap()
    }
}

/// `id` int64 not null, `name` string.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new("name", DataType::Utf8, true)]))
}

/// Rows of [`schema`]: every third name is null.
pub fn batch(ids: Range<i64>) -> RecordBatch {
    let names = ids.clone().map(|id| (id % 3 != 0).then(|| format!("n{id}")));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from_iter_values(ids.clone())), Arc::new(StringArray::from_iter(names))];
    RecordBatch::try_new(schema(), columns).unwrap()
}

pub async fn append(table: &Table, ids: Range<i64>) -> u64 {
    let mut append = table.append().await.unwrap();
    append.write(&batch(ids)).await.unwrap();
    append.finish().await.unwrap()
}

pub async fn drain(mut scan: Scan) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    while let Some(batch) = scan.next().await.unwrap() {
        assert!(batch.num_rows() > 0, "a batch without rows");
        batches.push(batch);
    }
    batches
}

pub async fn scan(table: &Table, options: ScanOptions) -> Vec<RecordBatch> {
    drain(table.scan(options).await.unwrap()).await
}

/// Values of an int64 column over all batches.
pub fn int64s(batches: &[RecordBatch], column: &str) -> Vec<i64> {
    let values =
        |batch: &RecordBatch| batch.column_by_name(column).unwrap().as_primitive::<Int64Type>().values().to_vec();
    batches.iter().flat_map(values).collect()
}

/// Values of `_rowid` over all batches.
pub fn row_ids(batches: &[RecordBatch]) -> Vec<u64> {
    let values =
        |batch: &RecordBatch| batch.column_by_name("_rowid").unwrap().as_primitive::<UInt64Type>().values().to_vec();
    batches.iter().flat_map(values).collect()
}

pub fn names(batches: &[RecordBatch]) -> Vec<Option<String>> {
    let values = |batch: &RecordBatch| -> Vec<Option<String>> {
        batch.column_by_name("name").unwrap().as_string::<i32>().iter().map(|name| name.map(str::to_owned)).collect()
    };
    batches.iter().flat_map(values).collect()
}

/// Every id of the version that the handle stands on, in order.
pub async fn ids(table: &Table) -> Vec<i64> {
    int64s(&scan(table, ScanOptions { columns: columns(&["id"]), ..ScanOptions::default() }).await, "id")
}

pub fn columns(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

pub fn filtered(filter: &str) -> ScanOptions {
    ScanOptions { filter: Some(filter.to_owned()), ..ScanOptions::default() }
}

/// `id IN (...)`.
pub fn id_in(ids: impl IntoIterator<Item = i64>) -> String {
    let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    format!("id IN ({})", ids.join(", "))
}
