use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, FixedSizeListArray,
    Float32Array, Int32Array, NullArray, RunArray, StringArray, StringViewArray, StructArray,
    TimestampMillisecondArray,
};
use arrow_schema::Fields;
use proptest::prelude::*;

use super::*;

fn dictionary(values: &[&str]) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int8Type>::new();
    values.iter().for_each(|value| builder.append_value(value));
    Arc::new(builder.finish())
}

/// One column of every kind of array, three rows.
fn batch() -> RecordBatch {
    let mut list = ListBuilder::new(Int32Builder::new());
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for i in 0..3 {
        list.values().append_slice(&[i, i + 1]);
        list.append(i != 1);
        map.keys().append_value("k");
        map.values().append_option((i > 0).then_some(i));
        map.append(true).unwrap();
    }
    let member: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None, Some("yz")]));
    let members = Fields::from(vec![Field::new("a", DataType::Utf8, true)]);
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let vectors = FixedSizeListArray::new(item, 2, Arc::new(Float32Array::from(vec![1.0; 6])), None);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]))),
        ("b", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("s", Arc::new(StringArray::from(vec!["a", "", "ccc"]))),
        ("sv", Arc::new(StringViewArray::from(vec!["a", "", "a string longer than twelve bytes"]))),
        ("bv", Arc::new(BinaryViewArray::from(vec![&b"a"[..], b"", b"bytes longer than twelve bytes"]))),
        ("f", Arc::new(FixedSizeBinaryArray::try_from_iter([[1u8, 2], [3, 4], [5, 6]].into_iter()).unwrap())),
        ("d", Arc::new(Decimal128Array::from(vec![1, 2, 3]).with_precision_and_scale(10, 2).unwrap())),
        ("t", Arc::new(TimestampMillisecondArray::from(vec![1, 2, 3]).with_timezone("+01:00"))),
        ("n", Arc::new(NullArray::new(3))),
        ("l", Arc::new(list.finish())),
        ("m", Arc::new(map.finish())),
        ("st", Arc::new(StructArray::new(members, vec![member], Some(vec![true, false, true].into())))),
        ("v", Arc::new(vectors)),
        ("dict", dictionary(&["p", "q", "p"])),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

fn one(column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter([("c", column)]).unwrap()
}

/// As Arrow writes it.
fn stream(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), batch.schema_ref()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn every_kind_of_array_survives() {
    let batch = batch();
    let bytes = encode_batches(batch.schema_ref(), &[batch.clone(), batch.slice(1, 2), batch.slice(0, 0)]).unwrap();
    let (schema, batches) = decode_stream(&bytes).unwrap();
    assert_eq!(&schema, batch.schema_ref());
    assert_eq!(batches, [batch.clone(), batch.slice(1, 2), batch.slice(0, 0)]);
}

#[test]
fn arrows_own_reader_reads_what_is_written() {
    let batch = batch();
    let batches = [batch.slice(1, 1), batch.clone(), batch.slice(2, 1), batch.slice(0, 0), batch.slice(0, 2)];
    let bytes = encode_batches(batch.schema_ref(), &batches).unwrap();
    let reader = arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None).unwrap();
    assert_eq!(reader.schema(), batch.schema());
    assert_eq!(reader.map(|batch| batch.unwrap()).collect::<Vec<_>>(), batches);
    // What a slice does not show is not written.
    let long = one(Arc::new(StringArray::from_iter_values((0..1_000).map(|i| format!("value {i}")))));
    let part = encode_batches(long.schema_ref(), &[long.slice(500, 1)]).unwrap();
    assert!(part.len() < 1_000, "{} bytes", part.len());
}

#[test]
fn a_dictionary_that_did_not_change_is_sent_once() {
    let batch = one(dictionary(&["a", "b", "a"]));
    let size = |batches: &[RecordBatch]| encode_batches(batch.schema_ref(), batches).unwrap().len();
    let (one, two) = (size(std::slice::from_ref(&batch)), size(&[batch.clone(), batch.slice(1, 2)]));
    let (schema, keys) = (size(&[]), two - one);
    assert!(keys < one - schema, "{schema} bytes of schema, {keys} of the second batch, {one} of the first");
}

#[test]
fn a_stream_may_have_no_batches_and_no_end_mark() {
    let schema = batch().schema();
    let bytes = encode_schema(&schema).unwrap();
    assert_eq!(decode_stream(&bytes).unwrap(), (schema.clone(), vec![]));
    assert_eq!(&bytes[bytes.len() - 8..], b"\xff\xff\xff\xff\0\0\0\0");
    assert_eq!(decode_stream(&bytes[..bytes.len() - 8]).unwrap(), (schema, vec![]));
}

#[test]
fn dictionaries_may_change_between_batches() {
    let batches = [one(dictionary(&["a", "b"])), one(dictionary(&["c"]))];
    let bytes = encode_batches(batches[0].schema_ref(), &batches).unwrap();
    assert_eq!(decode_stream(&bytes).unwrap().1, batches);
}

#[test]
fn a_batch_of_another_schema_is_refused() {
    let schema = Schema::new(vec![Field::new("c", DataType::Utf8, false)]);
    let result = encode_batches(&schema, &[one(Arc::new(Int32Array::from(vec![1])))]);
    assert!(matches!(result, Err(Error::Schema { .. })));
}

#[test]
fn streams_that_are_cut_or_too_long_are_invalid() {
    let bytes = stream(&batch());
    let mut longer = bytes.clone();
    longer.push(0);
    for bad in [&b""[..], b"ARROW1\0\0", &longer, &bytes[1..]] {
        assert!(matches!(decode_stream(bad), Err(Error::InvalidInput { .. })));
    }
    let whole = decode_stream(&bytes).unwrap();
    for cut in 0..bytes.len() {
        // Between two messages a cut cannot be seen; it only loses what follows.
        match decode_stream(&bytes[..cut]) {
            Ok((schema, batches)) => assert_eq!((schema, batches.len() <= 1), (whole.0.clone(), true)),
            Err(error) => assert!(matches!(error, Error::InvalidInput { .. }), "{error}"),
        }
    }
}

#[test]
fn lengths_are_claims() {
    // 2 GiB of message in 12 bytes; as much body.
    let claim = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0];
    assert_eq!(decode_stream(&claim).unwrap_err().to_string(), "invalid input, Arrow stream: a message is cut off");
}

#[test]
fn a_buffer_that_cuts_its_last_value_off_is_invalid() {
    let bytes = stream(&one(Arc::new(StringArray::from(vec!["a", "b", "c"]))));
    // The 4 offsets take 16 bytes; somewhere in the message stands this length.
    let reasons: Vec<_> = (0..bytes.len() - 8)
        .filter(|at| bytes[*at..].starts_with(&16i64.to_le_bytes()))
        .filter_map(|at| {
            let mut longer = bytes.clone();
            longer[at] = 17;
            decode_stream(&longer).err().map(|error| error.to_string())
        })
        .collect();
    assert!(
        reasons.contains(&"invalid input, Arrow stream: a buffer of 17 bytes for values of 4".to_owned()),
        "{reasons:?}"
    );
}

#[test]
fn types_that_no_table_holds_are_not_supported() {
    let runs: RunArray<arrow_array::types::Int32Type> = ["a", "a", "b"].into_iter().collect();
    let bytes = stream(&one(Arc::new(runs)));
    match decode_stream(&bytes) {
        Err(Error::NotSupported { feature }) => assert!(feature.starts_with("column \"c\" of type"), "{feature}"),
        other => panic!("{other:?}"),
    }
    let empty = Arc::new(Field::new("item", DataType::Int32, true));
    let lists = FixedSizeListArray::try_new_with_length(empty, 0, Arc::new(Int32Array::from(vec![0; 0])), None, 3);
    let bytes = stream(&one(Arc::new(lists.unwrap())));
    assert!(matches!(decode_stream(&bytes), Err(Error::NotSupported { .. })));
}

/// What pyarrow wrote: see `datagen.py` beside the files.
macro_rules! golden {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/pyarrow-21.0.0/", $name)).as_slice()
    };
}

fn texts(batch: &RecordBatch) -> Vec<Option<String>> {
    let texts = crate::batch::cast::cast(batch.column(0), &DataType::Utf8).unwrap();
    texts.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn compressed_files_and_streams_give_their_rows() {
    for file in [golden!("lz4.arrow"), golden!("zstd.arrow")] {
        let (schema, batches) = decode_stream(file).unwrap();
        let [batch] = batches.as_slice() else { panic!("{} batches", batches.len()) };
        assert_eq!((schema.fields().len(), batch.num_rows()), (2, 40_000));
        let (numbers, texts) = (batch.column(0).as_primitive::<Int32Type>(), batch.column(1).as_string::<i32>());
        for row in 0..40_000 {
            assert_eq!(numbers.value(row), row as i32 / 70);
            let text = if row % 1000 == 0 { Some("x") } else { (row % 3 != 0).then_some("") };
            assert_eq!(texts.is_valid(row).then(|| texts.value(row)), text, "row {row}");
        }
    }
    for stream in [golden!("lz4_words.arrows"), golden!("zstd_words.arrows")] {
        let (_, batches) = decode_stream(stream).unwrap();
        let words = ["a", "", "bb", "a"].map(|word| (!word.is_empty()).then(|| word.to_owned()));
        assert_eq!(texts(&batches[0]), [&words[..]; 8].concat());
    }
}

#[test]
fn damaged_compressed_bytes_are_an_error_or_rows() {
    for stream in [golden!("lz4_words.arrows"), golden!("zstd_words.arrows")] {
        for at in 0..stream.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = stream.to_vec();
                bytes[at] = value;
                match decode_stream(&bytes) {
                    Ok((_, batches)) => {
                        assert!(batches.iter().all(|batch| batch.column(0).to_data().validate_full().is_ok()));
                    }
                    Err(Error::InvalidInput { .. } | Error::NotSupported { .. } | Error::Schema { .. }) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn dictionaries_grow_and_are_replaced() {
    let of = |words: &[&str]| words.iter().map(|word| (*word != "-").then(|| (*word).to_owned())).collect::<Vec<_>>();
    let read = |bytes| decode_stream(bytes).unwrap().1.iter().map(texts).collect::<Vec<_>>();
    assert_eq!(read(golden!("delta.arrows")), [of(&["a", "-", "b"]), of(&["c", "a"])]);
    assert_eq!(read(golden!("delta.arrow")), [of(&["a", "-", "b"]), of(&["c", "a"])]);
    assert_eq!(read(golden!("replaced.arrows")), [of(&["a", "-", "b"]), of(&["y", "x"])]);
}

#[test]
fn a_file_is_read_as_the_stream_inside() {
    let (schema, batches) = decode_stream(golden!("large_list.arrow")).unwrap();
    assert_eq!(batches[0].schema(), schema);
    assert_eq!(batches[0].column(0).as_list::<i64>().offsets().as_ref(), [0, 2, 2, 2, 3]);
    let file = golden!("views.arrow");
    assert_eq!(decode_stream(file).unwrap().1[0].num_rows(), 3);
    // Without its messages it still says its schema.
    let footer =
        file.len() - 10 - u32::from_le_bytes(file[file.len() - 10..file.len() - 6].try_into().unwrap()) as usize;
    let tail = [b"ARROW1\0\0", &file[footer..]].concat();
    let (schema, batches) = decode_stream(&tail).unwrap();
    assert_eq!((schema.field(0).name().as_str(), batches.len()), ("c", 0));
    for cut in 0..file.len() {
        assert!(matches!(decode_stream(&file[..cut]), Err(Error::InvalidInput { .. })), "cut at {cut}");
    }
}

#[test]
fn types_that_lancedb_refuses_are_refused_by_the_path_of_their_column() {
    let refusal = |bytes| match decode_stream(bytes) {
        Err(Error::NotSupported { feature }) => feature,
        other => panic!("{other:?}"),
    };
    for (bytes, column) in [
        (golden!("list_view.arrow"), "column \"c\" of type ListView"),
        (golden!("decimal32.arrow"), "column \"c\" of type Decimal32"),
        (golden!("decimal64.arrow"), "column \"c\" of type Decimal64"),
        (golden!("interval.arrow"), "column \"c.deep\" of type Interval"),
        (golden!("union.arrow"), "column \"c\" of type Union"),
        (golden!("run_end_encoded.arrow"), "column \"c\" of type RunEndEncoded"),
    ] {
        assert!(refusal(bytes).starts_with(column), "{}", refusal(bytes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn any_bytes_are_a_stream_or_an_error(
        changes in proptest::collection::vec((any::<u16>(), prop_oneof![any::<u8>(), Just(0), Just(1), Just(0xff), Just(0x7f), Just(0x80)]), 1..4),
    ) {
        let mut bytes = stream(&batch());
        for (at, value) in &changes {
            let at = usize::from(*at) % bytes.len();
            bytes[at] = *value;
        }
        if let Ok((_, batches)) = decode_stream(&bytes) {
            for batch in batches {
                // What was accepted can be walked and written.
                prop_assert!(batch.columns().iter().all(|column| column.to_data().validate_full().is_ok()));
                prop_assert!(encode_batches(batch.schema_ref(), std::slice::from_ref(&batch)).is_ok());
            }
        }
    }
}
