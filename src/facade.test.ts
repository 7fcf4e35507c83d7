import * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { makeArrowTable } from './arrow';
import { connect, Connection, toConsistency } from './connection';
import { asyncDispose } from './dispose';
import { FakeEngine } from './engine/fake-engine';
import { LanceError } from './errors';
import type { Query, TakeQuery } from './query';
import { Table } from './table';
import type { ExportedFile, WriteProgress } from './types';

let engine: FakeEngine;
let db: Connection;

beforeEach(() => {
  engine = new FakeEngine();
  db = new Connection(engine, 'memory://t');
});

const rows = (table: arrow.Table): unknown[] => table.toArray().map((row: { toJSON(): unknown }) => row.toJSON());

describe('connect', () => {
  it('refuses what is no database', async () => {
    await expect(connect(undefined as never)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: /uri is required/,
    });
    await expect(connect({} as never)).rejects.toMatchObject({ code: 'INVALID_INPUT', message: /uri is required/ });
    await expect(connect(5 as never)).rejects.toMatchObject({ code: 'INVALID_INPUT', message: /uri must be a string/ });
    await expect(connect('db://x')).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    await expect(connect('memory://x', { readConsistencyInterval: -1 })).rejects.toMatchObject({ message: /found -1/ });
  });

  it('e1.11: takes the interval in seconds and keeps it as a plain property', () => {
    expect([undefined, null, 0, 2.5].map(toConsistency)).toEqual([
      { kind: 'lazy' },
      { kind: 'lazy' },
      { kind: 'strong' },
      { kind: 'eventual', ms: 2500 },
    ]);
    expect(db.readConsistencyInterval).toBeUndefined();
    expect(new Connection(engine, 'x', { readConsistencyInterval: 5 }).readConsistencyInterval).toBe(5);
    expect(() => toConsistency(NaN)).toThrow(/found NaN/);
  });
});

describe('Connection', () => {
  it('creates, lists, opens and drops tables', async () => {
    const table = await db.createTable('b', [{ id: 1n, vector: [1, 2] }]);
    await db.createTable({ name: 'a', data: makeArrowTable([{ x: 1 }]) });
    await db.createEmptyTable('c', new arrow.Schema([new arrow.Field('x', new arrow.Int32())]));
    expect(await db.tableNames()).toEqual(['a', 'b', 'c']);
    expect(await db.tableNames({ startAfter: 'a', limit: 1 })).toEqual(['b']);
    expect(await db.tableNames([], { startAfter: 'b' })).toEqual(['c']);
    expect(await db.listTables([], { limit: 2 })).toEqual({ tables: ['a', 'b'], pageToken: 'b' });
    expect(await db.listTables([], { limit: 2, pageToken: 'b' })).toEqual({ tables: ['c'] });
    expect(await db.listTables({ limit: 1, pageToken: 'a' })).toEqual({ tables: ['b'], pageToken: 'b' });
    expect(await db.listTables({ limit: 0 })).toEqual({ tables: [] });
    expect(table.name).toBe('b');
    expect(String((await table.schema()).fields[1]?.type)).toBe('FixedSizeList[2]<Float32>');
    expect(await (await db.openTable('c')).countRows()).toBe(0);
    await db.dropTable('a');
    await db.dropAllTables();
    expect(await db.tableNames()).toEqual([]);
    await expect(db.openTable('a')).rejects.toMatchObject({
      code: 'TABLE_NOT_FOUND',
      message: "Table 'a' was not found",
    });
  });

  it('makes tables of the data format that is asked for', async () => {
    const data = [{ x: 1 }];
    const older = new Connection(engine, 'memory://t', { storageOptions: { newTableDataStorageVersion: '2.1' } });
    await db.createTable('a', data);
    await db.createTable('b', data, { dataStorageVersion: '2.0' });
    await db.createTable('c', data, { storageOptions: { newTableDataStorageVersion: '2.1' } });
    await db.createTable('d', data, { storageOptions: { new_table_data_storage_version: 'Stable' } });
    await older.createEmptyTable('e', makeArrowTable(data).schema);
    await older.createTable('f', data, { storageOptions: { newTableDataStorageVersion: '2.0', timeout: '1s' } });
    await older.createTable('g', data, {
      dataStorageVersion: '2.2',
      storageOptions: { newTableDataStorageVersion: '2.0' },
    });
    expect(engine.formats).toEqual([undefined, '2.0', '2.1', '2.2', '2.1', '2.0', '2.2']);

    const written = 'this build writes 2.0, 2.1 and 2.2 (stable)';
    for (const version of ['legacy', '0.1', 'next', '2.3']) {
      const refused = {
        code: 'NOT_SUPPORTED',
        message: `not supported: Lance storage version ${version}; ${written}`,
      };
      await expect(db.createTable('x', data, { dataStorageVersion: version })).rejects.toMatchObject(refused);
      const storageOptions = { newTableDataStorageVersion: version };
      await expect(connect('memory://x', { storageOptions })).rejects.toMatchObject(refused);
    }
    for (const version of ['bogus', '', 'toString'])
      await expect(db.createTable('x', data, { dataStorageVersion: version })).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        message: `invalid input, Unknown Lance storage version: ${version}; ${written}`,
      });
    expect(await db.tableNames()).not.toContain('x');
  });

  it('tells each wrong option of createTable apart', async () => {
    const data = [{ a: 1 }];
    await expect(db.createTable('t', data, { mode: 'bogus' as never })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: /Invalid mode bogus: 'create' or 'overwrite' expected/,
    });
    await expect(db.createTable('t', data, { enableV2ManifestPaths: false })).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
    });
    for (const key of ['newTableEnableV2ManifestPaths', 'new_table_enable_v2_manifest_paths']) {
      const create = (value: string) => db.createTable('t', data, { storageOptions: { [key]: value } });
      await expect(create('false')).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
      await expect(create('yes')).rejects.toMatchObject({ message: /enable_v2_manifest_paths must be a boolean/ });
      await (await create('true')).close();
      await db.dropTable('t');
    }
    await expect(db.createTable('t', [])).rejects.toMatchObject({ message: /At least one record or a schema/ });
    await expect(db.createTable('t', undefined as never)).rejects.toMatchObject({ message: /data is required/ });
    await expect(db.createTable('t', data, ['ns'])).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    await expect(db.createTable('t', data, { schema: {} as never })).rejects.toMatchObject({
      message: /not an Arrow schema/,
    });
    await expect(db.createTable(7 as never, data)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    expect(engine.liveKinds()).toEqual([]);
    await (await db.createTable('t', data)).close();
    await expect(db.createTable('t', data)).rejects.toMatchObject({ code: 'TABLE_EXISTS' });
    await expect(db.tableNames({ limit: -1 })).rejects.toMatchObject({ message: /found -1/ });
    await expect(db.tableNames(['ns'])).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
  });

  it('opens a table that may exist, when its columns are those of the data', async () => {
    const made = await db.createTable('t', [{ a: 1 }], { existOk: true });
    await made.add([{ a: 2 }]);
    let isRead = false;
    function* data(): Generator<{ a: number }> {
      isRead = true;
      yield { a: 3 };
    }
    const schema = makeArrowTable([{ a: 1 }]).schema;
    const again = await db.createTable('t', data(), { existOk: true, schema });
    expect([isRead, await again.version(), await again.countRows()]).toEqual([false, 2, 2]);
    await again.close();
    await (await db.createEmptyTable('t', schema, { existOk: true })).close();
    await expect(db.createTable('t', [{ b: 'x' }], { existOk: true })).rejects.toMatchObject({ code: 'SCHEMA' });
    await expect(
      db.createEmptyTable('t', makeArrowTable([{ a: 'x' }]).schema, { existOk: true }),
    ).rejects.toMatchObject({ code: 'SCHEMA' });
    expect(engine.liveKinds()).toEqual(['table']);
  });

  it('opens a table that may exist also when it is made meanwhile', async () => {
    await db.createTable('other', [{ a: 7 }]);
    const finish = engine.finishCreate.bind(engine);
    engine.finishCreate = async (handle) => {
      engine.finishCreate = finish;
      engine.tables.set('t', engine.tables.get('other') as never);
      await engine.abortWrite(handle);
      throw new LanceError('TABLE_EXISTS', "Table 't' already exists");
    };
    const table = await db.createTable('t', [{ a: 1 }], { existOk: true });
    expect(rows(await table.toArrow())).toEqual([{ a: 7 }]);
  });

  it('overwrites a table that exists, and makes one that does not', async () => {
    const first = await db.createTable('t', [{ a: 1 }], { mode: 'overwrite' });
    expect(await first.version()).toBe(1);
    const second = await db.createTable('t', [{ b: 'x' }, { b: 'y' }], { mode: 'overwrite', existOk: true });
    expect([await second.version(), rows(await second.toArrow())]).toEqual([2, [{ b: 'x' }, { b: 'y' }]]);
    const empty = await db.createEmptyTable('t', makeArrowTable([{ c: true }]).schema, { mode: 'overwrite' });
    expect([await empty.version(), (await empty.schema()).fields.map(String)]).toEqual([3, ['c: Bool']]);
    engine.fails = { write: new LanceError('QUOTA', 'the storage is full') };
    await expect(db.createTable('t', [{ d: 1 }], { mode: 'overwrite' })).rejects.toMatchObject({ code: 'QUOTA' });
    expect(engine.liveKinds()).toEqual(['table', 'table', 'table']);
    expect(await empty.version()).toBe(3);
  });

  it('renames tables', async () => {
    const table = await db.createTable('t', [{ a: 1 }]);
    await db.renameTable('t', 'u');
    expect([await db.tableNames(), table.name]).toEqual([['u'], 't']);
    await expect(db.renameTable('t', 'v')).rejects.toMatchObject({ code: 'TABLE_NOT_FOUND' });
    await expect(db.renameTable('u', 7 as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await expect(db.renameTable('u', 'v', { newNamespacePath: ['n'] })).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
    });
  });

  it('gives its tables its interval and its storage options', async () => {
    const storageOptions = { timeout: '60s' };
    const other = new Connection(engine, 'memory://t', { readConsistencyInterval: 2.5, storageOptions });
    const table = await other.createTable('t', [{ a: 1 }]);
    expect(table.readConsistencyInterval).toBe(2.5);
    expect(table.display()).toBe('NativeTable(t, uri=memory://t/t.lance, read_consistency_interval=2.5s)');
    expect(await table.initialStorageOptions()).toEqual({ timeout: '60s' });
    const own = await other.openTable('t', { storageOptions: { x: 'y' } });
    expect(await own.latestStorageOptions()).toEqual({ x: 'y' });
    const plain = await db.openTable('t');
    expect([await plain.initialStorageOptions(), plain.readConsistencyInterval]).toEqual([null, undefined]);
    expect(await plain.usesV2ManifestPaths()).toBe(true);
  });

  it('leaves nothing when a create fails, and closes what the data came from', async () => {
    let isClosed = false;
    async function* data(): AsyncGenerator<Record<string, unknown>[]> {
      try {
        yield [{ a: 1 }];
        yield [{ a: 'x' }];
      } finally {
        isClosed = true;
      }
    }
    await expect(db.createTable('t', data())).rejects.toMatchObject({
      code: 'SCHEMA',
      details: { column: 'a', row: 1 },
    });
    expect(isClosed).toBe(true);
    expect(engine.liveKinds()).toEqual([]);
    engine.fails = { write: new LanceError('QUOTA', 'the storage is full') };
    await expect(db.createTable('t', [{ a: 1 }])).rejects.toMatchObject({ code: 'QUOTA' });
    expect(await db.tableNames()).toEqual([]);
  });

  it('passes its consistency to every table', async () => {
    const strong = new Connection(engine, 'x', { readConsistencyInterval: 0 });
    await strong.createTable('t', [{ a: 1 }]);
    await strong.openTable('t');
    expect(engine.consistencies).toEqual([{ kind: 'strong' }, { kind: 'strong' }]);
  });

  it('is closed once, and its tables go on', async () => {
    const table = await db.createTable('t', [{ a: 1 }]);
    expect(db.isOpen()).toBe(true);
    await db.close();
    await db[asyncDispose]();
    expect([db.isOpen(), engine.isClosed]).toEqual([false, true]);
    await expect(db.tableNames()).rejects.toMatchObject({ code: 'CLOSED', message: 'Connection is closed' });
    expect(() => db.exportTable('t')).toThrow('Connection is closed');
    expect(() => db.display()).toThrow('Connection is closed');
    expect(await table.version()).toBe(1);
  });

  it('opens a version pinned, and no handle when it is not there', async () => {
    await (await db.createTable('t', [{ a: 1 }])).close();
    await db.openTable('t', { version: 1 });
    expect(engine.liveKinds()).toEqual(['table']);
    await expect(db.openTable('t', [], { version: 999 })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(engine.liveKinds()).toEqual(['table']);
    await expect(db.openTable('t', { branch: 'dev' })).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
  });

  it('moves files out and in, in pieces', async () => {
    const files: ExportedFile[] = [];
    for await (const file of db.exportTable('t')) {
      const bytes = new Uint8Array(await new Response(file.stream).arrayBuffer());
      expect(bytes.length).toBe(file.size);
      if (file.size > 0) expect([bytes[0], bytes[2 ** 20], bytes[2 ** 21]]).toEqual([0, 1, 2]);
      files.push(file);
    }
    expect(files.map(({ path }) => path)).toEqual(['data/a.lance', '_versions/1.manifest']);
    for await (const file of db.exportTable('t')) {
      expect(file.path).toBe('data/a.lance');
      break;
    }
    expect(engine.liveKinds()).toEqual([]);

    const bytes = Buffer.from('pooled');
    await db.importTable('u', [
      { path: 'a', bytes },
      { path: 'b', blob: new Blob(['xy']) },
      { path: 'c', stream: new Blob(['z']).stream() },
      {
        path: 'd',
        stream: (async function* () {
          yield new Uint8Array([1]);
          yield new Uint8Array([2]);
        })(),
      },
    ]);
    expect(engine.imported.map(({ path, bytes: got }) => [path, Buffer.from(got).toString('latin1')])).toEqual([
      ['a', 'pooled'],
      ['b', 'xy'],
      ['c', 'z'],
      ['d', '\x01\x02'],
    ]);
    expect(bytes.toString()).toBe('pooled');
    await expect(db.importTable('v', [{ path: 'a' }])).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await expect(db.importTable('v', [{ path: 'a', bytes: 'x' as never }])).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    });
    expect(engine.liveKinds()).toEqual(['table']);
  });
});

describe('Table', () => {
  let table: Table;
  beforeEach(async () => {
    table = await db.createTable('t', [{ a: 1, s: 'x' }]);
  });

  it('adds rows by its schema, in one version', async () => {
    expect(await table.add([{ s: 'y' }, { a: 3 }])).toEqual({ version: 2 });
    expect(await table.add([])).toEqual({ version: 2 });
    expect(rows(await table.toArrow())).toEqual([
      { a: 1, s: 'x' },
      { a: null, s: 'y' },
      { a: 3, s: null },
    ]);
    await expect(table.add([{ a: 1, zz: 1 }])).rejects.toMatchObject({
      message: 'Found field not in schema: zz at row 0',
    });
    await expect(table.add([{ a: 1 }], { mode: 'zz' as never })).rejects.toMatchObject({
      message: /Invalid mode: zz, 'append' or 'overwrite' expected/,
    });
    engine.fails = { write: new LanceError('STORAGE', 'no') };
    await expect(table.add([{ a: 1 }])).rejects.toMatchObject({ code: 'STORAGE' });
    expect(engine.liveKinds()).toEqual(['table']);
    expect(await table.version()).toBe(2);
  });

  it('overwrites its rows: rows by its schema, Arrow data with their own', async () => {
    expect(await table.add([{ a: null, s: 'y' }], { mode: 'overwrite' })).toEqual({ version: 2 });
    expect(rows(await table.toArrow())).toEqual([{ a: null, s: 'y' }]);
    await expect(table.add([{ q: 1 }], { mode: 'overwrite' })).rejects.toMatchObject({
      message: 'Found field not in schema: q at row 0',
    });
    expect(await table.add([], { mode: 'overwrite' })).toEqual({ version: 3 });
    expect(await table.countRows()).toBe(0);
    await table.add(makeArrowTable([{ zz: 1 }]), { mode: 'overwrite' });
    expect((await table.schema()).fields.map(String)).toEqual(['zz: Float64']);
    expect(await table.version()).toBe(4);
    await table.restore();
    expect(await table.version()).toBe(5);
  });

  it('tells how far a write is', async () => {
    const told: WriteProgress[] = [];
    const data = Array.from({ length: 70_000 }, (_, i) => ({ a: i }));
    await table.add(data, { progress: (progress) => told.push(progress) });
    expect(told.map(({ outputRows, totalRows, done }) => [outputRows, totalRows, done])).toEqual([
      [65_536, 70_000, false],
      [70_000, 70_000, false],
      [70_000, 70_000, true],
    ]);
    expect(told[0]?.outputBytes).toBeGreaterThan(65_536 * 8);
    expect(told.at(-1)).toMatchObject({ activeTasks: 0, totalTasks: 1 });
    expect(told.at(-1)?.elapsedSeconds).toBeGreaterThanOrEqual(told[0]?.elapsedSeconds ?? Infinity);
    const streamed: WriteProgress[] = [];
    await table.add([{ a: 1 }, { a: 2 }].values(), { progress: (progress) => streamed.push(progress) });
    expect(streamed.map(({ outputRows, totalRows }) => [outputRows, totalRows])).toEqual([
      [2, undefined],
      [2, 2],
    ]);
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const version = await table.version();
    const progress = (): never => {
      throw new Error('mine');
    };
    expect(await table.add([{ a: 3 }], { progress })).toEqual({ version: version + 1 });
    expect(warn).toHaveBeenCalledTimes(2);
    warn.mockRestore();
  });

  it('takes rows as they are when add is called', async () => {
    const row = { a: 5, s: 'before' };
    const added = table.add([row], { mode: 'overwrite' });
    row.a = 99;
    row.s = 'after';
    await added;
    expect(rows(await table.toArrow())).toEqual([{ a: 5, s: 'before' }]);
  });

  it('reports deletes and versions as LanceDB does', async () => {
    expect(await table.delete('a = 1')).toEqual({ numDeletedRows: 2, version: 2 });
    expect(await table.listVersions()).toEqual([
      { version: 2, timestamp: new Date(1.5), metadata: { total_rows: '7' } },
    ]);
    expect(await table.countRows('a = 1')).toBe(0);
    await expect(table.delete(undefined as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await expect(table.checkout(1.5)).rejects.toMatchObject({ message: /found 1.5/ });
    await expect(table.checkout('tag')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await table.checkoutLatest();
  });

  it('says that it is closed', async () => {
    expect(table.display()).toBe('NativeTable(t, uri=memory://t/t.lance, read_consistency_interval=None)');
    await table.close();
    await table.close();
    expect(table.isOpen()).toBe(false);
    await expect(table.version()).rejects.toMatchObject({ code: 'CLOSED', message: 'Table t is closed' });
    await expect(table.toArrow()).rejects.toMatchObject({ code: 'CLOSED' });
    const atOnce = [() => table.query(), () => table.takeOffsets([0]), () => table.takeRowIds([0n])];
    for (const call of [...atOnce, () => table.currentBranch()]) expect(call).toThrow('Table t is closed');
    expect(engine.liveKinds()).toEqual([]);
  });
});

describe('Query', () => {
  let table: Table;
  const scan = async (query: Query): Promise<unknown> => {
    await query.toArrow();
    return engine.scans.at(-1);
  };
  beforeEach(async () => {
    table = await db.createTable('t', [[{ a: 1, s: 'x' }], [{ a: 2, s: 'y' }]].values());
  });

  it('says only what was asked for', async () => {
    expect(await scan(table.query())).toEqual({});
    expect(await scan(table.query().where('a > 1').limit(0).offset(2).withRowId())).toEqual({
      filter: 'a > 1',
      limit: 0,
      offset: 2,
      withRowId: true,
    });
    expect(await scan(table.query().where('a = 1 or a = 2').filter("s = 'x'"))).toEqual({
      filter: "(a = 1 or a = 2) AND (s = 'x')",
    });
    expect(await scan(table.query().select(['s', 'a']))).toEqual({ columns: ['s', 'a'] });
    expect(await scan(table.query().select('s'))).toEqual({ columns: ['s'] });
  });

  it('takes rows by position and by id', async () => {
    const taken = async (query: TakeQuery): Promise<unknown> => {
      await query.toArrow();
      return engine.scans.at(-1);
    };
    expect(await taken(table.takeOffsets([3, 0, 3]).select('s').withRowId())).toEqual({
      offsets: new BigUint64Array([3n, 0n, 3n]),
      columns: ['s'],
      withRowId: true,
    });
    expect(await taken(table.takeRowIds([2n ** 64n - 1n, 7]))).toEqual({
      rowIds: new BigUint64Array([2n ** 64n - 1n, 7n]),
    });
    expect(() => table.takeRowIds([-1n])).toThrow('Row id cannot be negative, found -1');
    for (const bad of [1.5, NaN, '1', null, 2 ** 53]) {
      expect(() => table.takeRowIds([bad as number])).toThrow(/Row id must be an integer \(or bigint\)/);
      expect(() => table.takeOffsets([bad as number])).toThrow(/an offset must be a whole number/);
    }
    expect(() => table.takeRowIds([2n ** 64n])).toThrow(/fit into 64 bits/);
    expect(() => table.takeOffsets(3 as never)).toThrow(/offsets must be an array, found number/);
  });

  it('refuses numbers that are no counts', () => {
    for (const bad of [-1, NaN, 1.5, 2 ** 53, '3', undefined, null, Infinity]) {
      expect(() => table.query().limit(bad as number)).toThrow(`found ${String(bad)}`);
      expect(() => table.query().offset(bad as number)).toThrow(`found ${String(bad)}`);
    }
  });

  it('lets no filter reach out of its parentheses', async () => {
    for (const bad of ['a = 1) or (true', '(a = 1', "s = 'x", 'a = 1))((']) {
      expect(() => table.query().where(bad), bad).toThrow(LanceError);
    }
    expect(await scan(table.query().where("s = ')('").where('f((a))'))).toEqual({ filter: "(s = ')(') AND (f((a)))" });
    expect(await scan(table.query().where("s = 'it''s ('"))).toEqual({ filter: "s = 'it''s ('" });
  });

  it('takes null for options that are left out, and no row that is null', async () => {
    expect((await table.query().toArray(null)).length).toBe(2);
    expect((await table.query().toArrow(null)).numRows).toBe(2);
    expect(await table.add([], null)).toEqual({ version: 1 });
    await table.optimize(null);
    for (const rows of [[null], [{ a: 1, s: 'x' }, undefined]]) {
      const refused = { code: 'INVALID_INPUT', message: `invalid input, row ${rows.length - 1} is not an object` };
      await expect(table.add(rows as never)).rejects.toMatchObject(refused);
      await expect(db.createTable('x', rows as never, { schema: await table.schema() })).rejects.toMatchObject(refused);
      await expect(
        table
          .mergeInsert('a')
          .whenMatchedUpdateAll()
          .execute(rows as never),
      ).rejects.toMatchObject(refused);
    }
    for (const files of [null, undefined, 3]) {
      await expect(db.importTable('x', files as never)).rejects.toThrow(/the files of an import must be iterable/);
    }
  });

  it('gives columns other names', async () => {
    const renamed = await table.query().select({ text: 's', again: 's', a: '`a`' }).toArrow();
    expect(renamed.schema.names).toEqual(['text', 'again', 'a']);
    expect(rows(renamed)).toEqual([
      { text: 'x', again: 'x', a: 1 },
      { text: 'y', again: 'y', a: 2 },
    ]);
    expect(
      rows(
        await table
          .query()
          .select(new Map([['b', 'a']]))
          .toArrow(),
      ),
    ).toEqual([{ b: 1 }, { b: 2 }]);
    expect(() => table.query().select(['a', 'a'])).toThrow('Duplicate column name: a');
  });

  it('has expressions computed behind the columns, each once', async () => {
    for (const text of ['a + 1', '1', 'true', "'a'", 'f(a)']) {
      expect(await scan(table.query().select({ x: ` ${text} `, y: 'a', z: text })), text).toEqual({
        columns: ['a'],
        expressions: [text],
      });
    }
  });

  it('gives rows as proxies or as plain objects', async () => {
    const [first] = await table.query().toArray();
    expect([first?.['a'], first?.['s'], first?.toJSON?.()]).toEqual([1, 'x', { a: 1, s: 'x' }]);
    const nested = await db.createTable('n', [{ l: [1, 2], st: { b: 1n }, v: new Float32Array([1]) }]);
    const plain = await nested.query().toArray({ plainObjects: true });
    expect(plain).toEqual([{ l: [1, 2], st: { b: 1n }, v: [1] }]);
    expect(Object.getPrototypeOf(plain[0])).toBe(Object.prototype);
  });

  it('closes its stream at the end, when left early, and on an error', async () => {
    const seen: unknown[] = [];
    for await (const batch of table.query()) seen.push(batch.numRows);
    expect(seen).toEqual([1, 1]);
    expect(engine.liveKinds()).toEqual(['table']);
    for await (const batch of table.query()) {
      expect(batch.numRows).toBe(1);
      break;
    }
    expect(engine.liveKinds()).toEqual(['table']);
    const stream = await table.query().execute();
    expect(engine.liveKinds()).toEqual(['scan', 'table']);
    const [one, two, end] = await Promise.all([stream.next(), stream.next(), stream.next()]);
    expect([one.done, two.done, end.done]).toEqual([false, false, true]);
    expect(engine.liveKinds()).toEqual(['table']);
    engine.fails = { nextBatches: new LanceError('CORRUPT', 'bad page') };
    await expect(table.toArrow()).rejects.toMatchObject({ code: 'CORRUPT' });
    const unused = await table.query().execute();
    await unused[asyncDispose]();
    expect(engine.liveKinds()).toEqual(['table']);
  });

  it('knows its schema without reading rows', async () => {
    expect((await table.query().select('s').outputSchema()).names).toEqual(['s']);
    expect(engine.liveKinds()).toEqual(['table']);
  });

  it('gives up in time', async () => {
    let goOn = (): void => undefined;
    engine.stalls = new Promise((resolve) => (goOn = resolve));
    await expect(table.query().toArray({ timeoutMs: 0 })).rejects.toMatchObject({
      code: 'TIMEOUT',
      message: 'Query timeout after 0 ms',
    });
    await expect(table.query().toArray({ timeoutMs: 1 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    const controller = new AbortController();
    const query = table.query().toArray({ signal: controller.signal });
    controller.abort();
    await expect(query).rejects.toMatchObject({ code: 'ABORTED' });
    goOn();
    await Promise.resolve();
    expect(engine.liveKinds()).toEqual(['table']);
    await expect(table.query().toArray({ maxBatchLength: 0 })).rejects.toMatchObject({ message: /found 0/ });
  });
});

describe('what LanceDB has and this build lacks', () => {
  it('is there, and says so', async () => {
    const table = await db.createTable('t', [{ a: 1 }]);
    await expect(table.createIndex('a')).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
      message: 'not supported: Table.createIndex in this build',
      details: { feature: 'Table.createIndex' },
    });
    expect(() => table.query().nearestTo([1])).toThrow(/Query.nearestTo/);
    await expect(db.cloneTable('a', 'b')).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
  });

  it('is every method of LanceDB', async () => {
    const theirs = await lancedb.connect('memory://');
    const their = await theirs.createTable('t', [{ a: 1 }]);
    const ours = await db.createTable('t', [{ a: 1 }]);
    const internal = ['_createTableImpl', 'doCall', 'getInner', 'nativeExecute', 'getStorageOptions'];
    const missing = (whole: object, other: object): string[] =>
      methods(whole).filter((name) => !internal.includes(name) && !(name in other));
    expect(methods(their).length).toBeGreaterThan(40);
    expect(missing(theirs, db)).toEqual([]);
    expect(missing(their, ours)).toEqual([]);
    expect(missing(their.query(), ours.query())).toEqual([]);
    expect(missing(their.takeOffsets([0]), ours.takeOffsets([0]))).toEqual([]);
  });
});

function methods(object: object): string[] {
  const names = new Set<string>();
  for (let at: object = object; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (typeof value === 'function' && name !== 'constructor') names.add(name);
    }
  }
  return [...names];
}

afterEach(async () => {
  await db.close();
});
