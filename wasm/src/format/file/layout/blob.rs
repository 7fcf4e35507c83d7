//! The blob layout: where large values lie in the file, as a mini-block page of rows of position and size.
//!
//! A value of no bytes at a position other than 0 is none: its position holds levels, the definition level above 16 bits of repetition.

use std::ops::Range;
use std::rc::Rc;

use arrow_schema::DataType;
use bytes::Bytes;

use super::Stretch;
use super::leaf::Leaf;
use super::mini_block::MiniBlock;
use super::rep_def::{LayerKind, Layers, Stored};
use crate::error::{Error, Result};
use crate::format::file::column::Page;
use crate::format::file::encoding::Values;
use crate::format::proto::BlobLayout;
use crate::format::proto::page_layout::Layout;

/// A page whose index is decoded.
pub struct Blob {
    layers: Rc<Layers>,
    places: Box<MiniBlock>,
}

/// The layout of positions and sizes.
pub fn inner(layout: &BlobLayout) -> Result<&Layout> {
    match layout.inner_layout.as_ref().and_then(|inner| inner.layout.as_ref()) {
        Some(layout @ Layout::MiniBlock(_)) => Ok(layout),
        _ => Err(Error::not_supported("a blob page of another layout than mini-block")),
    }
}

impl Blob {
    /// Decodes the index of a page, which is that of its inner layout.
    pub fn open(page: &Page, layout: BlobLayout, buffers: &[Bytes]) -> Result<Blob> {
        let layers = Rc::new(Layers::parse(&layout.layers)?);
        if layers.max_rep > 0 {
            // Where lists begin is stored for null and empty values alone.
            return Err(Error::not_supported("blobs inside lists"));
        }
        match layout.inner_layout.and_then(|inner| inner.layout) {
            Some(Layout::MiniBlock(layout)) => {
                Ok(Blob { layers, places: Box::new(MiniBlock::open(page, layout, buffers)?) })
            }
            _ => Err(Error::not_supported("a blob page of another layout than mini-block")),
        }
    }

    pub fn cost_bytes(&self) -> usize {
        self.places.cost_bytes()
    }

    pub fn plan(&self, page: &Page, rows: &[Range<u64>]) -> Result<Vec<Stretch>> {
        self.places.plan(page, rows)
    }

    pub fn decode(&self, stretch: &Stretch, bytes: &[u8], leaf: &mut Leaf) -> Result<()> {
        let members = ["position", "size"].map(|name| arrow_schema::Field::new(name, DataType::UInt64, false));
        let mut places = Leaf::new(&DataType::Struct(members.to_vec().into()), vec![LayerKind::Item])?;
        self.places.decode(stretch, bytes, &mut places)?;
        let (mut places, ..) = places.take();
        let Values::Struct { fields, .. } = &mut places else { return Err(Error::internal("places are rows")) };
        let [Values::Fixed { bytes: positions, .. }, Values::Fixed { bytes: sizes, .. }] = fields.as_mut_slice() else {
            return Err(Error::internal("places are a position and a size"));
        };
        let mut def = Vec::new();
        for (position, size) in positions.as_chunks_mut::<8>().0.iter_mut().zip(sizes.as_chunks::<8>().0) {
            let at = u64::from_le_bytes(*position);
            if at == 0 || u64::from_le_bytes(*size) > 0 {
                def.push(0);
                continue;
            }
            let level = u16::try_from(at >> 16).ok().filter(|_| at & 0xffff == 0);
            def.push(level.ok_or_else(|| Error::corrupt(format!("levels {at:#x} of a blob")))?);
            *position = [0; 8];
        }
        self.layers.check_levels(None, Some(&def))?;
        leaf.begin_page(&self.layers, Stored { rep: false, def: true })?.extend(None, Some(&def), def.len());
        leaf.push_values(&places)
    }
}
