/** What an update is asked for, in LanceDB's three forms, as the engine takes it. */

import * as arrow from 'apache-arrow';
import type { Field, Schema } from 'apache-arrow';

import { buildBatch } from './arrow/columns';
import { encodeBatch } from './arrow/ipc';
import { checkText, invalid, notSupported } from './checks';
import type { WireUpdate } from './engine/port';
import type { UpdateOptions, UpdateSql, UpdateValues } from './types';

/** What an update was asked for, before the table's schema is known. */
export interface UpdateRequest {
  readonly where: string | undefined;
  /** Expressions by column. */
  readonly sql: ReadonlyMap<string, string>;
  /** New values by column. */
  readonly values: ReadonlyMap<string, unknown>;
}

/**
 * Reads the arguments of `update`.
 *
 * @throws `INVALID_INPUT` for what is none of the forms, without columns, and for values of a kind that no column takes.
 */
export function readUpdate(given: UpdateValues | UpdateSql | Columns<string>, options: UpdateOptions): UpdateRequest {
  if (typeof given !== 'object' || given === null)
    throw invalid('an update needs new values of columns: { values }, { valuesSql } or { column: expression }');
  const isMap = given instanceof Map;
  // A column may have these names: the value of the option is no text.
  const option = (name: 'values' | 'valuesSql'): Columns<unknown> | undefined => {
    const value = isMap ? undefined : (given as Partial<Record<string, unknown>>)[name];
    return typeof value === 'object' && value !== null ? (value as Columns<unknown>) : undefined;
  };
  const [values, valuesSql] = [option('values'), option('valuesSql')];
  const isForm = values !== undefined || valuesSql !== undefined;
  const where = isForm ? (given as UpdateOptions).where : options.where;
  const sql = isForm ? valuesSql : (given as Columns<unknown>);
  const request: UpdateRequest = {
    where: where === undefined || where === null ? undefined : checkText('where', where),
    sql: new Map(entries(sql).map(([name, text]) => [name, checkText(`the expression of ${name}`, text)])),
    values: new Map(entries(values)),
  };
  if (request.sql.size + request.values.size === 0) {
    throw invalid('at least one column must be specified in an update operation');
  }
  for (const [name, value] of request.values) {
    if (value === undefined || typeof value === 'function' || typeof value === 'symbol') {
      throw invalid(`Unsupported value type: ${typeof value} value: (${String(value)}) of column ${name}`);
    }
  }
  return request;
}

/**
 * The request with its values as a batch of one row of the table's columns.
 *
 * @throws `INVALID_INPUT` for an unknown column; `SCHEMA` for a value that its column does not hold exactly.
 */
export function encodeUpdate({ where, sql, values }: UpdateRequest, schema?: Schema): WireUpdate {
  const fields = [...values.keys()].map((name) => fieldOf(schema?.fields ?? [], name));
  return {
    ...(where === undefined ? {} : { filter: where }),
    columns: [...sql.keys()],
    expressions: [...sql.values()],
    ...(fields.length === 0
      ? {}
      : { values: encodeBatch(buildBatch(new arrow.Schema(fields), [Object.fromEntries(values)], 0)) }),
  };
}

type Columns<T> = ReadonlyMap<string, T> | Readonly<Record<string, T>>;

const entries = <T>(columns: Columns<T> | undefined): [string, T][] =>
  columns === undefined ? [] : columns instanceof Map ? [...columns] : Object.entries(columns as Record<string, T>);

function fieldOf(fields: readonly Field[], name: string): Field {
  const field = fields.find((each) => each.name === name);
  if (field !== undefined) return field;
  const [top] = name.split('.');
  if (top !== name && fields.some((each) => each.name === top)) {
    throw notSupported(`update of a single member of a struct (${name}), instead of a new value of "${top}",`);
  }
  const names = fields.slice(0, 12).map((each) => each.name);
  const more = fields.length > names.length ? ', ...' : '';
  throw invalid(`Column '${name}' does not exist in dataset schema; there are ${names.join(', ')}${more}`);
}
