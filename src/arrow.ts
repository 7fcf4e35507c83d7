/** `makeArrowTable`: rows to an Arrow table, by the rules that writing into a table follows. */

import * as arrow from 'apache-arrow';
import type { Table as ArrowTable } from 'apache-arrow';

import type { Row } from './arrow/cells';
import type { SchemaLike } from './arrow/foreign';
import { presentParts } from './arrow/present';
import { checkSchema, inferSchema, rowsToBatches } from './arrow/source';
import { LanceError } from './errors';

/** How a vector column is made of arrays. */
export class VectorColumnOptions {
  /** Type of an element. Default: Float32. */
  type: arrow.Float = new arrow.Float32();

  constructor(values?: Partial<VectorColumnOptions>) {
    Object.assign(this, values);
  }
}

export class MakeArrowTableOptions {
  /** The schema to convert to; the table has those of its columns that the rows have. Default: inferred from the rows. */
  schema?: SchemaLike | undefined;
  /**
   * Top-level columns whose arrays are vectors of one length (FixedSizeList) when the schema is inferred. Default: `vector` of Float32.
   * Columns whose name contains `vector` or `embedding` are vectors of Float32 in any case.
   */
  vectorColumns: Record<string, VectorColumnOptions> = { vector: new VectorColumnOptions() };
  /** Inferred string columns become Dictionary<Int32, Utf8>. Default: false. */
  dictionaryEncodeStrings = false;

  constructor(values?: Partial<MakeArrowTableOptions>) {
    Object.assign(this, values);
  }
}

/**
 * An Arrow table of rows.
 *
 * Without a schema: numbers are Float64, bigints Int64, dates Timestamp(ms), arrays List, arrays in vector columns FixedSizeList,
 * typed arrays FixedSizeList of their element, Node's `Buffer` Binary, objects Struct. Every field is nullable.
 *
 * @param metadata Added to the schema's.
 * @throws `INVALID_INPUT` without rows and schema; `SCHEMA`, naming row and column, when a value does not fit its column exactly.
 */
export function makeArrowTable(
  rows: readonly Row[],
  options?: Partial<MakeArrowTableOptions>,
  metadata?: ReadonlyMap<string, string>,
): ArrowTable {
  if (!Array.isArray(rows)) throw new LanceError('INVALID_INPUT', 'invalid input, rows must be an array of objects');
  const { schema: given, ...inference } = new MakeArrowTableOptions(options);
  const isGiven = given !== undefined && given !== null;
  if (rows.length === 0 && !isGiven) {
    throw new LanceError('INVALID_INPUT', 'At least one record or a schema needs to be provided');
  }
  const found = isGiven ? checkSchema(given) : inferSchema(rows, inference);
  const schema = new arrow.Schema(found.fields, new Map([...found.metadata, ...(metadata ?? [])]));
  const columns = isGiven && rows.length > 0 ? presentParts(schema, rows) : schema;
  return new arrow.Table(columns, [...rowsToBatches(schema, rows, 0, columns)]);
}
