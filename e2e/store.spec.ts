// The stores in a real browser, on a profile on disk: the suite of the contract, and what only tabs, workers and restarts show.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { chromium, expect, test, type BrowserContext, type Page } from '@playwright/test';

import { CASES } from '../src/store/conformance.ts';
import { launchOptions } from './browser.ts';
import type { TaskName, Tasks } from './harness/store-tasks.ts';

type Where = 'page' | 'worker';

let profile: string;
let context: BrowserContext;
let page: Page;
let base: string;
let count = 0;

test.beforeAll(async ({}, { project }) => {
  base = project.use.baseURL ?? '';
  profile = mkdtempSync(join(tmpdir(), 'lancelet-store-'));
  context = await chromium.launchPersistentContext(profile, launchOptions);
  page = await newTab();
});

test.afterAll(async () => {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
});

const newTab = () => openTab(context);

async function openTab(browser: BrowserContext): Promise<Page> {
  const tab = await browser.newPage();
  await tab.goto(`${base}/e2e/harness/store.html`);
  await tab.waitForFunction(() => 'storeTask' in window);
  return tab;
}

async function run<N extends TaskName>(
  tab: Page,
  where: Where,
  name: N,
  ...args: Parameters<Tasks[N]>
): Promise<Awaited<ReturnType<Tasks[N]>>> {
  const call = { where, name, args: args as unknown[] };
  const answer = await tab.evaluate(({ where, name, args }) => window.storeTask(where, name, args), call);
  return answer as Awaited<ReturnType<Tasks[N]>>;
}

const newUri = (scheme: string) => `${scheme}://s${(count += 1)}`;
const versions = (first: number, length: number) => Array.from({ length }, (_, n) => first + n);
const byNumber = (a: number, b: number) => a - b;

const backends = [
  { scheme: 'indexeddb', where: 'page' },
  { scheme: 'indexeddb', where: 'worker' },
  { scheme: 'opfs', where: 'worker' },
  { scheme: 'opfs', where: 'page' },
] as const;

for (const { scheme, where } of backends) {
  test.describe(`${scheme} on a ${where}`, () => {
    for (const { name } of CASES) {
      test(name, async () => {
        expect(await run(page, where, 'runCase', name, newUri(scheme), 'kept')).toBeUndefined();
      });
    }

    if (where === 'worker') {
      test('the suite passes when answers are lost', async () => {
        for (const { name } of CASES) {
          const outcome = await run(page, where, 'runCase', name, newUri(scheme), 'lost');
          expect(outcome, name).toBeUndefined();
        }
      });
    }
  });
}

for (const scheme of ['indexeddb', 'opfs']) {
  test.describe(`${scheme} among tabs`, () => {
    test('of two tabs exactly one wins each putIfAbsent', async () => {
      const uri = newUri(scheme);
      const other = await newTab();
      const dir = await run(page, 'worker', 'makeTable', uri);
      const [a, b] = await Promise.all([
        run(page, 'worker', 'putLoop', uri, dir, 'a', 100),
        run(other, 'worker', 'putLoop', uri, dir, 'b', 100),
      ]);
      expect([...a, ...b].sort()).toEqual(
        versions(0, 100)
          .map((n) => `race/${n}`)
          .sort(),
      );
      expect(await run(other, 'worker', 'firstBytes', uri, dir, a)).toEqual(a.map(() => 'a'));
      expect(await run(page, 'worker', 'firstBytes', uri, dir, b)).toEqual(b.map(() => 'b'));
      await other.close();
    });

    test('commits of two tabs land one after the other, and none is lost', async () => {
      const uri = newUri(scheme);
      const other = await newTab();
      const dir = await run(page, 'worker', 'makeTable', uri);
      const [a, b] = await Promise.all([
        run(page, 'worker', 'commitLoop', uri, dir, 'a', 50),
        run(other, 'worker', 'commitLoop', uri, dir, 'b', 50),
      ]);
      expect([...a, ...b].sort(byNumber)).toEqual(versions(2, 100));
      const manifests = a.map((version) => `_versions/${version}.manifest`);
      expect(await run(other, 'worker', 'firstBytes', uri, dir, manifests)).toEqual(a.map(() => 'a'));
      await other.close();
    });

    test('what was written is there after the browser was started again', async () => {
      const uri = newUri(scheme);
      await run(page, 'worker', 'makeTable', uri);
      const before = await run(page, 'worker', 'describe', uri);
      await context.close();
      context = await chromium.launchPersistentContext(profile, launchOptions);
      page = await newTab();
      expect(await run(page, 'worker', 'describe', uri)).toEqual(before);
      expect(before).toEqual({
        paths: ['_versions/1.manifest', 'data/large', 'data/small'],
        sum: 3_500_000,
        small: 'small',
      });
    });

    for (const where of ['page', 'worker'] as const) {
      test(`a database deleted by others is opened again on a ${where}`, async () => {
        const uri = newUri(scheme);
        const database = `lancelet:${uri.replace('://', ':')}`;
        expect(await run(page, where, 'useAfterDeletion', uri, database)).toEqual(['a', 'TABLE_NOT_FOUND']);
      });
    }
  });
}

test.describe('interrupted transactions', () => {
  const deeds = [
    { operation: 'put', answer: 'done' },
    { operation: 'putIfAbsent', answer: true },
    { operation: 'finish', answer: 8 },
    { operation: 'dropDir', answer: 'done' },
    { operation: 'renameDir', answer: 'renamed' },
    { operation: 'commit', answer: { kind: 'committed' } },
  ];
  for (const { operation, answer } of deeds) {
    for (const when of ['before commit', 'after commit'] as const) {
      test(`${operation} interrupted ${when} is performed once`, async () => {
        const uri = newUri('indexeddb');
        await run(page, 'worker', 'makeTable', uri);
        expect(await run(page, 'worker', 'interrupted', uri, when, operation, 1)).toEqual(answer);
      });
    }

    test(`${operation} whose answer was lost twice has an unknown outcome`, async () => {
      const uri = newUri('indexeddb');
      await run(page, 'worker', 'makeTable', uri);
      expect(await run(page, 'worker', 'interrupted', uri, 'after commit', operation, 2)).toBe('OUTCOME_UNKNOWN');
    });

    test(`${operation} interrupted twice before its commit is unavailable`, async () => {
      const uri = newUri('indexeddb');
      await run(page, 'worker', 'makeTable', uri);
      expect(await run(page, 'worker', 'interrupted', uri, 'before commit', operation, 2)).toBe('UNAVAILABLE');
    });
  }

  const refusals = [
    { operation: 'putIfAbsentTaken', answer: false },
    { operation: 'commitMoved', answer: { kind: 'moved' } },
  ];
  for (const { operation, answer } of refusals) {
    test(`${operation} wrote nothing, so an interruption leaves nothing unknown`, async () => {
      const uri = newUri('indexeddb');
      await run(page, 'worker', 'makeTable', uri);
      expect(await run(page, 'worker', 'interrupted', uri, 'after commit', operation, 1)).toEqual(answer);
    });
  }

  test('a commit whose manifest was removed before its answer came has an unknown outcome', async () => {
    const uri = newUri('indexeddb');
    await run(page, 'worker', 'makeTable', uri);
    const outcome = await run(page, 'worker', 'interrupted', uri, 'after commit and removal', 'commit', 1);
    expect(outcome).toBe('OUTCOME_UNKNOWN');
  });
});

test.describe('databases', () => {
  for (const where of ['page', 'worker'] as const) {
    test(`a ${where} without IndexedDB says so`, async () => {
      for (const scheme of ['indexeddb', 'opfs']) {
        expect(await run(page, where, 'withoutIndexedDb', newUri(scheme))).toMatch(/^UNAVAILABLE: .*IndexedDB/);
      }
    });
  }

  test('a database that does not open is given up after a bounded wait', async () => {
    const uri = newUri('indexeddb');
    await run(page, 'page', 'makeTable', uri);
    expect(await run(page, 'page', 'openBlocked', `lancelet:${uri.replace('://', ':')}`, 300)).toBe('UNAVAILABLE');
  });

  for (const scheme of ['indexeddb', 'opfs']) {
    test(`a full ${scheme} says so, and a failed write changed nothing`, async () => {
      // A browser of its own: IndexedDB asks only now and then for the space that is left.
      const folder = mkdtempSync(join(tmpdir(), 'lancelet-full-'));
      const small = await chromium.launchPersistentContext(folder, launchOptions);
      try {
        const tab = await openTab(small);
        const session = await small.newCDPSession(tab);
        await session.send('Storage.overrideQuotaForOrigin', { origin: base, quotaSize: 4_000_000 });
        const uri = newUri(scheme);
        await run(tab, 'worker', 'makeTable', uri);
        const { codes, paths } = await run(tab, 'worker', 'fill', uri, 8_000_000);
        expect(codes).toEqual(['QUOTA', 'QUOTA', 'QUOTA']);
        expect(paths).toEqual(['data/large', 'data/small']);
        if (scheme === 'opfs') expect(await run(tab, 'worker', 'countFiles', uri)).toBe(1);
        expect((await run(tab, 'worker', 'fill', uri, 100_000)).codes).toEqual(['done', 'done', 'done']);
      } finally {
        await small.close();
        rmSync(folder, { recursive: true, force: true });
      }
    });
  }
});

test.describe('files', () => {
  test('small bodies are rows and large ones files', async () => {
    const uri = newUri('opfs');
    await run(page, 'worker', 'makeTable', uri);
    expect(await run(page, 'worker', 'countFiles', uri)).toBe(1);
  });

  test('a page without handles says that the bytes are in files', async () => {
    const uri = newUri('opfs');
    await run(page, 'worker', 'makeTable', uri);
    expect(await run(page, 'page', 'openCode', uri)).toMatch(/^UNAVAILABLE: .*origin private file system/);
  });

  test('what a page kept in rows is read by a worker', async () => {
    const uri = newUri('opfs');
    await run(page, 'page', 'makeTable', uri);
    expect((await run(page, 'worker', 'describe', uri)).sum).toBe(3_500_000);
    expect(await run(page, 'page', 'openCode', uri)).toBe('opened');
  });

  test('where the file system refuses, bodies are rows, and files are missed', async () => {
    const uri = newUri('opfs');
    await run(page, 'worker', 'makeTable', uri);
    const [code, sum] = await run(page, 'worker', 'withoutFiles', uri, newUri('opfs'));
    expect(code).toMatch(/^UNAVAILABLE: .*origin private file system/);
    expect(sum).toBe('3500000');
  });

  test('a file that another tab holds exclusively is read all the same', async () => {
    const uri = newUri('opfs');
    await run(page, 'worker', 'makeTable', uri);
    const other = await newTab();
    expect(await run(other, 'worker', 'holdFiles', uri, 'readwrite')).toBe(1);
    expect((await run(page, 'worker', 'describe', uri)).sum).toBe(3_500_000);
    await other.close();
  });

  test('few handles are open, and none when nobody reads', async () => {
    const other = await newTab();
    expect(await run(other, 'worker', 'readMany', newUri('opfs'), 40)).toBe(33);
    await expect(async () => expect(await run(other, 'worker', 'openHandles')).toBe(0)).toPass();
    await other.close();
  });

  test('the write of a tab that was closed leaves no file', async () => {
    const uri = newUri('opfs');
    await run(page, 'worker', 'makeTable', uri);
    const other = await newTab();
    expect(await run(other, 'worker', 'leaveWriting', uri)).toBe(2);
    await run(page, 'worker', 'sweep', uri);
    expect(await run(page, 'worker', 'countFiles', uri)).toBe(2);
    await other.close();
    await expect(async () => {
      await run(page, 'worker', 'sweep', uri);
      expect(await run(page, 'worker', 'countFiles', uri)).toBe(1);
    }).toPass();
    expect((await run(page, 'worker', 'describe', uri)).paths).not.toContain('data/left');
  });

  test('a file that another tab reads is given up when it is deleted', async () => {
    const uri = newUri('opfs');
    await run(page, 'worker', 'makeTable', uri);
    const other = await newTab();
    expect(await run(other, 'worker', 'readAndStay', uri)).toBe(10);
    expect(await run(page, 'worker', 'remove', uri, 'data/large')).toBe('deleted');
    expect(await run(page, 'worker', 'countFiles', uri)).toBe(0);
    await other.close();
  });

  test('a file that stays open is busy, and a later sweep takes it', async () => {
    const uri = newUri('opfs');
    await run(page, 'worker', 'makeTable', uri);
    const other = await newTab();
    expect(await run(other, 'worker', 'holdFiles', uri, 'read-only')).toBe(1);
    expect(await run(page, 'worker', 'remove', uri, 'data/large')).toBe('busy');
    await run(page, 'worker', 'sweep', uri);
    expect(await run(page, 'worker', 'countFiles', uri)).toBe(1);
    await other.close();
    await expect(async () => {
      await run(page, 'worker', 'sweep', uri);
      expect(await run(page, 'worker', 'countFiles', uri)).toBe(0);
    }).toPass();
  });

  test('a cleanup counts no bytes that stay open, and a later sweep takes them', async () => {
    const uri = newUri('opfs');
    await run(page, 'worker', 'makeTable', uri);
    const other = await newTab();
    expect(await run(other, 'worker', 'holdFiles', uri, 'read-only')).toBe(1);
    const kept = { kind: 'removed', manifests: 1, bytes: 9, busy: 1 };
    expect(await run(page, 'worker', 'cleanUp', uri)).toEqual(kept);
    expect(await run(page, 'worker', 'countFiles', uri)).toBe(1);
    await other.close();
    await expect(async () => {
      await run(page, 'worker', 'sweep', uri);
      expect(await run(page, 'worker', 'countFiles', uri)).toBe(0);
    }).toPass();
  });
});
