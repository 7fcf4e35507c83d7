import * as arrow from 'apache-arrow';
import { describe, expect, it } from 'vitest';

import { makeArrowTable, VectorColumnOptions } from './arrow';
import { isArrowTableLike, toOurBatch } from './arrow/foreign';
import { decodeBatches, decodeSchema, encodeBatch, encodeSchema } from './arrow/ipc';
import { halfBits } from './arrow/scalars';
import { Scannable } from './arrow/scannable';
import { openSource, type TableData } from './arrow/source';
import { LanceError } from './errors';

const field = (name: string, type: arrow.DataType, nullable = true): arrow.Field =>
  new arrow.Field(name, type, nullable);
const schemaOf = (...fields: arrow.Field[]): arrow.Schema => new arrow.Schema(fields);
const types = (table: arrow.Table): Record<string, string> =>
  Object.fromEntries(table.schema.fields.map((f) => [f.name, String(f.type)]));
/** Through the bytes, so that what is asserted is what the engine would get. */
const reread = (table: arrow.Table): arrow.Table => {
  const batches = table.batches.flatMap((batch) => decodeBatches(encodeBatch(batch)));
  return batches.length > 0 ? new arrow.Table(batches) : new arrow.Table(decodeSchema(encodeSchema(table.schema)), []);
};
const column = (table: arrow.Table, name: string): unknown[] => {
  const vector = reread(table).getChild(name);
  return Array.from(vector ?? [], plain);
};
const plain = (value: unknown): unknown => {
  if (value instanceof arrow.Vector) return Array.from(value, plain);
  if (value instanceof arrow.StructRow || value instanceof arrow.MapRow) {
    return Object.fromEntries(Object.entries(value.toJSON()).map(([key, item]) => [key, plain(item)]));
  }
  return value;
};
const failure = (run: () => unknown): LanceError => {
  try {
    run();
  } catch (error) {
    if (error instanceof LanceError) return error;
    throw error;
  }
  throw new Error('did not fail');
};

describe('inference', () => {
  it('gives each kind of value the type that LanceDB gives it', () => {
    const table = makeArrowTable([
      {
        f: 1,
        i: 2n,
        s: 'x',
        b: true,
        bytes: Buffer.from([1, 2]),
        small: new Uint8Array([1, 2]),
        doubles: new Float64Array([1]),
        list: [1, 2, 3],
        nested: [[1], []],
        vector: [1, 2],
        textEmbedding: [3],
        st: { a: 1, deep: { b: 'x' } },
        when: new Date(5),
      },
    ]);
    expect(types(table)).toEqual({
      f: 'Float64',
      i: 'Int64',
      s: 'Utf8',
      b: 'Bool',
      bytes: 'Binary',
      small: 'FixedSizeList[2]<Uint8>',
      doubles: 'FixedSizeList[1]<Float64>',
      list: 'List<Float64>',
      nested: 'List<List<Float64>>',
      vector: 'FixedSizeList[2]<Float32>',
      textEmbedding: 'FixedSizeList[1]<Float32>',
      st: 'Struct<{a:Float64, deep:Struct<{b:Utf8}>}>',
      when: 'Timestamp<MILLISECOND>',
    });
    expect(table.schema.fields.every((f) => f.nullable)).toBe(true);
  });

  it('lets a later row decide the type of a column that begins with nulls', () => {
    const table = makeArrowTable([{ a: null, b: [] }, { a: undefined }, { c: 'x', a: 'late', b: [1n] }]);
    expect(types(table)).toEqual({ a: 'Utf8', b: 'List<Int64>', c: 'Utf8' });
    expect(column(table, 'a')).toEqual([null, null, 'late']);
    expect(column(table, 'b')).toEqual([[], null, [1n]]);
  });

  it('names field and row where types differ or there is none', () => {
    expect(failure(() => makeArrowTable([{ a: 1 }, { a: 2n }]))).toMatchObject({
      code: 'SCHEMA',
      message:
        'Failed to infer schema for data. Previously inferred type Float64 but found Int64 for field a at row 1. Consider providing an explicit schema.',
    });
    expect(failure(() => makeArrowTable([{ x: 1, a: null }])).message).toMatch(
      /^Failed to infer data type for field a at row 0/,
    );
    expect(failure(() => makeArrowTable([{ a: [1, 'x'] }])).message).toMatch(
      /Failed to infer data type for field a at row 0/,
    );
    expect(failure(() => makeArrowTable([{ a: new Map() }])).message).toMatch(/Failed to infer data type for field a/);
    expect(failure(() => makeArrowTable([{ vector: ['x'] }])).message).toMatch(
      /Failed to infer data type for field vector/,
    );
    expect(failure(() => makeArrowTable([{ vector: [1] }, { vector: [1, 2] }])).message).toMatch(
      /field vector at row 1/,
    );
    expect(failure(() => makeArrowTable([]))).toMatchObject({ code: 'INVALID_INPUT', message: /At least one record/ });
    expect(failure(() => makeArrowTable([{ a: {} }]))).toMatchObject({ message: /At least one record/ });
  });

  it('follows the options', () => {
    const table = makeArrowTable(
      [
        { s: 'a', mine: [1, 2] },
        { s: 'a', mine: [3, 4] },
      ],
      {
        dictionaryEncodeStrings: true,
        vectorColumns: { mine: new VectorColumnOptions({ type: new arrow.Float64() }) },
      },
    );
    expect(types(table)).toEqual({ s: 'Dictionary<Int32, Utf8>', mine: 'FixedSizeList[2]<Float64>' });
    expect(column(table, 's')).toEqual(['a', 'a']);
    const two = makeArrowTable(
      [
        { a: 'x', b: 'p' },
        { a: 'y', b: 'p' },
      ],
      { dictionaryEncodeStrings: true },
    );
    expect([column(two, 'a'), column(two, 'b')]).toEqual([
      ['x', 'y'],
      ['p', 'p'],
    ]);
    const tagged = makeArrowTable([{ a: 1 }], {}, new Map([['k', 'v']]));
    expect([...tagged.schema.metadata]).toEqual([['k', 'v']]);
    const nested = makeArrowTable([{ st: { mine: [1] }, 'st.mine': [1, 2] }], {
      vectorColumns: { 'st.mine': new VectorColumnOptions({ type: new arrow.Float16() }) },
    });
    expect(types(nested)).toEqual({ st: 'Struct<{mine:List<Float64>}>', 'st.mine': 'FixedSizeList[2]<Float16>' });
  });

  it('takes nulls and bigints in vectors, and waits where there is nothing else', () => {
    const table = makeArrowTable([{ vector: [null, null] }, { vector: [1, null] }, { vector: [2n, 0.5] }]);
    expect(types(table)).toEqual({ vector: 'FixedSizeList[2]<Float32>' });
    expect(column(table, 'vector')).toEqual([
      [null, null],
      [1, null],
      [2, 0.5],
    ]);
    expect(failure(() => makeArrowTable([{ vector: [] }, { vector: [1] }])).details).toEqual({
      column: 'vector',
      row: 0,
    });
    expect(failure(() => makeArrowTable([{ vector: [1] }, { vector: [] }])).message).toMatch(/field vector at row 1/);
  });

  it('gives no column to objects without fields', () => {
    const table = makeArrowTable([{ a: 1, m: {}, n: { deep: {} } }, { a: 2 }]);
    expect(types(table)).toEqual({ a: 'Float64' });
    const later = makeArrowTable([{ m: {} }, { m: { x: 1 } }, { m: null }]);
    expect(column(later, 'm')).toEqual([{ x: null }, { x: 1 }, null]);
  });

  it('takes what instances of classes own', () => {
    class Point {
      x = 1;
      readonly inner = new (class Inner {
        y = 'y';
      })();
      get sum(): number {
        return 5;
      }
    }
    const table = makeArrowTable([new Point() as never, Object.freeze({ x: 2 }), Object.create({ x: 9 }) as never]);
    expect(types(table)).toEqual({ x: 'Float64', inner: 'Struct<{y:Utf8}>' });
    expect(column(table, 'x')).toEqual([1, 2, null]);
  });

  it('takes no cell from the prototype of a row', () => {
    const table = makeArrowTable([{ constructor: 1 }, {}, JSON.parse('{"__proto__": 2}') as Record<string, unknown>]);
    expect(types(table)).toEqual({ constructor: 'Float64', ['__proto__']: 'Float64' });
    expect(column(table, 'constructor')).toEqual([1, null, null]);
    expect(column(table, '__proto__')).toEqual([null, null, 2]);
  });
});

describe('conversion to a schema', () => {
  const stored = (type: arrow.DataType, ...values: unknown[]): unknown[] =>
    column(
      makeArrowTable(
        values.map((v) => ({ v })),
        { schema: schemaOf(field('v', type)) },
      ),
      'v',
    );
  const refusal = (type: arrow.DataType, value: unknown): string => {
    const error = failure(() => makeArrowTable([{ v: null }, { v: value }], { schema: schemaOf(field('v', type)) }));
    expect(error.code).toBe('SCHEMA');
    expect(error.details['row']).toBe(1);
    expect(String(error.details['column'])).toMatch(/^v(\[\d\])?$/);
    return error.message;
  };

  it('keeps integers exactly or refuses them', () => {
    expect(stored(new arrow.Int8(), -128, 127n, null)).toEqual([-128, 127, null]);
    expect(stored(new arrow.Int64(), 1, -(2n ** 63n), 2 ** 60)).toEqual([1n, -(2n ** 63n), 2n ** 60n]);
    expect(stored(new arrow.Uint64(), 2n ** 64n - 1n)).toEqual([2n ** 64n - 1n]);
    expect(refusal(new arrow.Int8(), 300)).toBe('column "v", row 1: 300 is out of the range of Int8');
    expect(refusal(new arrow.Int32(), 1.7)).toBe('column "v", row 1: 1.7 is not an integer, Int32 expected');
    expect(refusal(new arrow.Int32(), '7')).toBe('column "v", row 1: the string "7" is not a number, Int32 expected');
    expect(refusal(new arrow.Int64(), 1.5)).toMatch(/cannot be converted to a BigInt because it is not an integer/);
    expect(refusal(new arrow.Uint64(), -1)).toMatch(/out of the range of Uint64/);
    expect(stored(new arrow.Int32(), true, false)).toEqual([1, 0]);
    expect(stored(new arrow.Uint64(), true)).toEqual([1n]);
    expect(refusal(new arrow.Int32(), {})).toMatch(/an object is not a number/);
    expect(refusal(new arrow.Int32(), NaN)).toMatch(/NaN is not an integer/);
  });

  it('takes floats and exact bigints as floats, nothing else', () => {
    expect(stored(new arrow.Float64(), 0.1, NaN, -Infinity, 9n)).toEqual([0.1, NaN, -Infinity, 9]);
    expect(stored(new arrow.Float32(), 0.1)).toEqual([Math.fround(0.1)]);
    expect(refusal(new arrow.Float64(), 2n ** 53n + 1n)).toMatch(/has no exact Float64/);
    expect(stored(new arrow.Float32(), 1e39, -3.5e38, 3.4e38)).toEqual([Infinity, -Infinity, Math.fround(3.4e38)]);
    expect(refusal(new arrow.Float64(), 'x')).toMatch(/the string "x" is not a number/);
    expect(stored(new arrow.Float64(), true, false)).toEqual([1, 0]);
    expect(stored(new arrow.Bool(), true, 0, 1, null)).toEqual([true, false, true, null]);
    expect(refusal(new arrow.Bool(), 2)).toBe('column "v", row 1: 2 is not a boolean');
    expect(refusal(new arrow.Bool(), 'true')).toMatch(/the string "true" is not a boolean/);
    expect(stored(new arrow.Float16(), 70000, 65519.99)).toEqual([Infinity, 65504]);
  });

  it('rounds halves to the nearest, ties to even', () => {
    const bits = (value: number): string => halfBits(value).toString(16);
    expect([1, -2, 65504, 5.960464477539063e-8, 0, -0, Infinity].map(bits)).toEqual([
      '3c00',
      'c000',
      '7bff',
      '1',
      '0',
      '8000',
      '7c00',
    ]);
    expect([1 + 2 ** -11, 1 + 3 * 2 ** -11, 2 ** -25, 1.5 * 2 ** -25].map(bits)).toEqual(['3c00', '3c02', '0', '1']);
    expect(stored(new arrow.Float16(), 1.5, null)).toEqual([1.5, null]);
  });

  it('stores text as UTF-8, with U+FFFD for half a surrogate pair, and refuses what is no text', () => {
    expect(stored(new arrow.Utf8(), 'a', '', null, 'h\u00e9 \u{1f600}', 12, true)).toEqual([
      'a',
      '',
      null,
      'h\u00e9 \u{1f600}',
      '12',
      'true',
    ]);
    expect(stored(new arrow.LargeUtf8(), 'x', null, 'yz')).toEqual(['x', null, 'yz']);
    expect(stored(new arrow.Utf8(), 'a\ud800')).toEqual(['a\ufffd']);
    expect(refusal(new arrow.Utf8(), {})).toMatch(/an object is not a string/);
  });

  it('stores bytes by the declared type', () => {
    const bytes = new Uint8Array([1, 2, 3]);
    expect(stored(new arrow.Binary(), bytes, bytes.buffer, [4, 5], null)).toEqual([
      bytes,
      bytes,
      new Uint8Array([4, 5]),
      null,
    ]);
    expect(stored(new arrow.FixedSizeBinary(3), null, bytes)).toEqual([null, bytes]);
    expect(stored(new arrow.FixedSizeList(3, field('item', new arrow.Uint8())), bytes)).toEqual([[1, 2, 3]]);
    expect(stored(new arrow.List(field('item', new arrow.Uint8())), bytes)).toEqual([[1, 2, 3]]);
    expect(refusal(new arrow.FixedSizeBinary(2), bytes)).toMatch(/3 bytes/);
    expect(refusal(new arrow.Binary(), 'abc')).toMatch(/is not bytes/);
    expect(refusal(new arrow.Binary(), [256])).toMatch(/out of the range of Uint8/);
  });

  it('keeps instants in the unit of the column', () => {
    const date = new Date('2024-02-29T12:34:56.789Z');
    expect(stored(new arrow.TimestampMillisecond(), date, 1.0, null)).toEqual([date.getTime(), 1, null]);
    expect(stored(new arrow.TimestampMicrosecond(), date, 1.5)).toEqual([date.getTime(), 1.5]);
    expect(stored(new arrow.TimestampSecond(), 2000, 3n)).toEqual([2000, 3000]);
    expect(refusal(new arrow.TimestampSecond(), 1500)).toMatch(/not a whole second/);
    expect(refusal(new arrow.TimestampMillisecond(), '2024-01-01')).toMatch(/is not a date/);
    expect(refusal(new arrow.TimestampMillisecond(), new Date(NaN))).toMatch(/an invalid date/);
    expect(stored(new arrow.DateDay(), new Date('2024-02-29'), 86_400_000)).toEqual([
      Date.UTC(2024, 1, 29),
      86_400_000,
    ]);
    expect(refusal(new arrow.DateDay(), date)).toMatch(/has a time of day/);
    expect(refusal(new arrow.DateDay(), '2024-01-01')).toMatch(/is not a date/);
    const nanos = makeArrowTable([{ v: date }], { schema: schemaOf(field('v', new arrow.TimestampNanosecond())) });
    expect(reread(nanos).batches[0]?.data.children[0]?.values[0]).toBe(BigInt(date.getTime()) * 1_000_000n);
  });

  it('makes decimals of text, numbers and bigints', () => {
    const type = new arrow.Decimal(2, 6, 128);
    const raw = (...values: unknown[]): bigint[] => {
      const table = makeArrowTable(
        values.map((v) => ({ v })),
        { schema: schemaOf(field('v', type)) },
      );
      const words = reread(table).batches[0]?.data.children[0]?.values as Uint32Array;
      const view = new BigInt64Array(words.slice().buffer);
      return values.map((_, i) =>
        BigInt.asIntN(128, (BigInt(view[2 * i + 1] ?? 0n) << 64n) | BigInt.asUintN(64, view[2 * i] ?? 0n)),
      );
    };
    expect(raw('12.3', 0.1, -5n, '1e2', '-0.01', '1.2300')).toEqual([1230n, 10n, -500n, 10000n, -1n, 123n]);
    expect(refusal(type, '1.234')).toMatch(/more than 2 decimals/);
    expect(refusal(type, '12345')).toMatch(/out of the range of Decimal\(6, 2\)/);
    expect(refusal(type, '1e400000000')).toMatch(/out of the range/);
    expect(refusal(type, 'x')).toMatch(/not a decimal/);
  });

  it('refuses a vector of the wrong length', () => {
    const type = new arrow.FixedSizeList(2, field('item', new arrow.Float32()));
    expect(stored(type, [1, 2], null, new Float64Array([3, 4]), [null, 5])).toEqual([[1, 2], null, [3, 4], [null, 5]]);
    expect(refusal(type, [1])).toBe('column "v", row 1: a vector of 1 items, 2 expected');
    expect(refusal(type, new Float32Array(3))).toMatch(/a vector of 3 items, 2 expected/);
    expect(refusal(type, ['a', 'b'])).toBe('column "v[0]", row 1: the string "a" is not a number, Float32 expected');
    expect(refusal(type, [1, {}])).toBe('column "v[1]", row 1: an object is not a number, Float32 expected');
    expect(stored(type, [1e39, 0], [2n, 1n])).toEqual([
      [Infinity, 0],
      [2, 1],
    ]);
  });

  it('fills nested types', () => {
    const struct = new arrow.Struct([
      field('a', new arrow.Int32(), false),
      field('b', new arrow.List(field('item', new arrow.Utf8()))),
    ]);
    expect(stored(struct, { a: 1, b: ['x', null] }, null, { a: 2 })).toEqual([
      { a: 1, b: ['x', null] },
      null,
      { a: 2, b: null },
    ]);
    const missing = failure(() =>
      makeArrowTable([{ v: { a: 1 } }, { v: { b: [] } }], { schema: schemaOf(field('v', struct)) }),
    );
    expect(missing.message).toBe("Column 'v.a' is declared as non-nullable but contains null values: row 1");
    expect(refusal(struct, [1])).toMatch(/an array of 1 is not an object/);
    const entries = new arrow.Struct([field('key', new arrow.Utf8(), false), field('value', new arrow.Int32())]);
    const map = new arrow.Map_(field('entries', entries, false) as never);
    expect(stored(map, new Map([['k', 1]]), { a: 2, b: null }, null, [['z', 3]])).toEqual([
      { k: 1 },
      { a: 2, b: null },
      null,
      { z: 3 },
    ]);
    const list = new arrow.List(field('item', new arrow.Int32()));
    const deep = failure(() =>
      makeArrowTable([{ v: [1] }, { v: [] }, { v: [2, 3.5] }], { schema: schemaOf(field('v', list)) }),
    );
    expect(deep.details).toEqual({ column: 'v[1]', row: 2 });
    const places = new arrow.List(
      field('item', new arrow.Struct([field('at', new arrow.FixedSizeList(2, field('item', new arrow.Int8())))])),
    );
    const deepest = failure(() =>
      makeArrowTable([{ v: null }, { v: [{ at: [1, 2] }, { at: [3, 400] }] }], {
        schema: schemaOf(field('v', places)),
      }),
    );
    expect(deepest.message).toBe('column "v[1].at[1]", row 1: 400 is out of the range of Int8');
    expect(
      failure(() => makeArrowTable([{ v: [{ at: [1, 2], q: [] }] }], { schema: schemaOf(field('v', places)) })).message,
    ).toBe('Found field not in schema: v[0].q at row 0');
  });

  it('encodes dictionaries', () => {
    const type = new arrow.Dictionary(new arrow.Utf8(), new arrow.Int8());
    expect(stored(type, 'a', null, 'b', 'a')).toEqual(['a', null, 'b', 'a']);
    const many = Array.from({ length: 129 }, (_, i) => ({ v: `${i}` }));
    expect(failure(() => makeArrowTable(many, { schema: schemaOf(field('v', type)) })).details).toMatchObject({
      row: 128,
    });
  });

  it('refuses unknown keys and nulls where none may be', () => {
    const schema = schemaOf(
      field('id', new arrow.Int32(), false),
      field('st', new arrow.Struct([field('a', new arrow.Bool())])),
    );
    expect(failure(() => makeArrowTable([{ id: 1 }, { id: 1, zz: 1 }], { schema })).message).toBe(
      'Found field not in schema: zz at row 1',
    );
    expect(failure(() => makeArrowTable([{ id: 1, st: { q: 1 } }], { schema })).message).toBe(
      'Found field not in schema: st.q at row 0',
    );
    expect(failure(() => makeArrowTable([{ id: 1 }, { zz: { deep: null } }], { schema })).message).toBe(
      'Found field not in schema: zz.deep at row 1',
    );
    expect(failure(() => makeArrowTable([{ id: 1 }, {}], { schema })).message).toMatch(
      /^Column 'id' is declared as non-nullable/,
    );
    expect(column(makeArrowTable([{ id: 1, zz: { deep: {} } }], { schema }), 'id')).toEqual([1]);
    expect(column(makeArrowTable([{ id: 1, zz: undefined }], { schema }), 'id')).toEqual([1]);
    expect(failure(() => makeArrowTable([7 as never], { schema })).code).toBe('INVALID_INPUT');
  });
});

describe('a schema of which rows have a part', () => {
  const struct = new arrow.Struct([field('x', new arrow.Int32()), field('y', new arrow.Utf8())]);
  const schema = schemaOf(
    field('id', new arrow.Int32(), false),
    field('s', new arrow.Utf8()),
    field('st', struct),
    field('none', struct),
  );

  it('gives an Arrow table of that part', () => {
    const rows = [{ id: 1, st: { x: 1 }, none: {} }, { st: {} }, { id: undefined, s: undefined }];
    const part = makeArrowTable(
      [
        { id: 1, st: { x: 1 }, none: {} },
        { id: 2, st: null },
      ],
      { schema },
    );
    expect(types(part)).toEqual({ id: 'Int32', st: 'Struct<{x:Int32}>' });
    expect(column(part, 'st')).toEqual([{ x: 1 }, null]);
    expect(failure(() => makeArrowTable(rows, { schema })).details).toEqual({ column: 'id', row: 1 });
    expect(types(makeArrowTable([{ st: null }], { schema }))).toEqual({ st: 'Struct<{x:Int32, y:Utf8}>' });
    expect(makeArrowTable([], { schema }).schema.fields).toHaveLength(4);
  });

  it('makes batches without the columns that no row has, and refuses where one may not be null', async () => {
    const batchesOf = async (rows: TableData): Promise<arrow.RecordBatch[]> => {
      const batches: arrow.RecordBatch[] = [];
      for await (const batch of (await openSource(rows, { schema })).batches) batches.push(batch as arrow.RecordBatch);
      return batches;
    };
    const [batch] = await batchesOf([{ id: 1, st: { x: 1 }, none: {} }, { id: 2 }]);
    expect(batch?.schema.fields.map(String)).toEqual(['id: Int32', 'st: Struct<{x:Int32, y:Utf8}>']);
    await expect(batchesOf([{ s: 'a' }])).rejects.toMatchObject({
      code: 'SCHEMA',
      message: 'Append with different schema: fields did not match, missing=[id], unexpected=[]',
      details: { column: 'id' },
    });
    const [streamed] = await batchesOf([{ id: 1 }].values());
    expect(streamed?.schema.fields).toHaveLength(4);
  });
});

describe('sources', () => {
  const drain = async (data: TableData, options = {}): Promise<{ table: arrow.Table; sizes: number[] }> => {
    const source = await openSource(data, options);
    const batches: arrow.RecordBatch[] = [];
    for await (const batch of source.batches) {
      batches.push(...(batch instanceof Uint8Array ? decodeBatches(batch) : [batch]));
    }
    const schema = source.schema instanceof Uint8Array ? decodeSchema(source.schema) : source.schema;
    return { table: new arrow.Table(schema, batches), sizes: batches.map((b) => b.numRows) };
  };

  it('keeps batches to 65,536 rows, and to fewer when rows are wide', async () => {
    const rows = Array.from({ length: 70_000 }, (_, i) => ({ i }));
    const { table, sizes } = await drain(rows);
    expect(sizes).toEqual([65_536, 4_464]);
    expect(table.getChild('i')?.get(69_999)).toBe(69_999);
    const wide = Array.from({ length: 5 }, (_, i) => ({ vector: new Float32Array(2 ** 21).fill(i) }));
    expect((await drain(wide)).sizes).toEqual([1, 1, 1, 1, 1].map(() => 1));
    const text = 'x'.repeat(30 * 1024 * 1024);
    expect((await drain([{ text }, { text }, { text }])).sizes).toEqual([1, 1, 1]);
  });

  it('reads streams of rows, of arrays of rows and of batches', async () => {
    const ipc = arrow.tableToIPC(makeArrowTable([{ a: 1 }, { a: 2 }]), 'stream');
    async function* rows(): AsyncGenerator<{ a: number }> {
      yield { a: 1 };
      yield { a: 2 };
    }
    for (const data of [
      rows(),
      [[{ a: 1 }], [], [{ a: 2 }]].values(),
      arrow.RecordBatchReader.from(ipc),
      ipc,
      ipc.slice().buffer,
      new ReadableStream({
        start(controller) {
          controller.enqueue([{ a: 1 }, { a: 2 }]);
          controller.close();
        },
      }) as unknown as AsyncIterable<never>,
    ]) {
      expect(column((await drain(data as TableData)).table, 'a')).toEqual([1, 2]);
    }
  });

  it('counts the rows of a stream on, and closes it when one does not fit', async () => {
    let isClosed = false;
    async function* parts(): AsyncGenerator<Record<string, unknown>[]> {
      try {
        yield [{ a: 1 }, { a: 2 }];
        yield [{ a: 3 }, { b: 4 }];
        yield [{ a: 5 }];
      } finally {
        isClosed = true;
      }
    }
    await expect(drain(parts())).rejects.toMatchObject({ message: 'Found field not in schema: b at row 3' });
    expect(isClosed).toBe(true);
  });

  it('takes rows as they are when they are given', async () => {
    const row = {
      n: 1,
      v: new Float32Array([1, 2]),
      l: [1, 2],
      st: { a: [1], when: new Date(5) },
      bytes: Buffer.from('ab'),
      m: new Map([['k', [1]]]),
      view: new DataView(new Uint8Array([7, 8]).buffer, 1),
      raw: new Uint8Array([1]).buffer,
    };
    const numbers = new arrow.List(field('item', new arrow.Float64()));
    const entries = new arrow.Struct([field('key', new arrow.Utf8(), false), field('value', numbers)]);
    const schema = schemaOf(
      field('n', new arrow.Int32()),
      field('v', new arrow.FixedSizeList(2, field('item', new arrow.Float32()))),
      field('l', numbers),
      field('st', new arrow.Struct([field('a', numbers), field('when', new arrow.TimestampMillisecond())])),
      field('bytes', new arrow.Binary()),
      field('m', new arrow.Map_(field('entries', entries, false) as never)),
      field('view', new arrow.Binary()),
      field('raw', new arrow.Binary()),
    );
    const rows = [row];
    const opened = openSource(rows, { schema: Promise.resolve(schema) });
    row.n = 99;
    row.v[0] = 77;
    row.l.push(3);
    row.st.a[0] = 9;
    row.st.when.setTime(6);
    row.bytes[0] = 0;
    row.m.get('k')?.push(2);
    row.view.setUint8(0, 9);
    new Uint8Array(row.raw)[0] = 9;
    rows.pop();
    const batches: arrow.RecordBatch[] = [];
    for await (const batch of (await opened).batches) batches.push(batch as arrow.RecordBatch);
    const table = new arrow.Table(schema, batches);
    expect(schema.fields.map(({ name }) => column(table, name)[0])).toEqual([
      1,
      [1, 2],
      [1, 2],
      { a: [1], when: 5 },
      new Uint8Array([97, 98]),
      { k: [1] },
      new Uint8Array([8]),
      new Uint8Array([1]),
    ]);
    const loop: Record<string, unknown> = {};
    loop['self'] = loop;
    await expect(openSource([loop])).rejects.toMatchObject({ code: 'INVALID_INPUT', message: /levels deep/ });
  });

  it('reads a Scannable as often as it says that it can be', async () => {
    const table = makeArrowTable([{ a: 1 }, { a: 2 }]);
    const { schema, batches } = table;
    const again = await Scannable.fromTable(table);
    expect([again.numRows, again.rescannable, String(again.schema)]).toEqual([2, true, String(schema)]);
    expect(column((await drain(again)).table, 'a')).toEqual([1, 2]);
    expect(column((await drain(again)).table, 'a')).toEqual([1, 2]);
    expect((await openSource(again)).rowCount).toBe(2);
    async function* generated(): AsyncGenerator<arrow.RecordBatch> {
      yield* batches;
    }
    const once = await Scannable.fromIterable(schema, generated(), { numRows: 2 });
    expect([once.numRows, once.rescannable]).toEqual([2, false]);
    expect(column((await drain(once)).table, 'a')).toEqual([1, 2]);
    await expect(drain(once)).rejects.toMatchObject({ code: 'INVALID_INPUT', message: /not rescannable/ });
    const reader = arrow.RecordBatchReader.from(arrow.tableToIPC(table, 'stream')).open();
    expect(column((await drain(await Scannable.fromRecordBatchReader(reader))).table, 'a')).toEqual([1, 2]);
    const iterator = (): Iterator<arrow.RecordBatch> => {
      const inner = batches.values();
      return { next: () => inner.next() };
    };
    expect(column((await drain(await Scannable.fromFactory(schema, iterator))).table, 'a')).toEqual([1, 2]);

    await expect(Scannable.fromIterable(schema, generated(), { rescannable: true })).rejects.toThrow(TypeError);
    await expect(Scannable.fromIterable(schema, batches, { rescannable: true })).resolves.toMatchObject({
      rescannable: true,
    });
    await expect(Scannable.fromRecordBatchReader(reader, { rescannable: true })).rejects.toThrow(TypeError);
    await expect(Scannable.fromTable(table, { rescannable: false })).rejects.toThrow(TypeError);
    await expect(Scannable.fromTable(table, { numRows: 3 })).rejects.toThrow(/does not match table.numRows \(2\)/);
    await expect(Scannable.fromFactory(schema, iterator, { numRows: 1.5 })).rejects.toThrow(/must be an integer/);
    await expect(drain(await Scannable.fromFactory(schema, () => null as never))).rejects.toThrow(/non-iterable/);
    await expect(drain(await Scannable.fromFactory(schema, () => [{ a: 1 }] as never))).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    });
  });

  it('refuses what is no data', async () => {
    for (const data of [5, 'text', null, {}, [1], new Uint8Array([1, 2, 3])]) {
      await expect(drain(data as never), String(data)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    }
    await expect(drain([].values())).rejects.toMatchObject({ message: /At least one record/ });
  });

  it('takes Arrow of another copy of the library by its shape', async () => {
    const rows = [
      { i: 1n, s: 'a', b: true, v: [1, 2], st: { x: 1 }, l: ['p', null], d: new Date(7) },
      { i: null, s: null, b: null, v: null, st: null, l: null, d: null },
      { i: 3n, s: 'c', b: false, v: [3, 4], st: { x: null }, l: [], d: new Date(9) },
      { i: 4n, s: 'd', b: true, v: [5, 6], st: { x: 4 }, l: ['q'], d: new Date(10) },
    ];
    const schema = schemaOf(
      field('i', new arrow.Int64()),
      field('s', new arrow.Dictionary(new arrow.Utf8(), new arrow.Int8())),
      field('b', new arrow.Bool()),
      field('v', new arrow.FixedSizeList(2, field('item', new arrow.Float32()))),
      field('st', new arrow.Struct([field('x', new arrow.Int16())])),
      field('l', new arrow.List(field('item', new arrow.Utf8()))),
      field('d', new arrow.TimestampMicrosecond()),
    );
    // Sliced, so that offsets count; and through a shape that shares no class with our copy.
    const original = makeArrowTable(rows, { schema }).batches[0]?.slice(1, 4) as arrow.RecordBatch;
    const foreign = { schema: alien(original.schema), batches: [alien(original)] } as unknown as TableData;
    expect(isArrowTableLike(foreign)).toBe(true);
    const { table } = await drain(foreign);
    expect(types(table)).toEqual(types(new arrow.Table([original])));
    for (const { name } of schema.fields) {
      const expected = Array.from(new arrow.Table([original]).getChild(name) ?? [], plain);
      expect(column(table, name), name).toEqual(expected);
    }
    expect(toOurBatch(original).schema.fields[0]?.nullable).toBe(true);
  });

  it('carries a schema and its metadata as bytes', () => {
    const schema = new arrow.Schema([field('a', new arrow.Int32(), false)], new Map([['k', 'v']]));
    const back = decodeSchema(encodeSchema(schema));
    expect(back.metadata.get('k')).toBe('v');
    expect(back.fields[0]).toMatchObject({ name: 'a', nullable: false });
    expect(decodeBatches(encodeSchema(schema))).toEqual([]);
  });
});

/** A deep copy without prototypes, as another copy of the library looks to `instanceof`; buffers are shared. */
function alien(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || value instanceof Map) return value;
  if (Array.isArray(value)) return value.map(alien);
  const names = [
    'schema',
    'fields',
    'data',
    'numRows',
    'name',
    'type',
    'nullable',
    'metadata',
    'typeId',
    'children',
    'bitWidth',
  ];
  names.push(
    'isSigned',
    'precision',
    'scale',
    'unit',
    'timezone',
    'byteWidth',
    'listSize',
    'dictionary',
    'indices',
    'id',
    'isOrdered',
  );
  names.push('offset', 'length', 'nullCount', 'values', 'valueOffsets', 'nullBitmap');
  const copy: Record<string, unknown> = {};
  for (const name of names) {
    if (name in value) copy[name] = alien((value as Record<string, unknown>)[name]);
  }
  return copy;
}
