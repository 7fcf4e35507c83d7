/** Arrow IPC stream bytes, as they cross to the engine and back. */

import * as arrow from 'apache-arrow';
import type { RecordBatch, Schema } from 'apache-arrow';

/** A stream with a schema and no batches. */
export function encodeSchema(schema: Schema): Uint8Array {
  return arrow.RecordBatchStreamWriter.writeAll(new arrow.Table(schema, [])).toUint8Array(true);
}

/** A stream of one batch. Its bytes are new: whoever takes them may transfer them. */
export function encodeBatch(batch: RecordBatch): Uint8Array {
  return arrow.RecordBatchStreamWriter.writeAll([batch]).toUint8Array(true);
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
