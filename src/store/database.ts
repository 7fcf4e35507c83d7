/**
 * The IndexedDB database of one store: its rows, and transactions over them.
 *
 *   tables     name               -> directory id
 *   dirs       id                 -> state of a directory
 *   meta       [dir, path]        -> size, time and place of an object; an object exists when its row does
 *   body       [dir, path]        -> its bytes, where they are not in a file
 *   writing    [dir, path, id]    -> a stream under way
 *   leases     id                 -> what is in use, until when
 *   tokens     [dir, folder]      -> how often an object appeared in or left the folder
 *   tombstones file               -> a body in a file whose row is gone
 *
 * Paths and names in keys are `byteKey`s, so that IndexedDB's order is the order of bytes. A transaction's work awaits nothing but its own
 * requests, and its end is awaited, not its requests'. A connection that was lost is opened again once; where it was lost after a write
 * was asked to commit, the write is performed again and finds its own deed by the id that it wrote.
 */
import { promisifyRequest, type UseStore } from 'idb-keyval';

import { LanceError } from '../errors';
import { storeClosed } from './refusals';
import type { LeaseKind } from './store';

export interface Rows {
  tables: { readonly name: string; readonly id: string };
  dirs: {
    readonly id: string;
    readonly state: 'creating' | 'live' | 'dropped';
    /** Of a `creating` directory. */
    readonly expiresMs: number;
    /** Of a `live` directory. */
    readonly name?: string;
    /** Changes below `_refs/`, and commits that replaced; none is 0. */
    readonly pins?: number;
    /** The newest version that replaced. */
    readonly replaced?: number;
  };
  meta: {
    readonly dir: string;
    readonly path: string;
    readonly sizeBytes: number;
    readonly modifiedMs: number;
    /** The call that wrote it. */
    readonly by: string;
    /** The file that holds the bytes; without it they are in `body`. */
    readonly file?: string;
  };
  body: Uint8Array<ArrayBuffer> | Blob;
  writing: {
    readonly dir: string;
    readonly path: string;
    readonly id: string;
    /** The name of a Web Lock that is held while the writer lives; empty where there are none. */
    readonly holder: string;
    readonly file?: string;
  };
  leases: { readonly dir: string; readonly kind: LeaseKind; readonly version: number; readonly expiresMs: number };
  tokens: number;
  tombstones: { readonly file: string };
}

export type RowKind = keyof Rows;

const KINDS: readonly RowKind[] = ['tables', 'dirs', 'meta', 'body', 'writing', 'leases', 'tokens', 'tombstones'];

/** The index of `meta` rows whose bytes are in files, by directory. */
const FILES_INDEX = 'files';
const VERSION = 1;

export interface WriteOptions<T> {
  /** `relaxed` where losing the write in a power cut costs nothing. Default: `strict`. */
  readonly durability?: 'strict' | 'relaxed';
  /** Whether the answer of work that was repeated proves what the first try did, which may have committed. Default: always. */
  readonly settles?: (answer: T) => boolean;
}

export class Database {
  readonly name: string;
  readonly #openWaitMs: number;
  #connection: Promise<IDBDatabase> | undefined;
  #isClosed = false;

  constructor(name: string, openWaitMs = 10_000) {
    this.name = name;
    this.#openWaitMs = openWaitMs;
  }

  /** Connects now, so that a browser without IndexedDB is known before the first call. */
  async open(): Promise<void> {
    await this.#connect();
  }

  /** One object store as idb-keyval's functions take it. */
  rows(kind: RowKind): UseStore {
    return (mode, callback) => {
      const work = async (transaction: Transaction) => callback(transaction.store(kind));
      return mode === 'readonly' ? this.read([kind], work) : this.write([kind], work);
    };
  }

  async read<T>(kinds: readonly RowKind[], work: (transaction: Transaction) => Promise<T>): Promise<T> {
    try {
      return await this.#attempt(kinds, 'readonly', 'relaxed', work);
    } catch (error) {
      if (!(error instanceof Interruption)) throw error;
      return await this.#attempt(kinds, 'readonly', 'relaxed', work).catch(asUnavailable);
    }
  }

  /** `work` may run twice: it must find what an earlier run of itself did. */
  async write<T>(
    kinds: readonly RowKind[],
    work: (transaction: Transaction) => Promise<T>,
    { durability = 'strict', settles = () => true }: WriteOptions<T> = {},
  ): Promise<T> {
    try {
      return await this.#attempt(kinds, 'readwrite', durability, work);
    } catch (error) {
      if (!(error instanceof Interruption)) throw error;
      const again = this.#attempt(kinds, 'readwrite', durability, work);
      if (!error.mayHaveCommitted) return again.catch(asUnavailable);
      const answer = await again.catch((reason: unknown) => {
        throw outcomeUnknown(this.name, reason);
      });
      if (!settles(answer)) throw outcomeUnknown(this.name, error);
      return answer;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const connection = this.#connection;
    this.#connection = undefined;
    (await connection?.catch(() => undefined))?.close();
  }

  async #attempt<T>(
    kinds: readonly RowKind[],
    mode: IDBTransactionMode,
    durability: 'strict' | 'relaxed',
    work: (transaction: Transaction) => Promise<T>,
  ): Promise<T> {
    const database = await this.#connect();
    let transaction: IDBTransaction;
    try {
      transaction = database.transaction(kinds, mode, { durability });
    } catch (error) {
      this.#drop(database);
      throw isName(error, 'InvalidStateError') ? new Interruption(error, false) : asStorageError(error, this.name);
    }
    const completion = completed(transaction);
    completion.catch(() => undefined);
    const rows = new Transaction(transaction);
    let answer: T;
    try {
      answer = await work(rows);
    } catch (error) {
      abort(transaction);
      await completion.catch(() => undefined);
      // A request that failed aborts its transaction: the transaction knows the cause.
      throw this.#failure(database, error instanceof LanceError ? error : (transaction.error ?? error), false);
    }
    try {
      if (mode === 'readwrite') commit(transaction);
      await completion;
    } catch (error) {
      throw this.#failure(database, error, rows.hasWritten);
    }
    return answer;
  }

  /** What a failed transaction means: an interruption is nothing that the caller did. */
  #failure(database: IDBDatabase, error: unknown, mayHaveCommitted: boolean): Error {
    if (error instanceof LanceError) return error;
    const isLost = error === null || isName(error, 'AbortError', 'UnknownError', 'InvalidStateError');
    if (!isLost) return asStorageError(error, this.name);
    this.#drop(database);
    return new Interruption(error, mayHaveCommitted);
  }

  #connect(): Promise<IDBDatabase> {
    if (this.#isClosed) return Promise.reject(storeClosed());
    if (this.#connection !== undefined) return this.#connection;
    const connection = openDatabase(this.name, this.#openWaitMs).then((database) => {
      // Browsers close connections by themselves (storage cleared, iOS in the background), and a tab that deletes the database asks.
      database.onclose = database.onversionchange = () => this.#drop(database);
      if (this.#isClosed) {
        database.close();
        throw storeClosed();
      }
      return database;
    });
    this.#connection = connection;
    connection.catch(() => {
      if (this.#connection === connection) this.#connection = undefined;
    });
    return connection;
  }

  #drop(database: IDBDatabase): void {
    database.onclose = database.onversionchange = null;
    const connection = this.#connection;
    void connection?.then(
      (current) => {
        if (current === database && this.#connection === connection) this.#connection = undefined;
      },
      () => undefined,
    );
    database.close();
  }
}

/** The rows within one transaction. */
export class Transaction {
  readonly #transaction: IDBTransaction;
  /** Whether there is anything whose fate an interruption would leave unknown. */
  hasWritten = false;

  constructor(transaction: IDBTransaction) {
    this.#transaction = transaction;
  }

  store(kind: RowKind): IDBObjectStore {
    return this.#transaction.objectStore(kind);
  }

  get<K extends RowKind>(kind: K, key: IDBValidKey): Promise<Rows[K] | undefined> {
    return promisifyRequest<Rows[K] | undefined>(this.store(kind).get(key));
  }

  async has(kind: RowKind, key: IDBValidKey): Promise<boolean> {
    return (await promisifyRequest(this.store(kind).getKey(key))) !== undefined;
  }

  all<K extends RowKind>(kind: K, range?: IDBKeyRange, limit?: number): Promise<Rows[K][]> {
    return promisifyRequest<Rows[K][]>(this.store(kind).getAll(range, limit));
  }

  /** The `meta` rows of a directory whose bytes are in files. */
  files(dir: string): Promise<Rows['meta'][]> {
    return promisifyRequest<Rows['meta'][]>(this.store('meta').index(FILES_INDEX).getAll(below(dir)));
  }

  /** How many objects of the store have their bytes in files. */
  countFiles(): Promise<number> {
    return promisifyRequest(this.store('meta').index(FILES_INDEX).count());
  }

  /** If the request fails, so does the transaction, with the request's error. */
  put<K extends RowKind>(kind: K, key: IDBValidKey, row: Rows[K]): void {
    this.hasWritten = true;
    this.store(kind).put(row, key);
  }

  /** Puts a row unless there is one; `false` leaves it as it was. */
  add<K extends RowKind>(kind: K, key: IDBValidKey, row: Rows[K]): Promise<boolean> {
    const request = this.store(kind).add(row, key);
    return new Promise((resolve, reject) => {
      request.onsuccess = () => {
        this.hasWritten = true;
        resolve(true);
      };
      request.onerror = (event) => {
        if (!isName(request.error, 'ConstraintError')) {
          reject(request.error);
          return;
        }
        // Without this the transaction would abort.
        event.preventDefault();
        event.stopPropagation();
        resolve(false);
      };
    });
  }

  delete(kind: RowKind, key: IDBValidKey | IDBKeyRange): void {
    this.hasWritten = true;
    this.store(kind).delete(key);
  }
}

/** All keys that begin with `parts`. An array sorts after every string. */
export function below(...parts: string[]): IDBKeyRange {
  return IDBKeyRange.bound(parts, [...parts, []]);
}

/** A transaction that ended by no fault of ours. */
class Interruption extends Error {
  readonly mayHaveCommitted: boolean;

  constructor(cause: unknown, mayHaveCommitted: boolean) {
    super('the transaction was interrupted', { cause });
    this.mayHaveCommitted = mayHaveCommitted;
  }
}

function completed(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error as unknown);
  });
}

function abort(transaction: IDBTransaction): void {
  try {
    transaction.abort();
  } catch {
    // It has ended already.
  }
}

/** Saves a turn of the event loop: the browser need not find out that no request follows. */
function commit(transaction: IDBTransaction): void {
  try {
    transaction.commit();
  } catch {
    // It commits or has aborted by itself.
  }
}

function openDatabase(name: string, waitMs: number): Promise<IDBDatabase> {
  const factory: IDBFactory | undefined = globalThis.indexedDB;
  if (factory === undefined) return Promise.reject(new LanceError('UNAVAILABLE', 'there is no IndexedDB here'));
  return new Promise((resolve, reject) => {
    const request = factory.open(name, VERSION);
    let isBlocked = false;
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      const why = isBlocked ? 'another tab keeps an older version of it open' : 'the browser does not answer';
      reject(new LanceError('UNAVAILABLE', `database ${name} did not open within ${waitMs} ms: ${why}`));
    }, waitMs);
    request.onblocked = () => (isBlocked = true);
    request.onupgradeneeded = () => {
      for (const kind of KINDS) {
        const store = request.result.createObjectStore(kind);
        if (kind === 'meta') store.createIndex(FILES_INDEX, ['dir', 'file']);
      }
    };
    request.onsuccess = () => {
      clearTimeout(timer);
      if (isLate) request.result.close();
      else resolve(request.result);
    };
    request.onerror = () => {
      clearTimeout(timer);
      const why = isName(request.error, 'VersionError')
        ? 'a newer version of this library made it'
        : String(request.error);
      const isFull = isName(request.error, 'QuotaExceededError');
      reject(
        isFull
          ? asStorageError(request.error, name)
          : new LanceError('UNAVAILABLE', `database ${name} does not open: ${why}`, {}, { cause: request.error }),
      );
    };
  });
}

function asUnavailable(error: unknown): never {
  if (!(error instanceof Interruption)) throw error;
  throw new LanceError('UNAVAILABLE', 'the connection to the database was lost twice', {}, { cause: error.cause });
}

function outcomeUnknown(name: string, cause: unknown): LanceError {
  return new LanceError('OUTCOME_UNKNOWN', `the answer of a write to database ${name} was lost`, {}, { cause });
}

/** What the browser's storage threw, in our words. */
export function asStorageError(error: unknown, path: string): LanceError {
  if (error instanceof LanceError) return error;
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const code = isName(error, 'QuotaExceededError') ? 'QUOTA' : 'STORAGE';
  return new LanceError(code, `${path}: ${message}`, { path }, { cause: error });
}

/** Whether it is a browser's exception of one of these names. */
export function isName(error: unknown, ...names: string[]): boolean {
  return typeof error === 'object' && error !== null && 'name' in error && names.includes(String(error.name));
}
