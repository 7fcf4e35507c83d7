/** A table: its versions, its rows, what is written to it. */

import type { Schema, Table as ArrowTable } from 'apache-arrow';

import { decodeSchema } from './arrow/ipc';
import { encodedSchema, hasOwnSchema, openPartialSource, openSource, type TableData } from './arrow/source';
import { checkCount, checkData, checkList, checkRowId, checkText, invalid } from './checks';
import { addColumns, alterColumns, dropColumns, type NewColumns, updateFieldMetadata } from './columns';
import { asyncDispose } from './dispose';
import type { Engine, OpenedTable, TableHandle } from './engine/port';
import { LanceError } from './errors';
import { checkRows, checkSpec, setPrimaryKey, type LsmStats, type LsmWriteSpec } from './lsm';
import { MergeInsertBuilder } from './merge';
import { Query, type QuerySource, TakeQuery } from './query';
import { cleanupToWire, previewFromWire, type CleanupOptions, type CleanupPreview } from './retention';
import { Tags } from './tags';
import type {
  AddDataOptions,
  AddResult,
  ColumnAlteration,
  ColumnsResult,
  DeleteResult,
  FieldMetadataUpdate,
  OptimizeStats,
  TableStatistics,
  UpdateOptions,
  UpdateResult,
  UpdateSql,
  UpdateValues,
  Version,
} from './types';
import { lacks, type Rejecting, type Throwing } from './unsupported';
import { encodeUpdate, readUpdate } from './update';
import { ProgressReport, writeAll } from './write';

const REJECTING = [
  'createIndex',
  'createIndexAsync',
  'dropIndex',
  'prewarmIndex',
  'prewarmData',
  'waitForIndex',
  'listIndices',
  'indexStats',
  'tokenize',
  'refreshColumn',
  'refreshColumnAsync',
  'refreshMaterializedView',
  'branches',
  'blobColumns',
  'fetchBlobs',
  'fetchBlobFiles',
  'getEmbeddingFunctions',
  'closeLsmWriters',
  'flushLsm',
  'compactLsm',
  'checkpointLsm',
  'migrateManifestPathsV2',
] as const;
const THROWING = ['search', 'vectorSearch'] as const;

export interface Table extends Rejecting<(typeof REJECTING)[number]>, Throwing<(typeof THROWING)[number]> {}

/** What a table knows of the connection that it came from. */
export interface TableOrigin {
  /** A line for people that tells where the table is. */
  readonly display: string;
  readonly readConsistencyInterval: number | undefined;
  readonly storageOptions: Readonly<Record<string, string>> | undefined;
}

/**
 * A handle on a table: at the latest version it knows, or checked out at an old one.
 *
 * It stays usable when its connection is closed. Errors of every method: `CLOSED` after `close()`, `TABLE_NOT_FOUND` when the table
 * was dropped, `CORRUPT`, `UNAVAILABLE`, `STORAGE`, and `INTERNAL` when the engine stopped.
 */
export class Table {
  readonly name: string;
  /** That of the connection it came from: seconds, or `undefined` when unset. */
  readonly readConsistencyInterval: number | undefined;
  readonly #engine: Engine;
  readonly #handle: TableHandle;
  readonly #origin: TableOrigin;
  #closing: Promise<void> | undefined;

  /** @internal Use a `Connection`. */
  constructor(engine: Engine, opened: OpenedTable, origin: TableOrigin) {
    this.#engine = engine;
    this.#handle = opened.handle;
    this.#origin = origin;
    this.name = opened.name;
    this.readConsistencyInterval = origin.readConsistencyInterval;
  }

  isOpen(): boolean {
    return this.#closing === undefined;
  }

  /** Ends the use of this handle; again is no error. Queries that still run are not disturbed. */
  close(): Promise<void> {
    this.#closing ??= this.#engine.closeTable(this.#handle);
    return this.#closing;
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  /** A line for people. */
  display(): string {
    return this.isOpen() ? this.#origin.display : `ClosedTable(${this.name})`;
  }

  /** The schema of the version that the handle stands on. */
  async schema(): Promise<Schema> {
    return decodeSchema(await this.#engine.schema(this.#open()));
  }

  /** The version that the handle stands on. */
  async version(): Promise<number> {
    return this.#engine.version(this.#open());
  }

  /** All versions, ascending, also while an old one is checked out. */
  async listVersions(): Promise<Version[]> {
    const versions = await this.#engine.versions(this.#open());
    return versions.map(({ version, timestampMs, totals }) => ({
      version,
      timestamp: new Date(timestampMs),
      metadata: Object.fromEntries(Object.entries(totals).map(([name, total]) => [name, String(total)])),
    }));
  }

  /**
   * Pins the handle to a version: it becomes read-only until `checkoutLatest()`.
   *
   * @param version A number, or the name of a tag.
   * @throws `NOT_FOUND` for a version or a tag that is not there: the handle stays where it was.
   */
  async checkout(version: number | string): Promise<void> {
    if (typeof version === 'string') await this.#engine.checkoutTag(this.#open(), version);
    else await this.#engine.checkout(this.#open(), checkCount('version', version));
  }

  /** Moves the handle to the latest version. */
  async checkoutLatest(): Promise<void> {
    await this.#engine.checkoutLatest(this.#open());
  }

  /** Names for versions; see there. */
  async tags(): Promise<Tags> {
    this.#open();
    return new Tags(this.#engine, () => this.#open());
  }

  /**
   * Makes small fragments and fragments with many deleted rows into few whole ones, then removes old versions and files that no version
   * names. Everything is checked before anything is written. Indices are not updated: what was compacted counts as not indexed.
   *
   * @throws `INVALID_INPUT` for a bad date, for one less than 10 minutes ago without `deleteUnverified`, for tags of versions that would
   * go, for a handle that is checked out; `CONTENTION` with `deleteUnverified` while anybody writes; `CONFLICT` when the table is
   * overwritten or restored meanwhile.
   */
  async optimize(options?: CleanupOptions | null): Promise<OptimizeStats> {
    const wire = cleanupToWire(options ?? {});
    return this.#engine.optimize(this.#open(), wire);
  }

  /** The size of the version that the handle stands on, in LanceDB's numbers. */
  async stats(): Promise<TableStatistics> {
    return this.#engine.stats(this.#open());
  }

  /**
   * What a cleanup with these options would remove, and why each version stays that would; writes nothing. `optimize` compacts first,
   * which makes more versions old.
   *
   * @throws What `optimize` throws for these options, `CONTENTION` for a write under way included; tagged versions are no error here.
   */
  async previewCleanup(options?: CleanupOptions | null): Promise<CleanupPreview> {
    const wire = cleanupToWire(options ?? {});
    return previewFromWire(await this.#engine.previewCleanup(this.#open(), wire));
  }

  /**
   * Makes the version that is checked out the newest one, as a new version, and follows the latest again; later versions stay in the
   * history.
   *
   * @throws `INVALID_INPUT` when no version is checked out.
   */
  async restore(): Promise<void> {
    await this.#engine.restore(this.#open());
  }

  /**
   * Adds rows, or puts them in the place of all there are: all of them in one new version, or none. To add no rows makes no version.
   *
   * Rows of an array are taken as they are when this is called. They are converted to the table's schema; columns that they lack become
   * null. Arrow data may lack nullable columns; with mode `'overwrite'` its schema becomes the table's.
   *
   * @throws `SCHEMA` for data that does not fit, naming row and column; `INVALID_INPUT` for a handle that is checked out; `CONFLICT` when
   * the table was overwritten meanwhile; `QUOTA`.
   */
  async add(data: TableData, options?: AddDataOptions | null): Promise<AddResult> {
    const mode: string = options?.mode ?? 'append';
    if (mode !== 'append' && mode !== 'overwrite')
      throw invalid(`Invalid mode: ${mode}, 'append' or 'overwrite' expected`);
    checkData(data);
    const table = this.#open();
    const engine = this.#engine;
    const isOverwrite = mode === 'overwrite';
    if (!isOverwrite && Array.isArray(data) && data.length === 0) return { version: await engine.version(table) };
    const isOwn = isOverwrite && hasOwnSchema(data);
    const source = await openSource(data, { schema: isOwn ? undefined : schemaOf(engine, table) });
    const progress = new ProgressReport(options?.progress, source.rowCount);
    const schemaIpc = isOwn ? encodedSchema(source) : undefined;
    const begin = () => (isOverwrite ? engine.beginOverwrite(table, schemaIpc, undefined) : engine.beginAppend(table));
    const version = await engine.finishAppend(await writeAll(engine, source, begin, progress.add));
    progress.end();
    return { version };
  }

  /**
   * Deletes the rows for which `predicate` is true; `"true"` deletes all. A version is committed also when none matches.
   *
   * @throws `INVALID_INPUT` for a predicate that does not parse, an empty one included.
   */
  async delete(predicate: string): Promise<DeleteResult> {
    const result = await this.#engine.delete(this.#open(), checkText('a predicate', predicate));
    return { numDeletedRows: result.deletedRows, version: result.version };
  }

  /**
   * Adds columns: of computed values, or, given as fields or a schema of any `apache-arrow`, null in every row. A struct among these that
   * has the name of one that there is brings members to it (data format 2.2 and later).
   *
   * @throws `INVALID_INPUT` for fields that take no nulls, types that conflict, expressions that do not parse or fail for a row;
   * `ALREADY_EXISTS`; `SCHEMA` for names that a table cannot have. No version is made then.
   */
  async addColumns(newColumns: NewColumns): Promise<ColumnsResult> {
    return { version: await addColumns(this.#engine, this.#open(), newColumns) };
  }

  /**
   * Renames columns, casts them to another type, lets them take nulls or not. Paths are those of the table as it is. Only casts write data.
   *
   * @throws `NOT_FOUND`; `INVALID_INPUT` for a cast from one family of types to another or of an indexed column, and for nulls in a column
   * that is to take none; `SCHEMA` for a name that is taken, and for a value that does not fit, naming column and row. No version is made
   * then.
   */
  async alterColumns(columnAlterations: readonly ColumnAlteration[]): Promise<ColumnsResult> {
    return { version: await alterColumns(this.#engine, this.#open(), columnAlterations) };
  }

  /**
   * Drops columns; `a.b` is the member `b` of the struct `a`. Versions before still have them, and cleaning these up frees their space.
   *
   * @throws `NOT_FOUND`; `INVALID_INPUT` when no column would be left.
   */
  async dropColumns(columnNames: readonly string[]): Promise<ColumnsResult> {
    return { version: await dropColumns(this.#engine, this.#open(), columnNames) };
  }

  /**
   * Changes the metadata of fields: keys are added to those that there are, or replace them.
   *
   * @throws `NOT_FOUND`; `INVALID_INPUT` for keys that say how stored values are laid out.
   */
  async updateFieldMetadata(updates: readonly FieldMetadataUpdate[]): Promise<ColumnsResult> {
    return { version: await updateFieldMetadata(this.#engine, this.#open(), updates) };
  }

  /**
   * A merge insert by key columns, which `execute(data)` does: matched rows are updated, others inserted or deleted, as the builder's
   * calls say. Without columns: by the table's unenforced primary key.
   */
  mergeInsert(on: string | readonly string[]): MergeInsertBuilder {
    const table = this.#open();
    const engine = this.#engine;
    return new MergeInsertBuilder(
      { engine, handle: () => this.#open(), source: (data) => openPartialSource(data, schemaOf(engine, table)) },
      on,
    );
  }

  /**
   * Gives the rows for which `where` is true new values: given ones (`values`), or SQL expressions over the old row (`valuesSql`; a map or
   * record of columns alone is that, too). A version is committed also when no row matches. All new values are of the old row:
   * `{ a: 'b', b: 'a' }` swaps. What other writers change meanwhile is not lost: the update is made of their rows then.
   *
   * A literal takes its column's type. A number that does not fit, a fraction in a column of whole numbers, text for a number, a vector of
   * another length and null where there is none are errors, and then nothing is changed.
   *
   * @throws `INVALID_INPUT` without columns, for an unknown column (names are exact), for expressions and predicates that do not parse or
   *   fail, as by an overflow, naming the row among those that match; `SCHEMA` for a value that its column does not take.
   */
  async update(
    values: UpdateValues | UpdateSql | ReadonlyMap<string, string> | Readonly<Record<string, string>>,
    options: UpdateOptions = {},
  ): Promise<UpdateResult> {
    const request = readUpdate(values, options);
    const table = this.#open();
    const schema = request.values.size === 0 ? undefined : decodeSchema(await this.#engine.schema(table));
    const result = await this.#engine.update(table, encodeUpdate(request, schema));
    return { rowsUpdated: result.updatedRows, version: result.version };
  }

  /**
   * Makes a column the unenforced primary key: rows are told apart by it, and nobody checks that they can be. It stays for good. Columns of
   * type int32, int64, utf8 and binary that take no nulls can be one; a list has one column.
   *
   * @throws `INVALID_INPUT` for a column that is not there or of another type, and when there is a key; `SCHEMA` for one that takes nulls.
   */
  async setUnenforcedPrimaryKey(columns: string | readonly string[]): Promise<void> {
    await setPrimaryKey(this.#engine, this.#open(), columns);
  }

  /**
   * Sets how the table is written through write-ahead logs. This build has no writer yet: LanceDB's `mergeInsert` goes that way then, here
   * it rejects with `NOT_SUPPORTED` unless `useLsm(false)` is called. Reads see what the logs hold;
   * the table's other writes go on as long as that is nothing that the base table lacks.
   *
   * @throws `INVALID_INPUT` when a spec is set, without an unenforced primary key, and for columns, numbers of buckets and indices that
   * cannot be.
   */
  async setLsmWriteSpec(spec: LsmWriteSpec): Promise<void> {
    await this.#engine.setLsmWriteSpec(this.#open(), checkSpec(spec));
  }

  /**
   * Takes the write spec away, and what is left of its logs.
   *
   * @throws `INVALID_INPUT` when none is set; `NOT_SUPPORTED` while the logs have rows that the base table lacks.
   */
  async unsetLsmWriteSpec(): Promise<void> {
    await this.#engine.unsetLsmWriteSpec(this.#open());
  }

  /** The write spec of the version that the handle stands on; `undefined` when there is none. */
  async getLsmWriteSpec(): Promise<LsmWriteSpec | undefined> {
    return this.#engine.lsmWriteSpec(this.#open());
  }

  /**
   * What the logs and generations of the latest version's write spec hold: measured now, changing nothing. `undefined` only when no spec is
   * set.
   *
   * @param includeGenerationRows Counts the rows of each generation, which opens it.
   */
  async getLsmStats(includeGenerationRows?: boolean): Promise<LsmStats | undefined> {
    const withRows = checkRows(includeGenerationRows);
    return this.#engine.lsmStats(this.#open(), withRows);
  }

  /** The number of rows, or of those for which `filter` is true. */
  async countRows(filter?: string): Promise<number> {
    if (filter !== undefined) checkText('a filter', filter);
    return this.#engine.countRows(this.#open(), filter);
  }

  /** A query of this table; see there. */
  query(): Query {
    this.#open();
    return new Query(this.#source());
  }

  /**
   * The rows at these positions among the rows of the version, from 0; see `TakeQuery`.
   *
   * @throws `INVALID_INPUT` for what is no position.
   */
  takeOffsets(offsets: readonly number[]): TakeQuery {
    this.#open();
    const numbers = checkList('offsets', offsets).map((offset) => BigInt(checkCount('an offset', offset)));
    return new TakeQuery(this.#source(), { offsets: BigUint64Array.from(numbers) });
  }

  /**
   * The rows with these `_rowid`s; see `TakeQuery`.
   *
   * @throws `INVALID_INPUT` for what is no row id.
   */
  takeRowIds(rowIds: readonly (bigint | number)[]): TakeQuery {
    this.#open();
    const numbers = checkList('row ids', rowIds).map(checkRowId);
    return new TakeQuery(this.#source(), { rowIds: BigUint64Array.from(numbers) });
  }

  /** All rows as an Arrow table. */
  async toArrow(): Promise<ArrowTable> {
    return this.query().toArrow();
  }

  /** The branch that the handle is on; `null` is `main`, the only one in this build. */
  currentBranch(): string | null {
    this.#open();
    return null;
  }

  /** The storage options that the table was opened with, or those of its connection; `null` where there are none. */
  async initialStorageOptions(): Promise<Record<string, string> | null> {
    this.#open();
    const { storageOptions } = this.#origin;
    return storageOptions === undefined ? null : { ...storageOptions };
  }

  /** As `initialStorageOptions`: nothing changes them. */
  async latestStorageOptions(): Promise<Record<string, string> | null> {
    return this.initialStorageOptions();
  }

  /** Whether the names of manifests sort from the newest to the oldest: those of every table that is made here. */
  async usesV2ManifestPaths(): Promise<boolean> {
    return this.#engine.usesV2ManifestPaths(this.#open());
  }

  #source(): QuerySource {
    return { engine: this.#engine, handle: () => this.#open() };
  }

  #open(): TableHandle {
    if (!this.isOpen()) throw new LanceError('CLOSED', `Table ${this.name} is closed`);
    return this.#handle;
  }
}

lacks(Table, 'Table', REJECTING, THROWING);

function schemaOf(engine: Engine, table: TableHandle): Promise<Schema> {
  const schema = engine.schema(table).then(decodeSchema);
  // Whoever waits for it hears of it, unless the rows are refused before.
  schema.catch(() => undefined);
  return schema;
}
