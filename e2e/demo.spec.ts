// The demo, as somebody uses it: first rows, filters, versions, deletes, and tables that come from and go to LanceDB.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { connect as connectLanceDb } from '@lancedb/lancedb';
import { expect as patient, test, type Locator, type Page } from '@playwright/test';

import { newFolder, newUri, openStory, removeFolder, useProfile } from './story/profile.ts';

const profile = useProfile();
/** A page that loads an engine, and writes and syncs, on a machine that may be busy with other tests. */
const expect = patient.configure({ timeout: 20_000 });
let folder: string;
let page: Page;
let uri: string;
let foreignRequests: string[];

test.beforeEach(async () => {
  folder = newFolder();
  uri = newUri('opfs');
  page = await profile.current.newPage();
  foreignRequests = [];
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${profile.current.base}/`) && !/^(data|blob):/.test(url)) foreignRequests.push(url);
  });
  await page.goto(`${profile.current.base}/web/index.html?uri=${uri}`);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
});

test.afterEach(async () => {
  await page.close();
  removeFolder(folder);
  expect(foreignRequests).toEqual([]);
});

const button = (name: string | RegExp): Locator => page.getByRole('button', { name, exact: true });
const grid = (): Locator => page.getByRole('grid');
const cell = (row: number, column: number): Locator => page.locator(`#cell-${row}-${column}`);
const status = (): Locator => page.locator('.status');
const dialog = (): Locator => page.getByRole('dialog');

async function start(): Promise<void> {
  await button('Start with 1,000 sample rows').click();
  await expect(status()).toHaveText('1,000 rows');
  await expect(cell(0, 0)).toHaveText('1');
}

async function addRows(label: string): Promise<void> {
  await button('Add sample rows').click();
  await button(label).click();
}

async function filter(text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Filter' }).fill(text);
  await page.keyboard.press('Enter');
}

test('an empty browser offers a first table and shows its rows', async () => {
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Nothing here yet');
  await start();
  await expect(page.getByRole('link', { name: /sightings/ })).toContainText('1,000');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('sightings');
  await expect(cell(0, 3)).toHaveText(/^\d+(\.\d)?$/);
  await expect(cell(1, 7)).toHaveText('null');
  await expect(cell(0, 8)).toHaveText(/^\[-?0\.\d+, .*\u2026 16\]$/);
});

test('a table and its rows are there after a reload', async () => {
  await start();
  await addRows('10 rows');
  await expect(status()).toHaveText('1,010 rows');
  await page.reload();
  await expect(status()).toHaveText('1,010 rows');
  await expect(cell(0, 0)).toHaveText('1');
  await expect(page.getByText('version 2', { exact: false }).first()).toBeVisible();
});

test('a filter shows the rows that match, and a wrong one where it is wrong', async () => {
  await start();
  await filter('id > 990');
  await expect(status()).toHaveText('10 of 1,000 rows match');
  await expect(cell(0, 0)).toHaveText('991');

  await filter('id > ) 3');
  const error = page.locator('#filter-error');
  await expect(error).toContainText('INVALID_INPUT');
  await expect(error.locator('mark')).toHaveText(')');
  await expect(page.getByRole('textbox', { name: 'Filter' })).toHaveAttribute('aria-invalid', 'true');
  await expect(status()).toHaveText('10 of 1,000 rows match');

  await filter('nothing = 3');
  await expect(error).toContainText('nothing');
  await filter('id = 5000');
  await expect(page.getByRole('heading', { name: 'No row matches' })).toBeVisible();
  await expect(error).toBeEmpty();
  await button('Clear the filter').last().click();
  await expect(status()).toHaveText('1,000 rows');
});

test('deleting tells the number of rows before and after', async () => {
  await start();
  await button('Delete rows\u2026').click();
  await dialog().getByRole('textbox').fill('id <= ');
  await expect(dialog()).toContainText('INVALID_INPUT');
  await dialog().getByRole('textbox').fill('id <= 300');
  await expect(dialog()).toContainText('300 of 1,000 rows will be deleted');
  await button('Delete').click();
  await expect(page.getByText('Deleted 300 rows; 700 rows left. Version 2.')).toBeVisible();
  await expect(status()).toHaveText('700 rows');
  await expect(cell(0, 0)).toHaveText('301');
});

test('an old version is viewed under a banner and left again', async () => {
  await start();
  await addRows('10 rows');
  await expect(status()).toHaveText('1,010 rows');
  await button('Versions').click();
  await button('View version 1').click();
  const banner = page.getByRole('region', { name: 'Old version' });
  await expect(banner).toContainText('Version 1 of 2');
  await expect(status()).toHaveText('1,000 rows');
  await expect(button('Add sample rows')).toBeDisabled();
  await expect(button('Delete rows\u2026')).toBeDisabled();
  await button('Back to latest').click();
  await expect(banner).toHaveCount(0);
  await expect(status()).toHaveText('1,010 rows');
  await expect(button('Add sample rows')).toBeEnabled();
});

test('100,000 rows scroll to their end, by the bar and by the keyboard', async () => {
  await start();
  await addRows('100,000 rows');
  await expect(status()).toHaveText('101,000 rows');
  await grid().evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await expect(cell(100_999, 0)).toHaveText('101000');
  await grid().evaluate((element) => element.scrollTo(0, element.scrollHeight / 2));
  await expect(page.locator('.grid-row').first().locator('.cell').first()).toHaveText(/^5\d\d\d\d$/);
  expect(await page.locator('.grid-row').count()).toBeLessThan(80);
  const cut = await page
    .locator('.row-number')
    .evaluateAll((all) => all.filter((e) => e.scrollWidth > e.clientWidth).length);
  expect(cut).toBe(0);

  await grid().focus();
  await page.keyboard.press('Control+Home');
  await expect(cell(0, 0)).toHaveText('1');
  await page.keyboard.press('Control+End');
  await expect(grid()).toHaveAttribute('aria-activedescendant', 'cell-100999-8');
  await page.keyboard.press('Enter');
  await expect(dialog()).toContainText('float32[16], row 101,000');
});

test('a table is made of rows in JSON, and dropped after a question', async () => {
  await button('New table').click();
  await dialog().getByRole('textbox', { name: 'Name' }).fill('mine');
  await dialog().getByRole('radio', { name: 'Rows as JSON' }).check();
  await dialog()
    .getByRole('textbox', { name: 'Rows as JSON' })
    .fill('[{"title": "First", "size": {"w": 2}}, {"title": "\u4e8c"}]');
  await button('Create').click();
  await expect(status()).toHaveText('2 rows');
  await expect(cell(0, 1)).toHaveText('{"w":2}');
  await expect(cell(1, 0)).toHaveText('\u4e8c');

  await button('More actions').click();
  await button('Drop table\u2026').click();
  await expect(dialog()).toContainText('"mine" with 2 rows');
  await button('Drop table').click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Nothing here yet');
});

test('what another tab wrote is shown after a refresh', async () => {
  await start();
  const other = await profile.current.newPage();
  await other.goto(page.url());
  await expect(other.locator('.status')).toHaveText('1,000 rows');
  await addRows('10 rows');
  await expect(status()).toHaveText('1,010 rows');
  await other.getByRole('button', { name: 'Refresh' }).click();
  await expect(other.locator('.status')).toHaveText('1,010 rows');
  await other.close();
});

/** Every row as text, told by the public API in a page of its own. */
async function rowsOf(name: string): Promise<string[]> {
  const story = await profile.current.newPage();
  await openStory(story, profile.current.base);
  const rows = await story.evaluate(
    async ({ uri, name }) => {
      const table = await (await window.lancelet.connect(uri)).openTable(name);
      const write = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
      return (await table.query().toArray({ plainObjects: true })).map((row) => JSON.stringify(row, write));
    },
    { uri, name },
  );
  await story.close();
  return rows;
}

test('an exported table opens in LanceDB, and comes back under another name', async () => {
  await start();
  await button('Delete rows\u2026').click();
  await dialog().getByRole('textbox').fill('id > 50');
  await button('Delete').click();
  await expect(status()).toHaveText('50 rows');

  await button('More actions').click();
  const download = page.waitForEvent('download');
  await button(/^Download as \.tar/).click();
  const file = await download;
  expect(file.suggestedFilename()).toBe('sightings.lance.tar');
  const archive = join(folder, 'sightings.lance.tar');
  await file.saveAs(archive);
  execFileSync('tar', ['-xf', archive], { cwd: folder });

  const foreign = await (await connectLanceDb(folder)).openTable('sightings');
  expect(await foreign.countRows()).toBe(50);
  expect((await foreign.listVersions()).map(({ version }) => version)).toEqual([1, 2]);
  const [first] = await foreign.query().where('id = 1').toArray();
  expect(first.species).toBe(await cell(0, 1).textContent());

  const original = await rowsOf('sightings');
  expect(original).toHaveLength(50);
  for (const [name, input, path] of [
    ['from_folder', 'Folder of a Lance table', join(folder, 'sightings.lance')],
    ['from_archive', 'Archive of a Lance table', archive],
  ] as const) {
    await page.getByLabel(input).setInputFiles(path);
    await dialog().getByRole('textbox', { name: 'Name' }).fill(name);
    await button('Import').click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(name);
    await expect(status()).toHaveText('50 rows');
    expect(await rowsOf(name)).toEqual(original);
  }
});

test('a table that LanceDB wrote is imported with its versions, and written to', async () => {
  const db = await connectLanceDb(folder);
  const made = await db.createTable('birds', [
    { id: 1, name: 'wren', vector: [0.5, 1] },
    { id: 2, name: 'kite', vector: [1, 2] },
  ]);
  await made.add([{ id: 3, name: 'rook', vector: [3, 4] }]);
  await made.delete('id = 2');

  await page.getByLabel('Folder of a Lance table').setInputFiles(join(folder, 'birds.lance'));
  await expect(dialog()).toContainText('Import a table');
  await expect(dialog().getByRole('textbox', { name: 'Name' })).toHaveValue('birds');
  await button('Import').click();
  await expect(status()).toHaveText('2 rows');
  await expect(cell(0, 1)).toHaveText('wren');
  await expect(cell(1, 1)).toHaveText('rook');
  await expect(cell(1, 2)).toHaveText('[3, 4]');
  await button('Versions').click();
  await button('View version 1').click();
  await expect(status()).toHaveText('2 rows');
  await expect(cell(1, 1)).toHaveText('kite');
  await button('Back to latest').click();
  await addRows('10 rows');
  await expect(status()).toHaveText('12 rows');
});

test('a folder that is dropped on the page is imported', async () => {
  const db = await connectLanceDb(folder);
  await db.createTable('birds', [{ name: 'wren' }, { name: 'kite' }]);
  const devtools = await profile.current.context.newCDPSession(page);
  const data = { items: [], files: [join(folder, 'birds.lance')], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
    await devtools.send('Input.dispatchDragEvent', { type, x: 600, y: 400, data });
  }
  await expect(dialog().getByRole('textbox', { name: 'Name' })).toHaveValue('birds');
  await button('Import').click();
  await expect(status()).toHaveText('2 rows');
  await expect(cell(1, 0)).toHaveText('kite');
});

test('a table is exported into a folder that was picked', async () => {
  await start();
  // The picker is the browser's own window; the folder that it answers is a real one.
  await page.evaluate(() => {
    const pick = async () => (await navigator.storage.getDirectory()).getDirectoryHandle('picked', { create: true });
    Object.assign(window, { showDirectoryPicker: pick });
  });
  await button('More actions').click();
  await button(/^Export to a folder/).click();
  await expect(page.getByText(/^Exported \d+ files to "picked\/sightings\.lance"\.$/)).toBeVisible();
  const files = await page.evaluate(async () => {
    const paths: string[] = [];
    const walk = async (folder: FileSystemDirectoryHandle, prefix: string): Promise<void> => {
      for await (const [name, entry] of folder.entries()) {
        if (entry.kind === 'directory') await walk(entry as FileSystemDirectoryHandle, `${prefix}${name}/`);
        else if ((await (entry as FileSystemFileHandle).getFile()).size > 0) paths.push(`${prefix}${name}`);
      }
    };
    await walk(await (await navigator.storage.getDirectory()).getDirectoryHandle('picked'), '');
    return paths.map((path) => path.replace(/[^/]+\.(\w+)$/, '*.$1')).sort();
  });
  expect(files).toEqual(['sightings.lance/_versions/*.manifest', 'sightings.lance/data/*.lance']);
});

test('a folder without a table is refused', async () => {
  await page.getByLabel('Folder of a Lance table').setInputFiles(join(import.meta.dirname, 'story'));
  await expect(page.getByRole('alert').filter({ hasText: 'no Lance table there' })).toBeVisible();
});
