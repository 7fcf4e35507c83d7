import * as arrow from 'apache-arrow';
import { beforeEach, expect, it } from 'vitest';

import { Connection } from './connection';
import { FakeEngine } from './engine/fake-engine';
import type { WireUpdate } from './engine/port';
import type { Table } from './table';

let engine: FakeEngine;
let table: Table;

const field = (name: string, type: arrow.DataType, nullable = true) => new arrow.Field(name, type, nullable);

beforeEach(async () => {
  engine = new FakeEngine();
  const schema = new arrow.Schema([
    field('id', new arrow.Int64(), false),
    field('n', new arrow.Int32()),
    field('s', new arrow.Utf8()),
    field('at', new arrow.TimestampMillisecond()),
    field('vector', new arrow.FixedSizeList(2, field('item', new arrow.Float32()))),
    field('bytes', new arrow.Binary()),
    field(
      'st',
      new arrow.Struct([field('a', new arrow.Int64()), field('tags', new arrow.List(field('item', new arrow.Utf8())))]),
    ),
    field('values', new arrow.Int32()),
  ]);
  table = await new Connection(engine, 'memory://t').createEmptyTable('t', schema);
});

const asked = (): WireUpdate => {
  const [update] = engine.updates.splice(0);
  if (update === undefined) throw new Error('nothing was asked for');
  return update;
};

const row = ({ values }: WireUpdate): unknown => {
  const [first] = arrow.tableFromIPC(values).toArray() as { toJSON(): unknown }[];
  return JSON.parse(
    JSON.stringify(first, (_, value: unknown) =>
      typeof value === 'bigint'
        ? `${value}n`
        : value instanceof Uint8Array || value instanceof Float32Array
          ? [...value]
          : value,
    ),
  );
};

it('takes expressions as options, as a record and as a map', async () => {
  const result = await table.update({ valuesSql: { n: 'n + 1', s: "'x'" }, where: 'id = 1' });
  expect(result).toEqual({ rowsUpdated: 2, version: 2 });
  expect(asked()).toEqual({ filter: 'id = 1', columns: ['n', 's'], expressions: ['n + 1', "'x'"] });
  await table.update({ valuesSql: new Map([['n', '1']]) });
  expect(asked()).toEqual({ columns: ['n'], expressions: ['1'] });
  await table.update({ n: 'n * 2' }, { where: 'n > 5' });
  expect(asked()).toEqual({ filter: 'n > 5', columns: ['n'], expressions: ['n * 2'] });
  await table.update(new Map([['n', 'n * 2']]));
  expect(asked()).toEqual({ columns: ['n'], expressions: ['n * 2'] });
});

it('takes a column that is called as an option', async () => {
  await table.update({ values: 'values + 1' });
  expect(asked()).toEqual({ columns: ['values'], expressions: ['values + 1'] });
  await table.update({ values: { values: 5 } });
  expect(row(asked())).toEqual({ values: 5 });
});

it('sends values as their columns have them, and loses nothing', async () => {
  await table.update({
    values: {
      id: 9007199254740993n,
      n: -7,
      s: 'it\'s "5" \u0000',
      at: new Date(1_700_000_000_123),
      vector: new Float32Array([1.5, 2]),
      bytes: new Uint8Array([1, 2, 255]),
      st: { a: 5n, tags: ['a', null] },
    },
    where: 'id = 1',
  });
  const update = asked();
  expect({ ...update, values: undefined }).toEqual({ filter: 'id = 1', columns: [], expressions: [] });
  expect(row(update)).toEqual({
    id: '9007199254740993n',
    n: -7,
    s: 'it\'s "5" \u0000',
    at: 1_700_000_000_123,
    vector: [1.5, 2],
    bytes: [1, 2, 255],
    st: { a: '5n', tags: ['a', null] },
  });
  await table.update({ values: new Map<string, unknown>([['s', null]]), valuesSql: { n: '1' } });
  const both = asked();
  expect(both.columns).toEqual(['n']);
  expect(row(both)).toEqual({ s: null });
});

it.each([
  [{}, 'INVALID_INPUT', /at least one column must be specified in an update operation/],
  [new Map(), 'INVALID_INPUT', /at least one column/],
  [{ values: {} }, 'INVALID_INPUT', /at least one column/],
  [undefined, 'INVALID_INPUT', /needs the new values/],
  [{ n: 5 }, 'INVALID_INPUT', /the expression of n must be a string, found number/],
  [{ values: { n: undefined } }, 'INVALID_INPUT', /Unsupported value type: undefined/],
  [{ values: { n: () => 1 } }, 'INVALID_INPUT', /Unsupported value type: function/],
  [{ values: { nope: 1 } }, 'INVALID_INPUT', /Column 'nope' does not exist in dataset schema; there are \w+, /],
  [{ values: { 'st.a': 1 } }, 'NOT_SUPPORTED', /single member of a struct/],
  [{ values: { n: 1 }, where: 5 }, 'INVALID_INPUT', /where must be a string/],
  [{ values: { n: 1.6 } }, 'SCHEMA', /column "n", row 0/],
  [{ values: { n: '7' } }, 'SCHEMA', /column "n", row 0/],
  [{ values: { n: 3e9 } }, 'SCHEMA', /column "n", row 0/],
  [{ values: { vector: [1, 2, 3] } }, 'SCHEMA', /vector/],
  [{ values: { id: null } }, 'SCHEMA', /'id' is declared as non-nullable/],
  [{ values: { st: { b: 1 } } }, 'SCHEMA', /st\.b/],
])('refuses %o before anything is sent', async (given, code, message) => {
  await expect(table.update(given as never)).rejects.toMatchObject({ code, message });
  expect(engine.updates).toEqual([]);
});

it('says so when the table is closed', async () => {
  await table.close();
  await expect(table.update({ n: '1' })).rejects.toMatchObject({ code: 'CLOSED' });
});
