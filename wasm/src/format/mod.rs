//! Values to bytes and back. Pure (`&[u8]` in, value out), except the two files named `reader` and `writer`.
//!
//! Follows the Lance format as `@lancedb/lancedb` 0.39 (lance 12) writes it; `docs/format.md` says which parts we read and write.

pub mod file;
pub mod proto;
pub mod table;
pub mod wal;
