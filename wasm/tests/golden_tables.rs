//! Metadata of real LanceDB 0.39 tables: `golden/lancedb-0.39.0/tables.mjs` made them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use lancelet::Error;
use lancelet::format::file::FileVersion;
use lancelet::format::table::feature::{self, Flags};
use lancelet::format::table::fragment::DeletionFileKind;
use lancelet::format::table::layout::{self, NamingScheme};
use lancelet::format::table::{DeletionVector, Manifest, Operation, Transaction, Version};
use proptest::prelude::*;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/lancedb-0.39.0/tables")
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Every version of a table, ascending, with the bytes of its manifest.
fn versions(table: &str) -> Vec<(Manifest, Bytes)> {
    let folder = golden().join(table);
    let files = names(&folder.join(layout::versions_folder()));
    let (versions, scheme) = layout::parse_manifest_names(files.iter().map(String::as_str)).unwrap();
    versions
        .into_iter()
        .map(|version| {
            let bytes = Bytes::from(std::fs::read(folder.join(scheme.manifest_path(version))).unwrap());
            let manifest = Manifest::decode(&bytes).unwrap_or_else(|error| panic!("{table} {version:?}: {error}"));
            assert_eq!(manifest.version, version);
            (manifest, bytes)
        })
        .collect()
}

fn latest(table: &str) -> Manifest {
    versions(table).pop().unwrap().0
}

fn all() -> Vec<(String, Manifest, Bytes)> {
    let tables = names(&golden());
    let all: Vec<_> = tables
        .iter()
        .flat_map(|table| versions(table).into_iter().map(|(manifest, bytes)| (table.clone(), manifest, bytes)))
        .collect();
    assert!(all.len() > 30, "{} manifests", all.len());
    all
}

#[test]
fn the_smallest_table_is_written_byte_for_byte() {
    let (manifest, bytes) = versions("empty").remove(0);
    assert_eq!(bytes.len(), 270);
    assert_eq!(manifest.encode(), bytes);
    assert_eq!(manifest.data_format, "2.2");
    assert_eq!((manifest.max_fragment_id, manifest.fragments.len()), (None, 0));
    assert_eq!(manifest.schema.to_arrow().to_string(), "Field { \"id\": Int32 }, Field { \"s\": nullable Utf8 }");
}

#[test]
fn t1_every_manifest_survives_our_writer() {
    for (table, manifest, bytes) in all() {
        let ours = Bytes::from(manifest.encode());
        assert_eq!(Manifest::decode(&ours).unwrap(), manifest, "{table}");
        // Ours says all that LanceDB said but for the operations that we only read.
        let is_ours = matches!(
            manifest.transaction.as_ref().map(|transaction| &transaction.operation),
            Some(
                Operation::Append { .. }
                    | Operation::Delete { .. }
                    | Operation::Overwrite { .. }
                    | Operation::Restore { .. }
                    | Operation::ReserveFragments { .. }
            )
        );
        if is_ours && manifest.config.len() < 2 {
            assert_eq!(ours.len(), bytes.len(), "{table} {:?}", manifest.version);
        }
    }
}

#[test]
fn every_type_of_a_schema_is_written_as_lancedb_writes_it() {
    let (manifest, bytes) = versions("types").remove(0);
    assert_eq!(manifest.schema.fields.len(), 25);
    assert_eq!(manifest.schema.metadata.get("owner").map(String::as_str), Some("golden"));
    assert_eq!(manifest.encode(), bytes);
}

#[test]
fn t1_every_transaction_file_equals_the_inline_one() {
    let mut files = 0;
    for (table, manifest, _) in all() {
        if manifest.transaction_file.is_empty() || table == "stable_ids" && manifest.branch.is_some() {
            continue;
        }
        let path = golden().join(&table).join(layout::transaction_path(&manifest.transaction_file));
        let transaction = Transaction::decode(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(Some(&transaction), manifest.transaction.as_ref(), "{table}");
        assert!(transaction.read_version < manifest.version.0);
        assert_eq!(Transaction::decode(&transaction.encode()).unwrap(), transaction);
        files += 1;
    }
    assert!(files > 30, "{files} transactions");
}

#[test]
fn operations_are_told_apart() {
    let operations: Vec<_> = versions("operations")
        .iter()
        .map(|(manifest, _)| manifest.transaction.as_ref().map_or("none", |transaction| transaction.operation.name()))
        .collect();
    assert_eq!(
        operations,
        [
            "Overwrite",
            "Append",
            "Delete",
            "Delete",
            "Delete",
            "Update",
            "Update",
            "Merge",
            "Merge",
            "Project",
            "Merge",
            "CreateIndex",
            "Project",
            "UpdateConfig",
            "ReserveFragments",
            "Rewrite",
            "CreateIndex",
            "Restore",
            "Overwrite",
        ]
    );
    let manifest = latest("operations");
    assert_eq!(manifest.live_rows(), 2);
    assert_eq!(feature::check_writable(&manifest), Ok(()));
}

#[test]
fn every_deletion_file_holds_what_its_manifest_says() {
    let mut kinds = BTreeMap::new();
    for (table, manifest, _) in all() {
        for fragment in &manifest.fragments {
            let Some(file) = &fragment.deletion else { continue };
            let path = golden().join(&table).join(layout::deletion_file_path(fragment.id, file));
            let bytes = std::fs::read(path).unwrap();
            let vector = DeletionVector::decode(file.kind, &bytes).unwrap();
            assert_eq!(vector.check(file.deleted_rows, fragment.physical_rows), Ok(()), "{table}");
            let ours = DeletionVector::decode(DeletionFileKind::Bitmap, &vector.encode_bitmap()).unwrap();
            assert_eq!(ours, vector);
            *kinds.entry(format!("{:?}", file.kind)).or_insert(0) += 1;
        }
    }
    assert!(kinds["Array"] > 3 && kinds["Bitmap"] > 1, "{kinds:?}");
}

#[test]
fn deletions_are_the_rows_that_were_deleted() {
    let rows = |version: usize| {
        let (manifest, _) = &versions("deletions")[version];
        let fragment = &manifest.fragments[0];
        let file = fragment.deletion.as_ref().unwrap();
        let path = golden().join("deletions").join(layout::deletion_file_path(fragment.id, file));
        (file.kind, DeletionVector::decode(file.kind, &std::fs::read(path).unwrap()).unwrap().rows)
    };
    let expected = |keep: &dyn Fn(u32) -> bool| (0..20_000).filter(|row| keep(*row)).collect();
    let (first, second) = (|row| row % 1000 == 7, |row| (4000..8000).contains(&row));
    assert_eq!(rows(1), (DeletionFileKind::Array, expected(&first)));
    assert_eq!(rows(2), (DeletionFileKind::Array, expected(&|row| first(row) || second(row))));
    assert_eq!(rows(3), (DeletionFileKind::Bitmap, expected(&|row| first(row) || second(row) || row % 3 == 0)));
}

#[test]
fn flags_are_the_ones_that_lancedb_computes() {
    for (table, manifest, _) in all() {
        let expected = Flags { reader: manifest.reader_flags, writer: manifest.writer_flags };
        assert_eq!(feature::flags_for(&manifest), expected, "{table} {:?}", manifest.version);
        assert_eq!(feature::check_readable(&manifest), Ok(()), "{table} {:?}", manifest.version);
    }
}

#[test]
fn tables_of_lancedb_are_writable_one_with_a_write_spec_too() {
    for table in ["empty", "types", "operations", "deletions", "names_v1", "stable_ids", "keyed"] {
        assert_eq!(feature::check_writable(&latest(table)), Ok(()), "{table}");
    }
}

#[test]
fn tables_of_older_data_formats_are_writable() {
    for (table, version) in [("format_2_0", FileVersion::V2_0), ("format_2_1", FileVersion::V2_1)] {
        let manifest = latest(table);
        assert_eq!(feature::check_writable(&manifest), Ok(()), "{table}");
        assert_eq!(FileVersion::parse(&manifest.data_format), Ok(version), "{table}");
    }
}

#[test]
fn a_branch_is_refused() {
    let folder = golden().join("stable_ids/tree/dev").join(layout::versions_folder());
    let name = names(&folder).into_iter().find(|name| layout::parse_manifest_name(name).is_some()).unwrap();
    let manifest = Manifest::decode(&std::fs::read(folder.join(name)).unwrap().into()).unwrap();
    assert_eq!(manifest.branch.as_deref(), Some("dev"));
    assert!(matches!(feature::check_readable(&manifest), Err(Error::NotSupported { .. })));
}

#[test]
fn columns_of_old_and_new_formats_are_told_from_the_schema() {
    for table in ["format_2_1", "operations"] {
        let manifest = versions(table).remove(0).0;
        let leaves: Vec<_> = manifest.schema.leaves().iter().map(|leaf| leaf.id).collect();
        assert_eq!(manifest.fragments[0].files[0].fields, leaves, "{table}");
    }
    let manifest = latest("format_2_0");
    let all: Vec<_> = manifest.schema.all_fields().iter().map(|field| field.id).collect();
    assert_eq!(manifest.fragments[0].files[0].fields, all);
}

#[test]
fn a_primary_key_is_read() {
    let manifest = latest("keyed");
    assert_eq!(manifest.schema.field("id").unwrap().primary_key_position, 1);
    assert_eq!(manifest.indices().unwrap()[0].name, lancelet::format::wal::spec::INDEX_NAME);
}

#[test]
fn plain_version_numbers_are_read() {
    let files = names(&golden().join("names_v1/_versions"));
    let (versions, scheme) = layout::parse_manifest_names(files.iter().map(String::as_str)).unwrap();
    assert_eq!((versions, scheme), (vec![Version(1)], NamingScheme::V1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_bytes_are_a_manifest_or_an_error(changes in proptest::collection::vec((any::<u32>(), any::<u8>()), 1..4), cut in any::<u32>()) {
        for (table, version) in [("types", 0), ("operations", 11), ("stable_ids", 2), ("keyed", 2)] {
            let (_, bytes) = &versions(table)[version];
            let mut changed = bytes.to_vec();
            for (at, value) in &changes {
                let at = *at as usize % changed.len();
                changed[at] = *value;
            }
            if let Ok(manifest) = Manifest::decode(&Bytes::copy_from_slice(&changed)) {
                // What was accepted is not changed by us.
                let _ = (feature::check_writable(&manifest), feature::flags_for(&manifest));
                prop_assert_eq!(Manifest::decode(&manifest.encode().into()).unwrap(), manifest);
            }
            changed.truncate(cut as usize % changed.len());
            let _ = Manifest::decode(&changed.into());
        }
    }

    #[test]
    fn any_bytes_are_a_deletion_file_or_an_error(changes in proptest::collection::vec((any::<u32>(), any::<u8>()), 1..4), cut in any::<u32>()) {
        let folder = golden().join("deletions/_deletions");
        for name in names(&folder) {
            let kind = if name.ends_with(".bin") { DeletionFileKind::Bitmap } else { DeletionFileKind::Array };
            let mut bytes = std::fs::read(folder.join(name)).unwrap();
            for (at, value) in &changes {
                let at = *at as usize % bytes.len();
                bytes[at] = *value;
            }
            let _ = DeletionVector::decode(kind, &bytes);
            bytes.truncate(cut as usize % bytes.len());
            let _ = DeletionVector::decode(kind, &bytes);
        }
    }
}
