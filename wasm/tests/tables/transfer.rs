//! Export and import.

use bytes::Bytes;
use lancelet::ErrorCode;
use lancelet::table::{Consistency, Database, Table};

use crate::builders::{World, append, block_on, ids};

async fn exported(database: &Database) -> Vec<(String, Bytes)> {
    let export = database.export_table("t").await.unwrap();
    let mut files = Vec::new();
    for entry in export.entries() {
        files.push((entry.path.clone(), export.read(&entry.path, 0, entry.size_bytes).await.unwrap()));
    }
    export.close().await.unwrap();
    files
}

async fn import(database: &Database, name: &str, files: &[(String, Bytes)]) -> lancelet::Result<Table> {
    let mut import = database.import_table(name).await?;
    for (path, bytes) in files {
        import.begin_file(path).await?;
        let middle = bytes.len() / 2;
        import.write(bytes.slice(..middle)).await?;
        import.write(bytes.slice(middle..)).await?;
    }
    import.finish(Consistency::Lazy).await
}

#[test]
fn a_table_survives_export_and_import_with_all_its_versions() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3, 3..50_000]).await;
        table.delete("id > 1 AND id < 25000").await.unwrap();
        table.create_tag("old", 2).await.unwrap();
        let files = exported(&world.database).await;
        assert!(!world.database.holds_leases());
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        let versions = paths.iter().filter(|path| path.starts_with("_versions/")).count();
        assert_eq!(versions, 4);
        assert!(paths[paths.len() - 4..].iter().all(|path| path.starts_with("_versions/")), "{paths:?}");

        let other = World::seeded(99);
        let copy = import(&other.database, "copy", &files).await.unwrap();
        assert_eq!(ids(&copy).await, ids(&table).await);
        assert_eq!(copy.versions().await.unwrap(), table.versions().await.unwrap());
        assert_eq!(copy.tags().await.unwrap(), table.tags().await.unwrap());
        copy.checkout_tag("old").await.unwrap();
        assert_eq!(ids(&copy).await, [0, 1, 2]);
        copy.checkout_latest().await.unwrap();
        assert_eq!(append(&copy, 7..8).await, 5);
        assert!(!other.database.holds_leases());
    });
}

#[test]
fn an_export_reads_parts_and_refuses_what_is_outside() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..3).await;
        let export = world.database.export_table("t").await.unwrap();
        let entry = export.entries().last().unwrap().clone();
        let end = export.read(&entry.path, entry.size_bytes - 4, 4).await.unwrap();
        assert_eq!(end, Bytes::from_static(b"LANC"));
        let code = async |path: &str, offset, length| export.read(path, offset, length).await.unwrap_err().code();
        assert_eq!(code(&entry.path, 1, entry.size_bytes).await, ErrorCode::InvalidInput);
        assert_eq!(code(&entry.path, u64::MAX, 2).await, ErrorCode::InvalidInput);
        assert_eq!(code("data/nope.lance", 0, 1).await, ErrorCode::NotFound);
        assert!(world.database.holds_leases());
        export.close().await.unwrap();
        assert!(!world.database.holds_leases());
    });
}

#[test]
fn paths_that_are_no_files_of_a_table_are_refused() {
    block_on(async {
        let world = World::new();
        let mut import = world.database.import_table("t").await.unwrap();
        for bad in ["../data/x.lance", "/data/x.lance", "x.txt", "", "etc/passwd", "data", "data/../../x", "data\\x"] {
            let error = import.begin_file(bad).await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidInput, "{bad:?}");
        }
        import.abort().await.unwrap();
        assert_eq!(world.database.table_names().await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn an_import_that_lacks_something_leaves_nothing() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3, 3..6]).await;
        table.delete("id = 1").await.unwrap();
        let files = exported(&world.database).await;
        let other = World::seeded(99);
        let without = |prefix: &str| -> Vec<(String, Bytes)> {
            let at = files.iter().position(|(path, _)| path.starts_with(prefix)).unwrap();
            let mut rest = files.clone();
            rest.remove(at);
            rest
        };
        let mut cut = files.clone();
        let data = cut.iter().position(|(path, _)| path.starts_with("data/")).unwrap();
        cut[data].1 = cut[data].1.slice(1..);
        let mut torn = files.clone();
        let newest = torn.iter().position(|(path, _)| path.starts_with("_versions/")).unwrap();
        torn[newest].1 = torn[newest].1.slice(..20);
        let cases = [
            (without("data/"), ErrorCode::NotFound),
            (without("_deletions/"), ErrorCode::NotFound),
            (cut, ErrorCode::Corrupt),
            (torn, ErrorCode::Corrupt),
            (vec![], ErrorCode::NotFound),
        ];
        for (files, code) in cases {
            let error = import(&other.database, "copy", &files).await.err().unwrap();
            assert_eq!(error.code(), code, "{error}");
            assert_eq!(other.database.table_names().await.unwrap(), Vec::<String>::new());
            assert!(!other.database.holds_leases());
        }
        import(&other.database, "copy", &files).await.unwrap();
        let again = import(&other.database, "copy", &files).await.err().unwrap();
        assert_eq!(again.code(), ErrorCode::TableExists);
    });
}
