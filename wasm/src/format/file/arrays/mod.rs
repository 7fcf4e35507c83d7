//! Data format 2.0: every field of the schema is a column, parents too, and a page is described by a tree of array encodings.
//!
//! ```text
//! struct     a column without bytes; then a column for each member, as long as the struct
//! list       the ends of its lists, null ones marked by an offset; then the column of its items, with pages of its own lengths
//! all else   one column: fixed-size lists, dictionaries, packed structs, blobs
//! ```
//!
//! There are no chunks and no levels: the value of a row is found by arithmetic, or by the ends of values before its own. A read asks
//! for the bytes that its rows need, step by step: ends before data, lists before items. What all columns ask for in a step is one
//! request.

mod columns;
mod encoding;
mod page_encode;
mod pieces;
mod read;
mod slots;
mod source;
mod values;
mod write;

pub(super) use page_encode::ArrayPage;
pub(super) use read::{Cache, read};
pub(super) use write::ArrayColumns;

/// Values that no bytes stand for, below lists, whose lengths are claims.
const MAX_UNSTORED_BYTES: u64 = 256 << 20;
