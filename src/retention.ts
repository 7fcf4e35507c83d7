/**
 * What a cleanup may take: the rules of retention, checked before anything is written.
 *
 * A version is removed when it is older than the age that the options give and nothing keeps it: the version that the handle stands on and
 * newer ones, tagged ones, those that a branch left from, and those that anybody uses at the moment (a write, a query, a handle that is
 * checked out, in any tab or process) stay. With a version go its manifest and the files that only such versions name. A file that no
 * version names may belong to a write that others have under way: it goes after seven days, or at once with `deleteUnverified`.
 */

import { invalid } from './checks';
import type { WireCleanupOptions, WireCleanupPreview, WireKeepReason } from './engine/port';

export interface CleanupOptions {
  /**
   * Versions made before this moment may go. Their age is counted from now to the cleanup's own start, so that `new Date()` means every
   * version but the last. Under 10 minutes ago only with `deleteUnverified`. Default: seven days ago.
   */
  readonly cleanupOlderThan?: Date | undefined;
  /**
   * Remove files that no version names however young they are. Fails with `CONTENTION` while a write is under way; a writer that takes
   * no leases (LanceDB on the same folder) is not seen: nobody else may write then. Default: false.
   */
  readonly deleteUnverified?: boolean | undefined;
  /** Fail with `INVALID_INPUT` when a version that would go has a tag, as LanceDB does; `false` keeps it. Default: true. */
  readonly errorIfTaggedOldVersions?: boolean | undefined;
}

/** What a cleanup would do. */
export interface CleanupPreview {
  readonly oldVersionsRemoved: number;
  readonly bytesRemoved: number;
  /** Versions that would go, ascending. */
  readonly removed: readonly { readonly version: number; readonly timestamp: Date }[];
  /** Versions that would stay, ascending, and every reason why. */
  readonly kept: readonly {
    readonly version: number;
    readonly timestamp: Date;
    readonly reasons: readonly KeepReason[];
  }[];
  /** Files that would go, manifests included, with their sizes in bytes. */
  readonly files: readonly { readonly path: string; readonly size: number }[];
  /** Tags of old versions: for their sake the cleanup would fail, unless `errorIfTaggedOldVersions` is false. */
  readonly blockingTags: readonly string[];
}

/** Why a version stays. */
export type KeepReason =
  /** The handle stands on it, or it is newer. */
  | { readonly kind: 'latest' }
  /** It is younger than `cleanupOlderThan` says. */
  | { readonly kind: 'age' }
  | { readonly kind: 'tag'; readonly name: string }
  /** A branch left from it. */
  | { readonly kind: 'branch'; readonly name: string }
  /** Somebody uses it. */
  | { readonly kind: 'lease'; readonly name: 'write' | 'scan' | 'checkout' };

/** The call itself takes time: what was now when its arguments were made still means now. */
const CALL_MS = 100;

/**
 * The options of a call that is made at `nowMs`, as the engine takes them.
 *
 * @throws `INVALID_INPUT` for what is no date, or an invalid one.
 */
export function cleanupToWire(options: CleanupOptions, nowMs = Date.now()): WireCleanupOptions {
  const { cleanupOlderThan, deleteUnverified, errorIfTaggedOldVersions } = options;
  const age = cleanupOlderThan === undefined || cleanupOlderThan === null ? undefined : ageOf(cleanupOlderThan, nowMs);
  return {
    ...(age !== undefined && { olderThanMs: age }),
    ...flag('deleteUnverified', 'deleteUnverified', deleteUnverified),
    ...flag('errorIfTaggedOldVersions', 'errorIfTagged', errorIfTaggedOldVersions),
  };
}

/** What the engine would do, for people. */
export function previewFromWire({ kept, removed, files }: WireCleanupPreview): CleanupPreview {
  const isOld = (reasons: readonly WireKeepReason[]) =>
    !reasons.some(({ kind }) => kind === 'latest' || kind === 'age');
  const tagsOf = (reasons: readonly WireKeepReason[]) =>
    reasons.flatMap((reason) => (reason.kind === 'tag' ? [reason.name] : []));
  return {
    oldVersionsRemoved: removed.length,
    bytesRemoved: files.reduce((total, { sizeBytes }) => total + sizeBytes, 0),
    removed: removed.map(({ version, timestampMs }) => ({ version, timestamp: new Date(timestampMs) })),
    kept: kept.map(({ version, timestampMs, reasons }) => ({
      version,
      timestamp: new Date(timestampMs),
      reasons: reasons.map(reasonFromWire),
    })),
    files: files.map(({ path, sizeBytes }) => ({ path, size: sizeBytes })),
    blockingTags: kept.flatMap(({ reasons }) => (isOld(reasons) ? tagsOf(reasons) : [])),
  };
}

function reasonFromWire(reason: WireKeepReason): KeepReason {
  return reason.kind === 'latest' || reason.kind === 'age' ? { kind: reason.kind } : (reason as KeepReason);
}

function ageOf(date: unknown, nowMs: number): number {
  // Also a date of another realm.
  if (Object.prototype.toString.call(date) !== '[object Date]') {
    throw invalid(`cleanupOlderThan must be a Date, found ${typeof date}`);
  }
  const time = (date as Date).getTime();
  if (Number.isNaN(time)) throw invalid('cleanupOlderThan is an invalid date');
  const age = nowMs - time;
  return age >= 0 && age < CALL_MS ? 0 : Math.trunc(age);
}

function flag(name: string, wire: keyof WireCleanupOptions, value: unknown): WireCleanupOptions {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'boolean') throw invalid(`${name} must be true or false, found ${typeof value}`);
  return { [wire]: value };
}
