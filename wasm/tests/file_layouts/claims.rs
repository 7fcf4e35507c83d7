//! Bytes that claim more than they hold.

use super::build::*;

#[test]
fn values_that_are_no_text_are_corrupt() {
    let values = [&le(&[8u32, 10], u32::to_le_bytes)[..], b"\xff\xfe"].concat();
    let chunk = chunk(None, None, &values);
    let layout = Layout::MiniBlock(mini_block(&[I], variable(32), 1));
    let file = FileBuilder::default().page(0, 1, layout, &[words(&[(0, &chunk)]), chunk]).finish();
    let reason = corrupt(read(&file, &leaf(DataType::Utf8), &[0..1]));
    assert!(reason.starts_with("column \"f0\":") && reason.contains("UTF"), "{reason}");
    assert_eq!(read(&file, &leaf(DataType::Binary), &[0..1]).unwrap().as_binary::<i32>().value(0), b"\xff\xfe");
}

#[test]
fn claims_that_bytes_do_not_hold_are_corrupt() {
    let page = |layout: MiniBlockLayout, rows, table: Vec<u8>, data: Vec<u8>| {
        let file = FileBuilder::default().page(0, rows, Layout::MiniBlock(layout), &[table, data]).finish();
        corrupt(read(&file, &leaf(DataType::Int32), &[0..rows.min(2)]))
    };
    let good = chunk(None, None, &i32s(&[1, 2]));
    let table = || words(&[(0, &good)]);
    let layout = |items| mini_block(&[I], flat(32), items);
    let more_rows = page(layout(2), 3, table(), good.clone());
    assert_eq!(more_rows, "column \"f0\": page 0: 2 items in 3 rows");
    assert!(page(layout(u64::MAX), u64::MAX, table(), good.clone()).contains("chunk 0"));
    assert!(page(layout(3), 3, table(), good.clone()).contains("chunk 0"));
    assert!(page(layout(2), 2, table(), good[..8].to_vec()).contains("1 chunks of 16 bytes and 2 items, expected 8"));
    assert!(page(layout(2), 2, vec![1, 2, 3], good.clone()).contains("a chunk table of 3 bytes"));
    let two = words(&[(0, &good), (0, &good)]);
    assert!(page(layout(4), 4, two, [&good[..], &good].concat()).contains("chunk 0 of 2 has no size"));
    let mut long = good.clone();
    long[2] = 200;
    assert!(page(layout(2), 2, table(), long).contains("200 bytes of values"));
    let lists = mini_block(&[I, L], flat(32), 2);
    assert!(page(MiniBlockLayout { repetition_index_depth: 0, ..lists }, 2, table(), good.clone()).contains("layers"));
    let many = MiniBlockLayout { num_buffers: u64::MAX, ..layout(2) };
    assert!(page(many, 2, table(), good.clone()).contains("value buffers"));
}

/// Whether a read of a file of about a kilobyte is refused, by what.
fn refusal(file: &OneFileStore, field: &Field, rows: u64) -> String {
    assert!(file.size_bytes() < 1200, "{}", file.size_bytes());
    match read(file, field, &[0..rows]) {
        Err(error @ (Error::Corrupt { .. } | Error::NotSupported { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

// V8
#[test]
fn a_kilobyte_does_not_become_a_gigabyte() {
    let vector = |size| {
        let item = Arc::new(ArrowField::new("item", DataType::Float32, true));
        leaf(DataType::FixedSizeList(item, size))
    };
    let nulls = |rows| FileBuilder::default().page(0, rows, constant(&[IN], None), &[]).finish();
    // Widths that a type claims, without any bytes of values.
    let error = refusal(&nulls(1), &vector(i32::MAX), 1);
    assert!(error.contains("1 nulls of 8589934588 bytes at once (column \"f0\")"), "{error}");
    refusal(&nulls(1 << 20), &leaf(DataType::FixedSizeBinary(1 << 20)), 1 << 20);
    refusal(&nulls(1 << 40), &leaf(DataType::Int8), 1 << 30);
    // A column that no file has.
    let wide = Field { id: FieldId(9), ..vector(i32::MAX) };
    refusal(&nulls(1), &wide, 1);
    refusal(&nulls(1), &struct_of(7, vec![wide.clone()]), 1);
    // Lists of structs multiply rows.
    let layout = constant(&[IN, IN, IN], None);
    let rows = i32::MAX as u64;
    let file = ints_page(FileBuilder::default(), 0, &[0]).page(1, rows, layout, &[]).finish();
    let item = struct_of(5, vec![field(1, DataType::Int32, vec![])]);
    let list = DataType::FixedSizeList(Arc::new(ArrowField::new("f5", item.data_type.clone(), true)), i32::MAX);
    refusal(&file, &field(6, list, vec![item]), 1);
    // Constants repeat no more than there are rows, and no rows are without pages.
    let seven = FileBuilder::default().page(0, 3, constant(&[I], Some(&7i32.to_le_bytes())), &[]).finish();
    assert!(matches!(read(&seven, &leaf(DataType::Int32), &[0..4]), Err(Error::InvalidInput { .. })));
}

#[test]
fn a_dictionary_and_levels_of_more_values_than_their_bytes_are_corrupt() {
    let chunk = chunk(None, None, &[0]);
    let page = |dictionary: Option<CompressiveEncoding>, items: u64, bytes: Vec<u8>| {
        let layout = MiniBlockLayout { dictionary, num_dictionary_items: items, ..mini_block(&[I], flat(8), 1) };
        let buffers = [words(&[(0, &chunk)]), chunk.clone(), bytes];
        refusal(
            &FileBuilder::default().page(0, 1, Layout::MiniBlock(layout), &buffers).finish(),
            &leaf(DataType::Int64),
            1,
        )
    };
    let zeros = lancelet::format::file::encoding::out_of_line_bitpacking(64, 0);
    for items in [2, 1 << 31, u64::MAX] {
        assert!(page(flat(64), items, vec![0; 8]).contains("column \"f0\": page 0"));
        if items > 2 {
            page(Some(zeros.clone()), items, vec![]);
        }
    }
    let counts = ConstantLayout {
        layers: layers(&[I, LN]),
        rep_compression: Some(lancelet::format::file::encoding::out_of_line_bitpacking(16, 0)),
        num_rep_values: 1 << 40,
        ..Default::default()
    };
    let file = FileBuilder::default().page(0, 1 << 40, Layout::Constant(counts), &[vec![0], vec![]]).finish();
    refusal(&file, &list_of(DataType::Int32), 1);
}
