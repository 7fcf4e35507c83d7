//! What reading costs.

use super::build::*;

/// 300 MB of float64 in one page: chunks of 1024 values.
fn big_page() -> (OneFileStore, u64) {
    let values: Vec<f64> = (0..1024).map(f64::from).collect();
    let chunk = chunk(None, None, &le(&values, f64::to_le_bytes));
    let chunks = 37_000u64;
    let size = chunk.len() as u64 * chunks;
    let table: Vec<u8> = (0..chunks).flat_map(|k| words(&[(if k + 1 < chunks { 10 } else { 0 }, &chunk)])).collect();
    let rows = chunks * 1024;
    let table_size = table.len() as u64;
    let layout = Layout::MiniBlock(mini_block(&[I], flat(64), rows));
    let builder = FileBuilder { base: size, bytes: table, ..Default::default() };
    let tail = builder.page_at(0, rows, layout, &[(size, table_size), (0, size)]).finish_bytes();
    (OneFileStore::repeating(chunk, chunks, tail), rows)
}

// F6
#[test]
fn ten_rows_of_a_big_page_cost_its_chunk_table_and_a_chunk() {
    let (file, rows) = big_page();
    assert!(file.size_bytes() > 300_000_000);
    let reader = block_on(file.open()).unwrap();
    assert_eq!((file.requests.borrow().len(), file.bytes_read()), (1, 64 * 1024));
    let read = |rows: &[Range<u64>]| {
        file.reset();
        let arrays = block_on(reader.read(&[&leaf(DataType::Float64)], &|_| Some(0), rows)).unwrap();
        let requests: Vec<usize> = file.requests.borrow().iter().map(Vec::len).collect();
        (arrays[0].as_primitive::<Float64Type>().values().to_vec(), requests, file.bytes_read())
    };
    let middle = rows / 2 + 1020;
    let (values, requests, bytes) = read(&[middle..middle + 10]);
    assert_eq!(values, vec![1020.0, 1021.0, 1022.0, 1023.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(requests, vec![1, 1], "the chunk table, then two chunks that adjoin");
    assert_eq!(bytes, 37_000 * 4 + 2 * 8200);
    let (values, requests, bytes) = read(&[5..6, 7..9, 20_000_000..20_000_001]);
    assert_eq!(values, vec![5.0, 7.0, 8.0, 256.0]);
    assert_eq!((requests, bytes), (vec![2], 2 * 8200), "the table is kept");
}

// F6, L9
#[test]
fn ten_vectors_of_a_big_page_cost_their_own_bytes() {
    let row: Vec<u8> = le(&(0..128u8).map(f32::from).collect::<Vec<_>>(), f32::to_le_bytes);
    let rows = 600_000u64;
    let list = FixedSizeList { items_per_value: 128, values: flat(32).map(Box::new), has_validity: false };
    let layout = FullZipLayout {
        width: Some(Width::BitsPerValue(4096)),
        num_items: rows as u32,
        num_visible_items: rows as u32,
        value_compression: Some(CompressiveEncoding { compression: Some(Compression::FixedSizeList(Box::new(list))) }),
        layers: layers(&[I]),
        ..Default::default()
    };
    let size = rows * row.len() as u64;
    let builder = FileBuilder { base: size, ..Default::default() };
    let tail = builder.page_at(0, rows, Layout::FullZip(layout), &[(0, size)]).finish_bytes();
    let file = OneFileStore::repeating(row, rows, tail);
    assert!(file.size_bytes() > 300_000_000);
    let item = Arc::new(ArrowField::new("item", DataType::Float32, true));
    let vector = leaf(DataType::FixedSizeList(item, 128));
    let reader = block_on(file.open()).unwrap();
    file.reset();
    let got = block_on(reader.read(&[&vector], &|_| Some(0), &[12..17, 300_000..300_005])).unwrap();
    assert_eq!(got[0].as_fixed_size_list().value(9).as_primitive::<Float32Type>().value(127), 127.0);
    assert_eq!((got[0].len(), file.bytes_read(), file.requests.borrow().len()), (10, 10 * 512, 1));
}

// F7
#[test]
fn many_small_pages_are_read_in_one_request() {
    let chunk = chunk(None, None, &i32s(&[1, 2, 3, 4]));
    let mut builder = FileBuilder::default();
    for _ in 0..10_000 {
        let layout = Layout::MiniBlock(mini_block(&[I], flat(32), 4));
        builder = builder.page(0, 4, layout, &[words(&[(0, &chunk)]), chunk.clone()]);
    }
    let file = builder.finish();
    let reader = block_on(file.open()).unwrap();
    assert_eq!(file.requests.borrow().len(), 2, "the tail and the metadata before it");
    file.reset();
    let all = block_on(reader.read(&[&leaf(DataType::Int32)], &|_| Some(0), &[0..40_000])).unwrap();
    assert_eq!(all[0].as_primitive::<Int32Type>().values().iter().map(|x| i64::from(*x)).sum::<i64>(), 100_000);
    assert_eq!(*file.requests.borrow(), vec![vec![0..10_000 * 128 - 64 + chunk.len() as u64]]);
    file.reset();
    let some = block_on(reader.read(&[&leaf(DataType::Int32)], &|_| Some(0), &[3..5, 39_999..40_000])).unwrap();
    assert_eq!(some[0].as_primitive::<Int32Type>().values(), &[4, 1, 4]);
    // The indexes of the first two pages were dropped for later ones, that of the last is still there.
    let calls: Vec<usize> = file.requests.borrow().iter().map(Vec::len).collect();
    assert_eq!((calls, file.bytes_read()), (vec![2, 1], 132 + 152 + chunk.len() as u64));
}

// F6
#[test]
fn a_thousand_rows_of_a_big_page_cost_a_chunk_each() {
    let (file, rows) = big_page();
    let reader = block_on(file.open()).unwrap();
    let field = leaf(DataType::Float64);
    block_on(reader.read(&[&field], &|_| Some(0), &[0..1])).unwrap();
    file.reset();
    let ranges: Vec<Range<u64>> = (0..1_000).map(|i| i * (rows / 1_000)).map(|row| row..row + 1).collect();
    let got = block_on(reader.read(&[&field], &|_| Some(0), &ranges)).unwrap();
    let expected: Vec<f64> = ranges.iter().map(|range| (range.start % 1024) as f64).collect();
    assert_eq!(got[0].as_primitive::<Float64Type>().values().to_vec(), expected);
    assert_eq!((file.requests.borrow().len(), file.requests.borrow()[0].len()), (1, 1_000));
    assert!(file.bytes_read() <= 1_000 * 8200, "{}", file.bytes_read());
}
