/** Merge inserts beside LanceDB: the same calls on a table of each, then one on the other's. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as lancelet from '../../src/node';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-merge-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const schema = new arrow.Schema([
  new arrow.Field('id', new arrow.Int64(), true),
  new arrow.Field('k', new arrow.Utf8(), true),
  new arrow.Field('v', new arrow.Float64(), true),
]);

type Row = Record<string, bigint | string | number | null>;

const rows = (from: number, to: number): Row[] =>
  Array.from({ length: to - from }, (_, i) => ({
    id: BigInt(from + i),
    k: (from + i) % 5 === 4 ? null : `k${from + i}`,
    v: (from + i) / 4,
  }));

type Table = lancedb.Table | lancelet.Table;

/** Every row as text, sorted. */
async function contents(table: Table): Promise<string[]> {
  const arrowTable = await (table as lancelet.Table).toArrow();
  const text = (value: unknown): string => (Object.is(value, -0) ? '-0' : String(value));
  return arrowTable
    .toArray()
    .map((row) =>
      Object.values((row as arrow.StructRow).toJSON())
        .map(text)
        .join(' '),
    )
    .sort();
}

interface Step {
  readonly what: string;
  readonly run: (table: lancelet.Table) => Promise<object>;
}

const STEPS: readonly Step[] = [
  {
    what: 'an upsert',
    run: (table) =>
      table
        .mergeInsert('id')
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute([...rows(8, 12).map((row) => ({ ...row, v: -1 })), { id: 100n, k: 'new', v: 5 }]),
  },
  {
    what: 'an insert of what is not there',
    run: (table) => table.mergeInsert(['id']).whenNotMatchedInsertAll().execute(rows(18, 23)),
  },
  {
    what: 'an update under a condition',
    run: (table) =>
      table
        .mergeInsert('id')
        .whenMatchedUpdateAll({ where: "target.v < source.v AND source.k <> 'k3'" })
        .execute(rows(0, 7).map((row) => ({ ...row, v: 1.1 }))),
  },
  {
    what: 'a part of the columns',
    run: (table) =>
      table
        .mergeInsert('id')
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute([
          { id: 1n, v: 77 },
          { id: 200n, v: 78 },
        ]),
  },
  {
    what: 'null keys',
    run: (table) =>
      table
        .mergeInsert('k')
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute([
          { id: 300n, k: null, v: 1 },
          { id: 301n, k: 'k5', v: 2 },
          { id: 302n, k: null, v: 3 },
        ]),
  },
  {
    what: 'two key columns',
    run: (table) =>
      table
        .mergeInsert(['k', 'id'])
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute([
          { id: 2n, k: 'k2', v: 22 },
          { id: 2n, k: 'k3', v: 23 },
          { id: 6n, k: 'k6', v: null },
        ]),
  },
  {
    what: 'float keys: NaN equals NaN, 0 does not equal -0',
    run: (table) =>
      table
        .mergeInsert('v')
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute([
          { id: 400n, k: 'nan', v: NaN },
          { id: 401n, k: 'minus', v: -0 },
        ]),
  },
  {
    what: 'the same float keys again',
    run: (table) =>
      table
        .mergeInsert('v')
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute([
          { id: 410n, k: 'nan2', v: NaN },
          { id: 411n, k: 'minus2', v: -0 },
        ]),
  },
  {
    what: 'a delete of what the source lacks, under a condition',
    run: (table) =>
      table.mergeInsert('id').whenNotMatchedBySourceDelete({ where: 'id > 15 and id < 300' }).execute(rows(17, 19)),
  },
  {
    what: 'a replacement',
    run: (table) =>
      table
        .mergeInsert('id')
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .whenNotMatchedBySourceDelete()
        .execute(rows(3, 30)),
  },
  {
    what: 'no rows',
    run: (table) => table.mergeInsert('id').whenMatchedUpdateAll().execute([]),
  },
];

describe.each([['2.0'], ['2.1'], ['2.2']])('merge insert, format %s', (version) => {
  const options = { schema, storageOptions: { newTableDataStorageVersion: version } };
  const name = `t${version.replace('.', '')}`;

  test('does what LanceDB does, and each reads the other', async () => {
    const [db, lance] = [await lancelet.connect(folder), await lancedb.connect(folder)];
    const ours = await db.createTable(`${name}_ours`, rows(0, 12), options);
    const theirs = await lance.createTable(`${name}_theirs`, rows(0, 12) as never, options);
    await ours.add(rows(12, 20));
    await theirs.add(rows(12, 20) as never);
    for (const { what, run } of STEPS) {
      const [done, expected] = [await run(ours), await run(theirs as unknown as lancelet.Table)];
      expect(done, what).toEqual(expected);
      expect(await contents(ours), what).toEqual(await contents(theirs));
      const [read, other] = [await lance.openTable(`${name}_ours`), await db.openTable(`${name}_theirs`)];
      expect(await contents(read), what).toEqual(await contents(theirs));
      expect(await contents(other), what).toEqual(await contents(theirs));
      await other.close();
    }
  }, 120_000);

  test('goes on where the other was', async () => {
    const [db, lance] = [await lancelet.connect(folder), await lancedb.connect(folder)];
    const mixed = await db.createTable(`${name}_mixed`, rows(0, 12), options);
    const theirs = await lance.createTable(`${name}_alone`, rows(0, 12) as never, options);
    for (const [at, { what, run }] of STEPS.entries()) {
      if (at % 2 === 0) {
        await mixed.checkoutLatest();
        await run(mixed);
      } else {
        await run((await lance.openTable(`${name}_mixed`)) as unknown as lancelet.Table);
      }
      await run(theirs as unknown as lancelet.Table);
      await mixed.checkoutLatest();
      expect(await contents(mixed), what).toEqual(await contents(theirs));
    }
    const after = await lance.openTable(`${name}_mixed`);
    await after.update({ where: 'id = 5', values: { k: 'updated' } });
    await after.optimize();
    await mixed.checkoutLatest();
    expect(await mixed.countRows("k = 'updated'")).toBe(1);
    expect(await mixed.countRows()).toBe(await after.countRows());
  }, 120_000);
});

describe('keys of other types', () => {
  const cases: [string, arrow.DataType, unknown[], unknown][] = [
    ['bool', new arrow.Bool(), [true, false], true],
    ['int8', new arrow.Int8(), [1, 2], 2],
    ['binary', new arrow.Binary(), [new Uint8Array([1]), new Uint8Array([2])], new Uint8Array([2])],
    ['timestamp', new arrow.TimestampMicrosecond(), [1000, 2000], 2000],
    ['date', new arrow.DateDay(), [86_400_000, 172_800_000], 172_800_000],
    ['dictionary', new arrow.Dictionary(new arrow.Utf8(), new arrow.Int32()), ['a', 'b'], 'b'],
    ['list', new arrow.List(new arrow.Field('item', new arrow.Int32(), true)), [[1], [2]], [2]],
    [
      'vector',
      new arrow.FixedSizeList(2, new arrow.Field('item', new arrow.Float32(), true)),
      [
        [1, 2],
        [2, 3],
      ],
      [2, 3],
    ],
    ['struct', new arrow.Struct([new arrow.Field('a', new arrow.Int32(), true)]), [{ a: 1 }, { a: 2 }], { a: 2 }],
  ];
  test.each(cases)('%s', async (name, type, values, key) => {
    const of = new arrow.Schema([new arrow.Field('k', type, true), new arrow.Field('v', new arrow.Int32(), true)]);
    const data = (keys: unknown[], v: number[]): arrow.Table =>
      new arrow.Table(of, {
        k: arrow.vectorFromArray(keys, type),
        v: arrow.vectorFromArray(v, new arrow.Int32()),
      } as never);
    const [db, lance] = [await lancelet.connect(folder), await lancedb.connect(folder)];
    const ours = await db.createTable(`key_${name}`, data(values, [0, 1]));
    const theirs = await lance.createTable(`key_${name}_theirs`, data(values, [0, 1]));
    const source = data([key], [9]);
    const run = (table: lancelet.Table) =>
      table.mergeInsert('k').whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(source);
    expect(await run(ours)).toEqual(await run(theirs as unknown as lancelet.Table));
    expect(await contents(await lance.openTable(`key_${name}`))).toEqual(await contents(theirs));
  });
});

describe('concurrent upserts', () => {
  test('of one new key give one row, on one handle and on several', async () => {
    const db = await lancelet.connect(folder);
    const first = await db.createTable('race', rows(0, 3), { schema });
    const handles = [first, await db.openTable('race'), await (await lancelet.connect(folder)).openTable('race')];
    const upsert = (at: number) =>
      (handles[at % handles.length] as lancelet.Table)
        .mergeInsert('id')
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute([{ id: 50n, k: `by ${at}`, v: at }]);
    const done = await Promise.all(Array.from({ length: 100 }, (_, at) => upsert(at)));
    expect(done.map(({ version }) => version).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 100 }, (_, i) => i + 2),
    );
    expect(done.reduce((sum, { numInsertedRows }) => sum + numInsertedRows, 0)).toBe(1);
    const lance = await (await lancedb.connect(folder)).openTable('race');
    expect(await lance.countRows()).toBe(4);
    expect(await lance.countRows('id = 50')).toBe(1);
  }, 60_000);
});

describe('what cannot be', () => {
  test('is refused in the words of LanceDB', async () => {
    const db = await lancelet.connect(folder);
    const table = await db.createTable('refused', rows(0, 4), { schema });
    const one = [{ id: 1n, k: 'x', v: 1 }];
    const upsert = table.mergeInsert('id').whenMatchedUpdateAll().whenNotMatchedInsertAll();
    const refused = async (run: Promise<unknown>, code: string, text: string | RegExp): Promise<void> => {
      await expect(run).rejects.toMatchObject({ code, message: expect.stringMatching(text) as string });
    };
    await refused(
      table.mergeInsert('id').execute(one),
      'INVALID_INPUT',
      /The merge insert job is not configured to change the data in any way/,
    );
    await refused(
      table.mergeInsert('zz').whenMatchedUpdateAll().execute(one),
      'INVALID_INPUT',
      /Merge insert key column 'zz' does not exist/,
    );
    await refused(
      table.mergeInsert([]).whenMatchedUpdateAll().execute(one),
      'INVALID_INPUT',
      /A merge insert operation requires join keys/,
    );
    await refused(
      upsert.execute([...one, ...one]),
      'INVALID_INPUT',
      /Ambiguous merge inserts are prohibited: multiple source rows match the same target row on \(id = 1\)/,
    );
    await refused(
      upsert.execute([{ id: 9n }, { id: 9n }]),
      'INVALID_INPUT',
      /Ambiguous merge inserts are prohibited: source rows 0 and 1 have the same new key \(id = 9\)/,
    );
    await refused(
      table.mergeInsert('id').whenMatchedUpdateAll({ where: 'target.zz = 1' }).execute(one),
      'INVALID_INPUT',
      /zz/,
    );
    await refused(upsert.execute(one, { timeoutMs: 0 }), 'TIMEOUT', /merge insert timed out/);
    await refused(upsert.execute([{ id: 1n, other: 2 } as never]), 'SCHEMA', /other/);
    await refused(upsert.execute([{ k: 'x' }]), 'SCHEMA', /id/);
    await table.checkout(1);
    await refused(upsert.execute(one), 'INVALID_INPUT', /cannot be modified when a specific version is checked out/);
    await table.checkoutLatest();
    expect(await table.version()).toBe(1);
    expect((await upsert.execute(one, { timeoutMs: -1 })).numUpdatedRows).toBe(1);
  });

  test('a stream of rows may lack columns, too', async () => {
    const db = await lancelet.connect(folder);
    const table = await db.createTable('streamed', rows(0, 4), { schema });
    const stream = async function* (): AsyncGenerator<Row> {
      yield { id: 1n };
      yield { id: 2n };
    };
    const done = await table
      .mergeInsert('id')
      .whenMatchedUpdateAll()
      .execute(stream() as never);
    expect(done.numUpdatedRows).toBe(2);
    expect(await contents(table)).toEqual(['0 k0 0', '1 k1 0.25', '2 k2 0.5', '3 k3 0.75']);
  });

  test('the builder is not changed by its calls', async () => {
    const db = await lancelet.connect(folder);
    const table = await db.createTable('builder', rows(0, 4), { schema });
    const builder = table.mergeInsert('id');
    const update = builder.whenMatchedUpdateAll();
    await expect(builder.execute([{ id: 1n }])).rejects.toThrow(/not configured/);
    expect((await update.useIndex(false).execute([{ id: 1n, v: 9 }])).numUpdatedRows).toBe(1);
    await expect(update.useLsm(true).execute([{ id: 1n, v: 9 }])).rejects.toThrow(/no MemWAL write spec/);
  });
});
