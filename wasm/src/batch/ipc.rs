//! Arrow IPC streams and files: batches at the JavaScript edge and in WAL entries.
//!
//! The bytes come from callers and from stores, and a panic would end the engine: before Arrow's reader sees a message, its lengths,
//! its row counts and the types of the schema are checked here. Compressed bodies are read, never written.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::Buffer;
use arrow_data::transform::MutableArrayData;
use arrow_ipc::reader::RecordBatchDecoder;
use arrow_ipc::{DictionaryBatch, MessageHeader, MetadataVersion};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::batch::nested::map_fields;
use crate::error::{Error, Result};
use frames::Frame;

mod compressed;
mod encode;
mod frames;

/// Buffers begin at multiples of this; what Arrow's readers ask for at least. More would make small WAL entries larger.
const ALIGNMENT: usize = 8;
/// Rows of one batch: offsets of strings and lists have 31 bits.
const MAX_ROWS: i64 = i32::MAX as i64;
/// Levels of nested types.
const MAX_DEPTH: usize = 64;

/// A stream without batches.
pub fn encode_schema(schema: &Schema) -> Result<Vec<u8>> {
    encode::write(schema, &[])
}

/// A stream of batches, all of the given schema.
pub fn encode_batches(schema: &Schema, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    for batch in batches {
        if batch.schema_ref().fields() != schema.fields() {
            return Err(Error::schema(format!("a batch of {} in a stream of {schema}", batch.schema_ref())));
        }
    }
    encode::write(schema, batches)
}

/// Reads a whole stream or file. `InvalidInput` for anything that is none, `NotSupported` for what Arrow has and Lance cannot hold.
pub fn decode_stream(bytes: &[u8]) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    // The arrays are slices of this copy, which is aligned as Arrow wants it.
    let buffer = Buffer::from(bytes);
    let (schema, mut frames) = frames::open(bytes)?;
    schema.fields().iter().try_for_each(|field| check_type(field.data_type(), field.name(), 1))?;
    let fields = map_fields(schema.fields(), &without_empty_zone);
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let mut dictionaries = HashMap::new();
    let mut batches = Vec::new();
    while let Some(Frame { message, body, end }) = frames.next()? {
        let version = message.version();
        let body = buffer.slice_with_length(body, end - body);
        match message.header_type() {
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or_else(|| invalid("a batch without content"))?;
                let types = || schema.fields().iter().map(|field| field.data_type());
                let plain = match batch.compression() {
                    Some(compression) => Some(compressed::expand_batch(&batch, compression, &body)?),
                    None => None,
                };
                let (batch, body) = match &plain {
                    Some(plain) => (plain.batch()?, &plain.body),
                    None => (batch, &body),
                };
                check_batch(&batch, types(), body.len())?;
                let decoder = RecordBatchDecoder::try_new(body, batch, schema.clone(), &dictionaries, &version);
                batches.push(decoder.and_then(RecordBatchDecoder::read_record_batch).map_err(invalid)?);
            }
            MessageHeader::DictionaryBatch => {
                let dictionary = message.header_as_dictionary_batch();
                let dictionary = dictionary.ok_or_else(|| invalid("a dictionary without content"))?;
                let values = dictionary.data().ok_or_else(|| invalid("a dictionary without values"))?;
                let plain = match values.compression() {
                    Some(compression) => Some(compressed::expand_dictionary(&dictionary, &values, compression, &body)?),
                    None => None,
                };
                let (dictionary, body) = match &plain {
                    Some(plain) => (plain.dictionary()?, &plain.body),
                    None => (dictionary, &body),
                };
                read_dictionary(&dictionary, body, &schema, version, &mut dictionaries)?;
            }
            other => return Err(invalid(format!("a message of the kind {other:?}"))),
        }
    }
    Ok((schema, batches))
}

/// A zone of no characters is none, as Arrow has it; nobody writes it.
fn without_empty_zone(data_type: DataType) -> DataType {
    match data_type {
        DataType::Timestamp(unit, Some(zone)) if zone.is_empty() => DataType::Timestamp(unit, None),
        other => other,
    }
}

/// Reads the values of a dictionary, which replace those that it had or come after them.
///
/// Arrow's own way to them joins the two with its kernel for whole columns of any type, which is a twelfth of the engine.
fn read_dictionary(
    dictionary: &DictionaryBatch,
    body: &Buffer,
    schema: &Schema,
    version: MetadataVersion,
    dictionaries: &mut HashMap<i64, ArrayRef>,
) -> Result<()> {
    #[expect(deprecated, reason = "the id of a dictionary is part of the stream, and Arrow has no other way to it")]
    let fields = schema.fields_with_dict_id(dictionary.id());
    let values = fields.first().and_then(|field| match field.data_type() {
        DataType::Dictionary(_, values) => Some(values.as_ref().clone()),
        _ => None,
    });
    let values = values.ok_or_else(|| invalid("a dictionary that no column uses"))?;
    let batch = dictionary.data().ok_or_else(|| invalid("a dictionary without values"))?;
    check_batch(&batch, std::iter::once(&values), body.len())?;
    let schema = Arc::new(Schema::new(vec![Field::new("values", values, true)]));
    let decoder = RecordBatchDecoder::try_new(body, batch, schema, dictionaries, &version);
    let mut values = decoder.and_then(RecordBatchDecoder::read_record_batch).map_err(invalid)?.remove_column(0);
    if dictionary.isDelta() {
        let before = dictionaries.get(&dictionary.id());
        let before = before.ok_or_else(|| invalid("more values for a dictionary that is not there"))?.to_data();
        let after = values.to_data();
        let mut joined = MutableArrayData::new(vec![&before, &after], false, before.len() + after.len());
        for (at, part) in [&before, &after].into_iter().enumerate() {
            joined.try_extend(at, 0, part.len()).map_err(invalid)?;
        }
        values = make_array(joined.freeze());
    }
    dictionaries.insert(dictionary.id(), values);
    Ok(())
}

fn check_batch<'a>(
    batch: &arrow_ipc::RecordBatch,
    types: impl Iterator<Item = &'a DataType>,
    body: usize,
) -> Result<()> {
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
    let child = |field: &Field| check_type(field.data_type(), &format!("{column}.{}", field.name()), depth + 1);
    match data_type {
        DataType::Struct(members) => members.iter().try_for_each(|member| child(member)),
        DataType::List(item) | DataType::LargeList(item) => child(item),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(members) if members.len() == 2 => child(entries),
            _ => Err(refused()),
        },
        DataType::FixedSizeList(item, size) if *size > 0 => child(item),
        DataType::Dictionary(_, values) if !values.is_nested() => check_type(values, column, depth + 1),
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
