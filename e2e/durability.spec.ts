// What survives: a reload, a killed browser, a browser without OPFS, a full disk.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test, type Page } from '@playwright/test';

import { BrowserProcess } from './story/browser-process.ts';
import { newFolder, newUri, openStory, Profile, removeFolder, SCHEMES, useProfile } from './story/profile.ts';
import { randomOf } from './story/random.ts';

const isFull = process.env['LANCELET_FULL'] === '1';
const profile = useProfile();

/** A table with vectors, large enough that its bytes are no small object of the store. */
async function createVectors(page: Page, uri: string, count: number): Promise<void> {
  await page.evaluate(
    async ({ uri, count }) => {
      const db = await window.lancelet.connect(uri);
      const rows = Array.from({ length: count }, (_, id) => ({
        id,
        vector: Array.from({ length: 64 }, (_, i) => Math.sin(id * 64 + i)),
      }));
      await db.createTable('t', rows);
    },
    { uri, count },
  );
}

/** Rows, and the sum of their ids. */
function measure(page: Page, uri: string): Promise<[count: number, sum: number]> {
  return page.evaluate(async (uri) => {
    const table = await (await window.lancelet.connect(uri)).openTable('t');
    const ids = (await table.query().select(['id']).toArray()).map((row) => Number(row['id']));
    return [await table.countRows(), ids.reduce((sum, id) => sum + id, 0)];
  }, uri);
}

for (const scheme of SCHEMES) {
  test(`10,000 rows on ${scheme} are there after a reload`, async () => {
    const page = await profile.current.newStory();
    const uri = newUri(scheme);
    await createVectors(page, uri, 10_000);
    await page.reload();
    await page.waitForFunction(() => 'lancelet' in window);
    expect(await measure(page, uri)).toEqual([10_000, 49_995_000]);
    await page.close();
  });
}

// ---- a killed browser -----------------------------------------------------------------------------------------------

const KILLS = isFull ? 10 : 2;
const COMMITS = 200;

/** Appends one row after the other to `t`, telling the test of each, until the page is gone. */
async function appendForever(page: Page, uri: string): Promise<void> {
  await page.evaluate(
    async ({ uri, count }) => {
      const db = await window.lancelet.connect(uri);
      const isThere = (await db.tableNames()).includes('t');
      const table = isThere ? await db.openTable('t') : await db.createTable('t', [{ id: 0 }]);
      const first = await table.countRows();
      const append = async () => {
        for (let id = first; id < first + count; id++) {
          await table.add([{ id }]);
          window.acknowledge(id);
        }
      };
      void append();
    },
    { uri, count: COMMITS },
  );
}

for (const scheme of SCHEMES) {
  test(`rows acknowledged on ${scheme} before the browser was killed are there: ${KILLS} times`, async ({
    baseURL,
  }) => {
    test.setTimeout(KILLS * 60_000);
    const folder = newFolder();
    const random = randomOf(`kill ${scheme}`);
    const uri = `${scheme}://killed`;
    try {
      let acknowledged = 0;
      for (let kill = 0; kill < KILLS; kill++) {
        const atLeast = acknowledged + random(1, COMMITS - 20);
        let browser = await BrowserProcess.start(folder);
        let page = await browser.context.newPage();
        const reached = new Promise<void>((resolve) => {
          void page.exposeFunction('acknowledge', (id: number) => {
            acknowledged = id;
            if (id >= atLeast) resolve();
          });
        });
        await openStory(page, baseURL);
        await appendForever(page, uri);
        await reached;
        await browser.kill();

        browser = await BrowserProcess.start(folder);
        page = await browser.context.newPage();
        await openStory(page, baseURL);
        const told = await page.evaluate(async (uri) => {
          const table = await (await window.lancelet.connect(uri)).openTable('t');
          const versions = (await table.listVersions()).map(({ version }) => version);
          const ids = (await table.query().toArray()).map((row) => Number(row['id'])).sort((a, b) => a - b);
          const { version } = await table.add([{ id: ids.length }]);
          return { ids, versions, version };
        }, uri);
        const count = told.ids.length;
        expect(count, `kill ${kill}: rows, of which ${acknowledged} was acknowledged last`).toBeGreaterThan(
          acknowledged,
        );
        expect(told.ids, `kill ${kill}`).toEqual(Array.from({ length: count }, (_, id) => id));
        expect(told.versions, `kill ${kill}`).toEqual(Array.from({ length: count }, (_, n) => n + 1));
        expect(told.version).toBe(count + 1);
        acknowledged = count;
        await browser.kill();
      }
    } finally {
      removeFolder(folder);
    }
  });
}

// ---- the disk -------------------------------------------------------------------------------------------------------

if (isFull) {
  for (const scheme of SCHEMES) {
    test(`a commit on ${scheme} is acknowledged after it was synced to the disk`, async ({ baseURL }) => {
      test.skip(!hasStrace(), 'strace is not installed');
      const commits = 100;
      const folder = newFolder();
      const trace = join(folder, 'trace');
      const wrapper = ['strace', '-f', '-qq', '-ttt', '-e', 'trace=fdatasync,fsync', '-e', 'signal=none', '-o', trace];
      const browser = await BrowserProcess.start(join(folder, 'profile'), { wrapper });
      try {
        const page = await browser.context.newPage();
        await openStory(page, baseURL);
        const [from, to] = await page.evaluate(
          async ({ uri, commits }) => {
            const table = await (await window.lancelet.connect(uri)).createTable('t', [{ id: 0 }]);
            await table.add([{ id: 1 }]);
            const from = Date.now();
            for (let id = 2; id < commits + 2; id++) await table.add([{ id }]);
            return [from, Date.now()] as const;
          },
          { uri: `${scheme}://synced`, commits },
        );
        const syncs = readFileSync(trace, 'utf8')
          .split('\n')
          // Short process ids are padded.
          .flatMap((line) => /^\d+ +(\d+\.\d+) f(?:data)?sync\(/.exec(line)?.[1] ?? [])
          .filter((seconds) => Number(seconds) * 1000 >= from && Number(seconds) * 1000 <= to).length;
        console.log(`${scheme}: ${(syncs / commits).toFixed(2)} syncs a commit`);
        expect(syncs).toBeGreaterThanOrEqual(commits);
      } finally {
        await browser.kill();
        removeFolder(folder);
      }
    });
  }
}

function hasStrace(): boolean {
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

// ---- no OPFS --------------------------------------------------------------------------------------------------------

/** From now on, workers of the page find no OPFS, as in private windows of some browsers. */
async function hideOpfs(page: Page): Promise<void> {
  await page.route(/\/worker\/host\.ts/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: `delete StorageManager.prototype.getDirectory;\n${await response.text()}` });
  });
}

test('where there is no OPFS an opfs connection keeps its bytes in IndexedDB', async () => {
  const page = await profile.current.newPage();
  await hideOpfs(page);
  await openStory(page, profile.current.base);
  const uri = newUri('opfs');
  await createVectors(page, uri, 2000);
  const hasFunction = await page.workers()[0]?.evaluate(() => 'getDirectory' in navigator.storage);
  expect(hasFunction).toBe(false);
  await page.reload();
  await page.waitForFunction(() => 'lancelet' in window);
  expect(await measure(page, uri)).toEqual([2000, 1_999_000]);

  // With OPFS again, what is in IndexedDB is still read.
  const other = await profile.current.newStory();
  expect(await measure(other, uri)).toEqual([2000, 1_999_000]);
  await other.close();
  await page.close();
});

test('a table whose bytes are in OPFS says so where there is none', async () => {
  const uri = newUri('opfs');
  const page = await profile.current.newStory();
  await createVectors(page, uri, 2000);
  await page.close();
  const other = await profile.current.newPage();
  await hideOpfs(other);
  await openStory(other, profile.current.base);
  const told = await other.evaluate(
    (uri) =>
      window.lancelet.connect(uri).then(
        () => 'connected',
        (error) => `${error.code}: ${error.message}`,
      ),
    uri,
  );
  expect(told).toMatch(/^UNAVAILABLE: .*origin private file system/);
  await other.close();
});

// ---- a full disk ----------------------------------------------------------------------------------------------------

for (const scheme of SCHEMES) {
  test(`k9: a full storage on ${scheme} is QUOTA, and the old state is intact`, async ({ baseURL }) => {
    // A profile of its own: Chromium looks at a quota again only half a minute after it was used.
    const small = await Profile.open(baseURL);
    try {
      const page = await small.newStory();
      const devtools = await small.context.newCDPSession(page);
      await devtools.send('Storage.overrideQuotaForOrigin', { origin: small.base, quotaSize: 4_000_000 });
      const uri = newUri(scheme);
      await createVectors(page, uri, 1000);
      const told = await page.evaluate(async (uri) => {
        const table = await (await window.lancelet.connect(uri)).openTable('t');
        const row = (id: number) => ({ id, vector: Array.from({ length: 64 }, (_, i) => Math.cos(id * 64 + i)) });
        const error = await table.add(Array.from({ length: 40_000 }, (_, n) => row(1000 + n))).then(
          () => undefined,
          (error) => error,
        );
        const afterwards = [await table.countRows(), await table.version()];
        const added = await table.add([row(1000)]);
        return { isOurs: error instanceof window.lancelet.LanceError, code: error?.code, afterwards, added };
      }, uri);
      expect(told).toEqual({ isOurs: true, code: 'QUOTA', afterwards: [1000, 1], added: { version: 2 } });
      expect(await measure(page, uri)).toEqual([1001, 500_500]);
    } finally {
      await small.close();
    }
  });
}
