/** Connections: where tables are made, found, listed and dropped. */

import { encodeSchema } from './arrow/ipc';
import { checkSchema, openSource, type Source, type TableData } from './arrow/source';
import type { SchemaLike } from './arrow/foreign';
import { checkCount, checkDataFormat, checkText, invalid, notSupported } from './checks';
import { asyncDispose } from './dispose';
import { openEngine } from './engine/open';
import type { Consistency, DataFormat, Engine, OpenedTable } from './engine/port';
import { LanceError } from './errors';
import { Table } from './table';
import { exportFiles, importFiles } from './transfer';
import type {
  ConnectionOptions,
  CreateTableOptions,
  ExportedFile,
  ImportedFiles,
  ListTablesOptions,
  ListTablesResponse,
  OpenTableOptions,
  TableNamesOptions,
} from './types';
import { lacks, type Rejecting } from './unsupported';
import { writeAll } from './write';

/**
 * Opens a database.
 *
 * | URI | where the tables are |
 * |---|---|
 * | `opfs://name` | the origin's private file system, manifests in IndexedDB |
 * | `indexeddb://name` | IndexedDB |
 * | `memory://name` | memory, for as long as the page or process lives; in a window it is that of the page's worker |
 * | `memory://` | as before, for this connection alone |
 * | a path | a folder (Node) |
 *
 * In a window the engine runs in a worker that all connections of the page share; in a worker or in Node it runs where it is called.
 *
 * @throws `INVALID_INPUT` for a URI or an option that cannot be; `NOT_SUPPORTED` for LanceDB Cloud; `UNAVAILABLE` when the storage or
 * the engine cannot be reached.
 */
export function connect(uri: string, options?: ConnectionOptions): Promise<Connection>;
export function connect(options: ConnectionOptions & { readonly uri: string }): Promise<Connection>;
export async function connect(
  first: string | (ConnectionOptions & { readonly uri?: string }),
  second: ConnectionOptions = {},
): Promise<Connection> {
  const { uri, ...options } = typeof first === 'object' && first !== null ? first : { uri: first, ...second };
  if (uri === undefined || uri === null || uri === '') throw invalid('uri is required');
  checkText('uri', uri);
  if (uri.startsWith('db://')) throw notSupported('LanceDB Cloud (db://)');
  const interval = options.readConsistencyInterval;
  const consistency = toConsistency(interval);
  const format = checkDataFormat(options) ?? STABLE;
  const place = uri === 'memory://' ? `${uri}${randomName()}` : uri;
  return new Connection(await openEngine(place), uri, interval, consistency, format);
}

/** The version of the data files of new tables. */
const STABLE: DataFormat = '2.2';

function randomName(): string {
  return [...crypto.getRandomValues(new Uint32Array(4))].map((word) => word.toString(16)).join('-');
}

const REJECTING = [
  'renameTable',
  'cloneTable',
  'dropTableAsync',
  'createMaterializedView',
  'openMaterializedView',
  'listMaterializedViews',
  'createNamespace',
  'listNamespaces',
  'describeNamespace',
  'dropNamespace',
  'openJob',
  'listJobs',
  'cancelJob',
] as const;

export interface Connection extends Rejecting<(typeof REJECTING)[number]> {}

/**
 * A database of tables.
 *
 * Errors of every method: `CLOSED` after `close()`, `UNAVAILABLE`, `STORAGE`, and `INTERNAL` when the engine stopped: then connect anew.
 */
export class Connection {
  readonly uri: string;
  /** Seconds, as given to `connect`; `null` when unset. */
  readonly readConsistencyInterval: number | null;
  readonly #engine: Engine;
  readonly #consistency: Consistency;
  readonly #format: DataFormat;
  #closing: Promise<void> | undefined;

  /** @internal Use `connect`. */
  constructor(
    engine: Engine,
    uri: string,
    interval: number | undefined,
    consistency: Consistency,
    format: DataFormat = STABLE,
  ) {
    this.#engine = engine;
    this.uri = uri;
    this.readConsistencyInterval = interval ?? null;
    this.#consistency = consistency;
    this.#format = format;
  }

  isOpen(): boolean {
    return this.#closing === undefined;
  }

  /** Ends the use of this connection; again is no error. Its tables stay usable until each is closed. */
  close(): Promise<void> {
    this.#closing ??= this.#engine.close();
    return this.#closing;
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  /** A line for people. */
  display(): string {
    return `ListingDatabase(uri=${this.uri}, read_consistency_interval=${intervalText(this.readConsistencyInterval)})`;
  }

  /** Names of the tables in byte order. */
  tableNames(options?: TableNamesOptions): Promise<string[]>;
  tableNames(namespace?: readonly string[], options?: TableNamesOptions): Promise<string[]>;
  async tableNames(first?: readonly string[] | TableNamesOptions, second: TableNamesOptions = {}): Promise<string[]> {
    const options = isNamespace(first) ? second : (first ?? second);
    checkNamespace(first);
    const { startAfter, limit } = options;
    if (limit !== undefined && limit !== null) checkCount('limit', limit);
    const names = await this.#open().tableNames();
    // Names are ASCII: code units compare as bytes do.
    const rest = startAfter === undefined || startAfter === null ? names : names.filter((name) => name > startAfter);
    return rest.slice(0, limit ?? undefined);
  }

  /** As `tableNames`, by pages. */
  async listTables(namespace?: readonly string[], options: ListTablesOptions = {}): Promise<ListTablesResponse> {
    const { pageToken, limit } = options;
    if (limit !== undefined) checkCount('limit', limit, 1);
    const names = await this.tableNames(namespace ?? [], { startAfter: pageToken });
    const tables = names.slice(0, limit);
    const last = tables.at(-1);
    return tables.length < names.length && last !== undefined ? { tables, pageToken: last } : { tables };
  }

  /**
   * Makes a table of data: with all rows, or not at all.
   *
   * @throws `TABLE_EXISTS`; `INVALID_INPUT` for a bad name, and for no rows without a schema; `SCHEMA` for rows that do not fit the
   * schema or have none in common; `QUOTA`.
   */
  createTable(name: string, data: TableData, options?: CreateTableOptions): Promise<Table>;
  createTable(
    name: string,
    data: TableData,
    namespace?: readonly string[],
    options?: CreateTableOptions,
  ): Promise<Table>;
  createTable(
    options: CreateTableOptions & { readonly name: string; readonly data: TableData },
    namespace?: readonly string[],
  ): Promise<Table>;
  async createTable(
    first: string | (CreateTableOptions & { readonly name: string; readonly data: TableData }),
    second?: TableData | readonly string[],
    third?: CreateTableOptions | readonly string[],
    fourth?: CreateTableOptions,
  ): Promise<Table> {
    const isObject = typeof first === 'object' && first !== null;
    checkNamespace(isObject ? second : third);
    const given = isNamespace(third) ? fourth : (third as CreateTableOptions | undefined);
    const { name, data, ...options } = isObject
      ? first
      : { name: first, data: second as TableData, ...(given ?? fourth) };
    const format = checkCreateOptions(options) ?? this.#format;
    if (data === undefined || data === null) throw invalid('data is required');
    const engine = this.#open();
    checkText('the name of a table', name);
    const schema = options.schema === undefined ? undefined : checkSchema(options.schema);
    return this.#create(engine, name, format, await openSource(data, { schema }));
  }

  /** Makes a table without rows; errors as `createTable`. */
  createEmptyTable(name: string, schema: SchemaLike, options?: CreateTableOptions): Promise<Table>;
  createEmptyTable(
    name: string,
    schema: SchemaLike,
    namespace?: readonly string[],
    options?: CreateTableOptions,
  ): Promise<Table>;
  async createEmptyTable(
    name: string,
    schema: SchemaLike,
    third?: CreateTableOptions | readonly string[],
    fourth?: CreateTableOptions,
  ): Promise<Table> {
    checkNamespace(third);
    const options = (isNamespace(third) ? fourth : (third as CreateTableOptions | undefined)) ?? fourth ?? {};
    const format = checkCreateOptions(options) ?? this.#format;
    const engine = this.#open();
    return this.#create(
      engine,
      checkText('the name of a table', name),
      format,
      await openSource([], { schema: checkSchema(schema) }),
    );
  }

  /**
   * Opens a table at its latest version, or pinned to `version`.
   *
   * @throws `TABLE_NOT_FOUND`; `NOT_FOUND` for the version; `NOT_SUPPORTED` for a table that uses what this build does not read.
   */
  openTable(name: string, options?: OpenTableOptions): Promise<Table>;
  openTable(name: string, namespace?: readonly string[], options?: OpenTableOptions): Promise<Table>;
  async openTable(
    name: string,
    second?: readonly string[] | OpenTableOptions,
    third: OpenTableOptions = {},
  ): Promise<Table> {
    checkNamespace(second);
    const { version, branch } = isNamespace(second) ? third : (second ?? third);
    if (branch !== undefined && branch !== 'main') throw notSupported('branches');
    if (version !== undefined) checkCount('version', version);
    const table = this.#table(await this.#open().openTable(checkText('the name of a table', name), this.#consistency));
    if (version === undefined) return table;
    try {
      await table.checkout(version);
    } catch (error) {
      await table.close();
      throw error;
    }
    return table;
  }

  /**
   * Removes a table. Handles on it cannot write any more; what they have read, they may still answer.
   *
   * @throws `TABLE_NOT_FOUND`
   */
  async dropTable(name: string, namespace?: readonly string[]): Promise<void> {
    checkNamespace(namespace);
    await this.#open().dropTable(checkText('the name of a table', name));
  }

  /** Removes every table that is there when it is called. */
  async dropAllTables(namespace?: readonly string[]): Promise<void> {
    for (const name of await this.tableNames(namespace ?? [])) {
      try {
        await this.dropTable(name);
      } catch (error) {
        // Somebody else dropped it meanwhile.
        if (!(error instanceof LanceError) || error.code !== 'TABLE_NOT_FOUND') throw error;
      }
    }
  }

  /**
   * A table's files, to be kept elsewhere as the Lance table that they are: copied into a folder `name.lance`, LanceDB opens them.
   * Manifests come last. Each file is read as it is pulled; pull it before the next one.
   *
   * @throws `TABLE_NOT_FOUND` at the first file.
   */
  exportTable(name: string): AsyncGenerator<ExportedFile, void, undefined> {
    return exportFiles(this.#open(), checkText('the name of a table', name));
  }

  /**
   * Makes a table of the files of one, as `exportTable` yields them or a folder holds them: with all its versions, or not at all.
   *
   * @throws `TABLE_EXISTS`; `INVALID_INPUT` for a bad name or path; `CORRUPT` when the newest version does not open or names a file
   * that is not there; `NOT_SUPPORTED` for what this build does not read; `QUOTA`.
   */
  async importTable(name: string, files: ImportedFiles): Promise<Table> {
    const engine = this.#open();
    return this.#table(await importFiles(engine, checkText('the name of a table', name), files, this.#consistency));
  }

  async #create(engine: Engine, name: string, format: DataFormat, source: Source): Promise<Table> {
    let handle;
    const { schema } = source;
    try {
      const schemaIpc = schema instanceof Uint8Array ? schema : encodeSchema(schema);
      handle = await engine.beginCreate(name, schemaIpc, format);
    } catch (error) {
      await source.batches.return();
      throw error;
    }
    await writeAll(engine, handle, source);
    return this.#table(await engine.finishCreate(handle, this.#consistency));
  }

  #table(opened: OpenedTable): Table {
    const interval = intervalText(this.readConsistencyInterval);
    const uri = `${this.uri.replace(/\/$/, '')}/${opened.name}.lance`;
    return new Table(
      this.#engine,
      opened,
      `NativeTable(${opened.name}, uri=${uri}, read_consistency_interval=${interval})`,
    );
  }

  #open(): Engine {
    if (!this.isOpen()) throw new LanceError('CLOSED', 'Connection is closed');
    return this.#engine;
  }
}

lacks(Connection, 'Connection', REJECTING, []);

/** @internal */
export function toConsistency(interval: number | undefined | null): Consistency {
  if (interval === undefined || interval === null) return { kind: 'lazy' };
  if (typeof interval !== 'number' || !Number.isFinite(interval) || interval < 0) {
    throw invalid(`readConsistencyInterval must be a number of seconds of at least 0, found ${String(interval)}`);
  }
  return interval === 0 ? { kind: 'strong' } : { kind: 'eventual', ms: Math.ceil(interval * 1000) };
}

const intervalText = (seconds: number | null): string => (seconds === null ? 'None' : `${seconds}s`);

const isNamespace = (value: unknown): value is readonly string[] => Array.isArray(value);

function checkNamespace(value: unknown): void {
  if (isNamespace(value) && value.length > 0) throw notSupported('namespaces');
}

/** The version of the data files that the options ask for. */
function checkCreateOptions({ mode, existOk, ...rest }: CreateTableOptions): DataFormat | undefined {
  const name: string = mode ?? 'create';
  if (name !== 'create' && name !== 'overwrite') throw invalid(`Invalid mode ${name}`);
  if (name === 'overwrite') throw notSupported('createTable with mode "overwrite"');
  if (existOk === true) throw notSupported('createTable with existOk');
  if ('embeddingFunction' in rest && rest.embeddingFunction !== undefined) throw notSupported('embedding functions');
  return checkDataFormat(rest);
}
