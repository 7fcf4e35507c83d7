// Versions in the browser, on each backend; and the end of an engine, which is the end of nothing else.

import { expect, test, type Page, type Worker } from '@playwright/test';

import { newUri, useProfile } from './story/profile.ts';

const profile = useProfile();

for (const scheme of ['opfs', 'indexeddb', 'memory']) {
  test(`every version of a table on ${scheme} reads as it was`, async () => {
    const page = await profile.current.newStory();
    const told = await page.evaluate(async (uri) => {
      const db = await window.lancelet.connect(uri);
      const table = await db.createTable('t', [
        { id: 1, name: 'one' },
        { id: 2, name: 'two' },
        { id: 3, name: 'three' },
      ]);
      await table.add([{ id: 4, name: 'four' }]);
      const deleted = await table.delete('id < 3');
      const ids = async () => (await table.query().toArray()).map((row) => Number(row['id']));
      const at: Record<string, number[]> = { latest: await ids() };
      for (const version of [1, 2, 3]) {
        await table.checkout(version);
        at[`version ${version}`] = await ids();
      }
      await table.checkout(1);
      const refused = await table.add([{ id: 5, name: 'five' }]).catch((error) => error.code);
      await table.checkoutLatest();
      await table.add([{ id: 6, name: 'six' }]);
      at['afterwards'] = await ids();
      const pinned = await db.openTable('t', { version: 2 });
      const missing = await table.checkout(99).catch((error) => error.code);
      return {
        deleted,
        at,
        refused,
        missing,
        pinned: await pinned.countRows(),
        versions: (await table.listVersions()).map(({ version, metadata }) => [version, metadata['total_rows']]),
      };
    }, newUri(scheme));
    expect(told).toEqual({
      deleted: { numDeletedRows: 2, version: 3 },
      at: {
        latest: [3, 4],
        'version 1': [1, 2, 3],
        'version 2': [1, 2, 3, 4],
        'version 3': [3, 4],
        afterwards: [3, 4, 6],
      },
      refused: 'INVALID_INPUT',
      missing: 'NOT_FOUND',
      pinned: 4,
      versions: [
        [1, '3'],
        [2, '4'],
        [3, '2'],
        [4, '3'],
      ],
    });
    await page.close();
  });
}

test('old versions are there after the page was loaded again', async () => {
  const page = await profile.current.newStory();
  const uri = newUri('opfs');
  await page.evaluate(async (uri) => {
    const db = await window.lancelet.connect(uri);
    const table = await db.createTable('t', [{ id: 1 }]);
    for (let id = 2; id <= 5; id++) await table.add([{ id }]);
  }, uri);
  await page.reload();
  await page.waitForFunction(() => 'lancelet' in window);
  const counts = await page.evaluate(async (uri) => {
    const db = await window.lancelet.connect(uri);
    const counts: number[] = [];
    for (let version = 1; version <= 5; version++) {
      counts.push(await (await db.openTable('t', { version })).countRows());
    }
    return counts;
  }, uri);
  expect(counts).toEqual([1, 2, 3, 4, 5]);
  await page.close();
});

/** Starts a call that cannot be over soon, ends the engine beneath it, and tells what became of everything. */
async function endEngine(page: Page, uri: string, end: (worker: Worker) => Promise<void>) {
  await page.evaluate(async (uri) => {
    const db = await window.lancelet.connect(uri);
    await db.createTable('t', [{ id: 1 }, { id: 2 }]);
    const table = await db.openTable('t');
    // Rows that never come: the append waits in the engine for the next ones.
    const waiting = table.add(
      (async function* () {
        yield [{ id: 3 }];
        await new Promise(() => undefined);
      })(),
    );
    const outcome = waiting.then(
      () => 'written',
      (error) => error.code as string,
    );
    const reading = async () => {
      for (;;) await table.countRows();
    };
    const pending = reading().catch((error) => error.code as string);
    Object.assign(window, { ending: { outcome, pending, table, db } });
  }, uri);
  const [worker] = page.workers();
  if (worker === undefined) throw new Error('the page has no worker');
  await end(worker);
  return page.evaluate(async (uri) => {
    const { pending, table, db } = Reflect.get(window, 'ending');
    const code = (error: { code: string }) => error.code;
    const first = await pending;
    const afterwards = await Promise.all([table.countRows().catch(code), db.tableNames().catch(code)]);
    const again = await window.lancelet.connect(uri);
    const reopened = await again.openTable('t');
    await reopened.add([{ id: 4 }]);
    const ids = (await reopened.query().toArray()).map((row) => Number(row['id']));
    return { first, afterwards, ids };
  }, uri);
}

for (const scheme of ['opfs', 'indexeddb']) {
  test(`a trap of the engine on ${scheme} rejects what waits, and the next connection works`, async () => {
    const page = await profile.current.newStory();
    const told = await endEngine(page, newUri(scheme), (worker) =>
      worker.evaluate(async () => {
        const [script] = performance
          .getEntriesByType('resource')
          .flatMap(({ name }) => (/\/lancelet\.js/.test(name) ? [name] : []));
        if (script === undefined) throw new Error('the engine was not loaded');
        // The module that the worker runs: it answers with the instance that is there. Its memory is spoilt, so the next call traps.
        const { default: init } = await import(script);
        const { memory } = await init();
        new Uint8Array(memory.buffer).fill(0xff);
      }),
    );
    expect(told).toEqual({ first: 'INTERNAL', afterwards: ['INTERNAL', 'INTERNAL'], ids: [1, 2, 4] });
    await page.close();
  });

  test(`an error outside of every call ends the worker on ${scheme}, and the next connection works`, async () => {
    const page = await profile.current.newStory();
    const told = await endEngine(page, newUri(scheme), (worker) =>
      worker.evaluate(() => {
        setTimeout(() => {
          throw new Error('a stray error');
        });
      }),
    );
    expect(told).toEqual({ first: 'INTERNAL', afterwards: ['INTERNAL', 'INTERNAL'], ids: [1, 2, 4] });
    await page.close();
  });

  test(`a worker on ${scheme} that ends without a word rejects what waits, and the next connection works`, async () => {
    const page = await profile.current.newStory();
    const told = await endEngine(page, newUri(scheme), (worker) =>
      worker.evaluate(() => {
        setTimeout(() => self.close());
      }),
    );
    expect(told).toEqual({ first: 'INTERNAL', afterwards: ['INTERNAL', 'INTERNAL'], ids: [1, 2, 4] });
    await page.close();
  });
}
