/** What the store tests run in a page or a worker: everything crosses as JSON, so a task opens its stores by URI. */
import { runCase } from '../../src/store/conformance';
import { Database } from '../../src/store/database';
import { withLostAnswers } from '../../src/store/lost-answers';
import { openStore } from '../../src/store/open';
import type { RemoveOutcome } from '../../src/store/store';

const traits = { countsMoves: true };
const encode = (value: string) => new TextEncoder().encode(value);
const decode = (value: Uint8Array) => new TextDecoder().decode(value);
const MANIFEST = '_versions/1.manifest';

/** Ends transactions in ways that a browser does and a test can't ask for. */
const realTransaction = IDBDatabase.prototype.transaction;

export const tasks = {
  /** Runs one case of the suite; what went wrong, or nothing. */
  async runCase(name: string, uri: string, answers: 'kept' | 'lost'): Promise<string | undefined> {
    try {
      const open = async () => (answers === 'kept' ? openStore(uri) : withLostAnswers(await openStore(uri)));
      await runCase(name, { traits, open });
      return undefined;
    } catch (error) {
      return error instanceof Error ? `${error.message}\n${error.stack}` : String(error);
    }
  },

  /** A live table `t` with a manifest, a small and a large object. */
  async makeTable(uri: string): Promise<string> {
    const store = await openStore(uri);
    const dir = await store.createDir(Date.now(), Date.now() + 60_000);
    await store.put(dir, MANIFEST, encode('manifest'));
    await store.put(dir, 'data/small', encode('small'));
    await store.put(dir, 'data/large', new Uint8Array(500_000).fill(7));
    await store.publishDir('t', dir);
    await store.close();
    return dir;
  },

  /** What a store says of its table: paths, and the sum of the large object's bytes. */
  async describe(uri: string): Promise<{ paths: string[]; sum: number; small: string }> {
    const store = await openStore(uri);
    try {
      const dir = (await store.lookup('t')) ?? '';
      const { objects } = await store.list(dir, '', {});
      const sum = (await store.get(dir, 'data/large')).reduce((total, byte) => total + byte, 0);
      const small = decode(await store.get(dir, 'data/small'));
      return { paths: objects.map(({ path }) => path), sum, small };
    } finally {
      await store.close();
    }
  },

  /** The code of the error with which a store does not open; `opened` when it does. */
  async openCode(uri: string): Promise<string> {
    return openStore(uri).then(
      async (store) => {
        await store.close();
        return 'opened';
      },
      (error: { code: string; message: string }) => `${error.code}: ${error.message}`,
    );
  },

  /** Names of the objects that this tab was the first to write. */
  async putLoop(uri: string, dir: string, own: string, count: number): Promise<string[]> {
    const store = await openStore(uri);
    const won: string[] = [];
    for (let n = 0; n < count; n += 1) {
      // Every tenth is large enough for a file.
      const bytes = n % 10 === 9 ? new Uint8Array(100_000).fill(own.charCodeAt(0)) : encode(own);
      if (await store.putIfAbsent(dir, `race/${n}`, bytes)) won.push(`race/${n}`);
    }
    await store.close();
    return won;
  },

  async firstBytes(uri: string, dir: string, paths: string[]): Promise<string[]> {
    const store = await openStore(uri);
    const found: string[] = [];
    for (const path of paths) found.push(decode((await store.getRanges(dir, path, [0, 1]))[0] ?? encode('')));
    await store.close();
    return found;
  },

  /** Versions that this tab committed. */
  async commitLoop(uri: string, dir: string, own: string, count: number): Promise<number[]> {
    const store = await openStore(uri);
    const landed: number[] = [];
    while (landed.length < count) {
      const token = await store.token(dir, '_versions');
      const version = (await store.list(dir, '_versions', {})).objects.length + 1;
      const note = encode(own);
      const outcome = await store.commit({
        dir,
        objects: [{ path: `_transactions/${own}-${landed.length}`, bytes: note }],
        publish: { path: `_versions/${version}.manifest`, bytes: note },
        token,
        requires: [],
      });
      if (outcome.kind === 'committed') landed.push(version);
      else if (outcome.kind !== 'exists' && outcome.kind !== 'moved') throw new Error(outcome.kind);
    }
    await store.close();
    return landed;
  },

  /**
   * Interrupts the next `count` transactions that write: after they committed, or before their first request. What the operation and the
   * table say afterwards.
   */
  async interrupted(
    uri: string,
    when: 'after commit' | 'after commit and removal' | 'before commit',
    operation: string,
    count: number,
  ): Promise<unknown> {
    const store = await openStore(uri);
    const dir = (await store.lookup('t')) ?? '';
    const token = await store.token(dir, '_versions');
    const writer = await store.writer(dir, 'data/streamed');
    await writer.write(encode('streamed'));
    let left = count;
    IDBDatabase.prototype.transaction = function (names, mode, options) {
      const transaction = realTransaction.call(this, names, mode, options);
      if (mode !== 'readwrite' || left === 0) return transaction;
      left -= 1;
      if (when === 'before commit') {
        queueMicrotask(() => transaction.abort());
        return transaction;
      }
      Object.defineProperty(transaction, 'error', { value: new DOMException('connection lost', 'UnknownError') });
      Object.defineProperty(transaction, 'oncomplete', {
        set: () =>
          transaction.addEventListener('complete', (event) => {
            if (when === 'after commit') {
              transaction.onabort?.(event);
              return;
            }
            const removal = realTransaction.call(this, 'meta', 'readwrite');
            removal.objectStore('meta').delete([dir, '_versions/2.manifest']);
            removal.oncomplete = () => transaction.onabort?.(event);
          }),
      });
      return transaction;
    };
    const operations: Record<string, () => Promise<unknown>> = {
      put: () => store.put(dir, 'data/put', encode('put')),
      putIfAbsent: () => store.putIfAbsent(dir, 'data/absent', encode('absent')),
      putIfAbsentTaken: () => store.putIfAbsent(dir, 'data/small', encode('other')),
      finish: () => writer.finish(),
      dropDir: () => store.dropDir(dir),
      renameDir: () => store.renameDir(dir, 't', 'u'),
      commit: () =>
        store.commit({
          dir,
          objects: [{ path: '_transactions/2', bytes: encode('x') }],
          publish: { path: '_versions/2.manifest', bytes: encode('x') },
          token,
          requires: [],
        }),
      commitMoved: () =>
        store.commit({
          dir,
          objects: [],
          publish: { path: '_versions/3.manifest', bytes: encode('x') },
          token: 'old',
          requires: [],
        }),
    };
    try {
      return (await operations[operation]?.()) ?? 'done';
    } catch (error) {
      return (error as { code: string }).code;
    } finally {
      IDBDatabase.prototype.transaction = realTransaction;
      await store.close();
    }
  },

  /** Opens, lets the connection be taken away by a deletion of the database, and goes on. */
  async useAfterDeletion(uri: string, database: string): Promise<string[]> {
    const store = await openStore(uri);
    const first = await store.createDir(0, 1);
    await new Promise((resolve, reject) => {
      const request = indexedDB.deleteDatabase(database);
      request.onsuccess = resolve;
      request.onerror = reject;
      request.onblocked = () => reject(new Error('the store keeps the database from being deleted'));
    });
    const second = await store.createDir(0, 1);
    await store.put(second, 'a', encode('x'));
    const paths = (await store.list(second, '', {})).objects.map(({ path }) => path);
    const code = await store.put(first, 'a', encode('x')).then(
      () => 'written',
      (error: { code: string }) => error.code,
    );
    await store.close();
    return [...paths, code];
  },

  /** Begins a large write and leaves it: the tab is closed in the middle. */
  async leaveWriting(uri: string): Promise<number> {
    const store = await openStore(uri);
    const dir = (await store.lookup('t')) ?? '';
    const writer = await store.writer(dir, 'data/left');
    await writer.write(new Uint8Array(300_000).fill(1));
    return tasks.countFiles(uri);
  },

  /** Reads the large object and keeps the store, and so its handle, open until the tab ends. */
  async readAndStay(uri: string): Promise<number> {
    const store = await openStore(uri);
    const dir = (await store.lookup('t')) ?? '';
    return (await store.getRanges(dir, 'data/large', [10, 20]))[0]?.length ?? -1;
  },

  async remove(uri: string, path: string): Promise<string> {
    const store = await openStore(uri);
    const outcome = await store.delete((await store.lookup('t')) ?? '', path);
    await store.close();
    return outcome;
  },

  /** Removes the large object and version 1 as a cleanup does. */
  async cleanUp(uri: string): Promise<RemoveOutcome> {
    const store = await openStore(uri);
    const dir = (await store.lookup('t')) ?? '';
    await store.put(dir, '_versions/1.manifest', new Uint8Array(9));
    const outcome = await store.remove({
      dir,
      versions: [1],
      manifests: ['_versions/1.manifest'],
      files: ['data/large'],
      pins: await store.pins(dir),
      needsNoWriter: true,
      nowMs: Date.now(),
    });
    await store.close();
    return outcome;
  },

  /** Holds files open and does not listen when they are asked for. */
  async holdFiles(uri: string, mode: 'read-only' | 'readwrite'): Promise<number> {
    let held = 0;
    for await (const handle of (await filesOf(uri)).values()) {
      const open: (options: object) => Promise<FileSystemSyncAccessHandle> = (
        handle as FileSystemFileHandle
      ).createSyncAccessHandle.bind(handle);
      await open({ mode });
      held += 1;
    }
    return held;
  },

  async sweep(uri: string): Promise<void> {
    const store = await openStore(uri);
    await store.sweep(Date.now());
    await store.close();
  },

  /** How many files lie in a store's folder of bodies. */
  async countFiles(uri: string): Promise<number> {
    let count = 0;
    for await (const _ of (await filesOf(uri)).keys()) count += 1;
    return count;
  },

  /** Reads `count` large objects; how many handles were open at most. */
  async readMany(uri: string, count: number): Promise<number> {
    const store = await openStore(uri);
    const dir = await store.createDir(0, 1);
    for (let n = 0; n < count; n += 1) await store.put(dir, `data/${n}`, new Uint8Array(70_000).fill(n));
    watchHandles();
    for (let n = 0; n < count; n += 1) {
      const [part] = await store.getRanges(dir, `data/${n}`, [69_999, 70_000]);
      if (part?.[0] !== n) throw new Error(`object ${n} has ${part?.[0]}`);
    }
    return handles.most;
  },

  async openHandles(): Promise<number> {
    return handles.open;
  },

  /** What a store answers where the file system refuses, as in private windows. */
  async withoutFiles(uri: string, other: string): Promise<string[]> {
    const real = navigator.storage.getDirectory;
    navigator.storage.getDirectory = () => Promise.reject(new DOMException('refused', 'SecurityError'));
    try {
      await tasks.makeTable(other);
      return [await tasks.openCode(uri), String((await tasks.describe(other)).sum)];
    } finally {
      navigator.storage.getDirectory = real;
    }
  },

  async withoutIndexedDb(uri: string): Promise<string> {
    const real = globalThis.indexedDB;
    Object.defineProperty(globalThis, 'indexedDB', { value: undefined, configurable: true });
    try {
      return await tasks.openCode(uri);
    } finally {
      Object.defineProperty(globalThis, 'indexedDB', { value: real, configurable: true });
    }
  },

  /** Opens a database that somebody is deleting while somebody else, who does not listen, has it open. */
  async openBlocked(name: string, waitMs: number): Promise<string> {
    const deaf = await new Promise<IDBDatabase>((resolve) => {
      const request = indexedDB.open(name);
      request.onsuccess = () => resolve(request.result);
    });
    indexedDB.deleteDatabase(name);
    const database = new Database(name, waitMs);
    const code = await database.open().then(
      () => 'opened',
      (error: { code: string }) => error.code,
    );
    deaf.close();
    await database.open();
    await database.close();
    return code;
  },

  /** Writes until the origin's quota is used up. What the store says, and what is there then. */
  async fill(uri: string, sizeBytes: number): Promise<{ codes: string[]; paths: string[] }> {
    const store = await openStore(uri);
    const dir = (await store.lookup('t')) ?? '';
    const noise = new Uint8Array(sizeBytes);
    for (let at = 0; at < sizeBytes; at += 65_536) crypto.getRandomValues(noise.subarray(at, at + 65_536));
    const codeOf = (call: Promise<unknown>) =>
      call.then(
        () => 'done',
        (error: { code: string }) => error.code,
      );
    const codes = [await codeOf(store.put(dir, 'data/put', noise))];
    codes.push(await codeOf(store.putIfAbsent(dir, 'data/absent', noise)));
    const writer = await store.writer(dir, 'data/streamed');
    codes.push(await codeOf(writer.write(noise).then(() => writer.finish())));
    await writer.abort();
    const paths = (await store.list(dir, 'data', {})).objects.map(({ path }) => path);
    for (const path of ['data/put', 'data/absent', 'data/streamed']) await store.delete(dir, path);
    await store.close();
    return { codes, paths };
  },
};

const handles = { open: 0, most: 0, areWatched: false };

/** Counts the handles that are open in this worker from now on. */
function watchHandles(): void {
  if (handles.areWatched) return;
  handles.areWatched = true;
  const { createSyncAccessHandle } = FileSystemFileHandle.prototype;
  const { close } = FileSystemSyncAccessHandle.prototype;
  FileSystemFileHandle.prototype.createSyncAccessHandle = async function (...args) {
    const handle = await createSyncAccessHandle.apply(this, args);
    handles.open += 1;
    handles.most = Math.max(handles.most, handles.open);
    return handle;
  };
  FileSystemSyncAccessHandle.prototype.close = function () {
    handles.open -= 1;
    close.call(this);
  };
}

async function filesOf(uri: string): Promise<FileSystemDirectoryHandle> {
  const root = await navigator.storage.getDirectory();
  const top = await root.getDirectoryHandle('lancelet');
  return top.getDirectoryHandle(uri.replace(/^.*:\/\//, ''));
}

export type Tasks = typeof tasks;
export type TaskName = keyof Tasks;

export interface TaskMessage {
  readonly id: number;
  readonly name: TaskName;
  readonly args: readonly unknown[];
}

export async function runTask(name: TaskName, args: readonly unknown[]): Promise<unknown> {
  const task = tasks[name] as (...args: readonly unknown[]) => Promise<unknown>;
  return task(...args);
}
