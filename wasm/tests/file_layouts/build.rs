//! Files from layouts and buffers, and what is read of them.

pub use std::ops::Range;
pub use std::sync::Arc;

pub use crate::one_file_store::{OneFileStore, block_on};
pub use RepDefLayer::{
    AllValidItem as I, AllValidList as L, EmptyableList as LE, NullAndEmptyList as LNE, NullableItem as IN,
    NullableList as LN,
};
pub use arrow_array::cast::AsArray;
pub use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
pub use arrow_array::{Array, ArrayRef};
pub use arrow_schema::{DataType, Field as ArrowField};
pub use lancelet::error::{Error, ErrorCode};
pub use lancelet::format::proto::compressive_encoding::Compression;
pub use lancelet::format::proto::full_zip_layout::Width;
pub use lancelet::format::proto::page_layout::Layout;
pub use lancelet::format::proto::{
    Any, BlobLayout, BufferCompression, COLUMN_ENCODING_URL, ColumnMetadata, CompressiveEncoding, ConstantLayout,
    DirectEncoding, Encoding, FileDescriptor, FixedSizeList, Flat, FullZipLayout, General, MiniBlockLayout,
    PAGE_LAYOUT_URL, Page, PageLayout, RepDefLayer, Rle, Variable,
};
pub use lancelet::format::table::{Field, FieldId};
pub use prost::Message;

#[derive(Default)]
pub struct FileBuilder {
    /// Bytes of the file that are not in `bytes`, before them.
    pub base: u64,
    pub bytes: Vec<u8>,
    pub columns: Vec<Vec<Page>>,
    pub descriptor: FileDescriptor,
}

impl FileBuilder {
    pub fn page(mut self, column: usize, rows: u64, layout: Layout, buffers: &[Vec<u8>]) -> FileBuilder {
        let mut places = Vec::new();
        for buffer in buffers {
            self.bytes.resize(self.bytes.len().next_multiple_of(64), 0x48);
            places.push((self.base + self.bytes.len() as u64, buffer.len() as u64));
            self.bytes.extend_from_slice(buffer);
        }
        self.page_at(column, rows, layout, &places)
    }

    pub fn page_at(mut self, column: usize, rows: u64, layout: Layout, places: &[(u64, u64)]) -> FileBuilder {
        self.columns.resize(self.columns.len().max(column + 1), Vec::new());
        self.columns[column].push(Page {
            buffer_offsets: places.iter().map(|place| place.0).collect(),
            buffer_sizes: places.iter().map(|place| place.1).collect(),
            length: rows,
            encoding: Some(any(PAGE_LAYOUT_URL, PageLayout { layout: Some(layout) }.encode_to_vec())),
            priority: 0,
        });
        self
    }

    pub fn finish_bytes(mut self) -> Vec<u8> {
        let rows = self.columns.first().map_or(0, |pages| pages.iter().map(|page| page.length).sum());
        let mut table = Vec::new();
        let mut put = |bytes: &mut Vec<u8>, part: Vec<u8>| {
            table.extend((self.base + bytes.len() as u64).to_le_bytes());
            table.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        };
        let columns = self.columns.len() as u32;
        let start = self.base + self.bytes.len() as u64;
        for pages in self.columns {
            let encoding = Some(any(COLUMN_ENCODING_URL, vec![0x0a, 0]));
            put(&mut self.bytes, ColumnMetadata { encoding, pages, ..Default::default() }.encode_to_vec());
        }
        put(&mut self.bytes, FileDescriptor { length: rows, ..self.descriptor }.encode_to_vec());
        let tables = self.base + self.bytes.len() as u64;
        self.bytes.extend(table);
        for position in [start, tables, tables + u64::from(columns) * 16] {
            self.bytes.extend(position.to_le_bytes());
        }
        for count in [1, columns] {
            self.bytes.extend(count.to_le_bytes());
        }
        self.bytes.extend([2, 0, 2, 0]);
        self.bytes.extend(b"LANC");
        self.bytes
    }

    pub fn finish(self) -> OneFileStore {
        OneFileStore::new(self.finish_bytes())
    }
}

pub fn any(url: &str, value: Vec<u8>) -> Encoding {
    let any = Any { type_url: url.to_owned(), value: value.into() };
    Encoding { direct: Some(DirectEncoding { encoding: any.encode_to_vec().into() }) }
}

pub fn flat(bits: u64) -> Option<CompressiveEncoding> {
    Some(CompressiveEncoding { compression: Some(Compression::Flat(Flat { bits_per_value: bits, data: None })) })
}

pub fn variable(bits: u64) -> Option<CompressiveEncoding> {
    let variable = Variable { offsets: flat(bits).map(Box::new), values: None };
    Some(CompressiveEncoding { compression: Some(Compression::Variable(Box::new(variable))) })
}

pub fn layers(layers: &[RepDefLayer]) -> Vec<i32> {
    layers.iter().map(|layer| *layer as i32).collect()
}

pub fn mini_block(kinds: &[RepDefLayer], value: Option<CompressiveEncoding>, items: u64) -> MiniBlockLayout {
    let has_list = kinds.iter().any(|kind| matches!(kind, L | LN | LE | LNE));
    MiniBlockLayout {
        rep_compression: if has_list { flat(16) } else { None },
        def_compression: if kinds.iter().any(|kind| matches!(kind, IN | LN | LE | LNE)) { flat(16) } else { None },
        value_compression: value,
        layers: layers(kinds),
        num_buffers: 1,
        repetition_index_depth: u32::from(has_list),
        num_items: items,
        has_large_chunk: true,
        ..Default::default()
    }
}

pub fn le<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|value| bytes(*value)).collect()
}

pub fn i32s(values: &[i32]) -> Vec<u8> {
    le(values, i32::to_le_bytes)
}

pub fn u16s(values: &[u16]) -> Vec<u8> {
    le(values, u16::to_le_bytes)
}

pub fn u64s(values: &[u64]) -> Vec<u8> {
    le(values, u64::to_le_bytes)
}

/// A chunk of a page with large chunks and one value buffer.
pub fn chunk(rep: Option<&[u16]>, def: Option<&[u16]>, values: &[u8]) -> Vec<u8> {
    let mut bytes = u16s(&[rep.or(def).map_or(0, |levels| levels.len() as u16)]);
    rep.iter().chain(def.iter()).for_each(|levels| bytes.extend((levels.len() as u16 * 2).to_le_bytes()));
    bytes.extend((values.len() as u32).to_le_bytes());
    let pad = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(8), 0xfe);
    pad(&mut bytes);
    for part in rep.iter().chain(def.iter()).map(|levels| u16s(levels)).chain([values.to_vec()]) {
        bytes.extend(part);
        pad(&mut bytes);
    }
    bytes
}

/// The words of chunks, given log2 of the values of each.
pub fn words(chunks: &[(u32, &Vec<u8>)]) -> Vec<u8> {
    let word = |(log, chunk): &(u32, &Vec<u8>)| (chunk.len() as u32 / 8 - 1) << 4 | log;
    chunks.iter().flat_map(|chunk| word(chunk).to_le_bytes()).collect()
}

pub fn field(id: i32, data_type: DataType, children: Vec<Field>) -> Field {
    let name = format!("f{id}");
    Field {
        id: FieldId(id),
        name,
        data_type,
        nullable: true,
        metadata: Default::default(),
        children,
        primary_key_position: 0,
    }
}

pub fn leaf(data_type: DataType) -> Field {
    field(0, data_type, Vec::new())
}

pub fn list_of(data_type: DataType) -> Field {
    let item = Arc::new(ArrowField::new("item", data_type.clone(), true));
    field(1, DataType::List(item), vec![leaf(data_type)])
}

pub fn read(file: &OneFileStore, field: &Field, rows: &[Range<u64>]) -> lancelet::Result<ArrayRef> {
    block_on(async {
        let reader = file.open().await?;
        let arrays = reader.read(&[field], &|id| u32::try_from(id.0).ok().filter(|id| *id < 9), rows).await?;
        Ok(arrays[0].clone())
    })
}

pub fn ints(array: &dyn Array) -> Vec<Option<i32>> {
    array.as_primitive::<Int32Type>().iter().collect()
}

pub fn int_lists(array: &dyn Array) -> Vec<Option<Vec<Option<i32>>>> {
    array.as_list::<i32>().iter().map(|list| list.map(|list| ints(&list))).collect()
}

pub fn strings(array: &dyn Array) -> Vec<Option<String>> {
    array.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

pub fn texts(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|text| Some((*text).to_owned())).collect()
}

pub fn corrupt(result: lancelet::Result<ArrayRef>) -> String {
    match result {
        Err(Error::Corrupt { path, reason, .. }) => {
            assert_eq!(path, "data/file.lance");
            reason
        }
        other => panic!("{other:?}"),
    }
}

pub fn constant(kinds: &[RepDefLayer], inline: Option<&[u8]>) -> Layout {
    let inline_value = inline.map(|value| value.to_vec().into());
    Layout::Constant(ConstantLayout { layers: layers(kinds), inline_value, ..Default::default() })
}

pub fn struct_of(id: i32, children: Vec<Field>) -> Field {
    let members = children.iter().map(|child| ArrowField::new(&child.name, child.data_type.clone(), true));
    field(id, DataType::Struct(members.collect()), children)
}

/// A page of 32-bit integers in one chunk.
pub fn ints_page(builder: FileBuilder, column: usize, values: &[i32]) -> FileBuilder {
    let chunk = chunk(None, None, &i32s(values));
    let layout = Layout::MiniBlock(mini_block(&[I], flat(32), values.len() as u64));
    builder.page(column, values.len() as u64, layout, &[words(&[(0, &chunk)]), chunk])
}

/// A page of lists of 32-bit integers in one chunk.
pub fn list_page(builder: FileBuilder, kinds: &[RepDefLayer], rep: &[u16], def: &[u16], values: &[i32]) -> FileBuilder {
    let max_rep = kinds.iter().filter(|kind| matches!(kind, L | LN | LE | LNE)).count() as u16;
    let rows = rep.iter().filter(|level| **level == max_rep).count() as u64;
    let layout = mini_block(kinds, flat(32), values.len() as u64);
    let def = layout.def_compression.is_some().then_some(def);
    let chunk = chunk(Some(rep), def, &i32s(values));
    builder.page(0, rows, Layout::MiniBlock(layout), &[words(&[(0, &chunk)]), chunk, u64s(&[rows, 0])])
}
