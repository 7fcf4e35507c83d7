// Elements: the page's one way to make DOM nodes. Text is always text, never markup.

export type Child = Node | string | number | null | undefined | false;
type Attribute = string | number | boolean | null | undefined | ((event: never) => void);

/**
 * An element with attributes and children. `onclick: f` listens; `true` and `false` set and leave out an attribute, except for
 * `aria-…` and `data-…`, whose values are words.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value as EventListener);
    else if (typeof value === 'boolean' && !/^(aria|data)-/.test(name)) element.toggleAttribute(name, value);
    else element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

/**
 * Replaces what `parent` holds. The keyboard's focus stays on the element that carries the same `data-key` (or `id`), so that a list
 * may be drawn anew under somebody who walks through it.
 */
export function replace(parent: Element, ...children: Child[]): void {
  const active = document.activeElement;
  const key = active instanceof HTMLElement && parent.contains(active) ? active.dataset['key'] : undefined;
  parent.replaceChildren();
  append(parent, children);
  if (key === undefined) return;
  for (const candidate of parent.querySelectorAll<HTMLElement>('[data-key]')) {
    if (candidate.dataset['key'] === key) candidate.focus({ preventScroll: true });
  }
}

function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

const PATHS = {
  plus: 'M8 3v10M3 8h10',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3',
  back: 'M10 3 5 8l5 5',
  close: 'm4 4 8 8m0-8-8 8',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  clock: 'M8 4.5V8l2.5 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z',
  folder: 'M2 4.5h4l1.5 2H14v6.5H2z',
  table: 'M2 3h12v10H2zM2 6.5h12M6.5 6.5V13',
  down: 'm4 6 4 4 4-4',
  filter: 'M2 4h12M4.5 8h7M7 12h2',
} as const;

/** A small stroked icon, hidden from assistive technology: what carries it has words. */
export function icon(name: keyof typeof PATHS): SVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('class', `icon icon-${name}`);
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', PATHS[name]);
  svg.append(path);
  return svg;
}

const COUNT = new Intl.NumberFormat('en');

export function formatCount(count: number): string {
  return COUNT.format(count);
}

/** `1 row`, `1,000 rows`. */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** Today only the time, else the day too. */
export function formatTime(time: Date): string {
  const isToday = time.toDateString() === new Date().toDateString();
  const clock: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false };
  const day: Intl.DateTimeFormatOptions = { day: 'numeric', month: 'short', year: 'numeric' };
  return new Intl.DateTimeFormat('en-GB', isToday ? clock : { ...day, ...clock }).format(time);
}
