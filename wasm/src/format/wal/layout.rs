//! The paths below `_mem_wal`, relative to the table's directory.

use crate::format::wal::ShardId;

const FOLDER: &str = "_mem_wal";

/// Where all shards are.
pub fn folder() -> &'static str {
    FOLDER
}

/// The folder of a shard.
pub fn shard_folder(shard: &ShardId) -> String {
    format!("{FOLDER}/{shard}")
}

/// The path of a version of a shard's manifest.
pub fn manifest_path(shard: &ShardId, version: u64) -> String {
    format!("{}/manifest/{}.binpb", shard_folder(shard), bits(version))
}

/// The path of an entry of a shard's log.
pub fn entry_path(shard: &ShardId, position: u64) -> String {
    format!("{}/wal/{}.arrow", shard_folder(shard), bits(position))
}

/// What an object below `_mem_wal` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalPath<'a> {
    /// A version of the shard's manifest.
    Manifest(u64),
    /// An entry of the shard's log.
    Entry(u64),
    /// A file of a generation, or of what did not become one.
    Generation { folder: &'a str, file: &'a str },
}

/// The shard of a path and what it is there; `None` for hints and for strangers.
pub fn parse(path: &str) -> Option<(ShardId, WalPath<'_>)> {
    let (shard, rest) = path.strip_prefix(FOLDER)?.strip_prefix('/')?.split_once('/')?;
    let (folder, file) = rest.split_once('/')?;
    let found = match folder {
        "manifest" => WalPath::Manifest(number(file.strip_suffix(".binpb")?)?),
        "wal" => WalPath::Entry(number(file.strip_suffix(".arrow")?)?),
        _ => WalPath::Generation { folder, file },
    };
    Some((ShardId::parse(shard)?, found))
}

/// A number as names have it: neighbours lie far apart in the listings of object stores.
fn bits(number: u64) -> String {
    (0..64).map(|at| if number >> at & 1 == 1 { '1' } else { '0' }).collect()
}

fn number(text: &str) -> Option<u64> {
    let mut number = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0' if at < 64 => {}
            b'1' if at < 64 => number |= 1 << at,
            _ => return None,
        }
    }
    (number > 0 && text.len() == 64).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARD: &str = "4a388480-a25b-59a8-b058-24217f980256";

    #[test]
    fn numbers_are_named_by_their_bits_the_lowest_one_first() {
        let shard = ShardId::parse(SHARD).unwrap();
        let path = entry_path(&shard, 5);
        assert_eq!(path, format!("_mem_wal/{SHARD}/wal/101{}.arrow", "0".repeat(61)));
        assert_eq!(parse(&path), Some((shard, WalPath::Entry(5))));
        let path = manifest_path(&shard, u64::MAX - 1);
        assert_eq!(parse(&path), Some((shard, WalPath::Manifest(u64::MAX - 1))));
    }

    #[test]
    fn strangers_are_no_paths_of_a_log() {
        let one = format!("1{}", "0".repeat(63));
        for stranger in [
            format!("_mem_wal/{SHARD}/manifest/version_hint.json"),
            format!("_mem_wal/{SHARD}/wal/{}.arrow", "0".repeat(64)),
            format!("_mem_wal/{SHARD}/wal/1{one}.arrow"),
            format!("_mem_wal/{SHARD}/wal/+{}.arrow", "1".repeat(63)),
            format!("_mem_wal/{SHARD}/wal/{one}.binpb"),
            format!("_mem_wal/x/wal/{one}.arrow"),
            format!("_mem_wal/{}/wal/{one}.arrow", SHARD.to_uppercase()),
            format!("_mem_wals/{SHARD}/wal/{one}.arrow"),
            format!("_mem_wal/{SHARD}"),
        ] {
            assert_eq!(parse(&stranger), None, "{stranger}");
        }
        let file = format!("_mem_wal/{SHARD}/00ff00ff_gen_2/data/x.lance");
        let found = WalPath::Generation { folder: "00ff00ff_gen_2", file: "data/x.lance" };
        assert_eq!(parse(&file), Some((ShardId::parse(SHARD).unwrap(), found)));
    }
}
