/** The engine on this thread: numbers for live objects of the wasm instance. */

import { LanceError, fromWire, isErrorCode, type WireError } from '../errors';
import type { Store } from '../store/store';
import type { Engine, OpenedTable, WireCleanupPreview, WireLsmStats, WireMergeResult, WireWriteSpec } from './port';
import type * as wasm from './wasm';
import type { WasmLife } from './wasm';

/** How often leases are renewed; they live three times as long. */
const MAINTAIN_EVERY_MS = 10_000;

type Write = wasm.Append | wasm.CreateTable | wasm.MergeInsert;
type LiveObject = wasm.Table | wasm.Scan | Write | wasm.Export | wasm.Import;

interface Live<T extends LiveObject = LiveObject> {
  readonly kind: string;
  readonly object: T;
  /** The last call on an object that takes one at a time. */
  tail: Promise<unknown>;
}

/** Timers of both worlds; Node's would keep a process alive. */
interface Clock {
  every(ms: number, run: () => void): () => void;
}

const systemClock: Clock = {
  every(ms, run) {
    const timer: unknown = setInterval(run, ms);
    if (typeof timer === 'object' && timer !== null && 'unref' in timer) (timer as { unref(): void }).unref();
    return () => clearInterval(timer as number);
  },
};

/**
 * Opens the tables of a store.
 *
 * @param onIdle Called once the engine is closed and its last object is gone, after the store was closed.
 */
export function openDirect(
  life: WasmLife,
  store: Store,
  onIdle: () => void = () => undefined,
  clock = systemClock,
): Engine {
  const database = life.openDatabase(store);
  const live = new Map<number, Live>();
  let nextHandle = 1;
  let pending = 0;
  let isClosed = false;
  let isIdle = false;
  let stopTimer: (() => void) | undefined;
  let isMaintaining = false;

  const finishIfIdle = async (): Promise<void> => {
    if (!isClosed || isIdle || pending > 0 || live.size > 0) return;
    isIdle = true;
    stopTimer?.();
    stopTimer = undefined;
    if (life.end === undefined) life.enter(() => database.free());
    try {
      await store.close();
    } finally {
      onIdle();
    }
  };

  const maintain = async (): Promise<void> => {
    if (isMaintaining) return;
    isMaintaining = true;
    try {
      if (life.end !== undefined || (pending === 0 && !life.enter(() => database.holdsLeases()))) {
        stopTimer?.();
        stopTimer = undefined;
        return;
      }
      await life.wait(life.enter(() => database.maintain()));
    } catch {
      // Tried again at the next turn; what a lease that ran out no longer protects is found out by its holder's commit.
    } finally {
      isMaintaining = false;
    }
  };

  const run = async <T>(start: () => Promise<T>): Promise<T> => {
    pending += 1;
    // Every operation may take a lease: the timer runs from its beginning.
    stopTimer ??= clock.every(MAINTAIN_EVERY_MS, () => void maintain());
    try {
      return await life.wait(life.enter(start));
    } catch (error) {
      throw toLanceError(error);
    } finally {
      pending -= 1;
      await finishIfIdle();
    }
  };

  const call = <T>(start: () => Promise<T>): Promise<T> => {
    if (isClosed) return Promise.reject(new LanceError('CLOSED', 'Connection is closed'));
    return run(start);
  };

  const keep = (kind: string, object: LiveObject): number => {
    const handle = nextHandle++;
    live.set(handle, { kind, object, tail: Promise.resolve() });
    return handle;
  };

  const find = <T extends LiveObject>(kind: string, handle: number): Live<T> => {
    const found = live.get(handle);
    if (found === undefined || found.kind !== kind) throw new LanceError('CLOSED', `the ${kind} is closed`);
    return found as Live<T>;
  };

  /** Calls on one object, one after the other. */
  const inTurn = <T extends LiveObject, R>(
    kind: string,
    handle: number,
    start: (object: T) => Promise<R>,
  ): Promise<R> => {
    const found = find<T>(kind, handle);
    const result = found.tail.then(() => run(() => start(found.object)));
    found.tail = result.catch(() => undefined);
    return result;
  };

  /** The last call on an object, after those before it; the handle is gone at once. */
  const last = async <T extends LiveObject, R>(
    kind: string,
    handle: number,
    end: (object: T) => Promise<R>,
  ): Promise<R> => {
    const found = find<T>(kind, handle);
    live.delete(handle);
    pending += 1;
    try {
      await found.tail;
      return await run(() => end(found.object));
    } finally {
      pending -= 1;
      if (life.end === undefined) life.enter(() => found.object.free());
      await finishIfIdle();
    }
  };

  const opened = (table: wasm.Table): OpenedTable => ({
    handle: keep('table', table),
    name: life.enter(() => table.name),
  });

  const onTable = async <R>(handle: number, start: (table: wasm.Table) => Promise<R>): Promise<R> => {
    const { object } = find<wasm.Table>('table', handle);
    return run(() => start(object));
  };

  return {
    tableNames: () => call(() => database.tableNames()),
    beginCreate: async (name, schemaIpc, format, mode, hasStableRowIds) =>
      keep('write', await call(() => database.createTable(name, schemaIpc, format, mode, hasStableRowIds))),
    keyedSchema: (schemaIpc, column) => call(() => database.keyedSchema(schemaIpc, column)),
    finishCreate: async (handle, consistency) =>
      opened(await last<wasm.CreateTable, wasm.Table>('write', handle, (create) => create.finish(consistency))),
    openTable: async (name, consistency) => opened(await call(() => database.openTable(name, consistency))),
    dropTable: (name) => call(() => database.dropTable(name)),
    renameTable: (from, to) => call(() => database.renameTable(from, to)),

    beginExport: async (name) => {
      const object = await call(() => database.exportTable(name));
      return { handle: keep('export', object), entries: life.enter(() => object.entries()) };
    },
    readExport: async (handle, path, offset, length) =>
      inTurn<wasm.Export, Uint8Array>('export', handle, (object) => object.read(path, offset, length)),
    endExport: (handle) => last<wasm.Export, void>('export', handle, (object) => object.close()),
    beginImport: async (name) => keep('import', await call(() => database.importTable(name))),
    importFile: async (handle, path) => inTurn<wasm.Import, void>('import', handle, (object) => object.beginFile(path)),
    importBytes: async (handle, bytes) => inTurn<wasm.Import, void>('import', handle, (object) => object.write(bytes)),
    finishImport: async (handle, consistency) =>
      opened(await last<wasm.Import, wasm.Table>('import', handle, (object) => object.finish(consistency))),
    abortImport: (handle) => last<wasm.Import, void>('import', handle, (object) => object.abort()),

    schema: (table) => onTable(table, (object) => object.schema()),
    expectSchema: (table, schemaIpc) => onTable(table, (object) => object.expectSchema(schemaIpc)),
    usesV2ManifestPaths: (table) => onTable(table, (object) => object.usesV2ManifestPaths()),
    version: (table) => onTable(table, (object) => object.version()),
    versions: (table) => onTable(table, (object) => object.versions()),
    checkout: (table, version) => onTable(table, (object) => object.checkout(version)),
    checkoutLatest: (table) => onTable(table, (object) => object.checkoutLatest()),
    tags: (table) => onTable(table, (object) => object.tags()),
    tagVersion: (table, tag) => onTable(table, (object) => object.tagVersion(tag)),
    createTag: (table, tag, version) => onTable(table, (object) => object.createTag(tag, version)),
    updateTag: (table, tag, version) => onTable(table, (object) => object.updateTag(tag, version)),
    deleteTag: (table, tag) => onTable(table, (object) => object.deleteTag(tag)),
    checkoutTag: (table, tag) => onTable(table, (object) => object.checkoutTag(tag)),
    previewCleanup: async (table, options) =>
      (await onTable(table, (object) => object.previewCleanup(options))) as WireCleanupPreview,
    restore: (table) => onTable(table, (object) => object.restore()),
    optimize: (table, options) => onTable(table, (object) => object.optimize(options)),
    stats: (table) => onTable(table, (object) => object.stats()),
    maintain: (table) => onTable(table, (object) => object.maintain()),
    countRows: (table, filter) => onTable(table, (object) => object.countRows(filter)),
    delete: (table, predicate) => onTable(table, (object) => object.delete(predicate)),
    addNullColumns: (table, schemaIpc) => onTable(table, (object) => object.addNullColumns(schemaIpc)),
    addComputedColumns: (table, columns) => onTable(table, (object) => object.addComputedColumns(columns)),
    alterColumns: (table, alterations) => onTable(table, (object) => object.alterColumns(alterations)),
    dropColumns: (table, paths) => onTable(table, (object) => object.dropColumns(paths)),
    updateFieldMetadata: (table, updates) => onTable(table, (object) => object.updateFieldMetadata(updates)),
    setUnenforcedPrimaryKey: (table, column) => onTable(table, (object) => object.setUnenforcedPrimaryKey(column)),
    lsmWriteSpec: async (table) =>
      (await onTable(table, (object) => object.lsmWriteSpec())) as WireWriteSpec | undefined,
    setLsmWriteSpec: (table, spec) => onTable(table, (object) => object.setLsmWriteSpec(spec)),
    unsetLsmWriteSpec: (table) => onTable(table, (object) => object.unsetLsmWriteSpec()),
    lsmStats: async (table, withRows) =>
      (await onTable(table, (object) => object.lsmStats(withRows))) as WireLsmStats | undefined,
    update: (table, update) => onTable(table, (object) => object.update(update)),
    closeTable: (handle) => last<wasm.Table, void>('table', handle, (object) => object.close()),

    beginAppend: async (table) => keep('write', await onTable(table, (object) => object.append())),
    beginOverwrite: async (table, schemaIpc, format) =>
      keep('write', await onTable(table, (object) => object.overwrite(schemaIpc, format))),
    write: async (handle, ipc) => inTurn<Write, number>('write', handle, (object) => object.write(ipc)),
    finishAppend: (handle) => last<wasm.Append, number>('write', handle, (object) => object.finish()),
    beginMerge: async (table, options) => keep('write', await onTable(table, (object) => object.mergeInsert(options))),
    finishMerge: (handle) => last<wasm.MergeInsert, WireMergeResult>('write', handle, (object) => object.finish()),
    abortWrite: (handle) => last<Write, void>('write', handle, (object) => object.abort()),

    scan: async (table, options) => {
      const object = await onTable(table, (t) => t.scan(options));
      return { handle: keep('scan', object), schemaIpc: life.enter(() => object.schemaIpc()) };
    },
    nextBatches: async (handle) => inTurn<wasm.Scan, Uint8Array | undefined>('scan', handle, (object) => object.next()),
    closeScan: (handle) => last<wasm.Scan, void>('scan', handle, (object) => object.close()),

    close: async () => {
      isClosed = true;
      await finishIfIdle();
    },
  };
}

function toLanceError(error: unknown): LanceError {
  if (error instanceof LanceError) return error;
  const wire = error as Partial<WireError> | null | undefined;
  if (wire !== null && wire !== undefined && isErrorCode(wire.code) && typeof wire.message === 'string') {
    return fromWire({ code: wire.code, message: wire.message, details: wire.details ?? {} });
  }
  const reason = error instanceof Error ? error.message : String(error);
  return new LanceError('INTERNAL', `internal error: ${reason}`, { reason }, { cause: error });
}
