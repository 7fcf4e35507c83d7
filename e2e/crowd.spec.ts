// Several tabs of one browser that change one table all at once: every change happens once, and none fails.

import { expect, test, type Page } from '@playwright/test';

import { newUri, SCHEMES, useProfile } from './story/profile.ts';

const profile = useProfile();
const isFull = process.env['LANCELET_FULL'] === '1';
/** Of each kind, in each tab, none of which waits for another. */
const CHANGES = isFull ? 100 : 10;
/** Keys that every tab upserts; the others are its own. */
const SHARED = CHANGES / 2;

interface Upserted {
  readonly id: number;
  readonly version: number;
  readonly inserted: number;
  readonly updated: number;
}

interface Done {
  readonly deletes: readonly { readonly version: number; readonly rows: number }[];
  readonly adds: readonly number[];
  readonly upserts: readonly Upserted[];
}

/** Rows that a tab deletes begin at `tab * 1000`, rows that it adds at 300 and its own upserts at 600 behind that. */
const first = (tab: number): number => tab * 1000;
const numbers = (begin: number, count: number): number[] => Array.from({ length: count }, (_, n) => begin + n);

function change(page: Page, uri: string, tab: number): Promise<Done> {
  return page.evaluate(
    async ({ uri, tab, first, count, shared }) => {
      const table = await (await window.lancelet.connect(uri)).openTable('t');
      const each = <T>(run: (n: number) => Promise<T>) => Promise.all(Array.from({ length: count }, (_, n) => run(n)));
      const upsert = table.mergeInsert('id').whenMatchedUpdateAll().whenNotMatchedInsertAll();
      const [deletes, adds, upserts] = await Promise.all([
        each(async (n) => {
          const { version, numDeletedRows } = await table.delete(`id = ${first + n}`);
          return { version, rows: numDeletedRows };
        }),
        each(async (n) => (await table.add([{ id: first + 300 + n, tab }])).version),
        each(async (n) => {
          const id = n < shared ? n + 1 : first + 600 + n;
          const { version, numInsertedRows, numUpdatedRows } = await upsert.execute([{ id, tab }]);
          return { id, version, inserted: numInsertedRows, updated: numUpdatedRows };
        }),
      ]);
      return { deletes, adds, upserts };
    },
    { uri, tab, first: first(tab), count: CHANGES, shared: SHARED },
  );
}

/** The tab that wrote each row, by id, ascending. */
function readRows(page: Page, uri: string): Promise<[number, number][]> {
  return page.evaluate(async (uri) => {
    const table = await (await window.lancelet.connect(uri)).openTable('t');
    const rows = (await table.query().toArray()).map((row): [number, number] => [
      Number(row['id']),
      Number(row['tab']),
    ]);
    return rows.sort(([a], [b]) => a - b);
  }, uri);
}

for (const scheme of SCHEMES) {
  for (const tabs of [2, 4]) {
    test(`${tabs} tabs that delete, add and upsert ${CHANGES} times each at once on ${scheme} lose nothing and fail never`, async () => {
      test.setTimeout(isFull ? 1_800_000 : 120_000);
      const uri = newUri(scheme);
      const pages = await Promise.all(numbers(1, tabs).map(() => profile.current.newStory()));
      const [page] = pages as [Page, ...Page[]];
      await page.evaluate(
        async ({ uri, tabs, count }) => {
          const db = await window.lancelet.connect(uri);
          const ids = Array.from({ length: tabs * count }, (_, i) => (1 + Math.floor(i / count)) * 1000 + (i % count));
          await db.createTable(
            't',
            [...ids, 0].map((id) => ({ id, tab: 0 })),
          );
        },
        { uri, tabs, count: CHANGES },
      );

      const started = Date.now();
      const done = await Promise.all(pages.map((each, i) => change(each, uri, 1 + i)));
      if (isFull) console.log(`${tabs} tabs on ${scheme}: ${3 * CHANGES * tabs} changes in ${Date.now() - started} ms`);

      const versions = done.flatMap(({ deletes, adds, upserts }) => [
        ...deletes.map(({ version }) => version),
        ...adds,
        ...upserts.map(({ version }) => version),
      ]);
      expect(versions.sort((a, b) => a - b)).toEqual(numbers(2, 3 * CHANGES * tabs));
      expect(done.flatMap(({ deletes }) => deletes).every(({ rows }) => rows === 1)).toBe(true);

      // Of all upserts of a key the first one inserts, the others update, and the last one's row stays.
      const upserts = done.flatMap((each, i) => each.upserts.map((upsert) => ({ ...upsert, tab: 1 + i })));
      const winners = new Map<number, number>();
      for (const { id, version, tab, inserted, updated } of upserts.sort((a, b) => a.version - b.version)) {
        expect([id, version, inserted, updated]).toEqual([id, version, ...(winners.has(id) ? [0, 1] : [1, 0])]);
        winners.set(id, tab);
      }
      expect(winners.size).toBe(SHARED + tabs * (CHANGES - SHARED));

      const expected: [number, number][] = [[0, 0], ...winners];
      for (const tab of numbers(1, tabs)) {
        expected.push(...numbers(first(tab) + 300, CHANGES).map((id): [number, number] => [id, tab]));
      }
      expected.sort(([a], [b]) => a - b);
      for (const each of pages) expect(await readRows(each, uri)).toEqual(expected);
      await Promise.all(pages.map((each) => each.close()));
    });
  }
}
