// The rows of the benchmark tables, as Arrow batches.

import * as arrow from 'apache-arrow';

const ROWS = 1_000_000;
const BATCH = 50_000;

function generator(seed) {
  let state = seed;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0);
}

const column = (type, data, length) => arrow.makeData({ type, length, nullCount: 0, data });

function texts(length, width, at) {
  const valueOffsets = Int32Array.from({ length: length + 1 }, (_, row) => row * width);
  const data = Uint8Array.from({ length: length * width }, (_, i) => at(Math.floor(i / width), i % width));
  return arrow.makeData({ type: new arrow.Utf8(), length, nullCount: 0, valueOffsets, data });
}

function batchOf(columns, length) {
  const fields = Object.entries(columns).map(([name, data]) => new arrow.Field(name, data.type, true));
  const type = new arrow.Struct(fields);
  const data = arrow.makeData({ type, length, nullCount: 0, children: Object.values(columns) });
  return new arrow.RecordBatch(new arrow.Schema(fields), data);
}

/** id int32, qty int32, val float64, cat utf8 of 100 values, txt utf8 of 20 characters. */
function rows(from, to) {
  const length = to - from;
  const random = generator(from + 1);
  const categories = Uint8Array.from({ length }, () => random() % 100);
  const digit = (row, k) => 48 + (k === 4 ? Math.floor(categories[row] / 10) : categories[row] % 10);
  return batchOf(
    {
      id: column(
        new arrow.Int32(),
        Int32Array.from({ length }, (_, row) => from + row),
        length,
      ),
      qty: column(
        new arrow.Int32(),
        Int32Array.from({ length }, () => random() % 1000),
        length,
      ),
      val: column(
        new arrow.Float64(),
        Float64Array.from({ length }, () => random() / 7),
        length,
      ),
      cat: texts(length, 6, (row, k) => (k < 4 ? 'cat-'.charCodeAt(k) : digit(row, k))),
      txt: texts(length, 20, () => 97 + (random() % 26)),
    },
    length,
  );
}

/** id int32, vector float32[384]. */
function vectors(from, to) {
  const length = to - from;
  const random = generator(from + 1);
  const items = Float32Array.from({ length: length * 384 }, () => random() / 2 ** 31 - 1);
  const type = new arrow.FixedSizeList(384, new arrow.Field('item', new arrow.Float32(), true));
  const child = arrow.makeData({ type: new arrow.Float32(), length: items.length, nullCount: 0, data: items });
  return batchOf(
    {
      id: column(
        new arrow.Int32(),
        Int32Array.from({ length }, (_, row) => from + row),
        length,
      ),
      vector: arrow.makeData({ type, length, nullCount: 0, child }),
    },
    length,
  );
}

const TABLES = {
  rows: { count: ROWS, batch: BATCH, make: rows },
  vectors: { count: 100_000, batch: 10_000, make: vectors },
};

export function batches(name) {
  const { count, batch, make } = TABLES[name];
  const made = [];
  for (let from = 0; from < count; from += batch) made.push(make(from, Math.min(count, from + batch)));
  return made;
}

/** 1,000 rows of a table, ascending. */
export function takenRows(count) {
  const random = generator(7);
  const chosen = new Set();
  while (chosen.size < 1000) chosen.add(random() % count);
  return [...chosen].sort((a, b) => a - b);
}
