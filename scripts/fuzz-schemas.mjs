// Random schemas: LanceDB writes and we read, we write and LanceDB reads, and every value is compared (test/schemas/).
//
//   npm run fuzz:schemas -- --seeds 1000              seeds 0 to 999
//   npm run fuzz:schemas -- --seeds 1 --from 4711     one of them again

import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { buildSync } from 'esbuild';

import { build } from './build.mjs';
import { ensureSetup } from './setup.mjs';
import { isMain, root, script, StepError } from './step.mjs';

/**
 * @param {{ seeds: number, from?: number, log?: (line: string) => void }} options
 * @returns {Promise<{ code: number, output: string }>}
 */
export async function fuzzSchemas({ seeds, from = 0, log = console.log }) {
  // As deep below the root as a source: it finds wasm/pkg by the same relative path.
  const folder = join(root, '.vite', 'schemas');
  mkdirSync(folder, { recursive: true });
  const outfile = join(folder, 'campaign.mjs');
  buildSync({
    entryPoints: [join(root, 'test', 'schemas', 'campaign.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['@lancedb/lancedb', 'apache-arrow'],
    logLevel: 'error',
  });
  const { runCampaign, summary } = await import(pathToFileURL(outfile).href);
  // Memory where there is such a folder: thousands of small tables are made and removed.
  const place = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
  const result = await runCampaign({ from, seeds, folder: place, writable: ['2.0', '2.1', '2.2'], log });
  const output = summary(result);
  log(output);
  return { code: result.failures.length === 0 && result.missing.size === 0 ? 0 : 1, output: '' };
}

function number(args, name, fallback) {
  const at = args.indexOf(name);
  if (at < 0) return fallback;
  const value = Number(args[at + 1]);
  if (!Number.isSafeInteger(value) || value < 0) throw new StepError(`fuzz-schemas: ${name} takes a number`);
  return value;
}

if (isMain(import.meta.url)) {
  await script(async () => {
    const args = process.argv.slice(2);
    const [seeds, from] = [number(args, '--seeds', 500), number(args, '--from', 0)];
    await ensureSetup({ browser: false });
    await build({ wasm: true });
    const { code } = await fuzzSchemas({ seeds, from });
    // The native library keeps the process alive.
    process.exit(code);
  });
}
