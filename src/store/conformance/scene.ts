/** What the cases of the suite share: their shape, the tables they begin with, and assertions that run anywhere. */
import { LanceError, type ErrorCode } from '../../errors';
import type { CommitRequest, Listing, ListOptions, Store } from '../store';

export interface Traits {
  /** The token counts: a folder that an object entered and left again has another token than before. */
  readonly countsMoves: boolean;
}

/** Where a case plays: each call opens another handle on the same, at first empty, store. */
export interface Scene {
  readonly traits: Traits;
  open(): Promise<Store>;
}

export interface ConformanceCase {
  readonly name: string;
  run(scene: Scene): Promise<void>;
}

export const NOW = 1_000_000;
export const SOON = NOW + 30_000;
export const MANIFEST = '_versions/1.manifest';

/** A live table without any object. */
export async function emptyIn(store: Store): Promise<{ store: Store; dir: string }> {
  const dir = await store.createDir(NOW, SOON);
  equal(await store.publishDir('t', dir), 'published');
  return { store, dir };
}

/** A live table with one manifest. */
export async function tableIn(store: Store, name = 't'): Promise<{ store: Store; dir: string }> {
  const dir = await store.createDir(NOW, SOON);
  await store.put(dir, MANIFEST, bytes('manifest'));
  equal(await store.publishDir(name, dir), 'published');
  return { store, dir };
}

export async function commitOf(
  store: Store,
  dir: string,
  path: string,
  more: Partial<CommitRequest> = {},
): Promise<CommitRequest> {
  return {
    dir,
    objects: [
      { path: '_transactions/2', bytes: bytes('transaction') },
      { path: 'hint', bytes: bytes('new') },
    ],
    publish: { path, bytes: bytes('manifest') },
    token: await store.token(dir, '_versions'),
    requires: [],
    ...more,
  };
}

export function leaseOf(dir: string) {
  return { dir, kind: 'scan', version: 1, manifest: MANIFEST, nowMs: NOW, expiresMs: SOON } as const;
}

export async function taken(store: Store, dir: string): Promise<string> {
  const outcome = await store.lease(leaseOf(dir));
  check(outcome.kind === 'taken', `the lease was not taken: ${outcome.kind}`);
  return outcome.id;
}

export async function paths(store: Store, dir: string, prefix = '', options: ListOptions = {}): Promise<string[]> {
  return objectPaths(await store.list(dir, prefix, options));
}

export function objectPaths(listing: Listing): string[] {
  return listing.objects.map(({ path }) => path);
}

export function bytes(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

export function text(value: Uint8Array): string {
  return new TextDecoder().decode(value);
}

/** Bytes that tell their offset, so that a piece from the wrong place shows. */
export function pattern(offset: number, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, n) => ((offset + n) * 2_654_435_761) >>> 24);
}

export function same(actual: Uint8Array, expected: Uint8Array): void {
  equal(actual.length, expected.length);
  const index = actual.findIndex((byte, n) => byte !== expected[n]);
  check(index < 0, `byte ${index} is ${actual[index]}, expected ${expected[index]}`);
}

/** Compares plain values by their JSON; `undefined` is only equal to itself. */
export function equal(actual: unknown, expected: unknown): void {
  const isEqual = actual === expected || (actual !== undefined && JSON.stringify(actual) === JSON.stringify(expected));
  check(isEqual, `got ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`);
}

export function check(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Error(message);
}

export async function fails(code: ErrorCode, call: Promise<unknown>): Promise<void> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  const got = error instanceof LanceError ? error.code : String(error);
  check(got === code, `failed with ${got}, expected ${code}`);
}
