/** Arguments of callers, checked once where they come in. */

import type { DataFormat } from './engine/port';
import { LanceError } from './errors';

export function invalid(message: string): LanceError {
  return new LanceError('INVALID_INPUT', `invalid input, ${message}`);
}

export function notSupported(feature: string): LanceError {
  return new LanceError('NOT_SUPPORTED', `not supported: ${feature} in this build`, { feature });
}

export function checkData<T>(data: T): asserts data is NonNullable<T> {
  if (data === undefined || data === null) throw invalid('data is required: rows, Arrow data or a stream of them');
}

/** What LanceDB calls the versions of data files, and which of them are written. */
const FORMATS: Readonly<Record<string, DataFormat | undefined>> = {
  stable: '2.2',
  '2.0': '2.0',
  '2.1': '2.1',
  '2.2': '2.2',
  legacy: undefined,
  '0.1': undefined,
  next: undefined,
  '2.3': undefined,
};

/** The version of the data files that options ask for, if they do. */
export function checkDataFormat(options: {
  readonly dataStorageVersion?: string | undefined;
  readonly storageOptions?: Readonly<Record<string, string>> | undefined;
}): DataFormat | undefined {
  const named = options.dataStorageVersion ?? storageOption(options.storageOptions, 'newTableDataStorageVersion');
  if (named === undefined || named === null) return undefined;
  const name = checkText('dataStorageVersion', named).toLowerCase();
  const written = 'this build writes 2.0, 2.1 and 2.2 (stable)';
  if (!Object.hasOwn(FORMATS, name)) throw invalid(`Unknown Lance storage version: ${named}; ${written}`);
  const format = FORMATS[name];
  if (format === undefined) {
    const feature = `Lance storage version ${named}`;
    throw new LanceError('NOT_SUPPORTED', `not supported: ${feature}; ${written}`, { feature });
  }
  return format;
}

/** One of LanceDB's storage options, whose keys are written in camel case or in snake case. */
export function storageOption(
  options: Readonly<Record<string, string>> | null | undefined,
  key: string,
): string | undefined {
  return options?.[key] ?? options?.[key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] ?? undefined;
}

/** Whether the rows of a new table shall have ids that stay, as far as the options say so. */
export function checkStableRowIds(options: {
  readonly storageOptions?: Readonly<Record<string, string>> | undefined;
}): boolean | undefined {
  const named = storageOption(options.storageOptions, 'newTableEnableStableRowIds');
  if (named === undefined) return undefined;
  if (named !== 'true' && named !== 'false') {
    throw invalid(`enable_stable_row_ids must be a boolean, received ${String(named)}`);
  }
  return named === 'true';
}

/** Refuses names of manifests that are not written any more. */
export function checkManifestPaths(options: {
  readonly enableV2ManifestPaths?: boolean | undefined;
  readonly storageOptions?: Readonly<Record<string, string>> | undefined;
}): void {
  const named = storageOption(options.storageOptions, 'newTableEnableV2ManifestPaths');
  if (named !== undefined && named !== 'true' && named !== 'false') {
    throw invalid(`enable_v2_manifest_paths must be a boolean, found ${String(named)}`);
  }
  if ((options.enableV2ManifestPaths ?? named !== 'false') === false)
    throw notSupported('new tables with V1 manifest paths');
}

/** A whole number from `least` on that JavaScript holds exactly. */
export function checkCount(name: string, value: unknown, least = 0): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value;
  throw invalid(`${name} must be a whole number of at least ${least}, found ${String(value)}`);
}

export function checkFlag(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw invalid(`${name} must be a boolean, found ${value === null ? 'null' : typeof value}`);
}

export function checkText(name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  throw invalid(`${name} must be a string, found ${value === null ? 'null' : typeof value}`);
}

export function checkList(name: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw invalid(`${name} must be an array, found ${value === null ? 'null' : typeof value}`);
}

/** A row id, whose 64 bits a number does not always hold. */
export function checkRowId(value: unknown): bigint {
  if (typeof value !== 'bigint' && !(typeof value === 'number' && Number.isSafeInteger(value))) {
    throw invalid(`Row id must be an integer (or bigint), found ${String(value)}`);
  }
  if (value < 0) throw invalid(`Row id cannot be negative, found ${String(value)}`);
  if (value > 0xffff_ffff_ffff_ffffn) throw invalid(`Row id must fit into 64 bits, found ${String(value)}`);
  return BigInt(value);
}
