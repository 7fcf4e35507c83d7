// Vite for the demo (web/), for the pages that the browser tests open, and for vitest.
//
//   vite               the demo's dev server; its `lancelet` is src/
//   vite build         the demo as an outside user builds it; its `lancelet` is dist/
//   vite --mode e2e    the whole repository on one server, as it is when the server starts: /web/, /e2e/harness/

import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitest/config';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const isFull = process.env['LANCELET_FULL'] === '1';

export default defineConfig(({ command, mode }) => {
  const isDemo = mode !== 'e2e' && mode !== 'test';
  const isDist = command === 'build' && isDemo;
  return {
    root: isDemo ? here('./web') : here('.'),
    // Relative: the built demo works in any folder of any host.
    base: './',
    resolve: { alias: [{ find: /^lancelet$/, replacement: here(isDist ? './dist/index.js' : './src/index.ts') }] },
    server: {
      host: 'localhost',
      fs: { allow: [here('.')] },
      // A test's page reloads when the test says so, not when a file is saved.
      ...(mode === 'e2e' ? { hmr: false, watch: null } : {}),
    },
    worker: { format: 'es' },
    build: { outDir: here('./web/dist'), emptyOutDir: true, target: 'es2022' },
    optimizeDeps: {
      // All that can ask for a package, workers too: one found late makes Vite reload the page in the middle of a test.
      entries: ['web/index.html', 'e2e/{harness,story}/**/*.{html,ts}', 'src/index.ts', 'src/worker/host.ts'].map(here),
      exclude: ['lancelet', '@lancedb/lancedb'],
    },
    // Not in node_modules, which several checkouts may share.
    cacheDir: here(`./.vite/${mode}`),
    test: {
      include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'web/**/*.test.ts'],
      environment: 'node',
      // Native modules that serve as oracles do not survive being loaded in several threads.
      pool: 'forks',
      testTimeout: isFull ? 600_000 : 60_000,
      hookTimeout: 120_000,
    },
  };
});
