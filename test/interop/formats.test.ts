import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as lancelet from '../../src/node';
import { differences, range, row, table } from './rows';

/** Rows of the first write and of each add: enough for several pages of vectors, texts and items. */
const FIRST = 8_000;
const ADD = 2_000;
const DELETED = "category = 'category-3'";
const isLeft = (i: number): boolean => row(i).category !== 'category-3';
const CHEAP = 'price < 50 and active';
const isCheap = (i: number): boolean => {
  const { price, active } = row(i);
  return price !== null && price < 50 && active === true;
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-formats-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What the footers of a table's data files say: major and minor. */
function footers(name: string): string[] {
  const files = readdirSync(join(folder, `${name}.lance`, 'data'));
  const footer = (file: string): string => {
    const bytes = readFileSync(join(folder, `${name}.lance`, 'data', file));
    return `${bytes.readUInt16LE(bytes.length - 8)}.${bytes.readUInt16LE(bytes.length - 6)}`;
  };
  return [...new Set(files.map(footer))];
}

describe.each([
  ['2.0', '0.3'],
  ['2.1', '2.1'],
])('data format %s', (version, footer) => {
  // 2.0 has no null structs.
  const placed = version === '2.0';
  const rows = (from: number, to: number): ReturnType<typeof table> => table(from, to, undefined, placed);
  const found = async (opened: { toArrow(): Promise<unknown> }, expected: number[]): Promise<string[]> =>
    differences((await opened.toArrow()) as ReturnType<typeof table>, expected, placed);
  const suffix = version.replace('.', '');

  test('a table of LanceDB is read, filtered, appended to and deleted from here, and LanceDB goes on', async () => {
    const name = `theirs-${suffix}`;
    const theirs = await (
      await lancedb.connect(folder)
    ).createTable(name, rows(0, FIRST), { storageOptions: { newTableDataStorageVersion: version } });
    await theirs.add(rows(FIRST, FIRST + ADD));

    const ours = await (await lancelet.connect(folder)).openTable(name);
    expect(await found(ours, range(0, FIRST + ADD))).toEqual([]);
    const cheap = range(0, FIRST + ADD).filter(isCheap);
    expect(differences(await ours.query().where(CHEAP).toArrow(), cheap, placed)).toEqual([]);
    const page = await ours
      .query()
      .select(['place.name', 'tags', 'id'])
      .offset(FIRST - 5)
      .limit(10)
      .toArrow();
    expect(page.getChild('id')?.toJSON()).toEqual(range(FIRST - 5, FIRST + 5).map((i) => row(i).id));

    expect(await ours.add(rows(FIRST + ADD, FIRST + 2 * ADD))).toEqual({ version: 3 });
    await ours.delete(DELETED);
    expect(footers(name)).toEqual([footer]);
    const left = range(0, FIRST + 2 * ADD).filter(isLeft);
    expect(await found(ours, left)).toEqual([]);

    await theirs.checkoutLatest();
    expect(await found(theirs, left)).toEqual([]);
    await theirs.optimize();
    expect(await found(theirs, left)).toEqual([]);
    await ours.checkoutLatest();
    expect(await found(ours, left)).toEqual([]);
  }, 240_000);

  test('a table made here is read, filtered, appended to and compacted by LanceDB, and read here again', async () => {
    const name = `ours-${suffix}`;
    const ours = await (
      await lancelet.connect(folder, { storageOptions: { newTableDataStorageVersion: version } })
    ).createTable(name, rows(0, FIRST));
    await ours.add(rows(FIRST, FIRST + ADD));
    expect(footers(name)).toEqual([footer]);

    const theirs = await (await lancedb.connect(folder)).openTable(name);
    expect(await found(theirs, range(0, FIRST + ADD))).toEqual([]);
    const cheap = range(0, FIRST + ADD).filter(isCheap);
    expect(await theirs.countRows(CHEAP)).toBe(cheap.length);
    expect(differences(await theirs.query().where(CHEAP).toArrow(), cheap, placed)).toEqual([]);
    const page = await theirs
      .query()
      .select(['tags', 'place', 'id'])
      .offset(FIRST - 5)
      .limit(10)
      .toArrow();
    expect(differences(page, range(FIRST - 5, FIRST + 5), placed)).toEqual([]);

    await theirs.add(rows(FIRST + ADD, FIRST + 2 * ADD));
    await theirs.delete(DELETED);
    expect(footers(name)).toEqual([footer]);
    const left = range(0, FIRST + 2 * ADD).filter(isLeft);
    await ours.checkoutLatest();
    expect(await found(ours, left)).toEqual([]);
    await theirs.optimize();
    expect(await found(theirs, left)).toEqual([]);
    await ours.checkoutLatest();
    expect(await found(ours, left)).toEqual([]);
  }, 240_000);
});

test('2.0 takes no null structs, in either library', async () => {
  const options = { storageOptions: { newTableDataStorageVersion: '2.0' } };
  const theirs = (await lancedb.connect(folder)).createTable('null-structs', table(0, 20), options);
  await expect(theirs).rejects.toThrow(/null/i);
  const nowhere = range(0, 20).find((i) => row(i).place === null);
  const ours = (await lancelet.connect(folder)).createTable('null-structs-here', table(0, 20), options);
  await expect(ours).rejects.toMatchObject({
    code: 'NOT_SUPPORTED',
    message: `not supported: null structs in data format 2.0 (column "place", row ${nowhere})`,
  });
});
