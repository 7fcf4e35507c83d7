//! Columns of computed values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use lancelet::format::file::FileVersion;
use lancelet::table::{ComputedColumn, Consistency, CreateMode, Rows, ScanOptions, Table};
use lancelet::{Error, ErrorCode};

use crate::builders::{World, append, block_on, columns, filtered, int64s, scan};

fn computed(columns: &[(&str, &str)]) -> Vec<ComputedColumn> {
    let column = |(name, sql): &(&str, &str)| ComputedColumn { name: (*name).to_owned(), value_sql: (*sql).to_owned() };
    columns.iter().map(column).collect()
}

async fn add(table: &Table, columns: &[(&str, &str)]) -> Result<u64, Error> {
    table.add_computed_columns(&computed(columns)).await
}

async fn column(table: &Table, name: &str) -> ArrayRef {
    let batches = scan(table, ScanOptions { columns: columns(&[name]), ..ScanOptions::default() }).await;
    arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap().column(0).clone()
}

#[test]
fn computed_columns_have_the_types_of_their_expressions_in_every_format() {
    for format in [FileVersion::V2_0, FileVersion::V2_1, FileVersion::V2_2] {
        block_on(async {
            let world = World::new();
            let schema = crate::builders::schema();
            let mut create = world.database.create_table_with("t", schema, format, CreateMode::Create).await.unwrap();
            create.write(&crate::builders::batch(0..10)).await.unwrap();
            let table = create.finish(Consistency::Lazy).await.unwrap();
            append(&table, 10..20).await;
            table.delete("id in (0, 3, 15)").await.unwrap();
            let sql =
                [("twice", "id * 2"), ("one", "1"), ("label", "'x'"), ("half", "cast(null as double)"), ("n", "name")];
            assert_eq!(add(&table, &sql).await.unwrap(), 4);
            let schema = table.schema().await.unwrap();
            let types: Vec<(&DataType, bool)> =
                schema.fields().iter().map(|field| (field.data_type(), field.is_nullable())).collect();
            assert_eq!(
                types[2..],
                [
                    (&DataType::Int64, false),
                    (&DataType::Int64, false),
                    (&DataType::Utf8, false),
                    (&DataType::Float64, true),
                    (&DataType::Utf8, true)
                ]
            );
            let left: Vec<i64> = (0..20).filter(|id| ![0, 3, 15].contains(id)).collect();
            let twice = column(&table, "twice").await;
            let expected: Vec<i64> = left.iter().map(|id| id * 2).collect();
            assert_eq!(twice.as_primitive::<Int64Type>().values(), &expected[..], "{format:?}");
            assert_eq!(column(&table, "n").await.to_data(), column(&table, "name").await.to_data());
            assert_eq!(column(&table, "half").await.as_primitive::<Float64Type>().null_count(), 17);
            // Filters, rows by id and later changes see the new columns.
            assert_eq!(table.count_rows(Some("twice >= 30 and one = 1 and label = 'x'")).await.unwrap(), 4);
            let by_id = ScanOptions {
                columns: columns(&["twice"]),
                rows: Some(Rows::Ids(vec![1, (1 << 32) + 6])),
                ..ScanOptions::default()
            };
            assert_eq!(int64s(&scan(&table, by_id).await, "twice"), [2, 32], "{format:?}");
            table.drop_columns(&["id".to_owned(), "half".to_owned()]).await.unwrap();
            add(&table, &[("half", "twice / 2")]).await.unwrap();
            let kept = ScanOptions { columns: columns(&["half"]), ..filtered("twice = 38") };
            assert_eq!(int64s(&scan(&table, kept).await, "half"), [19], "{format:?}");
        });
    }
}

#[test]
fn a_row_that_has_no_value_is_named_and_nothing_is_left() {
    block_on(async {
        let world = World::new();
        let schema =
            Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true), Field::new("s", DataType::Utf8, true)]));
        let mut create = world.database.create_table("t", schema.clone()).await.unwrap();
        let x: ArrayRef = Arc::new(Int64Array::from(vec![Some(4), None, Some(i64::MAX)]));
        let s: ArrayRef = Arc::new(StringArray::from(vec![Some("1"), None, Some("z")]));
        create.write(&RecordBatch::try_new(schema, vec![x, s]).unwrap()).await.unwrap();
        let table = create.finish(Consistency::Lazy).await.unwrap();
        let overflow = add(&table, &[("ok", "x"), ("y", "x + 1")]).await.unwrap_err();
        assert_eq!(overflow.code(), ErrorCode::InvalidInput);
        assert!(overflow.to_string().contains("row 2"), "{overflow}");
        assert_eq!(table.version().await.unwrap(), 1);
        table.delete("s = 'z'").await.unwrap();
        add(&table, &[("y", "x + 1")]).await.unwrap();
        let y = column(&table, "y").await;
        assert_eq!(y.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(5), None]);
    });
}

#[test]
fn names_and_expressions_are_checked_before_anything_is_written() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..4]).await;
        let cases = [
            (("id", "1"), ErrorCode::AlreadyExists, "Column id already exists in the dataset"),
            (("st.z", "1"), ErrorCode::Schema, "Top level field st.z cannot contain `.`"),
            (("", "1"), ErrorCode::Schema, "a column name is empty"),
            (("_rowid", "1"), ErrorCode::Schema, "reserved"),
            (("ok", "1"), ErrorCode::Schema, "Duplicate field name \"ok\" in schema"),
            (("d", "nope + 1"), ErrorCode::InvalidInput, "nope"),
            (("d", "1 +"), ErrorCode::InvalidInput, ""),
        ];
        for (column, code, text) in cases {
            let error = add(&table, &[("ok", "id"), column]).await.unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
        assert_eq!(table.version().await.unwrap(), 2);
        assert_eq!(add(&table, &[]).await.unwrap(), 3);
    });
}

#[test]
fn values_are_computed_again_over_rows_that_others_added() {
    block_on(async {
        let world = World::new();
        world.table(&[0..4]).await;
        let (ours, theirs) = (world.open("t").await, world.open("t").await);
        append(&theirs, 4..6).await;
        assert_eq!(add(&ours, &[("next", "id + 1")]).await.unwrap(), 4);
        assert_eq!(int64s(&scan(&ours, ScanOptions::default()).await, "next"), [1, 2, 3, 4, 5, 6]);
        // Rows that lack a column that takes no nulls are refused.
        let mut more = theirs.append().await.unwrap();
        theirs.checkout_latest().await.unwrap();
        let late = match more.write(&crate::builders::batch(9..10)).await {
            Ok(()) => more.finish().await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(late.is_err());
    });
}

#[test]
fn rows_keep_their_stable_ids_and_tell_of_the_version_that_gave_them_values() {
    block_on(async {
        let world = World::new();
        let create = world.database.create_table("t", crate::builders::schema()).await.unwrap();
        let mut create = create.with_stable_row_ids(true);
        create.write(&crate::builders::batch(0..3)).await.unwrap();
        let table = create.finish(Consistency::Lazy).await.unwrap();
        append(&table, 3..5).await;
        table.delete("id = 1").await.unwrap();
        let system = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"];
        let lineage = async || -> Vec<Vec<u64>> {
            let batches = scan(&table, ScanOptions { columns: columns(&system), ..ScanOptions::default() }).await;
            let all = arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap();
            all.columns().iter().map(|array| array.as_primitive::<UInt64Type>().values().to_vec()).collect()
        };
        let later = Schema::new(vec![Field::new("later", DataType::Int8, true)]);
        table.add_null_columns(&later).await.unwrap();
        assert_eq!(lineage().await, [vec![0, 2, 3, 4], vec![1, 1, 2, 2], vec![1, 1, 2, 2]]);
        assert_eq!(add(&table, &[("twice", "id * 2")]).await.unwrap(), 5);
        assert_eq!(lineage().await, [vec![0, 2, 3, 4], vec![1, 1, 2, 2], vec![5, 5, 5, 5]]);
        let by_id = ScanOptions {
            columns: columns(&["twice"]),
            rows: Some(Rows::Ids(vec![4, 1, 2])),
            ..ScanOptions::default()
        };
        assert_eq!(int64s(&scan(&table, by_id).await, "twice"), [4, 8]);
    });
}
