// Writes small tables with @lancedb/lancedb and keeps their data files, beside the same rows as an Arrow IPC stream.
//
//   node wasm/tests/golden/datagen.mjs [case...]
//
// Every case is a folder: v2_2.lance, v2_1.lance and v2_0.lance (where the version has such values) and expected.arrows. Values are made by a seeded
// generator, so that a second run gives the same rows (file names inside of a table are random, the kept files have fixed names).
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  copyFileSync,
  rmSync,
  writeFileSync,
  readFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRequire } from 'node:module';
import * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';

const require = createRequire(import.meta.url);
const version = JSON.parse(
  readFileSync(require.resolve('@lancedb/lancedb').replace(/dist.*$/, 'package.json')),
).version;
const target = join(dirname(fileURLToPath(import.meta.url)), `lancedb-${version}`);

// ---- deterministic randomness

let state = 1n;
const MASK = (1n << 64n) - 1n;
/** 64 random bits (SplitMix64). */
function bits() {
  state = (state + 0x9e3779b97f4a7c15n) & MASK;
  let z = state;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}
const below = (n) => Number(bits() % BigInt(n));
const rows = (n, f) => Array.from({ length: n }, (_, i) => f(i));
/** Every row null with a chance of one in `k`. */
const holes = (k, f) => (i) => (below(k) === 0 ? null : f(i));
const hex = (n) => Array.from({ length: n }, () => '0123456789abcdef'[below(16)]).join('');
const WORDS =
  'the of browser lance page column vector table index store tab worker shard commit version snapshot'.split(' ');
const words = (n) => Array.from({ length: n }, () => WORDS[below(WORDS.length)]).join(' ');
const bytes = (n) => Uint8Array.from({ length: n }, () => below(256));

// ---- Arrow data from plain values: no builder of the library between, so that every buffer is what we say

/** A value for a slot that is not seen: below a null struct or a null fixed-size list. */
function filler(type) {
  if (arrow.DataType.isUtf8(type) || arrow.DataType.isLargeUtf8(type)) return '';
  if (arrow.DataType.isBinary(type) || arrow.DataType.isLargeBinary(type)) return new Uint8Array();
  if (arrow.DataType.isFixedSizeBinary(type)) return new Uint8Array(type.byteWidth);
  if (arrow.DataType.isList(type) || arrow.DataType.isMap(type)) return [];
  if (arrow.DataType.isFixedSizeList(type)) return Array(type.listSize).fill(filler(type.children[0].type));
  if (arrow.DataType.isStruct(type)) return Object.fromEntries(type.children.map((f) => [f.name, filler(f.type)]));
  if (arrow.DataType.isBool(type)) return false;
  if (arrow.DataType.isNull(type)) return null;
  return 0;
}

function bitmap(values) {
  const out = new Uint8Array(Math.ceil(values.length / 64) * 8);
  values.forEach((value, i) => value && (out[i >> 3] |= 1 << (i & 7)));
  return out;
}

function words32(value, count) {
  const big = BigInt.asUintN(count * 32, BigInt(value));
  return Array.from({ length: count }, (_, i) => Number((big >> BigInt(32 * i)) & 0xffffffffn));
}

function fixedWidth(type, values) {
  if (arrow.DataType.isDecimal(type)) {
    const count = type.bitWidth / 32;
    return Uint32Array.from(values.flatMap((v) => words32(v ?? 0, count)));
  }
  if (arrow.DataType.isFixedSizeBinary(type)) {
    const out = new Uint8Array(values.length * type.byteWidth);
    values.forEach((v, i) => v && out.set(v, i * type.byteWidth));
    return out;
  }
  const is64 =
    type.bitWidth === 64 ||
    arrow.DataType.isTimestamp(type) ||
    arrow.DataType.isDuration(type) ||
    (arrow.DataType.isDate(type) && type.unit === arrow.DateUnit.MILLISECOND);
  if (arrow.DataType.isFloat(type)) {
    const Float = { 0: Uint16Array, 1: Float32Array, 2: Float64Array }[type.precision];
    return Float.from(values.map((v) => v ?? 0));
  }
  if (is64) {
    const unsigned = arrow.DataType.isInt(type) && !type.isSigned;
    return (unsigned ? BigUint64Array : BigInt64Array).from(values.map((v) => BigInt(v ?? 0)));
  }
  if (arrow.DataType.isInt(type)) return type.ArrayType.from(values.map((v) => v ?? 0));
  return Int32Array.from(values.map((v) => v ?? 0));
}

function offsets(lengths, large) {
  const out = new (large ? BigInt64Array : Int32Array)(lengths.length + 1);
  let end = 0;
  lengths.forEach((length, i) => (out[i + 1] = large ? BigInt((end += length)) : (end += length)));
  return out;
}

/** The distinct values of dictionary columns; batches share them. */
const dictionaries = new Map();

function dictionaryOf(type, values) {
  if (!dictionaries.has(type)) {
    const distinct = [...new Set(values.filter((v) => v !== null))];
    dictionaries.set(type, { distinct, vector: new arrow.Vector([data(type.dictionary, distinct)]) });
  }
  return dictionaries.get(type);
}

function data(type, values) {
  const length = values.length;
  if (arrow.DataType.isNull(type)) return arrow.makeData({ type, length });
  const nullCount = values.filter((v) => v === null).length;
  const base = { type, length, nullCount, nullBitmap: nullCount ? bitmap(values.map((v) => v !== null)) : null };
  if (arrow.DataType.isDictionary(type)) {
    const { distinct, vector } = dictionaryOf(type, values);
    const keys = values.map((v) => (v === null ? 0 : distinct.indexOf(v)));
    return arrow.makeData({ ...base, data: type.indices.ArrayType.from(keys), dictionary: vector });
  }
  if (arrow.DataType.isBool(type)) return arrow.makeData({ ...base, data: bitmap(values) });
  const isText = arrow.DataType.isUtf8(type) || arrow.DataType.isLargeUtf8(type);
  if (isText || arrow.DataType.isBinary(type) || arrow.DataType.isLargeBinary(type)) {
    const parts = values.map((v) => Buffer.from(v ?? (isText ? '' : [])));
    const large = arrow.DataType.isLargeUtf8(type) || arrow.DataType.isLargeBinary(type);
    const valueOffsets = offsets(
      parts.map((p) => p.length),
      large,
    );
    return arrow.makeData({ ...base, valueOffsets, data: new Uint8Array(Buffer.concat(parts)) });
  }
  if (arrow.DataType.isList(type) || arrow.DataType.isMap(type)) {
    const child = data(
      type.children[0].type,
      values.flatMap((v) => v ?? []),
    );
    return arrow.makeData({ ...base, valueOffsets: offsets(values.map((v) => v?.length ?? 0)), child });
  }
  if (arrow.DataType.isFixedSizeList(type)) {
    const child = data(
      type.children[0].type,
      values.flatMap((v) => v ?? filler(type)),
    );
    return arrow.makeData({ ...base, child });
  }
  if (arrow.DataType.isStruct(type)) {
    const children = type.children.map((f) =>
      data(
        f.type,
        values.map((v) => (v === null ? (f.nullable ? null : filler(f.type)) : v[f.name])),
      ),
    );
    return arrow.makeData({ ...base, children });
  }
  return arrow.makeData({ ...base, data: fixedWidth(type, values) });
}

const field = (name, type, nullable = true) => new arrow.Field(name, type, nullable);
const list = (type, nullable = true) => new arrow.List(field('item', type, nullable));
const fsl = (n, type) => new arrow.FixedSizeList(n, field('item', type));
const struct = (fields) => new arrow.Struct(Object.entries(fields).map(([name, type]) => field(name, type)));

/** A table of `columns`: name to [type, values, metadata]. `batches` cuts it into that many record batches. */
function table(columns, batches = 1) {
  const fields = Object.entries(columns).map(
    ([name, [type, , metadata]]) => new arrow.Field(name, type, true, new Map(Object.entries(metadata ?? {}))),
  );
  const schema = new arrow.Schema(fields);
  for (const [type, values] of Object.values(columns))
    if (arrow.DataType.isDictionary(type)) dictionaryOf(type, values);
  const count = Object.values(columns)[0][1].length;
  const per = Math.ceil(count / batches);
  const parts = [];
  for (let from = 0; from < count; from += per) {
    const children = Object.values(columns).map(([type, values]) => data(type, values.slice(from, from + per)));
    const length = children[0].length;
    parts.push(new arrow.RecordBatch(schema, arrow.makeData({ type: new arrow.Struct(fields), length, children })));
  }
  return new arrow.Table(schema, parts);
}

// ---- the cases

const {
  Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float16, Float32, Float64, Bool, Utf8, LargeUtf8, Binary, LargeBinary,
} = arrow; // prettier-ignore
const unit = arrow.TimeUnit;
const f32 = () => Math.fround(below(1 << 24) / 1024 - 5000);
const vector = (n) => () => Array.from({ length: n }, f32);
const wide = () => words(60);
const PACKED = { packed: 'true' };
const BLOB = { 'lance-encoding:blob': 'true' };
const packed = (name, type) => new arrow.Field(name, type, true, new Map(Object.entries(PACKED)));

const CASES = {
  tiny: () =>
    table({
      a: [new Int32(), [1, 2, null, 300]],
      l: [list(new Utf8()), [['x', 'yz'], [], null, ['w', null, 'q']]],
    }),
  integers: () => {
    const n = 1030;
    return table({
      i8_random: [new Int8(), rows(n, () => below(256) - 128)],
      i16_random: [new Int16(), rows(n, () => below(65536) - 32768)],
      i32_random: [new Int32(), rows(n, () => below(2 ** 32) - 2 ** 31)],
      i64_random: [new Int64(), rows(n, () => BigInt.asIntN(64, bits()))],
      u8_random: [new Uint8(), rows(n, () => below(256))],
      u16_random: [new Uint16(), rows(n, () => below(65536))],
      u32_random: [new Uint32(), rows(n, () => below(2 ** 32))],
      u64_random: [new Uint64(), rows(n, () => bits())],
      i32_sequence: [new Int32(), rows(n, (i) => i)],
      i64_sequence: [new Int64(), rows(n, (i) => BigInt(i) * 3n)],
      u64_sequence_nulls: [
        new Uint64(),
        rows(
          n,
          holes(9, (i) => BigInt(i)),
        ),
      ],
      i32_small: [new Int32(), rows(n, () => below(50))],
      i32_runs: [new Int32(), rows(n, (i) => Math.floor(i / 37) * 1000003)],
      u8_runs: [new Uint8(), rows(n, (i) => Math.floor(i / 300))],
      i32_constant: [new Int32(), rows(n, () => 42)],
      i64_constant: [new Int64(), rows(n, () => -7n)],
      i32_zero: [new Int32(), rows(n, () => 0)],
      i32_nulls: [
        new Int32(),
        rows(
          n,
          holes(7, () => below(100000)),
        ),
      ],
      i32_null_runs: [new Int32(), rows(n, (i) => (Math.floor(i / 100) % 3 ? i : null))],
      i32_constant_nulls: [
        new Int32(),
        rows(
          n,
          holes(5, () => 42),
        ),
      ],
      i32_all_null: [new Int32(), rows(n, () => null)],
      i64_few: [new Int64(), rows(n, () => BigInt(below(5)) * 1000000007n - 3n)],
      i64_extremes: [new Int64(), rows(n, (i) => [-(2n ** 63n), 2n ** 63n - 1n, 0n][i % 3])],
    });
  },
  floats: () => {
    const n = 1030;
    return table({
      f16: [new Float16(), rows(n, () => below(0x7c00))],
      f32_random: [new Float32(), rows(n, f32)],
      f64_random: [new Float64(), rows(n, () => Number(bits()) / 2 ** 64)],
      f64_integers: [new Float64(), rows(n, (i) => i - 500)],
      f32_constant: [new Float32(), rows(n, () => 1.5)],
      f64_few: [new Float64(), rows(n, () => below(7) / 10)],
      f64_runs: [new Float64(), rows(n, (i) => Math.floor(i / 50) / 3)],
      f32_nulls: [new Float32(), rows(n, holes(4, f32))],
      f64_specials: [new Float64(), rows(n, (i) => [NaN, Infinity, -Infinity, -0, 0, 5e-324][i % 6])],
      bool_random: [new Bool(), rows(n, () => below(2) === 1)],
      bool_true: [new Bool(), rows(n, () => true)],
      bool_nulls: [
        new Bool(),
        rows(
          n,
          holes(3, () => below(2) === 1),
        ),
      ],
      nothing: [new arrow.Null(), rows(n, () => null)],
    });
  },
  temporal: () => {
    const n = 600;
    const time = () => BigInt(1_600_000_000_000 + below(10 ** 11));
    return table({
      ts_s: [
        new arrow.Timestamp(unit.SECOND),
        rows(
          n,
          holes(6, () => time() / 1000n),
        ),
      ],
      ts_ms_utc: [new arrow.Timestamp(unit.MILLISECOND, 'UTC'), rows(n, time)],
      ts_us: [new arrow.Timestamp(unit.MICROSECOND), rows(n, () => time() * 1000n)],
      ts_ns_berlin: [new arrow.Timestamp(unit.NANOSECOND, 'Europe/Berlin'), rows(n, () => time() * 1000000n)],
      date32: [new arrow.DateDay(), rows(n, () => below(30000) - 5000)],
      date64: [new arrow.DateMillisecond(), rows(n, () => BigInt(below(20000)) * 86400000n)],
      time32_s: [new arrow.TimeSecond(), rows(n, () => below(86400))],
      time32_ms: [new arrow.TimeMillisecond(), rows(n, () => below(86400000))],
      time64_us: [new arrow.TimeMicrosecond(), rows(n, () => BigInt(below(86400000)) * 1000n)],
      time64_ns: [new arrow.TimeNanosecond(), rows(n, () => BigInt(below(86400000)) * 1000000n)],
      duration_ms: [new arrow.Duration(unit.MILLISECOND), rows(n, () => BigInt(below(10 ** 9)) - 1000n)],
      decimal128: [new arrow.Decimal(2, 20, 128), rows(n, () => BigInt(below(10 ** 12)) * 100003n - 5n * 10n ** 15n)],
      decimal128_few: [new arrow.Decimal(2, 20, 128), rows(n, () => BigInt(below(4)) - 2n)],
      decimal128_constant: [new arrow.Decimal(2, 20, 128), rows(n, () => -12345n)],
      decimal128_nulls: [
        new arrow.Decimal(0, 38, 128),
        rows(
          n,
          holes(5, () => BigInt(below(10 ** 9)) ** 3n),
        ),
      ],
      decimal256: [new arrow.Decimal(4, 60, 256), rows(n, () => BigInt(below(10 ** 9)) ** 5n - 1n)],
      fsb16: [new arrow.FixedSizeBinary(16), rows(n, () => bytes(16))],
      fsb3_nulls: [
        new arrow.FixedSizeBinary(3),
        rows(
          n,
          holes(6, () => bytes(3)),
        ),
      ],
    });
  },
  strings: () => {
    const n = 1030;
    return table({
      empty: [new Utf8(), rows(n, () => '')],
      short: [new Utf8(), rows(n, () => words(1 + below(3)))],
      short_nulls: [
        new Utf8(),
        rows(
          n,
          holes(6, () => words(1 + below(3))),
        ),
      ],
      sequence: [new Utf8(), rows(n, (i) => `row-${i}`)],
      few: [new Utf8(), rows(n, () => ['red', 'green', 'blue', ''][below(4)])],
      few_nulls: [
        new Utf8(),
        rows(
          n,
          holes(4, () => ['red', 'green', 'blue', ''][below(4)]),
        ),
      ],
      constant: [new Utf8(), rows(n, () => 'constant-string')],
      constant_nulls: [
        new Utf8(),
        rows(
          n,
          holes(5, () => 'constant-string'),
        ),
      ],
      all_null: [new Utf8(), rows(n, () => null)],
      uuid: [new Utf8(), rows(n, () => hex(28))],
      unicode: [new Utf8(), rows(n, (i) => 'a\u00e9\u4e16\u{1f600}'.repeat(i % 4))],
      large_few: [new LargeUtf8(), rows(n, () => WORDS[below(5)])],
      binary: [new Binary(), rows(n, () => bytes(below(9)))],
      binary_nulls: [
        new Binary(),
        rows(
          n,
          holes(3, () => bytes(below(5))),
        ),
      ],
      large_binary: [new LargeBinary(), rows(n, () => bytes(below(6)))],
    });
  },
  dictionaries: () => {
    const n = 1030;
    const of = (type, key) => new arrow.Dictionary(type, key);
    return table({
      by_i32: [of(new Utf8(), new Int32()), rows(n, () => WORDS[below(16)])],
      by_i8_nulls: [
        of(new Utf8(), new Int8()),
        rows(
          n,
          holes(5, () => WORDS[below(7)]),
        ),
      ],
      by_u16: [of(new Utf8(), new Uint16()), rows(n, () => hex(2))],
    });
  },
  wide: () => {
    const n = 40;
    return table({
      s_300: [new Utf8(), rows(n, wide)],
      s_300_nulls: [new Utf8(), rows(n, holes(4, wide))],
      s_mixed: [new Utf8(), rows(n, (i) => (i % 10 ? `v${i}` : hex(300)))],
      s_40k: [new Utf8(), rows(n, (i) => (i === 17 ? words(7000) : i % 5 ? null : wide()))],
      b_400: [new Binary(), rows(n, () => bytes(400 - below(300)))],
      ls_300: [new LargeUtf8(), rows(n, wide)],
      fsb_300: [
        new arrow.FixedSizeBinary(300),
        rows(
          n,
          holes(5, () => bytes(300)),
        ),
      ],
      l_300: [
        list(new Utf8()),
        rows(
          n,
          holes(5, () => rows(below(4), holes(5, wide))),
        ),
      ],
    });
  },
  fsst: () => {
    const n = 700;
    return table({
      text: [new Utf8(), rows(n, () => words(6 + below(6)))],
      text_nulls: [
        new Utf8(),
        rows(
          n,
          holes(5, () => words(8 + below(6))),
        ),
      ],
      large: [new LargeUtf8(), rows(n, () => `https://example.org/${words(5).replaceAll(' ', '/')}`)],
    });
  },
  vectors: () => {
    const n = 40;
    return table({
      v4: [fsl(4, new Float32()), rows(n, vector(4))],
      v4_null_rows: [fsl(4, new Float32()), rows(n, holes(4, vector(4)))],
      v4_null_items: [fsl(4, new Float32()), rows(n, () => rows(4, holes(3, f32)))],
      v4_null_both: [
        fsl(4, new Float32()),
        rows(
          n,
          holes(4, () => rows(4, holes(3, f32))),
        ),
      ],
      v4_only_null_items: [fsl(4, new Float32()), rows(n, () => rows(4, () => null))],
      v4_all_null: [fsl(4, new Float32()), rows(n, () => null)],
      v128: [fsl(128, new Float32()), rows(n, vector(128))],
      v128_null_rows: [fsl(128, new Float32()), rows(n, holes(4, vector(128)))],
      v128_null_items: [
        fsl(128, new Float32()),
        rows(
          n,
          holes(6, () => rows(128, holes(9, f32))),
        ),
      ],
      v128_f16: [fsl(128, new Float16()), rows(n, () => rows(128, () => below(0x7c00)))],
      u8_16: [fsl(16, new Uint8()), rows(n, () => rows(16, () => below(256)))],
      f64_3: [fsl(3, new Float64()), rows(n, () => rows(3, () => below(1000) / 7))],
      bool_8: [fsl(8, new Bool()), rows(n, () => rows(8, () => below(2) === 1))],
      bool_3_null_items: [
        fsl(3, new Bool()),
        rows(n, () =>
          rows(
            3,
            holes(3, () => below(2) === 1),
          ),
        ),
      ],
      fsl_fsl: [fsl(2, fsl(3, new Int32())), rows(n, () => rows(2, () => rows(3, () => below(1000))))],
    });
  },
  lists: () => {
    const n = 1030;
    const ints = () => rows(below(5), () => below(1000));
    const some = (k, f) => (i) => (below(k) === 0 ? [] : f(i));
    return table({
      l_plain: [list(new Int32()), rows(n, () => rows(1 + below(4), () => below(1000)))],
      l_empty: [list(new Int32()), rows(n, some(2, ints))],
      l_null: [list(new Int32()), rows(n, holes(3, () => rows(1 + below(3), () => below(1000))))],
      l_everything: [list(new Int32()), rows(n, holes(5, () => rows(below(5), holes(4, () => below(1000)))))],
      l_null_items: [list(new Int32()), rows(n, () => rows(1 + below(3), holes(3, () => below(1000))))],
      l_all_empty: [list(new Int32()), rows(n, () => [])],
      l_all_null: [list(new Int32()), rows(n, () => null)],
      l_only_null_items: [list(new Int32()), rows(n, () => rows(below(3), () => null))],
      l_bool: [list(new Bool()), rows(n, holes(5, () => rows(below(4), () => below(2) === 1)))],
      l_text: [list(new Utf8()), rows(n, holes(5, () => rows(below(4), holes(6, () => words(1)))))],
      l_f64: [list(new Float64()), rows(n, () => rows(below(4), () => below(10 ** 6) / 7))],
      l_l: [list(list(new Int32())), rows(n, holes(6, () => rows(below(3), holes(6, () => rows(below(4), holes(6, () => below(99)))))))],
      l_v4: [list(fsl(4, new Float32())), rows(n, holes(4, () => rows(below(3), vector(4))))],
    });
  }, // prettier-ignore
  long_lists: () => {
    const lengths = [3, 9000, 0, 1, 3000, 4095, 2];
    return table({
      l_long: [list(new Int32()), rows(18, (i) => (i % 11 === 7 ? null : rows(lengths[i % 7], () => below(100))))],
      l_empty_tail: [list(new Int32()), rows(18, (i) => (i === 3 ? rows(3000, () => below(9)) : []))],
      l_v128: [
        list(fsl(128, new Float32())),
        rows(
          25,
          holes(4, () => rows(below(3), holes(4, vector(128)))),
        ),
      ],
    });
  },
  structs: () => {
    const n = 1030;
    const point = struct({ x: new Int32(), y: new Utf8() });
    const deep = struct({ in: struct({ v: new Float64(), l: list(new Int32()) }), z: new Int32() });
    const ints = () => rows(below(4), holes(4, () => below(1000)));
    const maybe = holes(5, () => below(1000));
    const xy = () => ({ x: maybe(), y: words(1) });
    return table({
      st: [point, rows(n, (i) => ({ x: i, y: `n${i % 50}` }))],
      st_null: [point, rows(n, holes(4, xy))],
      st_all_null: [point, rows(n, () => null)],
      st_st: [deep, rows(n, holes(4, () => ({ in: below(3) ? { v: below(99) / 7, l: below(4) ? ints() : null } : null, z: maybe() })))],
      st_l: [struct({ l: list(new Int32()), k: new Int32() }), rows(n, holes(4, () => ({ l: below(4) ? ints() : null, k: maybe() })))],
      l_st: [list(point), rows(n, holes(5, () => rows(below(4), holes(5, xy))))],
      l_st_l: [
        list(struct({ a: list(new Int32()), b: new Utf8() })),
        rows(n, holes(6, () => rows(below(3), holes(5, () => ({ a: below(4) ? ints() : null, b: words(1) }))))),
      ],
    });
  }, // prettier-ignore
  // Shapes that upstream writes right and reads wrong.
  upstream_misreads: () => {
    const n = 60;
    const s = struct({ l: list(new Utf8()) });
    const v = struct({ l: list(fsl(128, new Float32())) });
    const inner = struct({ a: list(list(new Int32())) });
    const full = () => rows(1 + below(2), () => rows(1 + below(2), () => below(9)));
    return table({
      st_l_wide: [s, rows(n, holes(3, () => ({ l: below(4) ? rows(below(3), holes(4, wide)) : null })))],
      st_l_v128: [v, rows(n, holes(3, () => ({ l: below(4) ? rows(below(3), holes(4, vector(128))) : null })))],
      l_st_l_l: [list(inner), rows(n, holes(4, () => rows(below(3), holes(4, () => ({ a: full() })))))],
    });
  }, // prettier-ignore
  // Pages of one column with different layouts. A page per batch comes only of batches of over 8 MiB: that is what the filler is for,
  // which is left out of the expected rows.
  pages: () => {
    const n = 800;
    const kind = (i) => Math.floor(i / 100);
    return table(
      {
        a: [new Int32(), rows(n, (i) => [i, 7, null, below(2) ? i : null, below(2 ** 31), 7, i % 3, i][kind(i)])],
        s: [new Utf8(), rows(n, (i) => [`s${i}`, 'same', null, below(2) ? 'x' : null, wide(), '', hex(8), `t${i % 3}`][kind(i)])],
        l: [list(new Int32()), rows(n, (i) => [[i], [], null, below(2) ? [] : [i, null], [1, 2, 3], null, [i, i], [[], null][i % 2]][kind(i)])],
        v: [fsl(4, new Float32()), rows(n, (i) => [vector(4)(), null, [1, 2, 3, null], vector(4)(), rows(4, () => null), null, vector(4)(), vector(4)()][kind(i)])],
        b: [new Bool(), rows(n, (i) => [true, false, i % 100 ? null : true, below(2) === 1, below(2) ? null : true, true, false, i % 3 === 0][kind(i)])],
        d: [new arrow.Dictionary(new Utf8(), new Int32()), rows(n, (i) => `k${kind(i)}-${i % 4}`)],
        filler: [new Utf8(), rows(n, (i) => `${i}`.padEnd(90000)), { 'lance-encoding:compression': 'zstd' }],
      },
      8,
    );
  }, // prettier-ignore
  // Compression that a schema asks for.
  compressed: () => {
    const n = 600;
    const ask = (scheme, more) => ({ 'lance-encoding:compression': scheme, ...more });
    const float = () => Math.sin(below(1000)) * 1e6;
    return table({
      i32_lz4: [new Int32(), rows(n, (i) => i % 50), ask('lz4')],
      i64_zstd: [
        new Int64(),
        rows(
          n,
          holes(6, (i) => BigInt(i * i) - 9n),
        ),
        ask('zstd'),
      ],
      i32_none: [new Int32(), rows(n, (i) => i), ask('none')],
      s_lz4: [new Utf8(), rows(n, () => words(2)), ask('lz4')],
      s_zstd: [
        new Utf8(),
        rows(
          n,
          holes(6, () => words(2)),
        ),
        ask('zstd'),
      ],
      s_wide_lz4: [new Utf8(), rows(n, (i) => (i % 20 ? 'x' : wide())), ask('lz4')],
      f64_split: [new Float64(), rows(n, float), ask('lz4', { 'lance-encoding:bss': 'on' })],
      f32_split: [new Float32(), rows(n, () => Math.fround(float())), ask('zstd', { 'lance-encoding:bss': 'on' })],
      l_zstd: [
        list(new Int32()),
        rows(
          n,
          holes(6, () => rows(below(4), () => below(9))),
        ),
        ask('zstd'),
      ],
    });
  },
  maps: () => {
    const entries = new arrow.Struct([field('key', new Utf8(), false), field('value', new Int32())]);
    const pairs = () => rows(below(4), (i) => ({ key: `k${i}`, value: below(5) ? below(100) : null }));
    return table({ m: [new arrow.Map_(field('entries', entries, false), false), rows(300, holes(5, pairs))] });
  },
  // What 2.0 stores only when a schema asks for it, and structs that are never null: it has no others.
  arrays: () => {
    const n = 700;
    const ask = (scheme) => ({ 'lance-encoding:compression': scheme });
    const point = struct({ x: new Int32(), y: new Utf8() });
    const maybe = holes(5, () => below(1000));
    const xy = () => ({ x: maybe(), y: words(1) });
    const packed = struct({ a: new Int32(), b: new Float64(), c: fsl(3, new Uint8()) });
    return table({
      s_zstd: [new Utf8(), rows(n, holes(5, () => words(3))), ask('zstd')],
      s_lz4: [new Utf8(), rows(n, holes(5, () => words(3))), ask('lz4')],
      s_fsst: [new Utf8(), rows(n, holes(5, () => words(4))), ask('fsst')],
      packed: [packed, rows(n, (i) => ({ a: i, b: i / 7, c: [i % 256, 1, 2] })), { packed: 'true' }],
      st: [point, rows(n, xy)],
      st_st: [struct({ in: struct({ v: new Float64(), l: list(new Int32()) }), z: new Int32() }), rows(n, (i) => ({ in: { v: i / 3, l: holes(4, () => rows(below(4), maybe))() }, z: maybe() }))],
      l_st: [list(point), rows(n, holes(5, () => rows(below(4), xy)))],
      l_st_l: [list(struct({ a: list(new Int32()), b: new Bool() })), rows(n, holes(6, () => rows(below(3), () => ({ a: holes(4, () => rows(below(4), maybe))(), b: below(2) === 1 }))))],
      l_packed: [list(struct({ a: new Int32() })), rows(n, holes(6, () => rows(below(3), (i) => ({ a: i }))))],
      l_l_none: [list(list(new Utf8())), rows(n, (i) => (i % 3 ? [] : null))],
      st_empty: [struct({}), rows(n, () => ({}))],
    });
  }, // prettier-ignore
  // Structs that are stored row by row, in one column.
  packed: () => {
    const n = 300;
    const pair = new arrow.Struct([field('a', new Int32(), false), field('c', new Uint8(), false)]);
    const value = (i) => ({ a: i * 3 - 50, c: i % 251 });
    return table({
      plain: [
        new arrow.Struct([field('a', new Int32(), false), field('b', new Int64(), false), field('c', new Uint8(), false)]),
        rows(n, (i) => ({ ...value(i), b: bits() >> 1n })),
        PACKED,
      ],
      nullable: [pair, rows(n, holes(4, value)), PACKED],
      all_null: [pair, rows(n, () => null), PACKED],
      one_value: [pair, rows(n, () => ({ a: 7, c: 1 })), PACKED],
      member: [
        new arrow.Struct([packed('p', pair), field('z', new Int32())]),
        rows(n, holes(5, (i) => ({ p: below(3) ? value(i) : null, z: i }))),
      ],
      items: [new arrow.List(packed('item', pair)), rows(n, holes(5, (i) => rows(below(4), () => (below(3) ? value(i) : null))))],
      fixed_binary: [
        new arrow.Struct([field('k', new arrow.FixedSizeBinary(3), false), field('d', new arrow.Decimal(2, 20, 128), false)]),
        rows(n, (i) => ({ k: bytes(3), d: BigInt(i) << 40n })),
        PACKED,
      ],
    });
  }, // prettier-ignore
  // The same with members of variable length: rows of full-zip pages.
  packed_variable: () => {
    const n = 300;
    const type = new arrow.Struct([field('a', new Int32(), false), field('t', new Utf8(), false), field('w', new LargeBinary(), false)]);
    const value = (i) => ({ a: i, t: hex(below(9)), w: bytes(below(5)) });
    return table({
      plain: [type, rows(n, value), PACKED],
      nullable: [type, rows(n, holes(4, value)), PACKED],
      items: [new arrow.List(packed('item', type)), rows(n, holes(5, (i) => rows(below(4), () => (below(3) ? value(i) : null))))],
      vectors: [
        new arrow.Struct([field('a', new Int32(), false), field('v', fsl(3, new Float32()), false)]),
        rows(n, holes(6, (i) => ({ a: i, v: vector(3)() }))),
        PACKED,
      ],
      nested: [
        new arrow.Struct([field('a', new Int32(), false), field('s', type, false)]),
        rows(n, (i) => ({ a: i, s: value(i) })),
        PACKED,
      ],
      text: [
        new arrow.Struct([field('a', new Int32(), false), field('t', new Utf8(), false)]),
        rows(n, (i) => ({ a: i, t: words(20) })),
        PACKED,
      ],
    });
  }, // prettier-ignore
  // The last two are shapes that this LanceDB writes and cannot read.
  fixed_size_lists_of_structs: () => {
    const n = 200;
    const type = struct({ a: new Int32(), t: new Utf8() });
    const value = (i) => (below(3) ? { a: below(4) ? i : null, t: hex(below(6)) } : null);
    return table({
      first: [fsl(2, type), rows(n, holes(5, (i) => rows(2, () => value(i))))],
      valid: [
        new arrow.FixedSizeList(3, field('item', new arrow.Struct([field('a', new Int32(), false)]), false)),
        rows(n, (i) => rows(3, (k) => ({ a: i * 10 + k }))),
      ],
      all_null: [fsl(2, type), rows(n, () => null)],
      nested: [
        fsl(2, struct({ a: new Int32(), g: fsl(3, struct({ b: new Int32() })) })),
        rows(n, holes(5, (i) => rows(2, holes(4, (k) => ({ a: k, g: below(4) ? rows(3, holes(4, (m) => ({ b: i * 10 + m }))) : null }))))),
      ],
      wide: [
        fsl(2, struct({ t: new Utf8(), v: fsl(65, new Float32()) })),
        rows(n, holes(5, (i) => (i % 20 ? rows(2, () => null) : rows(2, holes(4, () => ({ t: hex(below(300)), v: vector(65)() })))))),
      ],
      in_struct: [
        struct({ z: new Int32(), f: fsl(2, struct({ a: new Int32(), v: fsl(2, new Float32()) })) }),
        rows(n, holes(5, (i) => ({ z: i, f: below(4) ? rows(2, holes(4, (k) => ({ a: k, v: vector(2)() }))) : null }))),
      ],
      of_lists: [
        fsl(2, struct({ l: list(new Int32()) })),
        rows(n, holes(5, (i) => rows(2, holes(4, () => ({ l: below(4) ? rows(below(4), (m) => (below(4) ? i + m : null)) : null }))))),
      ],
    });
  }, // prettier-ignore
  // Dictionaries of other values than strings.
  dictionaries_of_numbers: () => {
    const n = 300;
    const dict = (value, key) => new arrow.Dictionary(value, key);
    return table({
      i32: [dict(new Int32(), new Int8()), rows(n, holes(5, () => below(90) - 40))],
      f64: [dict(new Float64(), new Uint16()), rows(n, holes(5, () => below(200) / 8))],
      bools: [dict(new Bool(), new Int8()), rows(n, holes(5, () => below(2) === 1))],
      i64: [dict(new Int64(), new Int32()), rows(n, () => BigInt(below(9)) << 40n)],
      large: [dict(new LargeUtf8(), new Uint8()), rows(n, holes(5, () => `x${below(9)}`))],
      one: [dict(new Utf8(), new Int32()), rows(n, holes(5, () => 'q'))],
      one_number: [dict(new Int32(), new Int8()), rows(n, () => 7)],
      none: [dict(new Utf8(), new Int32()), rows(n, () => null)],
      items: [list(dict(new Utf8(), new Int8())), rows(n, holes(5, () => rows(below(3), (k) => `k${k}`)))],
    });
  }, // prettier-ignore
  // Full-zip pages of small values, by request.
  full_zip_of_small_values: () => {
    const n = 300;
    const ask = (more) => ({ 'lance-encoding:structural-encoding': 'fullzip', ...more });
    return table({
      bools: [new Bool(), rows(n, holes(5, () => below(2) === 1)), ask()],
      i32: [new Int32(), rows(n, holes(5, (i) => i)), ask()],
      i64: [new Int64(), rows(n, () => bits() >> 1n), ask()],
      texts: [new Utf8(), rows(n, holes(5, () => hex(below(9)))), ask()],
      empty: [new Utf8(), rows(n, () => (below(4) ? '' : 'x')), ask()],
      zstd: [new Utf8(), rows(n, holes(5, () => words(below(40)))), ask({ 'lance-encoding:compression': 'zstd' })],
      items: [list(new Int32()), rows(n, holes(5, () => rows(below(4), () => (below(4) ? below(99) : null)))), ask()],
      text_items: [list(new Utf8()), rows(n, holes(5, () => rows(below(4), () => (below(4) ? hex(below(5)) : null)))), ask()],
      deep: [
        list(struct({ l: list(struct({ l: list(new Int16()) })) })),
        rows(n, holes(5, () => rows(below(3), holes(4, () => ({ l: below(5) ? rows(below(3), holes(4, () => ({ l: below(5) ? rows(below(3), () => below(9)) : null }))) : null }))))),
        ask(),
      ],
    });
  }, // prettier-ignore
  // Pages of one value, in every form (2.2).
  constants: () => {
    const n = 300;
    const all = (type, value, metadata) => [type, rows(n, () => value), metadata];
    const some = (type, value) => [type, rows(n, () => (below(4) ? value : null))];
    const lists = (type, value) => [list(type), rows(n, holes(6, () => rows(below(4), () => (below(5) ? value : null))))];
    const decimal = new arrow.Decimal(2, 20, 128);
    return table({
      yes: all(new Bool(), true),
      no_some: some(new Bool(), false),
      decimals: all(decimal, 12345678901234567890n),
      decimals_some: some(decimal, -5n),
      short: all(new Utf8(), 'constant'),
      empty: all(new Utf8(), ''),
      empty_some: some(new LargeUtf8(), ''),
      long: all(new Utf8(), 'y'.repeat(400)),
      binary: all(new LargeBinary(), Uint8Array.of(1, 2, 3)),
      fixed_32: all(new arrow.FixedSizeBinary(32), new Uint8Array(32).fill(5)),
      fixed_33: some(new arrow.FixedSizeBinary(33), new Uint8Array(33).fill(5)),
      stamps: all(new arrow.TimestampMicrosecond('Europe/Berlin'), 1700000000000000n),
      bool_lists: lists(new Bool(), true),
      text_lists: lists(new Utf8(), 'item'),
      int_lists: lists(new Int16(), 7),
      null_lists: [list(new Int32()), rows(n, () => (below(2) ? null : []))],
      null_items: [list(new Int32()), rows(n, holes(4, () => rows(below(3), () => null)))],
      null_structs: [struct({ a: new Int32(), l: list(new Utf8()) }), rows(n, () => null)],
      vectors: all(fsl(4, new Float32()), [1, 2, 3, 4]),
      empty_structs: [new arrow.Struct([]), rows(n, () => ({}))],
    });
  }, // prettier-ignore
  // Large values that lie beside their column: what is read of them is where.
  blobs: () => {
    const blob = (name) => new arrow.Field(name, new LargeBinary(), true, new Map(Object.entries(BLOB)));
    return table({
      b: [new LargeBinary(), rows(60, holes(4, (i) => bytes(below(3) * i))), BLOB],
      all_null: [new LargeBinary(), rows(60, () => null), BLOB],
      s: [new arrow.Struct([blob('b'), field('z', new Int32())]), rows(60, holes(4, (i) => ({ b: below(3) ? bytes(below(40)) : null, z: i })))],
    });
  }, // prettier-ignore
  blobs_v2: () => {
    const type = new arrow.Struct([field('data', new LargeBinary()), field('uri', new Utf8())]);
    const value = (i) => ({ data: new Uint8Array(i % 9 ? below(40) : 70000).fill(i), uri: null });
    return table({ b: [type, rows(30, holes(4, value)), { 'ARROW:extension:name': 'lance.blob.v2' }], id: [new Int32(), rows(30, (i) => i)] });
  }, // prettier-ignore
};
/** Versions of a case whose types, nulls or layouts not every version has. */
const VERSIONS = {
  arrays: ['2.0'],
  blobs: ['2.1'],
  blobs_v2: ['2.2'],
  constants: ['2.2', '2.1'],
  dictionaries_of_numbers: ['2.2', '2.1'],
  fixed_size_lists_of_structs: ['2.2'],
  full_zip_of_small_values: ['2.2', '2.1'],
  maps: ['2.2'],
  packed: ['2.2', '2.1'],
  packed_variable: ['2.2'],
  structs: ['2.2', '2.1'],
  upstream_misreads: ['2.2', '2.1'],
};
/** Their columns are not read as they are written: the expected rows are LanceDB's answer. */
const ANSWERED = ['blobs', 'blobs_v2'];

const wanted = process.argv.slice(2);
for (const [name, make] of Object.entries(CASES)) {
  if (wanted.length && !wanted.includes(name)) continue;
  state = BigInt(Object.keys(CASES).indexOf(name) + 1);
  const rowsOfCase = make();
  const folder = join(target, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const kept = rowsOfCase.schema.names.filter((column) => column !== 'filler');
  writeFileSync(join(folder, 'expected.arrows'), arrow.tableToIPC(rowsOfCase.select(kept), 'stream'));
  for (const format of VERSIONS[name] ?? ['2.2', '2.1', '2.0']) {
    const home = mkdtempSync(join(tmpdir(), 'golden-'));
    try {
      const db = await lancedb.connect(home);
      // The call below createTable: createTable itself turns away types that the engine takes, such as large strings.
      const bytes = Buffer.from(arrow.tableToIPC(rowsOfCase, 'file'));
      await db.inner.createTable('t', bytes, 'create', [], { new_table_data_storage_version: format });
      const files = readdirSync(join(home, 't.lance', 'data')).filter((file) => file.endsWith('.lance'));
      if (files.length !== 1) throw new Error(`${name}: ${files.length} data files`);
      copyFileSync(join(home, 't.lance', 'data', files[0]), join(folder, `v${format.replace('.', '_')}.lance`));
      if (ANSWERED.includes(name)) {
        const answer = await (await (await db.openTable('t')).query().nativeExecute()).next();
        const expected = arrow.tableToIPC(arrow.tableFromIPC(answer), 'stream');
        writeFileSync(join(folder, 'expected.arrows'), expected);
      }
      console.log(name, format, rowsOfCase.numRows);
    } catch (error) {
      console.log(name, format, 'FAILED', error.message.slice(0, 600));
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  }
}

// ---- whole tables whose schema changed: a folder of files per format version

const { Field: CommonJsField, Int32: CommonJsInt32 } = require('apache-arrow');

async function evolved(format) {
  const inner = struct({ x: new Int32(), y: new Int32() });
  const members = struct({ a: new Int32(), b: new Utf8(), c: new Int32(), in: inner });
  const items = list(struct({ p: new Int32(), q: new Utf8() }));
  const part = (from, n) =>
    table({
      id: [new Int32(), rows(n, (i) => from + i)],
      s: [
        members,
        rows(n, holes(4, (i) => ({ a: below(5) ? i : null, b: `b${i}`, c: i, in: below(3) ? { x: i, y: -i } : null }))),
      ],
      l: [items, rows(n, holes(5, (i) => rows(below(4), (k) => (below(3) ? { p: k, q: `q${i}` } : null))))],
    }); // prettier-ignore
  const home = mkdtempSync(join(tmpdir(), 'golden-'));
  const db = await lancedb.connect(home);
  const ipc = (rowsOfPart) => Buffer.from(arrow.tableToIPC(rowsOfPart, 'file'));
  await db.inner.createTable('t', ipc(part(0, 40)), 'create', [], { new_table_data_storage_version: format });
  const t = await db.openTable('t');
  await t.inner.add(ipc(part(40, 25)), 'append');
  await t.addColumns([{ name: 'w', valueSql: 'id * 2' }]);
  await t.addColumns([{ name: 's2', valueSql: "named_struct('u', id, 'v', 'k')" }]);
  await t.alterColumns([{ path: 's.a', dataType: 'int64' }]);
  await t.dropColumns(['s.c']);
  await t.alterColumns([{ path: 's.b', rename: 'bb' }]);
  await t.alterColumns([{ path: 'l.item.p', dataType: 'int64' }]);
  await t.addColumns(new CommonJsField('later', new CommonJsInt32(), true));
  await t.delete('id % 7 = 3');
  const folder = join(target, 'evolved', `v${format.replace('.', '_')}`);
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(home, 't.lance'), join(folder, 'table'), { recursive: true });
  // The newest version, whose name comes first, is the one that is read.
  const [, ...older] = readdirSync(join(folder, 'table', '_versions')).sort();
  for (const name of [...older.map((manifest) => join('_versions', manifest)), '_transactions'])
    rmSync(join(folder, 'table', name), { recursive: true });
  const answers = [];
  const iterator = await t.query().nativeExecute();
  for (let next; (next = await iterator.next());) answers.push(...arrow.tableFromIPC(next).batches);
  const answer = new arrow.Table(answers);
  writeFileSync(join(folder, 'expected.arrows'), arrow.tableToIPC(answer, 'stream'));
  rmSync(home, { recursive: true, force: true });
  console.log('evolved', format, answer.numRows);
}

if (!wanted.length || wanted.includes('evolved')) {
  for (const format of ['2.1', '2.2']) {
    state = 99n;
    await evolved(format);
  }
}
