import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as lancelet from '../../src/node';

let folder: string;
let theirs: lancedb.Connection;
let ours: lancelet.Connection;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-optimize-'));
  theirs = await lancedb.connect(folder);
  ours = await lancelet.connect(folder);
});
afterAll(async () => {
  await ours.close();
  rmSync(folder, { recursive: true, force: true });
});

const NOTHING = { fragmentsRemoved: 0, fragmentsAdded: 0, filesRemoved: 0, filesAdded: 0 };

interface Row {
  readonly id: number;
  readonly text: string;
  readonly vector: readonly number[];
}

const row = (id: number): Row => ({ id, text: `row ${id % 7}`, vector: [id, id % 10, 1, 2] });
const rows = (from: number, to: number): Record<string, unknown>[] =>
  Array.from({ length: to - from }, (_, i) => ({ ...row(from + i), vector: [...row(from + i).vector] }));

async function ids(table: lancedb.Table | lancelet.Table): Promise<number[]> {
  const found = await table.query().select(['id']).toArrow();
  return Array.from(found.getChild('id') ?? [], Number);
}

const sorted = (numbers: readonly number[]): number[] => [...numbers].sort((a, b) => a - b);
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

/** A table of LanceDB with small fragments and deleted rows. */
async function messy(name: string, version: string): Promise<lancedb.Table> {
  const table = await theirs.createTable(name, rows(0, 200), {
    storageOptions: { newTableDataStorageVersion: version },
  });
  await table.add(rows(200, 300));
  await table.add(rows(300, 310));
  await table.delete('id < 50');
  await table.delete('id >= 300 and id < 303');
  return table;
}

describe.each(['2.0', '2.1', '2.2'])('data files %s', (version) => {
  const name = (what: string): string => `${what}-${version.replace('.', '')}`;

  test('our compaction of a table of LanceDB does what LanceDB does, and LanceDB goes on with it', async () => {
    await messy(name('mine'), version);
    cpSync(join(folder, `${name('mine')}.lance`), join(folder, `${name('copy')}.lance`), { recursive: true });
    const own = await ours.openTable(name('mine'));
    const { compaction, prune } = await own.optimize();
    const judge = await (await theirs.openTable(name('copy'))).optimize();
    expect(compaction).toEqual(judge.compaction);
    expect(compaction).toEqual({ fragmentsRemoved: 3, fragmentsAdded: 1, filesRemoved: 5, filesAdded: 1 });
    expect(prune).toEqual({ bytesRemoved: 0, oldVersionsRemoved: 0 });
    expect(await own.version()).toBe(7);

    const left = [...range(50, 300), ...range(303, 310)];
    const table = await theirs.openTable(name('mine'));
    expect(await table.version()).toBe(7);
    expect(await ids(table)).toEqual(left);
    const all = await table.query().toArray();
    expect(all.map(({ id, text, vector }) => ({ id, text, vector: [...vector] }))).toEqual(left.map(row));
    await table.add(rows(400, 410));
    await table.delete('id = 60');
    await table.update({ where: 'id = 61', values: { text: 'changed' } });
    const again = await table.optimize();
    expect(again.compaction.fragmentsAdded).toBe(1);
    await own.checkoutLatest();
    const expected = [...left.filter((id) => id !== 60), ...range(400, 410)];
    expect(sorted(await ids(own))).toEqual(expected);
    expect(await own.countRows("text = 'changed'")).toBe(1);
    await own.checkout(6);
    expect(await ids(own)).toEqual(left);
  });

  test('LanceDB compacts a table of ours, and we go on with it', async () => {
    const own = await ours.createTable(name('given'), rows(0, 100), {
      storageOptions: { newTableDataStorageVersion: version },
    });
    await own.add(rows(100, 130));
    await own.delete('id < 20');
    const table = await theirs.openTable(name('given'));
    const { compaction } = await table.optimize();
    expect(compaction).toEqual({ fragmentsRemoved: 2, fragmentsAdded: 1, filesRemoved: 3, filesAdded: 1 });
    await own.checkoutLatest();
    expect(await ids(own)).toEqual(range(20, 130));
    expect((await own.optimize()).compaction).toEqual(NOTHING);
    await own.add(rows(130, 140));
    expect((await own.optimize()).compaction.fragmentsRemoved).toBe(2);
    expect(await ids(await theirs.openTable(name('given')))).toEqual(range(20, 140));
  });
});

test('t25: indices of LanceDB stay right over our compaction, and LanceDB builds them again', async () => {
  const table = await theirs.createTable('indexed', rows(0, 400));
  await table.add(rows(400, 500));
  await table.createIndex('id');
  await table.createIndex('vector', { config: lancedb.Index.ivfFlat({ numPartitions: 2 }) });
  await table.add(rows(500, 520));
  await table.delete('id < 100');
  const own = await ours.openTable('indexed');
  // The fragment that is in no index is not mixed with those that are.
  expect((await own.optimize()).compaction).toMatchObject({ fragmentsRemoved: 2, fragmentsAdded: 1 });
  expect(await ids(own)).toEqual([...range(500, 520), ...range(100, 500)]);

  const reader = await theirs.openTable('indexed');
  const points = async (where: string): Promise<number[]> =>
    sorted((await reader.query().where(where).select(['id']).toArray()).map(({ id }) => id as number));
  const nearest = async (id: number): Promise<number[]> =>
    (
      await reader
        .vectorSearch([...row(id).vector])
        .limit(3)
        .nprobes(2)
        .toArray()
    ).map((found) => found.id as number);
  const check = async (): Promise<void> => {
    expect(await points('id = 50')).toEqual([]);
    expect(await points('id = 123')).toEqual([123]);
    expect(await points('id >= 495 and id < 505')).toEqual(range(495, 505));
    expect(await reader.countRows('id < 300')).toBe(200);
    for (const id of [101, 250, 499, 510]) expect((await nearest(id))[0]).toBe(id);
    expect(await reader.countRows()).toBe(420);
  };
  await check();
  expect((await reader.listIndices()).map((index) => index.name).sort()).toEqual(['id_idx', 'vector_idx']);
  await reader.optimize();
  for (const name of ['id_idx', 'vector_idx']) {
    expect(await reader.indexStats(name)).toMatchObject({ numIndexedRows: 420, numUnindexedRows: 0 });
  }
  await check();
  await own.checkoutLatest();
  expect(sorted(await ids(own))).toEqual(range(100, 520));
});

test('stats are those of LanceDB', async () => {
  const table = await theirs.createTable('stats', rows(0, 300));
  const own = await ours.openTable('stats');
  const equal = async (): Promise<void> => {
    await own.checkoutLatest();
    expect(await own.stats()).toEqual(await (await theirs.openTable('stats')).stats());
  };
  await equal();
  for (const count of [7, 100, 3, 9, 20]) {
    await table.add(rows(1_000, 1_000 + count));
    await equal();
  }
  await table.delete('id < 20');
  await equal();
  await table.createIndex('id');
  await table.createIndex('vector', { config: lancedb.Index.ivfFlat({ numPartitions: 2 }) });
  await equal();
  await table.dropColumns(['text']);
  await equal();
  await own.optimize();
  await equal();
  // A handle from before our compaction would meet it: LanceDB raises that, and ours plans again.
  await expect(table.optimize()).rejects.toThrow(/Retryable commit conflict/);
  await table.checkoutLatest();
  await table.optimize();
  await equal();
  await own.delete('true');
  await equal();
  await own.checkout(2);
  await table.checkout(2);
  expect(await own.stats()).toEqual(await table.stats());
});

test('the data of dropped columns goes with a compaction', async () => {
  const table = await theirs.createTable('dropped', rows(0, 100));
  await table.add(rows(100, 200));
  await table.dropColumns(['vector']);
  const own = await ours.openTable('dropped');
  const before = (await own.stats()).totalBytes;
  await own.optimize();
  expect((await own.stats()).totalBytes).toBeLessThan(before / 2);
  const reader = await theirs.openTable('dropped');
  expect((await reader.query().limit(2).toArray()).map((found) => ({ ...found }))).toEqual([
    { id: 0, text: 'row 0' },
    { id: 1, text: 'row 1' },
  ]);
  expect(await ids(reader)).toEqual(range(0, 200));
});

test('e1.3 e1.4: a short retention is refused before anything is written, and then does what it says', async () => {
  const own = await ours.createTable('retention', rows(0, 1));
  await own.add(rows(1, 2));
  const files = (): string[] => readdirSync(join(folder, 'retention.lance'), { recursive: true }).map(String).sort();
  const before = files();
  await expect(own.optimize({ cleanupOlderThan: new Date() })).rejects.toThrow(/at least 10 minutes/);
  await expect(own.optimize({ cleanupOlderThan: new Date(Date.now() + 60_000) })).rejects.toThrow(
    /at least 10 minutes/,
  );
  await expect(own.optimize({ cleanupOlderThan: new Date(NaN) })).rejects.toThrow(/invalid/);
  expect(await own.version()).toBe(2);
  expect(files()).toEqual(before);
  const { compaction, prune } = await own.optimize({ cleanupOlderThan: new Date(), deleteUnverified: true });
  expect(compaction).toEqual({ fragmentsRemoved: 2, fragmentsAdded: 1, filesRemoved: 2, filesAdded: 1 });
  expect(prune.oldVersionsRemoved).toBe(3);
  expect(prune.bytesRemoved).toBeGreaterThan(0);
  const reader = await theirs.openTable('retention');
  expect((await reader.listVersions()).map(({ version }) => version)).toEqual([4]);
  expect(await ids(reader)).toEqual([0, 1]);
  await reader.add(rows(2, 3));
  await own.checkoutLatest();
  expect(await ids(own)).toEqual([0, 1, 2]);
});
