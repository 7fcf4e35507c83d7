use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array, Float64Array,
    Int32Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampMillisecondArray, UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field as ArrowField, Fields};

use super::*;
use crate::error::ErrorCode;

/// Rows 0 to 4; row 2 is null but for `id`.
fn batch() -> RecordBatch {
    let members = Fields::from(vec![ArrowField::new("a", DataType::Int64, true)]);
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(4), Some(5)]));
    let nulls = NullBuffer::from(vec![true, true, false, true, false]);
    let dictionary: DictionaryArray<Int32Type> =
        vec![Some("x"), Some("y"), None, Some("x"), Some("y")].into_iter().collect();
    let decimal = Decimal128Array::from(vec![Some(150), Some(-250), None, Some(0), Some(1)])
        .with_precision_and_scale(10, 2)
        .unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3, 4, 9_007_199_254_740_993]))),
        ("i", Arc::new(Int32Array::from(vec![Some(10), Some(20), None, Some(-7), Some(i32::MAX)]))),
        ("f", Arc::new(Float64Array::from(vec![Some(1.5), Some(-2.5), None, Some(-0.0), Some(f64::NAN)]))),
        ("g", Arc::new(Float32Array::from(vec![Some(0.1), Some(-0.0), None, Some(2.0), Some(-f32::NAN)]))),
        ("s", Arc::new(StringArray::from(vec![Some("apple"), Some("Banana"), None, Some(""), Some("it's 100%")]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true), Some(false)]))),
        ("d", Arc::new(Date32Array::from(vec![Some(19_723), Some(19_782), None, Some(-1), Some(0)]))),
        (
            "ts",
            Arc::new(TimestampMillisecondArray::from(vec![Some(1_704_067_200_000), Some(-1), None, Some(0), Some(1)])),
        ),
        ("bin", Arc::new(BinaryArray::from_opt_vec(vec![Some(&[1, 2]), Some(&[255]), None, Some(&[]), Some(&[0])]))),
        ("st", Arc::new(StructArray::new(members, vec![inner], Some(nulls)))),
        ("dict", Arc::new(dictionary)),
        ("dec", Arc::new(decimal)),
        ("userName", Arc::new(StringArray::from(vec!["Ann", "Bob", "Cy", "Di", "Ed"]))),
        ("my col", Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5]))),
        ("order", Arc::new(Int64Array::from(vec![5, 4, 3, 2, 1]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn matching(filter: &str) -> crate::error::Result<Vec<usize>> {
    let batch = batch();
    let schema = Schema::from_arrow(&batch.schema())?;
    let mask = Filter::parse(filter, &schema)?.evaluate(&batch)?;
    assert_eq!(mask.len(), 5);
    Ok((0..5).filter(|row| arrow_array::Array::is_valid(&mask, *row) && mask.value(*row)).collect())
}

#[track_caller]
fn check(cases: &[(&str, &[usize])]) {
    for (filter, rows) in cases {
        assert_eq!(matching(filter).as_deref(), Ok(*rows), "{filter}");
    }
}

#[track_caller]
fn refused(cases: &[(&str, ErrorCode, &str)]) {
    for (filter, code, part) in cases {
        let error = matching(filter).expect_err(filter);
        assert_eq!(error.code(), *code, "{filter}: {error}");
        assert!(error.to_string().contains(part), "{filter}: {error}");
    }
}

#[test]
fn comparisons_take_literals_of_every_type() {
    check(&[
        ("id = 9007199254740993", &[4]),
        ("id = 9007199254740992", &[]),
        ("i <> 10", &[1, 3, 4]),
        ("10 < i", &[1, 4]),
        ("i >= -7 and i <= 10", &[0, 3]),
        ("f = 0", &[3]),
        ("f = -0.0", &[3]),
        ("f < 0", &[1]),
        ("f > 1e300", &[4]),
        ("f = f", &[0, 1, 3, 4]),
        ("g = 0.1", &[0]),
        ("g = 0", &[1]),
        ("g > 2", &[4]),
        ("s = 'it''s 100%'", &[4]),
        ("s > 'A'", &[0, 1, 4]),
        ("b = true", &[0, 3]),
        ("bin = X'0102'", &[0]),
        ("bin = x'FF'", &[1]),
        ("d = date '2024-01-01'", &[0]),
        ("d < date '1970-01-01'", &[3]),
        ("ts = timestamp '2024-01-01 00:00:00'", &[0]),
        ("ts = timestamp '2024-01-01T02:00:00+02:00'", &[0]),
        ("ts > timestamp '1969-12-31 23:59:59.9995'", &[0, 3, 4]),
        ("ts = timestamp '1970-01-01 00:00:00.0005'", &[]),
        ("ts <> timestamp '1970-01-01 00:00:00.0005'", &[0, 1, 3, 4]),
        ("ts < date '1970-01-01'", &[1]),
        ("dec = 1.5", &[0]),
        ("dec = 1.50", &[0]),
        ("dec > 0.005", &[0, 4]),
        ("dict = 'x'", &[0, 3]),
        ("i < id", &[3, 4]),
        ("1 = 1", &[0, 1, 2, 3, 4]),
        ("'a' = 'b'", &[]),
    ]);
    refused(&[("dec < 1e30", ErrorCode::InvalidInput, "out of the range")]);
}

#[test]
fn logic_is_three_valued() {
    check(&[
        ("not (i = 10)", &[1, 3, 4]),
        ("not not i = 10", &[0]),
        ("i = null", &[]),
        ("i <> null", &[]),
        ("b and null", &[]),
        ("b or null", &[0, 3]),
        ("not (b and null)", &[1, 4]),
        ("b", &[0, 3]),
        ("b is true", &[0, 3]),
        ("b is not true", &[1, 2, 4]),
        ("b is false", &[1, 4]),
        ("i is null", &[2]),
        ("i is not null", &[0, 1, 3, 4]),
        ("i in (10, null)", &[0]),
        ("i not in (10, null)", &[]),
        ("i not in (10, 20)", &[3, 4]),
        ("i in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)", &[0]),
        ("s not in ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'apple')", &[1, 3, 4]),
        ("id = 1 or id = 2 and i = 10", &[0]),
        ("(id = 1 or id = 2) and i = 20", &[1]),
        ("true", &[0, 1, 2, 3, 4]),
        ("false or b", &[0, 3]),
        ("i between 10 and 20", &[0, 1]),
        ("i not between 10 and 20", &[3, 4]),
        ("i between 20 and 10", &[]),
    ]);
}

#[test]
fn patterns_match_text_only() {
    check(&[
        ("s like 'a%'", &[0]),
        ("s ilike 'B%'", &[1]),
        ("s not like 'a%'", &[1, 3, 4]),
        ("s like '%100\\%'", &[4]),
        ("s like '%100!%' escape '!'", &[4]),
        ("s like null", &[]),
        ("dict like 'x'", &[0, 3]),
    ]);
    refused(&[("i like '1%'", ErrorCode::InvalidInput, "no text"), ("s like 1", ErrorCode::InvalidInput, "pattern")]);
}

#[test]
fn names_resolve_exactly_first_and_without_case_when_unquoted() {
    check(&[
        ("userName = 'Ann'", &[0]),
        ("USERNAME = 'Ann'", &[0]),
        ("`userName` = 'Ann'", &[0]),
        ("\"userName\" = 'Ann'", &[0]),
        ("`my col` = 1", &[0]),
        ("order = 5", &[0]),
        ("st.a = 1", &[0]),
        ("`st`.`a` = 1", &[0]),
        ("st['a'] = 1", &[0]),
        ("st.a is null", &[2, 4]),
        ("st is null", &[2, 4]),
    ]);
    refused(&[
        ("`ID` = 1", ErrorCode::InvalidInput, "did you mean \"id\""),
        ("usrName = 'x'", ErrorCode::InvalidInput, "did you mean \"userName\""),
        ("st.A = 1", ErrorCode::InvalidInput, "no field named \"A\""),
        ("`st.a` = 1", ErrorCode::InvalidInput, "no field named"),
        ("s = \"apple\"", ErrorCode::InvalidInput, "no field named \"apple\""),
        ("i.x = 1", ErrorCode::InvalidInput, "no struct"),
    ]);
}

#[test]
fn literals_of_another_type_are_refused() {
    for filter in
        ["i = 10.0", "i > 9.5", "i = '10'", "s = 10", "b = 1", "b = 'true'", "d = '2024-01-01'", "ts = 5", "f = 'NaN'"]
    {
        refused(&[(filter, ErrorCode::InvalidInput, "no implicit casts")]);
    }
    refused(&[
        ("i < 3000000000", ErrorCode::InvalidInput, "character 5: this value is out of the range"),
        ("s = i", ErrorCode::InvalidInput, "cannot be compared"),
        ("null", ErrorCode::InvalidInput, "does not return a boolean"),
        ("i", ErrorCode::InvalidInput, "does not return a boolean"),
        ("5", ErrorCode::InvalidInput, "does not return a boolean"),
    ]);
}

#[test]
fn a_syntax_error_names_its_position_and_what_was_expected() {
    refused(&[
        ("", ErrorCode::InvalidInput, "character 1: expected a column, a value"),
        ("id = ", ErrorCode::InvalidInput, "character 6"),
        ("id = 1; drop table f", ErrorCode::InvalidInput, "character 7: unexpected character ';'"),
        ("id = 1 limit 1", ErrorCode::InvalidInput, "character 8: expected \"and\", \"or\", an operator"),
        ("id = 1)", ErrorCode::InvalidInput, "character 7"),
        ("(id = 1", ErrorCode::InvalidInput, "expected \")\", found the end"),
        ("id in ()", ErrorCode::InvalidInput, "character 8"),
        ("s = 'x", ErrorCode::InvalidInput, "character 5: this ' is never closed"),
        ("d = date '2024-13-01'", ErrorCode::InvalidInput, "YYYY-MM-DD"),
        ("bin = x'0'", ErrorCode::InvalidInput, "pairs of hex digits"),
        ("id = $1", ErrorCode::InvalidInput, "unexpected character '$'"),
        ("zzz(i)", ErrorCode::InvalidInput, "no function named \"zzz\""),
        ("md5(s) = 'a'", ErrorCode::NotSupported, "function md5"),
        ("id in (select 1)", ErrorCode::NotSupported, "a subquery in an expression (character 8)"),
        ("id in (SELECT `id` FROM t)", ErrorCode::NotSupported, "a subquery"),
        ("select id from f", ErrorCode::InvalidInput, "character 8: expected \"and\""),
        ("select and id = 1", ErrorCode::InvalidInput, "no field named \"select\"; there are "),
        ("lowr(s) = 'a'", ErrorCode::InvalidInput, "did you mean \"lower\""),
        ("lower(i) = 'a'", ErrorCode::InvalidInput, "lower needs text here, found column \"i\" (Int32)"),
        ("lower() = 'a'", ErrorCode::InvalidInput, "lower takes 1 arguments, found 0"),
        ("s + 1 = 2", ErrorCode::InvalidInput, "no arithmetic with column \"s\""),
        ("cast(i as strin) = '1'", ErrorCode::InvalidInput, "no type named \"strin\""),
        ("cast(st as int) = 1", ErrorCode::InvalidInput, "no cast from column \"st\""),
        ("sum(i) > 1", ErrorCode::NotSupported, "sum()"),
        ("i & 1 = 1", ErrorCode::NotSupported, "operator &"),
        ("case when b then 1 end", ErrorCode::InvalidInput, "does not return a boolean"),
        ("case when b then 1 else 'a' end = 1", ErrorCode::InvalidInput, "no type in common"),
        ("date_part('yeer', d) = 1", ErrorCode::InvalidInput, "no part named"),
        ("i is distinct from 1", ErrorCode::NotSupported, "IS DISTINCT"),
    ]);
}

#[test]
fn comments_and_a_last_semicolon_say_nothing() {
    check(&[("i = /* ten */ 10 -- and no more", &[0]), ("i = 10 ; ", &[0]), ("i -- one\n= 10", &[0])]);
    refused(&[
        ("i = /* 10", ErrorCode::InvalidInput, "character 5: this comment is never closed"),
        ("i = 10;; ", ErrorCode::InvalidInput, "unexpected character ';'"),
    ]);
}

#[test]
fn a_deep_filter_is_refused_and_a_long_one_is_not() {
    refused(&[(&("i".to_owned() + &" + 1".repeat(5_000) + " > 0"), ErrorCode::InvalidInput, "nests deeper")]);
    let twice = (0..40).fold("b".to_owned(), |inner, _| format!("({inner}) between false and true"));
    refused(&[(&twice, ErrorCode::InvalidInput, "too large")]);
    let deep = "(".repeat(5_000) + "b" + &")".repeat(5_000);
    refused(&[(&deep, ErrorCode::InvalidInput, "nests deeper")]);
    refused(&[(&"not ".repeat(5_000), ErrorCode::InvalidInput, "nests deeper")]);
    let long = vec!["i = 10"; 5_000].join(" or ");
    check(&[(&long, &[0])]);
}

#[test]
fn system_columns_are_known_and_columns_are_listed_once() {
    let schema = Schema::from_arrow(&batch().schema()).unwrap();
    let filter = Filter::parse("_rowid < 3 and st.a = 1 and st.a < 9 and ID = 2", &schema).unwrap();
    assert_eq!(filter.columns().into_iter().collect::<Vec<_>>(), ["_rowid", "id", "st"]);
    let ids: ArrayRef = Arc::new(UInt64Array::from(vec![2, 3]));
    let rows = RecordBatch::try_from_iter([("_rowid", ids)]).unwrap();
    let mask = Filter::parse("_rowid < 3", &schema).unwrap().evaluate(&rows).unwrap();
    assert_eq!(mask, BooleanArray::from(vec![true, false]));
}

/// Pieces of the dialect, of which many sequences parse.
const WORDS: &[&str] = &[
    "i",
    "f",
    "g",
    "s",
    "b",
    "d",
    "ts",
    "dec",
    "dict",
    "st.a",
    "1",
    "0",
    "-7",
    "2.5",
    "'a'",
    "null",
    "true",
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "=",
    "<",
    "and",
    "or",
    "not",
    "(",
    ")",
    ",",
    "is null",
    "case when",
    "then",
    "else",
    "end",
    "cast(",
    "as int)",
    "as string)",
    "as timestamp)",
    "as decimal(10,2))",
    "::double",
    "lower(",
    "substr(",
    "round(",
    "abs(",
    "coalesce(",
    "nullif(",
    "greatest(",
    "date_part('year',",
    "date_trunc('week',",
    "between",
    "in (",
    "like",
    "length(",
    "lpad(",
    "repeat(",
];

proptest::proptest! {
    #[test]
    fn any_text_gives_a_filter_or_an_error(text in "[a-z0-9 ()'`\"=<>!.,%_\\[\\]-]{0,60}") {
        let _ = matching(&text);
    }

    #[test]
    fn any_words_give_a_filter_or_an_error(words in proptest::collection::vec(proptest::sample::select(WORDS), 1..14)) {
        let _ = matching(&words.join(" "));
    }
}
