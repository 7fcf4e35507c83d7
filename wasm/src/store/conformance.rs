//! The suite that every backend written in Rust passes. The browser's backends pass the same rules in `src/store/conformance.ts`.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::{
    CommitOutcome, CommitRequest, DeleteOutcome, DirId, LeaseId, LeaseKind, LeaseOutcome, LeaseRequest, ListOptions,
    LiveLease, Path, PublishOutcome, RefMode, RefOutcome, RefRequest, RemoveOutcome, RemoveRequest, RenameOutcome,
    Store,
};
use crate::error::{Error, ErrorCode, Result};

/// Drives a future whose every wait is for itself.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

/// Checks every promise, each on a store of its own.
///
/// # Panics
/// Where a promise is not kept.
pub fn check<S: Store + 'static>(make: impl Fn() -> Rc<S>) {
    block_on(async {
        let cases = [
            objects(&*make()).await,
            streams(&*make()).await,
            listings(&*make()).await,
            commits(&*make()).await,
            directories(&*make()).await,
            leases(&*make()).await,
            references(&*make()).await,
            removals(&*make()).await,
        ];
        for case in cases {
            assert_eq!(case, Ok(()));
        }
    });
}

fn path(text: &str) -> Path {
    Path::default().join(text)
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

async fn live_dir(store: &dyn Store, name: &str) -> Result<DirId> {
    let id = store.create_dir(0, 1_000).await?;
    assert_eq!(store.publish_dir(name, &id).await?, PublishOutcome::Published);
    Ok(id)
}

async fn objects(store: &dyn Store) -> Result<()> {
    let dir = live_dir(store, "t").await?;
    store.put(&dir, &path("a/x"), bytes("first")).await?;
    store.put(&dir, &path("a/x"), bytes("0123456789")).await?;
    assert_eq!(store.get(&dir, &path("a/x")).await?, bytes("0123456789"));

    assert!(!store.put_if_absent(&dir, &path("a/x"), bytes("late")).await?);
    assert!(store.put_if_absent(&dir, &path("a/y"), bytes("new")).await?);
    assert_eq!(store.get(&dir, &path("a/x")).await?, bytes("0123456789"));

    let parts = store.get_ranges(&dir, &path("a/x"), &[7..10, 0..2, 4..4]).await?;
    assert_eq!(parts, [bytes("789"), bytes("01"), bytes("")]);
    for (start, end) in [(5, 11), (11, 11), (6, 5)] {
        let outside = store.get_ranges(&dir, &path("a/x"), &[0..1, start..end]).await;
        assert_eq!(outside.map_err(|error| error.code()), Err(ErrorCode::InvalidInput), "{start}..{end}");
    }
    let absent = store.get(&dir, &path("a/z")).await;
    assert_eq!(absent.map_err(|error| error.code()), Err(ErrorCode::NotFound));
    assert_eq!(store.head(&dir, &path("a/z")).await?, None);
    assert_eq!(store.head(&dir, &path("a/x")).await?.map(|meta| meta.size_bytes), Some(10));

    assert_eq!(store.delete(&dir, &path("a/x")).await?, DeleteOutcome::Deleted);
    assert_eq!(store.delete(&dir, &path("a/x")).await?, DeleteOutcome::Deleted);
    assert_eq!(store.head(&dir, &path("a/x")).await?, None);
    Ok(())
}

async fn streams(store: &dyn Store) -> Result<()> {
    let dir = live_dir(store, "t").await?;
    let mut writer = store.writer(&dir, &path("data/f")).await?;
    writer.write(bytes("ab")).await?;
    writer.write(bytes("cd")).await?;
    assert_eq!(store.head(&dir, &path("data/f")).await?, None);
    assert_eq!(writer.finish().await?, 4);
    assert_eq!(store.get(&dir, &path("data/f")).await?, bytes("abcd"));

    let mut given_up = store.writer(&dir, &path("data/g")).await?;
    given_up.write(bytes("ab")).await?;
    given_up.abort().await?;
    assert_eq!(store.head(&dir, &path("data/g")).await?, None);

    let mut late = store.writer(&dir, &path("data/h")).await?;
    late.write(bytes("ab")).await?;
    store.drop_dir(&dir).await?;
    assert_eq!(late.finish().await.map_err(|error| error.code()), Err(ErrorCode::TableNotFound));
    Ok(())
}

async fn listings(store: &dyn Store) -> Result<()> {
    let dir = live_dir(store, "t").await?;
    for name in ["b", "a-b/1", "a/2", "a/1", "a/sub/3", "\u{1f600}", "\u{ffee}"] {
        store.put(&dir, &path(name), bytes("x")).await?;
    }
    let names = |listing: &super::Listing| -> Vec<String> {
        listing.objects.iter().map(|object| object.path.to_string()).collect()
    };
    let all = store.list(&dir, &Path::default(), &ListOptions::default()).await?;
    assert_eq!(names(&all), ["a-b/1", "a/1", "a/2", "a/sub/3", "b", "\u{ffee}", "\u{1f600}"]);
    let below = store.list(&dir, &path("a"), &ListOptions::default()).await?;
    assert_eq!(names(&below), ["a/1", "a/2", "a/sub/3"]);
    let shallow = store.list(&dir, &path("a"), &ListOptions { shallow: true, ..Default::default() }).await?;
    assert_eq!((names(&shallow), shallow.folders), (vec!["a/1".into(), "a/2".into()], vec![path("a/sub")]));
    let top = store.list(&dir, &Path::default(), &ListOptions { shallow: true, ..Default::default() }).await?;
    assert_eq!(top.folders, [path("a"), path("a-b")]);
    let options = ListOptions { after: Some(path("a/1")), limit: Some(1), ..Default::default() };
    assert_eq!(names(&store.list(&dir, &path("a"), &options).await?), ["a/2"]);
    Ok(())
}

async fn commits(store: &dyn Store) -> Result<()> {
    let dir = live_dir(store, "t").await?;
    let versions = path("_versions");
    let request = async |name: &str, requires: &[&str]| -> Result<CommitRequest> {
        Ok(CommitRequest {
            dir: dir.clone(),
            objects: vec![(path("_deletions/d"), bytes("d"))],
            publish: (versions.join(name), bytes("manifest")),
            token: store.token(&dir, &versions).await?,
            requires: requires.iter().map(|text| path(text)).collect(),
            replaces: None,
        })
    };
    let missing = request("1", &["data/f"]).await?;
    assert_eq!(store.commit(missing).await?, CommitOutcome::Missing(path("data/f")));
    assert_eq!(store.head(&dir, &path("_deletions/d")).await?, None);

    store.put(&dir, &path("data/f"), bytes("rows")).await?;
    let early = request("1", &["data/f", "_deletions/d"]).await?;
    let stale = request("2", &[]).await?;
    assert_eq!(store.commit(early.clone()).await?, CommitOutcome::Committed);
    assert_eq!(store.get(&dir, &path("_deletions/d")).await?, bytes("d"));
    assert_eq!(store.commit(early).await?, CommitOutcome::Exists);
    assert_eq!(store.commit(stale).await?, CommitOutcome::Moved);
    assert_eq!(store.head(&dir, &versions.join("2")).await?, None);

    let before = store.token(&dir, &versions).await?;
    store.put(&dir, &versions.join("1"), bytes("replaced")).await?;
    store.put(&dir, &path("data/g"), bytes("elsewhere")).await?;
    assert_eq!(store.token(&dir, &versions).await?, before);
    store.delete(&dir, &versions.join("1")).await?;
    assert_ne!(store.token(&dir, &versions).await?, before);

    let late = request("3", &[]).await?;
    store.drop_dir(&dir).await?;
    assert_eq!(store.commit(late).await?, CommitOutcome::Gone);
    Ok(())
}

async fn directories(store: &dyn Store) -> Result<()> {
    let first = store.create_dir(0, 1_000).await?;
    store.put(&first, &path("x"), bytes("x")).await?;
    assert_eq!(store.lookup("t").await?, None);
    assert_eq!(store.publish_dir("t", &first).await?, PublishOutcome::Published);
    assert_eq!(store.publish_dir("t", &first).await?, PublishOutcome::Published);
    assert_eq!(store.lookup("t").await?, Some(first.clone()));

    let second = store.create_dir(0, 1_000).await?;
    assert_ne!(second, first);
    assert_eq!(store.publish_dir("t", &second).await?, PublishOutcome::Exists);
    assert_eq!(store.rename_dir(&first, "t", "u").await?, RenameOutcome::Renamed);
    assert_eq!(store.rename_dir(&first, "t", "u").await?, RenameOutcome::Renamed);
    assert_eq!(store.publish_dir("t", &first).await?, PublishOutcome::Published);
    assert_eq!(store.lookup("t").await?, None);
    assert_eq!(store.publish_dir("t", &second).await?, PublishOutcome::Published);
    assert_eq!(store.rename_dir(&second, "t", "u").await?, RenameOutcome::Exists);
    let names: Vec<_> = store.tables().await?.into_iter().map(|table| (table.name, table.id)).collect();
    assert_eq!(names, [("t".to_owned(), second.clone()), ("u".to_owned(), first.clone())]);

    store.drop_dir(&first).await?;
    store.drop_dir(&first).await?;
    assert_eq!(store.lookup("u").await?, None);
    assert_eq!(store.rename_dir(&first, "u", "v").await?, RenameOutcome::Gone);
    let refused = store.put(&first, &path("y"), bytes("y")).await;
    assert_eq!(refused.map_err(|error| error.code()), Err(ErrorCode::TableNotFound));

    let unfinished = store.create_dir(0, 1_000).await?;
    store.put(&unfinished, &path("x"), bytes("x")).await?;
    assert!(store.renew(&LeaseId(unfinished.0.clone()), 900, 2_000).await?);
    store.sweep(1_500).await?;
    assert_eq!(store.get(&unfinished, &path("x")).await?, bytes("x"));
    store.sweep(2_000).await?;
    assert_eq!(store.publish_dir("w", &unfinished).await?, PublishOutcome::Gone);
    Ok(())
}

async fn leases(store: &dyn Store) -> Result<()> {
    let dir = live_dir(store, "t").await?;
    let manifest = path("_versions/1");
    let request = |expires_ms| LeaseRequest {
        dir: dir.clone(),
        kind: LeaseKind::Scan,
        version: 1,
        manifest: manifest.clone(),
        now_ms: 0,
        expires_ms,
    };
    assert_eq!(store.lease(request(100)).await?, LeaseOutcome::Missing);
    store.put(&dir, &manifest, bytes("m")).await?;
    let taken = async || match store.lease(request(100)).await {
        Ok(LeaseOutcome::Taken { id, .. }) => Ok(id),
        other => Err(Error::internal(format!("no lease was taken: {other:?}"))),
    };
    let (short, long) = (taken().await?, taken().await?);
    assert!(store.renew(&long, 50, 200).await?);
    assert!(!store.renew(&short, 100, 200).await?);
    assert!(!store.renew(&short, 50, 200).await?);

    store.drop_dir(&dir).await?;
    assert_eq!(store.lease(request(100)).await?, LeaseOutcome::Gone);
    store.sweep(150).await?;
    assert_eq!(store.get(&dir, &manifest).await?, bytes("m"));
    store.release(&long).await?;
    store.release(&long).await?;
    store.sweep(150).await?;
    let swept = store.get(&dir, &manifest).await;
    assert_eq!(swept.map_err(|error| error.code()), Err(ErrorCode::NotFound));
    Ok(())
}

async fn references(store: &dyn Store) -> Result<()> {
    let dir = live_dir(store, "t").await?;
    let manifest = path("_versions/1");
    let tag = path("_refs/tags/a");
    let request = |mode, text| RefRequest {
        dir: dir.clone(),
        path: tag.clone(),
        bytes: bytes(text),
        manifest: manifest.clone(),
        mode,
    };
    assert_eq!(store.put_ref(request(RefMode::Create, "1")).await?, RefOutcome::Missing);
    store.put(&dir, &manifest, bytes("m")).await?;
    assert_eq!(store.put_ref(request(RefMode::Replace, "1")).await?, RefOutcome::Absent);
    let mut before = store.pins(&dir).await?;
    assert_eq!(store.put_ref(request(RefMode::Create, "1")).await?, RefOutcome::Written);
    assert_eq!(store.put_ref(request(RefMode::Create, "2")).await?, RefOutcome::Exists);
    assert_eq!(store.get(&dir, &tag).await?, bytes("1"));
    let mut moved = async |what: &str| -> Result<()> {
        let after = store.pins(&dir).await?;
        assert_ne!(after, before, "{what}");
        before = after;
        Ok(())
    };
    moved("created").await?;
    assert_eq!(store.put_ref(request(RefMode::Replace, "3")).await?, RefOutcome::Written);
    assert_eq!(store.get(&dir, &tag).await?, bytes("3"));
    moved("replaced").await?;
    store.put(&dir, &path("_refs/branches/b"), bytes("b")).await?;
    moved("put").await?;
    store.delete(&dir, &tag).await?;
    moved("deleted").await?;
    store.put(&dir, &path("data/f"), bytes("x")).await?;
    assert_eq!(store.pins(&dir).await?, before);
    store.drop_dir(&dir).await?;
    assert_eq!(store.put_ref(request(RefMode::Create, "1")).await?, RefOutcome::Gone);
    Ok(())
}

async fn removals(store: &dyn Store) -> Result<()> {
    let dir = live_dir(store, "t").await?;
    let versions = path("_versions");
    for version in ["1", "2", "3"] {
        store.put(&dir, &versions.join(version), bytes("manifest")).await?;
        store.put(&dir, &path("data").join(version), bytes("rows")).await?;
    }
    let request = async |version: u64| -> Result<RemoveRequest> {
        Ok(RemoveRequest {
            dir: dir.clone(),
            manifests: vec![(version, versions.join(&version.to_string()))],
            files: vec![path("data").join(&version.to_string()), path("data/absent")],
            pins: store.pins(&dir).await?,
            token: Some((versions.clone(), store.token(&dir, &versions).await?)),
            needs_no_writer: false,
            now_ms: 100,
        })
    };
    let lease = async |kind, version: u64| -> Result<(LeaseId, u64)> {
        let manifest = versions.join(&version.to_string());
        let request = LeaseRequest { dir: dir.clone(), kind, version, manifest, now_ms: 0, expires_ms: 200 };
        match store.lease(request).await? {
            LeaseOutcome::Taken { id, replaced } => Ok((id, replaced)),
            other => Err(Error::internal(format!("no lease was taken: {other:?}"))),
        }
    };
    let removed = RemoveOutcome::Removed { manifests: 1, bytes: 12, busy: 0 };
    let before = store.list(&dir, &Path::default(), &ListOptions::default()).await?;

    // A scan keeps its version, a writer also what is newer, and both only while they live.
    let (scan, _) = lease(LeaseKind::Scan, 1).await?;
    let (write, _) = lease(LeaseKind::Write, 2).await?;
    let mut live = store.leases(&dir, 199).await?;
    live.sort_by_key(|lease| lease.version);
    let expected = [(LeaseKind::Scan, 1), (LeaseKind::Write, 2)].map(|(kind, version)| LiveLease { kind, version });
    assert_eq!(live, expected);
    for version in 1..=3 {
        assert_eq!(store.remove(request(version).await?).await?, RemoveOutcome::Moved, "{version}");
    }
    let alone = RemoveRequest { manifests: vec![], needs_no_writer: true, ..request(1).await? };
    assert_eq!(store.remove(alone.clone()).await?, RemoveOutcome::Contended);
    store.release(&write).await?;
    let stale = request(1).await?;
    store.put(&dir, &versions.join("4"), bytes("manifest")).await?;
    assert_eq!(store.remove(RemoveRequest { now_ms: 200, ..stale.clone() }).await?, RemoveOutcome::Moved);
    let pinned = request(1).await?;
    store.put(&dir, &path("_refs/tags/a"), bytes("{}")).await?;
    assert_eq!(store.remove(RemoveRequest { now_ms: 200, ..pinned }).await?, RemoveOutcome::Moved);
    store.delete(&dir, &versions.join("4")).await?;
    store.delete(&dir, &path("_refs/tags/a")).await?;
    assert_eq!(store.list(&dir, &Path::default(), &ListOptions::default()).await?, before);

    // Without unverified files the token does not matter.
    let verified = RemoveRequest { pins: store.pins(&dir).await?, token: None, now_ms: 200, ..stale };
    assert_eq!(store.remove(verified.clone()).await?, removed);
    assert_eq!(store.remove(verified).await?, RemoveOutcome::Removed { manifests: 0, bytes: 0, busy: 0 });
    assert_eq!(store.head(&dir, &path("data/1")).await?, None);
    assert_eq!(store.leases(&dir, 200).await?, []);
    assert!(!store.renew(&scan, 0, 300).await?);
    assert_eq!(store.remove(RemoveRequest { needs_no_writer: true, ..request(2).await? }).await?, removed);

    // A version that replaces is told to every later lease, and moves the pins.
    let pins = store.pins(&dir).await?;
    let commit = CommitRequest {
        dir: dir.clone(),
        objects: vec![],
        publish: (versions.join("5"), bytes("manifest")),
        token: store.token(&dir, &versions).await?,
        requires: vec![],
        replaces: Some(5),
    };
    assert_eq!(lease(LeaseKind::Scan, 3).await?.1, 0);
    assert_eq!(store.commit(commit.clone()).await?, CommitOutcome::Committed);
    assert_eq!(store.commit(CommitRequest { replaces: Some(9), ..commit }).await?, CommitOutcome::Exists);
    assert_eq!(lease(LeaseKind::Scan, 3).await?.1, 5);
    assert_ne!(store.pins(&dir).await?, pins);

    let late = request(5).await?;
    store.drop_dir(&dir).await?;
    assert_eq!(store.remove(late).await?, RemoveOutcome::Gone);
    Ok(())
}
