/** An engine for tests of what lies above it: tables are lists of IPC streams, and nothing is interpreted. */

import * as arrow from 'apache-arrow';

import { LanceError } from '../errors';
import type {
  Consistency,
  CreateMode,
  DataFormat,
  Engine,
  OpenedExport,
  OpenedScan,
  OpenedTable,
  WireCleanupOptions,
  WireCleanupPreview,
  WireKeepReason,
  WireMergeOptions,
  WireWriteSpec,
  WireMergeResult,
  WireOptimizeStats,
  WireScanOptions,
  WireTableStats,
  WireTag,
  WireUpdate,
} from './port';

interface FakeTable {
  readonly name: string;
  schemaIpc: Uint8Array;
  parts: Uint8Array[];
  version: number;
}

interface FakeWrite {
  readonly table: FakeTable;
  readonly parts: Uint8Array[];
  /** Set of an overwrite. */
  readonly schemaIpc?: Uint8Array;
}

interface FakeScan {
  readonly parts: Uint8Array[];
  next: number;
}

export class FakeEngine implements Engine {
  readonly tables = new Map<string, FakeTable>();
  readonly scans: WireScanOptions[] = [];
  readonly consistencies: Consistency[] = [];
  readonly updates: WireUpdate[] = [];
  /** Of each table that was begun. */
  readonly formats: (DataFormat | undefined)[] = [];
  /** Live handles by kind, as `table 3`. */
  readonly live = new Map<number, { kind: string; value: unknown }>();
  readonly tagged = new Map<string, number>();
  readonly cleanups: WireCleanupOptions[] = [];
  readonly columnChanges: { method: keyof Engine; argument: unknown }[] = [];
  /** Names of tables that were looked after, in order. */
  readonly maintained: string[] = [];
  readonly imported: { path: string; bytes: number[] }[] = [];
  /** Options of every merge insert, and what was written to them. */
  readonly merges: WireMergeOptions[] = [];
  readonly merged: Uint8Array[] = [];
  /** Makes the named method fail. */
  fails: Partial<Record<keyof Engine, Error>> = {};
  /** Makes `nextBatches` wait. */
  stalls: Promise<void> | undefined;
  isClosed = false;
  #next = 1;

  liveKinds(): string[] {
    return [...this.live.values()].map(({ kind }) => kind).sort();
  }

  async tableNames(): Promise<string[]> {
    this.#check('tableNames');
    return [...this.tables.keys()].sort();
  }

  async beginCreate(
    name: string,
    schemaIpc: Uint8Array,
    format: DataFormat | undefined,
    mode: CreateMode,
  ): Promise<number> {
    this.#check('beginCreate');
    this.formats.push(format);
    const existing = this.tables.get(name);
    if (existing !== undefined && mode === 'overwrite') {
      return this.#keep('write', { table: existing, parts: [], schemaIpc } satisfies FakeWrite);
    }
    if (existing !== undefined) throw new LanceError('TABLE_EXISTS', `Table '${name}' already exists`, { name });
    return this.#keep('write', { table: { name, schemaIpc, parts: [], version: 0 }, parts: [] } satisfies FakeWrite);
  }

  async finishCreate(handle: number, consistency: Consistency): Promise<OpenedTable> {
    const { name } = this.#get<FakeWrite>('write', handle).table;
    this.#check('finishCreate');
    const { table } = this.#finish(handle);
    this.tables.set(name, table);
    return this.openTable(name, consistency);
  }

  async openTable(name: string, consistency: Consistency): Promise<OpenedTable> {
    this.#check('openTable');
    const table = this.tables.get(name);
    if (table === undefined) throw new LanceError('TABLE_NOT_FOUND', `Table '${name}' was not found`, { name });
    this.consistencies.push(consistency);
    return { handle: this.#keep('table', table), name };
  }

  async dropTable(name: string): Promise<void> {
    if (!this.tables.delete(name)) throw new LanceError('TABLE_NOT_FOUND', `Table '${name}' was not found`, { name });
  }

  async renameTable(from: string, to: string): Promise<void> {
    this.#check('renameTable');
    const table = this.tables.get(from);
    if (table === undefined) throw new LanceError('TABLE_NOT_FOUND', `Table '${from}' was not found`, { name: from });
    this.tables.delete(from);
    this.tables.set(to, table);
  }

  async beginExport(): Promise<OpenedExport> {
    const entries = [
      { path: 'data/a.lance', sizeBytes: 3_000_000 },
      { path: '_versions/1.manifest', sizeBytes: 0 },
    ];
    return { handle: this.#keep('export', entries), entries };
  }

  async readExport(handle: number, _path: string, offset: number, length: number): Promise<Uint8Array> {
    this.#get('export', handle);
    return new Uint8Array(length).fill(offset >> 20);
  }

  async endExport(handle: number): Promise<void> {
    this.#take('export', handle);
  }

  async beginImport(name: string): Promise<number> {
    return this.#keep('import', name);
  }

  async importFile(_handle: number, path: string): Promise<void> {
    this.#check('importFile');
    this.imported.push({ path, bytes: [] });
  }

  async importBytes(_handle: number, bytes: Uint8Array): Promise<void> {
    for (const byte of bytes) this.imported.at(-1)?.bytes.push(byte);
  }

  async finishImport(handle: number, consistency: Consistency): Promise<OpenedTable> {
    const name = this.#take<string>('import', handle);
    this.tables.set(name, { name, schemaIpc: new Uint8Array(), parts: [], version: 1 });
    return this.openTable(name, consistency);
  }

  async abortImport(handle: number): Promise<void> {
    this.#take('import', handle);
  }

  async schema(handle: number): Promise<Uint8Array> {
    return this.#get<FakeTable>('table', handle).schemaIpc;
  }

  async expectSchema(handle: number, schemaIpc: Uint8Array): Promise<void> {
    const { schemaIpc: own } = this.#get<FakeTable>('table', handle);
    if (!own.every((byte, i) => byte === schemaIpc[i])) throw new LanceError('SCHEMA', 'Schema Error: another schema');
  }

  async usesV2ManifestPaths(handle: number): Promise<boolean> {
    return this.#get<FakeTable>('table', handle).version < 100;
  }

  async version(handle: number): Promise<number> {
    this.#check('version');
    return this.#get<FakeTable>('table', handle).version;
  }

  async versions(handle: number): Promise<{ version: number; timestampMs: number; totals: Record<string, number> }[]> {
    const { version } = this.#get<FakeTable>('table', handle);
    return [{ version, timestampMs: 1.5, totals: { total_rows: 7 } }];
  }

  async checkout(_handle: number, version: number): Promise<void> {
    if (version > 100) throw new LanceError('NOT_FOUND', `version ${version} was not found`);
  }

  async checkoutLatest(): Promise<void> {}

  async tags(): Promise<WireTag[]> {
    return [...this.tagged].map(([name, version]) => ({ name, version, manifestSize: 9 }));
  }

  async tagVersion(_handle: number, tag: string): Promise<number> {
    const version = this.tagged.get(tag);
    if (version === undefined) throw new LanceError('NOT_FOUND', `tag ${tag} does not exist`);
    return version;
  }

  async createTag(_handle: number, tag: string, version: number): Promise<void> {
    this.tagged.set(tag, version);
  }

  async updateTag(_handle: number, tag: string, version: number): Promise<void> {
    this.tagged.set(tag, version);
  }

  async deleteTag(_handle: number, tag: string): Promise<void> {
    this.tagged.delete(tag);
  }

  async checkoutTag(handle: number, tag: string): Promise<void> {
    await this.checkout(handle, await this.tagVersion(handle, tag));
  }

  async previewCleanup(_handle: number, options: WireCleanupOptions): Promise<WireCleanupPreview> {
    this.cleanups.push(options);
    const because = (kind: WireKeepReason['kind'], name = '') => ({ kind, name });
    return {
      removed: [{ version: 1, timestampMs: 5 }],
      kept: [
        { version: 2, timestampMs: 6.5, reasons: [because('tag', 'old')] },
        { version: 3, timestampMs: 7, reasons: [because('age'), because('tag', 'young'), because('lease', 'scan')] },
        { version: 4, timestampMs: 8, reasons: [because('latest'), because('branch', 'dev')] },
      ],
      files: [
        { path: '_versions/1.manifest', sizeBytes: 3 },
        { path: 'data/a.lance', sizeBytes: 4 },
      ],
    };
  }

  async restore(handle: number): Promise<number> {
    const table = this.#get<FakeTable>('table', handle);
    return (table.version += 1);
  }

  async optimize(_handle: number, options: WireCleanupOptions): Promise<WireOptimizeStats> {
    this.#check('optimize');
    this.cleanups.push(options);
    return {
      compaction: { fragmentsRemoved: 2, fragmentsAdded: 1, filesRemoved: 3, filesAdded: 1 },
      prune: { bytesRemoved: 10, oldVersionsRemoved: 4 },
    };
  }

  async stats(): Promise<WireTableStats> {
    const lengths = { min: 1, max: 3, mean: 2, p25: 1, p50: 2, p75: 3, p99: 3 };
    const fragmentStats = { numFragments: 2, numSmallFragments: 1, lengths };
    return { totalBytes: 9, numRows: 4, numIndices: 0, fragmentStats };
  }

  async maintain(handle: number): Promise<boolean> {
    this.#check('maintain');
    this.maintained.push(this.#get<FakeTable>('table', handle).name);
    return true;
  }

  async countRows(handle: number, filter: string | undefined): Promise<number> {
    return filter === undefined ? this.#get<FakeTable>('table', handle).parts.length : 0;
  }

  async update(handle: number, update: WireUpdate): Promise<{ updatedRows: number; version: number }> {
    const table = this.#get<FakeTable>('table', handle);
    this.updates.push(update);
    table.version += 1;
    return { updatedRows: 2, version: table.version };
  }

  async delete(handle: number): Promise<{ deletedRows: number; version: number }> {
    const table = this.#get<FakeTable>('table', handle);
    table.version += 1;
    return { deletedRows: 2, version: table.version };
  }

  async addNullColumns(handle: number, schemaIpc: Uint8Array): Promise<number> {
    return this.#changeColumns(handle, 'addNullColumns', schemaIpc);
  }

  async addComputedColumns(handle: number, columns: readonly unknown[]): Promise<number> {
    return this.#changeColumns(handle, 'addComputedColumns', columns);
  }

  async alterColumns(handle: number, alterations: readonly unknown[]): Promise<number> {
    return this.#changeColumns(handle, 'alterColumns', alterations);
  }

  async dropColumns(handle: number, paths: readonly string[]): Promise<number> {
    return this.#changeColumns(handle, 'dropColumns', paths);
  }

  async updateFieldMetadata(handle: number, updates: readonly unknown[]): Promise<number> {
    return this.#changeColumns(handle, 'updateFieldMetadata', updates);
  }

  async setUnenforcedPrimaryKey(handle: number, column: string): Promise<number> {
    return this.#changeColumns(handle, 'setUnenforcedPrimaryKey', column);
  }

  async setLsmWriteSpec(handle: number, spec: WireWriteSpec): Promise<number> {
    return this.#changeColumns(handle, 'setLsmWriteSpec', spec);
  }

  async unsetLsmWriteSpec(handle: number): Promise<number> {
    return this.#changeColumns(handle, 'unsetLsmWriteSpec', undefined);
  }

  async lsmWriteSpec(): Promise<undefined> {
    return undefined;
  }

  async lsmStats(): Promise<undefined> {
    return undefined;
  }

  async keyedSchema(schemaIpc: Uint8Array): Promise<Uint8Array> {
    return schemaIpc;
  }

  #changeColumns(handle: number, method: keyof Engine, argument: unknown): number {
    this.#check(method);
    const table = this.#get<FakeTable>('table', handle);
    this.columnChanges.push({ method, argument });
    table.version += 1;
    return table.version;
  }

  async closeTable(handle: number): Promise<void> {
    this.#take('table', handle);
  }

  async beginAppend(handle: number): Promise<number> {
    return this.#keep('write', { table: this.#get<FakeTable>('table', handle), parts: [] } satisfies FakeWrite);
  }

  async beginOverwrite(
    handle: number,
    schemaIpc: Uint8Array | undefined,
    format: DataFormat | undefined,
  ): Promise<number> {
    this.#check('beginOverwrite');
    const table = this.#get<FakeTable>('table', handle);
    this.formats.push(format);
    return this.#keep('write', { table, parts: [], schemaIpc: schemaIpc ?? table.schemaIpc } satisfies FakeWrite);
  }

  async beginMerge(handle: number, options: WireMergeOptions): Promise<number> {
    this.#check('beginMerge');
    this.merges.push(options);
    return this.#keep('write', { table: this.#get<FakeTable>('table', handle), parts: [] } satisfies FakeWrite);
  }

  async finishMerge(handle: number): Promise<WireMergeResult> {
    const { table, parts } = this.#take<FakeWrite>('write', handle);
    this.merged.push(...parts);
    table.version += 1;
    return { version: table.version, insertedRows: 1, updatedRows: 2, deletedRows: 3, attempts: 4 };
  }

  async write(handle: number, ipc: Uint8Array): Promise<number> {
    this.#check('write');
    this.#get<FakeWrite>('write', handle).parts.push(ipc);
    return ipc.length < 8 ? 0 : arrow.tableFromIPC(ipc).numRows;
  }

  async finishAppend(handle: number): Promise<number> {
    return this.#finish(handle).table.version;
  }

  async abortWrite(handle: number): Promise<void> {
    this.#take('write', handle);
  }

  async scan(handle: number, options: WireScanOptions): Promise<OpenedScan> {
    this.#check('scan');
    this.scans.push(options);
    const { schemaIpc, parts } = this.#get<FakeTable>('table', handle);
    const project = (ipc: Uint8Array): Uint8Array => {
      const table = arrow.tableFromIPC(ipc);
      let result = options.columns === undefined ? table : table.select([...options.columns]);
      // It computes nothing: the values are those of the first column.
      for (const text of options.expressions ?? []) {
        result = result.assign(new arrow.Table({ [text]: table.getChildAt(0) as arrow.Vector }));
      }
      return arrow.tableToIPC(result, 'stream');
    };
    const scan: FakeScan = { parts: parts.map(project), next: 0 };
    return { handle: this.#keep('scan', scan), schemaIpc: project(schemaIpc) };
  }

  async nextBatches(handle: number): Promise<Uint8Array | undefined> {
    const scan = this.#get<FakeScan>('scan', handle);
    await this.stalls;
    this.#check('nextBatches');
    return scan.parts[scan.next++];
  }

  async closeScan(handle: number): Promise<void> {
    this.#take('scan', handle);
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }

  #check(method: keyof Engine): void {
    const error = this.fails[method];
    if (error !== undefined) throw error;
  }

  #finish(handle: number): FakeWrite {
    const write = this.#take<FakeWrite>('write', handle);
    const { table, parts, schemaIpc } = write;
    if (schemaIpc === undefined) table.parts.push(...parts);
    else Object.assign(table, { parts, schemaIpc });
    table.version += 1;
    return write;
  }

  #keep(kind: string, value: unknown): number {
    const handle = this.#next++;
    this.live.set(handle, { kind, value });
    return handle;
  }

  #get<T>(kind: string, handle: number): T {
    const found = this.live.get(handle);
    if (found?.kind !== kind) throw new LanceError('CLOSED', `the ${kind} is closed`);
    return found.value as T;
  }

  #take<T>(kind: string, handle: number): T {
    const value = this.#get<T>(kind, handle);
    this.live.delete(handle);
    return value;
  }
}
