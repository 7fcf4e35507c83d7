// Menu: a button that opens a short list of buttons.

import { h, icon, type Child } from '../element.ts';

export interface MenuItem {
  readonly label: string;
  readonly hint?: string;
  readonly isDanger?: boolean;
  readonly isDisabled?: boolean;
  readonly onpick: () => void;
}

export interface MenuOptions {
  readonly key: string;
  readonly label: string | readonly Child[];
  /** Only the icon is seen, the label is read aloud. */
  readonly isIcon?: boolean;
  readonly isDisabled?: boolean;
  readonly items: readonly MenuItem[];
}

export function menu({ key, label, isIcon = false, isDisabled = false, items }: MenuOptions): HTMLElement {
  const words = typeof label === 'string' ? [label] : label;
  const list = h('div', { class: 'menu-list', hidden: true });
  const button = h(
    'button',
    {
      type: 'button',
      class: isIcon ? 'icon-only' : '',
      'data-key': key,
      'data-action': '',
      disabled: isDisabled,
      'aria-haspopup': 'true',
      'aria-expanded': 'false',
      'aria-label': isIcon ? words.join('') : undefined,
      title: isIcon ? words.join('') : undefined,
    },
    ...(isIcon ? [icon('more')] : [h('span', {}, ...words), icon('down')]),
  );
  const root = h('div', { class: 'menu' }, button, list);
  const toggle = (isOpen: boolean) => {
    list.hidden = !isOpen;
    button.setAttribute('aria-expanded', String(isOpen));
    if (isOpen) list.querySelector('button')?.focus();
  };
  list.append(
    ...items.map((item) =>
      h(
        'button',
        {
          type: 'button',
          class: item.isDanger === true ? 'danger' : '',
          disabled: item.isDisabled === true,
          onclick: () => {
            toggle(false);
            button.focus();
            item.onpick();
          },
        },
        item.label,
        item.hint !== undefined && h('small', {}, item.hint),
      ),
    ),
  );
  button.addEventListener('click', () => toggle(list.hidden !== false));
  root.addEventListener('focusout', (event) => {
    if (!(event.relatedTarget instanceof Node && root.contains(event.relatedTarget))) toggle(false);
  });
  root.addEventListener('keydown', (event) => {
    if (list.hidden) return;
    const buttons = [...list.querySelectorAll<HTMLButtonElement>('button:not(:disabled)')];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape') {
      toggle(false);
      button.focus();
    } else if (step !== undefined) buttons.at((at + step) % buttons.length)?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return root;
}
