/** One folder that both libraries have open, for the length of a test file; and the rows and the files of its tables. */

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import { afterAll, beforeAll } from 'vitest';

import * as lancelet from '../../src/node';

export let folder: string;
export let ours: lancelet.Connection;
export let theirs: lancedb.Connection;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-shared-'));
  ours = await lancelet.connect(folder);
  theirs = await lancedb.connect(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

export const rows = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => ({ id: from + n, text: `row ${from + n}`, vector: [from + n, 1, 2, 3] }));
export const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);

export async function ids(table: lancelet.Table | lancedb.Table, filter = 'id >= 0'): Promise<number[]> {
  const found = (await table.query().where(filter).select(['id']).toArray()) as { id: number }[];
  return found.map(({ id }) => Number(id)).sort((a, b) => a - b);
}

/** Every file of a table, by path. */
export function files(name: string, below = ''): string[] {
  return readdirSync(join(folder, `${name}.lance`, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    return entry.isDirectory() ? files(name, path) : [path];
  });
}

/** What takes everything but the newest version. */
export const now = () => ({ cleanupOlderThan: new Date(), deleteUnverified: true });
