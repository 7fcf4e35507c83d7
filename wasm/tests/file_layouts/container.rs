//! Files, columns and pages: where things lie.

use super::build::*;

// F1
#[test]
fn buffers_may_overlap_and_come_in_any_order() {
    let chunk = chunk(None, None, &i32s(&[5, 6]));
    let mut builder = FileBuilder { bytes: chunk.clone(), ..Default::default() };
    let table = words(&[(0, &chunk)]);
    builder.bytes.resize(64, 0);
    builder.bytes.extend(&table);
    let layout = || Layout::MiniBlock(mini_block(&[I], flat(32), 2));
    let places = [(64, table.len() as u64), (0, chunk.len() as u64)];
    let file = builder.page_at(0, 2, layout(), &places).page_at(0, 2, layout(), &places).finish();
    assert_eq!(ints(&read(&file, &leaf(DataType::Int32), &[1..4]).unwrap()), vec![Some(6), Some(5), Some(6)]);
}

// F3
#[test]
fn columns_without_pages_and_files_without_columns_have_no_rows() {
    let empty = FileBuilder { columns: vec![Vec::new()], ..Default::default() }.finish();
    assert_eq!(read(&empty, &leaf(DataType::Int32), &[]).unwrap().len(), 0);
    assert_eq!(read(&empty, &leaf(DataType::Int32), &[0..0]).unwrap().len(), 0);
    assert_eq!(read(&empty, &leaf(DataType::Int32), &[0..1]).unwrap_err().code(), ErrorCode::InvalidInput);
    assert_eq!(block_on(FileBuilder::default().finish().open()).unwrap().row_count(), 0);
}

// F11
#[test]
fn a_field_without_a_column_reads_as_nulls() {
    let layout =
        || ConstantLayout { layers: layers(&[I, IN]), inline_value: Some(i32s(&[7]).into()), ..Default::default() };
    let file = FileBuilder::default().page(0, 2, Layout::Constant(layout()), &[vec![], u16s(&[0, 1])]).finish();
    let missing = read(&file, &field(9, DataType::Utf8, vec![]), &[0..2]).unwrap();
    assert_eq!((missing.len(), missing.null_count()), (2, 2));
    // A struct that got a member later.
    let members = vec![ArrowField::new("f0", DataType::Int32, true), ArrowField::new("f9", DataType::Int64, true)];
    let children = vec![leaf(DataType::Int32), field(9, DataType::Int64, vec![])];
    let got = read(&file, &field(10, DataType::Struct(members.into()), children), &[0..2]).unwrap();
    let got = got.as_struct();
    assert_eq!((got.is_valid(0), got.is_valid(1)), (true, false));
    assert_eq!(got.column(0).as_primitive::<Int32Type>().value(0), 7);
    assert_eq!(got.column(1).as_primitive::<Int64Type>().null_count(), 2);
}

// F8
#[test]
fn what_is_not_offered_is_named() {
    let blob = Layout::Blob(BlobLayout { inner_layout: None, layers: layers(&[I]) });
    let file = FileBuilder::default().page(0, 1, blob, &[]).finish();
    let refused = |field: &Field| read(&file, field, &[0..1]).unwrap_err().to_string();
    assert!(refused(&leaf(DataType::LargeBinary)).contains("a blob page without a layout"));
    let view = leaf(DataType::Utf8View);
    assert!(refused(&view).contains("type Utf8View (column \"f0\")"));
}

// F1
#[test]
fn a_file_that_is_shorter_than_its_manifest_says_is_corrupt() {
    let bytes = FileBuilder { columns: vec![Vec::new()], ..Default::default() }.finish_bytes();
    let file = OneFileStore::new(bytes);
    let source = lancelet::format::file::FileSource {
        store: std::rc::Rc::new(file.clone()),
        dir: lancelet::store::DirId("dir".to_owned()),
        path: lancelet::store::Path::parse("data/file.lance").unwrap(),
    };
    let result = block_on(lancelet::format::file::FileReader::open(source.clone(), Some(file.size_bytes() + 1)));
    assert_eq!(result.err().map(|error| error.code()), Some(ErrorCode::Corrupt));
    assert!(block_on(lancelet::format::file::FileReader::open(source, None)).is_ok());
}

// F3
#[test]
fn pages_without_rows_are_passed() {
    let empty = Layout::MiniBlock(mini_block(&[I], flat(32), 0));
    let builder = ints_page(FileBuilder::default(), 0, &[1, 2]).page(0, 0, empty, &[vec![], vec![]]);
    let builder = builder.page(0, 0, constant(&[IN], None), &[]).page(0, 2, constant(&[IN], None), &[]);
    let file = ints_page(builder, 0, &[5]).finish();
    let int = leaf(DataType::Int32);
    assert_eq!(ints(&read(&file, &int, &[0..5]).unwrap()), vec![Some(1), Some(2), None, None, Some(5)]);
    assert_eq!(ints(&read(&file, &int, &[1..2, 3..5]).unwrap()), vec![Some(2), None, Some(5)]);
}

// F4
#[test]
fn buffers_may_begin_at_any_byte() {
    let chunk = chunk(None, None, &i32s(&[5, 6]));
    let table = words(&[(0, &chunk)]);
    let bytes = [&[0; 3][..], &chunk, &table].concat();
    let builder = FileBuilder { bytes, ..Default::default() };
    let places = [(3 + chunk.len() as u64, table.len() as u64), (3, chunk.len() as u64)];
    let file = builder.page_at(0, 2, Layout::MiniBlock(mini_block(&[I], flat(32), 2)), &places).finish();
    assert_eq!(ints(&read(&file, &leaf(DataType::Int32), &[0..2]).unwrap()), vec![Some(5), Some(6)]);
}

// F5
#[test]
fn rows_follow_the_order_of_pages_and_not_their_priority() {
    let mut builder = FileBuilder::default();
    for value in 0..3 {
        builder = ints_page(builder, 0, &[value * 2, value * 2 + 1]);
    }
    for (page, priority) in builder.columns[0].iter_mut().zip([4, 0, 2]) {
        page.priority = priority;
    }
    let got = read(&builder.finish(), &leaf(DataType::Int32), &[1..6]).unwrap();
    assert_eq!(ints(&got), (1..6).map(Some).collect::<Vec<_>>());
}

// F8
#[test]
fn unknown_fields_are_passed_and_unknown_layouts_and_encodings_refused() {
    let chunk = chunk(None, None, &i32s(&[5, 6]));
    let buffers = [words(&[(0, &chunk)]), chunk];
    let known = PageLayout { layout: Some(Layout::MiniBlock(mini_block(&[I], flat(32), 2))) }.encode_to_vec();
    let describe = |description: Vec<u8>| {
        let layout = Layout::MiniBlock(MiniBlockLayout::default());
        let mut builder = FileBuilder::default().page(0, 2, layout, &buffers);
        builder.columns[0][0].encoding = Some(any(PAGE_LAYOUT_URL, description));
        read(&builder.finish(), &leaf(DataType::Int32), &[0..2])
    };
    // Field 31 of 2 bytes.
    let got = describe([&known[..], &[0xfa, 0x01, 2, 7, 7]].concat()).unwrap();
    assert_eq!(ints(&got), vec![Some(5), Some(6)]);
    // A layout of number 9.
    let error = describe(vec![0x4a, 0]).unwrap_err();
    assert!(error.to_string().contains("a page layout that this build does not know"), "{error}");
    // The sparse layout of 2.3.
    let error = describe(vec![0x2a, 0]).unwrap_err();
    assert!(error.to_string().contains("the sparse page layout"), "{error}");
    // A mini-block layout whose values have an encoding of number 20.
    let strange = [&[0x1a, 3, 0xa2, 0x01, 0][..], &[0x32, 1, 1, 0x38, 1, 0x48, 2, 0x50, 1]].concat();
    let error = describe([&[0x0a, strange.len() as u8][..], &strange].concat()).unwrap_err();
    assert!(error.to_string().contains("an encoding that is missing or unknown"), "{error}");
    let mut other = FileBuilder::default().page(0, 2, Layout::MiniBlock(MiniBlockLayout::default()), &buffers);
    other.columns[0][0].encoding = Some(any("/lance.encodings30.PageLayout", known));
    assert!(read(&other.finish(), &leaf(DataType::Int32), &[0..2]).unwrap_err().to_string().contains("encodings30"));
}

fn schema_field(id: i32, parent_id: i32, logical_type: &str) -> lancelet::format::proto::Field {
    let logical_type = logical_type.to_owned();
    lancelet::format::proto::Field { id, parent_id, logical_type, ..Default::default() }
}

fn described(fields: Vec<lancelet::format::proto::Field>) -> FileBuilder {
    let schema = Some(lancelet::format::proto::Schema { fields, ..Default::default() });
    FileBuilder { descriptor: FileDescriptor { schema, ..Default::default() }, ..Default::default() }
}

// F9
#[test]
fn a_descriptor_whose_fields_have_no_ids_is_no_obstacle() {
    let names = ["uint8", "uint64", "uint64", "uint32", "string"];
    let members = names.map(|logical_type| schema_field(-1, -1, logical_type));
    let fields = [vec![schema_field(0, -1, "struct")], members.to_vec()].concat();
    let file = ints_page(described(fields), 0, &[5, 6]).finish();
    assert_eq!(ints(&read(&file, &leaf(DataType::Int32), &[0..2]).unwrap()), vec![Some(5), Some(6)]);
}

// L13
#[test]
fn rows_of_a_first_column_of_fixed_size_lists_are_counted_in_lists() {
    let schema = || {
        vec![
            schema_field(0, -1, "fixed_size_list:struct:3"),
            schema_field(1, 0, "struct"),
            schema_field(2, 1, "int32"),
            schema_field(3, -1, "fixed_size_list:struct:2"),
        ]
    };
    let file = ints_page(described(schema()), 0, &[1, 2, 3, 4, 5, 6]).finish();
    assert_eq!(block_on(file.open()).unwrap().row_count(), 2);
    let torn = ints_page(described(schema()), 0, &[1, 2, 3, 4]).finish();
    assert_eq!(block_on(torn.open()).err().map(|error| error.code()), Some(ErrorCode::Corrupt));
}
