/**
 * What a page and its worker say to each other. Every request has one answer with its id; methods and types are the `Engine`'s own.
 *
 * Bytes are transferred: whoever sends them gives them up.
 */

import type { Engine } from '../engine/port';
import type { WireError } from '../errors';

/** One call of an engine, as data. */
export type EngineCall = {
  readonly [M in keyof Engine]: { readonly method: M; readonly args: Parameters<Engine[M]> };
}[keyof Engine];

export type Request =
  | { readonly kind: 'connect'; readonly id: number; readonly connection: number; readonly uri: string }
  | ({ readonly kind: 'call'; readonly id: number; readonly connection: number } & EngineCall);

export type Response =
  | { readonly kind: 'done'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failed'; readonly id: number; readonly error: WireError }
  /** A closed connection's last object is gone. */
  | { readonly kind: 'idle'; readonly connection: number }
  /** The engine trapped: this worker is of no more use. */
  | { readonly kind: 'crashed'; readonly error: WireError };

/** Every method of an engine; a missing one does not compile. */
const METHODS: Readonly<Record<keyof Engine, true>> = {
  tableNames: true,
  beginCreate: true,
  keyedSchema: true,
  finishCreate: true,
  openTable: true,
  dropTable: true,
  renameTable: true,
  beginExport: true,
  readExport: true,
  endExport: true,
  beginImport: true,
  importFile: true,
  importBytes: true,
  finishImport: true,
  abortImport: true,
  schema: true,
  expectSchema: true,
  usesV2ManifestPaths: true,
  version: true,
  versions: true,
  checkout: true,
  checkoutLatest: true,
  tags: true,
  tagVersion: true,
  createTag: true,
  updateTag: true,
  deleteTag: true,
  checkoutTag: true,
  previewCleanup: true,
  restore: true,
  optimize: true,
  stats: true,
  maintain: true,
  countRows: true,
  delete: true,
  addNullColumns: true,
  addComputedColumns: true,
  alterColumns: true,
  dropColumns: true,
  updateFieldMetadata: true,
  update: true,
  setUnenforcedPrimaryKey: true,
  lsmWriteSpec: true,
  setLsmWriteSpec: true,
  unsetLsmWriteSpec: true,
  lsmStats: true,
  closeTable: true,
  beginAppend: true,
  beginOverwrite: true,
  write: true,
  finishAppend: true,
  beginMerge: true,
  finishMerge: true,
  abortWrite: true,
  scan: true,
  nextBatches: true,
  closeScan: true,
  close: true,
};

/** An engine whose every method is `send`. */
export function engineOf(send: (call: EngineCall) => Promise<unknown>): Engine {
  const methods = Object.keys(METHODS).map((method) => [
    method,
    (...args: unknown[]) => send({ method, args } as unknown as EngineCall),
  ]);
  return Object.fromEntries(methods) as Engine;
}

export function isMethod(name: string): name is keyof Engine {
  return Object.hasOwn(METHODS, name);
}

/**
 * A message's bytes as they can be transferred. A view of a larger buffer is copied first: moving that buffer would take away what
 * belongs to others, and cloning it would copy all of it.
 */
export function packBytes(message: unknown): { readonly message: unknown; readonly transfer: ArrayBuffer[] } {
  const transfer: ArrayBuffer[] = [];
  const pack = (value: unknown): unknown => {
    if (value instanceof Uint8Array) {
      const isWhole = value.buffer instanceof ArrayBuffer && value.byteLength === value.buffer.byteLength;
      // Also a small part of Node's pool, which a plain slice would share again.
      const own = isWhole ? value : Uint8Array.from(value);
      transfer.push(own.buffer as ArrayBuffer);
      return own;
    }
    if (Array.isArray(value)) return value.map(pack);
    if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, pack(item)]));
  };
  return { message: pack(message), transfer };
}
