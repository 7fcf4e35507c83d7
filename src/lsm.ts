/** The LSM write path: how it is asked for, and what it says of itself. */

import { checkFlag, checkList, checkText, invalid } from './checks';
import type { Engine, TableHandle, WireWriteSpec } from './engine/port';

/** How the rows of a table are spread over buckets, each with a write-ahead log of its own. */
export interface LsmWriteSpec {
  /**
   * `'bucket'`: by a hash of the primary key. `'identity'`: by the value of a column that follows from the primary key, one bucket for each
   * value. `'unsharded'`: one bucket.
   */
  readonly specType: 'bucket' | 'identity' | 'unsharded';
  /** For `'bucket'` the primary key; for `'identity'` the column. */
  readonly column?: string | undefined;
  /** For `'bucket'`: from 1 to 1,024. */
  readonly numBuckets?: number | undefined;
  /** Names of indices that writers keep up to date. Default: every one that there is when the spec is set. */
  readonly maintainedIndexes?: readonly string[] | undefined;
  /** For writers; keys that they don't know are kept. Default: none. */
  readonly writerConfigDefaults?: Readonly<Record<string, string>> | undefined;
}

/** The buckets of a table with a write spec. */
export interface LsmStats {
  /** One entry per bucket, by id; those that were never written to are among them, where their ids are known beforehand. */
  readonly buckets: readonly LsmBucketStats[];
}

/** What is known of a bucket. What is not known is not there. */
export interface LsmBucketStats {
  /** A UUID. */
  readonly shardId: string;
  /** `'Sealed'` takes no more rows. */
  readonly status: 'Active' | 'Sealed';
  /** Of the last writer; 0 = none yet. */
  readonly writerEpoch: number;
  /** 0 = none yet. */
  readonly manifestVersion: number;
  /** The generation that the next rows will become. */
  readonly currentGeneration: number;
  /** Entries of the log up to this one are in generations. */
  readonly replayAfterWalEntryPosition: number;
  /** The last entry of the log. */
  readonly walEntryPositionLastSeen: number;
  /** Those that are not in the base table yet, ascending. */
  readonly generations: readonly LsmGenerationStats[];
  /** Whether a compaction of this bucket is under way. */
  readonly compacting: boolean;
}

export interface LsmGenerationStats {
  readonly generation: number;
  /** The size of its files. */
  readonly bytes?: number;
  /** Rows, one per key; only when they were asked for. */
  readonly rows?: number;
}

/** One column, also as a list of one. */
export async function setPrimaryKey(engine: Engine, table: TableHandle, columns: unknown): Promise<void> {
  const names = typeof columns === 'string' ? [columns] : checkList('columns', columns);
  const [column] = names;
  if (names.length === 0) throw invalid('set_unenforced_primary_key: a column is required');
  if (names.length > 1) {
    throw invalid(
      `set_unenforced_primary_key: compound primary keys are not supported, got ${String(names.length)} columns`,
    );
  }
  await engine.setUnenforcedPrimaryKey(table, checkText('a column', column));
}

/** A spec whose fields are those that its kind has. */
export function checkSpec(given: unknown): WireWriteSpec {
  if (typeof given !== 'object' || given === null) throw invalid('an LsmWriteSpec must be an object');
  const { specType, column, numBuckets, maintainedIndexes, writerConfigDefaults } = given as Partial<
    Record<keyof LsmWriteSpec, unknown>
  >;
  if (specType === undefined) throw invalid('Missing field `specType`');
  if (specType !== 'bucket' && specType !== 'identity' && specType !== 'unsharded') {
    throw invalid(`LsmWriteSpec \`specType\` must be 'bucket', 'identity', or 'unsharded', got '${String(specType)}'`);
  }
  const required = (name: string, value: unknown): unknown => {
    if (value === undefined || value === null) throw invalid(`LsmWriteSpec ${specType} requires \`${name}\``);
    return value;
  };
  return {
    specType,
    ...(specType !== 'unsharded' && { column: checkText('column', required('column', column)) }),
    ...(specType === 'bucket' && { numBuckets: checkBuckets(required('numBuckets', numBuckets)) }),
    ...(isGiven(maintainedIndexes) && {
      maintainedIndexes: checkList('maintainedIndexes', maintainedIndexes).map((name) => checkText('an index', name)),
    }),
    ...(isGiven(writerConfigDefaults) && { writerConfigDefaults: checkConfig(writerConfigDefaults) }),
  };
}

export function checkRows(includeGenerationRows: unknown): boolean {
  return isGiven(includeGenerationRows) && checkFlag('includeGenerationRows', includeGenerationRows);
}

function checkBuckets(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= 1024) return value;
  throw invalid(`bucket_sharding: num_buckets must be in [1, 1024], got ${String(value)}`);
}

function checkConfig(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null) throw invalid('writerConfigDefaults must be an object');
  return Object.fromEntries(Object.entries(value).map(([key, text]) => [key, checkText(key, text)]));
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
