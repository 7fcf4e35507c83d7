import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from 'vitest';

import { readTar, writeTar, type TarEntry } from './tar.ts';

const LONG_PATH = `table.lance/_indices/${'0123456789abcdef'.repeat(5)}/${'part'.repeat(15)}.idx`;
const MODIFIED = new Date('2024-05-06T07:08:09Z');
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lancelet-tar-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const entry = (path: string, text: string): TarEntry => ({ path, body: new Blob([text]) });
const texts = (entries: TarEntry[]) => Promise.all(entries.map(async ({ path, body }) => [path, await body.text()]));

test('the system tar unpacks what was written', async () => {
  const archive = writeTar(
    [entry('t.lance/_versions/1.manifest', 'abc'), entry('t.lance/empty', ''), entry(LONG_PATH, 'x'.repeat(1025))],
    MODIFIED,
  );
  writeFileSync(join(folder, 'a.tar'), new Uint8Array(await archive.arrayBuffer()));
  execFileSync('tar', ['-xf', 'a.tar'], { cwd: folder });
  expect(readFileSync(join(folder, 't.lance/_versions/1.manifest'), 'utf8')).toBe('abc');
  expect(readFileSync(join(folder, 't.lance/empty'), 'utf8')).toBe('');
  expect(readFileSync(join(folder, LONG_PATH), 'utf8')).toBe('x'.repeat(1025));
});

test('what the system tar packed is read', async () => {
  writeFileSync(join(folder, 'one'), 'first');
  writeFileSync(join(folder, 'two'), 'b'.repeat(600));
  execFileSync('tar', ['--format=ustar', '-cf', 'a.tar', 'one', 'two'], { cwd: folder });
  const entries = await readTar(new Blob([readFileSync(join(folder, 'a.tar'))]));
  expect(await texts(entries)).toEqual([
    ['one', 'first'],
    ['two', 'b'.repeat(600)],
  ]);
});

test('an archive reads back as it was written', async () => {
  const entries = await readTar(writeTar([entry('a', '1'), entry(LONG_PATH, 'two')], MODIFIED));
  expect(await texts(entries)).toEqual([
    ['a', '1'],
    [LONG_PATH, 'two'],
  ]);
});

test('a path with no place to cut it is refused', () => {
  expect(() => writeTar([entry('n'.repeat(101), '')], MODIFIED)).toThrow('too long for a tar archive');
});

test('bytes that are no archive are refused', async () => {
  await expect(readTar(new Blob(['x'.repeat(1024)]))).rejects.toThrow('not a tar archive: no header at byte 0');
});

test('an archive that is cut is refused', async () => {
  const archive = writeTar([entry('a', 'x'.repeat(2000))], MODIFIED);
  await expect(readTar(archive.slice(0, 1024))).rejects.toThrow(
    'the tar archive is cut: 2512 bytes expected, 1024 found',
  );
  await expect(readTar(archive.slice(0, 512 + 2048))).rejects.toThrow('has no end');
});
