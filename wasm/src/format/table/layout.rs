//! Every path of a table directory, relative to it.
//!
//! Versions are named by one of two schemes: V2, 20 digits of `2^64 - 1 - version` so that the newest sorts first, and V1, the plain
//! number. A directory holds one scheme only; we write V2.

use std::fmt::Write;

use crate::error::{Error, Result};
use crate::format::table::fragment::{DeletionFile, DeletionFileKind, FragmentId};
use crate::format::table::manifest::Version;

/// Bit of the numbers of detached versions, which belong to no history.
const DETACHED: u64 = 1 << 63;

const MANIFEST_SUFFIX: &str = ".manifest";

/// Digits of a V2 name: all that a `u64` can need.
const V2_DIGITS: usize = 20;

/// How the manifests of a table are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamingScheme {
    /// The plain version number.
    V1,
    /// 20 digits, newest first.
    V2,
}

impl NamingScheme {
    /// The file name of a version below `_versions/`.
    pub fn manifest_name(self, version: Version) -> String {
        match self {
            NamingScheme::V1 => format!("{}{MANIFEST_SUFFIX}", version.0),
            NamingScheme::V2 => format!("{:020}{MANIFEST_SUFFIX}", u64::MAX - version.0),
        }
    }

    /// The path of a version.
    pub fn manifest_path(self, version: Version) -> String {
        format!("{}/{}", versions_folder(), self.manifest_name(version))
    }
}

/// Data files.
pub fn data_folder() -> &'static str {
    "data"
}

/// Manifests, one per version.
pub fn versions_folder() -> &'static str {
    "_versions"
}

/// Deletion files.
pub fn deletions_folder() -> &'static str {
    "_deletions"
}

/// Transactions of other writers; ours are inside their manifests.
pub fn transactions_folder() -> &'static str {
    "_transactions"
}

/// Indices, a folder each.
pub fn indices_folder() -> &'static str {
    "_indices"
}

/// The path at which we write a version.
pub fn manifest_path(version: Version) -> String {
    NamingScheme::V2.manifest_path(version)
}

/// The path of the hint at the newest version.
pub fn version_hint_path() -> String {
    format!("{}/latest_version_hint.json", versions_folder())
}

/// The path of a data file; `name` is [`DataFile::path`](crate::format::table::DataFile::path).
pub fn data_file_path(name: &str) -> String {
    format!("{}/{name}", data_folder())
}

/// The path of the deletion file of a fragment.
pub fn deletion_file_path(fragment: FragmentId, file: &DeletionFile) -> String {
    let suffix = match file.kind {
        DeletionFileKind::Array => "arrow",
        DeletionFileKind::Bitmap => "bin",
    };
    format!("{}/{}-{}-{}.{suffix}", deletions_folder(), fragment.0, file.read_version, file.id)
}

/// The path of a transaction; `name` is [`Manifest::transaction_file`](crate::format::table::Manifest::transaction_file).
pub fn transaction_path(name: &str) -> String {
    format!("{}/{name}", transactions_folder())
}

/// The folder of the files of an index; `uuid` is hyphenated.
pub fn index_folder(uuid: &str) -> String {
    format!("{}/{uuid}", indices_folder())
}

/// A new data file's name: 3 bytes of a UUID in binary, which spreads names over the partitions of object stores, the rest in hex.
pub fn data_file_name(uuid: &[u8; 16]) -> String {
    let mut name = String::with_capacity(56);
    for (i, byte) in uuid.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = if i < 3 { write!(name, "{byte:08b}") } else { write!(name, "{byte:02x}") };
    }
    name.push_str(".lance");
    name
}

/// The version that a file in `_versions/` holds; `None` for all that is no version of the history: detached versions, temporary
/// files of unfinished writes, the hint.
pub fn parse_manifest_name(name: &str) -> Option<(Version, NamingScheme)> {
    let digits = name.strip_suffix(MANIFEST_SUFFIX)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    let (version, scheme) =
        if digits.len() == V2_DIGITS { (u64::MAX - number, NamingScheme::V2) } else { (number, NamingScheme::V1) };
    // A name with other zeros than the scheme's is nobody's.
    let version = Version(version);
    let is_version = version.0 != 0 && version.0 & DETACHED == 0 && scheme.manifest_name(version) == name;
    is_version.then_some((version, scheme))
}

/// The versions among the files of `_versions/`, ascending, and how they are named (V2 if there are none).
///
/// `Corrupt` if both schemes occur: which of two files is version n could not be told.
pub fn parse_manifest_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(Vec<Version>, NamingScheme)> {
    let mut versions = Vec::new();
    let mut found: Option<NamingScheme> = None;
    for (version, scheme) in names.into_iter().filter_map(parse_manifest_name) {
        if found.is_some_and(|found| found != scheme) {
            return Err(Error::corrupt("manifests of two naming schemes in one table").at(versions_folder()));
        }
        found = Some(scheme);
        versions.push(version);
    }
    versions.sort_unstable();
    Ok((versions, found.unwrap_or(NamingScheme::V2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_named_newest_first() {
        assert_eq!(manifest_path(Version(1)), "_versions/18446744073709551614.manifest");
        assert_eq!(NamingScheme::V1.manifest_path(Version(12)), "_versions/12.manifest");
        assert!(manifest_path(Version(2)) < manifest_path(Version(1)));
        for scheme in [NamingScheme::V1, NamingScheme::V2] {
            for version in [1, 9, 10, u64::MAX >> 1].map(Version) {
                assert_eq!(parse_manifest_name(&scheme.manifest_name(version)), Some((version, scheme)));
            }
        }
    }

    #[test]
    fn t7_what_is_no_version_is_ignored() {
        let names = [
            "d9223372036854775809.manifest",
            ".tmp_18446744073709551614.manifest_1b4e28ba",
            ".tmp_7.manifest",
            "18446744073709551614.manifest.tmp",
            "18446744073709551614.manifest#1",
            "7.manifest-1b4e28ba-2fa1-11d2-883f-0016d3cca427",
            "latest_version_hint.json",
            "foo.txt",
            ".manifest",
            "07.manifest",
            "+7.manifest",
            "0.manifest",
            "18446744073709551615.manifest",
            "99999999999999999999.manifest",
            "00000000000000000007.manifest",
            "9223372036854775809.manifest",
            "7.MANIFEST",
        ];
        for name in names {
            assert_eq!(parse_manifest_name(name), None, "{name}");
        }
        assert_eq!(parse_manifest_names(names).unwrap(), (vec![], NamingScheme::V2));
    }

    #[test]
    fn t7_one_table_has_one_naming_scheme() {
        let names = ["3.manifest", "1.manifest", "d9223372036854775809.manifest", "2.manifest"];
        assert_eq!(parse_manifest_names(names).unwrap(), ([1, 2, 3].map(Version).to_vec(), NamingScheme::V1));
        let error = parse_manifest_names(["1.manifest", "18446744073709551614.manifest"]).unwrap_err();
        assert_eq!(error.to_string(), "corrupt data in _versions: manifests of two naming schemes in one table");
    }

    #[test]
    fn files_are_named_as_lance_names_them() {
        let uuid: [u8; 16] = std::array::from_fn(|i| i as u8 * 17);
        assert_eq!(data_file_name(&uuid), "00000000000100010010001033445566778899aabbccddeeff.lance");
        assert_eq!(data_file_path("x.lance"), "data/x.lance");
        let mut file = DeletionFile {
            kind: DeletionFileKind::Array,
            read_version: 4,
            id: u64::MAX,
            deleted_rows: 1,
            base_id: None,
        };
        assert_eq!(deletion_file_path(FragmentId(7), &file), "_deletions/7-4-18446744073709551615.arrow");
        file.kind = DeletionFileKind::Bitmap;
        assert_eq!(deletion_file_path(FragmentId(7), &file), "_deletions/7-4-18446744073709551615.bin");
        assert_eq!(transaction_path("0-u.txn"), "_transactions/0-u.txn");
    }
}
