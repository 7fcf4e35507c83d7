// Several tabs of one browser that change one table all at once: every change happens once, and none fails.

import { expect, test, type Page } from '@playwright/test';

import { newUri, SCHEMES, useProfile } from './story/profile.ts';

const profile = useProfile();
const isFull = process.env['LANCELET_FULL'] === '1';
/** Of each kind, in each tab, none of which waits for another. */
const CHANGES = isFull ? 100 : 15;

interface Done {
  readonly versions: number[];
  readonly deleted: number[];
}

const numbers = (first: number, count: number): number[] => Array.from({ length: count }, (_, n) => first + n);

/** Rows that this tab deletes begin at `tab * 1000`, rows that it adds at `tab * 1000 + 500`. */
function change(page: Page, uri: string, tab: number): Promise<Done> {
  return page.evaluate(
    async ({ uri, first, count }) => {
      const table = await (await window.lancelet.connect(uri)).openTable('t');
      const each = <T>(run: (n: number) => Promise<T>) => Promise.all(Array.from({ length: count }, (_, n) => run(n)));
      const [deletes, adds] = await Promise.all([
        each((n) => table.delete(`id = ${first + n}`)),
        each((n) => table.add([{ id: first + 500 + n }])),
      ]);
      return {
        versions: [...deletes, ...adds].map(({ version }) => version),
        deleted: deletes.map(({ numDeletedRows }) => numDeletedRows),
      };
    },
    { uri, first: tab * 1000, count: CHANGES },
  );
}

for (const scheme of SCHEMES) {
  for (const tabs of [2, 4]) {
    test(`${tabs} tabs that delete and add ${CHANGES} times each at once on ${scheme} lose nothing and fail never`, async () => {
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
            [...ids, 0].map((id) => ({ id })),
          );
        },
        { uri, tabs, count: CHANGES },
      );

      const done = await Promise.all(pages.map((each, i) => change(each, uri, 1 + i)));

      const versions = done.flatMap((each) => each.versions).sort((a, b) => a - b);
      expect(versions).toEqual(numbers(2, 2 * CHANGES * tabs));
      expect(done.flatMap(({ deleted }) => deleted).every((rows) => rows === 1)).toBe(true);
      const expected = [0, ...numbers(1, tabs).flatMap((tab) => numbers(tab * 1000 + 500, CHANGES))];
      for (const each of pages) {
        const ids = await each.evaluate(async (uri) => {
          const table = await (await window.lancelet.connect(uri)).openTable('t');
          return (await table.query().toArray()).map((row) => Number(row['id']));
        }, uri);
        expect(ids.sort((a, b) => a - b)).toEqual(expected);
      }
      await Promise.all(pages.map((each) => each.close()));
    });
  }
}
