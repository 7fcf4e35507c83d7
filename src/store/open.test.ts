import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { build } from 'esbuild';
import { afterAll, expect, it } from 'vitest';

import { openStore } from './open';

const top = mkdtempSync(join(tmpdir(), 'lancelet-open-'));

afterAll(() => rmSync(top, { recursive: true, force: true }));

it('stores of one name share their bytes, of two names they do not', async () => {
  const dir = await (await openStore('memory://one')).createDir(0, 1);
  expect(await (await openStore('memory://one')).renew(dir, 0, 1)).toBe(true);
  expect(await (await openStore('memory://two')).renew(dir, 0, 1)).toBe(false);
});

it('a path and its file URL are one folder', async () => {
  const folder = join(top, 'a folder');
  const dir = await (await openStore(folder)).createDir(0, 1);
  expect(await (await openStore(pathToFileURL(folder).href)).renew(dir, 0, 1)).toBe(true);
});

it.each([
  ['s3://bucket/x', /unknown scheme s3:, known are memory:\/\/, indexeddb:\/\/, opfs:\/\//],
  ['memory:name', /unknown scheme/],
  ['memory://', /name of the store is empty/],
  ['opfs://', /name of the store is empty/],
  ['indexeddb://', /name of the store is empty/],
  ['', /path of the store is empty/],
  ['file://host/x', /names no folder/],
])('%s is refused', async (uri, message) => {
  await expect(openStore(uri)).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: expect.stringMatching(message),
  });
});

it.each(['indexeddb://x', 'opfs://x'])('%s is unavailable where there is no IndexedDB', async (uri) => {
  await expect(openStore(uri)).rejects.toMatchObject({ code: 'UNAVAILABLE', retryable: true });
});

it("a browser's bundle holds nothing of Node", async () => {
  const { outputFiles, metafile } = await build({
    entryPoints: ['src/store/open.ts'],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    metafile: true,
    outdir: top,
  });
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports.map(({ path }) => path));
  expect(imports.filter((path) => path.startsWith('node:'))).toEqual([]);
  expect(outputFiles.map(({ text }) => text).join('')).not.toContain('.lancelet');
});
