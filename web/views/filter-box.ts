// Filter box: a filter's text, and where the library found it wrong.

import { LanceError } from 'lancelet';

import { h, icon, replace } from '../element.ts';
import { codeOf } from './notices.ts';

export class FilterBox {
  readonly element: HTMLFormElement;
  /** Asks for the rows that match; an empty text means all. */
  onfilter: (filter: string) => void = () => {};
  readonly #input = h('input', {
    type: 'text',
    id: 'filter',
    class: 'mono',
    placeholder: 'Filter',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    enterkeyhint: 'search',
    'aria-label': 'Filter',
    'aria-describedby': 'filter-error',
  });
  readonly #clear = h(
    'button',
    { type: 'button', class: 'quiet icon-only', title: 'Clear the filter', 'aria-label': 'Clear the filter' },
    icon('close'),
  );
  readonly #error = h('div', { id: 'filter-error', class: 'filter-error', role: 'alert' });

  constructor() {
    this.element = h(
      'form',
      { class: 'filter', role: 'search' },
      h(
        'div',
        { class: 'filter-line' },
        icon('filter'),
        this.#input,
        this.#clear,
        h('button', { type: 'submit' }, 'Filter'),
      ),
      this.#error,
    );
    this.element.addEventListener('submit', (event) => {
      event.preventDefault();
      this.onfilter(this.#input.value.trim());
    });
    this.#input.addEventListener('input', () => this.#drawClear());
    this.#clear.addEventListener('click', () => {
      this.#input.value = '';
      this.#input.focus();
      this.onfilter('');
    });
    this.#drawClear();
  }

  get text(): string {
    return this.#input.value.trim();
  }

  /** The filter that the rows below match. */
  show(filter: string, example: string | undefined): void {
    this.#input.value = filter;
    if (example !== undefined) this.#input.placeholder = `Filter, such as ${example}`;
    this.#drawClear();
    this.clearError();
  }

  clearError(): void {
    this.#input.removeAttribute('aria-invalid');
    replace(this.#error);
  }

  showError(filter: string, error: unknown): void {
    this.#input.setAttribute('aria-invalid', 'true');
    replace(this.#error, markedFilter(filter, error), filterMessage(error));
    this.#input.focus();
  }

  #drawClear(): void {
    this.#clear.hidden = this.#input.value === '';
  }
}

/** The filter with a mark at the character that the library names, when it names one. */
export function markedFilter(filter: string, error: unknown): HTMLElement | undefined {
  const at = errorPosition(error);
  if (at === undefined) return undefined;
  const characters = Array.from(filter);
  const rest = characters.slice(at).join('');
  // The word that begins there, else the one character; past the end, a place for what is missing.
  const [marked = ''] = /^(\w+|.)/u.exec(rest) ?? [];
  return h(
    'pre',
    { class: 'marked-filter' },
    characters.slice(0, at).join(''),
    h('mark', {}, marked === '' ? '\u00a0' : marked),
    rest.slice(marked.length),
  );
}

export function filterMessage(error: unknown): HTMLElement {
  const message = error instanceof Error ? error.message : String(error);
  return h('p', {}, h('code', { class: 'code' }, codeOf(error)), ' ', message);
}

/** Characters before the one that is wrong. Filters have no place in an error's data; messages count characters from 1. */
function errorPosition(error: unknown): number | undefined {
  if (!(error instanceof LanceError)) return undefined;
  const [, digits] = /\bcharacter (\d+)/.exec(error.message) ?? [];
  return digits === undefined ? undefined : Number(digits) - 1;
}
