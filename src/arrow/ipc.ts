/** Arrow IPC stream bytes, as they cross to the engine and back. */

import * as arrow from 'apache-arrow';
import type { Data, DataType, RecordBatch, Schema } from 'apache-arrow';

/** A stream with a schema and no batches. */
export function encodeSchema(schema: Schema): Uint8Array {
  return arrow.RecordBatchStreamWriter.writeAll(new arrow.Table(schema, [])).toUint8Array(true);
}

/** A stream of one batch. Its bytes are new: whoever takes them may transfer them. */
export function encodeBatch(batch: RecordBatch): Uint8Array {
  const columns = batch.data.children.map(writable);
  if (columns.every((column, i) => column === batch.data.children[i])) {
    return arrow.RecordBatchStreamWriter.writeAll([batch]).toUint8Array(true);
  }
  const fields = fieldsOf(batch.schema.fields, columns);
  const schema = new arrow.Schema(fields, batch.schema.metadata);
  const type = new arrow.Struct(fields);
  const data = arrow.makeData({ type, length: batch.numRows, nullCount: 0, children: columns });
  return arrow.RecordBatchStreamWriter.writeAll([new arrow.RecordBatch(schema, data)]).toUint8Array(true);
}

/**
 * A column as apache-arrow writes it rightly: of booleans that are all null it writes no values, which is no Arrow stream. Small integers
 * that are all null say the same: the engine takes nulls of any type for the table's own.
 */
function writable(data: Data): Data {
  const { offset, length, nullCount, nullBitmap } = data;
  if (arrow.DataType.isBool(data.type) && length > 0 && nullCount >= length) {
    const values = new Int8Array(offset + length);
    return arrow.makeData({ type: new arrow.Int8(), offset, length, nullCount, nullBitmap, data: values });
  }
  const children = data.children.map(writable);
  if (children.every((child, i) => child === data.children[i])) return data;
  const type = withChildren(data.type, children);
  return data.clone(type, offset, length, nullCount, data.buffers as never, children);
}

function withChildren(type: DataType, children: readonly Data[]): DataType {
  const fields = fieldsOf(type.children, children);
  if (arrow.DataType.isStruct(type)) return new arrow.Struct(fields);
  const [item] = fields;
  if (item === undefined) return type;
  if (arrow.DataType.isList(type)) return new arrow.List(item);
  if (arrow.DataType.isFixedSizeList(type)) return new arrow.FixedSizeList(type.listSize, item);
  if (arrow.DataType.isMap(type)) return new arrow.Map_(item as never, type.keysSorted);
  return type;
}

function fieldsOf(fields: readonly arrow.Field[], columns: readonly Data[]): arrow.Field[] {
  return fields.map((field, i) => {
    const type = columns[i]?.type ?? field.type;
    return type === field.type ? field : field.clone({ name: field.name, type, nullable: true });
  });
}

export function decodeSchema(ipc: Uint8Array): Schema {
  const reader = arrow.RecordBatchReader.from(ipc).open();
  return reader.schema;
}

/** The batches of a stream; their buffers are views of `ipc`. Batches without rows are left out. */
export function decodeBatches(ipc: Uint8Array): RecordBatch[] {
  const batches: RecordBatch[] = [];
  for (const batch of arrow.RecordBatchReader.from(ipc)) {
    if (batch.numRows > 0) batches.push(batch);
  }
  return batches;
}
