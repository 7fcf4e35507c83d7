/** What the processes of `node-fs-processes.test.ts` run: one task on one folder, its result as JSON on the standard output. */
import { join } from 'node:path';

import { openNodeStore } from './node-fs';
import { FolderLock } from './node-lock';

const [task, root = '', dir = '', own = '', count = '0'] = process.argv.slice(2);
const bytes = (value: string) => new TextEncoder().encode(value);

/** Names of the objects that this process was the first to write. */
async function putLoop(): Promise<string[]> {
  const store = await openNodeStore(root);
  const won: string[] = [];
  for (let n = 0; n < Number(count); n += 1) {
    if (await store.putIfAbsent(dir, `race/${n}`, bytes(own))) won.push(`race/${n}`);
  }
  await store.close();
  return won;
}

/** Versions that this process committed. */
async function commitLoop(): Promise<number[]> {
  const store = await openNodeStore(root);
  const landed: number[] = [];
  while (landed.length < Number(count)) {
    const token = await store.token(dir, '_versions');
    const version = (await store.list(dir, '_versions', {})).objects.length + 1;
    const note = bytes(`${own}/${landed.length}`);
    const outcome = await store.commit({
      dir,
      objects: [{ path: `_transactions/${own}-${landed.length}`, bytes: note }],
      publish: { path: `_versions/${version}.manifest`, bytes: note },
      token,
      requires: [],
    });
    if (outcome.kind === 'committed') landed.push(version);
    else if (outcome.kind !== 'exists' && outcome.kind !== 'moved') throw new Error(outcome.kind);
  }
  await store.close();
  return landed;
}

/** Holds the lock until something comes in. */
async function holdLock(): Promise<string> {
  const own = join(root, '.lancelet');
  await new FolderLock(own, join(own, 'tmp'), {}).hold(async () => {
    console.log('"held"');
    await new Promise((resolve) => process.stdin.once('data', resolve));
  });
  process.stdin.destroy();
  return 'released';
}

const tasks: Record<string, () => Promise<unknown>> = { putLoop, commitLoop, holdLock };
console.log(JSON.stringify(await tasks[task ?? '']?.()));
