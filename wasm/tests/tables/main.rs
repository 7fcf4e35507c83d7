//! Tables through the public API, over a store in memory.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../builders/mod.rs"]
mod builders;
mod cleanup;
mod compact;
mod evolve_columns;
mod evolve_computed;
mod evolve_crashes;
mod evolved;
mod fresh_rows;
mod maintain;
mod merge_insert;
mod names;
mod overwrite;
mod races;
mod refresh;
mod row_ids;
mod scans;
mod schedules;
mod tags;
mod transfer;
mod update;
mod versions;
mod write_spec;
mod writes;
