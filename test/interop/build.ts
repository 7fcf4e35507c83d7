/** Arrow columns of given values, buffer by buffer: null patterns, slices and what lies under nulls are the test's to choose. */

import * as arrow from 'apache-arrow';

import { LARGE_ITEM } from './ipc';

/**
 * A value of a column. Integers of 64 bits, times of 64 bits and decimals (unscaled) are bigints, bytes are `Uint8Array`, lists are
 * arrays, structs are objects, maps are arrays of pairs, a dictionary's value stands for itself.
 */
export type Value =
  null | boolean | number | bigint | string | Uint8Array | readonly Value[] | { readonly [name: string]: Value };

/** Makes a value for a place that a null hides. */
export type Garbage = (field: arrow.Field) => Value;

export const field = (
  name: string,
  type: arrow.DataType,
  nullable = true,
  metadata?: Map<string, string>,
): arrow.Field => new arrow.Field(name, type, nullable, metadata);
export const listOf = (type: arrow.DataType, nullable = true): arrow.List =>
  new arrow.List(field('item', type, nullable));
export const largeListOf = (type: arrow.DataType, nullable = true): arrow.List =>
  new arrow.List(field(LARGE_ITEM, type, nullable));
export const fixedListOf = (size: number, type: arrow.DataType): arrow.FixedSizeList =>
  new arrow.FixedSizeList(size, field('item', type));
export const structOf = (...fields: arrow.Field[]): arrow.Struct => new arrow.Struct(fields);
export const mapOf = (key: arrow.DataType, value: arrow.DataType): arrow.Map_ =>
  new arrow.Map_(field('entries', structOf(field('key', key, false), field('value', value)), false) as never);
export const dictionaryOf = (value: arrow.DataType, index: arrow.Int = new arrow.Int32()): arrow.Dictionary =>
  // An index of 64 bits is missing in the types of apache-arrow only.
  new arrow.Dictionary(value, index as arrow.Int32);

/** A table of batches of columns of values; see `buildBatch`. */
export function buildTable(
  schema: arrow.Schema,
  batches: readonly (readonly (readonly Value[])[])[],
  garbage?: Garbage,
  lead = 0,
): arrow.Table {
  const rows = batches.map((columns) => columns[0]?.length ?? 0);
  if (batches.length < 2 || !schema.fields.some(({ type }) => hasDictionary(type))) {
    return new arrow.Table(
      schema,
      batches.map((columns, i) => buildBatch(schema, columns, rows[i] ?? 0, garbage, lead)),
    );
  }
  // In a file the batches have one dictionary: they are slices of one batch.
  const columns = schema.fields.map((_, i) => batches.flatMap((batch) => batch[i] ?? []));
  const total = rows.reduce((sum, count) => sum + count, 0);
  const whole = buildBatch(schema, columns, total, garbage, lead);
  let from = 0;
  return new arrow.Table(
    schema,
    rows.map((count) => whole.slice(from, (from += count))),
  );
}

function hasDictionary(type: arrow.DataType): boolean {
  const children = (type.children ?? []) as arrow.Field[];
  return arrow.DataType.isDictionary(type) || children.some((child) => hasDictionary(child.type));
}

/** A batch of columns of values. `lead` rows in front and behind are cut off again, so that the arrays are slices. */
export function buildBatch(
  schema: arrow.Schema,
  columns: readonly (readonly Value[])[],
  rows: number,
  garbage?: Garbage,
  lead = 0,
): arrow.RecordBatch {
  const children = schema.fields.map((each, i) => {
    const values = columns[i] ?? [];
    if (lead === 0) return build(each, values, garbage);
    const extra = Array.from({ length: lead }, () => (garbage === undefined ? null : garbage(each)));
    return build(each, [...extra, ...values, ...extra], garbage).slice(lead, rows);
  });
  const type = new arrow.Struct(schema.fields);
  const data = arrow.makeData({ type, length: rows, nullCount: 0, children });
  return new arrow.RecordBatch(schema, data);
}

/** A column; a null in a field that takes none is the default of its type, for members of null structs. */
export function build(of: arrow.Field, values: readonly Value[], garbage?: Garbage): arrow.Data {
  const { type } = of;
  const length = values.length;
  const hidden = (): Value => (garbage === undefined ? null : garbage(of));
  const nulls = of.nullable ? values.filter((value) => value === null).length : 0;
  const nullBitmap = nulls === 0 ? undefined : new Uint8Array(((length + 63) >> 6) << 3);
  if (nullBitmap !== undefined) values.forEach((value, i) => value !== null && setBit(nullBitmap, i));
  const make = (parts: Record<string, unknown>): arrow.Data =>
    arrow.makeData({ type, length, nullCount: nulls, nullBitmap, ...parts } as never) as arrow.Data;
  /** What lies in the values, under nulls too. */
  const filled = values.map((value) => (value === null ? hidden() : value));

  switch (type.typeId) {
    case arrow.Type.Null:
      return arrow.makeData({ type: type as arrow.Null, length });
    case arrow.Type.Bool: {
      const data = new Uint8Array(((length + 63) >> 6) << 3);
      filled.forEach((value, i) => value === true && setBit(data, i));
      return make({ data });
    }
    case arrow.Type.Utf8:
    case arrow.Type.LargeUtf8:
    case arrow.Type.Binary:
    case arrow.Type.LargeBinary: {
      const parts = filled.map((value) =>
        value === null
          ? new Uint8Array(0)
          : typeof value === 'string'
            ? new TextEncoder().encode(value)
            : (value as Uint8Array),
      );
      const isLarge = type.typeId === arrow.Type.LargeUtf8 || type.typeId === arrow.Type.LargeBinary;
      const ends = offsets(parts.map((part) => part.length));
      const valueOffsets = isLarge ? BigInt64Array.from(ends, BigInt) : ends;
      return make({ data: new Uint8Array(Buffer.concat(parts)), valueOffsets });
    }
    case arrow.Type.FixedSizeBinary: {
      const { byteWidth } = type as arrow.FixedSizeBinary;
      const data = new Uint8Array(length * byteWidth);
      filled.forEach((value, i) => value !== null && data.set(value as Uint8Array, i * byteWidth));
      return make({ data });
    }
    case arrow.Type.Decimal: {
      const words = (type as arrow.Decimal).bitWidth / 32;
      const data = new Uint32Array(length * words);
      filled.forEach((value, i) => {
        let rest = BigInt.asUintN(words * 32, (value as bigint | null) ?? 0n);
        for (let k = 0; k < words; k++, rest >>= 32n) data[i * words + k] = Number(rest & 0xffff_ffffn);
      });
      return make({ data });
    }
    case arrow.Type.List:
    case arrow.Type.Map: {
      // A null list may hold items: they are passed over.
      const lists = filled.map((value) => (value ?? []) as readonly Value[]);
      const items: Value[] = [];
      for (const list of lists) for (const item of list) items.push(item);
      const valueOffsets = offsets(lists.map((list) => list.length));
      const child = type.children[0] as arrow.Field;
      const entries =
        type.typeId === arrow.Type.Map ? items.map((item) => entry(child, item as readonly Value[])) : items;
      return make({ valueOffsets, child: build(child, entries, garbage) });
    }
    case arrow.Type.FixedSizeList: {
      const { listSize } = type as arrow.FixedSizeList;
      const child = type.children[0] as arrow.Field;
      const items = filled.flatMap(
        (value) => (value as readonly Value[] | null) ?? new Array<Value>(listSize).fill(null),
      );
      return make({ child: build(child, items, garbage) });
    }
    case arrow.Type.Struct: {
      const children = (type.children as arrow.Field[]).map((member) => {
        const cells = filled.map((value) => (value as Record<string, Value> | null)?.[member.name] ?? null);
        return build(member, cells, garbage);
      });
      return make({ children });
    }
    case arrow.Type.Dictionary: {
      const dictionary = type as arrow.Dictionary;
      const distinct = new Map<string, number>();
      const entries: Value[] = [];
      const keys = values.map((value) => {
        if (value === null) return 0;
        const key = canonical(value);
        if (!distinct.has(key)) distinct.set(key, entries.push(value) - 1);
        return distinct.get(key) ?? 0;
      });
      const data = new (dictionary.indices.ArrayType as unknown as new (length: number) => Int32Array | BigInt64Array)(
        length,
      );
      keys.forEach(
        (key, i) =>
          (data[i] = (data instanceof BigInt64Array || data instanceof BigUint64Array ? BigInt(key) : key) as never),
      );
      // A dictionary without entries is legal, and some readers take exception.
      if (entries.length === 0) entries.push(hiddenIn(dictionary.dictionary, garbage));
      return make({ data, dictionary: new arrow.Vector([build(field('', dictionary.dictionary), entries)]) });
    }
    default: {
      const data = new (type.ArrayType as unknown as new (length: number) => Int32Array | BigInt64Array)(length);
      const isWide = data instanceof BigInt64Array || data instanceof BigUint64Array;
      const isHalf = type.typeId === arrow.Type.Float && (type as arrow.Float).precision === arrow.Precision.HALF;
      filled.forEach((value, i) => {
        if (value !== null) data[i] = (isHalf ? halfBits(value as number) : value) as never;
        else data[i] = (isWide ? 0n : 0) as never;
      });
      return make({ data });
    }
  }
}

function hiddenIn(type: arrow.DataType, garbage: Garbage | undefined): Value {
  return garbage === undefined ? null : garbage(field('', type, false));
}

const entry = (entries: arrow.Field, [key, value]: readonly Value[]): Value => ({
  [(entries.type.children as arrow.Field[])[0]?.name ?? 'key']: key ?? null,
  [(entries.type.children as arrow.Field[])[1]?.name ?? 'value']: value ?? null,
});

function setBit(bits: Uint8Array, i: number): void {
  bits[i >> 3] = (bits[i >> 3] ?? 0) | (1 << (i & 7));
}

function offsets(lengths: readonly number[]): Int32Array {
  const ends = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => (ends[i + 1] = (ends[i] ?? 0) + length));
  return ends;
}

const f32 = new Float32Array(1);
const u32 = new Uint32Array(f32.buffer);

/** The bits of a number that a half holds exactly. */
function halfBits(value: number): number {
  f32[0] = value;
  const bits = u32[0] ?? 0;
  const sign = (bits >>> 16) & 0x8000;
  if (Number.isNaN(value)) return 0x7e00;
  if (!Number.isFinite(value)) return sign | 0x7c00;
  if (value === 0) return sign;
  return sign | ((((bits >>> 23) & 0xff) - 112) << 10) | ((bits >>> 13) & 0x3ff);
}

/** A value as text: two values are the same when their texts are. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => {
    if (typeof each === 'bigint') return `${each}n`;
    if (typeof each === 'number' && (!Number.isFinite(each) || Object.is(each, -0)))
      return Object.is(each, -0) ? '-0' : String(each);
    if (each instanceof Uint8Array) return `x${Buffer.from(each).toString('hex')}`;
    return each;
  });
}
