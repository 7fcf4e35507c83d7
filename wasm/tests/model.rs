//! Random operations on a table and on a map in memory: what the table says is what the map says, whatever handle is asked.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod builders;

use builders::{World, append, batch, block_on, columns, filtered, ids, int64s, scan};
use lancelet::env::{Env, FixedEnv};
use lancelet::table::{Consistency, ScanOptions, Table};

const RUNS: u64 = 64;
const OPERATIONS: usize = 50;

/// What the table should hold: ids in order, one list per version, from version 1.
struct Model {
    versions: Vec<Vec<i64>>,
    next_id: i64,
}

impl Model {
    fn latest(&self) -> &Vec<i64> {
        self.versions.last().unwrap()
    }

    fn commit(&mut self, rows: Vec<i64>) {
        self.versions.push(rows);
    }
}

fn pick(random: &FixedEnv, below: u64) -> u64 {
    random.random_u64() % below
}

async fn step(world: &World, table: &mut Table, model: &mut Model, random: &FixedEnv) {
    match pick(random, 10) {
        0..=3 => {
            let count = i64::try_from(1 + pick(random, 40)).unwrap();
            let rows = model.next_id..model.next_id + count;
            model.next_id += count;
            let version = append(table, rows.clone()).await;
            let mut all = model.latest().clone();
            all.extend(rows);
            model.commit(all);
            assert_eq!(version, model.versions.len() as u64);
        }
        4..=6 => {
            let low = i64::try_from(pick(random, model.next_id.unsigned_abs() + 1)).unwrap();
            let high = low + i64::try_from(pick(random, 30)).unwrap();
            let (kept, gone): (Vec<i64>, Vec<i64>) =
                model.latest().iter().partition(|id| **id < low || **id >= high || **id % 3 == 0);
            let result = table.delete(&format!("id >= {low} AND id < {high} AND name IS NOT NULL")).await.unwrap();
            assert_eq!(result.deleted_rows, gone.len() as u64);
            model.commit(kept);
            assert_eq!(result.version, model.versions.len() as u64);
        }
        7 => {
            // An append that is given up, and a handle that is forgotten.
            let mut given_up = table.append().await.unwrap();
            given_up.write(&batch(0..5)).await.unwrap();
            given_up.abort().await.unwrap();
            *table = world.tab(random.random_u64()).open_table("t", Consistency::Lazy).await.unwrap();
        }
        8 => {
            let version = 1 + pick(random, model.versions.len() as u64);
            table.checkout(version).await.unwrap();
            assert_eq!(&ids(table).await, &model.versions[usize::try_from(version).unwrap() - 1]);
            table.checkout_latest().await.unwrap();
        }
        _ => {
            let low = i64::try_from(pick(random, model.next_id.unsigned_abs() + 1)).unwrap();
            let (offset, limit) = (pick(random, 20), pick(random, 50));
            let options = ScanOptions {
                columns: columns(&["name", "id"]),
                limit: Some(limit),
                offset,
                batch_rows: Some(1 + pick(random, 30)),
                ..filtered(&format!("id >= {low}"))
            };
            let expected = model.latest().iter().copied().filter(|id| *id >= low);
            let expected: Vec<i64> = expected.skip(offset as usize).take(limit as usize).collect();
            assert_eq!(int64s(&scan(table, options).await, "id"), expected);
        }
    }
    assert_eq!(table.count_rows(None).await.unwrap(), model.latest().len() as u64);
}

#[test]
fn a_table_agrees_with_a_map() {
    for seed in 0..RUNS {
        let run = std::panic::catch_unwind(|| {
            block_on(async {
                let random = FixedEnv::new(seed, 0);
                let world = World::seeded(seed + 1_000_000);
                let mut table = world.create("t", 0..0).await;
                let mut model = Model { versions: vec![Vec::new()], next_id: 0 };
                for _ in 0..OPERATIONS {
                    step(&world, &mut table, &mut model, &random).await;
                }
                let fresh = world.open("t").await;
                assert_eq!(&ids(&fresh).await, model.latest());
                assert_eq!(fresh.versions().await.unwrap().len(), model.versions.len());
                assert!(!world.database.holds_leases());
            });
        });
        assert!(run.is_ok(), "seed {seed}");
    }
}
