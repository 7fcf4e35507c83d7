//! Stats: what a look at the shards measures, and nothing else. It changes nothing.

use crate::collections::SortedSet;
use crate::error::Result;
use crate::format::wal::{ShardId, ShardManifest, Sharding, SsTable, WalPath, WriteSpec, layout};
use crate::lsm::route::{bucket_ids, unsharded_id};
use crate::store::ObjectMeta;
use crate::table::database::Engine;
use crate::table::fresh::{self, Shard};
use crate::table::snapshot::Snapshot;
use crate::table::{Table, commit, merged, versions};

/// One entry per shard, ascending by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LsmStats {
    pub shards: Vec<ShardStats>,
}

/// A shard; one that nobody wrote to has no manifest, no entries and no generations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardStats {
    pub id: ShardId,
    pub is_sealed: bool,
    pub writer_epoch: u64,
    pub manifest_version: u64,
    /// The generation that the next rows will become.
    pub current_generation: u64,
    /// Entries of the log up to this one are in generations.
    pub replay_after: u64,
    /// The last entry of the log.
    pub last_position: u64,
    /// Those whose rows are not in the base table, ascending.
    pub generations: Vec<GenerationStats>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationStats {
    pub generation: u64,
    /// Of its files; `None` when they are not there.
    pub size_bytes: Option<u64>,
    /// One per key; `None` unless asked for.
    pub live_rows: Option<u64>,
}

impl Table {
    /// The shards of the table's write spec; `None` only where there is no spec. `with_rows` opens every generation.
    ///
    /// # Errors
    /// `Corrupt`; `NotSupported` for a spec of a kind that this build does not know.
    pub async fn lsm_stats(&self, with_rows: bool) -> Result<Option<LsmStats>> {
        let standing = self.standing()?;
        stats(self.engine(), &standing, with_rows).await.map_err(|error| self.name_it(error))
    }
}

async fn stats(engine: &Engine, standing: &Snapshot, with_rows: bool) -> Result<Option<LsmStats>> {
    let latest = async || versions::latest(engine, &standing.dir).await?.ok_or_else(commit::gone);
    if WriteSpec::find(&latest().await?.manifest)?.is_none() {
        return Ok(None);
    }
    let found = fresh::look(engine, &standing.dir).await?;
    // The version last: what was compacted meanwhile is told as compacted.
    let latest = latest().await?;
    let Some(spec) = WriteSpec::of(&latest.manifest)? else { return Ok(None) };
    let mut ids: SortedSet<ShardId> = found.iter().map(|shard| shard.id).collect();
    ids.extend(match spec.sharding {
        Sharding::Bucket { buckets, .. } => bucket_ids(buckets),
        Sharding::Unsharded => vec![unsharded_id()],
        // Which values there will be, nobody knows.
        Sharding::Identity { .. } => Vec::new(),
    });
    let mut shards = Vec::new();
    for id in ids {
        let shard = found.iter().find(|shard| shard.id == id);
        let manifest = shard.map_or_else(ShardManifest::first, |shard| shard.manifest.clone());
        let watermark = spec.compacted.get(&id).copied().unwrap_or(0);
        let mut generations = Vec::new();
        for table in manifest.sstables.iter().filter(|table| table.generation > watermark) {
            generations.push(generation(engine, &latest, shard, table, with_rows).await?);
        }
        let tip = shard.and_then(|shard| shard.tail.last().copied()).unwrap_or(0);
        shards.push(ShardStats {
            id,
            is_sealed: manifest.is_sealed,
            writer_epoch: manifest.writer_epoch,
            manifest_version: manifest.version,
            current_generation: manifest.current_generation,
            replay_after: manifest.replay_after,
            last_position: manifest.last_seen_position.max(manifest.replay_after).max(tip),
            generations,
        });
    }
    Ok(Some(LsmStats { shards }))
}

async fn generation(
    engine: &Engine,
    latest: &Snapshot,
    shard: Option<&Shard>,
    table: &SsTable,
    with_rows: bool,
) -> Result<GenerationStats> {
    let files: Vec<(&str, &ObjectMeta)> = shard
        .iter()
        .flat_map(|shard| &shard.files)
        .filter_map(|object| match layout::parse(object.path.as_str())? {
            (_, WalPath::Generation { folder, file }) if folder == table.folder => Some((file, object)),
            _ => None,
        })
        .collect();
    let sizes = files.iter().map(|(_, object)| object.size_bytes);
    let size_bytes = (!files.is_empty()).then(|| sizes.fold(0, u64::saturating_add));
    let live_rows = match shard.filter(|_| with_rows && !files.is_empty()) {
        Some(shard) => {
            let snapshot = merged::generation(engine, &latest.dir, &shard.id, table).await?;
            Some(snapshot.manifest.live_rows())
        }
        None => None,
    };
    Ok(GenerationStats { generation: table.generation, size_bytes, live_rows })
}
