/**
 * What a folder's store keeps of the directories that are in use, as JSON files that are read and written under its lock: leases, and what
 * replaced a directory's content. Not flushed: after a loss of power nobody lives to whom it matters.
 */
import { writeFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { discard, fileNames, metaOf, namesIn, readJson, removeFiles, stampOf, syncFolder, tokenOf } from './node-files';
import type { Place } from './node-places';
import type { CommitOutcome, LiveLease, RemoveOutcome, RemoveRequest } from './store';

export interface Lease extends LiveLease {
  readonly dir: string;
  readonly expiresMs: number;
}

/** A version that is being committed and replaces the content. */
export interface Replacement {
  readonly version: number;
  readonly manifest: string;
}

interface Replacements {
  /** The newest version that replaced; 0 = none. */
  readonly replaced: number;
  readonly count: number;
  /** It counts if its manifest is there: the process may have died at any step. */
  readonly pending?: Replacement;
}

export class Records {
  readonly #leases: string;
  readonly #dirs: string;
  readonly #newScratch: () => Promise<string>;

  /** `own` is the store's folder; `newScratch` gives a new path of the same file system. */
  constructor(own: string, newScratch: () => Promise<string>) {
    this.#leases = join(own, 'leases');
    this.#dirs = join(own, 'dirs');
    this.#newScratch = newScratch;
  }

  async lease(id: string): Promise<Lease | undefined> {
    return isLeaseId(id) ? readJson<Lease>(join(this.#leases, id)) : undefined;
  }

  putLease(id: string, lease: Lease): Promise<void> {
    return this.#write(join(this.#leases, id), lease);
  }

  async endLease(id: string): Promise<void> {
    if (isLeaseId(id)) await discard(join(this.#leases, id));
  }

  /** Of all directories; expired ones are ended. */
  async liveLeases(nowMs: number): Promise<Lease[]> {
    const live: Lease[] = [];
    for (const id of await namesIn(this.#leases)) {
      const lease = await this.lease(id);
      if (lease !== undefined && lease.expiresMs > nowMs) live.push(lease);
      else await discard(join(this.#leases, id));
    }
    return live;
  }

  /** The newest version of a directory that replaced its content; 0 = none. */
  async replaced(dir: string, place: Place): Promise<number> {
    return (await this.#replacements(dir, place)).replaced;
  }

  /** Runs a commit that replaces. */
  async replacing(
    dir: string,
    place: Place,
    pending: Replacement,
    commit: () => Promise<CommitOutcome>,
  ): Promise<CommitOutcome> {
    const path = join(this.#dirs, dir);
    await this.#write(path, { ...(await this.#replacements(dir, place)), pending });
    const outcome = await commit();
    await this.#write(path, await this.#replacements(dir, place));
    return outcome;
  }

  /** LanceDB writes references, too, so their files tell of changes, not a counter. */
  async pins(dir: string, place: Place): Promise<string> {
    const { count } = await this.#replacements(dir, place);
    return `${count}.${await stampOf(place.path, '_refs')}`;
  }

  /** Forgets directories that are gone. */
  async sweep(isThere: (dir: string) => Promise<boolean>): Promise<void> {
    for (const dir of await namesIn(this.#dirs)) if (!(await isThere(dir))) await discard(join(this.#dirs, dir));
  }

  async #replacements(dir: string, place: Place): Promise<Replacements> {
    const row = await readJson<Replacements>(join(this.#dirs, dir));
    const { replaced, count, pending } = row ?? { replaced: 0, count: 0 };
    const isDone = pending !== undefined && (await metaOf(place.path, pending.manifest)) !== undefined;
    return isDone ? { replaced: pending.version, count: count + 1 } : { replaced, count };
  }

  async #write(path: string, row: Lease | Replacements): Promise<void> {
    const staged = await this.#newScratch();
    await writeFile(staged, JSON.stringify(row), { flag: 'wx' });
    await rename(staged, path);
  }
}

/**
 * Takes what a cleanup asks for from a folder, under its lock. Manifests go first and their folder is flushed before the first file goes:
 * whatever ends it, no version that is left lacks a file.
 */
export async function removeObjects(
  folder: string,
  { manifests, files, folder: versions = '', token }: RemoveRequest,
): Promise<RemoveOutcome> {
  if (token !== undefined && tokenOf(await fileNames(join(folder, versions))) !== token) return { kind: 'moved' };
  const taken = await removeFiles(folder, manifests);
  const touched = new Set(manifests.map((path) => dirname(join(folder, path))));
  if (taken.count > 0) for (const each of touched) await syncFolder(each);
  const more = await removeFiles(folder, files);
  const bytes = taken.bytes + more.bytes;
  return { kind: 'removed', manifests: taken.count, bytes, busy: taken.busy + more.busy };
}

function isLeaseId(id: string): boolean {
  return /^[0-9a-f-]{36}$/.test(id);
}
