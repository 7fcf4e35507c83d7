/** What of a directory's paths a listing shows. */
import { byteKey, folderBelow, isBelow, sortPaths } from './path';
import type { ListOptions } from './store';

/** Decides path by path, in byte order, what belongs to a listing. */
export class ListingFold {
  readonly #prefix: string;
  readonly #isShallow: boolean;
  readonly #afterKey: string | undefined;
  readonly #limit: number;
  readonly #folders = new Set<string>();
  #objectCount = 0;

  constructor(prefix: string, options: ListOptions) {
    this.#prefix = prefix;
    this.#isShallow = options.shallow ?? false;
    this.#afterKey = options.after === undefined ? undefined : byteKey(options.after);
    this.#limit = options.limit ?? Infinity;
  }

  /** Whether no further path can belong to the listing. */
  get isFull(): boolean {
    return this.#objectCount >= this.#limit;
  }

  /** Takes the next path. */
  next(path: string): { kind: 'object' } | { kind: 'folder'; folder: string } | { kind: 'outside' } {
    const isAfter = this.#afterKey === undefined || byteKey(path) > this.#afterKey;
    if (this.isFull || !isAfter || !isBelow(path, this.#prefix)) return { kind: 'outside' };
    const folder = this.#isShallow ? folderBelow(path, this.#prefix) : undefined;
    if (folder !== undefined) {
      this.#folders.add(folder);
      return { kind: 'folder', folder };
    }
    this.#objectCount += 1;
    return { kind: 'object' };
  }

  /** Byte order of objects is not byte order of their folders: "a-b/x" sorts before "a/x". */
  folders(): string[] {
    return sortPaths([...this.#folders]);
  }
}

/** The paths and folders that a listing of `sorted` shows. */
export function selectPaths(sorted: Iterable<string>, prefix: string, options: ListOptions) {
  const fold = new ListingFold(prefix, options);
  const paths: string[] = [];
  for (const path of sorted) {
    if (fold.isFull) break;
    if (fold.next(path).kind === 'object') paths.push(path);
  }
  return { paths, folders: fold.folders() };
}
