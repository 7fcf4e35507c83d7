import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import { expect, test } from 'vitest';

import { files, folder, ids, now, ours, range, rows, theirs } from './shared-folder';

test('t21 e1.5 e1.6: a table of two versions is compacted and cleaned, and LanceDB goes on with it', async () => {
  const table = await ours.createTable('seed', rows(0, 1));
  await table.add(rows(1, 2));
  const before = files('seed');
  await expect(table.optimize({ cleanupOlderThan: new Date() })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: /at least 10 minutes/,
  });
  expect(await table.version()).toBe(2);
  expect((await table.listVersions()).length).toBe(2);
  expect(files('seed')).toEqual(before);
  const stats = await table.optimize(now());
  expect(stats.prune.bytesRemoved).toBeGreaterThan(0);
  expect(stats.prune.oldVersionsRemoved).toBe(3);
  expect(stats.compaction).toMatchObject({ filesAdded: 1, filesRemoved: 2, fragmentsAdded: 1, fragmentsRemoved: 2 });
  expect((await table.listVersions()).map(({ version }) => version)).toEqual([4]);
  const native = await theirs.openTable('seed');
  expect(await ids(native)).toEqual([0, 1]);
  await native.add(rows(2, 4));
  await native.delete('id = 0');
  await table.checkoutLatest();
  expect(await ids(table)).toEqual([1, 2, 3]);
});

test('a table of LanceDB with indices is cleaned here, and its indices go on', async () => {
  const native = await theirs.createTable('indexed', rows(0, 300));
  await native.createIndex('id', { config: lancedb.Index.btree() });
  await native.createIndex('text', { config: lancedb.Index.fts() });
  await native.add(rows(300, 310));
  await native.optimize({ cleanupOlderThan: new Date(0) });
  await native.delete('id < 3');
  await (await native.tags()).create('keep', 2);
  mkdirSync(join(folder, 'indexed.lance/_indices/00000000-0000-4000-8000-000000000000'), { recursive: true });
  writeFileSync(join(folder, 'indexed.lance/_indices/00000000-0000-4000-8000-000000000000/part.idx'), 'orphan');
  writeFileSync(join(folder, 'indexed.lance/data/orphan.lance'), 'orphan');
  writeFileSync(join(folder, 'indexed.lance/_versions/.tmp_1.manifest_x'), 'orphan');
  writeFileSync(join(folder, 'indexed.lance/notes.txt'), 'not ours');

  const table = await ours.openTable('indexed');
  const version = await table.version();
  const tagged = table.optimize(now());
  await expect(tagged).rejects.toThrow(/1 tagged version\(s\) have been marked for cleanup.*\{"keep": 2\}/);
  expect(await table.version()).toBe(version);
  const before = files('indexed');
  const { prune } = await table.optimize({ ...now(), errorIfTaggedOldVersions: false });
  expect((await table.listVersions()).map((each) => each.version)).toEqual([2, await table.version()]);
  expect(prune.oldVersionsRemoved).toBe((await table.version()) - 2);
  const after = files('indexed');
  const gone = before.filter((path) => !after.includes(path));
  expect(gone.filter((path) => /orphan|\.tmp_|00000000-0000/.test(path)).length).toBe(3);
  expect(after).toContain('notes.txt');
  expect(after).toContain('_refs/tags/keep.json');

  const again = await (await lancedb.connect(folder)).openTable('indexed');
  expect(await ids(again)).toEqual(range(3, 310));
  expect(await ids(again, 'id = 305')).toEqual([305]);
  expect((await again.listIndices()).map(({ name }) => name).sort()).toEqual(['id_idx', 'text_idx']);
  const found = await again
    .query()
    .fullTextSearch('301', { columns: ['text'] })
    .select(['id'])
    .toArray();
  expect(found.map(({ id }: { id: number }) => Number(id))).toEqual([301]);
  await again.add(rows(400, 402));
  await again.optimize();
  expect(await ids(again, 'id = 401')).toEqual([401]);
  await again.checkout('keep');
  expect(await again.countRows()).toBe(300);
  await table.checkoutLatest();
  expect(await ids(table)).toEqual([...range(3, 310), 400, 401]);
});

test('a branch of LanceDB survives a cleanup of the table that it left', async () => {
  const native = await theirs.createTable('branched', rows(0, 10));
  await native.add(rows(10, 20));
  await (await native.branches()).create('dev');
  await native.delete('id < 15');
  await native.add(rows(30, 31));
  const table = await ours.openTable('branched');
  const preview = await table.previewCleanup(now());
  expect(preview.kept.map(({ version, reasons }) => [version, reasons])).toEqual([
    [2, [{ kind: 'branch', name: 'dev' }]],
    [4, [{ kind: 'latest' }]],
  ]);
  await table.optimize(now());
  const dev = await (await native.branches()).checkout('dev');
  expect(await ids(dev)).toEqual(range(0, 20));
  expect(await ids(await (await lancedb.connect(folder)).openTable('branched'))).toEqual([...range(15, 20), 30]);
});
