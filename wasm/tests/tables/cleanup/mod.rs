//! Cleanup: which versions and files go, and which stay. Names begin with the rule's number in `docs/format.md`, "Cleanup".

mod protocol;
mod rules;
mod scope;

use bytes::Bytes;
use lancelet::store::{DirId, ListOptions, ObjectMeta, Path};
use lancelet::table::{CleanupOptions, CleanupStats, KeepReason, Table};

use crate::builders::{World, append};

pub const MINUTE_MS: u64 = 60_000;
pub const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// Everything that may go.
pub const ALL: CleanupOptions =
    CleanupOptions { older_than_ms: Some(0), delete_unverified: true, error_if_tagged: true };

pub fn older_than(older_than_ms: i64) -> CleanupOptions {
    CleanupOptions { older_than_ms: Some(older_than_ms), ..CleanupOptions::default() }
}

pub fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

pub fn manifest(version: u64) -> Path {
    path(&format!("_versions/{:020}.manifest", u64::MAX - version))
}

pub async fn dir(world: &World) -> DirId {
    world.store.lookup("t").await.unwrap().unwrap()
}

pub async fn objects(world: &World) -> Vec<ObjectMeta> {
    let dir = dir(world).await;
    world.store.list(&dir, &Path::default(), &ListOptions::default()).await.unwrap().objects
}

pub async fn paths(world: &World) -> Vec<String> {
    objects(world).await.into_iter().map(|object| object.path.to_string()).collect()
}

pub async fn size(world: &World) -> u64 {
    objects(world).await.iter().map(|object| object.size_bytes).sum()
}

pub async fn put(world: &World, name: &str, text: &'static str) {
    world.store.put(&dir(world).await, &path(name), Bytes::from_static(text.as_bytes())).await.unwrap();
}

pub async fn numbers(table: &Table) -> Vec<u64> {
    table.versions().await.unwrap().into_iter().map(|version| version.version).collect()
}

/// A table `t` of versions 1 to `last`, a day apart, one row each from version 2 on.
pub async fn history(world: &World, last: u64) -> Table {
    let table = world.create("t", 0..0).await;
    for version in 2..=last {
        world.env.advance_ms(DAY_MS);
        let row = i64::try_from(version).unwrap();
        append(&table, row..row + 1).await;
    }
    table
}

/// Why each version stays, and which go.
pub async fn preview(table: &Table, options: &CleanupOptions) -> (Vec<(u64, Vec<KeepReason>)>, Vec<u64>) {
    let preview = table.preview_cleanup(options).await.unwrap();
    let kept = preview.kept.into_iter().map(|version| (version.version, version.reasons)).collect();
    (kept, preview.removed.iter().map(|version| version.version).collect())
}

/// Cleans up, and holds the answer against what is gone.
pub async fn clean(world: &World, table: &Table, options: &CleanupOptions) -> CleanupStats {
    let (before, versions) = (size(world).await, numbers(table).await.len() as u64);
    let planned = table.preview_cleanup(options).await.unwrap();
    let stats = table.cleanup(options).await.unwrap();
    let gone = CleanupStats {
        bytes_removed: before - size(world).await,
        old_versions_removed: versions - numbers(table).await.len() as u64,
    };
    assert_eq!(stats, gone);
    assert_eq!((planned.size_bytes(), planned.removed.len() as u64), (gone.bytes_removed, gone.old_versions_removed));
    stats
}
