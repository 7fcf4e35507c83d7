// Benchmarks: workloads in Chromium on dist/, each repeat in a fresh profile and a new browser process.
//
//   npm run bench                 all workloads
//   npm run bench -- W1 W5 W9     some of them
//   npm run bench -- --repeats 5 --uri indexeddb://bench
//
// Prints the median and the spread in milliseconds and writes them to .bench/result.json. Figures of one run on one machine compare with
// each other and with nothing else.

import { createReadStream, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { parseArgs } from 'node:util';

import { build } from '../scripts/build.mjs';
import { findChromium } from '../scripts/chromium.mjs';
import { ensureSetup } from '../scripts/setup.mjs';
import { root, script } from '../scripts/step.mjs';
import { commit, machine, median } from './figures.mjs';

const out = join(root, '.bench');
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' };

/** Workload to the figures that it measures, in the order of its columns. */
const WORKLOADS = {
  W1: { title: 'ingest 1,000,000 rows', figures: ['ingest'] },
  W5: { title: 'full scan to Arrow', figures: ['scan', 'scan again'] },
  W9: { title: 'cold open, first query', figures: ['open', 'first query'] },
};

async function bundle() {
  const esbuild = await import('esbuild');
  mkdirSync(out, { recursive: true });
  const common = { bundle: true, format: 'esm', target: 'es2022', logLevel: 'warning' };
  await esbuild.build({
    ...common,
    entryPoints: [join(root, 'bench/page.ts')],
    outfile: join(out, 'page.js'),
    external: ['lancelet', 'apache-arrow'],
  });
  const arrow = { contents: "export * from 'apache-arrow'", resolveDir: root };
  await esbuild.build({ ...common, stdin: arrow, outfile: join(out, 'apache-arrow.js') });
}

/** The repository over HTTP on localhost. */
async function serve() {
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
    const file = join(root, path === '/' ? 'bench/page.html' : path);
    const isFile = file.startsWith(root) && statSync(file, { throwIfNoEntry: false })?.isFile();
    response.writeHead(isFile ? 200 : 404, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
    if (isFile) createReadStream(file).pipe(response);
    else response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/bench/page.html`, close: () => server.close() };
}

/** A page of a profile in a new browser process. */
async function withPage(profile, url, work) {
  const { chromium } = await import('@playwright/test');
  const args = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'];
  const context = await chromium.launchPersistentContext(profile, { executablePath: findChromium(), args });
  try {
    const page = await context.newPage();
    await page.goto(url);
    await page.waitForFunction(() => 'workloads' in globalThis);
    return await work(page, context.browser()?.version());
  } finally {
    await context.close();
  }
}

async function repeat(uri, url, wanted) {
  const profile = mkdtempSync(join(tmpdir(), 'lancelet-bench-'));
  const figures = {};
  let browser;
  try {
    await withPage(profile, url, async (page, version) => {
      browser = version;
      figures.W1 = [await page.evaluate((at) => workloads.ingest(at), uri)];
      if (!wanted.includes('W5')) return;
      figures.W5 = [];
      for (let i = 0; i < 2; i++) figures.W5.push(await page.evaluate((at) => workloads.scan(at), uri));
    });
    if (wanted.includes('W9')) {
      await withPage(profile, url, async (page) => {
        const { openMs, queryMs } = await page.evaluate((at) => workloads.open(at), uri);
        figures.W9 = [openMs, queryMs];
      });
    }
  } finally {
    rmSync(profile, { recursive: true, force: true });
  }
  return { figures, browser };
}

await script(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { repeats: { type: 'string', default: '3' }, uri: { type: 'string', default: 'opfs://bench' } },
  });
  const wanted = positionals.length > 0 ? positionals : Object.keys(WORKLOADS);
  const unknown = wanted.find((name) => !(name in WORKLOADS));
  if (unknown !== undefined) throw new Error(`no workload ${unknown}: there are ${Object.keys(WORKLOADS).join(', ')}`);
  await ensureSetup({ browser: true });
  await build({ wasm: true, dist: true });
  await bundle();
  const server = await serve();
  const runs = [];
  let browser = '';
  for (let i = 0; i < Number(values.repeats); i++) {
    const run = await repeat(values.uri, server.url, wanted);
    runs.push(run.figures);
    browser = run.browser ?? '';
  }
  server.close();

  const [onCommit, onMachine] = [commit(), machine()];
  console.log(
    `${values.uri}, Chromium ${browser}, ${onMachine}, commit ${onCommit}, release build, n = ${runs.length}`,
  );
  const result = { uri: values.uri, browser, machine: onMachine, commit: onCommit, repeats: runs.length, figures: [] };
  for (const name of wanted) {
    WORKLOADS[name].figures.forEach((figure, at) => {
      const samples = runs.map((run) => run[name][at]);
      const row = {
        workload: name,
        figure,
        medianMs: median(samples),
        minMs: Math.min(...samples),
        maxMs: Math.max(...samples),
      };
      result.figures.push(row);
      const [middle, low, high] = [row.medianMs, row.minMs, row.maxMs].map((ms) => ms.toFixed(0));
      console.log(
        `${name}  ${figure.padEnd(14)} ${middle.padStart(7)} ms  (${low} to ${high})  ${WORKLOADS[name].title}`,
      );
    });
  }
  writeFileSync(join(out, 'result.json'), `${JSON.stringify(result, null, 2)}\n`);
});
