/** Stable row ids beside LanceDB: ids and versions of every row after each operation, by ours and by theirs. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as lancelet from '../../src/node';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-row-ids-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const schema = new arrow.Schema([
  new arrow.Field('id', new arrow.Int64(), false),
  new arrow.Field('v', new arrow.Utf8(), true),
]);
const rows = (from: number, to: number): { id: bigint; v: string }[] =>
  Array.from({ length: to - from }, (_, i) => ({ id: BigInt(from + i), v: `v${from + i}` }));

type Table = lancelet.Table;

/** `id`, `v`, `_rowid`, created at, last updated at of every row, by id. */
async function lineage(table: Table): Promise<string[]> {
  const columns = ['id', 'v', '_rowid', '_row_created_at_version', '_row_last_updated_at_version'];
  const found = await table.query().select(columns).toArray();
  return found.map((row) => columns.map((name) => String((row as Record<string, unknown>)[name])).join(' ')).sort();
}

const upsert = (table: Table, ids: readonly bigint[]): Promise<unknown> =>
  table
    .mergeInsert('id')
    .whenMatchedUpdateAll()
    .whenNotMatchedInsertAll()
    .execute(ids.map((id) => ({ id, v: `m${id}` })));

/** Each is done by ours on a table of ours, and by LanceDB on one of its own. */
const STEPS: readonly { what: string; run: (table: Table) => Promise<unknown> }[] = [
  { what: 'add', run: (table) => table.add(rows(10, 14)) },
  { what: 'delete', run: (table) => table.delete('id in (1, 12)') },
  { what: 'upsert', run: (table) => upsert(table, [4n, 100n, 2n, 101n, 13n]) },
  {
    what: 'update',
    run: (table) => table.update({ where: 'id in (3, 5, 11, 100)', values: { v: 'u' } }),
  },
  { what: 'insert', run: (table) => table.mergeInsert('id').whenNotMatchedInsertAll().execute(rows(98, 104)) },
  { what: 'optimize', run: (table) => table.optimize() },
  { what: 'delete after a compaction', run: (table) => table.delete('id in (5, 102)') },
  { what: 'upsert after a compaction', run: (table) => upsert(table, [101n, 0n, 6n, 200n]) },
  {
    what: 'delete by source',
    run: (table) =>
      table
        .mergeInsert('id')
        .whenMatchedUpdateAll()
        .whenNotMatchedBySourceDelete({ where: 'id > 99' })
        .execute(rows(101, 102)),
  },
  {
    what: 'update after a compaction',
    run: (table) => table.update({ where: 'id < 4', valuesSql: { v: "v || '!'" } }),
  },
  { what: 'add a column', run: (table) => table.addColumns([{ name: 'w', valueSql: 'id * 2' }]) },
  { what: 'cast a column', run: (table) => table.alterColumns([{ path: 'w', dataType: 'int32' }]) },
  { what: 'update beside another data file', run: (table) => table.update({ where: 'id = 6', valuesSql: { w: '0' } }) },
  { what: 'drop a column', run: (table) => table.dropColumns(['w']) },
  { what: 'optimize again', run: (table) => table.optimize() },
  {
    what: 'restore',
    run: async (table) => {
      await table.checkout(3);
      await table.restore();
    },
  },
  { what: 'add after a restore', run: (table) => table.add(rows(300, 303)) },
  { what: 'optimize after a restore', run: (table) => table.optimize() },
  { what: 'update of every row', run: (table) => table.update({ values: { v: 'all' } }) },
  { what: 'overwrite', run: (table) => table.add(rows(0, 3), { mode: 'overwrite' }) },
  { what: 'add after an overwrite', run: (table) => table.add(rows(3, 5)) },
];

describe.each([['2.0'], ['2.1'], ['2.2']])('stable row ids, format %s', (version) => {
  const storageOptions = { newTableDataStorageVersion: version, newTableEnableStableRowIds: 'true' };
  const name = `t${version.replace('.', '')}`;

  test('t26 t27: ids and versions are those of LanceDB after every operation', async () => {
    const [db, lance] = [await lancelet.connect(folder, { storageOptions }), await lancedb.connect(folder)];
    const ours = await db.createTable(`${name}_ours`, rows(0, 10), { schema });
    const theirs = (await lance.createTable(`${name}_theirs`, rows(0, 10) as never, {
      schema,
      storageOptions,
    })) as unknown as Table;
    for (const { what, run } of STEPS) {
      await run(ours);
      await run(theirs);
      const other = (await lance.openTable(`${name}_ours`)) as unknown as Table;
      const expected = await lineage(theirs);
      expect(await lineage(ours), `${what}: ours, read by us`).toEqual(expected);
      expect(await lineage(other), `${what}: ours, read by LanceDB`).toEqual(expected);
      const read = await db.openTable(`${name}_theirs`);
      expect(await lineage(read), `${what}: theirs, read by us`).toEqual(expected);
      await read.close();
    }
  }, 120_000);

  test('t27: ids and versions are those of LanceDB alone where the two take turns on one table', async () => {
    const [db, lance] = [await lancelet.connect(folder, { storageOptions }), await lancedb.connect(folder)];
    for (const first of [0, 1]) {
      const mixed = `${name}_turns_${first}`;
      const options = { schema, storageOptions };
      if (first === 0) await db.createTable(mixed, rows(0, 10), options);
      else await lance.createTable(mixed, rows(0, 10) as never, options);
      const alone = (await lance.createTable(`${mixed}_alone`, rows(0, 10) as never, options)) as unknown as Table;
      for (const [at, { what, run }] of STEPS.entries()) {
        const isOurs = at % 2 === first;
        const table = isOurs ? await db.openTable(mixed) : ((await lance.openTable(mixed)) as unknown as Table);
        await run(table);
        await run(alone);
        const expected = await lineage(alone);
        const text = `${what}, by ${isOurs ? 'us' : 'LanceDB'}`;
        expect(await lineage(await db.openTable(mixed)), `${text}, read by us`).toEqual(expected);
        const native = (await lance.openTable(mixed)) as unknown as Table;
        expect(await lineage(native), `${text}, read by LanceDB`).toEqual(expected);
      }
    }
  }, 120_000);

  test('rows are taken by id here and there', async () => {
    const db = await lancelet.connect(folder);
    const ours = await db.openTable(`${name}_ours`, { version: 8 });
    const theirs = await (await lancedb.connect(folder)).openTable(`${name}_theirs`);
    await theirs.checkout(8);
    const wanted = [0n, 4n, 14n, 11n, 4n, 999n, 13n];
    const taken = async (table: Table): Promise<string[]> => {
      const found = await table.takeRowIds(wanted).select(['id', '_rowid', 'v']).toArray();
      return found.map((row) => `${String(row['id'])} ${String(row['_rowid'])} ${String(row['v'])}`).sort();
    };
    expect(await taken(ours)).toEqual(await taken(theirs as unknown as Table));
    expect((await taken(ours)).length).toBe(5);
  });
});

test('a table without the option has row addresses for ids, and a wrong value is told', async () => {
  const db = await lancelet.connect(folder);
  const table = await db.createTable('plain', rows(0, 2), { schema });
  await table.mergeInsert('id').whenMatchedUpdateAll().execute(rows(0, 1));
  expect(await lineage(table)).toEqual([`0 v0 ${1n << 32n} 1 1`, '1 v1 1 1 1']);
  const storageOptions = { new_table_enable_stable_row_ids: 'yes' };
  await expect(db.createTable('x', rows(0, 1), { storageOptions })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: /enable_stable_row_ids must be a boolean, received yes/,
  });
});
