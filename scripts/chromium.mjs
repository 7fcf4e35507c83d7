// Which Chromium the tests and the benchmark drive: the one place that decides.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { root, which } from './step.mjs';

/** Set LANCELET_CHROMIUM to a path to choose another one. */
const override = 'LANCELET_CHROMIUM';

/**
 * The path of a Chromium that is installed here, or undefined: the one named by LANCELET_CHROMIUM, Playwright's own, the
 * system's.
 *
 * @returns {string | undefined}
 */
export function findChromium() {
  const chosen = process.env[override];
  if (chosen !== undefined && chosen !== '') return chosen;
  return playwrightChromium() ?? systemChromium();
}

function playwrightChromium() {
  try {
    const { chromium } = createRequire(join(root, 'package.json'))('playwright-core');
    const path = chromium.executablePath();
    return existsSync(path) ? path : undefined;
  } catch {
    // Playwright is not installed, or knows no browser for this platform.
    return undefined;
  }
}

function systemChromium() {
  for (const name of ['chromium', 'google-chrome', 'google-chrome-stable', 'chrome']) {
    const path = which(name);
    if (path !== undefined) return path;
  }
  return [
    '/usr/bin/chromium',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
    'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
  ].find((path) => existsSync(path));
}
