//! Fresh: rows that lie beside the versions of a table, in the shards of its write-ahead log, and are newer than those of the versions.
//!
//! A shard's rows are in its log, then in generations, then in a version: `replay_after` of its manifest says which entries of the log are
//! in generations, the write spec of a version which generations are in it. The log is looked at first and the version last: what moves on
//! meanwhile is then seen twice and not missed.
//!
//! Where there is no write spec, what lies in the shards is of a spec that was taken away. It must be gone before there is a spec again:
//! the new one's shards have the same ids.

use std::rc::Rc;

use crate::collections::SortedMap;
use crate::env::now_ms;
use crate::error::{Error, Result};
use crate::format::table::{FieldId, Operation, Schema};
use crate::format::wal::{ShardId, ShardManifest, WalEntry, WalPath, WriteSpec, layout, spec};
use crate::store::{DirId, ListOptions, ObjectMeta, Path, RemoveOutcome, RemoveRequest};
use crate::table::database::Engine;
use crate::table::merged::Merged;
use crate::table::snapshot::Snapshot;
use crate::table::{commit, merged, paths, versions};

/// How often a look or a removal is done again because others were faster.
const MAX_LOOKS: u32 = 16;

/// A shard as a look finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) id: ShardId,
    /// As it is before the first writer when there is none.
    pub(crate) manifest: ShardManifest,
    /// Entries of the log that are in no generation, ascending.
    pub(crate) tail: Vec<u64>,
    /// Files of generations, and of what did not become one.
    pub(crate) files: Vec<ObjectMeta>,
}

/// Every shard that is there.
///
/// # Errors
/// `Corrupt` for a log with a hole, and for manifests that cannot be read.
pub(crate) async fn look(engine: &Engine, dir: &DirId) -> Result<Vec<Shard>> {
    for _ in 0..MAX_LOOKS {
        if let Some(shards) = look_once(engine, dir).await? {
            return Ok(shards);
        }
    }
    Err(moving())
}

/// `None` when what was listed is not there any more.
async fn look_once(engine: &Engine, dir: &DirId) -> Result<Option<Vec<Shard>>> {
    let mut found: Vec<(u64, Shard)> = Vec::new();
    for object in objects(engine, dir).await? {
        let Some((id, path)) = layout::parse(object.path.as_str()) else { continue };
        // A listing has one folder after the other.
        if found.last().is_none_or(|(_, shard)| shard.id != id) {
            let manifest = ShardManifest::first();
            found.push((0, Shard { id, manifest, tail: Vec::new(), files: Vec::new() }));
        }
        let Some((newest, shard)) = found.last_mut() else { continue };
        match path {
            WalPath::Manifest(version) => *newest = version.max(*newest),
            WalPath::Entry(position) => shard.tail.push(position),
            WalPath::Generation { .. } => shard.files.push(object),
        }
    }
    let mut shards = Vec::new();
    for (newest, mut shard) in found {
        if newest > 0 {
            match newest_manifest(engine, dir, &shard.id, newest).await? {
                Some(manifest) => shard.manifest = manifest,
                None => return Ok(None),
            }
        }
        let after = shard.manifest.replay_after;
        shard.tail.retain(|position| *position > after);
        shard.tail.sort_unstable();
        if let Some((_, missing)) = shard.tail.iter().zip(after.saturating_add(1)..).find(|(at, due)| **at != *due) {
            let path = layout::entry_path(&shard.id, missing);
            return Err(Error::corrupt("the write-ahead log has a hole").at(Path::default().join(&path)));
        }
        shards.push(shard);
    }
    Ok(Some(shards))
}

fn moving() -> Error {
    Error::Contention { message: "the shards of the write-ahead log changed again and again".to_owned() }
}

/// The newest manifest from `version` on; those after it appeared since the listing.
async fn newest_manifest(engine: &Engine, dir: &DirId, id: &ShardId, version: u64) -> Result<Option<ShardManifest>> {
    let mut newest = None;
    for version in version..version.saturating_add(u64::from(MAX_LOOKS)) {
        let path = Path::default().join(&layout::manifest_path(id, version));
        match engine.store.get(dir, &path).await {
            Ok(bytes) => {
                let manifest = ShardManifest::decode(&bytes).map_err(|error| error.at(&path))?;
                if manifest.version != version || manifest.shard.is_some_and(|shard| shard != *id) {
                    return Err(Error::corrupt("the manifest of another shard or version").at(&path));
                }
                newest = Some(manifest);
            }
            Err(Error::NotFound { .. }) => return Ok(newest),
            Err(error) => return Err(error),
        }
    }
    // A shard whose manifest moves as fast as it is read.
    Ok(None)
}

/// Whether a shard has rows that a version with these generations lacks.
///
/// # Errors
/// `Corrupt` for entries that cannot be read. The last one may be cut off: then nobody was told that it is there.
async fn is_fresh(engine: &Engine, dir: &DirId, shard: &Shard, compacted: &SortedMap<ShardId, u64>) -> Result<bool> {
    let watermark = compacted.get(&shard.id).copied().unwrap_or(0);
    if shard.manifest.sstables.iter().any(|table| table.generation > watermark) {
        return Ok(true);
    }
    for position in &shard.tail {
        let path = Path::default().join(&layout::entry_path(&shard.id, *position));
        let bytes = engine.store.get(dir, &path).await?;
        match WalEntry::decode(&bytes) {
            Ok(entry) if entry.rows() > 0 => return Ok(true),
            Ok(_) => {}
            Err(_) if shard.tail.last() == Some(position) => {}
            Err(error) => return Err(error.at(&path)),
        }
    }
    Ok(false)
}

/// Whether rows lie beside a version.
async fn has_fresh(engine: &Engine, snapshot: &Snapshot, spec: &WriteSpec) -> Result<bool> {
    for shard in look(engine, &snapshot.dir).await? {
        if is_fresh(engine, &snapshot.dir, &shard, &spec.compacted).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A version with the rows that lie beside it.
///
/// The log is looked at first and the version last. Where more of the shards is in the newest version than in the caller's, or the shards
/// are those of another spec, what the caller's version lacks may be gone: then the newest one is read.
///
/// # Errors
/// `Corrupt`; `NotSupported` for a spec of a kind that this build does not know.
pub(crate) async fn view(engine: &Rc<Engine>, snapshot: &Rc<Snapshot>) -> Result<Rc<Snapshot>> {
    let Some(before) = WriteSpec::find(&snapshot.manifest)? else { return Ok(snapshot.clone()) };
    let compacted = WriteSpec::decode(&before)?.compacted;
    let mut gone = moving();
    for _ in 0..MAX_LOOKS {
        let shards = look(engine, &snapshot.dir).await?;
        let latest = versions::latest(engine, &snapshot.dir).await?.ok_or_else(commit::gone)?;
        let Some(now) = WriteSpec::find(&latest.manifest)? else { return Ok(latest) };
        let spec = WriteSpec::decode(&now)?;
        let is_same = now.uuid == before.uuid && spec.compacted == compacted;
        let base = if is_same { snapshot } else { &latest };
        let mark = |shard: &Shard| (shard.id, shard.manifest.version, shard.tail.last().copied());
        let key = (base.dir.clone(), base.version(), shards.iter().map(mark).collect());
        if let Some(view) = engine.cache.view(&key) {
            return Ok(view);
        }
        match merged::merge(engine, base, &spec, &shards).await {
            Ok(Merged { view, is_whole }) => {
                // The place of an entry that is cut off may be taken by another one.
                if is_whole {
                    engine.cache.keep_view(key, &view);
                }
                return Ok(view);
            }
            // A generation or an entry went since it was listed.
            Err(error @ Error::NotFound { .. }) => gone = error,
            Err(error) => return Err(error),
        }
    }
    Err(gone)
}

/// The caller asks for what only a write spec gives.
pub(crate) fn no_spec() -> Error {
    Error::invalid_input(
        "use_lsm(true) was set but the table has no MemWAL write spec; install one with set_lsm_write_spec or leave \
         use_lsm unset",
    )
}

/// Before a change is committed over `latest`: under rows of the log a change of the base table would not be seen, or be undone later.
///
/// # Errors
/// `NotSupported`; `InvalidInput` for a schema without the columns that the write spec needs.
pub(crate) async fn check_change(engine: &Engine, latest: &Snapshot, operation: &Operation) -> Result<()> {
    let schema = match operation {
        Operation::Merge { schema, .. } | Operation::Project { schema, .. } => Some(schema),
        Operation::CreateIndex { removed, .. } if removed.iter().all(|index| index.name != spec::INDEX_NAME) => {
            return Ok(());
        }
        Operation::Append { .. }
        | Operation::Delete { .. }
        | Operation::Update { .. }
        | Operation::Restore { .. }
        | Operation::CreateIndex { .. } => None,
        // These change no row, or replace all of them, those of the log among them.
        Operation::Overwrite { .. }
        | Operation::Rewrite { .. }
        | Operation::ReserveFragments { .. }
        | Operation::UpdateConfig { .. }
        | Operation::DataReplacement { .. }
        | Operation::UpdateMemWalState
        | Operation::Clone
        | Operation::UpdateBases
        | Operation::Unknown => return Ok(()),
    };
    let Some(spec) = WriteSpec::of(&latest.manifest)? else { return Ok(()) };
    if let Some(schema) = schema {
        check_schema(&latest.manifest.schema, schema, &spec)?;
    }
    if has_fresh(engine, latest, &spec).await? {
        let what = operation.name();
        return Err(Error::not_supported(format!(
            "{what} of the base table while the write-ahead log has rows that the base table lacks"
        )));
    }
    Ok(())
}

/// What the spec goes by must stay as it is.
fn check_schema(before: &Schema, after: &Schema, spec: &WriteSpec) -> Result<()> {
    let keys = before.all_fields().into_iter().filter(|field| field.primary_key_position > 0).map(|field| field.id);
    let needed: Vec<FieldId> = keys.chain(spec.field()).collect();
    match needed.into_iter().find(|id| after.field_by_id(*id).is_none()) {
        None => Ok(()),
        Some(id) => {
            let name = before.field_by_id(id).map_or("", |field| field.name.as_str());
            Err(Error::invalid_input(format!(
                "column \"{name}\" is what the LSM write spec goes by; unset the spec before it is dropped or cast"
            )))
        }
    }
}

/// Takes away what the shards of a spec left that is not there any more.
///
/// The look at the newest version and the removal are one: no spec is set in between.
///
/// # Errors
/// `Contention` when others' commits are always faster.
pub(crate) async fn retire(engine: &Engine, dir: &DirId) -> Result<()> {
    let store = engine.store.as_ref();
    for _ in 0..MAX_LOOKS {
        let pins = store.pins(dir).await?;
        let token = store.token(dir, &paths::versions_folder()).await?;
        let latest = versions::latest(engine, dir).await?.ok_or_else(commit::gone)?;
        let has_spec = WriteSpec::find(&latest.manifest)?.is_some();
        let files: Vec<Path> = objects(engine, dir).await?.into_iter().map(|object| object.path).collect();
        if has_spec || files.is_empty() {
            return Ok(());
        }
        let request = RemoveRequest {
            dir: dir.clone(),
            manifests: Vec::new(),
            files,
            pins,
            token: Some((paths::versions_folder(), token)),
            needs_no_writer: false,
            now_ms: now_ms(engine.env.as_ref()),
        };
        match store.remove(request).await {
            Ok(RemoveOutcome::Gone) => return Err(commit::gone()),
            // The next look says whether something is left.
            Ok(_) | Err(Error::OutcomeUnknown { .. } | Error::Unavailable { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Contention { message: "versions changed again and again while old shards were removed".to_owned() })
}

/// To be called when a commit is done and nothing of it can fail any more: shards go with their spec. Best effort, a spec that is set
/// again sees to it.
pub(crate) async fn after_commit(engine: &Engine, before: &Snapshot, committed: &Snapshot) {
    let has_spec = |snapshot: &Snapshot| matches!(WriteSpec::find(&snapshot.manifest), Ok(Some(_)));
    if has_spec(before) && !has_spec(committed) {
        let _ = retire(engine, &committed.dir).await;
    }
}

async fn objects(engine: &Engine, dir: &DirId) -> Result<Vec<ObjectMeta>> {
    Ok(engine.store.list(dir, &Path::default().join(layout::folder()), &ListOptions::default()).await?.objects)
}
