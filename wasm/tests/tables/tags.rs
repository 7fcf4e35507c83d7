//! Tags: names for versions.

use bytes::Bytes;
use lancelet::store::fault::{Fault, Faults};
use lancelet::store::{DirId, Path};
use lancelet::table::{Consistency, Database, Table};
use lancelet::{Error, ErrorCode};

use crate::builders::{World, append, block_on, ids};

fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

async fn dir(world: &World) -> DirId {
    world.store.lookup("t").await.unwrap().unwrap()
}

/// Name and version of each tag.
async fn tags(table: &Table) -> Vec<(String, u64)> {
    table.tags().await.unwrap().into_iter().map(|tag| (tag.name, tag.version)).collect()
}

#[test]
fn a_tag_names_a_version_until_it_is_moved_or_deleted() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2, 2..4]).await;
        assert_eq!(tags(&table).await, []);
        table.create_tag("first", 2).await.unwrap();
        world.env.advance_ms(5);
        table.create_tag("v1.0", 1).await.unwrap();
        assert_eq!(tags(&table).await, [("first".to_owned(), 2), ("v1.0".to_owned(), 1)]);
        assert_eq!(table.tag_version("first").await.unwrap(), 2);
        let manifest = world.store.head(&dir(&world).await, &path("_versions/18446744073709551613.manifest")).await;
        assert_eq!(Some(table.tags().await.unwrap()[0].manifest_size), manifest.unwrap().map(|meta| meta.size_bytes));

        table.update_tag("first", 3).await.unwrap();
        assert_eq!(world.open("t").await.tag_version("first").await.unwrap(), 3);
        let bytes = world.store.get(&dir(&world).await, &path("_refs/tags/first.json")).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(text.contains("\"createdAt\": \"2023-11-14T22:13:20."), "{text}");
        assert!(text.contains("\"updatedAt\": \"2023-11-14T22:13:20.005"), "{text}");

        table.delete_tag("first").await.unwrap();
        assert_eq!(tags(&table).await, [("v1.0".to_owned(), 1)]);
        assert_eq!(table.version().await.unwrap(), 3);
    });
}

#[test]
fn what_is_wrong_with_a_tag_is_said_with_the_words_of_lancedb() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2]).await;
        table.create_tag("a", 1).await.unwrap();
        let fault = |result: Result<(), Error>| {
            let error = result.unwrap_err();
            (error.code(), error.to_string())
        };
        let says = |code, text: &str| (code, text.to_owned());
        let exists = says(ErrorCode::AlreadyExists, "tag a already exists");
        assert_eq!(fault(table.create_tag("a", 1).await), exists);
        assert_eq!(fault(table.create_tag("a", 2).await), exists);
        let no_version = |version: u64| says(ErrorCode::NotFound, &format!("version main:{version} does not exist"));
        assert_eq!(fault(table.create_tag("b", 9999).await), no_version(9999));
        assert_eq!(fault(table.create_tag("b", 0).await), no_version(0));
        assert_eq!(fault(table.update_tag("a", u64::MAX).await), no_version(u64::MAX));
        let absent = says(ErrorCode::NotFound, "tag zz does not exist");
        assert_eq!(fault(table.update_tag("zz", 1).await), absent);
        assert_eq!(fault(table.delete_tag("zz").await), absent);
        assert_eq!(fault(table.tag_version("zz").await.map(drop)), absent);
        assert_eq!(fault(table.checkout_tag("zz").await), absent);
        let empty = says(ErrorCode::InvalidInput, "invalid input, Ref is invalid: Ref cannot be empty, found \"\"");
        assert_eq!(fault(table.create_tag("", 1).await), empty);
        for result in [
            table.create_tag("a/b", 1).await,
            table.update_tag("../a", 1).await,
            table.delete_tag("a/b").await,
            table.tag_version("a b").await.map(drop),
            table.checkout_tag("a\n").await,
        ] {
            assert_eq!(fault(result).0, ErrorCode::InvalidInput);
        }
        assert_eq!(tags(&table).await, [("a".to_owned(), 1)]);
    });
}

#[test]
fn a_tag_is_checked_out_by_its_name() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2, 2..4]).await;
        table.create_tag("old", 2).await.unwrap();
        table.checkout_tag("old").await.unwrap();
        assert_eq!((table.version().await.unwrap(), ids(&table).await), (2, vec![0, 1]));
        // Tags are no content: a handle that is checked out may write them.
        table.create_tag("new", 3).await.unwrap();
        table.checkout_tag("new").await.unwrap();
        assert_eq!(ids(&table).await, [0, 1, 2, 3]);
        assert_eq!(table.checkout_tag("zz").await.unwrap_err().code(), ErrorCode::NotFound);
        assert_eq!(table.version().await.unwrap(), 3);
        let branch = Bytes::from_static(br#"{"branch":"dev","version":2,"manifestSize":1}"#);
        world.store.put(&dir(&world).await, &path("_refs/tags/b.json"), branch).await.unwrap();
        assert_eq!(table.tag_version("b").await.unwrap(), 2);
        assert_eq!(table.checkout_tag("b").await.unwrap_err().code(), ErrorCode::NotSupported);
    });
}

#[test]
fn t30_a_tag_of_others_needs_its_version_only_and_garbage_names_its_file() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2]).await;
        let dir = dir(&world).await;
        let write = async |name: &str, text: &'static str| {
            world.store.put(&dir, &path(name), Bytes::from_static(text.as_bytes())).await.unwrap();
        };
        write("_refs/tags/minimal.json", r#"{"version":1}"#).await;
        write("_refs/tags/more.json", r#"{"manifestSize":7,"x":{"y":[null]},"version":2}"#).await;
        write("_refs/tags/README.txt", "no tag").await;
        assert_eq!(tags(&table).await, [("minimal".to_owned(), 1), ("more".to_owned(), 2)]);
        table.update_tag("minimal", 2).await.unwrap();
        write("_refs/tags/bad.json", r#"{"version":"1"}"#).await;
        for error in [
            table.tags().await.map(drop).unwrap_err(),
            table.tag_version("bad").await.map(drop).unwrap_err(),
            table.update_tag("bad", 1).await.unwrap_err(),
        ] {
            assert_eq!(error.to_string(), "corrupt data in _refs/tags/bad.json: version is no number");
        }
        assert_eq!(table.tag_version("more").await.unwrap(), 2);
        table.delete_tag("bad").await.unwrap();
        assert_eq!(tags(&table).await, [("minimal".to_owned(), 2), ("more".to_owned(), 2)]);
    });
}

#[test]
fn a_tag_whose_answer_was_lost_is_written_once() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2]).await;
        table.create_tag("mine", 1).await.unwrap();
        let plan = |_, op: &lancelet::store::observed::Op| match op.name {
            "put_ref" | "delete" => Fault::LoseAnswer,
            _ => Fault::None,
        };
        let once = |name: &'static str| {
            let is_lost = std::cell::Cell::new(false);
            move |number, op: &lancelet::store::observed::Op| {
                if op.name == name && !is_lost.replace(true) { plan(number, op) } else { Fault::None }
            }
        };
        for (name, version) in [("a", 1), ("b", 2)] {
            let (store, _) = Faults::around(world.store.clone(), Box::new(once("put_ref")));
            let tab = Database::new(store, world.env.clone());
            let handle = tab.open_table("t", Consistency::Lazy).await.unwrap();
            handle.create_tag(name, version).await.unwrap();
            assert_eq!(table.tag_version(name).await.unwrap(), version);
        }
        let (store, _) = Faults::around(world.store.clone(), Box::new(once("put_ref")));
        let tab = Database::new(store, world.env.clone());
        let handle = tab.open_table("t", Consistency::Lazy).await.unwrap();
        assert_eq!(handle.create_tag("mine", 2).await.unwrap_err().code(), ErrorCode::AlreadyExists);
        let (store, _) = Faults::around(world.store.clone(), Box::new(once("delete")));
        let tab = Database::new(store, world.env.clone());
        let handle = tab.open_table("t", Consistency::Lazy).await.unwrap();
        handle.delete_tag("mine").await.unwrap();
        assert_eq!(table.tag_version("mine").await.unwrap_err().code(), ErrorCode::NotFound);
    });
}

#[test]
fn a_tag_of_a_dropped_table_is_not_written() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2]).await;
        append(&table, 2..3).await;
        table.checkout(2).await.unwrap();
        let old = dir(&world).await;
        world.database.drop_table("t").await.unwrap();
        // The lease keeps the files, the table is gone all the same.
        assert!(world.store.head(&old, &path("_versions/18446744073709551613.manifest")).await.unwrap().is_some());
        let error = table.create_tag("a", 2).await.unwrap_err();
        assert_eq!(error.to_string(), "Table 't' was not found");
    });
}
