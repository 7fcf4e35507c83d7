import {
  Binary,
  Bool,
  DateDay,
  DateMillisecond,
  Decimal,
  Dictionary,
  Field,
  FixedSizeList,
  Float32,
  Float64,
  Int32,
  Int64,
  List,
  Struct,
  TimeMicrosecond,
  TimeSecond,
  TimestampMicrosecond,
  TimestampMillisecond,
  Utf8,
  vectorFromArray,
  type DataType,
} from 'apache-arrow';
import { expect, test } from 'vitest';

import { formatCell, formatType, formatWhole } from './cells.ts';

/** The value as a query gives it: out of a vector of its type. */
const through = (value: unknown, type: DataType) => vectorFromArray([value], type).get(0) as unknown;
const shown = (value: unknown, type: DataType) => formatCell(through(value, type), type).text;
const whole = (value: unknown, type: DataType) => formatWhole(through(value, type), type);
const list = (type: DataType) => new List(new Field('item', type));
const vector = (length: number) => new FixedSizeList(length, new Field('item', new Float32()));

test('null is told apart from the text null', () => {
  expect(formatCell(null, new Utf8())).toEqual({ kind: 'null', text: 'null' });
  expect(formatCell('null', new Utf8())).toEqual({ kind: 'text', text: 'null' });
});

test('integers keep all digits and floats their special values', () => {
  expect(shown(9007199254740993n, new Int64())).toBe('9007199254740993');
  expect(shown(-0, new Float64())).toBe('-0');
  expect(shown(NaN, new Float64())).toBe('NaN');
  expect(shown(-Infinity, new Float64())).toBe('-Infinity');
  expect(formatCell(1, new Int32()).kind).toBe('number');
  expect(shown(true, new Bool())).toBe('true');
});

test('dates and times are written as people write them', () => {
  expect(shown(new Date('2024-02-29'), new DateDay())).toBe('2024-02-29');
  expect(shown(new Date('2024-02-29T12:30:00Z'), new DateMillisecond())).toBe('2024-02-29T12:30:00.000');
  expect(shown(Date.UTC(2024, 1, 29, 12, 30), new TimestampMillisecond())).toBe('2024-02-29 12:30');
  expect(shown(Date.UTC(2024, 1, 29, 12, 30, 5), new TimestampMillisecond('UTC'))).toBe('2024-02-29 12:30:05Z');
  expect(shown(Date.UTC(1969, 11, 31, 23, 59, 59, 250), new TimestampMicrosecond())).toBe('1969-12-31 23:59:59.250');
  expect(shown(3_723, new TimeSecond())).toBe('01:02:03');
  expect(shown(3_723_000_500n, new TimeMicrosecond())).toBe('01:02:03.0005');
});

test('a decimal keeps its digits and its sign', () => {
  const words = (value: bigint) => new Uint32Array(new BigInt64Array([value, value < 0n ? -1n : 0n]).buffer);
  const type = new Decimal(2, 10, 128);
  expect(formatCell(words(12345n), type).text).toBe('123.45');
  expect(formatCell(words(-5n), type).text).toBe('-0.05');
});

test('a vector is abbreviated in the grid and whole in its window', () => {
  expect(shown([0.1, -2, 3.14159, 1e-9, 5], vector(5))).toBe('[0.1, -2, 3.142, 1.0e-9, \u2026 5]');
  expect(shown([1, 2], vector(2))).toBe('[1, 2]');
  expect(whole([0.1, -2], vector(2))).toBe('[0.1, -2]');
});

test('lists and structs are compact JSON', () => {
  const type = new Struct([
    new Field('name', new Utf8()),
    new Field('big', new Int64()),
    new Field('at', new TimestampMillisecond()),
    new Field('tags', list(new Utf8())),
  ]);
  const value = { name: 'a"b', big: 9007199254740993n, at: Date.UTC(2024, 0, 2, 3, 4), tags: ['x', null] };
  expect(shown(value, type)).toBe(
    '{"name":"a\\"b","big":"9007199254740993","at":"2024-01-02 03:04","tags":["x",null]}',
  );
  expect(shown([], list(new Int32()))).toBe('[]');
  expect(formatCell(through([1.5], list(new Float64())), list(new Float64())).kind).toBe('nested');
});

test('long text is cut in the grid only, and a line break is one sign', () => {
  expect(shown('x'.repeat(161), new Utf8())).toBe(`${'x'.repeat(160)}\u2026`);
  expect(whole('x'.repeat(161), new Utf8())).toBe('x'.repeat(161));
  expect(shown('a\n b', new Utf8())).toBe('a \u21b5 b');
});

test('bytes are hex, and their number is told when they are many', () => {
  expect(shown(Uint8Array.of(1, 255), new Binary())).toBe('0x01ff');
  expect(shown(new Uint8Array(9), new Binary())).toBe('0x0000000000000000\u2026 9 bytes');
  expect(whole(Uint8Array.of(1, 255), new Binary())).toBe('01ff');
});

test('a dictionary is shown by its values', () => {
  const type = new Dictionary(new Utf8(), new Int32());
  expect(shown('red', type)).toBe('red');
  expect(formatType(type)).toBe('text');
});

test('types are named in short', () => {
  expect(
    [new Int64(), new Utf8(), vector(8), list(new Utf8()), new TimestampMillisecond(), new Bool()].map(formatType),
  ).toEqual(['int64', 'text', 'float32[8]', 'list<text>', 'timestamp', 'bool']);
});
