/**
 * Commits in a folder, under its lock, beside a LanceDB that knows no lock.
 *
 * 1. The checks: nothing at the manifest's path, the folder's token, the files required.
 * 2. Rename the objects to their places and flush their folders.
 * 3. Link the manifest, which fails if anybody was faster.
 * 4. List again. What appeared since the check is LanceDB's, and may be newer than ours: unlink the manifest and answer `moved`.
 * 5. Flush the manifest's folder.
 *
 * A commit that fails after step 2 puts back what the objects replaced.
 */
import { link, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

import { discard, fileNames, isCode, isThere, makingFolders, metaOf, syncFolder, tokenOf } from './node-files';
import type { CommitOutcome } from './store';

/** A path in the directory, and the flushed file that is to be there. */
export interface Staged {
  readonly path: string;
  readonly file: string;
}

export interface StagedCommit {
  readonly objects: readonly Staged[];
  readonly manifest: Staged;
  readonly token: string;
  readonly requires: readonly string[];
  /** A new path of the same file system, to keep something aside. */
  newScratch(): Promise<string>;
}

/** `folder` is the directory's. */
export async function commitStaged(folder: string, commit: StagedCommit): Promise<CommitOutcome> {
  const { objects, manifest, token, requires } = commit;
  const target = join(folder, manifest.path);
  if (await isThere(target)) return { kind: 'exists' };
  const before = await fileNames(dirname(target));
  if (tokenOf(before) !== token) return { kind: 'moved' };
  const own = new Set(objects.map(({ path }) => path));
  for (const path of requires) {
    if (!own.has(path) && (await metaOf(folder, path)) === undefined) return { kind: 'missing', path };
  }
  const placed = new PlacedFiles(folder, commit);
  let outcome: CommitOutcome | undefined;
  try {
    for (const object of objects) await placed.replace(object);
    for (const touched of new Set(objects.map(({ path }) => dirname(join(folder, path))))) await syncFolder(touched);
    outcome = await publish(placed, manifest, target, before);
  } finally {
    if (outcome?.kind !== 'committed') await placed.undo();
    await placed.forget();
  }
  return outcome;
}

async function publish(
  placed: PlacedFiles,
  manifest: Staged,
  target: string,
  before: readonly string[],
): Promise<CommitOutcome> {
  if (!(await placed.add(manifest))) return { kind: 'exists' };
  const known = new Set([...before, basename(target)]);
  if ((await fileNames(dirname(target))).some((name) => !known.has(name))) return { kind: 'moved' };
  await syncFolder(dirname(target));
  return { kind: 'committed' };
}

/** Files brought to their places, and how to take them back. */
class PlacedFiles {
  readonly #folder: string;
  readonly #commit: StagedCommit;
  readonly #undo: (() => Promise<void>)[] = [];
  readonly #backups: string[] = [];

  constructor(folder: string, commit: StagedCommit) {
    this.#folder = folder;
    this.#commit = commit;
  }

  async replace({ path, file }: Staged): Promise<void> {
    const target = join(this.#folder, path);
    const backup = await this.#commit.newScratch();
    const isNew = !(await succeedsUnless('ENOENT', link(target, backup)));
    if (!isNew) this.#backups.push(backup);
    await makingFolders(this.#folder, path, () => rename(file, target));
    this.#undo.push(() => (isNew ? discard(target) : rename(backup, target)));
  }

  /** `false` when something is there. */
  async add({ path, file }: Staged): Promise<boolean> {
    const target = join(this.#folder, path);
    const isNew = await succeedsUnless(
      'EEXIST',
      makingFolders(this.#folder, path, () => link(file, target)),
    );
    if (isNew) this.#undo.push(() => discard(target));
    return isNew;
  }

  /** The last one first: a manifest must not be seen without its objects. */
  async undo(): Promise<void> {
    for (const step of this.#undo.reverse()) await step();
  }

  async forget(): Promise<void> {
    for (const backup of this.#backups) await discard(backup);
  }
}

async function succeedsUnless(code: string, step: Promise<unknown>): Promise<boolean> {
  try {
    await step;
    return true;
  } catch (error) {
    if (isCode(error, code)) return false;
    throw error;
  }
}
