/**
 * Bytes by path: the contract that every backend keeps, word for word the engine's `Store` trait. `conformance.ts` proves it.
 *
 * A table is a **directory** with an id that is never used again; a table's name is a row that points at an id.
 *
 * - `put` replaces and is atomic: a reader sees the old bytes, the new bytes, or nothing, never a part.
 * - `putIfAbsent` is atomic among all tabs, workers and processes: of any number of callers exactly one gets `true`.
 * - When a write resolves, its bytes survive a closed tab, and a power cut as far as the backend can.
 * - `getRanges` resolves to exactly the bytes asked, in the order asked; ranges are half-open.
 * - `list` is in byte order of the path and sees every write that resolved before it began.
 * - `commit` is one transaction: all of it happens, or nothing.
 * - No operation holds a lock after it resolves, except a `Turn`, which is for fairness only and never needed for safety.
 * - Times of leases come in with each call (milliseconds since the Unix epoch): a store reads no clock for them.
 *
 * Errors are `LanceError`s: `NOT_FOUND` for an object that is not there, `TABLE_NOT_FOUND` for a directory that takes no writes,
 * `INVALID_INPUT` for a range outside of the object, `QUOTA`, `UNAVAILABLE`, `CONTENTION`, `STORAGE`. A write that failed changed
 * nothing, unless the error is `OUTCOME_UNKNOWN`.
 */
export interface Store {
  /** Live tables in byte order of their names. */
  tables(): Promise<TableEntry[]>;
  /** The directory that a name points at. */
  lookup(name: string): Promise<string | undefined>;
  /** Registers a new directory, `creating`, under a lease. A lost answer costs nothing: it is swept when its lease ran out. */
  createDir(nowMs: number, expiresMs: number): Promise<string>;
  /** Makes a `creating` directory live under a free name, in one transaction. Already live, renamed or dropped is `published`. */
  publishDir(name: string, id: string): Promise<'published' | 'exists' | 'gone'>;
  /** Moves the name of a live directory. */
  renameDir(id: string, from: string, to: string): Promise<'renamed' | 'exists' | 'gone'>;
  /** Takes a live directory's name away; its objects go when no lease holds it. One that is not live is success. */
  dropDir(id: string): Promise<void>;
  /** Deletes what nobody can reach any more: rows first, in one transaction per directory. */
  sweep(nowMs: number): Promise<void>;

  put(dir: string, path: string, bytes: Uint8Array): Promise<void>;
  putIfAbsent(dir: string, path: string, bytes: Uint8Array): Promise<boolean>;
  /** Starts streaming one object: nothing of it is visible before `finish` resolves. */
  writer(dir: string, path: string): Promise<ObjectWriter>;
  get(dir: string, path: string): Promise<Uint8Array>;
  /** `ranges` are pairs: start, end, start, end, ... */
  getRanges(dir: string, path: string, ranges: readonly number[]): Promise<Uint8Array[]>;
  head(dir: string, path: string): Promise<ObjectMeta | undefined>;
  /** Objects below a folder (every object with the empty path). */
  list(dir: string, prefix: string, options: ListOptions): Promise<Listing>;
  /** `busy`: gone from every listing, its bytes are still held open somewhere and go with a later sweep. */
  delete(dir: string, path: string): Promise<'deleted' | 'busy'>;

  /** Changes whenever an object appears in or leaves the folder. */
  token(dir: string, folder: string): Promise<string>;
  /** One strictly durable transaction: checks, then writes `objects` and `publish`. */
  commit(request: CommitRequest): Promise<CommitOutcome>;

  /** Checks in the same transaction that the directory is live and the manifest exists. */
  lease(request: LeaseRequest): Promise<LeaseOutcome>;
  /** `false` when the lease ran out: it never comes back to life. */
  renew(lease: string, nowMs: number, expiresMs: number): Promise<boolean>;
  release(lease: string): Promise<void>;
  /** The live leases of a directory; rows of expired ones are deleted. */
  leases(dir: string, nowMs: number): Promise<LiveLease[]>;

  /**
   * Changes whenever an old version may have come to new life: by a change below `_refs/`, or by a commit that `replaces`. Opaque; only
   * equality means something.
   */
  pins(dir: string): Promise<string>;
  /** Writes a reference to a version, in one transaction with the look at its manifest. */
  putRef(request: RefRequest): Promise<RefOutcome>;
  /**
   * In one strictly durable transaction: checks that the directory is live, that neither pins nor token moved, that no live lease is on
   * one of the versions (a write lease is on its version and every newer one), and that nobody writes where the request says so; then
   * takes the manifests and the rows of the files. Bodies go afterwards. Where it is not one transaction, manifests go first: a crash
   * leaves files that nobody names, and never a version without its files.
   */
  remove(request: RemoveRequest): Promise<RemoveOutcome>;

  /** Waits for a place among the writers of a directory, at most `waitMs`; `undefined` when the time ran out. */
  turn(dir: string, waitMs: number): Promise<Turn | undefined>;

  /** Closes connections and idle handles. */
  close(): Promise<void>;
}

export interface TableEntry {
  readonly name: string;
  readonly id: string;
}

export interface ObjectMeta {
  readonly path: string;
  readonly sizeBytes: number;
  /** When the object was last written, in milliseconds since the Unix epoch, by the store's clock. */
  readonly modifiedMs: number;
}

export interface ListOptions {
  /** Only paths greater than this one, by bytes. */
  readonly after?: string;
  /** Fold what is deeper than one level below the prefix into `folders`. */
  readonly shallow?: boolean;
  readonly limit?: number;
}

export interface Listing {
  readonly objects: ObjectMeta[];
  readonly folders: string[];
}

export interface CommitRequest {
  readonly dir: string;
  /** Small objects that become visible together with `publish`; they replace what stands at their path. */
  readonly objects: readonly StoredObject[];
  /** The manifest: must be absent. */
  readonly publish: StoredObject;
  /** The token of the folder of `publish`, read before the caller looked at that folder. */
  readonly token: string;
  /** Files that must exist, `objects` of this commit aside. */
  readonly requires: readonly string[];
  /**
   * The version that is published, when it does not build on what its readers stand on (an overwrite, a restore): every later lease of
   * the directory tells it, so that a handle from before it is known also when the versions in between were removed.
   */
  readonly replaces?: number;
}

export interface StoredObject {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** Only `committed` changed anything. */
export type CommitOutcome =
  | { readonly kind: 'committed' }
  | { readonly kind: 'exists' }
  | { readonly kind: 'moved' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'missing'; readonly path: string };

export type LeaseKind = 'write' | 'scan' | 'checkout';

export interface LeaseRequest {
  readonly dir: string;
  readonly kind: LeaseKind;
  readonly version: number;
  /** The manifest of `version`. */
  readonly manifest: string;
  readonly nowMs: number;
  readonly expiresMs: number;
}

export type LeaseOutcome =
  /** `replaced`: the newest version that was committed as `replaces`; 0 = none. */
  | { readonly kind: 'taken'; readonly id: string; readonly replaced: number }
  | { readonly kind: 'gone' }
  | { readonly kind: 'missing' };

/** A lease that has not run out. */
export interface LiveLease {
  readonly kind: LeaseKind;
  readonly version: number;
}

/** A reference (a tag, a branch) to be written. */
export interface RefRequest {
  readonly dir: string;
  /** Below `_refs/`. */
  readonly path: string;
  readonly bytes: Uint8Array;
  /** The manifest that it refers to: must be there. */
  readonly manifest: string;
  /** What it must find at its path: nothing, or an object, which it replaces. */
  readonly mode: 'create' | 'replace';
}

/**
 * Only `written` changed anything. `gone`: the directory is not live; `missing`: the manifest is not there; `exists`: to be created, and
 * something is at the path; `absent`: to be replaced, and nothing is.
 */
export type RefOutcome = 'written' | 'gone' | 'missing' | 'exists' | 'absent';

/** What a cleanup takes. */
export interface RemoveRequest {
  readonly dir: string;
  /** Old versions, and their manifests in the same order. */
  readonly versions: readonly number[];
  readonly manifests: readonly string[];
  /** Files that no version names any more once `manifests` are gone. */
  readonly files: readonly string[];
  /** As read before the first look at versions and references. */
  readonly pins: string;
  /**
   * The folder of versions and its token, as read before the first look, when `files` has some that no version named: one that is
   * committed since may name them.
   */
  readonly folder?: string;
  readonly token?: string;
  /** Nobody may be writing: `files` may be those of a write under way. */
  readonly needsNoWriter: boolean;
  readonly nowMs: number;
}

/** Only `removed` changed anything. */
export type RemoveOutcome =
  /** What was there is gone from every listing. `bytes`: of objects whose bytes are gone; `busy`: objects whose bytes go with a sweep. */
  | { readonly kind: 'removed'; readonly manifests: number; readonly bytes: number; readonly busy: number }
  /** The pins or the token moved, or a live lease is on one of the versions. */
  | { readonly kind: 'moved' }
  /** A live write lease is there, and `needsNoWriter`. */
  | { readonly kind: 'contended' }
  /** The directory is not live. */
  | { readonly kind: 'gone' };

/** A place in the queue of writers of one directory. */
export interface Turn {
  release(): void;
}

export interface ObjectWriter {
  write(bytes: Uint8Array): Promise<void>;
  /** Publishes the object with the promises of `put`; resolves to its size. */
  finish(): Promise<number>;
  /** Leaves nothing. */
  abort(): Promise<void>;
}
