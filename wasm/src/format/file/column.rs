//! Column metadata: the pages of a column, their buffers, and how each is laid out.

use std::ops::Range;

use bytes::Bytes;
use prost::Message;

use crate::error::{Error, Result};
use crate::format::file::footer::FOOTER_BYTES;
use crate::format::proto::array_encodings::ArrayEncoding;
use crate::format::proto::{
    self, ARRAY_ENCODING_URL, Any, COLUMN_ENCODING_URL, CompressiveEncoding, PAGE_LAYOUT_URL, PageLayout,
    compressive_encoding::Compression, page_layout::Layout,
};

/// Encodings nest: a list of lists of strings that are compressed. Deeper than this is an attack on the stack.
const MAX_ENCODING_DEPTH: usize = 16;

/// A column: its pages in row order.
#[derive(Debug, Clone)]
pub struct Column {
    pub pages: Vec<Page>,
    /// Of the items of a list in 2.0: how many.
    pub row_count: u64,
}

/// A page: a range of rows of one column.
#[derive(Debug, Clone)]
pub struct Page {
    pub first_row: u64,
    pub row_count: u64,
    /// Where the buffers lie in the file.
    pub buffers: Vec<Range<u64>>,
    /// The encoded layout; most pages of a file are never looked at.
    description: Option<Bytes>,
}

/// Rows of one page, relative to its first row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRows {
    pub page: usize,
    pub rows: Vec<Range<u64>>,
}

impl Column {
    /// Decodes the metadata of a column in a file of `size_bytes` bytes.
    ///
    /// # Errors
    /// `Corrupt` when it is no such message, or a buffer does not lie in the file.
    pub fn decode(bytes: Bytes, size_bytes: u64) -> Result<Column> {
        let metadata = proto::ColumnMetadata::decode(bytes).map_err(|e| Error::corrupt(format!("metadata: {e}")))?;
        let limit = size_bytes.saturating_sub(FOOTER_BYTES);
        if let Some(encoding) = metadata.encoding.and_then(|encoding| encoding.direct) {
            let any = Any::decode(encoding.encoding).map_err(|e| Error::corrupt(format!("column encoding: {e}")))?;
            if any.type_url != COLUMN_ENCODING_URL {
                return Err(Error::not_supported(format!("column encoding {:?}", any.type_url)));
            }
        }
        let mut pages = Vec::with_capacity(metadata.pages.len());
        let mut row_count = 0u64;
        for (i, page) in metadata.pages.into_iter().enumerate() {
            if page.buffer_offsets.len() != page.buffer_sizes.len() {
                return Err(Error::corrupt(format!(
                    "page {i}: {} buffer offsets, {} sizes",
                    page.buffer_offsets.len(),
                    page.buffer_sizes.len()
                )));
            }
            let mut buffers = Vec::with_capacity(page.buffer_offsets.len());
            for (position, size) in page.buffer_offsets.iter().zip(&page.buffer_sizes) {
                match position.checked_add(*size) {
                    Some(end) if end <= limit => buffers.push(*position..end),
                    _ => {
                        return Err(Error::corrupt(format!(
                            "page {i}: buffer of {size} bytes at {position} in a file of {size_bytes} bytes"
                        )));
                    }
                }
            }
            let description = page.encoding.and_then(|encoding| encoding.direct).map(|direct| direct.encoding);
            pages.push(Page { first_row: row_count, row_count: page.length, buffers, description });
            row_count = row_count
                .checked_add(page.length)
                .ok_or_else(|| Error::corrupt(format!("page {i}: {} rows are too many", page.length)))?;
        }
        Ok(Column { pages, row_count })
    }

    /// Splits ascending, disjoint rows of the column by page.
    pub fn split(&self, rows: &[Range<u64>]) -> Vec<PageRows> {
        let mut parts: Vec<PageRows> = Vec::new();
        for range in rows {
            let mut start = range.start;
            // The last page that begins at or before the row; pages without rows begin where the next one does.
            let mut page = self.pages.partition_point(|page| page.first_row <= start).saturating_sub(1);
            while start < range.end {
                let Some(Page { first_row, row_count, .. }) = self.pages.get(page) else { break };
                let end = range.end.min(first_row + row_count);
                if start < end {
                    let within = start - first_row..end - first_row;
                    match parts.last_mut() {
                        Some(part) if part.page == page => part.rows.push(within),
                        _ => parts.push(PageRows { page, rows: vec![within] }),
                    }
                    start = end;
                }
                page += 1;
            }
        }
        parts
    }
}

impl Page {
    /// Decodes the page's layout.
    ///
    /// # Errors
    /// `Corrupt` for a description that is missing, of another type or nested too deep.
    pub fn layout(&self) -> Result<Layout> {
        let layout = PageLayout::decode(self.description(PAGE_LAYOUT_URL)?);
        let layout = layout.map_err(|e| Error::corrupt(format!("layout: {e}")))?;
        let layout =
            layout.layout.ok_or_else(|| Error::not_supported("a page layout that this build does not know"))?;
        let described = match &layout {
            Layout::Blob(blob) => blob.inner_layout.as_ref().and_then(|inner| inner.layout.as_ref()),
            _ => Some(&layout),
        };
        let described = described.ok_or_else(|| Error::corrupt("a blob page without a layout"))?;
        let encodings: &[&Option<CompressiveEncoding>] = match described {
            Layout::MiniBlock(l) => &[&l.rep_compression, &l.def_compression, &l.value_compression, &l.dictionary],
            Layout::Constant(l) => &[&l.rep_compression, &l.def_compression],
            Layout::FullZip(l) => &[&l.value_compression],
            Layout::Blob(_) => return Err(Error::corrupt("a blob page inside a blob page")),
            Layout::Sparse(_) => return Err(Error::not_supported("the sparse page layout")),
        };
        for encoding in encodings.iter().filter_map(|encoding| encoding.as_ref()) {
            check_depth(encoding, MAX_ENCODING_DEPTH)?;
        }
        Ok(layout)
    }

    /// Decodes the encoding tree of a page of 2.0.
    ///
    /// # Errors
    /// `Corrupt` for a description that is missing or of another type.
    pub fn array_encoding(&self) -> Result<ArrayEncoding> {
        let encoding = ArrayEncoding::decode(self.description(ARRAY_ENCODING_URL)?);
        encoding.map_err(|e| Error::corrupt(format!("array encoding: {e}")))
    }

    fn description(&self, type_url: &str) -> Result<Bytes> {
        let description = self.description.clone().ok_or_else(|| Error::corrupt("no direct encoding"))?;
        let any = Any::decode(description).map_err(|e| Error::corrupt(format!("encoding: {e}")))?;
        if any.type_url != type_url {
            return Err(Error::corrupt(format!("encoding of type {:?}, expected {type_url:?}", any.type_url)));
        }
        Ok(any.value)
    }

    /// The place of a buffer in the file.
    ///
    /// # Errors
    /// `Corrupt` when the page has fewer.
    pub fn buffer(&self, index: usize) -> Result<Range<u64>> {
        self.buffers
            .get(index)
            .cloned()
            .ok_or_else(|| Error::corrupt(format!("{} buffers, buffer {index} is needed", self.buffers.len())))
    }
}

fn check_depth(encoding: &CompressiveEncoding, left: usize) -> Result<()> {
    let Some(left) = left.checked_sub(1) else {
        return Err(Error::corrupt(format!("encodings nested deeper than {MAX_ENCODING_DEPTH}")));
    };
    let below =
        |child: &Option<Box<CompressiveEncoding>>| child.as_ref().map_or(Ok(()), |child| check_depth(child, left));
    match &encoding.compression {
        Some(Compression::Variable(e)) => below(&e.offsets),
        Some(Compression::OutOfLineBitpacking(e)) => below(&e.values),
        Some(Compression::Fsst(e)) => below(&e.values),
        Some(Compression::Dictionary(e)) => below(&e.indices).and_then(|()| below(&e.items)),
        Some(Compression::Rle(e)) => below(&e.values).and_then(|()| below(&e.run_lengths)),
        Some(Compression::ByteStreamSplit(e)) => below(&e.values),
        Some(Compression::General(e)) => below(&e.values),
        Some(Compression::FixedSizeList(e)) => below(&e.values),
        Some(Compression::PackedStruct(e)) => below(&e.values),
        Some(Compression::VariablePackedStruct(e)) => {
            e.fields.iter().filter_map(|field| field.value.as_ref()).try_for_each(|value| check_depth(value, left))
        }
        Some(
            Compression::Flat(_)
            | Compression::Constant(_)
            | Compression::InlineBitpacking(_)
            | Compression::Range(_)
            | Compression::Delta(_),
        )
        | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(lengths: &[u64]) -> Column {
        let mut first_row = 0;
        let pages = lengths
            .iter()
            .map(|&row_count| {
                first_row += row_count;
                Page { first_row: first_row - row_count, row_count, buffers: Vec::new(), description: None }
            })
            .collect();
        Column { pages, row_count: first_row }
    }

    // F3
    #[test]
    fn rows_are_split_at_page_ends_and_empty_pages_are_passed() {
        let column = column(&[10, 0, 5, 20]);
        let part = |page, rows: &[Range<u64>]| PageRows { page, rows: rows.to_vec() };
        assert_eq!(
            column.split(&[2..4, 8..16, 30..35]),
            vec![part(0, &[2..4, 8..10]), part(2, &[0..5]), part(3, &[0..1, 15..20])]
        );
        assert_eq!(column.split(&[10..10, 15..16]), vec![part(3, &[0..1])]);
        assert_eq!(column.split(&[]), vec![]);
    }

    // F1
    #[test]
    fn buffers_beyond_the_file_are_corrupt() {
        let decode = |offsets: Vec<u64>, sizes: Vec<u64>| {
            let page = proto::Page { buffer_offsets: offsets, buffer_sizes: sizes, length: 1, ..Default::default() };
            let metadata = proto::ColumnMetadata { pages: vec![page], ..Default::default() };
            Column::decode(metadata.encode_to_vec().into(), 1000)
        };
        assert_eq!(decode(vec![64, 0], vec![896, 3]).unwrap().pages[0].buffers, vec![64..960, 0..3]);
        assert!(decode(vec![64], vec![897]).unwrap_err().to_string().contains("897 bytes at 64"));
        assert!(decode(vec![u64::MAX], vec![2]).is_err());
        assert!(decode(vec![64], vec![]).is_err());
    }

    #[test]
    fn rows_that_overflow_are_corrupt() {
        let page = |length| proto::Page { length, ..Default::default() };
        let metadata = proto::ColumnMetadata { pages: vec![page(u64::MAX), page(1)], ..Default::default() };
        assert!(Column::decode(metadata.encode_to_vec().into(), 1000).is_err());
    }

    #[test]
    fn encodings_nested_too_deep_are_corrupt() {
        let nest = |depth: usize| {
            let mut encoding = CompressiveEncoding { compression: None };
            for _ in 1..depth {
                let values = Some(Box::new(encoding));
                encoding = CompressiveEncoding {
                    compression: Some(Compression::ByteStreamSplit(Box::new(proto::ByteStreamSplit { values }))),
                };
            }
            encoding
        };
        assert!(check_depth(&nest(16), MAX_ENCODING_DEPTH).is_ok());
        assert!(check_depth(&nest(17), MAX_ENCODING_DEPTH).is_err());
    }
}
