use prost::Message;

use super::*;
use crate::collections::SortedMap;
use crate::format::proto::{IndexMetadata, IndexSection};
use crate::format::table::{DataFile, DeletionFile, FieldId, Schema, Version, fragment::DeletionFileKind};

const MILLION: u64 = 1 << 20;

/// Fragments by physical rows and deleted rows.
pub(crate) fn manifest(fragments: &[(u64, u64)]) -> Manifest {
    let fragments = fragments.iter().zip(0..).map(|((rows, deleted), id)| Fragment {
        id: FragmentId(id),
        files: vec![DataFile {
            path: format!("{id}.lance"),
            fields: vec![FieldId(0)],
            column_indices: vec![0],
            major_version: 2,
            minor_version: 2,
            size_bytes: Some(rows * 8),
            base_id: None,
        }],
        deletion: (*deleted > 0).then_some(DeletionFile {
            kind: DeletionFileKind::Bitmap,
            read_version: 1,
            id: 1,
            deleted_rows: *deleted,
            base_id: None,
        }),
        physical_rows: *rows,
        row_ids: None,
        last_updated_at_versions: None,
        created_at_versions: None,
    });
    Manifest {
        version: Version(1),
        schema: Schema::default(),
        fragments: fragments.collect(),
        max_fragment_id: None,
        timestamp_ns: None,
        reader_flags: 0,
        writer_flags: 0,
        next_row_id: 0,
        data_format: "2.2".into(),
        config: SortedMap::new(),
        table_metadata: SortedMap::new(),
        base_paths: Vec::new(),
        branch: None,
        writer: None,
        transaction_file: String::new(),
        index_section: None,
        transaction: None,
    }
}

/// Covered fragments of each index.
fn indexed(mut manifest: Manifest, covers: &[&[u32]]) -> Manifest {
    let index = |cover: &&[u32]| {
        let mut fragment_bitmap = Vec::new();
        RoaringBitmap::from_iter(cover.iter().copied()).serialize_into(&mut fragment_bitmap).unwrap();
        IndexMetadata { fragment_bitmap, ..Default::default() }
    };
    let section = IndexSection { indices: covers.iter().map(index).collect() };
    manifest.index_section = Some(section.encode_to_vec().into());
    manifest
}

fn planned(manifest: &Manifest) -> String {
    plan(manifest, &CompactOptions::default()).unwrap().to_string()
}

#[test]
fn t24_more_than_a_tenth_of_deleted_rows_is_written_anew_and_a_tenth_is_not() {
    assert_eq!(planned(&manifest(&[(1_000, 99)])), "");
    assert_eq!(planned(&manifest(&[(1_000, 100)])), "");
    assert_eq!(planned(&manifest(&[(1_000, 101)])), "0 -> 899 rows\n");
    assert_eq!(planned(&manifest(&[(2 * MILLION, MILLION)])), "0 -> 1048576 rows\n");
}

#[test]
fn t24_a_fragment_is_small_below_the_target_whatever_is_deleted_of_it() {
    assert_eq!(planned(&manifest(&[(1_048_575, 0), (1_048_575, 0)])), "0, 1 -> 2097150 rows\n");
    assert_eq!(planned(&manifest(&[(1_048_576, 1_000), (1_048_576, 1_000)])), "");
    assert_eq!(planned(&manifest(&[(1_048_576, 0), (9, 0), (1_048_576, 0)])), "");
    assert_eq!(planned(&manifest(&[(1_048_575, 0), (10, 0)])), "0, 1 -> 1048585 rows\n");
}

#[test]
fn a_small_fragment_alone_stays_and_two_become_one() {
    assert_eq!(planned(&manifest(&[])), "");
    assert_eq!(planned(&manifest(&[(1, 0)])), "");
    assert_eq!(planned(&manifest(&[(1, 0), (1, 0)])), "0, 1 -> 2 rows\n");
}

#[test]
fn a_run_ends_at_a_whole_fragment() {
    let manifest = manifest(&[(10, 0), (20, 0), (MILLION, 0), (30, 0), (40, 0), (50, 0)]);
    assert_eq!(planned(&manifest), "0, 1 -> 30 rows\n3, 4, 5 -> 120 rows\n");
}

#[test]
fn t24_a_bin_is_closed_when_it_is_full_and_what_is_left_is_enough_for_another() {
    assert_eq!(planned(&manifest(&[(600_000, 0); 5])), "0, 1 -> 1200000 rows\n2, 3, 4 -> 1800000 rows\n");
    assert_eq!(planned(&manifest(&[(600_000, 0); 3])), "0, 1, 2 -> 1800000 rows\n");
    assert_eq!(planned(&manifest(&[(600_000, 0); 4])), "0, 1 -> 1200000 rows\n2, 3 -> 1200000 rows\n");
}

#[test]
fn live_rows_fill_a_bin() {
    // Sixty thousand of each are deleted: three times 540,000 rows, then two.
    let fragments = manifest(&[(600_000, 60_000); 4]);
    assert_eq!(planned(&fragments), "0, 1 -> 1080000 rows\n2, 3 -> 1080000 rows\n");
    let fragments = manifest(&[(600_000, 120_000); 4]);
    assert_eq!(planned(&fragments), "0, 1, 2, 3 -> 1920000 rows\n");
}

#[test]
fn t24_a_run_ends_where_other_indices_cover_a_fragment() {
    let fragments = manifest(&[(10, 0), (20, 0), (30, 0)]);
    assert_eq!(planned(&indexed(fragments.clone(), &[&[0]])), "1, 2 -> 50 rows\n");
    assert_eq!(planned(&indexed(fragments.clone(), &[&[0, 1, 2]])), "0, 1, 2 -> 60 rows\n");
    assert_eq!(planned(&indexed(fragments.clone(), &[&[0, 1], &[1, 2]])), "");
    assert_eq!(planned(&indexed(fragments.clone(), &[&[0, 1], &[0, 1, 2]])), "0, 1 -> 30 rows\n");
    // Fragments that are gone don't matter.
    assert_eq!(planned(&indexed(fragments, &[&[7, 8]])), "0, 1, 2 -> 60 rows\n");
}

#[test]
fn a_fragment_with_many_deleted_rows_goes_alone_where_its_indices_differ() {
    let fragments = manifest(&[(10, 5), (20, 0), (30, 0)]);
    assert_eq!(planned(&indexed(fragments, &[&[0]])), "0 -> 5 rows\n1, 2 -> 50 rows\n");
}

#[test]
fn fragments_that_are_full_in_bytes_take_no_more_rows() {
    let mut wide = manifest(&[(1_000, 0), (1_000, 0), (1_000, 0), (10, 0), (10, 0)]);
    for fragment in &mut wide.fragments[..3] {
        fragment.files[0].size_bytes = Some(300 << 20);
    }
    assert_eq!(planned(&wide), "3, 4 -> 20 rows\n");
    // Halves of the size make whole ones, and what is written is whole: planning again finds nothing.
    for fragment in &mut wide.fragments[..3] {
        fragment.files[0].size_bytes = Some(130 << 20);
    }
    assert_eq!(planned(&wide), "0, 1, 2, 3, 4 -> 3020 rows\n");
}

#[test]
fn an_index_section_that_cannot_be_read_is_not_guessed_about() {
    let mut broken = manifest(&[(10, 0), (20, 0)]);
    let index = IndexMetadata { fragment_bitmap: vec![1, 2, 3], ..Default::default() };
    broken.index_section = Some(IndexSection { indices: vec![index] }.encode_to_vec().into());
    let planned = plan(&broken, &CompactOptions::default());
    assert!(matches!(planned, Err(Error::Corrupt { .. })), "{planned:?}");
}
