/** Folders and files as the store of a folder needs them: absence is an answer, not an error. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readFile, rm, rmdir, stat, unlink, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

import { LanceError } from '../errors';
import { compareKeys, isBelow, parentOf } from './path';
import type { ListOptions, ObjectMeta } from './store';

/** Files of this name are being written, and are in no listing. */
const SCRATCH_PREFIX = '.tmp-';

/** Longer than the step of any clock that stamps a folder's birth. */
const BIRTH_STEP_MS = 50;

/** Device, inode and time of birth of a folder; `undefined` when there is none. */
export async function identityOf(path: string): Promise<string | undefined> {
  try {
    const status = await stat(path, { bigint: true });
    return status.isDirectory() ? `${status.dev}-${status.ino}-${status.birthtimeNs}` : undefined;
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) return undefined;
    throw error;
  }
}

/**
 * Removes a folder that is out of reach. The next folder may get its inode, so the time of birth must differ then: a folder leaves its
 * inode only when the clock that stamps births has moved on.
 */
export async function removeForGood(path: string): Promise<void> {
  const status = await stat(path).catch(() => undefined);
  const ageMs = status === undefined ? BIRTH_STEP_MS : Date.now() - status.birthtimeMs;
  if (ageMs >= 0 && ageMs < BIRTH_STEP_MS) await new Promise((done) => setTimeout(done, BIRTH_STEP_MS - ageMs));
  await rm(path, { recursive: true, force: true });
}

/** Runs `move`, and makes the folders of `path` below `root` if they were missing; never `root` itself. */
export async function makingFolders(root: string, path: string, move: () => Promise<void>): Promise<void> {
  try {
    return await move();
  } catch (error) {
    if (!isCode(error, 'ENOENT') || parentOf(path) === '') throw error;
  }
  let folder = root;
  for (const segment of parentOf(path).split('/')) {
    const inside = join(folder, segment);
    const isNew = await mkdir(inside).then(
      () => true,
      (error: unknown) => {
        if (isCode(error, 'EEXIST')) return false;
        throw error;
      },
    );
    if (isNew) await syncFolder(folder);
    folder = inside;
  }
  await move();
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

export async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let offset = 0; offset < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, offset);
    offset += bytesWritten;
  }
}

export async function readRange(file: FileHandle, path: string, start: number, end: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(end - start);
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, start + done);
    if (bytesRead === 0) throw new LanceError('STORAGE', `${path} became shorter while it was read`, { path });
    done += bytesRead;
  }
  return bytes;
}

export async function openFile(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY);
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

export async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}

export async function metaOf(root: string, path: string): Promise<ObjectMeta | undefined> {
  if (isScratch(path)) return undefined;
  try {
    const status = await stat(join(root, path));
    if (!status.isFile()) return undefined;
    return { path, sizeBytes: status.size, modifiedMs: Math.floor(status.mtimeMs) };
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** The names in a folder; none when it is not there. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

interface Entry {
  readonly name: string;
  readonly isFolder: boolean;
}

export async function entriesIn(folder: string): Promise<Entry[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const visible = entries.filter(({ name }) => !isScratch(name));
    return await Promise.all(
      visible.map(async (entry) => {
        // A link stands for what it points at; one that points nowhere is a file that nobody can read.
        const target = entry.isSymbolicLink() ? await stat(join(folder, entry.name)).catch(() => entry) : entry;
        return { name: entry.name, isFolder: target.isDirectory() };
      }),
    );
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

export async function fileNames(folder: string): Promise<string[]> {
  return (await entriesIn(folder)).filter(({ isFolder }) => !isFolder).map(({ name }) => name);
}

/** Paths of files below `prefix`. A shallow listing needs of each folder one path only, or those after `after`. */
export async function pathsBelow(root: string, prefix: string, options: ListOptions): Promise<string[]> {
  const paths: string[] = [];
  const walk = async (folder: string, isOneEnough: boolean): Promise<boolean> => {
    for (const { name, isFolder } of await entriesIn(join(root, folder))) {
      const path = folder === '' ? name : `${folder}/${name}`;
      if (!isFolder) {
        paths.push(path);
        if (isOneEnough) return true;
        continue;
      }
      const isFolded = options.shallow === true && folder === prefix && !isBelow(options.after ?? '', path);
      if ((await walk(path, isOneEnough || isFolded)) && isOneEnough) return true;
    }
    return false;
  };
  await walk(prefix, false);
  return paths;
}

export function tokenOf(names: string[]): string {
  const hash = createHash('sha256');
  for (const name of [...names].sort(compareKeys)) hash.update(`${name}\0`);
  return hash.digest('base64url');
}

/** Tells one state of the files below a folder from another: names, and when and what each was last made of. */
export async function stampOf(root: string, folder: string): Promise<string> {
  const paths = (await pathsBelow(root, folder, {})).sort(compareKeys);
  const hash = createHash('sha256');
  for (const path of paths) {
    const status = await stat(join(root, path), { bigint: true }).catch(() => undefined);
    hash.update(`${path}\0${status?.ino}\0${status?.size}\0${status?.mtimeNs}\0`);
  }
  return hash.digest('base64url');
}

/** Removes files; those that are gone already don't count. Folders deeper than the first level go when they become empty. */
export async function removeFiles(
  root: string,
  paths: readonly string[],
): Promise<{ count: number; bytes: number; busy: number }> {
  const removed = { count: 0, bytes: 0, busy: 0 };
  for (const path of paths) {
    const meta = await metaOf(root, path);
    if (meta === undefined) continue;
    try {
      await unlink(join(root, path));
      removed.count += 1;
      removed.bytes += meta.sizeBytes;
    } catch (error) {
      // Systems that can't unlink an open file.
      if (isCode(error, 'EBUSY', 'EPERM')) removed.busy += 1;
      else if (!isCode(error, 'ENOENT')) throw error;
    }
  }
  const folders = new Set<string>();
  for (const path of paths) {
    for (let folder = parentOf(path); folder.includes('/'); folder = parentOf(folder)) folders.add(folder);
  }
  for (const folder of [...folders].sort((a, b) => b.length - a.length)) {
    await rmdir(join(root, folder)).catch((error: unknown) => {
      if (!isCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) throw error;
    });
  }
  return removed;
}

/** What a file of JSON says; `undefined` when there is none, or when it was cut by a loss of power. */
export async function readJson<T>(path: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T;
  } catch (error) {
    if (isCode(error, 'ENOENT') || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

export function isScratch(path: string): boolean {
  return path.slice(path.lastIndexOf('/') + 1).startsWith(SCRATCH_PREFIX);
}

export function asLanceError(error: unknown, path: string): LanceError {
  if (error instanceof LanceError) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (isCode(error, 'ENOSPC', 'EDQUOT')) return new LanceError('QUOTA', message, { path }, { cause: error });
  if (isCode(error, 'ENAMETOOLONG')) return new LanceError('INVALID_INPUT', message, { path }, { cause: error });
  return new LanceError('STORAGE', message, { path }, { cause: error });
}

/** Removes a file that may be gone already. */
export async function discard(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (!isCode(error, 'ENOENT')) throw error;
  });
}

export function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && codes.includes((error as NodeJS.ErrnoException).code ?? '');
}
