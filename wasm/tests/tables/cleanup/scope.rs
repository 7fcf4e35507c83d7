//! Which files go.

use bytes::Bytes;
use lancelet::ErrorCode;
use lancelet::format::table::Manifest;
use lancelet::table::{CleanupOptions, CleanupStats, KeepReason, ScanOptions};

use super::{
    ALL, DAY_MS, MINUTE_MS, clean, dir, history, manifest, numbers, objects, older_than, path, paths, preview, put,
};
use crate::builders::{World, append, block_on, ids, scan};

#[test]
fn c14_every_file_of_every_version_that_stays_stays() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        table.delete("id = 2").await.unwrap();
        table.delete("id = 3").await.unwrap();
        world.env.advance_ms(DAY_MS);
        append(&table, 9..10).await;
        let options = older_than(i64::try_from(DAY_MS + MINUTE_MS).unwrap());
        clean(&world, &table, &options).await;
        let mut rows = Vec::new();
        for version in numbers(&table).await {
            let old = world.open("t").await;
            old.checkout(version).await.unwrap();
            rows.push((version, ids(&old).await));
            old.close().await.unwrap();
        }
        assert_eq!(rows, [(4, vec![2, 3, 4]), (5, vec![3, 4]), (6, vec![4]), (7, vec![4, 9])]);
    });
}

#[test]
fn c16_a_file_that_no_version_names_goes_after_seven_days() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 2).await;
        put(&world, "data/orphan.lance", "rows").await;
        world.env.advance_ms(7 * DAY_MS);
        let options = older_than(i64::try_from(30 * DAY_MS).unwrap());
        assert_eq!(clean(&world, &table, &options).await, CleanupStats::default());
        world.env.advance_ms(1);
        assert_eq!(clean(&world, &table, &options).await, CleanupStats { bytes_removed: 4, old_versions_removed: 0 });
        assert_eq!(numbers(&table).await, [1, 2]);
    });
}

#[test]
fn c16_c18_with_delete_unverified_it_goes_at_once_however_fresh() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 2).await;
        world.env.advance_ms(DAY_MS);
        put(&world, "data/orphan.lance", "rows").await;
        let options = CleanupOptions { delete_unverified: true, ..older_than(i64::try_from(30 * DAY_MS).unwrap()) };
        assert_eq!(clean(&world, &table, &options).await, CleanupStats { bytes_removed: 4, old_versions_removed: 0 });
    });
}

#[test]
fn c17_k3_only_files_of_known_kinds_go() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 2).await;
        let before = paths(&world).await;
        let garbage = [
            "data/x.lance",
            "data/deep/x.lance",
            "data/x/1.blob",
            "_deletions/9-1-2.arrow",
            "_deletions/9-1-2.bin",
            "_transactions/1-u.txn",
            "_indices/0e1d/part/1.lance",
            "_indices/0e1d/index.idx",
            "_versions/.tmp_1.manifest_u",
        ];
        let foreign = [
            "data/x.txt",
            "_deletions/x.txt",
            "_transactions/x.json",
            "_versions/latest_version_hint.json",
            "_versions/notes.txt",
            "_refs/other/x.json",
            "_mem_wal/s/1.lance",
            "tree/b/data/x.lance",
            "notes/x.lance",
            "x.lance",
        ];
        for name in garbage.iter().chain(&foreign) {
            put(&world, name, "x").await;
        }
        let stats = clean(&world, &table, &ALL).await;
        assert_eq!(stats.old_versions_removed, 1);
        let mut expected: Vec<String> = foreign.iter().map(|name| (*name).to_owned()).collect();
        expected.extend(before.into_iter().filter(|name| *name != manifest(1).to_string()));
        expected.sort();
        assert_eq!(paths(&world).await, expected);
        // Blobs live and die with their data file.
        let data = expected.iter().find(|name| name.starts_with("data/") && name.ends_with(".lance")).unwrap();
        let blob = format!("{}/7.blob", data.strip_suffix(".lance").unwrap());
        put(&world, &blob, "blob").await;
        assert_eq!(clean(&world, &table, &ALL).await, CleanupStats::default());
        table.overwrite().await.unwrap().finish().await.unwrap();
        clean(&world, &table, &ALL).await;
        assert!(!paths(&world).await.contains(&blob));
    });
}

#[test]
fn c19_a_detached_version_keeps_no_file_and_is_none_itself() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 2).await;
        let bytes = world.store.get(&dir(&world).await, &manifest(2)).await.unwrap();
        let detached = path("_versions/d9223372036854775809.manifest");
        world.store.put(&dir(&world).await, &detached, bytes).await.unwrap();
        table.overwrite().await.unwrap().finish().await.unwrap();
        assert_eq!(clean(&world, &table, &ALL).await.old_versions_removed, 2);
        let left = paths(&world).await;
        assert!(left.contains(&detached.to_string()));
        assert!(!left.iter().any(|path| path.starts_with("data/")), "{left:?}");
    });
}

#[test]
fn c20_what_cannot_be_read_ends_the_cleanup_before_it_took_anything() {
    block_on(async {
        let bad = [
            (manifest(1).to_string(), "torn"),
            (manifest(3).to_string(), "torn"),
            ("_refs/tags/bad.json".to_owned(), "{"),
            ("_refs/branches/bad.json".to_owned(), "{}"),
        ];
        for (name, text) in bad {
            let world = World::new();
            let table = history(&world, 3).await;
            put(&world, &name, text).await;
            let before = objects(&world).await;
            for options in [ALL, CleanupOptions { error_if_tagged: false, ..ALL }] {
                let error = table.cleanup(&options).await.unwrap_err();
                assert_eq!(error.code(), ErrorCode::Corrupt, "{name}");
                assert!(error.to_string().contains(&name), "{error}");
            }
            assert_eq!(objects(&world).await, before, "{name}");
        }
    });
}

#[test]
fn c22_c23_bytes_and_versions_are_counted_exactly() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        table.delete("id = 2").await.unwrap();
        table.delete("id = 3").await.unwrap();
        put(&world, "_transactions/1-u.txn", "0123456789").await;
        put(&world, "_versions/.tmp_9.manifest", "01234").await;
        let stats = clean(&world, &table, &ALL).await;
        assert_eq!(stats.old_versions_removed, 4);
        assert!(stats.bytes_removed > 15);
        assert_eq!(clean(&world, &table, &ALL).await, CleanupStats::default());
        assert_eq!(table.version().await.unwrap(), 5);
    });
}

/// What LanceDB leaves behind for a branch: its first version has its parent's number and names the parent's files as a base's.
async fn branch(world: &World, name: &str, version: u64, text: &'static str) {
    put(world, &format!("_refs/branches/{}.json", name.replace('/', "%2F")), text).await;
    let bytes = world.store.get(&dir(world).await, &manifest(version)).await.unwrap();
    let mut branch = Manifest::decode(&bytes).unwrap();
    branch.branch = Some(name.to_owned());
    for fragment in &mut branch.fragments {
        fragment.files.iter_mut().for_each(|file| file.base_id = Some(0));
        fragment.deletion.iter_mut().for_each(|deletion| deletion.base_id = Some(0));
    }
    let target = path(&format!("tree/{name}/{}", manifest(version)));
    world.store.put(&dir(world).await, &target, Bytes::from(branch.encode())).await.unwrap();
}

#[test]
fn c13_c27_a_branch_keeps_the_version_that_it_left_and_every_file_that_it_names() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        table.delete("id = 2").await.unwrap();
        append(&table, 9..10).await;
        branch(&world, "dev/a", 4, r#"{"parentBranch":null,"parentVersion":4}"#).await;
        // A branch of a branch: the parent's version is none of ours, the files may be.
        branch(&world, "deep", 3, r#"{"parentBranch":"dev/a","parentVersion":1}"#).await;
        // Tags of other branches keep nothing here.
        put(&world, "_refs/tags/t.json", r#"{"branch":"dev/a","version":2,"manifestSize":1}"#).await;
        table.overwrite().await.unwrap().finish().await.unwrap();
        append(&table, 20..21).await;
        let (kept, removed) = preview(&table, &ALL).await;
        let because = |version, reason| (version, vec![reason]);
        assert_eq!(kept, [because(4, KeepReason::Branch("dev/a".into())), because(7, KeepReason::Latest)]);
        assert_eq!(removed, [1, 2, 3, 5, 6]);
        let before = paths(&world).await;
        clean(&world, &table, &ALL).await;
        let left = paths(&world).await;
        let tree = |paths: &[String]| paths.iter().filter(|path| path.starts_with("tree/")).count();
        assert_eq!((tree(&before), tree(&left)), (2, 2));
        for file in before.iter().filter(|file| file.starts_with("_deletions/")) {
            assert!(left.contains(file), "{file}");
        }
        table.checkout(4).await.unwrap();
        assert_eq!(ids(&table).await, [3]);
        assert_eq!(scan(&table, ScanOptions::default()).await.len(), 1);
        table.checkout_latest().await.unwrap();
        assert_eq!(ids(&table).await, [20]);
    });
}
