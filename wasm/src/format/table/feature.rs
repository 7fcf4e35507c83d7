//! Feature flags: what a table asks of its readers and writers.
//!
//! A manifest has two words of flags. A bit of the reader word that we do not know closes the table to us; one of the writer word
//! leaves it readable. Flags follow from the content of a manifest and are computed anew for every version, but for the sticky ones.

use crate::error::{Error, Result};
use crate::format::table::manifest::Manifest;

/// Some fragment has a deletion file. Both words.
pub const DELETION_FILES: u64 = 1;
/// Rows have ids that survive compaction. Both words; sticky.
pub const STABLE_ROW_IDS: u64 = 1 << 1;
/// A mark of old writers without meaning.
pub const OLD_V2_MARK: u64 = 1 << 2;
/// The config map is not empty. Writer word.
pub const CONFIG: u64 = 1 << 3;
/// Files may lie under other paths than the table's. Both words.
pub const BASE_PATHS: u64 = 1 << 4;
/// Transactions are in the manifests only. Writer word.
pub const NO_TRANSACTION_FILES: u64 = 1 << 5;
/// Some index holds further columns. Belongs to the index section.
pub const COVERING_INDEX_COLUMNS: u64 = 1 << 7;
/// Data files of several format versions. Both words or none; sticky.
pub const MIXED_FILE_VERSIONS: u64 = 1 << 8;

/// The flags that this build understands, in either word.
pub const KNOWN: u64 = DELETION_FILES
    | STABLE_ROW_IDS
    | OLD_V2_MARK
    | CONFIG
    | BASE_PATHS
    | NO_TRANSACTION_FILES
    | COVERING_INDEX_COLUMNS
    | MIXED_FILE_VERSIONS;

/// Formats of data files whose tables can be opened.
const READABLE_FORMATS: [&str; 3] = ["2.0", "2.1", "2.2"];

/// Both words of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags {
    pub reader: u64,
    pub writer: u64,
}

/// Whether this build may read the table. `NotSupported` names what it lacks, `Corrupt` what contradicts itself.
pub fn check_readable(manifest: &Manifest) -> Result<()> {
    let (reader, writer) = (manifest.reader_flags, manifest.writer_flags);
    check_known("reader", reader)?;
    if (reader ^ writer) & MIXED_FILE_VERSIONS != 0 {
        return Err(Error::corrupt(format!(
            "feature bit 8 (mixed data file versions) is set in one word of flags only: reader {reader}, writer {writer}"
        )));
    }
    if reader & BASE_PATHS != 0 || !manifest.base_paths.is_empty() {
        return Err(Error::not_supported("table with base paths (a branch or a shallow clone)"));
    }
    let files = || manifest.fragments.iter().flat_map(|fragment| &fragment.files);
    let deletions = manifest.fragments.iter().filter_map(|fragment| fragment.deletion.as_ref());
    if files().any(|file| file.base_id.is_some()) || deletions.into_iter().any(|file| file.base_id.is_some()) {
        return Err(Error::corrupt("a file lies under a base path that the manifest does not list"));
    }
    check_format(&manifest.data_format)?;
    for file in files() {
        let format = format!("{}.{}", file.major_version, file.minor_version);
        if reader & MIXED_FILE_VERSIONS != 0 {
            check_format(&format)?;
        } else if format != manifest.data_format {
            return Err(Error::corrupt(format!(
                "data file {} of format {format} in a table of format {}",
                file.path, manifest.data_format
            )));
        }
    }
    Ok(())
}

/// Whether this build may commit to the table; [`check_readable`] is part of it. To be asked before any file is written.
pub fn check_writable(manifest: &Manifest) -> Result<()> {
    check_readable(manifest)?;
    check_known("writer", manifest.writer_flags)?;
    if manifest.branch.is_some() {
        return Err(Error::not_supported("writes to a branch"));
    }
    // What cannot be read cannot be carried on.
    manifest.indices()?;
    Ok(())
}

/// The flags that the content of a manifest asks for. `manifest` holds the flags of the version before, for the sticky ones.
pub fn flags_for(manifest: &Manifest) -> Flags {
    let mut both = 0;
    if manifest.fragments.iter().any(|fragment| fragment.deletion.is_some()) {
        both |= DELETION_FILES;
    }
    if manifest.fragments.iter().any(|fragment| fragment.row_ids.is_some()) {
        both |= STABLE_ROW_IDS;
    }
    if !manifest.base_paths.is_empty() {
        both |= BASE_PATHS;
    }
    let mut sticky = STABLE_ROW_IDS | MIXED_FILE_VERSIONS;
    if manifest.index_section.is_some() {
        // The section is kept byte for byte, and so is what it asks for.
        sticky |= COVERING_INDEX_COLUMNS;
    }
    let config = if manifest.config.is_empty() { 0 } else { CONFIG };
    Flags { reader: both | manifest.reader_flags & sticky, writer: both | manifest.writer_flags & sticky | config }
}

fn check_known(word: &str, flags: u64) -> Result<()> {
    let unknown = flags & !KNOWN;
    if unknown == 0 {
        return Ok(());
    }
    let bits: Vec<String> = (0..u64::BITS).filter(|bit| unknown & (1 << bit) != 0).map(name_of_bit).collect();
    Err(Error::not_supported(format!(
        "table requires {word} feature bit(s) {} (flags={flags}); this build supports {KNOWN}",
        bits.join(", ")
    )))
}

fn name_of_bit(bit: u32) -> String {
    match bit {
        6 => "6 (data overlays)".to_owned(),
        9 | 10 => format!("{bit} (fragment reuse)"),
        _ => bit.to_string(),
    }
}

fn check_format(version: &str) -> Result<()> {
    if READABLE_FORMATS.contains(&version) {
        return Ok(());
    }
    Err(Error::not_supported(format!("data format {version}, this build reads {}", READABLE_FORMATS.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::file::FileVersion;
    use crate::format::proto;
    use crate::format::table::fragment::DeletionFileKind;
    use crate::format::table::manifest::tests::empty_manifest;
    use crate::format::table::{DataFile, DeletionFile, Fragment, FragmentId};
    use prost::Message;

    fn with_flags(reader: u64, writer: u64) -> Manifest {
        Manifest { reader_flags: reader, writer_flags: writer, ..empty_manifest() }
    }

    fn with_file(major_version: u32, minor_version: u32) -> Manifest {
        let file = DataFile {
            path: "f.lance".into(),
            fields: vec![],
            column_indices: vec![],
            major_version,
            minor_version,
            size_bytes: None,
            base_id: None,
        };
        let fragment = Fragment {
            id: FragmentId(0),
            files: vec![file],
            deletion: None,
            physical_rows: 1,
            row_ids: None,
            last_updated_at_versions: None,
            created_at_versions: None,
        };
        Manifest { fragments: vec![fragment], ..empty_manifest() }
    }

    fn feature(result: Result<()>) -> String {
        match result {
            Err(Error::NotSupported { feature }) => feature,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn t5_every_reader_bit_is_read_or_refused_by_name() {
        for bit in 0..64 {
            let flags = 1u64 << bit;
            let both = check_readable(&with_flags(flags, flags));
            match bit {
                0 | 1 | 2 | 3 | 5 | 7 | 8 => assert_eq!(both, Ok(()), "{bit}"),
                4 => assert!(feature(both).contains("base paths")),
                _ => assert!(feature(both).starts_with(&format!("table requires reader feature bit(s) {bit}"))),
            }
        }
        assert_eq!(
            feature(check_readable(&with_flags(64 | 1 | 2048, 0))),
            "table requires reader feature bit(s) 6 (data overlays), 11 (flags=2113); this build supports 447"
        );
    }

    #[test]
    fn t5_an_unknown_writer_bit_leaves_the_table_readable() {
        for bit in (0..64).filter(|bit| !matches!(bit, 8)) {
            let manifest = with_flags(0, 1u64 << bit);
            assert_eq!(check_readable(&manifest), Ok(()), "{bit}");
            match bit {
                0..=5 | 7 => assert_eq!(check_writable(&manifest), Ok(()), "{bit}"),
                _ => assert!(
                    feature(check_writable(&manifest))
                        .starts_with(&format!("table requires writer feature bit(s) {bit}"))
                ),
            }
        }
    }

    #[test]
    fn mixed_file_versions_are_in_both_words_or_none() {
        assert_eq!(check_writable(&with_flags(256, 256)), Ok(()));
        for (reader, writer) in [(256, 0), (0, 256)] {
            assert!(matches!(check_readable(&with_flags(reader, writer)), Err(Error::Corrupt { .. })));
        }
        let mut manifest = with_file(2, 1);
        assert!(matches!(check_readable(&manifest), Err(Error::Corrupt { .. })));
        (manifest.reader_flags, manifest.writer_flags) = (256, 256);
        assert_eq!(check_readable(&manifest), Ok(()));
        manifest.fragments[0].files[0].minor_version = 3;
        assert_eq!(feature(check_readable(&manifest)), "data format 2.3, this build reads 2.0, 2.1, 2.2");
    }

    #[test]
    fn formats_are_read_and_written_from_2_0_to_2_2() {
        for (format, readable) in
            [("0.1", false), ("2.0", true), ("2.1", true), ("2.2", true), ("2.3", false), ("next", false), ("", false)]
        {
            let manifest = Manifest { data_format: format.into(), ..empty_manifest() };
            assert_eq!(check_readable(&manifest).is_ok(), readable, "{format}");
            assert_eq!(check_writable(&manifest).is_ok(), readable, "{format}");
            assert_eq!(FileVersion::parse(format).is_ok(), readable, "{format}");
        }
    }

    #[test]
    fn a_table_whose_indices_cannot_be_read_is_read_only() {
        let index = proto::IndexMetadata { name: "a_idx".into(), ..Default::default() };
        let section = proto::IndexSection { indices: vec![index] }.encode_to_vec();
        let manifest = Manifest { index_section: Some(section.into()), ..empty_manifest() };
        assert_eq!(check_writable(&manifest), Ok(()));
        let garbled = Manifest { index_section: Some(vec![0xff; 3].into()), ..empty_manifest() };
        assert_eq!(check_readable(&garbled), Ok(()));
        assert!(matches!(check_writable(&garbled), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn base_paths_and_branches_are_refused() {
        let base = proto::BasePath { id: 0, name: None, is_dataset_root: true, path: "/elsewhere".into() };
        assert!(
            feature(check_readable(&Manifest { base_paths: vec![base], ..empty_manifest() })).contains("base paths")
        );
        let mut manifest = with_file(2, 2);
        manifest.fragments[0].files[0].base_id = Some(1);
        assert!(matches!(check_readable(&manifest), Err(Error::Corrupt { .. })));
        let branch = Manifest { branch: Some("b".into()), ..empty_manifest() };
        assert_eq!(check_readable(&branch), Ok(()));
        assert_eq!(feature(check_writable(&branch)), "writes to a branch");
    }

    #[test]
    fn flags_follow_the_content_and_sticky_ones_stay() {
        let flags = |manifest: &Manifest| {
            let Flags { reader, writer } = flags_for(manifest);
            (reader, writer)
        };
        assert_eq!(flags(&with_flags(1 | 4 | 32 | 128, 1 | 8 | 128)), (0, 0));
        assert_eq!(flags(&with_flags(2 | 256, 2 | 256)), (258, 258));
        let mut manifest = with_file(2, 2);
        manifest.fragments[0].deletion = Some(DeletionFile {
            kind: DeletionFileKind::Bitmap,
            read_version: 1,
            id: 1,
            deleted_rows: 1,
            base_id: None,
        });
        manifest.config.insert("k".into(), "v".into());
        assert_eq!(flags(&manifest), (1, 9));
        manifest.fragments[0].row_ids = Some(vec![]);
        assert_eq!(flags(&manifest), (3, 11));
        let indexed = Manifest { index_section: Some(vec![].into()), ..with_flags(128, 128) };
        assert_eq!(flags(&indexed), (128, 128));
    }
}
