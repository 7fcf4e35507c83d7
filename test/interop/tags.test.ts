import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import { expect, test } from 'vitest';

import { files, folder, ids, now, ours, range, rows, theirs } from './shared-folder';

test('tags that we write are LanceDB tags', async () => {
  const table = await ours.createTable('tagged', rows(0, 3));
  await table.add(rows(3, 5));
  const tags = await table.tags();
  await tags.create('first', 1);
  await tags.create('v1.0_x-y', 2);
  const native = await theirs.openTable('tagged');
  const nativeTags = await native.tags();
  const expected = await tags.list();
  const told = await nativeTags.list();
  expect(Object.keys(told).sort()).toEqual(['first', 'v1.0_x-y']);
  for (const [name, { version, manifestSize }] of Object.entries(expected)) {
    expect({ name, version: told[name]?.version, size: told[name]?.manifestSize }).toEqual({
      name,
      version,
      size: manifestSize,
    });
  }
  expect(expected['first']?.manifestSize).toBe(
    readFileSync(join(folder, 'tagged.lance/_versions/18446744073709551614.manifest')).length,
  );
  await native.checkout('first');
  expect(await ids(native)).toEqual([0, 1, 2]);
  await nativeTags.update('first', 2);
  expect(await tags.getVersion('first')).toBe(2);
  await nativeTags.delete('v1.0_x-y');
  expect(Object.keys(await tags.list())).toEqual(['first']);
  await tags.update('first', 1);
  expect(await nativeTags.getVersion('first')).toBe(1);
  await tags.delete('first');
  expect(await nativeTags.list()).toEqual({});
});

test('tags that LanceDB wrote are read, checked out, moved and deleted here', async () => {
  const native = await theirs.createTable('native-tags', rows(0, 3));
  await native.add(rows(3, 5));
  const nativeTags = await native.tags();
  await nativeTags.create('old', 1);
  const table = await ours.openTable('native-tags');
  const tags = await table.tags();
  const [told, expected] = [await tags.list(), await nativeTags.list()];
  expect(told).toEqual({ old: { version: 1, manifestSize: expected['old']?.manifestSize } });
  await table.checkout('old');
  expect(await ids(table)).toEqual([0, 1, 2]);
  await table.checkoutLatest();
  await tags.update('old', 2);
  expect(await nativeTags.getVersion('old')).toBe(2);
  const file = join(folder, 'native-tags.lance/_refs/tags/old.json');
  const json = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  await nativeTags.update('old', 1);
  const theirsJson = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  expect(Object.keys(json)).toEqual(Object.keys(theirsJson));
  expect(json['createdAt']).toBe(theirsJson['createdAt']);
  await tags.delete('old');
  expect(await nativeTags.list()).toEqual({});
});

test('what is wrong with a tag is said in the words of LanceDB', async () => {
  const table = await ours.createTable('wrong-tags', rows(0, 3));
  const [tags, nativeTags] = [await table.tags(), await (await theirs.openTable('wrong-tags')).tags()];
  await tags.create('a', 1);
  type Both = { [M in 'create' | 'update']: (tag: string, version: number) => Promise<void> } & {
    getVersion(tag: string): Promise<number>;
    delete(tag: string): Promise<void>;
  };
  const calls: ((tags: Both) => Promise<unknown>)[] = [
    (t) => t.create('a', 1),
    (t) => t.create('b', 99),
    (t) => t.update('a', 99),
    (t) => t.update('zz', 1),
    (t) => t.delete('zz'),
    (t) => t.getVersion('zz'),
    ...['', 'a/b', 'a b', '.a', 'a.', 'a..b', 'a.lock'].map((name) => (t: Both) => t.create(name, 1)),
  ];
  const message = (call: Promise<unknown>) =>
    call.then(
      () => 'done',
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
  for (const call of calls) {
    const [own, other] = [await message(call(tags)), await message(call(nativeTags))];
    // Ours says which name it is, too.
    const core = own.replace(/^invalid input, /, '').replace(/, found ".*"$/, '');
    expect(other, `ours says: ${own}`).toContain(core);
  }
});

test('a preview tells of no file that LanceDB needs', async () => {
  const native = await theirs.createTable('previewed', rows(0, 300));
  await native.createIndex('id', { config: lancedb.Index.btree() });
  await native.add(rows(300, 310));
  await native.delete('id = 5');
  await native.optimize();
  const table = await ours.openTable('previewed');
  const before = files('previewed');
  const preview = await table.previewCleanup(now());
  expect(files('previewed')).toEqual(before);
  expect(preview.kept.map(({ reasons }) => reasons)).toEqual([[{ kind: 'latest' }]]);
  expect(preview.oldVersionsRemoved).toBe((await native.version()) - 1);
  for (const { path } of preview.files) rmSync(join(folder, 'previewed.lance', path));
  const again = await (await lancedb.connect(folder)).openTable('previewed');
  expect(await ids(again)).toEqual(range(0, 310).filter((id) => id !== 5));
  expect(await ids(again, 'id = 305')).toEqual([305]);
  expect(await again.indexStats('id_idx')).toMatchObject({ numIndexedRows: 309 });
  expect(await (await ours.openTable('previewed')).countRows()).toBe(309);
});
