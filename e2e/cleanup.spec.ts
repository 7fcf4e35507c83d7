// Cleanup in one tab beside a long write in another: the write commits with every row, or the cleanup refuses.

import { expect, test, type Page } from '@playwright/test';

import { newUri, SCHEMES, useProfile } from './story/profile.ts';

const profile = useProfile();
/** Rows of the table before the long write, one version each. */
const FIRST_ROWS = 4;
const BATCHES = 8;
const BATCH_ROWS = 400;
const LONG_ROWS = BATCHES * BATCH_ROWS;

const numbers = (begin: number, count: number): number[] => Array.from({ length: count }, (_, n) => begin + n);

async function makeTable(page: Page, uri: string): Promise<void> {
  await page.evaluate(
    async ({ uri, rows }) => {
      const table = await (await window.lancelet.connect(uri)).createTable('t', [{ id: 0, text: 'first' }]);
      for (let id = 1; id < rows; id++) await table.add([{ id, text: 'first' }]);
    },
    { uri, rows: FIRST_ROWS },
  );
}

/** Begins to write megabytes and stops in their middle. */
async function beginWrite(page: Page, uri: string, first = 1000): Promise<void> {
  await page.evaluate(
    async ({ uri, first, batches, batchRows }) => {
      const table = await (await window.lancelet.connect(uri)).openTable('t');
      const state = { goOn: () => {}, end: undefined as unknown };
      const gate = new Promise<void>((resolve) => (state.goOn = resolve));
      const isReached = new Promise<void>((reached) => {
        async function* rows() {
          for (let batch = 0; batch < batches; batch++) {
            if (batch === batches / 2) {
              reached();
              await gate;
            }
            const id = (n: number) => first + batch * batchRows + n;
            yield Array.from({ length: batchRows }, (_, n) => ({ id: id(n), text: `${id(n)} `.repeat(300) }));
          }
        }
        state.end = table.add(rows()).then(({ version }) => version);
      });
      Object.assign(window, { write: state });
      await isReached;
    },
    { uri, first, batches: BATCHES, batchRows: BATCH_ROWS },
  );
}

/** Writes the rest; the version that has it. */
function endWrite(page: Page): Promise<number> {
  return page.evaluate(() => {
    const { goOn, end } = Reflect.get(window, 'write') as { goOn: () => void; end: Promise<number> };
    goOn();
    return end;
  });
}

/** `optimize` with versions older than `ageMs` to go; how many went, or the code of the error. */
function optimize(page: Page, uri: string, ageMs: number, deleteUnverified?: boolean): Promise<number | string> {
  return page.evaluate(
    async ({ uri, ageMs, deleteUnverified }) => {
      const table = await (await window.lancelet.connect(uri)).openTable('t');
      try {
        const { prune } = await table.optimize({ cleanupOlderThan: new Date(Date.now() - ageMs), deleteUnverified });
        return prune.oldVersionsRemoved;
      } catch (error) {
        return error instanceof window.lancelet.LanceError ? error.code : String(error);
      }
    },
    { uri, ageMs, deleteUnverified },
  );
}

/** Every id of the latest version, ascending, and how many versions there are, each of which was read whole. */
function readAll(page: Page, uri: string): Promise<{ ids: number[]; versions: number }> {
  return page.evaluate(async (uri) => {
    const table = await (await window.lancelet.connect(uri)).openTable('t');
    const read = async () =>
      (await table.query().toArray()).map((row) => ({ id: Number(row['id']), text: row['text'] }));
    const ids = (await read()).map(({ id }) => id).sort((a, b) => a - b);
    const versions = await table.listVersions();
    for (const { version } of versions) {
      await table.checkout(version);
      const rows = await read();
      if (rows.length !== (await table.countRows())) throw new Error(`version ${version} has ${rows.length} rows`);
    }
    await table.close();
    return { ids, versions: versions.length };
  }, uri);
}

const EXPECTED = [...numbers(0, FIRST_ROWS), ...numbers(1000, LONG_ROWS)];

for (const scheme of SCHEMES) {
  test(`e1.8: a cleanup without a window on ${scheme} refuses beside a long write of another tab, which commits`, async () => {
    const uri = newUri(scheme);
    const [writer, cleaner] = [await profile.current.newStory(), await profile.current.newStory()];
    await makeTable(writer, uri);
    await beginWrite(writer, uri);
    expect(await optimize(cleaner, uri, 0, true)).toBe('CONTENTION');
    // Without the flag a short window is no window at all, whoever writes.
    expect(await optimize(cleaner, uri, 0)).toBe('INVALID_INPUT');
    // Nothing was written by what was refused.
    expect((await readAll(cleaner, uri)).versions).toBe(FIRST_ROWS);

    expect(await endWrite(writer)).toBe(FIRST_ROWS + 1);
    expect((await readAll(cleaner, uri)).ids).toEqual(EXPECTED);
    // Two versions of compaction and all before them go.
    expect(await optimize(cleaner, uri, 0, true)).toBe(FIRST_ROWS + 2);
    expect(await readAll(writer, uri)).toEqual({ ids: EXPECTED, versions: 1 });
    await writer.close();
    await cleaner.close();
  });

  test(`a compaction and a safe cleanup on ${scheme} go on beside a long write of another tab, which commits`, async () => {
    const uri = newUri(scheme);
    const [writer, cleaner] = [await profile.current.newStory(), await profile.current.newStory()];
    await makeTable(writer, uri);
    await beginWrite(writer, uri);
    expect(await optimize(cleaner, uri, 11 * 60_000)).toBe(0);
    expect((await readAll(cleaner, uri)).versions).toBe(FIRST_ROWS + 2);

    expect(await endWrite(writer)).toBe(FIRST_ROWS + 3);
    expect(await readAll(cleaner, uri)).toEqual({ ids: EXPECTED, versions: FIRST_ROWS + 3 });
    await writer.close();
    await cleaner.close();
  });

  test(`a long write on ${scheme} that begins while another tab cleans up again and again loses no row`, async () => {
    const uri = newUri(scheme);
    const [writer, cleaner] = [await profile.current.newStory(), await profile.current.newStory()];
    await makeTable(writer, uri);
    await cleaner.evaluate(async (uri) => {
      const table = await (await window.lancelet.connect(uri)).openTable('t');
      const state = { isOver: false, cleaned: 0, refused: 0, end: undefined as unknown };
      const clean = async () => {
        while (!state.isOver) {
          try {
            await table.optimize({ cleanupOlderThan: new Date(), deleteUnverified: true });
            state.cleaned += 1;
          } catch (error) {
            if (!(error instanceof window.lancelet.LanceError) || error.code !== 'CONTENTION') throw error;
            state.refused += 1;
          }
        }
      };
      state.end = clean().then(() => 'clean', String);
      Object.assign(window, { cleaning: state });
    }, uri);
    const counts = () =>
      cleaner.evaluate(() => {
        const { cleaned, refused } = Reflect.get(window, 'cleaning') as { cleaned: number; refused: number };
        return { cleaned, refused };
      });
    const until = (what: 'cleaned' | 'refused', more: number) =>
      cleaner.waitForFunction(
        ({ what, more }) => (Reflect.get(window, 'cleaning') as Record<string, number>)[what]! >= more,
        { what, more },
      );

    const ROUNDS = 3;
    for (let round = 0; round < ROUNDS; round++) {
      await until('cleaned', (await counts()).cleaned + 1);
      await beginWrite(writer, uri, 1000 + round * LONG_ROWS);
      await until('refused', (await counts()).refused + 2);
      await endWrite(writer);
    }
    const end = await cleaner.evaluate(() => {
      const cleaning = Reflect.get(window, 'cleaning') as { isOver: boolean; end: Promise<string> };
      cleaning.isOver = true;
      return cleaning.end;
    });

    expect(end).toBe('clean');
    const expected = [...numbers(0, FIRST_ROWS), ...numbers(1000, ROUNDS * LONG_ROWS)];
    expect((await readAll(cleaner, uri)).ids).toEqual(expected);
    expect((await readAll(writer, uri)).ids).toEqual(expected);
    await writer.close();
    await cleaner.close();
  });
}
