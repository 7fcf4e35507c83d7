/**
 * Whatever a caller writes into a table, as a schema and a stream of batches: rows, Arrow of any version, IPC bytes, and streams of them.
 *
 * At most one batch is held at a time, of at most 65,536 rows and some tens of megabytes.
 */

import type { RecordBatch, Schema } from 'apache-arrow';

import { LanceError } from '../errors';
import type { Row } from './cells';
import { isRow } from './cells';
import { BatchTooLarge } from './bytes';
import { buildBatch, fixedRowBytes } from './columns';
import {
  isArrowTableLike,
  isRecordBatchLike,
  isSchemaLike,
  toOurBatch,
  toOurSchema,
  type ArrowTableLike,
  type RecordBatchLike,
  type SchemaLike,
} from './foreign';
import { SchemaInference, type InferOptions } from './infer';
import { splitIpc } from './ipc-bytes';

/** What a stream of data may yield: a row, an array of rows, or Arrow data. */
export type DataPart = Row | readonly Row[] | RecordBatchLike | ArrowTableLike;

/**
 * Data to be written: an array of rows; an Arrow table, record batch or reader of any version of `apache-arrow`; Arrow IPC bytes
 * (stream or file); or an iterable of rows, arrays of rows or batches, which is read as it is written.
 */
export type TableData =
  | readonly Row[]
  | ArrowTableLike
  | RecordBatchLike
  | Uint8Array
  | ArrayBuffer
  | Iterable<DataPart>
  | AsyncIterable<DataPart>;

export interface SourceOptions extends InferOptions {
  /** The schema that rows are converted to. Without one it is inferred. */
  readonly schema?: Schema | undefined;
}

/** Data being read once. Bytes are Arrow IPC as it was given: a stream or a file, with the schema or with one batch. */
export interface Source {
  readonly schema: Schema | Uint8Array;
  /** Returning early closes what the data came from. */
  readonly batches: AsyncGenerator<RecordBatch | Uint8Array, void, undefined>;
}

const MAX_ROWS = 65_536;
const MAX_FIXED_BYTES = 32 * 1024 * 1024;
/** Single rows of a stream are gathered into arrays of this many. */
const GATHERED_ROWS = 8_192;

type Piece =
  { readonly kind: 'rows'; readonly rows: readonly Row[] } | { readonly kind: 'batch'; readonly batch: RecordBatch };

/**
 * Looks at the beginning of the data, as far as its schema needs. An array of rows is looked at whole: a later row may decide a type.
 *
 * @throws `INVALID_INPUT` for data that is nothing of the above, or empty without a schema; `SCHEMA` for rows that have no common one.
 */
export async function openSource(data: TableData, options: SourceOptions = {}): Promise<Source> {
  const bytes = bytesOf(data);
  if (bytes !== undefined) {
    const { schema, batches } = splitIpc(bytes);
    return { schema: options.schema ?? schema, batches: inTurn(batches) };
  }
  const declared = options.schema ?? schemaOf(data);
  const pieces = readPieces(data);
  if (declared !== undefined) return { schema: declared, batches: toBatches(declared, undefined, pieces) };
  let first: IteratorResult<Piece, void>;
  // An array of no rows says nothing about columns.
  do first = await pieces.next();
  while (first.done !== true && first.value.kind === 'rows' && first.value.rows.length === 0);
  if (first.done === true) {
    throw new LanceError('INVALID_INPUT', 'At least one record or a schema needs to be provided');
  }
  try {
    const schema = first.value.kind === 'batch' ? first.value.batch.schema : inferSchema(first.value.rows, options);
    return { schema, batches: toBatches(schema, first.value, pieces) };
  } catch (error) {
    await pieces.return();
    throw error;
  }
}

/** The schema of rows, by LanceDB's rules. */
export function inferSchema(rows: readonly Row[], options: InferOptions = {}): Schema {
  const inference = new SchemaInference(options);
  inference.add(rows, 0);
  return inference.schema();
}

/** Rows as batches of bounded size. */
export function* rowsToBatches(schema: Schema, rows: readonly Row[], firstRow: number): Generator<RecordBatch> {
  const rowBytes = schema.fields.reduce((sum, field) => sum + fixedRowBytes(field.type), 1);
  const most = Math.max(1, Math.min(MAX_ROWS, Math.floor(MAX_FIXED_BYTES / rowBytes)));
  let size = most;
  for (let start = 0; start < rows.length;) {
    const part = start === 0 && size >= rows.length ? rows : rows.slice(start, start + size);
    try {
      yield buildBatch(schema, part, firstRow + start);
      start += part.length;
    } catch (error) {
      if (!(error instanceof BatchTooLarge)) throw error;
      if (part.length <= 1) {
        throw new LanceError('INVALID_INPUT', `invalid input, row ${firstRow + start} is too large for one batch`);
      }
      size = part.length >> 1;
    }
  }
}

function schemaOf(data: TableData): Schema | undefined {
  if (isArrowTableLike(data) || isRecordBatchLike(data)) return toOurSchema(data.schema);
  return undefined;
}

async function* toBatches(
  schema: Schema,
  first: Piece | undefined,
  rest: AsyncGenerator<Piece, void, undefined>,
): AsyncGenerator<RecordBatch, void, undefined> {
  let row = 0;
  const convert = function* (piece: Piece): Generator<RecordBatch> {
    if (piece.kind === 'batch') {
      row += piece.batch.numRows;
      yield* boundedBatches(piece.batch);
    } else {
      yield* rowsToBatches(schema, piece.rows, row);
      row += piece.rows.length;
    }
  };
  try {
    if (first !== undefined) yield* convert(first);
    for await (const piece of rest) yield* convert(piece);
  } finally {
    await rest.return();
  }
}

function* boundedBatches(batch: RecordBatch): Generator<RecordBatch> {
  if (batch.numRows <= MAX_ROWS) {
    if (batch.numRows > 0) yield batch;
    return;
  }
  for (let start = 0; start < batch.numRows; start += MAX_ROWS) {
    yield batch.slice(start, Math.min(start + MAX_ROWS, batch.numRows));
  }
}

async function* readPieces(data: TableData): AsyncGenerator<Piece, void, undefined> {
  if (isArrowTableLike(data) || isRecordBatchLike(data)) {
    yield* arrowPieces(data);
    return;
  }
  if (Array.isArray(data) && !data.some(isArrowPart)) {
    yield { kind: 'rows', rows: data as readonly Row[] };
    return;
  }
  let gathered: Row[] = [];
  for await (const part of iterate(data)) {
    const isSingle = !Array.isArray(part) && !isArrowPart(part);
    if (isSingle && isRow(part)) {
      gathered.push(part as Row);
      if (gathered.length < GATHERED_ROWS) continue;
    } else if (isSingle) {
      throw new LanceError(
        'INVALID_INPUT',
        'invalid input, a stream of data yields rows, arrays of rows or Arrow data',
      );
    }
    if (gathered.length > 0) {
      yield { kind: 'rows', rows: gathered };
      gathered = [];
    }
    if (Array.isArray(part)) yield { kind: 'rows', rows: part as readonly Row[] };
    else if (isArrowPart(part)) yield* arrowPieces(part);
  }
  if (gathered.length > 0) yield { kind: 'rows', rows: gathered };
}

function iterate(data: unknown): AsyncIterable<unknown> | Iterable<unknown> {
  const isIterable =
    typeof data === 'object' && data !== null && (Symbol.asyncIterator in data || Symbol.iterator in data);
  if (isIterable) return data as AsyncIterable<unknown> | Iterable<unknown>;
  if (isReadableStream(data)) return readAll(data);
  throw new LanceError('INVALID_INPUT', 'invalid input, data must be an array of rows, Arrow data or a stream of them');
}

function isReadableStream(data: unknown): data is ReadableStream<unknown> {
  return typeof data === 'object' && data !== null && typeof (data as ReadableStream).getReader === 'function';
}

/** Some browsers' streams cannot be iterated. */
export async function* readAll<T>(stream: ReadableStream<T>): AsyncGenerator<T, void, undefined> {
  const reader = stream.getReader();
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      isDone = done;
      if (done) return;
      yield value;
    }
  } finally {
    if (!isDone) await reader.cancel();
    reader.releaseLock();
  }
}

const isArrowPart = (part: unknown): part is RecordBatchLike | ArrowTableLike =>
  isRecordBatchLike(part) || isArrowTableLike(part);

function* arrowPieces(data: ArrowTableLike | RecordBatchLike): Generator<Piece> {
  for (const batch of isArrowTableLike(data) ? data.batches : [data]) {
    yield { kind: 'batch', batch: toOurBatch(batch) };
  }
}

/** Bytes, which are Arrow IPC. */
function bytesOf(data: TableData): Uint8Array | undefined {
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const isBuffer = Object.prototype.toString.call(data) === '[object ArrayBuffer]';
  return isBuffer ? new Uint8Array(data as ArrayBuffer) : undefined;
}

async function* inTurn<T>(items: Iterable<T>): AsyncGenerator<T, void, undefined> {
  yield* items;
}

/** A schema that a caller gave, of any `apache-arrow`. */
export function checkSchema(schema: unknown): Schema {
  if (!isSchemaLike(schema)) throw new LanceError('INVALID_INPUT', 'invalid input, schema is not an Arrow schema');
  return toOurSchema(schema as SchemaLike);
}
