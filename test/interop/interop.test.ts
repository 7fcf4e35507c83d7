import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as lancelet from '../../src/node';
import { differences, mix, range, row, schema, table } from './rows';

/** Rows of the first write, of each of two adds, and of the small ones that follow. */
const FIRST = 30_000;
const ADD = 10_000;
const TOTAL = FIRST + 2 * ADD;
const DELETED = "category = 'category-3' or id < -900";

const isDeleted = (i: number): boolean => row(i).category === 'category-3' || row(i).id < -900n;
const live = (from: number, to: number): number[] => range(from, to).filter((i) => !isDeleted(i));
const isCheap = (i: number): boolean => {
  const { price, active } = row(i);
  return price !== null && price < 50 && active === true;
};
const CHEAP = 'price < 50 and active';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-interop-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each([['2.2'], ['2.1']])('a table that LanceDB wrote, format %s', (version) => {
  const name = `theirs-${version.replace('.', '')}`;

  beforeAll(async () => {
    const db = await lancedb.connect(folder);
    const written = await db.createTable(name, table(0, FIRST), {
      storageOptions: { newTableDataStorageVersion: version },
    });
    await written.add(table(FIRST, FIRST + ADD));
    await written.add(table(FIRST + ADD, TOTAL));
    await written.delete(DELETED);
  }, 240_000);

  test('is read here value by value', async () => {
    const db = await lancelet.connect(folder);
    const opened = await db.openTable(name);
    expect(await opened.version()).toBe(4);
    expect(await opened.countRows()).toBe(live(0, TOTAL).length);
    expect(differences(await opened.toArrow(), live(0, TOTAL))).toEqual([]);
  });

  test('is filtered, cut and projected here as LanceDB does it', async () => {
    const ours = await (await lancelet.connect(folder)).openTable(name);
    const theirs = await (await lancedb.connect(folder)).openTable(name);
    const expected = live(0, TOTAL).filter(isCheap);
    expect(await ours.countRows(CHEAP)).toBe(expected.length);
    expect(differences(await ours.query().where(CHEAP).toArrow(), expected)).toEqual([]);
    const page = { columns: ['title', 'id'], offset: 123, limit: 45 };
    const [own, other] = await Promise.all(
      [ours, theirs].map((each) =>
        each.query().where(CHEAP).select(page.columns).offset(page.offset).limit(page.limit).toArrow(),
      ),
    );
    expect(own?.toString()).toBe(other?.toString());
    expect(own?.numRows).toBe(45);
  });

  test('is read here in its older versions', async () => {
    const opened = await (await lancelet.connect(folder)).openTable(name);
    await opened.checkout(2);
    expect(differences(await opened.query().select(['id', 'tags', 'place']).toArrow(), range(0, FIRST + ADD))).toEqual(
      [],
    );
    await opened.checkoutLatest();
    expect(await opened.countRows()).toBe(live(0, TOTAL).length);
  });
});

test('t2: a table that LanceDB wrote is appended to and deleted from here, and LanceDB goes on with it', async () => {
  const ours = await (await lancelet.connect(folder)).openTable('theirs-22');
  expect(await ours.add(table(TOTAL, TOTAL + 500))).toEqual({ version: 5 });
  const gone = live(TOTAL, TOTAL + 500)
    .concat(range(TOTAL, TOTAL + 500).filter(isDeleted))
    .filter(isCheap);
  const cheapBefore = live(0, TOTAL).filter(isCheap).length;
  expect(await ours.delete(CHEAP)).toEqual({ numDeletedRows: cheapBefore + gone.length, version: 6 });

  const left = [...live(0, TOTAL), ...range(TOTAL, TOTAL + 500)].filter((i) => !isCheap(i));
  const theirs = await (await lancedb.connect(folder)).openTable('theirs-22');
  expect(await theirs.countRows()).toBe(left.length);
  expect(differences(await theirs.toArrow(), left)).toEqual([]);
  expect((await theirs.listVersions()).map((each) => each.version)).toEqual([1, 2, 3, 4, 5, 6]);

  await theirs.optimize();
  await ours.checkoutLatest();
  expect(differences(await ours.toArrow(), left)).toEqual([]);
});

describe('a table written here', () => {
  const name = 'ours';

  beforeAll(async () => {
    const db = await lancelet.connect(folder);
    const written = await db.createTable(name, table(0, FIRST));
    await written.add(table(FIRST, FIRST + ADD));
    await written.add(table(FIRST + ADD, TOTAL));
    await written.delete(DELETED);
  }, 240_000);

  test('is read back here value by value, with its schema', async () => {
    const opened = await (await lancelet.connect(folder)).openTable(name);
    expect(String(await opened.schema())).toBe(String(schema));
    expect(differences(await opened.toArrow(), live(0, TOTAL))).toEqual([]);
  });

  // W7
  test('t2: is opened, filtered, appended to, deleted from and compacted by LanceDB, and read here again', async () => {
    const theirs = await (await lancedb.connect(folder)).openTable(name);
    expect(String(await theirs.schema())).toBe(String(schema));
    expect(await theirs.version()).toBe(4);
    expect(await theirs.countRows()).toBe(live(0, TOTAL).length);
    expect(differences(await theirs.toArrow(), live(0, TOTAL))).toEqual([]);
    const cheap = live(0, TOTAL).filter(isCheap);
    expect(await theirs.countRows(CHEAP)).toBe(cheap.length);
    const rowIds = await theirs.query().where(CHEAP).select(['id']).withRowId().limit(3).toArray();
    expect(rowIds.map((each) => (each as { id: bigint }).id)).toEqual(cheap.slice(0, 3).map((i) => row(i).id));

    await theirs.add(table(TOTAL, TOTAL + 700));
    const deleted = await theirs.delete(CHEAP);
    const left = [...live(0, TOTAL), ...range(TOTAL, TOTAL + 700)].filter((i) => !isCheap(i));
    expect(deleted.version).toBe(6);
    expect(differences(await theirs.toArrow(), left)).toEqual([]);

    const ours = await (await lancelet.connect(folder)).openTable(name);
    expect(differences(await ours.toArrow(), left)).toEqual([]);

    await theirs.optimize();
    await ours.checkoutLatest();
    expect(differences(await ours.toArrow(), left)).toEqual([]);
    await ours.checkout(4);
    expect(differences(await ours.query().select(['id', 'title', 'vector']).toArrow(), live(0, TOTAL))).toEqual([]);
  });
});

test('writers of both libraries take turns on one folder and no row is lost', async () => {
  const ours = await (await lancelet.connect(folder)).createTable('shared', table(0, 10));
  const theirs = await (await lancedb.connect(folder)).openTable('shared');
  const expected = range(0, 10);
  for (let turn = 0; turn < 6; turn++) {
    const from = 10 + turn * 5;
    await (turn % 2 === 0 ? ours : theirs).add(table(from, from + 5));
    expected.push(...range(from, from + 5));
  }
  await ours.checkoutLatest();
  expect(differences(await ours.toArrow(), expected)).toEqual([]);
  expect(
    differences(await (await lancedb.connect(folder)).openTable('shared').then((t) => t.toArrow()), expected),
  ).toEqual([]);
  expect(mix(1)).not.toBe(mix(2));
});
