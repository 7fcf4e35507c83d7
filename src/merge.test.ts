import * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';
import { beforeEach, describe, expect, it } from 'vitest';

import { Connection } from './connection';
import { FakeEngine } from './engine/fake-engine';
import type { Table } from './table';

let engine: FakeEngine;
let table: Table;

const schema = new arrow.Schema([
  new arrow.Field('id', new arrow.Int32(), false),
  new arrow.Field('s', new arrow.Utf8(), true),
  new arrow.Field('n', new arrow.Int32(), false),
]);

beforeEach(async () => {
  engine = new FakeEngine();
  table = await new Connection(engine, 'memory://t').createEmptyTable('t', schema);
});

const written = (): unknown[] =>
  engine.merged.flatMap((ipc) =>
    arrow
      .tableFromIPC(ipc)
      .toArray()
      .map((row: { toJSON(): unknown }) => row.toJSON()),
  );

describe('a merge insert', () => {
  it('takes key columns, actions and conditions as the builder was told', async () => {
    const rows = [{ id: 1, s: 'a', n: 2 }];
    const builder = table.mergeInsert(['id', 's']).whenMatchedUpdateAll({ where: 'target.n < 3' });
    await builder.execute(rows);
    await builder.whenNotMatchedInsertAll().whenNotMatchedBySourceDelete().execute(rows, { timeoutMs: 5 });
    await table.mergeInsert('id').whenNotMatchedBySourceDelete({ where: 'n = 1' }).execute(rows, { timeoutMs: -1 });
    expect(engine.merges).toEqual([
      { on: ['id', 's'], matchedUpdate: 'target.n < 3' },
      {
        on: ['id', 's'],
        matchedUpdate: 'target.n < 3',
        notMatchedInsert: true,
        notMatchedBySourceDelete: true,
        timeoutMs: 5,
      },
      { on: ['id'], notMatchedBySourceDelete: 'n = 1' },
    ]);
  });

  it('answers with the counts of LanceDB', async () => {
    const result = await table
      .mergeInsert('id')
      .whenMatchedUpdateAll()
      .execute([{ id: 1, s: 'a', n: 2 }]);
    expect(result).toEqual({
      version: 2,
      numInsertedRows: 1,
      numUpdatedRows: 2,
      numDeletedRows: 3,
      numAttempts: 4,
      numRows: 3,
    });
  });

  it('hands over only the columns that some row has', async () => {
    const merge = table.mergeInsert('id').whenMatchedUpdateAll();
    await merge.execute([{ id: 1 }, { id: 2, s: 'x' }]);
    expect(written()).toEqual([
      { id: 1, s: null },
      { id: 2, s: 'x' },
    ]);
    engine.merged.length = 0;
    const parts = async function* (): AsyncGenerator<Record<string, unknown>> {
      yield { id: 3 };
      yield { id: 4 };
    };
    await merge.execute(parts());
    expect(written()).toEqual([{ id: 3 }, { id: 4 }]);
    engine.merged.length = 0;
    await merge.execute([]);
    expect(written()).toEqual([]);
  });

  it('takes the rows as they are when it is called', async () => {
    const rows = [{ id: 1, n: 1 }];
    const done = table.mergeInsert('id').whenMatchedUpdateAll().execute(rows);
    (rows[0] as { id: number }).id = 9;
    await done;
    expect(written()).toEqual([{ id: 1, n: 1 }]);
  });

  it('refuses what is no column, no condition and no data, and leaves nothing open', async () => {
    expect(() => table.mergeInsert(7 as never)).toThrow(/on must be an array/);
    expect(() => table.mergeInsert([7] as never)).toThrow(/a key column must be a string/);
    const merge = table.mergeInsert('id');
    expect(() => merge.whenMatchedUpdateAll({ where: 7 as never })).toThrow(/where must be a string/);
    expect(() => merge.useIndex('yes' as never)).toThrow(/useIndex must be a boolean/);
    await expect(merge.execute(undefined as never)).rejects.toThrow(/data is required/);
    await expect(merge.execute([{ id: 1 }], { timeoutMs: 1.5 })).rejects.toThrow(/timeoutMs must be a whole number/);
    await expect(merge.whenMatchedUpdateAll().execute([{ id: 'x' }])).rejects.toMatchObject({ code: 'SCHEMA' });
    expect(engine.liveKinds()).toEqual(['table']);
    await table.close();
    expect(() => table.mergeInsert('id')).toThrow(/Table t is closed/);
  });

  it('has every method of the builder of LanceDB', async () => {
    const theirs = await (await lancedb.connect('memory://')).createTable('t', [{ id: 1 }]);
    const names = Object.getOwnPropertyNames(Object.getPrototypeOf(theirs.mergeInsert('id')) as object);
    expect(names.length).toBeGreaterThan(5);
    expect(names.filter((name) => !(name in table.mergeInsert('id')))).toEqual([]);
  });
});
