/** What the store tests run in a page or a worker: everything crosses as JSON, so a task opens its stores by URI. */
import { runCase } from '../../src/store/conformance';
import { withLostAnswers } from '../../src/store/lost-answers';
import { openStore } from '../../src/store/open';

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
    when: 'after commit' | 'before commit',
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
        set: () => transaction.addEventListener('complete', (event) => transaction.onabort?.(event)),
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

  /** Holds a file open as a browser without the release message would. */
  async holdFiles(uri: string): Promise<number> {
    let held = 0;
    for await (const handle of (await filesOf(uri)).values()) {
      const open: (options: object) => Promise<FileSystemSyncAccessHandle> = (
        handle as FileSystemFileHandle
      ).createSyncAccessHandle.bind(handle);
      await open({ mode: 'read-only' });
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

  /** Milliseconds per operation: not a benchmark, a hint at a step that is missing or doubled. */
  async timings(uri: string): Promise<Record<string, number>> {
    const store = await openStore(uri);
    const dir = await store.createDir(0, 1);
    const time = async (rounds: number, operation: (n: number) => Promise<unknown>) => {
      const start = performance.now();
      for (let n = 0; n < rounds; n += 1) await operation(n);
      return Math.round(((performance.now() - start) / rounds) * 1000) / 1000;
    };
    const large = new Uint8Array(4_000_000).fill(3);
    const result = {
      put1k: await time(100, (n) => store.put(dir, `p/${n}`, new Uint8Array(1000))),
      put4m: await time(10, (n) => store.put(dir, `l/${n}`, large)),
      range64k: await time(100, (n) => store.getRanges(dir, `l/${n % 10}`, [n * 1000, n * 1000 + 65_536])),
      list100: await time(20, () => store.list(dir, 'p', {})),
      commit: await time(100, async (n) => {
        const token = await store.token(dir, '_versions');
        const bytes = new Uint8Array(1000);
        const objects = [{ path: `_transactions/${n}`, bytes }];
        await store.commit({ dir, objects, publish: { path: `_versions/${n}`, bytes }, token, requires: [`p/${n}`] });
      }),
    };
    await store.close();
    return result;
  },
};

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
