import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, expect, test } from 'vitest';

const root = new URL('..', import.meta.url).pathname;
// Inside the package, so that the examples' `lancelet` is the package itself.
const scratch = join(root, 'test-results', 'readme');
const folder = mkdtempSync(join(tmpdir(), 'lancelet-readme-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  rmSync(scratch, { recursive: true, force: true });
});

test('the examples of the README run as they stand, one after the other', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const examples = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map((match) => match[1]);
  expect(examples).toHaveLength(5);
  const uri = "'opfs://notes'";
  const program = examples.join('\n');
  expect(program.split(uri)).toHaveLength(3);
  mkdirSync(scratch, { recursive: true });
  const file = join(scratch, 'examples.mjs');
  writeFileSync(file, program.replaceAll(uri, JSON.stringify(join(folder, 'notes'))));
  const printed = execFileSync(process.execPath, [file], { encoding: 'utf8', cwd: root });
  const lines = printed.trim().split('\n');
  expect(printed).toContain('"title": "herons"');
  expect(printed).toContain('SCHEMA column "vector", row 0: a vector of 1 items, 2 expected');
  // Version 1 has two rows, and so has the latest one of the imported table.
  expect(lines.filter((line) => /^\d+$/.test(line))).toEqual(['2', '2']);
  expect(lines.at(-1)).toContain('did you mean "title"?');
});
