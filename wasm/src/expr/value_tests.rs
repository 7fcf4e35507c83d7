use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, FixedSizeListArray, Float32Array, Float64Array, Int8Array,
    Int32Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampMillisecondArray, UInt8Array, UInt64Array,
    new_null_array,
};
use arrow_schema::{DataType, Field as ArrowField, Fields, TimeUnit};

use super::convert::text_of;
use super::*;
use crate::error::{ErrorCode, Result};

/// Two rows, the second of nulls but for `id`.
fn batch() -> RecordBatch {
    let mut tags = ListBuilder::new(StringBuilder::new());
    tags.append_value([Some("x"), Some("y")]);
    tags.append_null();
    let item = Arc::new(ArrowField::new("item", DataType::Float32, true));
    let items: ArrayRef = Arc::new(Float32Array::from(vec![Some(1.0), Some(2.0), None, None]));
    let vector = FixedSizeListArray::new(item, 2, items, Some(vec![true, false].into()));
    let members = Fields::from(vec![ArrowField::new("a", DataType::Int64, true)]);
    let a: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(Int64Array::from(vec![1, 2])), false),
        ("i", Arc::new(Int32Array::from(vec![Some(10), None])), true),
        ("u", Arc::new(UInt8Array::from(vec![Some(3), None])), true),
        ("big", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])), true),
        ("f", Arc::new(Float64Array::from(vec![Some(1.5), None])), true),
        ("g", Arc::new(Float32Array::from(vec![Some(2.5), None])), true),
        ("s", Arc::new(StringArray::from(vec![Some("h\u{e9}llo World"), None])), true),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), None])), true),
        ("d", Arc::new(Date32Array::from(vec![Some(19_724), None])), true),
        ("ts", Arc::new(TimestampMillisecondArray::from(vec![Some(1_704_067_200_123), None])), true),
        (
            "dec",
            Arc::new(Decimal128Array::from(vec![Some(-1_250), None]).with_precision_and_scale(10, 2).unwrap()),
            true,
        ),
        ("tags", Arc::new(tags.finish()), true),
        ("v", Arc::new(vector), true),
        ("st", Arc::new(StructArray::new(members, vec![a], Some(vec![true, false].into()))), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn schema() -> Schema {
    Schema::from_arrow(&batch().schema()).unwrap()
}

fn evaluate(text: &str) -> Result<(Value, ArrayRef)> {
    let mut value = Value::parse(text, &schema())?;
    value.set_now(1_709_251_199_000_000_001);
    let array = value.evaluate(&batch(), &|row| Some(row as u64 + 100))?;
    assert_eq!(array.data_type(), value.data_type(), "{text}");
    assert!(value.is_nullable() || array.logical_null_count() == 0, "{text} is said to be never null");
    Ok((value, array))
}

/// Expression, type of its values, whether they may be null, the values as text.
#[track_caller]
fn check(cases: &[(&str, DataType, bool, [Option<&str>; 2])]) {
    for (text, data_type, nullable, expected) in cases {
        let (value, array) = evaluate(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(value.data_type(), data_type, "{text}");
        assert_eq!(value.is_nullable(), *nullable, "{text}");
        assert_eq!([text_of(&array, 0).as_deref(), text_of(&array, 1).as_deref()], *expected, "{text}");
    }
}

#[track_caller]
fn refused(cases: &[(&str, ErrorCode, &str)]) {
    for (text, code, part) in cases {
        let error = evaluate(text).map(|(_, array)| array).expect_err(text);
        assert_eq!(error.code(), *code, "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
const NANOS: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);
const MILLIS: DataType = DataType::Timestamp(TimeUnit::Millisecond, None);

#[test]
fn literals_and_columns_have_the_types_of_lancedb() {
    use DataType::{Binary, Boolean, Date32, Float64, Int32, Int64, Null, Utf8};
    check(&[
        ("1", Int64, false, [Some("1"); 2]),
        ("-1", Int64, false, [Some("-1"); 2]),
        ("1.5", Float64, false, [Some("1.5"); 2]),
        ("'x'", Utf8, false, [Some("x"); 2]),
        ("\"x\"", Utf8, false, [Some("x"); 2]),
        ("null", Null, true, [None; 2]),
        ("true", Boolean, false, [Some("true"); 2]),
        ("date '2024-01-01'", Date32, false, [Some("2024-01-01"); 2]),
        ("timestamp '2024-01-01'", MICROS, false, [Some("2024-01-01T00:00:00"); 2]),
        ("id", Int64, false, [Some("1"), Some("2")]),
        ("I", Int32, true, [Some("10"), None]),
        ("st.a", Int64, true, [Some("7"), None]),
        ("tags[1]", Utf8, true, [Some("x"), None]),
        ("tags[-1]", Utf8, true, [Some("y"), None]),
        ("tags[3]", Utf8, true, [None; 2]),
        ("v[2]", DataType::Float32, true, [Some("2.0"), None]),
        ("cast(s as binary)", Binary, true, [Some("a value of Binary"), None]),
    ]);
}

#[test]
fn arithmetic_has_the_types_of_lancedb_and_no_silent_overflow() {
    use DataType::{Decimal128, Float32, Float64, Int32, Int64, UInt8, UInt64};
    check(&[
        ("i + 1", Int32, true, [Some("11"), None]),
        ("1 + i", Int32, true, [Some("11"), None]),
        ("i + id", Int64, true, [Some("11"), None]),
        ("u + 1", UInt8, true, [Some("4"), None]),
        ("u + i", Int32, true, [Some("13"), None]),
        ("big - 1", UInt64, true, [Some("18446744073709551614"), None]),
        ("g + 1", Float32, true, [Some("3.5"), None]),
        ("g + i", Float32, true, [Some("12.5"), None]),
        ("g + f", Float64, true, [Some("4.0"), None]),
        ("i / 3", Int32, true, [Some("3"), None]),
        ("-i / 3", Int32, true, [Some("-3"), None]),
        ("-i % 3", Int32, true, [Some("-1"), None]),
        ("i * 2.5", Float64, true, [Some("25.0"), None]),
        ("i + 3000000000", Int64, true, [Some("3000000010"), None]),
        ("id + 1 - 2 * 3", Int64, false, [Some("-4"), Some("-3")]),
        ("(id + 1 - 2) * 3", Int64, false, [Some("0"), Some("3")]),
        ("f / 0", Float64, true, [Some("inf"), None]),
        ("i + null", Int32, true, [None; 2]),
        ("1 / 2", Int64, false, [Some("0"); 2]),
        ("-g", Float32, true, [Some("-2.5"), None]),
        ("dec + 1", Decimal128(38, 2), true, [Some("-11.50"), None]),
        ("dec * dec", Decimal128(38, 4), true, [Some("156.2500"), None]),
        ("dec / 4", Decimal128(38, 6), true, [Some("-3.125000"), None]),
        ("dec * f", Float64, true, [Some("-18.75"), None]),
        ("cast(big * 1 as bigint unsigned)", UInt64, true, [Some("18446744073709551615"), None]),
    ]);
    refused(&[
        ("i * 2000000000", ErrorCode::InvalidInput, "overflow: 20000000000 does not fit Int32 at row 100"),
        ("u - 4", ErrorCode::InvalidInput, "overflow: -1 does not fit UInt8 at row 100"),
        (
            "id * id * 9223372036854775807 * 9223372036854775807 * 9223372036854775807",
            ErrorCode::InvalidInput,
            "digits",
        ),
        ("i / 0", ErrorCode::InvalidInput, "division by zero at row 100"),
        ("i % 0", ErrorCode::InvalidInput, "division by zero at row 100"),
        ("id / (id - 2)", ErrorCode::InvalidInput, "division by zero at row 101"),
        ("s * 2", ErrorCode::InvalidInput, "no arithmetic with column \"s\" (Utf8)"),
        ("-s", ErrorCode::InvalidInput, "needs a signed number"),
        ("-u", ErrorCode::InvalidInput, "needs a signed number"),
        ("d + 1", ErrorCode::InvalidInput, "no arithmetic"),
        ("99999999999999999999", ErrorCode::InvalidInput, "too large"),
        ("nme + 1", ErrorCode::InvalidInput, "no field named \"nme\""),
        ("i +", ErrorCode::InvalidInput, "character 4: expected a column, a value"),
    ]);
}

#[test]
fn casts_truncate_as_sql_does_and_refuse_what_has_no_place() {
    use DataType::{Boolean, Date32, Decimal128, Float32, Float64, Int8, Int32, Int64, UInt32, Utf8};
    check(&[
        ("cast(f as int)", Int32, true, [Some("1"), None]),
        ("cast(-1.6 as int)", Int32, false, [Some("-1"); 2]),
        ("cast(i as tinyint)", Int8, true, [Some("10"), None]),
        ("cast(i as int unsigned)", UInt32, true, [Some("10"), None]),
        ("cast(i as float)", Float32, true, [Some("10.0"), None]),
        ("cast(i as decimal(10, 2))", Decimal128(10, 2), true, [Some("10.00"), None]),
        ("cast('-1.255' as decimal(10, 2))", Decimal128(10, 2), false, [Some("-1.26"); 2]),
        ("cast(dec as int)", Int32, true, [Some("-12"), None]),
        ("cast(dec as decimal(10, 1))", Decimal128(10, 1), true, [Some("-12.5"), None]),
        ("cast(f as decimal(10, 2))", Decimal128(10, 2), true, [Some("1.50"), None]),
        ("cast(i as boolean)", Boolean, true, [Some("true"), None]),
        ("cast(b as int)", Int32, true, [Some("1"), None]),
        ("cast('true' as boolean)", Boolean, false, [Some("true"); 2]),
        ("cast(i as string)", Utf8, true, [Some("10"), None]),
        ("cast(g as varchar)", Utf8, true, [Some("2.5"), None]),
        ("cast(1e20 as text)", Utf8, false, [Some("1e20"); 2]),
        ("cast(ts as string)", Utf8, true, [Some("2024-01-01T00:00:00.123"), None]),
        ("d::string", Utf8, true, [Some("2024-01-02"), None]),
        ("cast(b as string)", Utf8, true, [Some("true"), None]),
        ("cast('12' as bigint)", Int64, false, [Some("12"); 2]),
        ("cast('2024-02-29' as date)", Date32, false, [Some("2024-02-29"); 2]),
        ("cast('2024-01-01' as timestamp)", MICROS, false, [Some("2024-01-01T00:00:00"); 2]),
        (
            "cast(ts as timestamp(0))",
            DataType::Timestamp(TimeUnit::Second, None),
            true,
            [Some("2024-01-01T00:00:00"), None],
        ),
        ("cast(ts as date)", Date32, true, [Some("2024-01-01"), None]),
        ("cast(d as timestamp(3))", MILLIS, true, [Some("2024-01-02T00:00:00"), None]),
        ("try_cast(s as int)", Int32, true, [None; 2]),
        ("try_cast(i * 30 as tinyint)", Int8, true, [None; 2]),
        ("cast(null as string)", Utf8, true, [None; 2]),
        ("i::double", Float64, true, [Some("10.0"), None]),
    ]);
    refused(&[
        ("cast(s as int)", ErrorCode::InvalidInput, "cannot cast \"h\u{e9}llo World\" to Int32 at row 100"),
        ("cast(' 7 ' as int)", ErrorCode::InvalidInput, "cannot cast \" 7 \" to Int32"),
        ("cast(f / 0 as int)", ErrorCode::InvalidInput, "cannot cast \"inf\" to Int32 at row 100"),
        ("cast(i * 100 as tinyint)", ErrorCode::InvalidInput, "cannot cast \"1000\" to Int8 at row 100"),
        ("cast(tags as int)", ErrorCode::InvalidInput, "no cast from column \"tags\""),
        ("cast(i as decimal(39, 2))", ErrorCode::InvalidInput, "38 digits"),
        ("cast(1e300 as float)", ErrorCode::InvalidInput, "cannot cast"),
    ]);
}

#[test]
fn branches_are_evaluated_only_where_they_decide() {
    use DataType::{Float64, Int64, Utf8};
    check(&[
        ("case when id = 1 then 10 / (2 - id) else id end", Int64, false, [Some("10"), Some("2")]),
        ("case id when 1 then 'one' when 2 then 'two' end", Utf8, true, [Some("one"), Some("two")]),
        ("case when i > 5 then 'big' end", Utf8, true, [Some("big"), None]),
        ("case when b then i else 1.5 end", Float64, true, [Some("10.0"), Some("1.5")]),
        ("coalesce(i, 0)", Int64, false, [Some("10"), Some("0")]),
        ("coalesce(id, id / (id - 1))", Int64, false, [Some("1"), Some("2")]),
        ("coalesce(s, 'none')", Utf8, false, [Some("h\u{e9}llo World"), Some("none")]),
        ("nullif(id, 2)", Int64, true, [Some("1"), None]),
    ]);
    refused(&[
        ("case when id = 2 then 10 / (2 - id) else id end", ErrorCode::InvalidInput, "division by zero at row 101"),
        ("coalesce(i, id / (id - 2))", ErrorCode::InvalidInput, "division by zero at row 101"),
    ]);
}

#[test]
fn functions_of_text_count_characters() {
    use DataType::{Boolean, Int32, Utf8};
    check(&[
        ("upper(s)", Utf8, true, [Some("H\u{c9}LLO WORLD"), None]),
        ("lower(s)", Utf8, true, [Some("h\u{e9}llo world"), None]),
        ("initcap('heLLo world')", Utf8, false, [Some("Hello World"); 2]),
        ("length(s)", Int32, true, [Some("11"), None]),
        ("octet_length(s)", Int32, true, [Some("12"), None]),
        ("s || '!'", Utf8, true, [Some("h\u{e9}llo World!"), None]),
        ("s || i", Utf8, true, [Some("h\u{e9}llo World10"), None]),
        ("concat(s, '-', i)", Utf8, false, [Some("h\u{e9}llo World-10"), Some("-")]),
        ("trim('  a ')", Utf8, false, [Some("a"); 2]),
        ("ltrim('xxa', 'x')", Utf8, false, [Some("a"); 2]),
        ("rtrim('a  ')", Utf8, false, [Some("a"); 2]),
        ("replace(s, 'l', 'LL')", Utf8, true, [Some("h\u{e9}LLLLo WorLLd"), None]),
        ("replace(s, '', 'x')", Utf8, true, [Some("h\u{e9}llo World"), None]),
        ("reverse('abc')", Utf8, false, [Some("cba"); 2]),
        ("substr(s, 2, 3)", Utf8, true, [Some("\u{e9}ll"), None]),
        ("substr(s, -1, 3)", Utf8, true, [Some("h"), None]),
        ("substring(s from 7)", Utf8, true, [Some("World"), None]),
        ("substring(s from 7 for 2)", Utf8, true, [Some("Wo"), None]),
        ("left(s, 2)", Utf8, true, [Some("h\u{e9}"), None]),
        ("left('abc', -1)", Utf8, false, [Some("ab"); 2]),
        ("right('abc', 2)", Utf8, false, [Some("bc"); 2]),
        ("strpos(s, 'llo')", Int32, true, [Some("3"), None]),
        ("position('zz' in s)", Int32, true, [Some("0"), None]),
        ("split_part('a,b,c', ',', 2)", Utf8, false, [Some("b"); 2]),
        ("split_part('a,b,c', ',', -1)", Utf8, false, [Some("c"); 2]),
        ("lpad('a', 3, '*')", Utf8, false, [Some("**a"); 2]),
        ("rpad('abc', 2)", Utf8, false, [Some("ab"); 2]),
        ("repeat('ab', 2)", Utf8, false, [Some("abab"); 2]),
        ("ascii('a')", Int32, false, [Some("97"); 2]),
        ("levenshtein('kitten', 'sitting')", Int32, false, [Some("3"); 2]),
        ("starts_with(s, 'h')", Boolean, true, [Some("true"), None]),
        ("contains(s, 'x')", Boolean, true, [Some("false"), None]),
    ]);
    refused(&[
        ("repeat('ab', 100000000)", ErrorCode::InvalidInput, "this text is too long at row 100"),
        ("lpad('a', 1000000000)", ErrorCode::InvalidInput, "this text is too long at row 100"),
        ("split_part('a', ',', 0)", ErrorCode::InvalidInput, "counted from 1"),
    ]);
}

#[test]
fn functions_of_numbers_and_dates_give_the_types_of_lancedb() {
    use DataType::{Boolean, Date32, Float32, Float64, Int32, Int64};
    check(&[
        ("abs(-i)", Int32, true, [Some("10"), None]),
        ("abs(g)", Float32, true, [Some("2.5"), None]),
        ("round(2.5)", Float64, false, [Some("3.0"); 2]),
        ("round(1.25, 1)", Float64, false, [Some("1.3"); 2]),
        ("round(i)", Float64, true, [Some("10.0"), None]),
        ("floor(-1.5)", Float64, false, [Some("-2.0"); 2]),
        ("ceil(g)", Float32, true, [Some("3.0"), None]),
        ("sqrt(4)", Float64, false, [Some("2.0"); 2]),
        ("power(i, 2)", Float64, true, [Some("100.0"), None]),
        ("ln(1)", Float64, false, [Some("0.0"); 2]),
        ("isnan(f)", Boolean, true, [Some("false"), None]),
        ("greatest(i, 15)", Int64, false, [Some("15"), Some("15")]),
        ("least(i, id, 5)", Int64, false, [Some("1"), Some("2")]),
        ("date_part('year', d)", Int32, true, [Some("2024"), None]),
        ("extract(day from ts)", Int32, true, [Some("1"), None]),
        ("date_trunc('month', ts)", MILLIS, true, [Some("2024-01-01T00:00:00"), None]),
        ("date_trunc('week', d)", NANOS, true, [Some("2024-01-01T00:00:00"), None]),
        ("now()", NANOS, false, [Some("2024-02-29T23:59:59.000000001"); 2]),
        ("current_date", Date32, false, [Some("2024-02-29"); 2]),
        ("to_timestamp_millis(1500)", MILLIS, false, [Some("1970-01-01T00:00:01.500"); 2]),
        ("to_date('2024-01-01')", Date32, false, [Some("2024-01-01"); 2]),
        ("d > ts", Boolean, true, [Some("true"), None]),
        ("array_length(tags)", DataType::UInt64, true, [Some("2"), None]),
        ("array_position(tags, 'y')", DataType::UInt64, true, [Some("2"), None]),
        ("arrow_cast(i, 'Int16')", DataType::Int16, true, [Some("10"), None]),
        ("get_field(st, 'a')", Int64, true, [Some("7"), None]),
    ]);
    refused(&[("abs(cast(-128 as tinyint))", ErrorCode::InvalidInput, "does not fit Int8 at row 100")]);
}

#[test]
fn a_literal_takes_the_type_of_its_column_and_a_computed_number_is_checked_against_it() {
    let schema = schema();
    let of = |text: &str, data_type: &DataType| {
        let value = Value::parse_as(text, &schema, data_type)?;
        value.evaluate(&batch().slice(0, 1), &|_| None)
    };
    let as_int8: ArrayRef = Arc::new(Int8Array::from(vec![7]));
    assert_eq!(of("7", &DataType::Int8), Ok(as_int8));
    assert_eq!(of("null", &DataType::Date32), Ok(new_null_array(&DataType::Date32, 1)));
    let moment: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1_500]));
    assert_eq!(of("'1970-01-01T00:00:01.5'", &MILLIS), Ok(moment));
    // More than int32, whose column it comes from, and not more than the column that it is for.
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![20_000_000_000]));
    assert_eq!(of("i * 2000000000", &DataType::Int64), Ok(wide));
    // Not of that type, and left to the writer.
    assert_eq!(of("1.6", &DataType::Int32).map(|array| array.data_type().clone()), Ok(DataType::Float64));
    let vector = batch().column_by_name("v").unwrap().data_type().clone();
    let list = of("[3, 4.5]", &vector).unwrap();
    assert_eq!(list.as_fixed_size_list().values().as_ref(), &Float32Array::from(vec![3.0, 4.5]) as &dyn Array);
    let error = of("[3]", &vector).unwrap_err();
    assert!(error.to_string().contains("expected 2 items, found 1"), "{error}");
    let tags = of("['a', 'b']", batch().column_by_name("tags").unwrap().data_type()).unwrap();
    assert_eq!(tags.as_list::<i32>().value(0).as_ref(), &StringArray::from(vec!["a", "b"]) as &dyn Array);
}

#[test]
fn names_behind_a_prefix_are_columns_of_its_table() {
    let row = |values: Vec<Option<i64>>, nulls: Option<Vec<bool>>| -> ArrayRef {
        let fields = Fields::from(vec![ArrowField::new("Id", DataType::Int64, true)]);
        Arc::new(StructArray::new(fields, vec![Arc::new(Int64Array::from(values))], nulls.map(Into::into)))
    };
    let target = row(vec![Some(1), Some(2), Some(3)], None);
    let source = row(vec![Some(1), Some(1), Some(4)], Some(vec![true, true, false]));
    let fields = vec![ArrowField::new("Id", DataType::Int64, true)];
    let schema = Schema::from_arrow(&arrow_schema::Schema::new(fields)).unwrap();
    let batch = RecordBatch::try_from_iter([("target", target), ("source", source)]).unwrap();
    let tables = [("target", &schema), ("source", &schema)];
    let filter = Filter::parse_with("Target.id > source.Id", &tables).unwrap();
    assert_eq!(filter.evaluate(&batch), Ok(BooleanArray::from(vec![Some(false), Some(true), None])));
    assert_eq!(filter.columns().into_iter().collect::<Vec<_>>(), ["source", "target"]);
    assert_eq!(filter.columns_behind("source").into_iter().collect::<Vec<_>>(), ["Id"]);
    for (text, part) in
        [("id = 1", "target. or source."), ("target.x = 1", "no field named \"x\""), ("other.id = 1", "target.")]
    {
        let error = Filter::parse_with(text, &tables).unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}
