import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, describe, it } from 'vitest';

import { CASES, runCase } from './conformance';
import { withLostAnswers } from './lost-answers';
import { openNodeStore } from './node-fs';

const traits = { countsMoves: false };
const top = mkdtempSync(join(tmpdir(), 'lancelet-node-fs-'));
let count = 0;
const newRoot = () => join(top, String((count += 1)));

afterAll(() => rmSync(top, { recursive: true, force: true }));

describe('a folder keeps the contract', () => {
  it.each(CASES.map(({ name }) => name))('%s', async (name) => {
    const root = newRoot();
    await runCase(name, { traits, open: () => openNodeStore(root) });
  });
});

describe('a folder keeps the contract when answers are lost', () => {
  it.each(CASES.map(({ name }) => name))('%s', async (name) => {
    const root = newRoot();
    await runCase(name, { traits, open: async () => withLostAnswers(await openNodeStore(root)) });
  });
});
