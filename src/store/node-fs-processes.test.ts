import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { connect } from '@lancedb/lancedb';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { openNodeStore } from './node-fs';

const top = mkdtempSync(join(tmpdir(), 'lancelet-processes-'));
const script = join(top, 'race.mjs');
const bytes = (value: string) => new TextEncoder().encode(value);
const text = (value: Uint8Array) => new TextDecoder().decode(value);
const MANIFEST = '_versions/1.manifest';

beforeAll(async () => {
  const source = fileURLToPath(new URL('./node-race.fixture.ts', import.meta.url));
  await build({
    entryPoints: [source],
    outfile: script,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  });
});

afterAll(() => rmSync(top, { recursive: true, force: true }));

function start(task: string, ...args: string[]): ChildProcess {
  return spawn(process.execPath, [script, task, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
}

async function answer<T>(child: ChildProcess): Promise<T> {
  if (child.stdout === null) throw new Error('no output');
  for await (const line of createInterface(child.stdout)) return JSON.parse(line) as T;
  throw new Error('the process ended without an answer');
}

async function tableIn(name: string) {
  const root = join(top, name);
  const store = await openNodeStore(root, { waitMs: 10_000 });
  const dir = await store.createDir(0, 1000);
  await store.put(dir, MANIFEST, bytes('manifest'));
  await store.publishDir('t', dir);
  return { root, store, dir };
}

describe('processes that write one folder', () => {
  it('exactly one wins each putIfAbsent', async () => {
    const { root, store, dir } = await tableIn('put');
    const count = 60;
    const runs = ['a', 'b', 'c'].map((own) => answer<string[]>(start('putLoop', root, dir, own, String(count))));
    const won = await Promise.all(runs);
    expect(won.flat().sort()).toEqual(Array.from({ length: count }, (_, n) => `race/${n}`).sort());
    for (const [index, own] of ['a', 'b', 'c'].entries()) {
      for (const path of won[index] ?? []) expect(text(await store.get(dir, path))).toBe(own);
    }
  });

  it('commits land one after the other, and none is lost', async () => {
    const { root, store, dir } = await tableIn('commit');
    const runs = ['a', 'b', 'c'].map((own) => answer<number[]>(start('commitLoop', root, dir, own, '15')));
    const landed = await Promise.all(runs);
    expect(landed.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 45 }, (_, n) => n + 2));
    for (const [index, own] of ['a', 'b', 'c'].entries()) {
      for (const [n, version] of (landed[index] ?? []).entries()) {
        expect(text(await store.get(dir, `_versions/${version}.manifest`))).toBe(`${own}/${n}`);
        expect(text(await store.get(dir, `_transactions/${own}-${n}`))).toBe(`${own}/${n}`);
      }
    }
    expect(await readdir(join(root, '.lancelet', 'tmp'))).toHaveLength(2);
  });

  it('k8: a lock whose holder was killed does not block', async () => {
    const { root, store, dir } = await tableIn('killed');
    const holder = start('holdLock', root);
    expect(await answer(holder)).toBe('held');
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    await store.put(dir, 'a', bytes('x'));
    expect(text(await store.get(dir, 'a'))).toBe('x');
    await store.sweep(0);
    const left = (await readdir(join(root, '.lancelet', 'tmp'))).filter((name) =>
      name.startsWith(`.tmp-${holder.pid}.`),
    );
    expect(left).toEqual([]);
  });

  it('a lock whose holder sleeps is not broken', async () => {
    const { root, store, dir } = await tableIn('asleep');
    const impatient = await openNodeStore(root, { waitMs: 300 });
    const holder = start('holdLock', root);
    expect(await answer(holder)).toBe('held');
    holder.kill('SIGSTOP');
    await expect(impatient.put(dir, 'a', bytes('x'))).rejects.toMatchObject({ code: 'CONTENTION', retryable: true });
    expect(text(await impatient.get(dir, MANIFEST))).toBe('manifest');
    const waiting = store.put(dir, 'a', bytes('y'));
    // Listened for first: the holder may be gone before the others are done.
    const exited = once(holder, 'exit');
    holder.kill('SIGCONT');
    holder.stdin?.write('go\n');
    await waiting;
    expect(text(await impatient.get(dir, 'a'))).toBe('y');
    await exited;
  });

  it('a lock left by a process whose number another one has is free', async () => {
    const { root, store, dir } = await tableIn('reused');
    const lock = (await readdir(join(root, '.lancelet')))
      .filter((name) => name.startsWith('lock.'))
      .sort()
      .at(-1);
    const number = Number(lock?.slice(5)) + 1;
    const holder = start('holdLock', root);
    expect(await answer(holder)).toBe('held');
    const row = JSON.parse(await readFile(join(root, '.lancelet', `lock.${number}`), 'utf8')) as { started: string };
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    await writeFile(join(root, '.lancelet', `lock.${number + 1}`), JSON.stringify({ ...row, pid: process.pid }));
    await store.put(dir, 'a', bytes('x'));
    expect(text(await store.get(dir, 'a'))).toBe('x');
    await writeFile(join(root, '.lancelet', `lock.${number + 10}`), '');
    await store.put(dir, 'a', bytes('y'));
    expect(text(await store.get(dir, 'a'))).toBe('y');
  });
});

describe('a folder that LanceDB writes', () => {
  it('shows its tables and files, and goes by the identity of the folder', async () => {
    const root = join(top, 'lancedb');
    const store = await openNodeStore(root);
    expect(await store.tables()).toEqual([]);
    const db = await connect(root);
    const table = await db.createTable('made', [{ id: 1 }, { id: 2 }]);
    const [entry] = await store.tables();
    expect(entry?.name).toBe('made');
    const dir = entry?.id ?? '';
    const listed = (await store.list(dir, '', {})).objects.map(({ path }) => path);
    expect(listed.filter((path) => path.startsWith('_versions/') && path.endsWith('.manifest'))).toHaveLength(1);
    const token = await store.token(dir, '_versions');
    await table.add([{ id: 3 }]);
    expect(await store.token(dir, '_versions')).not.toBe(token);
    const publish = { path: '_versions/0.manifest', bytes: bytes('x') };
    expect(await store.commit({ dir, objects: [], publish, token, requires: [] })).toEqual({ kind: 'moved' });
    expect(await store.renameDir(dir, 'made', 'renamed')).toBe('renamed');
    expect(await (await db.openTable('renamed')).countRows()).toBe(3);
    await db.dropTable('renamed');
    await db.createTable('renamed', [{ id: 1 }]);
    const again = await store.lookup('renamed');
    expect(again).not.toBe(dir);
    await expect(store.put(dir, 'data/x', bytes('x'))).rejects.toMatchObject({ code: 'TABLE_NOT_FOUND' });
    expect((await store.list(again ?? '', 'data', {})).objects).toHaveLength(1);
    expect((await readdir(join(root, 'renamed.lance'))).filter((name) => name.startsWith('.'))).toEqual([]);
  });

  it('a table dropped here is gone there, and a name taken there is taken here', async () => {
    const root = join(top, 'both');
    const db = await connect(root);
    await db.createTable('a', [{ id: 1 }]);
    const store = await openNodeStore(root);
    const dir = await store.createDir(0, 1000);
    await store.put(dir, MANIFEST, bytes('manifest'));
    expect(await db.tableNames()).toEqual(['a']);
    expect(await store.publishDir('a', dir)).toBe('exists');
    const id = await store.lookup('a');
    await store.dropDir(id ?? '');
    expect(await db.tableNames()).toEqual([]);
    await store.sweep(0);
    expect(await readdir(join(root, '.lancelet', 'dropped'))).toEqual([]);
    expect(await readdir(join(root, '.lancelet', 'trash'))).toEqual([]);
  });

  it('reads of a folder swapped by others never mix two tables', async () => {
    const { root, store, dir } = await tableIn('swapped');
    await rename(join(root, 't.lance'), join(root, 'u.lance'));
    expect(text(await store.get(dir, MANIFEST))).toBe('manifest');
    expect(await store.lookup('u')).toBe(dir);
    await rm(join(root, 'u.lance'), { recursive: true });
    await expect(store.get(dir, MANIFEST)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(store.token(dir, '_versions')).rejects.toMatchObject({ code: 'TABLE_NOT_FOUND' });
  });
});
