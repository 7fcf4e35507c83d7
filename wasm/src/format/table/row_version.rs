//! Row versions: in which version of the table each row of a fragment was created, or changed last.

use std::ops::Range;

use prost::Message;

use crate::error::{Error, Result};
use crate::format::proto::u64_segment::{Range as ProtoRange, Segment as ProtoSegment};
use crate::format::proto::{RowDatasetVersionRun, RowDatasetVersionSequence, U64Segment};
use crate::format::table::row_id::Segment;

/// The versions of a fragment's rows, in the order of its rows, in runs of one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowVersions {
    /// Rows up to the end of the run, and the version; rows ascend strictly.
    runs: Vec<(u64, u64)>,
}

impl RowVersions {
    /// # Errors
    /// `Corrupt` for bytes that are no sequence.
    pub fn decode(bytes: &[u8]) -> Result<RowVersions> {
        let sequence = RowDatasetVersionSequence::decode(bytes)
            .map_err(|error| Error::corrupt(format!("row versions: {error}")))?;
        let mut versions = RowVersions::default();
        for RowDatasetVersionRun { span, version } in sequence.runs {
            let count = span.map(Segment::decode).transpose()?.map_or(0, |span| span.len());
            if count > 1 << 32 || versions.len() + count > 1 << 32 {
                return Err(Error::corrupt("more row versions than a fragment has rows"));
            }
            versions.push(count, version);
        }
        Ok(versions)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut begin = 0;
        let mut runs = Vec::with_capacity(self.runs.len());
        for (end, version) in &self.runs {
            // Only how many there are counts; LanceDB begins at 0, too.
            let span = ProtoRange { start: 0, end: end - begin };
            let span = Some(U64Segment { segment: Some(ProtoSegment::Range(span)) });
            runs.push(RowDatasetVersionRun { span, version: *version });
            begin = *end;
        }
        RowDatasetVersionSequence { runs }.encode_to_vec()
    }

    /// Rows.
    pub fn len(&self) -> u64 {
        self.runs.last().map_or(0, |(end, _)| *end)
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds rows of one version.
    pub fn push(&mut self, rows: u64, version: u64) {
        let end = self.len() + rows;
        match self.runs.last_mut() {
            Some(last) if last.1 == version => last.0 = end,
            _ if rows > 0 => self.runs.push((end, version)),
            _ => {}
        }
    }

    /// Hands over how many rows of some positions have which version. Positions behind the end have none.
    pub fn runs(&self, positions: Range<u64>, sink: &mut dyn FnMut(u64, u64)) {
        let first = self.runs.partition_point(|(end, _)| *end <= positions.start);
        let mut position = positions.start;
        for (end, version) in self.runs.iter().skip(first) {
            if position >= positions.end {
                break;
            }
            let until = positions.end.min(*end);
            sink(until - position, *version);
            position = until;
        }
    }

    /// Takes the first rows away.
    pub fn take_front(&mut self, rows: u64) -> RowVersions {
        let (mut front, mut rest) = (RowVersions::default(), RowVersions::default());
        self.runs(0..rows, &mut |rows, version| front.push(rows, version));
        self.runs(rows..self.len(), &mut |rows, version| rest.push(rows, version));
        *self = rest;
        front
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(versions: &RowVersions, positions: Range<u64>) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        versions.runs(positions, &mut |rows, version| found.push((rows, version)));
        found
    }

    fn built(runs: &[(u64, u64)]) -> RowVersions {
        let mut versions = RowVersions::default();
        runs.iter().for_each(|(rows, version)| versions.push(*rows, *version));
        versions
    }

    #[test]
    fn runs_round_trip_and_join() {
        let versions = built(&[(2, 1), (0, 7), (3, 1), (1, 5), (4, 2)]);
        assert_eq!(all(&versions, 0..99), [(5, 1), (1, 5), (4, 2)]);
        assert_eq!(all(&versions, 4..7), [(1, 1), (1, 5), (1, 2)]);
        assert_eq!(RowVersions::decode(&versions.encode()).unwrap(), versions);
    }

    /// A compacted fragment of LanceDB: bitmap {0, 6..=9} of version 1, bitmap {0, 3} of version 2.
    #[test]
    fn only_the_size_of_a_span_counts() {
        let first = [0x0a, 0x0c, 0x0a, 0x08, 0x1a, 0x06, 0x10, 10, 0x1a, 2, 0xc1, 0x03, 0x10, 1];
        let second = [0x0a, 0x0b, 0x0a, 0x07, 0x1a, 0x05, 0x10, 4, 0x1a, 1, 0x09, 0x10, 2];
        let versions = RowVersions::decode(&[&first[..], &second[..]].concat()).unwrap();
        assert_eq!(all(&versions, 0..99), [(5, 1), (2, 2)]);
    }

    #[test]
    fn versions_are_taken_from_the_front() {
        let mut versions = built(&[(2, 1), (3, 4)]);
        assert_eq!(versions.take_front(3), built(&[(2, 1), (1, 4)]));
        assert_eq!(versions, built(&[(2, 4)]));
    }

    #[test]
    fn more_versions_than_rows_are_refused() {
        let huge =
            [0x0a, 0x10, 0x0a, 0x0c, 0x0a, 0x0a, 0x10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 0x10, 1];
        assert!(RowVersions::decode(&huge).unwrap_err().to_string().contains("more row versions"));
    }
}
