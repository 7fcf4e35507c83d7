//! Writes a data file: batches to pages to footer, append-only.
//!
//! 1. The rows of a batch go to every column, which fills pages of its own size; full pages are written at once.
//! 2. At the end come the last pages, the schema, the description of every column, the offset tables and the footer.

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use bytes::Bytes;
use prost::Message;

use crate::error::{Error, Result};
use crate::format::file::FileVersion;
use crate::format::file::arrays::{ArrayColumns, ArrayPage};
use crate::format::file::layout::page_build::PageBuilder;
use crate::format::file::layout::{EncodedPage, LeafPath};
use crate::format::proto;
use crate::format::table::{Field, FieldId, Schema};
use crate::store::ObjectWriter;

/// Every buffer starts at a multiple of this.
const ALIGNMENT: u64 = 64;
const PADDING: u8 = b'H';
/// Pieces below this size are gathered before they go to the output: its calls may be dear.
const OUTPUT_BYTES: usize = 256 << 10;
/// `ColumnEncoding { values: {} }`.
const COLUMN_ENCODING: &[u8] = &[0x0a, 0x00];
const MAGIC: &[u8] = b"LANC";

/// What a finished file holds, as its manifest entry says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSummary {
    pub row_count: u64,
    pub size_bytes: u64,
    /// The field of each column.
    pub fields: Vec<FieldId>,
    pub column_indices: Vec<i32>,
    pub version: FileVersion,
}

/// A data file being written. Holds at most about one page per column in memory.
pub struct FileWriter {
    output: Output,
    schema: Schema,
    version: FileVersion,
    builders: Builders,
    columns: Vec<Column>,
    row_count: u64,
}

/// What makes pages of rows.
enum Builders {
    /// One for each column.
    Leaves(Vec<PageBuilder>),
    /// Of data format 2.0.
    Arrays(ArrayColumns),
}

/// The pages of a column that were written.
#[derive(Default)]
struct Column {
    row_count: u64,
    pages: Vec<proto::Page>,
}

impl FileWriter {
    /// Starts a file of a schema.
    ///
    /// # Errors
    /// `NotSupported` naming the column and its type when the version has no place for it.
    pub fn new(output: Box<dyn ObjectWriter>, schema: &Schema, version: FileVersion) -> Result<FileWriter> {
        let builders = Builders::new(schema, version)?;
        let columns = std::iter::repeat_with(Column::default).take(builders.fields().len()).collect();
        let output = Output { writer: output, position: 0, gathered: Vec::new() };
        Ok(FileWriter { output, schema: schema.clone(), version, builders, columns, row_count: 0 })
    }

    /// Whether files of a version have a place for the types of a schema; to be asked before there is an output.
    ///
    /// # Errors
    /// As [`FileWriter::new`].
    pub fn check(schema: &Schema, version: FileVersion) -> Result<()> {
        Builders::new(schema, version).map(|_| ())
    }

    /// Appends rows. The batch has the schema's columns in order, and their types.
    ///
    /// # Errors
    /// `Schema` naming column and row, such as a null in a column that takes none; `NotSupported` for values that the version has no
    /// place for; errors of the store. The file is then of no use: abort it.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        check_types(&self.schema, batch)?;
        match &mut self.builders {
            Builders::Leaves(builders) => {
                for (builder, column) in builders.iter_mut().zip(&mut self.columns) {
                    let arrays = builder.resolve(batch.column(builder.path().root))?;
                    let mut row = 0;
                    while row < batch.num_rows() {
                        let first_row = self.row_count + row as u64;
                        let (taken, pages) = builder.take(&arrays, row..batch.num_rows(), first_row)?;
                        row += taken;
                        for page in pages {
                            column.write_page(&mut self.output, page).await?;
                        }
                    }
                }
            }
            Builders::Arrays(arrays) => {
                let rows = arrays.look_at(batch, self.row_count)?;
                for field in 0..batch.num_columns() {
                    let mut row = 0;
                    while row < batch.num_rows() {
                        let (taken, pages) = arrays.take(field, &rows, row..batch.num_rows())?;
                        row += taken;
                        write_arrays(&mut self.columns, &mut self.output, pages).await?;
                    }
                }
            }
        }
        self.row_count += batch.num_rows() as u64;
        Ok(())
    }

    /// Bytes handed to the output so far; what is buffered for the current pages comes on top.
    pub fn written_bytes(&self) -> u64 {
        self.output.position
    }

    /// Writes the last pages and the footer and publishes the file.
    ///
    /// # Errors
    /// Errors of the store; `NotSupported` for values that no page can hold.
    pub async fn finish(mut self) -> Result<FileSummary> {
        match &mut self.builders {
            Builders::Leaves(builders) => {
                for (builder, column) in builders.iter_mut().zip(&mut self.columns) {
                    if let Some(page) = builder.flush()? {
                        column.write_page(&mut self.output, page).await?;
                    }
                }
            }
            Builders::Arrays(arrays) => write_arrays(&mut self.columns, &mut self.output, arrays.finish()?).await?,
        }
        let tail = self.write_tail().await?;
        self.output.append(&tail).await?;
        let size_bytes = self.output.finish().await?;
        let fields = self.builders.fields();
        let column_indices = (0..).take(fields.len()).collect();
        Ok(FileSummary { row_count: self.row_count, size_bytes, fields, column_indices, version: self.version })
    }

    /// Leaves nothing.
    pub async fn abort(self) -> Result<()> {
        self.output.writer.abort().await
    }

    /// Everything after the last page: schema, columns, offset tables, footer.
    async fn write_tail(&mut self) -> Result<Vec<u8>> {
        self.output.align().await?;
        let start = self.output.position;
        let descriptor = proto::FileDescriptor {
            schema: Some(proto::Schema { fields: self.schema.to_proto(), metadata: self.schema.metadata_to_proto() }),
            length: self.row_count,
        };
        let mut tail = descriptor.encode_to_vec();
        let schema_entry = table_entry(start, tail.len() as u64);
        let columns_start = start + tail.len() as u64;
        let mut column_entries = Vec::with_capacity(16 * self.columns.len());
        for column in &mut self.columns {
            let metadata = proto::ColumnMetadata {
                encoding: Some(direct(proto::COLUMN_ENCODING_URL, Bytes::from_static(COLUMN_ENCODING))),
                pages: std::mem::take(&mut column.pages),
                ..proto::ColumnMetadata::default()
            };
            let position = start + tail.len() as u64;
            metadata.encode(&mut tail).map_err(|error| Error::internal(error.to_string()))?;
            column_entries.extend(table_entry(position, start + tail.len() as u64 - position));
        }
        let column_table = start + tail.len() as u64;
        tail.extend(column_entries);
        let global_table = start + tail.len() as u64;
        tail.extend(schema_entry);
        let columns = u32::try_from(self.columns.len()).map_err(|_| Error::not_supported("so many columns"))?;
        let (major, minor) = match self.version {
            FileVersion::V2_0 => (0_u16, 3_u16),
            FileVersion::V2_1 => (2, 1),
            FileVersion::V2_2 => (2, 2),
        };
        // 0..24 positions of column 0, column table, global table | 24..32 counts | 32..36 version | 36..40 magic
        for position in [columns_start, column_table, global_table] {
            tail.extend_from_slice(&position.to_le_bytes());
        }
        tail.extend_from_slice(&1_u32.to_le_bytes());
        tail.extend_from_slice(&columns.to_le_bytes());
        tail.extend_from_slice(&major.to_le_bytes());
        tail.extend_from_slice(&minor.to_le_bytes());
        tail.extend_from_slice(MAGIC);
        Ok(tail)
    }
}

impl Builders {
    fn new(schema: &Schema, version: FileVersion) -> Result<Builders> {
        match version {
            FileVersion::V2_0 => ArrayColumns::new(schema).map(Builders::Arrays),
            FileVersion::V2_1 | FileVersion::V2_2 => {
                let paths = LeafPath::all_of(schema, version)?.into_iter();
                Ok(Builders::Leaves(paths.map(|path| PageBuilder::new(path, version)).collect()))
            }
        }
    }

    /// The field of each column.
    fn fields(&self) -> Vec<FieldId> {
        match self {
            Builders::Leaves(builders) => builders.iter().map(|builder| builder.path().field).collect(),
            Builders::Arrays(arrays) => arrays.ids().to_vec(),
        }
    }
}

impl Column {
    async fn write_page(&mut self, output: &mut Output, page: EncodedPage) -> Result<()> {
        let encoding = direct(proto::PAGE_LAYOUT_URL, page.layout.encode_to_vec().into());
        self.write(output, encoding, self.row_count, page.row_count, page.buffers).await
    }

    async fn write(
        &mut self,
        output: &mut Output,
        encoding: proto::Encoding,
        priority: u64,
        length: u64,
        buffers: Vec<Vec<u8>>,
    ) -> Result<()> {
        let mut entry = proto::Page { length, encoding: Some(encoding), priority, ..proto::Page::default() };
        for buffer in buffers {
            output.align().await?;
            entry.buffer_offsets.push(output.position);
            entry.buffer_sizes.push(buffer.len() as u64);
            output.append_owned(buffer).await?;
        }
        self.row_count += length;
        self.pages.push(entry);
        Ok(())
    }
}

async fn write_arrays(columns: &mut [Column], output: &mut Output, pages: Vec<(usize, ArrayPage)>) -> Result<()> {
    for (index, page) in pages {
        let column = columns.get_mut(index).ok_or_else(|| Error::internal(format!("no column {index}")))?;
        let encoding = direct(proto::ARRAY_ENCODING_URL, page.encoding.encode_to_vec().into());
        column.write(output, encoding, page.first_row, page.row_count, page.buffers).await?;
    }
    Ok(())
}

fn direct(type_url: &str, value: Bytes) -> proto::Encoding {
    let any = proto::Any { type_url: type_url.to_owned(), value };
    proto::Encoding { direct: Some(proto::DirectEncoding { encoding: any.encode_to_vec().into() }) }
}

fn table_entry(position: u64, size: u64) -> [u8; 16] {
    let mut entry = [0; 16];
    entry[..8].copy_from_slice(&position.to_le_bytes());
    entry[8..].copy_from_slice(&size.to_le_bytes());
    entry
}

/// The object, with small pieces gathered.
struct Output {
    writer: Box<dyn ObjectWriter>,
    /// Where the next byte goes.
    position: u64,
    gathered: Vec<u8>,
}

impl Output {
    async fn align(&mut self) -> Result<()> {
        let padding = self.position.next_multiple_of(ALIGNMENT) - self.position;
        self.append(&[PADDING; ALIGNMENT as usize][..padding as usize]).await
    }

    async fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.gathered.extend_from_slice(bytes);
        self.position += bytes.len() as u64;
        if self.gathered.len() >= OUTPUT_BYTES { self.drain().await } else { Ok(()) }
    }

    async fn append_owned(&mut self, bytes: Vec<u8>) -> Result<()> {
        if bytes.len() < OUTPUT_BYTES {
            return self.append(&bytes).await;
        }
        self.drain().await?;
        self.position += bytes.len() as u64;
        self.writer.write(bytes.into()).await
    }

    async fn drain(&mut self) -> Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        self.writer.write(std::mem::take(&mut self.gathered).into()).await
    }

    async fn finish(mut self) -> Result<u64> {
        self.drain().await?;
        let size = self.writer.finish().await?;
        if size != self.position {
            return Err(Error::internal(format!("{size} bytes were published, {} were written", self.position)));
        }
        Ok(size)
    }
}

fn check_types(schema: &Schema, batch: &RecordBatch) -> Result<()> {
    if batch.num_columns() != schema.fields.len() {
        return Err(Error::schema(format!(
            "the batch has {} columns, the table has {}",
            batch.num_columns(),
            schema.fields.len()
        )));
    }
    for (field, array) in schema.fields.iter().zip(batch.columns()) {
        check_type(field, array.data_type())?;
    }
    Ok(())
}

/// Types are the same but for the names of list items and what may be null.
fn check_type(field: &Field, data_type: &DataType) -> Result<()> {
    if same_type(&field.data_type, data_type) {
        return Ok(());
    }
    Err(Error::schema(format!("column \"{}\" has the type {}, the batch has {data_type}", field.name, field.data_type)))
}

fn same_type(ours: &DataType, theirs: &DataType) -> bool {
    match (ours, theirs) {
        (DataType::Struct(ours), DataType::Struct(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| {
                    ours.name() == theirs.name() && same_type(ours.data_type(), theirs.data_type())
                })
        }
        (DataType::List(ours), DataType::List(theirs)) | (DataType::LargeList(ours), DataType::LargeList(theirs)) => {
            same_type(ours.data_type(), theirs.data_type())
        }
        // Whether keys are sorted is not kept.
        (DataType::Map(ours, _), DataType::Map(theirs, _)) => match (ours.data_type(), theirs.data_type()) {
            (DataType::Struct(ours), DataType::Struct(theirs)) => {
                ours.len() == theirs.len()
                    && ours.iter().zip(theirs).all(|(ours, theirs)| same_type(ours.data_type(), theirs.data_type()))
            }
            _ => false,
        },
        (DataType::FixedSizeList(ours, a), DataType::FixedSizeList(theirs, b)) => {
            a == b && same_type(ours.data_type(), theirs.data_type())
        }
        _ => ours == theirs,
    }
}
