/**
 * A folder of a file system: table `t` is the folder `t.lance`, as LanceDB lays it out, byte for byte; a folder that LanceDB made is a
 * table here. What else the contract keeps lies below `.lancelet/`:
 *
 *   lock.<n>                 who may move names and finish writes (`node-lock.ts`)
 *   creating/<expiry>-<id>   directories without a name yet
 *   dropped/<id>             directories whose name was taken away, until no lease holds them
 *   trash/                   what `sweep` is removing
 *   leases/<id>              JSON
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
import { link, lstat, mkdir, open, readdir, readFile, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { realpath } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

import { LanceError } from '../errors';
import { selectPaths } from './listing';
import { discard, FolderLock, isCode, isLeftover, scratchName, type LockOptions } from './node-lock';
import { byteKey, checkFolder, checkPath, checkRanges, compareKeys, isBelow, parentOf, sortPaths } from './path';
import { noDirectory, noObject, storeClosed, writerEnded, writeTakenAway } from './refusals';
import type {
  CommitOutcome,
  CommitRequest,
  LeaseOutcome,
  LeaseRequest,
  Listing,
  ListOptions,
  ObjectMeta,
  ObjectWriter,
  Store,
  TableEntry,
  Turn,
} from './store';
import { TurnQueue } from './turns';

/** Where a directory is now. */
interface Place {
  readonly path: string;
  readonly state: 'creating' | 'live' | 'dropped';
}

interface Lease {
  readonly dir: string;
  readonly kind: string;
  readonly version: number;
  readonly expiresMs: number;
}

const SUFFIX = '.lance';
const SCRATCH_PREFIX = '.tmp-';
/** Longer than the step of any clock that stamps a folder's birth. */
const BIRTH_STEP_MS = 50;

/** Fairness is among the writers of this process; processes take the lock as they come. */
const turns = new TurnQueue();

/** Opens the store of a folder. The folder is made when something is first written. */
export async function openNodeStore(folder: string, options: LockOptions = {}): Promise<Store> {
  const root = resolve(folder);
  // One folder must have one lock, whatever way its name is spelt.
  const real = await realpath(root).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return root;
    throw asLanceError(error, root);
  });
  return new NodeStore(real, options);
}

class NodeStore implements Store {
  readonly #root: string;
  readonly #own: string;
  readonly #lock: FolderLock;
  /** Where each directory was when it was last seen. */
  readonly #places = new Map<string, Place>();
  #prepared: Promise<void> | undefined;
  #isClosed = false;

  constructor(root: string, options: LockOptions) {
    this.#root = root;
    this.#own = join(root, '.lancelet');
    this.#lock = new FolderLock(this.#own, join(this.#own, 'tmp'), options);
  }

  tables(): Promise<TableEntry[]> {
    return this.#run(async () => {
      const entries: TableEntry[] = [];
      for (const name of await this.#tableNames()) {
        const id = await identityOf(this.#tablePath(name));
        if (id !== undefined) entries.push({ name, id });
      }
      return entries.sort((a, b) => compareKeys(byteKey(a.name), byteKey(b.name)));
    });
  }

  lookup(name: string): Promise<string | undefined> {
    return this.#run(async () => (isTableName(name) ? identityOf(this.#tablePath(name)) : undefined));
  }

  createDir(_nowMs: number, expiresMs: number): Promise<string> {
    return this.#run(async () => {
      await this.#prepare();
      const path = this.#creatingPath(expiresMs);
      await mkdir(path);
      const id = await identityOf(path);
      if (id === undefined) throw new LanceError('STORAGE', `${path} vanished as it was made`, { path });
      this.#places.set(id, { path, state: 'creating' });
      return id;
    });
  }

  publishDir(name: string, id: string): Promise<'published' | 'exists' | 'gone'> {
    return this.#locked(async () => {
      checkTableName(name);
      const place = await this.#locate(id);
      if (place === undefined) return 'gone';
      if (place.state !== 'creating') return 'published';
      if (!(await this.#move(id, place, name))) return 'exists';
      return 'published';
    });
  }

  renameDir(id: string, from: string, to: string): Promise<'renamed' | 'exists' | 'gone'> {
    return this.#locked(async () => {
      checkTableName(to);
      const taken = await identityOf(this.#tablePath(to));
      if (taken === id) return 'renamed';
      const place = isTableName(from) ? { path: this.#tablePath(from), state: 'live' as const } : undefined;
      const isThere = place !== undefined && (await identityOf(place.path)) === id;
      if (taken !== undefined) return 'exists';
      if (!isThere) return 'gone';
      return (await this.#move(id, place, to)) ? 'renamed' : 'exists';
    });
  }

  dropDir(id: string): Promise<void> {
    return this.#locked(async () => {
      const place = await this.#locate(id);
      if (place === undefined || place.state === 'dropped') return;
      const path = this.#droppedPath(id);
      await rename(place.path, path);
      this.#places.set(id, { path, state: 'dropped' });
      await syncFolder(dirname(path));
      await syncFolder(this.#root);
    });
  }

  async sweep(nowMs: number): Promise<void> {
    await this.#locked(async () => {
      const leased = new Set<string>();
      for (const lease of await namesIn(join(this.#own, 'leases'))) {
        const row = await this.#readLease(lease);
        if (row !== undefined && row.expiresMs > nowMs) leased.add(row.dir);
        else await discard(this.#leasePath(lease));
      }
      for (const name of await namesIn(join(this.#own, 'creating'))) {
        if (expiryOf(name) <= nowMs) await this.#discardFolder(join(this.#own, 'creating', name));
      }
      for (const id of await namesIn(join(this.#own, 'dropped'))) {
        if (!leased.has(id)) await this.#discardFolder(this.#droppedPath(id));
      }
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
      checkPath(path);
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
      checkPath(path);
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
      checkPath(path);
      await this.#prepare();
      await this.#writable(dir);
      // The file is the row of the write under way: the name says of what, so that a delete of the path finds it.
      const staged = join(this.#scratch, await scratchName(writingSuffix(dir, path)));
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
      return this.#look(dir, (place) => metaOf(place.path, path));
    });
  }

  list(dir: string, prefix: string, options: ListOptions): Promise<Listing> {
    return this.#run(async () => {
      checkFolder(prefix);
      const listing = await this.#look(dir, async (place) => {
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
      const place = await this.#locate(dir);
      const isFile = place !== undefined && (await metaOf(place.path, path)) !== undefined;
      if (isFile) await discard(join(place.path, path));
      return 'deleted';
    });
  }

  token(dir: string, folder: string): Promise<string> {
    return this.#run(async () => {
      checkFolder(folder);
      const token = await this.#look(dir, async (place) => tokenOf(await fileNames(join(place.path, folder))));
      if (token === undefined) throw noDirectory(dir);
      return token;
    });
  }

  /**
   * 1. Write and flush the bytes of everything in the scratch folder. 2. Under the lock: the checks. 3. Rename the objects to their
   * places, flush their folders, link the manifest. 4. List again: if anything but our manifest appeared, LanceDB was at work, and a
   * version newer than ours may be there: unlink ours and answer `moved`. 5. Flush the manifest's folder.
   */
  commit({ dir, objects, publish, token, requires }: CommitRequest): Promise<CommitOutcome> {
    const kept = [...objects, publish].map(({ path, bytes }) => ({ path, bytes: bytes.slice() }));
    return this.#run(async () => {
      for (const { path } of kept) checkPath(path);
      const staged = await Promise.all(kept.map(async ({ path, bytes }) => ({ path, file: await this.#stage(bytes) })));
      try {
        const manifest = staged.pop();
        if (manifest === undefined) throw new LanceError('INTERNAL', 'a commit without a manifest');
        try {
          return await this.#lock.hold(() => this.#commitStaged(dir, staged, manifest, token, requires));
        } finally {
          await discard(manifest.file);
        }
      } finally {
        for (const { file } of staged) await discard(file);
      }
    });
  }

  lease({ dir, kind, version, manifest, expiresMs }: LeaseRequest): Promise<LeaseOutcome> {
    return this.#locked(async () => {
      checkPath(manifest);
      const place = await this.#locate(dir);
      if (place?.state !== 'live') return { kind: 'gone' };
      if ((await metaOf(place.path, manifest)) === undefined) return { kind: 'missing' };
      const id = randomUUID();
      await this.#writeLease(id, { dir, kind, version, expiresMs });
      return { kind: 'taken', id };
    });
  }

  renew(lease: string, nowMs: number, expiresMs: number): Promise<boolean> {
    return this.#locked(async () => {
      const place = /^[\w-]+$/.test(lease) ? await this.#locate(lease) : undefined;
      if (place?.state === 'creating') {
        if (expiryOf(place.path) <= nowMs) return false;
        const path = this.#creatingPath(expiresMs);
        await rename(place.path, path);
        this.#places.set(lease, { path, state: 'creating' });
        return true;
      }
      const row = await this.#readLease(lease);
      if (row === undefined) return false;
      if (row.expiresMs > nowMs) await this.#writeLease(lease, { ...row, expiresMs });
      else await discard(this.#leasePath(lease));
      return row.expiresMs > nowMs;
    });
  }

  release(lease: string): Promise<void> {
    // Under the lock, so that a renewal under way does not write it again.
    return this.#locked(async () => {
      if (isLeaseId(lease)) await discard(this.#leasePath(lease));
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

  async #commitStaged(
    dir: string,
    objects: readonly { path: string; file: string }[],
    manifest: { path: string; file: string },
    token: string,
    requires: readonly string[],
  ): Promise<CommitOutcome> {
    const place = await this.#locate(dir);
    if (place === undefined || place.state === 'dropped') return { kind: 'gone' };
    const target = join(place.path, manifest.path);
    const folder = dirname(target);
    if (await isThere(target)) return { kind: 'exists' };
    const before = await fileNames(folder);
    if (tokenOf(before) !== token) return { kind: 'moved' };
    const own = new Set(objects.map(({ path }) => path));
    for (const path of requires) {
      checkPath(path);
      if (!own.has(path) && (await metaOf(place.path, path)) === undefined) return { kind: 'missing', path };
    }
    const undo: (() => Promise<void>)[] = [];
    const backups: string[] = [];
    let outcome: CommitOutcome | undefined;
    try {
      const touched = new Set<string>();
      for (const { path, file } of objects) {
        const object = join(place.path, path);
        const backup = join(this.#scratch, await scratchName('-old'));
        backups.push(backup);
        const isNew = await link(object, backup).then(
          () => false,
          (error: unknown) => {
            if (isCode(error, 'ENOENT')) return true;
            throw error;
          },
        );
        await makingFolders(place.path, path, () => rename(file, object));
        undo.push(() => (isNew ? discard(object) : rename(backup, object)));
        touched.add(dirname(object));
      }
      for (const path of touched) await syncFolder(path);
      const taken = await makingFolders(place.path, manifest.path, () => link(manifest.file, target)).then(
        () => false,
        (error: unknown) => {
          if (isCode(error, 'EEXIST')) return true;
          throw error;
        },
      );
      if (taken) return (outcome = { kind: 'exists' });
      undo.push(() => discard(target));
      const name = target.slice(folder.length + 1);
      const after = (await fileNames(folder)).filter((other) => other !== name);
      if (after.some((other) => !before.includes(other))) return (outcome = { kind: 'moved' });
      await syncFolder(folder);
      return (outcome = { kind: 'committed' });
    } finally {
      // The manifest first: it must not be seen without its objects.
      if (outcome?.kind !== 'committed') for (const step of undo.reverse()) await step();
      for (const backup of backups) await discard(backup);
    }
  }

  /** Brings a finished file to its place by `move`, durably. */
  async #settle(dir: string, path: string, move: (target: string) => Promise<void>): Promise<void> {
    const folder = await this.#lock.hold(async () => {
      const place = await this.#writable(dir);
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
      const file = await this.#look(
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

  /** What `peek` sees in a directory, known to be that directory all the while; `undefined` when it is nowhere. */
  async #look<T>(
    dir: string,
    peek: (place: Place) => Promise<T>,
    forget: (seen: T) => Promise<void> | undefined = () => undefined,
  ): Promise<T | undefined> {
    for (;;) {
      const place = this.#places.get(dir) ?? (await this.#locate(dir));
      if (place === undefined) return undefined;
      const seen = await peek(place);
      if ((await identityOf(place.path)) === dir) return seen;
      this.#places.delete(dir);
      await forget(seen);
    }
  }

  /** A directory that takes writes. */
  async #writable(dir: string): Promise<Place> {
    const place = await this.#locate(dir);
    if (place === undefined || place.state === 'dropped') throw noDirectory(dir);
    return place;
  }

  async #locate(dir: string): Promise<Place | undefined> {
    const known = this.#places.get(dir);
    if (known !== undefined && (await identityOf(known.path)) === dir) return known;
    this.#places.delete(dir);
    // Without the lock a directory may be renamed past the search: the second one looks where it went.
    const place = (await this.#search(dir)) ?? (await this.#search(dir));
    if (place !== undefined) this.#places.set(dir, place);
    return place;
  }

  /** Looks in the order in which a directory moves. */
  async #search(dir: string): Promise<Place | undefined> {
    for (const name of await namesIn(join(this.#own, 'creating'))) {
      const path = join(this.#own, 'creating', name);
      if ((await identityOf(path)) === dir) return { path, state: 'creating' };
    }
    for (const name of await this.#tableNames()) {
      const path = this.#tablePath(name);
      if ((await identityOf(path)) === dir) return { path, state: 'live' };
    }
    const path = /^[\w-]+$/.test(dir) ? this.#droppedPath(dir) : undefined;
    return path !== undefined && (await identityOf(path)) === dir ? { path, state: 'dropped' } : undefined;
  }

  /** Gives a directory a name; `false` if anything has it. Only LanceDB, which knows no lock, can come between look and rename. */
  async #move(id: string, place: Place, name: string): Promise<boolean> {
    const path = this.#tablePath(name);
    if (await isThere(path)) return false;
    try {
      await rename(place.path, path);
    } catch (error) {
      if (isCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOTDIR')) return false;
      throw error;
    }
    this.#places.set(id, { path, state: 'live' });
    await syncFolder(this.#root);
    return true;
  }

  /** Out of reach at once, by a rename; the bytes go afterwards. */
  async #discardFolder(path: string): Promise<void> {
    await rename(path, join(this.#own, 'trash', randomUUID()));
  }

  async #stage(bytes: Uint8Array): Promise<string> {
    await this.#prepare();
    const path = join(this.#scratch, await scratchName(''));
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
      for (const name of ['creating', 'dropped', 'trash', 'leases', 'tmp']) {
        await mkdir(join(this.#own, name), { recursive: true });
      }
      await syncFolder(this.#own);
      await syncFolder(this.#root);
    })();
    this.#prepared.catch(() => (this.#prepared = undefined));
    return this.#prepared;
  }

  async #tableNames(): Promise<string[]> {
    const names = await namesIn(this.#root);
    return names.flatMap((name) =>
      name.length > SUFFIX.length && name.endsWith(SUFFIX) ? [name.slice(0, -SUFFIX.length)] : [],
    );
  }

  async #readLease(id: string): Promise<Lease | undefined> {
    if (!isLeaseId(id)) return undefined;
    try {
      return JSON.parse(await readFile(this.#leasePath(id), 'utf8')) as Lease;
    } catch (error) {
      // One that was cut by a loss of power belongs to a process that is no more.
      if (isCode(error, 'ENOENT') || error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  /** Not flushed: after a loss of power nobody lives to hold it. */
  async #writeLease(id: string, row: Lease): Promise<void> {
    const staged = join(this.#scratch, await scratchName(''));
    const file = await open(staged, 'wx');
    try {
      await file.writeFile(JSON.stringify(row));
    } finally {
      await file.close();
    }
    await rename(staged, this.#leasePath(id));
  }

  get #scratch(): string {
    return join(this.#own, 'tmp');
  }

  #tablePath(name: string): string {
    return join(this.#root, `${name}${SUFFIX}`);
  }

  #creatingPath(expiresMs: number): string {
    if (!Number.isSafeInteger(expiresMs)) throw new LanceError('INVALID_INPUT', `${expiresMs} is not a time`);
    return join(this.#own, 'creating', `${expiresMs}-${randomUUID()}`);
  }

  #droppedPath(id: string): string {
    return join(this.#own, 'dropped', id);
  }

  #leasePath(id: string): string {
    return join(this.#own, 'leases', id);
  }
}

class NodeWriter implements ObjectWriter {
  readonly #path: string;
  readonly #staged: string;
  readonly #file: FileHandle;
  readonly #settle: () => Promise<void>;
  /** Writes go one after the other. */
  #last: Promise<void> = Promise.resolve();
  #sizeBytes = 0;
  #hasEnded = false;

  constructor(path: string, staged: string, file: FileHandle, settle: () => Promise<void>) {
    this.#path = path;
    this.#staged = staged;
    this.#file = file;
    this.#settle = settle;
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#hasEnded) throw writerEnded(this.#path);
    const kept = bytes.slice();
    this.#sizeBytes += kept.length;
    this.#last = this.#last.then(() => writeAll(this.#file, kept));
    await this.#mapped(this.#last);
  }

  async finish(): Promise<number> {
    if (this.#hasEnded) throw writerEnded(this.#path);
    this.#hasEnded = true;
    try {
      await this.#mapped(this.#last.then(() => this.#file.datasync()).finally(() => this.#file.close()));
      await this.#settle();
    } catch (error) {
      if (error instanceof LanceError && error.code === 'STORAGE' && !(await isThere(this.#staged))) {
        throw writeTakenAway(this.#path);
      }
      throw error;
    } finally {
      await discard(this.#staged);
    }
    return this.#sizeBytes;
  }

  async abort(): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    await this.#mapped(this.#last.catch(() => undefined).finally(() => this.#file.close()));
    await discard(this.#staged);
  }

  async #mapped(step: Promise<unknown>): Promise<void> {
    await step.catch((error: unknown) => {
      throw asLanceError(error, this.#path);
    });
  }
}

/** Device, inode and time of birth of a folder; `undefined` when there is none. */
async function identityOf(path: string): Promise<string | undefined> {
  try {
    const status = await stat(path, { bigint: true });
    return status.isDirectory() ? `${status.dev}-${status.ino}-${status.birthtimeNs}` : undefined;
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) return undefined;
    throw error;
  }
}

/**
 * Removes a folder that is out of reach. The next folder may get its inode, so the time of birth must differ then: a folder leaves its
 * inode only when the clock that stamps births has moved on.
 */
async function removeForGood(path: string): Promise<void> {
  const status = await stat(path).catch(() => undefined);
  const ageMs = status === undefined ? BIRTH_STEP_MS : Date.now() - status.birthtimeMs;
  if (ageMs >= 0 && ageMs < BIRTH_STEP_MS) await new Promise((done) => setTimeout(done, BIRTH_STEP_MS - ageMs));
  await rm(path, { recursive: true, force: true });
}

/** Runs `move`, and makes the folders of `path` below `root` if they were missing; never `root` itself. */
async function makingFolders(root: string, path: string, move: () => Promise<void>): Promise<void> {
  try {
    return await move();
  } catch (error) {
    if (!isCode(error, 'ENOENT') || parentOf(path) === '') throw error;
  }
  let folder = root;
  for (const segment of parentOf(path).split('/')) {
    const inside = join(folder, segment);
    const isNew = await mkdir(inside).then(
      () => true,
      (error: unknown) => {
        if (isCode(error, 'EEXIST')) return false;
        throw error;
      },
    );
    if (isNew) await syncFolder(folder);
    folder = inside;
  }
  await move();
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let offset = 0; offset < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, offset);
    offset += bytesWritten;
  }
}

async function readRange(file: FileHandle, path: string, start: number, end: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(end - start);
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, start + done);
    if (bytesRead === 0) throw new LanceError('STORAGE', `${path} became shorter while it was read`, { path });
    done += bytesRead;
  }
  return bytes;
}

async function openFile(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY);
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}

async function metaOf(root: string, path: string): Promise<ObjectMeta | undefined> {
  if (isScratch(path)) return undefined;
  try {
    const status = await stat(join(root, path));
    if (!status.isFile()) return undefined;
    return { path, sizeBytes: status.size, modifiedMs: Math.floor(status.mtimeMs) };
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** The names in a folder; none when it is not there. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

interface Entry {
  readonly name: string;
  readonly isFolder: boolean;
}

async function entriesIn(folder: string): Promise<Entry[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const visible = entries.filter(({ name }) => !isScratch(name));
    return await Promise.all(
      visible.map(async (entry) => {
        // A link stands for what it points at; one that points nowhere is a file that nobody can read.
        const target = entry.isSymbolicLink() ? await stat(join(folder, entry.name)).catch(() => entry) : entry;
        return { name: entry.name, isFolder: target.isDirectory() };
      }),
    );
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

async function fileNames(folder: string): Promise<string[]> {
  return (await entriesIn(folder)).filter(({ isFolder }) => !isFolder).map(({ name }) => name);
}

/** Paths of files below `prefix`. A shallow listing needs of each folder one path only, or those after `after`. */
async function pathsBelow(root: string, prefix: string, options: ListOptions): Promise<string[]> {
  const paths: string[] = [];
  const walk = async (folder: string, isOneEnough: boolean): Promise<boolean> => {
    for (const { name, isFolder } of await entriesIn(join(root, folder))) {
      const path = folder === '' ? name : `${folder}/${name}`;
      if (!isFolder) {
        paths.push(path);
        if (isOneEnough) return true;
        continue;
      }
      const isFolded = options.shallow === true && folder === prefix && !isBelow(options.after ?? '', path);
      if ((await walk(path, isOneEnough || isFolded)) && isOneEnough) return true;
    }
    return false;
  };
  await walk(prefix, false);
  return paths;
}

function tokenOf(names: string[]): string {
  const hash = createHash('sha256');
  for (const name of [...names].sort(compareKeys)) hash.update(`${name}\0`);
  return hash.digest('base64url');
}

function writingSuffix(dir: string, path: string): string {
  return `-${createHash('sha256').update(`${dir}\0${path}`).digest('hex').slice(0, 24)}`;
}

function isScratch(path: string): boolean {
  return path.slice(path.lastIndexOf('/') + 1).startsWith(SCRATCH_PREFIX);
}

function expiryOf(creating: string): number {
  return Number.parseInt(creating.slice(creating.lastIndexOf('/') + 1), 10) || 0;
}

function isLeaseId(id: string): boolean {
  return /^[0-9a-f-]{36}$/.test(id);
}

function isTableName(name: string): boolean {
  return name !== '' && !/[/\\\p{Cc}\p{Cs}]/u.test(name);
}

function checkTableName(name: string): void {
  if (!isTableName(name)) throw new LanceError('INVALID_INPUT', `${JSON.stringify(name)} can't be the name of a table`);
}

function asLanceError(error: unknown, path: string): LanceError {
  if (error instanceof LanceError) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (isCode(error, 'ENOSPC', 'EDQUOT')) return new LanceError('QUOTA', message, { path }, { cause: error });
  if (isCode(error, 'ENAMETOOLONG')) return new LanceError('INVALID_INPUT', message, { path }, { cause: error });
  return new LanceError('STORAGE', message, { path }, { cause: error });
}
