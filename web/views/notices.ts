// Notices: what was done, and what went wrong, at the edge of the page. Failures stay until somebody takes them away.

import { LanceError } from 'lancelet';

import { h, icon } from '../element.ts';

const SHOWN_MS = 7000;

export class Notices {
  readonly element = h('div', { class: 'notices' });
  readonly #said = h('div', { role: 'status', 'aria-live': 'polite', class: 'notice-list' });
  readonly #failed = h('div', { role: 'alert', class: 'notice-list' });

  constructor() {
    this.element.append(this.#failed, this.#said);
  }

  say(text: string): void {
    // The last deed is the one that counts.
    this.#said.replaceChildren();
    const notice = this.#add(this.#said, 'done', text);
    setTimeout(() => notice.remove(), SHOWN_MS);
  }

  fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const advice = error instanceof LanceError && error.retryable ? ' Trying again may help.' : '';
    this.#add(
      this.#failed,
      'failed',
      h('span', {}, h('code', { class: 'code' }, codeOf(error)), ` ${message}${advice}`),
    );
  }

  clearFailures(): void {
    this.#failed.replaceChildren();
  }

  #add(list: HTMLElement, kind: string, content: string | Node): HTMLElement {
    const close = h('button', { type: 'button', class: 'quiet icon-only', 'aria-label': 'Dismiss' }, icon('close'));
    const notice = h('div', { class: `notice ${kind}` }, h('div', { class: 'notice-text' }, content), close);
    close.addEventListener('click', () => notice.remove());
    list.append(notice);
    // More than a few would cover the rows.
    while (list.children.length > 3) list.firstElementChild?.remove();
    return notice;
  }
}

/** The stable name of what went wrong. */
export function codeOf(error: unknown): string {
  if (error instanceof LanceError) return error.code;
  return error instanceof Error ? error.name : 'Error';
}
