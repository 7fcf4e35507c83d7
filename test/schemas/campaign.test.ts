import { tmpdir } from 'node:os';

import * as arrow from 'apache-arrow';
import { expect, test } from 'vitest';

import { build, canonical, dictionaryOf, field, fixedListOf, listOf, structOf } from '../interop/build';
import { garbageOf, makerOf } from '../interop/makers';
import { versions } from '../interop/matrix';
import { Random } from '../interop/random';
import type { Peer, Question } from '../interop/peers';
import { valueAt } from '../interop/values';
import { runCampaign, type OpenedPeers } from './campaign';
import { describe as shown, randomField, upstreamBugs } from './shapes';

const folder = tmpdir();
const quiet = { folder, log: () => undefined };

test('columns of random types hold the values that they were built of, also as slices with values under their nulls', () => {
  for (let seed = 0; seed < 300; seed++) {
    const random = new Random(seed);
    const of = randomField('c', '2.2', random);
    const values = Array.from({ length: 20 }, makerOf(of, random));
    const data = build(of, values, garbageOf(random));
    for (const [from, part] of [[0, data] as const, [7, data.slice(7, 9)] as const]) {
      const read = Array.from({ length: part.length }, (_, at) => canonical(valueAt(part, at)));
      expect(read, `seed ${seed}: ${shown(of)}`).toEqual(values.slice(from, from + part.length).map(canonical));
    }
  }
});

test('random schemas are the same to LanceDB and here, whoever writes them', async () => {
  const result = await runCampaign({ ...quiet, from: 10_000, seeds: 40, writable: versions });
  expect(result.failures).toEqual([]);
  expect(result.passed).toBeGreaterThan(15);
});

/** Libraries that keep tables in memory; one of them forgets the second of two values. */
async function forgetful(): Promise<OpenedPeers> {
  const tables = new Map<string, arrow.RecordBatch[]>();
  const peer = (read: (batches: arrow.RecordBatch[]) => arrow.RecordBatch[]): Peer => ({
    create: async (name, data) => void tables.set(name, [...data.batches]),
    add: async (name, data) => void tables.get(name)?.push(...data.batches),
    read: async (name, { offset = 0, limit = Infinity }: Question = {}) => {
      const batches = read(tables.get(name) ?? []);
      return new arrow.Table(batches[0]?.schema as arrow.Schema, batches).slice(offset, offset + limit);
    },
  });
  const theirs = peer((batches) => batches);
  const ours = peer((batches) =>
    batches.map((batch) => (batch.numRows < 2 ? batch : batch.slice(0, batch.numRows - 1))),
  );
  return { peers: { theirs, ours }, close: async () => undefined };
}

test('a difference is reported with its seed, its schema and the smallest rows that show it', async () => {
  const result = await runCampaign({ ...quiet, from: 3, seeds: 1, writable: versions, openPeers: forgetful });
  expect(result.failures).toHaveLength(1);
  const [report = ''] = result.failures;
  expect(report).toMatch(/^seed 3: we read c\d: row \d+ of \d+: .* instead of /);
  const [batch = ''] = report.split('\n').filter((line) => line.startsWith('  batch'));
  // One column of two rows.
  const columns = JSON.parse(batch.replace(/^ {2}batch 0: /, '')) as unknown[][];
  expect(columns.map((values) => values.length)).toEqual([2]);
});

test('the shapes that LanceDB misreads are told from the others', () => {
  const int = new arrow.Int32();
  const wide = fixedListOf(70, new arrow.Float32());
  const open = (type: arrow.DataType): arrow.Struct => structOf(field('x', type));
  expect([...upstreamBugs(field('c', open(listOf(wide))))]).toEqual([1]);
  expect([...upstreamBugs(field('c', listOf(open(listOf(listOf(int))))))]).toEqual([2]);
  expect([...upstreamBugs(field('c', structOf(field('x', fixedListOf(2, open(int))), field('y', int))))]).toEqual([3]);
  const read = [
    open(listOf(int)),
    listOf(open(listOf(int))),
    open(fixedListOf(2, open(int))),
    listOf(listOf(dictionaryOf(int))),
  ];
  for (const type of read) expect([...upstreamBugs(field('c', type))], String(type)).toEqual([]);
  expect([...upstreamBugs(field('c', open(listOf(wide)), false))]).toEqual([]);
});
