//! Encode: batches as the messages of an Arrow IPC stream.
//!
//! ```text
//! message: u32 mark | u32 length of the metadata | metadata, padded | body: buffers, each padded
//! stream:  schema | (dictionary ... | batch) ... | u32 mark | u32 0
//! ```
//!
//! Slices are written as what they show: offsets begin at 0, values that no row uses are left out. Arrow's own writer compares
//! dictionaries of any type to leave out what was sent, which costs the engine more than all of this; here a dictionary is sent again
//! unless it is the same memory.

use arrow_array::{Array, RecordBatch};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, MutableBuffer};
use arrow_data::ArrayData;
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::DictionaryTracker;
use arrow_ipc::{
    DictionaryBatchBuilder, FieldNode, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder,
};
use arrow_schema::{DataType, Schema};
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

use super::ALIGNMENT;
use super::frames::CONTINUATION;
use crate::error::{Error, Result};

pub(super) fn write(schema: &Schema, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let mut stream = Stream { bytes: Vec::new(), sent: Vec::new() };
    let mut builder = FlatBufferBuilder::new();
    // It gives the dictionaries their ids, in the order of the fields.
    let mut ids = DictionaryTracker::new(false);
    let header = IpcSchemaEncoder::new().with_dictionary_tracker(&mut ids).schema_to_fb_offset(&mut builder, schema);
    stream.message(builder, (MessageHeader::Schema, header.as_union_value()), &Body::default());
    for batch in batches {
        stream.batch(batch)?;
    }
    stream.bytes.extend_from_slice(&CONTINUATION.to_le_bytes());
    stream.bytes.extend_from_slice(&[0; 4]);
    Ok(stream.bytes)
}

struct Stream {
    bytes: Vec<u8>,
    /// The last values of each dictionary, by its id.
    sent: Vec<ArrayData>,
}

/// The buffers of one message, and where they lie.
#[derive(Default)]
struct Body {
    nodes: Vec<FieldNode>,
    buffers: Vec<arrow_ipc::Buffer>,
    /// Data buffers of each column of views.
    view_counts: Vec<i64>,
    bytes: Vec<u8>,
    /// The dictionaries that its columns use, in order.
    dictionaries: Vec<ArrayData>,
}

impl Stream {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut body = Body::default();
        for column in batch.columns() {
            body.array(&column.to_data())?;
        }
        for (id, values) in std::mem::take(&mut body.dictionaries).into_iter().enumerate() {
            match self.sent.get_mut(id) {
                Some(sent) if sent.ptr_eq(&values) => continue,
                Some(sent) => *sent = values.clone(),
                None => self.sent.push(values.clone()),
            }
            self.dictionary(id, &values)?;
        }
        let mut builder = FlatBufferBuilder::new();
        let header = body.record_batch(&mut builder, batch.num_rows());
        self.message(builder, (MessageHeader::RecordBatch, header.as_union_value()), &body);
        Ok(())
    }

    fn dictionary(&mut self, id: usize, values: &ArrayData) -> Result<()> {
        let mut body = Body::default();
        body.array(values)?;
        let mut builder = FlatBufferBuilder::new();
        let data = body.record_batch(&mut builder, values.len());
        let mut header = DictionaryBatchBuilder::new(&mut builder);
        header.add_id(id as i64);
        header.add_data(data);
        let header = header.finish();
        self.message(builder, (MessageHeader::DictionaryBatch, header.as_union_value()), &body);
        Ok(())
    }

    fn message(
        &mut self,
        mut builder: FlatBufferBuilder<'_>,
        (kind, header): (MessageHeader, WIPOffset<UnionWIPOffset>),
        body: &Body,
    ) {
        let mut message = MessageBuilder::new(&mut builder);
        message.add_version(MetadataVersion::V5);
        message.add_header_type(kind);
        message.add_header(header);
        message.add_bodyLength(body.bytes.len() as i64);
        let message = message.finish();
        builder.finish(message, None);
        let metadata = builder.finished_data();
        let length = metadata.len().next_multiple_of(ALIGNMENT);
        self.bytes.extend_from_slice(&CONTINUATION.to_le_bytes());
        self.bytes.extend_from_slice(&(length as u32).to_le_bytes());
        self.bytes.extend_from_slice(metadata);
        self.bytes.resize(self.bytes.len() + length - metadata.len(), 0);
        self.bytes.extend_from_slice(&body.bytes);
    }
}

impl Body {
    fn record_batch<'b>(
        &self,
        builder: &mut FlatBufferBuilder<'b>,
        rows: usize,
    ) -> WIPOffset<arrow_ipc::RecordBatch<'b>> {
        let nodes = builder.create_vector(&self.nodes);
        let buffers = builder.create_vector(&self.buffers);
        let counts = (!self.view_counts.is_empty()).then(|| builder.create_vector(&self.view_counts));
        let mut batch = RecordBatchBuilder::new(builder);
        batch.add_length(rows as i64);
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        if let Some(counts) = counts {
            batch.add_variadicBufferCounts(counts);
        }
        batch.finish()
    }

    /// Adds an array, its children after it.
    fn array(&mut self, array: &ArrayData) -> Result<()> {
        let data_type = array.data_type();
        let (start, rows) = (array.offset(), array.len());
        if matches!(data_type, DataType::Null) {
            self.nodes.push(FieldNode::new(rows as i64, rows as i64));
            return Ok(());
        }
        self.nodes.push(FieldNode::new(rows as i64, array.null_count() as i64));
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => self.buffer(nulls.inner().sliced().as_slice()),
            None => self.buffer(&[]),
        }
        match data_type {
            DataType::Boolean => {
                let bits = BooleanBuffer::new(buffer(array, 0)?.clone(), start, rows);
                self.buffer(bits.sliced().as_slice());
            }
            DataType::Utf8 | DataType::Binary => self.text::<i32>(array)?,
            DataType::LargeUtf8 | DataType::LargeBinary => self.text::<i64>(array)?,
            DataType::Utf8View | DataType::BinaryView => {
                self.fixed(array, 16)?;
                let data = array.buffers().get(1..).unwrap_or_default();
                self.view_counts.push(data.len() as i64);
                data.iter().for_each(|data| self.buffer(data));
            }
            DataType::List(_) | DataType::Map(_, _) => {
                let (start, end) = self.offsets::<i32>(array)?;
                self.array(&child(array, 0)?.slice(start, end - start))?;
            }
            DataType::LargeList(_) => {
                let (start, end) = self.offsets::<i64>(array)?;
                self.array(&child(array, 0)?.slice(start, end - start))?;
            }
            DataType::FixedSizeList(_, size) => {
                let size = usize::try_from(*size).unwrap_or_default();
                self.array(&child(array, 0)?.slice(start * size, rows * size))?;
            }
            DataType::Struct(members) => {
                for at in 0..members.len() {
                    // A struct that begins in the middle of its members shows only these rows of them.
                    self.array(&child(array, at)?.slice(start, rows))?;
                }
            }
            DataType::Dictionary(keys, _) => {
                self.fixed(array, keys.primitive_width().unwrap_or_default())?;
                self.dictionaries.push(child(array, 0)?.clone());
            }
            DataType::FixedSizeBinary(size) => self.fixed(array, usize::try_from(*size).unwrap_or_default())?,
            other => match other.primitive_width() {
                Some(width) => self.fixed(array, width)?,
                None => return Err(Error::not_supported(format!("Arrow streams of {other}"))),
            },
        }
        Ok(())
    }

    fn fixed(&mut self, array: &ArrayData, width: usize) -> Result<()> {
        let range = array.offset() * width..(array.offset() + array.len()) * width;
        let values = buffer(array, 0)?.get(range).ok_or_else(|| broken(array))?;
        self.buffer(values);
        Ok(())
    }

    fn text<O: ArrowNativeType + std::ops::Sub<Output = O>>(&mut self, array: &ArrayData) -> Result<()> {
        let (start, end) = self.offsets::<O>(array)?;
        let values = buffer(array, 1)?.get(start..end).ok_or_else(|| broken(array))?;
        self.buffer(values);
        Ok(())
    }

    /// Adds offsets that begin at 0, and tells what of the values they show.
    fn offsets<O: ArrowNativeType + std::ops::Sub<Output = O>>(&mut self, array: &ArrayData) -> Result<(usize, usize)> {
        let all: &[O] = buffer(array, 0)?.typed_data();
        // The offsets of no rows may be no offset at all.
        let shown = all.get(array.offset()..=array.offset() + array.len()).unwrap_or_default();
        let (Some(first), Some(last)) = (shown.first().copied(), shown.last().copied()) else {
            self.buffer(&vec![0; size_of::<O>()]);
            return if array.is_empty() { Ok((0, 0)) } else { Err(broken(array)) };
        };
        let rebased: Vec<O> = shown.iter().map(|offset| *offset - first).collect();
        self.buffer(MutableBuffer::from(rebased).as_slice());
        Ok((first.as_usize(), last.as_usize()))
    }

    fn buffer(&mut self, bytes: &[u8]) {
        self.buffers.push(arrow_ipc::Buffer::new(self.bytes.len() as i64, bytes.len() as i64));
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }
}

fn buffer(array: &ArrayData, at: usize) -> Result<&Buffer> {
    array.buffers().get(at).ok_or_else(|| broken(array))
}

fn child(array: &ArrayData, at: usize) -> Result<&ArrayData> {
    array.child_data().get(at).ok_or_else(|| broken(array))
}

fn broken(array: &ArrayData) -> Error {
    Error::internal(format!("an array of {} without its parts", array.data_type()))
}
