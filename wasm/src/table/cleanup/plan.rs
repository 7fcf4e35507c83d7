//! What of a table goes and what stays: pure.
//!
//! Versions are told one after the other, then files. A file is known by the name under which manifests name it: a blob by its data
//! file, a file of an index by the index.

use std::collections::HashSet;
use std::fmt;

use crate::env::format_uuid;
use crate::error::{Error, Result};
use crate::format::table::layout;
use crate::format::table::{IndexSection, Manifest};
use crate::store::{LeaseKind, LiveLease, ObjectMeta, Path};
use crate::table::versions::Listed;

/// The moment's bounds.
pub(super) struct Rules {
    /// This version and newer ones stay.
    pub(super) keep_from: u64,
    /// Versions made before this moment may go.
    pub(super) versions_before_ns: u64,
    /// Files that no version names may go when they were written before this moment; `None` = always.
    pub(super) unverified_before_ms: Option<u64>,
}

/// A reference that keeps a version.
pub(super) struct Pin {
    pub(super) version: u64,
    pub(super) reason: KeepReason,
}

/// Why a version stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepReason {
    /// It is the version that the cleanup stands on, or a newer one.
    Latest,
    /// It is younger than the options say.
    Age,
    Tag(String),
    Branch(String),
    /// Somebody uses it.
    Lease(LeaseKind),
}

/// A version that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptVersion {
    pub version: u64,
    pub timestamp_ns: u64,
    /// At least one.
    pub reasons: Vec<KeepReason>,
}

/// A version that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedVersion {
    pub version: u64,
    pub timestamp_ns: u64,
    /// The manifest.
    pub path: Path,
    pub size_bytes: u64,
}

/// What kind of garbage a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GarbageKind {
    /// Only versions that go name it.
    OldVersion,
    /// No version names it.
    Unverified,
}

/// A file that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage {
    pub path: Path,
    pub size_bytes: u64,
    pub kind: GarbageKind,
}

/// What a cleanup takes and what it leaves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CleanupPreview {
    /// Ascending.
    pub kept: Vec<KeptVersion>,
    pub removed: Vec<RemovedVersion>,
    /// Besides manifests.
    pub files: Vec<Garbage>,
}

impl CleanupPreview {
    /// Of manifests and files that go.
    pub fn size_bytes(&self) -> u64 {
        let manifests = self.removed.iter().map(|version| version.size_bytes);
        manifests.chain(self.files.iter().map(|file| file.size_bytes)).fold(0, u64::saturating_add)
    }
}

/// A plan in the making.
pub(super) struct Planner {
    rules: Rules,
    pins: Vec<Pin>,
    leases: Vec<LiveLease>,
    /// Names of files that versions which stay name.
    referenced: HashSet<String>,
    /// Names of files that versions which go name.
    verified: HashSet<String>,
    /// The version before, and whether it stays: most of what the next one names it named as well.
    previous: Option<(bool, Manifest)>,
    plan: CleanupPreview,
}

impl Planner {
    pub(super) fn new(rules: Rules, pins: Vec<Pin>, leases: Vec<LiveLease>) -> Planner {
        Planner {
            rules,
            pins,
            leases,
            referenced: HashSet::new(),
            verified: HashSet::new(),
            previous: None,
            plan: CleanupPreview::default(),
        }
    }

    /// Takes the next version, ascending.
    ///
    /// # Errors
    /// `Corrupt` for indices that cannot be read.
    pub(super) fn version(&mut self, listed: &Listed, manifest: Manifest) -> Result<()> {
        let version = listed.version;
        let timestamp_ns = timestamp_ns(listed, &manifest);
        let reasons = self.reasons(version, timestamp_ns);
        let is_kept = !reasons.is_empty();
        let names = if is_kept { &mut self.referenced } else { &mut self.verified };
        let before = self.previous.as_ref().filter(|(was_kept, _)| *was_kept == is_kept).map(|(_, before)| before);
        names_of(&manifest, before, |name, _| {
            names.insert(name);
        })?;
        self.previous = Some((is_kept, manifest));
        if is_kept {
            self.plan.kept.push(KeptVersion { version, timestamp_ns, reasons });
        } else {
            let (path, size_bytes) = (listed.path.clone(), listed.size_bytes);
            self.plan.removed.push(RemovedVersion { version, timestamp_ns, path, size_bytes });
        }
        Ok(())
    }

    /// Takes a version of a branch: what it takes from elsewhere may be a file of this table.
    ///
    /// # Errors
    /// `Corrupt` for indices that cannot be read.
    pub(super) fn branch_version(&mut self, manifest: &Manifest) -> Result<()> {
        names_of(manifest, None, |name, is_own| {
            if !is_own {
                self.referenced.insert(name);
            }
        })
    }

    /// Takes a file.
    pub(super) fn file(&mut self, object: &ObjectMeta) {
        let Some(name) = name_of(&object.path) else { return };
        let is_named = |names: &HashSet<String>| name.as_ref().is_some_and(|name| names.contains(name));
        if is_named(&self.referenced) {
            return;
        }
        let kind = if is_named(&self.verified) { GarbageKind::OldVersion } else { GarbageKind::Unverified };
        let is_old = self.rules.unverified_before_ms.is_none_or(|bound| object.modified_ms < bound);
        if kind == GarbageKind::OldVersion || is_old {
            self.plan.files.push(Garbage { path: object.path.clone(), size_bytes: object.size_bytes, kind });
        }
    }

    pub(super) fn finish(self) -> CleanupPreview {
        self.plan
    }

    fn reasons(&self, version: u64, timestamp_ns: u64) -> Vec<KeepReason> {
        let mut reasons = Vec::new();
        if version >= self.rules.keep_from {
            reasons.push(KeepReason::Latest);
        }
        if timestamp_ns >= self.rules.versions_before_ns {
            reasons.push(KeepReason::Age);
        }
        let pins = self.pins.iter().filter(|pin| pin.version == version);
        reasons.extend(pins.map(|pin| pin.reason.clone()));
        for lease in &self.leases {
            let reason = KeepReason::Lease(lease.kind);
            let keeps = lease.version == version || (lease.kind == LeaseKind::Write && lease.version < version);
            if keeps && !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        reasons
    }
}

/// When a version was made; where the manifest does not say, when it was written.
pub(super) fn timestamp_ns(listed: &Listed, manifest: &Manifest) -> u64 {
    manifest.timestamp_ns.unwrap_or_else(|| listed.modified_ms.saturating_mul(1_000_000))
}

/// Calls `found` with the name of each file that a manifest names, and whether it lies in the manifest's own directory. Fragments that stand
/// in `before` as they are may be left out.
fn names_of(manifest: &Manifest, before: Option<&Manifest>, mut found: impl FnMut(String, bool)) -> Result<()> {
    let old = before.map_or(&[][..], |before| &before.fragments);
    for (at, fragment) in manifest.fragments.iter().enumerate() {
        if old.get(at).is_some_and(|old| old == fragment) {
            continue;
        }
        for file in &fragment.files {
            found(layout::data_file_path(&file.path), file.base_id.is_none());
        }
        if let Some(deletion) = &fragment.deletion {
            found(layout::deletion_file_path(fragment.id, deletion), deletion.base_id.is_none());
        }
    }
    if !manifest.transaction_file.is_empty() {
        found(layout::transaction_path(&manifest.transaction_file), true);
    }
    if let Some(section) = &manifest.index_section {
        for index in IndexSection::decode(section)?.entries {
            let uuid = index.uuid.ok_or_else(|| Error::corrupt(format!("index \"{}\" without a uuid", index.name)))?;
            // A branch's own indices lie elsewhere, but no uuid is given twice.
            found(layout::index_folder(&format_uuid(&uuid)), false);
        }
    }
    Ok(())
}

/// The name under which manifests name what a path holds. `None` for what is no business of a cleanup; `Some(None)` for what no
/// manifest ever names: temporary files of manifests that were not finished.
fn name_of(path: &Path) -> Option<Option<String>> {
    let (folder, rest) = path.as_str().split_once('/')?;
    let is = |suffix: &str| rest.strip_suffix(suffix).is_some_and(|stem| !stem.is_empty());
    if folder == layout::data_folder() {
        let stem = rest.split_once('/').map(|(stem, _)| stem);
        return match stem {
            Some(stem) if is(".blob") => Some(Some(layout::data_file_path(&format!("{stem}.lance")))),
            _ => is(".lance").then(|| Some(path.to_string())),
        };
    }
    if folder == layout::deletions_folder() {
        return (is(".arrow") || is(".bin")).then(|| Some(path.to_string()));
    }
    if folder == layout::transactions_folder() {
        return is(".txn").then(|| Some(path.to_string()));
    }
    if folder == layout::indices_folder() {
        let (uuid, _) = rest.split_once('/')?;
        return Some(Some(format!("{folder}/{uuid}")));
    }
    (folder == layout::versions_folder() && rest.starts_with(".tmp")).then_some(None)
}

impl fmt::Display for CleanupPreview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for version in &self.removed {
            writeln!(f, "version {} goes: {} ({} bytes)", version.version, version.path, version.size_bytes)?;
        }
        for version in &self.kept {
            let reasons: Vec<String> = version.reasons.iter().map(KeepReason::to_string).collect();
            writeln!(f, "version {} stays: {}", version.version, reasons.join(", "))?;
        }
        for file in &self.files {
            let kind = match file.kind {
                GarbageKind::OldVersion => "of old versions",
                GarbageKind::Unverified => "of no version",
            };
            writeln!(f, "file {} goes: {kind} ({} bytes)", file.path, file.size_bytes)?;
        }
        Ok(())
    }
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeepReason::Latest => f.write_str("latest"),
            KeepReason::Age => f.write_str("age"),
            KeepReason::Tag(name) => write!(f, "tag {name}"),
            KeepReason::Branch(name) => write!(f, "branch {name}"),
            KeepReason::Lease(LeaseKind::Write) => f.write_str("lease of a write"),
            KeepReason::Lease(LeaseKind::Scan) => f.write_str("lease of a scan"),
            KeepReason::Lease(LeaseKind::Checkout) => f.write_str("lease of a checkout"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_known_kinds_are_the_business_of_a_cleanup() {
        let name = |path: &str| name_of(&Path::parse(path).unwrap());
        let same = |path: &str| Some(Some(path.to_owned()));
        assert_eq!(name("data/x.lance"), same("data/x.lance"));
        assert_eq!(name("data/deep/x.lance"), same("data/deep/x.lance"));
        assert_eq!(name("data/x/1.blob"), same("data/x.lance"));
        assert_eq!(name("_deletions/0-1-2.arrow"), same("_deletions/0-1-2.arrow"));
        assert_eq!(name("_deletions/0-1-2.bin"), same("_deletions/0-1-2.bin"));
        assert_eq!(name("_transactions/1-u.txn"), same("_transactions/1-u.txn"));
        assert_eq!(name("_indices/u/page/1.lance"), same("_indices/u"));
        assert_eq!(name("_versions/.tmp_1.manifest_u"), Some(None));
        let others = [
            "x.lance",
            "data/x.txt",
            "data/.lance",
            "data/1.blob",
            "_deletions/x.txt",
            "_transactions/x",
            "_indices/x",
            "_versions/1.manifest",
            "_versions/d9223372036854775809.manifest",
            "_versions/latest_version_hint.json",
            "_refs/tags/a.json",
            "_mem_wal/s/1.lance",
            "tree/b/data/x.lance",
            "foreign/x.lance",
            "data2/x.lance",
        ];
        for path in others {
            assert_eq!(name(path), None, "{path}");
        }
    }
}
