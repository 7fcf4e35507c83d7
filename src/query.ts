/** Queries: a builder, and the stream of batches that it opens. */

import * as arrow from 'apache-arrow';
import type { RecordBatch, Schema, Table as ArrowTable } from 'apache-arrow';

import { decodeBatches, decodeSchema } from './arrow/ipc';
import { plainRows } from './arrow/plain';
import { checkCount, checkFlag, checkText, invalid } from './checks';
import { asyncDispose } from './dispose';
import type { Engine, OpenedScan, TableHandle, WireScanOptions } from './engine/port';
import { LanceError } from './errors';
import type { QueryExecutionOptions, ToArrayOptions } from './types';
import { lacks, type Rejecting, type Throwing } from './unsupported';

/** What a query needs of its table. */
export interface QuerySource {
  readonly engine: Engine;
  /** @throws `CLOSED` */
  handle(): TableHandle;
}

/** A column of the result: one of the table, or an expression over the row. */
interface Output {
  readonly name: string;
  readonly source: string;
  readonly isExpression: boolean;
}

const REJECTING = ['explainPlan', 'analyzePlan'] as const;
const QUERY_THROWING = ['nearestTo', 'nearestToText', 'fullTextSearch', 'orderBy', 'fastSearch'] as const;

export interface QueryBase extends Rejecting<(typeof REJECTING)[number]> {}

/** What all queries have: the columns of the result, and the ways to get it. */
export abstract class QueryBase implements AsyncIterable<RecordBatch> {
  readonly #source: QuerySource;
  #outputs: readonly Output[] | undefined;
  #withRowId = false;
  #useLsm: boolean | undefined;

  /** @internal */
  constructor(source: QuerySource) {
    this.#source = source;
  }

  /** @internal Which rows. */
  protected abstract rows(): WireScanOptions;

  /**
   * The columns of the result, in this order; `a.b` is a member of a struct, and a column of that name in the result. A map or an
   * object gives new names, to columns or to SQL expressions over the row: `{ half: 'price / 2' }`.
   *
   * @throws `INVALID_INPUT` for a name that is selected twice. What an expression says is checked when the query runs.
   */
  select(columns: string | readonly string[] | ReadonlyMap<string, string> | Readonly<Record<string, string>>): this {
    this.#outputs = toOutputs(columns);
    return this;
  }

  /** Adds a last column `_rowid`, uint64. */
  withRowId(): this {
    this.#withRowId = true;
    return this;
  }

  /**
   * `false` leaves out the rows that are in the write-ahead log and not in the base table; without it they belong to the result, of each
   * key the newest. `true` asks for a table with a write spec, at its latest version.
   */
  useLsm(useLsm: boolean): this {
    this.#useLsm = checkFlag('useLsm', useLsm);
    return this;
  }

  /** The schema of the result. */
  async outputSchema(): Promise<Schema> {
    const stream = await this.execute();
    await stream.return();
    return stream.schema;
  }

  /** Starts the query. The stream keeps its version alive until it ends or is closed. */
  execute(options?: QueryExecutionOptions | null): Promise<BatchStream> {
    const { maxBatchLength, ...limits } = options ?? {};
    const scan = {
      ...this.rows(),
      ...wireColumns(this.#outputs),
      ...(maxBatchLength === undefined ? {} : { batchRows: checkCount('maxBatchLength', maxBatchLength, 1) }),
      ...(this.#withRowId ? { withRowId: true } : {}),
      ...(this.#useLsm === undefined ? {} : { useLsm: this.#useLsm }),
    };
    return BatchStream.open(this.#source, scan, this.#outputs, limits);
  }

  /** The whole result as an Arrow table. */
  async toArrow(options?: QueryExecutionOptions | null): Promise<ArrowTable> {
    const stream = await this.execute(options);
    const batches: RecordBatch[] = [];
    for await (const batch of stream) batches.push(batch);
    return new arrow.Table(stream.schema, batches);
  }

  /** The whole result as rows. */
  async toArray(options?: ToArrayOptions | null): Promise<ResultRow[]> {
    const { plainObjects, ...execution } = options ?? {};
    const table = await this.toArrow(execution);
    return plainObjects === true ? plainRows(table) : (table.toArray() as ResultRow[]);
  }

  /** Batches as they are read. Leaving the loop early closes the stream. */
  async *[Symbol.asyncIterator](): AsyncGenerator<RecordBatch, void, undefined> {
    yield* await this.execute();
  }
}

lacks(QueryBase, 'Query', REJECTING, []);

export interface Query extends Throwing<(typeof QUERY_THROWING)[number]> {}

/**
 * A query of a table: rows in the table's order.
 *
 * Nothing runs before `toArrow`, `toArray`, `execute` or the iteration; each of them runs the query anew.
 */
export class Query extends QueryBase {
  readonly #filters: string[] = [];
  #limit: number | undefined;
  #offset: number | undefined;

  /**
   * Keeps rows for which a filter is true. Several filters must all be true.
   *
   * @throws `INVALID_INPUT` for a filter that could not stand in parentheses. What it says is checked when the query runs.
   */
  where(predicate: string): this {
    checkBalanced(checkText('a filter', predicate));
    this.#filters.push(predicate);
    return this;
  }

  /** As `where`. */
  filter(predicate: string): this {
    return this.where(predicate);
  }

  /** At most this many rows, after the filter and the offset. Default: all. */
  limit(rows: number): this {
    this.#limit = checkCount('limit', rows);
    return this;
  }

  /** Leaves out this many rows that match. Default: 0. */
  offset(rows: number): this {
    this.#offset = checkCount('offset', rows);
    return this;
  }

  /** @internal */
  protected rows(): WireScanOptions {
    const [only, ...more] = this.#filters;
    const filter = more.length === 0 ? only : this.#filters.map((text) => `(${text})`).join(' AND ');
    return {
      ...(filter === undefined ? {} : { filter }),
      ...(this.#limit === undefined ? {} : { limit: this.#limit }),
      ...(this.#offset === undefined ? {} : { offset: this.#offset }),
    };
  }
}

lacks(Query, 'Query', [], QUERY_THROWING);

/**
 * Given rows of a table, in the table's order. A row comes as often as its position was given, and once if its row id was; what names no
 * row is passed over.
 *
 * Only those rows are read.
 */
export class TakeQuery extends QueryBase {
  readonly #rows: WireScanOptions;

  /** @internal Use `Table.takeOffsets()` and `Table.takeRowIds()`. */
  constructor(source: QuerySource, rows: Pick<WireScanOptions, 'offsets' | 'rowIds'>) {
    super(source);
    this.#rows = rows;
  }

  /** @internal */
  protected rows(): WireScanOptions {
    return this.#rows;
  }
}

/** A row of a result: columns by name. */
export type ResultRow = { [column: string]: any } & { toJSON?(): Record<string, unknown> };

type Limits = Omit<QueryExecutionOptions, 'maxBatchLength'>;

/** The batches of a running query. */
export class BatchStream implements AsyncIterableIterator<RecordBatch, void, undefined> {
  readonly schema: Schema;
  readonly #engine: Engine;
  readonly #scan: OpenedScan;
  readonly #pick: readonly number[] | undefined;
  readonly #deadline: Deadline;
  #waiting: RecordBatch[] = [];
  #isOver = false;
  #tail: Promise<unknown> = Promise.resolve();

  /** @internal */
  static async open(
    source: QuerySource,
    options: WireScanOptions,
    outputs: readonly Output[] | undefined,
    limits: Limits,
  ): Promise<BatchStream> {
    const deadline = new Deadline(limits);
    const opening = source.engine.scan(source.handle(), options);
    try {
      const scan = await deadline.within(opening);
      return new BatchStream(source.engine, scan, outputs, options, deadline);
    } catch (error) {
      deadline.end();
      // Opened too late for anybody: nothing else would close it.
      opening
        .then(
          (scan) => source.engine.closeScan(scan.handle),
          () => undefined,
        )
        .catch(() => undefined);
      throw error;
    }
  }

  private constructor(
    engine: Engine,
    scan: OpenedScan,
    outputs: readonly Output[] | undefined,
    options: WireScanOptions,
    deadline: Deadline,
  ) {
    this.#engine = engine;
    this.#scan = scan;
    this.#deadline = deadline;
    const schema = decodeSchema(scan.schemaIpc);
    const isPlain =
      outputs === undefined || outputs.every(({ name, source, isExpression }) => name === source && !isExpression);
    if (isPlain) {
      this.schema = schema;
      this.#pick = undefined;
      return;
    }
    const { columns = [], expressions = [] } = options;
    const pick = outputs.map(({ source, isExpression }) =>
      isExpression ? columns.length + expressions.indexOf(source) : columns.indexOf(source),
    );
    const fields = outputs.map(({ name }, i) => schema.fields[pick[i] ?? 0]?.clone({ name }) as arrow.Field);
    // A row id comes behind the columns that were asked for.
    for (let i = columns.length + expressions.length; i < schema.fields.length; i++) {
      pick.push(i);
      fields.push(schema.fields[i] as arrow.Field);
    }
    this.schema = new arrow.Schema(fields, schema.metadata);
    this.#pick = pick;
  }

  /** The next batch; calls that overlap are answered in order. */
  next(): Promise<IteratorResult<RecordBatch, void>> {
    const result = this.#tail.then(() => this.#next());
    this.#tail = result.catch(() => undefined);
    return result;
  }

  /** Closes the stream. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    await this.#close();
    return { done: true, value: undefined };
  }

  /** Closes the stream and fails with `error`. */
  async throw(error: unknown): Promise<IteratorReturnResult<undefined>> {
    await this.#close();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [asyncDispose](): Promise<void> {
    await this.#close();
  }

  async #next(): Promise<IteratorResult<RecordBatch, void>> {
    while (!this.#isOver) {
      const batch = this.#waiting.shift();
      if (batch !== undefined) return { done: false, value: this.#project(batch) };
      try {
        const ipc = await this.#deadline.within(this.#engine.nextBatches(this.#scan.handle));
        if (ipc === undefined) await this.#close();
        else this.#waiting = decodeBatches(ipc);
      } catch (error) {
        // The first error is the one to report.
        await this.#close().catch(() => undefined);
        throw error;
      }
    }
    return { done: true, value: undefined };
  }

  async #close(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#waiting = [];
    this.#deadline.end();
    await this.#engine.closeScan(this.#scan.handle);
  }

  #project(batch: RecordBatch): RecordBatch {
    if (this.#pick === undefined) return batch;
    const children = this.#pick.map((i) => batch.data.children[i] as arrow.Data);
    const type = new arrow.Struct(this.schema.fields);
    const data = arrow.makeData({ type, length: batch.numRows, nullCount: 0, children });
    return new arrow.RecordBatch(this.schema, data);
  }
}

/** The caller's patience: a time and a signal. */
class Deadline {
  readonly #signal: AbortSignal | undefined;
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #over: Promise<never> | undefined;
  #abort: (() => void) | undefined;

  constructor({ timeoutMs, signal }: Limits) {
    this.#signal = signal;
    if (timeoutMs === undefined && signal === undefined) return;
    if (timeoutMs !== undefined) checkCount('timeoutMs', timeoutMs);
    if (signal?.aborted === true) throw aborted();
    let reject: (error: LanceError) => void = () => undefined;
    this.#over = new Promise<never>((_, refuse) => (reject = refuse));
    this.#over.catch(() => undefined);
    if (timeoutMs !== undefined) {
      const fail = (): void => reject(new LanceError('TIMEOUT', `Query timeout after ${timeoutMs} ms`));
      // No work is done in no time.
      if (timeoutMs === 0) fail();
      else this.#timer = setTimeout(fail, timeoutMs);
    }
    if (signal !== undefined) {
      this.#abort = () => reject(aborted());
      signal.addEventListener('abort', this.#abort, { once: true });
    }
  }

  within<T>(work: Promise<T>): Promise<T> {
    return this.#over === undefined ? work : Promise.race([this.#over, work]);
  }

  end(): void {
    clearTimeout(this.#timer);
    if (this.#abort !== undefined) this.#signal?.removeEventListener('abort', this.#abort);
  }
}

function aborted(): LanceError {
  return new LanceError('ABORTED', 'the operation was aborted');
}

/** A column, or a member of a struct. */
const COLUMN = /^(?:[\p{L}_][\p{L}\p{N}_]*|`[^`]+`)(?:\.(?:[\p{L}_][\p{L}\p{N}_]*|`[^`]+`))*$/u;
const LITERALS = new Set(['true', 'false', 'null']);

function toOutputs(columns: unknown): readonly Output[] {
  const named = (name: string): Output => ({ name, source: name, isExpression: false });
  if (typeof columns === 'string') return [named(columns)];
  if (Array.isArray(columns)) return unique(columns.map((column) => named(checkText('a column', column))));
  if (typeof columns !== 'object' || columns === null)
    throw invalid(`select takes a column, an array or a map of columns, found ${String(columns)}`);
  const entries: Iterable<[string, unknown]> =
    Object.prototype.toString.call(columns) === '[object Map]'
      ? (columns as Map<string, unknown>)
      : Object.entries(columns);
  const outputs = [...entries].map(([name, expression]) => {
    const text = checkText(`the expression of "${name}"`, expression).trim();
    const isExpression = !COLUMN.test(text) || LITERALS.has(text.toLowerCase());
    return { name, source: isExpression ? text : text.replaceAll('`', ''), isExpression };
  });
  return unique(outputs);
}

function wireColumns(outputs: readonly Output[] | undefined): WireScanOptions {
  if (outputs === undefined) return {};
  const sources = (ofExpressions: boolean): string[] => [
    ...new Set(outputs.filter(({ isExpression }) => isExpression === ofExpressions).map(({ source }) => source)),
  ];
  const expressions = sources(true);
  return { columns: sources(false), ...(expressions.length === 0 ? {} : { expressions }) };
}

function unique(outputs: readonly Output[]): readonly Output[] {
  const seen = new Set<string>();
  for (const { name } of outputs) {
    if (seen.has(name)) throw invalid(`Duplicate column name: ${name}`);
    seen.add(name);
  }
  return outputs;
}

/** Text whose parentheses would close those around it could change what other filters mean. */
function checkBalanced(text: string): void {
  let depth = 0;
  for (let i = 0; i < text.length && depth >= 0; i++) {
    const char = text.charAt(i);
    if (char === "'" || char === '"' || char === '`') {
      const end = text.indexOf(char, i + 1);
      if (end < 0) throw invalid(`the filter ${text} has a quote that does not end`);
      i = end;
    } else if (char === '(') depth += 1;
    else if (char === ')') depth -= 1;
  }
  if (depth !== 0) throw invalid(`the filter ${text} has parentheses that do not match`);
}
