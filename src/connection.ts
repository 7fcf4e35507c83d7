/** Connections: where tables are made, found, listed and dropped. */

import { checkSchema, encodedSchema, openSource, type Source, type TableData } from './arrow/source';
import type { SchemaLike } from './arrow/foreign';
import {
  checkCount,
  checkData,
  checkDataFormat,
  checkManifestPaths,
  checkStableRowIds,
  checkText,
  invalid,
  notSupported,
} from './checks';
import { asyncDispose } from './dispose';
import { openEngine } from './engine/open';
import type { Consistency, CreateMode, DataFormat, Engine, OpenedTable } from './engine/port';
import { LanceError, type ErrorCode } from './errors';
import { maintained } from './maintenance';
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
  RenameTableOptions,
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
  if (uri === undefined || uri === null || uri === '')
    throw invalid('uri is required, such as memory://, indexeddb://name, opfs://name or, in Node, a path');
  checkText('uri', uri);
  if (uri.startsWith('db://')) throw notSupported('LanceDB Cloud (db://)');
  toConsistency(options.readConsistencyInterval);
  checkDataFormat(options);
  checkManifestPaths(options);
  checkStableRowIds(options);
  const { maintenance = 'off' } = options;
  if (maintenance !== 'auto' && maintenance !== 'off') {
    throw invalid(`maintenance is 'auto' or 'off', found ${String(maintenance)}`);
  }
  const place = uri === 'memory://' ? `${uri}${randomName()}` : uri;
  const engine = await openEngine(place);
  return new Connection(maintenance === 'auto' ? maintained(engine) : engine, uri, options);
}

function randomName(): string {
  return [...crypto.getRandomValues(new Uint32Array(4))].map((word) => word.toString(16)).join('-');
}

const REJECTING = [
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
  /** Seconds, as given to `connect`; `undefined` when unset. */
  readonly readConsistencyInterval: number | undefined;
  readonly #engine: Engine;
  readonly #consistency: Consistency;
  readonly #storageOptions: Readonly<Record<string, string>> | undefined;
  #closing: Promise<void> | undefined;

  /** @internal Use `connect`. */
  constructor(engine: Engine, uri: string, options: ConnectionOptions = {}) {
    this.#engine = engine;
    this.uri = uri;
    this.readConsistencyInterval = options.readConsistencyInterval ?? undefined;
    this.#consistency = toConsistency(options.readConsistencyInterval);
    this.#storageOptions = options.storageOptions ?? undefined;
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
    this.#open();
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
  listTables(options?: ListTablesOptions): Promise<ListTablesResponse>;
  listTables(namespace?: readonly string[], options?: ListTablesOptions): Promise<ListTablesResponse>;
  async listTables(
    first?: readonly string[] | ListTablesOptions,
    second: ListTablesOptions = {},
  ): Promise<ListTablesResponse> {
    checkNamespace(first);
    const { pageToken, limit } = isNamespace(first) ? second : (first ?? second);
    if (limit !== undefined && limit !== null) checkCount('limit', limit);
    const names = await this.tableNames({ startAfter: pageToken });
    const tables = names.slice(0, limit ?? undefined);
    const last = tables.at(-1);
    return tables.length < names.length && last !== undefined ? { tables, pageToken: last } : { tables };
  }

  /**
   * Makes a table of data: with all rows, or not at all. Rows of an array are taken as they are when this is called.
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
    checkCreateOptions(options);
    checkData(data);
    this.#open();
    checkText('the name of a table', name);
    const schema = options.schema === undefined || options.schema === null ? undefined : checkSchema(options.schema);
    return this.#make(name, options, await openSource(data, { schema }));
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
    checkCreateOptions(options);
    this.#open();
    checkText('the name of a table', name);
    return this.#make(name, options, await openSource([], { schema: checkSchema(schema) }));
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
    const { version, branch, storageOptions } = isNamespace(second) ? third : (second ?? third);
    if (branch !== undefined && branch !== 'main') throw notSupported('branches');
    if (version !== undefined) checkCount('version', version);
    const opened = await this.#open().openTable(checkText('the name of a table', name), this.#consistency);
    const table = this.#table(opened, storageOptions);
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

  /**
   * Gives a table another name. Handles on it stay with it, under the name that they were opened by.
   *
   * @throws `TABLE_NOT_FOUND`; `TABLE_EXISTS` for the new name; `INVALID_INPUT` for a bad one.
   */
  async renameTable(currentName: string, newName: string, options: RenameTableOptions = {}): Promise<void> {
    checkNamespace(options.namespacePath);
    checkNamespace(options.newNamespacePath);
    const from = checkText('the name of a table', currentName);
    await this.#open().renameTable(from, checkText('the new name of a table', newName));
  }

  /** Removes every table that is there when it is called. */
  async dropAllTables(namespace?: readonly string[]): Promise<void> {
    for (const name of await this.tableNames(namespace ?? [])) {
      try {
        await this.dropTable(name);
      } catch (error) {
        // Somebody else dropped it meanwhile.
        if (!isCode(error, 'TABLE_NOT_FOUND')) throw error;
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

  /** Makes the table, opens the one that is there, or gives it a new version: as the options say. */
  async #make(name: string, options: CreateTableOptions, source: Source): Promise<Table> {
    const { mode = 'create', storageOptions } = options;
    const existOk = mode === 'create' && options.existOk === true;
    const own = { storageOptions: this.#storageOptions };
    const format = checkDataFormat(options) ?? checkDataFormat(own);
    const hasRowIds = checkStableRowIds(options) ?? checkStableRowIds(own) ?? false;
    try {
      const schema = await this.#schemaOf(source, options.primaryKey);
      const existing = existOk ? await this.#findSame(name, schema) : undefined;
      const opened = existing ?? (await this.#create(name, source, schema, format, mode, existOk, hasRowIds));
      return this.#table(opened, storageOptions);
    } finally {
      await source.batches.return();
    }
  }

  /** The schema of a table made of a source. */
  async #schemaOf(source: Source, primaryKey: string | undefined): Promise<Uint8Array> {
    const schema = schemaBytes(source);
    if (primaryKey === undefined || primaryKey === null) return schema;
    return this.#open().keyedSchema(schema, checkText('primaryKey', primaryKey));
  }

  async #create(
    name: string,
    source: Source,
    schema: Uint8Array,
    format: DataFormat | undefined,
    mode: CreateMode,
    existOk: boolean,
    hasRowIds: boolean,
  ): Promise<OpenedTable> {
    const engine = this.#open();
    const begin = () => engine.beginCreate(name, schema.slice(), format, mode, hasRowIds);
    try {
      const handle = await writeAll(engine, source, begin);
      return await engine.finishCreate(handle, this.#consistency);
    } catch (error) {
      // Somebody else made it meanwhile.
      const found = existOk && isCode(error, 'TABLE_EXISTS') ? await this.#findSame(name, schema) : undefined;
      if (found === undefined) throw error;
      return found;
    }
  }

  /** The table of that name, whose columns must be those of the source. */
  async #findSame(name: string, schema: Uint8Array): Promise<OpenedTable | undefined> {
    const found = await this.#find(name);
    if (found === undefined) return undefined;
    try {
      await this.#engine.expectSchema(found.handle, schema.slice());
      return found;
    } catch (error) {
      await this.#engine.closeTable(found.handle).catch(() => undefined);
      throw error;
    }
  }

  async #find(name: string): Promise<OpenedTable | undefined> {
    try {
      return await this.#open().openTable(name, this.#consistency);
    } catch (error) {
      if (isCode(error, 'TABLE_NOT_FOUND')) return undefined;
      throw error;
    }
  }

  #table(opened: OpenedTable, storageOptions?: Readonly<Record<string, string>>): Table {
    const { readConsistencyInterval } = this;
    const uri = `${this.uri.replace(/\/$/, '')}/${opened.name}.lance`;
    const interval = intervalText(readConsistencyInterval);
    return new Table(this.#engine, opened, {
      display: `NativeTable(${opened.name}, uri=${uri}, read_consistency_interval=${interval})`,
      readConsistencyInterval,
      storageOptions: storageOptions ?? this.#storageOptions,
    });
  }

  #open(): Engine {
    if (!this.isOpen()) throw new LanceError('CLOSED', 'Connection is closed');
    return this.#engine;
  }
}

lacks(Connection, 'Connection', REJECTING, []);

/** New bytes, since whoever gets them may transfer them. */
const schemaBytes = (source: Source): Uint8Array => encodedSchema(source).slice();

/** @internal */
export function toConsistency(interval: number | undefined | null): Consistency {
  if (interval === undefined || interval === null) return { kind: 'lazy' };
  if (typeof interval !== 'number' || !Number.isFinite(interval) || interval < 0) {
    throw invalid(`readConsistencyInterval must be a number of seconds of at least 0, found ${String(interval)}`);
  }
  return interval === 0 ? { kind: 'strong' } : { kind: 'eventual', ms: Math.ceil(interval * 1000) };
}

const intervalText = (seconds: number | undefined): string => (seconds === undefined ? 'None' : `${seconds}s`);

const isCode = (error: unknown, code: ErrorCode): boolean => error instanceof LanceError && error.code === code;

const isNamespace = (value: unknown): value is readonly string[] => Array.isArray(value);

function checkNamespace(value: unknown): void {
  if (isNamespace(value) && value.length > 0) throw notSupported('namespaces');
}

function checkCreateOptions(options: CreateTableOptions): void {
  const mode: string = options.mode ?? 'create';
  if (mode !== 'create' && mode !== 'overwrite')
    throw invalid(`Invalid mode ${mode}: 'create' or 'overwrite' expected`);
  if ('embeddingFunction' in options && options.embeddingFunction !== undefined)
    throw notSupported('embedding functions');
  checkDataFormat(options);
  checkManifestPaths(options);
}
