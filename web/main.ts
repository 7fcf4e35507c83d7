// The demo: tables of one connection, in the tab and on this machine only. `?uri=indexeddb://name` opens another connection.

import './style.css';

import { formatBytes, h, icon, plural, replace, type Child } from './element.ts';
import { directoryPicker, droppedFiles, findTables, pickedFiles, writeInto, type FolderFile } from './folder.ts';
import { FilterRefused, Session } from './session.ts';
import { writeTar, type TarEntry } from './tar.ts';
import {
  askDelete,
  askImport,
  askNewTable,
  confirmDrop,
  showCell,
  type ImportChoice,
  type NewTable,
} from './views/dialogs.ts';
import { Notices } from './views/notices.ts';
import { linkedTable, tableLink, tableList } from './views/table-list.ts';
import { TableView } from './views/table-view.ts';

const uri = new URLSearchParams(location.search).get('uri') ?? 'opfs://demo';
const notices = new Notices();
const list = h('div', { class: 'tables' });
const storage = h('p', { class: 'hint' });
const main = h('main', { tabindex: -1 });
const folderInput = h('input', {
  type: 'file',
  webkitdirectory: true,
  multiple: true,
  hidden: true,
  'aria-label': 'Folder of a Lance table',
});
const archiveInput = h('input', {
  type: 'file',
  accept: '.tar',
  hidden: true,
  'aria-label': 'Archive of a Lance table',
});

let session: Session | undefined;
/** The page has not yet found out what there is to show. */
let isOpening = true;
let waitingActions = 0;
/** Actions run one after the other, in the order in which they were asked for. */
let lastAction: Promise<void> = Promise.resolve();
const view = new TableView({
  filter: (filter) => void run((open) => filterRows(open, filter)),
  addRows: (count) => void run((open) => addRows(open, count)),
  deleteRows: () => void deleteRows(),
  exportFolder: () => void exportFolder(),
  exportArchive: () => void run(exportArchive),
  drop: () => void dropTable(),
  refresh: () => void run((open) => open.refresh()),
  viewVersion: (version) => void run((open) => open.viewVersion(version)),
  viewLatest: () => void run((open) => open.viewLatest()),
});
view.grid.oncell = (cell) => void showCell(cell);
view.grid.onerror = (error) => notices.fail(error);

// ---- actions --------------------------------------------------------------------------------------------------------

/** Runs one action: the page shows that it is busy, and a failure with its code. Questions are asked before, not within. */
function run(action: (open: Session) => Promise<void>): Promise<void> {
  const focused = document.activeElement;
  setWaiting(+1);
  lastAction = lastAction.then(async () => {
    try {
      if (session !== undefined) await action(session);
    } catch (error) {
      fail(error);
    } finally {
      setWaiting(-1);
      const isFocusLost = document.activeElement === document.body;
      if (isFocusLost && focused instanceof HTMLElement) focused.focus({ preventScroll: true });
    }
  });
  return lastAction;
}

function fail(error: unknown): void {
  if (error instanceof FilterRefused) view.filterBox.showError(error.filter, error.cause);
  else notices.fail(error);
}

function setWaiting(change: number): void {
  waitingActions += change;
  document.body.setAttribute('aria-busy', String(waitingActions > 0));
}

function isTaken(name: string): boolean {
  return session?.tables.some((table) => table.name === name) === true;
}

async function filterRows(open: Session, filter: string): Promise<void> {
  view.filterBox.clearError();
  await open.setFilter(filter);
}

async function addRows(open: Session, count: number): Promise<void> {
  const started = await nextTask();
  await open.addRows(count);
  const version = open.shown?.version ?? '';
  notices.say(`Added ${plural(count, 'row')} in ${formatDuration(performance.now() - started)}. Version ${version}.`);
  await drawStorage();
}

async function deleteRows(): Promise<void> {
  const open = session;
  const shown = open?.shown;
  if (open === undefined || shown === undefined) return;
  const filter = await askDelete({
    filter: view.filterBox.text,
    rowCount: shown.rowCount,
    count: (text) => open.countMatches(text),
  });
  if (filter === undefined) return;
  await run(async () => {
    const deleted = await open.deleteRows(filter);
    const now = open.shown;
    notices.say(
      `Deleted ${plural(deleted, 'row')}; ${plural(now?.rowCount ?? 0, 'row')} left. Version ${now?.version ?? ''}.`,
    );
    await drawStorage();
  });
}

async function newTable(): Promise<void> {
  const wanted = await askNewTable(isTaken);
  if (wanted !== undefined) await run((open) => createTable(open, wanted));
}

async function createTable(open: Session, { name, rows }: NewTable): Promise<void> {
  const started = await nextTask();
  if (typeof rows === 'number') await open.createSample(name, rows);
  else await open.createTable(name, rows);
  const count = plural(typeof rows === 'number' ? rows : rows.length, 'row');
  notices.say(`Created "${name}" with ${count} in ${formatDuration(performance.now() - started)}.`);
  await open.listTables();
  location.hash = tableLink(name);
  await drawStorage();
}

async function dropTable(): Promise<void> {
  const shown = session?.shown;
  if (shown === undefined || !(await confirmDrop(shown.name, shown.rowCount))) return;
  await run(async (open) => {
    await open.dropTable(shown.name);
    location.hash = '#';
    await open.listTables();
    notices.say(`Dropped "${shown.name}".`);
    await drawStorage();
  });
}

async function importFiles(read: Promise<FolderFile[]>): Promise<void> {
  try {
    const tables = findTables(await read);
    if (tables.length === 0)
      throw new Error('no Lance table there: a table is a folder that holds a folder "_versions"');
    const wanted = await askImport(tables, isTaken);
    if (wanted !== undefined) await run((open) => importTables(open, wanted));
  } catch (error) {
    fail(error);
  }
}

async function importTables(open: Session, wanted: readonly ImportChoice[]): Promise<void> {
  for (const { name, found } of wanted) {
    await open.importTable(name, found);
    notices.say(`Imported "${name}": ${plural(found.files.length, 'file')}, ${formatBytes(found.sizeBytes)}.`);
  }
  await open.listTables();
  const [first] = wanted;
  if (first !== undefined) location.hash = tableLink(first.name);
  await drawStorage();
}

async function exportFolder(): Promise<void> {
  const name = session?.shown?.name;
  const pick = directoryPicker();
  if (name === undefined || pick === undefined) return;
  let root: FileSystemDirectoryHandle;
  try {
    root = await pick({ mode: 'readwrite' });
  } catch (error) {
    const isClosed = error instanceof DOMException && error.name === 'AbortError';
    if (!isClosed) fail(error);
    return;
  }
  await run(async (open) => {
    let count = 0;
    for await (const file of open.exportTable(name)) {
      await writeInto(root, `${name}.lance/${file.path}`, file.stream);
      count++;
    }
    notices.say(`Exported ${plural(count, 'file')} to "${root.name}/${name}.lance".`);
  });
}

async function exportArchive(open: Session): Promise<void> {
  const name = open.shown?.name;
  if (name === undefined) return;
  const entries: TarEntry[] = [];
  for await (const file of open.exportTable(name)) {
    entries.push({ path: `${name}.lance/${file.path}`, body: await new Response(file.stream).blob() });
  }
  const url = URL.createObjectURL(writeTar(entries, new Date()));
  h('a', { href: url, download: `${name}.lance.tar` }).click();
  // The download has its own hold on the bytes once it has begun.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  notices.say(`Exported ${plural(entries.length, 'file')}.`);
}

async function showLinked(open: Session): Promise<void> {
  const name = linkedTable(location.hash);
  if (name === open.shown?.name) return;
  if (name === undefined) {
    open.leave();
    return;
  }
  try {
    await open.show(name);
  } catch (error) {
    location.hash = '#';
    throw error;
  }
}

/** The time, once the page has shown that it is busy. */
async function nextTask(): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve));
  return performance.now();
}

function formatDuration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

// ---- drawing --------------------------------------------------------------------------------------------------------

function draw(open: Session): void {
  const shown = open.shown;
  replace(list, tableList(open.tables, shown?.name));
  if (shown === undefined && isOpening) return;
  document.body.dataset['place'] = shown === undefined ? 'tables' : 'table';
  document.title = shown === undefined ? 'Lancelet' : `${shown.name} \u00b7 Lancelet`;
  if (shown === undefined) {
    replace(main, welcome(open));
    return;
  }
  // The view is in the document before it is drawn: rows are as many as fit.
  if (view.element.parentElement !== main) replace(main, view.element);
  view.draw(shown);
}

function welcome(open: Session): HTMLElement {
  const isEmpty = open.tables.length === 0;
  return h(
    'div',
    { class: 'welcome' },
    h('h1', {}, isEmpty ? 'Nothing here yet' : 'Choose a table'),
    h(
      'p',
      {},
      'Tables live in this browser as real Lance tables: versioned, filterable, and readable by every other Lance reader once exported. ',
      'Nothing leaves this machine.',
    ),
    isEmpty &&
      h(
        'div',
        { class: 'welcome-actions' },
        h(
          'button',
          {
            type: 'button',
            class: 'primary',
            'data-action': '',
            'data-key': 'first',
            onclick: () => void run((open) => createTable(open, { name: 'sightings', rows: 1000 })),
          },
          'Start with 1,000 sample rows',
        ),
        h('button', { type: 'button', onclick: () => folderInput.click() }, 'Import a Lance folder'),
      ),
    h('p', { class: 'hint' }, 'A folder that holds a Lance table can be dropped anywhere on this page.'),
  );
}

async function drawStorage(): Promise<void> {
  const estimate = await navigator.storage?.estimate?.();
  const used = estimate?.usage === undefined ? '' : ` \u00b7 ${formatBytes(estimate.usage)} used`;
  storage.textContent = `${uri}${used}`;
}

// ---- start ----------------------------------------------------------------------------------------------------------

function sidebar(): HTMLElement {
  const button = (label: string, key: string, onclick: () => void, child: Child) =>
    h('button', { type: 'button', class: 'quiet', 'data-key': key, 'data-action': '', onclick }, child, label);
  return h(
    'nav',
    { class: 'sidebar', 'aria-label': 'Tables' },
    h('a', { class: 'brand', href: '#' }, logo(), 'Lancelet'),
    h('h2', {}, 'Tables'),
    list,
    h(
      'div',
      { class: 'sidebar-actions' },
      button('New table', 'new', () => void newTable(), icon('plus')),
      button('Import folder', 'import', () => folderInput.click(), icon('folder')),
      button('Import .tar', 'import-tar', () => archiveInput.click(), icon('folder')),
    ),
    storage,
  );
}

/** Not by its address, which names the table. */
function skipLink(): HTMLElement {
  const skip = (event: Event) => {
    event.preventDefault();
    main.focus();
  };
  return h('a', { class: 'skip', href: '#', onclick: skip }, 'Skip to the table');
}

/** The animal: a slim body, pointed at both ends. */
function logo(): Element {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 32 16');
  svg.setAttribute('class', 'logo');
  svg.setAttribute('aria-hidden', 'true');
  for (const [d, className] of [
    ['M1 10C7 2 20 1 31 7 22 14 8 15 1 10Z', 'logo-body'],
    ['M9 5.2l2 3-2 3.6M13 4.2l2 3.6-2 4.2M17 4l2 3.6-2 4.2M21 4.4l2 3-2 3.4', 'logo-lines'],
  ] as const) {
    const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    path.setAttribute('d', d);
    path.setAttribute('class', className);
    svg.append(path);
  }
  return svg;
}

function listenForFiles(): void {
  for (const input of [folderInput, archiveInput]) {
    input.addEventListener('change', () => {
      const files = [...(input.files ?? [])];
      input.value = '';
      void importFiles(pickedFiles(files));
    });
  }
  let depth = 0;
  const mark = (isOver: boolean) => document.body.classList.toggle('dropping', isOver);
  const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true;
  document.addEventListener('dragenter', (event) => {
    if (hasFiles(event)) mark(++depth > 0);
  });
  document.addEventListener('dragleave', (event) => {
    if (hasFiles(event)) mark(--depth > 0);
  });
  document.addEventListener('dragover', (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
  document.addEventListener('drop', (event) => {
    if (!hasFiles(event) || event.dataTransfer === null) return;
    event.preventDefault();
    depth = 0;
    mark(false);
    void importFiles(droppedFiles(event.dataTransfer));
  });
}

async function start(): Promise<void> {
  document.body.append(
    skipLink(),
    h('div', { class: 'progress', 'aria-hidden': 'true' }),
    sidebar(),
    main,
    folderInput,
    archiveInput,
    notices.element,
  );
  document.body.dataset['place'] = linkedTable(location.hash) === undefined ? 'tables' : 'table';
  replace(list, h('p', { class: 'hint' }, '\u2026'));
  replace(main, h('p', { class: 'opening', role: 'status' }, `Opening ${uri} \u2026`));
  setWaiting(+1);
  try {
    const open = await Session.open(uri);
    session = open;
    open.onchange = () => draw(open);
    // What somebody came for is first; the counts of the other tables can wait.
    await showLinked(open);
    isOpening = false;
    await open.listTables();
    await drawStorage();
  } catch (error) {
    notices.fail(error);
    if (session === undefined) replace(main, cannotOpen());
  } finally {
    isOpening = false;
    setWaiting(-1);
  }
  listenForFiles();
  window.addEventListener('hashchange', () => void run(showLinked));
  // Another tab may have written meanwhile.
  window.addEventListener('focus', () => {
    if (waitingActions === 0) void run((open) => open.refresh());
  });
}

function cannotOpen(): HTMLElement {
  return h(
    'div',
    { class: 'welcome' },
    h('h1', {}, 'The tables cannot be opened'),
    h('p', {}, `This browser did not open ${uri}. The reason is told below.`),
    h('button', { type: 'button', class: 'primary', onclick: () => location.reload() }, 'Try again'),
  );
}

void start();
