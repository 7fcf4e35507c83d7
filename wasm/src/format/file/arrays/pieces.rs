//! The bytes of a read: those that are there, and those that are still to be fetched.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::file::layout::byte_ranges::ByteRanges;
use crate::format::file::reader::FileReader;

#[derive(Default)]
pub(super) struct Pieces {
    /// By start and end; `None` is still to be fetched.
    pieces: HashMap<(u64, u64), Option<Bytes>>,
    wanted: Vec<Range<u64>>,
}

impl Pieces {
    /// Whether bytes are there; if not, the next fetch brings them.
    pub(super) fn ask(&mut self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        match self.pieces.get(&(range.start, range.end)) {
            Some(piece) => piece.is_some(),
            None => {
                self.pieces.insert((range.start, range.end), None);
                self.wanted.push(range);
                false
            }
        }
    }

    /// Bytes that were asked for and fetched.
    pub(super) fn get(&self, range: &Range<u64>) -> Result<Bytes> {
        self.find(range).ok_or_else(|| Error::internal("bytes of a page that nobody asked for"))
    }

    pub(super) fn find(&self, range: &Range<u64>) -> Option<Bytes> {
        match range.is_empty() {
            true => Some(Bytes::new()),
            false => self.pieces.get(&(range.start, range.end)).cloned().flatten(),
        }
    }

    /// Fetches what was asked for, as one request. `false` when nothing was.
    pub(super) async fn fetch(&mut self, reader: &FileReader) -> Result<bool> {
        let wanted = std::mem::take(&mut self.wanted);
        if wanted.is_empty() {
            return Ok(false);
        }
        let mut ranges = ByteRanges::default();
        let slots: Vec<_> = wanted.iter().map(|range| ranges.add(range.clone())).collect();
        let fetched = reader.fetch(&ranges).await?;
        for (range, slot) in wanted.into_iter().zip(slots) {
            self.pieces.insert((range.start, range.end), Some(fetched.get(slot)));
        }
        Ok(true)
    }
}
