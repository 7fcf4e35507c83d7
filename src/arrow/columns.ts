/**
 * Rows to Arrow columns of a known schema, buffer by buffer.
 *
 * A value either becomes exactly what its column can hold, or the call fails with `SCHEMA`, naming the row and the column: nothing is
 * cut off, wrapped around, padded or turned into null.
 */

import * as arrow from 'apache-arrow';
import type { Data, DataType, Field, RecordBatch, Schema } from 'apache-arrow';

import { LanceError } from '../errors';
import { asciiParts, BatchTooLarge, ByteColumn, MASKED, MAX_VARIABLE_BYTES } from './bytes';
import { cellBytes, cellItems, cellOf, describeCell, isRow, type Row } from './cells';
import { firstPath } from './present';
import {
  halfBits,
  INT32,
  INT64,
  intRange,
  Refusal,
  toBigInt,
  toBool,
  toDateMs,
  toDays,
  toDecimal,
  toFloat,
  toSmallInt,
  toTimestamp,
} from './scalars';

const UINT8 = intRange(8, false);

interface Where {
  /** Of the column and the members that lead here. */
  readonly path: string;
  /** The path of the value at a position, where items of lists are on the way. */
  readonly pathAt?: ((position: number) => string) | undefined;
  /** The row that a position belongs to. */
  readonly rowAt: (position: number) => number;
}

const pathAt = (where: Where, position: number): string => where.pathAt?.(position) ?? where.path;

function memberOf(where: Where, name: string): Where {
  const { pathAt: outer, rowAt } = where;
  const pathOf = outer === undefined ? undefined : (position: number) => `${outer(position)}.${name}`;
  return { path: `${where.path}.${name}`, pathAt: pathOf, rowAt };
}

/** One batch of `rows`, of `columns` of the schema; `firstRow` is the number of the first in error messages. */
export function buildBatch(schema: Schema, rows: readonly Row[], firstRow: number, columns = schema): RecordBatch {
  checkKeys(rows, schema.fields, { path: '', rowAt: (i) => firstRow + i });
  const children = columns.fields.map((field) => {
    const values = rows.map((row) => cellOf(row, field.name));
    return buildColumn(field.type, field.nullable, values, { path: field.name, rowAt: (i) => firstRow + i });
  });
  const type = new arrow.Struct(columns.fields);
  return new arrow.RecordBatch(columns, arrow.makeData({ type, length: rows.length, nullCount: 0, children }));
}

/** Bytes of a row that every row has, whatever its values. */
export function fixedRowBytes(type: DataType): number {
  if (arrow.DataType.isFixedSizeList(type)) return type.listSize * fixedRowBytes(type.valueType);
  if (arrow.DataType.isStruct(type)) return type.children.reduce((sum, field) => sum + fixedRowBytes(field.type), 0);
  if (arrow.DataType.isFixedSizeBinary(type)) return type.byteWidth;
  return 8;
}

function checkKeys(rows: readonly unknown[], fields: readonly Field[], where: Where): void {
  const known = new Set(fields.map((field) => field.name));
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i];
    const isTop = where.path === '';
    if (row === MASKED || (!isTop && (row === null || row === undefined))) continue;
    if (!isRow(row)) {
      if (isTop) {
        throw new LanceError('INVALID_INPUT', `invalid input, row ${where.rowAt(i)} is not an object`);
      }
      throw refused(where, i, `${describeCell(row)} is not an object`);
    }
    for (const key in row) {
      if (known.has(key) || !Object.hasOwn(row, key)) continue;
      const parent = pathAt(where, i);
      const path = firstPath(row[key], parent === '' ? key : `${parent}.${key}`);
      if (path === undefined) continue;
      const at = where.rowAt(i);
      throw new LanceError('SCHEMA', `Found field not in schema: ${path} at row ${at}`, { column: path, row: at });
    }
  }
}

function buildColumn(type: DataType, nullable: boolean, values: readonly unknown[], where: Where): Data {
  const length = values.length;
  const validity = buildValidity(values, nullable, where);
  const make = (parts: Record<string, unknown>): Data =>
    arrow.makeData({ type, length, ...validity, ...parts } as unknown as Parameters<typeof arrow.makeData>[0]) as Data;
  /** Calls `set` for every value that is there. */
  const each = (set: (value: unknown, i: number) => void): void => {
    for (let i = 0; i < length; i++) {
      const value = values[i];
      if (value === null || value === undefined || value === MASKED) continue;
      try {
        set(value, i);
      } catch (error) {
        throw error instanceof Refusal ? refused(where, i, error.reason) : error;
      }
    }
  };

  if (arrow.DataType.isNull(type)) {
    each((value) => {
      throw new Refusal(`${describeCell(value)} in a column of nulls`);
    });
    return arrow.makeData({ type, length });
  }
  if (arrow.DataType.isInt(type)) {
    const range = intRange(type.bitWidth, type.isSigned);
    if (type.bitWidth === 64) {
      const data = type.isSigned ? new BigInt64Array(length) : new BigUint64Array(length);
      each((value, i) => (data[i] = toBigInt(value, range)));
      return make({ data });
    }
    const data = new (type.ArrayType as Int32ArrayConstructor)(length);
    each((value, i) => (data[i] = toSmallInt(value, range)));
    return make({ data });
  }
  if (arrow.DataType.isFloat(type)) {
    const data = floats(type.precision, length);
    const isHalf = type.precision === arrow.Precision.HALF;
    each((value, i) => {
      const float = toFloat(value, type.precision);
      data[i] = isHalf ? halfBits(float) : float;
    });
    return make({ data });
  }
  if (arrow.DataType.isBool(type)) {
    const data = new Uint8Array((length + 7) >> 3);
    each((value, i) => {
      if (toBool(value)) data[i >> 3] = (data[i >> 3] ?? 0) | (1 << (i & 7));
    });
    return make({ data });
  }
  if (arrow.DataType.isUtf8(type) || arrow.DataType.isLargeUtf8(type)) {
    const isLarge = arrow.DataType.isLargeUtf8(type);
    const ascii = asciiParts(values, isLarge);
    if (ascii !== undefined) return make(ascii);
    const bytes = new ByteColumn(length, isLarge);
    each((value, i) => bytes.addText(i, toText(value)));
    return make(bytes.finish());
  }
  if (arrow.DataType.isBinary(type) || arrow.DataType.isLargeBinary(type)) {
    const bytes = new ByteColumn(length, arrow.DataType.isLargeBinary(type));
    each((value, i) => bytes.addBytes(i, toBytes(value)));
    return make(bytes.finish());
  }
  if (arrow.DataType.isFixedSizeBinary(type)) {
    const data = new Uint8Array(length * type.byteWidth);
    each((value, i) => {
      const bytes = toBytes(value);
      if (bytes.length !== type.byteWidth) {
        throw new Refusal(`${bytes.length} bytes, ${type} expected`);
      }
      data.set(bytes, i * type.byteWidth);
    });
    return make({ data });
  }
  if (arrow.DataType.isDecimal(type)) {
    const words = type.bitWidth / 32;
    const data = new Uint32Array(length * words);
    each((value, i) => {
      if (value instanceof Uint32Array && value.length === words) data.set(value, i * words);
      else writeWords(data, i * words, words, toDecimal(value, type.precision, type.scale));
    });
    return make({ data });
  }
  if (arrow.DataType.isDate(type)) {
    if (type.unit === arrow.DateUnit.DAY) {
      const data = new Int32Array(length);
      each((value, i) => (data[i] = toDays(value)));
      return make({ data });
    }
    const data = new BigInt64Array(length);
    each((value, i) => (data[i] = BigInt(toDateMs(value))));
    return make({ data });
  }
  if (arrow.DataType.isTimestamp(type)) {
    const data = new BigInt64Array(length);
    each((value, i) => (data[i] = toTimestamp(value, type.unit)));
    return make({ data });
  }
  if (arrow.DataType.isTime(type) || arrow.DataType.isDuration(type)) {
    if (arrow.DataType.isTime(type) && type.bitWidth === 32) {
      const data = new Int32Array(length);
      each((value, i) => (data[i] = toSmallInt(value, INT32)));
      return make({ data });
    }
    const data = new BigInt64Array(length);
    each((value, i) => (data[i] = toBigInt(value, INT64)));
    return make({ data });
  }
  if (arrow.DataType.isFixedSizeList(type)) {
    return make({ child: vectorItems(type, values, where) ?? fixedItems(type, values, where, each) });
  }
  if (arrow.DataType.isList(type)) {
    const { valueOffsets, flat, itemWhere } = flatten(length, where, each, (value) => {
      const items = cellItems(value);
      if (items === undefined) throw new Refusal(`${describeCell(value)} is not an array`);
      return items;
    });
    const field = type.valueField;
    return make({ valueOffsets, child: buildColumn(field.type, field.nullable, flat, itemWhere) });
  }
  if (arrow.DataType.isMap(type)) {
    const { valueOffsets, flat, itemWhere } = flatten(length, where, each, (value) => mapEntries(value));
    const field = type.children[0] as Field;
    return make({ valueOffsets, child: buildColumn(field.type, field.nullable, flat, itemWhere) });
  }
  if (arrow.DataType.isStruct(type)) {
    checkKeys(values, type.children, where);
    const children = type.children.map((field) => {
      const cells = values.map((value) => (isRow(value) ? cellOf(value, field.name) : MASKED));
      return buildColumn(field.type, field.nullable, cells, memberOf(where, field.name));
    });
    return make({ children });
  }
  if (arrow.DataType.isDictionary(type)) return make(dictionaryParts(type, values, where, each));
  throw new LanceError('NOT_SUPPORTED', `not supported: column "${where.path}" of type ${type}`, {
    feature: String(type),
  });
}

function buildValidity(
  values: readonly unknown[],
  nullable: boolean,
  where: Where,
): { nullCount: number; nullBitmap?: Uint8Array } {
  let nullCount = 0;
  let nullBitmap: Uint8Array | undefined;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    const isNull = value === null || value === undefined || (value === MASKED && nullable);
    if (!isNull) continue;
    if (!nullable) {
      const [at, path] = [where.rowAt(i), pathAt(where, i)];
      const message = `Column '${path}' is declared as non-nullable but contains null values: row ${at}`;
      throw new LanceError('SCHEMA', message, { column: path, row: at });
    }
    nullBitmap ??= new Uint8Array((values.length + 7) >> 3).fill(0xff);
    nullBitmap[i >> 3] = (nullBitmap[i >> 3] ?? 0) & ~(1 << (i & 7));
    nullCount += 1;
  }
  return nullBitmap === undefined ? { nullCount } : { nullCount, nullBitmap };
}

function refused(where: Where, position: number, reason: string): LanceError {
  const [row, column] = [where.rowAt(position), pathAt(where, position)];
  return new LanceError('SCHEMA', `column "${column}", row ${row}: ${reason}`, { column, row });
}

function floats(precision: arrow.Precision, length: number): Uint16Array | Float32Array | Float64Array {
  if (precision === arrow.Precision.HALF) return new Uint16Array(length);
  return precision === arrow.Precision.SINGLE ? new Float32Array(length) : new Float64Array(length);
}

/** The short way for vectors of floats without nulls inside; `undefined` when a value needs the long one. */
function vectorItems(type: arrow.FixedSizeList, values: readonly unknown[], where: Where): Data | undefined {
  const item = type.valueType;
  if (!arrow.DataType.isFloat(item) || item.precision === arrow.Precision.HALF) return undefined;
  const size = type.listSize;
  const length = values.length * size;
  const data = floats(item.precision, length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value === null || value === undefined || value === MASKED) continue;
    const items = cellItems(value);
    if (items === undefined) return undefined;
    if (items.length !== size) throw wrongLength(type, items.length, where, i);
    if (items instanceof Float32Array) {
      data.set(items, i * size);
      continue;
    }
    for (let j = 0; j < size; j++) {
      const number = items[j];
      if (typeof number !== 'number') return undefined;
      data[i * size + j] = number;
    }
  }
  return arrow.makeData({ type: item, length, nullCount: 0, data: data as never });
}

function wrongLength(type: arrow.FixedSizeList, found: number, where: Where, position: number): LanceError {
  return refused(where, position, `a vector of ${found} items, ${type.listSize} expected`);
}

function fixedItems(
  type: arrow.FixedSizeList,
  values: readonly unknown[],
  where: Where,
  each: (set: (value: unknown, i: number) => void) => void,
): Data {
  const size = type.listSize;
  const flat: unknown[] = new Array<unknown>(values.length * size).fill(MASKED);
  each((value, i) => {
    const items = cellItems(value);
    if (items === undefined) throw new Refusal(`${describeCell(value)} is not an array, ${type} expected`);
    if (items.length !== size) throw wrongLength(type, items.length, where, i);
    for (let j = 0; j < size; j++) flat[i * size + j] = items[j];
  });
  const field = type.children[0] as Field;
  const of = (position: number): number => Math.floor(position / size);
  return buildColumn(field.type, field.nullable, flat, {
    path: where.path,
    pathAt: (position) => `${pathAt(where, of(position))}[${position % size}]`,
    rowAt: (position) => where.rowAt(of(position)),
  });
}

function flatten(
  length: number,
  where: Where,
  each: (set: (value: unknown, i: number) => void) => void,
  itemsOf: (value: unknown) => ArrayLike<unknown>,
): { valueOffsets: Int32Array; flat: unknown[]; itemWhere: Where } {
  const valueOffsets = new Int32Array(length + 1);
  const flat: unknown[] = [];
  let filled = 0;
  each((value, i) => {
    valueOffsets.fill(flat.length, filled + 1, i + 1);
    const items = itemsOf(value);
    for (let j = 0; j < items.length; j++) flat.push(items[j]);
    if (flat.length * 8 > MAX_VARIABLE_BYTES && length > 1) throw new BatchTooLarge();
    valueOffsets[i + 1] = flat.length;
    filled = i + 1;
  });
  valueOffsets.fill(flat.length, filled + 1);
  const of = (position: number): number => {
    let low = 0;
    let high = length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((valueOffsets[middle + 1] ?? 0) > position) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const itemWhere = {
    path: where.path,
    pathAt: (position: number) => {
      const list = of(position);
      return `${pathAt(where, list)}[${position - (valueOffsets[list] ?? 0)}]`;
    },
    rowAt: (position: number) => where.rowAt(of(position)),
  };
  return { valueOffsets, flat, itemWhere };
}

function mapEntries(value: unknown): Row[] {
  const isMap = Object.prototype.toString.call(value) === '[object Map]';
  if (isMap) return [...(value as Map<unknown, unknown>)].map(([key, item]) => ({ key, value: item }));
  if (Array.isArray(value)) {
    return value.map((entry: unknown) => {
      if (!Array.isArray(entry) || entry.length !== 2) throw new Refusal('an entry of a map is not a pair');
      return { key: entry[0] as unknown, value: entry[1] as unknown };
    });
  }
  if (isRow(value)) return Object.entries(value).map(([key, item]) => ({ key, value: item }));
  throw new Refusal(`${describeCell(value)} is not a Map, an object or an array of pairs`);
}

function dictionaryParts(
  type: arrow.Dictionary,
  values: readonly unknown[],
  where: Where,
  each: (set: (value: unknown, i: number) => void) => void,
): { data: ArrayBufferView; dictionary: arrow.Vector } {
  const seen = new Map<unknown, number>();
  const distinct: unknown[] = [];
  const firsts: number[] = [];
  const indexType = type.indices as arrow.Int;
  const data = new (indexType.ArrayType as Int32ArrayConstructor)(values.length);
  const is64 = indexType.bitWidth === 64;
  const range = intRange(indexType.bitWidth, indexType.isSigned);
  each((value, i) => {
    let index = seen.get(value);
    if (index === undefined) {
      index = distinct.length;
      if (BigInt(index) > range.max) throw new Refusal(`more than ${index} different values, ${type} expected`);
      seen.set(value, index);
      distinct.push(value);
      firsts.push(i);
    }
    data[i] = (is64 ? BigInt(index) : index) as number;
  });
  const first = (position: number): number => firsts[position] ?? 0;
  const items = buildColumn(type.dictionary, true, distinct, {
    path: where.path,
    pathAt: (position) => pathAt(where, first(position)),
    rowAt: (position) => where.rowAt(first(position)),
  });
  return { data, dictionary: new arrow.Vector([items]) };
}

function toText(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value;
    // As LanceDB: their text loses nothing.
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value);
    default:
      throw new Refusal(`${describeCell(value)} is not a string`);
  }
}

function toBytes(value: unknown): Uint8Array {
  const bytes = cellBytes(value);
  if (bytes !== undefined) return bytes;
  const items = cellItems(value);
  if (items === undefined || ArrayBuffer.isView(items)) throw new Refusal(`${describeCell(value)} is not bytes`);
  return Uint8Array.from({ length: items.length }, (_, i) => toSmallInt(items[i], UINT8));
}

function writeWords(words: Uint32Array, start: number, count: number, value: bigint): void {
  let rest = BigInt.asUintN(count * 32, value);
  for (let i = 0; i < count; i++) {
    words[start + i] = Number(rest & 0xffff_ffffn);
    rest >>= 32n;
  }
}
