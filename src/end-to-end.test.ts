import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import init from '../wasm/pkg/lancelet.js';
import { connect, makeArrowTable, type Connection, type Table } from './node';

let folder: string;
let db: Connection;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-'));
  db = await connect(folder);
});

afterAll(async () => {
  await db.close();
  rmSync(folder, { recursive: true, force: true });
});

const json = async (table: Table, filter?: string): Promise<unknown[]> => {
  const query = filter === undefined ? table.query() : table.query().where(filter);
  return query.toArray({ plainObjects: true });
};

describe('rows that are taken', () => {
  it('are those that LanceDB takes, in its order', async () => {
    const ours = await db.createTable('taken', makeArrowTable([0, 1, 2, 3].map((id) => ({ id }))));
    await ours.add([{ id: 4 }, { id: 5 }]);
    await ours.delete('id = 1');
    const theirs = await (await lancedb.connect(folder)).openTable('taken');
    const ids = (table: arrow.Table): unknown[] => [...(table.getChild('id') ?? [])];
    for (const offsets of [[3, 0, 3], [], [4, 1], [0, 1, 2, 3, 4]]) {
      const [own, other] = [await ours.takeOffsets(offsets).toArrow(), await theirs.takeOffsets(offsets).toArrow()];
      expect(ids(own), String(offsets)).toEqual(ids(other));
      expect(own.numRows).toBe(offsets.length);
    }
    const rowIds = [2n ** 32n + 1n, 0n, 3, 3];
    expect(ids(await ours.takeRowIds(rowIds).toArrow())).toEqual([0, 3, 5]);
    expect(ids(await theirs.takeRowIds(rowIds).toArrow())).toEqual([0, 3, 5]);
  });
});

describe('an expression that is wrong', () => {
  it('is named by its column, with the columns that there are', async () => {
    const table = await db.createTable('wrong', [{ id: 1, price: 2 }]);
    const update = table.update({ valuesSql: { id: '1', price: 'quantity * 2' } });
    const fields = 'no field named "quantity"; there are id, price';
    await expect(update).rejects.toThrow(`column "price": Invalid expression at character 1: ${fields}`);
    const add = table.addColumns([
      { name: 'ok', valueSql: 'id + 1' },
      { name: 'bad', valueSql: 'id +' },
    ]);
    await expect(add).rejects.toThrow('column "bad": Invalid expression at character 5: expected a column');
    await expect(table.countRows('id in (select id from wrong)')).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
      message: 'not supported: a subquery in an expression (character 8)',
    });
  });
});

describe('a selected expression', () => {
  const rows = [
    { id: 1, s: 'ab', st: { b: 1, C: 2 }, v: [1, 2] },
    { id: 2, s: 'cde', st: { b: 3, C: null }, v: [3, 4] },
    { id: 3, s: null, st: null, v: [5, 6] },
  ];

  it('has the name, the place, the type and the values that it has in LanceDB', async () => {
    const ours = await db.createTable('computed', rows);
    const theirs = await (await lancedb.connect(folder)).openTable('computed');
    const selections: readonly Record<string, string>[] = [
      { x: 'id / 2', id: 'id * 10', s: 's' },
      { st: 'ST.C + st.b', s: 's', 'id + 1': 'id + 1' },
      { n: 'character_length(s)', o: 'octet_length(s)', u: 'upper(s)', again: 'upper(s)' },
      { is: 'id > 1', like: "s like 'a%'", whole: 'cast(id as bigint)' },
    ];
    for (const selection of selections) {
      const [own, other] = await Promise.all(
        [ours, theirs].map(
          (table) => table.query().where('id < 4').select(selection).toArrow() as Promise<arrow.Table>,
        ),
      );
      const fields = (table: arrow.Table | undefined) =>
        table?.schema.fields.map(({ name, type }) => [name, `${type}`]);
      expect(fields(own)).toEqual(fields(other));
      expect(own?.toArray().map(String)).toEqual(other?.toArray().map(String));
    }
  });

  it('goes with constants, limits, row ids and given rows, and names what is wrong with it', async () => {
    const table = await db.createTable('computed2', rows);
    const query = table.query().select({ one: '1', double: 'id * 2' }).withRowId().offset(1).limit(1);
    expect(await query.toArray({ plainObjects: true })).toEqual([{ one: 1n, double: 4, _rowid: 1n }]);
    const taken = table.takeOffsets([2, 0, 2]).select({ next: 'id + 1' });
    expect(await taken.toArray({ plainObjects: true })).toEqual([{ next: 2 }, { next: 4 }, { next: 4 }]);
    const failing = table.query().select({ ok: 'id', bad: 'cast(id as tinyint) * cast(100 as tinyint)', id: 'id' });
    await expect(failing.toArray()).rejects.toThrow(/200 does not fit Int8 at row 1/);
    for (const [text, message] of [
      ['ids + 1', /"ids \+ 1".*did you mean "id"/],
      ['id +', /"id \+".*character 5/],
    ] as const) {
      await expect(table.query().select({ x: text }).toArray(), text).rejects.toMatchObject({
        message: expect.stringMatching(message),
      });
    }
  });
});

describe('a table in a folder', () => {
  it('is created, added to, queried, deleted from, and remembers its versions', async () => {
    const table = await db.createTable('people', [
      { id: 1n, name: 'Ada', vector: [0.5, 1] },
      { id: 2n, name: 'Grace', vector: [2, 3] },
    ]);
    expect(await table.version()).toBe(1);
    expect(await table.add([{ id: 3n, name: 'Edsger', vector: new Float32Array([4, 5]) }])).toEqual({ version: 2 });
    expect(await table.countRows()).toBe(3);
    expect(await json(table, 'id > 1')).toEqual([
      { id: 2n, name: 'Grace', vector: [2, 3] },
      { id: 3n, name: 'Edsger', vector: [4, 5] },
    ]);
    expect(await table.delete("name = 'Grace'")).toEqual({ numDeletedRows: 1, version: 3 });
    expect(await table.countRows('id >= 1')).toBe(2);
    const rows = await table.query().select(['name']).limit(1).offset(1).withRowId().toArray();
    expect(rows.map((row) => row.toJSON?.())).toEqual([{ name: 'Edsger', _rowid: 2n ** 32n }]);

    const versions = await table.listVersions();
    expect(versions.map(({ version, metadata }) => [version, metadata['total_rows']])).toEqual([
      [1, '2'],
      [2, '3'],
      [3, '2'],
    ]);
    expect(Math.abs((versions[2]?.timestamp.getTime() ?? 0) - Date.now())).toBeLessThan(60_000);
    await table.checkout(1);
    expect((await json(table)).length).toBe(2);
    await expect(table.add([{ id: 9n }])).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await expect(table.checkout(99)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await table.checkoutLatest();
    expect(await table.version()).toBe(3);
    await table.close();
  });

  it('is read by LanceDB, and reads what LanceDB wrote to it', async () => {
    const theirs = await lancedb.connect(folder);
    const their = await theirs.openTable('people');
    expect((await their.query().toArray()).map((row: { name: string }) => row.name)).toEqual(['Ada', 'Edsger']);
    await their.add([{ id: 4n, name: 'Barbara', vector: [6, 7] }]);
    const table = await db.openTable('people');
    expect(await json(table, 'id = 4')).toEqual([{ id: 4n, name: 'Barbara', vector: [6, 7] }]);
    expect(await table.version()).toBe(4);
    await table.close();
  });

  it('tells errors apart by code', async () => {
    await expect(db.openTable('nobody')).rejects.toMatchObject({
      code: 'TABLE_NOT_FOUND',
      message: "Table 'nobody' was not found",
    });
    await expect(db.createTable('people', [{ a: 1 }])).rejects.toMatchObject({ code: 'TABLE_EXISTS' });
    await expect(db.createTable('a b', [{ a: 1 }])).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: /Invalid table name/,
    });
    const table = await db.openTable('people');
    await expect(table.countRows('zz = 1')).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await expect(table.query().select(['zz']).toArray()).rejects.toMatchObject({ message: /zz/ });
    await expect(table.delete('')).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await table.close();
  });

  it('goes out as files and comes back in', async () => {
    const copy = await db.importTable('copy', db.exportTable('people'));
    const table = await db.openTable('people');
    expect(await json(copy)).toEqual(await json(table));
    expect(await copy.listVersions()).toHaveLength(4);
    await db.dropTable('copy');
    await expect(copy.add([{ id: 5n }])).rejects.toMatchObject({ code: 'TABLE_NOT_FOUND' });
    await expect(db.openTable('copy')).rejects.toMatchObject({ code: 'TABLE_NOT_FOUND' });
  });
});

describe('tables in memory', () => {
  it('take many operations at once', async () => {
    const memory = await connect('memory://parallel');
    const table = await memory.createTable(
      't',
      Array.from({ length: 1000 }, (_, i) => ({ i })),
    );
    await Promise.all(Array.from({ length: 8 }, (_, i) => table.add([{ i: 2000 + i }])));
    const deleted = await Promise.all(Array.from({ length: 8 }, (_, i) => table.delete(`i = ${i}`)));
    expect(deleted.map(({ numDeletedRows }) => numDeletedRows)).toEqual(Array(8).fill(1));
    expect(new Set(deleted.map(({ version }) => version)).size).toBe(8);
    const counts = await Promise.all([
      table.countRows(),
      table.countRows('i >= 2000'),
      table.toArrow(),
      table.version(),
    ]);
    expect([counts[0], counts[1], counts[2].numRows, counts[3]]).toEqual([1000, 8, 1000, 17]);
    await memory.close();
    expect(await table.countRows('i = 8')).toBe(1);
    await table.close();
  });

  it('are shared by name, and private without one', async () => {
    const [a, b] = [await connect('memory://shared'), await connect('memory://shared')];
    await a.createTable('t', [{ x: 1 }]);
    expect(await b.tableNames()).toEqual(['t']);
    expect(await (await connect('memory://')).tableNames()).toEqual([]);
  });

  it('hold every column type that rows can have', async () => {
    const f = (name: string, type: arrow.DataType): arrow.Field => new arrow.Field(name, type, true);
    const schema = new arrow.Schema([
      f('i8', new arrow.Int8()),
      f('u64', new arrow.Uint64()),
      f('f16', new arrow.Float16()),
      f('b', new arrow.Bool()),
      f('s', new arrow.Utf8()),
      f('bytes', new arrow.Binary()),
      f('day', new arrow.DateDay()),
      f('ts', new arrow.TimestampMicrosecond()),
      f('dec', new arrow.Decimal(2, 10, 128)),
      f('st', new arrow.Struct([f('a', new arrow.Int32()), f('l', new arrow.List(f('item', new arrow.Utf8())))])),
      f('v', new arrow.FixedSizeList(2, f('item', new arrow.Float32()))),
    ]);
    const rows = [
      {
        i8: -3,
        u64: 2n ** 64n - 1n,
        f16: 0.5,
        b: true,
        s: 'h\u00e9',
        bytes: new Uint8Array([0, 255]),
        day: new Date('2024-02-29'),
        ts: new Date('2024-02-29T01:02:03.004Z'),
        dec: '-12.34',
        st: { a: 1, l: ['x', null] },
        v: [1, 2],
      },
      {},
    ];
    const memory = await connect('memory://');
    const table = await memory.createTable('t', rows, { schema });
    const expected = makeArrowTable(rows, { schema });
    const found = await table.toArrow();
    for (const { name } of schema.fields) {
      const cells = (t: arrow.Table): string =>
        JSON.stringify(t.getChild(name)?.toJSON(), (_, value: unknown) =>
          typeof value === 'bigint' ? `${value}n` : value,
        );
      expect(cells(found), name).toBe(cells(expected));
    }
    await memory.close();
  });

  it('hold columns of which every value is null, booleans at any depth too', async () => {
    const bool = (name: string) => new arrow.Field(name, new arrow.Bool(), true);
    const schema = new arrow.Schema([
      new arrow.Field('id', new arrow.Int32(), false),
      bool('b'),
      new arrow.Field('s', new arrow.Struct([bool('x'), new arrow.Field('n', new arrow.Int32(), true)]), true),
      new arrow.Field('l', new arrow.List(bool('item')), true),
      new arrow.Field('f', new arrow.FixedSizeList(2, bool('item')), true),
      new arrow.Field('t', new arrow.Utf8(), true),
    ]);
    const table = await (await connect('memory://')).createEmptyTable('nulls', schema);
    await table.add([{ id: 1 }, { id: 2, b: null, s: { n: 5 }, l: [null], f: [null, null] }]);
    await table.add([{ id: 3, b: true, s: { x: false, n: null }, l: [true, null], f: [false, null], t: 'x' }]);
    expect(await table.query().toArray({ plainObjects: true })).toEqual([
      { id: 1, b: null, s: null, l: null, f: null, t: null },
      { id: 2, b: null, s: { x: null, n: 5 }, l: [null], f: [null, null], t: null },
      { id: 3, b: true, s: { x: false, n: null }, l: [true, null], f: [false, null], t: 'x' },
    ]);
  });

  it('read far more rows than a batch holds', async () => {
    const memory = await connect('memory://');
    async function* rows(): AsyncGenerator<Record<string, unknown>[]> {
      for (let part = 0; part < 10; part++) {
        yield Array.from({ length: 20_000 }, (_, i) => ({ i: part * 20_000 + i, s: `row ${part * 20_000 + i}` }));
      }
    }
    const table = await memory.createTable('t', rows());
    let next = 0;
    for await (const batch of table.query()) {
      const column = batch.getChild('i');
      for (let i = 0; i < batch.numRows; i++, next++) if (column?.get(i) !== next) throw new Error(`row ${next}`);
    }
    expect(next).toBe(200_000);
    expect(
      (await table.query().where('i in (0, 50000, 100000, 150000)').select('s').toArray()).map(
        (row) => row['s'] as string,
      ),
    ).toEqual(['row 0', 'row 50000', 'row 100000', 'row 150000']);
    await memory.close();
  });
});

describe('an engine that traps', () => {
  it('says so to whoever waits, and the next connection has another', async () => {
    const memory = await connect('memory://trap');
    const table = await memory.createTable('t', [{ x: 1 }]);
    // As if something had written over all of the engine's memory.
    const wasm = await init();
    new Uint8Array(wasm.memory.buffer).fill(0xff);
    const calls = [table.countRows(), table.add([{ x: 2 }]), memory.tableNames()];
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'INTERNAL' });
    await expect(table.version()).rejects.toMatchObject({ code: 'INTERNAL', message: /the engine stopped/ });

    const again = await connect('memory://trap');
    const reopened = await again.openTable('t');
    expect(await reopened.add([{ x: 3 }])).toEqual({ version: 2 });
    expect(await reopened.countRows()).toBe(2);
    await again.close();
  });
});
