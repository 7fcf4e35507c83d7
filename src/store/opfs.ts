/**
 * A store whose large bodies are files of the origin private file system, beside the rows of `indexeddb.ts`.
 *
 * Sync access handles exist in dedicated workers only. A body is written through an exclusive handle, flushed and closed before its row
 * appears: a published file is never held open for writing. Reads go through shared read-only handles where the browser knows them; a
 * few are kept open and closed soon after their last use, since a file that anybody holds open can't be removed. Where no handle is to
 * be had, `getFile().slice()` reads as well.
 *
 * Without this file system, or outside of a worker, all bodies go to IndexedDB, as long as no row says that its bytes are in a file.
 */
import { LanceError } from '../errors';
import { Database, isName } from './database';
import { filesUnavailable, IndexedDbStore } from './indexeddb';
import type { BodyFiles, BodySink } from './row-writer';
import type { Store } from './store';

/** Browsers limit open handles: Safari to 252, and file descriptors are a thousand for all of a browser. */
const MAX_HANDLES = 32;
const IDLE_MS = 3000;
/** How long others get to close their handles of a file that is to be removed. */
const RELEASE_WAIT_MS = 40;

/** Opens the store of a name. */
export async function openOpfsStore(name: string): Promise<Store> {
  const database = new Database(`lancelet:opfs:${name}`);
  await database.open();
  const files = await openFiles(name);
  if (files === undefined && (await database.read(['meta'], (rows) => rows.countFiles())) > 0) {
    await database.close();
    throw filesUnavailable(`store opfs://${name}`);
  }
  return new IndexedDbStore(database, files);
}

/** The folder of a store's bodies; `undefined` where there is no such file system or no sync access handle. */
async function openFiles(name: string): Promise<BodyFiles | undefined> {
  const storage = (globalThis.navigator as Partial<Navigator> | undefined)?.storage;
  const handles = globalThis.FileSystemFileHandle as { prototype: object } | undefined;
  if (storage?.getDirectory === undefined || handles === undefined) return undefined;
  if (!('createSyncAccessHandle' in handles.prototype)) return undefined;
  try {
    const root = await storage.getDirectory();
    const top = await root.getDirectoryHandle('lancelet', { create: true });
    const folder = await top.getDirectoryHandle(folderName(name), { create: true });
    return new OpfsFiles(folder, `lancelet:opfs:${name}:files`);
  } catch (error) {
    // Private windows of some browsers have the functions and refuse here.
    if (isName(error, 'SecurityError', 'UnknownError', 'NotAllowedError', 'InvalidStateError', 'NotSupportedError')) {
      return undefined;
    }
    throw new LanceError(
      'UNAVAILABLE',
      `the origin private file system does not open: ${String(error)}`,
      {},
      { cause: error },
    );
  }
}

/** Any name as the name of a folder: what is not a plain letter, digit, `_` or `-` stands as its bytes. */
export function folderName(name: string): string {
  const escaped = encodeURIComponent(name).replace(
    /[.!~*'()]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  if (escaped.length > 200) throw new LanceError('INVALID_INPUT', `the name ${name.slice(0, 50)}... is too long`);
  return escaped;
}

type Access = 'read-only' | 'readwrite';

class OpfsFiles implements BodyFiles {
  readonly #folder: FileSystemDirectoryHandle;
  readonly #handles = new Map<string, { readonly handle: FileSystemSyncAccessHandle; usedMs: number }>();
  readonly #opening = new Map<string, Promise<FileSystemSyncAccessHandle | undefined>>();
  /** Asks other tabs and workers to close their handles of a file. */
  readonly #channel: BroadcastChannel | undefined;
  readonly #hasSharedHandles = 'mode' in FileSystemSyncAccessHandle.prototype;
  /** Streams under way: each holds its file exclusively. */
  readonly #sinks = new Set<OpfsSink>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(folder: FileSystemDirectoryHandle, channel: string) {
    this.#folder = folder;
    if (typeof BroadcastChannel === 'undefined') return;
    this.#channel = new BroadcastChannel(channel);
    this.#channel.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (typeof data === 'string') this.#closeHandle(data);
    };
  }

  async create(file: string): Promise<BodySink> {
    const entry = await this.#folder.getFileHandle(file, { create: true });
    const sink = new OpfsSink(file, await openHandle(entry, 'readwrite'), (ended) => this.#sinks.delete(ended));
    this.#sinks.add(sink);
    if (this.#isClosed) sink.abort();
    return sink;
  }

  async read(file: string, ranges: readonly { start: number; end: number }[]): Promise<Uint8Array[]> {
    const handle = await this.#handleOf(file);
    if (handle !== undefined) {
      try {
        return ranges.map(({ start, end }) => readRange(handle, file, start, end));
      } catch (error) {
        // A handle goes bad when the browser puts the tab into the background.
        if (!isName(error, 'InvalidStateError')) throw error;
        this.#closeHandle(file);
      }
    }
    const blob = await (await this.#folder.getFileHandle(file)).getFile();
    return Promise.all(
      ranges.map(async ({ start, end }) => {
        const bytes = new Uint8Array(await blob.slice(start, end).arrayBuffer());
        if (bytes.length !== end - start) throw tooShort(file);
        return bytes;
      }),
    );
  }

  async remove(files: readonly string[]): Promise<string[]> {
    const busy = await this.#tryRemove(files);
    if (busy.length === 0) return [...files];
    for (const file of busy) this.#channel?.postMessage(file);
    await new Promise((resolve) => setTimeout(resolve, RELEASE_WAIT_MS));
    const kept = new Set(await this.#tryRemove(busy));
    return files.filter((file) => !kept.has(file));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const file of [...this.#handles.keys()]) this.#closeHandle(file);
    for (const sink of [...this.#sinks]) sink.abort();
    this.#channel?.close();
  }

  /** Those of `files` that are still held open. */
  async #tryRemove(files: readonly string[]): Promise<string[]> {
    const busy: string[] = [];
    const remove = async (file: string) => {
      this.#closeHandle(file);
      try {
        await this.#folder.removeEntry(file);
      } catch (error) {
        if (isName(error, 'NotFoundError')) return;
        if (!isName(error, 'NoModificationAllowedError', 'InvalidModificationError', 'InvalidStateError')) throw error;
        busy.push(file);
      }
    };
    await Promise.all(files.map(remove));
    return busy;
  }

  /** A handle for reading; `undefined` where none is to be had. */
  async #handleOf(file: string): Promise<FileSystemSyncAccessHandle | undefined> {
    const known = this.#handles.get(file);
    if (known !== undefined) {
      // The map's order is the order of last use.
      this.#handles.delete(file);
      this.#handles.set(file, { handle: known.handle, usedMs: performance.now() });
      return known.handle;
    }
    // An exclusive handle would lock other tabs out.
    if (!this.#hasSharedHandles || this.#isClosed) return undefined;
    const opening = this.#opening.get(file) ?? this.#openHandle(file).finally(() => this.#opening.delete(file));
    this.#opening.set(file, opening);
    return opening;
  }

  async #openHandle(file: string): Promise<FileSystemSyncAccessHandle | undefined> {
    const entry = await this.#folder.getFileHandle(file);
    let handle: FileSystemSyncAccessHandle;
    try {
      handle = await openHandle(entry, 'read-only');
    } catch (error) {
      if (isName(error, 'NotFoundError')) throw error;
      return undefined;
    }
    if (this.#isClosed) {
      handle.close();
      return undefined;
    }
    this.#handles.set(file, { handle, usedMs: performance.now() });
    const [oldest] = this.#handles.keys();
    if (this.#handles.size > MAX_HANDLES && oldest !== undefined) this.#closeHandle(oldest);
    this.#timer ??= setTimeout(() => this.#closeIdle(), IDLE_MS);
    return handle;
  }

  #closeIdle(): void {
    const now = performance.now();
    for (const [file, { usedMs }] of [...this.#handles]) if (now - usedMs >= IDLE_MS) this.#closeHandle(file);
    this.#timer = this.#handles.size === 0 ? undefined : setTimeout(() => this.#closeIdle(), IDLE_MS);
  }

  #closeHandle(file: string): void {
    this.#handles.get(file)?.handle.close();
    this.#handles.delete(file);
  }
}

class OpfsSink implements BodySink {
  readonly #file: string;
  readonly #handle: FileSystemSyncAccessHandle;
  readonly #onClose: (sink: OpfsSink) => void;
  #offset = 0;
  #isOpen = true;

  constructor(file: string, handle: FileSystemSyncAccessHandle, onClose: (sink: OpfsSink) => void) {
    this.#file = file;
    this.#handle = handle;
    this.#onClose = onClose;
  }

  write(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length;) {
      const written = this.#handle.write(bytes.subarray(done), { at: this.#offset });
      if (written === 0) throw new LanceError('QUOTA', `no more bytes fit into ${this.#file}`, { path: this.#file });
      done += written;
      this.#offset += written;
    }
  }

  finish(): void {
    try {
      this.#handle.flush();
    } finally {
      this.abort();
    }
  }

  abort(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#handle.close();
    this.#onClose(this);
  }
}

/** The mode is ignored by browsers that know only exclusive handles. */
function openHandle(entry: FileSystemFileHandle, mode: Access): Promise<FileSystemSyncAccessHandle> {
  const open: (options: { mode: Access }) => Promise<FileSystemSyncAccessHandle> =
    entry.createSyncAccessHandle.bind(entry);
  return open({ mode });
}

function readRange(handle: FileSystemSyncAccessHandle, file: string, start: number, end: number): Uint8Array {
  const bytes = new Uint8Array(end - start);
  for (let done = 0; done < bytes.length;) {
    const read = handle.read(bytes.subarray(done), { at: start + done });
    if (read === 0) throw tooShort(file);
    done += read;
  }
  return bytes;
}

function tooShort(file: string): LanceError {
  return new LanceError('CORRUPT', `body ${file} has fewer bytes than its row says`, { path: file });
}
