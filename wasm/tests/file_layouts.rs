//! Data files made byte by byte: forms that a writer rarely or never makes, and what reading them costs.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod one_file_store;

use std::ops::Range;
use std::sync::Arc;

use RepDefLayer::{
    AllValidItem as I, AllValidList as L, NullAndEmptyList as LNE, NullableItem as IN, NullableList as LN,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field as ArrowField};
use lancelet::error::{Error, ErrorCode};
use lancelet::format::proto::compressive_encoding::Compression;
use lancelet::format::proto::full_zip_layout::Width;
use lancelet::format::proto::page_layout::Layout;
use lancelet::format::proto::{
    Any, BlobLayout, COLUMN_ENCODING_URL, ColumnMetadata, CompressiveEncoding, ConstantLayout, DirectEncoding,
    Encoding, FileDescriptor, FixedSizeList, Flat, FullZipLayout, MiniBlockLayout, PAGE_LAYOUT_URL, Page, PageLayout,
    RepDefLayer, Variable,
};
use lancelet::format::table::{Field, FieldId};
use one_file_store::{OneFileStore, block_on};
use prost::Message;

// ---- a file from layouts and buffers

#[derive(Default)]
struct FileBuilder {
    /// Bytes of the file that are not in `bytes`, before them.
    base: u64,
    bytes: Vec<u8>,
    columns: Vec<Vec<Page>>,
}

impl FileBuilder {
    fn page(mut self, column: usize, rows: u64, layout: Layout, buffers: &[Vec<u8>]) -> FileBuilder {
        let mut places = Vec::new();
        for buffer in buffers {
            self.bytes.resize(self.bytes.len().next_multiple_of(64), 0x48);
            places.push((self.base + self.bytes.len() as u64, buffer.len() as u64));
            self.bytes.extend_from_slice(buffer);
        }
        self.page_at(column, rows, layout, &places)
    }

    fn page_at(mut self, column: usize, rows: u64, layout: Layout, places: &[(u64, u64)]) -> FileBuilder {
        self.columns.resize(self.columns.len().max(column + 1), Vec::new());
        self.columns[column].push(Page {
            buffer_offsets: places.iter().map(|place| place.0).collect(),
            buffer_sizes: places.iter().map(|place| place.1).collect(),
            length: rows,
            encoding: Some(any(PAGE_LAYOUT_URL, PageLayout { layout: Some(layout) }.encode_to_vec())),
            priority: 0,
        });
        self
    }

    fn finish_bytes(mut self) -> Vec<u8> {
        let rows = self.columns.first().map_or(0, |pages| pages.iter().map(|page| page.length).sum());
        let mut table = Vec::new();
        let mut put = |bytes: &mut Vec<u8>, part: Vec<u8>| {
            table.extend((self.base + bytes.len() as u64).to_le_bytes());
            table.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        };
        let columns = self.columns.len() as u32;
        let start = self.base + self.bytes.len() as u64;
        for pages in self.columns {
            let encoding = Some(any(COLUMN_ENCODING_URL, vec![0x0a, 0]));
            put(&mut self.bytes, ColumnMetadata { encoding, pages, ..Default::default() }.encode_to_vec());
        }
        put(&mut self.bytes, FileDescriptor { schema: None, length: rows }.encode_to_vec());
        let tables = self.base + self.bytes.len() as u64;
        self.bytes.extend(table);
        for position in [start, tables, tables + u64::from(columns) * 16] {
            self.bytes.extend(position.to_le_bytes());
        }
        for count in [1, columns] {
            self.bytes.extend(count.to_le_bytes());
        }
        self.bytes.extend([2, 0, 2, 0]);
        self.bytes.extend(b"LANC");
        self.bytes
    }

    fn finish(self) -> OneFileStore {
        OneFileStore::new(self.finish_bytes())
    }
}

fn any(url: &str, value: Vec<u8>) -> Encoding {
    let any = Any { type_url: url.to_owned(), value: value.into() };
    Encoding { direct: Some(DirectEncoding { encoding: any.encode_to_vec().into() }) }
}

fn flat(bits: u64) -> Option<CompressiveEncoding> {
    Some(CompressiveEncoding { compression: Some(Compression::Flat(Flat { bits_per_value: bits, data: None })) })
}

fn variable(bits: u64) -> Option<CompressiveEncoding> {
    let variable = Variable { offsets: flat(bits).map(Box::new), values: None };
    Some(CompressiveEncoding { compression: Some(Compression::Variable(Box::new(variable))) })
}

fn layers(layers: &[RepDefLayer]) -> Vec<i32> {
    layers.iter().map(|layer| *layer as i32).collect()
}

fn mini_block(kinds: &[RepDefLayer], value: Option<CompressiveEncoding>, items: u64) -> MiniBlockLayout {
    let has_list = kinds.iter().any(|kind| matches!(kind, L | LN | LNE));
    MiniBlockLayout {
        rep_compression: if has_list { flat(16) } else { None },
        def_compression: if kinds.iter().any(|kind| matches!(kind, IN | LN | LNE)) { flat(16) } else { None },
        value_compression: value,
        layers: layers(kinds),
        num_buffers: 1,
        repetition_index_depth: u32::from(has_list),
        num_items: items,
        has_large_chunk: true,
        ..Default::default()
    }
}

fn le<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|value| bytes(*value)).collect()
}

fn i32s(values: &[i32]) -> Vec<u8> {
    le(values, i32::to_le_bytes)
}

fn u16s(values: &[u16]) -> Vec<u8> {
    le(values, u16::to_le_bytes)
}

fn u64s(values: &[u64]) -> Vec<u8> {
    le(values, u64::to_le_bytes)
}

/// A chunk of a page with large chunks and one value buffer.
fn chunk(rep: Option<&[u16]>, def: Option<&[u16]>, values: &[u8]) -> Vec<u8> {
    let mut bytes = u16s(&[rep.or(def).map_or(0, |levels| levels.len() as u16)]);
    rep.iter().chain(def.iter()).for_each(|levels| bytes.extend((levels.len() as u16 * 2).to_le_bytes()));
    bytes.extend((values.len() as u32).to_le_bytes());
    let pad = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(8), 0xfe);
    pad(&mut bytes);
    for part in rep.iter().chain(def.iter()).map(|levels| u16s(levels)).chain([values.to_vec()]) {
        bytes.extend(part);
        pad(&mut bytes);
    }
    bytes
}

/// The words of chunks, given log2 of the values of each.
fn words(chunks: &[(u32, &Vec<u8>)]) -> Vec<u8> {
    let word = |(log, chunk): &(u32, &Vec<u8>)| (chunk.len() as u32 / 8 - 1) << 4 | log;
    chunks.iter().flat_map(|chunk| word(chunk).to_le_bytes()).collect()
}

// ---- reading

fn field(id: i32, data_type: DataType, children: Vec<Field>) -> Field {
    let name = format!("f{id}");
    Field {
        id: FieldId(id),
        name,
        data_type,
        nullable: true,
        metadata: Default::default(),
        children,
        primary_key_position: 0,
    }
}

fn leaf(data_type: DataType) -> Field {
    field(0, data_type, Vec::new())
}

fn list_of(data_type: DataType) -> Field {
    let item = Arc::new(ArrowField::new("item", data_type.clone(), true));
    field(1, DataType::List(item), vec![leaf(data_type)])
}

fn read(file: &OneFileStore, field: &Field, rows: &[Range<u64>]) -> lancelet::Result<ArrayRef> {
    block_on(async {
        let reader = file.open().await?;
        let arrays = reader.read(&[field], &|id| u32::try_from(id.0).ok().filter(|id| *id < 9), rows).await?;
        Ok(arrays[0].clone())
    })
}

fn ints(array: &dyn Array) -> Vec<Option<i32>> {
    array.as_primitive::<Int32Type>().iter().collect()
}

fn int_lists(array: &dyn Array) -> Vec<Option<Vec<Option<i32>>>> {
    array.as_list::<i32>().iter().map(|list| list.map(|list| ints(&list))).collect()
}

fn strings(array: &dyn Array) -> Vec<Option<String>> {
    array.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

fn texts(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|text| Some((*text).to_owned())).collect()
}

fn corrupt(result: lancelet::Result<ArrayRef>) -> String {
    match result {
        Err(Error::Corrupt { path, reason, .. }) => {
            assert_eq!(path, "data/file.lance");
            reason
        }
        other => panic!("{other:?}"),
    }
}

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

#[test]
fn an_empty_struct_has_valid_rows_although_its_page_looks_null() {
    let layout = ConstantLayout { layers: layers(&[IN]), ..Default::default() };
    let file = FileBuilder::default().page(0, 3, Layout::Constant(layout), &[]).finish();
    let got = read(&file, &leaf(DataType::Struct(Default::default())), &[0..2]).unwrap();
    assert_eq!((got.len(), got.null_count()), (2, 0));
    let nothing = read(&file, &leaf(DataType::Null), &[0..3]).unwrap();
    assert_eq!((nothing.len(), nothing.data_type()), (3, &DataType::Null));
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

#[test]
fn columns_without_pages_and_files_without_columns_have_no_rows() {
    let empty = FileBuilder { columns: vec![Vec::new()], ..Default::default() }.finish();
    assert_eq!(read(&empty, &leaf(DataType::Int32), &[]).unwrap().len(), 0);
    assert_eq!(read(&empty, &leaf(DataType::Int32), &[0..0]).unwrap().len(), 0);
    assert_eq!(read(&empty, &leaf(DataType::Int32), &[0..1]).unwrap_err().code(), ErrorCode::InvalidInput);
    assert_eq!(block_on(FileBuilder::default().finish().open()).unwrap().row_count(), 0);
}

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

#[test]
fn what_is_not_offered_is_named() {
    let blob = Layout::Blob(BlobLayout { inner_layout: None, layers: layers(&[I]) });
    let file = FileBuilder::default().page(0, 1, blob, &[]).finish();
    let refused = |field: &Field| read(&file, field, &[0..1]).unwrap_err().to_string();
    assert!(refused(&leaf(DataType::LargeBinary)).contains("a blob page without a layout"));
    let view = leaf(DataType::Utf8View);
    assert!(refused(&view).contains("type Utf8View (column \"f0\")"));
}

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

// ---- what reading costs

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
