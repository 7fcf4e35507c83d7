//! Manifest: the complete state of one version of a table.
//!
//! ```text
//! [ index section: u32 length | message ]   where Manifest.index_section points
//! [ transaction:   u32 length | message ]   where Manifest.transaction_section points
//! manifest:        u32 length | message
//! footer:          u64 position of the manifest | u16 0 | u16 2 | "LANC"
//! ```

use bytes::Bytes;
use prost::Message;

use crate::collections::SortedMap;
use crate::error::{Error, Result};
use crate::format::proto;
use crate::format::table::fragment::Fragment;
use crate::format::table::schema::{FieldId, Schema};
use crate::format::table::transaction::Transaction;

/// The number of a version; the first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// The state of one version.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    pub version: Version,
    pub schema: Schema,
    /// Ascending by id.
    pub fragments: Vec<Fragment>,
    /// The highest fragment id ever given; `None` = no fragment ever existed.
    pub max_fragment_id: Option<u32>,
    /// Nanoseconds since the Unix epoch; `None` = not recorded.
    pub timestamp_ns: Option<u64>,
    pub reader_flags: u64,
    pub writer_flags: u64,
    pub next_row_id: u64,
    /// Version of the data files, such as `2.2`.
    pub data_format: String,
    pub config: SortedMap<String, String>,
    pub table_metadata: SortedMap<String, String>,
    pub base_paths: Vec<proto::BasePath>,
    pub branch: Option<String>,
    pub writer: Option<proto::WriterVersion>,
    /// File name below `_transactions/`; empty = none.
    pub transaction_file: String,
    /// The index section, byte for byte; `None` = no indices.
    pub index_section: Option<Bytes>,
    /// The transaction that made this version, when it is inline.
    pub transaction: Option<Transaction>,
}

const MAGIC: &[u8; 4] = b"LANC";
const FOOTER_LEN: usize = 16;
/// What other writers put into the footer; readers ignore it.
const FOOTER_VERSION: [u16; 2] = [0, 2];
/// The format of a table that says nothing and has no files to tell from: it is old.
const OLD_FORMAT: &str = "2.0";
/// The only kind of data files that Lance has.
const FILE_FORMAT: &str = "lance";
const NANOS: u64 = 1_000_000_000;

impl Manifest {
    /// Reads a whole manifest file. `Corrupt` for bytes that are no manifest, `NotSupported` for content that this build has no words
    /// for; what a known manifest asks of its readers is checked by [`feature`](crate::format::table::feature).
    pub fn decode(bytes: &Bytes) -> Result<Manifest> {
        let body_len = bytes
            .len()
            .checked_sub(FOOTER_LEN)
            .ok_or_else(|| Error::corrupt(format!("manifest of {} bytes, shorter than its footer", bytes.len())))?;
        let (body, footer) = bytes.split_at(body_len);
        if !footer.ends_with(MAGIC) {
            return Err(Error::corrupt_at(body_len as u64 + 12, "manifest does not end with \"LANC\""));
        }
        let position = footer.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
        let range = section(body, position, "manifest")?;
        if range.end != body_len {
            return Err(Error::corrupt_at(
                position,
                format!("manifest ends at byte {}, the footer begins at {body_len}", range.end),
            ));
        }
        let message = proto::Manifest::decode(&body[range])
            .map_err(|error| Error::corrupt_at(position, format!("manifest: {error}")))?;
        let index_section = match message.index_section {
            Some(offset) => Some(bytes.slice(section(body, offset, "index section")?)),
            None => None,
        };
        let transaction = match message.transaction_section {
            Some(offset) => Some(Transaction::decode(&body[section(body, offset, "transaction")?])?),
            None => None,
        };
        Manifest::from_proto(message, index_section, transaction)
    }

    /// The bytes of a manifest file.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut message = self.to_proto();
        if let Some(indices) = &self.index_section {
            message.index_section = Some(bytes.len() as u64);
            push_section(&mut bytes, indices);
        }
        if let Some(transaction) = &self.transaction {
            message.transaction_section = Some(bytes.len() as u64);
            push_section(&mut bytes, &transaction.encode());
        }
        let position = bytes.len() as u64;
        push_section(&mut bytes, &message.encode_to_vec());
        bytes.extend_from_slice(&position.to_le_bytes());
        FOOTER_VERSION.iter().for_each(|part| bytes.extend_from_slice(&part.to_le_bytes()));
        bytes.extend_from_slice(MAGIC);
        bytes
    }

    /// The indices of the table, read from [`Manifest::index_section`].
    pub fn indices(&self) -> Result<Vec<proto::IndexMetadata>> {
        let Some(bytes) = &self.index_section else { return Ok(Vec::new()) };
        let section = proto::IndexSection::decode(bytes.as_ref())
            .map_err(|error| Error::corrupt(format!("index section: {error}")))?;
        Ok(section.indices)
    }

    /// The highest field id that a column of this version has or had: new fields get higher ones.
    pub fn max_field_id(&self) -> Option<FieldId> {
        let files = self.fragments.iter().flat_map(|fragment| &fragment.files);
        let in_files = files.flat_map(|file| file.fields.iter().copied()).filter(|id| id.0 >= 0).max();
        self.schema.max_id().max(in_files)
    }

    /// Rows that are not deleted.
    pub fn live_rows(&self) -> u64 {
        self.fragments.iter().map(Fragment::live_rows).fold(0, u64::saturating_add)
    }

    fn from_proto(
        message: proto::Manifest,
        index_section: Option<Bytes>,
        transaction: Option<Transaction>,
    ) -> Result<Manifest> {
        if message.version == 0 {
            return Err(Error::corrupt("manifest of version 0, the first is 1"));
        }
        let fragments: Vec<Fragment> =
            message.fragments.into_iter().map(Fragment::from_proto).collect::<Result<_>>()?;
        if let Some([low, high]) = fragments.array_windows().find(|[low, high]| low.id >= high.id) {
            return Err(Error::corrupt(format!("fragment {} stands before fragment {}", low.id.0, high.id.0)));
        }
        let highest = fragments.last().map_or(0, |fragment| fragment.id.0);
        if let Some(max) = message.max_fragment_id
            && u64::from(max) < highest
        {
            return Err(Error::corrupt(format!("fragment {highest} is above the highest id ever given, {max}")));
        }
        // Row addresses limit fragment ids to 32 bits. Old writers leave the mark out.
        let max_fragment_id =
            message.max_fragment_id.or_else(|| fragments.last().and_then(|last| u32::try_from(last.id.0).ok()));
        let data_format = match message.data_format {
            Some(format) if format.file_format != FILE_FORMAT => {
                return Err(Error::not_supported(format!("data files of the format \"{}\"", format.file_format)));
            }
            Some(format) => format.version,
            None => fragments
                .iter()
                .flat_map(|fragment| &fragment.files)
                .next()
                .map_or_else(|| OLD_FORMAT.to_owned(), |file| format!("{}.{}", file.major_version, file.minor_version)),
        };
        Ok(Manifest {
            version: Version(message.version),
            schema: Schema::from_proto(&message.fields, &message.schema_metadata)?,
            fragments,
            max_fragment_id,
            timestamp_ns: message.timestamp.map(timestamp_from_proto),
            reader_flags: message.reader_feature_flags,
            writer_flags: message.writer_feature_flags,
            next_row_id: message.next_row_id,
            data_format,
            config: proto::from_entries(message.config),
            table_metadata: proto::from_entries(message.table_metadata),
            base_paths: message.base_paths,
            branch: message.branch,
            writer: message.writer_version,
            transaction_file: message.transaction_file,
            index_section,
            transaction,
        })
    }

    fn to_proto(&self) -> proto::Manifest {
        proto::Manifest {
            fields: self.schema.to_proto(),
            fragments: self.fragments.iter().map(Fragment::to_proto).collect(),
            version: self.version.0,
            schema_metadata: self.schema.metadata_to_proto(),
            timestamp: self.timestamp_ns.map(timestamp_to_proto),
            reader_feature_flags: self.reader_flags,
            writer_feature_flags: self.writer_flags,
            max_fragment_id: self.max_fragment_id,
            transaction_file: self.transaction_file.clone(),
            writer_version: self.writer.clone(),
            next_row_id: self.next_row_id,
            data_format: Some(proto::DataStorageFormat {
                file_format: FILE_FORMAT.to_owned(),
                version: self.data_format.clone(),
            }),
            config: proto::to_entries(&self.config),
            base_paths: self.base_paths.clone(),
            table_metadata: proto::to_entries(&self.table_metadata),
            branch: self.branch.clone(),
            ..proto::Manifest::default()
        }
    }
}

/// The range of the message of a section that begins with its length.
fn section(body: &[u8], offset: u64, what: &str) -> Result<std::ops::Range<usize>> {
    let outside = || Error::corrupt_at(offset, format!("{what} is not inside the file"));
    let start = usize::try_from(offset).map_err(|_| outside())?;
    let length = body.get(start..).and_then(|rest| rest.first_chunk()).ok_or_else(outside)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| outside())?;
    // The length's own bytes were there, so adding their number does not overflow.
    let start = start + 4;
    match start.checked_add(length) {
        Some(end) if end <= body.len() => Ok(start..end),
        _ => Err(outside()),
    }
}

fn push_section(bytes: &mut Vec<u8>, message: &[u8]) {
    #[expect(
        clippy::expect_used,
        reason = "the memory of a browser ends below; a manifest of 4 GiB is a broken invariant"
    )]
    let length = u32::try_from(message.len()).expect("a section of a manifest is below 4 GiB");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(message);
}

/// A clock that was wrong must not make a table unreadable: times that do not fit are moved to the nearest that do.
fn timestamp_from_proto(timestamp: proto::Timestamp) -> u64 {
    let seconds = u64::try_from(timestamp.seconds).unwrap_or(0);
    let nanos = u64::try_from(timestamp.nanos).unwrap_or(0).min(NANOS - 1);
    seconds.saturating_mul(NANOS).saturating_add(nanos)
}

fn timestamp_to_proto(timestamp_ns: u64) -> proto::Timestamp {
    // Both fit: 2^64 nanoseconds are less than 2^35 seconds.
    proto::Timestamp { seconds: (timestamp_ns / NANOS) as i64, nanos: (timestamp_ns % NANOS) as i32 }
}

#[cfg(test)]
pub(in crate::format::table) mod tests;
