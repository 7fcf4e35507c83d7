//! Write specs of the LSM path, and what holds while rows lie beside the versions of a table.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use lancelet::collections::SortedMap;
use lancelet::format::wal::entry::TOMBSTONE;
use lancelet::format::wal::layout::{entry_path, manifest_path, shard_folder};
use lancelet::format::wal::{ShardId, ShardManifest, SsTable, WalEntry, layout};
use lancelet::lsm::{Router, SpecKind, SpecOptions, bucket_ids};
use lancelet::store::{DirId, ListOptions, Path};
use lancelet::table::{
    CleanupOptions, Consistency, MergeOptions, MergeResult, OptimizeOptions, ScanOptions, Table, When,
};
use lancelet::{Error, ErrorCode, Result};

use crate::builders::{World, append, batch, block_on, ids, scan};

pub fn bucket(column: &str, buckets: u32) -> SpecOptions {
    spec(SpecKind::Bucket { column: column.into(), buckets })
}

fn spec(kind: SpecKind) -> SpecOptions {
    SpecOptions { kind, maintained_indexes: Some(vec![]), config: SortedMap::new() }
}

/// A table of six rows with a spec of two buckets.
pub async fn table(world: &World) -> Table {
    let table = world.table(&[0..3, 3..6]).await;
    table.set_unenforced_primary_key("id").await.unwrap();
    table.set_lsm_write_spec(&bucket("id", 2)).await.unwrap();
    table
}

pub async fn dir(world: &World) -> DirId {
    world.store.lookup("t").await.unwrap().unwrap()
}

pub async fn put(world: &World, path: &str, bytes: Vec<u8>) {
    world.store.put(&dir(world).await, &Path::parse(path).unwrap(), Bytes::from(bytes)).await.unwrap();
}

async fn shards(world: &World) -> Vec<String> {
    let folder = Path::parse(layout::folder()).unwrap();
    let found = world.store.list(&dir(world).await, &folder, &ListOptions::default()).await.unwrap();
    found.objects.iter().map(|object| object.path.to_string()).collect()
}

/// A shard's manifest.
pub fn manifest(version: u64, writer_epoch: u64, replay_after: u64, generations: &[u64]) -> Vec<u8> {
    let sstable = |generation: &u64| SsTable {
        generation: *generation,
        folder: format!("0000000{generation}_gen_{generation}"),
        memory_bytes: None,
        row_count: Some(1),
        key_bytes: None,
    };
    let sstables = generations.iter().map(sstable).collect();
    ShardManifest { version, writer_epoch, replay_after, sstables, ..ShardManifest::first() }.encode()
}

/// An entry of a log with rows of these ids; none is a fence.
pub fn entry(ids: &[i64]) -> Vec<u8> {
    if ids.is_empty() {
        return WalEntry::sentinel(1).encode().unwrap();
    }
    let fields = vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
        Field::new(TOMBSTONE, DataType::Boolean, false),
    ];
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(ids.to_vec())),
        Arc::new(StringArray::from(vec!["fresh"; ids.len()])),
        Arc::new(BooleanArray::from(vec![false; ids.len()])),
    ];
    let batches = vec![RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()];
    WalEntry { writer_epoch: 1, is_sentinel: false, batches }.encode().unwrap()
}

/// A first shard that was claimed and has these rows in its log, entry by entry.
pub async fn fill(world: &World, entries: &[&[i64]]) -> ShardId {
    let shard = bucket_ids(2)[0];
    put(world, &manifest_path(&shard, 1), manifest(1, 1, 0, &[])).await;
    for (position, ids) in (1..).zip(entries) {
        put(world, &entry_path(&shard, position), entry(ids)).await;
    }
    shard
}

async fn merge(table: &Table, use_lsm: Option<bool>) -> Result<MergeResult> {
    let options =
        MergeOptions { matched_update: When::Always, not_matched_insert: true, use_lsm, ..MergeOptions::default() };
    let mut merge = table.merge_insert(options).await?;
    merge.write(&batch(5..7))?;
    merge.finish().await
}

pub fn code<T>(result: Result<T>) -> Option<ErrorCode> {
    result.err().map(|error| error.code())
}

fn fault<T>(result: Result<T>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_spec_is_read_as_it_was_set_until_it_is_taken_away() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3]).await;
        assert_eq!(table.lsm_write_spec().await.unwrap(), None);
        assert!(fault(table.unset_lsm_write_spec().await).contains("no LSM write spec is set on this table"));
        assert_eq!(table.set_unenforced_primary_key("id").await.unwrap(), 3);
        let config = SortedMap::from([("a".to_owned(), "1".to_owned())]);
        let set = SpecOptions { maintained_indexes: None, config, ..bucket("id", 16) };
        assert_eq!(table.set_lsm_write_spec(&set).await.unwrap(), 4);
        let found = world.open("t").await.lsm_write_spec().await.unwrap();
        assert_eq!(found, Some(SpecOptions { maintained_indexes: Some(vec![]), ..set.clone() }));
        assert!(fault(table.set_lsm_write_spec(&set).await).contains("an LSM write spec is already set on this table"));
        assert_eq!(table.stats().await.unwrap().index_count, 0);
        assert_eq!(table.unset_lsm_write_spec().await.unwrap(), 5);
        assert_eq!(table.lsm_write_spec().await.unwrap(), None);
        for kind in [SpecKind::Identity { column: "name".into() }, SpecKind::Unsharded] {
            table.set_lsm_write_spec(&spec(kind.clone())).await.unwrap();
            assert_eq!(table.lsm_write_spec().await.unwrap(), Some(spec(kind)));
            table.unset_lsm_write_spec().await.unwrap();
        }
    });
}

#[test]
fn a_spec_that_cannot_be_followed_is_not_set() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3]).await;
        let refused = async |options: SpecOptions| {
            let result = table.set_lsm_write_spec(&options).await;
            assert_eq!(code(table.set_lsm_write_spec(&options).await), Some(ErrorCode::InvalidInput));
            fault(result)
        };
        assert!(refused(bucket("id", 2)).await.contains("has no unenforced primary key"));
        table.set_unenforced_primary_key("id").await.unwrap();
        assert!(refused(bucket("id", 0)).await.contains("num_buckets must be in [1, 1024], got 0"));
        assert!(refused(bucket("id", 1025)).await.contains("num_buckets must be in [1, 1024], got 1025"));
        assert!(refused(bucket("zz", 2)).await.contains("bucket_sharding: column 'zz' not found on the dataset"));
        assert!(refused(bucket("name", 2)).await.contains("is not the unenforced primary key 'id'"));
        let identity = SpecKind::Identity { column: "zz".into() };
        assert!(refused(spec(identity)).await.contains("identity_sharding: column 'zz' not found on the dataset"));
        let indexed = SpecOptions { maintained_indexes: Some(vec!["nope".into()]), ..bucket("id", 2) };
        assert!(
            refused(indexed).await.contains("maintained index 'nope' does not exist on this table; it has no indexes")
        );
        assert_eq!(table.version().await.unwrap(), 3);
        assert!(!Router::Bucket(2).takes(&DataType::Binary) && !Router::Identity.takes(&DataType::Float64));
    });
}

#[test]
fn a_primary_key_is_one_column_without_nulls_and_stays() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3]).await;
        assert!(fault(table.set_unenforced_primary_key("zz").await).contains("column 'zz' not found on table"));
        assert_eq!(code(table.set_unenforced_primary_key("name").await), Some(ErrorCode::Schema));
        table.set_unenforced_primary_key("id").await.unwrap();
        let other = world.open("t").await;
        assert!(fault(other.set_unenforced_primary_key("id").await).contains("is already set on this table"));
        assert_eq!(code(table.drop_columns(&["name".into()]).await), None);
        let metadata = table.schema().await.unwrap().field(0).metadata().clone();
        assert_eq!(metadata.get("lance-schema:unenforced-primary-key:position").map(String::as_str), Some("1"));
    });
}

#[test]
fn a_key_and_a_spec_are_set_once_of_two_that_try() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3]).await;
        let other = world.tab(9).open_table("t", Consistency::Lazy).await.unwrap();
        table.set_unenforced_primary_key("id").await.unwrap();
        // The other handle has not seen it.
        let said = fault(other.set_unenforced_primary_key("id").await);
        assert!(said.contains("already set"), "{said}");
        let other = world.tab(10).open_table("t", Consistency::Lazy).await.unwrap();
        table.set_lsm_write_spec(&bucket("id", 2)).await.unwrap();
        assert!(fault(other.set_lsm_write_spec(&bucket("id", 3)).await).contains("already set"));
        assert_eq!(world.open("t").await.lsm_write_spec().await.unwrap(), Some(bucket("id", 2)));
        other.checkout_latest().await.unwrap();
        other.unset_lsm_write_spec().await.unwrap();
        assert!(fault(table.unset_lsm_write_spec().await).contains("no LSM write spec is set"));
    });
}

#[test]
fn a_table_whose_log_has_nothing_new_is_read_and_written_as_ever() {
    block_on(async {
        let world = World::new();
        let table = table(&world).await;
        assert_eq!(append(&table, 10..12).await, 6);
        table.delete("id = 10").await.unwrap();
        assert!(fault(merge(&table, None).await).contains("LSM write path"));
        assert_eq!(code(merge(&table, Some(true)).await), Some(ErrorCode::NotSupported));
        let done = merge(&table, Some(false)).await.unwrap();
        assert_eq!((done.inserted_rows, done.updated_rows), (1, 1));
        assert_eq!(table.count_rows(None).await.unwrap(), 8);
        let done = table.optimize(&OptimizeOptions::default()).await.unwrap();
        assert!(done.compaction.fragments_removed > 0);
        assert_eq!(table.lsm_write_spec().await.unwrap(), Some(bucket("id", 2)));
        // A fence is no row, and a last entry that was cut off was never promised to anybody.
        let shard = fill(&world, &[&[]]).await;
        let mut torn = entry(&[1]);
        torn.truncate(torn.len() / 2);
        put(&world, &entry_path(&shard, 2), torn).await;
        append(&table, 12..13).await;
        assert_eq!(ids(&table).await.len(), 9);
        assert_eq!(code(scan_with(&table, Some(true)).await), None);
    });
}

async fn scan_with(table: &Table, use_lsm: Option<bool>) -> Result<()> {
    table.scan(ScanOptions { use_lsm, ..ScanOptions::default() }).await.map(|_| ())
}

#[test]
fn rows_of_the_log_are_read_and_not_written_over() {
    block_on(async {
        let world = World::new();
        let table = table(&world).await;
        let shard = fill(&world, &[&[], &[1]]).await;
        let refused = Some(ErrorCode::NotSupported);
        assert_eq!(table.count_rows(Some("name = 'fresh'")).await, Ok(1));
        assert_eq!(code(scan_with(&table, Some(false)).await), None);
        let mut write = table.append().await.unwrap();
        write.write(&batch(20..21)).await.unwrap();
        assert_eq!(code(write.finish().await), refused);
        assert_eq!(code(table.delete("id = 1").await), refused);
        assert_eq!(code(merge(&table, Some(false)).await), refused);
        assert_eq!(code(table.drop_columns(&["name".into()]).await), refused);
        assert_eq!(code(table.unset_lsm_write_spec().await), refused);
        assert_eq!(table.version().await.unwrap(), 5);
        let restore = world.open("t").await;
        restore.checkout(2).await.unwrap();
        assert_eq!(ids(&restore).await, [0, 1, 2]);
        assert_eq!(code(restore.restore().await), refused);
        // The same rows as a generation, which no version has.
        put(&world, &manifest_path(&shard, 2), manifest(2, 1, 2, &[1])).await;
        assert_eq!(code(table.delete("id = 1").await), refused);
        // What changes no row goes on, and takes nothing of the shards.
        let before = shards(&world).await;
        let options = OptimizeOptions {
            cleanup: CleanupOptions { older_than_ms: Some(0), delete_unverified: true, error_if_tagged: false },
            ..OptimizeOptions::default()
        };
        table.optimize(&options).await.unwrap();
        assert_eq!(shards(&world).await, before);
        assert_eq!(table.lsm_write_spec().await.unwrap(), Some(bucket("id", 2)));
    });
}

#[test]
fn the_columns_that_a_spec_goes_by_stay() {
    block_on(async {
        let world = World::new();
        let table = table(&world).await;
        assert!(
            fault(table.drop_columns(&["id".into()]).await)
                .contains("column \"id\" is what the LSM write spec goes by")
        );
        table.drop_columns(&["name".into()]).await.unwrap();
    });
}

#[test]
fn shards_go_with_their_spec_and_never_come_back() {
    block_on(async {
        // Taken away, overwritten, and restored to a version without one.
        for way in 0..3 {
            let world = World::seeded(way);
            let table = table(&world).await;
            let shard = fill(&world, &[&[]]).await;
            assert_eq!(shards(&world).await.len(), 2);
            match way {
                0 => drop(table.unset_lsm_write_spec().await.unwrap()),
                1 => {
                    let mut write = table.overwrite().await.unwrap();
                    write.write(&batch(0..2)).await.unwrap();
                    write.finish().await.unwrap();
                }
                _ => {
                    table.checkout(4).await.unwrap();
                    table.restore().await.unwrap();
                }
            }
            assert_eq!(shards(&world).await, [""; 0], "{way}");
            assert_eq!(table.lsm_write_spec().await.unwrap(), None);
            // Of an old spec whose shards outlived it: a new one has shards of the same ids.
            put(&world, &manifest_path(&shard, 1), manifest(1, 1, 1, &[1])).await;
            put(&world, &format!("{}/00000001_gen_1/data/x", shard_folder(&shard)), vec![1]).await;
            table.set_lsm_write_spec(&bucket("id", 2)).await.unwrap();
            assert_eq!(shards(&world).await, [""; 0], "{way}");
            scan(&table, ScanOptions::default()).await;
        }
    });
}

#[test]
fn an_overwrite_replaces_the_rows_of_the_log_too() {
    block_on(async {
        let world = World::new();
        let table = table(&world).await;
        fill(&world, &[&[1]]).await;
        let mut write = table.overwrite().await.unwrap();
        write.write(&batch(7..9)).await.unwrap();
        write.finish().await.unwrap();
        assert_eq!(ids(&table).await, [7, 8]);
        assert_eq!(shards(&world).await, [""; 0]);
        assert!(fault(table.unset_lsm_write_spec().await).contains("no LSM write spec is set"));
    });
}

#[test]
fn a_restore_keeps_the_spec_that_both_versions_have_and_brings_no_other_back() {
    block_on(async {
        let world = World::new();
        let table = table(&world).await;
        append(&table, 20..21).await;
        table.checkout(5).await.unwrap();
        table.restore().await.unwrap();
        assert_eq!(ids(&table).await, [0, 1, 2, 3, 4, 5]);
        assert_eq!(table.lsm_write_spec().await.unwrap(), Some(bucket("id", 2)));
        table.unset_lsm_write_spec().await.unwrap();
        table.set_lsm_write_spec(&bucket("id", 4)).await.unwrap();
        table.checkout(5).await.unwrap();
        assert_eq!(table.lsm_write_spec().await.unwrap(), Some(bucket("id", 2)));
        table.restore().await.unwrap();
        assert_eq!(table.lsm_write_spec().await.unwrap(), None);
    });
}

#[test]
fn a_hole_in_a_log_and_what_is_no_entry_before_its_end_are_corrupt() {
    block_on(async {
        let world = World::new();
        let table = table(&world).await;
        let shard = fill(&world, &[&[]]).await;
        put(&world, &entry_path(&shard, 3), entry(&[1])).await;
        match scan_with(&table, None).await {
            Err(Error::Corrupt { path, reason, .. }) => {
                assert_eq!((path.as_str(), reason.contains("hole")), (entry_path(&shard, 2).as_str(), true));
            }
            other => panic!("{other:?}"),
        }
        put(&world, &entry_path(&shard, 2), vec![0; 40]).await;
        assert_eq!(code(table.delete("true").await), Some(ErrorCode::Corrupt));
        put(&world, &entry_path(&shard, 2), entry(&[])).await;
        assert_eq!(code(table.delete("true").await), Some(ErrorCode::NotSupported));
    });
}

#[test]
fn stats_tell_each_bucket_and_only_what_is_measured() {
    block_on(async {
        let world = World::new();
        let keyed = world.table(&[0..3]).await;
        assert_eq!(keyed.lsm_stats(true).await.unwrap(), None);
        let world = World::new();
        let table = table(&world).await;
        let empty = table.lsm_stats(true).await.unwrap().unwrap();
        let mut expected = bucket_ids(2);
        expected.sort();
        assert_eq!(empty.shards.iter().map(|shard| shard.id).collect::<Vec<_>>(), expected);
        for shard in &empty.shards {
            assert_eq!((shard.writer_epoch, shard.manifest_version, shard.last_position), (0, 0, 0));
            assert_eq!((shard.current_generation, shard.generations.len()), (1, 0));
        }

        let shard = fill(&world, &[&[1], &[2], &[3]]).await;
        put(&world, &manifest_path(&shard, 3), manifest(3, 4, 2, &[1, 2])).await;
        let folder = shard_folder(&shard);
        put(&world, &format!("{folder}/00000002_gen_2/data/x.lance"), vec![0; 70]).await;
        put(&world, &format!("{folder}/00000002_gen_2/bloom_filter.bin"), vec![0; 30]).await;
        let version = table.version().await.unwrap();
        let stats = table.lsm_stats(false).await.unwrap().unwrap();
        assert_eq!(table.version().await.unwrap(), version);
        let found = stats.shards.iter().find(|found| found.id == shard).unwrap();
        assert_eq!((found.writer_epoch, found.manifest_version, found.is_sealed), (4, 3, false));
        assert_eq!((found.replay_after, found.last_position), (2, 3));
        let generations: Vec<_> =
            found.generations.iter().map(|each| (each.generation, each.size_bytes, each.live_rows)).collect();
        // The files of the first one are not there: their size is not known.
        assert_eq!(generations, [(1, None, None), (2, Some(100), None)]);
        assert_eq!(stats.shards.iter().filter(|found| found.manifest_version == 0).count(), 1);
    });
}
