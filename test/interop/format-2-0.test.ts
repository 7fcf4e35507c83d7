import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';
import { afterAll, beforeAll, expect, test } from 'vitest';

import * as lancelet from '../../src/node';

const OLD = { storageOptions: { newTableDataStorageVersion: '2.0' } };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-format-2-0-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Column = readonly [type: arrow.DataType, value: (i: number) => unknown, metadata?: Record<string, string>];

function tableOf(columns: Readonly<Record<string, Column>>, rows = 50): arrow.Table {
  const fields = Object.entries(columns).map(
    ([name, [type, , metadata]]) => new arrow.Field(name, type, true, new Map(Object.entries(metadata ?? {}))),
  );
  const children = Object.values(columns).map(([type, value]) => {
    const builder = arrow.makeBuilder({ type, nullValues: [null, undefined] });
    for (let i = 0; i < rows; i++) builder.append(value(i));
    return builder.finish().flush();
  });
  const schema = new arrow.Schema(fields);
  const data = arrow.makeData({ type: new arrow.Struct(fields), length: rows, nullCount: 0, children });
  return new arrow.Table(schema, [new arrow.RecordBatch(schema, data)]);
}

const shown = (table: arrow.Table): string[] =>
  table
    .toArray()
    .map((row: { toJSON(): unknown }) =>
      JSON.stringify(row.toJSON(), (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)),
    );

const field = (name: string, type: arrow.DataType): arrow.Field => new arrow.Field(name, type, true);
const list = (type: arrow.DataType): arrow.DataType => new arrow.List(field('item', type));
const vector = (type: arrow.DataType): arrow.DataType => new arrow.FixedSizeList(2, field('item', type));
const point = new arrow.Struct([field('x', new arrow.Int32()), field('y', new arrow.Float64())]);
const dictionary = (value: arrow.DataType, key: arrow.Int8 | arrow.Int16 | arrow.Int32): arrow.DataType =>
  new arrow.Dictionary(value, key);
const [text, int, bool] = [new arrow.Utf8(), new arrow.Int32(), new arrow.Bool()];

const CASES: Readonly<Record<string, Readonly<Record<string, Column>>>> = {
  dictionaries: {
    texts: [dictionary(text, new arrow.Int16()), (i) => (i % 7 ? `v${i % 5}` : null)],
    full: [dictionary(text, new arrow.Int8()), (i) => `v${i % 5}`],
    empty: [dictionary(text, new arrow.Int32()), () => null],
    longs: [dictionary(new arrow.Int64(), new arrow.Int8()), (i) => (i % 4 ? BigInt(i % 3) : null)],
    bools: [dictionary(bool, new arrow.Int32()), (i) => (i % 4 ? i % 3 === 0 : null)],
    floats: [dictionary(new arrow.Float32(), new arrow.Int32()), () => null],
  },
  packed: { packed: [point, (i) => ({ x: i, y: i / 2 }), { packed: 'true' }] },
  nulls: {
    texts: [text, () => null],
    bytes: [new arrow.Binary(), () => null],
    ints: [int, () => null],
    nothing: [new arrow.Null(), () => null],
    bools: [bool, (i) => (i % 3 ? i % 2 === 0 : null)],
    few: [text, (i) => (i % 4 ? ['red', 'green', ''][i % 3] : null)],
    blank: [text, () => ''],
    vectors: [vector(new arrow.Float32()), (i) => (i % 5 ? [i, i % 3 ? 1 : null] : null)],
    hollow: [vector(int), () => [null, null]],
  },
  lists: {
    empty: [list(text), () => []],
    absent: [list(int), () => null],
    deep: [list(list(int)), (i) => (i % 3 ? [[i], [], [1, null]] : null)],
    points: [list(point), (i) => (i % 4 ? [{ x: i, y: null }] : [])],
    bare: [list(list(text)), (i) => (i % 2 ? [] : null)],
    bools: [list(bool), (i) => [i % 2 === 0, null]],
    pointless: [list(point), () => []],
  },
  structs: {
    nested: [
      new arrow.Struct([field('in', point), field('l', list(int))]),
      (i) => ({ in: { x: i, y: null }, l: i % 2 ? [i] : null }),
    ],
  },
};

test.each(Object.keys(CASES))('%s written here are read and compacted by LanceDB', async (name) => {
  const data = tableOf(CASES[name] ?? {});
  const ours = await (await lancelet.connect(folder)).createTable(name, data, OLD);
  await ours.add(data);
  const expected = [...shown(data), ...shown(data)];
  const theirs = await (await lancedb.connect(folder)).openTable(name);
  expect(shown(await ours.toArrow())).toEqual(expected);
  expect(shown(await theirs.toArrow())).toEqual(expected);
  expect(shown(await theirs.query().offset(3).limit(60).toArrow())).toEqual(expected.slice(3, 63));
  await theirs.optimize();
  await ours.checkoutLatest();
  expect(shown(await ours.toArrow())).toEqual(expected);
});

test('columns that LanceDB added, cast and dropped are read, and rows are added to them', async () => {
  const theirs = await (
    await lancedb.connect(folder)
  ).createTable(
    'evolved',
    tableOf({ i: [int, (i) => i], s: [point, (i) => ({ x: i, y: i / 2 })], t: [text, (i) => `t${i}`] }),
    OLD,
  );
  const ours = await (await lancelet.connect(folder)).openTable('evolved');
  const areSame = async (): Promise<void> => {
    await Promise.all([ours.checkoutLatest(), theirs.checkoutLatest()]);
    expect(shown(await ours.toArrow())).toEqual(shown(await theirs.toArrow()));
  };
  await theirs.addColumns([{ name: 'j', valueSql: 'i * 2' }]);
  await areSame();
  await theirs.alterColumns([{ path: 'i', dataType: new arrow.Int64() }]);
  await areSame();
  await theirs.dropColumns(['t']);
  await areSame();
  await theirs.dropColumns(['s.x']);
  await areSame();
  await theirs.alterColumns([{ path: 's.y', rename: 'z' }]);
  await areSame();
  await ours.add(await ours.toArrow());
  expect(await ours.countRows()).toBe(100);
  await areSame();
});

test('a blob is its place, as in LanceDB, and no rows are added to its table', async () => {
  const bytes = (word: string): Uint8Array => new TextEncoder().encode(word);
  const data = tableOf(
    { b: [new arrow.LargeBinary(), (i) => [bytes('hello'), null, bytes('')][i], { 'lance-encoding:blob': 'true' }] },
    3,
  );
  const db = await lancedb.connect(folder);
  // The call below createTable, which turns away types that the engine takes.
  const { inner } = db as unknown as { inner: { createTable(...parts: unknown[]): Promise<unknown> } };
  const ipc = Buffer.from(arrow.tableToIPC(data, 'file'));
  await inner.createTable('blobs', ipc, 'create', [], { new_table_data_storage_version: '2.0' });
  const ours = await (await lancelet.connect(folder)).openTable('blobs');
  expect(shown(await ours.toArrow())).toEqual(shown(await (await db.openTable('blobs')).toArrow()));
  await expect(ours.add(data)).rejects.toMatchObject({ code: 'NOT_SUPPORTED', message: /writing blobs/ });
});
