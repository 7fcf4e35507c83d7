// Two tabs of one browser on one table: no row lost, none twice, no error that is not the user's to handle.

import { expect, test, type Page } from '@playwright/test';

import { newUri, SCHEMES, useProfile } from './story/profile.ts';

const profile = useProfile();
const FIRST_ROWS = 20;
const ROWS_A_TAB = 100;

/** Appends rows one at a time; the version of each. */
function append(page: Page, uri: string, first: number): Promise<number[]> {
  return page.evaluate(
    async ({ uri, first, count }) => {
      const table = await (await window.lancelet.connect(uri)).openTable('t');
      const versions: number[] = [];
      for (let id = first; id < first + count; id++) versions.push((await table.add([{ id }])).version);
      return versions;
    },
    { uri, first, count: ROWS_A_TAB },
  );
}

function readIds(page: Page, uri: string): Promise<number[]> {
  return page.evaluate(async (uri) => {
    const table = await (await window.lancelet.connect(uri)).openTable('t');
    return (await table.query().toArray()).map((row) => Number(row['id'])).sort((a, b) => a - b);
  }, uri);
}

for (const scheme of SCHEMES) {
  test(`two tabs that append at the same time on ${scheme} lose nothing`, async () => {
    const uri = newUri(scheme);
    const [one, two] = [await profile.current.newStory(), await profile.current.newStory()];
    await one.evaluate(
      async ({ uri, count }) => {
        const db = await window.lancelet.connect(uri);
        await db.createTable(
          't',
          Array.from({ length: count }, (_, id) => ({ id })),
        );
      },
      { uri, count: FIRST_ROWS },
    );

    const [ones, twos] = await Promise.all([append(one, uri, 1000), append(two, uri, 2000)]);

    const numbers = (first: number, count: number) => Array.from({ length: count }, (_, n) => first + n);
    expect([...ones, ...twos].sort((a, b) => a - b)).toEqual(numbers(2, 2 * ROWS_A_TAB));
    const expected = [...numbers(0, FIRST_ROWS), ...numbers(1000, ROWS_A_TAB), ...numbers(2000, ROWS_A_TAB)];
    expect(await readIds(one, uri)).toEqual(expected);
    expect(await readIds(two, uri)).toEqual(expected);
    await one.close();
    await two.close();
  });

  test(`a handle sees what another tab wrote on ${scheme} when it asks for the latest`, async () => {
    const uri = newUri(scheme);
    const [one, two] = [await profile.current.newStory(), await profile.current.newStory()];
    await one.evaluate(async (uri) => {
      const db = await window.lancelet.connect(uri);
      Object.assign(window, { table: await db.createTable('t', [{ id: 1 }]) });
    }, uri);
    await two.evaluate(async (uri) => {
      const table = await (await window.lancelet.connect(uri)).openTable('t');
      await table.add([{ id: 2 }, { id: 3 }]);
    }, uri);
    const counts = await one.evaluate(async () => {
      const table = Reflect.get(window, 'table');
      const before = await table.countRows();
      await table.checkoutLatest();
      return [before, await table.countRows()];
    });
    expect(counts).toEqual([1, 3]);
    await one.close();
    await two.close();
  });

  test(`two tabs that create one missing table on ${scheme} over another both succeed, and the later one wins`, async () => {
    const uri = newUri(scheme);
    const [one, two] = [await profile.current.newStory(), await profile.current.newStory()];
    const create = (page: Page, tab: number) =>
      page.evaluate(
        async ({ uri, tab }) => {
          const db = await window.lancelet.connect(uri);
          // Large enough to lie in files of their own.
          const rows = Array.from({ length: 2_000 }, (_, n) => ({ id: tab * 10_000 + n, text: `${n} `.repeat(50) }));
          return (await db.createTable('t', rows, { mode: 'overwrite' })).version();
        },
        { uri, tab },
      );

    const versions = await Promise.all([create(one, 1), create(two, 2)]);

    expect([...versions].sort()).toEqual([1, 2]);
    const winner = 1 + versions.indexOf(2);
    const expected = Array.from({ length: 2_000 }, (_, n) => winner * 10_000 + n);
    expect(await readIds(one, uri)).toEqual(expected);
    expect(await readIds(two, uri)).toEqual(expected);
    await one.close();
    await two.close();
  });

  test(`a table dropped on ${scheme} while another tab writes ends the writer with TABLE_NOT_FOUND`, async () => {
    const uri = newUri(scheme);
    const [writer, dropper] = [await profile.current.newStory(), await profile.current.newStory()];
    await writer.evaluate(async (uri) => {
      const table = await (await window.lancelet.connect(uri)).createTable('t', [{ id: 0 }]);
      const write = async () => {
        for (let id = 1; ; id++) {
          await table.add([{ id }]);
          Object.assign(window, { written: id });
        }
      };
      const end = write().catch((error) => ({ isOurs: error instanceof window.lancelet.LanceError, code: error.code }));
      Object.assign(window, { end, written: 0 });
    }, uri);
    await writer.waitForFunction(() => Reflect.get(window, 'written') >= 5);

    const names = await dropper.evaluate(async (uri) => {
      const db = await window.lancelet.connect(uri);
      await db.dropTable('t');
      return db.tableNames();
    }, uri);

    expect(names).toEqual([]);
    expect(await writer.evaluate(() => Reflect.get(window, 'end'))).toEqual({ isOurs: true, code: 'TABLE_NOT_FOUND' });
    const after = await writer.evaluate(async (uri) => {
      const db = await window.lancelet.connect(uri);
      const table = await db.createTable('t', [{ other: 'a' }]);
      return [await db.tableNames(), await table.countRows()];
    }, uri);
    expect(after).toEqual([['t'], 1]);
    await writer.close();
    await dropper.close();
  });
}
