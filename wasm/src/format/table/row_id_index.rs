//! An index from stable row ids to row addresses, over the sequences of a version's fragments.

use crate::format::table::row_id::{RowIds, Segment};

/// Where ids lie in many fragments.
#[derive(Debug, Default)]
pub struct RowIdIndex {
    /// By the smallest id.
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    least: u64,
    most: u64,
    /// The largest id up to and with this entry.
    most_so_far: u64,
    segment: Segment,
    /// The row address of the segment's first row.
    address: u64,
    /// For an array that is not sorted: its positions by their ids.
    order: Vec<u32>,
}

impl RowIdIndex {
    /// `fragments` with the row address of their first row.
    pub fn new(fragments: impl Iterator<Item = (u64, RowIds)>) -> RowIdIndex {
        let mut entries = Vec::new();
        for (first, ids) in fragments {
            for (begin, segment) in ids.into_segments() {
                if let Some((least, most)) = segment.bounds() {
                    let order = segment.order();
                    entries.push(Entry { least, most, most_so_far: most, segment, address: first + begin, order });
                }
            }
        }
        entries.sort_by_key(|entry| entry.least);
        let mut most = 0;
        for entry in &mut entries {
            most = entry.most.max(most);
            entry.most_so_far = most;
        }
        RowIdIndex { entries }
    }

    /// Adds the addresses of the rows that have or had an id: at most one of them is live.
    pub fn find(&self, id: u64, addresses: &mut Vec<u64>) {
        let end = self.entries.partition_point(|entry| entry.least <= id);
        for entry in self.entries.iter().take(end).rev() {
            if entry.most_so_far < id {
                break;
            }
            if entry.most >= id
                && let Some(position) = entry.segment.position(id, &entry.order)
            {
                addresses.push(entry.address + position);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::table::RowIdsBuilder;

    fn ids(runs: &[std::ops::Range<u64>]) -> RowIds {
        let mut builder = RowIdsBuilder::default();
        runs.iter().for_each(|run| builder.push(run.clone()));
        RowIds::decode(&builder.encode()).unwrap()
    }

    fn find(index: &RowIdIndex, id: u64) -> Vec<u64> {
        let mut found = Vec::new();
        index.find(id, &mut found);
        found.sort_unstable();
        found
    }

    #[test]
    fn an_id_is_found_in_every_fragment_that_has_or_had_it() {
        let fragments = [(0, ids(&[0..10])), (1 << 32, ids(&[10..14])), (3 << 32, ids(&[4..5, 2..3, 14..16, 9..10]))];
        let index = RowIdIndex::new(fragments.into_iter());
        assert_eq!(find(&index, 0), [0]);
        assert_eq!(find(&index, 4), [4, 3 << 32]);
        assert_eq!(find(&index, 2), [2, 3 << 32 | 1]);
        assert_eq!(find(&index, 13), [1 << 32 | 3]);
        assert_eq!(find(&index, 15), [3 << 32 | 3]);
        assert_eq!(find(&index, 9), [9, 3 << 32 | 4]);
        assert_eq!(find(&index, 16), []);
        assert_eq!(find(&index, u64::MAX), []);
    }

    #[test]
    fn segments_with_gaps_answer_for_their_ids_only() {
        let runs = [1000..1003, 1005..1006, 1010..1020, 70_000..70_001];
        let index = RowIdIndex::new([(5 << 32, ids(&runs))].into_iter());
        for (position, id) in (5 << 32..).zip(runs.iter().cloned().flatten()) {
            assert_eq!(find(&index, id), [position]);
        }
        assert_eq!([999, 1003, 1004, 1009, 1020, 69_999, 70_001].map(|id| find(&index, id).len()), [0; 7]);
    }
}
