/**
 * Which fields of a schema rows say anything about, by LanceDB's rules: a column that no row has is not part of the data, and an object
 * without fields says nothing.
 */

import * as arrow from 'apache-arrow';
import type { Field, Schema } from 'apache-arrow';

import { cellOf, isRow } from './cells';

/** The columns that some row has; of structs the members that some row has. */
export function presentParts(schema: Schema, rows: readonly unknown[]): Schema {
  return new arrow.Schema(partsOf(schema.fields, rows), schema.metadata);
}

/** The columns that some row has, whole. */
export function presentColumns(schema: Schema, rows: readonly unknown[]): Schema {
  const fields = schema.fields.filter((field) => partOf(field, rows) !== undefined);
  return fields.length === schema.fields.length ? schema : new arrow.Schema(fields, schema.metadata);
}

/** The path of the first value inside of `value`, which is at `path`; `undefined` for an object that holds none. */
export function firstPath(value: unknown, path: string): string | undefined {
  if (!isRow(value)) return value === undefined ? undefined : path;
  for (const key in value) {
    const found = Object.hasOwn(value, key) ? firstPath(value[key], `${path}.${key}`) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

const partsOf = (fields: readonly Field[], rows: readonly unknown[]): Field[] =>
  fields.flatMap((field) => partOf(field, rows) ?? []);

function partOf(field: Field, rows: readonly unknown[]): Field | undefined {
  const { name, type } = field;
  if (!arrow.DataType.isStruct(type)) {
    return rows.some((row) => isRow(row) && cellOf(row, name) !== undefined) ? field : undefined;
  }
  const cells: unknown[] = [];
  for (const row of rows) {
    const cell = isRow(row) ? cellOf(row, name) : undefined;
    if (cell !== undefined) cells.push(cell);
  }
  const members = partsOf(type.children, cells);
  if (members.length === type.children.length && members.every((member, i) => member === type.children[i])) {
    return field;
  }
  if (members.length > 0) return new arrow.Field(name, new arrow.Struct(members), field.nullable, field.metadata);
  // A null says that the struct is null; anything else is refused when it is converted.
  return cells.some((cell) => firstPath(cell, name) !== undefined) ? field : undefined;
}
