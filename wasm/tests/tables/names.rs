//! Names of tables: given, taken, and asked for again.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use lancelet::error::ErrorCode;
use lancelet::format::file::FileVersion;
use lancelet::store::fault::{Fault, Faults};
use lancelet::store::{RenameOutcome, Store};
use lancelet::table::{CreateMode, Database};

use crate::builders::{World, append, batch, block_on, ids, schema};

#[test]
fn a_renamed_table_keeps_its_handles_and_frees_its_name() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..3).await;
        table.checkout(1).await.unwrap();
        world.database.rename_table("t", "u").await.unwrap();
        assert_eq!(world.database.table_names().await.unwrap(), ["u"]);
        assert_eq!(ids(&table).await, [0, 1, 2]);
        table.checkout_latest().await.unwrap();
        append(&table, 3..4).await;
        assert_eq!(ids(&world.open("u").await).await, [0, 1, 2, 3]);
        world.create("t", 7..8).await;
        assert_eq!(ids(&world.open("t").await).await, [7]);
        assert_eq!(ids(&table).await, [0, 1, 2, 3]);
    });
}

#[test]
fn a_rename_to_a_name_that_is_taken_or_bad_or_of_no_table_changes_nothing() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..1).await;
        world.create("u", 5..6).await;
        let code = async |from: &str, to: &str| {
            world.database.rename_table(from, to).await.map_err(|error| (error.code(), error.to_string()))
        };
        assert_eq!(code("t", "u").await, Err((ErrorCode::TableExists, "Table 'u' already exists".into())));
        assert_eq!(code("zz", "v").await, Err((ErrorCode::TableNotFound, "Table 'zz' was not found".into())));
        assert_eq!(code("t", "a b").await.unwrap_err().0, ErrorCode::InvalidInput);
        assert_eq!(code("t", "t").await, Ok(()));
        assert_eq!(world.database.table_names().await.unwrap(), ["t", "u"]);
        assert_eq!(ids(&world.open("t").await).await, [0]);
    });
}

/// A store that loses the answers of the first renamings, and what happens after each lost one.
fn losing(world: &World, lost: u32, then: impl Fn() + 'static) -> Database {
    let renames = Rc::new(Cell::new(0u32));
    let plan = Box::new(move |_, op: &lancelet::store::observed::Op| {
        if op.name != "rename_dir" {
            return Fault::None;
        }
        renames.set(renames.get() + 1);
        if renames.get() == 2 {
            then();
        }
        if renames.get() <= lost { Fault::LoseAnswer } else { Fault::None }
    });
    Database::new(Faults::around(world.store.clone(), plan).0, world.env.clone())
}

#[test]
fn a_rename_whose_answer_was_lost_finds_its_deed() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..1).await;
        losing(&world, 3, || ()).rename_table("t", "u").await.unwrap();
        assert_eq!(world.database.table_names().await.unwrap(), ["u"]);
        let lost = losing(&world, 99, || ()).rename_table("u", "v").await;
        assert_eq!(lost.unwrap_err().code(), ErrorCode::OutcomeUnknown);
    });
}

#[test]
fn a_rename_whose_answer_was_lost_never_says_that_there_was_no_table() {
    block_on(async {
        let world = World::new();
        world.create("t", 0..1).await;
        let dir = world.store.lookup("t").await.unwrap().unwrap();
        let store: Rc<dyn Store> = world.store.clone();
        // Renamed on by somebody else, before the answer is asked for again.
        let then = move || {
            assert_eq!(block_on(store.rename_dir(&dir, "u", "w")).unwrap(), RenameOutcome::Renamed);
        };
        let error = losing(&world, 1, then).rename_table("t", "u").await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::OutcomeUnknown);
        assert_eq!(world.database.table_names().await.unwrap(), ["w"]);
    });
}

#[test]
fn a_schema_is_expected_with_its_order_its_types_its_nullability_and_its_metadata() {
    block_on(async {
        let world = World::new();
        let table = world.create("t", 0..1).await;
        table.expect_schema(&schema()).await.unwrap();
        let of = |fields: Vec<Field>| Schema::new(fields);
        let own: Vec<Field> = schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        let mut turned = own.clone();
        turned.reverse();
        let mut strict = own.clone();
        strict[0] = strict[0].clone().with_nullable(!strict[0].is_nullable());
        let mut tagged = own.clone();
        tagged[0] = tagged[0].clone().with_metadata([("k".to_owned(), "v".to_owned())]);
        let mut other = own.clone();
        other[0] = Field::new(own[0].name(), DataType::Boolean, own[0].is_nullable());
        let marked = of(own.clone()).with_metadata([("k".to_owned(), "v".to_owned())]);
        for (wrong, difference) in [
            (of(turned), "column \"name\" Utf8, in the table \"id\" Int64 not null"),
            (of(strict), "column \"id\" Int64, in the table \"id\" Int64 not null"),
            (of(tagged), "metadata of column \"id\" differ"),
            (of(other), "column \"id\" Boolean not null, in the table \"id\" Int64 not null"),
            (of(own[..1].to_vec()), "1 columns, the table has 2"),
            (marked, "metadata differ"),
        ] {
            let error = table.expect_schema(&wrong).await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::Schema, "{wrong:?}");
            let words = format!("Provided schema does not match existing table schema: {difference}");
            assert!(error.to_string().ends_with(&words), "{error}");
        }
    });
}

#[test]
fn an_overwrite_keeps_what_of_schema_and_format_is_not_given() {
    block_on(async {
        let world = World::new();
        let format = Some(FileVersion::V2_1);
        let mut create = world.database.create_table_with("t", schema(), format, CreateMode::Create).await.unwrap();
        create.write(&batch(0..3)).await.unwrap();
        let table = create.finish(lancelet::table::Consistency::Lazy).await.unwrap();
        let mut rows = table.overwrite_as(None, None).await.unwrap();
        rows.write(&batch(7..9)).await.unwrap();
        assert_eq!(rows.finish().await.unwrap(), 2);
        assert_eq!((ids(&table).await, table.schema().await.unwrap()), (vec![7, 8], schema()));
        let other = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
        let rows = table.overwrite_as(Some(other.clone()), None).await.unwrap();
        assert_eq!(rows.finish().await.unwrap(), 3);
        assert_eq!((ids(&table).await, table.schema().await.unwrap()), (vec![], other));
        assert!(table.uses_v2_manifest_paths().unwrap());
        table.close().await.unwrap();
        assert_eq!(table.uses_v2_manifest_paths().unwrap_err().code(), ErrorCode::Closed);
    });
}
