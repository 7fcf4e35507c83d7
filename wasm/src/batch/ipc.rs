//! Arrow IPC streams: batches at the JavaScript edge and in WAL entries.
//!
//! The bytes come from callers and from stores, and a panic would end the engine: before Arrow's reader sees a message, its lengths,
//! its row counts and the types of the schema are checked here. Compressed streams are refused.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_ipc::{DictionaryBatch, Message, MessageHeader, MetadataVersion};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

use crate::error::{Error, Result};

/// Buffers begin at multiples of this; what Arrow's readers ask for at least. More would make small WAL entries larger.
const ALIGNMENT: usize = 8;
/// Opens every message since Arrow 0.15.
const CONTINUATION: u32 = u32::MAX;
/// Rows of one batch: offsets of strings and lists have 31 bits.
const MAX_ROWS: i64 = i32::MAX as i64;
/// Levels of nested types.
const MAX_DEPTH: usize = 64;

/// A stream without batches.
pub fn encode_schema(schema: &Schema) -> Result<Vec<u8>> {
    write(schema, &[])
}

/// A stream of batches, all of the given schema.
pub fn encode_batches(schema: &Schema, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    for batch in batches {
        if batch.schema_ref().fields() != schema.fields() {
            return Err(Error::schema(format!("a batch of {} in a stream of {schema}", batch.schema_ref())));
        }
    }
    write(schema, batches)
}

fn write(schema: &Schema, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let failed = |error: ArrowError| Error::internal(format!("encode an Arrow stream: {error}"));
    let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5).map_err(failed)?;
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new_with_options(&mut bytes, schema, options).map_err(failed)?;
    batches.iter().try_for_each(|batch| writer.write(batch)).and_then(|()| writer.finish()).map_err(failed)?;
    drop(writer);
    Ok(bytes)
}

/// Reads a whole stream. `InvalidInput` for anything that is none, `NotSupported` for what Arrow has and Lance cannot hold.
pub fn decode_stream(bytes: &[u8]) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    // The arrays are slices of this copy, which is aligned as Arrow wants it.
    let buffer = Buffer::from(bytes);
    let mut at = 0;
    let first = next_frame(bytes, at)?.ok_or_else(|| invalid("it is empty"))?;
    let schema = first.message.header_as_schema().ok_or_else(|| invalid("it does not begin with a schema"))?;
    let schema = Arc::new(try_fb_to_schema(schema).map_err(invalid)?);
    schema.fields().iter().try_for_each(|field| check_type(field.data_type(), field.name(), 1))?;
    at = first.end;
    let mut dictionaries = HashMap::new();
    let mut batches = Vec::new();
    while let Some(Frame { message, body, end }) = next_frame(bytes, at)? {
        let version = message.version();
        let body = buffer.slice_with_length(body, end - body);
        match message.header_type() {
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or_else(|| invalid("a batch without content"))?;
                check_batch(&batch, schema.fields().iter().map(|field| field.data_type()), body.len())?;
                let decoder = RecordBatchDecoder::try_new(&body, batch, schema.clone(), &dictionaries, &version);
                batches.push(decoder.and_then(RecordBatchDecoder::read_record_batch).map_err(invalid)?);
            }
            MessageHeader::DictionaryBatch => {
                let batch = message.header_as_dictionary_batch();
                let batch = batch.ok_or_else(|| invalid("a dictionary without content"))?;
                check_dictionary(&batch, &schema, body.len())?;
                read_dictionary(&body, batch, &schema, &mut dictionaries, &version).map_err(invalid)?;
            }
            other => return Err(invalid(format!("a message of the kind {other:?}"))),
        }
        at = end;
    }
    Ok((schema, batches))
}

struct Frame<'a> {
    message: Message<'a>,
    body: usize,
    end: usize,
}

/// The message at `at`; `None` at the end of the stream, which is a length of 0 or the end of the bytes.
fn next_frame(bytes: &[u8], at: usize) -> Result<Option<Frame<'_>>> {
    let cut = || invalid("a message is cut off");
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word));
    if at == bytes.len() {
        return Ok(None);
    }
    let first = word(at).ok_or_else(cut)?;
    let (length, start) = if first == CONTINUATION { (word(at + 4).ok_or_else(cut)?, at + 8) } else { (first, at + 4) };
    if length == 0 {
        return if start == bytes.len() { Ok(None) } else { Err(invalid("bytes after the end of the stream")) };
    }
    let body = usize::try_from(length).ok().and_then(|length| start.checked_add(length)).ok_or_else(cut)?;
    let message = arrow_ipc::root_as_message(bytes.get(start..body).ok_or_else(cut)?).map_err(invalid)?;
    let end = usize::try_from(message.bodyLength()).ok().and_then(|length| body.checked_add(length));
    match end {
        Some(end) if end <= bytes.len() => Ok(Some(Frame { message, body, end })),
        _ => Err(cut()),
    }
}

fn check_dictionary(dictionary: &DictionaryBatch, schema: &Schema, body: usize) -> Result<()> {
    #[expect(deprecated, reason = "the id of a dictionary is part of the stream, and Arrow has no other way to it")]
    let fields = schema.fields_with_dict_id(dictionary.id());
    let values = fields.first().and_then(|field| match field.data_type() {
        DataType::Dictionary(_, values) => Some(values.as_ref()),
        _ => None,
    });
    let values = values.ok_or_else(|| invalid("a dictionary that no column uses"))?;
    let batch = dictionary.data().ok_or_else(|| invalid("a dictionary without values"))?;
    check_batch(&batch, std::iter::once(values), body)
}

fn check_batch<'a>(
    batch: &arrow_ipc::RecordBatch,
    types: impl Iterator<Item = &'a DataType>,
    body: usize,
) -> Result<()> {
    if batch.compression().is_some() {
        return Err(Error::not_supported("compressed Arrow streams"));
    }
    if !(0..=MAX_ROWS).contains(&batch.length()) {
        return Err(invalid(format!("a batch of {} rows", batch.length())));
    }
    let body = i64::try_from(body).unwrap_or(i64::MAX);
    for buffer in batch.buffers().into_iter().flatten() {
        let end = buffer.offset().checked_add(buffer.length());
        if buffer.offset() < 0 || buffer.length() < 0 || end.is_none_or(|end| end > body) {
            return Err(invalid(format!(
                "a buffer of {} bytes at {} in a body of {body}",
                buffer.length(),
                buffer.offset()
            )));
        }
    }
    let mut parts = Parts {
        nodes: batch.nodes().into_iter().flatten(),
        buffers: batch.buffers().into_iter().flatten(),
        view_counts: batch.variadicBufferCounts().into_iter().flatten(),
    };
    for data_type in types {
        parts.check(data_type)?;
    }
    match (parts.nodes.next(), parts.buffers.next()) {
        (None, None) => Ok(()),
        _ => Err(invalid("a batch has more columns than the schema")),
    }
}

/// The parts of a batch as they lie in it: columns in pre-order, each with its buffers.
struct Parts<N, B, V> {
    nodes: N,
    buffers: B,
    view_counts: V,
}

impl<'a, N, B, V> Parts<N, B, V>
where
    N: Iterator<Item = &'a arrow_ipc::FieldNode>,
    B: Iterator<Item = &'a arrow_ipc::Buffer>,
    V: Iterator<Item = i64>,
{
    fn check(&mut self, data_type: &DataType) -> Result<()> {
        let node = self.nodes.next().ok_or_else(|| invalid("a batch has fewer columns than the schema"))?;
        let rows = node.length();
        if !(0..=MAX_ROWS).contains(&rows) || !(0..=rows).contains(&node.null_count()) {
            return Err(invalid(format!("a column of {rows} rows, {} of them null", node.null_count())));
        }
        if !matches!(data_type, DataType::Null) {
            self.buffer(1)?;
        }
        match data_type {
            DataType::Null => Ok(()),
            DataType::Struct(members) => members.iter().try_for_each(|member| self.check(member.data_type())),
            DataType::List(item) | DataType::Map(item, _) => self.buffer(4).and_then(|()| self.check(item.data_type())),
            DataType::LargeList(item) => self.buffer(8).and_then(|()| self.check(item.data_type())),
            DataType::FixedSizeList(item, size) => {
                // Arrow multiplies the two and panics when that overflows.
                if rows.checked_mul(i64::from(*size)).is_none_or(|items| items > MAX_ROWS) {
                    return Err(invalid(format!("{rows} lists of {size} items")));
                }
                self.check(item.data_type())
            }
            DataType::Utf8 | DataType::Binary => self.buffer(4).and_then(|()| self.buffer(1)),
            DataType::LargeUtf8 | DataType::LargeBinary => self.buffer(8).and_then(|()| self.buffer(1)),
            DataType::Utf8View | DataType::BinaryView => {
                self.buffer(16)?;
                let count = self.view_counts.next().ok_or_else(|| invalid("a column of views without its count"))?;
                // Ends with the buffers, whatever the count says.
                (0..count).try_for_each(|_| self.buffer(1))
            }
            DataType::Dictionary(keys, _) => self.buffer(keys.primitive_width().unwrap_or(1)),
            other => self.buffer(other.primitive_width().unwrap_or(1)),
        }
    }

    /// Arrow takes the whole buffer for an array of its type, and panics if the last value is cut off.
    fn buffer(&mut self, width: usize) -> Result<()> {
        let buffer = self.buffers.next().ok_or_else(|| invalid("a batch has fewer buffers than the schema"))?;
        if usize::try_from(buffer.length()).is_ok_and(|length| length.is_multiple_of(width)) {
            return Ok(());
        }
        Err(invalid(format!("a buffer of {} bytes for values of {width}", buffer.length())))
    }
}

/// Whether the type is one whose arrays Arrow builds without a panic, whatever the rest of the stream says.
fn check_type(data_type: &DataType, column: &str, depth: usize) -> Result<()> {
    let refused = || Error::not_supported(format!("column \"{column}\" of type {data_type}"));
    if depth > MAX_DEPTH {
        return Err(Error::not_supported(format!("column \"{column}\": nested deeper than {MAX_DEPTH}")));
    }
    let item = |item: &DataType| check_type(item, column, depth + 1);
    match data_type {
        DataType::Struct(members) => members.iter().try_for_each(|member| item(member.data_type())),
        DataType::List(field) | DataType::LargeList(field) => item(field.data_type()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(members) if members.len() == 2 => item(entries.data_type()),
            _ => Err(refused()),
        },
        DataType::FixedSizeList(field, size) if *size > 0 => item(field.data_type()),
        DataType::Dictionary(_, values) if !values.is_nested() => item(values),
        DataType::FixedSizeBinary(size) if *size > 0 => Ok(()),
        DataType::Decimal128(precision, scale) => check_decimal(*precision, *scale, 38).ok_or_else(refused),
        DataType::Decimal256(precision, scale) => check_decimal(*precision, *scale, 76).ok_or_else(refused),
        DataType::FixedSizeList(_, _) | DataType::Dictionary(_, _) | DataType::FixedSizeBinary(_) => Err(refused()),
        DataType::Union(_, _)
        | DataType::RunEndEncoded(_, _)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Decimal32(_, _)
        | DataType::Decimal64(_, _)
        | DataType::Interval(_) => Err(refused()),
        DataType::Null
        | DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Timestamp(_, _)
        | DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View => Ok(()),
    }
}

fn check_decimal(precision: u8, scale: i8, max: u8) -> Option<()> {
    ((1..=max).contains(&precision) && i16::from(scale) <= i16::from(precision)).then_some(())
}

fn invalid(reason: impl std::fmt::Display) -> Error {
    Error::invalid_input(format!("Arrow stream: {reason}"))
}

#[cfg(test)]
mod tests;
