//! Stable row ids: the sequence of ids of a fragment's rows, deleted rows included.
//!
//! A sequence is a list of segments: a range, a range with holes, a range with a bitmap, an ascending array, an array. They stay as compact
//! in memory as in the manifest: a range of a billion rows is two numbers. What is asked of them is a walk over the ids of some
//! positions, and the position of an id.

use std::ops::Range;

use prost::Message;

use crate::error::{Error, Result};
use crate::format::proto::encoded_u64_array::{Array as ArrayForm, Numbers as ProtoNumbers};
use crate::format::proto::u64_segment::{
    Range as ProtoRange, RangeWithBitmap, RangeWithHoles, Segment as ProtoSegment,
};
use crate::format::proto::{EncodedU64Array, RowIdSequence, U64Segment};

/// The row ids of a fragment, in the order of its rows.
#[derive(Debug, Clone, Default)]
pub struct RowIds {
    segments: Vec<Segment>,
    /// Rows up to the end of each segment.
    ends: Vec<u64>,
}

/// Ids of neighbouring rows.
#[derive(Debug, Clone)]
pub enum Segment {
    Range(Range<u64>),
    Holes {
        range: Range<u64>,
        /// Ascending, inside the range.
        holes: Numbers,
    },
    Bitmap {
        range: Range<u64>,
        bits: Vec<u8>,
        /// Set bits before each block of `BLOCK` bytes.
        ranks: Vec<u64>,
    },
    Sorted(Numbers),
    Array(Numbers),
}

/// Bytes of a bitmap between two counts of the bits before them.
const BLOCK: usize = 64;

/// Numbers as offsets of a fixed width from a base.
#[derive(Debug, Clone)]
pub struct Numbers {
    base: u64,
    width: usize,
    bytes: Vec<u8>,
}

impl Numbers {
    pub(super) fn decode(array: EncodedU64Array) -> Result<Numbers> {
        let (width, numbers) = match array.array {
            Some(ArrayForm::U16(numbers)) => (2, numbers),
            Some(ArrayForm::U32(numbers)) => (4, numbers),
            Some(ArrayForm::U64(numbers)) => (8, ProtoNumbers { base: 0, bytes: numbers.bytes }),
            None => return Err(Error::corrupt("an array of row ids without a form")),
        };
        if !numbers.bytes.len().is_multiple_of(width) {
            let reason = format!("{} bytes of row ids of {width} bytes each", numbers.bytes.len());
            return Err(Error::corrupt(reason));
        }
        // The widest offset must not lead behind the last number.
        let widest = if width == 8 { 0 } else { (1u64 << (8 * width)) - 1 };
        let numbers = Numbers { base: numbers.base, width, bytes: numbers.bytes };
        if numbers.base.checked_add(widest).is_none()
            && (0..numbers.len()).any(|at| numbers.base.checked_add(numbers.offset(at)).is_none())
        {
            return Err(Error::corrupt("a row id behind 2^64"));
        }
        Ok(numbers)
    }

    /// As narrow as the numbers allow. `least` and `most` are their bounds.
    fn encode(numbers: impl Iterator<Item = u64>, least: u64, most: u64) -> EncodedU64Array {
        let width = width_of(least, most);
        let base = if width == 8 { 0 } else { least };
        let bytes = numbers.flat_map(|number| (number - base).to_le_bytes().into_iter().take(width)).collect();
        let numbers = ProtoNumbers { base, bytes };
        let array = match width {
            2 => ArrayForm::U16(numbers),
            4 => ArrayForm::U32(numbers),
            _ => ArrayForm::U64(numbers),
        };
        EncodedU64Array { array: Some(array) }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() / self.width
    }

    fn offset(&self, at: usize) -> u64 {
        let bytes = self.bytes.get(at * self.width..(at + 1) * self.width).unwrap_or(&[]);
        bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Was checked not to overflow.
    fn get(&self, at: usize) -> u64 {
        self.base.wrapping_add(self.offset(at))
    }

    /// Numbers below `bound`, when they ascend.
    fn below(&self, bound: u64) -> usize {
        partition(self.len(), |at| self.get(at) < bound)
    }

    fn is_ascending(&self) -> bool {
        (1..self.len()).all(|at| self.get(at - 1) < self.get(at))
    }
}

fn width_of(least: u64, most: u64) -> usize {
    match most - least {
        0..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

/// How many of `count` places, true ones first, are true.
fn partition(count: usize, is_true: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_true(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

impl Segment {
    pub(super) fn decode(segment: U64Segment) -> Result<Segment> {
        let segment = match segment.segment.ok_or_else(|| Error::corrupt("a segment of row ids without a form"))? {
            ProtoSegment::Range(range) => Segment::Range(checked(range.start, range.end)?),
            ProtoSegment::RangeWithHoles(RangeWithHoles { start, end, holes }) => {
                let range = checked(start, end)?;
                match holes.map(Numbers::decode).transpose()?.filter(|holes| holes.len() > 0) {
                    None => Segment::Range(range),
                    Some(holes) => {
                        let is_inside = holes.get(0) >= start && holes.get(holes.len() - 1) < end;
                        if !holes.is_ascending() || !is_inside {
                            return Err(Error::corrupt("holes that are not ascending numbers of their range"));
                        }
                        Segment::Holes { range, holes }
                    }
                }
            }
            ProtoSegment::RangeWithBitmap(RangeWithBitmap { start, end, bitmap: mut bits }) => {
                let range = checked(start, end)?;
                let count = end - start;
                if u64::try_from(bits.len()).ok() != Some(count.div_ceil(8)) {
                    return Err(Error::corrupt(format!("a bitmap of {} bytes for {count} row ids", bits.len())));
                }
                if let Some(last) = bits.last_mut().filter(|_| count % 8 != 0) {
                    *last &= (1 << (count % 8)) - 1;
                }
                let mut ranks = Vec::with_capacity(bits.len().div_ceil(BLOCK));
                let mut rank = 0;
                for block in bits.chunks(BLOCK) {
                    ranks.push(rank);
                    rank += ones(block);
                }
                Segment::Bitmap { range, bits, ranks }
            }
            ProtoSegment::SortedArray(array) => {
                let numbers = Numbers::decode(array)?;
                if !numbers.is_ascending() {
                    return Err(Error::corrupt("a sorted array of row ids that is not ascending"));
                }
                Segment::Sorted(numbers)
            }
            ProtoSegment::Array(array) => Segment::Array(Numbers::decode(array)?),
        };
        Ok(segment)
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Segment::Range(range) => range.end - range.start,
            Segment::Holes { range, holes } => range.end - range.start - holes.len() as u64,
            Segment::Bitmap { bits, ranks, .. } => {
                ranks.last().map_or(0, |before| before + bits.chunks(BLOCK).last().map_or(0, ones))
            }
            Segment::Sorted(numbers) | Segment::Array(numbers) => numbers.len() as u64,
        }
    }

    /// The smallest and the largest id; of a sparse range, its bounds. `None` when it is empty.
    pub(super) fn bounds(&self) -> Option<(u64, u64)> {
        match self {
            Segment::Range(range) | Segment::Holes { range, .. } | Segment::Bitmap { range, .. } => {
                (range.start < range.end).then(|| (range.start, range.end - 1))
            }
            Segment::Sorted(numbers) => (numbers.len() > 0).then(|| (numbers.get(0), numbers.get(numbers.len() - 1))),
            Segment::Array(numbers) => (0..numbers.len()).map(|at| numbers.get(at)).fold(None, |bounds, id| {
                Some(bounds.map_or((id, id), |(least, most): (u64, u64)| (least.min(id), most.max(id))))
            }),
        }
    }

    /// Hands over the ids of positions of the segment, as runs of following ids.
    fn runs(&self, positions: Range<u64>, sink: &mut dyn FnMut(Range<u64>)) {
        if positions.start >= positions.end {
            return;
        }
        match self {
            Segment::Range(range) => sink(range.start + positions.start..range.start + positions.end),
            Segment::Holes { range, holes } => {
                // The hole at `at` has as many ids before it as numbers of the range that are no holes.
                let ids_before = |at: usize| holes.get(at) - range.start - at as u64;
                let mut at = partition(holes.len(), |at| ids_before(at) <= positions.start);
                let mut position = positions.start;
                while position < positions.end {
                    let until = if at < holes.len() { ids_before(at).min(positions.end) } else { positions.end };
                    if position < until {
                        let first = range.start + position + at as u64;
                        sink(first..first + (until - position));
                        position = until;
                    }
                    at += 1;
                }
            }
            Segment::Bitmap { range, bits, ranks } => {
                let block = partition(ranks.len(), |at| ranks[at] <= positions.start).saturating_sub(1);
                let mut position = ranks.get(block).copied().unwrap_or(0);
                for (at, byte) in bits.iter().enumerate().skip(block * BLOCK) {
                    let mut left = *byte;
                    while left != 0 {
                        if position >= positions.end {
                            return;
                        }
                        if position >= positions.start {
                            let id = range.start + at as u64 * 8 + u64::from(left.trailing_zeros());
                            sink(id..id + 1);
                        }
                        position += 1;
                        left &= left - 1;
                    }
                }
            }
            Segment::Sorted(numbers) | Segment::Array(numbers) => {
                // Positions lie below the length of an array in memory.
                for at in positions {
                    let id = numbers.get(at as usize);
                    // The end of the last id of all does not matter: it is one id.
                    sink(id..id.saturating_add(1));
                }
            }
        }
    }

    /// What `position` needs for an array that is not sorted: its positions by their ids.
    pub(super) fn order(&self) -> Vec<u32> {
        let Segment::Array(numbers) = self else { return Vec::new() };
        // A fragment has at most 2^32 rows.
        let mut order: Vec<u32> = (0..numbers.len()).map(|at| at as u32).collect();
        order.sort_unstable_by_key(|at| numbers.get(*at as usize));
        order
    }

    /// The position of an id; an array that is not sorted is searched with the help of its `order`.
    pub(super) fn position(&self, id: u64, order: &[u32]) -> Option<u64> {
        match self {
            Segment::Range(range) => range.contains(&id).then(|| id - range.start),
            Segment::Holes { range, holes } => {
                let before = holes.below(id);
                let is_hole = before < holes.len() && holes.get(before) == id;
                (range.contains(&id) && !is_hole).then(|| id - range.start - before as u64)
            }
            Segment::Bitmap { range, bits, ranks } => {
                let at = id.checked_sub(range.start).filter(|_| id < range.end)?;
                let byte = usize::try_from(at / 8).ok()?;
                let mask = 1u8 << (at % 8);
                if bits.get(byte)? & mask == 0 {
                    return None;
                }
                let block = byte / BLOCK;
                let before =
                    ones(bits.get(block * BLOCK..byte)?) + u64::from((bits.get(byte)? & (mask - 1)).count_ones());
                Some(ranks.get(block)? + before)
            }
            Segment::Sorted(numbers) => {
                let at = numbers.below(id);
                (at < numbers.len() && numbers.get(at) == id).then_some(at as u64)
            }
            Segment::Array(numbers) => {
                let number = |at: usize| order.get(at).map_or(u64::MAX, |position| numbers.get(*position as usize));
                let at = partition(order.len(), |at| number(at) < id);
                let position = order.get(at)?;
                (number(at) == id).then(|| u64::from(*position))
            }
        }
    }
}

fn checked(start: u64, end: u64) -> Result<Range<u64>> {
    if start > end {
        return Err(Error::corrupt(format!("row ids from {start} to {end}")));
    }
    Ok(start..end)
}

fn ones(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(byte.count_ones())).sum()
}

impl RowIds {
    /// # Errors
    /// `Corrupt` for bytes that are no sequence.
    pub fn decode(bytes: &[u8]) -> Result<RowIds> {
        let sequence = RowIdSequence::decode(bytes).map_err(|error| Error::corrupt(format!("row ids: {error}")))?;
        let mut ids = RowIds::default();
        for segment in sequence.segments {
            let segment = Segment::decode(segment)?;
            let end = ids.len().checked_add(segment.len()).filter(|end| *end <= 1 << 32);
            ids.ends.push(end.ok_or_else(|| Error::corrupt("more row ids than a fragment has rows"))?);
            ids.segments.push(segment);
        }
        Ok(ids)
    }

    /// Rows.
    pub fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The segments, each with the position of its first row.
    pub(super) fn into_segments(self) -> impl Iterator<Item = (u64, Segment)> {
        let begins = std::iter::once(0).chain(self.ends);
        begins.zip(self.segments)
    }

    /// Hands over the ids of some positions, as runs of following ids. Positions behind the end have none.
    pub fn runs(&self, positions: Range<u64>, sink: &mut dyn FnMut(Range<u64>)) {
        let first = self.ends.partition_point(|end| *end <= positions.start);
        for (at, segment) in self.segments.iter().enumerate().skip(first) {
            let begin = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
            if begin >= positions.end {
                break;
            }
            let start = positions.start.saturating_sub(begin);
            segment.runs(start..(positions.end - begin).min(segment.len()), sink);
        }
    }
}

/// Collects the ids of new rows.
#[derive(Debug, Clone, Default)]
pub struct RowIdsBuilder {
    /// Not empty; a run that follows the one before is joined to it.
    runs: Vec<Range<u64>>,
}

impl RowIdsBuilder {
    pub fn push(&mut self, run: Range<u64>) {
        match self.runs.last_mut() {
            Some(last) if last.end == run.start => last.end = run.end,
            _ if run.start < run.end => self.runs.push(run),
            _ => {}
        }
    }

    /// Rows.
    pub fn len(&self) -> u64 {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Takes the first rows away.
    pub fn take_front(&mut self, mut rows: u64) -> RowIdsBuilder {
        let mut front = RowIdsBuilder::default();
        let mut whole = 0;
        for run in &mut self.runs {
            let count = rows.min(run.end - run.start);
            front.push(run.start..run.start + count);
            run.start += count;
            rows -= count;
            if run.start < run.end {
                break;
            }
            whole += 1;
        }
        self.runs.drain(..whole);
        front
    }

    /// In small segments: ascending ids as a range, with holes or a bitmap where that is smaller than an array; others as arrays.
    pub fn encode(&self) -> Vec<u8> {
        let mut segments = Vec::new();
        let mut rest = self.runs.as_slice();
        while !rest.is_empty() {
            let mut count = ascending(rest);
            if is_short(&rest[..count]) {
                // Many short ascents are one array.
                let mut end = count;
                while end < rest.len() && is_short(&rest[end..end + ascending(&rest[end..])]) {
                    end += ascending(&rest[end..]);
                }
                if end > count {
                    count = end;
                    segments.push(unsorted(&rest[..count]));
                    rest = &rest[count..];
                    continue;
                }
            }
            segments.push(sorted(&rest[..count]));
            rest = &rest[count..];
        }
        let segments = segments.into_iter().map(|segment| U64Segment { segment: Some(segment) }).collect();
        RowIdSequence { segments }.encode_to_vec()
    }
}

/// Runs from the first one on that ascend.
fn ascending(runs: &[Range<u64>]) -> usize {
    1 + runs.windows(2).take_while(|pair| pair[0].end <= pair[1].start).count()
}

/// Whether a segment of its own is dearer than the ids in an array.
fn is_short(runs: &[Range<u64>]) -> bool {
    runs.len() < 16 && runs.iter().map(|run| run.end - run.start).fold(0, u64::saturating_add) < 16
}

fn unsorted(runs: &[Range<u64>]) -> ProtoSegment {
    let least = runs.iter().map(|run| run.start).min().unwrap_or(0);
    let most = runs.iter().map(|run| run.end - 1).max().unwrap_or(0);
    ProtoSegment::Array(Numbers::encode(runs.iter().cloned().flatten(), least, most))
}

/// The smallest form of ascending runs.
fn sorted(runs: &[Range<u64>]) -> ProtoSegment {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
        return ProtoSegment::Range(ProtoRange::default());
    };
    let (start, end) = (first.start, last.end);
    if runs.len() == 1 {
        return ProtoSegment::Range(ProtoRange { start, end });
    }
    let rows = runs.iter().map(|run| run.end - run.start).sum::<u64>();
    let (first_hole, last_hole) = (first.end, last.start - 1);
    // Sums of disjoint runs below 2^64, of at most 2^32 rows; the holes may be many more.
    let holes_bytes = (end - start - rows).saturating_mul(width_of(first_hole, last_hole) as u64);
    let bitmap_bytes = (end - start).div_ceil(8);
    let array_bytes = rows.saturating_mul(width_of(start, end - 1) as u64);
    if holes_bytes <= bitmap_bytes && holes_bytes <= array_bytes {
        let holes = runs.windows(2).flat_map(|pair| pair[0].end..pair[1].start);
        let holes = Some(Numbers::encode(holes, first_hole, last_hole));
        return ProtoSegment::RangeWithHoles(RangeWithHoles { start, end, holes });
    }
    if bitmap_bytes <= array_bytes {
        // Not more than the array would take.
        let mut bitmap = vec![0u8; bitmap_bytes as usize];
        for id in runs.iter().cloned().flatten() {
            bitmap[((id - start) / 8) as usize] |= 1 << ((id - start) % 8);
        }
        return ProtoSegment::RangeWithBitmap(RangeWithBitmap { start, end, bitmap });
    }
    ProtoSegment::SortedArray(Numbers::encode(runs.iter().cloned().flatten(), start, end - 1))
}

#[cfg(test)]
mod tests;
