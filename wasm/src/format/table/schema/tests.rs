use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, Fields, IntervalUnit, Schema as ArrowSchema, TimeUnit, UnionMode};
use proptest::prelude::*;

use super::*;

fn one(data_type: DataType) -> ArrowSchema {
    ArrowSchema::new(vec![ArrowField::new("c", data_type, true)])
}

fn item(data_type: DataType) -> Arc<ArrowField> {
    Arc::new(ArrowField::new("item", data_type, true))
}

fn members() -> DataType {
    DataType::Struct(Fields::from(vec![ArrowField::new("a", DataType::Int32, true)]))
}

fn map() -> DataType {
    let entries = Fields::from(vec![
        ArrowField::new("key", DataType::Utf8, false),
        ArrowField::new("value", DataType::Int64, true),
    ]);
    DataType::Map(Arc::new(ArrowField::new("entries", DataType::Struct(entries), false)), false)
}

fn wire(id: i32, parent_id: i32, name: &str, logical_type: &str) -> proto::Field {
    proto::Field { id, parent_id, name: name.into(), logical_type: logical_type.into(), ..Default::default() }
}

fn entry(key: &str, value: &[u8]) -> proto::BytesEntry {
    proto::BytesEntry { key: key.to_owned(), value: value.to_vec() }
}

fn read(list: &[proto::Field]) -> Result<Schema> {
    Schema::from_proto(list, &[])
}

/// Logical type, encoding hint and data type of every leaf that a table can hold.
fn leaf_types() -> Vec<(&'static str, i32, DataType)> {
    let bfloat16 = ArrowField::new("item", DataType::FixedSizeBinary(2), true)
        .with_metadata([("ARROW:extension:name", "lance.bfloat16"), ("ARROW:extension:metadata", "")]);
    vec![
        ("null", 0, DataType::Null),
        ("bool", 1, DataType::Boolean),
        ("int8", 1, DataType::Int8),
        ("int16", 1, DataType::Int16),
        ("int32", 1, DataType::Int32),
        ("int64", 1, DataType::Int64),
        ("uint8", 1, DataType::UInt8),
        ("uint16", 1, DataType::UInt16),
        ("uint32", 1, DataType::UInt32),
        ("uint64", 1, DataType::UInt64),
        ("halffloat", 1, DataType::Float16),
        ("float", 1, DataType::Float32),
        ("double", 1, DataType::Float64),
        ("string", 2, DataType::Utf8),
        ("large_string", 2, DataType::LargeUtf8),
        ("binary", 2, DataType::Binary),
        ("large_binary", 2, DataType::LargeBinary),
        ("date32:day", 1, DataType::Date32),
        ("date64:ms", 1, DataType::Date64),
        ("time32:s", 1, DataType::Time32(TimeUnit::Second)),
        ("time32:ms", 1, DataType::Time32(TimeUnit::Millisecond)),
        ("time64:us", 1, DataType::Time64(TimeUnit::Microsecond)),
        ("time64:ns", 1, DataType::Time64(TimeUnit::Nanosecond)),
        ("timestamp:s:-", 1, DataType::Timestamp(TimeUnit::Second, None)),
        ("timestamp:ns:Europe/Paris", 1, DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Paris".into()))),
        ("duration:ms", 1, DataType::Duration(TimeUnit::Millisecond)),
        ("decimal:128:10:2", 1, DataType::Decimal128(10, 2)),
        ("decimal:256:76:-3", 1, DataType::Decimal256(76, -3)),
        ("fixed_size_binary:16", 1, DataType::FixedSizeBinary(16)),
        ("fixed_size_list:float:128", 1, DataType::FixedSizeList(item(DataType::Float32), 128)),
        (
            "fixed_size_list:fixed_size_list:uint8:2:3",
            1,
            DataType::FixedSizeList(item(DataType::FixedSizeList(item(DataType::UInt8), 2)), 3),
        ),
        ("fixed_size_list:lance.bfloat16:4", 1, DataType::FixedSizeList(Arc::new(bfloat16), 4)),
        ("dict:string:int16:false", 3, DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8))),
    ]
}

// F10
#[test]
fn zones_with_colons_are_read() {
    for (text, data_type) in [
        ("timestamp:us:+01:00", DataType::Timestamp(TimeUnit::Microsecond, Some("+01:00".into()))),
        (
            "fixed_size_list:timestamp:us:+01:00:2",
            DataType::FixedSizeList(item(DataType::Timestamp(TimeUnit::Microsecond, Some("+01:00".into()))), 2),
        ),
    ] {
        let schema = read(&[wire(0, -1, "c", text)]).unwrap();
        assert_eq!(schema.fields[0].data_type, data_type);
        assert_eq!(schema.to_proto()[0].logical_type, text);
    }
}

#[test]
fn every_leaf_type_has_its_text_both_ways() {
    for (text, hint, data_type) in leaf_types() {
        let schema = Schema::from_arrow(&one(data_type.clone())).unwrap();
        let list = schema.to_proto();
        assert_eq!((list[0].logical_type.as_str(), list[0].encoding, list[0].parent_id), (text, hint, -1));
        assert_eq!(list[0].dictionary.is_some(), hint == 3);
        let back = read(&list).unwrap();
        assert_eq!(back, schema, "{text}");
        assert_eq!(back.to_arrow(), one(data_type), "{text}");
    }
}

#[test]
fn t4_ids_are_given_depth_first_and_a_child_of_field_0_has_parent_0() {
    let arrow = ArrowSchema::new(vec![
        ArrowField::new("s", members(), true),
        ArrowField::new("l", DataType::List(item(DataType::Int32)), true),
        ArrowField::new("ls", DataType::LargeList(item(members())), true),
        ArrowField::new("m", map(), true),
        ArrowField::new("f", DataType::FixedSizeList(item(members()), 2), false),
        ArrowField::new("v", DataType::FixedSizeList(item(DataType::Float32), 2), false),
    ]);
    let schema = Schema::from_arrow(&arrow).unwrap();
    let rows: Vec<_> = schema
        .to_proto()
        .into_iter()
        .map(|field| (field.id, field.parent_id, field.name, field.logical_type, field.encoding, field.nullable))
        .collect();
    let expected = [
        (0, -1, "s", "struct", 0, true),
        (1, 0, "a", "int32", 1, true),
        (2, -1, "l", "list", 1, true),
        (3, 2, "item", "int32", 1, true),
        (4, -1, "ls", "large_list.struct", 1, true),
        (5, 4, "item", "struct", 0, true),
        (6, 5, "a", "int32", 1, true),
        (7, -1, "m", "map", 1, true),
        (8, 7, "entries", "struct", 0, false),
        (9, 8, "key", "string", 2, false),
        (10, 8, "value", "int64", 1, true),
        (11, -1, "f", "fixed_size_list:struct:2", 1, false),
        (12, 11, "item", "struct", 0, true),
        (13, 12, "a", "int32", 1, true),
        (14, -1, "v", "fixed_size_list:float:2", 1, false),
    ]
    .map(|(id, parent, name, text, hint, null)| (id, parent, name.to_owned(), text.to_owned(), hint, null));
    assert_eq!(rows, expected);
    assert_eq!(read(&schema.to_proto()).unwrap(), schema);
    assert_eq!(schema.to_arrow(), arrow);
    assert_eq!(schema.leaves().iter().map(|leaf| leaf.id.0).collect::<Vec<_>>(), [1, 3, 6, 9, 10, 13, 14]);
    assert_eq!(schema.max_id(), Some(FieldId(14)));
    assert_eq!(schema.field_by_id(FieldId(10)).unwrap().name, "value");
}

// F9
#[test]
fn a_packed_struct_and_a_blob_descriptor_are_one_column() {
    let mut list =
        vec![wire(0, -1, "s", "struct"), wire(1, 0, "a", "int32"), wire(2, 0, "b", "int32"), wire(3, -1, "x", "bool")];
    assert_eq!(read(&list).unwrap().leaves().len(), 3);
    for (key, value) in [("packed", "true"), ("lance-encoding:packed", "true"), (EXTENSION_NAME, BLOB_V2_EXTENSION)] {
        list[0].metadata = vec![entry(key, value.as_bytes())];
        let schema = read(&list).unwrap();
        assert_eq!(schema.leaves().iter().map(|leaf| leaf.id.0).collect::<Vec<_>>(), [0, 3], "{key}");
    }
}

#[test]
fn views_and_vector_items_take_their_stored_form() {
    let stored = |data_type| Schema::from_arrow(&one(data_type)).unwrap().fields[0].data_type.clone();
    assert_eq!(stored(DataType::Utf8View), DataType::Utf8);
    assert_eq!(stored(DataType::BinaryView), DataType::Binary);
    assert_eq!(stored(DataType::List(item(DataType::Utf8View))), DataType::List(item(DataType::Utf8)));
    let named = Arc::new(ArrowField::new("element", DataType::Float32, false));
    assert_eq!(stored(DataType::FixedSizeList(named, 3)), DataType::FixedSizeList(item(DataType::Float32), 3));
}

#[test]
fn types_that_lance_does_not_store_are_refused_with_their_column() {
    let union = DataType::Union([(0, item(DataType::Int8))].into_iter().collect(), UnionMode::Sparse);
    let run_ends = DataType::RunEndEncoded(
        Arc::new(ArrowField::new("run_ends", DataType::Int32, false)),
        Arc::new(ArrowField::new("values", DataType::Utf8, true)),
    );
    for data_type in [
        DataType::Decimal32(5, 1),
        DataType::Decimal64(5, 1),
        DataType::Interval(IntervalUnit::DayTime),
        union,
        run_ends,
        DataType::FixedSizeList(item(DataType::List(item(DataType::Int32))), 2),
        DataType::FixedSizeList(item(DataType::FixedSizeList(item(members()), 2)), 2),
        DataType::FixedSizeList(item(DataType::Utf8), 2),
        DataType::FixedSizeList(item(DataType::Float32), 0),
        DataType::ListView(item(DataType::Int32)),
        DataType::Timestamp(TimeUnit::Second, Some("+01:00".into())),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Date32)),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Decimal128(5, 2))),
    ] {
        let nested = DataType::List(item(data_type.clone()));
        for (data_type, path) in [(data_type, "column \"c\""), (nested, "column \"c.item\"")] {
            match Schema::from_arrow(&one(data_type.clone())) {
                Err(Error::NotSupported { feature }) => assert!(feature.contains(path), "{feature}"),
                other => panic!("{data_type}: {other:?}"),
            }
        }
    }
}

#[test]
fn nestings_that_lancedb_cannot_read_are_refused_with_their_path() {
    let fixed = |of: DataType| DataType::FixedSizeList(item(of), 2);
    let of = |inner: DataType| DataType::Struct(vec![ArrowField::new("x", inner, true)].into());
    let list = || DataType::List(item(DataType::Int32));
    let map = DataType::Map(Arc::new(ArrowField::new("entries", members(), false)), false);
    let empty = DataType::Struct(Fields::empty());
    for (data_type, path) in [
        (fixed(of(list())), "\"c.item.x\""),
        (fixed(of(map)), "\"c.item.x\""),
        (DataType::List(item(fixed(members()))), "\"c.item\""),
        (DataType::LargeList(item(of(fixed(members())))), "\"c.item.x\""),
        (DataType::List(item(empty.clone())), "\"c.item\""),
    ] {
        match Schema::from_arrow(&one(data_type.clone())) {
            Err(Error::NotSupported { feature }) => assert!(feature.contains(path), "{feature}"),
            other => panic!("{data_type}: {other:?}"),
        }
    }
    for data_type in [fixed(of(fixed(members()))), of(fixed(members())), empty, fixed(of(fixed(DataType::Int8)))] {
        assert!(Schema::from_arrow(&one(data_type.clone())).is_ok(), "{data_type}");
    }
}

#[test]
fn names_that_a_table_cannot_have_are_refused() {
    let named = |names: &[&str]| {
        let fields: Vec<_> = names.iter().map(|name| ArrowField::new(*name, DataType::Int32, true)).collect();
        match Schema::from_arrow(&ArrowSchema::new(fields)) {
            Err(Error::Schema { message }) => message,
            other => panic!("{names:?}: {other:?}"),
        }
    };
    assert_eq!(named(&[]), "a table needs at least one column");
    assert_eq!(named(&["a.b"]), "column name \"a.b\" holds a \".\"");
    assert_eq!(named(&["a`b"]), "column name \"a`b\" holds a backtick");
    assert_eq!(named(&["a", "b", "a"]), "column name \"a\" is there twice");
    assert_eq!(named(&[""]), "a column name is empty");
    for name in RESERVED_NAMES {
        assert_eq!(named(&[name]), format!("column name \"{name}\" is reserved"));
    }
    let twice =
        Fields::from(vec![ArrowField::new("a", DataType::Int32, true), ArrowField::new("a", DataType::Int8, true)]);
    let error = Schema::from_arrow(&one(DataType::Struct(twice))).unwrap_err();
    assert_eq!(error.to_string(), "schema error: column name \"a\" in column \"c\" is there twice");
    let tombstone = ArrowSchema::new(vec![ArrowField::new("_tombstone", DataType::Boolean, false)]);
    assert_eq!(Schema::from_arrow_with_reserved_names(&tombstone).unwrap().fields[0].name, "_tombstone");
}

#[test]
fn lists_that_are_no_tree_are_corrupt() {
    let deep: Vec<_> = (0..=MAX_DEPTH as i32).map(|i| wire(i, i - 1, "s", "struct")).collect();
    assert!(read(&deep[..MAX_DEPTH]).is_ok());
    let cases = [
        (deep, "nested deeper than 64"),
        (vec![wire(0, 1, "a", "struct"), wire(1, 0, "b", "struct")], "no field 1 before it"),
        (vec![wire(0, 0, "a", "struct")], "no field 0 before it"),
        (vec![wire(0, -1, "a", "int32"), wire(1, 7, "b", "int32")], "no field 7 before it"),
        (vec![wire(0, -1, "a", "int32"), wire(0, -1, "b", "int32")], "two fields have the id 0"),
        (vec![wire(-1, -1, "a", "int32")], "has the id -1"),
        (vec![wire(0, -1, "a", "int32"), wire(1, -1, "a", "int32")], "two columns are called"),
        (vec![wire(0, -1, "a", "int32"), wire(1, 0, "b", "int32")], "no child expected"),
        (vec![wire(0, -1, "a", "list")], "one child expected"),
        (vec![wire(0, -1, "a", "map"), wire(1, 0, "entries", "int32")], "entries of key and value expected"),
        (vec![wire(0, -1, "a", "fixed_size_list:struct:2"), wire(1, 0, "item", "int32")], "a struct expected"),
        (vec![wire(0, -1, "a", "fixed_size_binary:-1")], "not positive"),
        (vec![wire(0, -1, "a", "decimal:128:39:0")], "out of range"),
    ];
    for (list, reason) in cases {
        match read(&list) {
            Err(Error::Corrupt { reason: found, .. }) => assert!(found.contains(reason), "{found}"),
            other => panic!("{reason}: {other:?}"),
        }
    }
}

#[test]
fn unknown_types_are_not_supported_and_named() {
    let nested = format!("{}int8{}", "fixed_size_list:".repeat(100_000), ":1".repeat(100_000));
    for text in [
        "",
        "int7",
        "timestamp",
        "timestamp:us",
        "timestamp:fortnight:-",
        "decimal:64:5:1",
        "decimal:128:5",
        "dict:string",
        "dict:string:float:false",
        "dict:list:int8:false",
        "fixed_size_list:string:2",
        "fixed_size_list:float:x",
        &nested,
    ] {
        match read(&[wire(0, -1, "c", text)]) {
            Err(Error::NotSupported { feature }) => assert!(feature.contains("column \"c\""), "{feature}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn json_is_large_binary_with_its_extension_name() {
    let schema = read(&[wire(0, -1, "j", "json")]).unwrap();
    assert_eq!(schema.fields[0].data_type, DataType::LargeBinary);
    assert_eq!(schema.fields[0].metadata.get(EXTENSION_NAME).unwrap(), JSON_EXTENSION);
    assert_eq!(schema.to_proto()[0].logical_type, "json");
}

#[test]
fn metadata_and_primary_key_survive() {
    let mut field = wire(3, -1, "id", "int64");
    field.metadata = vec![entry("k", b"v")];
    field.unenforced_primary_key = true;
    field.unenforced_primary_key_position = 2;
    let metadata = [entry("owner", b"me")];
    let schema = Schema::from_proto(&[field], &metadata).unwrap();
    assert_eq!(schema.fields[0].primary_key_position, 2);
    assert_eq!(schema.to_arrow().metadata().get("owner").map(String::as_str), Some("me"));
    assert_eq!(schema.to_arrow().field(0).metadata().get("k").map(String::as_str), Some("v"));
    assert_eq!(Schema::from_proto(&schema.to_proto(), &schema.metadata_to_proto()).unwrap(), schema);
    assert_eq!(schema.metadata_to_proto(), metadata);
    let bad = [entry("owner", &[0xff])];
    assert!(matches!(Schema::from_proto(&[], &bad), Err(Error::Corrupt { .. })));
    let twice = Schema::from_proto(&[], &[entry("owner", b"me"), entry("owner", b"you")]).unwrap();
    assert_eq!(twice.metadata_to_proto(), [entry("owner", b"you")]);
}

#[test]
fn paths_name_members_and_misspelt_columns_get_a_proposal() {
    let list = [
        wire(0, -1, "st", "struct"),
        wire(1, 0, "a", "struct"),
        wire(2, 1, "b.c", "int8"),
        wire(3, -1, "price", "int8"),
    ];
    let schema = read(&list).unwrap();
    let id = |path: &str| schema.field_path(path).map(|field| field.id.0);
    assert_eq!([id("st"), id("st.a"), id("st.a.b.c"), id("price")], [Some(0), Some(1), Some(2), Some(3)]);
    assert_eq!([id("st.b"), id("a"), id("st."), id("")], [None; 4]);
    let error = schema.require("prise").unwrap_err();
    assert_eq!(error.to_string(), "column \"prise\" (did you mean \"price\"?) was not found");
}

proptest! {
    #[test]
    fn any_list_of_fields_is_a_tree_or_an_error(
        rows in proptest::collection::vec(
            (0i32..6, -1i32..6, prop::sample::select(vec!["struct", "list", "map", "int32", "fixed_size_list:struct:2", "large_list"])),
            0..8,
        )
    ) {
        let list: Vec<_> = rows.iter().enumerate().map(|(i, (id, parent, text))| wire(*id, *parent, &format!("f{i}"), text)).collect();
        if let Ok(schema) = read(&list) {
            prop_assert_eq!(schema.all_fields().len(), list.len());
            prop_assert_eq!(read(&schema.to_proto()).unwrap(), schema);
        }
    }

    #[test]
    fn any_text_is_a_type_or_an_error(text in "(dict|fixed_size_list|timestamp|decimal|string|int8|[:0-9-]|struct|false){0,8}") {
        let _ = read(&[wire(0, -1, "c", &text)]);
    }
}
