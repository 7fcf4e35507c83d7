//! Byte ranges of one request: asked for one by one, fetched merged, answered as slices of what came back.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};

/// Ranges closer than this are fetched as one: a request costs more than the bytes between.
const MERGE_GAP_BYTES: u64 = 4096;
/// So are ranges closer than this, as long as what is wanted is a part of what is read: many rows of a page lie close together.
const DENSE_GAP_BYTES: u64 = 64 * 1024;
/// The part, as 1 in this many bytes.
const DENSITY: u64 = 16;

/// The ranges of one request.
#[derive(Debug, Default)]
pub struct ByteRanges {
    wanted: Vec<Range<u64>>,
}

/// The place of a range in its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(usize);

/// The answer to a request.
#[derive(Debug, Default)]
pub struct Fetched {
    slices: Vec<Bytes>,
}

impl ByteRanges {
    pub fn add(&mut self, range: Range<u64>) -> Slot {
        self.wanted.push(range);
        Slot(self.wanted.len() - 1)
    }

    /// What to ask of the store: ascending, disjoint, not empty.
    pub fn merged(&self) -> Vec<Range<u64>> {
        let mut sorted: Vec<_> = self.wanted.iter().filter(|range| !range.is_empty()).cloned().collect();
        sorted.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        let mut wanted = 0u64;
        for range in sorted {
            wanted = wanted.saturating_add(range.end - range.start);
            let joins = |last: &Range<u64>| {
                let gap = range.start.saturating_sub(last.end);
                let is_dense = wanted.saturating_mul(DENSITY) >= range.end.saturating_sub(last.start);
                gap <= MERGE_GAP_BYTES || gap <= DENSE_GAP_BYTES && is_dense
            };
            match merged.last_mut() {
                Some(last) if joins(last) => last.end = last.end.max(range.end),
                _ => {
                    wanted = range.end - range.start;
                    merged.push(range);
                }
            }
        }
        merged
    }

    /// Cuts the answer to `merged` into the ranges that were added.
    ///
    /// # Errors
    /// `Corrupt` when the store answered less than was asked.
    pub fn cut(&self, merged: &[Range<u64>], answers: &[Bytes]) -> Result<Fetched> {
        let cut = |range: &Range<u64>| -> Result<Bytes> {
            if range.is_empty() {
                return Ok(Bytes::new());
            }
            let at = merged.partition_point(|whole| whole.start <= range.start).saturating_sub(1);
            let (Some(whole), Some(bytes)) = (merged.get(at), answers.get(at)) else {
                return Err(Error::corrupt_at(range.start, "the store left out a range"));
            };
            // Fits in memory, since `bytes` does.
            let start = range.start.saturating_sub(whole.start) as usize;
            let end = range.end.saturating_sub(whole.start) as usize;
            if bytes.len() as u64 != whole.end - whole.start || start > end || end > bytes.len() {
                let wanted = whole.end - whole.start;
                return Err(Error::corrupt_at(
                    whole.start,
                    format!("the store gave {} of {wanted} bytes", bytes.len()),
                ));
            }
            Ok(bytes.slice(start..end))
        };
        Ok(Fetched { slices: self.wanted.iter().map(cut).collect::<Result<_>>()? })
    }
}

impl Fetched {
    pub fn get(&self, slot: Slot) -> Bytes {
        self.slices.get(slot.0).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_ranges_are_fetched_as_one_and_answered_apart() {
        let mut ranges = ByteRanges::default();
        let far = ranges.add(20_000..20_004);
        let first = ranges.add(10..14);
        let empty = ranges.add(7..7);
        let near = ranges.add(14 + 4096..14 + 4098);
        let merged = ranges.merged();
        assert_eq!(merged, vec![10..4112, 20_000..20_004]);
        let answers: Vec<Bytes> = merged.iter().map(|r| r.clone().map(|x| x as u8).collect()).collect();
        let fetched = ranges.cut(&merged, &answers).unwrap();
        assert_eq!(fetched.get(far).to_vec(), (20_000..20_004u64).map(|x| x as u8).collect::<Vec<_>>());
        assert_eq!(fetched.get(first).to_vec(), vec![10, 11, 12, 13]);
        assert_eq!(fetched.get(empty).len(), 0);
        assert_eq!(fetched.get(near).to_vec(), vec![14, 15]);
    }

    #[test]
    fn a_gap_of_more_than_four_kilobytes_stays_unread() {
        let mut ranges = ByteRanges::default();
        ranges.add(0..1);
        ranges.add(4098..4099);
        assert_eq!(ranges.merged(), vec![0..1, 4098..4099]);
    }

    #[test]
    fn larger_gaps_are_read_where_a_sixteenth_is_wanted() {
        let mut ranges = ByteRanges::default();
        for at in 0..100 {
            ranges.add(at * 16_000..at * 16_000 + 1_000);
        }
        assert_eq!(ranges.merged(), vec![0..99 * 16_000 + 1_000]);
        // No density makes up for a large gap.
        let far = 99 * 16_000 + 1_000 + DENSE_GAP_BYTES + 1;
        ranges.add(far..far + 1_000_000);
        assert_eq!(ranges.merged().len(), 2);
        let mut sparse = ByteRanges::default();
        for at in 0..100 {
            sparse.add(at * 40_000..at * 40_000 + 1_000);
        }
        assert_eq!(sparse.merged().len(), 100);
    }

    #[test]
    fn a_short_answer_is_an_error() {
        let mut ranges = ByteRanges::default();
        ranges.add(0..4);
        assert!(ranges.cut(&[0..4], &[Bytes::from_static(&[1, 2, 3])]).is_err());
        assert!(ranges.cut(&[0..4], &[]).is_err());
    }
}
