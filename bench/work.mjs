// One workload of one engine in one process: `node bench/work.mjs <engine> <workload> <folder>` prints its figures as JSON.

import * as arrow from 'apache-arrow';

import { batches, takenRows } from './rows.mjs';

const [, , engine, workload, folder] = process.argv;

/** The largest memory that any WebAssembly module of this process has: it never shrinks. */
let memory;
const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (...given) => {
  const made = await instantiate(...given);
  memory = (made.instance ?? made).exports.memory;
  return made;
};

const { connect } = engine === 'lancelet' ? await import('../dist/node.js') : await import('@lancedb/lancedb');
const db = await connect(folder);

async function timed(work) {
  const started = performance.now();
  const value = await work();
  return { ms: performance.now() - started, value };
}

const [what, name] = workload.split(':');
const out = { ms: [] };
if (what === 'write') {
  const table = new arrow.Table(batches(name));
  await db.createTable('warm-up', table.slice(0, 1000), { mode: 'overwrite' }).catch(() => undefined);
  const { ms } = await timed(() => db.createTable(`${name}-${engine}`, table));
  out.ms.push(ms);
} else if (what === 'scan') {
  const table = await db.openTable(name);
  for (let i = 0; i < 3; i++) {
    const { ms, value } = await timed(async () => (await table.query().toArrow()).numRows);
    out.ms.push(ms);
    out.rows = value;
  }
} else if (what === 'take') {
  const table = await db.openTable(name);
  const rows = takenRows(await table.countRows());
  for (let i = 0; i < 5; i++) {
    const { ms, value } = await timed(async () => (await table.takeOffsets(rows).toArrow()).numRows);
    out.ms.push(ms);
    out.rows = value;
  }
} else throw new Error(`no workload ${workload}`);
out.wasmBytes = memory?.buffer.byteLength;
console.log(JSON.stringify(out));
