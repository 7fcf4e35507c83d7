//! Table metadata: what a version is made of, and its bytes.

pub mod closest;
pub mod deletion;
pub mod feature;
pub mod fragment;
pub mod index;
mod json;
pub mod layout;
pub mod logical_type;
pub mod manifest;
pub mod reference;
pub mod row_id;
pub mod row_id_index;
pub mod row_version;
pub mod schema;
pub mod transaction;

pub use deletion::DeletionVector;
pub use fragment::{DataFile, DeletionFile, Fragment, FragmentId};
pub use index::{IndexEntry, IndexSection};
pub use manifest::{Manifest, Version};
pub use reference::{Branch, Tag};
pub use row_id::{RowIds, RowIdsBuilder};
pub use row_id_index::RowIdIndex;
pub use row_version::RowVersions;
pub use schema::{Field, FieldId, Schema, of_children};
pub use transaction::{Operation, Replacement, RewriteGroup, Transaction, UpdateMap};
