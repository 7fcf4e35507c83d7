//! Which versions go.

use lancelet::ErrorCode;
use lancelet::store::LeaseKind;
use lancelet::table::{CleanupOptions, CleanupStats, Consistency, KeepReason, ScanOptions};

use super::{ALL, DAY_MS, MINUTE_MS, clean, dir, history, manifest, numbers, objects, older_than, path, preview, put};
use crate::builders::{World, append, block_on, ids};

const REFUSED: &str = "invalid input, cleanup age must be at least 10 minutes unless delete_unverified is true; \
                       short cleanup windows can remove a manifest still needed by an in-progress write";

#[test]
fn t20_t22_e1_2_e1_3_c1_c5_an_age_under_ten_minutes_is_refused_before_anything_is_written() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        let before = objects(&world).await;
        for age in [0, 599_999, -1, i64::MIN] {
            let error = table.cleanup(&older_than(age)).await.unwrap_err();
            assert_eq!((error.code(), error.to_string()), (ErrorCode::InvalidInput, REFUSED.to_owned()), "{age}");
            assert_eq!(table.preview_cleanup(&older_than(age)).await.unwrap_err().to_string(), REFUSED);
        }
        assert_eq!((objects(&world).await, numbers(&table).await), (before, vec![1, 2, 3]));
    });
}

#[test]
fn e1_2_e1_7_c2_exactly_ten_minutes_is_allowed_and_so_is_a_date_to_come_with_delete_unverified() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        world.env.advance_ms(10 * MINUTE_MS);
        append(&table, 9..10).await;
        let ten_minutes = older_than(600_000);
        assert_eq!(clean(&world, &table, &ten_minutes).await.old_versions_removed, 2);
        assert_eq!(numbers(&table).await, [3, 4]);
        let to_come = CleanupOptions { older_than_ms: Some(-5), delete_unverified: true, ..ten_minutes };
        assert_eq!(clean(&world, &table, &to_come).await.old_versions_removed, 1);
        assert_eq!((numbers(&table).await, ids(&table).await), (vec![4], vec![2, 3, 9]));
        let far = CleanupOptions { older_than_ms: Some(i64::MIN), ..to_come };
        assert_eq!(clean(&world, &table, &far).await, CleanupStats::default());
    });
}

#[test]
fn e1_1_c3_without_an_age_versions_older_than_seven_days_go() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 9).await;
        assert_eq!(clean(&world, &table, &CleanupOptions::default()).await.old_versions_removed, 1);
        assert_eq!(numbers(&table).await, [2, 3, 4, 5, 6, 7, 8, 9]);
        world.env.advance_ms(30 * DAY_MS);
        assert_eq!(clean(&world, &table, &CleanupOptions::default()).await.old_versions_removed, 7);
        assert_eq!((numbers(&table).await, ids(&table).await), (vec![9], (2..10).collect()));
    });
}

#[test]
fn e1_1_c3_nothing_of_a_fresh_table_goes() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..2, 2..4]).await;
        assert_eq!(clean(&world, &table, &CleanupOptions::default()).await, CleanupStats::default());
        assert_eq!(numbers(&table).await, [1, 2, 3]);
    });
}

#[test]
fn c6_a_handle_that_is_checked_out_cleans_nothing() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        table.checkout(3).await.unwrap();
        let message = "invalid input, table cannot be modified when a specific version is checked out: checkoutLatest() or restore() first";
        assert_eq!(table.cleanup(&ALL).await.unwrap_err().to_string(), message);
        assert_eq!(table.preview_cleanup(&ALL).await.unwrap_err().to_string(), message);
        assert_eq!(numbers(&table).await, [1, 2, 3]);
    });
}

#[test]
fn c7_a_version_goes_when_it_is_older_than_the_age_and_not_at_it() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        world.env.advance_ms(DAY_MS);
        let at = |days: u64| older_than(i64::try_from(days * DAY_MS).unwrap());
        assert_eq!(preview(&table, &at(2)).await.1, [1]);
        world.env.advance_ms(1);
        assert_eq!(preview(&table, &at(2)).await.1, [1, 2]);
        assert_eq!(preview(&table, &at(3)).await.1, [1]);
        assert_eq!(preview(&table, &at(4)).await.1, Vec::<u64>::new());
    });
}

#[test]
fn c7_versions_of_one_clock_tick_go_together() {
    block_on(async {
        let world = World::new();
        let table = world.table(&[0..1, 1..2, 2..3]).await;
        assert_eq!(clean(&world, &table, &ALL).await.old_versions_removed, 3);
        assert_eq!((numbers(&table).await, ids(&table).await), (vec![4], vec![0, 1, 2]));
    });
}

#[test]
fn c7_a_clock_that_is_behind_makes_no_version_old() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        let behind = world.tab(9);
        let other = behind.open_table("t", lancelet::table::Consistency::Lazy).await.unwrap();
        assert_eq!(other.cleanup(&ALL).await.unwrap().old_versions_removed, 0);
        assert_eq!(numbers(&table).await, [1, 2, 3, 4]);
    });
}

#[test]
fn c8_the_version_of_the_handle_and_newer_ones_stay_whatever_their_age() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        let stale = world.open("t").await;
        append(&table, 9..10).await;
        append(&table, 10..11).await;
        world.env.advance_ms(DAY_MS * 30);
        assert_eq!(stale.cleanup(&ALL).await.unwrap().old_versions_removed, 2);
        assert_eq!(numbers(&table).await, [3, 4, 5]);
        // A preview is of the latest version, where `optimize` goes first.
        assert_eq!(preview(&stale, &ALL).await, (vec![(5, vec![KeepReason::Latest])], vec![3, 4]));
    });
}

#[test]
fn c9_a_tagged_version_stays_with_all_its_files() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        table.delete("id = 2").await.unwrap();
        table.create_tag("keep", 3).await.unwrap();
        let tolerant = CleanupOptions { error_if_tagged: false, ..ALL };
        let (kept, removed) = preview(&table, &tolerant).await;
        assert_eq!(kept, [(3, vec![KeepReason::Tag("keep".into())]), (5, vec![KeepReason::Latest])]);
        assert_eq!(removed, [1, 2, 4]);
        assert_eq!(clean(&world, &table, &tolerant).await.old_versions_removed, 3);
        let old = world.open("t").await;
        old.checkout_tag("keep").await.unwrap();
        assert_eq!((ids(&old).await, ids(&table).await), (vec![2, 3], vec![3, 4]));
        old.close().await.unwrap();
        table.delete_tag("keep").await.unwrap();
        assert_eq!(clean(&world, &table, &ALL).await.old_versions_removed, 1);
        assert_eq!((numbers(&table).await, ids(&table).await), (vec![5], vec![3, 4]));
    });
}

#[test]
fn c10_an_old_version_with_a_tag_is_an_error_before_anything_goes() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        table.create_tag("keep", 2).await.unwrap();
        let before = objects(&world).await;
        let error = table.cleanup(&ALL).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid input, Cleanup error: 1 tagged version(s) have been marked for cleanup. Either set \
             `error_if_tagged_old_versions=false` or delete the following tag(s) to enable cleanup: {\"keep\": 2}"
        );
        table.create_tag("also", 3).await.unwrap();
        let text = table.cleanup(&ALL).await.unwrap_err().to_string();
        assert!(text.contains("2 tagged version(s)") && text.ends_with("{\"also\": 3, \"keep\": 2}"), "{text}");
        table.delete_tag("also").await.unwrap();
        assert_eq!(objects(&world).await, before);
        // A preview tells instead.
        assert_eq!(preview(&table, &ALL).await.1, [1, 3]);
    });
}

#[test]
fn c11_c12_a_tag_of_a_young_or_of_the_latest_version_is_no_error() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        table.create_tag("young", 3).await.unwrap();
        table.create_tag("latest", 4).await.unwrap();
        let options = older_than(i64::try_from(DAY_MS + MINUTE_MS).unwrap());
        assert_eq!(clean(&world, &table, &options).await.old_versions_removed, 2);
        table.delete_tag("young").await.unwrap();
        let (kept, _) = preview(&table, &ALL).await;
        assert_eq!(kept, [(4, vec![KeepReason::Latest, KeepReason::Tag("latest".into())])]);
        assert_eq!(clean(&world, &table, &ALL).await.old_versions_removed, 1);
        // A tag of a version that went otherwise is no error either.
        put(&world, "_refs/tags/gone.json", r#"{"version":1,"manifestSize":5}"#).await;
        assert_eq!(clean(&world, &table, &ALL).await, CleanupStats::default());
    });
}

#[test]
fn c15_c23_what_only_old_versions_name_goes_at_once_and_a_second_run_finds_nothing() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        for id in [2, 3] {
            append(&table, id + 10..id + 11).await;
            table.delete(&format!("id = {id}")).await.unwrap();
        }
        table.overwrite().await.unwrap().finish().await.unwrap();
        append(&table, 7..8).await;
        let verified = CleanupOptions { delete_unverified: false, ..older_than(600_000) };
        world.env.advance_ms(10 * MINUTE_MS + 1);
        assert_eq!(clean(&world, &table, &verified).await.old_versions_removed, 8);
        let left = super::paths(&world).await;
        let in_folder = |folder: &str| left.iter().filter(|path| path.starts_with(folder)).count();
        assert_eq!([in_folder("data/"), in_folder("_deletions/"), in_folder("_versions/")], [1, 0, 1]);
        assert_eq!(ids(&table).await, [7]);
        assert_eq!(clean(&world, &table, &verified).await, CleanupStats::default());
        assert_eq!((table.version().await.unwrap(), numbers(&table).await), (9, vec![9]));
    });
}

#[test]
fn c25_a_handle_that_its_own_write_advanced_cleans_from_there() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 3).await;
        let stale = world.open("t").await;
        append(&table, 9..10).await;
        append(&stale, 10..11).await;
        assert_eq!(clean(&world, &stale, &ALL).await.old_versions_removed, 4);
        assert_eq!(numbers(&table).await, [5]);
        assert_eq!(ids(&stale).await, [2, 3, 9, 10]);
    });
}

#[test]
fn c26_the_old_naming_scheme_is_cleaned_as_well() {
    block_on(async {
        let world = World::new();
        history(&world, 4).await;
        let dir = dir(&world).await;
        for version in 1..=4 {
            let bytes = world.store.get(&dir, &manifest(version)).await.unwrap();
            world.store.put(&dir, &path(&format!("_versions/{version}.manifest")), bytes).await.unwrap();
            world.store.delete(&dir, &manifest(version)).await.unwrap();
        }
        let table = world.open("t").await;
        table.create_tag("two", 2).await.unwrap();
        assert_eq!(table.cleanup(&ALL).await.unwrap_err().code(), ErrorCode::InvalidInput);
        let tolerant = CleanupOptions { error_if_tagged: false, ..ALL };
        assert_eq!(clean(&world, &table, &tolerant).await.old_versions_removed, 2);
        assert_eq!((numbers(&table).await, ids(&table).await), (vec![2, 4], vec![2, 3, 4]));
    });
}

#[test]
fn what_is_in_use_stays_until_it_is_not() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 5).await;
        let scanning = world.open("t").await;
        scanning.checkout(2).await.unwrap();
        let mut scan = scanning.scan(ScanOptions::default()).await.unwrap();
        let pinned = world.open("t").await;
        pinned.checkout(3).await.unwrap();
        let (kept, removed) = preview(&table, &ALL).await;
        let lease = |kind| vec![KeepReason::Lease(kind)];
        let two = vec![KeepReason::Lease(LeaseKind::Checkout), KeepReason::Lease(LeaseKind::Scan)];
        assert_eq!(kept, [(2, two), (3, lease(LeaseKind::Checkout)), (5, vec![KeepReason::Latest])]);
        assert_eq!(removed, [1, 4]);
        clean(&world, &table, &ALL).await;
        assert_eq!(scan.next().await.unwrap().unwrap().num_rows(), 1);
        assert_eq!(ids(&pinned).await, [2, 3]);
        scan.close().await.unwrap();
        scanning.close().await.unwrap();
        assert_eq!(clean(&world, &table, &ALL).await.old_versions_removed, 1);
        // A lease that ran out keeps nothing.
        world.env.advance_ms(30_000);
        assert_eq!(clean(&world, &table, &ALL).await.old_versions_removed, 1);
        assert_eq!(numbers(&table).await, [5]);
        let read = pinned.scan(ScanOptions::default()).await.map(drop).unwrap_err();
        assert_eq!(read.code(), ErrorCode::NotFound);
    });
}

#[test]
fn an_idle_handle_whose_version_was_cleaned_up_says_so_and_what_helps() {
    block_on(async {
        let world = World::new();
        let table = history(&world, 4).await;
        let idle = world.tab(5).open_table("t", Consistency::Lazy).await.unwrap();
        let strong = world.tab(6).open_table("t", Consistency::Strong).await.unwrap();
        append(&table, 5..6).await;
        clean(&world, &table, &ALL).await;
        // What it knows of its version it still answers.
        assert_eq!((idle.version().await.unwrap(), idle.count_rows(None).await.unwrap()), (4, 3));
        let text = "version 4 of table 't' does not exist any more: a cleanup removed it while this handle stood on it; \
                    checkoutLatest() brings the handle to the newest version";
        let errors = [
            idle.scan(ScanOptions::default()).await.map(drop).unwrap_err(),
            idle.count_rows(Some("id > 0")).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!((error.code(), error.to_string()), (ErrorCode::NotFound, text.to_owned()));
        }
        // To check out a version that is gone is another mistake.
        assert_eq!(idle.checkout(4).await.unwrap_err().to_string(), "version 4 was not found");
        assert_eq!(ids(&strong).await, [2, 3, 4, 5]);
        idle.checkout_latest().await.unwrap();
        assert_eq!(ids(&idle).await, [2, 3, 4, 5]);
    });
}
