//! Optimize, maintenance and automatic cleanup: what they do, when they are due, and what they refuse before they write.

use lancelet::ErrorCode;
use lancelet::format::table::{Manifest, Version, layout};
use lancelet::store::{ListOptions, Path};
use lancelet::table::{CleanupOptions, CompactResult, Due, OptimizeOptions, Table};

use crate::builders::{World, append, block_on, ids};

const HOUR_MS: u64 = 60 * 60 * 1_000;
const DAY_MS: u64 = 24 * HOUR_MS;

fn cleanup(older_than_ms: i64, delete_unverified: bool) -> OptimizeOptions {
    let cleanup = CleanupOptions { older_than_ms: Some(older_than_ms), delete_unverified, ..CleanupOptions::default() };
    OptimizeOptions { cleanup, ..OptimizeOptions::default() }
}

async fn versions(table: &Table) -> Vec<u64> {
    table.versions().await.unwrap().iter().map(|info| info.version).collect()
}

/// Every object of the table, with its size.
async fn objects(world: &World) -> Vec<(String, u64)> {
    let dir = world.store.lookup("t").await.unwrap().unwrap();
    let listing = world.store.list(&dir, &Path::default(), &ListOptions::default()).await.unwrap();
    listing.objects.into_iter().map(|object| (object.path.to_string(), object.size_bytes)).collect()
}

#[test]
fn optimize_compacts_and_then_removes_what_was_old_when_it_was_called() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1).await;
        append(&table, 1..2).await;
        let before = objects(&world).await;
        let done = table.optimize(&cleanup(0, true)).await.unwrap();
        let compaction = CompactResult { fragments_removed: 2, fragments_added: 1, files_removed: 2, files_added: 1 };
        assert_eq!(done.compaction, compaction);
        // The two that were there, and that of the reserved ids.
        assert_eq!(done.cleanup.old_versions_removed, 3);
        assert!(done.cleanup.bytes_removed > before.iter().map(|(_, size)| size).sum::<u64>());
        assert_eq!((versions(&table).await, ids(&table).await), (vec![4], vec![0, 1]));
        let again = table.optimize(&cleanup(0, true)).await.unwrap();
        assert_eq!(again, Default::default());
    });
}

#[test]
fn optimize_by_default_removes_versions_of_more_than_seven_days() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1).await;
        world.env.advance_ms(DAY_MS);
        append(&table, 1..2).await;
        world.env.advance_ms(6 * DAY_MS + HOUR_MS);
        let done = table.optimize(&OptimizeOptions::default()).await.unwrap();
        assert_eq!((done.compaction.fragments_removed, done.cleanup.old_versions_removed), (2, 1));
        assert_eq!(versions(&table).await, [2, 3, 4]);
    });
}

#[test]
fn e1_4_optimize_checks_everything_before_it_writes() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1).await;
        append(&table, 1..2).await;
        table.create_tag("old", 1).await.unwrap();
        let before = objects(&world).await;
        let young = table.optimize(&cleanup(0, false)).await.unwrap_err();
        assert!(young.to_string().contains("at least 10 minutes"), "{young}");
        let coming = table.optimize(&cleanup(-1, false)).await.unwrap_err();
        assert!(coming.to_string().contains("at least 10 minutes"), "{coming}");
        let tagged = table.optimize(&cleanup(0, true)).await.unwrap_err();
        assert!(tagged.to_string().contains("1 tagged version(s) have been marked for cleanup"), "{tagged}");
        table.checkout(2).await.unwrap();
        let pinned = table.optimize(&OptimizeOptions::default()).await.unwrap_err();
        assert!(pinned.to_string().contains("cannot be modified when a specific version is checked out"), "{pinned}");
        table.checkout_latest().await.unwrap();
        table.delete_tag("old").await.unwrap();
        let writer = world.open("t").await.append().await.unwrap();
        let contended = table.optimize(&cleanup(0, true)).await.unwrap_err();
        assert_eq!(contended.code(), ErrorCode::Contention);
        writer.abort().await.unwrap();
        let left: Vec<_> = before.into_iter().filter(|(path, _)| !path.starts_with("_refs")).collect();
        assert_eq!(objects(&world).await, left);
        assert_eq!(table.version().await.unwrap(), 2);
    });
}

#[test]
fn maintenance_does_nothing_until_it_is_worth_while() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1).await;
        for id in 1..16 {
            append(&table, id..id + 1).await;
        }
        assert_eq!(table.needs_maintenance().await.unwrap(), Due::default());
        assert_eq!(table.maintain().await.unwrap(), None);
        assert_eq!(table.version().await.unwrap(), 16);
        append(&table, 16..17).await;
        assert_eq!(table.needs_maintenance().await.unwrap(), Due { compaction: true, cleanup: false });
        let done = table.maintain().await.unwrap().unwrap();
        assert_eq!((done.compaction.fragments_removed, done.compaction.fragments_added), (17, 1));
        assert_eq!(done.cleanup.old_versions_removed, 0);
        assert_eq!(ids(&table).await, (0..17).collect::<Vec<_>>());
        assert_eq!(table.maintain().await.unwrap(), None);
    });
}

#[test]
fn maintenance_removes_many_old_versions_and_keeps_tagged_ones() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1).await;
        for _ in 0..126 {
            table.delete("false").await.unwrap();
        }
        table.create_tag("kept", 5).await.unwrap();
        world.env.advance_ms(8 * DAY_MS);
        assert_eq!(table.needs_maintenance().await.unwrap(), Due::default());
        table.delete("false").await.unwrap();
        assert_eq!(table.needs_maintenance().await.unwrap(), Due { compaction: false, cleanup: true });
        let done = table.maintain().await.unwrap().unwrap();
        assert_eq!(done.cleanup.old_versions_removed, 126);
        assert_eq!(versions(&table).await, [5, 128]);
        assert_eq!(table.maintain().await.unwrap(), None, "what is kept is not looked at again and again");
    });
}

/// Commits a version of another config.
async fn configure(world: &World, table: &Table, config: &[(&str, &str)]) {
    let dir = world.store.lookup("t").await.unwrap().unwrap();
    let version = table.version().await.unwrap();
    let path = |version| Path::default().join(&layout::manifest_path(Version(version)));
    let bytes = world.store.get(&dir, &path(version)).await.unwrap();
    let mut manifest = Manifest::decode(&bytes).unwrap();
    manifest.version = Version(version + 1);
    let config = config.iter().map(|(key, value)| (format!("lance.auto_cleanup.{key}"), (*value).to_owned()));
    manifest.config = config.collect();
    world.store.put(&dir, &path(version + 1), manifest.encode().into()).await.unwrap();
    table.checkout_latest().await.unwrap();
}

#[test]
fn t23_a_table_cleans_up_after_commits_as_its_config_says() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1).await;
        configure(&world, &table, &[("interval", "2"), ("older_than", "1h")]).await;
        append(&table, 1..2).await;
        world.env.advance_ms(2 * HOUR_MS);
        append(&table, 2..3).await;
        // Version 4: the one before stays with it.
        assert_eq!(versions(&table).await, [3, 4]);
        world.env.advance_ms(2 * HOUR_MS);
        append(&table, 3..4).await;
        assert_eq!(versions(&table).await, [3, 4, 5]);
        append(&table, 4..5).await;
        assert_eq!(versions(&table).await, [5, 6]);
        assert_eq!(ids(&table).await, (0..5).collect::<Vec<_>>());
    });
}

#[test]
fn t23_an_automatic_cleanup_that_is_unsafe_or_refused_leaves_the_commit_alone() {
    block_on(async {
        for config in [
            vec![("interval", "0"), ("older_than", "0s")],
            vec![("interval", "0")],
            vec![("interval", "x"), ("older_than", "1h")],
            vec![("interval", "0"), ("older_than", "1h"), ("retain_versions", "1")],
        ] {
            let world = World::new();
            let table = world.create("t", 0..1).await;
            configure(&world, &table, &config).await;
            world.env.advance_ms(2 * HOUR_MS);
            append(&table, 1..2).await;
            assert_eq!(versions(&table).await, [1, 2, 3], "{config:?}");
        }
        let world = World::new();
        let table = world.create("t", 0..1).await;
        table.create_tag("old", 1).await.unwrap();
        configure(&world, &table, &[("interval", "0"), ("older_than", "1h")]).await;
        world.env.advance_ms(2 * HOUR_MS);
        append(&table, 1..2).await;
        assert_eq!(versions(&table).await, [1, 2, 3]);
        assert_eq!(ids(&table).await, [0, 1]);
    });
}
