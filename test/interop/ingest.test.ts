/** The same rows given to both libraries: the same columns, value for value, save where LanceDB damages them or does not know a type. */

import * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as lancelet from '../../src/node';

type Rows = readonly object[];

interface Outcome {
  readonly fields?: readonly string[];
  readonly rows?: readonly unknown[];
  readonly error?: string;
}

const field = (name: string, type: arrow.DataType, nullable = true): arrow.Field =>
  new arrow.Field(name, type, nullable);
const item = (type: arrow.DataType): arrow.Field => field('item', type);
const schemaOf = (...fields: arrow.Field[]): arrow.Schema => new arrow.Schema(fields);

const shown = (each: arrow.Field): string => `${each.name}: ${typeName(each.type)}${each.nullable ? '' : '!'}`;

function typeName(type: arrow.DataType): string {
  const children = (type.children ?? []) as arrow.Field[];
  return children.length === 0 ? String(type) : `${String(type)}(${children.map(shown).join(', ')})`;
}

/** Values of either library's copy of Arrow. */
function plain(value: unknown): unknown {
  if (isVector(value)) return Array.from({ length: value.length }, (_, i) => plain(value.get(i)));
  if (ArrayBuffer.isView(value)) return [Object.prototype.toString.call(value), ...(value as Uint8Array)];
  if (typeof value !== 'object' || value === null) return value;
  const json = (value as { toJSON?: () => object }).toJSON?.() ?? value;
  return Object.fromEntries(Object.entries(json).map(([key, each]) => [key, plain(each)]));
}

const isVector = (value: unknown): value is { length: number; get(at: number): unknown } =>
  typeof value === 'object' && value !== null && 'get' in value && 'length' in value;

const told = (table: arrow.Table): Outcome => ({
  fields: table.schema.fields.map(shown),
  rows: table.toArray().map(plain),
});

function made(make: () => arrow.Table): Outcome {
  try {
    return told(make());
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

const ourTable = (rows: Rows, options?: object): Outcome =>
  made(() => lancelet.makeArrowTable(rows as lancelet.Row[], options));
const theirTable = (rows: Rows, options?: object): Outcome =>
  made(() => lancedb.makeArrowTable(rows as Record<string, unknown>[], options));

class Point {
  readonly x = 1;
  readonly y = 'a';
}

const place = new arrow.Struct([field('a', new arrow.Int32()), field('b', new arrow.Utf8())]);
const vector2 = new arrow.FixedSizeList(2, item(new arrow.Float32()));
/** Rows of one column `v`, and its schema. */
const column = (type: arrow.DataType, ...values: unknown[]): [Rows, object] => [
  values.map((v) => ({ v })),
  { schema: schemaOf(field('v', type)) },
];

const SAME: Readonly<Record<string, [Rows, object?]>> = {
  numbers: [
    [
      { a: 1, b: 1.5 },
      { a: NaN, b: -Infinity },
      { a: -0, b: 2 ** 60 },
    ],
  ],
  bigints: [[{ a: 1n }, { a: -(2n ** 63n) }]],
  'a number, then a bigint': [[{ a: 1 }, { a: 2n }]],
  'a bigint, then a number': [[{ a: 2n }, { a: 1 }]],
  strings: [[{ a: 'x' }, { a: '' }, { a: 'ü😀' }]],
  booleans: [[{ a: true }, { a: null }, { a: false }]],
  buffers: [[{ a: Buffer.from([1, 2]) }, { a: Buffer.alloc(0) }, { a: null }]],
  'typed arrays': [
    [
      {
        f: new Float32Array([1, 2]),
        d: new Float64Array([1, 2]),
        b: new Int8Array([1, -2]),
        s: new Int16Array([1, -2]),
        i: new Int32Array([1, -2]),
        ub: new Uint8Array([1, 2]),
        us: new Uint16Array([1]),
        ui: new Uint32Array([1]),
      },
    ],
  ],
  'typed arrays of several lengths': [[{ a: new Uint8Array([1, 2]) }, { a: new Uint8Array([3]) }]],
  lists: [
    [
      { a: [1, 2], s: ['x', null] },
      { a: [], s: [] },
      { a: null, s: null },
      { a: [3], s: ['y'] },
    ],
  ],
  'lists of lists': [[{ a: [[1], []] }, { a: [] }, { a: [[2, 3]] }]],
  'lists that say their type late': [
    [
      { a: [[], []], b: [null, null] },
      { a: [[1]], b: [1] },
    ],
  ],
  'lists of buffers and of typed arrays': [[{ a: [Buffer.from([1])], b: [new Float32Array([1, 2])] }]],
  'a list of no type': [[{ a: [null] }]],
  'an empty list': [[{ a: [] }]],
  'a list of two types': [[{ a: [1, 'x'] }]],
  'a list of objects': [[{ a: [{ x: 1 }] }]],
  vectors: [
    [
      { vector: [1, 2], myEmbedding: [1], VECTORS: [2] },
      { vector: [3, 4], myEmbedding: [2], VECTORS: [0] },
    ],
  ],
  'vectors with nulls': [[{ vector: [1, null] }, { vector: null }, { vector: [null, null] }]],
  'vectors of two lengths': [[{ vector: [1, 2] }, { vector: [1] }]],
  'a vector without items': [[{ vector: [1] }, { vector: [] }]],
  'a vector in a struct': [[{ s: { vector: [1, 2] } }]],
  structs: [[{ s: { a: 1, b: 'x', t: { u: 1n } } }, { s: { a: 2, t: null } }, { s: null }, { s: { t: null } }]],
  'a struct after a null': [[{ s: null }, { s: { a: 1 } }]],
  'a number, then a struct': [[{ s: 1 }, { s: { a: 1 } }]],
  'a struct, then a number': [[{ s: { a: 1 } }, { s: 1 }]],
  'an object without fields': [[{ a: 1, s: {} }]],
  'an object without fields, then one with': [[{ s: {} }, { s: { x: 1 } }]],
  'instances of a class': [[new Point(), { x: 2, y: 'b' }]],
  'rows without fields': [[{}, { a: 1 }, {}]],
  'undefined cells': [[{ a: undefined, b: 1 }, { a: 1 }]],
  'a column of nulls': [[{ a: null, b: 1 }]],
  'columns in order of appearance': [
    [
      { b: 1, a: 2 },
      { c: 1, a: 1, b: 3 },
    ],
  ],
  'a Map': [[{ a: new Map() }]],
  'a Set': [[{ a: new Set() }]],
  'a regular expression': [[{ a: /x/ }]],
  'a function': [[{ a: () => 1 }]],
  'a symbol': [[{ a: Symbol('x') }]],
  'no rows': [[]],
  dictionaries: [
    [
      { a: 'x', b: 'y', c: ['z'] },
      { a: 'x', b: 'z', c: [] },
      { a: null, b: 'y', c: null },
    ],
    { dictionaryEncodeStrings: true },
  ],
  'vector columns of types of their own': [
    [{ m: [1, 2], h: [0.5], vector: [1] }],
    {
      vectorColumns: {
        m: new lancedb.VectorColumnOptions({ type: new arrow.Float64() }),
        h: { type: new arrow.Float16() },
      },
    },
  ],
  'Int64 of numbers and bigints': column(new arrow.Int64(), 1, 2n, null, undefined),
  'Int32 of numbers, bigints and booleans': column(new arrow.Int32(), 1, 2n, true, false, null),
  'Int8 at its limits': column(new arrow.Int8(), -128, 127),
  Float32: column(new arrow.Float32(), 1.5, 0.1, null, NaN, 1e39),
  'Float64 of numbers and booleans': column(new arrow.Float64(), 1.5, true, null),
  Float16: column(new arrow.Float16(), 1.5, -2),
  'Utf8 of what has a text': column(new arrow.Utf8(), 'a', 1, true, null),
  'Bool of booleans, 1 and 0': column(new arrow.Bool(), true, false, null, 1, 0),
  'Bool of nulls': column(new arrow.Bool(), null),
  Date32: column(new arrow.DateDay(), new Date('2024-02-29'), null),
  Date64: column(new arrow.DateMillisecond(), new Date('2024-02-29'), null),
  'Timestamp(ms)': column(new arrow.TimestampMillisecond(), new Date(5), 7, null, 9n),
  'Timestamp(us)': column(new arrow.TimestampMicrosecond(), new Date(5), 7),
  'Timestamp(s)': column(new arrow.TimestampSecond(), new Date(5000)),
  'Timestamp(ns)': column(new arrow.TimestampNanosecond(), new Date(5)),
  Time: column(new arrow.TimeMillisecond(), 5),
  Binary: column(new arrow.Binary(), Buffer.from('a'), new Uint8Array([1]), null),
  FixedSizeBinary: column(new arrow.FixedSizeBinary(2), Buffer.from('ab')),
  Dictionary: column(new arrow.Dictionary(new arrow.Utf8(), new arrow.Int8()), 'a', 'b', 'a', null),
  List: column(new arrow.List(item(new arrow.Int32())), [1, 2], [], null),
  FixedSizeList: column(vector2, [1, 2], null, new Float32Array([3, 4])),
  'FixedSizeList that ends with null': column(vector2, [1, 2], null),
  'FixedSizeList of Uint8': column(new arrow.FixedSizeList(2, item(new arrow.Uint8())), new Uint8Array([1, 2])),
  Struct: column(place, { a: 1, b: 'x' }, { a: 2 }, null),
  'Struct of which rows have a part': column(place, { a: 1 }),
  'a part of the schema': [
    [{ a: 1 }],
    {
      schema: schemaOf(
        field('b', new arrow.Utf8()),
        field('a', new arrow.Int32()),
        field('c', new arrow.Int32(), false),
      ),
    },
  ],
  'the order of the schema': [
    [{ b: 'x', a: 1 }],
    { schema: schemaOf(field('a', new arrow.Int32()), field('b', new arrow.Utf8())) },
  ],
  'an unknown field': [[{ a: 1 }, { a: 2, zz: 1 }], { schema: schemaOf(field('a', new arrow.Int32())) }],
  'an unknown member': [[{ v: { a: 1, q: 1 } }], { schema: schemaOf(field('v', place)) }],
  'an unknown object': [[{ a: 1, z: { k: { d: 1 } } }], { schema: schemaOf(field('a', new arrow.Int32())) }],
  'an unknown object without fields': [[{ a: 1, z: {} }], { schema: schemaOf(field('a', new arrow.Int32())) }],
  'an unknown undefined': [[{ a: 1, z: undefined }], { schema: schemaOf(field('a', new arrow.Int32())) }],
  'a schema without rows': [[], { schema: schemaOf(field('a', new arrow.Int32())) }],
};

test.each(Object.entries(SAME))('%s: the table and the error are those of LanceDB', (_, [rows, options]) => {
  expect(ourTable(rows, options)).toEqual(theirTable(rows, options));
});

/** Where LanceDB damages values without a word, or fails on what has one meaning. */
const OURS: Readonly<Record<string, { given: [Rows, object?]; theirs: Outcome | RegExp; ours: Outcome | RegExp }>> = {
  'a date': {
    given: [[{ a: new Date(5) }]],
    theirs: /Failed to infer data type for field a at row 0/,
    ours: { fields: ['a: Timestamp<MILLISECOND>'], rows: [{ a: 5 }] },
  },
  '64-bit arrays': {
    given: [[{ a: new BigInt64Array([1n]) }]],
    theirs: /Failed to infer data type for field a at row 0/,
    ours: { fields: ['a: FixedSizeList[1]<Int64>(item: Int64)'], rows: [{ a: [1n] }] },
  },
  'texts in a vector': {
    given: [[{ vector: ['a'] }]],
    theirs: { fields: ['vector: FixedSizeList[1]<Float32>(item: Float32)'], rows: [{ vector: [NaN] }] },
    ours: /Failed to infer data type for field vector at row 0/,
  },
  'vectors in a vector': {
    given: [[{ vector: [[1, 2]] }]],
    theirs: { fields: ['vector: FixedSizeList[1]<Float32>(item: Float32)'], rows: [{ vector: [NaN] }] },
    ours: /Failed to infer data type for field vector at row 0/,
  },
  'a bigint in a vector': {
    given: [[{ vector: [1n] }]],
    theirs: /Cannot convert a BigInt value to a number/,
    ours: { fields: ['vector: FixedSizeList[1]<Float32>(item: Float32)'], rows: [{ vector: [1] }] },
  },
  'a struct that a row lacks': {
    given: [[{ s: { a: 1 } }, {}]],
    theirs: { fields: ['s: Struct<{a:Float64}>(a: Float64)'], rows: [{ s: { a: 1 } }, { s: { a: null } }] },
    ours: { fields: ['s: Struct<{a:Float64}>(a: Float64)'], rows: [{ s: { a: 1 } }, { s: null }] },
  },
  'a struct that is null first': {
    given: column(place, null, { a: 1 }),
    theirs: /Previously inferred type/,
    ours: { fields: ['v: Struct<{a:Int32}>(a: Int32)'], rows: [{ v: null }, { v: { a: 1 } }] },
  },
  'a text missing in a struct of a list': {
    given: column(new arrow.List(item(place)), [{ a: 2 }]),
    theirs: {
      fields: ['v: List<Struct<{a:Int32, b:Utf8}>>(item: Struct<{a:Int32, b:Utf8}>(a: Int32, b: Utf8))'],
      rows: [{ v: [{ a: 2, b: '' }] }],
    },
    ours: {
      fields: ['v: List<Struct<{a:Int32, b:Utf8}>>(item: Struct<{a:Int32, b:Utf8}>(a: Int32, b: Utf8))'],
      rows: [{ v: [{ a: 2, b: null }] }],
    },
  },
  'an integer that overflows': {
    given: column(new arrow.Int8(), 1, 300),
    theirs: { fields: ['v: Int8'], rows: [{ v: 1 }, { v: 44 }] },
    ours: /^column "v", row 1: 300 is out of the range of Int8$/,
  },
  'a fraction of an integer': {
    given: column(new arrow.Int32(), 1.7),
    theirs: { fields: ['v: Int32'], rows: [{ v: 1 }] },
    ours: /^column "v", row 0: 1.7 is not an integer, Int32 expected$/,
  },
  'a bigint beyond 64 bits': {
    given: column(new arrow.Int64(), 2n ** 63n),
    theirs: { fields: ['v: Int64'], rows: [{ v: -(2n ** 63n) }] },
    ours: /^column "v", row 0: 9223372036854775808n is out of the range of Int64$/,
  },
  'a text in a column of numbers': {
    given: column(new arrow.Float64(), 'x'),
    theirs: { fields: ['v: Float64'], rows: [{ v: NaN }] },
    ours: /^column "v", row 0: the string "x" is not a number, Float64 expected$/,
  },
  'a text in a column of booleans': {
    given: column(new arrow.Bool(), 'x'),
    theirs: { fields: ['v: Bool'], rows: [{ v: false }] },
    ours: /^column "v", row 0: the string "x" is not a boolean$/,
  },
  'a text in a column of dates': {
    given: column(new arrow.DateDay(), '2024-02-29'),
    theirs: { fields: ['v: Date32<DAY>'], rows: [{ v: 0 }] },
    ours: /^column "v", row 0: the string "2024-02-29" is not a date/,
  },
  'a vector that is too short': {
    given: column(vector2, [1]),
    theirs: { fields: ['v: FixedSizeList[2]<Float32>(item: Float32)'], rows: [{ v: [1, null] }] },
    ours: /^column "v", row 0: a vector of 1 items, 2 expected$/,
  },
  'a vector that is too long': {
    given: column(vector2, [1, 2], [1, 2, 3]),
    theirs: { fields: ['v: FixedSizeList[2]<Float32>(item: Float32)'], rows: [{ v: [1, 2] }, { v: [1, 2] }] },
    ours: /^column "v", row 1: a vector of 3 items, 2 expected$/,
  },
  'a null where none may be': {
    given: [[{ a: 1 }, { a: null }], { schema: schemaOf(field('a', new arrow.Int32(), false)) }],
    theirs: { fields: ['a: Int32!'], rows: [{ a: 1 }, { a: null }] },
    ours: /^Column 'a' is declared as non-nullable but contains null values: row 1$/,
  },
  'a decimal of a text': {
    given: column(new arrow.Decimal(2, 6, 128), '1.23'),
    theirs: /is not a function/,
    ours: { fields: ['v: Decimal[6e+2]'], rows: [{ v: ['[object Uint32Array]', 123, 0, 0, 0] }] },
  },
  'half floats at their limits': {
    given: column(new arrow.Float16(), 1e-8, 70000, 2049),
    theirs: { fields: ['v: Float16'], rows: [{ v: -Infinity }, { v: 2.134765625 }, { v: 2050 }] },
    ours: { fields: ['v: Float16'], rows: [{ v: 0 }, { v: Infinity }, { v: 2048 }] },
  },
};

test.each(Object.entries(OURS))(
  '%s: is not what LanceDB makes of it',
  (_, { given: [rows, options], theirs, ours }) => {
    const meets = (outcome: Outcome, expected: Outcome | RegExp): void => {
      if (expected instanceof RegExp) expect(outcome.error).toMatch(expected);
      else expect(outcome).toEqual(expected);
    };
    meets(theirTable(rows, options), theirs);
    meets(ourTable(rows, options), ours);
  },
);

describe('tables of the same rows', () => {
  let folder: string;
  let ours: lancelet.Connection;
  let theirs: lancedb.Connection;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'lancelet-ingest-'));
    [ours, theirs] = [await lancelet.connect(join(folder, 'ours')), await lancedb.connect(join(folder, 'theirs'))];
  });
  afterAll(async () => {
    await ours.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const ADDED: readonly Rows[] = [
    [{ id: 1, s: 'a', when: 5, flag: true, vector: [1, 2], st: { a: 1, b: 'x' }, tags: ['p', null] }],
    [
      { id: 2, st: null },
      { tags: [], id: 3n, st: null },
    ],
    [
      { id: 4, s: 7, when: new Date(9), st: { a: 3 } },
      { id: 5, st: null, vector: new Float32Array([3, 4]) },
    ],
    [{ id: 6, flag: undefined, s: undefined }],
  ];
  const schema = schemaOf(
    field('id', new arrow.Int64(), false),
    field('s', new arrow.Utf8()),
    field('when', new arrow.TimestampMicrosecond()),
    field('flag', new arrow.Bool()),
    field('vector', vector2),
    field('st', place),
    field('tags', new arrow.List(item(new arrow.Utf8()))),
  );

  test('hold the same, row for row, and each library reads the other one', async () => {
    const own = await ours.createEmptyTable('t', schema);
    const other = await theirs.createEmptyTable('t', schema);
    for (const rows of ADDED) {
      await own.add(rows as lancelet.Row[]);
      await other.add(rows as Record<string, unknown>[]);
    }
    const expected = told(await own.toArrow());
    expect(told(await (await (await lancedb.connect(join(folder, 'ours'))).openTable('t')).toArrow())).toEqual(
      expected,
    );
    const crossed = await (await lancelet.connect(join(folder, 'theirs'))).openTable('t');
    expect(told(await crossed.toArrow())).toEqual(expected);
    expect(expected.rows).toHaveLength(6);
    expect(expected.rows?.[3]).toEqual({
      id: 4n,
      s: '7',
      when: 9,
      flag: null,
      vector: null,
      st: { a: 3, b: null },
      tags: null,
    });
  });

  test('of a plain array have the same schema', async () => {
    const rows = [
      { id: 1, name: 'x', n: 2n, vector: [1, 2], tags: ['a'], st: { x: 1, y: { z: true } }, bytes: Buffer.from('b') },
      { id: 2, late: 'y' },
    ];
    const own = await ours.createTable('inferred', rows);
    const other = await theirs.createTable('inferred', rows);
    expect((await own.schema()).fields.map(shown)).toEqual((await other.schema()).fields.map(shown));
  });
});
