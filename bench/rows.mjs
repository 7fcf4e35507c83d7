// The rows of the benchmark tables, as Arrow batches.

import * as arrow from 'apache-arrow';

/** Whole numbers below 2^32 (mulberry32): of a plain congruential generator the low bits repeat soon. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

const column = (type, data, length) => arrow.makeData({ type, length, nullCount: 0, data });

/** Strings of one width; `at` gives each byte. */
function texts(length, width, at) {
  const valueOffsets = new Int32Array(length + 1);
  const data = new Uint8Array(length * width);
  for (let row = 0, place = 0; row < length; row++) {
    for (let k = 0; k < width; k++) data[place++] = at(row, k);
    valueOffsets[row + 1] = place;
  }
  return arrow.makeData({ type: new arrow.Utf8(), length, nullCount: 0, valueOffsets, data });
}

function filled(array, value) {
  for (let i = 0; i < array.length; i++) array[i] = value(i);
  return array;
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
  const categories = filled(new Uint8Array(length), () => random() % 100);
  const digit = (row, k) => 48 + (k === 4 ? Math.floor(categories[row] / 10) : categories[row] % 10);
  return batchOf(
    {
      id: column(
        new arrow.Int32(),
        filled(new Int32Array(length), (row) => from + row),
        length,
      ),
      qty: column(
        new arrow.Int32(),
        filled(new Int32Array(length), () => random() % 1000),
        length,
      ),
      val: column(
        new arrow.Float64(),
        filled(new Float64Array(length), () => random() / 7),
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
  const items = filled(new Float32Array(length * 384), () => random() / 2 ** 31 - 1);
  const type = new arrow.FixedSizeList(384, new arrow.Field('item', new arrow.Float32(), true));
  const child = arrow.makeData({ type: new arrow.Float32(), length: items.length, nullCount: 0, data: items });
  return batchOf(
    {
      id: column(
        new arrow.Int32(),
        filled(new Int32Array(length), (row) => from + row),
        length,
      ),
      vector: arrow.makeData({ type, length, nullCount: 0, child }),
    },
    length,
  );
}

/** Integers of several kinds: random, small, ascending, repeated, with nulls, times. */
function ints(from, to) {
  const length = to - from;
  const random = generator(from + 1);
  const wide = filled(new BigInt64Array(length), () => BigInt(random()) * 4_294_967_296n + BigInt(random()));
  const times = filled(new BigInt64Array(length), (row) => 1_700_000_000_000_000n + BigInt(from + row) * 1_000_003n);
  const nullBitmap = filled(new Uint8Array(Math.ceil(length / 8)), () => random() & 255);
  const nullable = filled(new Int32Array(length), () => random() % 5000);
  return batchOf(
    {
      random: column(new arrow.Int64(), wide, length),
      small: column(
        new arrow.Int32(),
        filled(new Int32Array(length), () => random() % 100),
        length,
      ),
      ascending: column(
        new arrow.Int64(),
        filled(new BigInt64Array(length), (row) => BigInt(from + row)),
        length,
      ),
      runs: column(
        new arrow.Int32(),
        filled(new Int32Array(length), (row) => Math.floor((from + row) / 40)),
        length,
      ),
      few: column(
        new arrow.Int64(),
        filled(new BigInt64Array(length), () => BigInt(random() % 9) * 1_000_000_007n),
        length,
      ),
      nullable: arrow.makeData({ type: new arrow.Int32(), length, nullBitmap, data: nullable }),
      time: column(new arrow.TimestampMicrosecond(), times, length),
    },
    length,
  );
}

const WORDS = 'the lake river stone heath needle column page tide row seal harbour over under between of and'.split(
  ' ',
);

function phrases(length, random, words) {
  const texts = Array.from({ length }, () =>
    Array.from({ length: 1 + (random() % words) }, () => WORDS[random() % WORDS.length]).join(' '),
  );
  return arrow.vectorFromArray(texts, new arrow.Utf8()).data[0];
}

/** Texts of up to 12 words, names with a number, and long ones of up to 120 words. */
function strings(from, to) {
  const length = to - from;
  const random = generator(from + 1);
  const names = Array.from({ length }, (_, row) => `user-${(from + row) * 7}@example.org`);
  return batchOf(
    {
      phrase: phrases(length, random, 12),
      name: arrow.vectorFromArray(names, new arrow.Utf8()).data[0],
      text: phrases(length, random, 120),
    },
    length,
  );
}

/** Strings of which few are distinct. */
function categories(from, to) {
  const length = to - from;
  const random = generator(from + 1);
  const of = (count) => Array.from({ length }, () => `category number ${random() % count}`);
  return batchOf(
    {
      hundred: arrow.vectorFromArray(of(100), new arrow.Utf8()).data[0],
      thousand: arrow.vectorFromArray(of(1000), new arrow.Utf8()).data[0],
      one: arrow.vectorFromArray(of(1), new arrow.Utf8()).data[0],
    },
    length,
  );
}

/** Lists and structs with nulls. */
function nested(from, to) {
  const random = generator(from + 1);
  const type = new arrow.Struct([
    new arrow.Field('tags', new arrow.List(new arrow.Field('item', new arrow.Utf8(), true)), true),
    new arrow.Field('scores', new arrow.List(new arrow.Field('item', new arrow.Int32(), true)), true),
    new arrow.Field(
      'place',
      new arrow.Struct([
        new arrow.Field('lat', new arrow.Float64(), true),
        new arrow.Field('name', new arrow.Utf8(), true),
      ]),
      true,
    ),
  ]);
  const values = Array.from({ length: to - from }, () => ({
    tags: random() % 7 === 0 ? null : Array.from({ length: random() % 4 }, () => WORDS[random() % WORDS.length]),
    scores: Array.from({ length: random() % 9 }, () => (random() % 11 === 0 ? null : random() % 1000)),
    place:
      random() % 9 === 0 ? null : { lat: (random() % 18_000) / 100, name: `${WORDS[random() % 16]}-${random() % 50}` },
  }));
  const data = arrow.vectorFromArray(values, type).data[0];
  return new arrow.RecordBatch(new arrow.Schema(type.children), data);
}

const TABLES = {
  rows: { count: 1_000_000, batch: 50_000, make: rows },
  vectors: { count: 100_000, batch: 10_000, make: vectors },
  gigabyte: { count: 700_000, batch: 10_000, make: vectors },
  ints: { count: 500_000, batch: 100_000, make: ints },
  strings: { count: 100_000, batch: 50_000, make: strings },
  categories: { count: 300_000, batch: 100_000, make: categories },
  nested: { count: 100_000, batch: 50_000, make: nested },
};

/** The tables whose size on disk is measured. */
export const SIZED = ['ints', 'strings', 'categories', 'nested', 'vectors', 'rows'];

export function* batches(name) {
  const { count, batch, make } = TABLES[name];
  for (let from = 0; from < count; from += batch) yield make(from, Math.min(count, from + batch));
}

export const schemaOf = (name) => TABLES[name].make(0, 1).schema;

/** 1,000 rows of a table, ascending. */
export function takenRows(count) {
  const random = generator(7);
  const chosen = new Set();
  while (chosen.size < 1000) chosen.add(random() % count);
  return [...chosen].sort((a, b) => a - b);
}
