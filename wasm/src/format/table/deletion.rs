//! Deletion vector: which rows of a fragment are deleted, in memory and as a file.

use roaring::RoaringBitmap;

/// Physical row offsets of a fragment that are deleted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeletionVector {
    pub rows: RoaringBitmap,
}
