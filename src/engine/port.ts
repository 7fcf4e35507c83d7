import type { ErrorCode } from '../errors';

/**
 * The calls that the facade needs of an engine, whether it runs on this thread or behind a worker.
 *
 * Handles are numbers that the engine gave. Arrow data crosses as IPC stream bytes; a stream's first message carries its schema.
 * Bytes that are given to it are the engine's: they may be transferred to another thread. Calls on one handle of a write, a scan, an
 * export or an import are answered in order. Errors are `LanceError`s.
 */
export interface Engine {
  tableNames(): Promise<string[]>;
  /**
   * Starts a table, or a new version of one that is there; the answer takes batches with `write`, and becomes a table with
   * `finishCreate`. Without a format: the table's own, or the newest that is stable.
   */
  beginCreate(
    name: string,
    schemaIpc: Uint8Array,
    format: DataFormat | undefined,
    mode: CreateMode,
    hasStableRowIds: boolean,
  ): Promise<WriteHandle>;
  /** An IPC stream's schema, with a column as the unenforced primary key, which takes no nulls. */
  keyedSchema(schemaIpc: Uint8Array, column: string): Promise<Uint8Array>;
  finishCreate(handle: WriteHandle, consistency: Consistency): Promise<OpenedTable>;
  openTable(name: string, consistency: Consistency): Promise<OpenedTable>;
  dropTable(name: string): Promise<void>;
  renameTable(from: string, to: string): Promise<void>;

  beginExport(name: string): Promise<OpenedExport>;
  readExport(handle: ExportHandle, path: string, offset: number, length: number): Promise<Uint8Array>;
  endExport(handle: ExportHandle): Promise<void>;
  beginImport(name: string): Promise<ImportHandle>;
  importFile(handle: ImportHandle, path: string): Promise<void>;
  importBytes(handle: ImportHandle, bytes: Uint8Array): Promise<void>;
  finishImport(handle: ImportHandle, consistency: Consistency): Promise<OpenedTable>;
  abortImport(handle: ImportHandle): Promise<void>;

  /** The schema as an IPC stream without batches. */
  schema(table: TableHandle): Promise<Uint8Array>;
  /** Rejects with `SCHEMA` when the table's columns are not those of an IPC stream's schema. */
  expectSchema(table: TableHandle, schemaIpc: Uint8Array): Promise<void>;
  usesV2ManifestPaths(table: TableHandle): Promise<boolean>;
  version(table: TableHandle): Promise<number>;
  versions(table: TableHandle): Promise<WireVersion[]>;
  checkout(table: TableHandle, version: number): Promise<void>;
  checkoutLatest(table: TableHandle): Promise<void>;
  tags(table: TableHandle): Promise<WireTag[]>;
  tagVersion(table: TableHandle, tag: string): Promise<number>;
  createTag(table: TableHandle, tag: string, version: number): Promise<void>;
  updateTag(table: TableHandle, tag: string, version: number): Promise<void>;
  deleteTag(table: TableHandle, tag: string): Promise<void>;
  checkoutTag(table: TableHandle, tag: string): Promise<void>;
  previewCleanup(table: TableHandle, options: WireCleanupOptions): Promise<WireCleanupPreview>;
  /** The new version. */
  restore(table: TableHandle): Promise<number>;
  /** Compacts, then cleans up. */
  optimize(table: TableHandle, options: WireCleanupOptions): Promise<WireOptimizeStats>;
  stats(table: TableHandle): Promise<WireTableStats>;
  /** Does what the engine thinks is due; whether anything was. */
  maintain(table: TableHandle): Promise<boolean>;
  countRows(table: TableHandle, filter: string | undefined): Promise<number>;
  delete(table: TableHandle, predicate: string): Promise<WireDeleteResult>;
  /** Columns of an IPC stream's schema, null in every row. Each of these answers with the version that has the change. */
  addNullColumns(table: TableHandle, schemaIpc: Uint8Array): Promise<number>;
  addComputedColumns(table: TableHandle, columns: readonly WireComputedColumn[]): Promise<number>;
  alterColumns(table: TableHandle, alterations: readonly WireAlteration[]): Promise<number>;
  dropColumns(table: TableHandle, paths: readonly string[]): Promise<number>;
  updateFieldMetadata(table: TableHandle, updates: readonly WireFieldMetadata[]): Promise<number>;
  update(table: TableHandle, update: WireUpdate): Promise<WireUpdateResult>;
  /** This and the next but one answer with the version that has the change. */
  setUnenforcedPrimaryKey(table: TableHandle, column: string): Promise<number>;
  lsmWriteSpec(table: TableHandle): Promise<WireWriteSpec | undefined>;
  setLsmWriteSpec(table: TableHandle, spec: WireWriteSpec): Promise<number>;
  unsetLsmWriteSpec(table: TableHandle): Promise<number>;
  lsmStats(table: TableHandle, withRows: boolean): Promise<WireLsmStats | undefined>;
  closeTable(table: TableHandle): Promise<void>;

  beginAppend(table: TableHandle): Promise<WriteHandle>;
  /** Ends with `finishAppend`. Without a schema and a format: the table's own. */
  beginOverwrite(
    table: TableHandle,
    schemaIpc: Uint8Array | undefined,
    format: DataFormat | undefined,
  ): Promise<WriteHandle>;
  /** Bytes of an IPC stream, or of a file whose footer holds the schema: any number of batches. Answers how many rows they hold. */
  write(handle: WriteHandle, ipc: Uint8Array): Promise<number>;
  finishAppend(handle: WriteHandle): Promise<number>;
  /** Ends with `finishMerge`. */
  beginMerge(table: TableHandle, options: WireMergeOptions): Promise<WriteHandle>;
  finishMerge(handle: WriteHandle): Promise<WireMergeResult>;
  abortWrite(handle: WriteHandle): Promise<void>;

  scan(table: TableHandle, options: WireScanOptions): Promise<OpenedScan>;
  /** The next batches as an IPC stream of their own, or `undefined` at the end. */
  nextBatches(scan: ScanHandle): Promise<Uint8Array | undefined>;
  closeScan(scan: ScanHandle): Promise<void>;

  /** Ends this connection's use of the engine. Tables opened through it stay usable until each is closed. */
  close(): Promise<void>;
}

export type CreateMode = 'create' | 'overwrite';

/** The version of the data files of a table. */
export type DataFormat = '2.0' | '2.1' | '2.2';

export type TableHandle = number;
export type WriteHandle = number;
export type ScanHandle = number;
export type ExportHandle = number;
export type ImportHandle = number;

/** How soon a handle sees others' commits: never by itself, on every read, or after so many milliseconds. */
export type Consistency =
  { readonly kind: 'lazy' } | { readonly kind: 'strong' } | { readonly kind: 'eventual'; readonly ms: number };

export interface OpenedTable {
  readonly handle: TableHandle;
  readonly name: string;
}

export interface OpenedScan {
  readonly handle: ScanHandle;
  readonly schemaIpc: Uint8Array;
}

export interface OpenedExport {
  readonly handle: ExportHandle;
  readonly entries: readonly { readonly path: string; readonly sizeBytes: number }[];
}

export interface WireVersion {
  readonly version: number;
  readonly timestampMs: number;
  readonly totals: Readonly<Record<string, number>>;
}

export interface WireTag {
  readonly name: string;
  readonly version: number;
  readonly manifestSize: number;
}

export interface WireCleanupOptions {
  /** May be negative. */
  readonly olderThanMs?: number;
  readonly deleteUnverified?: boolean;
  readonly errorIfTagged?: boolean;
}

export interface WireCleanupPreview {
  readonly kept: readonly {
    readonly version: number;
    readonly timestampMs: number;
    readonly reasons: readonly WireKeepReason[];
  }[];
  readonly removed: readonly { readonly version: number; readonly timestampMs: number }[];
  /** Manifests included. */
  readonly files: readonly { readonly path: string; readonly sizeBytes: number }[];
}

/** `name` is that of a tag or branch, or the kind of a lease. */
export interface WireKeepReason {
  readonly kind: 'latest' | 'age' | 'tag' | 'branch' | 'lease';
  readonly name: string;
}

export interface WireOptimizeStats {
  readonly compaction: {
    readonly fragmentsRemoved: number;
    readonly fragmentsAdded: number;
    readonly filesRemoved: number;
    readonly filesAdded: number;
  };
  readonly prune: { readonly bytesRemoved: number; readonly oldVersionsRemoved: number };
}

export interface WireTableStats {
  readonly totalBytes: number;
  readonly numRows: number;
  readonly numIndices: number;
  readonly fragmentStats: {
    readonly numFragments: number;
    readonly numSmallFragments: number;
    readonly lengths: Readonly<Record<'min' | 'max' | 'mean' | 'p25' | 'p50' | 'p75' | 'p99', number>>;
  };
}

export interface WireDeleteResult {
  readonly deletedRows: number;
  readonly version: number;
}

export interface WireComputedColumn {
  readonly name: string;
  readonly valueSql: string;
}

export interface WireAlteration {
  readonly path: string;
  readonly rename?: string;
  readonly nullable?: boolean;
  /** The type's name in manifests, or the schema of an IPC stream with one field of the type. */
  readonly dataType?: string;
  readonly dataTypeIpc?: Uint8Array;
}

export interface WireFieldMetadata {
  readonly path: string;
  /** `null` takes a key away. */
  readonly metadata: Readonly<Record<string, string | null>>;
  readonly replace?: boolean;
}

export interface WireWriteSpec {
  readonly specType: 'bucket' | 'identity' | 'unsharded';
  readonly column?: string;
  readonly numBuckets?: number;
  readonly maintainedIndexes?: readonly string[];
  readonly writerConfigDefaults?: Readonly<Record<string, string>>;
}

export interface WireLsmStats {
  readonly buckets: readonly {
    readonly shardId: string;
    readonly status: 'Active' | 'Sealed';
    readonly writerEpoch: number;
    readonly manifestVersion: number;
    readonly currentGeneration: number;
    readonly replayAfterWalEntryPosition: number;
    readonly walEntryPositionLastSeen: number;
    readonly generations: readonly { readonly generation: number; readonly bytes?: number; readonly rows?: number }[];
    readonly compacting: boolean;
  }[];
}

/** Conditions are SQL; `true` is none. */
export interface WireMergeOptions {
  readonly on: readonly string[];
  readonly matchedUpdate?: string | true;
  readonly notMatchedInsert?: boolean;
  readonly notMatchedBySourceDelete?: string | true;
  readonly timeoutMs?: number;
  readonly useLsm?: boolean;
}

export interface WireMergeResult {
  readonly version: number;
  readonly insertedRows: number;
  readonly updatedRows: number;
  readonly deletedRows: number;
  readonly attempts: number;
}

export interface WireUpdate {
  /** Without one: every row. */
  readonly filter?: string;
  /** Columns with the expressions of their new values. */
  readonly columns: readonly string[];
  readonly expressions: readonly string[];
  /** An IPC stream of one row: columns with the value that every matching row gets. */
  readonly values?: Uint8Array;
}

export interface WireUpdateResult {
  readonly updatedRows: number;
  readonly version: number;
}

export interface WireScanOptions {
  readonly columns?: readonly string[];
  /** Computed columns, behind the others and named as they are written. */
  readonly expressions?: readonly string[];
  readonly filter?: string;
  readonly limit?: number;
  readonly offset?: number;
  readonly batchRows?: number;
  readonly withRowId?: boolean;
  /** `false` leaves the rows of the write-ahead log out; `true` asks for a table that has one. */
  readonly useLsm?: boolean;
  /** Only these rows, by position among the live ones or by row id: in the table's order, in any order here. */
  readonly offsets?: BigUint64Array<ArrayBuffer>;
  readonly rowIds?: BigUint64Array<ArrayBuffer>;
}

export type { ErrorCode };
