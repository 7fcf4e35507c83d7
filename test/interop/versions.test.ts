/** Versions and whole tables, both ways: one side works, the other opens the table, compares, goes on, and the first reads that again. */

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import type * as Arrow from 'apache-arrow';
import { describe, expect, test } from 'vitest';

import * as lancelet from '../../src/node';
import { files, folder, ids, now, ours, range, rows, theirs } from './shared-folder';

/** LanceDB's own copy: it knows fields by their class. */
const arrow = createRequire(import.meta.url)('apache-arrow') as typeof Arrow;

type Connection = lancelet.Connection;
type Table = lancelet.Table;
interface Row {
  readonly id: number;
  readonly text: string;
}

/** Ids and texts of every row, by id; every vector is checked against its id. */
async function read(table: Table): Promise<string[]> {
  const found = (await table.query().toArrow()).toArray().map((row) => (row as Arrow.StructRow).toJSON());
  for (const { id, vector } of found) expect([...(vector as Iterable<number>)]).toEqual([id, 1, 2, 3]);
  return found
    .map((row) => row as unknown as Row)
    .sort((a, b) => a.id - b.id)
    .map(({ id, text }) => `${id} ${text}`);
}
const texts = (...numbers: readonly number[]): string[] => numbers.map((id) => `${id} row ${id}`);

/** Who does it, and who comes after. */
const SIDES = ['ours', 'theirs'] as const;
type Side = (typeof SIDES)[number];
const FORMATS = ['2.0', '2.1', '2.2'] as const;

let number = 0;
/** The two connections in their order, and a name for a table. */
function pair(side: Side): { first: Connection; second: Connection; name: string } {
  const both = [ours, theirs as unknown as Connection] as const;
  const [first, second] = side === 'ours' ? both : [both[1], both[0]];
  number += 1;
  return { first, second, name: `t${number}` };
}

/** Versions 1 to 5: ten rows; twenty; fifteen; with a column `n`; 100 to 102 only. */
async function history(db: Connection, name: string, format: string): Promise<Table> {
  const storageOptions = { newTableDataStorageVersion: format };
  const table = await db.createTable(name, rows(0, 10), { storageOptions });
  await table.add(rows(10, 20));
  await table.delete('id < 5');
  await table.addColumns([{ name: 'n', valueSql: 'id + 0.5' }]);
  await table.add(
    rows(100, 103).map((row) => ({ ...row, n: row.id + 0.5 })),
    { mode: 'overwrite' },
  );
  expect(await table.version()).toBe(5);
  return table;
}

describe.each(FORMATS.flatMap((format) => SIDES.map((side) => [format, side] as const)))(
  'data files %s, %s first',
  (format, side) => {
    const storageOptions = { newTableDataStorageVersion: format };

    test('t26: a restore brings rows and schema back, and the other goes on with them', async () => {
      const { first, second, name } = pair(side);
      const table = await history(first, name, format);
      await table.checkout(3);
      await table.restore();
      expect(await table.version()).toBe(6);

      const other = await second.openTable(name);
      expect(await other.version()).toBe(6);
      expect((await other.schema()).fields.map((field) => field.name)).toEqual(['id', 'text', 'vector']);
      expect(await read(other)).toEqual(texts(...range(5, 20)));
      await other.checkout(5);
      expect(await ids(other)).toEqual([100, 101, 102]);
      await other.checkoutLatest();
      await other.add(rows(30, 32));
      await other.update({ where: 'id = 6', values: { text: 'updated' } });
      await other.delete('id = 7');
      await other.optimize();
      const left = [5, ...range(8, 20), 30, 31];
      const expected = [...texts(...left), '6 updated'].sort((a, b) => parseInt(a) - parseInt(b));
      expect(await read(other)).toEqual(expected);

      await table.checkoutLatest();
      expect(await read(table)).toEqual(expected);
      // And back over the compaction of the other, to a version of the other.
      await table.checkout(7);
      await table.restore();
      await other.checkoutLatest();
      expect(await read(other)).toEqual(texts(...range(5, 20), 30, 31));
      await other.add(rows(40, 41));
      await table.checkoutLatest();
      expect(await read(table)).toEqual(texts(...range(5, 20), 30, 31, 40));
      const numbers = (await table.listVersions()).map((each) => each.version);
      expect(numbers).toEqual(range(1, (await other.version()) + 1));
    });

    test('an overwrite by add replaces the rows, keeps the schema and the history', async () => {
      const { first, second, name } = pair(side);
      const table = await first.createTable(name, rows(0, 10), { storageOptions });
      await table.delete('id = 3');
      expect(await table.add(rows(50, 60), { mode: 'overwrite' })).toEqual({ version: 3 });
      const other = await second.openTable(name);
      expect(await read(other)).toEqual(texts(...range(50, 60)));
      await other.delete('id = 51');
      await other.add(rows(60, 62));
      const expected = texts(50, ...range(52, 62));
      await table.checkoutLatest();
      expect(await read(table)).toEqual(expected);
      expect(await other.add(rows(70, 72), { mode: 'overwrite' })).toEqual({ version: 6 });
      await table.checkoutLatest();
      expect(await read(table)).toEqual(texts(70, 71));
      await table.checkout(2);
      expect(await ids(table)).toEqual([0, 1, 2, ...range(4, 10)]);
      await other.checkout(5);
      expect(await read(other)).toEqual(expected);
    });

    test('a table created over another has a new schema, and its old one in its history', async () => {
      const { first, second, name } = pair(side);
      await first.createTable(name, rows(0, 10), { storageOptions });
      const words = [
        { word: 'a', count: 1 },
        { word: 'b', count: 2 },
      ];
      await second.createTable(name, words, { mode: 'overwrite', storageOptions });
      const table = await first.openTable(name);
      expect(await table.version()).toBe(2);
      const plain = async (of: Table): Promise<unknown[]> =>
        (await of.query().toArrow()).toArray().map((row) => (row as Arrow.StructRow).toJSON());
      expect(await plain(table)).toEqual(words);
      await table.add([{ word: 'c', count: 3 }]);
      await table
        .mergeInsert('word')
        .whenMatchedUpdateAll()
        .execute([{ word: 'a', count: 9 }]);
      const other = await second.openTable(name);
      const counts = (await plain(other)) as { word: string; count: number }[];
      expect(Object.fromEntries(counts.map(({ word, count }) => [word, count]))).toEqual({ a: 9, b: 2, c: 3 });
      await other.checkout(1);
      expect(await read(other)).toEqual(texts(...range(0, 10)));
      // Back to the schema before; then over it once more, by the first.
      await other.restore();
      await table.checkoutLatest();
      expect(await read(table)).toEqual(texts(...range(0, 10)));
      const over = await first.createTable(name, rows(7, 9), { mode: 'overwrite', storageOptions });
      await other.checkoutLatest();
      expect(await other.version()).toBe(await over.version());
      expect(await read(other)).toEqual(texts(7, 8));
    });

    test('a table that may exist is the one of the other', async () => {
      const { first, second, name } = pair(side);
      await first.createTable(name, rows(0, 4), { storageOptions });
      await expect(second.createTable(name, rows(0, 1))).rejects.toThrow(`Table '${name}' already exists`);
      const table = await second.createTable(name, rows(90, 95), { existOk: true });
      expect([await table.version(), await read(table)]).toEqual([1, texts(...range(0, 4))]);
      await expect(second.createTable(name, [{ other: 1 }], { existOk: true })).rejects.toThrow(
        'Provided schema does not match existing table schema',
      );
      await table.add(rows(4, 6));
      const again = await first.createTable(name, rows(0, 1), { existOk: true });
      expect(await read(again)).toEqual(texts(...range(0, 6)));
    });

    test('a version and a tag of the other are checked out, read-only, and left again', async () => {
      const { first, second, name } = pair(side);
      const table = await history(first, name, format);
      await (await table.tags()).create('fifteen', 3);
      const other = await second.openTable(name);
      for (const version of ['fifteen', 3] as const) {
        await other.checkout(version);
        expect(await other.version()).toBe(3);
        expect(await read(other)).toEqual(texts(...range(5, 20)));
        expect(await other.countRows('id >= 10')).toBe(10);
        const refused = 'table cannot be modified when a specific version is checked out';
        await expect(other.delete('id = 6')).rejects.toThrow(refused);
        await expect(other.add(rows(0, 1))).rejects.toThrow(refused);
        await other.checkoutLatest();
        expect(await ids(other)).toEqual([100, 101, 102]);
      }
      const pinned = await second.openTable(name, undefined, { version: 1 });
      expect(await read(pinned)).toEqual(texts(...range(0, 10)));
      // The other moves the tag to a version of its own; the first follows the name.
      await other.delete('id = 100');
      await (await other.tags()).update('fifteen', 6);
      await table.checkout('fifteen');
      expect([await table.version(), await ids(table)]).toEqual([6, [101, 102]]);
      await table.checkout('fifteen');
      await other.add(rows(7, 8).map((row) => ({ ...row, n: 0 })));
      expect(await ids(table)).toEqual([101, 102]);
      await table.checkoutLatest();
      expect(await ids(table)).toEqual([7, 101, 102]);
      // What the tag names is brought back by the other.
      await other.checkout('fifteen');
      await other.restore();
      await table.checkoutLatest();
      expect([await table.version(), await ids(table)]).toEqual([8, [101, 102]]);
    });

    test('what the other cleans up goes, tags keep their versions, and the first goes on', async () => {
      const { first, second, name } = pair(side);
      const table = await history(first, name, format);
      await (await table.tags()).create('keep', 2);
      const other = await second.openTable(name);
      const before = files(name);
      await expect(other.optimize(now())).rejects.toThrow(/1 tagged version\(s\) have been marked for cleanup/);
      expect(before.filter((path) => !files(name).includes(path))).toEqual([]);
      await (await other.tags()).delete('keep');
      const { prune } = await other.optimize(now());
      expect(prune.oldVersionsRemoved).toBeGreaterThanOrEqual(4);
      await table.checkoutLatest();
      expect(await ids(table)).toEqual([100, 101, 102]);
      const kept = (await other.listVersions()).map((each) => each.version);
      expect((await table.listVersions()).map((each) => each.version)).toEqual(kept);
      await expect(table.checkout(1)).rejects.toThrow();
      await table.add(rows(103, 105).map((row) => ({ ...row, n: 0 })));
      await (await ours.openTable(name)).optimize(now());
      const again = await second.openTable(name);
      expect(await ids(again)).toEqual(range(100, 105));
      expect(files(name).filter((path) => path.startsWith('data/')).length).toBe(1);
    });

    test('rows are taken by their place as the other takes them', async () => {
      const { first, second, name } = pair(side);
      const table = await history(first, name, format);
      await table.checkout(3);
      const other = await second.openTable(name, undefined, { version: 3 });
      const taken = async (of: Table): Promise<unknown[]> => {
        const found = await of.takeOffsets([14, 0, 3, 4, 3]).select(['id', 'text']).toArray();
        return found.map((row) => `${String(row['id'])} ${String(row['text'])}`);
      };
      expect(await taken(table)).toEqual(await taken(other));
      expect(new Set(await taken(other))).toEqual(new Set(texts(5, 8, 9, 19)));
      expect(await other.stats()).toEqual(await table.stats());
    });
  },
);

describe.each(SIDES)('%s first', (side) => {
  test('a table that the other drops is gone for both, and its name is free', async () => {
    const { first, second, name } = pair(side);
    const table = await first.createTable(name, rows(0, 3));
    await table.add(rows(3, 5));
    await second.dropTable(name);
    expect(await first.tableNames()).not.toContain(name);
    await expect(first.openTable(name)).rejects.toThrow(`Table '${name}' was not found`);
    await expect(first.dropTable(name)).rejects.toThrow(`Table '${name}' was not found`);
    const made = await first.createTable(name, rows(7, 9));
    expect(await made.version()).toBe(1);
    expect(await read(await second.openTable(name))).toEqual(texts(7, 8));
  });

  test('all tables that the other drops are gone, and both list the same ones', async () => {
    const own = mkdtempSync(join(tmpdir(), 'lancelet-dropped-'));
    try {
      const both = [await lancelet.connect(own), (await lancedb.connect(own)) as unknown as Connection] as const;
      const [first, second] = side === 'ours' ? both : [both[1], both[0]];
      for (const name of ['b', 'a', '_x', '-y', 'c.d', 'B']) await first.createTable(name, rows(0, 1));
      const sorted = ['-y', 'B', '_x', 'a', 'b', 'c.d'];
      expect(await second.tableNames()).toEqual(sorted);
      expect(await second.tableNames({ startAfter: 'B', limit: 2 })).toEqual(
        await first.tableNames({ startAfter: 'B', limit: 2 }),
      );
      for (const db of [first, second]) {
        const listed: string[] = [];
        let pageToken: string | undefined;
        do {
          const page = await db.listTables({ limit: 4, ...(pageToken === undefined ? {} : { pageToken }) });
          listed.push(...page.tables);
          pageToken = page.pageToken;
        } while (pageToken !== undefined);
        expect(listed).toEqual(sorted);
      }
      await second.dropAllTables();
      expect(await first.tableNames()).toEqual([]);
      expect(readdirSync(own).filter((entry) => entry.endsWith('.lance'))).toEqual([]);
      const table = await first.createTable('a', rows(4, 5));
      expect([await table.version(), await read(await second.openTable('a'))]).toEqual([1, texts(4)]);
      await both[0].close();
    } finally {
      rmSync(own, { recursive: true, force: true });
    }
  });

  test('t29: a handle that looks on every read sees what the other wrote, and a lazy one after checkoutLatest', async () => {
    const { first, second, name } = pair(side);
    await first.createTable(name, rows(0, 2));
    const options = { readConsistencyInterval: 0 };
    const strong =
      side === 'ours' ? await lancelet.connect(folder, options) : ((await lancedb.connect(folder, options)) as unknown);
    const looking = await (strong as Connection).openTable(name);
    const lazy = await first.openTable(name);
    const other = await second.openTable(name);
    await other.add(rows(2, 4));
    expect([await ids(looking), await looking.version()]).toEqual([[0, 1, 2, 3], 2]);
    expect(await ids(lazy)).toEqual([0, 1]);
    await other.delete('id = 0');
    expect(await ids(looking)).toEqual([1, 2, 3]);
    await lazy.add(rows(4, 5));
    expect(await ids(lazy)).toEqual([1, 2, 3, 4]);
    expect(await ids(other)).toEqual([1, 2, 3]);
    await other.checkoutLatest();
    expect(await ids(other)).toEqual([1, 2, 3, 4]);
  });

  test('metadata of fields stay through the overwrites and restores of the other', async () => {
    const { first, second, name } = pair(side);
    const table = await first.createTable(name, rows(0, 3));
    await table.updateFieldMetadata([{ path: 'text', metadata: { unit: 'word' } }]);
    const other = await second.openTable(name);
    const unit = async (of: Table): Promise<string | undefined> =>
      (await of.schema()).fields.find((field) => field.name === 'text')?.metadata.get('unit');
    expect(await unit(other)).toBe('word');
    await other.updateFieldMetadata([{ path: 'text', metadata: { unit: null, lang: 'en' } as never }]);
    await table.checkoutLatest();
    expect(await unit(table)).toBeUndefined();
    await table.checkout(2);
    await table.restore();
    await other.checkoutLatest();
    expect(await unit(other)).toBe('word');
    expect(await read(other)).toEqual(texts(0, 1, 2));
  });
});

test('t7: a table with the manifest names of old keeps them, whoever writes', async () => {
  const storageOptions = { newTableEnableV2ManifestPaths: 'false' };
  await expect(ours.createTable('old-names', rows(0, 3), { storageOptions })).rejects.toMatchObject({
    code: 'NOT_SUPPORTED',
  });
  const native = await theirs.createTable('old-names', rows(0, 3), { storageOptions });
  const table = await ours.openTable('old-names');
  await table.add(rows(3, 5));
  await native.checkoutLatest();
  await native.delete('id = 1');
  await table.checkoutLatest();
  await table.update({ where: 'id = 4', values: { text: 'updated' } });
  await table.optimize();
  await native.checkoutLatest();
  expect(await read(native as unknown as Table)).toEqual([...texts(0, 2, 3), '4 updated']);
  const names = readdirSync(join(folder, 'old-names.lance', '_versions')).filter((file) => file.endsWith('.manifest'));
  expect(names.sort()).toEqual(range(1, (await table.version()) + 1).map((version) => `${version}.manifest`));
  await native.checkout(2);
  await native.restore();
  await table.checkoutLatest();
  expect((await table.optimize(now())).prune.oldVersionsRemoved).toBeGreaterThan(0);
  expect(await read((await theirs.openTable('old-names')) as unknown as Table)).toEqual(texts(...range(0, 5)));
  expect(await read(table)).toEqual(texts(...range(0, 5)));
});

describe.each([
  ['stale', '{"version":1}'],
  ['ahead', '{"version":9}'],
  ['garbage', 'no hint'],
  ['missing', undefined],
])('t8: a version hint that is %s', (what, hint) => {
  test('has no effect, here and in LanceDB', async () => {
    const name = `hint-${what}`;
    const native = await theirs.createTable(name, rows(0, 3));
    await native.add(rows(3, 5));
    const file = join(folder, `${name}.lance`, '_versions', 'latest_version_hint.json');
    const damage = (): void => {
      rmSync(file);
      if (hint !== undefined) writeFileSync(file, hint);
    };
    damage();
    const table = await ours.openTable(name);
    expect([await table.version(), await read(table)]).toEqual([2, texts(...range(0, 5))]);
    expect(await table.add(rows(5, 6))).toEqual({ version: 3 });
    if (files(name).includes('_versions/latest_version_hint.json')) damage();
    const again = await (await lancedb.connect(folder)).openTable(name);
    expect([await again.version(), await ids(again)]).toEqual([3, range(0, 6)]);
    await again.delete('id = 0');
    damage();
    await table.checkoutLatest();
    expect([await table.version(), await ids(table)]).toEqual([4, range(1, 6)]);
  });
});

describe('a table that is renamed, which LanceDB refuses,', () => {
  test('is opened by LanceDB under its new name, with its versions, tags and index', async () => {
    const native = await theirs.createTable('before', rows(0, 300));
    await native.createIndex('id', { config: lancedb.Index.btree() });
    await native.delete('id < 5');
    await (await native.tags()).create('three', 3);
    await expect(theirs.renameTable('before', 'after')).rejects.toThrow(/not supported/);
    await ours.renameTable('before', 'after');
    await expect(theirs.openTable('before')).rejects.toThrow("Table 'before' was not found");
    const renamed = await theirs.openTable('after');
    expect(await ids(renamed)).toEqual(range(5, 300));
    expect(await renamed.indexStats('id_idx')).toMatchObject({ numIndexedRows: 295 });
    expect(await ids(renamed, 'id = 7')).toEqual([7]);
    expect(await (await renamed.tags()).getVersion('three')).toBe(3);
    await renamed.checkout(1);
    expect(await renamed.countRows()).toBe(300);
    await renamed.checkoutLatest();
    await renamed.add(rows(300, 302));
    await renamed.optimize();
    await theirs.createTable('before', rows(0, 1));
    expect(await ids(await ours.openTable('after'))).toEqual(range(5, 302));
    await expect(ours.renameTable('after', 'before')).rejects.toThrow("Table 'before' already exists");
  });

  test('goes on under its handles here, beside LanceDB', async () => {
    const table = await ours.createTable('mine', rows(0, 3));
    await ours.renameTable('mine', 'yours');
    const native = await theirs.openTable('yours');
    expect(await read(native as unknown as Table)).toEqual(texts(0, 1, 2));
    await native.add(rows(3, 4));
    await table.add(rows(4, 5));
    await native.checkoutLatest();
    expect(await read(native as unknown as Table)).toEqual(texts(0, 1, 2, 3, 4));
  });
});

describe('indices of LanceDB', () => {
  const indexed = async (name: string): Promise<lancedb.Table> => {
    const native = await theirs.createTable(name, rows(0, 300));
    await native.createIndex('id', { config: lancedb.Index.btree() });
    return native;
  };
  const names = async (name: string): Promise<string[]> =>
    (await (await theirs.openTable(name)).listIndices()).map((index) => index.name);

  test('t26: go with an overwrite of ours, come back with a restore, and LanceDB answers from them', async () => {
    const native = await indexed('index-restored');
    const table = await ours.openTable('index-restored');
    await table.add(rows(500, 510), { mode: 'overwrite' });
    expect(await names('index-restored')).toEqual([]);
    await native.checkoutLatest();
    expect(await ids(native, 'id = 505')).toEqual([505]);
    await table.checkout(2);
    await table.restore();
    await table.add(rows(300, 310));
    expect(await names('index-restored')).toEqual(['id_idx']);
    const reader = await theirs.openTable('index-restored');
    expect(await reader.indexStats('id_idx')).toMatchObject({ numIndexedRows: 300, numUnindexedRows: 10 });
    expect(await ids(reader, 'id in (3, 305, 505)')).toEqual([3, 305]);
    await reader.optimize();
    expect(await reader.indexStats('id_idx')).toMatchObject({ numIndexedRows: 310, numUnindexedRows: 0 });
    await table.checkoutLatest();
    expect(await ids(table)).toEqual(range(0, 310));
  });

  test.each([
    ['update', async (table: Table) => table.update({ where: 'id < 10', valuesSql: { id: 'id + 1000' } })],
    [
      'mergeInsert',
      async (table: Table) =>
        table
          .mergeInsert('id')
          .whenNotMatchedInsertAll()
          .whenNotMatchedBySourceDelete({ where: 'id < 10' })
          .execute(rows(1000, 1010)),
    ],
    ['addColumns', async (table: Table) => table.addColumns([{ name: 'n', valueSql: 'id * 2' }])],
    ['alterColumns', async (table: Table) => table.alterColumns([{ path: 'text', dataType: 'large_string' }])],
    ['rename', async (table: Table) => table.alterColumns([{ path: 'id', rename: 'key' }])],
    ['dropColumns', async (table: Table) => table.dropColumns(['id'])],
  ])('stay right over our %s', async (what, change) => {
    const [mine, judged] = [`index-${what}`, `judge-${what}`];
    const native = await indexed(mine);
    const judge = await indexed(judged);
    const table = await ours.openTable(mine);
    await change(table);
    await change(judge as unknown as Table);
    const found = await names(mine);
    expect(found).toEqual(await names(judged));
    await native.checkoutLatest();
    const column = (await native.schema()).fields[0]?.name;
    for (const filter of ['= 5', '= 1005', '= 250', '>= 295', 'is not null']) {
      const where = column === 'text' ? `text ${filter.replace(/(\d+)/, "'row $1'")}` : `${column} ${filter}`;
      const count = await judge.countRows(where);
      const matching = async (of: lancedb.Table | Table): Promise<number> =>
        (await of.query().where(where).select(['text']).toArray()).length;
      expect([await native.countRows(where), await matching(native)], where).toEqual([count, count]);
      expect([await table.countRows(where), await matching(table)], where).toEqual([count, count]);
    }
    for (const name of found) expect(await native.indexStats(name)).toEqual(await judge.indexStats(name));
    await native.optimize();
    await judge.optimize();
    for (const name of found) expect(await native.indexStats(name)).toEqual(await judge.indexStats(name));
    await table.checkoutLatest();
    expect(await table.countRows()).toBe(300);
  });

  test('keep their column from being cast, here and in LanceDB', async () => {
    const native = await indexed('index-cast');
    const table = await ours.openTable('index-cast');
    const refused = /they have 1 index\(es\) attached: \[id_idx\].*rop the index\(es\)/;
    for (const each of [table, native]) {
      await expect(each.alterColumns([{ path: 'id', dataType: new arrow.Float32() }])).rejects.toThrow(refused);
    }
    expect(await table.version()).toBe(2);
    await native.dropIndex('id_idx');
    await table.checkoutLatest();
    await table.alterColumns([{ path: 'id', dataType: 'float' }]);
    expect(await ids(await theirs.openTable('index-cast'), 'id >= 297')).toEqual([297, 298, 299]);
  });
});
