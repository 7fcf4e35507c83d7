/**
 * Paths of objects inside a directory: `/`-separated, without empty, `.` or `..` segments. The empty path is the directory itself.
 *
 * Paths are ordered by the bytes of their UTF-8. JavaScript and IndexedDB order strings by UTF-16 code units, which differs above
 * U+FFFF; a `byteKey` is a string whose code units are those bytes, so that both orders are one. It equals the path where that is ASCII.
 */
import { LanceError } from '../errors';

const encoder = new TextEncoder();

// Control characters, backslash, and surrogates that are not part of a pair (those have no UTF-8).
const FORBIDDEN = /[\p{Cc}\\\p{Cs}]/u;
const ASCII = /^[\u0000-\u007f]*$/;

/** A string that sorts by code units as `path` sorts by bytes. */
export function byteKey(path: string): string {
  if (ASCII.test(path)) return path;
  let key = '';
  for (const byte of encoder.encode(path)) key += String.fromCharCode(byte);
  return key;
}

export function compareKeys(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Sorts by bytes, in place. */
export function sortPaths(paths: string[]): string[] {
  if (paths.every((path) => ASCII.test(path))) return paths.sort(compareKeys);
  const keyed = paths.map((path) => ({ path, key: byteKey(path) })).sort((a, b) => compareKeys(a.key, b.key));
  keyed.forEach(({ path }, index) => (paths[index] = path));
  return paths;
}

/** @throws `INVALID_INPUT` for anything but the path of an object. */
export function checkPath(path: string): void {
  if (path === '') throw new LanceError('INVALID_INPUT', 'the path of an object is empty');
  checkFolder(path);
}

/** @throws `INVALID_INPUT` for anything but a path; the empty one is the directory itself. */
export function checkFolder(path: string): void {
  if (path === '') return;
  const isBad = (segment: string) => segment === '' || segment === '.' || segment === '..' || FORBIDDEN.test(segment);
  if (path.split('/').some(isBad)) {
    throw new LanceError('INVALID_INPUT', `path ${JSON.stringify(path)} is not a plain relative path`);
  }
}

/** Everything before the last segment. */
export function parentOf(path: string): string {
  const end = path.lastIndexOf('/');
  return end < 0 ? '' : path.slice(0, end);
}

/** Whether `path` lies below `folder`, at any depth. */
export function isBelow(path: string, folder: string): boolean {
  return folder === '' || (path.startsWith(folder) && path[folder.length] === '/');
}

/** The folder directly below `prefix` that holds `path`; `undefined` for an object that lies in `prefix` itself. */
export function folderBelow(path: string, prefix: string): string | undefined {
  const end = path.indexOf('/', prefix === '' ? 0 : prefix.length + 1);
  return end < 0 ? undefined : path.slice(0, end);
}

/**
 * Pairs of offsets as ranges inside of an object of `size` bytes.
 *
 * @throws `INVALID_INPUT` for a range that is none, or ends beyond the object.
 */
export function checkRanges(path: string, ranges: readonly number[], size: number): { start: number; end: number }[] {
  if (ranges.length % 2 !== 0) throw new LanceError('INVALID_INPUT', `ranges of ${path}: a start without an end`);
  const checked: { start: number; end: number }[] = [];
  for (let index = 0; index < ranges.length; index += 2) {
    const start = ranges[index] ?? -1;
    const end = ranges[index + 1] ?? -1;
    const isInside =
      Number.isSafeInteger(start) && Number.isSafeInteger(end) && 0 <= start && start <= end && end <= size;
    if (!isInside) {
      throw new LanceError('INVALID_INPUT', `range ${start}..${end} is outside of ${path}, which has ${size} bytes`);
    }
    checked.push({ start, end });
  }
  return checked;
}
