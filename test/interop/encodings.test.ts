import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as lancelet from '../../src/node';

/** A column by its type, its rows and the metadata of its field. */
interface Column {
  type: arrow.DataType;
  rows: unknown[];
  metadata?: Record<string, string>;
}

const COUNT = 20_000;

/** Numbers in [0, 1) that look random and are the same in every run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const next = random(20);
const below = (end: number): number => Math.floor(next() * end);
const rows = <T>(count: number, row: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => row(i));
const WORDS = ['alpha', 'beta', 'gamma', 'delta', 'lorem', 'ipsum', 'dolor', 'amet', 'vector', 'table'];
const text = (words: number): string => `${rows(words, () => WORDS[below(WORDS.length)]).join(' ')} ${below(1000)}`;
const list = (item: arrow.DataType): arrow.List => new arrow.List(new arrow.Field('item', item, true));
const vector = (dimension: number, item: arrow.DataType = new arrow.Float32()): arrow.FixedSizeList =>
  new arrow.FixedSizeList(dimension, new arrow.Field('item', item, true));
const struct = (members: Record<string, arrow.DataType>): arrow.Struct =>
  new arrow.Struct(Object.entries(members).map(([name, type]) => new arrow.Field(name, type, true)));
const { Float64, Int32, Int64, Utf8 } = arrow;

/** The kinds whose files are to be as small as LanceDB's. */
const KINDS: Record<string, Column[]> = {
  ints: [
    { type: new Int32(), rows: rows(COUNT, (i) => i) },
    { type: new Int32(), rows: rows(COUNT, () => below(2 ** 31) * 2 - 2 ** 31) },
    { type: new Int32(), rows: rows(COUNT, (i) => (i % 9 ? below(1000) : null)) },
    { type: new Int64(), rows: rows(COUNT, (i) => BigInt(-Math.floor(i / 100))) },
    { type: new Int64(), rows: rows(COUNT, () => BigInt(below(50)) * 1_000_000_007n) },
    { type: new arrow.TimestampMillisecond(), rows: rows(COUNT, (i) => 1_700_000_000_000 + i * 977) },
  ],
  strings: [
    { type: new Utf8(), rows: rows(COUNT, (i) => `user-${i}`) },
    { type: new Utf8(), rows: rows(COUNT, () => text(3 + below(10))) },
    { type: new Utf8(), rows: rows(COUNT, () => rows(20, () => below(36).toString(36)).join('')) },
    { type: new Utf8(), rows: rows(3000, (i) => (i % 5 ? text(60) : null)) },
  ],
  'low-cardinality strings': [
    { type: new Utf8(), rows: rows(COUNT, () => `category ${below(100)}`) },
    { type: new Utf8(), rows: rows(COUNT, (i) => (i % 4 ? `c${below(12)}` : null)) },
    { type: new Utf8(), rows: rows(COUNT, (i) => `day ${Math.floor(i / 300)}`) },
    { type: new arrow.Dictionary(new Utf8(), new Int32()), rows: rows(COUNT, () => `tag ${below(300)}`) },
  ],
  nested: [
    { type: list(new Int32()), rows: rows(COUNT, () => rows(below(5), () => below(1000))) },
    { type: list(new Int32()), rows: rows(COUNT, (i) => (i % 6 ? rows(below(5), (k) => (k ? i : null)) : null)) },
    { type: list(new Utf8()), rows: rows(COUNT, () => rows(below(4), () => `tag${below(60)}`)) },
    {
      type: struct({ x: new Int32(), y: new Utf8() }),
      rows: rows(COUNT, (i) => (i % 8 ? { x: i, y: text(2) } : null)),
    },
    {
      type: list(struct({ x: new Int32(), y: new Utf8() })),
      rows: rows(5000, (i) => (i % 8 ? rows(below(4), () => ({ x: below(5000), y: text(2) })) : null)),
    },
  ],
  vectors: [
    { type: vector(4), rows: rows(COUNT, () => rows(4, () => Math.fround(next()))) },
    { type: vector(128), rows: rows(1000, () => rows(128, () => Math.fround(next()))) },
  ],
};

const compression = (value: string): Record<string, string> => ({ 'lance-encoding:compression': value });
const packed = { 'lance-encoding:packed': 'true' };

/** What the kinds do not have. */
const OTHERS: Record<string, Column> = {
  map: {
    type: new arrow.Map_(
      new arrow.Field(
        'entries',
        new arrow.Struct<{ key: arrow.Utf8; value: arrow.Int32 }>([
          new arrow.Field('key', new Utf8(), false),
          new arrow.Field('value', new Int32(), true),
        ]),
        false,
      ),
    ),
    rows: rows(3000, (i) => (i % 7 ? new Map(rows(below(4), (k) => [`k${k}`, k % 3 ? i : null])) : null)),
  },
  'fixed-size list of structs': {
    type: vector(3, struct({ a: new Int32(), b: new Utf8() })),
    // The last row is no null: arrow leaves out the items of such.
    rows: rows(3002, (i) => (i % 5 ? rows(3, (k) => ((i + k) % 4 ? { a: i, b: k ? `b${k}` : null } : null)) : null)),
  },
  'dictionary of nulls and one value': {
    type: new arrow.Dictionary(new Utf8(), new arrow.Int8()),
    rows: rows(2000, (i) => (i % 2 ? 'only' : null)),
  },
  'dictionary of numbers': {
    type: new arrow.Dictionary(new Int64(), new arrow.Uint16()),
    rows: rows(2000, () => BigInt(below(500)) * 99n),
  },
  'one value and nulls': { type: new Int32(), rows: rows(COUNT, (i) => (i % 3 ? 42 : null)) },
  'one value and nulls, a few': { type: new Utf8(), rows: rows(20, (i) => (i % 3 ? 'few' : null)) },
  'few distinct floats': { type: new Float64(), rows: rows(COUNT, () => below(4000) * 0.37) },
  'binary text': { type: new arrow.Binary(), rows: rows(COUNT, () => new TextEncoder().encode(text(5))) },
  'wide values that repeat': { type: new Utf8(), rows: rows(3000, (i) => `${'wide '.repeat(80)}${i % 20}`) },
  'very long values': { type: new Utf8(), rows: rows(40, (i) => (i % 9 ? `${text(40)}|`.repeat(200) : '')) },
  'lists of null lists': {
    type: list(list(new Int32())),
    rows: rows(5000, (i) =>
      i % 7 ? rows(i % 4, (k) => (k % 3 ? rows((i + k) % 3, (j) => (j ? i : null)) : null)) : null,
    ),
  },
  'members that are never null in a null struct': {
    type: new arrow.Struct([
      new arrow.Field(
        'inner',
        new arrow.Struct([
          new arrow.Field('number', new Int32(), false),
          new arrow.Field('list', list(new Int32()), false),
        ]),
        false,
      ),
    ]),
    rows: rows(100, (i) => (i % 3 ? { inner: { number: i, list: [i, 7] } } : null)),
  },
  'long strings in lists in a null struct': {
    type: struct({ l: list(new Utf8()) }),
    rows: rows(500, (i) => (i % 8 ? { l: i % 3 ? rows(below(4), () => text(60)) : null } : null)),
  },
  fsst: { type: new Utf8(), rows: rows(500, () => text(2)), metadata: compression('fsst') },
  'lz4 text': { type: new Utf8(), rows: rows(5000, () => text(6)), metadata: compression('lz4') },
  'lz4 split floats': {
    type: new Float64(),
    rows: rows(5000, (i) => 100 + i * 0.001),
    metadata: { ...compression('lz4'), 'lance-encoding:bss': 'on' },
  },
  'zstd single values': {
    type: new Utf8(),
    rows: rows(400, (i) => (i % 9 ? text(2 + below(300)) : i % 2 ? '' : null)),
    metadata: { ...compression('zstd'), 'lance-encoding:structural-encoding': 'fullzip' },
  },
  'full-zip numbers': {
    type: new Int32(),
    rows: rows(2000, (i) => (i % 3 ? i : null)),
    metadata: { 'lance-encoding:structural-encoding': 'fullzip' },
  },
  'mini-block vectors': {
    type: vector(128),
    rows: rows(300, () => rows(128, () => Math.fround(next()))),
    metadata: { 'lance-encoding:structural-encoding': 'miniblock' },
  },
  'packed struct': {
    type: struct({ a: new Int32(), b: new Float64() }),
    rows: rows(3000, (i) => (i % 4 ? { a: i, b: i / 2 } : null)),
    metadata: packed,
  },
  'packed struct with text': {
    type: struct({ a: new Int32(), s: new Utf8() }),
    rows: rows(3000, (i) => (i % 4 ? { a: i, s: `text ${i}` } : null)),
    metadata: packed,
  },
};

function table({ type, rows, metadata }: Column): arrow.Table {
  const field = new arrow.Field('c', type, true, new Map(Object.entries(metadata ?? {})));
  const schema = new arrow.Schema([field]);
  const batches = arrow.vectorFromArray(rows, type).data.map((data) => {
    const children = [data];
    return new arrow.RecordBatch(
      schema,
      arrow.makeData({ type: new arrow.Struct([field]), length: data.length, nullCount: 0, children }),
    );
  });
  return new arrow.Table(schema, batches);
}

function plain(value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (typeof value !== 'object') return value;
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const json: unknown = value.toJSON();
    if (Array.isArray(json)) return json.map(plain);
    if (typeof json === 'object' && json !== null) {
      return Object.fromEntries(Object.entries(json).map(([key, inner]) => [key, plain(inner)]));
    }
  }
  return Symbol.iterator in value ? [...(value as Iterable<unknown>)].map(plain) : String(value);
}

const values = (read: arrow.Table): string[] => {
  const column = read.getChildAt(0);
  return rows(read.numRows, (i) => JSON.stringify(plain(column?.get(i))));
};

function dataBytes(folder: string): number {
  const data = join(folder, 'data');
  return readdirSync(data).reduce((total, name) => total + statSync(join(data, name)).size, 0);
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-encodings-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function readByLanceDB(name: string, written: arrow.Table): Promise<void> {
  const theirs = await (await lancedb.connect(join(folder, 'ours'))).openTable(name);
  const expected = values(written);
  const read = await theirs.query().toArrow();
  expect(values(read as unknown as arrow.Table)).toEqual(expected);
  const [from, count] = [Math.floor(expected.length / 3), 17];
  const part = await theirs.query().offset(from).limit(count).toArrow();
  expect(values(part as unknown as arrow.Table)).toEqual(expected.slice(from, from + count));
}

describe.each(Object.entries(KINDS))('%s', (kind, columns) => {
  test('take no more than a tenth above what LanceDB needs, and it reads them', async () => {
    const ours = await lancelet.connect(join(folder, 'ours'));
    const theirs = await lancedb.connect(join(folder, 'theirs'));
    let [own, other] = [0, 0];
    for (const [index, column] of columns.entries()) {
      const name = `${kind.replaceAll(' ', '-')}-${index}`;
      const written = table(column);
      await ours.createTable(name, written);
      await theirs.createTable(name, written as unknown as lancedb.Data);
      own += dataBytes(join(folder, 'ours', `${name}.lance`));
      other += dataBytes(join(folder, 'theirs', `${name}.lance`));
      await readByLanceDB(name, written);
    }
    console.info(`${kind}: ${own} bytes, LanceDB ${other}, ratio ${(own / other).toFixed(3)}`);
    expect(own / other).toBeLessThanOrEqual(1.1);
  }, 120_000);
});

test.each(Object.entries(OTHERS))(
  'LanceDB reads %s',
  async (title, column) => {
    const name = title.replaceAll(/\W+/g, '-');
    const written = table(column);
    const ours = await (await lancelet.connect(join(folder, 'ours'))).createTable(name, written);
    await readByLanceDB(name, written);
    expect(values(await ours.toArrow())).toEqual(values(written));
  },
  60_000,
);
