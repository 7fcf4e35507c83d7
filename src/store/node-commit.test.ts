import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, expect, it } from 'vitest';

import { commitStaged, type StagedCommit } from './node-commit';
import { fileNames, tokenOf } from './node-files';

const top = mkdtempSync(join(tmpdir(), 'lancelet-commit-'));
let count = 0;

afterAll(() => rmSync(top, { recursive: true, force: true }));

/** A directory with version 1 and a commit of version 2; `meanwhile` runs after the checks, as another program would. */
async function commitBeside(meanwhile: (folder: string) => Promise<unknown>) {
  const folder = join(top, String((count += 1)));
  const scratch = join(folder, 'scratch');
  await mkdir(join(folder, '_versions'), { recursive: true });
  await mkdir(scratch);
  await writeFile(join(folder, '_versions/1'), 'one');
  await writeFile(join(folder, 'hint'), 'old');
  for (const name of ['hint', 'txn', 'manifest']) await writeFile(join(scratch, name), `new ${name}`);
  let scratches = 0;
  const commit: StagedCommit = {
    objects: [
      { path: 'hint', file: join(scratch, 'hint') },
      { path: '_transactions/2', file: join(scratch, 'txn') },
    ],
    manifest: { path: '_versions/2', file: join(scratch, 'manifest') },
    token: tokenOf(await fileNames(join(folder, '_versions'))),
    requires: [],
    newScratch: async () => {
      scratches += 1;
      if (scratches === 1) await meanwhile(folder);
      return join(scratch, `old-${scratches}`);
    },
  };
  const outcome = await commitStaged(folder, commit);
  const content = async (path: string) => readFile(join(folder, path), 'utf8').catch(() => undefined);
  return {
    outcome,
    versions: (await readdir(join(folder, '_versions'))).sort(),
    hint: await content('hint'),
    transaction: await content('_transactions/2'),
    manifest: await content('_versions/2'),
    scratch: (await readdir(scratch)).sort(),
  };
}

it('a commit that nobody disturbs replaces and adds', async () => {
  expect(await commitBeside(async () => undefined)).toEqual({
    outcome: { kind: 'committed' },
    versions: ['1', '2'],
    hint: 'new hint',
    transaction: 'new txn',
    manifest: 'new manifest',
    scratch: ['manifest'],
  });
});

it('a manifest that appeared after the checks takes ours back, and its objects', async () => {
  expect(await commitBeside((folder) => writeFile(join(folder, '_versions/3'), 'theirs'))).toEqual({
    outcome: { kind: 'moved' },
    versions: ['1', '3'],
    hint: 'old',
    transaction: undefined,
    manifest: undefined,
    scratch: ['manifest'],
  });
});

it('a manifest of the same name that was faster stays', async () => {
  expect(await commitBeside((folder) => writeFile(join(folder, '_versions/2'), 'theirs'))).toEqual({
    outcome: { kind: 'exists' },
    versions: ['1', '2'],
    hint: 'old',
    transaction: undefined,
    manifest: 'theirs',
    scratch: ['manifest'],
  });
});
