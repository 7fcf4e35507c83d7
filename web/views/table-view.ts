// Table view: the shown table's name, actions, filter, banner, rows and versions.

import { DataType, type Schema } from 'apache-arrow';

import { formatCount, h, icon, plural, replace } from '../element.ts';
import { directoryPicker } from '../folder.ts';
import type { Shown } from '../session.ts';
import { FilterBox } from './filter-box.ts';
import { Grid } from './grid.ts';
import { menu } from './menu.ts';
import { versionBanner, versionsPanel, VERSIONS_STEP } from './versions.ts';

export interface TableActions {
  readonly filter: (filter: string) => void;
  readonly addRows: (count: number) => void;
  readonly deleteRows: () => void;
  readonly exportFolder: () => void;
  readonly exportArchive: () => void;
  readonly drop: () => void;
  readonly refresh: () => void;
  readonly viewVersion: (version: number) => void;
  readonly viewLatest: () => void;
}

export class TableView {
  readonly element: HTMLElement;
  readonly filterBox = new FilterBox();
  readonly grid = new Grid();
  readonly #actions: TableActions;
  readonly #head = h('header', { class: 'table-head' });
  readonly #banner = h('div', { 'aria-live': 'polite' });
  readonly #status = h('p', { class: 'status', role: 'status' });
  readonly #empty = h('div', { class: 'empty', hidden: true });
  readonly #side = h('div', { class: 'side' });
  #shown: Shown | undefined;
  #hasVersions = false;
  #versionsShown = VERSIONS_STEP;

  constructor(actions: TableActions) {
    this.#actions = actions;
    this.filterBox.onfilter = actions.filter;
    const rows = h('div', { class: 'rows' }, this.grid.element, this.#empty);
    this.element = h(
      'section',
      { class: 'table-view', 'aria-label': 'Table' },
      this.#head,
      this.#banner,
      h(
        'div',
        { class: 'table-body' },
        h('div', { class: 'table-main' }, this.filterBox.element, this.#status, rows),
        this.#side,
      ),
    );
  }

  draw(shown: Shown): void {
    const before = this.#shown;
    this.#shown = shown;
    this.#drawHead(shown);
    replace(this.#banner, versionBanner(shown, this.#actions.viewLatest));
    this.#drawVersions(shown);
    if (before === shown) return;
    const isSameTable = before?.name === shown.name;
    if (!isSameTable || before.filter !== shown.filter) this.filterBox.show(shown.filter, exampleFilter(shown.schema));
    else this.filterBox.clearError();
    const isSamePlace =
      isSameTable && before.filter === shown.filter && before.rowCount > 0 && sameColumns(before.schema, shown.schema);
    const isNothing = shown.matchCount === 0;
    this.grid.element.hidden = isNothing;
    this.#empty.hidden = !isNothing;
    this.#status.textContent =
      shown.filter === ''
        ? plural(shown.rowCount, 'row')
        : `${formatCount(shown.matchCount)} of ${plural(shown.rowCount, 'row')} match`;
    if (isNothing) this.#drawEmpty(shown);
    this.grid.show({ schema: shown.schema, rowCount: shown.matchCount, rows: shown.rows }, isSamePlace);
  }

  #drawHead(shown: Shown): void {
    const { isOld } = shown;
    const actions = this.#actions;
    const rowsOf = (count: number) => ({ label: plural(count, 'row'), onpick: () => actions.addRows(count) });
    replace(
      this.#head,
      h('a', { class: 'back', href: '#', 'data-key': 'back', 'aria-label': 'All tables' }, icon('back')),
      h(
        'div',
        { class: 'table-title' },
        h('h1', { title: shown.name }, shown.name),
        h('p', { class: 'hint' }, `version ${shown.version} \u00b7 ${plural(shown.schema.fields.length, 'column')}`),
      ),
      h(
        'div',
        { class: 'actions' },
        menu({
          key: 'add',
          label: ['Add ', h('span', { class: 'wide-only' }, 'sample '), 'rows'],
          isDisabled: isOld,
          items: [rowsOf(10), rowsOf(1000), rowsOf(100_000)],
        }),
        h(
          'button',
          { type: 'button', 'data-key': 'delete', 'data-action': '', disabled: isOld, onclick: actions.deleteRows },
          h('span', {}, 'Delete', h('span', { class: 'wide-only' }, ' rows'), '\u2026'),
        ),
        h(
          'button',
          {
            type: 'button',
            'data-key': 'versions',
            'aria-expanded': String(this.#hasVersions),
            onclick: () => this.#toggleVersions(),
          },
          'Versions',
        ),
        h(
          'button',
          {
            type: 'button',
            class: 'icon-only',
            'data-key': 'refresh',
            'data-action': '',
            title: 'Refresh',
            'aria-label': 'Refresh',
            onclick: actions.refresh,
          },
          icon('refresh'),
        ),
        menu({
          key: 'more',
          label: 'More actions',
          isIcon: true,
          items: [
            ...(directoryPicker() === undefined
              ? []
              : [
                  {
                    label: 'Export to a folder\u2026',
                    hint: 'a Lance table, all versions',
                    onpick: actions.exportFolder,
                  },
                ]),
            { label: 'Download as .tar', hint: 'the same folder in one file', onpick: actions.exportArchive },
            { label: 'Drop table\u2026', isDanger: true, isDisabled: isOld, onpick: actions.drop },
          ],
        }),
      ),
    );
  }

  #drawEmpty(shown: Shown): void {
    const isFiltered = shown.rowCount > 0;
    replace(
      this.#empty,
      h('h2', {}, isFiltered ? 'No row matches' : 'No rows'),
      h(
        'p',
        {},
        isFiltered ? 'Other rows are there: change the filter, or clear it.' : 'Add some and watch the version number.',
      ),
      isFiltered
        ? h('button', { type: 'button', onclick: () => this.#actions.filter('') }, 'Clear the filter')
        : h(
            'button',
            {
              type: 'button',
              class: 'primary',
              'data-action': '',
              disabled: shown.isOld,
              onclick: () => this.#actions.addRows(10),
            },
            'Add 10 sample rows',
          ),
    );
  }

  #toggleVersions(): void {
    this.#hasVersions = !this.#hasVersions;
    this.#versionsShown = VERSIONS_STEP;
    if (this.#shown !== undefined) this.draw(this.#shown);
  }

  #drawVersions(shown: Shown): void {
    const more = () => {
      this.#versionsShown += VERSIONS_STEP;
      this.#drawVersions(shown);
    };
    const { viewVersion, viewLatest } = this.#actions;
    const panel = () =>
      versionsPanel(shown, this.#versionsShown, more, {
        view: viewVersion,
        viewLatest,
        close: () => this.#toggleVersions(),
      });
    replace(this.#side, this.#hasVersions && panel());
  }
}

function sameColumns(a: Schema, b: Schema): boolean {
  return a.fields.length === b.fields.length && a.fields.every((field, i) => field.name === b.fields[i]?.name);
}

/** A filter of this table's own columns, so that the dialect shows itself. */
function exampleFilter(schema: Schema): string | undefined {
  const quote = (name: string) => (/^[A-Za-z_]\w*$/.test(name) ? name : `\`${name}\``);
  const number =
    schema.fields.find(({ type }) => DataType.isFloat(type)) ?? schema.fields.find(({ type }) => DataType.isInt(type));
  const text = schema.fields.find(({ type }) => DataType.isUtf8(type) || DataType.isLargeUtf8(type));
  const parts = [
    ...(number === undefined ? [] : [`${quote(number.name)} > ${DataType.isFloat(number.type) ? '40.5' : '10'}`]),
    ...(text === undefined ? [] : [`${quote(text.name)} like '%a%'`]),
  ];
  return parts.length === 0 ? undefined : parts.join(' and ');
}
