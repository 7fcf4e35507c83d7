// Dialogs: questions before something is made, deleted or dropped, and a cell's whole value.

import { formatType, formatWhole } from '../cells.ts';
import { formatBytes, formatCount, h, plural } from '../element.ts';
import type { FoundTable } from '../folder.ts';
import type { Row } from '../sample-rows.ts';
import { filterMessage, markedFilter } from './filter-box.ts';
import type { CellValue } from './grid.ts';

interface DialogOptions {
  readonly title: string;
  readonly body: readonly (Node | string)[];
  readonly submit?: { readonly label: string; readonly isDanger?: boolean };
}

/**
 * Asks until `read` gives an answer; a refusal it throws is shown in the dialog. `undefined` when somebody went away.
 */
function ask<T>(
  options: DialogOptions,
  read: () => T | Promise<T>,
  prepare?: (form: HTMLFormElement) => void,
): Promise<T | undefined> {
  const failure = h('div', { class: 'dialog-error', role: 'alert' });
  const submit = options.submit;
  const form = h(
    'form',
    { method: 'dialog' },
    h('h2', { id: 'dialog-title' }, options.title),
    ...options.body,
    failure,
    h(
      'div',
      { class: 'dialog-actions' },
      h(
        'button',
        { type: 'button', value: 'cancel', onclick: () => dialog.close() },
        submit === undefined ? 'Close' : 'Cancel',
      ),
      submit !== undefined &&
        h('button', { type: 'submit', class: submit.isDanger === true ? 'primary danger' : 'primary' }, submit.label),
    ),
  );
  const dialog = h('dialog', { 'aria-labelledby': 'dialog-title' }, form);
  document.body.append(dialog);
  return new Promise((resolve) => {
    let answer: T | undefined;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      failure.replaceChildren();
      Promise.resolve()
        .then(read)
        .then(
          (value) => {
            answer = value;
            dialog.close();
          },
          (error: unknown) => failure.replaceChildren(error instanceof Error ? error.message : String(error)),
        );
    });
    dialog.addEventListener('click', (event) => {
      // The backdrop is the dialog itself; everything in it lies over it.
      if (event.target === dialog) dialog.close();
    });
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(answer);
    });
    prepare?.(form);
    dialog.showModal();
  });
}

function nameInput(value: string, label = 'Name'): { field: HTMLElement; input: HTMLInputElement } {
  const input = h('input', {
    type: 'text',
    required: true,
    pattern: '[A-Za-z0-9_.\\-]+',
    title: 'Letters, digits, underscores, hyphens and periods',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    value,
  });
  return { field: h('label', { class: 'field' }, h('span', {}, label), input), input };
}

export interface NewTable {
  readonly name: string;
  /** A number of sample rows, or the rows themselves. */
  readonly rows: number | readonly Row[];
}

const EXAMPLE_ROWS = `[
  { "id": 1, "title": "First", "score": 0.5, "tags": ["a", "b"] },
  { "id": 2, "title": "Second", "score": 0.25, "tags": [] }
]`;

export function askNewTable(isTaken: (name: string) => boolean): Promise<NewTable | undefined> {
  const { field, input } = nameInput(freeName('sightings', isTaken));
  const rows = h('textarea', { class: 'mono', rows: 7, spellcheck: 'false', 'aria-label': 'Rows as JSON' });
  rows.value = EXAMPLE_ROWS;
  const json = h(
    'div',
    { class: 'field', hidden: true },
    h('p', { class: 'hint' }, 'A JSON array of rows; the columns follow from them.'),
    rows,
  );
  const option = (value: string, label: string, isChecked: boolean) =>
    h('label', { class: 'option' }, h('input', { type: 'radio', name: 'rows', value, checked: isChecked }), label);
  const choice = h(
    'fieldset',
    {},
    h('legend', {}, 'Rows'),
    option('10', '10 sample rows', true),
    option('1000', '1,000 sample rows', false),
    option('100000', '100,000 sample rows', false),
    option('json', 'Rows as JSON', false),
  );
  const chosen = () => choice.querySelector<HTMLInputElement>('input:checked')?.value ?? '10';
  choice.addEventListener('change', () => {
    json.hidden = chosen() !== 'json';
  });
  return ask({ title: 'New table', body: [field, choice, json], submit: { label: 'Create' } }, () => {
    const name = input.value;
    if (isTaken(name)) throw new Error(`There is a table "${name}" already.`);
    return { name, rows: chosen() === 'json' ? parseRows(rows.value) : Number(chosen()) };
  });
}

function parseRows(text: string): Row[] {
  const value: unknown = JSON.parse(text);
  const isRow = (row: unknown): row is Row => typeof row === 'object' && row !== null && !Array.isArray(row);
  if (!Array.isArray(value) || value.length === 0 || !value.every(isRow)) {
    throw new Error('Rows are a JSON array of objects, with one row at least.');
  }
  return value;
}

/** `name`, else `name_2` and so on. */
function freeName(name: string, isTaken: (name: string) => boolean): string {
  if (!isTaken(name)) return name;
  let number = 2;
  while (isTaken(`${name}_${number}`)) number++;
  return `${name}_${number}`;
}

export async function confirmDrop(name: string, rowCount: number): Promise<boolean> {
  const text = h(
    'p',
    {},
    `The table "${name}" with ${plural(rowCount, 'row')} and all its versions will be gone. This cannot be undone.`,
  );
  return (
    (await ask({ title: 'Drop table', body: [text], submit: { label: 'Drop table', isDanger: true } }, () => true)) ??
    false
  );
}

export interface DeleteQuestion {
  readonly filter: string;
  readonly rowCount: number;
  readonly count: (filter: string) => Promise<number>;
}

/** The filter of the rows to delete. Their number is told while the filter is typed. */
export function askDelete(question: DeleteQuestion): Promise<string | undefined> {
  const input = h('input', {
    type: 'text',
    class: 'mono',
    required: true,
    value: question.filter,
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
  });
  const told = h('div', { class: 'told', role: 'status' });
  let turn = 0;
  const tell = async () => {
    const mine = ++turn;
    const filter = input.value.trim();
    if (filter === '') {
      told.replaceChildren(
        h(
          'p',
          { class: 'hint' },
          'Rows that match the filter will be deleted; ',
          h('code', {}, 'true'),
          ' matches all.',
        ),
      );
      return undefined;
    }
    try {
      const count = await question.count(filter);
      if (mine === turn) {
        told.replaceChildren(
          h('p', {}, h('strong', {}, formatCount(count)), ` of ${plural(question.rowCount, 'row')} will be deleted.`),
        );
      }
      return filter;
    } catch (error) {
      if (mine === turn) {
        const marked = markedFilter(filter, error);
        told.replaceChildren(
          h('div', { class: 'filter-error' }, ...(marked === undefined ? [] : [marked]), filterMessage(error)),
        );
      }
      return undefined;
    }
  };
  let timer = 0;
  input.addEventListener('input', () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void tell(), 200);
  });
  const body = [h('label', { class: 'field' }, h('span', {}, 'Filter'), input), told];
  return ask(
    { title: 'Delete rows', body, submit: { label: 'Delete', isDanger: true } },
    async () => {
      const filter = await tell();
      if (filter === undefined) throw new Error('Nothing was deleted.');
      return filter;
    },
    () => void tell(),
  );
}

export interface ImportChoice {
  readonly name: string;
  readonly found: FoundTable;
}

export function askImport(
  tables: readonly FoundTable[],
  isTaken: (name: string) => boolean,
): Promise<ImportChoice[] | undefined> {
  const lines = tables.map((found) => ({
    found,
    ...nameInput(freeName(found.name, isTaken), tables.length === 1 ? 'Name' : found.name),
  }));
  const body = lines.map(({ found, field }) =>
    h(
      'div',
      {},
      field,
      h('p', { class: 'hint' }, `${plural(found.files.length, 'file')}, ${formatBytes(found.sizeBytes)}`),
    ),
  );
  return ask(
    {
      title: tables.length === 1 ? 'Import a table' : `Import ${tables.length} tables`,
      body,
      submit: { label: 'Import' },
    },
    () =>
      lines.map(({ found, input }, i) => {
        const name = input.value;
        const isTwice = lines.slice(0, i).some((line) => line.input.value === name);
        if (isTwice || isTaken(name)) throw new Error(`There is a table "${name}" already.`);
        return { name, found };
      }),
  );
}

export async function showCell({ column, type, row, value }: CellValue): Promise<void> {
  const whole = formatWhole(value, type);
  const about = h('p', { class: 'hint' }, `${formatType(type)}, row ${formatCount(row + 1)}`);
  const copy = h('button', { type: 'button', class: 'small' }, 'Copy');
  copy.addEventListener('click', () => {
    void navigator.clipboard.writeText(whole).then(
      () => (copy.textContent = 'Copied'),
      () => (copy.textContent = 'The browser does not allow it'),
    );
  });
  await ask(
    { title: column, body: [about, h('pre', { class: 'whole-value', tabindex: 0 }, whole), copy] },
    () => undefined,
  );
}
