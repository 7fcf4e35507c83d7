import { expect, test } from 'vitest';

import { findTables, pickedFiles } from './folder.ts';
import { writeTar } from './tar.ts';

const files = (...paths: string[]) => paths.map((path) => ({ path, body: new Blob([path]) }));
const found = (...paths: string[]) =>
  findTables(files(...paths)).map((table) => [table.name, table.files.map(({ path }) => path)]);

test('a picked table is found with its paths inside the table', () => {
  expect(found('birds.lance/_versions/1.manifest', 'birds.lance/data/a.lance')).toEqual([
    ['birds', ['_versions/1.manifest', 'data/a.lance']],
  ]);
});

test('a picked folder may hold several tables and other files', () => {
  const tables = found(
    'db/b.lance/_versions/1.manifest',
    'db/a.lance/_versions/1.manifest',
    'db/a.lance/data/x',
    'db/readme.md',
  );
  expect(tables).toEqual([
    ['a', ['_versions/1.manifest', 'data/x']],
    ['b', ['_versions/1.manifest']],
  ]);
});

test('a table whose own folder was not picked has no name of its own', () => {
  expect(found('_versions/1.manifest', 'data/x')).toEqual([['imported', ['_versions/1.manifest', 'data/x']]]);
});

test('a branch and a generation belong to the table that holds them', () => {
  const paths = [
    't.lance/tree/b/_versions/1.manifest',
    't.lance/_mem_wal/s/g/_versions/1.manifest',
    't.lance/_versions/1.manifest',
  ];
  expect(found(...paths)).toEqual([['t', paths.map((path) => path.slice('t.lance/'.length))]]);
});

test('files without a table are no table', () => {
  expect(found('notes/versions.txt', 'a/b')).toEqual([]);
});

test('a table knows its size', () => {
  expect(findTables(files('t/_versions/1', 't/data')).map(({ sizeBytes }) => sizeBytes)).toEqual([19]);
});

test('an archive stands for the files in it', async () => {
  const archive = writeTar(files('t.lance/_versions/1.manifest'), new Date(0));
  const picked = await pickedFiles([new File([archive], 't.lance.tar')]);
  expect(picked.map(({ path }) => path)).toEqual(['t.lance/_versions/1.manifest']);
});
