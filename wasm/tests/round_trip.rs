//! What a data file was given is what it gives back: random schemas, slices, nulls, garbage under nulls, every version.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

#[path = "one_file_store/mod.rs"]
mod one_file_store;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, FixedSizeListArray,
    Float64Array, Int8Array, Int32Array, Int64Array, LargeListArray, LargeStringArray, ListArray, NullArray,
    RecordBatch, RecordBatchOptions, StringArray, StructArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use async_trait::async_trait;
use bytes::Bytes;
use lancelet::error::{Error, Result};
use lancelet::format::file::{FileVersion, FileWriter};
use lancelet::format::table::{FieldId, Schema};
use lancelet::store::ObjectWriter;
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

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    null_percent: u64,
    empty_percent: u64,
    max_list: u64,
    max_text: u64,
    /// Bits of integers.
    value_bits: u32,
}

/// An array with an offset, unused values before and behind, and values under its nulls.
fn array(random: &mut Random, field: &Field, len: usize, shape: Shape) -> ArrayRef {
    let (before, behind) = (random.below(4) as usize, random.below(9) as usize);
    let total = before + len + behind;
    let nulls =
        field.is_nullable().then(|| NullBuffer::from_iter((0..total).map(|_| random.below(100) >= shape.null_percent)));
    let mut word = || random.next() >> (64 - shape.value_bits);
    let whole: ArrayRef = match field.data_type() {
        DataType::Null => Arc::new(NullArray::new(total)),
        DataType::Boolean => Arc::new(BooleanArray::new((0..total).map(|_| word() % 2 == 0).collect(), nulls)),
        DataType::Int8 => Arc::new(Int8Array::new((0..total).map(|_| word() as i8).collect(), nulls)),
        DataType::Int32 => Arc::new(Int32Array::new((0..total).map(|_| word() as i32).collect(), nulls)),
        DataType::Int64 => Arc::new(Int64Array::new((0..total).map(|_| word() as i64).collect(), nulls)),
        DataType::Float64 => Arc::new(Float64Array::new((0..total).map(|_| word() as f64 * 0.1).collect(), nulls)),
        DataType::Decimal128(precision, scale) => {
            let values = (0..total).map(|_| -i128::from(word())).collect();
            Arc::new(Decimal128Array::new(values, nulls).with_precision_and_scale(*precision, *scale).unwrap())
        }
        DataType::FixedSizeBinary(width) => {
            let bytes: Vec<u8> = (0..total * *width as usize).map(|_| word() as u8).collect();
            Arc::new(FixedSizeBinaryArray::new(*width, bytes.into(), nulls))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary => {
            let (mut data, mut ends) = (b"unused".to_vec(), vec![6_i64]);
            for _ in 0..total {
                let count = random.below(shape.max_text + 1);
                data.extend((0..count).map(|_| b'a' + random.below(2) as u8));
                ends.push(data.len() as i64);
            }
            let small = || OffsetBuffer::new(ends.iter().map(|end| *end as i32).collect());
            match field.data_type() {
                DataType::Utf8 => Arc::new(StringArray::new(small(), Buffer::from_vec(data), nulls)),
                DataType::Binary => Arc::new(BinaryArray::new(small(), Buffer::from_vec(data), nulls)),
                _ => {
                    let offsets = OffsetBuffer::new(ends.into());
                    Arc::new(LargeStringArray::new(offsets, Buffer::from_vec(data), nulls))
                }
            }
        }
        DataType::FixedSizeList(item, dimension) => {
            let items = array(random, item, total * *dimension as usize, shape);
            Arc::new(FixedSizeListArray::new(item.clone(), *dimension, items, nulls))
        }
        DataType::Struct(members) => {
            let columns = members.iter().map(|member| array(random, member, total, shape)).collect();
            Arc::new(StructArray::new(members.clone(), columns, nulls))
        }
        DataType::List(item) | DataType::LargeList(item) => {
            let mut ends = vec![2_i64];
            for _ in 0..total {
                let is_empty = random.below(100) < shape.empty_percent;
                let count = if is_empty { 0 } else { 1 + random.below(shape.max_list) };
                ends.push(ends[ends.len() - 1] + count as i64);
            }
            let items = array(random, item, ends[total] as usize + 1, shape);
            if matches!(field.data_type(), DataType::List(_)) {
                let offsets = OffsetBuffer::new(ends.iter().map(|end| *end as i32).collect());
                Arc::new(ListArray::new(item.clone(), offsets, items, nulls))
            } else {
                Arc::new(LargeListArray::new(item.clone(), OffsetBuffer::new(ends.into()), items, nulls))
            }
        }
        other => panic!("no generator for {other}"),
    };
    whole.slice(before, len)
}

/// Values are the same, whatever lies under nulls and whatever items are called.
fn same(a: &dyn Array, b: &dyn Array) -> bool {
    let rows = |list: &ArrayRef| list.len();
    if !a.data_type().is_nested() && a.to_data() == b.to_data() {
        return true;
    }
    a.len() == b.len()
        && (0..a.len()).all(|row| {
            if a.data_type() == &DataType::Null || a.is_null(row) || b.is_null(row) {
                return a.data_type() == b.data_type() && a.is_null(row) == b.is_null(row);
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

fn leaf_type() -> impl Strategy<Value = DataType> {
    let vector = |item, dimension| DataType::FixedSizeList(Arc::new(Field::new("item", item, true)), dimension);
    prop::sample::select(vec![
        DataType::Boolean,
        DataType::Int8,
        DataType::Int32,
        DataType::Int64,
        DataType::Float64,
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Binary,
        DataType::Decimal128(38, 3),
        DataType::FixedSizeBinary(3),
        DataType::FixedSizeBinary(260),
        vector(DataType::Int32, 3),
        vector(DataType::Boolean, 5),
        vector(DataType::Float64, 40),
        vector(vector(DataType::Int8, 3), 2),
        DataType::Null,
    ])
}

fn field() -> impl Strategy<Value = Field> {
    let leaf = (leaf_type(), any::<bool>()).prop_map(|(data_type, is_nullable)| {
        let is_nullable = is_nullable || data_type == DataType::Null;
        Field::new("item", data_type, is_nullable)
    });
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            (inner.clone(), any::<bool>()).prop_map(|(i, n)| Field::new("item", DataType::List(Arc::new(i)), n)),
            (inner.clone(), any::<bool>()).prop_map(|(i, n)| Field::new("item", DataType::LargeList(Arc::new(i)), n)),
            (prop::collection::vec(inner, 1..4), any::<bool>()).prop_map(|(members, is_nullable)| {
                let members: Vec<_> =
                    members.into_iter().enumerate().map(|(i, member)| member.with_name(format!("m{i}"))).collect();
                Field::new("item", DataType::Struct(members.into()), is_nullable)
            }),
        ]
    })
}

/// A field that 2.0 takes: it has no null structs.
fn without_null_structs(field: &Field) -> Field {
    let below = |item: &Arc<Field>| Arc::new(without_null_structs(item));
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(below(item)),
        DataType::LargeList(item) => DataType::LargeList(below(item)),
        DataType::Struct(members) => DataType::Struct(members.iter().map(below).collect()),
        other => other.clone(),
    };
    let is_struct = matches!(data_type, DataType::Struct(_));
    Field::new(field.name(), data_type, field.is_nullable() && !is_struct)
}

fn shape() -> impl Strategy<Value = Shape> {
    let percent = || prop::sample::select(vec![0, 0, 10, 50, 100]);
    (
        percent(),
        percent(),
        1_u64..6,
        prop::sample::select(vec![0, 1, 20, 400]),
        prop::sample::select(vec![1, 7, 31, 64]),
    )
        .prop_map(|(null_percent, empty_percent, max_list, max_text, value_bits)| Shape {
            null_percent,
            empty_percent,
            max_list,
            max_text,
            value_bits,
        })
}

fn batch(random: &mut Random, schema: &Arc<ArrowSchema>, len: usize, shape: Shape) -> RecordBatch {
    let columns = schema.fields().iter().map(|field| array(random, field, len, shape)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(len));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

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
            Err(Error::NotSupported { .. }) if version == FileVersion::V2_1 => return Ok(()),
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
    let members = vec![Field::new("d", DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)), true)];
    let schema =
        Schema::from_arrow(&ArrowSchema::new(vec![Field::new("s", DataType::Struct(members.into()), true)])).unwrap();
    let refused = FileWriter::new(Box::new(Sink::default()), &schema, FileVersion::V2_2).err();
    assert_eq!(refused, Some(Error::not_supported("writing column \"s.d\" of type Dictionary(Int8, Utf8)")));
}
