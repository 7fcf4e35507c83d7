//! Data files made byte by byte: forms that a writer rarely or never makes, and what reading them costs.
//!
//! The comment above a test names the cases of the list of edge cases that it stands for: F container, V values, L levels.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod build;
mod claims;
mod container;
mod cost;
mod levels;
#[path = "../one_file_store/mod.rs"]
mod one_file_store;
mod values;
