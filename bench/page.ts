// What runs in the browser: the workloads, over dist/ as a user gets it. `run.mjs` calls them.

import * as arrow from 'apache-arrow';
import { connect } from 'lancelet';

import { batches } from './rows.mjs';

const ROWS = 1_000_000;
const TABLE = 'rows';

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const started = performance.now();
  const value = await work();
  return { ms: performance.now() - started, value };
}

/** The last value of each column, so that an answer can't be a promise of one. */
function lastRow(table: arrow.Table): unknown[] {
  return table.schema.fields.map((_, column) => table.getChildAt(column)?.get(table.numRows - 1) as unknown);
}

const workloads = {
  /** W1: Arrow in memory to a durable table. */
  async ingest(uri: string): Promise<number> {
    const data = new arrow.Table([...batches('rows')]);
    const db = await connect(uri);
    await db.createEmptyTable('warm-up', data.schema);
    const { ms, value: table } = await timed(() => db.createTable(TABLE, data));
    if ((await table.countRows()) !== ROWS) throw new Error('rows were lost');
    return ms;
  },

  /** W5: the whole table as Arrow. */
  async scan(uri: string): Promise<number> {
    const table = await (await connect(uri)).openTable(TABLE);
    const { ms, value } = await timed(async () => {
      const all = await table.toArrow();
      return { rows: all.numRows, last: lastRow(all) };
    });
    if (value.rows !== ROWS || value.last[0] !== ROWS - 1) throw new Error('rows were lost');
    return ms;
  },

  /** W9: from nothing to an open table, and the first answer. */
  async open(uri: string): Promise<{ openMs: number; queryMs: number }> {
    const open = await timed(async () => (await connect(uri)).openTable(TABLE));
    const query = await timed(() => open.value.query().where('id = 765432').toArray());
    if (query.value.length !== 1) throw new Error('the row was not found');
    return { openMs: open.ms, queryMs: query.ms };
  },
};

export type Workloads = typeof workloads;

(globalThis as unknown as { workloads: Workloads }).workloads = workloads;
