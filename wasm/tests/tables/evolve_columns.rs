//! Columns added without values, dropped, renamed, cast, described: what the next version says and holds.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float32Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Schema};
use lancelet::ErrorCode;
use lancelet::format::file::FileVersion;
use lancelet::format::table::{FieldId, Manifest};
use lancelet::store::ListOptions;
use lancelet::store::Path;
use lancelet::table::{Alteration, Consistency, CreateMode, FieldMetadata, Rows, ScanOptions, Table};

use crate::builders::{World, append, batch, block_on, columns, filtered, ids, int64s, scan};

const FORMATS: [FileVersion; 3] = [FileVersion::V2_0, FileVersion::V2_1, FileVersion::V2_2];

fn alteration(path: &str) -> Alteration {
    Alteration { path: path.to_owned(), rename: None, nullable: None, data_type: None }
}

fn renamed(path: &str, name: &str) -> Alteration {
    Alteration { rename: Some(name.to_owned()), ..alteration(path) }
}

fn cast(path: &str, data_type: DataType) -> Alteration {
    Alteration { data_type: Some(data_type), ..alteration(path) }
}

fn nullable(path: &str, nullable: bool) -> Alteration {
    Alteration { nullable: Some(nullable), ..alteration(path) }
}

fn paths(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn added(fields: Vec<Field>) -> Schema {
    Schema::new(fields)
}

/// The manifest of the newest version.
async fn manifest(world: &World) -> Manifest {
    let dir = world.store.lookup("t").await.unwrap().unwrap();
    let folder = Path::default().join("_versions");
    let listed = world.store.list(&dir, &folder, &ListOptions::default()).await.unwrap();
    let newest = listed.objects.iter().find(|object| object.path.as_str().ends_with(".manifest")).unwrap();
    Manifest::decode(&world.store.get(&dir, &newest.path).await.unwrap()).unwrap()
}

fn field_ids(manifest: &Manifest) -> Vec<(String, i32)> {
    manifest.schema.all_fields().into_iter().map(|field| (field.name.clone(), field.id.0)).collect()
}

fn file_fields(manifest: &Manifest) -> Vec<Vec<Vec<i32>>> {
    let ids = |ids: &[FieldId]| ids.iter().map(|id| id.0).collect();
    let files = manifest.fragments.iter().map(|fragment| fragment.files.iter().map(|file| ids(&file.fields)).collect());
    files.collect()
}

fn nested_schema() -> Arc<Schema> {
    let members =
        DataType::Struct(vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Utf8, true)].into());
    let vector = DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Float32, true)), 2);
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("st", members, true),
        Field::new("v", vector, true),
    ]))
}

/// `id`, a struct that is null at every fourth row unless the format has no null structs, a vector.
fn nested(ids: std::ops::Range<i64>, has_null_structs: bool) -> RecordBatch {
    let schema = nested_schema();
    let len = ids.clone().count();
    let a: ArrayRef = Arc::new(Int32Array::from_iter(ids.clone().map(|id| (id % 5 != 0).then_some(id as i32))));
    let b: ArrayRef = Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("b{id}"))));
    let nulls = has_null_structs.then(|| NullBuffer::from_iter(ids.clone().map(|id| id % 4 != 3)));
    let DataType::Struct(members) = schema.field(1).data_type() else { unreachable!() };
    let structs = StructArray::new(members.clone(), vec![a, b], nulls);
    let DataType::FixedSizeList(item, _) = schema.field(2).data_type() else { unreachable!() };
    let values: ArrayRef = Arc::new(Float32Array::from_iter_values((0..2 * len).map(|n| n as f32 / 2.0)));
    let vectors = FixedSizeListArray::new(item.clone(), 2, values, None);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from_iter_values(ids)), Arc::new(structs), Arc::new(vectors)];
    RecordBatch::try_new(schema, columns).unwrap()
}

async fn nested_table(world: &World, format: FileVersion) -> Table {
    let mut create = world.database.create_table_with("t", nested_schema(), format, CreateMode::Create).await.unwrap();
    create.write(&nested(0..40, format != FileVersion::V2_0)).await.unwrap();
    let table = create.finish(Consistency::Lazy).await.unwrap();
    let mut more = table.append().await.unwrap();
    more.write(&nested(40..60, format != FileVersion::V2_0)).await.unwrap();
    more.finish().await.unwrap();
    table
}

async fn column(table: &Table, name: &str) -> ArrayRef {
    let options = ScanOptions { columns: columns(&[name]), ..ScanOptions::default() };
    let batches = scan(table, options).await;
    let schema = batches[0].schema();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap().column(0).clone()
}

#[test]
fn a_dropped_column_is_gone_and_its_name_comes_back_as_another_column() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10, 10..20]).await;
        let before = table.version().await.unwrap();
        assert_eq!(table.drop_columns(&paths(&["name"])).await.unwrap(), before + 1);
        assert_eq!(table.schema().await.unwrap().fields().len(), 1);
        let dropped = manifest(&world).await;
        assert_eq!(file_fields(&dropped), [[[0, 1]], [[0, 1]]]);
        let name = Field::new("name", DataType::Int16, true);
        table.add_null_columns(&added(vec![name])).await.unwrap();
        assert_eq!(field_ids(&manifest(&world).await), [("id".to_owned(), 0), ("name".to_owned(), 2)]);
        assert_eq!(column(&table, "name").await.null_count(), 20);
        assert_eq!(ids(&table).await, (0..20).collect::<Vec<_>>());
        table.checkout(before).await.unwrap();
        assert_eq!(column(&table, "name").await.as_string::<i32>().value(1), "n1");
    });
}

#[test]
fn files_go_with_their_last_column_and_no_fragment_is_without_one() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..10]).await;
        table.alter_columns(&[cast("name", DataType::LargeUtf8)]).await.unwrap();
        assert_eq!(file_fields(&manifest(&world).await), [[vec![0, 1], vec![2]]]);
        table.drop_columns(&paths(&["id"])).await.unwrap();
        assert_eq!(file_fields(&manifest(&world).await), [[[2]]]);
        table.add_null_columns(&added(vec![Field::new("later", DataType::Int64, true)])).await.unwrap();
        table.drop_columns(&paths(&["name"])).await.unwrap();
        let last = manifest(&world).await;
        assert_eq!(file_fields(&last), [[[3]]]);
        assert_eq!(last.fragments[0].physical_rows, 10);
        assert_eq!(column(&table, "later").await.null_count(), 10);
        assert_eq!(table.count_rows(Some("later is null")).await.unwrap(), 10);
    });
}

#[test]
fn what_is_dropped_is_named_and_something_is_left() {
    block_on(async {
        let world = World::new();
        let table = nested_table(&world, FileVersion::V2_2).await;
        let refused = async |names: &[&str]| {
            let error = table.drop_columns(&paths(names)).await.unwrap_err();
            (error.code(), error.to_string())
        };
        let missing = "Column st.zz does not exist in the dataset".to_owned();
        assert_eq!(refused(&["id", "st.zz"]).await, (ErrorCode::NotFound, missing));
        let (code, message) = refused(&["id", "st", "v"]).await;
        assert_eq!(code, ErrorCode::InvalidInput);
        assert!(message.contains("Cannot drop all columns from a dataset"), "{message}");
        assert_eq!(table.version().await.unwrap(), 2);
        table.drop_columns(&paths(&["st.a", "v", "v"])).await.unwrap();
        let ids = field_ids(&manifest(&world).await);
        assert_eq!(ids, [("id".to_owned(), 0), ("st".to_owned(), 1), ("b".to_owned(), 3)]);
        let structs = column(&table, "st").await;
        assert_eq!((structs.as_struct().num_columns(), structs.null_count()), (1, 15));
        table.drop_columns(&paths(&["st.b"])).await.unwrap();
        assert_eq!(field_ids(&manifest(&world).await), [("id".to_owned(), 0)]);
    });
}

#[test]
fn a_struct_keeps_its_nulls_when_only_members_without_values_are_left() {
    block_on(async {
        let world = World::new();
        let table = nested_table(&world, FileVersion::V2_2).await;
        let nulls = column(&table, "st").await.nulls().cloned();
        let later = DataType::Struct(vec![Field::new("z", DataType::Int8, true)].into());
        table.add_null_columns(&added(vec![Field::new("st", later, true)])).await.unwrap();
        table.drop_columns(&paths(&["st.a", "st.b"])).await.unwrap();
        let structs = column(&table, "st").await;
        assert_eq!(structs.nulls().cloned(), nulls);
        assert_eq!(structs.as_struct().column_by_name("z").unwrap().null_count(), 60);
    });
}

#[test]
fn renaming_and_nullability_write_no_data_file() {
    block_on(async {
        let world = World::new();
        let table = nested_table(&world, FileVersion::V2_1).await;
        let before = manifest(&world).await;
        let steps = [renamed("st.a", "count"), renamed("st", "box"), nullable("id", true), renamed("id", "v")];
        let swap = [renamed("id", "v"), renamed("v", "id")];
        assert!(table.alter_columns(&steps[3..]).await.unwrap_err().to_string().contains("Duplicate field name \"v\""));
        table.alter_columns(&steps[..3]).await.unwrap();
        table.alter_columns(&swap).await.unwrap();
        let after = manifest(&world).await;
        assert_eq!(after.fragments, before.fragments);
        let names: Vec<String> = field_ids(&after).into_iter().map(|(name, id)| format!("{id} {name}")).collect();
        assert_eq!(names, ["0 v", "1 box", "2 count", "3 b", "4 id"]);
        assert!(after.schema.fields[0].nullable);
        assert_eq!(column(&table, "box.count").await.as_primitive::<Int32Type>().value(1), 1);
        assert_eq!(table.count_rows(Some("v < 7 and box.count > 2")).await.unwrap(), 2);
    });
}

#[test]
fn a_column_takes_no_nulls_only_when_it_has_none() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..3, 3..5]).await;
        let error = table.alter_columns(&[nullable("name", false)]).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidInput);
        let message = error.to_string();
        assert!(message.contains("Column \"name\" contains NULL values and cannot be made non-nullable"), "{message}");
        assert!(message.contains("row 0"), "{message}");
        table.delete("name is null").await.unwrap();
        table.alter_columns(&[nullable("name", false)]).await.unwrap();
        assert!(!table.schema().await.unwrap().field(1).is_nullable());
        let mut more = table.append().await.unwrap();
        assert_eq!(more.write(&batch(6..7)).await.unwrap_err().code(), ErrorCode::Schema);
        more.abort().await.unwrap();
        // The deleted rows have nulls in the file that is read for the cast.
        table.alter_columns(&[cast("name", DataType::LargeUtf8)]).await.unwrap();
        let names = column(&table, "name").await;
        let names: Vec<&str> = names.as_string::<i64>().iter().flatten().collect();
        assert_eq!(names, ["n1", "n2", "n4"]);
    });
}

#[test]
fn a_cast_gives_a_new_id_and_a_file_of_its_own_in_every_format() {
    for format in FORMATS {
        block_on(async {
            let world = World::new();
            let table = nested_table(&world, format).await;
            table.delete("id in (1, 3, 45)").await.unwrap();
            let before = column(&table, "st").await;
            let half = DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Float16, true)), 2);
            let casts = [cast("st.a", DataType::Int64), cast("v", half), cast("id", DataType::Int16)];
            table.alter_columns(&casts).await.unwrap();
            let after = manifest(&world).await;
            let ids: Vec<i32> = field_ids(&after).into_iter().map(|(_, id)| id).collect();
            assert_eq!(ids, [5, 1, 6, 3, 7], "{format:?}");
            let whole = if format == FileVersion::V2_0 { vec![5, 1, 6, 3, 7] } else { vec![5, 6, 3, 7] };
            assert_eq!(file_fields(&after), [[whole.clone()], [whole]], "{format:?}");
            let left: Vec<i64> = (0..60).filter(|id| ![1, 3, 45].contains(id)).collect();
            let ids = column(&table, "id").await;
            let ids: Vec<i64> = ids.as_primitive::<Int16Type>().values().iter().map(|id| i64::from(*id)).collect();
            assert_eq!(ids, left, "{format:?}");
            let structs = column(&table, "st").await;
            assert_eq!(structs.nulls(), before.nulls(), "{format:?}");
            let old = before.as_struct().column(0).as_primitive::<Int32Type>().iter();
            let new = structs.as_struct().column(0).as_primitive::<Int64Type>().iter();
            for (row, (old, new)) in old.zip(new).enumerate().filter(|(row, _)| before.is_valid(*row)) {
                assert_eq!(old.map(i64::from), new, "{format:?} {row}");
            }
            assert_eq!(structs.as_struct().column(1).to_data(), before.as_struct().column(1).to_data());
            let vectors = column(&table, "v").await;
            let second = vectors.as_fixed_size_list().value(1);
            let second: Vec<f32> = second.as_primitive::<Float16Type>().values().iter().map(|v| v.to_f32()).collect();
            assert_eq!(second, [2.0, 2.5], "{format:?}");
            // Rows by id, filters and later appends see the new column.
            let rows = ScanOptions {
                columns: columns(&["id"]),
                rows: Some(Rows::Ids(vec![2, (1 << 32) + 5, (1 << 32) + 6])),
                with_row_id: true,
                ..ScanOptions::default()
            };
            let taken = scan(&table, rows).await;
            let taken: Vec<i16> =
                taken.iter().flat_map(|batch| batch.column(0).as_primitive::<Int16Type>().values().to_vec()).collect();
            assert_eq!(taken, [2, 46], "{format:?}");
            assert_eq!(
                table.count_rows(Some("st.a = 7 or id = 46")).await.unwrap(),
                1 + u64::from(format == FileVersion::V2_0)
            );
        });
    }
}

#[test]
fn a_value_that_does_not_fit_names_column_and_row_and_nothing_is_left() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..200, 200..400]).await;
        table.delete("id < 10").await.unwrap();
        let dir = world.store.lookup("t").await.unwrap().unwrap();
        let files =
            async || world.store.list(&dir, &Path::default().join("data"), &ListOptions::default()).await.unwrap();
        let (before, count) = (table.version().await.unwrap(), files().await.objects.len());
        let error = table.alter_columns(&[cast("id", DataType::Int8)]).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Schema);
        // Row 118 of those that are left: 10 were deleted.
        assert!(error.to_string().contains("column \"id\" at row 118"), "{error}");
        assert_eq!((table.version().await.unwrap(), files().await.objects.len()), (before, count));
        table.delete("id > 127").await.unwrap();
        table.alter_columns(&[cast("id", DataType::Int8)]).await.unwrap();
        assert_eq!(table.count_rows(Some("id >= 0")).await.unwrap(), 118);
    });
}

#[test]
fn casts_between_families_and_wrong_alterations_are_refused_before_anything_is_written() {
    block_on(async {
        let world = World::new();
        let table = nested_table(&world, FileVersion::V2_2).await;
        let refused = async |alterations: &[Alteration]| {
            let error = table.alter_columns(alterations).await.unwrap_err();
            (error.code(), error.to_string())
        };
        let cases = [
            (cast("id", DataType::Utf8), ErrorCode::InvalidInput, "Cannot cast column \"id\" from Int64 to Utf8"),
            (cast("st.b", DataType::Int32), ErrorCode::InvalidInput, "Cannot cast column \"st.b\" from Utf8 to Int32"),
            (renamed("zz", "y"), ErrorCode::NotFound, "Column \"zz\" does not exist in the dataset"),
            (renamed("id", "v"), ErrorCode::Schema, "Duplicate field name \"v\" in schema"),
            (renamed("st.a", "b"), ErrorCode::Schema, "Duplicate field name \"b\" in schema"),
            (renamed("id", ""), ErrorCode::Schema, "a column name is empty"),
            (renamed("id", "a.b"), ErrorCode::Schema, "Top level field a.b cannot contain `.`"),
            (renamed("id", "_rowid"), ErrorCode::Schema, "reserved"),
            (
                alteration("id"),
                ErrorCode::InvalidInput,
                "Alteration must have a 'rename', 'dataType', or 'nullable' field.",
            ),
        ];
        for (alteration, code, text) in cases {
            let (found, message) = refused(&[renamed("st", "ok"), alteration]).await;
            assert_eq!(found, code, "{message}");
            assert!(message.contains(text), "{message}");
        }
        let (code, message) = refused(&[renamed("id", "x"), nullable("id", true)]).await;
        assert_eq!(code, ErrorCode::InvalidInput);
        assert!(message.contains("altered twice"), "{message}");
        assert_eq!(table.version().await.unwrap(), 2);
    });
}

#[test]
fn columns_without_values_are_null_and_take_values_later() {
    block_on(async {
        let world = World::new();
        let table = nested_table(&world, FileVersion::V2_2).await;
        let before = manifest(&world).await;
        let inner = DataType::Struct(vec![Field::new("z", DataType::Int64, true)].into());
        let fields = vec![Field::new("st", inner, true), Field::new("d", DataType::Float64, true)];
        table.add_null_columns(&added(fields)).await.unwrap();
        let after = manifest(&world).await;
        assert_eq!(after.fragments, before.fragments);
        let ids: Vec<String> = field_ids(&after).into_iter().map(|(name, id)| format!("{id} {name}")).collect();
        assert_eq!(ids, ["0 id", "1 st", "2 a", "3 b", "5 z", "4 v", "6 d"]);
        assert_eq!(table.count_rows(Some("d is null and st.z is null")).await.unwrap(), 60);
        assert_eq!(column(&table, "st").await.null_count(), 15);
        let mut more = table.append().await.unwrap();
        more.write(&nested(60..61, true)).await.unwrap();
        more.finish().await.unwrap();
        table.alter_columns(&[cast("st.z", DataType::Int8), cast("d", DataType::Float32)]).await.unwrap();
        assert_eq!(table.schema().await.unwrap().field(3).data_type(), &DataType::Float32);
        assert_eq!(column(&table, "d").await.null_count(), 61);
        let rows = ScanOptions { columns: columns(&["id"]), ..filtered("id = 60") };
        assert_eq!(int64s(&scan(&table, rows).await, "id"), [60]);
    });
}

#[test]
fn a_column_is_added_once_with_one_type_and_takes_nulls() {
    block_on(async {
        let world = World::new();
        let table = nested_table(&world, FileVersion::V2_1).await;
        let member = |field: Field| Field::new("st", DataType::Struct(vec![field].into()), true);
        let cases = [
            (
                Field::new("d", DataType::Int8, false),
                ErrorCode::InvalidInput,
                "All-null columns must be nullable, but field 'd' is not.",
            ),
            (
                Field::new("id", DataType::Int64, true),
                ErrorCode::AlreadyExists,
                "Column id already exists in the dataset",
            ),
            (
                Field::new("id", DataType::Float64, true),
                ErrorCode::InvalidInput,
                "Type conflicts between id(Int64) and id(Float64)",
            ),
            (Field::new("a.b", DataType::Int8, true), ErrorCode::Schema, "Top level field a.b cannot contain `.`"),
            (Field::new("_rowaddr", DataType::Int8, true), ErrorCode::Schema, "reserved"),
            (
                member(Field::new("z", DataType::Int8, true)),
                ErrorCode::InvalidInput,
                "not supported in Lance file version 2.1",
            ),
        ];
        for (field, code, text) in cases {
            let error = table.add_null_columns(&added(vec![Field::new("ok", DataType::Int8, true), field])).await;
            let error = error.unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
        let twice = vec![Field::new("d", DataType::Int8, true), Field::new("d", DataType::Int8, true)];
        let error = table.add_null_columns(&added(twice)).await.unwrap_err();
        assert!(error.to_string().contains("Duplicate field name \"d\" in schema"), "{error}");
        assert_eq!(table.version().await.unwrap(), 2);
    });
}

#[test]
fn metadata_of_fields_are_merged_removed_and_replaced() {
    block_on(async {
        let world = World::new();
        let table = nested_table(&world, FileVersion::V2_2).await;
        let update = |path: &str, entries: &[(&str, Option<&str>)], replaces: bool| FieldMetadata {
            path: path.to_owned(),
            entries: entries.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect(),
            replaces,
        };
        let both =
            [update("st.a", &[("k", Some("1")), ("z", Some("2"))], false), update("id", &[("q", Some("0"))], false)];
        assert_eq!(table.update_field_metadata(&both).await.unwrap(), 3);
        table.update_field_metadata(&[update("st.a", &[("k", None), ("w", Some("3"))], false)]).await.unwrap();
        let after = manifest(&world).await;
        let of = |manifest: &Manifest, path: &str| -> Vec<(String, String)> {
            manifest.schema.field_path(path).unwrap().metadata.clone().into_iter().collect()
        };
        assert_eq!(of(&after, "st.a"), [("w".to_owned(), "3".to_owned()), ("z".to_owned(), "2".to_owned())]);
        assert_eq!(of(&after, "id"), [("q".to_owned(), "0".to_owned())]);
        table.update_field_metadata(&[update("st.a", &[("only", Some("x"))], true)]).await.unwrap();
        assert_eq!(of(&manifest(&world).await, "st.a"), [("only".to_owned(), "x".to_owned())]);
        let DataType::Struct(members) = table.schema().await.unwrap().field(1).data_type().clone() else {
            unreachable!()
        };
        assert_eq!(members[0].metadata().get("only").map(|value| value.to_string()), Some("x".to_owned()));
        let missing = table.update_field_metadata(&[update("zz", &[], false)]).await.unwrap_err();
        assert_eq!((missing.code(), missing.to_string()), (ErrorCode::NotFound, "Field 'zz' not found.".to_owned()));
        let packed =
            table.update_field_metadata(&[update("st", &[("packed", Some("true"))], false)]).await.unwrap_err();
        assert_eq!(packed.code(), ErrorCode::InvalidInput);
        let key = "lance-schema:unenforced-primary-key:position";
        table.update_field_metadata(&[update("id", &[(key, Some("1"))], false)]).await.unwrap();
        assert_eq!(manifest(&world).await.schema.fields[0].primary_key_position, 1);
        let fixed = table.update_field_metadata(&[update("id", &[(key, None)], false)]).await.unwrap_err();
        assert!(fixed.to_string().contains("cannot be changed once set"), "{fixed}");
        let open = table.alter_columns(&[nullable("id", true)]).await.unwrap_err();
        assert!(open.to_string().contains("must not be nullable"), "{open}");
    });
}

#[test]
fn changes_of_the_schema_go_on_top_of_what_others_committed() {
    block_on(async {
        let world = World::new();
        world.table(&[0..4]).await;
        let (ours, theirs) = (world.open("t").await, world.open("t").await);
        append(&theirs, 4..6).await;
        theirs.delete("id = 1").await.unwrap();
        ours.alter_columns(&[cast("id", DataType::Int32)]).await.unwrap();
        let ids = column(&ours, "id").await;
        assert_eq!(ids.as_primitive::<Int32Type>().values(), &[0, 2, 3, 4, 5]);
        theirs.add_null_columns(&added(vec![Field::new("d", DataType::Int8, true)])).await.unwrap();
        let twice = ours.add_null_columns(&added(vec![Field::new("d", DataType::Int8, true)])).await.unwrap_err();
        assert_eq!(twice.code(), ErrorCode::AlreadyExists);
        theirs.drop_columns(&paths(&["name"])).await.unwrap();
        let gone = ours.alter_columns(&[renamed("name", "label")]).await.unwrap_err();
        assert_eq!(gone.code(), ErrorCode::NotFound);
        ours.checkout(2).await.unwrap();
        let pinned = ours.drop_columns(&paths(&["id"])).await.unwrap_err();
        assert_eq!(pinned.code(), ErrorCode::InvalidInput);
    });
}

#[test]
fn rows_under_way_bring_no_values_into_a_column_that_got_the_id_of_a_dropped_one() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[]).await;
        table.add_null_columns(&added(vec![Field::new("d", DataType::Int32, true)])).await.unwrap();
        let mut under_way = table.append().await.unwrap();
        let values: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![1])), Arc::new(Int32Array::from(vec![7]))];
        let given = added(vec![Field::new("id", DataType::Int64, false), Field::new("d", DataType::Int32, true)]);
        under_way.write(&RecordBatch::try_new(Arc::new(given), values).unwrap()).await.unwrap();

        let theirs = world.open("t").await;
        let dropped = field_ids(&manifest(&world).await);
        theirs.drop_columns(&paths(&["d"])).await.unwrap();
        theirs.add_null_columns(&added(vec![Field::new("d", DataType::Int32, true)])).await.unwrap();
        assert_eq!(field_ids(&manifest(&world).await), dropped, "no file has the id any more");
        under_way.finish().await.unwrap();

        let column = column(&table, "d").await;
        assert_eq!((column.len(), column.null_count()), (1, 1));
        assert_eq!(file_fields(&manifest(&world).await), [[[0, 1, -2]]]);
    });
}

#[test]
fn metadata_under_way_do_not_land_on_another_column_of_a_version_that_came_back() {
    block_on(async {
        let world = World::new();
        world.table(&[0..1]).await;
        let ours = world.open("t").await;
        let other = added(vec![Field::new("id", DataType::Int64, false), Field::new("other", DataType::Utf8, true)]);
        let mut overwrite = ours.overwrite_with(&other, FileVersion::V2_1).await.unwrap();
        let values: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let given = added(vec![Field::new("id", DataType::Int64, false)]);
        overwrite.write(&RecordBatch::try_new(Arc::new(given), vec![values]).unwrap()).await.unwrap();
        overwrite.finish().await.unwrap();

        let theirs = world.open("t").await;
        theirs.checkout(2).await.unwrap();
        theirs.restore().await.unwrap();
        let entries = vec![("unit".to_owned(), Some("m".to_owned()))];
        let note = FieldMetadata { path: "other".into(), entries, replaces: false };
        let lost = ours.update_field_metadata(&[note]).await.unwrap_err();
        assert_eq!(lost.code(), ErrorCode::NotFound);
        assert!(theirs.schema().await.unwrap().fields().iter().all(|field| field.metadata().is_empty()));
    });
}

#[test]
fn long_columns_are_cast_window_by_window() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..150_000).await;
        table.delete("id < 70000 or (id > 80000 and id < 140000) or id in (70001, 79999, 149998)").await.unwrap();
        table.alter_columns(&[cast("id", DataType::Int32)]).await.unwrap();
        let ids = column(&table, "id").await;
        let expected: Vec<i32> =
            (70_000..80_001).chain(140_000..150_000).filter(|id| ![70_001, 79_999, 149_998].contains(id)).collect();
        assert_eq!(ids.as_primitive::<Int32Type>().values(), &expected[..]);
        assert_eq!(table.count_rows(Some("id = 149999")).await.unwrap(), 1);
    });
}
