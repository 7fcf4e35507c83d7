/**
 * Every operation from a stale handle over every other one that LanceDB committed meanwhile: what LanceDB makes of it and what ours does,
 * and the rows that are there afterwards.
 */

import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import type * as lancedb from '@lancedb/lancedb';
import type * as Arrow from 'apache-arrow';
import { beforeAll, describe, expect, test } from 'vitest';

import * as lancelet from '../../src/node';
import { folder, ids, now, ours, range, theirs } from './shared-folder';

type Table = lancelet.Table;
type Row = Record<string, number | string>;

/** Rows for a table whose column `extra` is called so, or was dropped. */
const rows = (from: number, to: number, extra?: string): Row[] =>
  range(from, to).map((id) => ({
    id,
    text: `row ${id}`,
    ...(extra === undefined ? {} : { [extra]: id + 0.5 }),
    more: id * 2,
  }));

/** Theirs is about the column `extra` and the rows from 0 on, ours about `more` and the rows from 10 on. */
interface Role {
  readonly column: 'extra' | 'more';
  readonly first: number;
  readonly added: string;
  /** What the column `extra` is called where it is done. */
  readonly extra: string | undefined;
}
const THEIRS: Role = { column: 'extra', first: 0, added: 'a', extra: 'extra' };
const OURS: Role = { column: 'more', first: 10, added: 'b', extra: 'extra' };

interface Operation {
  readonly run: (table: Table, role: Role) => Promise<unknown>;
  /** The ids after it. */
  readonly ids: (before: readonly number[], role: Role) => readonly number[];
}

const same = (before: readonly number[]): readonly number[] => before;
const OPERATIONS = {
  add: {
    run: (table, { first, extra }) => table.add(rows(100 + first, 103 + first, extra)),
    ids: (before, { first }) => [...before, ...range(100 + first, 103 + first)],
  },
  delete: {
    run: (table, { first }) => table.delete(`id >= ${first} and id < ${first + 2}`),
    ids: (before, { first }) => before.filter((id) => id < first || id >= first + 2),
  },
  // Of the same fragment as the delete of the other one.
  update: {
    run: (table, { first }) =>
      table.update({ where: `id > ${first + 4} and id < ${first + 8}`, values: { text: 'updated' } }),
    ids: same,
  },
  upsert: {
    run: (table, { first, extra }) =>
      table
        .mergeInsert('id')
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute([...rows(first + 8, first + 9, extra), ...rows(200 + first, 201 + first, extra)]),
    ids: (before, { first }) => [...new Set([...before, first + 8, 200 + first])],
  },
  overwrite: {
    run: (table, { first, extra }) => table.add(rows(300 + first, 302 + first, extra), { mode: 'overwrite' }),
    ids: (_, { first }) => range(300 + first, 302 + first),
  },
  createIndex: { run: (table) => (table as unknown as lancedb.Table).createIndex('id'), ids: same },
  optimize: { run: (table) => table.optimize(), ids: same },
  addNullable: {
    run: (table, { added }) => table.addColumns([{ name: added, valueSql: 'nullif(id, 3)' }]),
    ids: same,
  },
  addRequired: { run: (table, { added }) => table.addColumns([{ name: added, valueSql: "'a'" }]), ids: same },
  cast: { run: (table, { column }) => table.alterColumns([{ path: column, dataType: 'float' }]), ids: same },
  rename: { run: (table, { column }) => table.alterColumns([{ path: column, rename: `${column}2` }]), ids: same },
  require: { run: (table, { column }) => table.alterColumns([{ path: column, nullable: false }]), ids: same },
  drop: { run: (table, { column }) => table.dropColumns([column]), ids: same },
  restore: {
    run: async (table) => {
      await table.checkout(1);
      await table.restore();
    },
    ids: () => range(0, 20),
  },
  describe: {
    run: (table, { column }) => table.updateFieldMetadata([{ path: column, metadata: { k: column } }]),
    ids: same,
  },
} satisfies Record<string, Operation>;
type Name = keyof typeof OPERATIONS;
const NAMES = Object.keys(OPERATIONS) as Name[];

/** Every row by id, with its columns. */
async function read(table: Table): Promise<string[]> {
  const found = (await table.query().toArrow()).toArray().map((each) => (each as Arrow.StructRow).toJSON());
  const text = (each: Record<string, unknown>): string =>
    Object.entries(each)
      .map(([name, value]) => `${name}=${String(value)}`)
      .join(' ');
  return found.sort((a, b) => Number(a['id']) - Number(b['id'])).map(text);
}

/** Version 1 has twenty rows, version 2 ten more in a fragment of their own. */
beforeAll(async () => {
  const table = await theirs.createTable('base', rows(0, 20, 'extra'));
  await table.add(rows(20, 30, 'extra'));
});
const start = range(0, 30);

const place = (name: string): string => join(folder, `${name}.lance`);

/** The outcome of a change, in a word. */
async function outcome(change: Promise<unknown>): Promise<string> {
  try {
    await change;
    return 'ok';
  } catch (error) {
    const { code, message } = error as lancelet.LanceError;
    if (code === 'CONFLICT') return 'conflict';
    if (/Retryable commit conflict/.test(message)) return 'retry';
    if (/ncompatible|preempted/.test(message)) return 'conflict';
    return `${code}: ${message}`;
  }
}

/**
 * A row per operation of ours, a column per operation of theirs in the order of `OPERATIONS`.
 *
 * | sign | LanceDB | ours |
 * |---|---|---|
 * | . | commits | commits |
 * | r | raises a retryable conflict | executes it again |
 * | R | raises a retryable conflict | CONFLICT: what is written, or replaced, may be meant for the version that was read |
 * | c | raises an incompatible one | CONFLICT |
 * | C | raises an incompatible one | plans a compaction on the newest version |
 * | K | commits values of the column before the cast, under an id that is gone | CONFLICT |
 * | s | refuses rows without the new column, executed again | refuses them, too |
 * | e | refuses rows of the column before the cast | casts them |
 */
const OUTCOMES: Record<Exclude<Name, 'createIndex'>, string> = {
  add: '....c...RK.R.c.',
  delete: '....c........c.',
  update: '....c........c.',
  upsert: '....c...se...c.',
  overwrite: '....R..........',
  optimize: '.rrrCrrrrr...C.',
  addNullable: 'rrrrc.rrrrccccr',
  addRequired: 'rrrrc.rrrrccccr',
  cast: 'rrrrc.rrrrccccr',
  rename: '....c..rrrrrrc.',
  require: 'r.rrc..rrrrrrc.',
  drop: '....c..rrrrrrc.',
  restore: '...............',
  describe: '....c..rrr.....',
};
const OF_LANCEDB: Record<string, RegExp> = {
  '.': /^ok$/,
  r: /^retry$/,
  R: /^retry$/,
  c: /^conflict$/,
  C: /^conflict$/,
  K: /^ok$/,
  s: /Cannot insert rows with a partial-schema source/,
  e: /Append with different schema/,
};
const OF_OURS: Record<string, RegExp> = {
  ...OF_LANCEDB,
  r: /^ok$/,
  R: /^conflict$/,
  C: /^ok$/,
  K: /^conflict$/,
  s: /^SCHEMA: .*Cannot insert rows with a partial-schema source/,
  e: /^ok$/,
};
/** What the row of an operation shows besides the matrix. */
const TESTS: Partial<Record<Name, string>> = {
  add: 't11 t13 t15',
  delete: 't11 t12',
  overwrite: 't11 t13 t14',
  optimize: 't11 t12',
  addNullable: 't11 t15',
  addRequired: 't11 t15',
};
const isFull = process.env['LANCELET_FULL'] === '1';

/** One operation of ours over one of theirs, each on a copy of the same table. */
async function check(mine: Exclude<Name, 'createIndex'>, their: Name, sign: string): Promise<void> {
  const copies = ['own', 'judge', 'serial'].map((what) => `${what}-${mine}-over-${their}`) as [string, string, string];
  const [own, judge, serial] = copies;
  const run: Operation['run'] = OPERATIONS[mine].run;
  const copy = async (name: string): Promise<Table> => {
    cpSync(place('base'), place(name), { recursive: true });
    return (await theirs.openTable(name)) as unknown as Table;
  };
  const commitTheirs = async (name: string): Promise<unknown> =>
    OPERATIONS[their].run((await theirs.openTable(name)) as unknown as Table, THEIRS);

  // An ordinary run asks LanceDB where it does not simply commit.
  if (isFull || sign !== '.') {
    const judged = await copy(judge);
    await commitTheirs(judge);
    expect(await outcome(run(judged, OURS)), `LanceDB: ${mine} over ${their}`).toMatch(OF_LANCEDB[sign] as RegExp);
  }
  const native = await copy(own);
  const stale = await ours.openTable(own);
  await commitTheirs(own);
  const done = await outcome(run(stale, OURS));
  expect(done, `ours: ${mine} over ${their}`).toMatch(OF_OURS[sign] as RegExp);
  await native.checkoutLatest();
  const found = await read(native);
  await stale.checkoutLatest();
  expect(await read(stale), `${mine} over ${their}, read by us`).toEqual(found);
  const before = OPERATIONS[their].ids(start, THEIRS);
  const after = done === 'ok' ? OPERATIONS[mine].ids(before, OURS) : before;
  expect(await ids(stale, 'true'), `rows of ${mine} over ${their}`).toEqual([...after].sort((a, b) => a - b));
  // An overwrite brings the schema that it read.
  const isOfAnotherSchema = mine === 'overwrite' && (their === 'rename' || their === 'drop');
  if (done === 'ok' && !isOfAnotherSchema) {
    await copy(serial);
    await commitTheirs(serial);
    const extra = their === 'drop' ? undefined : their === 'rename' ? 'extra2' : 'extra';
    const inTurn = (await theirs.openTable(serial)) as unknown as Table;
    await run(inTurn, { ...OURS, extra });
    await inTurn.checkoutLatest();
    expect(found, `${mine} over ${their}, as one after the other in LanceDB`).toEqual(await read(inTurn));
  }
  await stale.close();
  for (const name of copies) rmSync(place(name), { recursive: true, force: true });
}

describe('a stale handle of ours over what LanceDB committed', () => {
  test.each(Object.entries(OUTCOMES).map(([name, signs]) => [TESTS[name as Name] ?? 't11', name, signs] as const))(
    '%s: %s',
    async (_, name, signs) => {
      expect(signs.length).toBe(NAMES.length);
      for (const [at, their] of NAMES.entries()) await check(name as keyof typeof OUTCOMES, their, signs.charAt(at));
    },
    120_000,
  );

  test('t12: a stale compaction of LanceDB raises and leaves the version that reserved ids; ours plans again', async () => {
    const copy = async (name: string): Promise<void> => cpSync(place('base'), place(name), { recursive: true });
    await copy('compacted-theirs');
    await copy('compacted-ours');
    const [stale, own] = [await theirs.openTable('compacted-theirs'), await ours.openTable('compacted-ours')];
    for (const name of ['compacted-theirs', 'compacted-ours']) {
      await (await theirs.openTable(name)).delete('id in (3, 25)');
    }
    await expect(stale.optimize()).rejects.toThrow(/Retryable commit conflict/);
    const left = await theirs.openTable('compacted-theirs');
    expect([await left.version(), (await left.stats()).fragmentStats.numFragments]).toEqual([4, 2]);
    expect((await own.optimize()).compaction).toMatchObject({ fragmentsRemoved: 2, fragmentsAdded: 1 });
    expect(await own.version()).toBe(5);
    expect(await ids(await theirs.openTable('compacted-ours'))).toEqual(start.filter((id) => id !== 3 && id !== 25));
  });
});

describe('many at once', () => {
  test('t17: six handles that add, delete, update, merge and compact lose no row, and LanceDB reads them', async () => {
    await ours.createTable('storm', rows(0, 40));
    const dbs = await Promise.all([1, 2, 3].map(() => lancelet.connect(folder)));
    const handles = await Promise.all([...dbs, ...dbs].map((db) => db.openTable('storm')));
    const handle = (at: number): Table => handles[at % handles.length] as Table;
    const merge = (table: Table, at: number): Promise<{ version: number }> =>
      table
        .mergeInsert('id')
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute([30 + at, 500 + at].map((id) => ({ id, text: `merged ${at}`, more: 0 })));
    const changes = range(0, 10).flatMap((at) => [
      handle(at).add(rows(100 + at * 10, 103 + at * 10)),
      handle(at + 1).delete(`id = ${at}`),
      handle(at + 2).update({ where: `id = ${10 + at}`, values: { text: 'updated' } }),
      merge(handle(at + 3), at),
    ]);
    const compactions = [handle(4).optimize(), handle(5).optimize()];
    const versions = (await Promise.all(changes)).map(({ version }) => version);
    await Promise.all(compactions);
    expect(new Set(versions).size).toBe(40);
    const native = await theirs.openTable('storm');
    const added = range(0, 10).flatMap((at) => range(100 + at * 10, 103 + at * 10));
    expect(await ids(native)).toEqual([...range(10, 40), ...added, ...range(500, 510)]);
    expect(await ids(native, "text = 'updated'")).toEqual(range(10, 20));
    expect(await ids(native, "text like 'merged %'")).toEqual([...range(30, 40), ...range(500, 510)]);
    expect((await native.listVersions()).map(({ version }) => version)).toEqual(range(1, (await native.version()) + 1));
    await native.optimize(now());
    await handle(0).checkoutLatest();
    expect(await handle(0).countRows()).toBe(70);
    await Promise.all(dbs.map((db) => db.close()));
  }, 60_000);

  test('t18: of four that create one table exactly one does, and LanceDB finds its rows', async () => {
    const dbs = await Promise.all([1, 2, 3, 4].map(() => lancelet.connect(folder)));
    const made = await Promise.allSettled(dbs.map((db, at) => db.createTable('contested', rows(at, at + 1))));
    const winners = made.flatMap(({ status }, at) => (status === 'fulfilled' ? [at] : []));
    expect(winners.length).toBe(1);
    for (const each of made) {
      if (each.status === 'rejected') expect(each.reason).toMatchObject({ code: 'TABLE_EXISTS' });
    }
    const native = await theirs.openTable('contested');
    expect([await ids(native), await native.version()]).toEqual([winners, 1]);
    await Promise.all(dbs.map((db) => db.close()));
  });
});
