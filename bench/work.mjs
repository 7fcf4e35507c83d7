// One workload of one engine in one process: `node bench/work.mjs <engine> <workload> <folder>` prints its figures as JSON.

import * as arrow from 'apache-arrow';

import { batches, schemaOf, takenRows } from './rows.mjs';

const [engine, workload, folder] = process.argv.slice(2);

/** The memory of the engine's WebAssembly module: it never shrinks. */
let memory;
const { instantiate } = WebAssembly;
WebAssembly.instantiate = async (...given) => {
  const made = await instantiate(...given);
  memory = (made.instance ?? made).exports.memory;
  return made;
};

const { connect } = engine === 'lancelet' ? await import('../dist/node.js') : await import('@lancedb/lancedb');
const db = await connect(folder);
const [kind, name] = workload.split(':');

async function timed(times, work) {
  const ms = [];
  let value;
  for (let i = 0; i < times; i++) {
    const started = performance.now();
    value = await work();
    ms.push(performance.now() - started);
  }
  return { ms, value };
}

const kinds = {
  async write() {
    const created = `${name}-${engine}`;
    if (name === 'gigabyte') {
      // Batches made one at a time: the table does not fit into this process twice.
      const table = await db.createEmptyTable(created, schemaOf(name));
      for (const batch of batches(name)) await table.add(new arrow.Table([batch]));
      return { ms: [] };
    }
    const table = new arrow.Table([...batches(name)]);
    await db.createTable(`warm-up-${engine}`, table.slice(0, 1000));
    const { ms } = await timed(1, () => db.createTable(created, table));
    await db.dropTable(`warm-up-${engine}`);
    return { ms };
  },
  async scan() {
    const table = await db.openTable(name);
    const { ms, value } = await timed(4, async () => (await table.query().toArrow()).numRows);
    return { ms, rows: value };
  },
  /** 1 % of the rows, all over the table, each time others. */
  async update() {
    const table = await db.openTable(name);
    let turn = 0;
    const { ms } = await timed(4, () => table.update({ valuesSql: { qty: 'qty + 1' }, where: `id % 100 = ${turn++}` }));
    return { ms };
  },
  async delete() {
    const table = await db.openTable(name);
    let turn = 10;
    const { ms } = await timed(4, () => table.delete(`id % 100 = ${turn++}`));
    return { ms };
  },
  async stream() {
    const table = await db.openTable(name);
    let rows = 0;
    for await (const batch of table.query()) rows += batch.numRows;
    return { ms: [], rows };
  },
  async take() {
    const table = await db.openTable(name);
    const wanted = takenRows(await table.countRows());
    const { ms, value } = await timed(6, async () => (await table.takeOffsets(wanted).toArrow()).numRows);
    return { ms, rows: value };
  },
};

console.log(JSON.stringify({ ...(await kinds[kind]()), wasmBytes: memory?.buffer.byteLength }));
