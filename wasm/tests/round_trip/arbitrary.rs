//! Arbitrary types, and arrays of them as hard as a writer may be given them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray,
    FixedSizeListArray, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, LargeListArray, LargeStringArray,
    ListArray, MapArray, NullArray, RecordBatch, RecordBatchOptions, StringArray, StructArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use proptest::prelude::*;

use crate::one_file_store::random::Random;

#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub null_percent: u64,
    pub empty_percent: u64,
    pub max_list: u64,
    pub max_text: u64,
    /// Bits of integers.
    pub value_bits: u32,
}

/// An array with an offset, unused values before and behind, and values under its nulls.
pub fn array(random: &mut Random, field: &Field, len: usize, shape: Shape) -> ArrayRef {
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
        DataType::Struct(members) if members.is_empty() => Arc::new(StructArray::new_empty_fields(total, nulls)),
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
        DataType::Dictionary(_, value) => {
            // Values are null, double and unused.
            let texts = (0..20).map(|at| (at % 7 != 3).then(|| format!("text {}", at % 9)));
            let values: ArrayRef = match **value {
                DataType::Int64 => Arc::new(Int64Array::from_iter((0..20).map(|at| (at % 7 != 3).then_some(at % 9)))),
                _ => Arc::new(StringArray::from_iter(texts)),
            };
            let (from, count) = if field.is_nullable() { (0, 20) } else { (4, 6) };
            let keys = (0..total).map(|_| (from + random.below(count)) as i16).collect();
            Arc::new(DictionaryArray::new(Int16Array::new(keys, nulls), values))
        }
        DataType::Map(entries, _) => {
            let mut ends = vec![1_i32];
            for _ in 0..total {
                let count = if random.below(100) < shape.empty_percent { 0 } else { 1 + random.below(shape.max_list) };
                ends.push(ends[ends.len() - 1] + count as i32);
            }
            let items = array(random, entries, ends[total] as usize + 1, shape);
            Arc::new(MapArray::new(
                entries.clone(),
                OffsetBuffer::new(ends.into()),
                items.as_struct().clone(),
                nulls,
                false,
            ))
        }
        other => panic!("no generator for {other}"),
    };
    whole.slice(before, len)
}

pub fn leaf_type() -> impl Strategy<Value = DataType> {
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
        DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8)),
        DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Int64)),
        DataType::Null,
    ])
}

pub fn field() -> impl Strategy<Value = Field> {
    let leaf = (leaf_type(), any::<bool>()).prop_map(|(data_type, is_nullable)| {
        let is_nullable = is_nullable || data_type == DataType::Null;
        Field::new("item", data_type, is_nullable)
    });
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            (inner.clone(), any::<bool>()).prop_map(|(i, n)| Field::new("item", DataType::List(Arc::new(i)), n)),
            (inner.clone(), any::<bool>()).prop_map(|(i, n)| Field::new("item", DataType::LargeList(Arc::new(i)), n)),
            (prop::collection::vec(inner.clone(), 1..4), any::<bool>()).prop_map(|(members, is_nullable)| {
                let members: Vec<_> =
                    members.into_iter().enumerate().map(|(i, member)| member.with_name(format!("m{i}"))).collect();
                Field::new("item", DataType::Struct(members.into()), is_nullable)
            }),
            (inner.clone(), any::<bool>()).prop_map(|(value, is_nullable)| {
                let members = vec![Field::new("key", DataType::Utf8, false), value.with_name("value")];
                let entries = Field::new("entries", DataType::Struct(members.into()), false);
                Field::new("item", DataType::Map(Arc::new(entries), false), is_nullable)
            }),
            (prop::collection::vec(inner, 1..3), 1..4, any::<bool>(), any::<bool>()).prop_map(
                |(members, dimension, null_list, null_item)| {
                    let members: Vec<_> =
                        members.into_iter().enumerate().map(|(i, member)| member.with_name(format!("m{i}"))).collect();
                    let item = Field::new("item", DataType::Struct(members.into()), null_item);
                    Field::new("item", DataType::FixedSizeList(Arc::new(item), dimension), null_list)
                }
            ),
        ]
    })
}

/// A field that 2.0 takes: it has no null structs.
pub fn without_null_structs(field: &Field) -> Field {
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

/// Whether LanceDB has no place for the type: what lies in a list, or in a fixed-size list of structs, decides.
pub fn is_refused(data_type: &DataType, in_list: bool, in_vector: bool, is_2_1: bool) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) => {
            in_vector || is_refused(item.data_type(), true, in_vector, is_2_1)
        }
        DataType::Map(entries, _) => is_2_1 || in_vector || is_refused(entries.data_type(), true, in_vector, is_2_1),
        DataType::Struct(members) => {
            members.iter().any(|member| is_refused(member.data_type(), in_list, in_vector, is_2_1))
        }
        DataType::FixedSizeList(item, _) if matches!(item.data_type(), DataType::Struct(_)) => {
            is_2_1 || in_list || is_refused(item.data_type(), in_list, true, is_2_1)
        }
        _ => false,
    }
}

pub fn shape() -> impl Strategy<Value = Shape> {
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

pub fn batch(random: &mut Random, schema: &Arc<ArrowSchema>, len: usize, shape: Shape) -> RecordBatch {
    let columns = schema.fields().iter().map(|field| array(random, field, len, shape)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(len));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).unwrap()
}
