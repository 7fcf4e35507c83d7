// What runs in the browser: the workloads, over dist/ as a user gets it. `run.mjs` calls them.

import * as arrow from 'apache-arrow';
import { connect } from 'lancelet';

const ROWS = 1_000_000;
const BATCH = 50_000;
const TABLE = 'rows';

/** Rows `from` to `to`: id int32, qty int32, val float64, cat utf8 of 100 values, txt utf8 of 20 characters. */
function batch(from: number, to: number): arrow.RecordBatch {
  const length = to - from;
  let state = from + 1;
  const random = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0);
  const texts = (width: number, at: (row: number, k: number) => number) => {
    const offsets = Int32Array.from({ length: length + 1 }, (_, row) => row * width);
    const data = Uint8Array.from({ length: length * width }, (_, i) => at(Math.floor(i / width), i % width));
    return arrow.makeData({ type: new arrow.Utf8(), length, nullCount: 0, valueOffsets: offsets, data });
  };
  const categories = Uint8Array.from({ length }, () => random() % 100);
  const fill = <T extends Int32Array | Float64Array>(array: T, value: (row: number) => number) => {
    for (let row = 0; row < length; row++) array[row] = value(row);
    return array;
  };
  const columns = {
    id: arrow.makeData({
      type: new arrow.Int32(),
      length,
      nullCount: 0,
      data: fill(new Int32Array(length), (row) => from + row),
    }),
    qty: arrow.makeData({
      type: new arrow.Int32(),
      length,
      nullCount: 0,
      data: fill(new Int32Array(length), () => random() % 1000),
    }),
    val: arrow.makeData({
      type: new arrow.Float64(),
      length,
      nullCount: 0,
      data: fill(new Float64Array(length), () => random() / 7),
    }),
    cat: texts(
      6,
      (row, k) =>
        'cat-00'.charCodeAt(k) +
        (k < 4 ? 0 : k === 4 ? Math.floor((categories[row] ?? 0) / 10) : (categories[row] ?? 0) % 10),
    ),
    txt: texts(20, () => 97 + (random() % 26)),
  };
  const fields = Object.entries(columns).map(([name, data]) => new arrow.Field(name, data.type, true));
  const type = new arrow.Struct(fields);
  const data = arrow.makeData({ type, length, nullCount: 0, children: Object.values(columns) });
  return new arrow.RecordBatch(new arrow.Schema(fields), data as arrow.Data<arrow.Struct>);
}

function rows(): arrow.Table {
  const batches = [];
  for (let from = 0; from < ROWS; from += BATCH) batches.push(batch(from, Math.min(ROWS, from + BATCH)));
  return new arrow.Table(batches);
}

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
    const data = rows();
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
