import {
  Field,
  FixedSizeList,
  Float32,
  Int64,
  List,
  Null,
  Schema,
  Struct,
  Utf8,
  Uint8,
  type DataType,
} from 'apache-arrow';
import { expect, test } from 'vitest';

import { inChunks, rowsFor, sightings } from './sample-rows.ts';

const schema = (columns: Record<string, DataType>, isNullable = true) =>
  new Schema(Object.entries(columns).map(([name, type]) => new Field(name, type, isNullable)));

test('the same rows are made each time, and each has its own number', () => {
  expect(sightings(3, 7)).toEqual(sightings(10).slice(7));
  expect(sightings(100).map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, i) => BigInt(i + 1)));
});

test('the first row tells the type of every column', () => {
  const [first] = sightings(1);
  expect(first?.['note']).toBeTypeOf('string');
  expect(first?.['tags']).toContain('adult');
});

test('a brought table gets rows of its own columns', () => {
  const columns = {
    key: new Int64(),
    small: new Uint8(),
    name: new Utf8(),
    v: new FixedSizeList(3, new Field('item', new Float32())),
    in: new Struct([new Field('list', new List(new Field('item', new Utf8())))]),
    nothing: new Null(),
  };
  const [row] = rowsFor(schema(columns), 1, 250);
  expect(row).toMatchObject({ key: 250n, small: 50, name: 'name 250', nothing: null });
  expect(row?.['v']).toHaveLength(3);
  expect(Object.keys(row?.['in'] as object)).toEqual(['list']);
});

test('a column that can be neither filled nor left null is named', () => {
  expect(() => rowsFor(schema({ odd: new Null() }, false), 1, 0)).toThrow('no sample values for column "odd"');
});

test('many rows are made in parts, none left out', async () => {
  const lengths: number[] = [];
  let next = 0;
  for await (const part of inChunks(10_000, (length, first) => sightings(length, first))) {
    lengths.push(part.length);
    for (const { id } of part) expect(id).toBe(BigInt(++next));
  }
  expect(lengths).toEqual([4096, 4096, 1808]);
});
