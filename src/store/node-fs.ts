/**
 * A folder of a file system: table `t` is the folder `t.lance`, as LanceDB lays it out, byte for byte; a folder that LanceDB made is a
 * table here. What else the contract keeps lies below `.lancelet/`:
 *
 *   lock.<n>                 who may move names and finish writes (`node-lock.ts`)
 *   creating/<expiry>-<id>   directories without a name yet
 *   dropped/<id>             directories whose name was taken away, until no lease holds them
 *   trash/                   what `sweep` is removing
 *   leases/<id>              JSON
 *   dirs/<id>                JSON: what replaced the content of a directory
 *   tmp/                     files being written, invisible until linked or renamed to their place
 *
 * A directory's id is the identity of its folder: device, inode and time of birth. It stays when the folder is renamed, and a folder that
 * somebody removed and made again has another.
 *
 * LanceDB may write into the same tables at any time and knows no lock of ours: what it writes is never hidden or moved, and a commit
 * publishes by `link`, which fails if the name is taken by anybody. Reads take no lock: they open first and then look whether the folder
 * is still the one they mean.
 */
import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { link, mkdir, open, realpath, rename, type FileHandle } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { LanceError } from '../errors';
import { selectPaths } from './listing';
import { commitStaged } from './node-commit';
import {
  asLanceError,
  discard,
  fileNames,
  identityOf,
  isCode,
  isScratch,
  makingFolders,
  metaOf,
  namesIn,
  openFile,
  pathsBelow,
  readRange,
  removeForGood,
  syncFolder,
  tokenOf,
  writeAll,
} from './node-files';
import { FolderLock, isLeftover, scratchName, type LockOptions } from './node-lock';
import { expiryOf, isTableName, Places } from './node-places';
import { Records, removeObjects } from './node-records';
import { NodeWriter } from './node-writer';
import { byteKey, checkFolder, checkPath, checkRanges, compareKeys, sortPaths } from './path';
import { noDirectory, noObject, storeClosed } from './refusals';
import { leaseRefusal } from './removal';
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

/** Fairness is among the writers of this process; processes take the lock as they come. */
const turns = new TurnQueue();

/** Opens the store of a folder, by its path or `file:` URL. The folder is made when something is first written. */
export async function openNodeStore(folder: string, options: LockOptions = {}): Promise<Store> {
  const root = resolve(/^file:/i.test(folder) ? pathOf(folder) : folder);
  // One folder must have one lock, whatever way its name is spelt.
  const real = await realpath(root).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return root;
    throw asLanceError(error, root);
  });
  return new NodeStore(real, options);
}

function pathOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw new LanceError('INVALID_INPUT', `${url} names no folder: ${String(error)}`, {}, { cause: error });
  }
}

class NodeStore implements Store {
  readonly #root: string;
  readonly #own: string;
  readonly #lock: FolderLock;
  readonly #places: Places;
  readonly #records: Records;
  #prepared: Promise<void> | undefined;
  #isClosed = false;

  constructor(root: string, options: LockOptions) {
    this.#root = root;
    this.#own = join(root, '.lancelet');
    this.#places = new Places(root, this.#own);
    this.#records = new Records(this.#own, () => this.#newScratch(''));
    this.#lock = new FolderLock(this.#own, join(this.#own, 'tmp'), options);
  }

  tables(): Promise<TableEntry[]> {
    return this.#run(async () => {
      const entries: TableEntry[] = [];
      for (const name of await this.#places.tableNames()) {
        const id = await identityOf(this.#places.tablePath(name));
        if (id !== undefined) entries.push({ name, id });
      }
      return entries.sort((a, b) => compareKeys(byteKey(a.name), byteKey(b.name)));
    });
  }

  lookup(name: string): Promise<string | undefined> {
    return this.#run(async () => (isTableName(name) ? identityOf(this.#places.tablePath(name)) : undefined));
  }

  createDir(_nowMs: number, expiresMs: number): Promise<string> {
    return this.#run(async () => {
      await this.#prepare();
      const path = this.#places.creatingPath(expiresMs);
      await mkdir(path);
      const id = await identityOf(path);
      if (id === undefined) throw new LanceError('STORAGE', `${path} vanished as it was made`, { path });
      this.#places.note(id, { path, state: 'creating' });
      return id;
    });
  }

  publishDir(name: string, id: string): Promise<'published' | 'exists' | 'gone'> {
    return this.#locked(async () => {
      checkTableName(name);
      const place = await this.#places.locate(id);
      if (place === undefined) return 'gone';
      if (place.state !== 'creating') return 'published';
      if (!(await this.#places.move(id, place, name))) return 'exists';
      return 'published';
    });
  }

  renameDir(id: string, from: string, to: string): Promise<'renamed' | 'exists' | 'gone'> {
    return this.#locked(async () => {
      checkTableName(to);
      const taken = await identityOf(this.#places.tablePath(to));
      if (taken === id) return 'renamed';
      const place = isTableName(from) ? { path: this.#places.tablePath(from), state: 'live' as const } : undefined;
      const isThere = place !== undefined && (await identityOf(place.path)) === id;
      if (taken !== undefined) return 'exists';
      if (!isThere) return 'gone';
      return (await this.#places.move(id, place, to)) ? 'renamed' : 'exists';
    });
  }

  dropDir(id: string): Promise<void> {
    return this.#locked(async () => {
      const place = await this.#places.locate(id);
      if (place === undefined || place.state === 'dropped') return;
      const path = this.#places.droppedPath(id);
      await rename(place.path, path);
      this.#places.note(id, { path, state: 'dropped' });
      await syncFolder(dirname(path));
      await syncFolder(this.#root);
    });
  }

  async sweep(nowMs: number): Promise<void> {
    await this.#locked(async () => {
      const leased = new Set((await this.#records.liveLeases(nowMs)).map(({ dir }) => dir));
      for (const name of await namesIn(join(this.#own, 'creating'))) {
        if (expiryOf(name) <= nowMs) await this.#discardFolder(join(this.#own, 'creating', name));
      }
      for (const id of await namesIn(join(this.#own, 'dropped'))) {
        if (!leased.has(id)) await this.#discardFolder(this.#places.droppedPath(id));
      }
      await this.#records.sweep(async (dir) => (await this.#places.locate(dir)) !== undefined);
    });
    await this.#run(async () => {
      for (const name of await namesIn(join(this.#own, 'trash'))) await removeForGood(join(this.#own, 'trash', name));
      for (const name of await namesIn(this.#scratch)) {
        if (await isLeftover(name)) await discard(join(this.#scratch, name));
      }
    });
  }

  put(dir: string, path: string, bytes: Uint8Array): Promise<void> {
    const kept = bytes.slice();
    return this.#run(async () => {
      checkOwnPath(path);
      const staged = await this.#stage(kept);
      try {
        await this.#settle(dir, path, (target) => rename(staged, target));
      } finally {
        await discard(staged);
      }
    });
  }

  putIfAbsent(dir: string, path: string, bytes: Uint8Array): Promise<boolean> {
    const kept = bytes.slice();
    return this.#run(async () => {
      checkOwnPath(path);
      const staged = await this.#stage(kept);
      try {
        await this.#settle(dir, path, (target) => link(staged, target));
        return true;
      } catch (error) {
        if (isCode(error, 'EEXIST')) return false;
        throw error;
      } finally {
        await discard(staged);
      }
    });
  }

  writer(dir: string, path: string): Promise<ObjectWriter> {
    return this.#run(async () => {
      checkOwnPath(path);
      await this.#prepare();
      await this.#places.writable(dir);
      // The file is the row of the write under way: the name says of what, so that a delete of the path finds it.
      const staged = await this.#newScratch(writingSuffix(dir, path));
      const file = await open(staged, 'wx');
      const settle = () => this.#run(() => this.#settle(dir, path, (target) => rename(staged, target)));
      return new NodeWriter(path, staged, file, settle);
    });
  }

  get(dir: string, path: string): Promise<Uint8Array> {
    return this.#read(dir, path, async (file) => {
      const bytes = await file.readFile();
      return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    });
  }

  getRanges(dir: string, path: string, ranges: readonly number[]): Promise<Uint8Array[]> {
    return this.#read(dir, path, (file, size) => {
      return Promise.all(checkRanges(path, ranges, size).map(({ start, end }) => readRange(file, path, start, end)));
    });
  }

  head(dir: string, path: string): Promise<ObjectMeta | undefined> {
    return this.#run(async () => {
      checkPath(path);
      return this.#places.look(dir, (place) => metaOf(place.path, path));
    });
  }

  list(dir: string, prefix: string, options: ListOptions): Promise<Listing> {
    return this.#run(async () => {
      checkFolder(prefix);
      const listing = await this.#places.look(dir, async (place) => {
        const found = sortPaths(await pathsBelow(place.path, prefix, options));
        const { paths, folders } = selectPaths(found, prefix, options);
        const metas = await Promise.all(paths.map((path) => metaOf(place.path, path)));
        return { objects: metas.filter((meta) => meta !== undefined), folders };
      });
      return listing ?? { objects: [], folders: [] };
    });
  }

  /** Not flushed: a file that a loss of power brings back is one that nothing names, and file systems keep the order of deletes. */
  delete(dir: string, path: string): Promise<'deleted' | 'busy'> {
    return this.#locked<'deleted' | 'busy'>(async () => {
      checkPath(path);
      const suffix = writingSuffix(dir, path);
      for (const name of await namesIn(this.#scratch)) {
        if (name.endsWith(suffix)) await discard(join(this.#scratch, name));
      }
      const place = await this.#places.locate(dir);
      const isFile = place !== undefined && (await metaOf(place.path, path)) !== undefined;
      if (isFile) await discard(join(place.path, path));
      return 'deleted';
    });
  }

  token(dir: string, folder: string): Promise<string> {
    return this.#run(async () => {
      checkFolder(folder);
      const token = await this.#places.look(dir, async (place) => tokenOf(await fileNames(join(place.path, folder))));
      if (token === undefined) throw noDirectory(dir);
      return token;
    });
  }

  commit({ dir, objects, publish, token, requires, replaces }: CommitRequest): Promise<CommitOutcome> {
    const kept = [publish, ...objects].map(({ path, bytes }) => ({ path, bytes: bytes.slice() }));
    return this.#run(async () => {
      for (const path of [...kept.map((object) => object.path), ...requires]) checkOwnPath(path);
      // Written and flushed before the lock is taken.
      const staging = kept.map(async ({ path, bytes }) => ({ path, file: await this.#stage(bytes) }));
      try {
        const [manifest, ...staged] = await Promise.all(staging);
        if (manifest === undefined) throw new LanceError('INTERNAL', 'a commit without a manifest');
        return await this.#lock.hold<CommitOutcome>(async () => {
          const place = await this.#places.locate(dir);
          if (place === undefined || place.state === 'dropped') return { kind: 'gone' };
          const newScratch = () => this.#newScratch('-old');
          const commit = () => commitStaged(place.path, { objects: staged, manifest, token, requires, newScratch });
          if (replaces === undefined) return commit();
          return this.#records.replacing(dir, place, { version: replaces, manifest: manifest.path }, commit);
        });
      } finally {
        const settled = await Promise.allSettled(staging);
        for (const stage of settled) if (stage.status === 'fulfilled') await discard(stage.value.file);
      }
    });
  }

  lease({ dir, kind, version, manifest, expiresMs }: LeaseRequest): Promise<LeaseOutcome> {
    return this.#locked(async () => {
      checkPath(manifest);
      const place = await this.#places.locate(dir);
      if (place?.state !== 'live') return { kind: 'gone' };
      if ((await metaOf(place.path, manifest)) === undefined) return { kind: 'missing' };
      const id = randomUUID();
      await this.#records.putLease(id, { dir, kind, version, expiresMs });
      return { kind: 'taken', id, replaced: await this.#records.replaced(dir, place) };
    });
  }

  renew(lease: string, nowMs: number, expiresMs: number): Promise<boolean> {
    return this.#locked(async () => {
      const place = /^[\w-]+$/.test(lease) ? await this.#places.locate(lease) : undefined;
      if (place?.state === 'creating') {
        if (expiryOf(place.path) <= nowMs) return false;
        const path = this.#places.creatingPath(expiresMs);
        await rename(place.path, path);
        this.#places.note(lease, { path, state: 'creating' });
        return true;
      }
      const row = await this.#records.lease(lease);
      if (row === undefined) return false;
      if (row.expiresMs > nowMs) await this.#records.putLease(lease, { ...row, expiresMs });
      else await this.#records.endLease(lease);
      return row.expiresMs > nowMs;
    });
  }

  release(lease: string): Promise<void> {
    // Under the lock, so that a renewal under way does not write it again.
    return this.#locked(() => this.#records.endLease(lease));
  }

  leases(dir: string, nowMs: number): Promise<LiveLease[]> {
    return this.#locked(async () => {
      const own = (await this.#records.liveLeases(nowMs)).filter((lease) => lease.dir === dir);
      return own.map(({ kind, version }) => ({ kind, version }));
    });
  }

  pins(dir: string): Promise<string> {
    return this.#run(async () => {
      const pins = await this.#places.look(dir, (place) => this.#records.pins(dir, place));
      if (pins === undefined) throw noDirectory(dir);
      return pins;
    });
  }

  putRef({ dir, path, bytes, manifest, mode }: RefRequest): Promise<RefOutcome> {
    const kept = bytes.slice();
    return this.#run(async () => {
      checkOwnPath(path);
      checkPath(manifest);
      const staged = await this.#stage(kept);
      try {
        return await this.#lock.hold<RefOutcome>(async () => {
          const place = await this.#places.locate(dir);
          if (place?.state !== 'live') return 'gone';
          if ((await metaOf(place.path, manifest)) === undefined) return 'missing';
          const target = join(place.path, path);
          const isThere = (await metaOf(place.path, path)) !== undefined;
          if (mode === 'replace' && !isThere) return 'absent';
          const move = mode === 'replace' ? rename : link;
          try {
            await makingFolders(place.path, path, () => move(staged, target));
          } catch (error) {
            // LanceDB, which knows no lock, was faster.
            if (isCode(error, 'EEXIST')) return 'exists';
            throw error;
          }
          await syncFolder(dirname(target));
          return 'written';
        });
      } finally {
        await discard(staged);
      }
    });
  }

  remove(request: RemoveRequest): Promise<RemoveOutcome> {
    return this.#locked<RemoveOutcome>(async () => {
      for (const path of [...request.manifests, ...request.files]) checkPath(path);
      const place = await this.#places.locate(request.dir);
      if (place?.state !== 'live') return { kind: 'gone' };
      const live = (await this.#records.liveLeases(request.nowMs)).filter(({ dir }) => dir === request.dir);
      const refusal = leaseRefusal(request, live);
      if (refusal !== undefined) return refusal;
      if ((await this.#records.pins(request.dir, place)) !== request.pins) return { kind: 'moved' };
      return removeObjects(place.path, request);
    });
  }

  turn(dir: string, waitMs: number): Promise<Turn | undefined> {
    return this.#run(() => turns.take(`${this.#root}\0${dir}`, waitMs));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#lock.close();
  }

  // ---- the steps of operations ----

  async #run<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw storeClosed();
    try {
      return await operation();
    } catch (error) {
      throw asLanceError(error, this.#root);
    }
  }

  #locked<T>(critical: () => Promise<T>): Promise<T> {
    return this.#run(async () => {
      await this.#prepare();
      return this.#lock.hold(critical);
    });
  }

  /** Brings a finished file to its place by `move`, durably. */
  async #settle(dir: string, path: string, move: (target: string) => Promise<void>): Promise<void> {
    const folder = await this.#lock.hold(async () => {
      const place = await this.#places.writable(dir);
      const target = join(place.path, path);
      await makingFolders(place.path, path, () => move(target));
      // Opened under the lock: afterwards the path may be another's. It is flushed without the lock.
      return open(dirname(target), constants.O_RDONLY);
    });
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }

  /** Reads one file without the lock. */
  #read<T>(dir: string, path: string, use: (file: FileHandle, size: number) => Promise<T>): Promise<T> {
    return this.#run(async () => {
      checkPath(path);
      const file = await this.#places.look(
        dir,
        (place) => openFile(join(place.path, path)),
        (found) => found?.close(),
      );
      if (file === undefined) throw noObject(path);
      try {
        const status = await file.stat();
        if (!status.isFile()) throw noObject(path);
        return await use(file, status.size);
      } finally {
        await file.close();
      }
    });
  }

  /** Out of reach at once, by a rename; the bytes go afterwards. */
  async #discardFolder(path: string): Promise<void> {
    await rename(path, join(this.#own, 'trash', randomUUID()));
  }

  async #stage(bytes: Uint8Array): Promise<string> {
    await this.#prepare();
    const path = await this.#newScratch('');
    const file = await open(path, 'wx');
    try {
      await writeAll(file, bytes);
      await file.datasync();
    } catch (error) {
      await discard(path);
      throw error;
    } finally {
      await file.close();
    }
    return path;
  }

  #prepare(): Promise<void> {
    this.#prepared ??= (async () => {
      for (const name of ['creating', 'dropped', 'trash', 'leases', 'dirs', 'tmp']) {
        await mkdir(join(this.#own, name), { recursive: true });
      }
      await syncFolder(this.#own);
      await syncFolder(this.#root);
    })();
    this.#prepared.catch(() => (this.#prepared = undefined));
    return this.#prepared;
  }

  async #newScratch(suffix: string): Promise<string> {
    return join(this.#scratch, await scratchName(suffix));
  }

  get #scratch(): string {
    return join(this.#own, 'tmp');
  }
}

/** A path that an object can have here. */
function checkOwnPath(path: string): void {
  checkPath(path);
  if (isScratch(path))
    throw new LanceError('INVALID_INPUT', `names like that of ${path} are kept for unfinished files`);
}

function writingSuffix(dir: string, path: string): string {
  return `-${createHash('sha256').update(`${dir}\0${path}`).digest('hex').slice(0, 24)}`;
}

function checkTableName(name: string): void {
  if (!isTableName(name)) throw new LanceError('INVALID_INPUT', `${JSON.stringify(name)} can't be the name of a table`);
}
