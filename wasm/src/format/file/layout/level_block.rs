//! Levels as blocks: one form for all chunks of a page.

use std::ops::Range;

use super::page_encode::{describe, describe_flat};
use crate::format::file::FileVersion;
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::{CompressiveEncoding, OutOfLineBitpacking, Rle};

/// Entries of a run have a length of one byte.
const MAX_RUN: usize = 255;

/// How the levels of a page lie in their blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LevelForm {
    /// 16 bits each.
    Flat,
    /// Runs: u64 bytes of values, values of 16 bits, lengths of 8 bits.
    Rle,
    /// Blocks of 1024 levels in so many bits each; the rest of less than 1024 as another such block or in 16 bits each, whatever is
    /// shorter.
    Packed { width: u8 },
}

impl LevelForm {
    /// The shortest form for blocks of these ranges of the levels.
    pub(crate) fn choose(levels: &[u16], blocks: &[Range<usize>], version: FileVersion) -> LevelForm {
        let greatest = levels.iter().copied().max().unwrap_or(0);
        let width = (16 - greatest.leading_zeros()).max(1) as u8;
        let mut best = (2 * levels.len(), LevelForm::Flat);
        let packed = blocks.iter().map(|block| packed_bytes(block.len(), width)).sum();
        if packed < best.0 {
            best = (packed, LevelForm::Packed { width });
        }
        if version >= FileVersion::V2_2 {
            let runs = blocks.iter().map(|block| 8 + 3 * run_count(&levels[block.clone()])).sum();
            if runs < best.0 {
                best = (runs, LevelForm::Rle);
            }
        }
        best.1
    }

    pub(crate) fn describe(self) -> CompressiveEncoding {
        match self {
            LevelForm::Flat => describe_flat(16),
            LevelForm::Rle => describe(Compression::Rle(Box::new(Rle {
                values: Some(Box::new(describe_flat(16))),
                run_lengths: Some(Box::new(describe_flat(8))),
            }))),
            LevelForm::Packed { width } => describe(Compression::OutOfLineBitpacking(Box::new(OutOfLineBitpacking {
                uncompressed_bits_per_value: 16,
                values: Some(Box::new(describe_flat(u64::from(width)))),
            }))),
        }
    }

    pub(crate) fn encode(self, levels: &[u16]) -> Vec<u8> {
        match self {
            LevelForm::Flat => levels.iter().flat_map(|level| level.to_le_bytes()).collect(),
            LevelForm::Rle => {
                let (mut values, mut lengths) = (Vec::new(), Vec::new());
                for_each_run(levels, |level, length| {
                    values.extend_from_slice(&level.to_le_bytes());
                    lengths.push(length);
                });
                [&(values.len() as u64).to_le_bytes(), values.as_slice(), &lengths].concat()
            }
            LevelForm::Packed { width } => {
                let mut out = Vec::with_capacity(packed_bytes(levels.len(), width));
                for block in levels.chunks(1024) {
                    if block.len() < 1024 && 2 * block.len() <= 128 * usize::from(width) {
                        out.extend(LevelForm::Flat.encode(block));
                    } else {
                        pack(block, width, &mut out);
                    }
                }
                out
            }
        }
    }
}

fn packed_bytes(count: usize, width: u8) -> usize {
    let block = 128 * usize::from(width);
    count / 1024 * block + block.min(count % 1024 * 2)
}

fn run_count(levels: &[u16]) -> usize {
    let mut count = 0;
    for_each_run(levels, |_, _| count += 1);
    count
}

fn for_each_run(levels: &[u16], mut take: impl FnMut(u16, u8)) {
    for run in levels.chunk_by(|a, b| a == b) {
        for part in run.chunks(MAX_RUN) {
            take(part[0], part.len() as u8);
        }
    }
}

/// At most 1024 levels in the FastLanes order: lane `l` is the bit stream of the values at `ORDER[r / 8] * 16 + (r % 8) * 128 + l` for
/// each row `r`, and word `k` of the lane is word `k * 64 + l` of the block.
fn pack(levels: &[u16], width: u8, out: &mut Vec<u8>) {
    const LANES: usize = 64;
    const ORDER: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];
    let mut words = vec![0_u16; LANES * usize::from(width)];
    for row in 0..16 {
        let bit = row * usize::from(width);
        for lane in 0..LANES {
            let index = ORDER[row / 8] * 16 + (row % 8) * 128 + lane;
            let shifted = u32::from(levels.get(index).copied().unwrap_or(0)) << (bit % 16);
            let word = bit / 16 * LANES + lane;
            words[word] |= shifted as u16;
            if let Some(next) = words.get_mut(word + LANES) {
                *next |= (shifted >> 16) as u16;
            }
        }
    }
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}
