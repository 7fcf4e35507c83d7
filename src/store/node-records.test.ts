import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { mkdir, writeFile, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeEach, expect, it, vi } from 'vitest';

import { fileNames, tokenOf } from './node-files';
import type { Place } from './node-places';
import { Records, removeObjects } from './node-records';
import type { RemoveRequest } from './store';

/** What the process manages to unlink before it dies. */
let unlinksLeft = Infinity;

vi.mock('node:fs/promises', async (original) => {
  const fs = await original<typeof import('node:fs/promises')>();
  const unlink = async (path: string): Promise<void> => {
    if ((unlinksLeft -= 1) < 0) throw new Error('killed');
    await fs.unlink(path);
  };
  return { ...fs, unlink };
});

const top = mkdtempSync(join(tmpdir(), 'lancelet-records-'));
let count = 0;

beforeEach(() => {
  unlinksLeft = Infinity;
});
afterAll(() => rmSync(top, { recursive: true, force: true }));

/** A directory of three versions, with a file each and one of an index. */
async function history(): Promise<{ folder: string; request: RemoveRequest }> {
  const folder = join(top, String((count += 1)));
  const files = (version: number) => [`data/${version}`, `_indices/${version}/part/a`];
  for (const version of [1, 2, 3]) {
    for (const path of [`_versions/${version}`, ...files(version)]) {
      await mkdir(join(folder, path, '..'), { recursive: true });
      await writeFile(join(folder, path), '12345');
    }
  }
  const token = tokenOf(await fileNames(join(folder, '_versions')));
  const request = {
    dir: 'd',
    versions: [1, 2],
    manifests: ['_versions/1', '_versions/2'],
    files: [...files(1), ...files(2), 'data/absent'],
    pins: '',
    folder: '_versions',
    token,
    needsNoWriter: false,
    nowMs: 0,
  };
  return { folder, request };
}

const isThere = (folder: string, path: string): boolean => existsSync(join(folder, path));

it('k7: a cleanup that is killed between any two files leaves no version without its files', async () => {
  for (let kill = 0; kill < 6; kill += 1) {
    const { folder, request } = await history();
    unlinksLeft = kill;
    await expect(removeObjects(folder, request)).rejects.toThrow('killed');
    unlinksLeft = Infinity;
    for (const version of [1, 2, 3]) {
      const files = [`data/${version}`, `_indices/${version}/part/a`];
      if (!isThere(folder, `_versions/${version}`)) continue;
      expect(
        files.map((path) => isThere(folder, path)),
        `version ${version} after ${kill}`,
      ).toEqual([true, true]);
    }
    // The next cleanup finishes what this one began.
    const token = tokenOf(await fileNames(join(folder, '_versions')));
    expect(await removeObjects(folder, { ...request, token })).toMatchObject({ bytes: (6 - kill) * 5 });
    expect(isThere(folder, 'data/1') || isThere(folder, '_indices/2')).toBe(false);
  }
});

it('folders of indices go when they are empty, and no others', async () => {
  const { folder, request } = await history();
  await writeFile(join(folder, '_indices/2/kept'), 'x');
  expect(await removeObjects(folder, request)).toEqual({ kind: 'removed', manifests: 2, bytes: 30, busy: 0 });
  expect(isThere(folder, '_indices/1/part')).toBe(false);
  expect(isThere(folder, '_indices/2/kept')).toBe(true);
  expect(isThere(folder, 'data')).toBe(true);
});

it('a replacement whose process died counts if its manifest is there', async () => {
  const { folder } = await history();
  const own = join(top, `own-${count}`);
  await mkdir(join(own, 'dirs'), { recursive: true });
  await mkdir(join(own, 'leases'));
  let scratch = 0;
  const records = new Records(own, async () => join(own, `tmp-${(scratch += 1)}`));
  const place: Place = { path: folder, state: 'live' };
  const begin = (version: number, commit: () => Promise<void>) =>
    records.replacing('d', place, { version, manifest: `_versions/${version}` }, async () => {
      await commit();
      return { kind: 'committed' };
    });
  const died = () => Promise.reject(new Error('killed'));
  await expect(begin(4, died)).rejects.toThrow('killed');
  expect(await records.replaced('d', place)).toBe(0);
  const before = await records.pins('d', place);
  const publish = (version: number) => writeFile(join(folder, `_versions/${version}`), '12345');
  await expect(begin(4, () => publish(4).then(died))).rejects.toThrow('killed');
  expect(await records.replaced('d', place)).toBe(4);
  const after = await records.pins('d', place);
  expect(after).not.toBe(before);
  await begin(5, () => publish(5));
  expect(await records.replaced('d', place)).toBe(5);
  await records.sweep(async () => false);
  expect(await records.replaced('d', place)).toBe(0);
});

it('a reference that another program writes moves the pins', async () => {
  const { folder } = await history();
  const records = new Records(join(top, 'none'), async () => '');
  const place: Place = { path: folder, state: 'live' };
  const seen = new Set([await records.pins('d', place)]);
  await mkdir(join(folder, '_refs/tags'), { recursive: true });
  await writeFile(join(folder, '_refs/tags/a.json'), '{}');
  seen.add(await records.pins('d', place));
  // Of the same size, in another second.
  await writeFile(join(folder, '_refs/tags/a.json'), '[]');
  await utimes(join(folder, '_refs/tags/a.json'), 1, 1);
  seen.add(await records.pins('d', place));
  rmSync(join(folder, '_refs/tags/a.json'));
  seen.add(await records.pins('d', place));
  expect(seen.size).toBe(3);
  expect(await records.pins('d', place)).toBe([...seen][0]);
});
