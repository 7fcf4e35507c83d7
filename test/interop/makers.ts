/** Random values of a type, in the distributions that make a writer choose one encoding or another. */

import * as arrow from 'apache-arrow';

import { field, type Garbage, type Value } from './build';
import type { Random } from './random';

export interface MakerOptions {
  /** Part of the values that are null where the field takes nulls. Default: one of several, per field. */
  readonly nulls?: number;
  /** Text and bytes of several hundred bytes and of more than 32 KiB among the values. Default: false. */
  readonly isLong?: boolean;
  /** Structs are never null, as in data format 2.0. Default: false. */
  readonly hasNoNullStructs?: boolean;
}

export type Maker = () => Value;

const NULL_PARTS = [0, 0.05, 0.3, 0.9, 1];
const WORDS = ['lake', 'river', 'stone', 'heath', 'needle', 'größer', '日本', 'tide', '', 'seal', '\u0000', '🦀'];

/** A stream of values of a field. Each node of its type has a distribution of its own. */
export function makerOf(of: arrow.Field, random: Random, options: MakerOptions = {}): Maker {
  const values = valuesOf(of.type, random, options);
  if (!of.nullable || (options.hasNoNullStructs === true && of.type.typeId === arrow.Type.Struct)) return values;
  const part = options.nulls ?? random.pick(NULL_PARTS);
  return () => (random.chance(part) ? null : values());
}

/** Values without nulls where nothing reads them. */
export function garbageOf(random: Random): Garbage {
  const makers = new Map<arrow.DataType, Maker>();
  return ({ type }) => {
    const known = makers.get(type) ?? makerOf(field('', type, false), random, { nulls: 0.2 });
    makers.set(type, known);
    return known();
  };
}

function valuesOf(type: arrow.DataType, random: Random, options: MakerOptions): Maker {
  const member = (each: arrow.Field): Maker => makerOf(each, random, options);
  switch (type.typeId) {
    case arrow.Type.Null:
      return () => null;
    case arrow.Type.List: {
      const item = member(type.children[0] as arrow.Field);
      const length = lengthsOf(random);
      return () => Array.from({ length: length() }, item);
    }
    case arrow.Type.Map: {
      const [key, value] = ((type.children[0] as arrow.Field).type.children as arrow.Field[]).map(member);
      const length = lengthsOf(random);
      return () => Array.from({ length: length() }, () => [key?.() ?? null, value?.() ?? null]);
    }
    case arrow.Type.FixedSizeList: {
      const item = member(type.children[0] as arrow.Field);
      const { listSize } = type as arrow.FixedSizeList;
      return () => Array.from({ length: listSize }, item);
    }
    case arrow.Type.Struct: {
      const members = (type.children as arrow.Field[]).map((each) => [each.name, member(each)] as const);
      return () => Object.fromEntries(members.map(([name, make]) => [name, make()]));
    }
    case arrow.Type.Dictionary: {
      // Few enough for indices of 8 bits, also when many batches have values of their own.
      const make = leafOf((type as arrow.Dictionary).dictionary, random, options);
      const pool = Array.from({ length: random.between(1, 4) }, make);
      return () => random.pick(pool);
    }
    default:
      return distributed(leafOf(type, random, options), random, ['any', 'any', 'few', 'runs', 'constant']);
  }
}

function distributed(make: Maker, random: Random, kinds: readonly ('any' | 'few' | 'runs' | 'constant')[]): Maker {
  const kind = random.pick(kinds);
  if (kind === 'any') return make;
  const pool = Array.from({ length: kind === 'constant' ? 1 : random.between(1, 20) }, make);
  if (kind !== 'runs') return () => random.pick(pool);
  let current = random.pick(pool);
  return () => {
    if (random.chance(0.05)) current = random.pick(pool);
    return current;
  };
}

function lengthsOf(random: Random): () => number {
  const most = random.pick([0, 1, 2, 4, 9]);
  const empty = random.pick([0, 0.2, 0.8]);
  return () => (random.chance(empty) ? 0 : random.below(most + 1));
}

function leafOf(type: arrow.DataType, random: Random, options: MakerOptions): Maker {
  switch (type.typeId) {
    case arrow.Type.Bool:
      return () => random.chance(0.5);
    case arrow.Type.Utf8:
    case arrow.Type.LargeUtf8: {
      const most = longest(random, options);
      return () => {
        let text = '';
        const length = random.below(most + 1);
        while (text.length < length) text += random.chance(0.5) ? `${random.pick(WORDS)} ` : random.next().toString(36);
        return most < 8 ? (Array.from(text)[0] ?? '') : text;
      };
    }
    case arrow.Type.Binary:
    case arrow.Type.LargeBinary: {
      const most = longest(random, options);
      return () => Uint8Array.from({ length: random.below(most + 1) }, () => random.below(256));
    }
    case arrow.Type.FixedSizeBinary:
      return () => Uint8Array.from({ length: (type as arrow.FixedSizeBinary).byteWidth }, () => random.below(256));
    case arrow.Type.Float:
      return floats((type as arrow.Float).precision, random);
    case arrow.Type.Decimal: {
      const { precision } = type as arrow.Decimal;
      const limit = 10n ** BigInt(random.chance(0.5) ? precision : Math.min(precision, 4));
      return () => {
        const size = random.bits(precision * 4) % limit;
        return random.chance(0.5) ? -size : size;
      };
    }
    case arrow.Type.Int: {
      const { bitWidth, isSigned } = type as arrow.Int;
      return integers(bitWidth, isSigned, random);
    }
    case arrow.Type.Time: {
      const { bitWidth, unit } = type as arrow.Time;
      const day = 86_400 * 10 ** (unit * 3);
      return () => (bitWidth === 32 ? random.below(day) : random.bits(64) % BigInt(day));
    }
    case arrow.Type.Date:
      if ((type as arrow.Date_).unit === arrow.DateUnit.DAY) return () => random.between(-100_000, 100_000);
      return () => BigInt(random.between(-20_000, 40_000)) * 86_400_000n;
    default:
      return integers(64, true, random);
  }
}

function longest(random: Random, { isLong }: MakerOptions): number {
  return isLong === true ? random.pick([300, 700, 40_000]) : random.pick([3, 12, 60, 250]);
}

function integers(bits: number, isSigned: boolean, random: Random): Maker {
  const used = random.pick([2, 7, bits - 1, bits]);
  const isNegative = isSigned && random.chance(0.4);
  let last = 0n;
  const isOrdered = random.chance(0.3);
  return () => {
    let value = random.bits(Math.min(used, bits));
    if (isOrdered) value = last += value & 7n;
    if (isNegative && random.chance(0.5)) value = -value;
    value = isSigned ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
    return bits === 64 ? value : Number(value);
  };
}

function floats(precision: arrow.Precision, random: Random): Maker {
  const kind = random.below(3);
  const special = [0, -0, NaN, Infinity, -Infinity, 1];
  return () => {
    if (kind === 0 && random.chance(0.1)) return random.pick(special);
    // Quarters up to 500: exact in every precision.
    if (kind < 2 || precision === arrow.Precision.HALF) return random.between(-1999, 1999) / 4;
    const value = (random.next() / 2 ** 32 - 0.5) * 10 ** random.between(-30, 30);
    return precision === arrow.Precision.SINGLE ? Math.fround(value) : value;
  };
}
