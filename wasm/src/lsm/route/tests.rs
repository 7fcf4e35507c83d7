use super::*;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    LargeStringArray, StringArray, TimestampMillisecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};

/// Type, buckets, bucket and value, as LanceDB 0.39.0 routed it.
const VECTORS: &str = include_str!("vectors.txt");

/// The value as the middle one of three, of which the others are not looked at.
fn column(data_type: &str, text: &str) -> ArrayRef {
    macro_rules! of {
        ($array:ty) => {{
            let value = (text != "null").then(|| text.parse().unwrap());
            Arc::new(<$array>::from(vec![None, value, None]))
        }};
    }
    match data_type {
        "bool" => of!(BooleanArray),
        "int8" => of!(Int8Array),
        "int16" => of!(Int16Array),
        "int32" => of!(Int32Array),
        "int64" => of!(Int64Array),
        "uint8" => of!(UInt8Array),
        "uint16" => of!(UInt16Array),
        "uint32" => of!(UInt32Array),
        "uint64" => of!(UInt64Array),
        "float32" => of!(Float32Array),
        "float64" => of!(Float64Array),
        "date32" => of!(Date32Array),
        "timestampms" => of!(TimestampMillisecondArray),
        "utf8" => Arc::new(StringArray::from(vec![None, (text != "null").then_some(text), None])),
        other => panic!("{other}"),
    }
}

#[test]
fn every_vector_of_lancedb_is_in_its_bucket() {
    let mut count = 0;
    for line in VECTORS.lines() {
        let mut parts = line.splitn(4, ' ');
        let (data_type, buckets) = (parts.next().unwrap(), parts.next().unwrap().parse().unwrap());
        let (bucket, value) = (parts.next().unwrap().parse::<usize>().unwrap(), parts.next().unwrap());
        let column = column(data_type, value);
        assert!(Router::Bucket(buckets).takes(column.data_type()), "{line}");
        // A slice has values that are not its own.
        let found = Router::Bucket(buckets).shards(&column.slice(1, 2)).unwrap();
        assert_eq!(found, [bucket_ids(buckets)[bucket], bucket_ids(buckets)[0]], "{line}");
        count += 1;
    }
    assert_eq!(count, 55);
}

#[test]
fn shard_ids_are_those_of_lancedb() {
    let text = |id: &ShardId| id.to_string();
    assert_eq!(text(&unsharded_id()), "aa48498d-ac91-59e2-8452-69f46010ace2");
    assert_eq!(text(&bucket_ids(2)[0]), "4a388480-a25b-59a8-b058-24217f980256");
    let identity = |column: ArrayRef| text(&Router::Identity.shards(&column).unwrap()[0]);
    assert_eq!(identity(Arc::new(StringArray::from(vec!["us"]))), "e1794536-1200-59f9-8b6e-2da8285e103c");
    assert_eq!(identity(Arc::new(LargeStringArray::from(vec!["us"]))), "e1794536-1200-59f9-8b6e-2da8285e103c");
    assert_eq!(identity(Arc::new(Int64Array::from(vec![5]))), "67754d1c-50df-52e2-adfd-f6a3788969b0");
    let shards = Router::Unsharded.shards(&(Arc::new(Int64Array::from(vec![None, Some(5)])) as ArrayRef)).unwrap();
    assert_eq!(shards, [unsharded_id(); 2]);
}

#[test]
fn a_null_has_no_shard_where_rows_are_spread_by_value() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![None]));
    assert!(matches!(Router::Identity.shards(&column), Err(Error::InvalidInput { .. })));
}

#[test]
fn names_are_digested_over_every_length_of_the_last_block() {
    // Counted with another implementation.
    let digest = |bytes: &[u8]| sha1(bytes).iter().map(|word| format!("{word:08x}")).collect::<String>();
    assert_eq!(digest(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    assert_eq!(digest(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_eq!(digest(&[b'a'; 55]), "c1c8bbdc22796e28c0e15163d20899b65621d65a");
    assert_eq!(digest(&[b'a'; 56]), "c2db330f6083854c99d4b5bfb6e8f29f201be699");
    assert_eq!(digest(&[b'a'; 64]), "0098ba824b5c16427bd7a1122a5a442a25ec644d");
}
