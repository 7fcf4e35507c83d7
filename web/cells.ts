// Cells: values of Arrow columns as text for people. Nothing here rounds a 64-bit integer or hides that a value is null.

import { DataType, DateUnit, TimeUnit, type Field } from 'apache-arrow';

/** How a cell is dressed: the class of its text. */
export type CellKind = 'null' | 'number' | 'boolean' | 'text' | 'time' | 'bytes' | 'nested' | 'vector';

export interface Cell {
  readonly kind: CellKind;
  readonly text: string;
}

/** Longer texts are cut in the grid; the whole one is in the cell's own window. */
const CUT_LENGTH = 160;
/** Numbers of a vector that the grid shows. */
const VECTOR_HEAD = 4;

/** The text of a value in the grid: one line, cut where it is long. */
export function formatCell(value: unknown, type: DataType): Cell {
  if (value === null || value === undefined) return { kind: 'null', text: 'null' };
  if (isVectorType(type)) return { kind: 'vector', text: vectorHead(value) };
  if (isNested(type)) return { kind: 'nested', text: cut(JSON.stringify(plain(value, type))) };
  if (DataType.isBinary(type) || DataType.isLargeBinary(type) || DataType.isFixedSizeBinary(type)) {
    return { kind: 'bytes', text: bytesHead(value as Uint8Array) };
  }
  return { kind: kindOf(type), text: cut(scalar(value, type).replace(/\s*[\r\n]+\s*/g, ' \u21b5 ')) };
}

/** The whole value, over as many lines as it needs. */
export function formatWhole(value: unknown, type: DataType): string {
  if (value === null || value === undefined) return 'null';
  if (isVectorType(type)) return JSON.stringify(plain(value, type)).replaceAll(',', ', ');
  if (isNested(type)) return JSON.stringify(plain(value, type), undefined, 2);
  if (value instanceof Uint8Array) return hex(value);
  return scalar(value, type);
}

/** The type as people write it: `int64`, `list<utf8>`, `float32[8]`. */
export function formatType(type: DataType): string {
  if (DataType.isFixedSizeList(type)) return `${formatType(child(type))}[${type.listSize}]`;
  if (DataType.isList(type)) return `list<${formatType(child(type))}>`;
  if (DataType.isStruct(type)) return 'struct';
  if (DataType.isDictionary(type)) return formatType(type.dictionary);
  if (DataType.isTimestamp(type)) return 'timestamp';
  if (DataType.isFixedSizeBinary(type)) return `binary[${type.byteWidth}]`;
  return String(type)
    .replace(/<.*$/, '')
    .replace(/^(Large)?Utf8$/, 'text')
    .toLowerCase();
}

export function isVectorType(type: DataType): boolean {
  return DataType.isFixedSizeList(type) && (DataType.isFloat(child(type)) || DataType.isInt(child(type)));
}

function isNested(type: DataType): boolean {
  return DataType.isList(type) || DataType.isFixedSizeList(type) || DataType.isStruct(type) || DataType.isMap(type);
}

export function isNumberType(type: DataType): boolean {
  return kindOf(type) === 'number';
}

function kindOf(type: DataType): CellKind {
  if (DataType.isDictionary(type)) return kindOf(type.dictionary);
  if (DataType.isInt(type) || DataType.isFloat(type) || DataType.isDecimal(type)) return 'number';
  if (DataType.isBool(type)) return 'boolean';
  if (DataType.isDate(type) || DataType.isTimestamp(type) || DataType.isTime(type)) return 'time';
  return 'text';
}

function scalar(value: unknown, type: DataType): string {
  if (DataType.isDictionary(type)) return scalar(value, type.dictionary);
  // JavaScript writes a negative zero without its sign.
  if (typeof value === 'number' && Object.is(value, -0)) return '-0';
  if (DataType.isDate(type)) return formatDate(Number(value), type.unit);
  if (DataType.isTimestamp(type)) return formatTimestamp(Number(value), type.timezone);
  if (DataType.isTime(type)) return formatTimeOfDay(value as number | bigint, type.unit);
  if (DataType.isDecimal(type)) return formatDecimal(value as Uint32Array, type.scale);
  return String(value);
}

/** Arrow's `get` answers milliseconds for dates of both units. */
function formatDate(ms: number, unit: DateUnit): string {
  const text = isoTime(ms);
  return unit === DateUnit.DAY ? text.slice(0, text.indexOf('T')) : text;
}

function formatTimestamp(ms: number, timezone: string | null | undefined): string {
  const text = isoTime(ms)
    .replace('T', ' ')
    .replace(/\.000$/, '')
    .replace(/:00$/, '');
  return timezone === null || timezone === undefined ? text : `${text}Z`;
}

/** ISO 8601 without the zone; beyond the years that JavaScript knows, the number itself. */
function isoTime(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? `${ms} msT` : date.toISOString().slice(0, -1);
}

function formatTimeOfDay(value: number | bigint, unit: TimeUnit): string {
  const perSecond = {
    [TimeUnit.SECOND]: 1,
    [TimeUnit.MILLISECOND]: 1e3,
    [TimeUnit.MICROSECOND]: 1e6,
    [TimeUnit.NANOSECOND]: 1e9,
  };
  const units = perSecond[unit];
  const digits = String(units).length - 1;
  const ticks = BigInt(value);
  const seconds = Number(ticks / BigInt(units));
  const rest = digits === 0 ? '' : `.${String(ticks % BigInt(units)).padStart(digits, '0')}`.replace(/\.?0+$/, '');
  const two = (part: number) => String(Math.floor(part)).padStart(2, '0');
  return `${two(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}${rest}`;
}

/** Arrow gives a decimal as 32-bit words, least significant first, in two's complement. */
function formatDecimal(words: Uint32Array, scale: number): string {
  let unscaled = 0n;
  for (let i = words.length - 1; i >= 0; i--) unscaled = (unscaled << 32n) | BigInt(words[i] ?? 0);
  unscaled = BigInt.asIntN(words.length * 32, unscaled);
  const sign = unscaled < 0n ? '-' : '';
  const digits = String(unscaled < 0n ? -unscaled : unscaled);
  if (scale <= 0) return `${sign}${digits}${'0'.repeat(unscaled === 0n ? 0 : -scale)}`;
  const padded = digits.padStart(scale + 1, '0');
  return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
}

/** A value as JSON can hold it: bigints that are too large for a number, and times, become text. */
function plain(value: unknown, type: DataType): unknown {
  if (value === null || value === undefined) return null;
  if (DataType.isList(type) || DataType.isFixedSizeList(type)) {
    return Array.from(value as Iterable<unknown>, (item) => plain(item, child(type)));
  }
  if (DataType.isStruct(type)) {
    const row = value as Record<string, unknown>;
    return Object.fromEntries(
      (type.children as Field[]).map((field) => [field.name, plain(row[field.name], field.type)]),
    );
  }
  if (DataType.isMap(type)) {
    const entry = child(type);
    const [, valueField] = entry.children as Field[];
    if (valueField === undefined) return null;
    return Object.fromEntries(
      Array.from(value as Iterable<[unknown, unknown]>, ([key, item]) => [String(key), plain(item, valueField.type)]),
    );
  }
  if (value instanceof Uint8Array) return hex(value);
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === 'number') {
    if (DataType.isFloat(type)) return Number.isFinite(value) ? shortFloat(value, type.precision === 2) : String(value);
    return kindOf(type) === 'time' ? scalar(value, type) : value;
  }
  return typeof value === 'boolean' ? value : scalar(value, type);
}

function vectorHead(value: unknown): string {
  const items = Array.from(value as Iterable<number | bigint | null>);
  const head = items.slice(0, VECTOR_HEAD).map((item) => (item === null ? 'null' : shortNumber(item)));
  return items.length > VECTOR_HEAD ? `[${head.join(', ')}, \u2026 ${items.length}]` : `[${head.join(', ')}]`;
}

function shortNumber(value: number | bigint): string {
  if (typeof value === 'bigint' || Number.isInteger(value) || !Number.isFinite(value)) return String(value);
  return Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3 ? value.toExponential(1) : String(Number(value.toFixed(3)));
}

/** A 32-bit float without the digits that only its 64-bit form has. */
function shortFloat(value: number, isDouble: boolean): number {
  return isDouble ? value : Number(value.toPrecision(7));
}

function bytesHead(bytes: Uint8Array): string {
  const shown = 8;
  return bytes.length <= shown ? `0x${hex(bytes)}` : `0x${hex(bytes.subarray(0, shown))}\u2026 ${bytes.length} bytes`;
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function cut(text: string): string {
  return text.length > CUT_LENGTH ? `${text.slice(0, CUT_LENGTH)}\u2026` : text;
}

function child(type: DataType): DataType {
  const [field] = type.children as Field[];
  if (field === undefined) throw new TypeError(`a ${String(type)} without a child`);
  return field.type as DataType;
}
