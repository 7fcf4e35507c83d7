//! What a cleanup sees of a table.

use crate::env::now_ms;
use crate::error::{Error, Result};
use crate::format::table::layout;
use crate::format::table::reference::{self, Branch};
use crate::format::table::{Manifest, Tag, feature};
use crate::store::{DirId, ListOptions, ObjectMeta, Path, Pins, Store, Token};
use crate::table::cleanup::plan::{CleanupPreview, KeepReason, Pin, Planner, Rules, timestamp_ns};
use crate::table::database::Engine;
use crate::table::snapshot::Snapshot;
use crate::table::versions::Listed;
use crate::table::{paths, tags, versions};

/// A plan, and what must not have moved when it is executed.
pub(super) struct Found {
    pub(super) pins: Pins,
    pub(super) token: Token,
    pub(super) plan: CleanupPreview,
}

/// Looks at everything, in the order that the protocol needs: what must not move first, then versions, then files. A version that is
/// committed meanwhile is not seen, and neither are its files taken: with the token they are unverified, without it nobody's.
pub(super) async fn look(engine: &Engine, snapshot: &Snapshot, rules: Rules) -> Result<Found> {
    let (store, dir) = (engine.store.as_ref(), &snapshot.dir);
    let pins = store.pins(dir).await?;
    let token = store.token(dir, &paths::versions_folder()).await?;
    let leases = store.leases(dir, now_ms(engine.env.as_ref())).await?;
    let branches = branches(engine, dir).await?;
    let mut planner = Planner::new(rules, references(engine, dir, &branches).await?, leases);
    for (name, _) in &branches {
        let folder = Path::parse(&reference::branch_versions_folder(name))?;
        for listed in versions::sorted(&list(store, dir, &folder, true).await?)? {
            if let Some(manifest) = read(engine, dir, &listed).await? {
                planner.branch_version(&manifest).map_err(|error| error.at(&listed.path))?;
            }
        }
    }
    let in_versions = list(store, dir, &paths::versions_folder(), true).await?;
    for listed in versions::sorted(&in_versions)? {
        // One that vanished was taken by another cleanup.
        if let Some(manifest) = read(engine, dir, &listed).await? {
            feature::check_readable(&manifest).map_err(|error| error.at(&listed.path))?;
            planner.version(&listed, manifest).map_err(|error| error.at(&listed.path))?;
        }
    }
    in_versions.iter().for_each(|object| planner.file(object));
    for folder in
        [layout::data_folder(), layout::deletions_folder(), layout::transactions_folder(), layout::indices_folder()]
    {
        let objects = list(store, dir, &Path::default().join(folder), false).await?;
        objects.iter().for_each(|object| planner.file(object));
    }
    Ok(Found { pins, token, plan: planner.finish() })
}

/// Tags of versions that the rules let go, by name.
pub(super) async fn old_tags(engine: &Engine, snapshot: &Snapshot, rules: &Rules) -> Result<Vec<(String, u64)>> {
    let mut old = Vec::new();
    for (name, tag) in tags::list(engine, &snapshot.dir).await? {
        if tag.branch.is_some() || tag.version == 0 || tag.version >= rules.keep_from {
            continue;
        }
        let path = versions::path_beside(snapshot, tag.version);
        let Some(meta) = engine.store.head(&snapshot.dir, &path).await? else { continue };
        let Some(listed) = versions::sorted(&[meta])?.pop() else { continue };
        let Some(manifest) = read(engine, &snapshot.dir, &listed).await? else { continue };
        if timestamp_ns(&listed, &manifest) < rules.versions_before_ns {
            old.push((name, tag.version));
        }
    }
    Ok(old)
}

async fn references(engine: &Engine, dir: &DirId, branches: &[(String, Branch)]) -> Result<Vec<Pin>> {
    let of_main = |(name, tag): (String, Tag)| {
        tag.branch.is_none().then_some(Pin { version: tag.version, reason: KeepReason::Tag(name) })
    };
    let mut pins: Vec<Pin> = tags::list(engine, dir).await?.into_iter().filter_map(of_main).collect();
    let from_main = branches.iter().filter(|(_, branch)| branch.parent.is_none());
    pins.extend(from_main.map(|(name, branch)| {
        let reason = KeepReason::Branch(name.clone());
        Pin { version: branch.parent_version, reason }
    }));
    Ok(pins)
}

async fn branches(engine: &Engine, dir: &DirId) -> Result<Vec<(String, Branch)>> {
    let mut branches = Vec::new();
    for object in list(engine.store.as_ref(), dir, &paths::branches_folder(), true).await? {
        let Some(name) = reference::parse_file_name(object.path.file_name()) else { continue };
        match engine.store.get(dir, &object.path).await {
            Ok(bytes) => branches.push((name, Branch::decode(&bytes).map_err(|error| error.at(&object.path))?)),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(branches)
}

/// A manifest as it lies in the store, not as it is remembered: nothing may go while a version that stays is damaged. `None` when it is
/// not there any more.
async fn read(engine: &Engine, dir: &DirId, listed: &Listed) -> Result<Option<Manifest>> {
    let bytes = match engine.store.get(dir, &listed.path).await {
        Ok(bytes) => bytes,
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let manifest = Manifest::decode(&bytes).map_err(|error| error.at(&listed.path))?;
    if manifest.version.0 != listed.version {
        let reason = format!("the name says version {}, the manifest version {}", listed.version, manifest.version.0);
        return Err(Error::corrupt(reason).at(&listed.path));
    }
    Ok(Some(manifest))
}

async fn list(store: &dyn Store, dir: &DirId, folder: &Path, is_shallow: bool) -> Result<Vec<ObjectMeta>> {
    let options = ListOptions { shallow: is_shallow, ..ListOptions::default() };
    Ok(store.list(dir, folder, &options).await?.objects)
}
