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
import { copyRows } from './copy';
import { encodeSchema } from './ipc';
import { SchemaInference, type InferOptions } from './infer';
import { splitIpc } from './ipc-bytes';
import { presentColumns } from './present';
import { Scannable } from './scannable';

/** What a stream of data may yield: a row, an array of rows, or Arrow data. */
export type DataPart = Row | readonly Row[] | RecordBatchLike | ArrowTableLike;

/**
 * Data to be written: an array of rows; an Arrow table, record batch or reader of any version of `apache-arrow`; Arrow IPC bytes
 * (stream or file); a `Scannable`; or an iterable of rows, arrays of rows or batches, which is read as it is written.
 */
export type TableData =
  | readonly Row[]
  | ArrowTableLike
  | RecordBatchLike
  | Uint8Array
  | ArrayBuffer
  | Scannable
  | Iterable<DataPart>
  | AsyncIterable<DataPart>;

export interface SourceOptions extends InferOptions {
  /** The schema that rows are converted to; a promise is waited for after the rows were taken. Without one it is inferred. */
  readonly schema?: Schema | Promise<Schema> | undefined;
}

/** Data being read once. Bytes are Arrow IPC as it was given: a stream or a file, with the schema or with one batch. */
export interface Source {
  readonly schema: Schema | Uint8Array;
  /** Returning early closes what the data came from. Of an array of rows they lack the columns that no row has. */
  readonly batches: AsyncGenerator<RecordBatch | Uint8Array, void, undefined>;
  /** How many rows there will be, where that is known. */
  readonly rowCount: number | undefined;
}

const MAX_ROWS = 65_536;
const MAX_FIXED_BYTES = 32 * 1024 * 1024;
/** Single rows of a stream are gathered into arrays of this many. */
const GATHERED_ROWS = 8_192;

type Piece =
  /** `isAll`: these are all rows of the data. */
  | { readonly kind: 'rows'; readonly rows: readonly Row[]; readonly isAll: boolean }
  | { readonly kind: 'batch'; readonly batch: RecordBatch };

/**
 * Looks at the beginning of the data, as far as its schema needs. An array of rows is looked at whole: a later row may decide a type.
 *
 * Rows of an array are copied before this returns its promise: what the caller does to them afterwards changes nothing.
 *
 * @throws `INVALID_INPUT` for data that is nothing of the above, or empty without a schema; `SCHEMA` for rows that have no common one.
 */
export async function openSource(given: TableData, options: SourceOptions = {}): Promise<Source> {
  const data = isRowArray(given) ? copyRows(given) : given;
  const rowCount = countRows(data);
  const expected = await options.schema;
  const bytes = bytesOf(data);
  if (bytes !== undefined) {
    const { schema, batches } = splitIpc(bytes);
    return { schema: expected ?? schema, batches: inTurn(batches), rowCount };
  }
  const declared = expected ?? schemaOf(data);
  const pieces = readPieces(data);
  if (declared !== undefined) return { schema: declared, batches: toBatches(declared, undefined, pieces), rowCount };
  let first: IteratorResult<Piece, void>;
  // An array of no rows says nothing about columns.
  do first = await pieces.next();
  while (first.done !== true && first.value.kind === 'rows' && first.value.rows.length === 0);
  if (first.done === true) {
    throw new LanceError('INVALID_INPUT', 'At least one record or a schema needs to be provided');
  }
  try {
    const schema = first.value.kind === 'batch' ? first.value.batch.schema : inferSchema(first.value.rows, options);
    return { schema, batches: toBatches(schema, first.value, pieces), rowCount };
  } catch (error) {
    await pieces.return();
    throw error;
  }
}

/**
 * As `openSource`, for rows that need not have every column of the schema, nullable or not: columns that no row has are left out. For
 * that, rows of a stream are read whole.
 */
export async function openPartialSource(given: TableData, schema: Promise<Schema>): Promise<Source> {
  const data = isRowArray(given) ? copyRows(given) : given;
  const whole = await schema;
  if (isRowArray(data)) return openSource(data, { schema: presentColumns(whole, data) });
  if (hasOwnSchema(data)) return openSource(data, { schema: whole });
  const parts: DataPart[] = [];
  for await (const part of iterate(data)) parts.push(...((Array.isArray(part) ? part : [part]) as DataPart[]));
  return isRowArray(parts)
    ? openSource(parts, { schema: presentColumns(whole, parts) })
    : openSource(parts, { schema: whole });
}

/** The schema of a source as an IPC stream without batches. */
export function encodedSchema({ schema }: Source): Uint8Array {
  return schema instanceof Uint8Array ? schema : encodeSchema(schema);
}

/** Whether the columns of the data are those of a schema of its own, which rows have not. */
export function hasOwnSchema(data: TableData): boolean {
  return bytesOf(data) !== undefined || schemaOf(data) !== undefined;
}

/** The schema of rows, by LanceDB's rules. */
export function inferSchema(rows: readonly Row[], options: InferOptions = {}): Schema {
  const inference = new SchemaInference(options);
  inference.add(rows, 0);
  return inference.schema();
}

/** Rows as batches of bounded size, of those columns of the schema that `columns` has. */
export function* rowsToBatches(
  schema: Schema,
  rows: readonly Row[],
  firstRow: number,
  columns = schema,
): Generator<RecordBatch> {
  const rowBytes = schema.fields.reduce((sum, field) => sum + fixedRowBytes(field.type), 1);
  const most = Math.max(1, Math.min(MAX_ROWS, Math.floor(MAX_FIXED_BYTES / rowBytes)));
  let size = most;
  for (let start = 0; start < rows.length;) {
    const part = start === 0 && size >= rows.length ? rows : rows.slice(start, start + size);
    try {
      yield buildBatch(schema, part, firstRow + start, columns);
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
  return data instanceof Scannable ? data.schema : undefined;
}

function countRows(data: TableData): number | undefined {
  if (isRowArray(data)) return data.length;
  if (isArrowTableLike(data)) return data.batches.reduce((sum, { numRows }) => sum + numRows, 0);
  if (isRecordBatchLike(data)) return data.numRows;
  return data instanceof Scannable ? (data.numRows ?? undefined) : undefined;
}

/**
 * The schema of the batches that rows become: without the columns that no row has.
 *
 * @throws `SCHEMA` when one of them may not be null.
 */
function columnsOf(schema: Schema, rows: readonly Row[]): Schema {
  const columns = presentColumns(schema, rows);
  if (columns === schema) return schema;
  const missing = schema.fields.filter((field) => !field.nullable && !columns.fields.includes(field));
  const [first] = missing;
  if (first !== undefined) {
    const names = missing.map(({ name }) => name).join(', ');
    const message = `Append with different schema: fields did not match, missing=[${names}], unexpected=[]`;
    throw new LanceError('SCHEMA', message, { column: first.name });
  }
  // A batch without columns has no rows to some readers.
  return columns.fields.length > 0 ? columns : schema;
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
      const columns = piece.isAll ? columnsOf(schema, piece.rows) : schema;
      yield* rowsToBatches(schema, piece.rows, row, columns);
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
  if (isRowArray(data)) {
    if (data.length > 0) yield { kind: 'rows', rows: data, isAll: true };
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
      yield { kind: 'rows', rows: gathered, isAll: false };
      gathered = [];
    }
    if (Array.isArray(part)) yield { kind: 'rows', rows: part as readonly Row[], isAll: false };
    else if (isArrowPart(part)) yield* arrowPieces(part);
  }
  if (gathered.length > 0) yield { kind: 'rows', rows: gathered, isAll: false };
}

function iterate(data: unknown): AsyncIterable<unknown> | Iterable<unknown> {
  if (data instanceof Scannable) return data.batches();
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

/** An array of rows; one that holds Arrow data, or other arrays, is a stream of parts. */
function isRowArray(data: unknown): data is readonly Row[] {
  return Array.isArray(data) && !data.some((part) => Array.isArray(part) || isArrowPart(part));
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
