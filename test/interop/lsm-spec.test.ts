/** Write specs of the LSM path between the two libraries, and what is left alone of a log that LanceDB filled. */

import * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';
import { expect, test } from 'vitest';

import type * as lancelet from '../../src/node';
import { files, now, ours, theirs } from './shared-folder';

const schema = new arrow.Schema([
  new arrow.Field('id', new arrow.Int64(), false),
  new arrow.Field('text', new arrow.Utf8(), true),
]);
const SPECS: readonly lancelet.LsmWriteSpec[] = [
  { specType: 'bucket', column: 'id', numBuckets: 4, writerConfigDefaults: { zzz: 'q', max_memtable_rows: '50' } },
  { specType: 'identity', column: 'text', maintainedIndexes: [] },
  { specType: 'unsharded' },
];
const whole = (spec: lancelet.LsmWriteSpec) => ({ maintainedIndexes: [], writerConfigDefaults: {}, ...spec });
type Tables = { mine: lancelet.Table; native: lancedb.Table };

/** A table of one key and no spec, in both libraries. */
async function keyed(name: string): Promise<Tables> {
  const mine = await ours.createEmptyTable(name, schema, { primaryKey: 'id' });
  return { mine, native: await theirs.openTable(name) };
}

/** One upsert on LanceDB's LSM path. */
async function upsert(table: lancedb.Table, id: number, text: string): Promise<void> {
  const merge = table.mergeInsert('id').whenMatchedUpdateAll().whenNotMatchedInsertAll();
  const done = await merge.execute([{ id: BigInt(id), text }]);
  expect(done).toMatchObject({ version: 0, numRows: 1 });
}

async function contents(query: lancedb.Query | lancelet.Query): Promise<string[]> {
  const rows = (await query.toArray()) as { id: bigint; text: string }[];
  return rows.map(({ id, text }) => `${id} ${text}`).sort();
}

const shardsOf = (name: string): string[] => [
  ...new Set(files(name).flatMap((path) => /^_mem_wal\/([^/]+)\//.exec(path)?.[1] ?? [])),
];

test.each(SPECS.map((spec) => [spec.specType, spec] as const))(
  'a spec of the kind %s that is set here is LanceDB’s, and its upserts go by it',
  async (kind, spec) => {
    const { mine, native } = await keyed(`ours_${kind}`);
    await mine.setLsmWriteSpec(spec);
    await native.checkoutLatest();
    expect(await native.getLsmWriteSpec()).toEqual(whole(spec));
    expect(await mine.getLsmWriteSpec()).toEqual(whole(spec));
    expect(await native.listIndices()).toEqual([]);
    await upsert(native, 7, 'us');
    await native.closeLsmWriters();
    expect(await contents(native.query())).toEqual(['7 us']);
    const stats = await mine.getLsmStats(true);
    const written = stats?.buckets.filter(({ generations }) => generations.length > 0);
    expect(written?.map(({ shardId }) => shardId)).toEqual(shardsOf(`ours_${kind}`));
    expect(written?.[0]?.generations).toMatchObject([{ generation: 1, rows: 1 }]);
    expect(stats?.buckets.length).toBe(kind === 'bucket' ? 4 : 1);
  },
);

test.each(SPECS.map((spec) => [spec.specType, spec] as const))(
  'a spec of the kind %s that LanceDB set is read here, and taken away',
  async (kind, spec) => {
    const { mine, native } = await keyed(`theirs_${kind}`);
    await native.checkoutLatest();
    await native.setLsmWriteSpec(spec as lancedb.LsmWriteSpec);
    await mine.checkoutLatest();
    expect(await mine.getLsmWriteSpec()).toEqual(whole(spec));
    await expect(mine.setLsmWriteSpec(spec)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: /already set on this table/,
    });
    await mine.unsetLsmWriteSpec();
    await native.checkoutLatest();
    expect(await native.getLsmWriteSpec()).toBeUndefined();
    await expect(mine.unsetLsmWriteSpec()).rejects.toThrow(/no LSM write spec is set on this table/);
    await expect(native.unsetLsmWriteSpec()).rejects.toThrow(/no LSM write spec is set on this table/);
  },
);

test('a primary key that is set in one library is the other’s', async () => {
  const rows = [{ id: 1n, text: 'a' }];
  const mine = await ours.createTable('key', rows, { schema });
  await mine.setUnenforcedPrimaryKey(['id']);
  const native = await theirs.openTable('key');
  await expect(native.setUnenforcedPrimaryKey('id')).rejects.toThrow(/already set on this table/);
  await native.setLsmWriteSpec({ specType: 'unsharded' });
  await upsert(native, 1, 'b');

  const other = await theirs.createTable('key2', rows, { schema });
  await other.setUnenforcedPrimaryKey('id');
  const again = await ours.openTable('key2');
  for (const table of [again, other]) {
    await expect(table.setUnenforcedPrimaryKey('id')).rejects.toThrow(/already set on this table/);
  }
  await again.setLsmWriteSpec({ specType: 'bucket', column: 'id', numBuckets: 2 });
});

test('what is wrong with a key or a spec is said as LanceDB says it', async () => {
  const pair = async (name: string) => {
    const mine = await ours.createEmptyTable(name, schema);
    return { mine, native: await theirs.openTable(name) };
  };
  const said = async (call: Promise<unknown>): Promise<string> => {
    const error = await call.then(
      () => undefined,
      (reason: Error) => reason,
    );
    return (error?.message ?? 'no error').replace(/^invalid input, /i, '');
  };
  const { mine, native } = await pair('faults');
  for (const columns of ['zz', [], ['id', 'text']]) {
    expect(await said(mine.setUnenforcedPrimaryKey(columns))).toBe(await said(native.setUnenforcedPrimaryKey(columns)));
  }
  await mine.setUnenforcedPrimaryKey('id');
  await native.checkoutLatest();
  const specs: readonly object[] = [
    {},
    { specType: 'foo' },
    { specType: 'bucket', numBuckets: 2 },
    { specType: 'bucket', column: 'id' },
    { specType: 'bucket', column: 'zz', numBuckets: 2 },
    { specType: 'bucket', column: 'id', numBuckets: 0 },
    { specType: 'bucket', column: 'id', numBuckets: 1025 },
    { specType: 'identity' },
    { specType: 'identity', column: 'zz' },
    { specType: 'unsharded', maintainedIndexes: ['nope'] },
  ];
  for (const spec of specs) {
    const theirs = await said(native.setLsmWriteSpec(spec as lancedb.LsmWriteSpec));
    expect(await said(mine.setLsmWriteSpec(spec as lancelet.LsmWriteSpec)), JSON.stringify(spec)).toBe(theirs);
  }
  // These LanceDB takes: each would lose rows, or make the table unreadable.
  const later: readonly object[] = [
    { specType: 'bucket', column: 'id', numBuckets: 1.5 },
    { specType: 'bucket', column: 'text', numBuckets: 2 },
  ];
  for (const spec of later) {
    await expect(mine.setLsmWriteSpec(spec as lancelet.LsmWriteSpec)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  }
  const keyless = await ours.createEmptyTable('keyless', schema);
  await expect(keyless.setLsmWriteSpec({ specType: 'unsharded' })).rejects.toThrow(/no unenforced primary key/);
  expect(await mine.version()).toBe(2);
});

test('rows that LanceDB has in its log are read, not written over and not taken away', async () => {
  const { mine, native } = await keyed('filled');
  await mine.add([{ id: 1n, text: 'base' }]);
  await mine.setLsmWriteSpec({ specType: 'unsharded' });
  await native.checkoutLatest();
  await upsert(native, 1, 'one');
  await native.closeLsmWriters();
  // Those of a writer that is still open are in the log only.
  await upsert(native, 2, 'two');
  expect(await contents(native.query())).toEqual(['1 one', '2 two']);

  const refused = { code: 'NOT_SUPPORTED', message: /write-ahead log has rows that the base table lacks/ };
  expect(await contents(mine.query())).toEqual(['1 one', '2 two']);
  await expect(mine.add([{ id: 1n, text: 'new' }])).rejects.toMatchObject(refused);
  await expect(mine.delete('id = 1')).rejects.toMatchObject(refused);
  await expect(mine.unsetLsmWriteSpec()).rejects.toMatchObject(refused);
  const merge = mine.mergeInsert('id').whenMatchedUpdateAll().whenNotMatchedInsertAll();
  await expect(merge.execute([{ id: 1n, text: 'x' }])).rejects.toMatchObject({ message: /LSM write path/ });
  await expect(merge.useLsm(false).execute([{ id: 1n, text: 'x' }])).rejects.toMatchObject(refused);
  expect(await contents(mine.query().useLsm(false))).toEqual(['1 base']);

  const before = files('filled').filter((path) => path.startsWith('_mem_wal'));
  await mine.optimize(now());
  expect(files('filled').filter((path) => path.startsWith('_mem_wal'))).toEqual(before);
  const stats = await mine.getLsmStats(true);
  expect(stats?.buckets).toMatchObject([
    {
      shardId: 'aa48498d-ac91-59e2-8452-69f46010ace2',
      status: 'Active',
      writerEpoch: 2,
      currentGeneration: 2,
      generations: [{ generation: 1, rows: 1 }],
      compacting: false,
    },
  ]);
  const [bucket] = stats?.buckets ?? [];
  expect(bucket?.walEntryPositionLastSeen).toBeGreaterThan(bucket?.replayAfterWalEntryPosition ?? Infinity);
  expect((await mine.getLsmStats())?.buckets[0]?.generations[0]).not.toHaveProperty('rows');
  await native.closeLsmWriters();
  const reopened = await theirs.openTable('filled');
  expect(await contents(reopened.query())).toEqual(['1 one', '2 two']);
});

test('shards that an overwrite left behind do not come back in LanceDB', async () => {
  const { mine, native } = await keyed('overwritten');
  await mine.setLsmWriteSpec({ specType: 'unsharded' });
  await native.checkoutLatest();
  await upsert(native, 1, 'old');
  await native.closeLsmWriters();
  await mine.add([{ id: 5n, text: 'new' }], { mode: 'overwrite' });
  expect(shardsOf('overwritten')).toEqual([]);
  const reopened = await theirs.openTable('overwritten');
  expect(await reopened.getLsmWriteSpec()).toBeUndefined();
  await reopened.setLsmWriteSpec({ specType: 'unsharded' });
  expect(await contents(reopened.query())).toEqual(['5 new']);
  await mine.checkoutLatest();
  expect(await contents(mine.query())).toEqual(['5 new']);
});

test('useLsm asks for a spec, in queries and in merges', async () => {
  const { mine, native } = await keyed('asked');
  const message = /use_lsm\(true\) was set but the table has no MemWAL write spec/;
  for (const table of [mine, native]) {
    await expect(table.query().useLsm(true).toArray()).rejects.toThrow(message);
    await expect(table.takeOffsets([0]).useLsm(true).toArray()).rejects.toThrow(message);
    const merge = table.mergeInsert('id').whenMatchedUpdateAll().useLsm(true);
    await expect(merge.execute([{ id: 1n, text: 'x' }])).rejects.toThrow(message);
  }
  await mine.setLsmWriteSpec({ specType: 'unsharded' });
  expect(await mine.query().useLsm(true).toArray()).toEqual([]);
});

test('rows without a schema get a key that both libraries know', async () => {
  const mine = await ours.createTable('plain', [{ id: 'a', n: 1 }], { primaryKey: 'id' });
  expect((await mine.schema()).fields.map(({ name, nullable }) => [name, nullable])).toEqual([
    ['id', false],
    ['n', true],
  ]);
  await mine.setLsmWriteSpec({ specType: 'bucket', column: 'id', numBuckets: 8 });
  const native = await theirs.openTable('plain');
  const merge = native.mergeInsert('id').whenMatchedUpdateAll().whenNotMatchedInsertAll();
  await merge.execute([{ id: 'a', n: 2 }]);
  expect((await native.query().toArray()).map((row) => row.n)).toEqual([2]);
  await expect(ours.createTable('plain2', [{ id: null, n: 1 }], { primaryKey: 'id' })).rejects.toMatchObject({
    code: 'SCHEMA',
  });
  await expect(ours.createTable('plain2', [{ id: 'a', n: 1.5 }], { primaryKey: 'n' })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: /Float64 which is not supported as a primary key/,
  });
  await expect(ours.createTable('plain2', [{ id: 'a' }], { primaryKey: 'zz' })).rejects.toThrow(/'zz' not found/);
  const again = await ours.createTable('plain', [{ id: 'a', n: 1 }], { primaryKey: 'id', existOk: true });
  expect(await again.getLsmWriteSpec()).toMatchObject({ specType: 'bucket' });
});
