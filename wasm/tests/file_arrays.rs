//! Data files of 2.0 made page by page: forms that a writer rarely or never makes, and what reading them costs.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod one_file_store;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ListArray, StringArray};
use arrow_schema::{DataType, Field as ArrowField, Fields};
use lancelet::error::{Error, ErrorCode, Result};
use lancelet::format::proto::array_encodings::{
    ArrayEncoding, Binary, Bitpacked, BitpackedForNonNeg, Buffer, Dictionary, FixedSizeBinary, FixedSizeList, Flat,
    List, NoNulls, Nullable, PackedStruct, SomeNulls, array_encoding::Kind, nullable::Nulls,
};
use lancelet::format::proto::{
    ARRAY_ENCODING_URL, Any, COLUMN_ENCODING_URL, ColumnMetadata, DirectEncoding, Encoding, FileDescriptor, Opaque,
    Page,
};
use lancelet::format::table::{Field, FieldId};
use one_file_store::{OneFileStore, block_on};
use prost::Message;

// ---- a file from encodings and buffers

#[derive(Default)]
struct FileBuilder {
    bytes: Vec<u8>,
    columns: Vec<Vec<Page>>,
}

impl FileBuilder {
    fn page(mut self, column: usize, rows: u64, encoding: ArrayEncoding, buffers: &[Vec<u8>]) -> FileBuilder {
        let (mut buffer_offsets, mut buffer_sizes) = (Vec::new(), Vec::new());
        for buffer in buffers {
            buffer_offsets.push(self.bytes.len() as u64);
            buffer_sizes.push(buffer.len() as u64);
            self.bytes.extend_from_slice(buffer);
        }
        self.columns.resize(self.columns.len().max(column + 1), Vec::new());
        let encoding = Some(any(ARRAY_ENCODING_URL, encoding.encode_to_vec()));
        self.columns[column].push(Page { buffer_offsets, buffer_sizes, length: rows, encoding, priority: 0 });
        self
    }

    fn finish_as(mut self, version: [u8; 4]) -> OneFileStore {
        let rows = self.columns.first().map_or(0, |pages| pages.iter().map(|page| page.length).sum());
        let mut table = Vec::new();
        let mut put = |bytes: &mut Vec<u8>, part: Vec<u8>| {
            table.extend((bytes.len() as u64).to_le_bytes());
            table.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        };
        let columns = self.columns.len() as u32;
        let start = self.bytes.len() as u64;
        for pages in self.columns {
            let encoding = Some(any(COLUMN_ENCODING_URL, vec![0x0a, 0]));
            put(&mut self.bytes, ColumnMetadata { encoding, pages, ..Default::default() }.encode_to_vec());
        }
        put(&mut self.bytes, FileDescriptor { schema: None, length: rows }.encode_to_vec());
        let tables = self.bytes.len() as u64;
        self.bytes.extend(table);
        for position in [start, tables, tables + u64::from(columns) * 16] {
            self.bytes.extend(position.to_le_bytes());
        }
        for count in [1, columns] {
            self.bytes.extend(count.to_le_bytes());
        }
        self.bytes.extend(version);
        self.bytes.extend(b"LANC");
        OneFileStore::new(self.bytes)
    }

    fn finish(self) -> OneFileStore {
        self.finish_as([0, 0, 3, 0])
    }
}

fn any(url: &str, value: Vec<u8>) -> Encoding {
    let any = Any { type_url: url.to_owned(), value: value.into() };
    Encoding { direct: Some(DirectEncoding { encoding: any.encode_to_vec().into() }) }
}

fn describe(kind: Kind) -> ArrayEncoding {
    ArrayEncoding { kind: Some(kind) }
}

fn buffer(index: u32) -> Option<Buffer> {
    Some(Buffer { buffer_index: index, buffer_type: 0 })
}

fn flat(bits_per_value: u64, index: u32) -> ArrayEncoding {
    describe(Kind::Flat(Flat { bits_per_value, buffer: buffer(index), compression: None }))
}

fn nullable(nulls: Nulls) -> ArrayEncoding {
    describe(Kind::Nullable(Box::new(Nullable { nulls: Some(nulls) })))
}

fn no_nulls(values: ArrayEncoding) -> ArrayEncoding {
    nullable(Nulls::No(Box::new(NoNulls { values: Some(Box::new(values)) })))
}

fn some_nulls(validity: u32, values: ArrayEncoding) -> ArrayEncoding {
    let validity = Some(Box::new(flat(1, validity)));
    nullable(Nulls::Some(Box::new(SomeNulls { validity, values: Some(Box::new(values)) })))
}

fn all_nulls() -> ArrayEncoding {
    nullable(Nulls::All(Opaque {}))
}

fn list(null_offset_adjustment: u64, num_items: u64) -> ArrayEncoding {
    let offsets = Some(Box::new(no_nulls(flat(64, 0))));
    describe(Kind::List(Box::new(List { offsets, null_offset_adjustment, num_items })))
}

fn binary(first: u32, null_adjustment: u64) -> ArrayEncoding {
    let indices = Some(Box::new(no_nulls(flat(64, first))));
    describe(Kind::Binary(Box::new(Binary { indices, bytes: Some(Box::new(flat(8, first + 1))), null_adjustment })))
}

fn dictionary(index_bits: u64, num_dictionary_items: u32, null_adjustment: u64) -> ArrayEncoding {
    describe(Kind::Dictionary(Box::new(Dictionary {
        indices: Some(Box::new(no_nulls(flat(index_bits, 0)))),
        items: Some(Box::new(binary(1, null_adjustment))),
        num_dictionary_items,
    })))
}

fn fixed_size_list(dimension: u32, items: ArrayEncoding) -> ArrayEncoding {
    describe(Kind::FixedSizeList(Box::new(FixedSizeList {
        dimension,
        items: Some(Box::new(items)),
        has_validity: false,
    })))
}

fn u64s(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

// ---- reading

/// Fields with ids in pre-order, as in the columns of a file.
fn field(name: &str, data_type: DataType, next: &mut i32) -> Field {
    let id = FieldId(*next);
    *next += 1;
    let children = match &data_type {
        DataType::List(item) | DataType::LargeList(item) => vec![field(item.name(), item.data_type().clone(), next)],
        DataType::Struct(members) => {
            members.iter().map(|member| field(member.name(), member.data_type().clone(), next)).collect()
        }
        _ => Vec::new(),
    };
    Field {
        id,
        name: name.to_owned(),
        data_type,
        nullable: true,
        metadata: Default::default(),
        children,
        primary_key_position: 0,
    }
}

fn read_field(file: &OneFileStore, field: &Field, rows: &[Range<u64>]) -> Result<ArrayRef> {
    block_on(async {
        let reader = file.open().await?;
        let column_of = |id: FieldId| u32::try_from(id.0).ok();
        Ok(reader.read(&[field], &column_of, rows).await?.remove(0))
    })
}

fn read(file: &OneFileStore, data_type: &DataType, rows: &[Range<u64>]) -> Result<ArrayRef> {
    read_field(file, &field("c", data_type.clone(), &mut 0), rows)
}

fn list_of(data_type: DataType) -> DataType {
    DataType::List(Arc::new(ArrowField::new("item", data_type, true)))
}

fn texts(array: &ArrayRef) -> Vec<Option<&str>> {
    array.as_string::<i32>().iter().collect()
}

fn ints(array: &ArrayRef) -> Vec<Option<i32>> {
    array.as_primitive::<Int32Type>().iter().collect()
}

fn lists(array: &ArrayRef) -> Vec<Option<Vec<Option<i32>>>> {
    array.as_list::<i32>().iter().map(|list| list.map(|items| ints(&items))).collect()
}

fn reason(result: Result<ArrayRef>) -> String {
    match result {
        Err(Error::Corrupt { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

// F2
#[test]
fn footers_of_2_0_are_read_and_those_of_0_1_and_2_3_are_refused_by_name() {
    let file = |version| FileBuilder::default().page(0, 2, no_nulls(flat(32, 0)), &[i32s(&[7, 8])]).finish_as(version);
    for version in [[0, 0, 3, 0], [2, 0, 0, 0]] {
        assert_eq!(ints(&read(&file(version), &DataType::Int32, &[0..2]).unwrap()), [Some(7), Some(8)]);
    }
    for (version, name) in [([0, 0, 2, 0], "0.1"), ([2, 0, 3, 0], "2.3"), ([9, 0, 1, 0], "9.1")] {
        let refused = read(&file(version), &DataType::Int32, &[0..2]).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NotSupported);
        assert_eq!(
            refused.to_string(),
            format!("not supported: data file version {name}, this build reads 2.0, 2.1 and 2.2, in data/file.lance")
        );
    }
}

// Z1
#[test]
fn lists_know_their_nulls_by_the_adjustment_and_their_items_by_those_of_the_pages_before() {
    // [1 2] null | [] [3 4 5] | [6] null: items in pages of their own lengths.
    let file = FileBuilder::default()
        .page(0, 2, list(3, 2), &[u64s(&[2, 2 + 3])])
        .page(0, 2, list(4, 3), &[u64s(&[0, 3])])
        .page(0, 2, list(2, 1), &[u64s(&[1, 1 + 2])])
        .page(1, 4, no_nulls(flat(32, 0)), &[i32s(&[1, 2, 3, 4])])
        .page(1, 0, all_nulls(), &[])
        .page(1, 2, no_nulls(flat(32, 0)), &[i32s(&[5, 6])])
        .finish();
    let all = [
        Some(vec![Some(1), Some(2)]),
        None,
        Some(vec![]),
        Some(vec![Some(3), Some(4), Some(5)]),
        Some(vec![Some(6)]),
        None,
    ];
    let data_type = list_of(DataType::Int32);
    for start in 0..6 {
        for end in start..=6 {
            let got = read(&file, &data_type, &[start as u64..end as u64]).unwrap();
            assert_eq!(lists(&got), all[start..end], "{start}..{end}");
        }
    }
    let got = read(&file, &data_type, &[0..1, 3..4, 5..6]).unwrap();
    assert_eq!(lists(&got), [all[0].clone(), all[3].clone(), None]);
}

// Z2
#[test]
fn in_a_dictionary_of_strings_index_0_is_null() {
    let encoding = || dictionary(8, 2, 100);
    let buffers = |indices: &[u8]| [indices.to_vec(), u64s(&[1, 3]), b"abb".to_vec()];
    let file = FileBuilder::default().page(0, 5, encoding(), &buffers(&[1, 0, 2, 2, 1])).finish();
    let got = read(&file, &DataType::Utf8, &[0..2, 3..5]).unwrap();
    assert_eq!(texts(&got), [Some("a"), None, Some("bb"), Some("a")]);
    let file = FileBuilder::default().page(0, 1, encoding(), &buffers(&[3])).finish();
    assert!(reason(read(&file, &DataType::Utf8, &[0..1])).starts_with("column \"c\": page 0: index 3 into"));
}

#[test]
fn a_dictionary_column_counts_from_0_and_is_null_where_its_value_is() {
    // Values "x", null, "y", "x": two of them are one.
    let buffers = [vec![3, 0, 1, 0, 2, 0, 0, 0], u64s(&[1, 1 + 4, 2, 3]), b"xyx".to_vec()];
    let file = FileBuilder::default().page(0, 4, dictionary(16, 4, 4), &buffers).finish();
    let data_type = DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8));
    let got = read(&file, &data_type, &[0..4]).unwrap();
    let keys = got.as_dictionary::<Int16Type>();
    assert_eq!(keys.keys().iter().collect::<Vec<_>>(), [Some(0), None, Some(1), Some(0)]);
    assert_eq!(keys.values().as_string::<i32>(), &StringArray::from(vec!["x", "y"]));
}

// Z3
#[test]
fn a_string_begins_where_the_one_before_ends_and_is_null_from_the_adjustment_on() {
    let bytes = b"onethreefour".to_vec();
    let ends = u64s(&[3, 3 + 13, 8, 8, 12]);
    let file = FileBuilder::default().page(0, 5, binary(0, 13), &[ends, bytes]).finish();
    let all = [Some("one"), None, Some("three"), Some(""), Some("four")];
    for start in 0..5 {
        let got = read(&file, &DataType::Utf8, &[start as u64..5]).unwrap();
        assert_eq!(texts(&got), all[start..]);
    }
    assert_eq!(texts(&read(&file, &DataType::Utf8, &[0..1, 2..3, 4..5]).unwrap()), [all[0], all[2], all[4]]);
}

// Z4
#[test]
fn lists_without_items_have_items_of_one_empty_page_or_of_none() {
    let lists_only = || FileBuilder::default().page(0, 3, list(1, 0), &[u64s(&[0, 1, 0])]);
    let data_type = list_of(DataType::Utf8);
    let nothing = |file: FileBuilder| {
        let got = read(&file.finish(), &data_type, &[0..3]).unwrap();
        let list: &ListArray = got.as_list();
        assert_eq!((list.values().len(), list.null_count(), list.is_null(1)), (0, 1, true));
    };
    nothing(lists_only().page(1, 0, all_nulls(), &[]));
    nothing(lists_only().page(1, 0, binary(0, 0), &[vec![], vec![]]));
    let mut empty_column = lists_only();
    empty_column.columns.push(Vec::new());
    nothing(empty_column);
}

// Z5
#[test]
fn null_rows_and_null_items_of_nested_fixed_size_lists_are_told_apart() {
    let inner = DataType::FixedSizeList(Arc::new(ArrowField::new("item", DataType::Int32, true)), 2);
    let outer = DataType::FixedSizeList(Arc::new(ArrowField::new("item", inner, true)), 2);
    let encoding = some_nulls(0, fixed_size_list(2, some_nulls(1, fixed_size_list(2, some_nulls(2, flat(32, 3))))));
    let values = i32s(&(0..12).collect::<Vec<_>>());
    // Row 1 of 3, list 5 of 6 and item 2 of 12 are null.
    let buffers = [vec![0b101], vec![0b01_1111], vec![0b1111_1011, 0xff], values];
    let file = FileBuilder::default().page(0, 3, encoding, &buffers).finish();
    for rows in [0..3_usize, 1..3, 2..3] {
        let got = read(&file, &outer, &[rows.start as u64..rows.end as u64]).unwrap();
        let list = got.as_fixed_size_list();
        let lists = list.values().as_fixed_size_list();
        let items = lists.values().as_primitive::<Int32Type>();
        for row in rows.clone() {
            let at = row - rows.start;
            assert_eq!(list.is_null(at), row == 1);
            for i in 0..2 {
                assert_eq!(lists.is_null(at * 2 + i), row * 2 + i == 5);
            }
            for i in 0..4 {
                assert_eq!(items.is_null(at * 4 + i), row * 4 + i == 2);
                assert!(items.is_null(at * 4 + i) || items.value(at * 4 + i) == (row * 4 + i) as i32);
            }
        }
    }
}

// Z6
#[test]
fn a_blob_reads_as_its_place_an_empty_one_as_0_and_a_null_one_as_1() {
    let inner = vec![no_nulls(flat(64, 0)), no_nulls(flat(64, 0))];
    let encoding = describe(Kind::PackedStruct(PackedStruct { inner, buffer: buffer(0) }));
    let file = FileBuilder::default().page(0, 3, encoding, &[u64s(&[4096, 5, 0, 0, 1, 0])]).finish();
    let mut blob = field("b", DataType::LargeBinary, &mut 0);
    blob.metadata.insert("lance-encoding:blob".to_owned(), "true".to_owned());
    let got = read_field(&file, &blob.as_read(), &[0..3]).unwrap();
    let member = |name| got.as_struct().column_by_name(name).unwrap().as_primitive::<UInt64Type>().values().to_vec();
    assert_eq!((member("position"), member("size")), (vec![4096, 0, 1], vec![5, 0, 0]));
    assert_eq!(got.null_count(), 0);
}

#[test]
fn a_packed_struct_is_cut_into_its_members() {
    let vector = DataType::FixedSizeList(Arc::new(ArrowField::new("item", DataType::Int8, true)), 3);
    let members = vec![
        ArrowField::new("a", DataType::Int32, true),
        ArrowField::new("v", vector, true),
        ArrowField::new("b", DataType::Int64, true),
    ];
    let inner = vec![no_nulls(flat(32, 0)), no_nulls(fixed_size_list(3, no_nulls(flat(8, 0)))), no_nulls(flat(64, 0))];
    let encoding = describe(Kind::PackedStruct(PackedStruct { inner, buffer: buffer(0) }));
    let rows: Vec<u8> = (0..4_i8)
        .flat_map(|i| {
            let vector = [i as u8, 10, 20];
            [&i32::from(i).to_le_bytes()[..], &vector, &(i64::from(i) - 9).to_le_bytes()].concat()
        })
        .collect();
    let file = FileBuilder::default().page(0, 4, encoding, &[rows]).finish();
    let mut packed = field("p", DataType::Struct(Fields::from(members)), &mut 0);
    packed.metadata.insert("packed".to_owned(), "true".to_owned());
    let got = read_field(&file, &packed, &[1..2, 3..4]).unwrap();
    let got = got.as_struct();
    assert_eq!(got.column(0).as_primitive::<Int32Type>().values(), &[1, 3]);
    assert_eq!(
        got.column(1).as_fixed_size_list().values().as_primitive::<Int8Type>().values(),
        &[1, 10, 20, 3, 10, 20]
    );
    assert_eq!(got.column(2).as_primitive::<Int64Type>().values(), &[-8, -6]);
}

#[test]
fn bit_packed_values_and_strings_of_one_length_are_read() {
    // 3 bits each, signed: 0 1 2 3 -4 -3 -2 -1, twice.
    let stream = [0b1000_1000, 0b1100_0110, 0b1111_1010].repeat(2);
    let packed = |signed| {
        describe(Kind::Bitpacked(Bitpacked {
            compressed_bits_per_value: 3,
            uncompressed_bits_per_value: 32,
            buffer: buffer(0),
            signed,
        }))
    };
    let read_stream = |signed, rows| {
        let file = FileBuilder::default().page(0, 16, no_nulls(packed(signed)), std::slice::from_ref(&stream)).finish();
        ints(&read(&file, &DataType::Int32, &[rows]).unwrap()).into_iter().flatten().collect::<Vec<_>>()
    };
    assert_eq!(read_stream(true, 0..8), [0, 1, 2, 3, -4, -3, -2, -1]);
    assert_eq!(read_stream(false, 5..10), [5, 6, 7, 0, 1]);

    // Blocks of 1024 ones of one bit.
    let packed = describe(Kind::BitpackedForNonNeg(BitpackedForNonNeg {
        compressed_bits_per_value: 1,
        uncompressed_bits_per_value: 32,
        buffer: buffer(0),
    }));
    let file = FileBuilder::default().page(0, 1500, no_nulls(packed), &[vec![0xff; 256]]).finish();
    assert_eq!(ints(&read(&file, &DataType::Int32, &[1020..1030]).unwrap()), [Some(1); 10]);

    let fixed =
        describe(Kind::FixedSizeBinary(Box::new(FixedSizeBinary { bytes: Some(Box::new(flat(8, 0))), byte_width: 2 })));
    let file = FileBuilder::default().page(0, 3, fixed, &[b"aabbcc".to_vec()]).finish();
    assert_eq!(texts(&read(&file, &DataType::Utf8, &[1..3]).unwrap()), [Some("bb"), Some("cc")]);
}

#[test]
fn few_rows_of_large_pages_cost_few_bytes() {
    let rows = 100_000;
    let ends: Vec<u64> = (1..=rows).map(|row| row * 40).collect();
    let file = FileBuilder::default()
        .page(0, rows, binary(0, rows * 40 + 1), &[u64s(&ends), vec![b'x'; rows as usize * 40]])
        .finish();
    let got = block_on(async {
        let reader = file.open().await.unwrap();
        file.reset();
        let text = field("c", DataType::Utf8, &mut 0);
        reader.read(&[&text], &|_| Some(0), &[5..6, 50_000..50_003, 99_999..100_000]).await.unwrap().remove(0)
    });
    assert_eq!(got.len(), 5);
    assert_eq!(file.requests.borrow().len(), 2, "ends, then bytes");
    assert_eq!(file.bytes_read(), 5 * 40 + (2 + 4 + 2) * 8);
}

#[test]
fn claims_that_no_bytes_stand_for_are_corrupt() {
    let ends = |ends: &[u64], adjustment, items| {
        let file = FileBuilder::default()
            .page(0, ends.len() as u64, list(adjustment, items), &[u64s(ends)])
            .page(1, 3, no_nulls(flat(32, 0)), &[i32s(&[1, 2, 3])])
            .finish();
        reason(read(&file, &list_of(DataType::Int32), &[0..ends.len() as u64]))
    };
    assert_eq!(ends(&[2, 1], 4, 3), "column \"c\": page 0: the end 1 after 2, the last is 3");
    assert_eq!(ends(&[4], 5, 3), "column \"c\": page 0: the end 4 after 0, the last is 3");
    assert_eq!(ends(&[9], 20, 9), "column \"c.item\": 3 rows, row 8 is needed");

    // A page of more values than its buffer holds.
    let file = FileBuilder::default().page(0, 1 << 40, no_nulls(flat(32, 0)), &[vec![0; 64]]).finish();
    assert_eq!(
        reason(read(&file, &DataType::Int32, &[0..1])),
        "column \"c\": page 0: 1099511627776 values of 32 bits in 64 bytes"
    );

    // Items that are all null need no bytes, and so could be any number.
    let file = FileBuilder::default()
        .page(0, 1, list((1 << 40) + 1, 1 << 40), &[u64s(&[1 << 40])])
        .page(1, 1 << 40, all_nulls(), &[])
        .finish();
    assert!(reason(read(&file, &list_of(DataType::Int32), &[0..1])).ends_with("bytes of nulls in lists"));
}

#[test]
fn a_tree_that_does_not_fit_its_column_is_corrupt() {
    let numbers = || FileBuilder::default().page(0, 2, no_nulls(flat(32, 0)), &[i32s(&[1, 2])]);
    for data_type in [DataType::Utf8, DataType::Int64, DataType::Boolean, list_of(DataType::Int32)] {
        let error = read(&numbers().page(1, 0, all_nulls(), &[]).finish(), &data_type, &[0..2]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Corrupt, "{data_type}");
    }
    let mut deep = flat(32, 0);
    for _ in 0..20 {
        deep = no_nulls(deep);
    }
    let file = FileBuilder::default().page(0, 1, deep, &[i32s(&[1])]).finish();
    assert!(reason(read(&file, &DataType::Int32, &[0..1])).contains("nested deeper than 16"));
    let file = FileBuilder::default().page(0, 1, describe(Kind::Rle(Opaque {})), &[i32s(&[1])]).finish();
    assert!(matches!(read(&file, &DataType::Int32, &[0..1]), Err(Error::NotSupported { .. })));
}
