/** Options and results of the public API; units are in the names or in the text. */

import type { SchemaLike } from './arrow/foreign';
import type { TableData } from './arrow/source';

export interface ConnectionOptions {
  /**
   * Seconds after which a table handle looks for versions that others committed. 0: on every read. Unset: only with `checkoutLatest()`
   * or an own write. Writes always commit on the latest version. Default: unset.
   */
  readonly readConsistencyInterval?: number | undefined;
  /** For every new table; see `CreateTableOptions`, whose own go before these. */
  readonly storageOptions?: Readonly<Record<string, string>> | undefined;
  /**
   * `'auto'`: tables that are written to through this connection are compacted and cleaned up once it is worth while, in idle time, with
   * the retention of seven days or what the table's own config says; see the README for when. Default: `'off'`.
   */
  readonly maintenance?: 'auto' | 'off' | undefined;
}

export interface TableNamesOptions {
  /** Only names greater than this one, by bytes. */
  readonly startAfter?: string | undefined;
  /** At most this many names. Default: all. */
  readonly limit?: number | undefined;
}

export interface ListTablesOptions {
  /** `pageToken` of the answer before. */
  readonly pageToken?: string | undefined;
  /** At most this many names. Default: all. */
  readonly limit?: number | undefined;
}

export interface ListTablesResponse {
  readonly tables: string[];
  /** Where the next page begins; absent on the last one. */
  readonly pageToken?: string;
}

export interface CreateTableOptions {
  /**
   * `'create'` fails with `TABLE_EXISTS` when the name is taken. `'overwrite'` gives a table that is there a new version with this data
   * and its schema: what it had stays in its history, also when others made the table meanwhile. Default: `'create'`.
   */
  readonly mode?: 'create' | 'overwrite' | undefined;
  /**
   * With mode `'create'`: a table that is there is opened, and the data is not written; `SCHEMA` when its columns are others. Default:
   * false.
   */
  readonly existOk?: boolean | undefined;
  /**
   * Makes a column the unenforced primary key, see `Table.setUnenforcedPrimaryKey`: it takes no nulls then, whatever the schema says.
   * Default: what the schema says.
   */
  readonly primaryKey?: string | undefined;
  /** The table's schema, of any version of `apache-arrow`. Default: that of Arrow data, or inferred from the rows. */
  readonly schema?: SchemaLike | undefined;
  /**
   * Keys in camel case or in snake case, values as text. Default: those of the connection.
   *
   * `newTableDataStorageVersion`: the version of the table's data files, which it keeps to: `'2.0'`, `'2.1'`, `'2.2'` or `'stable'`,
   * which is `'2.2'`. `newTableEnableV2ManifestPaths`: only `'true'`. `newTableEnableStableRowIds`: with `'true'` a row keeps its
   * `_rowid` when it is updated or moved, and `_row_created_at_version` and `_row_last_updated_at_version` tell its versions; a table
   * stays as it was made. Other keys are taken for LanceDB's sake, without effect.
   */
  readonly storageOptions?: Readonly<Record<string, string>> | undefined;
  /** As `storageOptions.newTableDataStorageVersion`, which it overrides. Deprecated by LanceDB. */
  readonly dataStorageVersion?: string | undefined;
  /** As `storageOptions.newTableEnableV2ManifestPaths`. Deprecated by LanceDB. */
  readonly enableV2ManifestPaths?: boolean | undefined;
}

export interface OpenTableOptions {
  /** Pins the handle to this version, read-only. Default: the latest. */
  readonly version?: number | undefined;
  /** Only `'main'` in this build. */
  readonly branch?: string | undefined;
  /** Taken for LanceDB's sake, without effect. */
  readonly storageOptions?: Readonly<Record<string, string>> | undefined;
}

export interface RenameTableOptions {
  /** Only the root in this build. */
  readonly namespacePath?: readonly string[] | undefined;
  /** Only the root in this build. */
  readonly newNamespacePath?: readonly string[] | undefined;
}

export interface AddDataOptions {
  /** `'overwrite'` puts the data in the place of all that the table has; what it had stays in its history. Default: `'append'`. */
  readonly mode?: 'append' | 'overwrite' | undefined;
  /** Told of every batch that was written, and once when all is committed. What it throws is logged and changes nothing. */
  readonly progress?: ((progress: WriteProgress) => void) | undefined;
}

export interface WriteProgress {
  /** Rows written so far. */
  readonly outputRows: number;
  /** Bytes of Arrow data written so far. */
  readonly outputBytes: number;
  /** All rows there will be, where that is known; always at the end. */
  readonly totalRows?: number;
  /** Since the write began. */
  readonly elapsedSeconds: number;
  readonly activeTasks: number;
  readonly totalTasks: number;
  /** Whether this is the last time. */
  readonly done: boolean;
}

export interface AddResult {
  /** The version that holds the rows. */
  readonly version: number;
}

export interface MergeExecutionOptions {
  /** Milliseconds after which the merge fails with `TIMEOUT`, unless its commit has begun. Default: none. */
  readonly timeoutMs?: number | undefined;
}

export interface MergeResult {
  /** The version that has the changes. */
  readonly version: number;
  readonly numInsertedRows: number;
  readonly numUpdatedRows: number;
  readonly numDeletedRows: number;
  /** How often it was executed: more than once when others changed the same rows, or added rows, meanwhile. */
  readonly numAttempts: number;
  /** Rows that were written: inserted and updated ones. */
  readonly numRows: number;
}

export interface DeleteResult {
  readonly numDeletedRows: number;
  readonly version: number;
}

/** A new column of computed values. */
export interface AddColumnsSql {
  readonly name: string;
  /** An SQL expression over the columns that there are; its type is the column's. */
  readonly valueSql: string;
}

/** How a column is to be altered: with at least one of `rename`, `dataType` and `nullable`. */
export interface ColumnAlteration {
  /** `a.b.c` is the column `c` in the struct `b` in the struct `a`. */
  readonly path: string;
  /** Another name in the same place. */
  readonly rename?: string | undefined;
  /**
   * Another type of the same family: integers, floats, text, binary, dates and times, decimals, lists of these. A type of any
   * `apache-arrow`, or its name in Lance: `'int64'`, `'float'`, `'timestamp:us:-'`. Every value has to fit; only floats lose digits.
   */
  readonly dataType?: string | object | undefined;
  /** Whether the column takes nulls. `false` needs a column without any. */
  readonly nullable?: boolean | undefined;
}

export interface FieldMetadataUpdate {
  /** `a.b.c` is the field `c` in the struct `b` in the struct `a`. */
  readonly path: string;
  /** `null` takes a key away. */
  readonly metadata: Readonly<Record<string, string | null | undefined>>;
  /** Whether all other keys go. Default: false. */
  readonly replace?: boolean | undefined;
}

/** What a change of columns gives. */
export interface ColumnsResult {
  /** The version that has the change. */
  readonly version: number;
}

export interface UpdateOptions {
  /** The rows that get new values. Default: all. */
  readonly where?: string | undefined;
}

export interface UpdateValues extends UpdateOptions {
  /**
   * New values by column, as a row of `add` has them: numbers, bigints, strings, booleans, null, Dates, bytes, typed arrays, arrays and
   * objects.
   */
  readonly values: ReadonlyMap<string, unknown> | Readonly<Record<string, unknown>>;
}

export interface UpdateSql extends UpdateOptions {
  /** SQL expressions of the new values by column, over the old row: `{ n: 'n + 1' }`. */
  readonly valuesSql: ReadonlyMap<string, string> | Readonly<Record<string, string>>;
}

export interface UpdateResult {
  readonly rowsUpdated: number;
  readonly version: number;
}

/** A version as `listVersions` shows it. */
export interface Version {
  readonly version: number;
  readonly timestamp: Date;
  /** Totals as text: `total_rows`, `total_fragments`, `total_data_files`, `total_files_size` in bytes, and others. */
  readonly metadata: Record<string, string>;
}

export interface QueryExecutionOptions {
  /** At most this many rows in a batch. Default: as many as make about 4 MB, 65,536 at most. */
  readonly maxBatchLength?: number | undefined;
  /** Milliseconds after which the query fails with `TIMEOUT`. Default: none. */
  readonly timeoutMs?: number | undefined;
  /** Ends the query with `ABORTED`. */
  readonly signal?: AbortSignal | undefined;
}

export interface ToArrayOptions extends QueryExecutionOptions {
  /**
   * Rows as plain objects, lists as arrays, structs as objects. By default rows are Arrow's `StructRow` proxies and lists `Vector`s,
   * as in LanceDB. In both forms 64-bit integers are bigint, dates and timestamps numbers of milliseconds.
   */
  readonly plainObjects?: boolean | undefined;
}

/** What `optimize` did. */
export interface OptimizeStats {
  readonly compaction: CompactionStats;
  readonly prune: RemovalStats;
}

export interface CompactionStats {
  readonly fragmentsRemoved: number;
  readonly fragmentsAdded: number;
  /** Data files and deletion files of the fragments that were removed; they stay for older versions until a cleanup takes those. */
  readonly filesRemoved: number;
  readonly filesAdded: number;
}

export interface RemovalStats {
  /** Of all files that are gone, manifests included. */
  readonly bytesRemoved: number;
  readonly oldVersionsRemoved: number;
}

/** The size of one version of a table. */
export interface TableStatistics {
  /** Data files, those of dropped columns included, and index files. */
  readonly totalBytes: number;
  readonly numRows: number;
  readonly numIndices: number;
  readonly fragmentStats: FragmentStatistics;
}

export interface FragmentStatistics {
  readonly numFragments: number;
  /** Fragments with fewer than 100,000 rows. */
  readonly numSmallFragments: number;
  /** Rows of fragments, deleted ones included. */
  readonly lengths: FragmentSummaryStats;
}

export interface FragmentSummaryStats {
  readonly min: number;
  readonly max: number;
  /** Rounded down. */
  readonly mean: number;
  readonly p25: number;
  readonly p50: number;
  readonly p75: number;
  readonly p99: number;
}

/** A file of a table, as `exportTable` yields it. */
export interface ExportedFile {
  /** Relative to the table's folder, `/`-separated. */
  readonly path: string;
  /** In bytes. */
  readonly size: number;
  /** The content, read as it is pulled, until the iteration ends. */
  readonly stream: ReadableStream<Uint8Array>;
}

/** A file of a table, as `importTable` takes it: with one of `stream`, `bytes` and `blob`. */
export interface ImportedFile {
  /** Relative to the table's folder, `/`-separated. */
  readonly path: string;
  readonly stream?: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | undefined;
  readonly bytes?: Uint8Array | undefined;
  readonly blob?: Blob | undefined;
}

export type ImportedFiles = Iterable<ImportedFile> | AsyncIterable<ImportedFile>;

export type { TableData };
