/** What a cell of a row is: a JavaScript value, told apart without regard to which realm or library made it. */

import { isVectorLike } from './foreign';

/** A row: an object with columns by name; also a `StructRow` that a query gave. */
export type Row = Readonly<Record<string, unknown>>;

/** An object that holds fields by name: no array, bytes, date, collection or regular expression. */
export function isRow(value: unknown): value is Row {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || ArrayBuffer.isView(value)) return false;
  switch (Object.prototype.toString.call(value)) {
    case '[object Date]':
    case '[object Map]':
    case '[object Set]':
    case '[object WeakMap]':
    case '[object WeakSet]':
    case '[object RegExp]':
    case '[object Promise]':
    case '[object Error]':
    case '[object ArrayBuffer]':
    case '[object SharedArrayBuffer]':
      return false;
    default:
      return true;
  }
}

/** The items of a list cell: an array, a typed array or an Arrow vector. */
export function cellItems(value: unknown): ArrayLike<unknown> | undefined {
  if (Array.isArray(value)) return value;
  if (ArrayBuffer.isView(value)) return 'length' in value ? (value as Uint8Array) : undefined;
  if (!isVectorLike(value)) return undefined;
  return Array.from({ length: value.length }, (_, i) => value.get(i));
}

/** The bytes of a binary cell. */
export function cellBytes(value: unknown): Uint8Array | undefined {
  if (ArrayBuffer.isView(value)) {
    const isBytes = !('length' in value) || (value as Uint8Array).BYTES_PER_ELEMENT === 1;
    return isBytes ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : undefined;
  }
  const tag = Object.prototype.toString.call(value);
  return tag === '[object ArrayBuffer]' ? new Uint8Array(value as ArrayBuffer) : undefined;
}

interface BufferOfNode {
  isBuffer(value: unknown): boolean;
  from(bytes: ArrayBufferView): Uint8Array;
}

/** Not by its name alone: bundlers would put a copy of it into every page. */
const bufferOfNode = (): BufferOfNode | undefined => (globalThis as { Buffer?: BufferOfNode }).Buffer;

/** Node's `Buffer` means bytes; a plain `Uint8Array` means a list of small numbers, as in LanceDB. */
export function isBytesOfNode(value: unknown): boolean {
  return bufferOfNode()?.isBuffer(value) ?? false;
}

/** A copy of a view of the same class. */
export function copyView(view: ArrayBufferView): ArrayBufferView {
  const buffer = bufferOfNode();
  // A Buffer's own slice shares its memory.
  if (buffer?.isBuffer(view)) return buffer.from(view);
  if ('slice' in view) return (view as Uint8Array).slice();
  return new DataView(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}

export function cellDate(value: unknown): Date | undefined {
  return Object.prototype.toString.call(value) === '[object Date]' ? (value as Date) : undefined;
}

/** A column's cell; what an object inherits is not a cell, a getter of its class neither. */
export function cellOf(row: Row, name: string): unknown {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

/** A value as an error message shows it. */
export function describeCell(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value.length > 40 ? `the string "${value.slice(0, 40)}..."` : `the string "${value}"`;
    case 'bigint':
      return `${value}n`;
    case 'object': {
      if (Array.isArray(value)) return `an array of ${value.length}`;
      const date = cellDate(value);
      if (date !== undefined)
        return Number.isNaN(date.getTime()) ? 'an invalid date' : `the date ${date.toISOString()}`;
      if (ArrayBuffer.isView(value)) return `a ${Object.prototype.toString.call(value).slice(8, -1)}`;
      return value === null ? 'null' : 'an object';
    }
    case 'function':
      return 'a function';
    default:
      return String(value);
  }
}
