/** JavaScript values to the numbers that Arrow stores: exactly, or not at all. A refusal is the reason as a string. */

import * as arrow from 'apache-arrow';

import { cellDate, describeCell } from './cells';

/** Why a value does not fit; thrown, and caught where the row and the column are known. */
export class Refusal {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

export interface IntRange {
  readonly name: string;
  readonly min: bigint;
  readonly max: bigint;
  /** The same as numbers, exact up to 32 bits. */
  readonly least: number;
  readonly most: number;
}

export function intRange(bits: number, isSigned: boolean): IntRange {
  const span = 1n << BigInt(isSigned ? bits - 1 : bits);
  const [min, max] = [isSigned ? -span : 0n, span - 1n];
  return { name: `${isSigned ? 'Int' : 'Uint'}${bits}`, min, max, least: Number(min), most: Number(max) };
}

export const INT32 = intRange(32, true);
export const INT64 = intRange(64, true);

/** An integer of at most 32 bits. As in LanceDB, true and false are 1 and 0 in columns of numbers. */
export function toSmallInt(value: unknown, range: IntRange): number {
  const number = typeof value === 'bigint' || typeof value === 'boolean' ? Number(value) : value;
  if (typeof number !== 'number') throw new Refusal(`${describeCell(value)} is not a number, ${range.name} expected`);
  if (!Number.isInteger(number)) throw new Refusal(`${describeCell(value)} is not an integer, ${range.name} expected`);
  if (number < range.least || number > range.most) throw outOfRange(value, range.name);
  return number;
}

export function toBigInt(value: unknown, range: IntRange): bigint {
  let integer: bigint;
  if (typeof value === 'bigint' || typeof value === 'boolean') integer = BigInt(value);
  else if (typeof value !== 'number') {
    throw new Refusal(`${describeCell(value)} is not a number, ${range.name} expected`);
  } else if (!Number.isInteger(value)) {
    throw new Refusal(
      `the number ${value} cannot be converted to a BigInt because it is not an integer, ${range.name} expected`,
    );
  } else integer = BigInt(value);
  if (integer < range.min || integer > range.max) throw outOfRange(value, range.name);
  return integer;
}

/** A float of `precision`, rounded to its nearest as IEEE 754 has it: beyond the largest is infinity. */
export function toFloat(value: unknown, precision: arrow.Precision): number {
  const name = `Float${[16, 32, 64][precision] ?? 64}`;
  const round = precision === arrow.Precision.SINGLE ? Math.fround : (x: number) => x;
  if (typeof value === 'bigint') {
    const number = round(Number(value));
    const isExact = Number.isFinite(number) && BigInt(number) === value;
    if (!isExact) throw new Refusal(`${value}n has no exact ${name}`);
    return number;
  }
  if (typeof value === 'boolean') return Number(value);
  if (typeof value !== 'number') throw new Refusal(`${describeCell(value)} is not a number, ${name} expected`);
  return value;
}

/** A boolean; as in LanceDB, also 1 and 0. */
export function toBool(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  if (value === 0 || value === 1) return value === 1;
  throw new Refusal(`${describeCell(value)} is not a boolean`);
}

const f32 = new Float32Array(1);
const u32 = new Uint32Array(f32.buffer);

/** The bits of the nearest IEEE half, ties to even. */
export function halfBits(value: number): number {
  f32[0] = value;
  const bits = u32[0] ?? 0;
  const sign = (bits >>> 16) & 0x8000;
  const exponent = (bits >>> 23) & 0xff;
  const fraction = bits & 0x7fffff;
  if (exponent === 0xff) return sign | 0x7c00 | (fraction === 0 ? 0 : 0x200);
  const biased = exponent - 112;
  if (biased >= 31) return sign | 0x7c00;
  if (biased < -10) return sign;
  // Below the smallest normal half, the implicit one becomes part of the fraction.
  const shift = biased <= 0 ? 14 - biased : 13;
  const whole = biased <= 0 ? fraction | 0x800000 : fraction;
  const half = (biased <= 0 ? 0 : biased << 10) | (whole >>> shift);
  const rest = whole & ((1 << shift) - 1);
  const middle = 1 << (shift - 1);
  // A carry out of the fraction lands in the exponent, which is right.
  const roundsUp = rest > middle || (rest === middle && (half & 1) === 1);
  return sign | (half + (roundsUp ? 1 : 0));
}

const UNIT_NAMES = ['s', 'ms', 'us', 'ns'];
/** Units per second. */
const UNITS = [1n, 1_000n, 1_000_000n, 1_000_000_000n];

/** A point in time in a column's unit: a `Date`, a number of milliseconds, or a bigint that counts the unit itself. */
export function toTimestamp(value: unknown, unit: arrow.TimeUnit): bigint {
  if (typeof value === 'bigint') return within64(value, 'Timestamp');
  const name = `Timestamp(${UNIT_NAMES[unit]})`;
  const ms = cellDate(value)?.getTime() ?? value;
  if (typeof ms !== 'number' || Number.isNaN(ms)) {
    throw new Refusal(`${describeCell(value)} is not a date or a number of milliseconds, ${name} expected`);
  }
  const perMs = Number(UNITS[unit] ?? 1n) / 1000;
  const whole = Math.floor(ms);
  // The whole milliseconds apart, so that nanoseconds of today keep every digit.
  const rest = (ms - whole) * perMs;
  if (perMs < 1) {
    if (!Number.isInteger(ms * perMs))
      throw new Refusal(`${describeCell(value)} is not a whole second, ${name} expected`);
    return within64(BigInt(ms * perMs), name);
  }
  if (!Number.isFinite(ms) || !Number.isInteger(rest)) {
    throw new Refusal(`${describeCell(value)} has no exact ${name}`);
  }
  return within64(BigInt(whole) * BigInt(perMs) + BigInt(rest), name);
}

const DAY_MS = 86_400_000;

/** Days since the Unix epoch: a `Date` or a number of milliseconds, at midnight UTC. */
export function toDays(value: unknown): number {
  const ms = toDateMs(value);
  if (ms % DAY_MS !== 0) {
    throw new Refusal(`${describeCell(value)} has a time of day, Date32 expected: give midnight UTC`);
  }
  return toSmallInt(ms / DAY_MS, INT32);
}

export function toDateMs(value: unknown): number {
  const ms = cellDate(value)?.getTime() ?? (typeof value === 'bigint' ? Number(value) : value);
  if (typeof ms !== 'number' || !Number.isInteger(ms)) {
    throw new Refusal(`${describeCell(value)} is not a date or a number of milliseconds`);
  }
  return ms;
}

const DECIMAL = /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/;

/** The unscaled integer of a decimal. A number stands for its shortest decimal text. */
export function toDecimal(value: unknown, precision: number, scale: number): bigint {
  const name = `Decimal(${precision}, ${scale})`;
  const isText = typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint';
  const match = isText ? DECIMAL.exec(String(value).trim()) : null;
  const digits = match === null ? '' : `${match[2] ?? ''}${match[3] ?? ''}`;
  if (match === null || digits === '') throw new Refusal(`${describeCell(value)} is not a decimal, ${name} expected`);
  const shift = Number(match[4] ?? 0) - (match[3] ?? '').length + scale;
  // Longer than any decimal: the exponent alone decides, before it makes a number of its size.
  if (shift > 100 && !/^0*$/.test(digits)) throw outOfRange(value, name);
  let unscaled = BigInt(digits);
  if (shift >= 0) unscaled *= 10n ** BigInt(Math.min(shift, 100));
  else if (unscaled !== 0n) {
    const trailing = digits.length - digits.replace(/0+$/, '').length;
    if (trailing < -shift)
      throw new Refusal(`${describeCell(value)} has more than ${scale} decimals, ${name} expected`);
    unscaled /= 10n ** BigInt(-shift);
  }
  if (unscaled.toString().length > precision && unscaled !== 0n) throw outOfRange(value, name);
  return match[1] === '-' ? -unscaled : unscaled;
}

function within64(value: bigint, name: string): bigint {
  if (value < INT64.min || value > INT64.max) throw outOfRange(value, name);
  return value;
}

function outOfRange(value: unknown, name: string): Refusal {
  return new Refusal(`${describeCell(value)} is out of the range of ${name}`);
}
