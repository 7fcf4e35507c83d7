//! Reads over a version and the rows that lie in the shards beside it.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use lancelet::format::wal::entry::TOMBSTONE;
use lancelet::format::wal::layout::{entry_path, manifest_path, shard_folder};
use lancelet::format::wal::{ShardId, WalEntry};
use lancelet::lsm::bucket_ids;
use lancelet::store::{ListOptions, Path};
use lancelet::table::{Consistency, Rows, ScanOptions, Table};
use lancelet::{Error, ErrorCode};

use crate::builders::{World, block_on, columns, filtered, ids, int64s, names, row_ids, scan};
use crate::write_spec::{bucket, code, entry, fill, manifest, put, table};

/// A row of a shard: its id, its name, or that it deletes its id.
type Row = (i64, Option<&'static str>);
const GONE: Option<&str> = None;
/// No table may have a column of the log's name; this one takes as many bytes.
const ALMOST_TOMBSTONE: &str = "_Tombstone";

fn batch(rows: &[Row]) -> RecordBatch {
    batch_with(rows, TOMBSTONE)
}

fn batch_with(rows: &[Row], tombstone: &str) -> RecordBatch {
    let fields = vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
        Field::new(tombstone, DataType::Boolean, false),
    ];
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1))),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.1.is_none())))),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn log(batches: Vec<RecordBatch>) -> Vec<u8> {
    WalEntry { writer_epoch: 1, is_sentinel: false, batches }.encode().unwrap()
}

/// Puts rows as a generation into a shard, without the first rows that a condition names.
async fn flush(world: &World, shard: &ShardId, generation: u64, rows: &[Row], masked: Option<&str>) {
    let name = format!("g{generation}");
    let mut create = world.database.create_table(&name, batch_with(&[], ALMOST_TOMBSTONE).schema()).await.unwrap();
    create.write(&batch_with(rows, ALMOST_TOMBSTONE)).await.unwrap();
    let made = create.finish(Consistency::Lazy).await.unwrap();
    if let Some(masked) = masked {
        made.delete(masked).await.unwrap();
    }
    let from = world.store.lookup(&name).await.unwrap().unwrap();
    let files = world.store.list(&from, &Path::default(), &ListOptions::default()).await.unwrap().objects;
    for file in files {
        let mut bytes = world.store.get(&from, &file.path).await.unwrap().to_vec();
        // In the schema, and in the transaction that made it.
        for at in 0..bytes.len().saturating_sub(TOMBSTONE.len()) {
            let name = &mut bytes[at..at + TOMBSTONE.len()];
            if name == ALMOST_TOMBSTONE.as_bytes() {
                name.copy_from_slice(TOMBSTONE.as_bytes());
            }
        }
        let to = format!("{}/0000000{generation}_gen_{generation}/{}", shard_folder(shard), file.path);
        put(world, &to, bytes).await;
    }
    world.database.drop_table(&name).await.unwrap();
}

/// Six rows below two generations and a log of two entries.
async fn layered(world: &World) -> Table {
    let base = table(world).await;
    let shard = bucket_ids(2)[0];
    flush(world, &shard, 1, &[(1, Some("one")), (2, Some("one")), (3, GONE), (4, Some("one"))], None).await;
    flush(world, &shard, 2, &[(2, Some("old")), (9, Some("two")), (2, Some("two"))], Some("name = 'old'")).await;
    put(world, &manifest_path(&shard, 1), manifest(1, 1, 0, &[1, 2])).await;
    put(world, &entry_path(&shard, 1), log(vec![batch(&[(9, Some("log")), (3, Some("log")), (4, GONE)])])).await;
    put(
        world,
        &entry_path(&shard, 2),
        log(vec![batch(&[(8, GONE), (7, Some("x")), (5, Some("x")), (5, Some("log"))]), batch(&[(7, Some("log"))])]),
    )
    .await;
    base
}

async fn contents(table: &Table, options: ScanOptions) -> Vec<String> {
    let batches = scan(table, options).await;
    let names = names(&batches).into_iter().map(|name| name.unwrap_or_else(|| "-".to_owned()));
    int64s(&batches, "id").into_iter().zip(names).map(|(id, name)| format!("{id} {name}")).collect()
}

const LAYERED: [&str; 7] = ["0 -", "1 one", "2 two", "9 log", "3 log", "5 log", "7 log"];

#[test]
fn the_newest_row_of_each_key_is_read_and_what_deletes_a_key_is_none() {
    block_on(async {
        let world = World::new();
        let table = layered(&world).await;
        assert_eq!(contents(&table, ScanOptions::default()).await, LAYERED);
        assert_eq!(table.count_rows(None).await, Ok(7));
        assert_eq!(contents(&world.open("t").await, ScanOptions::default()).await, LAYERED);
        // A filter never finds a row that has a newer one.
        for (filter, expected) in [
            ("name = 'n1' or name = 'two'", vec!["2 two"]),
            ("id in (4, 8)", vec![]),
            ("id in (2, 9, 5)", vec!["2 two", "9 log", "5 log"]),
            ("name is null", vec!["0 -"]),
        ] {
            assert_eq!(contents(&table, filtered(filter)).await, expected, "{filter}");
            assert_eq!(table.count_rows(Some(filter)).await, Ok(expected.len() as u64), "{filter}");
        }
        for offset in 0..8 {
            let options = ScanOptions { offset, limit: Some(2), batch_rows: Some(1), ..ScanOptions::default() };
            let expected: Vec<&str> = LAYERED.into_iter().skip(offset as usize).take(2).collect();
            assert_eq!(contents(&table, options).await, expected, "{offset}");
        }
        let only_names = scan(&table, ScanOptions { columns: columns(&["name"]), ..ScanOptions::default() }).await;
        assert_eq!(names(&only_names).len(), 7);
    });
}

#[test]
fn rows_beside_a_version_are_taken_by_offset_and_by_id() {
    block_on(async {
        for stable in [false, true] {
            let world = World::new();
            let table = if stable { stable_ids(&world).await } else { layered(&world).await };
            let all = contents(&table, ScanOptions::default()).await;
            let offsets = Rows::Offsets((0..all.len() as u64 + 2).collect());
            let taken = contents(&table, ScanOptions { rows: Some(offsets), ..ScanOptions::default() }).await;
            assert_eq!(taken, all);
            let ids = row_ids(&scan(&table, ScanOptions { with_row_id: true, ..ScanOptions::default() }).await);
            for (id, row) in ids.into_iter().zip(&all) {
                let rows = Some(Rows::Ids(vec![id]));
                let taken = contents(&table, ScanOptions { rows, ..ScanOptions::default() }).await;
                assert_eq!(&taken, std::slice::from_ref(row), "{id}");
            }
        }
    });
}

/// A table with stable row ids and rows in a log.
async fn stable_ids(world: &World) -> Table {
    let create = world.database.create_table("t", crate::builders::schema()).await.unwrap();
    let mut create = create.with_stable_row_ids(true);
    create.write(&crate::builders::batch(0..4)).await.unwrap();
    let table = create.finish(Consistency::Lazy).await.unwrap();
    table.set_unenforced_primary_key("id").await.unwrap();
    table.set_lsm_write_spec(&bucket("id", 2)).await.unwrap();
    fill(world, &[&[1, 7]]).await;
    table
}

#[test]
fn the_base_table_alone_is_read_on_request_and_old_versions_have_no_rows_beside_them() {
    block_on(async {
        let world = World::new();
        let table = layered(&world).await;
        let base = ScanOptions { use_lsm: Some(false), ..ScanOptions::default() };
        assert_eq!(contents(&table, base).await, ["0 -", "1 n1", "2 n2", "3 -", "4 n4", "5 n5"]);
        let version = table.version().await.unwrap();
        table.checkout(version).await.unwrap();
        assert_eq!(ids(&table).await, [0, 1, 2, 3, 4, 5]);
        let asked = table.scan(ScanOptions { use_lsm: Some(true), ..ScanOptions::default() }).await;
        assert!(asked.err().is_some_and(|error| error.to_string().contains("time-traveled")));
    });
}

#[test]
fn what_comes_into_the_log_is_seen_by_the_next_read() {
    block_on(async {
        let world = World::new();
        let table = table(&world).await;
        let shard = fill(&world, &[&[1]]).await;
        assert_eq!(table.count_rows(Some("name = 'fresh'")).await, Ok(1));
        // Cut off: it was never promised, and another one may take its place.
        let mut torn = entry(&[2]);
        torn.truncate(torn.len() / 2);
        put(&world, &entry_path(&shard, 2), torn).await;
        assert_eq!(table.count_rows(Some("name = 'fresh'")).await, Ok(1));
        put(&world, &entry_path(&shard, 2), entry(&[2, 20])).await;
        assert_eq!(table.count_rows(Some("name = 'fresh'")).await, Ok(3));
        assert_eq!(table.count_rows(None).await, Ok(7));
        // Flushed: the same rows from a generation.
        flush(&world, &shard, 1, &[(1, Some("fresh")), (2, Some("fresh")), (20, Some("fresh"))], None).await;
        put(&world, &manifest_path(&shard, 2), manifest(2, 1, 2, &[1])).await;
        assert_eq!(contents(&table, filtered("name = 'fresh'")).await, ["1 fresh", "2 fresh", "20 fresh"]);
    });
}

#[test]
fn a_handle_on_a_version_of_another_spec_reads_no_rows_of_the_new_one_over_the_old_rows() {
    block_on(async {
        let world = World::new();
        let table = table(&world).await;
        let other = world.tab(9).open_table("t", Consistency::Lazy).await.unwrap();
        other.delete("id >= 2").await.unwrap();
        other.unset_lsm_write_spec().await.unwrap();
        other.set_lsm_write_spec(&bucket("id", 2)).await.unwrap();
        fill(&world, &[&[1]]).await;
        assert_eq!(contents(&table, ScanOptions::default()).await, ["0 -", "1 fresh"]);
    });
}

#[test]
fn entries_from_before_a_column_have_nulls_in_it() {
    block_on(async {
        let world = World::new();
        let table = table(&world).await;
        let shard = fill(&world, &[&[1]]).await;
        let narrow = batch(&[(2, Some("x"))]).project(&[0, 2]).unwrap();
        put(&world, &entry_path(&shard, 2), log(vec![narrow])).await;
        assert_eq!(contents(&table, filtered("id in (1, 2)")).await, ["1 fresh", "2 -"]);
    });
}

#[test]
fn rows_that_are_not_of_the_table_are_corrupt_and_missing_generations_are_named() {
    block_on(async {
        let found = async |bytes: Vec<u8>| {
            let world = World::new();
            let table = table(&world).await;
            let shard = fill(&world, &[&[1]]).await;
            put(&world, &entry_path(&shard, 2), bytes).await;
            put(&world, &entry_path(&shard, 3), entry(&[1])).await;
            code(table.scan(ScanOptions::default()).await)
        };
        assert_eq!(found(log(vec![batch(&[(2, GONE)])])).await, None);
        let keyless = batch(&[(2, GONE)]).project(&[1, 2]).unwrap();
        let untold = batch(&[(2, GONE)]).project(&[0, 1]).unwrap();
        let field = |name: &str, of: DataType| Field::new(name, of, true);
        let other = |key: ArrayRef| {
            let tombstone: ArrayRef = Arc::new(BooleanArray::from(vec![false]));
            let fields = vec![field("id", key.data_type().clone()), field(TOMBSTONE, DataType::Boolean)];
            RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![key, tombstone]).unwrap()
        };
        let null = other(Arc::new(Int64Array::from(vec![None::<i64>])));
        let text = other(Arc::new(StringArray::from(vec!["2"])));
        for wrong in [keyless, untold, null, text] {
            let schema = wrong.schema();
            assert_eq!(found(log(vec![wrong])).await, Some(ErrorCode::Corrupt), "{schema}");
        }
        let world = World::new();
        let table = table(&world).await;
        let shard = fill(&world, &[]).await;
        put(&world, &manifest_path(&shard, 2), manifest(2, 1, 0, &[1])).await;
        match table.scan(ScanOptions::default()).await {
            Err(Error::NotFound { what }) => assert!(what.contains("00000001_gen_1"), "{what}"),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("a generation that is not there was read"),
        }
    });
}
