//! Values of constant and full-zip pages, and of dictionaries.

use super::build::*;

// V10
#[test]
fn a_constant_page_has_six_forms() {
    let constant = |kinds: &[RepDefLayer], inline: Option<&[u8]>| {
        let inline_value = inline.map(|value| value.to_vec().into());
        Layout::Constant(ConstantLayout { layers: layers(kinds), inline_value, ..Default::default() })
    };
    let text = [&[2, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0][..], b"hi"].concat();
    let seven = 7i32.to_le_bytes();
    let page = |layout, buffers: &[Vec<u8>]| FileBuilder::default().page(0, 3, layout, buffers).finish();
    let all = &[0..3];
    let int = leaf(DataType::Int32);

    let scalar = page(constant(&[I], Some(&seven)), &[]);
    assert_eq!(ints(&read(&scalar, &int, all).unwrap()), vec![Some(7); 3]);
    let with_nulls = page(constant(&[IN], Some(&seven)), &[vec![], u16s(&[0, 1, 0])]);
    assert_eq!(ints(&read(&with_nulls, &int, all).unwrap()), vec![Some(7), None, Some(7)]);
    let buffer = page(constant(&[I], None), std::slice::from_ref(&text));
    assert_eq!(strings(&read(&buffer, &leaf(DataType::Utf8), &[1..3]).unwrap()), texts(&["hi", "hi"]));
    let buffer_and_levels = page(constant(&[IN, LNE], None), &[text, u16s(&[1, 0, 1, 1]), u16s(&[0, 1, 3, 0])]);
    let lists = read(&buffer_and_levels, &list_of(DataType::Utf8), all).unwrap();
    assert_eq!(lists.as_list::<i32>().value_offsets(), &[0, 2, 2, 3]);
    assert_eq!(strings(lists.as_list::<i32>().values())[..2], [Some("hi".to_owned()), None]);
    let nulls = page(constant(&[IN], None), &[]);
    assert_eq!(ints(&read(&nulls, &int, all).unwrap()), vec![None; 3]);
    let null_lists = page(constant(&[I, LN], None), &[u16s(&[1, 1, 1]), u16s(&[1, 1, 1])]);
    assert_eq!(int_lists(&read(&null_lists, &list_of(DataType::Int32), &[0..2]).unwrap()), vec![None, None]);

    let short = page(constant(&[IN], None), &[vec![], u16s(&[0, 1])]);
    assert!(corrupt(read(&short, &int, all)).contains("levels of 2 rows in a page of 3"));
    let wrong_width = page(constant(&[I], Some(&[1, 2])), &[]);
    assert!(corrupt(read(&wrong_width, &int, all)).contains("a constant of 2 bytes in a column of 4-byte values"));
}

// L12
#[test]
fn an_empty_struct_has_valid_rows_although_its_page_looks_null() {
    let layout = ConstantLayout { layers: layers(&[IN]), ..Default::default() };
    let file = FileBuilder::default().page(0, 3, Layout::Constant(layout), &[]).finish();
    let got = read(&file, &leaf(DataType::Struct(Default::default())), &[0..2]).unwrap();
    assert_eq!((got.len(), got.null_count()), (2, 0));
    let nothing = read(&file, &leaf(DataType::Null), &[0..3]).unwrap();
    assert_eq!((nothing.len(), nothing.data_type()), (3, &DataType::Null));
}

// V11
#[test]
fn a_boolean_of_a_full_zip_page_takes_a_byte() {
    let layout = FullZipLayout {
        width: Some(Width::BitsPerValue(8)),
        num_items: 3,
        num_visible_items: 3,
        value_compression: flat(8),
        layers: layers(&[I]),
        ..Default::default()
    };
    let file = FileBuilder::default().page(0, 3, Layout::FullZip(layout), &[vec![1, 0, 1]]).finish();
    let got = read(&file, &leaf(DataType::Boolean), &[0..1, 2..3]).unwrap();
    assert_eq!(got.as_boolean().iter().collect::<Vec<_>>(), vec![Some(true), Some(true)]);
}

/// A full-zip page of strings, one row each, with row index entries of a width.
fn wide_strings(values: &[Option<&str>], index_width: usize) -> OneFileStore {
    let (mut data, mut index) = (Vec::new(), Vec::new());
    let entry = |at: usize, index: &mut Vec<u8>| index.extend(&(at as u64).to_le_bytes()[..index_width]);
    for value in values {
        entry(data.len(), &mut index);
        data.push(u8::from(value.is_none()));
        if let Some(value) = value {
            data.extend((value.len() as u32).to_le_bytes());
            data.extend(value.as_bytes());
        }
    }
    entry(data.len(), &mut index);
    let layout = FullZipLayout {
        bits_def: 1,
        width: Some(Width::BitsPerOffset(32)),
        num_items: values.len() as u32,
        num_visible_items: values.len() as u32,
        value_compression: variable(32),
        layers: layers(&[IN]),
        ..Default::default()
    };
    FileBuilder::default().page(0, values.len() as u64, Layout::FullZip(layout), &[data, index]).finish()
}

// L10, L11
#[test]
fn row_indexes_have_entries_of_any_width() {
    let values = [Some("a"), None, Some(""), Some("long enough"), None];
    for width in [1, 2, 4, 8] {
        let file = wide_strings(&values, width);
        for start in 0..5 {
            for end in start..=5 {
                let got = read(&file, &leaf(DataType::Utf8), &[start as u64..end as u64]).unwrap();
                let wanted: Vec<_> = values[start..end].iter().map(|value| value.map(str::to_owned)).collect();
                assert_eq!(strings(&got), wanted, "width {width}, {start}..{end}");
            }
        }
    }
    let file = wide_strings(&values, 3);
    assert!(corrupt(read(&file, &leaf(DataType::Utf8), &[1..2])).contains("a row index of 18 bytes for 5 rows"));
}

// L9, L11
#[test]
fn control_words_have_one_two_or_four_bytes() {
    for (bits_def, width) in [(2, 1), (8, 2), (16, 4)] {
        // [1, null], null, [2]
        let mut data = Vec::new();
        let mut offsets = vec![0u64];
        for (rep, def, value) in [(1u64, 0u64, Some(1)), (0, 1, Some(0)), (1, 2, None), (1, 0, Some(2))] {
            if rep == 1 && !data.is_empty() {
                offsets.push(data.len() as u64);
            }
            data.extend(&(rep << bits_def | def).to_le_bytes()[..width]);
            data.extend(value.map(i32::to_le_bytes).iter().flatten());
        }
        offsets.push(data.len() as u64);
        let layout = FullZipLayout {
            bits_rep: 1,
            bits_def,
            width: Some(Width::BitsPerValue(32)),
            num_items: 4,
            num_visible_items: 3,
            value_compression: flat(32),
            layers: layers(&[IN, LN]),
        };
        let file = FileBuilder::default().page(0, 3, Layout::FullZip(layout), &[data, u64s(&offsets)]).finish();
        let rows = vec![Some(vec![Some(1), None]), None, Some(vec![Some(2)])];
        assert_eq!(int_lists(&read(&file, &list_of(DataType::Int32), &[0..3]).unwrap()), rows, "{bits_def}");
        assert_eq!(int_lists(&read(&file, &list_of(DataType::Int32), &[1..3]).unwrap()), rows[1..], "{bits_def}");
    }
}

// V7
#[test]
fn indices_of_any_width_are_unsigned_and_lie_in_their_dictionary() {
    let page = |bits: u64, indices: &[u64], dictionary: Vec<u8>, item_bits: u64| {
        let bytes: Vec<u8> =
            indices.iter().flat_map(|index| index.to_le_bytes()[..bits as usize / 8].to_vec()).collect();
        let chunk = chunk(None, None, &bytes);
        let layout = MiniBlockLayout {
            dictionary: flat(item_bits),
            num_dictionary_items: dictionary.len() as u64 * 8 / item_bits,
            ..mini_block(&[I], flat(bits), indices.len() as u64)
        };
        let buffers = [words(&[(0, &chunk)]), chunk, dictionary];
        FileBuilder::default().page(0, indices.len() as u64, Layout::MiniBlock(layout), &buffers).finish()
    };
    let longs = le(&(0..200i64).map(|x| x << 40).collect::<Vec<_>>(), i64::to_le_bytes);
    for bits in [8, 16, 32, 64] {
        let file = page(bits, &[199, 0, 130], longs.clone(), 64);
        let got = read(&file, &leaf(DataType::Int64), &[0..3]).unwrap();
        assert_eq!(got.as_primitive::<Int64Type>().values(), &[199 << 40, 0, 130 << 40], "{bits}");
        let got = read(&file, &leaf(DataType::Float64), &[2..3]).unwrap();
        assert_eq!(got.as_primitive::<Float64Type>().value(0).to_bits(), 130 << 40);
        let beyond = page(bits, &[0, 200], longs.clone(), 64);
        assert!(corrupt(read(&beyond, &leaf(DataType::Int64), &[0..2])).contains("index 200 into a dictionary of 200"));
    }
    let wide = page(8, &[1, 1, 0], le(&[-7i128, 1 << 100], i128::to_le_bytes), 128);
    let got = read(&wide, &leaf(DataType::Decimal128(38, 0)), &[0..3]).unwrap();
    let decimals = got.as_primitive::<arrow_array::types::Decimal128Type>();
    assert_eq!(decimals.values(), &[1 << 100, 1 << 100, -7]);
}

// V8
#[test]
fn each_value_of_a_full_zip_page_may_be_a_frame_of_its_own_and_an_empty_one_none() {
    // A frame of one block that is stored as it is.
    let frame = |text: &[u8]| {
        let size = text.len() as u32;
        [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, size as u8][..], &((size << 3) | 1).to_le_bytes()[..3], text].concat()
    };
    let sized = |size: u64, text: &[u8]| [&size.to_le_bytes()[..], &frame(text)].concat();
    let page = |values: &[Vec<u8>]| {
        let (mut data, mut index) = (Vec::new(), vec![0]);
        for value in values {
            data.extend((value.len() as u32).to_le_bytes());
            data.extend(value);
            index.push(data.len() as u64);
        }
        let compression = Some(BufferCompression { scheme: 2, level: None });
        let general = General { compression, values: variable(32).map(Box::new) };
        let layout = FullZipLayout {
            width: Some(Width::BitsPerOffset(32)),
            num_items: values.len() as u32,
            num_visible_items: values.len() as u32,
            value_compression: Some(CompressiveEncoding { compression: Some(Compression::General(Box::new(general))) }),
            layers: layers(&[I]),
            ..Default::default()
        };
        let rows = values.len() as u64;
        let file = FileBuilder::default().page(0, rows, Layout::FullZip(layout), &[data, u64s(&index)]).finish();
        read(&file, &leaf(DataType::Utf8), &[0..rows])
    };
    // Old files have no size before the frame.
    let got = page(&[sized(5, b"hello"), vec![], frame(b"old"), sized(0, b"")]).unwrap();
    assert_eq!(strings(&got), texts(&["hello", "", "old", ""]));
    for lie in [4, 6, u64::MAX, 1 << 31] {
        assert!(corrupt(page(&[sized(lie, b"hello")])).contains("zstd"), "{lie}");
    }
    assert!(corrupt(page(&[vec![1, 2, 3]])).contains("zstd"));
}

// V10
#[test]
fn a_constant_may_be_long_wide_or_of_a_dictionary() {
    let long = "y".repeat(40_000);
    let buffers = |offset_bytes: usize| {
        let offsets = [0u64, 40_000].map(|offset| offset.to_le_bytes()[..offset_bytes].to_vec()).concat();
        let sizes = [2u32, offsets.len() as u32, 40_000].map(u32::to_le_bytes).concat();
        [&sizes, &offsets, long.as_bytes()].concat()
    };
    let page = |layout, buffers: &[Vec<u8>]| FileBuilder::default().page(0, 3, layout, buffers).finish();
    let text = page(constant(&[I], None), &[buffers(4)]);
    assert_eq!(strings(&read(&text, &leaf(DataType::Utf8), &[1..3]).unwrap()), texts(&[&long, &long]));
    let large = page(constant(&[I], None), &[buffers(8)]);
    assert_eq!(read(&large, &leaf(DataType::LargeUtf8), &[0..1]).unwrap().as_string::<i64>().value(0), long);
    let words = leaf(DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)));
    let got = read(&text, &words, &[0..3]).unwrap();
    let got = got.as_dictionary::<arrow_array::types::Int8Type>();
    assert_eq!((got.keys().values().to_vec(), got.values().len()), (vec![0; 3], 1));
    let decimal = page(constant(&[IN], Some(&(-5i128).to_le_bytes())), &[vec![], u16s(&[0, 1, 0])]);
    let got = read(&decimal, &leaf(DataType::Decimal128(20, 2)), &[0..3]).unwrap();
    let decimals = got.as_primitive::<arrow_array::types::Decimal128Type>();
    assert_eq!(decimals.iter().collect::<Vec<_>>(), vec![Some(-5), None, Some(-5)]);
    let yes = page(constant(&[I], Some(&[1])), &[]);
    assert_eq!(read(&yes, &leaf(DataType::Boolean), &[0..3]).unwrap().as_boolean().true_count(), 3);
}
