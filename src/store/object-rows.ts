/** The rows of one object, and what a write changes in them: steps of larger transactions. */
import { LanceError } from '../errors';
import type { RowKind, Rows, Transaction } from './database';
import { byteKey, parentOf } from './path';
import { noDirectory } from './refusals';
import { isReference } from './removal';
import type { LiveLease, ObjectMeta } from './store';

/** Bodies up to this size are plain bytes in their rows: cheaper than a Blob or a file. */
export const SMALL_BYTES = 64 * 1024;

/** What a write to an object touches. */
export const OBJECT_KINDS: readonly RowKind[] = ['dirs', 'meta', 'body', 'tokens', 'tombstones'];

/** An object and the call that writes it. */
export interface Own {
  readonly dir: string;
  readonly path: string;
  readonly by: string;
}

/** Writes an object's rows; the files that this leaves without a row. */
export async function place(
  rows: Transaction,
  { dir, path, by }: Own,
  sizeBytes: number,
  bytes: { readonly body: Rows['body'] } | { readonly file: string },
): Promise<string[]> {
  const key = objectKey(dir, path);
  const old = await rows.get('meta', key);
  await noteChange(rows, dir, path, old === undefined);
  const row = { dir, path, by, sizeBytes, modifiedMs: Date.now() };
  if ('file' in bytes) {
    rows.put('meta', key, { ...row, file: bytes.file });
    rows.delete('body', key);
  } else {
    rows.put('meta', key, row);
    rows.put('body', key, bytes.body);
  }
  return old === undefined ? [] : bury(rows, [old]);
}

/** Leaves a tombstone for each file of rows that go. */
export function bury(rows: Transaction, gone: readonly { readonly file?: string }[]): string[] {
  const files = gone.flatMap(({ file }) => (file === undefined ? [] : [file]));
  for (const file of files) rows.put('tombstones', file, { file });
  return files;
}

/** Moves the token of an object's folder if it appears or leaves, and the pins if it is a reference. */
export async function noteChange(rows: Transaction, dir: string, path: string, hasMoved = true): Promise<void> {
  if (hasMoved) await noteMoves(rows, dir, [path]);
  if (!isReference(path)) return;
  const row = await rows.get('dirs', dir);
  if (row !== undefined) rows.put('dirs', dir, { ...row, pins: (row.pins ?? 0) + 1 });
}

/** Moves the tokens of the folders of objects that appear or leave. */
export async function noteMoves(rows: Transaction, dir: string, paths: readonly string[]): Promise<void> {
  const counts = new Map<string, number>();
  for (const path of paths) counts.set(parentOf(path), (counts.get(parentOf(path)) ?? 0) + 1);
  for (const [folder, count] of counts) {
    const key = objectKey(dir, folder);
    rows.put('tokens', key, ((await rows.get('tokens', key)) ?? 0) + count);
  }
}

/** The live leases of a directory; expired rows of any are deleted. */
export async function liveLeases(rows: Transaction, dir: string, nowMs: number): Promise<LiveLease[]> {
  const live: LiveLease[] = [];
  await eachLease(rows, (id, lease) => {
    if (lease.expiresMs <= nowMs) rows.delete('leases', id);
    else if (lease.dir === dir) live.push({ kind: lease.kind, version: lease.version });
  });
  return live;
}

export async function checkWritable(rows: Transaction, dir: string): Promise<void> {
  const row = await rows.get('dirs', dir);
  if (row === undefined || row.state === 'dropped') throw noDirectory(dir);
}

/** Leases are few: one for each handle in use. */
export async function eachLease(rows: Transaction, visit: (id: string, lease: Rows['leases']) => void): Promise<void> {
  const request = rows.store('leases').openCursor();
  await new Promise<void>((resolve, reject) => {
    request.onerror = () => reject(request.error as unknown);
    request.onsuccess = () => {
      const cursor = request.result;
      if (cursor === null) {
        resolve();
        return;
      }
      visit(String(cursor.key), cursor.value as Rows['leases']);
      cursor.continue();
    };
  });
}

export async function readBody(
  body: Rows['body'] | undefined,
  ranges: readonly { start: number; end: number }[],
): Promise<Uint8Array[]> {
  if (body instanceof Uint8Array) return ranges.map(({ start, end }) => body.slice(start, end));
  if (body === undefined) throw new LanceError('STORAGE', 'an object has no bytes');
  return Promise.all(ranges.map(async ({ start, end }) => new Uint8Array(await body.slice(start, end).arrayBuffer())));
}

export function bodyOf(bytes: Uint8Array<ArrayBuffer>): Rows['body'] {
  return bytes.length <= SMALL_BYTES ? bytes : new Blob([bytes]);
}

export function objectKey(dir: string, path: string): IDBValidKey {
  return [dir, byteKey(path)];
}

export function metaOf({ path, sizeBytes, modifiedMs }: Rows['meta']): ObjectMeta {
  return { path, sizeBytes, modifiedMs };
}
