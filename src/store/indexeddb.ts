/**
 * A store in IndexedDB: every operation is one transaction over the rows of `database.ts`.
 *
 * Small bodies are bytes; larger ones are Blobs, so that a range is read without loading the value, or lie in files where the store has a
 * place for those (`opfs.ts`). A body in a file is written under a `writing` row, flushed and closed before its `meta` row appears, and
 * outlives that row only with a tombstone: files without any row are never touched, since they may be in the making.
 */
import { get } from 'idb-keyval';

import { LanceError } from '../errors';
import { asStorageError, below, Database, isName, type Rows, type Transaction } from './database';
import { newId } from './ids';
import { ListingFold } from './listing';
import {
  OBJECT_KINDS,
  SMALL_BYTES,
  bodyOf,
  bury,
  checkWritable,
  eachLease,
  liveLeases,
  metaOf,
  noteChange,
  objectKey,
  place,
  readBody,
} from './object-rows';
import { byteKey, checkFolder, checkPath, checkRanges, parentOf } from './path';
import { noDirectory, noObject } from './refusals';
import { takeRows, type Taken } from './row-removal';
import { RowWriter, type BodyFiles } from './row-writer';
import type {
  CommitOutcome,
  CommitRequest,
  LeaseOutcome,
  LeaseRequest,
  Listing,
  ListOptions,
  LiveLease,
  ObjectMeta,
  ObjectWriter,
  RefOutcome,
  RefRequest,
  RemoveOutcome,
  RemoveRequest,
  Store,
  TableEntry,
  Turn,
} from './store';
import { TurnQueue } from './turns';

/** Rows that a listing takes at once. */
const BATCH_ROWS = 1000;

const localTurns = new TurnQueue();

/** Opens the store of a name in which everything is in IndexedDB. Works on pages and in workers. */
export async function openIndexedDbStore(name: string): Promise<Store> {
  const database = new Database(`lancelet:indexeddb:${name}`);
  await database.open();
  return new IndexedDbStore(database, undefined);
}

export class IndexedDbStore implements Store {
  readonly #database: Database;
  readonly #files: BodyFiles | undefined;
  #holder: Promise<string> | undefined;
  #releaseHolder: (() => void) | undefined;

  constructor(database: Database, files: BodyFiles | undefined) {
    this.#database = database;
    this.#files = files;
  }

  tables(): Promise<TableEntry[]> {
    return this.#database.read(['tables'], (rows) => rows.all('tables'));
  }

  async lookup(name: string): Promise<string | undefined> {
    return (await get<Rows['tables']>(byteKey(name), this.#database.rows('tables')))?.id;
  }

  async createDir(_nowMs: number, expiresMs: number): Promise<string> {
    const id = newId();
    const work = async (rows: Transaction) => rows.put('dirs', id, { id, state: 'creating', expiresMs });
    await this.#database.write(['dirs'], work, { durability: 'relaxed' });
    return id;
  }

  publishDir(name: string, id: string): Promise<'published' | 'exists' | 'gone'> {
    return this.#database.write<'published' | 'exists' | 'gone'>(['tables', 'dirs'], async (rows) => {
      const dir = await rows.get('dirs', id);
      if (dir === undefined) return 'gone';
      if (dir.state !== 'creating') return 'published';
      if (!(await rows.add('tables', byteKey(name), { name, id }))) return 'exists';
      rows.put('dirs', id, { ...dir, state: 'live', expiresMs: 0, name });
      return 'published';
    });
  }

  renameDir(id: string, from: string, to: string): Promise<'renamed' | 'exists' | 'gone'> {
    return this.#database.write<'renamed' | 'exists' | 'gone'>(
      ['tables', 'dirs'],
      async (rows) => {
        const taken = await rows.get('tables', byteKey(to));
        if (taken !== undefined) return taken.id === id ? 'renamed' : 'exists';
        if ((await rows.get('tables', byteKey(from)))?.id !== id) return 'gone';
        rows.delete('tables', byteKey(from));
        rows.put('tables', byteKey(to), { name: to, id });
        const dir = await rows.get('dirs', id);
        rows.put('dirs', id, { ...dir, id, state: 'live', expiresMs: 0, name: to });
        return 'renamed';
      },
      { settles: (answer) => answer === 'renamed' },
    );
  }

  async dropDir(id: string): Promise<void> {
    await this.#database.write(['tables', 'dirs'], async (rows) => {
      const dir = await rows.get('dirs', id);
      if (dir === undefined || dir.state === 'dropped') return;
      if (dir.name !== undefined) rows.delete('tables', byteKey(dir.name));
      rows.put('dirs', id, { id, state: 'dropped', expiresMs: 0 });
    });
  }

  async sweep(nowMs: number): Promise<void> {
    const candidates = await this.#database.write(
      ['dirs', 'leases'],
      async (rows) => {
        await eachLease(rows, (id, lease) => {
          if (lease.expiresMs <= nowMs) rows.delete('leases', id);
        });
        return (await rows.all('dirs')).filter(({ state }) => state !== 'live').map(({ id }) => id);
      },
      { durability: 'relaxed' },
    );
    for (const id of candidates) await this.#sweepDir(id, nowMs);
    await this.#sweepWriting();
    const graves = await this.#database.read(['tombstones'], (rows) => rows.all('tombstones'));
    await this.#removeFiles(graves.map(({ file }) => file));
  }

  async put(dir: string, path: string, bytes: Uint8Array): Promise<void> {
    checkPath(path);
    const kept = bytes.slice();
    if (this.#files !== undefined && kept.length > SMALL_BYTES) {
      await (await this.#stream(dir, path, kept)).finish();
      return;
    }
    const by = newId();
    const buried = await this.#database.write(OBJECT_KINDS, async (rows) => {
      await checkWritable(rows, dir);
      return place(rows, { dir, path, by }, kept.length, { body: bodyOf(kept) });
    });
    await this.#removeFiles(buried);
  }

  async putIfAbsent(dir: string, path: string, bytes: Uint8Array): Promise<boolean> {
    checkPath(path);
    const kept = bytes.slice();
    if (this.#files !== undefined && kept.length > SMALL_BYTES) {
      return (await this.#stream(dir, path, kept)).finishIfAbsent();
    }
    const by = newId();
    return this.#database.write(
      OBJECT_KINDS,
      async (rows) => {
        await checkWritable(rows, dir);
        const row = { dir, path, by, sizeBytes: kept.length, modifiedMs: Date.now() };
        if (!(await rows.add('meta', objectKey(dir, path), row))) {
          return (await rows.get('meta', objectKey(dir, path)))?.by === by;
        }
        rows.put('body', objectKey(dir, path), bodyOf(kept));
        await noteChange(rows, dir, path);
        return true;
      },
      { settles: (isPut) => isPut },
    );
  }

  async writer(dir: string, path: string): Promise<ObjectWriter> {
    checkPath(path);
    return this.#writer(dir, path);
  }

  async get(dir: string, path: string): Promise<Uint8Array> {
    const [whole] = await this.#readObject(dir, path, (size) => [{ start: 0, end: size }]);
    return whole ?? new Uint8Array();
  }

  getRanges(dir: string, path: string, ranges: readonly number[]): Promise<Uint8Array[]> {
    return this.#readObject(dir, path, (size) => checkRanges(path, ranges, size));
  }

  async head(dir: string, path: string): Promise<ObjectMeta | undefined> {
    checkPath(path);
    const row = await get<Rows['meta']>(objectKey(dir, path), this.#database.rows('meta'));
    return row && metaOf(row);
  }

  async list(dir: string, prefix: string, options: ListOptions): Promise<Listing> {
    checkFolder(prefix);
    const fold = new ListingFold(prefix, options);
    const objects: ObjectMeta[] = [];
    // '0' follows '/': every path below a folder sorts before the folder's name with '0' behind it.
    const end = prefix === '' ? undefined : `${byteKey(prefix)}0`;
    let from = prefix === '' ? '' : `${byteKey(prefix)}/`;
    let isFromOpen = false;
    const after = options.after === undefined ? '' : byteKey(options.after);
    if (after >= from) [from, isFromOpen] = [after, true];
    const batchRows = Math.min(BATCH_ROWS, Math.max(1, options.limit ?? BATCH_ROWS));
    await this.#database.read(['meta'], async (rows) => {
      while (!fold.isFull && (end === undefined || from < end)) {
        const range = IDBKeyRange.bound([dir, from], [dir, end ?? []], isFromOpen, true);
        const batch = await rows.all('meta', range, batchRows);
        let skipTo: string | undefined;
        for (const row of batch) {
          if (skipTo !== undefined && byteKey(row.path) < skipTo) continue;
          const next = fold.next(row.path);
          if (next.kind === 'object') objects.push(metaOf(row));
          if (next.kind === 'folder') skipTo = `${byteKey(next.folder)}0`;
        }
        const last = batch.at(-1);
        if (last === undefined || batch.length < batchRows) return;
        [from, isFromOpen] = [byteKey(last.path), true];
        if (skipTo !== undefined && skipTo > from) [from, isFromOpen] = [skipTo, false];
      }
    });
    return { objects, folders: fold.folders() };
  }

  async delete(dir: string, path: string): Promise<'deleted' | 'busy'> {
    checkPath(path);
    const buried = await this.#database.write([...OBJECT_KINDS, 'writing'], async (rows) => {
      const streams = await rows.all('writing', below(dir, byteKey(path)));
      rows.delete('writing', below(dir, byteKey(path)));
      const row = await rows.get('meta', objectKey(dir, path));
      if (row !== undefined) {
        rows.delete('meta', objectKey(dir, path));
        rows.delete('body', objectKey(dir, path));
        await noteChange(rows, dir, path);
      }
      // A stream's file is held open by its writer; it goes when that one ends.
      bury(rows, streams);
      return row === undefined ? [] : bury(rows, [row]);
    });
    return (await this.#removeFiles(buried)).length === 0 ? 'deleted' : 'busy';
  }

  async token(dir: string, folder: string): Promise<string> {
    checkFolder(folder);
    return this.#database.read(['dirs', 'tokens'], async (rows) => {
      const [isThere, count] = await Promise.all([rows.has('dirs', dir), rows.get('tokens', objectKey(dir, folder))]);
      if (!isThere) throw noDirectory(dir);
      return String(count ?? 0);
    });
  }

  async commit({ dir, objects, publish, token, requires, replaces }: CommitRequest): Promise<CommitOutcome> {
    for (const path of [publish.path, ...objects.map((object) => object.path), ...requires]) checkPath(path);
    const own = new Set(objects.map(({ path }) => path));
    const kept = [...objects, publish].map(({ path, bytes }) => ({ path, bytes: bytes.slice() }));
    const by = newId();
    const buried: string[] = [];
    const outcome = await this.#database.write<CommitOutcome>(
      OBJECT_KINDS,
      async (rows) => {
        const folder = objectKey(dir, parentOf(publish.path));
        const [row, taken, count] = await Promise.all([
          rows.get('dirs', dir),
          rows.get('meta', objectKey(dir, publish.path)),
          rows.get('tokens', folder),
        ]);
        // A table being created commits its first version before it is live.
        if (row === undefined || row.state === 'dropped') return { kind: 'gone' };
        if (taken !== undefined) return { kind: taken.by === by ? 'committed' : 'exists' };
        if (String(count ?? 0) !== token) return { kind: 'moved' };
        const needed = requires.filter((path) => !own.has(path));
        const found = await Promise.all(needed.map((path) => rows.has('meta', objectKey(dir, path))));
        const missing = needed.find((_, index) => found[index] === false);
        if (missing !== undefined) return { kind: 'missing', path: missing };
        if (replaces !== undefined) {
          rows.put('dirs', dir, { ...row, pins: (row.pins ?? 0) + 1, replaced: replaces });
        }
        for (const { path, bytes } of kept) {
          buried.push(...(await place(rows, { dir, path, by }, bytes.length, { body: bodyOf(bytes) })));
        }
        return { kind: 'committed' };
      },
      { settles: ({ kind }) => kind === 'committed' },
    );
    await this.#removeFiles(buried);
    return outcome;
  }

  async lease({ dir, kind, version, manifest, expiresMs }: LeaseRequest): Promise<LeaseOutcome> {
    const id = newId();
    const work = async (rows: Transaction): Promise<LeaseOutcome> => {
      const [row, hasManifest] = await Promise.all([rows.get('dirs', dir), rows.has('meta', objectKey(dir, manifest))]);
      if (row?.state !== 'live') return { kind: 'gone' };
      if (!hasManifest) return { kind: 'missing' };
      rows.put('leases', id, { dir, kind, version, expiresMs });
      return { kind: 'taken', id, replaced: row.replaced ?? 0 };
    };
    return this.#database.write(['dirs', 'meta', 'leases'], work, { durability: 'relaxed' });
  }

  renew(lease: string, nowMs: number, expiresMs: number): Promise<boolean> {
    const work = async (rows: Transaction): Promise<boolean> => {
      const [held, dir] = await Promise.all([rows.get('leases', lease), rows.get('dirs', lease)]);
      if (dir?.state === 'creating') {
        if (dir.expiresMs > nowMs) rows.put('dirs', lease, { ...dir, expiresMs });
        return dir.expiresMs > nowMs;
      }
      if (held === undefined) return false;
      if (held.expiresMs > nowMs) rows.put('leases', lease, { ...held, expiresMs });
      else rows.delete('leases', lease);
      return held.expiresMs > nowMs;
    };
    return this.#database.write(['dirs', 'leases'], work, { durability: 'relaxed' });
  }

  async release(lease: string): Promise<void> {
    const work = async (rows: Transaction) => rows.delete('leases', lease);
    await this.#database.write(['leases'], work, { durability: 'relaxed' });
  }

  leases(dir: string, nowMs: number): Promise<LiveLease[]> {
    return this.#database.write(['leases'], (rows) => liveLeases(rows, dir, nowMs), { durability: 'relaxed' });
  }

  async pins(dir: string): Promise<string> {
    const row = await get<Rows['dirs']>(dir, this.#database.rows('dirs'));
    if (row === undefined) throw noDirectory(dir);
    return String(row.pins ?? 0);
  }

  async putRef({ dir, path, bytes, manifest, mode }: RefRequest): Promise<RefOutcome> {
    checkPath(path);
    const kept = bytes.slice();
    const by = newId();
    const buried: string[] = [];
    const outcome = await this.#database.write<RefOutcome>(
      OBJECT_KINDS,
      async (rows) => {
        const [row, hasManifest, old] = await Promise.all([
          rows.get('dirs', dir),
          rows.has('meta', objectKey(dir, manifest)),
          rows.get('meta', objectKey(dir, path)),
        ]);
        if (row?.state !== 'live') return 'gone';
        if (old?.by === by) return 'written';
        if (!hasManifest) return 'missing';
        if ((old !== undefined) !== (mode === 'replace')) return old === undefined ? 'absent' : 'exists';
        buried.push(...(await place(rows, { dir, path, by }, kept.length, { body: bodyOf(kept) })));
        return 'written';
      },
      { settles: (answer) => answer === 'written' },
    );
    await this.#removeFiles(buried);
    return outcome;
  }

  async remove(request: RemoveRequest): Promise<RemoveOutcome> {
    for (const path of [...request.manifests, ...request.files]) checkPath(path);
    let taken: Taken | undefined;
    const outcome = await this.#database.write([...OBJECT_KINDS, 'leases'], async (rows) => {
      const answer = await takeRows(rows, request, taken);
      if (!('kind' in answer)) taken = answer;
      return answer;
    });
    if ('kind' in outcome) return outcome;
    const busy = new Set(await this.#removeFiles(outcome.objects.flatMap(({ file }) => file ?? [])));
    const isGone = ({ file }: Rows['meta']) => file === undefined || !busy.has(file);
    const bytes = outcome.objects.filter(isGone).reduce((total, { sizeBytes }) => total + sizeBytes, 0);
    return { kind: 'removed', manifests: outcome.manifests, bytes, busy: busy.size };
  }

  async turn(dir: string, waitMs: number): Promise<Turn | undefined> {
    const name = `${this.#database.name}:turn:${dir}`;
    const locks = webLocks();
    if (locks === undefined) return localTurns.take(name, waitMs);
    return new Promise((resolve, reject) => {
      const held = () =>
        new Promise<void>((release) => {
          resolve({ release });
        });
      locks.request(name, { signal: AbortSignal.timeout(waitMs) }, held).catch((error: unknown) => {
        if (isName(error, 'TimeoutError', 'AbortError')) resolve(undefined);
        else reject(asStorageError(error, name));
      });
    });
  }

  async close(): Promise<void> {
    await this.#database.close();
    await this.#files?.close();
    await this.#holder;
    this.#releaseHolder?.();
  }

  // ---- bodies ----

  async #readObject(
    dir: string,
    path: string,
    rangesOf: (size: number) => { start: number; end: number }[],
  ): Promise<Uint8Array[]> {
    checkPath(path);
    const key = objectKey(dir, path);
    for (let attempt = 1; ; attempt += 1) {
      const [row, body] = await this.#database.read(['meta', 'body'], (rows) =>
        Promise.all([rows.get('meta', key), rows.get('body', key)]),
      );
      if (row === undefined) throw noObject(path);
      const ranges = rangesOf(row.sizeBytes);
      try {
        if (row.file !== undefined) return await this.#fileOf(path).read(row.file, ranges);
        return await readBody(body, ranges);
      } catch (error) {
        // Between the row and the bytes somebody deleted or replaced the object: the row says which.
        if (attempt < 3 && isName(error, 'NotFoundError', 'NotReadableError')) continue;
        throw asStorageError(error, path);
      }
    }
  }

  #fileOf(path: string): BodyFiles {
    if (this.#files !== undefined) return this.#files;
    throw filesUnavailable(path);
  }

  async #stream(dir: string, path: string, bytes: Uint8Array): Promise<RowWriter> {
    const writer = await this.#writer(dir, path);
    try {
      await writer.write(bytes);
      return writer;
    } catch (error) {
      await writer.abort();
      throw error;
    }
  }

  async #writer(dir: string, path: string): Promise<RowWriter> {
    const id = newId();
    const holder = await (this.#holder ??= this.#hold());
    const file = this.#files === undefined ? {} : { file: id };
    const work = async (rows: Transaction) => {
      await checkWritable(rows, dir);
      rows.put('writing', [dir, byteKey(path), id], { dir, path, id, holder, ...file });
    };
    await this.#database.write(['dirs', 'writing'], work, { durability: 'relaxed' });
    return new RowWriter(this.#database, this.#files, { dir, path, by: id }, (files) => this.#removeFiles(files));
  }

  /** Takes a Web Lock for the life of this store: what it was writing is known to be abandoned when nobody holds it. */
  async #hold(): Promise<string> {
    const locks = webLocks();
    if (locks === undefined) return '';
    const name = `${this.#database.name}:writer:${newId()}`;
    return new Promise((resolve) => {
      const held = () =>
        new Promise<void>((release) => {
          this.#releaseHolder = release;
          resolve(name);
        });
      // Where locks are refused, what is abandoned stays until its directory goes.
      locks.request(name, held).catch(() => resolve(''));
    });
  }

  /** Removes files whose rows are gone, and their tombstones; those that are still held open. */
  async #removeFiles(files: readonly string[]): Promise<string[]> {
    if (files.length === 0 || this.#files === undefined) return [...files];
    const removed = await this.#files.remove(files);
    const work = async (rows: Transaction) => {
      for (const file of removed) rows.delete('tombstones', file);
    };
    if (removed.length > 0) await this.#database.write(['tombstones'], work, { durability: 'relaxed' });
    const gone = new Set(removed);
    return files.filter((file) => !gone.has(file));
  }

  /** Checks and deletes in one transaction, so that no lease is taken in between. */
  async #sweepDir(id: string, nowMs: number): Promise<void> {
    await this.#database.write([...OBJECT_KINDS, 'writing', 'leases'], async (rows) => {
      const dir = await rows.get('dirs', id);
      if (dir === undefined || dir.state === 'live' || (dir.state === 'creating' && dir.expiresMs > nowMs)) return;
      let isLeased = false;
      await eachLease(rows, (_, lease) => (isLeased ||= lease.dir === id && lease.expiresMs > nowMs));
      if (isLeased) return;
      bury(rows, await rows.files(id));
      bury(rows, await rows.all('writing', below(id)));
      for (const kind of ['meta', 'body', 'tokens', 'writing'] as const) rows.delete(kind, below(id));
      rows.delete('dirs', id);
    });
  }

  /** Streams whose store was closed or whose tab is gone leave their rows. */
  async #sweepWriting(): Promise<void> {
    const locks = webLocks();
    if (locks === undefined) return;
    // The rows first: a lock is held before its first row is written, so a row whose lock is not held now has no writer.
    const streams = await this.#database.read(['writing'], (rows) => rows.all('writing'));
    if (streams.length === 0) return;
    const held = new Set((await locks.query()).held?.map(({ name }) => name));
    const abandoned = streams.filter(({ holder }) => holder !== '' && !held.has(holder));
    if (abandoned.length === 0) return;
    await this.#database.write(['writing', 'tombstones'], async (rows) => {
      for (const { dir, path, id } of abandoned) rows.delete('writing', [dir, byteKey(path), id]);
      bury(rows, abandoned);
    });
  }
}

function webLocks(): LockManager | undefined {
  return (globalThis.navigator as Partial<Navigator> | undefined)?.locks;
}

export function filesUnavailable(what: string): LanceError {
  const message = `the bytes of ${what} are in the origin private file system, which can't be used here`;
  return new LanceError('UNAVAILABLE', message, { path: what });
}
