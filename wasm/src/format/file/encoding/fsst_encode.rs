//! FSST: the symbol table of a page, found in a sample of its values, and values as codes of its symbols.
//!
//! The table is grown in rounds. A round encodes the sample with the table so far and counts how often each symbol, and each pair of
//! neighbours, was used; the symbols and the concatenations that would save most make the next table. A greedy match takes the longest
//! symbol: one of 3 to 8 bytes from a hash table over its first three, else one of two bytes, else one of one byte, else an escape.

use super::fsst::{COMPRESSED, ESCAPE, MAGIC, TABLE_BYTES};
use super::{Values, describe};
use crate::format::proto::compressive_encoding::Compression;
use crate::format::proto::{CompressiveEncoding, Fsst};

/// Bytes of values that the symbols are found in.
const SAMPLE_BYTES: usize = 32 << 10;
/// The sample is taken in pieces of this size, so that a few long values do not make all of it.
const PIECE_BYTES: usize = 512;
const ROUNDS: usize = 5;
const MAX_SYMBOLS: usize = 255;
/// Codes of a table being grown: a byte that is no symbol stands for itself, symbols come after.
const FIRST_SYMBOL: usize = 256;
const CODES: usize = FIRST_SYMBOL + MAX_SYMBOLS + 1;
const HASH_BITS: u32 = 11;

/// The description of FSST over `values`, with a symbol table of [`FsstEncoder::table`].
pub fn fsst(symbol_table: Vec<u8>, values: CompressiveEncoding) -> CompressiveEncoding {
    describe(Compression::Fsst(Box::new(Fsst { symbol_table: symbol_table.into(), values: Some(Box::new(values)) })))
}

/// A symbol table, ready to encode.
pub struct FsstEncoder {
    matcher: Matcher,
    /// Encoded bytes per 1000 bytes of the sample.
    per_mille: usize,
}

impl FsstEncoder {
    /// Finds the symbols of the values between `offsets`, which fit `data`; `None` when there is nothing to look at.
    pub fn train(offsets: &[u64], data: &[u8]) -> Option<FsstEncoder> {
        let sample = Sample::of(offsets, data)?;
        let mut matcher = Matcher::new(&[]);
        let mut counts = Counts::new();
        for round in 1..=ROUNDS {
            counts.clear();
            // Early tables are poor judges: a part of the sample will do.
            for value in sample.values().skip(ROUNDS - round).step_by(1 + (ROUNDS - round)) {
                counts.add(&matcher, value);
            }
            matcher = Matcher::new(&counts.best(&matcher, round));
        }
        let mut encoded = Vec::new();
        sample.values().for_each(|value| matcher.encode(value, 0..value.len(), &mut encoded));
        let per_mille = encoded.len() * 1000 / sample.bytes.len().max(1);
        Some(FsstEncoder { matcher, per_mille })
    }

    /// How many bytes `len` bytes of values are expected to take.
    pub fn estimate(&self, len: usize) -> usize {
        (len as u64 * self.per_mille as u64 / 1000) as usize
    }

    /// The values between `offsets`, which fit `data`, as codes.
    pub fn encode(&self, offsets: &[u64], data: &[u8]) -> Values {
        let mut out = Vec::with_capacity(self.estimate(data.len()) + data.len() / 16 + 64);
        let mut ends = Vec::with_capacity(offsets.len().max(1));
        ends.push(0);
        for pair in offsets.windows(2) {
            self.matcher.encode(data, pair[0] as usize..pair[1] as usize, &mut out);
            ends.push(out.len() as u64);
        }
        Values::Variable { offsets: ends, data: out }
    }

    /// The table as a page description holds it.
    pub fn table(&self) -> Vec<u8> {
        let symbols = &self.matcher.symbols;
        let header = MAGIC << 32 | COMPRESSED | symbols.len() as u64;
        let mut table = Vec::with_capacity(TABLE_BYTES);
        table.extend_from_slice(&header.to_le_bytes());
        symbols.iter().for_each(|symbol| table.extend_from_slice(&symbol.bytes.to_le_bytes()));
        table.extend(symbols.iter().map(|symbol| symbol.len));
        table.resize(TABLE_BYTES, 0);
        table
    }
}

/// Up to 8 bytes, the first one lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Symbol {
    bytes: u64,
    len: u8,
}

impl Symbol {
    fn byte(byte: u8) -> Symbol {
        Symbol { bytes: u64::from(byte), len: 1 }
    }

    /// As far as 8 bytes go.
    fn concat(self, next: Symbol) -> Symbol {
        let shift = u32::from(self.len) * 8;
        let bytes = if shift < 64 { self.bytes | next.bytes << shift } else { self.bytes };
        Symbol { bytes, len: (self.len + next.len).min(8) }
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * u32::from(self.len.clamp(1, 8)))
    }
}

/// Finds the longest symbol at a place.
struct Matcher {
    symbols: Vec<Symbol>,
    /// Symbols of 3 bytes and more by the hash of their first three.
    long: Box<[Long; 1 << HASH_BITS]>,
    /// By the next two bytes: `len << 8 | code` of a symbol of one or two bytes, or [`NONE`].
    short: Box<[u16; 1 << 16]>,
    /// By the next byte alone, where a value ends behind it.
    last: Box<[u16; 256]>,
}

#[derive(Clone, Copy)]
struct Long {
    bytes: u64,
    mask: u64,
    /// In a free slot more than any value has.
    len: u32,
    code: u8,
}

/// No symbol: the byte is escaped.
const NONE: u16 = 1 << 8 | ESCAPE as u16;
const FREE: Long = Long { bytes: 0, mask: 0, len: u32::MAX, code: 0 };

fn slot_of(bytes: u64) -> usize {
    let first = (bytes & 0xff_ffff) as u32;
    (first.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

/// The next 8 bytes, zeros behind the end.
#[inline(always)]
fn load(data: &[u8], at: usize) -> u64 {
    match data.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            let rest = data.get(at..).unwrap_or_default();
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(bytes)
        }
    }
}

impl Matcher {
    /// Of candidates, best first: those that find a place, up to [`MAX_SYMBOLS`].
    fn new(candidates: &[Symbol]) -> Matcher {
        let mut matcher = Matcher {
            symbols: Vec::with_capacity(MAX_SYMBOLS),
            long: Box::new([FREE; 1 << HASH_BITS]),
            short: vec![NONE; 1 << 16].into_boxed_slice().try_into().unwrap_or_else(|_| Box::new([NONE; 1 << 16])),
            last: Box::new([NONE; 256]),
        };
        let mut pairs = Vec::new();
        for symbol in candidates {
            if matcher.symbols.len() == MAX_SYMBOLS {
                break;
            }
            let code = matcher.symbols.len() as u8;
            match symbol.len {
                1 => matcher.last[symbol.bytes as usize & 0xff] = 1 << 8 | u16::from(code),
                2 => pairs.push((*symbol, code)),
                _ => {
                    let slot = &mut matcher.long[slot_of(symbol.bytes)];
                    if slot.len != FREE.len {
                        continue;
                    }
                    *slot = Long { bytes: symbol.bytes, mask: symbol.mask(), len: u32::from(symbol.len), code };
                }
            }
            matcher.symbols.push(*symbol);
        }
        for (two, code) in matcher.short.iter_mut().enumerate() {
            *code = matcher.last[two & 0xff];
        }
        for (symbol, code) in pairs {
            matcher.short[symbol.bytes as usize & 0xffff] = 2 << 8 | u16::from(code);
        }
        matcher
    }

    /// Code and length of the symbol at the start of `next`, of which `left` bytes belong to the value.
    #[inline(always)]
    fn find(&self, next: u64, left: usize) -> (u8, usize) {
        let long = &self.long[slot_of(next)];
        if (next ^ long.bytes) & long.mask == 0 && long.len as usize <= left {
            return (long.code, long.len as usize);
        }
        let short = if left >= 2 { self.short[next as usize & 0xffff] } else { self.last[next as usize & 0xff] };
        (short as u8, usize::from(short >> 8))
    }

    /// Appends the codes of a value.
    #[inline]
    fn encode(&self, data: &[u8], value: std::ops::Range<usize>, out: &mut Vec<u8>) {
        let (mut at, mut filled) = (value.start, out.len());
        // Every byte may need an escape.
        out.resize(filled + 2 * value.len(), 0);
        while at < value.end {
            let next = load(data, at);
            let (code, len) = self.find(next, value.end - at);
            if let Some(pair) = out.get_mut(filled..filled + 2) {
                pair[0] = code;
                pair[1] = next as u8;
            } else if let Some(last) = out.get_mut(filled) {
                // Not an escape: those are two bytes for one.
                *last = code;
            }
            filled += 1 + usize::from(code == ESCAPE);
            at += len;
        }
        out.truncate(filled);
    }
}

/// How often the codes of a table, and pairs of them, were used.
struct Counts {
    single: Box<[u32]>,
    pair: Box<[u16]>,
    /// Pairs that were counted.
    pairs: Vec<u32>,
}

impl Counts {
    fn new() -> Counts {
        let single = vec![0; CODES].into_boxed_slice();
        Counts { single, pair: vec![0; CODES * CODES].into_boxed_slice(), pairs: Vec::new() }
    }

    fn clear(&mut self) {
        self.single.fill(0);
        self.pairs.drain(..).for_each(|pair| self.pair[pair as usize] = 0);
    }

    fn add(&mut self, matcher: &Matcher, value: &[u8]) {
        let mut previous = None;
        let mut at = 0;
        while at < value.len() {
            let next = load(value, at);
            let (code, len) = matcher.find(next, value.len() - at);
            let byte = next as u8;
            let used = if code == ESCAPE { usize::from(byte) } else { FIRST_SYMBOL + usize::from(code) };
            self.count(previous, used);
            // The first byte alone is a candidate as well: of its own, and for making the symbol before it longer.
            if len > 1 {
                self.count(previous, usize::from(byte));
            }
            previous = Some(used);
            at += len;
        }
    }

    fn count(&mut self, previous: Option<usize>, code: usize) {
        self.single[code] += 1;
        if let Some(previous) = previous {
            let pair = previous * CODES + code;
            if self.pair[pair] == 0 {
                self.pairs.push(pair as u32);
            }
            self.pair[pair] = self.pair[pair].saturating_add(1);
        }
    }

    /// The symbols that save most, best first.
    fn best(&self, matcher: &Matcher, round: usize) -> Vec<Symbol> {
        let symbol = |code: usize| match code.checked_sub(FIRST_SYMBOL) {
            Some(index) => matcher.symbols.get(index).copied().unwrap_or_default(),
            None => Symbol::byte(code as u8),
        };
        let mut gains: Vec<(Symbol, u64)> = Vec::new();
        for (code, count) in self.single.iter().enumerate().filter(|(_, count)| **count > 0) {
            let symbol = symbol(code);
            // A single byte that is no symbol costs two: it is worth more than its length.
            let worth = if symbol.len == 1 { 8 } else { u64::from(symbol.len) };
            gains.push((symbol, worth * u64::from(*count)));
        }
        // The last table is not grown any more from pairs seen a few times.
        let rare = round as u16;
        for pair in &self.pairs {
            let count = self.pair[*pair as usize];
            let (first, second) = (symbol(*pair as usize / CODES), symbol(*pair as usize % CODES));
            if count > rare && first.len < 8 {
                let symbol = first.concat(second);
                gains.push((symbol, u64::from(symbol.len) * u64::from(count)));
            }
        }
        // The same bytes may be made in several ways.
        gains.sort_unstable_by_key(|(symbol, _)| (symbol.bytes, symbol.len));
        gains.dedup_by(|again, kept| {
            let same = again.0 == kept.0;
            kept.1 += if same { again.1 } else { 0 };
            same
        });
        gains.sort_unstable_by_key(|(symbol, gain)| (std::cmp::Reverse(*gain), symbol.bytes, symbol.len));
        gains.into_iter().map(|(symbol, _)| symbol).collect()
    }
}

/// Parts of the values, spread over all of them.
struct Sample {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Sample {
    fn of(offsets: &[u64], data: &[u8]) -> Option<Sample> {
        let count = offsets.len().checked_sub(1).filter(|count| *count > 0)?;
        let mut sample = Sample { bytes: Vec::with_capacity(SAMPLE_BYTES + PIECE_BYTES), ends: Vec::new() };
        let total = offsets[count] - offsets[0];
        // Values of about this number make a sample.
        let wanted = (count as u64 * SAMPLE_BYTES as u64).div_ceil(total.max(1)).max(64);
        let step = (count as u64 / wanted).max(1) as usize;
        for index in (0..count).step_by(step) {
            let value = data.get(offsets[index] as usize..offsets[index + 1] as usize)?;
            // Of long values a piece from somewhere.
            let skip = (index * 7919) % (value.len().saturating_sub(PIECE_BYTES) + 1);
            let piece = &value[skip..value.len().min(skip + PIECE_BYTES)];
            if piece.is_empty() {
                continue;
            }
            sample.bytes.extend_from_slice(piece);
            sample.ends.push(sample.bytes.len());
            if sample.bytes.len() >= SAMPLE_BYTES {
                break;
            }
        }
        (!sample.bytes.is_empty()).then_some(sample)
    }

    fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::file::encoding::{ValueDecoder, decode_chunk, encode_variable_chunk, variable};

    fn joined(values: &[Vec<u8>]) -> (Vec<u64>, Vec<u8>) {
        let mut offsets = vec![0];
        let mut data = Vec::new();
        for value in values {
            data.extend_from_slice(value);
            offsets.push(data.len() as u64);
        }
        (offsets, data)
    }

    fn check(values: &[Vec<u8>]) -> usize {
        let (offsets, data) = joined(values);
        let encoder = FsstEncoder::train(&offsets, &data).unwrap();
        let Values::Variable { offsets: ends, data: codes } = encoder.encode(&offsets, &data) else { panic!() };
        let encoding = fsst(encoder.table(), variable(32));
        let chunk = encode_variable_chunk(&ends, &codes, 32).unwrap();
        let mut out = Values::for_encoding(&encoding).unwrap();
        decode_chunk(&encoding, &[&chunk], values.len(), 0..values.len(), &mut out).unwrap();
        assert_eq!(out, Values::Variable { offsets: offsets.clone(), data: data.clone() });
        let decoder = ValueDecoder::new(&encoding).unwrap();
        let mut one = Values::for_encoding(&encoding).unwrap();
        decoder.decode(&codes[..ends[1] as usize], &mut one).unwrap();
        assert_eq!(one, Values::Variable { offsets: vec![0, offsets[1]], data: values[0].clone() });
        codes.len()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn values_come_back(
            values in prop::collection::vec(
                prop_oneof![
                    "[ab]{0,40}".prop_map(String::into_bytes),
                    "(http://www[.]|user-|[a-z]{1,3})(example|[0-9]{1,4})".prop_map(String::into_bytes),
                    prop::collection::vec(any::<u8>(), 0..30),
                    Just(vec![0; 9]),
                    Just(vec![255; 3]),
                ],
                1..200,
            ),
        ) {
            prop_assume!(values.iter().any(|value| !value.is_empty()));
            check(&values);
        }
    }

    #[test]
    fn repeated_parts_of_text_become_a_code() {
        let urls: Vec<_> = (0..2000).map(|i| format!("https://www.example.com/item/{i}").into_bytes()).collect();
        let plain: usize = urls.iter().map(Vec::len).sum();
        let encoded = check(&urls);
        assert!(encoded * 4 < plain, "{encoded} of {plain}");
    }

    #[test]
    fn random_bytes_are_not_expected_to_shrink() {
        let mut state = 1_u64;
        let mut byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        let values: Vec<Vec<u8>> = (0..2000).map(|_| (0..40).map(|_| byte()).collect()).collect();
        let (offsets, data) = joined(&values);
        let encoder = FsstEncoder::train(&offsets, &data).unwrap();
        assert!(encoder.estimate(data.len()) > data.len() * 9 / 10);
        check(&values);
    }

    #[test]
    fn long_values_and_a_single_one_are_encoded() {
        check(&[b"x".to_vec()]);
        check(&[b"to be or not to be ".repeat(5000)]);
        assert!(FsstEncoder::train(&[0, 0, 0], &[]).is_none());
        assert!(FsstEncoder::train(&[], &[]).is_none());
    }
}
