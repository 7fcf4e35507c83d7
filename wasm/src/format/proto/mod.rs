//! Wire messages of manifests and data files, one file per protobuf package. Field numbers are the Lance format's; a number is never
//! reused.
//!
//! Only fields that exist on disk are here; fields that we do not know are dropped when a message is written again, as LanceDB does.

pub mod array_encodings;
mod encodings;
mod file;
mod row_ids;
mod table;
mod transactions;

pub use encodings::*;
pub use file::*;
pub use row_ids::*;
pub use table::*;
pub use transactions::*;

use prost::Message;

/// A message whose content we never look at.
#[derive(Clone, PartialEq, Message)]
pub struct Opaque {}
