use bytes::Bytes;
use prost::Message;

use super::*;
use crate::format::proto::{BytesEntry, IndexMetadata, IndexSection};
use crate::format::table::{DeletionFile, fragment::DeletionFileKind};
use crate::table::invariants;

fn fragment(rows: u64) -> Fragment {
    Fragment {
        id: FragmentId(0),
        files: Vec::new(),
        deletion: None,
        physical_rows: rows,
        row_ids: None,
        last_updated_at_versions: None,
        created_at_versions: None,
    }
}

fn table() -> Manifest {
    let mut manifest =
        first(Schema::default(), FileVersion::DEFAULT, vec![fragment(10), fragment(5)], false, "u0".to_owned(), 1_000)
            .unwrap();
    manifest.index_section = Some(Bytes::from_static(b"indices"));
    manifest
}

fn transaction(operation: Operation) -> Transaction {
    Transaction { read_version: 1, uuid: "u1".to_owned(), operation }
}

fn delete(updated: Vec<Fragment>, deleted: Vec<FragmentId>) -> Transaction {
    transaction(Operation::Delete { updated, deleted, predicate: "true".to_owned() })
}

#[test]
fn an_append_takes_fresh_ids_and_keeps_the_index_section() {
    let before = table();
    let change = transaction(Operation::Append { fragments: vec![fragment(1), fragment(2)] });
    let after = next(&before, change.clone(), Given::default(), 2_000).unwrap();
    assert_eq!(after.version, Version(2));
    assert_eq!(after.fragments.iter().map(|fragment| fragment.id.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(after.max_fragment_id, Some(3));
    assert_eq!(after.timestamp_ns, Some(2_000));
    assert_eq!(after.index_section, before.index_section);
    invariants::check(&before, &after, &change).unwrap();
}

#[test]
fn ids_of_deleted_fragments_are_not_given_again() {
    let before = table();
    let emptied = next(&before, delete(vec![], vec![FragmentId(0), FragmentId(1)]), Given::default(), 2_000).unwrap();
    assert_eq!((emptied.fragments.len(), emptied.max_fragment_id), (0, Some(1)));
    let change = transaction(Operation::Append { fragments: vec![fragment(1)] });
    let after = next(&emptied, change.clone(), Given::default(), 3_000).unwrap();
    assert_eq!(after.fragments[0].id, FragmentId(2));
    invariants::check(&emptied, &after, &change).unwrap();
}

#[test]
fn time_moves_on_when_the_clock_went_back() {
    let change = transaction(Operation::Append { fragments: vec![fragment(1)] });
    assert_eq!(next(&table(), change, Given::default(), 5).unwrap().timestamp_ns, Some(1_001));
}

#[test]
fn a_delete_replaces_fragments_and_its_flag_comes_and_goes() {
    let before = table();
    let mut part = before.fragments[0].clone();
    part.deletion =
        Some(DeletionFile { kind: DeletionFileKind::Bitmap, read_version: 1, id: 7, deleted_rows: 4, base_id: None });
    let change = delete(vec![part], vec![FragmentId(1)]);
    let after = next(&before, change.clone(), Given::default(), 2_000).unwrap();
    assert_eq!(after.fragments.iter().map(Fragment::live_rows).collect::<Vec<_>>(), [6]);
    assert_eq!((after.reader_flags, after.writer_flags), (1, 1));
    invariants::check(&before, &after, &change).unwrap();
    let emptied = next(&after, delete(vec![], vec![FragmentId(0)]), Given::default(), 3_000).unwrap();
    assert_eq!((emptied.reader_flags, emptied.writer_flags), (0, 0));
}

#[test]
fn a_delete_of_a_fragment_that_is_gone_is_refused() {
    let mut stranger = fragment(3);
    stranger.id = FragmentId(9);
    assert!(matches!(
        next(&table(), delete(vec![stranger], vec![]), Given::default(), 2_000),
        Err(Error::Internal { .. })
    ));
}

#[test]
fn a_change_that_loses_rows_or_files_breaks_an_invariant() {
    let before = table();
    let append = transaction(Operation::Append { fragments: vec![fragment(1)] });
    let mut lost = next(&before, append.clone(), Given::default(), 2_000).unwrap();
    lost.fragments.remove(0);
    assert!(invariants::check(&before, &lost, &append).is_err());
    let mut reused = next(&before, append.clone(), Given::default(), 2_000).unwrap();
    reused.version = Version(3);
    assert!(invariants::check(&before, &reused, &append).is_err());
    let mut unindexed = next(&before, append.clone(), Given::default(), 2_000).unwrap();
    unindexed.index_section = None;
    assert!(invariants::check(&before, &unindexed, &append).is_err());
}

fn field(id: i32, name: &str) -> crate::format::proto::Field {
    crate::format::proto::Field {
        name: name.to_owned(),
        id,
        parent_id: -1,
        logical_type: "int32".to_owned(),
        nullable: true,
        ..Default::default()
    }
}

fn schema(fields: &[(i32, &str)]) -> Schema {
    let fields: Vec<_> = fields.iter().map(|(id, name)| field(*id, name)).collect();
    Schema::from_proto(&fields, &[BytesEntry { key: "made".to_owned(), value: b"here".to_vec() }]).unwrap()
}

fn file(name: &str, fields: &[i32]) -> crate::format::table::DataFile {
    crate::format::table::DataFile {
        path: name.to_owned(),
        fields: fields.iter().map(|id| FieldId(*id)).collect(),
        column_indices: (0..fields.len() as i32).collect(),
        major_version: 2,
        minor_version: 2,
        size_bytes: Some(1),
        base_id: None,
    }
}

/// Columns `a` and `b` in files of their own, and an index on each.
fn columns() -> Manifest {
    let mut one = fragment(10);
    one.files = vec![file("a.lance", &[0]), file("b.lance", &[1])];
    let schema = schema(&[(0, "a"), (1, "b")]);
    let mut manifest = first(schema, FileVersion::DEFAULT, vec![one], false, "u0".to_owned(), 1_000).unwrap();
    let index = |name: &str, id: i32| IndexMetadata { name: name.to_owned(), fields: vec![id], ..Default::default() };
    let section = IndexSection { indices: vec![index("on a", 0), index("on b", 1)] };
    manifest.index_section = Some(Bytes::from(section.encode_to_vec()));
    manifest.config.insert("k".to_owned(), "v".to_owned());
    manifest
}

fn step(before: &Manifest, operation: Operation) -> Manifest {
    let change = transaction(operation);
    let after = next(before, change.clone(), Given::default(), 5_000).unwrap();
    invariants::check(before, &after, &change).unwrap();
    after
}

#[test]
fn a_projection_takes_the_files_and_indices_of_dropped_columns_and_keeps_the_metadata() {
    let before = columns();
    let fields = Schema { metadata: SortedMap::new(), ..schema(&[(1, "renamed")]) };
    let after = step(&before, Operation::Project { schema: fields, preserves_nullability: true });
    assert_eq!(after.schema, schema(&[(1, "renamed")]));
    assert_eq!(after.fragments[0].files, [file("b.lance", &[1])]);
    let names: Vec<String> = after.indices().unwrap().into_iter().map(|index| index.name).collect();
    assert_eq!(names, ["on b"]);
    assert_eq!(
        step(&after, Operation::Project { schema: schema(&[]), preserves_nullability: true }).index_section,
        None
    );
}

#[test]
fn a_merge_takes_the_schema_and_the_files_that_it_says() {
    let before = columns();
    let mut fragments = before.fragments.clone();
    fragments[0].files.push(file("c.lance", &[2]));
    let schema = schema(&[(0, "a"), (2, "b")]);
    let after = step(&before, Operation::Merge { fragments, schema: schema.clone(), preserves_nullability: false });
    assert_eq!(after.schema, schema);
    assert_eq!(after.fragments[0].files, [file("a.lance", &[0]), file("c.lance", &[2])]);
    assert_eq!(after.indices().unwrap().len(), 1);
}

#[test]
fn a_merge_that_loses_a_fragment_breaks_an_invariant() {
    let before = columns();
    let merge = Operation::Merge { fragments: vec![], schema: before.schema.clone(), preserves_nullability: true };
    let change = transaction(merge);
    let after = next(&before, change.clone(), Given::default(), 5_000).unwrap();
    assert!(invariants::check(&before, &after, &change).is_err());
}

#[test]
fn a_rewrite_puts_reserved_fragments_in_the_place_of_old_ones() {
    let before = table();
    let reserved = step(&before, Operation::ReserveFragments { count: 2 });
    assert_eq!((reserved.max_fragment_id, &reserved.fragments), (Some(3), &before.fragments));
    let appended = step(&reserved, Operation::Append { fragments: vec![fragment(1)] });
    let mut new = fragment(15);
    new.id = FragmentId(2);
    let groups = vec![crate::format::table::RewriteGroup { old: before.fragments.clone(), new: vec![new] }];
    let after = step(&appended, Operation::Rewrite { groups });
    assert_eq!(after.fragments.iter().map(|fragment| fragment.id.0).collect::<Vec<_>>(), [2, 4]);
    assert_eq!((after.live_rows(), after.index_section), (16, before.index_section));
}

#[test]
fn an_update_takes_rows_from_fragments_and_brings_new_ones() {
    let before = table();
    let mut part = before.fragments[1].clone();
    part.deletion =
        Some(DeletionFile { kind: DeletionFileKind::Bitmap, read_version: 1, id: 7, deleted_rows: 4, base_id: None });
    let update = Operation::Update {
        removed: vec![FragmentId(0)],
        updated: vec![part],
        new: vec![fragment(14)],
        fields_modified: vec![],
        fields_preserving: vec![0],
        has_key_filter: false,
    };
    let after = step(&before, update);
    assert_eq!(after.fragments.iter().map(|fragment| fragment.id.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(after.live_rows(), 15);
}

#[test]
fn an_overwrite_takes_fresh_ids_and_keeps_the_config() {
    let before = columns();
    let config = SortedMap::from([("l".to_owned(), "w".to_owned())]);
    let overwrite = Operation::Overwrite { fragments: vec![fragment(3)], schema: schema(&[(0, "z")]), config };
    let change = transaction(overwrite);
    let given = Given { data_format: Some(FileVersion::V2_0), ..Given::default() };
    let after = next(&before, change.clone(), given, 5_000).unwrap();
    invariants::check(&before, &after, &change).unwrap();
    assert_eq!((after.fragments[0].id, after.index_section), (FragmentId(1), None));
    assert_eq!((after.config.len(), after.data_format.as_str()), (2, "2.0"));
}

#[test]
fn a_restore_brings_back_everything_but_the_numbers() {
    let before = columns();
    let after = step(&before, Operation::Append { fragments: vec![fragment(1), fragment(2)] });
    let change = transaction(Operation::Restore { version: 1 });
    let given = Given { restored: Some(&before), ..Given::default() };
    let restored = next(&after, change.clone(), given, 6_000).unwrap();
    invariants::check(&after, &restored, &change).unwrap();
    assert_eq!((restored.version, restored.max_fragment_id), (Version(3), Some(2)));
    assert_eq!((&restored.fragments, &restored.index_section), (&before.fragments, &before.index_section));
    assert!(matches!(next(&after, change, Given::default(), 6_000), Err(Error::Internal { .. })));
}

#[test]
fn a_change_of_metadata_reaches_config_table_schema_and_fields() {
    let set = |key: &str| crate::format::table::UpdateMap {
        entries: vec![(key.to_owned(), Some("new".to_owned()))],
        replaces: false,
    };
    let update = Operation::UpdateConfig {
        config: Some(set("c")),
        table_metadata: Some(set("t")),
        schema_metadata: Some(set("s")),
        field_metadata: SortedMap::from([(FieldId(1), set("f"))]),
    };
    let after = step(&columns(), update);
    let keys = |map: &SortedMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&after.config), ["c", "k"]);
    assert_eq!(keys(&after.table_metadata), ["t"]);
    assert_eq!(keys(&after.schema.metadata), ["made", "s"]);
    assert_eq!(keys(&after.schema.fields[1].metadata), ["f"]);
    assert!(after.schema.fields[0].metadata.is_empty());
}
