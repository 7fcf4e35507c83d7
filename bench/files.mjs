// Benchmarks of the data files, in Node beside LanceDB's native addon, on the same folder.
//
//   npm run bench:files                    all
//   npm run bench:files -- scan:rows       some of them
//   npm run bench:files -- --repeats 5
//
// Each repeat is a new process that runs a workload a few times; a figure is the median of a process's best runs, and what counts is the
// ratio within one run on one machine. Scans and takes read the tables that LanceDB wrote.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { build } from '../scripts/build.mjs';
import { ensureSetup } from '../scripts/setup.mjs';
import { root, script } from '../scripts/step.mjs';
import { commit, machine, median } from './figures.mjs';
import { SIZED } from './rows.mjs';

const ENGINES = ['lancedb', 'lancelet'];
/** Workload to the ratio that it must reach. */
const WORKLOADS = {
  'write:rows': 2,
  'write:vectors': 2,
  'scan:rows': 2,
  'scan:vectors': 1.2,
  'take:rows': 2,
  'take:vectors': 2,
  'update:rows': 2,
  'delete:rows': 2,
};
const SIZE_REACH = 1.1;
const MEMORY_REACH = 128;

function work(engine, workload, folder) {
  const out = execFileSync(process.execPath, [join(root, 'bench/work.mjs'), engine, workload, folder], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return JSON.parse(out.trim().split('\n').at(-1));
}

function sizeOf(path) {
  const info = statSync(path);
  return info.isFile() ? info.size : readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

const table = (folder, name) => join(folder, `${name}.lance`);

await script(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { repeats: { type: 'string', default: '3' } },
  });
  const names = [...Object.keys(WORKLOADS), 'sizes', 'memory'];
  const wanted = positionals.length > 0 ? positionals : names;
  const unknown = wanted.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`no workload ${unknown}: there are ${names.join(', ')}`);
  await ensureSetup({});
  await build({ wasm: true, dist: true });

  const folder = mkdtempSync(join(tmpdir(), 'lancelet-files-'));
  const results = [];
  const report = (name, ours, theirs, unit, reach) => {
    const ratio = ours / theirs;
    results.push({ name, lancelet: ours, lancedb: theirs, unit, ratio, reach });
    const cells = [ours, theirs].map((value) => value.toFixed(unit === 'ms' ? 0 : 2).padStart(9)).join(' ');
    const verdict = ratio <= reach ? 'reached' : 'MISSED';
    console.log(`${name.padEnd(22)} ${cells} ${unit}  ${ratio.toFixed(2).padStart(5)} of ${reach}  ${verdict}`);
  };
  const [onCommit, onMachine] = [commit(), machine()];
  console.log(`Node ${process.version}, ${onMachine}, commit ${onCommit}, release build, n = ${values.repeats}`);
  console.log(`${''.padEnd(22)}  lancelet   lancedb`);
  try {
    for (const name of ['rows', 'vectors']) {
      if (!wanted.some((workload) => workload.endsWith(`:${name}`))) continue;
      work('lancedb', `write:${name}`, folder);
      renameSync(table(folder, `${name}-lancedb`), table(folder, name));
    }
    for (const workload of Object.keys(WORKLOADS).filter((name) => wanted.includes(name))) {
      const best = { lancelet: [], lancedb: [] };
      for (let i = 0; i < Number(values.repeats); i++) {
        for (const engine of ENGINES) {
          const [kind, name] = workload.split(':');
          // What changes the table works on a copy, as LanceDB wrote it.
          const isChange = ['update', 'delete'].includes(kind);
          if (isChange) cpSync(table(folder, name), table(folder, `${name}-${engine}`), { recursive: true });
          const given = isChange ? `${kind}:${name}-${engine}` : workload;
          // The later changes of a table meet the earlier ones: its typical time, not its best.
          const { ms } = work(engine, given, folder);
          best[engine].push(isChange ? median(ms) : Math.min(...ms));
          rmSync(table(folder, `${name}-${engine}`), { recursive: true, force: true });
        }
      }
      report(workload, median(best.lancelet), median(best.lancedb), 'ms', WORKLOADS[workload]);
    }
    for (const name of wanted.includes('sizes') ? SIZED : []) {
      const [theirs, ours] = ENGINES.map((engine) => {
        work(engine, `write:${name}`, folder);
        return sizeOf(join(table(folder, `${name}-${engine}`), 'data')) / 1e6;
      });
      report(`size of ${name}`, ours, theirs, 'MB', SIZE_REACH);
    }
    if (wanted.includes('memory')) {
      work('lancelet', 'write:gigabyte', folder);
      renameSync(table(folder, 'gigabyte-lancelet'), table(folder, 'gigabyte'));
      const { wasmBytes, rows } = work('lancelet', 'stream:gigabyte', folder);
      const megabytes = wasmBytes / 2 ** 20;
      results.push({ name: 'memory', rows, megabytes, reach: MEMORY_REACH });
      const verdict = megabytes < MEMORY_REACH ? 'reached' : 'MISSED';
      console.log(
        `${'memory, 1 GB scanned'.padEnd(22)} ${megabytes.toFixed(0).padStart(9)} MB of ${MEMORY_REACH}  ${verdict}`,
      );
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  mkdirSync(join(root, '.bench'), { recursive: true });
  writeFileSync(
    join(root, '.bench/files.json'),
    `${JSON.stringify({ machine: onMachine, commit: onCommit, results }, null, 2)}\n`,
  );
});
