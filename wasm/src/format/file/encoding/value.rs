//! Single values, as a full-zip page stores them: each value lies alone.

use std::cell::RefCell;

use super::{
    Values, child, compression, decode_chunk, fixed_size_list, fsst, general, packed_struct, reserve, unsupported,
};
use crate::error::{Error, Result};
use crate::format::proto::CompressiveEncoding;
use crate::format::proto::compressive_encoding::Compression;

/// Decodes single values of a full-zip page, where each value lies alone.
///
/// A boolean is a byte; `Values::for_encoding` makes bytes of it, and [`Values::Bits`] are appended to as well.
pub struct ValueDecoder {
    kind: Kind,
}

enum Kind {
    /// The bytes of a row are the buffers of a chunk of one value, one after the other.
    Row {
        encoding: CompressiveEncoding,
        segments: Vec<usize>,
        bytes: usize,
    },
    Variable,
    Fsst(fsst::SymbolTable),
    General(RefCell<general::Decompressor>),
    Packed(Vec<packed_struct::PackedField>),
}

impl ValueDecoder {
    /// # Errors
    /// As [`Values::for_encoding`].
    pub fn new(encoding: &CompressiveEncoding) -> Result<ValueDecoder> {
        Values::for_encoding(encoding)?;
        let kind = match compression(encoding)? {
            Compression::Flat(_) | Compression::FixedSizeList(_) => {
                let segments = fixed_size_list::row_segments(encoding)?;
                let bytes = segments.iter().sum();
                Kind::Row { encoding: encoding.clone(), segments, bytes }
            }
            Compression::Variable(_) => Kind::Variable,
            Compression::Fsst(fsst) => {
                variable(child(fsst.values.as_deref(), "FSST")?)?;
                Kind::Fsst(fsst::SymbolTable::parse(&fsst.symbol_table)?)
            }
            Compression::General(general) => {
                variable(general::inner(general)?)?;
                Kind::General(RefCell::new(general::Decompressor::new(general::scheme(general)?)))
            }
            Compression::PackedStruct(packed) => {
                let bytes = packed_struct::widths(packed)?.iter().sum();
                Kind::Row { encoding: encoding.clone(), segments: vec![bytes], bytes }
            }
            Compression::VariablePackedStruct(packed) => Kind::Packed(packed_struct::PackedField::all(packed)?),
            Compression::InlineBitpacking(_) | Compression::OutOfLineBitpacking(_) | Compression::Rle(_) => {
                return Err(Error::not_supported("values packed together in a full-zip page"));
            }
            other => return Err(unsupported(other)),
        };
        Ok(ValueDecoder { kind })
    }

    /// Bytes of one stored value, `None` when values have a length of their own.
    pub fn fixed_bytes(&self) -> Option<usize> {
        match &self.kind {
            Kind::Row { bytes, .. } => Some(*bytes),
            Kind::Variable | Kind::Fsst(_) | Kind::General(_) | Kind::Packed(_) => None,
        }
    }

    /// Appends one value.
    ///
    /// # Errors
    /// As [`decode_chunk`].
    pub fn decode(&self, stored: &[u8], out: &mut Values) -> Result<()> {
        match &self.kind {
            Kind::Row { encoding, segments, bytes } => {
                if stored.len() != *bytes {
                    return Err(Error::corrupt(format!("a value of {} bytes, {bytes} expected", stored.len())));
                }
                if segments.len() == 1 {
                    return decode_chunk(encoding, &[stored], 1, 0..1, out);
                }
                let mut parts = [&[][..]; super::MAX_DEPTH + 1];
                let mut rest = stored;
                for (part, size) in parts.iter_mut().zip(segments) {
                    (*part, rest) = rest.split_at(*size);
                }
                decode_chunk(encoding, parts.get(..segments.len()).unwrap_or_default(), 1, 0..1, out)
            }
            Kind::Variable => append(stored, out),
            Kind::Fsst(table) => table.decode(stored, out),
            Kind::General(_) if stored.is_empty() => append(stored, out),
            Kind::Packed(fields) => packed_struct::decode_row(fields, stored, out),
            Kind::General(decompressor) => append(&decompressor.borrow_mut().decompress_value(stored)?, out),
        }
    }

    /// Appends the values that lie side by side in `stored`, as they do in a page without control words.
    ///
    /// # Errors
    /// As [`decode_chunk`]; also when values have a length of their own.
    pub fn decode_rows(&self, stored: &[u8], out: &mut Values) -> Result<()> {
        let Kind::Row { encoding, segments, bytes } = &self.kind else {
            return Err(Error::internal("values with a length of their own have no rows"));
        };
        if *bytes == 0 || !stored.len().is_multiple_of(*bytes) {
            return Err(Error::corrupt(format!("values of {bytes} bytes in {} bytes", stored.len())));
        }
        // Without bitmaps and bits that end within a byte, rows side by side are a chunk.
        if segments.len() == 1 && whole_bytes(encoding) {
            let rows = stored.len() / bytes;
            return decode_chunk(encoding, &[stored], rows, 0..rows, out);
        }
        stored.chunks_exact(*bytes).try_for_each(|row| self.decode(row, out))
    }

    /// Appends a placeholder for a null that has no stored bytes.
    ///
    /// # Errors
    /// `NotSupported` for nulls of packed rows, which have no bytes, that would take more memory than we make of nothing.
    pub fn push_null(&self, out: &mut Values) -> Result<()> {
        if let Kind::Packed(_) = self.kind {
            let bytes = fixed_size_list::stored_bytes(out).saturating_mul(out.len() as u64 + 1);
            if bytes > fixed_size_list::MAX_NULL_BYTES {
                return Err(Error::not_supported(format!("{bytes} bytes of a packed struct with nulls at once")));
            }
        }
        out.push_placeholders(1);
        Ok(())
    }
}

fn variable(encoding: &CompressiveEncoding) -> Result<()> {
    match compression(encoding)? {
        Compression::Variable(_) => Ok(()),
        _ => Err(Error::not_supported("values compressed twice in a full-zip page")),
    }
}

fn whole_bytes(encoding: &CompressiveEncoding) -> bool {
    match &encoding.compression {
        Some(Compression::Flat(flat)) => flat.bits_per_value != 1,
        Some(Compression::FixedSizeList(list)) => !list.has_validity && list.values.as_deref().is_some_and(whole_bytes),
        _ => false,
    }
}

fn append(value: &[u8], out: &mut Values) -> Result<()> {
    let (offsets, data) = out.variable_parts()?;
    reserve(data, value.len())?;
    data.extend_from_slice(value);
    offsets.push(data.len() as u64);
    Ok(())
}
