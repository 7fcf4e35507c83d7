/** Every value of Arrow columns, taken from their buffers: what two readers must agree on, one by one. */

import * as arrow from 'apache-arrow';

import { canonical, type Value } from './build';

/** The value at `at`, in the form that `build` takes. */
export function valueAt(data: arrow.Data, at: number): Value {
  const { type } = data;
  if (type.typeId === arrow.Type.Null || isNull(data, at)) return null;
  switch (type.typeId) {
    case arrow.Type.Bool: {
      const bit = data.offset + at;
      return (((data.values as Uint8Array)[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0;
    }
    case arrow.Type.Utf8:
    case arrow.Type.LargeUtf8:
      return decoder.decode(bytesAt(data, at));
    case arrow.Type.Binary:
    case arrow.Type.LargeBinary:
      return bytesAt(data, at);
    case arrow.Type.FixedSizeBinary: {
      const { byteWidth } = type as arrow.FixedSizeBinary;
      return (data.values as Uint8Array).slice(at * byteWidth, (at + 1) * byteWidth);
    }
    case arrow.Type.Float: {
      const value = (data.values as Float64Array)[at] as number;
      return (type as arrow.Float).precision === arrow.Precision.HALF ? halfValue(value) : value;
    }
    case arrow.Type.Decimal: {
      const words = (type as arrow.Decimal).bitWidth / 32;
      let value = 0n;
      for (let k = words - 1; k >= 0; k--)
        value = (value << 32n) | BigInt((data.values as Uint32Array)[at * words + k] ?? 0);
      return BigInt.asIntN(words * 32, value);
    }
    case arrow.Type.List:
      return itemsAt(data, at);
    case arrow.Type.Map:
      return itemsAt(data, at).map((item) => Object.values(item as Record<string, Value>));
    case arrow.Type.FixedSizeList: {
      const { listSize } = type as arrow.FixedSizeList;
      const items = data.children[0] as arrow.Data;
      return Array.from({ length: listSize }, (_, k) => valueAt(items, at * listSize + k));
    }
    case arrow.Type.Struct: {
      const members = type.children as arrow.Field[];
      return Object.fromEntries(members.map(({ name }, k) => [name, valueAt(data.children[k] as arrow.Data, at)]));
    }
    case arrow.Type.Dictionary: {
      let key = Number((data.values as Int32Array)[at]);
      for (const part of data.dictionary?.data ?? []) {
        if (key < part.length) return valueAt(part, key);
        key -= part.length;
      }
      throw new Error(`a key points behind the ${data.dictionary?.length} values of its dictionary`);
    }
    default:
      return (data.values as Int32Array)[at] as number;
  }
}

function isNull(data: arrow.Data, at: number): boolean {
  if (data.nullBitmap === undefined || data.nullBitmap.length === 0 || data.nullCount === 0) return false;
  const bit = data.offset + at;
  return ((data.nullBitmap[bit >> 3] ?? 0) & (1 << (bit & 7))) === 0;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function bytesAt(data: arrow.Data, at: number): Uint8Array {
  const offsets = data.valueOffsets as unknown as ArrayLike<number | bigint>;
  return (data.values as Uint8Array).slice(Number(offsets[at]), Number(offsets[at + 1]));
}

function itemsAt(data: arrow.Data, at: number): Value[] {
  const offsets = data.valueOffsets as unknown as ArrayLike<number>;
  const items = data.children[0] as arrow.Data;
  const start = offsets[at] ?? 0;
  return Array.from({ length: (offsets[at + 1] ?? 0) - start }, (_, k) => valueAt(items, start + k));
}

function halfValue(bits: number): number {
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  const size =
    exponent === 0
      ? fraction * 2 ** -24
      : exponent === 31
        ? fraction === 0
          ? Infinity
          : NaN
        : (1 + fraction / 1024) * 2 ** (exponent - 15);
  return (bits & 0x8000) === 0 ? size : -size;
}

/** The values of one column, as texts. */
export function columnTexts(table: arrow.Table, name: string): string[] {
  const at = table.schema.fields.findIndex((each) => each.name === name);
  if (at < 0) throw new Error(`no column "${name}"`);
  return table.batches.flatMap((batch) => {
    const data = batch.data.children[at] as arrow.Data;
    return Array.from({ length: batch.numRows }, (_, row) => canonical(valueAt(data, row)));
  });
}

/** The first value that differs, as a line; `undefined` when all are the same. */
export function firstDifference(actual: readonly string[], expected: readonly string[]): string | undefined {
  const shown = (text: string | undefined): string => (text === undefined ? 'nothing' : text.slice(0, 200));
  for (let row = 0; row < Math.max(actual.length, expected.length); row++) {
    if (actual[row] === expected[row]) continue;
    return `row ${row} of ${expected.length}: ${shown(actual[row])} instead of ${shown(expected[row])}`;
  }
  return undefined;
}
