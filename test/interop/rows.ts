import * as arrow from 'apache-arrow';

/**
 * The rows of the interop tables: a function of the row's number, so that any reader's answer can be checked value by value.
 *
 * Columns: id int64, price float64?, title utf8 (a long tail), category utf8 (20 values), active bool?, created timestamp[us],
 * tags list<utf8?>? (null, empty and with null items), place struct<lat float64, name utf8?>?, vector fixed_size_list<float32>[384],
 * body utf8 (up to 50 KB).
 */
export const DIMENSION = 384;

const WORDS = ['lake', 'river', 'stone', 'heath', 'needle', 'column', 'page', 'größer', '日本', 'tide', 'row', 'seal'];

/** A number that looks random and depends on the row alone (mulberry32's mixing step). */
export function mix(n: number): number {
  let t = (n + 0x6d2b79f5) | 0;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return (t ^ (t >>> 14)) >>> 0;
}

const word = (n: number): string => WORDS[mix(n) % WORDS.length] ?? '';

function sentence(seed: number, bytes: number): string {
  let text = '';
  for (let i = 0; text.length < bytes; i++) text += `${word(seed + i)} ${mix(seed * 7 + i).toString(36)} `;
  return text.slice(0, bytes);
}

export interface Row {
  id: bigint;
  price: number | null;
  title: string;
  category: string;
  active: boolean | null;
  /** Microseconds since the epoch. */
  created: bigint;
  tags: (string | null)[] | null;
  place: { lat: number; name: string | null } | null;
}

function makeRow(i: number): Row {
  const h = mix(i);
  return {
    id: BigInt(i) * 3n - 1000n,
    price: h % 97 === 0 ? null : (h % 100_000) / 100,
    title: sentence(i, h % 211 === 0 ? 900 : 10 + (h % 50)),
    category: `category-${h % 20}`,
    active: h % 13 === 0 ? null : h % 3 === 0,
    created: 1_700_000_000_000_000n + BigInt(h) * 1_000n + BigInt(i),
    tags: h % 7 === 0 ? null : Array.from({ length: h % 5 }, (_, k) => ((h + k) % 9 === 0 ? null : word(h + k))),
    place: h % 11 === 0 ? null : { lat: (h % 180) - 90 + 0.5, name: h % 17 === 0 ? null : word(h + 1) },
  };
}

/** The row's vector: 16 numbers of its own, repeated with the item's number on top. */
export function vector(i: number): Float32Array {
  const items = new Float32Array(DIMENSION);
  for (let k = 0; k < 16; k++) items[k] = ((mix(i * 31 + k) % 2000) - 1000) / 997;
  for (let k = 16; k < DIMENSION; k++) items[k] = (items[k - 16] ?? 0) + 16;
  return items;
}

const makeBody = (i: number): string => sentence(i + 5, mix(i) % 499 === 0 ? 50_000 : 100 + (mix(i) % 1200));

function memo<T>(make: (i: number) => T): (i: number) => T {
  const made: T[] = [];
  return (i) => (made[i] ??= make(i));
}

/** Everything but the two wide columns, which have functions of their own. */
export const row = memo(makeRow);

export const body = memo(makeBody);

const text = new arrow.Utf8();

export const schema = new arrow.Schema([
  new arrow.Field('id', new arrow.Int64(), false),
  new arrow.Field('price', new arrow.Float64(), true),
  new arrow.Field('title', text, true),
  new arrow.Field('category', text, true),
  new arrow.Field('active', new arrow.Bool(), true),
  new arrow.Field('created', new arrow.TimestampMicrosecond(), true),
  new arrow.Field('tags', new arrow.List(new arrow.Field('item', text, true)), true),
  new arrow.Field(
    'place',
    new arrow.Struct([new arrow.Field('lat', new arrow.Float64(), true), new arrow.Field('name', text, true)]),
    true,
  ),
  new arrow.Field(
    'vector',
    new arrow.FixedSizeList(DIMENSION, new arrow.Field('item', new arrow.Float32(), true)),
    true,
  ),
  new arrow.Field('body', text, true),
]);

function column(type: arrow.DataType, values: Iterable<unknown>): arrow.Data {
  const builder = arrow.makeBuilder({ type, nullValues: [null, undefined] });
  for (const value of values) builder.append(value);
  return builder.finish().flush();
}

/** What stands for no place in tables of data format 2.0, which has no null structs. */
const NOWHERE = { lat: 0.25, name: null };

const withPlace = (each: Row): Row => (each.place === null ? { ...each, place: NOWHERE } : each);

/** Rows `from` to `to` as one record batch; `placed` ones have a place each. */
export function batch(from: number, to: number, placed = false): arrow.RecordBatch {
  const rows = Array.from({ length: to - from }, (_, k) => (placed ? withPlace(row(from + k)) : row(from + k)));
  const items = new Float32Array(rows.length * DIMENSION);
  rows.forEach((_, r) => items.set(vector(from + r), r * DIMENSION));
  const children = schema.fields.map((field): arrow.Data => {
    if (field.name === 'vector') {
      const child = arrow.makeData({ type: new arrow.Float32(), data: items });
      return arrow.makeData({ type: field.type as arrow.FixedSizeList, length: rows.length, nullCount: 0, child });
    }
    if (field.name === 'created') {
      const data = BigInt64Array.from(rows, (each) => each.created);
      return arrow.makeData({
        type: field.type as arrow.TimestampMicrosecond,
        length: rows.length,
        nullCount: 0,
        data,
      });
    }
    if (field.name === 'body')
      return column(
        field.type,
        rows.map((_, r) => body(from + r)),
      );
    return column(
      field.type,
      rows.map((each) => each[field.name as keyof Row]),
    );
  });
  const data = arrow.makeData({ type: new arrow.Struct(schema.fields), length: rows.length, nullCount: 0, children });
  return new arrow.RecordBatch(schema, data as arrow.Data<arrow.Struct>);
}

export function table(from: number, to: number, step = 5_000, placed = false): arrow.Table {
  const batches = [];
  for (let at = from; at < to; at += step) batches.push(batch(at, Math.min(to, at + step), placed));
  return new arrow.Table(schema, batches);
}

/** Every difference between a reader's answer and the rows it should hold, at most ten. */
export function differences(actual: arrow.Table, rows: readonly number[], placed = false): string[] {
  const found: string[] = [];
  const note = (text: string): void => void (found.length < 10 && found.push(text));
  if (actual.numRows !== rows.length) note(`${actual.numRows} rows instead of ${rows.length}`);
  const names = actual.schema.fields.map((field) => field.name);
  const plain = (value: unknown): unknown =>
    JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? `${each}n` : each));
  for (const name of names) {
    const values = actual.getChild(name);
    if (values === null) continue;
    rows.forEach((i, at) => {
      if (found.length >= 10 || at >= actual.numRows) return;
      const value = values.get(at) as unknown;
      if (name === 'vector') {
        const items = (value as arrow.Vector).toArray() as Float32Array;
        const expected = vector(i);
        let at = 0;
        while (at < DIMENSION && items[at] === expected[at]) at++;
        if (at < DIMENSION || items.length !== DIMENSION)
          note(`row ${i} vector[${at}]: ${items[at]} != ${expected[at]}`);
        return;
      }
      if (name === 'body') {
        if (value !== body(i)) note(`row ${i} body: ${String(value).slice(0, 40)} != ${body(i).slice(0, 40)}`);
        return;
      }
      let expected: unknown = (placed ? withPlace(row(i)) : row(i))[name as keyof Row];
      if (value === expected) return;
      // apache-arrow hands timestamps out in milliseconds, with the rest behind the point.
      if (name === 'created')
        expected = Number((expected as bigint) / 1000n) + Number((expected as bigint) % 1000n) / 1000;
      const shown = name === 'tags' && value !== null ? [...(value as Iterable<unknown>)] : value;
      const same =
        name === 'created'
          ? Math.abs((shown as number) - (expected as number)) < 0.002
          : plain(shown) === plain(expected);
      if (!same) note(`row ${i} ${name}: ${String(plain(shown))} != ${String(plain(expected))}`);
    });
  }
  return found;
}

export const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, k) => from + k);
