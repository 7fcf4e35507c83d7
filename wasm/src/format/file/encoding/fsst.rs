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

/// Decoded bytes are collected here, so that a symbol is one write of 8 bytes.
const SCRATCH: usize = 4096;

pub(super) struct SymbolTable {
    /// `None`: values are stored as they are.
    symbols: Option<Box<Symbols>>,
}

struct Symbols {
    bytes: [[u8; 8]; 256],
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
        let mut table = Box::new(Symbols { bytes: [[0; 8]; 256], lengths: [0; 256] });
        for (slot, symbol) in table.bytes.iter_mut().zip(symbols.as_chunks::<8>().0) {
            *slot = *symbol;
        }
        table.lengths[..n].copy_from_slice(lengths);
        Ok(SymbolTable { symbols: Some(table) })
    }

    /// Appends one value.
    pub(super) fn decode(&self, stored: &[u8], out: &mut Values) -> Result<()> {
        let (offsets, data) = out.variable_parts()?;
        Appender { table: self, scratch: [0; SCRATCH], filled: 0, offsets, data }.value(stored)
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
    let mut appender = Appender { table: &table, scratch: [0; SCRATCH], filled: 0, offsets, data };
    variable::for_each(variable::offset_bits(values)?, bytes, count, take, |stored| appender.encoded(stored))?;
    appender.flush()
}

struct Appender<'a> {
    table: &'a SymbolTable,
    scratch: [u8; SCRATCH],
    filled: usize,
    offsets: &'a mut Vec<u64>,
    data: &'a mut Vec<u8>,
}

impl Appender<'_> {
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
        self.offsets.push((self.data.len() + self.filled) as u64);
        Ok(())
    }

    fn symbols(&mut self, symbols: &Symbols, stored: &[u8]) -> Result<()> {
        let mut rest = stored;
        while !rest.is_empty() {
            let piece = &rest[..rest.len().min(SCRATCH / 8)];
            if self.filled + 8 * piece.len() > SCRATCH {
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

    /// Decodes codes that have 8 bytes of room each; how many. An escape code whose literal is not among them is left.
    fn piece(&mut self, symbols: &Symbols, codes: &[u8]) -> Result<usize> {
        let (mut at, mut filled) = (0, self.filled);
        while let Some(code) = codes.get(at) {
            let length = symbols.lengths[usize::from(*code)];
            if length != 0 {
                // The whole symbol, of which the next one overwrites the excess.
                if let Some(slot) = self.scratch[filled..].first_chunk_mut() {
                    *slot = symbols.bytes[usize::from(*code)];
                }
                filled += usize::from(length);
                at += 1;
            } else if *code == ESCAPE {
                let Some(literal) = codes.get(at + 1) else { break };
                self.scratch[filled] = *literal;
                filled += 1;
                at += 2;
            } else {
                return Err(Error::corrupt(format!("code {code} of no symbol")));
            }
        }
        self.filled = filled;
        Ok(at)
    }

    fn flush(&mut self) -> Result<()> {
        super::reserve(self.data, self.filled)?;
        self.data.extend_from_slice(&self.scratch[..self.filled]);
        self.filled = 0;
        Ok(())
    }
}
