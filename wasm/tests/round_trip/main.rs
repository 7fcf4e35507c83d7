//! What a data file was given is what it gives back: random schemas, slices, nulls, garbage under nulls, every version.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod arbitrary;
#[path = "../one_file_store/mod.rs"]
mod one_file_store;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use arbitrary::{Shape, batch, field, is_refused, shape, without_null_structs};
use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int8Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, UInt8Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use async_trait::async_trait;
use bytes::Bytes;
use lancelet::error::{Error, Result};
use lancelet::format::file::column::Column;
use lancelet::format::file::{FileVersion, FileWriter};
use lancelet::format::table::{FieldId, Schema};
use lancelet::store::ObjectWriter;
use one_file_store::random::Random;
use one_file_store::{OneFileStore, block_on};
use proptest::prelude::*;

/// An object whose bytes a test looks at.
#[derive(Clone, Default)]
struct Sink(Rc<RefCell<Vec<u8>>>);

#[async_trait(?Send)]
impl ObjectWriter for Sink {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.0.borrow_mut().extend_from_slice(&bytes);
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<u64> {
        Ok(self.0.borrow().len() as u64)
    }

    async fn abort(self: Box<Self>) -> Result<()> {
        self.0.borrow_mut().clear();
        Ok(())
    }
}

fn write(batches: &[RecordBatch], version: FileVersion) -> Result<Vec<u8>> {
    let sink = Sink::default();
    let schema = Schema::from_arrow(&batches[0].schema())?;
    let mut writer = FileWriter::new(Box::new(sink.clone()), &schema, version)?;
    for batch in batches {
        block_on(writer.write(batch))?;
    }
    let summary = block_on(writer.finish())?;
    let bytes = sink.0.take();
    assert_eq!(summary.row_count, batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>());
    assert_eq!(summary.size_bytes, bytes.len() as u64);
    assert_eq!(summary.fields, column_ids(&schema, version));
    assert_eq!(summary.column_indices, (0..summary.fields.len() as i32).collect::<Vec<_>>());
    Ok(bytes)
}

/// The fields of the columns: leaves, in 2.0 parents too.
fn column_ids(schema: &Schema, version: FileVersion) -> Vec<FieldId> {
    let fields = if version == FileVersion::V2_0 { schema.all_fields() } else { schema.leaves() };
    fields.iter().map(|field| field.id).collect()
}

fn read(bytes: Vec<u8>, schema: &ArrowSchema, rows: std::ops::Range<u64>) -> Vec<ArrayRef> {
    let schema = Schema::from_arrow(schema).unwrap();
    let reader = block_on(OneFileStore::new(bytes).open()).unwrap();
    let columns = column_ids(&schema, reader.version());
    let column_of = |id| columns.iter().position(|column| *column == id).map(|column| column as u32);
    let fields: Vec<_> = schema.fields.iter().collect();
    block_on(reader.read(&fields, &column_of, &[rows])).unwrap()
}

/// Values are the same, whatever lies under nulls and whatever items are called.
fn same(a: &dyn Array, b: &dyn Array) -> bool {
    let rows = |list: &ArrayRef| list.len();
    if !a.data_type().is_nested() && a.to_data() == b.to_data() {
        return true;
    }
    let (a_nulls, b_nulls) = (a.logical_nulls(), b.logical_nulls());
    let is_null = |nulls: &Option<NullBuffer>, row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    a.len() == b.len()
        && (0..a.len()).all(|row| {
            if a.data_type() == &DataType::Null || is_null(&a_nulls, row) || is_null(&b_nulls, row) {
                return a.data_type() == b.data_type() && is_null(&a_nulls, row) == is_null(&b_nulls, row);
            }
            let pair = match (a.data_type(), b.data_type()) {
                (DataType::List(_), DataType::List(_)) => {
                    (a.as_list::<i32>().value(row), b.as_list::<i32>().value(row))
                }
                (DataType::LargeList(_), DataType::LargeList(_)) => {
                    (a.as_list::<i64>().value(row), b.as_list::<i64>().value(row))
                }
                (DataType::FixedSizeList(_, _), DataType::FixedSizeList(_, _)) => {
                    (a.as_fixed_size_list().value(row), b.as_fixed_size_list().value(row))
                }
                (DataType::Dictionary(_, _), DataType::Dictionary(_, _)) => {
                    let value = |array: &dyn Array| {
                        let array = array.as_any_dictionary();
                        array.values().slice(array.normalized_keys()[row], 1)
                    };
                    return value(a).to_data() == value(b).to_data();
                }
                (DataType::Map(_, _), DataType::Map(_, _)) => {
                    let entries = |array: &dyn Array| Arc::new(array.as_map().value(row)) as ArrayRef;
                    (entries(a), entries(b))
                }
                (DataType::Struct(_), DataType::Struct(_)) => {
                    let (a, b) = (a.as_struct(), b.as_struct());
                    return a.num_columns() == b.num_columns()
                        && a.columns().iter().zip(b.columns()).all(|(a, b)| same(&a.slice(row, 1), &b.slice(row, 1)));
                }
                _ => return a.slice(row, 1).to_data() == b.slice(row, 1).to_data(),
            };
            rows(&pair.0) == rows(&pair.1) && same(&pair.0, &pair.1)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    // W1
    #[test]
    fn a_file_gives_back_what_it_was_given(
        fields in prop::collection::vec(field(), 1..4),
        shape in shape(),
        lens in prop::collection::vec(prop::sample::select(vec![0_usize, 1, 2, 9, 300, 1500]), 1..4),
        version in prop::sample::select(vec![FileVersion::V2_0, FileVersion::V2_1, FileVersion::V2_2]),
        seed in any::<u64>(),
    ) {
        let is_2_0 = version == FileVersion::V2_0;
        let fields = fields.into_iter().map(|field| if is_2_0 { without_null_structs(&field) } else { field });
        let fields: Vec<_> = fields.enumerate().map(|(i, field)| field.with_name(format!("f{i}"))).collect();
        let schema = Arc::new(ArrowSchema::new(fields));
        let mut random = Random(seed);
        let batches: Vec<_> = lens.iter().map(|len| batch(&mut random, &schema, *len, shape)).collect();
        let bytes = match write(&batches, version) {
            // Wide values below nullable structs outside of lists have no layout in 2.1.
            Err(Error::NotSupported { .. })
                if version < FileVersion::V2_2 || schema.fields().iter().any(|field| is_refused(field.data_type(), false, false, false)) =>
            {
                return Ok(());
            }
            written => written.unwrap(),
        };
        let row_count = lens.iter().sum::<usize>();
        let read_columns = read(bytes, &schema, 0..row_count as u64);
        for (index, column) in read_columns.iter().enumerate() {
            let mut row = 0;
            for batch in &batches {
                prop_assert!(same(batch.column(index), &column.slice(row, batch.num_rows())), "column {index}, row {row}");
                row += batch.num_rows();
            }
            prop_assert_eq!(row, column.len());
        }
    }
}

// L3
#[test]
fn members_that_are_never_null_come_back_below_a_null_struct() {
    let item = Arc::new(Field::new("item", DataType::Int32, false));
    let ends = OffsetBuffer::new(vec![0, 2, 2, 3].into());
    let list = ListArray::new(item, ends, Arc::new(Int32Array::from(vec![1, 2, 3])), None);
    let number = Int32Array::from(vec![7, 8, 9]);
    let member = |name: &str, of: &dyn Array| Field::new(name, of.data_type().clone(), false);
    let inner_fields = vec![member("number", &number), member("list", &list)];
    let inner = StructArray::new(inner_fields.into(), vec![Arc::new(number), Arc::new(list)], None);
    let nulls = NullBuffer::from(vec![true, false, true]);
    let outer = StructArray::new(vec![member("inner", &inner)].into(), vec![Arc::new(inner)], Some(nulls));
    let schema = Arc::new(ArrowSchema::new(vec![Field::new("outer", outer.data_type().clone(), true)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(outer)]).unwrap();
    for version in [FileVersion::V2_1, FileVersion::V2_2] {
        let bytes = write(std::slice::from_ref(&batch), version).unwrap();
        assert!(same(batch.column(0), &read(bytes, &schema, 0..3)[0]), "{version:?}");
    }
}

// W8
#[test]
fn pages_of_columns_end_where_each_is_full_and_rows_still_meet() {
    let schema = Arc::new(ArrowSchema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("text", DataType::Utf8, true),
    ]));
    let count = 300_000_usize;
    let ids = Int64Array::from_iter_values((0..count as i64).map(|id| id * 0x1234_5678_9abc));
    let texts = StringArray::from_iter((0..count).map(|id| (id % 7 != 0).then(|| format!("text of the row {id:040}"))));
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(ids), Arc::new(texts)]).unwrap();
    for version in [FileVersion::V2_0, FileVersion::V2_2] {
        let bytes = write(std::slice::from_ref(&batch), version).unwrap();
        // 17 MB of text are three pages, the ids are one.
        for rows in [0..10_usize, 110_000..150_000, 299_990..count] {
            let columns = read(bytes.clone(), &schema, rows.start as u64..rows.end as u64);
            assert!(same(&batch.column(0).slice(rows.start, rows.len()), &columns[0]));
            assert!(same(&batch.column(1).slice(rows.start, rows.len()), &columns[1]));
        }
    }
}

#[test]
fn a_null_where_none_may_be_names_column_and_row_of_the_file() {
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let loose = ArrowSchema::new(vec![Field::new("l", DataType::List(item.clone()), true)]);
    let strict_item = Arc::new(Field::new("item", DataType::Int32, false));
    let strict =
        Schema::from_arrow(&ArrowSchema::new(vec![Field::new("l", DataType::List(strict_item), true)])).unwrap();
    let values = Arc::new(Int32Array::from(vec![Some(1), Some(2), None]));
    let list = |ends: Vec<i32>| {
        let array = ListArray::new(item.clone(), OffsetBuffer::new(ends.into()), values.clone(), None);
        RecordBatch::try_new(Arc::new(loose.clone()), vec![Arc::new(array)]).unwrap()
    };
    for version in [FileVersion::V2_0, FileVersion::V2_2] {
        let mut writer = FileWriter::new(Box::new(Sink::default()), &strict, version).unwrap();
        block_on(writer.write(&list(vec![0, 1, 2]))).unwrap();
        let error = block_on(writer.write(&list(vec![0, 0, 1, 3]))).unwrap_err();
        assert_eq!(error, Error::schema("column \"l.item\" takes no nulls, but row 4 has one"));
    }
}

#[test]
fn a_type_without_a_place_is_refused_by_name() {
    let refused = |field: Field, version| {
        let schema = Schema::from_arrow(&ArrowSchema::new(vec![field])).unwrap();
        FileWriter::new(Box::new(Sink::default()), &schema, version).err()
    };
    let refused_at_once =
        |field: Field| Schema::from_arrow(&ArrowSchema::new(vec![field])).err().map(|error| error.to_string());
    let structs = |member: DataType| DataType::Struct(vec![Field::new("m", member, true)].into());
    let list = |item: DataType| DataType::List(Arc::new(Field::new("item", item, true)));
    let vector = |item: DataType| DataType::FixedSizeList(Arc::new(Field::new("item", item, true)), 2);
    let not_supported = |feature: &str| Some(Error::not_supported(feature.to_owned()));

    let lists_inside = refused_at_once(Field::new("c", structs(vector(structs(list(DataType::Int8)))), true));
    assert!(lists_inside.is_some_and(|message| message.contains("\"c.m.item.m\"")));
    let lists_around = refused_at_once(Field::new("c", list(vector(structs(DataType::Int8))), true));
    assert!(lists_around.is_some_and(|message| message.contains("\"c.item\"")));
    let empty = refused_at_once(Field::new("c", list(DataType::Struct(Vec::<Field>::new().into())), true));
    assert!(empty.is_some_and(|message| message.contains("\"c.item\"")));
    let in_list = "that holds a fixed-size list of structs in a list or in a file of version 2.1";
    assert_eq!(
        refused(Field::new("c", vector(structs(DataType::Int8)), true), FileVersion::V2_1),
        not_supported(&format!("writing column \"c\" {in_list}"))
    );
    let map = DataType::Map(
        Arc::new(Field::new(
            "entries",
            DataType::Struct(
                vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Int8, true)].into(),
            ),
            false,
        )),
        false,
    );
    assert_eq!(
        refused(Field::new("c", map, true), FileVersion::V2_1),
        not_supported("writing column \"c\" of type map in a data file of version 2.1")
    );
    let with = |field: Field, key: &str| field.with_metadata(HashMap::from([(key.to_owned(), "true".to_owned())]));
    assert_eq!(
        refused(with(Field::new("c", DataType::LargeBinary, true), "lance-encoding:blob"), FileVersion::V2_2),
        not_supported("writing column \"c\" with blob storage")
    );
    assert_eq!(
        refused(with(Field::new("c", structs(DataType::Utf8), true), "lance-encoding:packed"), FileVersion::V2_1),
        not_supported("writing column \"c\" with packed storage of such members")
    );
}

#[test]
fn structs_of_no_fields_are_written_without_nulls() {
    let empty = DataType::Struct(Vec::<Field>::new().into());
    let members = vec![Field::new("e", empty.clone(), true), Field::new("i", DataType::Int32, true)];
    let schema = Arc::new(ArrowSchema::new(vec![
        Field::new("e", empty, true),
        Field::new("s", DataType::Struct(members.clone().into()), true),
    ]));
    let rows = |nulls: Option<NullBuffer>| {
        let inner: ArrayRef = Arc::new(StructArray::new_empty_fields(3, None));
        let members = StructArray::new(
            members.clone().into(),
            vec![inner, Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef],
            None,
        );
        let empty: ArrayRef = Arc::new(StructArray::new_empty_fields(3, nulls));
        RecordBatch::try_new(schema.clone(), vec![empty, Arc::new(members)]).unwrap()
    };
    for version in [FileVersion::V2_1, FileVersion::V2_2] {
        let batch = rows(None);
        let columns = read(write(std::slice::from_ref(&batch), version).unwrap(), &schema, 0..3);
        assert!(columns.iter().zip(batch.columns()).all(|(read, written)| same(read, written)));
        let error = write(&[rows(Some(vec![true, false, true].into()))], version).unwrap_err();
        assert_eq!(error, Error::not_supported("nulls in column \"e\", a struct of no fields"));
    }
}

// W5
#[test]
fn dictionary_values_that_are_null_unused_or_double_leave_no_trace() {
    let data_type = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let schema = Arc::new(ArrowSchema::new(vec![Field::new("d", data_type, true)]));
    let dictionary = |keys: Vec<Option<i8>>, values: Vec<Option<&str>>| {
        let array = DictionaryArray::new(Int8Array::from(keys), Arc::new(StringArray::from(values)));
        RecordBatch::try_new(schema.clone(), vec![Arc::new(array)]).unwrap()
    };
    let first = dictionary(
        vec![Some(9), Some(0), Some(1), Some(2), Some(3), None, Some(0), Some(9)],
        vec![Some("a"), None, Some("b"), Some("a"), Some("u"), Some("u"), None, Some("u"), None, Some("z")],
    );
    // Another dictionary, and keys without a value.
    let second = dictionary(vec![Some(1), Some(0)], vec![Some("b"), Some("c")]);
    let none = dictionary(vec![None, None], vec![]);
    let bytes = write(&[first.slice(1, 6), second, none], FileVersion::V2_2).unwrap();
    let read = read(bytes, &schema, 0..10);
    let read = read[0].as_any_dictionary();
    let values: Vec<_> = read.values().as_string::<i32>().iter().collect();
    assert_eq!(values, [Some("a"), Some("b"), Some("c")]);
    let keys: Vec<_> = read.keys().as_primitive::<Int8Type>().iter().collect();
    assert_eq!(keys, [Some(0), None, Some(1), Some(0), None, Some(0), Some(2), Some(1), None, None]);
}

// W5
#[test]
fn pages_of_a_dictionary_column_end_before_their_keys_do() {
    let data_type = DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Int64));
    let schema = Arc::new(ArrowSchema::new(vec![Field::new("d", data_type, true)]));
    let batches: Vec<_> = (0..4)
        .map(|batch| {
            let values = Int64Array::from_iter_values((0..200).map(|value| batch * 1000 + value));
            let keys = UInt8Array::from_iter_values((0..200).map(|key| key as u8));
            let array: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(values)));
            RecordBatch::try_new(schema.clone(), vec![array]).unwrap()
        })
        .collect();
    let bytes = write(&batches, FileVersion::V2_2).unwrap();
    for (batch, start) in batches.iter().zip([0, 200, 400, 600]) {
        let read = read(bytes.clone(), &schema, start..start + 200);
        assert!(same(batch.column(0), &read[0]));
    }
}

// W6
#[test]
fn every_buffer_begins_at_a_multiple_of_64() {
    let schema = Arc::new(ArrowSchema::new(vec![
        Field::new("i", DataType::Int32, true),
        Field::new("l", DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))), true),
    ]));
    let shape = Shape { null_percent: 10, empty_percent: 10, max_list: 3, max_text: 20, value_bits: 31 };
    let rows = batch(&mut Random(5), &schema, 5000, shape);
    for version in [FileVersion::V2_1, FileVersion::V2_2] {
        let bytes = Bytes::from(write(std::slice::from_ref(&rows), version).unwrap());
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let (columns, globals) = (number(bytes.len() - 32), number(bytes.len() - 24));
        assert_eq!(number(globals) % 64, 0);
        let mut buffers = 0;
        for column in 0..2 {
            let start = number(columns + column * 16);
            let metadata = bytes.slice(start..start + number(columns + column * 16 + 8));
            for page in Column::decode(metadata, bytes.len() as u64).unwrap().pages {
                buffers += page.buffers.len();
                assert!(page.buffers.iter().all(|buffer| buffer.start % 64 == 0));
            }
        }
        assert!(buffers >= 5);
    }
}
