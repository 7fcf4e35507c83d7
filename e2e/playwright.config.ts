// Browser tests: one worker, one Chromium, against Vite serving the sources of the whole repository.
//
// LANCELET_SEED replays a run's random choices, LANCELET_E2E_PORT fixes the port, LANCELET_FULL=1 allows long tests.

import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';

import { defineConfig } from '@playwright/test';

import { launchOptions } from './browser.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const isFull = process.env['LANCELET_FULL'] === '1';

// Playwright loads this file in every process it starts: the first one chooses, the others inherit.
if (process.env['LANCELET_SEED'] === undefined) {
  process.env['LANCELET_SEED'] = String(randomInt(2 ** 31));
}
if (process.env['TEST_WORKER_INDEX'] === undefined) console.log(`seed: LANCELET_SEED=${process.env['LANCELET_SEED']}`);
const port = (process.env['LANCELET_E2E_PORT'] ??= freePort());
const origin = `http://localhost:${port}`;

/** A port that is free now, asked of the system by a child since a configuration cannot wait for an answer. */
function freePort(): string {
  const code = `const s = require('net').createServer().listen(0, 'localhost', () => {
    process.stdout.write(String(s.address().port)); s.close(); })`;
  return execFileSync(process.execPath, ['-e', code], { encoding: 'utf8' });
}

export default defineConfig({
  testDir: '.',
  testMatch: '**/*.spec.ts',
  outputDir: '../test-results',
  workers: 1,
  fullyParallel: false,
  forbidOnly: process.env['CI'] !== undefined,
  timeout: isFull ? 600_000 : 60_000,
  reporter: 'list',
  use: { baseURL: origin, launchOptions, trace: 'retain-on-failure' },
  webServer: {
    command: `"${process.execPath}" node_modules/vite/bin/vite.js --mode e2e --port ${port} --strictPort`,
    cwd: root,
    url: `${origin}/@vite/client`,
    reuseExistingServer: false,
    timeout: 120_000,
    stdout: 'ignore',
    stderr: 'pipe',
  },
});
