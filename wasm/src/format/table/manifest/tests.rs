use super::*;
use crate::collections::SortedMap;
use crate::format::table::{Operation, Transaction};

/// Version 1 of a table without columns or rows.
pub(in crate::format::table) fn empty_manifest() -> Manifest {
    Manifest {
        version: Version(1),
        schema: Schema::default(),
        fragments: vec![],
        max_fragment_id: None,
        timestamp_ns: None,
        reader_flags: 0,
        writer_flags: 0,
        next_row_id: 0,
        data_format: "2.2".into(),
        config: SortedMap::new(),
        table_metadata: SortedMap::new(),
        base_paths: vec![],
        branch: None,
        writer: None,
        transaction_file: String::new(),
        index_section: None,
        transaction: None,
    }
}

/// A manifest file around a message, without sections.
fn file(message: &proto::Manifest) -> Bytes {
    let mut bytes = Vec::new();
    push_section(&mut bytes, &message.encode_to_vec());
    bytes.extend_from_slice(&[0; 12]);
    bytes.extend_from_slice(MAGIC);
    bytes.into()
}

fn corrupt(bytes: &[u8]) -> String {
    match Manifest::decode(&Bytes::copy_from_slice(bytes)) {
        Err(Error::Corrupt { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

fn message() -> proto::Manifest {
    proto::Manifest { version: 1, ..Default::default() }
}

fn fragment(id: u64) -> proto::DataFragment {
    proto::DataFragment { id, physical_rows: 4, ..Default::default() }
}

#[test]
fn everything_in_a_manifest_survives() {
    let transaction = Transaction {
        read_version: 6,
        uuid: "8a6d8bd2-0000-4000-8000-000000000000".into(),
        operation: Operation::Restore { version: 3 },
    };
    let manifest = Manifest {
        version: Version(7),
        max_fragment_id: Some(9),
        timestamp_ns: Some(1_700_000_000_123_456_789),
        reader_flags: 2,
        writer_flags: 10,
        next_row_id: 77,
        config: SortedMap::from([("lance.x".into(), "1".into())]),
        table_metadata: SortedMap::from([("app".into(), "y".into())]),
        base_paths: vec![proto::BasePath { id: 1, name: None, is_dataset_root: true, path: "/p".into() }],
        branch: Some("b".into()),
        writer: Some(proto::WriterVersion { library: "l".into(), version: "1".into(), prerelease: None, build: None }),
        transaction_file: "6-u.txn".into(),
        index_section: Some(Bytes::from_static(b"any bytes")),
        transaction: Some(transaction),
        ..empty_manifest()
    };
    assert_eq!(Manifest::decode(&manifest.encode().into()).unwrap(), manifest);
    let bytes = manifest.encode();
    assert_eq!(&bytes[..13], b"\x09\0\0\0any bytes");
    assert_eq!(&bytes[bytes.len() - 8..], b"\0\0\x02\0LANC");
}

#[test]
fn an_empty_index_section_is_not_a_missing_one() {
    let manifest = Manifest { index_section: Some(Bytes::new()), ..empty_manifest() };
    assert_eq!(Manifest::decode(&manifest.encode().into()).unwrap().index_section, Some(Bytes::new()));
}

#[test]
fn t6_a_damaged_frame_is_corrupt() {
    let bytes = empty_manifest().encode();
    assert_eq!(corrupt(&bytes[..15]), "manifest of 15 bytes, shorter than its footer");
    assert_eq!(corrupt(b""), "manifest of 0 bytes, shorter than its footer");
    let mut magic = bytes.clone();
    *magic.last_mut().unwrap() = b'X';
    assert_eq!(corrupt(&magic), "manifest does not end with \"LANC\"");
    let mut length = bytes.clone();
    length[0] -= 1;
    assert!(corrupt(&length).starts_with("manifest ends at byte"));
    length[0] += 2;
    assert_eq!(corrupt(&length), "manifest is not inside the file");
    let footer = bytes.len() - FOOTER_LEN;
    for position in [footer as u64 - 3, footer as u64, u64::MAX, u64::MAX - 3, 1 << 32] {
        let mut moved = bytes.clone();
        moved[footer..footer + 8].copy_from_slice(&position.to_le_bytes());
        assert_eq!(corrupt(&moved), "manifest is not inside the file");
    }
    for cut in 1..bytes.len() {
        corrupt(&bytes[..cut]);
    }
}

#[test]
fn sections_lie_inside_the_file_at_any_offset() {
    for offset in [1000, u64::MAX, 1 << 40] {
        assert_eq!(
            corrupt(&file(&proto::Manifest { index_section: Some(offset), ..message() })),
            "index section is not inside the file"
        );
        assert_eq!(
            corrupt(&file(&proto::Manifest { transaction_section: Some(offset), ..message() })),
            "transaction is not inside the file"
        );
    }
    // Sections in the other order, with a gap between them.
    let transaction = Transaction {
        read_version: 1,
        uuid: "u".into(),
        operation: Operation::CreateIndex { new: vec![], removed: vec![] },
    };
    let mut bytes = vec![0xee; 3];
    push_section(&mut bytes, &transaction.encode());
    bytes.extend_from_slice(&[0xee; 2]);
    let index = bytes.len() as u64;
    push_section(&mut bytes, b"idx");
    let position = bytes.len() as u64;
    let message = proto::Manifest { index_section: Some(index), transaction_section: Some(3), ..message() };
    push_section(&mut bytes, &message.encode_to_vec());
    bytes.extend_from_slice(&position.to_le_bytes());
    bytes.extend_from_slice(b"\x09\x09\x09\x09LANC");
    let manifest = Manifest::decode(&bytes.into()).unwrap();
    assert_eq!(manifest.transaction, Some(transaction));
    assert_eq!(manifest.index_section.as_deref(), Some(&b"idx"[..]));
}

#[test]
fn contradictions_are_corrupt() {
    assert_eq!(corrupt(&file(&proto::Manifest::default())), "manifest of version 0, the first is 1");
    let fragments =
        |ids: &[u64]| proto::Manifest { fragments: ids.iter().map(|id| fragment(*id)).collect(), ..message() };
    assert_eq!(corrupt(&file(&fragments(&[2, 1]))), "fragment 2 stands before fragment 1");
    assert_eq!(corrupt(&file(&fragments(&[1, 1]))), "fragment 1 stands before fragment 1");
    assert_eq!(
        corrupt(&file(&fragments(&[1 << 32]))),
        "fragment 4294967296 of 4 rows: more than row addresses can hold"
    );
    let marked = proto::Manifest { max_fragment_id: Some(3), ..fragments(&[1, 4]) };
    assert_eq!(corrupt(&file(&marked)), "fragment 4 is above the highest id ever given, 3");
    let mut deleted = fragments(&[0]);
    deleted.fragments[0].deletion_file = Some(proto::DeletionFile { num_deleted_rows: 5, ..Default::default() });
    assert_eq!(corrupt(&file(&deleted)), "fragment 0: 5 rows deleted of 4");
    for path in ["", "../x.lance", "/etc/x", "a//b", "a/.", "a\\b"] {
        let mut outside = fragments(&[0]);
        outside.fragments[0].files = vec![proto::DataFile { path: path.into(), ..Default::default() }];
        assert_eq!(corrupt(&file(&outside)), format!("data file path {path:?} is not a plain relative path"));
    }
    let mut uneven = fragments(&[0]);
    uneven.fragments[0].files =
        vec![proto::DataFile { path: "x".into(), fields: vec![1, 2], column_indices: vec![0], ..Default::default() }];
    assert_eq!(corrupt(&file(&uneven)), "data file x: 2 fields, 1 column indices");
}

#[test]
fn content_without_words_here_is_not_supported() {
    let refused = |change: &dyn Fn(&mut proto::DataFragment)| {
        let mut changed = fragment(0);
        change(&mut changed);
        match Manifest::decode(&file(&proto::Manifest { fragments: vec![changed], ..message() })) {
            Err(Error::NotSupported { feature }) => feature,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|f| f.overlays = vec![proto::Opaque {}]), "fragment 0: data overlays");
    let external = "fragment 0: row ids or row versions in files of their own";
    assert_eq!(refused(&|f| f.external_row_ids = Some(Default::default())), external);
    assert_eq!(refused(&|f| f.external_created_at_versions = Some(Default::default())), external);
    assert_eq!(refused(&|f| f.external_last_updated_at_versions = Some(Default::default())), external);
    let deletion = proto::DeletionFile { file_type: 2, ..Default::default() };
    assert_eq!(refused(&|f| f.deletion_file = Some(deletion.clone())), "deletion file of type 2");
    let format = proto::DataStorageFormat { file_format: "parquet".into(), version: "1".into() };
    let error = Manifest::decode(&file(&proto::Manifest { data_format: Some(format), ..message() })).unwrap_err();
    assert_eq!(error.to_string(), "not supported: data files of the format \"parquet\"");
}

#[test]
fn what_old_writers_leave_out_is_told_from_the_rest() {
    let data_file =
        proto::DataFile { path: "x".into(), file_major_version: 2, file_minor_version: 1, ..Default::default() };
    let with_file = proto::DataFragment { files: vec![data_file], ..fragment(5) };
    let manifest = Manifest::decode(&file(&proto::Manifest { fragments: vec![with_file], ..message() })).unwrap();
    assert_eq!(
        (manifest.data_format.as_str(), manifest.max_fragment_id, manifest.timestamp_ns),
        ("2.1", Some(5), None)
    );
    let manifest = Manifest::decode(&file(&message())).unwrap();
    assert_eq!((manifest.data_format.as_str(), manifest.max_fragment_id), ("2.0", None));
}

#[test]
fn times_out_of_range_move_to_the_nearest() {
    let time = |seconds, nanos| {
        let timestamp = Some(proto::Timestamp { seconds, nanos });
        Manifest::decode(&file(&proto::Manifest { timestamp, ..message() })).unwrap().timestamp_ns
    };
    assert_eq!(time(1, 5), Some(1_000_000_005));
    assert_eq!(time(-1, -5), Some(0));
    assert_eq!(time(0, i32::MAX), Some(999_999_999));
    assert_eq!(time(i64::MAX, 0), Some(u64::MAX));
}

#[test]
fn new_field_ids_are_above_those_of_dropped_columns() {
    let data_file = proto::DataFile {
        path: "x".into(),
        fields: vec![0, 7, -2],
        column_indices: vec![0, 1, 2],
        ..Default::default()
    };
    let with_file = proto::DataFragment { files: vec![data_file], ..fragment(0) };
    let manifest = Manifest::decode(&file(&proto::Manifest { fragments: vec![with_file], ..message() })).unwrap();
    assert_eq!(manifest.max_field_id(), Some(FieldId(7)));
    assert_eq!(empty_manifest().max_field_id(), None);
    assert_eq!(manifest.live_rows(), 4);
}
