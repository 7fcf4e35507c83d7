/** Arrow IPC stream bytes, as they cross to the engine and back. */

import * as arrow from 'apache-arrow';
import type { Data, DataType, RecordBatch, Schema } from 'apache-arrow';

/** A stream with a schema and no batches. */
export function encodeSchema(schema: Schema): Uint8Array {
  return arrow.RecordBatchStreamWriter.writeAll(new arrow.Table(schema, [])).toUint8Array(true);
}

/** A stream of one batch. Its bytes are new: whoever takes them may transfer them. */
export function encodeBatch(batch: RecordBatch): Uint8Array {
  return arrow.RecordBatchStreamWriter.writeAll([writableBatch(batch)]).toUint8Array(true);
}

/** The batch with columns that `apache-arrow` writes rightly. */
export function writableBatch(batch: RecordBatch): RecordBatch {
  const columns = batch.data.children.map(writable);
  if (columns.every((column, i) => column === batch.data.children[i])) return batch;
  const fields = fieldsOf(batch.schema.fields, columns);
  const schema = new arrow.Schema(fields, batch.schema.metadata);
  const type = new arrow.Struct(fields);
  const data = arrow.makeData({ type, length: batch.numRows, nullCount: 0, children: columns });
  return new arrow.RecordBatch(schema, data);
}

/**
 * A column as apache-arrow writes it rightly.
 *
 * Of booleans that are all null it writes no values, of nulls in lists a negative number, and both is no Arrow stream. Small integers
 * that are all null say the same: the engine takes nulls of any type for the table's own. Slices of large text it does not write at all,
 * and what it cuts out of a list is only then seen to be one of these: lists and large text begin at 0 here.
 */
function writable(data: Data): Data {
  const { type, offset, length, nullCount } = data;
  if (arrow.DataType.isBool(type) && length > 0 && nullCount >= length) return allNull(data);
  if (arrow.DataType.isLargeUtf8(type) || arrow.DataType.isLargeBinary(type)) return largeFromZero(data);
  const trimmed = arrow.DataType.isList(type) || arrow.DataType.isMap(type) ? listFromZero(data) : data;
  const children = trimmed.children.map((child) =>
    arrow.DataType.isNull(child.type) ? allNull(child) : writable(child),
  );
  if (children.every((child, i) => child === data.children[i])) return data;
  return trimmed.clone(withChildren(type, children), offset, length, nullCount, trimmed.buffers as never, children);
}

function largeFromZero(data: Data): Data {
  const { type, offset, length, nullCount, nullBitmap } = data;
  const offsets = data.valueOffsets as unknown as BigInt64Array;
  const [first = 0n, last = 0n] = [offsets[0], offsets[length]];
  if (first === 0n) return data;
  const valueOffsets = offsets.slice(0, length + 1).map((each) => each - first);
  const bytes = (data.values as Uint8Array).subarray(Number(first), Number(last));
  return arrow.makeData({
    type: type as arrow.LargeBinary,
    offset,
    length,
    nullCount,
    nullBitmap,
    data: bytes,
    valueOffsets,
  });
}

function listFromZero(data: Data): Data {
  const { type, offset, length, nullCount, nullBitmap } = data;
  const offsets = data.valueOffsets as unknown as Int32Array;
  const [items] = data.children;
  const [first = 0, last = 0] = [offsets[0], offsets[length]];
  if (items === undefined || (first === 0 && last === items.length)) return data;
  const valueOffsets = offsets.slice(0, length + 1).map((each) => each - first);
  const child = items.slice(first, last - first);
  return arrow.makeData({ type: type as arrow.List, offset, length, nullCount, nullBitmap, valueOffsets, child });
}

function allNull({ offset, length }: Data): Data {
  const [data, nullBitmap] = [new Int8Array(length), new Uint8Array((offset + length + 7) >> 3)];
  return arrow.makeData({ type: new arrow.Int8(), offset, length, nullCount: length, nullBitmap, data });
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
    const nullable = field.nullable || (columns[i]?.nullCount ?? 0) > 0;
    return type === field.type ? field : field.clone({ name: field.name, type, nullable });
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
