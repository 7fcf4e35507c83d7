/** Rows as they are now: what a caller does to its objects afterwards changes nothing of what is written. */

import { LanceError } from '../errors';
import { cellDate, copyView, isRow, type Row } from './cells';
import { isVectorLike } from './foreign';

/** Deeper is no table, but an object that holds itself. */
const MAX_DEPTH = 200;

/** Copies of rows, made of their own enumerable properties. What is no row is left for others to refuse. */
export function copyRows(rows: readonly unknown[]): Row[] {
  const copies = new Array<unknown>(rows.length);
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i];
    copies[i] = isRow(row) ? copyRow(row, 0) : row;
  }
  return copies as Row[];
}

function copyRow(row: Row, depth: number): Row {
  const copy: Record<string, unknown> = { ...row };
  for (const name in copy) {
    const value = copy[name];
    if (typeof value !== 'object' || value === null || !Object.hasOwn(copy, name)) continue;
    const own = copyCell(value, depth + 1);
    // An assignment would set the prototype.
    if (name === '__proto__') Object.defineProperty(copy, name, { value: own });
    else copy[name] = own;
  }
  return copy;
}

function copyCell(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH) {
    throw new LanceError('INVALID_INPUT', `invalid input, a row is nested more than ${MAX_DEPTH} levels deep`);
  }
  if (Array.isArray(value)) return copyArray(value, depth);
  if (ArrayBuffer.isView(value)) return copyView(value);
  // Nobody writes to Arrow's vectors.
  if (isVectorLike(value)) return value;
  const date = cellDate(value);
  if (date !== undefined) return new Date(date.getTime());
  switch (Object.prototype.toString.call(value)) {
    case '[object Map]': {
      const entries = [...(value as Map<unknown, unknown>)];
      return new Map(entries.map(([key, item]) => [copyCell(key, depth + 1), copyCell(item, depth + 1)] as const));
    }
    case '[object ArrayBuffer]':
      return (value as ArrayBuffer).slice(0);
    default:
      return isRow(value) ? copyRow(value, depth) : value;
  }
}

function copyArray(items: readonly unknown[], depth: number): unknown[] {
  const copy = items.slice();
  for (let i = 0; i < copy.length; i++) {
    const item = copy[i];
    if (typeof item === 'object' && item !== null) copy[i] = copyCell(item, depth + 1);
  }
  return copy;
}
