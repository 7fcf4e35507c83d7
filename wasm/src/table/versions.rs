//! Versions: find the newest one, list them, load their manifests.
//!
//! Names of the current scheme (V2) sort newest first, so that the newest version is the first object of the folder: one listing of one
//! object. Names of the old scheme (V1) need the whole folder. A folder with both is refused wherever it is seen whole; a listing that
//! begins with a V2 name is not read further just to look for it.

use std::rc::Rc;

use crate::error::{Error, Result};
use crate::format::table::feature;
use crate::format::table::layout::{self, NamingScheme};
use crate::format::table::{Manifest, Operation, Transaction};
use crate::store::{DirId, ListOptions, ObjectMeta, Path, Store};
use crate::table::VersionInfo;
use crate::table::database::Engine;
use crate::table::snapshot::Snapshot;
use crate::table::{commit, paths};

/// A manifest as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) version: u64,
    pub(crate) path: Path,
    pub(crate) size_bytes: u64,
    pub(crate) modified_ms: u64,
    scheme: NamingScheme,
}

/// How many manifests a look at what is newer asks for at first.
const FIRST_PAGE: u32 = 8;

/// The newest version; `None` when the directory holds none (it was dropped).
pub(crate) async fn newest(store: &dyn Store, dir: &DirId) -> Result<Option<Listed>> {
    let first = list(store, dir, Some(1)).await?;
    match first.as_slice() {
        [only] => match parse(only) {
            Some(listed) if listed.scheme == NamingScheme::V2 => Ok(Some(listed)),
            _ => Ok(all(store, dir).await?.pop()),
        },
        _ => Ok(None),
    }
}

/// The snapshot of the newest version.
pub(crate) async fn latest(engine: &Engine, dir: &DirId) -> Result<Option<Rc<Snapshot>>> {
    // A cleanup may take what was the newest between the listing and the read; then there is a newer one.
    for _ in 0..8 {
        let Some(listed) = newest(engine.store.as_ref(), dir).await? else { return Ok(None) };
        match load(engine, dir, &listed).await {
            Err(Error::NotFound { .. }) => {}
            other => return other.map(Some),
        }
    }
    Err(Error::Contention { message: "the newest version was removed again and again while it was being read".into() })
}

/// A version above another one.
#[derive(Debug, Clone)]
pub(crate) struct Newer {
    pub(crate) version: u64,
    pub(crate) path: Path,
}

/// Versions above that of `base`, ascending. One whose content `is_known` need not be listed: it is named though it may be gone.
///
/// # Errors
/// `TableNotFound` when there is no version at all: a live table has its newest one.
pub(crate) async fn newer_than(
    store: &dyn Store,
    base: &Snapshot,
    is_known: &dyn Fn(u64) -> bool,
) -> Result<Vec<Newer>> {
    if scheme_of(base) == NamingScheme::V2 {
        let mut limit = FIRST_PAGE;
        // Twice is enough unless versions appear faster than they are listed; then the whole folder says it.
        for _ in 0..2 {
            let objects = list(store, &base.dir, Some(limit)).await?;
            let is_whole = (objects.len() as u64) < u64::from(limit);
            let found: Vec<Listed> = objects.iter().filter_map(parse).collect();
            if is_whole && found.is_empty() {
                return Err(commit::gone());
            }
            let newest = found.first().map_or(0, |listed| listed.version);
            let oldest = found.last().map_or(0, |listed| listed.version);
            if is_whole || oldest <= base.version() {
                return Ok(ascending_above(found, base.version()));
            }
            let between = base.version() + 1..oldest;
            if between.clone().all(is_known) {
                let known = between.map(|version| Newer { version, path: path_beside(base, version) });
                return Ok(known.chain(ascending_above(found, base.version())).collect());
            }
            let missing = newest.saturating_sub(base.version());
            limit = u32::try_from(missing).unwrap_or(u32::MAX).saturating_add(FIRST_PAGE);
        }
    }
    let found = all(store, &base.dir).await?;
    if found.is_empty() {
        return Err(commit::gone());
    }
    Ok(ascending_above(found, base.version()))
}

fn ascending_above(mut listed: Vec<Listed>, version: u64) -> Vec<Newer> {
    listed.retain(|listed| listed.version > version);
    listed.sort_by_key(|listed| listed.version);
    listed.into_iter().map(|Listed { version, path, .. }| Newer { version, path }).collect()
}

/// Every version, ascending.
///
/// # Errors
/// `Corrupt` when both naming schemes occur.
pub(crate) async fn all(store: &dyn Store, dir: &DirId) -> Result<Vec<Listed>> {
    sorted(&list(store, dir, None).await?)
}

/// The versions among the objects of a listing, ascending.
///
/// # Errors
/// `Corrupt` when both naming schemes occur.
pub(crate) fn sorted(objects: &[ObjectMeta]) -> Result<Vec<Listed>> {
    let mut found: Vec<Listed> = objects.iter().filter_map(parse).collect();
    if found.windows(2).any(|pair| pair[0].scheme != pair[1].scheme) {
        return Err(Error::corrupt("manifests of both naming schemes").at(paths::versions_folder()));
    }
    found.sort_by_key(|listed| listed.version);
    Ok(found)
}

async fn list(store: &dyn Store, dir: &DirId, limit: Option<u32>) -> Result<Vec<ObjectMeta>> {
    let options = ListOptions { after: None, shallow: true, limit };
    Ok(store.list(dir, &paths::versions_folder(), &options).await?.objects)
}

fn parse(object: &ObjectMeta) -> Option<Listed> {
    let (version, scheme) = layout::parse_manifest_name(object.path.file_name())?;
    Some(Listed {
        version: version.0,
        path: object.path.clone(),
        size_bytes: object.size_bytes,
        modified_ms: object.modified_ms,
        scheme,
    })
}

/// Reads a manifest that a listing showed.
///
/// # Errors
/// `NotFound` when it was removed meanwhile; `Corrupt`; `NotSupported` for features that this build does not read.
pub(crate) async fn load(engine: &Engine, dir: &DirId, listed: &Listed) -> Result<Rc<Snapshot>> {
    load_path(engine, dir, listed.version, &listed.path).await
}

/// As [`load`], by path.
pub(crate) async fn load_path(engine: &Engine, dir: &DirId, version: u64, path: &Path) -> Result<Rc<Snapshot>> {
    let manifest = match engine.cache.manifests.get(dir, path) {
        Some(manifest) => manifest,
        None => {
            let bytes = engine.store.get(dir, path).await?;
            let manifest = Manifest::decode(&bytes).map_err(|error| error.at(path))?;
            if manifest.version.0 != version {
                let reason = format!("the name says version {version}, the manifest version {}", manifest.version.0);
                return Err(Error::corrupt(reason).at(path));
            }
            feature::check_readable(&manifest).map_err(|error| error.at(path))?;
            engine.cache.manifests.insert(dir, path, manifest)
        }
    };
    Ok(Rc::new(Snapshot { dir: dir.clone(), path: path.clone(), manifest, parts: None }))
}

/// Opens one version, whose name follows the scheme of `beside`.
///
/// # Errors
/// `NotFound` naming the version.
pub(crate) async fn open(engine: &Engine, beside: &Snapshot, version: u64) -> Result<Rc<Snapshot>> {
    let path = path_beside(beside, version);
    match load_path(engine, &beside.dir, version, &path).await {
        Err(Error::NotFound { .. }) => Err(not_found(version)),
        other => other,
    }
}

pub(crate) fn not_found(version: u64) -> Error {
    Error::NotFound { what: format!("version {version}") }
}

/// Where the manifest of a version of the same table lies.
pub(crate) fn path_beside(beside: &Snapshot, version: u64) -> Path {
    paths::manifest(version, scheme_of(beside))
}

fn scheme_of(snapshot: &Snapshot) -> NamingScheme {
    layout::parse_manifest_name(snapshot.path.file_name()).map_or(NamingScheme::V2, |(_, scheme)| scheme)
}

/// The transaction that made a version: inline, else its own file. One that has neither counts as unknown: it can't be judged.
pub(crate) async fn transaction(engine: &Engine, snapshot: &Snapshot) -> Result<Transaction> {
    if let Some(transaction) = &snapshot.manifest.transaction {
        return Ok(transaction.clone());
    }
    if !snapshot.manifest.transaction_file.is_empty() {
        let path = paths::transaction_file(&snapshot.manifest.transaction_file);
        match engine.store.get(&snapshot.dir, &path).await {
            Ok(bytes) => return Transaction::decode(&bytes).map_err(|error| error.at(&path)),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Transaction { read_version: 0, uuid: String::new(), operation: Operation::Unknown })
}

/// What `versions` tells of each version. A manifest that cannot be read has no totals: one damaged old version must not hide the
/// others, and one that is removed meanwhile is left out.
pub(crate) async fn infos(engine: &Engine, dir: &DirId) -> Result<Vec<VersionInfo>> {
    let mut infos = Vec::new();
    for listed in all(engine.store.as_ref(), dir).await? {
        if let Some(info) = engine.cache.info(dir, listed.version) {
            infos.push(info);
            continue;
        }
        match load(engine, dir, &listed).await {
            Ok(snapshot) => {
                let info = info(&snapshot.manifest);
                engine.cache.remember_info(dir, &info);
                infos.push(info);
            }
            Err(Error::NotFound { .. }) => {}
            Err(Error::Corrupt { .. } | Error::NotSupported { .. }) => {
                infos.push(VersionInfo { version: listed.version, timestamp_ns: 0, totals: Vec::new() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(infos)
}

fn info(manifest: &Manifest) -> VersionInfo {
    let fragments = &manifest.fragments;
    let sum = |of: &dyn Fn(&crate::format::table::Fragment) -> u64| {
        fragments.iter().fold(0u64, |total, fragment| total.saturating_add(of(fragment)))
    };
    let deleted = sum(&|fragment| fragment.deletion.as_ref().map_or(0, |deletion| deletion.deleted_rows));
    let live = sum(&|fragment| fragment.live_rows());
    VersionInfo {
        version: manifest.version.0,
        timestamp_ns: manifest.timestamp_ns.unwrap_or(0),
        totals: vec![
            ("total_fragments", fragments.len() as u64),
            ("total_data_files", sum(&|fragment| fragment.files.len() as u64)),
            (
                "total_files_size",
                sum(&|fragment| {
                    fragment.files.iter().fold(0u64, |total, file| total.saturating_add(file.size_bytes.unwrap_or(0)))
                }),
            ),
            ("total_deletion_files", sum(&|fragment| u64::from(fragment.deletion.is_some()))),
            ("total_deletion_file_rows", deleted),
            ("total_rows", live),
            ("total_data_file_rows", live.saturating_add(deleted)),
        ],
    }
}
