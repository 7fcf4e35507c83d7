// The library in a window: the engine in the page's worker, tables that outlive a reload, and what happens when the worker fails.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium, expect, test, type BrowserContext, type Page } from '@playwright/test';

import { launchOptions } from './browser.ts';
import type {} from './harness/facade-page.ts';

let profile: string;
let context: BrowserContext;
let page: Page;
let base: string;

test.beforeAll(async ({}, { project }) => {
  base = project.use.baseURL ?? '';
  profile = mkdtempSync(join(tmpdir(), 'lancelet-facade-'));
  // A profile on disk: default contexts keep storage in memory.
  context = await chromium.launchPersistentContext(profile, launchOptions);
});

test.beforeEach(async () => {
  page = await newTab();
});

test.afterEach(async () => {
  await page.close();
});

test.afterAll(async () => {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
});

async function newTab(): Promise<Page> {
  const tab = await context.newPage();
  await load(tab);
  return tab;
}

async function load(tab: Page): Promise<void> {
  await tab.goto(`${base}/e2e/harness/facade.html`);
  await tab.waitForFunction(() => 'lancelet' in window);
}

for (const scheme of ['opfs', 'indexeddb']) {
  test(`${scheme}: a table is there after a reload, with its versions`, async () => {
    const written = await page.evaluate(async (uri) => {
      const db = await window.lancelet.connect(uri);
      const table = await db.createTable('t', [
        { id: 1n, text: 'one', vector: [1, 2] },
        { id: 2n, text: 'two', vector: [3, 4] },
      ]);
      await table.add([{ id: 3n, text: 'three', vector: [5, 6] }]);
      const { version, numDeletedRows } = await table.delete('id = 1');
      return { version, numDeletedRows, workers: window.workers };
    }, `${scheme}://reload`);
    expect(written).toEqual({ version: 3, numDeletedRows: 1, workers: [expect.stringMatching(/^lancelet-/)] });

    await load(page);
    const read = await page.evaluate(async (uri) => {
      const db = await window.lancelet.connect(uri);
      const table = await db.openTable('t');
      const rows = await table.query().where('id > 0').toArray({ plainObjects: true });
      await table.checkout(1);
      const old = await table.countRows();
      const versions = (await table.listVersions()).map(({ version }) => version);
      return { texts: rows.map((row) => `${row['id']} ${row['text']} ${row['vector']}`), old, versions };
    }, `${scheme}://reload`);
    expect(read).toEqual({ texts: ['2 two 3,4', '3 three 5,6'], old: 2, versions: [1, 2, 3] });
  });
}

test('an error keeps its class and code on the way out of the worker', async () => {
  const error = await page.evaluate(async () => {
    const db = await window.lancelet.connect('indexeddb://errors');
    const thrown: unknown = await db.openTable('none').catch((reason: unknown) => reason);
    const isOurs = thrown instanceof window.lancelet.LanceError;
    return isOurs ? { code: thrown.code, message: thrown.message, details: thrown.details } : String(thrown);
  });
  expect(error).toEqual({
    code: 'TABLE_NOT_FOUND',
    message: "Table 'none' was not found",
    details: { name: 'none' },
  });
});

test('connections of a page share a worker, which ends with the last table', async () => {
  const seen = await page.evaluate(async () => {
    const [a, b] = await Promise.all([
      window.lancelet.connect('indexeddb://share'),
      window.lancelet.connect('indexeddb://share'),
    ]);
    const table = await a.createTable('t', [{ x: 1 }]);
    const names = await b.tableNames();
    await a.close();
    await b.close();
    const countAfterClose = await table.countRows();
    await table.close();
    const c = await window.lancelet.connect('indexeddb://share');
    const again = await c.tableNames();
    await c.close();
    return { names, countAfterClose, again, workers: window.workers.length };
  });
  expect(seen).toEqual({ names: ['t'], countAfterClose: 1, again: ['t'], workers: 2 });
});

test('memory:// belongs to the page and outlives its connections', async () => {
  const seen = await page.evaluate(async () => {
    const first = await window.lancelet.connect('memory://page');
    await (await first.createTable('t', [{ x: 1 }])).close();
    await first.close();
    const second = await window.lancelet.connect('memory://page');
    return { names: await second.tableNames(), workers: window.workers.length };
  });
  expect(seen).toEqual({ names: ['t'], workers: 1 });
  const other = await newTab();
  const names = await other.evaluate(async () => (await window.lancelet.connect('memory://page')).tableNames());
  expect(names).toEqual([]);
  await other.close();
});

test('a worker that fails rejects what waits for it, and the next connection has a new one', async () => {
  const seen = await page.evaluate(async () => {
    const db = await window.lancelet.connect('indexeddb://crash');
    const table = await db.createTable('t', [{ x: 1 }]);
    const pending = table.countRows().catch((reason: unknown) => reason);
    window.lastWorker?.onerror?.(new ErrorEvent('error', { message: 'boom' }));
    const thrown = (await pending) as { code: string; message: string };
    const next = await window.lancelet.connect('indexeddb://crash');
    const count = await (await next.openTable('t')).countRows();
    return { code: thrown.code, message: thrown.message, count, workers: window.workers.length };
  });
  expect(seen).toMatchObject({ code: 'INTERNAL', count: 1, workers: 2 });
  expect(seen.message).toContain('boom');
});

test('in a worker of the application the engine runs there', async () => {
  const answer = await page.evaluate(() => window.inWorker('opfs://inner'));
  expect(answer).toEqual({ rows: [{ a: 2 }] });
  expect(await page.evaluate(() => window.workers)).toEqual(['own']);
});

test('files go from one database to another', async () => {
  const seen = await page.evaluate(async () => {
    const from = await window.lancelet.connect('indexeddb://from');
    const table = await from.createTable('t', [{ x: 1, s: 'a' }]);
    await table.add([{ x: 2, s: 'b' }]);
    const to = await window.lancelet.connect('opfs://to');
    const copy = await to.importTable('copy', from.exportTable('t'));
    const paths: string[] = [];
    for await (const { path, size, stream } of to.exportTable('copy')) {
      const bytes = await new Response(stream).arrayBuffer();
      paths.push(`${path.split('/')[0]} ${bytes.byteLength === size}`);
    }
    return { rows: await copy.query().toArray({ plainObjects: true }), paths };
  });
  expect(seen.rows).toEqual([
    { x: 1, s: 'a' },
    { x: 2, s: 'b' },
  ]);
  expect(seen.paths.at(-1)).toBe('_versions true');
  expect(seen.paths.filter((path) => path === 'data true')).toHaveLength(2);
});
