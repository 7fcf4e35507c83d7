// Table list: every table of the connection with its number of rows.

import { formatCount, h, icon } from '../element.ts';
import type { TableEntry } from '../session.ts';

export function tableList(tables: readonly TableEntry[], shownName: string | undefined): HTMLElement {
  if (tables.length === 0) return h('p', { class: 'hint' }, 'No tables yet.');
  return h(
    'ul',
    { class: 'table-list' },
    ...tables.map(({ name, rowCount }) =>
      h(
        'li',
        {},
        h(
          'a',
          {
            href: tableLink(name),
            'data-key': `table-${name}`,
            'aria-current': name === shownName ? 'page' : undefined,
          },
          icon('table'),
          h('span', { class: 'table-name' }, name),
          h(
            'span',
            { class: 'table-count', 'aria-label': rowCount === undefined ? 'rows not counted' : `${rowCount} rows` },
            rowCount === undefined ? '\u2013' : formatCount(rowCount),
          ),
        ),
      ),
    ),
  );
}

export function tableLink(name: string): string {
  return `#table/${encodeURIComponent(name)}`;
}

/** The table that the address names. */
export function linkedTable(hash: string): string | undefined {
  const [, name] = /^#table\/(.+)$/.exec(hash) ?? [];
  return name === undefined ? undefined : decodeURIComponent(name);
}
