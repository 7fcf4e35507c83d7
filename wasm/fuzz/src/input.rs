//! How the parts of an input lie in its bytes: in a way that bytes changed at random are still an input.

use bytes::Bytes;
use lancelet::format::proto::{
    Any, COLUMN_ENCODING_URL, ColumnMetadata, DirectEncoding, Encoding, FileDescriptor, Page,
};
use prost::Message;

/// Bytes being taken apart; what is missing at the end is zero or empty.
pub struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes }
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(count.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }

    pub fn u8(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    pub fn u64(&mut self) -> u64 {
        let mut word = [0; 8];
        word.iter_mut().for_each(|byte| *byte = self.u8());
        u64::from_le_bytes(word)
    }

    /// As many bytes as a u16 in front says.
    pub fn sized(&mut self) -> &'a [u8] {
        let count = self.u16();
        self.take(count.into())
    }

    pub fn rest(&mut self) -> &'a [u8] {
        self.take(usize::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Puts bytes where [`Input::sized`] takes them.
pub fn push_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// A page of a column, with the schema that it is read by.
///
/// `minor version u8 | rows u16 | descriptor, type URL and description: u16 length, bytes | buffers: u16 length, bytes each`
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageInput {
    /// Of format 2.
    pub minor_version: u8,
    pub row_count: u16,
    /// A `FileDescriptor` whose one field has the page's column as its first.
    pub descriptor: Vec<u8>,
    pub type_url: Vec<u8>,
    pub description: Vec<u8>,
    pub buffers: Vec<Vec<u8>>,
}

impl PageInput {
    pub fn parse(bytes: &[u8]) -> PageInput {
        let mut input = Input::new(bytes);
        let mut page = PageInput {
            minor_version: input.u8() % 3,
            row_count: input.u16(),
            descriptor: input.sized().to_vec(),
            type_url: input.sized().to_vec(),
            description: input.sized().to_vec(),
            buffers: Vec::new(),
        };
        while !input.is_empty() && page.buffers.len() < 16 {
            page.buffers.push(input.sized().to_vec());
        }
        page
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![self.minor_version];
        out.extend_from_slice(&self.row_count.to_le_bytes());
        push_sized(&mut out, &self.descriptor);
        push_sized(&mut out, &self.type_url);
        push_sized(&mut out, &self.description);
        self.buffers.iter().for_each(|buffer| push_sized(&mut out, buffer));
        out
    }

    /// A data file of this one page.
    pub fn to_file(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let mut page = Page { length: self.row_count.into(), ..Page::default() };
        for buffer in &self.buffers {
            file.resize(file.len().next_multiple_of(64), 0);
            page.buffer_offsets.push(file.len() as u64);
            page.buffer_sizes.push(buffer.len() as u64);
            file.extend_from_slice(buffer);
        }
        file.resize(file.len().next_multiple_of(64), 0);
        page.encoding = Some(direct(&String::from_utf8_lossy(&self.type_url), &self.description));
        let descriptor = match FileDescriptor::decode(&*self.descriptor) {
            Ok(descriptor) => FileDescriptor { length: self.row_count.into(), ..descriptor }.encode_to_vec(),
            Err(_) => self.descriptor.clone(),
        };
        let column = ColumnMetadata {
            encoding: Some(direct(COLUMN_ENCODING_URL, &[0x0a, 0])),
            pages: vec![page],
            ..ColumnMetadata::default()
        };
        finish_file(file, &descriptor, &[column.encode_to_vec()], self.minor_version)
    }
}

/// A description as pages and columns carry it.
pub fn direct(type_url: &str, message: &[u8]) -> Encoding {
    let any = Any { type_url: type_url.to_owned(), value: Bytes::copy_from_slice(message) };
    Encoding { direct: Some(DirectEncoding { encoding: any.encode_to_vec().into() }) }
}

/// Puts the end of a data file after its buffers: descriptor, metadata of the columns, tables, footer.
pub fn finish_file(mut file: Vec<u8>, descriptor: &[u8], columns: &[Vec<u8>], minor_version: u8) -> Vec<u8> {
    let put = |file: &mut Vec<u8>, bytes: &[u8]| {
        let at = [file.len() as u64, bytes.len() as u64];
        file.extend_from_slice(bytes);
        at
    };
    let global = put(&mut file, descriptor);
    let metadata_start = file.len() as u64;
    let entries: Vec<[u64; 2]> = columns.iter().map(|column| put(&mut file, column)).collect();
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let [column_table, _] = put(&mut file, &words(entries.as_flattened()));
    let [global_table, _] = put(&mut file, &words(&global));
    file.extend_from_slice(&words(&[metadata_start, column_table, global_table]));
    file.extend_from_slice(&1u32.to_le_bytes());
    file.extend_from_slice(&(columns.len() as u32).to_le_bytes());
    let numbers: [u16; 2] = if minor_version == 0 { [0, 3] } else { [2, minor_version.into()] };
    numbers.iter().for_each(|number| file.extend_from_slice(&number.to_le_bytes()));
    file.extend_from_slice(b"LANC");
    file
}
