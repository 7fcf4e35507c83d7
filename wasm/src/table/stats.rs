//! Stats: how large a table is, and in how many pieces. The numbers are LanceDB's.

use crate::collections::SortedSet;
use crate::error::Result;
use crate::format::proto::IndexMetadata;
use crate::format::table::{DataFile, Manifest};
use crate::store::ListOptions;
use crate::table::database::Engine;
use crate::table::paths;
use crate::table::snapshot::Snapshot;

/// A fragment with fewer rows counts as small.
const SMALL_ROWS: u64 = 100_000;

/// The size of one version of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableStats {
    /// Data files, those of dropped columns included, and index files.
    pub total_bytes: u64,
    pub live_rows: u64,
    pub index_count: u64,
    pub fragment_count: u64,
    /// Fragments with fewer than 100,000 rows.
    pub small_fragment_count: u64,
    pub fragment_rows: Spread,
}

/// How large things are, deleted rows included. All are zero when there is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spread {
    pub min: u64,
    pub max: u64,
    /// Rounded down.
    pub mean: u64,
    /// Percentiles: the length at this share of the sorted lengths, counted from 0 and rounded down.
    pub p25: u64,
    pub p50: u64,
    pub p75: u64,
    pub p99: u64,
}

pub(crate) async fn stats(engine: &Engine, snapshot: &Snapshot) -> Result<TableStats> {
    let manifest = &snapshot.manifest;
    let mut total_bytes = 0u64;
    for file in manifest.fragments.iter().flat_map(|fragment| &fragment.files) {
        total_bytes = total_bytes.saturating_add(file_bytes(engine, snapshot, file).await?);
    }
    let indices = manifest.indices()?;
    for index in &indices {
        total_bytes = total_bytes.saturating_add(index_bytes(engine, snapshot, index).await?);
    }
    // An index in several segments is one index.
    let names: SortedSet<&str> =
        indices.iter().map(|index| index.name.as_str()).filter(|name| !is_system(name)).collect();
    Ok(of_manifest(manifest, total_bytes, names.len() as u64))
}

fn of_manifest(manifest: &Manifest, total_bytes: u64, index_count: u64) -> TableStats {
    let rows: Vec<u64> = manifest.fragments.iter().map(|fragment| fragment.physical_rows).collect();
    TableStats {
        total_bytes,
        live_rows: manifest.live_rows(),
        index_count,
        fragment_count: rows.len() as u64,
        small_fragment_count: rows.iter().filter(|rows| **rows < SMALL_ROWS).count() as u64,
        fragment_rows: spread(rows),
    }
}

fn spread(mut values: Vec<u64>) -> Spread {
    values.sort_unstable();
    let (Some(min), Some(max)) = (values.first(), values.last()) else { return Spread::default() };
    let at = |percent: usize| values.get(values.len() * percent / 100).copied().unwrap_or(*max);
    let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
    let mean = u64::try_from(sum / values.len().max(1) as u128).unwrap_or(u64::MAX);
    Spread { min: *min, max: *max, mean, p25: at(25), p50: at(50), p75: at(75), p99: at(99) }
}

/// Indices that LanceDB keeps for itself.
fn is_system(name: &str) -> bool {
    name.starts_with("__lance")
}

/// What the manifest says, else what the store says: old manifests don't tell.
async fn file_bytes(engine: &Engine, snapshot: &Snapshot, file: &DataFile) -> Result<u64> {
    if let Some(size_bytes) = file.size_bytes {
        return Ok(size_bytes);
    }
    let path = paths::data_file(&file.path);
    let found = engine.store.head(&snapshot.dir, &path).await?.ok_or_else(|| snapshot.missing_file(&path))?;
    Ok(found.size_bytes)
}

async fn index_bytes(engine: &Engine, snapshot: &Snapshot, index: &IndexMetadata) -> Result<u64> {
    let sum = |sizes: &mut dyn Iterator<Item = u64>| sizes.fold(0, u64::saturating_add);
    let Some(uuid) = &index.uuid else { return Ok(0) };
    if !index.files.is_empty() {
        return Ok(sum(&mut index.files.iter().map(|file| file.size_bytes)));
    }
    let Ok(uuid) = <[u8; 16]>::try_from(uuid.bytes.as_slice()) else { return Ok(0) };
    let listing = engine.store.list(&snapshot.dir, &paths::index_folder(&uuid), &ListOptions::default()).await?;
    Ok(sum(&mut listing.objects.iter().map(|object| object.size_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted with LanceDB 0.39.0.
    #[test]
    fn percentiles_are_lancedbs() {
        let of = |values: &[u64]| {
            let found = spread(values.to_vec());
            [found.min, found.max, found.mean, found.p25, found.p50, found.p75, found.p99]
        };
        assert_eq!(of(&[]), [0; 7]);
        assert_eq!(of(&[3]), [3; 7]);
        assert_eq!(of(&[1, 2]), [1, 2, 1, 1, 2, 2, 2]);
        assert_eq!(of(&[1, 2, 3]), [1, 3, 2, 1, 2, 3, 3]);
        assert_eq!(of(&[1, 2, 3, 4]), [1, 4, 2, 2, 3, 4, 4]);
        assert_eq!(of(&[10, 20, 30, 40, 50]), [10, 50, 30, 20, 30, 40, 50]);
        assert_eq!(of(&[7, 100, 3, 9, 20, 11, 13, 4, 6, 99]), [3, 100, 27, 6, 11, 20, 100]);
        let many: Vec<u64> = (0..23).map(|i| i * 37 % 101 + 1).collect();
        assert_eq!(of(&many), [1, 98, 47, 21, 48, 75, 98]);
        assert_eq!(of(&[u64::MAX, u64::MAX]), [u64::MAX; 7]);
    }
}
