/** Bytes in memory: stores of one name share them while the page or process lives. Every promise of the contract but survival. */
import { concatBytes } from '../bytes';
import { newId } from './ids';
import { selectPaths } from './listing';
import { noDirectory, noObject, storeClosed, writerEnded, writeTakenAway } from './refusals';
import { byteKey, checkFolder, checkPath, checkRanges, compareKeys, parentOf, sortPaths } from './path';
import { isReference, leaseRefusal } from './removal';
import type {
  CommitOutcome,
  CommitRequest,
  LeaseKind,
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

interface Shared {
  readonly tables: Map<string, string>;
  readonly dirs: Map<string, Directory>;
  readonly leases: Map<string, Lease>;
  readonly turns: TurnQueue;
}

interface Lease {
  readonly dir: string;
  readonly kind: LeaseKind;
  readonly version: number;
  expiresMs: number;
}

interface Directory {
  state: 'creating' | 'live' | 'dropped';
  /** Only of a `creating` directory. */
  expiresMs: number;
  readonly objects: Map<string, { readonly bytes: Uint8Array; readonly modifiedMs: number }>;
  /** How often an object appeared in or left each folder. */
  readonly moves: Map<string, number>;
  /** Streams under way, by id. */
  readonly writing: Map<string, string>;
  /** Changes below `_refs/`, and commits that replaced. */
  pins: number;
  /** The newest version that replaced; 0 = none. */
  replaced: number;
  /** The paths in byte order, until one appears or leaves. */
  sorted: string[] | undefined;
}

const stores = new Map<string, Shared>();

/** The store of a name; another call with the same name gives another handle on the same bytes. */
export function openMemoryStore(name: string): Store {
  const shared = stores.get(name) ?? { tables: new Map(), dirs: new Map(), leases: new Map(), turns: new TurnQueue() };
  stores.set(name, shared);
  return new MemoryStore(shared);
}

class MemoryStore implements Store {
  readonly #shared: Shared;
  #isClosed = false;

  constructor(shared: Shared) {
    this.#shared = shared;
  }

  async tables(): Promise<TableEntry[]> {
    const entries = [...this.#open().tables].map(([name, id]) => ({ name, id }));
    return entries.sort((a, b) => compareKeys(byteKey(a.name), byteKey(b.name)));
  }

  async lookup(name: string): Promise<string | undefined> {
    return this.#open().tables.get(name);
  }

  async createDir(_nowMs: number, expiresMs: number): Promise<string> {
    const id = newId();
    const directory: Directory = {
      state: 'creating',
      expiresMs,
      objects: new Map(),
      moves: new Map(),
      writing: new Map(),
      pins: 0,
      replaced: 0,
      sorted: undefined,
    };
    this.#open().dirs.set(id, directory);
    return id;
  }

  async publishDir(name: string, id: string): Promise<'published' | 'exists' | 'gone'> {
    const { tables, dirs } = this.#open();
    const directory = dirs.get(id);
    if (directory === undefined) return 'gone';
    if (directory.state !== 'creating') return 'published';
    if (tables.has(name)) return 'exists';
    directory.state = 'live';
    tables.set(name, id);
    return 'published';
  }

  async renameDir(id: string, from: string, to: string): Promise<'renamed' | 'exists' | 'gone'> {
    const { tables } = this.#open();
    const taken = tables.get(to);
    if (taken !== undefined) return taken === id ? 'renamed' : 'exists';
    if (tables.get(from) !== id) return 'gone';
    tables.delete(from);
    tables.set(to, id);
    return 'renamed';
  }

  async dropDir(id: string): Promise<void> {
    const { tables, dirs } = this.#open();
    for (const [name, other] of tables) if (other === id) tables.delete(name);
    const directory = dirs.get(id);
    if (directory !== undefined) directory.state = 'dropped';
  }

  async sweep(nowMs: number): Promise<void> {
    const { dirs, leases } = this.#open();
    for (const [id, lease] of leases) if (lease.expiresMs <= nowMs) leases.delete(id);
    const leased = new Set([...leases.values()].map((lease) => lease.dir));
    for (const [id, { state, expiresMs }] of dirs) {
      const isUnreachable = (state === 'creating' && expiresMs <= nowMs) || (state === 'dropped' && !leased.has(id));
      if (isUnreachable) dirs.delete(id);
    }
  }

  async put(dir: string, path: string, bytes: Uint8Array): Promise<void> {
    checkPath(path);
    place(this.#writable(dir), path, bytes.slice());
  }

  async putIfAbsent(dir: string, path: string, bytes: Uint8Array): Promise<boolean> {
    checkPath(path);
    const directory = this.#writable(dir);
    if (directory.objects.has(path)) return false;
    place(directory, path, bytes.slice());
    return true;
  }

  async writer(dir: string, path: string): Promise<ObjectWriter> {
    checkPath(path);
    const writing = newId();
    this.#writable(dir).writing.set(writing, path);
    return new MemoryWriter(() => this.#writable(dir), path, writing);
  }

  async get(dir: string, path: string): Promise<Uint8Array> {
    return this.#bytes(dir, path).slice();
  }

  async getRanges(dir: string, path: string, ranges: readonly number[]): Promise<Uint8Array[]> {
    const bytes = this.#bytes(dir, path);
    return checkRanges(path, ranges, bytes.length).map(({ start, end }) => bytes.slice(start, end));
  }

  async head(dir: string, path: string): Promise<ObjectMeta | undefined> {
    checkPath(path);
    return metaOf(this.#open().dirs.get(dir), path);
  }

  async list(dir: string, prefix: string, options: ListOptions): Promise<Listing> {
    checkFolder(prefix);
    const directory = this.#open().dirs.get(dir);
    if (directory === undefined) return { objects: [], folders: [] };
    directory.sorted ??= sortPaths([...directory.objects.keys()]);
    const { paths, folders } = selectPaths(directory.sorted, prefix, options);
    const objects = paths.map((path) => metaOf(directory, path)).filter((meta) => meta !== undefined);
    return { objects, folders };
  }

  async delete(dir: string, path: string): Promise<'deleted' | 'busy'> {
    checkPath(path);
    const directory = this.#open().dirs.get(dir);
    if (directory === undefined) return 'deleted';
    for (const [id, written] of directory.writing) if (written === path) directory.writing.delete(id);
    takeAway(directory, path);
    return 'deleted';
  }

  async token(dir: string, folder: string): Promise<string> {
    checkFolder(folder);
    const directory = this.#open().dirs.get(dir);
    if (directory === undefined) throw noDirectory(dir);
    return tokenOf(directory, folder);
  }

  async commit({ dir, objects, publish, token, requires, replaces }: CommitRequest): Promise<CommitOutcome> {
    for (const { path } of [...objects, publish]) checkPath(path);
    const directory = this.#open().dirs.get(dir);
    // A table being created commits its first version before it is live.
    if (directory === undefined || directory.state === 'dropped') return { kind: 'gone' };
    if (directory.objects.has(publish.path)) return { kind: 'exists' };
    if (tokenOf(directory, parentOf(publish.path)) !== token) return { kind: 'moved' };
    const own = new Set(objects.map(({ path }) => path));
    const missing = requires.find((path) => !own.has(path) && !directory.objects.has(path));
    if (missing !== undefined) return { kind: 'missing', path: missing };
    for (const { path, bytes } of [...objects, publish]) place(directory, path, bytes.slice());
    if (replaces !== undefined) {
      directory.replaced = replaces;
      directory.pins += 1;
    }
    return { kind: 'committed' };
  }

  async lease({ dir, kind, version, manifest, expiresMs }: LeaseRequest): Promise<LeaseOutcome> {
    const { dirs, leases } = this.#open();
    const directory = dirs.get(dir);
    if (directory?.state !== 'live') return { kind: 'gone' };
    if (!directory.objects.has(manifest)) return { kind: 'missing' };
    const id = newId();
    leases.set(id, { dir, kind, version, expiresMs });
    return { kind: 'taken', id, replaced: directory.replaced };
  }

  async renew(lease: string, nowMs: number, expiresMs: number): Promise<boolean> {
    const { dirs, leases } = this.#open();
    const directory = dirs.get(lease);
    const held = leases.get(lease) ?? (directory?.state === 'creating' ? directory : undefined);
    if (held === undefined || held.expiresMs <= nowMs) {
      leases.delete(lease);
      return false;
    }
    held.expiresMs = expiresMs;
    return true;
  }

  async release(lease: string): Promise<void> {
    this.#open().leases.delete(lease);
  }

  async leases(dir: string, nowMs: number): Promise<LiveLease[]> {
    return liveLeases(this.#open().leases, dir, nowMs);
  }

  async pins(dir: string): Promise<string> {
    const directory = this.#open().dirs.get(dir);
    if (directory === undefined) throw noDirectory(dir);
    return String(directory.pins);
  }

  async putRef({ dir, path, bytes, manifest, mode }: RefRequest): Promise<RefOutcome> {
    checkPath(path);
    const directory = this.#open().dirs.get(dir);
    if (directory?.state !== 'live') return 'gone';
    if (!directory.objects.has(manifest)) return 'missing';
    const isThere = directory.objects.has(path);
    if (isThere !== (mode === 'replace')) return isThere ? 'exists' : 'absent';
    place(directory, path, bytes.slice());
    return 'written';
  }

  async remove(request: RemoveRequest): Promise<RemoveOutcome> {
    for (const path of [...request.manifests, ...request.files]) checkPath(path);
    const { dirs, leases } = this.#open();
    const directory = dirs.get(request.dir);
    if (directory?.state !== 'live') return { kind: 'gone' };
    const refusal = leaseRefusal(request, liveLeases(leases, request.dir, request.nowMs));
    if (refusal !== undefined) return refusal;
    const { pins, folder = '', token } = request;
    const hasMoved = token !== undefined && tokenOf(directory, folder) !== token;
    if (String(directory.pins) !== pins || hasMoved) return { kind: 'moved' };
    const take = (paths: readonly string[]) =>
      paths.map((path) => takeAway(directory, path)).filter((size) => size !== undefined);
    const manifests = take(request.manifests);
    const bytes = [...manifests, ...take(request.files)].reduce((total, size) => total + size, 0);
    return { kind: 'removed', manifests: manifests.length, bytes, busy: 0 };
  }

  async turn(dir: string, waitMs: number): Promise<Turn | undefined> {
    return this.#open().turns.take(dir, waitMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  #open(): Shared {
    if (this.#isClosed) throw storeClosed();
    return this.#shared;
  }

  /** A directory that takes writes. */
  #writable(dir: string): Directory {
    const directory = this.#open().dirs.get(dir);
    if (directory === undefined || directory.state === 'dropped') throw noDirectory(dir);
    return directory;
  }

  #bytes(dir: string, path: string): Uint8Array {
    checkPath(path);
    const found = this.#open().dirs.get(dir)?.objects.get(path);
    if (found === undefined) throw noObject(path);
    return found.bytes;
  }
}

class MemoryWriter implements ObjectWriter {
  readonly #directory: () => Directory;
  readonly #path: string;
  readonly #id: string;
  #chunks: Uint8Array[] | undefined = [];

  constructor(directory: () => Directory, path: string, id: string) {
    this.#directory = directory;
    this.#path = path;
    this.#id = id;
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#chunks === undefined) throw writerEnded(this.#path);
    this.#chunks.push(bytes.slice());
  }

  async finish(): Promise<number> {
    const chunks = this.#chunks;
    this.#chunks = undefined;
    if (chunks === undefined) throw writerEnded(this.#path);
    const directory = this.#directory();
    if (!directory.writing.delete(this.#id)) throw writeTakenAway(this.#path);
    const bytes = concatBytes(chunks);
    place(directory, this.#path, bytes);
    return bytes.length;
  }

  async abort(): Promise<void> {
    if (this.#chunks === undefined) return;
    this.#chunks = undefined;
    try {
      this.#directory().writing.delete(this.#id);
    } catch {
      // The directory is gone, and the stream's row with it.
    }
  }
}

function place(directory: Directory, path: string, bytes: Uint8Array): void {
  if (!directory.objects.has(path)) noteMove(directory, path);
  directory.objects.set(path, { bytes, modifiedMs: Date.now() });
  notePin(directory, path);
}

/** The size of what was there. */
function takeAway(directory: Directory, path: string): number | undefined {
  const size = directory.objects.get(path)?.bytes.length;
  if (size === undefined) return undefined;
  directory.objects.delete(path);
  noteMove(directory, path);
  notePin(directory, path);
  return size;
}

function notePin(directory: Directory, path: string): void {
  if (isReference(path)) directory.pins += 1;
}

function liveLeases(leases: Map<string, Lease>, dir: string, nowMs: number): LiveLease[] {
  for (const [id, lease] of leases) if (lease.expiresMs <= nowMs) leases.delete(id);
  return [...leases.values()].filter((lease) => lease.dir === dir).map(({ kind, version }) => ({ kind, version }));
}

function noteMove(directory: Directory, path: string): void {
  const folder = parentOf(path);
  directory.moves.set(folder, (directory.moves.get(folder) ?? 0) + 1);
  directory.sorted = undefined;
}

function tokenOf(directory: Directory, folder: string): string {
  return String(directory.moves.get(folder) ?? 0);
}

function metaOf(directory: Directory | undefined, path: string): ObjectMeta | undefined {
  const found = directory?.objects.get(path);
  return found && { path, sizeBytes: found.bytes.length, modifiedMs: found.modifiedMs };
}
