//! Repetition and definition levels: lists, nulls, rows over chunks.

use super::build::*;

// L1
#[test]
fn four_rows_of_integers_and_lists_of_strings() {
    let a = MiniBlockLayout { num_items: 4, ..mini_block(&[IN], flat(32), 4) };
    let l = mini_block(&[IN, LNE], variable(32), 5);
    let file = FileBuilder::default()
        .page(
            0,
            4,
            Layout::MiniBlock(a),
            &[
                vec![0x30, 0, 0, 0],
                [&[4, 0, 8, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0][..], &i32s(&[1, 2, 0, 300])].concat(),
            ],
        )
        .page(
            1,
            4,
            Layout::MiniBlock(l),
            &[
                vec![0x90, 0, 0, 0],
                [
                    &[7, 0, 14, 0, 14, 0, 0x20, 0, 0, 0, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe][..],
                    &[1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0xfe, 0xfe],
                    &[0, 0, 0, 0, 3, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0xfe, 0xfe],
                    &[0x18, 0, 0, 0, 0x19, 0, 0, 0, 0x1b, 0, 0, 0, 0x1c, 0, 0, 0, 0x1c, 0, 0, 0, 0x1d, 0, 0, 0],
                    b"xyzwqHHH",
                ]
                .concat(),
                u64s(&[4, 0]),
            ],
        )
        .finish();
    let all = &[0..4];
    assert_eq!(ints(&read(&file, &leaf(DataType::Int32), all).unwrap()), vec![Some(1), Some(2), None, Some(300)]);
    let item = Arc::new(ArrowField::new("item", DataType::Utf8, true));
    let l = field(8, DataType::List(item), vec![field(1, DataType::Utf8, vec![])]);
    let lists = read(&file, &l, all).unwrap();
    let lists: Vec<_> = lists.as_list::<i32>().iter().map(|list| list.map(|list| strings(&list))).collect();
    let (w, q) = (Some("w".to_owned()), Some("q".to_owned()));
    assert_eq!(lists, vec![Some(texts(&["x", "yz"])), Some(vec![]), None, Some(vec![w, None, q])]);
}

/// Rows [0], [1..=9], [10], of which the middle one fills a chunk and parts of two.
fn row_over_three_chunks(index: &[u64]) -> OneFileStore {
    let chunks = [
        chunk(Some(&[1, 1, 0, 0]), None, &i32s(&[0, 1, 2, 3])),
        chunk(Some(&[0, 0, 0, 0]), None, &i32s(&[4, 5, 6, 7])),
        chunk(Some(&[0, 0, 1]), None, &i32s(&[8, 9, 10])),
    ];
    let table = words(&[(2, &chunks[0]), (2, &chunks[1]), (0, &chunks[2])]);
    let layout = Layout::MiniBlock(mini_block(&[I, L], flat(32), 11));
    FileBuilder::default().page(0, 3, layout, &[table, chunks.concat(), u64s(index)]).finish()
}

// L6
#[test]
fn a_row_that_spans_chunks_is_found_by_the_repetition_index() {
    let file = row_over_three_chunks(&[1, 3, 0, 4, 2, 0]);
    let some = |range: Range<i32>| Some(range.map(Some).collect::<Vec<_>>());
    let rows = [some(0..1), some(1..10), some(10..11)];
    for start in 0..3 {
        for end in start..=3 {
            let got = read(&file, &list_of(DataType::Int32), &[start..end]).unwrap();
            assert_eq!(int_lists(&got), rows[start as usize..end as usize], "{start}..{end}");
        }
    }
    let got = read(&file, &list_of(DataType::Int32), &[0..1, 2..3]).unwrap();
    assert_eq!(int_lists(&got), vec![some(0..1), some(10..11)]);
}

#[test]
fn a_repetition_index_that_contradicts_its_page_is_corrupt() {
    let all = [0..3];
    for (index, reason) in [
        (vec![1, 3, 0, 4, 1, 0], "a repetition index of 2 rows in a page of 3"),
        (vec![4, 3, 0, 4, 2, 0], "4 rows end in chunk 0"),
        (vec![1, 3, 0, 4], "a repetition index of 32 bytes for 3 chunks"),
        (vec![1, 3, 0, 0, 2, 0], "1 rows end"),
    ] {
        let found = read(&row_over_three_chunks(&index), &list_of(DataType::Int32), &all);
        match found {
            Err(error) => assert!(error.to_string().contains("page 0"), "{error}"),
            Ok(array) => panic!("{reason}: {array:?}"),
        }
    }
}

#[test]
fn a_large_list_is_read_of_the_same_bytes() {
    let file = row_over_three_chunks(&[1, 3, 0, 4, 2, 0]);
    let item = Arc::new(ArrowField::new("item", DataType::Int32, true));
    let large = field(1, DataType::LargeList(item), vec![leaf(DataType::Int32)]);
    let got = read(&file, &large, &[1..3]).unwrap();
    assert_eq!(got.as_list::<i64>().value_offsets(), &[0, 9, 10]);
}

fn some(values: &[i32]) -> Option<Vec<Option<i32>>> {
    Some(values.iter().copied().map(Some).collect())
}

// L2
#[test]
fn a_null_item_stands_at_every_place_and_alone() {
    let rep = [1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0];
    let def = [1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1];
    for kinds in [&[IN, L][..], &[IN, LNE]] {
        let values: Vec<i32> = (0..12).collect();
        let file = list_page(FileBuilder::default(), kinds, &rep, &def, &values).finish();
        let rows: Vec<_> = (0..4i32)
            .map(|row| Some((0..3).map(|at| (row < 3 && at != row).then_some(row * 3 + at)).collect::<Vec<_>>()))
            .collect();
        assert_eq!(int_lists(&read(&file, &list_of(DataType::Int32), &[0..4]).unwrap()), rows);
        assert_eq!(int_lists(&read(&file, &list_of(DataType::Int32), &[1..2, 3..4]).unwrap())[1], rows[3]);
    }
}

// L5, L15
#[test]
fn pages_of_a_column_differ_in_layers_and_layout_and_offsets_run_on() {
    let builder = FileBuilder::default().page(0, 2, constant(&[I, LN], None), &[u16s(&[1, 1]), u16s(&[1, 1])]);
    let builder = list_page(builder, &[I, L], &[1, 0, 1], &[], &[1, 2, 3]);
    let builder = list_page(builder, &[IN, LE], &[1, 1, 0], &[2, 1, 0], &[0, 4]);
    let file = list_page(builder, &[I, LNE], &[1, 1, 1], &[1, 2, 0], &[5]).finish();
    let got = read(&file, &list_of(DataType::Int32), &[0..9]).unwrap();
    let rows =
        [None, None, some(&[1, 2]), some(&[3]), some(&[]), Some(vec![None, Some(4)]), None, some(&[]), some(&[5])];
    assert_eq!(int_lists(&got), rows);
    assert_eq!(got.as_list::<i32>().value_offsets(), &[0, 0, 0, 2, 3, 3, 5, 5, 5, 6]);
    for start in 0..9 {
        let got = read(&file, &list_of(DataType::Int32), &[start..start + 1]).unwrap();
        assert_eq!(int_lists(&got), rows[start as usize..start as usize + 1]);
    }
}

// L6
#[test]
fn a_row_may_end_where_its_chunk_does() {
    let chunks = [
        chunk(Some(&[1, 0, 0, 0]), None, &i32s(&[0, 1, 2, 3])),
        chunk(Some(&[1, 0, 1, 0]), None, &i32s(&[4, 5, 6, 7])),
        chunk(Some(&[1]), None, &i32s(&[8])),
    ];
    let table = words(&[(2, &chunks[0]), (2, &chunks[1]), (0, &chunks[2])]);
    let layout = Layout::MiniBlock(mini_block(&[I, L], flat(32), 9));
    let index = u64s(&[1, 0, 2, 0, 1, 0]);
    let file = FileBuilder::default().page(0, 4, layout, &[table, chunks.concat(), index]).finish();
    let rows = [some(&[0, 1, 2, 3]), some(&[4, 5]), some(&[6, 7]), some(&[8])];
    for start in 0..4 {
        for end in start..=4 {
            let got = read(&file, &list_of(DataType::Int32), &[start as u64..end as u64]).unwrap();
            assert_eq!(int_lists(&got), rows[start..end], "{start}..{end}");
        }
    }
}

// L7
#[test]
fn invisible_entries_belong_to_the_chunk_of_the_next_item_and_the_last_ones_to_the_last() {
    // [1, 2], [], [], [3, 4], []
    let chunks = [
        chunk(Some(&[1, 0]), Some(&[0, 0]), &i32s(&[1, 2])),
        chunk(Some(&[1, 1, 1, 0, 1]), Some(&[1, 1, 0, 0, 1]), &i32s(&[3, 4])),
    ];
    let table = words(&[(1, &chunks[0]), (0, &chunks[1])]);
    let layout = Layout::MiniBlock(mini_block(&[I, LE], flat(32), 4));
    let file = FileBuilder::default().page(0, 5, layout, &[table, chunks.concat(), u64s(&[1, 0, 4, 0])]).finish();
    let rows = [some(&[1, 2]), some(&[]), some(&[]), some(&[3, 4]), some(&[])];
    for start in 0..5 {
        let got = read(&file, &list_of(DataType::Int32), &[start as u64..5]).unwrap();
        assert_eq!(int_lists(&got), rows[start..], "{start}..5");
    }
}

// L7, L8
#[test]
fn sixty_thousand_empty_lists_and_one_item_are_one_chunk() {
    let runs = |values: &[(u16, usize)]| {
        let (mut all, mut lengths) = (Vec::new(), Vec::new());
        for (value, count) in values {
            for at in (0..*count).step_by(255) {
                all.extend(value.to_le_bytes());
                lengths.push((count - at).min(255) as u8);
            }
        }
        [&(all.len() as u64).to_le_bytes()[..], &all, &lengths].concat()
    };
    let rle = || {
        let rle = Rle { values: flat(16).map(Box::new), run_lengths: flat(8).map(Box::new) };
        Some(CompressiveEncoding { compression: Some(Compression::Rle(Box::new(rle))) })
    };
    let (rep, def) = (runs(&[(1, 60_001)]), runs(&[(1, 60_000), (0, 1)]));
    let mut chunk = u16s(&[60_001, rep.len() as u16, def.len() as u16]);
    chunk.extend(4u32.to_le_bytes());
    for part in [&rep, &def, &i32s(&[7])] {
        chunk.resize(chunk.len().next_multiple_of(8), 0xfe);
        chunk.extend(part);
    }
    chunk.resize(chunk.len().next_multiple_of(8), 0xfe);
    let layout =
        MiniBlockLayout { rep_compression: rle(), def_compression: rle(), ..mini_block(&[I, LE], flat(32), 1) };
    let buffers = [words(&[(0, &chunk)]), chunk, u64s(&[60_001, 0])];
    let file = FileBuilder::default().page(0, 60_001, Layout::MiniBlock(layout), &buffers).finish();
    let all = read(&file, &list_of(DataType::Int32), &[0..60_001]).unwrap();
    assert_eq!((all.len(), all.null_count(), all.as_list::<i32>().values().len()), (60_001, 0, 1));
    let last = read(&file, &list_of(DataType::Int32), &[59_999..60_001]).unwrap();
    assert_eq!(int_lists(&last), vec![some(&[]), some(&[7])]);
}

// L13
#[test]
fn a_fixed_size_list_of_structs_repeats_its_levels_for_every_item() {
    // Leaf 1, struct 2, list 3: [1, null leaf], null, [null struct, 2].
    let def: [u16; 6] = [0, 1, 3, 3, 2, 0];
    let chunk = chunk(None, Some(&def), &i32s(&[1, 0, 0, 0, 0, 2]));
    let layout = Layout::MiniBlock(mini_block(&[IN, IN, IN], flat(32), 6));
    let buffers = [words(&[(0, &chunk)]), chunk];
    let builder = ints_page(FileBuilder::default(), 0, &[0, 0, 0]).page(1, 6, layout, &buffers);
    let child = field(1, DataType::Int32, vec![]);
    let item = struct_of(5, vec![child]);
    let list = DataType::FixedSizeList(Arc::new(ArrowField::new(&item.name, item.data_type.clone(), true)), 2);
    let lists = field(6, list, vec![item]);
    let file = builder.finish();
    let got = read(&file, &lists, &[0..3]).unwrap();
    let got = got.as_fixed_size_list();
    assert_eq!((0..3).map(|row| got.is_valid(row)).collect::<Vec<_>>(), [true, false, true]);
    let structs = got.values().as_struct();
    assert_eq!((0..6).map(|at| structs.is_valid(at)).collect::<Vec<_>>(), [true, true, false, false, false, true]);
    assert_eq!(ints(structs.column(0)), vec![Some(1), None, None, None, None, Some(2)]);
    let last = read(&file, &lists, &[2..3]).unwrap();
    assert_eq!(ints(last.as_fixed_size_list().values().as_struct().column(0)), vec![None, Some(2)]);
}

// L14
#[test]
fn a_map_is_a_list_of_keys_and_values() {
    // {1: 10, 2: null}, {}, null, {3: 30}
    let (rep, empty) = ([1, 0, 1, 1, 1], [0, 0, 2, 1, 0]);
    let keys = list_page(FileBuilder::default(), &[I, I, LNE], &rep, &empty, &[1, 2, 3]);
    let def: [u16; 5] = [0, 1, 3, 2, 0];
    let layout = mini_block(&[IN, I, LNE], flat(32), 3);
    let chunk = chunk(Some(&rep), Some(&def), &i32s(&[10, 0, 30]));
    let file = keys.page(1, 4, Layout::MiniBlock(layout), &[words(&[(0, &chunk)]), chunk, u64s(&[4, 0])]).finish();
    let entries = field(5, DataType::Null, vec![leaf(DataType::Int32), field(1, DataType::Int32, vec![])]);
    let members = vec![ArrowField::new("f0", DataType::Int32, false), ArrowField::new("f1", DataType::Int32, true)];
    let entries = Field { data_type: DataType::Struct(members.into()), nullable: false, ..entries };
    let map = DataType::Map(Arc::new(ArrowField::new("f5", entries.data_type.clone(), false)), false);
    let got = read(&file, &field(6, map, vec![entries]), &[0..4]).unwrap();
    let got = got.as_map();
    assert_eq!((0..4).map(|row| got.is_valid(row)).collect::<Vec<_>>(), [true, true, false, true]);
    assert_eq!(got.value_offsets(), &[0, 2, 2, 2, 3]);
    assert_eq!(ints(got.keys()), vec![Some(1), Some(2), Some(3)]);
    assert_eq!(ints(got.values()), vec![Some(10), None, Some(30)]);
}

// L16
#[test]
fn full_zip_lists_below_nullable_structs_are_read_where_lancedb_is_wrong() {
    // {[1, 2]}, null, {[]}, {null}, {[3]}: null list 1, empty list 2, null struct 3
    let entries: [(u16, u16, Option<i32>); 6] =
        [(1, 0, Some(1)), (0, 0, Some(2)), (1, 3, None), (1, 2, None), (1, 1, None), (1, 0, Some(3))];
    let (mut data, mut index) = (Vec::new(), Vec::new());
    for (rep, def, value) in entries {
        if rep == 1 {
            index.push(data.len() as u64);
        }
        data.push((rep << 2 | def) as u8);
        data.extend(value.map(i32::to_le_bytes).iter().flatten());
    }
    index.push(data.len() as u64);
    let layout = FullZipLayout {
        bits_rep: 1,
        bits_def: 2,
        width: Some(Width::BitsPerValue(32)),
        num_items: 6,
        num_visible_items: 3,
        value_compression: flat(32),
        layers: layers(&[I, LNE, IN]),
    };
    let file = FileBuilder::default().page(0, 5, Layout::FullZip(layout), &[data, u64s(&index)]).finish();
    let got = read(&file, &struct_of(2, vec![list_of(DataType::Int32)]), &[0..5]).unwrap();
    let got = got.as_struct();
    assert_eq!((0..5).map(|row| got.is_valid(row)).collect::<Vec<_>>(), [true, false, true, true, true]);
    assert_eq!(int_lists(got.column(0)), vec![some(&[1, 2]), None, some(&[]), None, some(&[3])]);
}

// L16
#[test]
fn plain_list_layers_count_where_lancedb_forgets_them() {
    // Lists of nullable structs of lists of lists: empty outer list 2, null struct 1.
    // [{[[1], [2, 3]]}, null], [], [{[[4]]}]
    let rep = [3, 1, 0, 2, 3, 3];
    let def = [0, 0, 0, 1, 2, 0];
    let kinds = [I, L, L, IN, LE];
    let file = list_page(FileBuilder::default(), &kinds, &rep, &def, &[1, 2, 3, 4]).finish();
    let inner = list_of(DataType::Int32);
    let wrap = |id, item: Field| {
        let arrow = Arc::new(ArrowField::new(&item.name, item.data_type.clone(), true));
        field(id, DataType::List(arrow), vec![item])
    };
    let outer = wrap(4, struct_of(3, vec![wrap(2, inner)]));
    let got = read(&file, &outer, &[0..3]).unwrap();
    let got = got.as_list::<i32>();
    assert_eq!(got.value_offsets(), &[0, 2, 2, 3]);
    let structs = got.values().as_struct();
    assert_eq!((0..3).map(|at| structs.is_valid(at)).collect::<Vec<_>>(), [true, false, true]);
    let middle = structs.column(0).as_list::<i32>();
    assert_eq!((middle.value_offsets(), middle.is_valid(1)), (&[0, 2, 2, 3][..], false));
    assert_eq!(int_lists(middle.values()), vec![some(&[1]), some(&[2, 3]), some(&[4])]);
}

// L17
#[test]
fn members_of_a_struct_have_pages_of_their_own() {
    let builder = ints_page(ints_page(FileBuilder::default(), 0, &[1, 2]), 0, &[3, 4]);
    let file = ints_page(ints_page(builder, 1, &[10]), 1, &[20, 30, 40]);
    // The layers of a member say that there is a struct.
    let mut file = file;
    for page in file.columns.iter_mut().flatten() {
        let rows = page.length;
        let layout = Layout::MiniBlock(mini_block(&[I, I], flat(32), rows));
        page.encoding = Some(any(PAGE_LAYOUT_URL, PageLayout { layout: Some(layout) }.encode_to_vec()));
    }
    let members = vec![leaf(DataType::Int32), field(1, DataType::Int32, vec![])];
    let got = read(&file.finish(), &struct_of(2, members), &[0..2, 3..4]).unwrap();
    let got = got.as_struct();
    assert_eq!(ints(got.column(0)), vec![Some(1), Some(2), Some(4)]);
    assert_eq!(ints(got.column(1)), vec![Some(10), Some(20), Some(40)]);
}
