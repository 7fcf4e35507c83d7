//! A schema of most types with a few rows, for filters.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array,
    Float64Array, Int8Array, Int32Array, Int64Array, LargeStringArray, ListArray, RecordBatch, StringArray,
    StructArray, TimestampMillisecondArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use lancelet::expr::Filter;
use lancelet::format::table::Schema;

fn batch() -> RecordBatch {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![]), None]);
    let inner = StructArray::from(vec![(
        Arc::new(Field::new("c", DataType::Utf8, true)),
        Arc::new(StringArray::from(vec![Some("x"), None, Some(""), Some("y")])) as ArrayRef,
    )]);
    let st = StructArray::from(vec![
        (
            Arc::new(Field::new("a", DataType::Int64, true)),
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4)])) as ArrayRef,
        ),
        (Arc::new(Field::new("in", inner.data_type().clone(), true)), Arc::new(inner) as ArrayRef),
    ]);
    let decimal = Decimal128Array::from(vec![Some(123), None, Some(-1), Some(0)]);
    let dictionary: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("b"), Some("a")].into_iter().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(vec![0, 1, 2, i64::MAX]))),
        ("i", Arc::new(Int32Array::from(vec![Some(1), None, Some(-5), Some(i32::MIN)]))),
        ("i8", Arc::new(Int8Array::from(vec![Some(1), None, Some(-128), Some(127)]))),
        ("u", Arc::new(UInt64Array::from(vec![Some(1), None, Some(0), Some(u64::MAX)]))),
        ("f", Arc::new(Float64Array::from(vec![Some(1.5), None, Some(f64::NAN), Some(-0.0)]))),
        ("f32", Arc::new(Float32Array::from(vec![Some(1.5), None, Some(f32::INFINITY), Some(0.0)]))),
        ("s", Arc::new(StringArray::from(vec![Some("abc"), None, Some(""), Some("a%_\u{e9}")]))),
        ("ls", Arc::new(LargeStringArray::from(vec![Some("abc"), None, Some(""), Some("z")]))),
        ("bin", Arc::new(BinaryArray::from(vec![Some(&b"ab"[..]), None, Some(&b""[..]), Some(&b"\xff"[..])]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]))),
        ("d", Arc::new(Date32Array::from(vec![Some(0), None, Some(-1), Some(20_000)]))),
        ("ts", Arc::new(TimestampMillisecondArray::from(vec![Some(0), None, Some(-1), Some(1_700_000_000_000)]))),
        ("dec", Arc::new(decimal.with_precision_and_scale(10, 2).unwrap())),
        ("dict", Arc::new(dictionary)),
        ("st", Arc::new(st)),
        ("nums", Arc::new(list)),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), *name != "id")).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays).unwrap()
}

thread_local! {
    static TABLE: (Schema, RecordBatch) = {
        let batch = batch();
        (Schema::from_arrow(&batch.schema()).unwrap(), batch)
    };
}

/// Evaluates a filter over all rows and over some of them.
pub fn evaluate(text: &str) {
    TABLE.with(|(schema, batch)| {
        let Ok(filter) = Filter::parse(text, schema) else { return };
        if filter.columns().iter().any(|column| batch.column_by_name(column).is_none()) {
            // A system column.
            return;
        }
        let Ok(mask) = filter.evaluate(batch) else { return };
        assert_eq!(mask.len(), batch.num_rows());
        let some = filter.evaluate(&batch.slice(1, 2)).unwrap();
        assert_eq!(some.iter().collect::<Vec<_>>(), mask.slice(1, 2).iter().collect::<Vec<_>>());
    });
}
