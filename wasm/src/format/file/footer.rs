//! The footer of a data file and the offset tables it points at.
//!
//! ```text
//! 0..8    position of the metadata of column 0
//! 8..16   position of the column offset table
//! 16..24  position of the global buffer offset table
//! 24..28  number of global buffers
//! 28..32  number of columns
//! 32..34  major version | 34..36 minor version
//! 36..40  "LANC"
//! ```

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::file::FileVersion;

/// Size of the footer.
pub const FOOTER_BYTES: u64 = 40;
/// Size of an entry of an offset table: position u64, size u64.
const ENTRY_BYTES: u64 = 16;
const MAGIC: &[u8] = b"LANC";

/// A checked footer: both tables lie inside of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    pub column_metadata_start: u64,
    /// Where the column offset table lies.
    pub column_table: Range<u64>,
    /// Where the global buffer offset table lies.
    pub global_table: Range<u64>,
    pub column_count: u32,
    pub version: FileVersion,
}

impl Footer {
    /// Decodes the end of a file of `size_bytes` bytes; `tail` holds at least its last 40.
    ///
    /// # Errors
    /// `Corrupt` with the offset in the file; `NotSupported` naming the version.
    pub fn decode(tail: &[u8], size_bytes: u64) -> Result<Footer> {
        let start = size_bytes.checked_sub(FOOTER_BYTES);
        let footer = tail.len().checked_sub(FOOTER_BYTES as usize).and_then(|at| tail.get(at..));
        let (Some(start), Some(footer)) = (start, footer) else {
            return Err(Error::corrupt_at(0, format!("a file of {size_bytes} bytes has no footer")));
        };
        if footer.get(36..) != Some(MAGIC) {
            return Err(Error::corrupt_at(
                start + 36,
                format!("bad magic {:02x?}", footer.get(36..).unwrap_or_default()),
            ));
        }
        let version = match (read_u16(footer, 32)?, read_u16(footer, 34)?) {
            // 2.0 writes 0.3 here; the manifest says 2.0.
            (0, 3) | (2, 0) => FileVersion::V2_0,
            (2, 1) => FileVersion::V2_1,
            (2, 2) => FileVersion::V2_2,
            (0, 2) => return Err(FileVersion::unknown("0.1")),
            (major, minor) => return Err(FileVersion::unknown(&format!("{major}.{minor}"))),
        };
        let column_count = read_u32(footer, 28)?;
        let global_count = read_u32(footer, 24)?;
        let table = |field: u64, position: u64, count: u32, what: &str| -> Result<Range<u64>> {
            match position.checked_add(u64::from(count) * ENTRY_BYTES) {
                Some(end) if end <= start => Ok(position..end),
                _ => Err(Error::corrupt_at(
                    start + field,
                    format!("the {what} table of {count} entries at {position} does not fit into {size_bytes} bytes"),
                )),
            }
        };
        let footer = Footer {
            column_metadata_start: read_u64(footer, 0)?,
            column_table: table(8, read_u64(footer, 8)?, column_count, "column")?,
            global_table: table(16, read_u64(footer, 16)?, global_count, "global buffer")?,
            column_count,
            version,
        };
        if footer.column_metadata_start > start {
            return Err(Error::corrupt_at(
                start,
                format!("column metadata at {} in a file of {size_bytes} bytes", footer.column_metadata_start),
            ));
        }
        Ok(footer)
    }
}

/// Decodes an offset table into the ranges it lists. `table_start` is its place in the file, for errors.
///
/// # Errors
/// `Corrupt` when a range does not lie before the footer.
pub fn decode_table(bytes: &[u8], table_start: u64, size_bytes: u64) -> Result<Vec<Range<u64>>> {
    let limit = size_bytes.saturating_sub(FOOTER_BYTES);
    let mut ranges = Vec::with_capacity(bytes.len() / ENTRY_BYTES as usize);
    for (i, entry) in bytes.chunks_exact(ENTRY_BYTES as usize).enumerate() {
        let (position, size) = (read_u64(entry, 0)?, read_u64(entry, 8)?);
        match position.checked_add(size) {
            Some(end) if end <= limit => ranges.push(position..end),
            _ => {
                return Err(Error::corrupt_at(
                    table_start.saturating_add(i as u64 * ENTRY_BYTES),
                    format!("entry {i} of an offset table: {size} bytes at {position} in a file of {size_bytes} bytes"),
                ));
            }
        }
    }
    Ok(ranges)
}

/// Reads a little-endian number.
///
/// # Errors
/// `Corrupt` when the bytes end before it does.
pub fn read_u16(bytes: &[u8], at: usize) -> Result<u16> {
    Ok(u16::from_le_bytes(take(bytes, at)?))
}

/// As [`read_u16`].
pub fn read_u32(bytes: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(take(bytes, at)?))
}

/// As [`read_u16`].
pub fn read_u64(bytes: &[u8], at: usize) -> Result<u64> {
    Ok(u64::from_le_bytes(take(bytes, at)?))
}

/// Reads a little-endian number of 1, 2, 4 or 8 bytes.
///
/// # Errors
/// As [`read_u16`].
pub fn read_uint(bytes: &[u8], at: usize, width: usize) -> Result<u64> {
    Ok(match width {
        1 => u64::from(take::<1>(bytes, at)?[0]),
        2 => u64::from(read_u16(bytes, at)?),
        4 => u64::from(read_u32(bytes, at)?),
        8 => read_u64(bytes, at)?,
        _ => return Err(Error::corrupt(format!("a number of {width} bytes"))),
    })
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    at.checked_add(N)
        .and_then(|end| bytes.get(at..end))
        .and_then(|slice| slice.try_into().ok())
        .ok_or_else(|| Error::corrupt_at(at as u64, format!("{N} bytes are missing")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn footer(positions: [u64; 3], counts: [u32; 2], version: [u16; 2]) -> Vec<u8> {
        let mut bytes = Vec::new();
        positions.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
        counts.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
        version.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
        bytes.extend(MAGIC);
        bytes
    }

    #[test]
    fn tables_are_found_by_position_and_count() {
        let bytes = footer([0x1d3, 0x2cf, 0x2ef], [1, 2], [2, 2]);
        let footer = Footer::decode(&bytes, 807).unwrap();
        assert_eq!((footer.column_table, footer.global_table), (0x2cf..0x2ef, 0x2ef..0x2ff));
        assert_eq!((footer.column_metadata_start, footer.version), (0x1d3, FileVersion::V2_2));
    }

    // F2
    #[test]
    fn versions_are_told_apart_by_their_numbers() {
        let decode = |version| Footer::decode(&footer([0; 3], [0, 0], version), 100);
        assert_eq!(decode([0, 3]).unwrap().version, FileVersion::V2_0);
        assert_eq!(decode([2, 0]).unwrap().version, FileVersion::V2_0);
        assert_eq!(decode([2, 1]).unwrap().version, FileVersion::V2_1);
        assert_eq!(
            decode([0, 2]).unwrap_err().to_string(),
            "not supported: data file version 0.1, this build reads 2.0, 2.1 and 2.2"
        );
        assert_eq!(
            decode([2, 3]).unwrap_err().to_string(),
            "not supported: data file version 2.3, this build reads 2.0, 2.1 and 2.2"
        );
    }

    // F1
    #[test]
    fn a_table_that_does_not_fit_is_corrupt_at_its_field() {
        let offset = |positions, counts| match Footer::decode(&footer(positions, counts, [2, 2]), 1000) {
            Err(Error::Corrupt { offset, .. }) => offset,
            other => panic!("{other:?}"),
        };
        assert_eq!(offset([0, 945, 0], [1, 1]), Some(968));
        assert_eq!(offset([0, 0, u64::MAX], [1, 1]), Some(976));
        assert_eq!(offset([0, 0, 0], [u32::MAX, 1]), Some(976));
        assert_eq!(offset([961, 0, 0], [1, 1]), Some(960));
    }

    // F1
    #[test]
    fn bad_magic_and_short_files_are_corrupt() {
        let mut bytes = footer([0; 3], [0, 0], [2, 2]);
        bytes[39] = b'X';
        assert!(matches!(Footer::decode(&bytes, 100), Err(Error::Corrupt { offset: Some(96), .. })));
        assert_eq!(Footer::decode(&bytes[1..], 39).unwrap_err().code(), ErrorCode::Corrupt);
        assert_eq!(Footer::decode(&[], 100).unwrap_err().code(), ErrorCode::Corrupt);
    }

    // F1
    #[test]
    fn an_entry_beyond_the_footer_is_corrupt() {
        let entry = |position: u64, size: u64| [position.to_le_bytes(), size.to_le_bytes()].concat();
        assert_eq!(decode_table(&[entry(3, 4), entry(0, 60)].concat(), 0, 100).unwrap(), vec![3..7, 0..60]);
        let wrapped = decode_table(&[entry(3, 4), entry(u64::MAX, 2)].concat(), 50, 100);
        assert!(matches!(wrapped, Err(Error::Corrupt { offset: Some(66), .. })));
        assert!(decode_table(&entry(1, 60), 0, 100).is_err());
    }
}
