//! Index section: the indices of a version, one message each.
//!
//! ```text
//! section: ( tag 1, length | index )*
//! index:   1 uuid | 2 fields | 3 name | 4 dataset version | 5 fragment bitmap | 6 details | ... | 11 covering fields
//! ```
//!
//! Entries are kept as their bytes: who takes one out or changes its bitmap leaves everything else as its writer wrote it, including
//! what this build does not know.

use bytes::Bytes;
use prost::Message;
use roaring::RoaringBitmap;

use crate::error::{Error, Result};
use crate::format::proto;
use crate::format::table::schema::FieldId;

/// The tag of an index in the section, and of the bitmap in an index.
const ENTRY: u64 = 1;
const FRAGMENTS: u64 = 5;
const LENGTH_DELIMITED: u64 = 2;
/// Names of what is no index of a column: the state of the write-ahead log, the reuse of fragments.
const SYSTEM_PREFIX: &str = "__lance_";

/// The indices of a version.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IndexSection {
    pub entries: Vec<IndexEntry>,
}

/// One index, or what the table keeps beside its indices.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexEntry {
    pub name: String,
    pub uuid: Option<[u8; 16]>,
    /// The indexed fields, and those that it only covers.
    pub fields: Vec<FieldId>,
    /// The version that it was built of.
    pub dataset_version: u64,
    /// The fragments whose rows it holds, some of which may be gone; `None` = not said.
    pub fragments: Option<RoaringBitmap>,
    bytes: Bytes,
}

impl IndexSection {
    /// # Errors
    /// `Corrupt` for bytes that are no section.
    pub fn decode(bytes: &Bytes) -> Result<IndexSection> {
        let mut entries = Vec::new();
        for part in parts(bytes) {
            let part = part?;
            if part.number == ENTRY && part.wire == LENGTH_DELIMITED {
                entries.push(IndexEntry::decode(bytes.slice(part.content))?);
            }
        }
        Ok(IndexSection { entries })
    }

    /// The section's bytes; `None` without entries.
    pub fn encode(&self) -> Option<Bytes> {
        if self.entries.is_empty() {
            return None;
        }
        let mut bytes = Vec::new();
        self.entries.iter().for_each(|entry| push_bytes(&mut bytes, ENTRY, &entry.bytes));
        Some(Bytes::from(bytes))
    }
}

impl IndexEntry {
    fn decode(bytes: Bytes) -> Result<IndexEntry> {
        let message =
            proto::IndexMetadata::decode(bytes.as_ref()).map_err(|error| Error::corrupt(format!("index: {error}")))?;
        let fragments = match message.fragment_bitmap.as_slice() {
            [] => None,
            bitmap => Some(RoaringBitmap::deserialize_from(bitmap).map_err(|error| {
                Error::corrupt(format!("fragment bitmap of the index \"{}\": {error}", message.name))
            })?),
        };
        let fields = message.fields.into_iter().chain(message.covering_fields).map(FieldId).collect();
        let uuid = message.uuid.and_then(|uuid| uuid.bytes.try_into().ok());
        let dataset_version = message.dataset_version;
        Ok(IndexEntry { name: message.name, uuid, fields, dataset_version, fragments, bytes })
    }

    /// A new index.
    ///
    /// # Errors
    /// As decoding.
    pub fn new(message: &proto::IndexMetadata) -> Result<IndexEntry> {
        IndexEntry::decode(Bytes::from(message.encode_to_vec()))
    }

    /// Whether it belongs to the table and not to a column.
    pub fn is_system(&self) -> bool {
        self.name.starts_with(SYSTEM_PREFIX)
    }

    /// The index of other fragments; the rest of its bytes stays.
    ///
    /// # Errors
    /// `Corrupt`, which decoding would have said.
    pub fn with_fragments(&self, fragments: RoaringBitmap) -> Result<IndexEntry> {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for part in parts(&self.bytes) {
            let part = part?;
            if part.number != FRAGMENTS {
                bytes.extend_from_slice(self.bytes.get(part.whole).unwrap_or_default());
            }
        }
        let mut bitmap = Vec::with_capacity(fragments.serialized_size());
        fragments.serialize_into(&mut bitmap).map_err(|error| Error::internal(error.to_string()))?;
        push_bytes(&mut bytes, FRAGMENTS, &bitmap);
        Ok(IndexEntry { fragments: Some(fragments), bytes: Bytes::from(bytes), ..self.clone() })
    }
}

/// A field of a message, as ranges of its bytes.
struct Part {
    number: u64,
    wire: u64,
    whole: std::ops::Range<usize>,
    /// Without tag and length.
    content: std::ops::Range<usize>,
}

/// The fields of a message in order; the last item is the error, if there is one.
fn parts(bytes: &[u8]) -> impl Iterator<Item = Result<Part>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= bytes.len() {
            return None;
        }
        let start = at;
        let part = part(bytes, start);
        at = part.as_ref().map_or(bytes.len(), |part| part.whole.end);
        Some(part.ok_or_else(|| Error::corrupt(format!("index section: no field at byte {start}"))))
    })
}

fn part(bytes: &[u8], start: usize) -> Option<Part> {
    let mut at = start;
    let tag = varint(bytes, &mut at)?;
    let (number, wire) = (tag >> 3, tag & 7);
    let (from, length) = match wire {
        0 => {
            let from = at;
            varint(bytes, &mut at)?;
            (from, at - from)
        }
        1 => (at, 8),
        LENGTH_DELIMITED => {
            let length = usize::try_from(varint(bytes, &mut at)?).ok()?;
            (at, length)
        }
        5 => (at, 4),
        _ => return None,
    };
    let end = from.checked_add(length).filter(|end| *end <= bytes.len())?;
    Some(Part { number, wire, whole: start..end, content: from..end })
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn push_bytes(into: &mut Vec<u8>, number: u64, content: &[u8]) {
    push_varint(into, number << 3 | LENGTH_DELIMITED);
    push_varint(into, content.len() as u64);
    into.extend_from_slice(content);
}

fn push_varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(name: &str, fields: &[i32], fragments: &[u32]) -> Vec<u8> {
        let mut bitmap = Vec::new();
        fragments.iter().collect::<RoaringBitmap>().serialize_into(&mut bitmap).unwrap();
        let mut bytes = proto::IndexMetadata {
            uuid: Some(proto::Uuid { bytes: vec![7; 16] }),
            fields: fields.to_vec(),
            name: name.to_owned(),
            dataset_version: 3,
            fragment_bitmap: bitmap,
            ..proto::IndexMetadata::default()
        }
        .encode_to_vec();
        // Fields of the future: a number, eight bytes, four bytes, a message.
        bytes.extend_from_slice(&[0xf8, 0x01, 0x05, 0xf9, 0x01, 1, 2, 3, 4, 5, 6, 7, 8]);
        bytes.extend_from_slice(&[0xfd, 0x01, 1, 2, 3, 4, 0xfa, 0x01, 0x02, 9, 9]);
        bytes
    }

    fn section(entries: &[Vec<u8>]) -> Bytes {
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| push_bytes(&mut bytes, ENTRY, entry));
        Bytes::from(bytes)
    }

    #[test]
    fn entries_that_stay_keep_their_bytes() {
        let entries =
            [index("a_idx", &[1], &[0, 2]), index("__lance_mem_wal", &[], &[]), index("b_idx", &[4, 5], &[1])];
        let bytes = section(&entries);
        let mut indices = IndexSection::decode(&bytes).unwrap();
        assert_eq!(indices.encode(), Some(bytes));
        let names: Vec<&str> = indices.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a_idx", "__lance_mem_wal", "b_idx"]);
        assert_eq!(indices.entries[2].fields, [FieldId(4), FieldId(5)]);
        assert_eq!(indices.entries[0].uuid, Some([7; 16]));
        assert_eq!(indices.entries[0].fragments, Some([0, 2].into_iter().collect()));
        assert_eq!(indices.entries.iter().map(IndexEntry::is_system).collect::<Vec<_>>(), [false, true, false]);
        indices.entries.remove(0);
        assert_eq!(indices.encode(), Some(section(&entries[1..])));
        indices.entries.clear();
        assert_eq!(indices.encode(), None);
    }

    #[test]
    fn another_bitmap_leaves_the_rest_of_an_entry() {
        let mut indices = IndexSection::decode(&section(&[index("a", &[1], &[0, 2])])).unwrap();
        let moved: RoaringBitmap = [9].into_iter().collect();
        indices.entries[0] = indices.entries[0].with_fragments(moved.clone()).unwrap();
        let read = IndexSection::decode(&indices.encode().unwrap()).unwrap();
        assert_eq!(read, indices);
        assert_eq!(read.entries[0].fragments, Some(moved));
        let tail = [0xfa, 0x01, 0x02, 9, 9];
        assert!(read.entries[0].bytes.windows(tail.len()).any(|window| window == tail));
    }

    #[test]
    fn bytes_that_are_no_section_are_refused() {
        let whole = section(&[index("a", &[1], &[0])]);
        for end in 1..whole.len() {
            let cut = IndexSection::decode(&whole.slice(..end));
            assert!(matches!(cut, Err(Error::Corrupt { .. })), "{end}");
        }
        assert!(IndexSection::decode(&Bytes::from_static(&[0x0b, 0])).is_err());
    }
}
