/** `makeArrowTable`: rows to an Arrow table, by the rules that writing into a table follows. */

import * as arrow from 'apache-arrow';
import type { Table as ArrowTable } from 'apache-arrow';

import type { Row } from './arrow/cells';
import type { SchemaLike } from './arrow/foreign';
import { checkSchema, inferSchema, rowsToBatches } from './arrow/source';
import { LanceError } from './errors';

/** How a vector column is made of arrays. */
export class VectorColumnOptions {
  /** Type of an element. Default: Float32. */
  readonly type: arrow.Float;

  constructor(values?: { readonly type?: arrow.Float }) {
    this.type = values?.type ?? new arrow.Float32();
  }
}

export interface MakeArrowTableOptions {
  /** The schema to convert to. Default: inferred from the rows. */
  readonly schema?: SchemaLike;
  /**
   * Top-level columns whose arrays are vectors of one length (FixedSizeList) when the schema is inferred. Default: `vector` of Float32.
   * Columns whose name contains `vector` or `embedding` are vectors of Float32 in any case.
   */
  readonly vectorColumns?: Readonly<Record<string, VectorColumnOptions>>;
  /** Inferred string columns become Dictionary<Int32, Utf8>. Default: false. */
  readonly dictionaryEncodeStrings?: boolean;
}

/**
 * An Arrow table of rows.
 *
 * Without a schema: numbers are Float64, bigints Int64, dates Timestamp(ms), arrays List, arrays in vector columns FixedSizeList,
 * typed arrays FixedSizeList of their element, Node's `Buffer` Binary, objects Struct. Every field is nullable.
 *
 * @throws `INVALID_INPUT` without rows and schema; `SCHEMA`, naming row and column, when a value does not fit its column exactly.
 */
export function makeArrowTable(rows: readonly Row[], options: MakeArrowTableOptions = {}): ArrowTable {
  if (!Array.isArray(rows)) throw new LanceError('INVALID_INPUT', 'invalid input, rows must be an array of objects');
  const { schema: given, ...inference } = options;
  if (rows.length === 0 && given === undefined) {
    throw new LanceError('INVALID_INPUT', 'At least one record or a schema needs to be provided');
  }
  const schema = given === undefined ? inferSchema(rows, inference) : checkSchema(given);
  return new arrow.Table(schema, [...rowsToBatches(schema, rows, 0)]);
}
