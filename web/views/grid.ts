// Grid: the rows of a table, of which only those in sight have elements.
//
// The scrolled height is that of all rows, up to a height that browsers can draw; beyond it, the scroll bar stands for the share of the
// rows that lie above. Keyboard focus stays on the grid, which names its active cell.

import type { Table as ArrowTable, Field, Schema, DataType } from 'apache-arrow';

import { formatCell, formatType, isNumberType } from '../cells.ts';
import { formatCount, h } from '../element.ts';
import type { RowPages } from '../row-pages.ts';

const ROW_HEIGHT = 34;
/** Browsers stop at 17 to 33 million pixels. */
const MAX_HEIGHT = 12_000_000;
/** Rows above and below the sight that are drawn too. */
const OVERSCAN = 6;
/** A column's width is told by the rows that come first. */
const MEASURED_ROWS = 60;
const CHARACTER_WIDTH = 7.4;

export interface GridSource {
  readonly schema: Schema;
  readonly rowCount: number;
  readonly rows: RowPages<ArrowTable>;
}

export interface CellValue {
  readonly column: string;
  readonly type: DataType;
  readonly row: number;
  readonly value: unknown;
}

export class Grid {
  readonly element: HTMLDivElement;
  /** Somebody opened a cell. */
  oncell: (cell: CellValue) => void = () => {};
  onerror: (error: unknown) => void = () => {};
  readonly #head = h('div', { class: 'grid-head', role: 'row', 'aria-rowindex': 1 });
  readonly #body = h('div', { class: 'grid-body', role: 'rowgroup' });
  #source: GridSource | undefined;
  #drawn = new Map<number, HTMLElement>();
  #active = { row: 0, column: 0 };
  #isMeasured = false;
  /** Of the columns, in characters. */
  #widths: number[] = [];
  #frame = 0;

  constructor() {
    this.element = h(
      'div',
      {
        class: 'grid',
        role: 'grid',
        tabindex: 0,
        'aria-label': 'Rows',
        'aria-readonly': 'true',
        onscroll: () => this.#schedule(),
        onkeydown: (event: KeyboardEvent) => this.#key(event),
        onclick: (event: MouseEvent) => this.#click(event),
      },
      h('div', { role: 'rowgroup', class: 'grid-top' }, this.#head),
      this.#body,
    );
    new ResizeObserver(() => this.#schedule()).observe(this.element);
  }

  /** Shows other rows. The place is kept when they are of the same table. */
  show(source: GridSource, isSamePlace: boolean): void {
    this.#source = source;
    const fields = source.schema.fields;
    source.rows.onpage = () => this.#pageCame();
    source.rows.onerror = (error) => this.onerror(error);
    this.element.setAttribute('aria-rowcount', String(source.rowCount + 1));
    this.element.setAttribute('aria-colcount', String(fields.length + 1));
    this.#body.style.height = `${this.#bodyHeight()}px`;
    this.#drawHead(fields);
    this.#drop();
    if (!isSamePlace) {
      this.#isMeasured = false;
      this.#widths = fields.map((field) => headWidth(field) + 1);
      this.#active = { row: 0, column: 0 };
      this.element.scrollTo(0, 0);
    }
    this.#setWidths();
    this.#active.row = Math.max(0, Math.min(this.#active.row, source.rowCount - 1));
    this.#draw();
  }

  #schedule(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #pageCame(): void {
    if (!this.#isMeasured) this.#measure();
    for (const [row, element] of this.#drawn) {
      if (element.dataset['state'] === 'waiting') {
        element.remove();
        this.#drawn.delete(row);
      }
    }
    this.#draw();
  }

  #drop(): void {
    this.#drawn.clear();
    this.#body.replaceChildren();
  }

  #draw(): void {
    const source = this.#source;
    if (source === undefined || !this.element.isConnected) return;
    const { first, sight } = this.#inSight();
    const from = Math.max(0, Math.floor(first) - OVERSCAN);
    const end = Math.min(source.rowCount, Math.ceil(first + sight) + OVERSCAN);
    source.rows.want(from, end);
    for (const [row, element] of this.#drawn) {
      if (row >= from && row < end) continue;
      element.remove();
      this.#drawn.delete(row);
    }
    const added = document.createDocumentFragment();
    for (let row = from; row < end; row++) {
      let element = this.#drawn.get(row);
      if (element === undefined) {
        element = this.#row(source, row);
        this.#drawn.set(row, element);
        added.append(element);
      }
      element.style.transform = `translateY(${this.element.scrollTop + (row - first) * ROW_HEIGHT}px)`;
    }
    this.#body.append(added);
    this.#markActive();
  }

  #row(source: GridSource, row: number): HTMLElement {
    const found = source.rows.at(row);
    const element = h('div', {
      class: 'grid-row',
      role: 'row',
      'aria-rowindex': row + 2,
      'data-row': row,
      'data-state': found === undefined ? 'waiting' : 'here',
    });
    element.append(h('div', { class: 'row-number', role: 'rowheader', 'aria-colindex': 1 }, formatCount(row + 1)));
    for (const [column, field] of source.schema.fields.entries()) {
      const cell = h('div', {
        role: 'gridcell',
        'aria-colindex': column + 2,
        id: cellId(row, column),
        'data-column': column,
      });
      if (found === undefined) cell.className = 'cell waiting';
      else {
        const { kind, text } = formatCell(found.page.getChildAt(column)?.get(found.index), field.type);
        cell.className = `cell ${kind}`;
        cell.textContent = text;
      }
      element.append(cell);
    }
    return element;
  }

  #drawHead(fields: readonly Field[]): void {
    this.#head.replaceChildren(
      h('div', { class: 'row-number', role: 'columnheader', 'aria-colindex': 1, 'aria-label': 'Row number' }, '#'),
      ...fields.map((field, column) =>
        h(
          'div',
          {
            class: isNumberType(field.type) ? 'column number' : 'column',
            role: 'columnheader',
            'aria-colindex': column + 2,
            title: `${field.name}: ${formatType(field.type)}`,
          },
          h('span', { class: 'column-name' }, field.name),
          h('span', { class: 'column-type' }, formatType(field.type)),
        ),
      ),
    );
  }

  /** Columns as wide as what the first rows hold, within bounds; the last one takes the rest. */
  #measure(): void {
    const source = this.#source;
    if (source === undefined) return;
    this.#widths = source.schema.fields.map((field, column) => {
      let widest = headWidth(field);
      for (let row = 0; row < Math.min(MEASURED_ROWS, source.rowCount); row++) {
        const found = source.rows.at(row);
        if (found === undefined) continue;
        widest = Math.max(widest, formatCell(found.page.getChildAt(column)?.get(found.index), field.type).text.length);
      }
      return widest + 1;
    });
    this.#setWidths();
    this.#isMeasured = true;
  }

  #setWidths(): void {
    const pixels = this.#widths.map((count) => Math.round(Math.max(6, Math.min(count, 38)) * CHARACTER_WIDTH + 24));
    const digits = formatCount(this.#source?.rowCount ?? 0).length;
    const first = Math.round(digits * CHARACTER_WIDTH + 24);
    const tracks = pixels.map((width, i) => (i === pixels.length - 1 ? `minmax(${width}px, 1fr)` : `${width}px`));
    this.element.style.setProperty('--columns', `${first}px ${tracks.join(' ')}`);
    this.element.style.setProperty('--table-width', `${first + pixels.reduce((sum, width) => sum + width, 0)}px`);
  }

  /** The first row in sight, not always a whole number, and how many rows fit. */
  #inSight(): { first: number; sight: number } {
    const sight = Math.max(1, (this.element.clientHeight - this.#head.offsetHeight) / ROW_HEIGHT);
    const scrollable = this.#bodyHeight() - sight * ROW_HEIGHT;
    const above = Math.max(0, (this.#source?.rowCount ?? 0) - sight);
    return { first: scrollable <= 0 ? 0 : Math.min(1, this.element.scrollTop / scrollable) * above, sight };
  }

  #bodyHeight(): number {
    return Math.min(MAX_HEIGHT, (this.#source?.rowCount ?? 0) * ROW_HEIGHT);
  }

  #scrollToActive(): void {
    const { first, sight } = this.#inSight();
    const { row, column } = this.#active;
    const rowCount = this.#source?.rowCount ?? 0;
    const target = row < first ? row : row + 1 > first + sight ? row + 1 - sight : undefined;
    if (target !== undefined && rowCount > sight) {
      this.element.scrollTop = (target / (rowCount - sight)) * (this.#bodyHeight() - sight * ROW_HEIGHT);
    }
    const header = this.#head.children[column + 1];
    if (header instanceof HTMLElement) {
      const left = header.offsetLeft - (this.#head.firstElementChild as HTMLElement).offsetWidth;
      const right = header.offsetLeft + header.offsetWidth;
      if (left < this.element.scrollLeft) this.element.scrollLeft = left;
      else if (right > this.element.scrollLeft + this.element.clientWidth)
        this.element.scrollLeft = right - this.element.clientWidth;
    }
    this.#draw();
  }

  #markActive(): void {
    const { row, column } = this.#active;
    for (const marked of this.#body.querySelectorAll('.active')) marked.classList.remove('active');
    const cell = this.#drawn.get(row)?.children[column + 1];
    cell?.classList.add('active');
    if (cell === undefined) this.element.removeAttribute('aria-activedescendant');
    else this.element.setAttribute('aria-activedescendant', cell.id);
  }

  #key(event: KeyboardEvent): void {
    const source = this.#source;
    if (source === undefined || source.rowCount === 0 || event.altKey) return;
    const last = { row: source.rowCount - 1, column: source.schema.fields.length - 1 };
    const page = Math.max(1, Math.floor(this.#inSight().sight) - 1);
    const isWhole = event.ctrlKey || event.metaKey;
    const { row, column } = this.#active;
    const moves: Record<string, { row: number; column: number }> = {
      ArrowDown: { row: isWhole ? last.row : row + 1, column },
      ArrowUp: { row: isWhole ? 0 : row - 1, column },
      ArrowRight: { row, column: isWhole ? last.column : column + 1 },
      ArrowLeft: { row, column: isWhole ? 0 : column - 1 },
      PageDown: { row: row + page, column },
      PageUp: { row: row - page, column },
      Home: { row: isWhole ? 0 : row, column: 0 },
      End: { row: isWhole ? last.row : row, column: last.column },
    };
    const to = moves[event.key];
    if (to !== undefined) {
      this.#active = {
        row: Math.max(0, Math.min(to.row, last.row)),
        column: Math.max(0, Math.min(to.column, last.column)),
      };
      this.#scrollToActive();
    } else if (event.key === 'Enter') this.#open();
    else return;
    event.preventDefault();
  }

  /** The first click chooses a cell, the next one opens it. */
  #click(event: MouseEvent): void {
    const cell = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-column]') : null;
    const row = Number(cell?.parentElement?.dataset['row']);
    if (cell === null || Number.isNaN(row)) return;
    const column = Number(cell.dataset['column']);
    const isChosen = this.#active.row === row && this.#active.column === column && cell.dataset['chosen'] === 'true';
    this.#active = { row, column };
    this.#markActive();
    cell.dataset['chosen'] = 'true';
    if (isChosen) this.#open();
  }

  #open(): void {
    const source = this.#source;
    const { row, column } = this.#active;
    const found = source?.rows.at(row);
    const field = source?.schema.fields[column];
    if (found === undefined || field === undefined) return;
    this.oncell({ column: field.name, type: field.type, row, value: found.page.getChildAt(column)?.get(found.index) });
  }
}

/** In characters of a cell. Names are bold, so wider. */
function headWidth(field: Field): number {
  return Math.max(Math.ceil(field.name.length * 1.2), formatType(field.type).length);
}

function cellId(row: number, column: number): string {
  return `cell-${row}-${column}`;
}
