import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as lancelet from '../../src/node';
import { documented, documentedCell, render, writeDocumentation } from './documentation';
import { dataset, marks, operations, refusal, runCell, versions } from './matrix';
import type { Cell, FormatVersion, Operation, Peers } from './matrix';
import { peerOfLanceDb, peerOfLancelet } from './peers';
import { types, type MatrixType } from './types';

const isFull = process.env['LANCELET_FULL'] === '1';
const task = process.env['LANCELET_MATRIX'];
const allOperations = Object.keys(operations) as Operation[];

/** An ordinary run covers every type in the version that is the default, some in the others, by the operations that include the rest. */
function chosen(at: number, version: FormatVersion): readonly Operation[] {
  if (isFull) return allOperations;
  if (version === '2.2') return ['they add to ours', 'we add to theirs', 'nulls'];
  return at % 4 === versions.indexOf(version) ? ['we add to theirs'] : [];
}

let folder: string;
let peers: Peers;
let tables = 0;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-matrix-'));
  const [theirs, ours] = await Promise.all([lancedb.connect(folder), lancelet.connect(folder)]);
  peers = { theirs: peerOfLanceDb(theirs), ours: peerOfLancelet(ours), folder };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const results = new Map<string, Map<FormatVersion, Map<Operation, Cell>>>();

async function refuses(type: MatrixType, version: FormatVersion): Promise<void> {
  const data = dataset(type, { version, seed: 1, batches: [40], nulls: 0.3 });
  const failure = await peers.ours.create(`t${tables++}`, data.table, version).then(
    () => undefined,
    (error: unknown) => error as lancelet.LanceError,
  );
  expect(failure?.code, failure?.message).toMatch(/^(NOT_SUPPORTED|SCHEMA)$/);
  expect(failure?.message).toContain('"c');
}

describe.each(versions)('format %s', (version) => {
  test.each(types.map((type, at) => [type.name, type, at] as const))('%s', async (_, type, at) => {
    const cells = new Map<Operation, Cell>();
    const toRun = chosen(at, version);
    if (toRun.length === 0) return;
    const message = await refusal(type, version, `t${tables++}`, peers);
    for (const operation of toRun) {
      const cell: Cell =
        message === undefined
          ? await runCell(type, version, operation, `t${tables++}`, peers)
          : { state: 'refused', message };
      cells.set(operation, cell);
    }
    const byVersion = results.get(type.name) ?? new Map<FormatVersion, Map<Operation, Cell>>();
    results.set(type.name, byVersion.set(version, cells));
    if (message !== undefined) await refuses(type, version);
    const failures = [...cells].filter(([, cell]) => cell.state === 'fails');
    expect(failures.map(([operation, cell]) => [operation, cell])).toEqual([]);
    if (task === 'write') return;
    const document = documentedCell(type.name, version);
    if (message !== undefined) {
      expect(document).toMatch(/^refused/);
      return;
    }
    for (const [operation, cell] of cells) {
      const mark = document?.charAt(allOperations.indexOf(operation));
      // What the documentation lacks may have come since; nothing may have gone.
      if (mark !== marks.missing) expect(`${operation}: ${marks[cell.state]}`).toBe(`${operation}: ${mark}`);
    }
  });
});

test('the table of the documentation is of these types and, in a full run, of these results', () => {
  const isComplete = isFull && [...results.values()].every((byVersion) => byVersion.size === versions.length);
  if (task === 'write' && isComplete) writeDocumentation(render(results));
  if (task !== undefined) console.log(render(results));
  const listed = documented()
    .split('\n')
    .filter((line) => /^\| .* \|$/.test(line))
    .slice(1)
    .map((line) => line.split(' | ')[0]?.slice(3, -1));
  expect(listed).toEqual(types.map(({ name }) => name));
  if (isComplete) expect(documented()).toBe(render(results));
});
