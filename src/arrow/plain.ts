/** An Arrow table as plain JavaScript rows. */

import type { Table as ArrowTable } from 'apache-arrow';

import { isVectorLike } from './foreign';

/** Objects for rows and structs, arrays for lists; scalars as Arrow gives them. */
export function plainRows(table: ArrowTable): Record<string, unknown>[] {
  const names = table.schema.fields.map((field) => field.name);
  const rows: Record<string, unknown>[] = [];
  for (const batch of table.batches) {
    const columns = names.map((_, i) => batch.getChildAt(i));
    for (let row = 0; row < batch.numRows; row++) {
      // A column may be named like a property that every object has.
      rows.push(Object.fromEntries(names.map((name, i) => [name, toPlain(columns[i]?.get(row))])));
    }
  }
  return rows;
}

function toPlain(value: unknown): unknown {
  if (isVectorLike(value)) return Array.from({ length: value.length }, (_, i) => toPlain(value.get(i)));
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  const row = value as { toJSON?: () => Record<string, unknown> };
  if (typeof row.toJSON !== 'function') return value;
  return Object.fromEntries(Object.entries(row.toJSON()).map(([key, item]) => [key, toPlain(item)]));
}
