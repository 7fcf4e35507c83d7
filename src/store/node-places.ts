/**
 * Where the directories of a folder's store are: an id is the identity of a folder, and folders are renamed as directories get, change
 * and lose their names, also by LanceDB and by other processes.
 */
import { randomUUID } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';

import { LanceError } from '../errors';
import { identityOf, isCode, isThere, namesIn, syncFolder } from './node-files';
import { noDirectory } from './refusals';

/** Where a directory is now. */
export interface Place {
  readonly path: string;
  readonly state: 'creating' | 'live' | 'dropped';
}

const SUFFIX = '.lance';

export class Places {
  readonly #root: string;
  readonly #own: string;
  /** Where each directory was when it was last seen. */
  readonly #known = new Map<string, Place>();

  /** `own` is the folder of what LanceDB has no place for. */
  constructor(root: string, own: string) {
    this.#root = root;
    this.#own = own;
  }

  note(dir: string, place: Place): void {
    this.#known.set(dir, place);
  }

  /** What `peek` sees in a directory, known to be that directory all the while; `undefined` when it is nowhere. */
  async look<T>(
    dir: string,
    peek: (place: Place) => Promise<T>,
    forget: (seen: T) => Promise<void> | undefined = () => undefined,
  ): Promise<T | undefined> {
    for (;;) {
      const place = this.#known.get(dir) ?? (await this.locate(dir));
      if (place === undefined) return undefined;
      const seen = await peek(place);
      if ((await identityOf(place.path)) === dir) return seen;
      this.#known.delete(dir);
      await forget(seen);
    }
  }

  /** A directory that takes writes. */
  async writable(dir: string): Promise<Place> {
    const place = await this.locate(dir);
    if (place === undefined || place.state === 'dropped') throw noDirectory(dir);
    return place;
  }

  async locate(dir: string): Promise<Place | undefined> {
    const known = this.#known.get(dir);
    if (known !== undefined && (await identityOf(known.path)) === dir) return known;
    this.#known.delete(dir);
    // Without the lock a directory may be renamed past the search: the second one looks where it went.
    const place = (await this.#search(dir)) ?? (await this.#search(dir));
    if (place !== undefined) this.#known.set(dir, place);
    return place;
  }

  /** Looks in the order in which a directory moves. */
  async #search(dir: string): Promise<Place | undefined> {
    for (const name of await namesIn(join(this.#own, 'creating'))) {
      const path = join(this.#own, 'creating', name);
      if ((await identityOf(path)) === dir) return { path, state: 'creating' };
    }
    for (const name of await this.tableNames()) {
      const path = this.tablePath(name);
      if ((await identityOf(path)) === dir) return { path, state: 'live' };
    }
    const path = /^[\w-]+$/.test(dir) ? this.droppedPath(dir) : undefined;
    return path !== undefined && (await identityOf(path)) === dir ? { path, state: 'dropped' } : undefined;
  }

  /** Gives a directory a name; `false` if anything has it. Only LanceDB, which knows no lock, can come between look and rename. */
  async move(id: string, place: Place, name: string): Promise<boolean> {
    const path = this.tablePath(name);
    if (await isThere(path)) return false;
    try {
      await rename(place.path, path);
    } catch (error) {
      if (isCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOTDIR')) return false;
      throw error;
    }
    this.#known.set(id, { path, state: 'live' });
    await syncFolder(this.#root);
    return true;
  }

  async tableNames(): Promise<string[]> {
    const names = await namesIn(this.#root);
    return names.flatMap((name) =>
      name.length > SUFFIX.length && name.endsWith(SUFFIX) ? [name.slice(0, -SUFFIX.length)] : [],
    );
  }

  tablePath(name: string): string {
    return join(this.#root, `${name}${SUFFIX}`);
  }

  creatingPath(expiresMs: number): string {
    if (!Number.isSafeInteger(expiresMs)) throw new LanceError('INVALID_INPUT', `${expiresMs} is not a time`);
    return join(this.#own, 'creating', `${expiresMs}-${randomUUID()}`);
  }

  droppedPath(id: string): string {
    return join(this.#own, 'dropped', id);
  }
}

export function expiryOf(creating: string): number {
  return Number.parseInt(creating.slice(creating.lastIndexOf('/') + 1), 10) || 0;
}

export function isTableName(name: string): boolean {
  return name !== '' && !/[/\\\p{Cc}\p{Cs}]/u.test(name);
}
