/** Merge insert: rows of a source joined with those of a table by key columns. */

import type { Source, TableData } from './arrow/source';
import { checkCount, checkData, checkFlag, checkList, checkText } from './checks';
import type { Engine, TableHandle, WireMergeOptions } from './engine/port';
import type { MergeExecutionOptions, MergeResult } from './types';
import { writeAll } from './write';

/** What a builder needs of its table. */
export interface MergeTarget {
  readonly engine: Engine;
  /** The handle, as long as the table is open. */
  handle(): TableHandle;
  /** Reads data as the table takes it; columns that no row has may be missing, whether they may be null or not. */
  source(data: TableData): Promise<Source>;
}

/**
 * Says what becomes of matched and unmatched rows; `execute` does it. Each call gives a new builder and leaves this one as it is.
 *
 * A row matches when all key columns are equal; a null equals nothing, NaN equals NaN, and 0 does not equal -0.
 */
export class MergeInsertBuilder {
  readonly #target: MergeTarget;
  readonly #options: WireMergeOptions;

  /** @internal Use `Table.mergeInsert`. */
  constructor(target: MergeTarget, on: string | readonly string[], options: Omit<WireMergeOptions, 'on'> = {}) {
    const names: readonly unknown[] = typeof on === 'string' ? [on] : checkList('on', on);
    this.#target = target;
    this.#options = { ...options, on: names.map((name) => checkText('a key column', name)) };
  }

  /**
   * Matched target rows take the values of their source row; columns that the source lacks stay. With `where`, only rows for which it is
   * true: it names columns as `target.a` and `source.a`.
   */
  whenMatchedUpdateAll(options?: { readonly where?: string | undefined }): MergeInsertBuilder {
    return this.#with({ matchedUpdate: whereOf(options) });
  }

  /** Source rows without a target row are added; columns that the source lacks are null. */
  whenNotMatchedInsertAll(): MergeInsertBuilder {
    return this.#with({ notMatchedInsert: true });
  }

  /** Target rows without a source row are deleted; with `where`, only those for which it is true. */
  whenNotMatchedBySourceDelete(options?: { readonly where?: string | undefined }): MergeInsertBuilder {
    return this.#with({ notMatchedBySourceDelete: whereOf(options) });
  }

  /** Taken for LanceDB's sake: key columns are scanned in any case. */
  useIndex(useIndex: boolean): MergeInsertBuilder {
    checkFlag('useIndex', useIndex);
    return this.#with({});
  }

  /**
   * `false` merges into the base table. Without it, and with `true`, rows of a table with an LSM write spec go into its write-ahead log,
   * which this build cannot do yet: `execute` rejects with `NOT_SUPPORTED`. `true` asks for a table that has a spec.
   */
  useLsm(useLsm: boolean): MergeInsertBuilder {
    return this.#with({ useLsm: checkFlag('useLsm', useLsm) });
  }

  /** Taken for LanceDB's sake: without an LSM write spec there are no shards. */
  validateSingleShard(validateSingleShard: boolean): MergeInsertBuilder {
    checkFlag('validateSingleShard', validateSingleShard);
    return this.#with({});
  }

  /**
   * Merges rows, all of them in one new version, or none; a version is made also when nothing changes. The rows are converted as by
   * `add`, and are in memory until they are committed. A row that others inserted, changed or deleted meanwhile is seen: of two upserts
   * of one new key the second one updates.
   *
   * @throws `INVALID_INPUT` for a builder that would change nothing, for unknown key columns, for two source rows of one target row or of
   * one new key, and for a handle that is checked out; `SCHEMA` for rows that do not fit, naming row and column; `TIMEOUT` after
   * `timeoutMs`; `CONFLICT` when the table was overwritten or restored meanwhile; `QUOTA`.
   */
  async execute(data: TableData, options: MergeExecutionOptions = {}): Promise<MergeResult> {
    checkData(data);
    const { timeoutMs } = options;
    const { engine } = this.#target;
    const table = this.#target.handle();
    // As in LanceDB, less than no time is no limit.
    const isLimited = timeoutMs !== undefined && timeoutMs !== null && timeoutMs >= 0;
    const limit = isLimited ? { timeoutMs: checkCount('timeoutMs', timeoutMs) } : {};
    const source = await this.#target.source(data);
    const begin = () => engine.beginMerge(table, { ...this.#options, ...limit });
    const done = await engine.finishMerge(await writeAll(engine, source, begin));
    return {
      version: done.version,
      numInsertedRows: done.insertedRows,
      numUpdatedRows: done.updatedRows,
      numDeletedRows: done.deletedRows,
      numAttempts: done.attempts,
      numRows: done.insertedRows + done.updatedRows,
    };
  }

  #with(options: Partial<WireMergeOptions>): MergeInsertBuilder {
    const { on, ...before } = this.#options;
    return new MergeInsertBuilder(this.#target, on, { ...before, ...options });
  }
}

/** A condition, or that there is none. */
function whereOf(options: { readonly where?: string | undefined } | undefined): string | true {
  const where = options?.where;
  return where === undefined || where === null ? true : checkText('where', where);
}
