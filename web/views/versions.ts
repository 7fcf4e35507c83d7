// Versions: the history of a table, newest first, and the banner over an old one.

import { formatTime, h, icon } from '../element.ts';
import type { Shown } from '../session.ts';

/** Longer histories are drawn in steps: a table may have thousands of versions. */
const STEP = 100;

export interface VersionsActions {
  readonly view: (version: number) => void;
  readonly viewLatest: () => void;
  readonly close: () => void;
}

export function versionsPanel(
  shown: Shown,
  shownCount: number,
  more: () => void,
  actions: VersionsActions,
): HTMLElement {
  const latest = shown.versions[0]?.version;
  const items = shown.versions.slice(0, shownCount).map(({ version, time }) => {
    const isShown = version === shown.version;
    const isLatest = version === latest;
    return h(
      'li',
      { class: isShown ? 'version shown' : 'version', 'aria-current': isShown ? 'true' : undefined },
      h('span', { class: 'version-number' }, `Version ${version}`, isLatest && h('span', { class: 'chip' }, 'latest')),
      h('time', { datetime: time.toISOString() }, formatTime(time)),
      isShown
        ? h('span', { class: 'viewed' }, 'shown')
        : h(
            'button',
            {
              type: 'button',
              class: 'small',
              'data-key': `version-${version}`,
              'data-action': '',
              'aria-label': `View version ${version}`,
              onclick: () => (isLatest ? actions.viewLatest() : actions.view(version)),
            },
            'View',
          ),
    );
  });
  const hidden = shown.versions.length - items.length;
  return h(
    'aside',
    { class: 'versions', 'aria-label': 'Versions' },
    h(
      'header',
      {},
      h('h2', {}, 'Versions'),
      h(
        'button',
        { type: 'button', class: 'quiet icon-only', 'aria-label': 'Close versions', onclick: actions.close },
        icon('close'),
      ),
    ),
    h('ol', {}, ...items),
    hidden > 0 &&
      h(
        'button',
        { type: 'button', class: 'small', 'data-key': 'more-versions', onclick: more },
        `${Math.min(hidden, STEP)} more`,
      ),
  );
}

export function versionBanner(shown: Shown, viewLatest: () => void): HTMLElement | undefined {
  if (!shown.isOld) return undefined;
  const time = shown.versions.find(({ version }) => version === shown.version)?.time;
  return h(
    'div',
    { class: 'banner', role: 'region', 'aria-label': 'Old version' },
    icon('clock'),
    h(
      'p',
      {},
      h('strong', {}, `Version ${shown.version}`),
      ` of ${shown.versions[0]?.version ?? shown.version}`,
      time !== undefined && `, from ${formatTime(time)}`,
      '. Old versions can be read, not changed.',
    ),
    h(
      'button',
      { type: 'button', class: 'primary small', 'data-key': 'latest', 'data-action': '', onclick: viewLatest },
      'Back to latest',
    ),
  );
}

export { STEP as VERSIONS_STEP };
