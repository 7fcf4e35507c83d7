import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as lancelet from '../../src/node';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-update-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const field = (name: string, type: arrow.DataType, nullable = true) => new arrow.Field(name, type, nullable);
const schema = new arrow.Schema([
  field('id', new arrow.Int64(), false),
  field('n', new arrow.Int32()),
  field('f', new arrow.Float64()),
  field('s', new arrow.Utf8()),
  field('at', new arrow.TimestampMillisecond()),
  field('vector', new arrow.FixedSizeList(3, field('item', new arrow.Float32()))),
  field('tags', new arrow.List(field('item', new arrow.Utf8()))),
  field(
    'st',
    new arrow.Struct([field('a', new arrow.Int64()), field('in', new arrow.Struct([field('c', new arrow.Utf8())]))]),
  ),
  field('bytes', new arrow.Binary()),
]);

type Cells = Record<string, unknown>;

/** Rows of which every seventh is null in all columns but the first; in data format 2.0 a struct is never null. */
const rows = (from: number, to: number, version = '2.2'): Cells[] =>
  Array.from({ length: to - from }, (_, k) => {
    const i = from + k;
    const [nullStruct, nullInner] = version === '2.0' ? [{ a: null, in: { c: null } }, { c: null }] : [null, null];
    if (i % 7 === 3)
      return {
        id: BigInt(i),
        n: null,
        f: null,
        s: null,
        at: null,
        vector: null,
        tags: null,
        st: nullStruct,
        bytes: null,
      };
    return {
      id: BigInt(i),
      n: i * 10,
      f: i / 2,
      s: `row ${i}`,
      at: 1_700_000_000_000 + i,
      vector: [i, i + 0.5, -i],
      tags: i % 3 === 0 ? [] : [`t${i}`, null],
      st: { a: BigInt(i), in: i % 2 === 0 ? nullInner : { c: `c${i}` } },
      bytes: Buffer.from([i & 255, 7]),
    };
  });

/** A value as plain data, whichever library gave it. */
const plain = (value: unknown): unknown => {
  if (value === null || value === undefined) return null;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object') return value;
  if (value instanceof Uint8Array || value instanceof Float32Array) return [...value];
  const json = (value as { toJSON?: () => unknown }).toJSON?.() ?? value;
  if (Array.isArray(json)) return json.map(plain);
  return Object.fromEntries(Object.entries(json as Cells).map(([key, item]) => [key, plain(item)]));
};

interface Readable {
  query(): { toArrow(): Promise<{ toArray(): unknown[] }> };
}

/** All rows as plain data, in the order of their ids. */
async function read(table: unknown): Promise<Cells[]> {
  const all = (await (table as Readable).query().toArrow()).toArray().map((row) => plain(row) as Cells);
  return all.sort((a, b) => parseInt(String(a['id']), 10) - parseInt(String(b['id']), 10));
}

/** The rows with changes made to some of them. */
const changed = (before: Cells[], matches: (id: number) => boolean, change: (row: Cells) => Cells): Cells[] =>
  before.map((row) => (matches(parseInt(String(row['id']), 10)) ? { ...row, ...change(row) } : row));

describe.each(['2.0', '2.1', '2.2'])('data format %s', (version) => {
  const storageOptions = { newTableDataStorageVersion: version };
  // As Arrow: LanceDB's own conversion of rows does not know a null struct in a struct.
  const data = (from: number, to: number): arrow.Table => lancelet.makeArrowTable(rows(from, to, version), { schema });

  test('a table of LanceDB is updated here, LanceDB reads it, updates it, and it is read here again', async () => {
    const name = `theirs-${version.replace('.', '')}`;
    const theirs = await (await lancedb.connect(folder)).createTable(name, data(0, 60), { storageOptions });
    await theirs.add(data(60, 100));
    const ours = await (await lancelet.connect(folder)).openTable(name);
    let expected = await read(theirs);

    expect(await ours.update({ valuesSql: { n: 'n + 1', s: "upper(s) || '!'" }, where: 'id % 10 = 4' })).toEqual({
      rowsUpdated: 10,
      version: 3,
    });
    expected = changed(
      expected,
      (id) => id % 10 === 4,
      ({ n, s }) => ({
        n: n === null ? null : (n as number) + 1,
        s: s === null ? null : `${(s as string).toUpperCase()}!`,
      }),
    );
    const values = {
      vector: new Float32Array([7, 8, 9]),
      tags: ['new', null],
      st: { a: 9007199254740993n, in: { c: 'x' } },
      bytes: new Uint8Array([9]),
      at: new Date(1_800_000_000_000),
    };
    expect(await ours.update({ values, where: 'id >= 50 and id < 70' })).toEqual({ rowsUpdated: 20, version: 4 });
    expected = changed(
      expected,
      (id) => id >= 50 && id < 70,
      () => ({
        vector: [7, 8, 9],
        tags: ['new', null],
        st: { a: '9007199254740993n', in: { c: 'x' } },
        bytes: [9],
        at: 1_800_000_000_000,
      }),
    );
    expect(await ours.update({ values: { s: null }, where: 'id = 1' })).toEqual({ rowsUpdated: 1, version: 5 });
    expected = changed(
      expected,
      (id) => id === 1,
      () => ({ s: null }),
    );
    expect(await ours.update({ n: '0' }, { where: 'id = 5000' })).toEqual({ rowsUpdated: 0, version: 6 });
    expect(await read(ours)).toEqual(expected);

    await theirs.checkoutLatest();
    expect(await theirs.version()).toBe(6);
    expect(await read(theirs)).toEqual(expected);
    expect(await theirs.update({ valuesSql: { f: 'f * 2' }, where: 'id < 60' })).toEqual({
      rowsUpdated: 60,
      version: 7,
    });
    await theirs.delete('id = 2');
    expected = changed(
      expected,
      (id) => id < 60,
      ({ f }) => ({ f: f === null ? null : (f as number) * 2 }),
    );
    expected = expected.filter(({ id }) => id !== '2n');
    await ours.checkoutLatest();
    expect(await read(ours)).toEqual(expected);
    await theirs.optimize();
    expect(await read(theirs)).toEqual(expected);
    expect(await ours.update({ valuesSql: { n: 'cast(id as int)' } })).toMatchObject({ rowsUpdated: 99 });
    expected = changed(
      expected,
      () => true,
      ({ id }) => ({ n: parseInt(String(id), 10) }),
    );
    await theirs.checkoutLatest();
    expect(await read(theirs)).toEqual(expected);
  });

  test('a table from here is updated here and by LanceDB in turn', async () => {
    const name = `ours-${version.replace('.', '')}`;
    const ours = await (await lancelet.connect(folder)).createTable(name, data(0, 50), { storageOptions });
    await ours.delete('id = 3');
    await ours.update({ valuesSql: { f: 'f + n', tags: 'null' }, where: 'n is not null and id > 20' });
    let expected = await read(ours);
    const theirs = await (await lancedb.connect(folder)).openTable(name);
    expect(await read(theirs)).toEqual(expected);
    await theirs.update({ values: { s: 'theirs' }, where: 'id > 10 and id < 30' });
    expected = changed(
      expected,
      (id) => id > 10 && id < 30,
      () => ({ s: 'theirs' }),
    );
    await ours.checkoutLatest();
    expect(await read(ours)).toEqual(expected);
    await ours.update({ s: "replace(s, 'theirs', 'ours')" });
    expected = changed(
      expected,
      (id) => id > 10 && id < 30,
      () => ({ s: 'ours' }),
    );
    await theirs.checkoutLatest();
    expect(await read(theirs)).toEqual(expected);
  });
});

test('what does not fit is an error that names the column, and the table stays as it was', async () => {
  const table = await (await lancelet.connect(folder)).createTable('refused', rows(0, 10), { schema });
  const before = await read(table);
  const refused = async (values: Parameters<typeof table.update>[0], code: string, message: RegExp): Promise<void> =>
    expect(table.update(values)).rejects.toMatchObject({ code, message });
  await refused({ n: 'n * 2000000000' }, 'INVALID_INPUT', /does not fit Int32 at row 1/);
  await refused({ n: 'n / 0' }, 'INVALID_INPUT', /division by zero at row 0/);
  await refused({ n: '1.5' }, 'SCHEMA', /column "n" at row 0/);
  await refused({ n: "'7'" }, 'SCHEMA', /column "n"/);
  await refused({ id: 'null' }, 'SCHEMA', /column "id" takes no nulls/);
  await refused({ vector: '[1, 2]' }, 'INVALID_INPUT', /expected 3 items, found 2/);
  await refused({ values: { vector: [1, 2] } }, 'SCHEMA', /vector/);
  await refused({ nope: '1' }, 'INVALID_INPUT', /Column 'nope' does not exist/);
  await refused({ n: 'nope' }, 'INVALID_INPUT', /no field named "nope"/);
  expect(await table.version()).toBe(1);
  expect(await read(table)).toEqual(before);
});

test('updates of one row at once on one handle and on many all count', async () => {
  const db = await lancelet.connect(folder);
  const table = await db.createTable('counted', [{ id: 1n, n: 0n }]);
  const handles = await Promise.all(Array.from({ length: 4 }, () => db.openTable('counted')));
  const results = await Promise.all(
    [table, table, table, table, ...handles].map((handle) => handle.update({ n: 'n + 1' }, { where: 'id = 1' })),
  );
  expect(results.map(({ rowsUpdated }) => rowsUpdated)).toEqual(Array<number>(8).fill(1));
  expect(results.map((result) => result.version).sort((a, b) => a - b)).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
  const theirs = await (await lancedb.connect(folder)).openTable('counted');
  expect(await read(theirs)).toEqual([{ id: '1n', n: '8n' }]);
});
