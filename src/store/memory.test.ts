import { describe, it } from 'vitest';

import { CASES, runCase } from './conformance';
import { withLostAnswers } from './lost-answers';
import { openMemoryStore } from './memory';

const traits = { countsMoves: true };
let count = 0;

describe('memory keeps the contract', () => {
  it.each(CASES.map(({ name }) => name))('%s', async (name) => {
    const store = `test-${(count += 1)}`;
    await runCase(name, { traits, open: async () => openMemoryStore(store) });
  });
});

describe('memory keeps the contract when answers are lost', () => {
  it.each(CASES.map(({ name }) => name))('%s', async (name) => {
    const store = `test-${(count += 1)}`;
    await runCase(name, { traits, open: async () => withLostAnswers(openMemoryStore(store)) });
  });
});
