/** Data that comes batch by batch, with its schema known before: so that it is written without being held whole. */

import type { RecordBatch, Schema } from 'apache-arrow';

import { LanceError } from '../errors';
import {
  isRecordBatchLike,
  isSchemaLike,
  toOurBatch,
  toOurSchema,
  type ArrowTableLike,
  type RecordBatchLike,
  type SchemaLike,
} from './foreign';

export interface ScannableOptions {
  /** The number of rows, for progress; not checked. Default: unknown. */
  readonly numRows?: number | undefined;
  /** Whether the data can be read more than once. Default: true of a factory and a table, false of an iterable and a reader. */
  readonly rescannable?: boolean | undefined;
}

type Batches = Iterable<RecordBatchLike> | AsyncIterable<RecordBatchLike>;
type BatchIterator = Iterator<RecordBatchLike> | AsyncIterator<RecordBatchLike>;

/** A reader of any `apache-arrow`, opened. */
export type ReaderLike = Batches & {
  readonly schema: SchemaLike;
};

/** A source of record batches for `add`, `createTable` and `mergeInsert`. */
export class Scannable {
  readonly schema: Schema;
  readonly numRows: number | null;
  readonly rescannable: boolean;
  readonly #factory: () => Batches | BatchIterator;
  #isRead = false;

  private constructor(schema: SchemaLike, factory: () => Batches | BatchIterator, options: ScannableOptions) {
    const { numRows = null, rescannable = true } = options;
    if (numRows !== null && !Number.isInteger(numRows)) throw new TypeError('numRows must be an integer');
    if (!isSchemaLike(schema)) throw new LanceError('INVALID_INPUT', 'invalid input, schema is not an Arrow schema');
    this.schema = toOurSchema(schema);
    this.numRows = numRows;
    this.rescannable = rescannable;
    this.#factory = factory;
  }

  /** Of a function that is called for each reading and gives the batches. */
  static async fromFactory(
    schema: SchemaLike,
    factory: () => Batches | BatchIterator,
    options: ScannableOptions = {},
  ): Promise<Scannable> {
    return new Scannable(schema, factory, options);
  }

  /**
   * Of a table in memory.
   *
   * @throws `TypeError` for options that say something else than the table does.
   */
  static async fromTable(table: ArrowTableLike, options: ScannableOptions = {}): Promise<Scannable> {
    const rows = table.batches.reduce((sum, batch) => sum + batch.numRows, 0);
    if (options.numRows !== undefined && options.numRows !== null && options.numRows !== rows) {
      throw new TypeError(`opts.numRows (${options.numRows}) does not match table.numRows (${rows})`);
    }
    if (options.rescannable === false) {
      throw new TypeError('fromTable does not accept rescannable: false: a table in memory can be read again');
    }
    return new Scannable(table.schema, () => table.batches, { numRows: rows });
  }

  /**
   * Of an iterable of batches; `rescannable: true` for one that begins anew each time.
   *
   * @throws `TypeError` for `rescannable: true` of an iterable that is read once, such as a generator.
   */
  static async fromIterable(schema: SchemaLike, batches: Batches, options: ScannableOptions = {}): Promise<Scannable> {
    if (options.rescannable === true && isReadOnce(batches)) {
      throw new TypeError('fromIterable: rescannable: true is not honest for one-shot iterables: use fromFactory');
    }
    return new Scannable(schema, () => batches, { ...options, rescannable: options.rescannable ?? false });
  }

  /**
   * Of an opened reader, which is read once.
   *
   * @throws `TypeError` for `rescannable: true`.
   */
  static async fromRecordBatchReader(reader: ReaderLike, options: ScannableOptions = {}): Promise<Scannable> {
    if (options.rescannable === true) {
      throw new TypeError('fromRecordBatchReader does not accept rescannable: true: use fromFactory');
    }
    return new Scannable(reader.schema, () => reader, { ...options, rescannable: false });
  }

  /**
   * The batches, from the first on.
   *
   * @throws `INVALID_INPUT` when they were read before and come only once.
   * @internal
   */
  async *batches(): AsyncGenerator<RecordBatch, void, undefined> {
    if (this.#isRead && !this.rescannable) {
      throw new LanceError('INVALID_INPUT', 'invalid input, this Scannable was read before and is not rescannable');
    }
    this.#isRead = true;
    for await (const batch of iterableOf(this.#factory())) {
      if (!isRecordBatchLike(batch)) {
        throw new LanceError('INVALID_INPUT', 'invalid input, a Scannable yields record batches');
      }
      yield toOurBatch(batch);
    }
  }
}

function iterableOf(source: unknown): Iterable<unknown> | AsyncIterable<unknown> {
  if (typeof source !== 'object' || source === null) {
    throw new TypeError('Scannable factory returned a non-iterable value');
  }
  if (Symbol.asyncIterator in source || Symbol.iterator in source) return source as Iterable<unknown>;
  if ('next' in source && typeof source.next === 'function') {
    return { [Symbol.asyncIterator]: () => source as AsyncIterator<unknown> };
  }
  throw new TypeError('Scannable factory returned a non-iterable value');
}

/** Whether the iterable is its own iterator. */
function isReadOnce(source: unknown): boolean {
  if (typeof source !== 'object' || source === null) return false;
  const each = source as { [Symbol.asyncIterator]?: () => unknown; [Symbol.iterator]?: () => unknown };
  const begin = each[Symbol.asyncIterator] ?? each[Symbol.iterator];
  return begin === undefined ? 'next' in source : begin.call(source) === source;
}
