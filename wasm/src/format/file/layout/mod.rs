//! Page layouts: how levels and values of a page lie in its buffers.

mod constant_encode;
mod full_zip_encode;
mod leaf_values;
mod level_block;
mod levels_build;
mod mini_block_encode;
pub(crate) mod page_build;
mod page_encode;

pub(crate) use levels_build::LeafPath;
pub(crate) use page_encode::EncodedPage;
