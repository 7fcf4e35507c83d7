//! Page layouts: how levels and values of a page lie in its buffers.
//!
//! A page is read in steps that do no I/O: its *index* (chunk table, dictionary, levels of a constant page) is decoded once, rows are
//! *planned* into stretches of its data buffer, and the bytes of each stretch are *decoded* into a [`leaf::Leaf`], which collects the
//! values and levels of one column. [`assemble`] makes Arrow arrays of leaves.

pub(super) mod append;
pub(crate) mod array;
pub mod assemble;
mod blob;
pub mod byte_ranges;
mod constant;
mod constant_encode;
mod dictionary_encode;
#[cfg(test)]
mod encode_tests;
mod full_zip;
mod full_zip_encode;
pub(crate) mod interner;
pub mod leaf;
pub(super) mod leaf_values;
mod levels_build;
mod mini_block;
mod mini_block_encode;
mod options;
pub(crate) mod page_build;
mod page_encode;
pub mod rep_def;
mod value_codec;

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::file::column::Page;
use crate::format::proto::page_layout::Layout;
use leaf::Leaf;
pub(crate) use levels_build::LeafPath;
pub(crate) use page_encode::EncodedPage;

/// A stretch of a page's data and the rows to take from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Place in the file; empty when the page's index holds everything.
    pub bytes: Range<u64>,
    /// Rows of the page, ascending and disjoint.
    pub rows: Vec<Range<u64>>,
    /// The chunks of a mini-block page that the bytes hold.
    pub chunks: Range<usize>,
}

/// A page whose index is decoded.
pub enum OpenPage {
    MiniBlock(Box<mini_block::MiniBlock>),
    FullZip(full_zip::FullZip),
    Constant(constant::Constant),
    Blob(blob::Blob),
}

/// The buffers that make a page's index; read whole, and kept decoded.
pub fn index_buffers(page: &Page, layout: &Layout) -> Result<Vec<Range<u64>>> {
    match layout {
        Layout::MiniBlock(layout) => mini_block::index_buffers(layout).map(|index| page.buffer(index)).collect(),
        Layout::Constant(_) => Ok(page.buffers.clone()),
        Layout::Blob(layout) => index_buffers(page, blob::inner(layout)?),
        Layout::FullZip(_) | Layout::Sparse(_) => Ok(Vec::new()),
    }
}

impl OpenPage {
    /// Decodes a page's index. `buffers` are those of [`index_buffers`].
    ///
    /// # Errors
    /// `Corrupt`; `NotSupported` naming the layout or encoding.
    pub fn open(page: &Page, layout: Layout, buffers: &[Bytes]) -> Result<OpenPage> {
        match layout {
            Layout::MiniBlock(layout) => {
                mini_block::MiniBlock::open(page, layout, buffers).map(|page| OpenPage::MiniBlock(Box::new(page)))
            }
            Layout::FullZip(layout) => full_zip::FullZip::open(page, layout).map(OpenPage::FullZip),
            Layout::Constant(layout) => constant::Constant::open(page, layout, buffers).map(OpenPage::Constant),
            Layout::Blob(layout) => blob::Blob::open(page, layout, buffers).map(OpenPage::Blob),
            Layout::Sparse(_) => Err(Error::not_supported("the sparse page layout")),
        }
    }

    /// Roughly the bytes that keeping the index costs.
    pub fn cost_bytes(&self) -> usize {
        match self {
            OpenPage::MiniBlock(page) => page.cost_bytes(),
            OpenPage::FullZip(_) => 1024,
            OpenPage::Constant(page) => page.cost_bytes(),
            OpenPage::Blob(page) => page.cost_bytes(),
        }
    }

    /// The entries of a row index that [`OpenPage::plan`] needs for some rows: places in the file.
    ///
    /// # Errors
    /// `Corrupt` for an index of a wrong size.
    pub fn row_index_ranges(&self, page: &Page, rows: &[Range<u64>]) -> Result<Vec<Range<u64>>> {
        match self {
            OpenPage::FullZip(full_zip) => full_zip.row_index_ranges(page, rows),
            OpenPage::MiniBlock(_) | OpenPage::Constant(_) | OpenPage::Blob(_) => Ok(Vec::new()),
        }
    }

    /// The stretches that hold some rows. `entries` are the bytes of [`OpenPage::row_index_ranges`].
    ///
    /// # Errors
    /// `Corrupt` for an index that contradicts itself.
    pub fn plan(&self, page: &Page, rows: &[Range<u64>], entries: &[Bytes]) -> Result<Vec<Stretch>> {
        match self {
            OpenPage::MiniBlock(mini_block) => mini_block.plan(page, rows),
            OpenPage::FullZip(full_zip) => full_zip.plan(page, rows, entries),
            OpenPage::Blob(blob) => blob.plan(page, rows),
            OpenPage::Constant(_) => Ok(vec![Stretch { bytes: 0..0, rows: rows.to_vec(), chunks: 0..0 }]),
        }
    }

    /// Appends the rows of a stretch to a leaf.
    ///
    /// # Errors
    /// `Corrupt`; `NotSupported` naming the encoding.
    pub fn decode(&self, stretch: &Stretch, bytes: &[u8], leaf: &mut Leaf) -> Result<()> {
        match self {
            OpenPage::MiniBlock(mini_block) => mini_block.decode(stretch, bytes, leaf),
            OpenPage::FullZip(full_zip) => full_zip.decode(stretch, bytes, leaf),
            OpenPage::Constant(constant) => constant.decode(&stretch.rows, leaf),
            OpenPage::Blob(blob) => blob.decode(stretch, bytes, leaf),
        }
    }
}

/// A count or offset of the file as an index of memory.
fn to_usize(value: u64, what: &str) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::corrupt(format!("{what} of {value}")))
}
