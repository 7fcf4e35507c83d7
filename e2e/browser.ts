// The browser of the tests: which Chromium, and how it is started. Tests that need storage on disk call
// `chromium.launchPersistentContext(folder, launchOptions)` themselves: Playwright's default contexts keep
// IndexedDB and OPFS in memory.

import { findChromium } from '../scripts/chromium.mjs';

function chromiumPath(): string {
  const path = findChromium();
  if (path === undefined) throw new Error('no Chromium found: node scripts/setup.mjs');
  return path;
}

export const executablePath: string = chromiumPath();

/** Quiet and offline; without the sandbox, which root and most containers cannot have. */
export const args: string[] = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const launchOptions = { executablePath, args };
