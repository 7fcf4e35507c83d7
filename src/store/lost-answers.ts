/**
 * A store whose every answer is lost once, and a caller that repeats: performs each operation, throws its answer away, performs it again
 * and finds out what the first one did, as the engine does. It passes the same suite as the store inside.
 */
import { LanceError } from '../errors';
import type { CommitOutcome, CommitRequest, Store } from './store';

/** Performs the operation, then fails as if its answer never arrived. */
async function lost(operation: Promise<unknown>): Promise<never> {
  await operation;
  throw new LanceError('OUTCOME_UNKNOWN', 'the answer was lost');
}

/** The answer of the repeated operation; an error of the first one that is no lost answer passes. */
async function repeated<T>(perform: () => Promise<T>, afterLoss: () => Promise<T> = perform): Promise<T> {
  try {
    return await lost(perform());
  } catch (error) {
    if (error instanceof LanceError && error.code === 'OUTCOME_UNKNOWN') return afterLoss();
    throw error;
  }
}

/** `store` with every answer lost once. */
export function withLostAnswers(store: Store): Store {
  const holds = async (dir: string, path: string, bytes: Uint8Array): Promise<boolean> => {
    const found = await store.get(dir, path);
    return found.length === bytes.length && found.every((byte, index) => byte === bytes[index]);
  };
  return {
    tables: () => repeated(() => store.tables()),
    lookup: (name) => repeated(() => store.lookup(name)),
    createDir: (nowMs, expiresMs) => repeated(() => store.createDir(nowMs, expiresMs)),
    publishDir: (name, id) => repeated(() => store.publishDir(name, id)),
    renameDir: (id, from, to) => repeated(() => store.renameDir(id, from, to)),
    dropDir: (id) => repeated(() => store.dropDir(id)),
    sweep: (nowMs) => repeated(() => store.sweep(nowMs)),
    put: async (dir, path, bytes) => {
      const kept = bytes.slice();
      await repeated(() => store.put(dir, path, kept));
    },
    putIfAbsent: async (dir, path, bytes) => {
      const kept = bytes.slice();
      const perform = () => store.putIfAbsent(dir, path, kept);
      return repeated(perform, async () => (await perform()) || holds(dir, path, kept));
    },
    writer: (dir, path) => repeated(() => store.writer(dir, path)),
    get: (dir, path) => repeated(() => store.get(dir, path)),
    getRanges: (dir, path, ranges) => repeated(() => store.getRanges(dir, path, ranges)),
    head: (dir, path) => repeated(() => store.head(dir, path)),
    list: (dir, prefix, options) => repeated(() => store.list(dir, prefix, options)),
    delete: (dir, path) => repeated(() => store.delete(dir, path)),
    token: (dir, folder) => repeated(() => store.token(dir, folder)),
    commit: (request) => commitRepeated(store, request, holds),
    // A lease whose answer was lost keeps files until it runs out; a case that counts leases would wait for it.
    lease: (request) => store.lease(request),
    renew: (lease, nowMs, expiresMs) => repeated(() => store.renew(lease, nowMs, expiresMs)),
    release: (lease) => repeated(() => store.release(lease)),
    leases: (dir, nowMs) => repeated(() => store.leases(dir, nowMs)),
    pins: (dir) => repeated(() => store.pins(dir)),
    putRef: async (request) => {
      const kept = { ...request, bytes: request.bytes.slice() };
      const perform = () => store.putRef(kept);
      return repeated(perform, async () => {
        const again = await perform();
        return again === 'exists' && (await holds(kept.dir, kept.path, kept.bytes)) ? 'written' : again;
      });
    },
    // What it took can only be told by looking what is still there, and so does the engine.
    remove: (request) => store.remove(request),
    turn: (dir, waitMs) => store.turn(dir, waitMs),
    close: () => repeated(() => store.close()),
  };
}

/** `exists` after a lost answer is success where what exists is one's own. */
async function commitRepeated(
  store: Store,
  request: CommitRequest,
  holds: (dir: string, path: string, bytes: Uint8Array) => Promise<boolean>,
): Promise<CommitOutcome> {
  let first: CommitOutcome | undefined;
  const perform = async () => (first = await store.commit(request));
  return repeated(perform, async () => {
    const again = await store.commit(request);
    const { path, bytes } = request.publish;
    const isOwn = again.kind === 'exists' && first?.kind === 'committed' && (await holds(request.dir, path, bytes));
    return isOwn ? { kind: 'committed' } : again;
  });
}
