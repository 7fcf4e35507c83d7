/** Reads over a table whose rows LanceDB has in its log and its generations: what it reads itself is read here. */

import { readdirSync, truncateSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import type * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';
import { expect, test } from 'vitest';

import type * as lancelet from '../../src/node';
import { buildTable, dictionaryOf, field, fixedListOf, listOf, structOf, type Value } from './build';
import { makerOf } from './makers';
import { Random } from './random';
import { folder, ours, theirs } from './shared-folder';
import { columnTexts } from './values';

type Row = { id: bigint; text: string };
type Tables = { mine: lancelet.Table; native: lancedb.Table };

const schema = new arrow.Schema([field('id', new arrow.Int64(), false), field('text', new arrow.Utf8())]);
const row = (id: number, text: string): Row => ({ id: BigInt(id), text });

/** Six rows below a spec, in both libraries. */
async function filled(name: string, spec: lancelet.LsmWriteSpec, of = schema): Promise<Tables> {
  const mine = await ours.createEmptyTable(name, of, { primaryKey: 'id' });
  await mine.add([0, 1, 2, 3, 4, 5].map((id) => row(id, `base${id}`)));
  await mine.setLsmWriteSpec(spec);
  return { mine, native: await theirs.openTable(name) };
}

async function upsert(table: lancedb.Table, rows: lancedb.Data): Promise<void> {
  await table.mergeInsert('id').whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(rows);
}

async function contents(query: lancedb.Query | lancelet.Query): Promise<string[]> {
  return ((await query.toArray()) as Row[]).map(({ id, text }) => `${id} ${text}`).sort();
}

/** Two generations and what is in the log only. */
async function layered(name: string): Promise<Tables> {
  const tables = await filled(name, { specType: 'unsharded' });
  const { native } = tables;
  await upsert(native, [row(1, 'one'), row(6, 'one'), row(1, 'one again')]);
  await native.closeLsmWriters();
  await upsert(native, [row(2, 'two'), row(6, 'two')]);
  await native.closeLsmWriters();
  await upsert(native, [row(3, 'log'), row(6, 'log'), row(7, 'log')]);
  await upsert(native, [row(3, 'log again')]);
  return tables;
}

const LAYERED = ['0 base0', '1 one again', '2 two', '3 log again', '4 base4', '5 base5', '6 log', '7 log'];

test('the newest row of each key is read, whatever is asked', async () => {
  const { mine, native } = await layered('layered');
  expect(await contents(native.query())).toEqual(LAYERED);
  expect(await contents(mine.query())).toEqual(LAYERED);
  expect(await mine.countRows()).toBe(8);
  for (const filter of ["text = 'base1'", "text like '%again'", 'id = 6', 'id in (0, 3, 9)', "text = 'log'"]) {
    const expected = await contents(native.query().where(filter));
    expect(await contents(mine.query().where(filter)), filter).toEqual(expected);
    expect(await mine.countRows(filter), filter).toBe(expected.length);
  }
  expect((await mine.query().limit(3).offset(6).toArray()).length).toBe(2);
  // These LanceDB cannot do over its log.
  expect(await mine.query().select({ twice: 'id * 2' }).where('id = 7').toArray()).toMatchObject([{ twice: 14n }]);
  const all = (await mine.query().withRowId().toArray()) as (Row & { _rowid: bigint })[];
  expect((await mine.takeOffsets([0, 7]).toArray()).map(({ text }) => text as string)).toEqual([
    all[0]?.text,
    all[7]?.text,
  ]);
  const ids = all.filter(({ id }) => id > 5n).map(({ _rowid }) => _rowid);
  expect((await mine.takeRowIds(ids).toArray()).map(({ id }) => id as bigint)).toEqual([6n, 7n]);
  expect(await contents(mine.query().useLsm(false))).toEqual([0, 1, 2, 3, 4, 5].map((id) => `${id} base${id}`));
});

test('rows of a writer that never closed are read by whoever opens the table', async () => {
  const { native } = await layered('open_writer');
  // LanceDB itself reads of another handle's log nothing.
  const other = await theirs.openTable('open_writer');
  expect(await contents(other.query().where('id > 5'))).toEqual(['6 two']);
  expect(await contents((await ours.openTable('open_writer')).query())).toEqual(LAYERED);
  await native.closeLsmWriters();
  expect(await contents((await ours.openTable('open_writer')).query())).toEqual(LAYERED);
});

test('buckets are read together, with keys of text', async () => {
  const of = new arrow.Schema([field('id', new arrow.Utf8(), false), field('n', new arrow.Int32())]);
  const mine = await ours.createEmptyTable('buckets', of, { primaryKey: 'id' });
  const key = (n: number): string => `key ${n}`;
  await mine.add(Array.from({ length: 20 }, (_, n) => ({ id: key(n), n })));
  await mine.setLsmWriteSpec({ specType: 'bucket', column: 'id', numBuckets: 3 });
  const native = await theirs.openTable('buckets');
  for (let n = 10; n < 30; n++) {
    await upsert(native, [{ id: key(n), n: n + 100 }]);
    await native.closeLsmWriters();
  }
  const stats = await mine.getLsmStats();
  expect(stats?.buckets.filter(({ generations }) => generations.length > 0).length).toBe(3);
  const found = (await mine.query().toArray()) as { id: string; n: number }[];
  const expected = Array.from({ length: 30 }, (_, n) => `${key(n)} ${n < 10 ? n : n + 100}`).sort();
  expect(found.map(({ id, n }) => `${id} ${n}`).sort()).toEqual(expected);
});

test('values of every kind of type are those that LanceDB reads', async () => {
  const types: readonly arrow.DataType[] = [
    new arrow.Bool(),
    new arrow.Int8(),
    new arrow.Uint64(),
    new arrow.Float64(),
    new arrow.Decimal(2, 20, 128),
    new arrow.DateDay(),
    new arrow.Timestamp(arrow.TimeUnit.MICROSECOND, 'UTC'),
    new arrow.Utf8(),
    new arrow.Binary(),
    new arrow.FixedSizeBinary(5),
    fixedListOf(4, new arrow.Float32()),
    listOf(new arrow.Utf8()),
    listOf(structOf(field('a', new arrow.Int32()), field('b', listOf(new arrow.Int16())))),
    structOf(field('name', new arrow.Utf8()), field('deep', structOf(field('x', new arrow.Float32())))),
    dictionaryOf(new arrow.Utf8(), new arrow.Int8()),
  ];
  const fields = types.map((type, n) => field(`c${n}`, type));
  const of = new arrow.Schema([field('id', new arrow.Int64(), false), ...fields]);
  const random = new Random(11);
  const makers = fields.map((each) => makerOf(each, random, { nulls: 0.2 }));
  const made = (from: number, to: number): arrow.Table => {
    const ids: Value[] = Array.from({ length: to - from }, (_, n) => BigInt(from + n));
    return buildTable(of, [[ids, ...makers.map((make) => ids.map(() => make()))]]);
  };
  const mine = await ours.createTable('types', made(0, 30), { primaryKey: 'id' });
  await mine.setLsmWriteSpec({ specType: 'unsharded' });
  const native = await theirs.openTable('types');
  await upsert(native, made(10, 40));
  await native.closeLsmWriters();
  await upsert(native, made(20, 50));
  const read = (table: arrow.Table): string[] => {
    const columns = of.fields.map(({ name }) => columnTexts(table, name));
    return (columns[0] ?? []).map((_, at) => columns.map((column) => column[at]).join(' ')).sort();
  };
  const expected = read(await native.query().toArrow());
  expect(expected.length).toBe(50);
  expect(read(await mine.query().toArrow())).toEqual(expected);
});

test('what is cut off at the end of the log is no row, and a hole is corrupt', async () => {
  const { mine } = await layered('torn');
  const shard = join(folder, 'torn.lance', '_mem_wal', readdirSync(join(folder, 'torn.lance', '_mem_wal'))[0] ?? '');
  const entries = readdirSync(join(shard, 'wal')).map((name) => ({
    name,
    place: parseInt([...name.slice(0, 64)].reverse().join(''), 2),
  }));
  entries.sort((a, b) => a.place - b.place);
  const [before, last] = entries.slice(-2).map(({ name }) => join(shard, 'wal', name));
  truncateSync(last ?? '', 100);
  expect(await contents(mine.query().where('id = 3'))).toEqual(['3 log']);
  truncateSync(before ?? '', 100);
  await expect(mine.query().toArray()).rejects.toMatchObject({ code: 'CORRUPT' });
  rmSync(before ?? '');
  await expect(mine.countRows()).rejects.toMatchObject({ code: 'CORRUPT', message: /hole/ });
});
