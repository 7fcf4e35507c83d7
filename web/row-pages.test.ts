import { expect, test } from 'vitest';

import { RowPages } from './row-pages.ts';

interface Fetch {
  readonly offset: number;
  readonly limit: number;
  readonly answer: (page: string) => Promise<void>;
  readonly fail: (error: Error) => Promise<void>;
}

/** Pages whose fetches are answered by hand. */
function scene(options = {}) {
  const fetches: Fetch[] = [];
  const pages = new RowPages<string>(
    (offset, limit) =>
      new Promise((resolve, reject) => {
        const settled = async (settle: () => void) => {
          settle();
          await new Promise((done) => setImmediate(done));
        };
        fetches.push({
          offset,
          limit,
          answer: (page) => settled(() => resolve(page)),
          fail: (error) => settled(() => reject(error)),
        });
      }),
    { pageRows: 10, ...options },
  );
  return { pages, fetches, offsets: () => fetches.map(({ offset }) => offset) };
}

test('rows in sight are fetched by pages and found by their number', async () => {
  const { pages, fetches } = scene();
  pages.want(5, 12);
  expect(fetches.map(({ offset, limit }) => [offset, limit])).toEqual([
    [0, 10],
    [10, 10],
  ]);
  expect(pages.at(11)).toBeUndefined();
  await fetches[1]?.answer('second');
  expect(pages.at(11)).toEqual({ page: 'second', index: 1 });
  expect(pages.at(9)).toBeUndefined();
});

test('a page is fetched once though it is wanted again', async () => {
  const { pages, fetches, offsets } = scene();
  pages.want(0, 10);
  pages.want(0, 10);
  await fetches[0]?.answer('first');
  pages.want(0, 10);
  expect(offsets()).toEqual([0]);
});

test('pages that were scrolled past before their turn are not fetched', async () => {
  const { pages, fetches, offsets } = scene({ parallelFetches: 1 });
  pages.want(0, 10);
  pages.want(100, 110);
  pages.want(500, 510);
  expect(offsets()).toEqual([0]);
  await fetches[0]?.answer('first');
  expect(offsets()).toEqual([0, 500]);
});

test('the page that was not used for longest goes first', async () => {
  const { pages, fetches } = scene({ keptPages: 2, parallelFetches: 3 });
  pages.want(0, 20);
  await fetches[0]?.answer('first');
  await fetches[1]?.answer('second');
  pages.at(0);
  pages.want(20, 30);
  await fetches[2]?.answer('third');
  expect([pages.at(0)?.page, pages.at(10)?.page, pages.at(20)?.page]).toEqual(['first', undefined, 'third']);
});

test('a failed fetch is told and runs again only when it is wanted again', async () => {
  const { pages, fetches, offsets } = scene();
  const errors: unknown[] = [];
  pages.onerror = (error) => errors.push(error);
  pages.want(0, 10);
  await fetches[0]?.fail(new Error('no'));
  expect(errors).toEqual([new Error('no')]);
  expect(offsets()).toEqual([0]);
  pages.want(0, 10);
  expect(offsets()).toEqual([0, 0]);
});

test('what comes after closing is dropped', async () => {
  const { pages, fetches } = scene();
  let calls = 0;
  pages.onpage = () => calls++;
  pages.onerror = () => calls++;
  pages.want(0, 20);
  pages.close();
  await fetches[0]?.answer('late');
  await fetches[1]?.fail(new Error('late'));
  expect(calls).toBe(0);
  expect(pages.at(0)).toBeUndefined();
});
