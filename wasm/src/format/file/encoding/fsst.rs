//! FSST: values of variable length, whose bytes are codes of symbols of 1 to 8 bytes.
//!
//! ```text
//! symbol table: header u64 | n symbols of 8 bytes | n lengths of a byte | zeros
//! header: bits 0-7 n | bit 24 whether values are compressed at all | bits 32-63 magic
//! ```
//!
//! Code 255 is followed by a byte that stands for itself. A value never grows by more than 8 times.

use std::ops::Range;

use super::{Values, child, compression, variable};
use crate::error::{Error, Result};
use crate::format::proto::Fsst;
use crate::format::proto::compressive_encoding::Compression;

pub(super) const MAGIC: u64 = 0x4653_5354;
pub(super) const COMPRESSED: u64 = 1 << 24;
pub(super) const ESCAPE: u8 = 255;
/// Bytes of a symbol table, whatever it holds.
pub(super) const TABLE_BYTES: usize = 8 + 256 * 8 + 256;

/// Decoded bytes are collected here, eight in a word, so that a symbol costs two shifts and no call.
const WORDS: usize = 512;

pub(super) struct SymbolTable {
    /// `None`: values are stored as they are.
    symbols: Option<Box<Symbols>>,
}

struct Symbols {
    /// Little endian, with zeros behind the symbol.
    words: [u64; 256],
    /// 0 for the escape and for codes that there are no symbols for.
    lengths: [u8; 256],
}

impl SymbolTable {
    pub(super) fn parse(table: &[u8]) -> Result<SymbolTable> {
        let (header, rest) =
            table.split_first_chunk::<8>().ok_or_else(|| Error::corrupt("a symbol table without a header"))?;
        let header = u64::from_le_bytes(*header);
        if header >> 32 != MAGIC {
            return Err(Error::corrupt(format!("symbol table header {header:#x}")));
        }
        if header & COMPRESSED == 0 {
            return Ok(SymbolTable { symbols: None });
        }
        let n = usize::from(header.to_le_bytes()[0]);
        let (symbols, rest) = rest
            .split_at_checked(n * 8)
            .ok_or_else(|| Error::corrupt(format!("a table of {n} symbols that is cut")))?;
        let lengths = rest.get(..n).ok_or_else(|| Error::corrupt(format!("a table of {n} symbols that is cut")))?;
        if let Some(length) = lengths.iter().find(|length| !(1..=8).contains(*length)) {
            return Err(Error::corrupt(format!("a symbol of {length} bytes")));
        }
        let mut table = Box::new(Symbols { words: [0; 256], lengths: [0; 256] });
        table.lengths[..n].copy_from_slice(lengths);
        for ((slot, symbol), length) in table.words.iter_mut().zip(symbols.as_chunks::<8>().0).zip(lengths) {
            *slot = u64::from_le_bytes(*symbol) & (u64::MAX >> (64 - 8 * u32::from(*length)));
        }
        Ok(SymbolTable { symbols: Some(table) })
    }

    /// Appends one value.
    pub(super) fn decode(&self, stored: &[u8], out: &mut Values) -> Result<()> {
        let (offsets, data) = out.variable_parts()?;
        Appender::new(self, offsets, data).value(stored)
    }
}

pub(super) fn decode_chunk(
    fsst: &Fsst,
    bytes: &[u8],
    count: usize,
    take: Range<usize>,
    out: &mut Values,
) -> Result<()> {
    let Compression::Variable(values) = compression(child(fsst.values.as_deref(), "FSST")?)? else {
        return Err(Error::not_supported("FSST of compressed values"));
    };
    let table = SymbolTable::parse(&fsst.symbol_table)?;
    let (offsets, data) = out.variable_parts()?;
    let mut appender = Appender::new(&table, offsets, data);
    variable::for_each(variable::offset_bits(values)?, bytes, count, take, |stored| appender.encoded(stored))?;
    appender.flush()
}

struct Appender<'a> {
    table: &'a SymbolTable,
    /// Whole words that are not in `data` yet, and the bits of the next one.
    words: [u64; WORDS],
    filled: usize,
    last: u64,
    last_bits: u32,
    offsets: &'a mut Vec<u64>,
    data: &'a mut Vec<u8>,
}

impl<'a> Appender<'a> {
    fn new(table: &'a SymbolTable, offsets: &'a mut Vec<u64>, data: &'a mut Vec<u8>) -> Appender<'a> {
        Appender { table, words: [0; WORDS], filled: 0, last: 0, last_bits: 0, offsets, data }
    }

    fn value(mut self, stored: &[u8]) -> Result<()> {
        self.encoded(stored)?;
        self.flush()
    }

    fn encoded(&mut self, stored: &[u8]) -> Result<()> {
        match &self.table.symbols {
            None => {
                super::reserve(self.data, stored.len())?;
                self.data.extend_from_slice(stored);
            }
            Some(symbols) => self.symbols(symbols, stored)?,
        }
        self.offsets.push((self.data.len() + self.filled * 8) as u64 + u64::from(self.last_bits / 8));
        Ok(())
    }

    fn symbols(&mut self, symbols: &Symbols, stored: &[u8]) -> Result<()> {
        let mut rest = stored;
        while !rest.is_empty() {
            // A code fills a word at most.
            let piece = &rest[..rest.len().min(WORDS)];
            if self.filled + piece.len() > WORDS {
                self.flush()?;
            }
            let done = self.piece(symbols, piece)?;
            if done == 0 {
                return Err(Error::corrupt("a value that ends in an escape code"));
            }
            rest = &rest[done..];
        }
        Ok(())
    }

    /// Decodes codes that there is room for; how many. An escape code whose literal is not among them is left.
    fn piece(&mut self, symbols: &Symbols, codes: &[u8]) -> Result<usize> {
        let (mut at, mut filled, mut last, mut last_bits) = (0, self.filled, self.last, self.last_bits);
        while at < codes.len() {
            let code = codes[at];
            let length = symbols.lengths[usize::from(code)];
            let (word, bits) = if length != 0 {
                at += 1;
                (symbols.words[usize::from(code)], 8 * u32::from(length))
            } else if code == ESCAPE {
                let Some(literal) = codes.get(at + 1) else { break };
                at += 2;
                (u64::from(*literal), 8)
            } else {
                return Err(Error::corrupt(format!("code {code} of no symbol")));
            };
            last |= word << last_bits;
            if last_bits + bits < 64 {
                last_bits += bits;
            } else {
                self.words[filled % WORDS] = last;
                filled += 1;
                // What did not fit; a word that began empty took all of it.
                last = if last_bits == 0 { 0 } else { word >> (64 - last_bits) };
                last_bits = last_bits + bits - 64;
            }
        }
        (self.filled, self.last, self.last_bits) = (filled, last, last_bits);
        Ok(at)
    }

    fn flush(&mut self) -> Result<()> {
        let last = self.last_bits as usize / 8;
        super::reserve(self.data, self.filled * 8 + last)?;
        let start = self.data.len();
        self.data.resize(start + self.filled * 8, 0);
        for (bytes, word) in self.data[start..].as_chunks_mut::<8>().0.iter_mut().zip(&self.words) {
            *bytes = word.to_le_bytes();
        }
        self.data.extend_from_slice(&self.last.to_le_bytes()[..last]);
        (self.filled, self.last, self.last_bits) = (0, 0, 0);
        Ok(())
    }
}
