import { readFileSync } from 'node:fs';

import * as arrow from 'apache-arrow';
import { beforeAll, describe, expect, test } from 'vitest';

import { connect, type Connection } from '../../src/node';
import { field, listOf, structOf } from './build';
import { toIpc } from './ipc';
import { columnTexts } from './values';

/** What pyarrow wrote: see `datagen.py` beside the files. */
const golden = (name: string): Uint8Array =>
  readFileSync(new URL(`../../wasm/tests/golden/pyarrow-21.0.0/${name}`, import.meta.url));

let db: Connection;
beforeAll(async () => {
  db = await connect('memory://ipc-bytes');
});

const rowsOf = async (name: string, column = 'c'): Promise<string[]> =>
  columnTexts(await (await db.openTable(name)).toArrow(), column);

describe('Arrow IPC bytes of other writers', () => {
  test.each(['lz4', 'zstd'])('a Feather file compressed with %s becomes a table', async (codec) => {
    const table = await db.createTable(codec, golden(`${codec}.arrow`));
    expect(await table.countRows()).toBe(40_000);
    expect(await table.countRows("s = 'x'")).toBe(40);
    const last = await table.query().offset(39_999).toArray({ plainObjects: true });
    expect(last).toEqual([{ i: 571, s: null }]);
  });

  test('dictionaries that grow or are replaced keep their values', async () => {
    await db.createTable('grown', golden('delta.arrows'), { schema: texts });
    await (await db.openTable('grown')).add(golden('delta.arrow'));
    await (await db.openTable('grown')).add(golden('replaced.arrows'));
    const grown = ['"a"', 'null', '"b"', '"c"', '"a"'];
    expect(await rowsOf('grown')).toEqual([...grown, ...grown, '"a"', 'null', '"b"', '"y"', '"x"']);
  });

  test('views are stored as text, and large lists come out as lists', async () => {
    await db.createTable('views', golden('views.arrow'));
    expect(await rowsOf('views')).toEqual(['["a",null]', 'null', '["a string longer than twelve bytes"]']);
    const large = await db.createTable('large', golden('large_list.arrow'));
    expect(await rowsOf('large')).toEqual(['[1,null]', 'null', '[]', '[3]']);
    expect(String((await large.schema()).fields[0]?.type)).toBe('List<Int32>');
    await large.add([{ c: [7] }]);
    expect((await rowsOf('large')).at(-1)).toBe('[7]');
  });

  test.each([
    ['list_view', 'c'],
    ['decimal32', 'c'],
    ['decimal64', 'c'],
    ['interval', 'c.deep'],
    ['union', 'c'],
    ['run_end_encoded', 'c'],
  ])('a column of %s is refused by its path, and nothing is made', async (name, path) => {
    await expect(db.createTable(name, golden(`${name}.arrow`))).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
      message: expect.stringContaining(`column "${path}"`) as string,
    });
    expect(await db.tableNames()).not.toContain(name);
  });

  test('a file of apache-arrow, whose schema stands in the footer only, is read batch by batch', async () => {
    const schema = new arrow.Schema([field('c', new arrow.Int32())]);
    const rows = new arrow.Table(schema, [batch(schema, [1, 2]), batch(schema, [3])]);
    await db.createTable('file', arrow.tableToIPC(rows, 'file'));
    expect(await rowsOf('file')).toEqual(['1', '2', '3']);
  });

  test('bytes that are cut off or no Arrow at all make no table', async () => {
    const file = golden('large_list.arrow');
    for (const bytes of [file.subarray(0, 100), file.subarray(0, -1), file.subarray(8, 200), new Uint8Array(64)]) {
      await expect(db.createTable('cut', bytes)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    }
    expect(await db.tableNames()).not.toContain('cut');
  });
});

const texts = new arrow.Schema([field('c', new arrow.Utf8())]);

function batch(schema: arrow.Schema, values: readonly number[]): arrow.RecordBatch {
  const child = arrow.vectorFromArray(values, new arrow.Int32()).data[0] as arrow.Data;
  const type = new arrow.Struct(schema.fields);
  return new arrow.RecordBatch(
    schema,
    arrow.makeData({ type, length: values.length, nullCount: 0, children: [child] }),
  );
}

test('metadata of the schema, of columns and of what lies in them is kept, extension types too', async () => {
  const member = field('x', new arrow.Int32(), true, new Map([['unit', 'm']]));
  const uuid = new Map([
    ['ARROW:extension:name', 'arrow.uuid'],
    ['ARROW:extension:metadata', ''],
  ]);
  const fields = [
    field('s', structOf(member), true, new Map([['of', 's']])),
    field('l', listOf(new arrow.Int32()), true, new Map([['of', 'l']])),
    field('u', new arrow.FixedSizeBinary(16), true, uuid),
  ];
  const schema = new arrow.Schema(fields, new Map([['owner', 'lake']]));
  const table = await db.createEmptyTable('metadata', schema);
  const kept = await table.schema();
  expect([...kept.metadata]).toEqual([['owner', 'lake']]);
  const metadata = (name: string): [string, string][] => [
    ...(kept.fields.find((each) => each.name === name)?.metadata ?? []),
  ];
  expect(metadata('s')).toEqual([['of', 's']]);
  expect(metadata('l')).toEqual([['of', 'l']]);
  expect(metadata('u').sort()).toEqual([...uuid].sort());
  expect([...((kept.fields[0]?.type.children as arrow.Field[])[0]?.metadata ?? [])]).toEqual([['unit', 'm']]);
});

test('slices of large text, of booleans and of nulls in lists are written', async () => {
  const schema = new arrow.Schema([
    field('t', new arrow.LargeUtf8()),
    field('l', listOf(new arrow.Bool())),
    field('n', listOf(new arrow.Null())),
  ]);
  const rows = new arrow.Table(schema, [
    new arrow.RecordBatch(
      schema,
      arrow.makeData({
        type: new arrow.Struct(schema.fields),
        length: 3,
        nullCount: 0,
        children: [
          arrow.vectorFromArray(['first', null, 'third'], new arrow.LargeUtf8()).data[0] as arrow.Data,
          arrow.vectorFromArray([[true], [null], [null, null]], listOf(new arrow.Bool())).data[0] as arrow.Data,
          arrow.vectorFromArray([[null], [], [null, null]], listOf(new arrow.Null())).data[0] as arrow.Data,
        ],
      }),
    ).slice(1, 3),
  ]);
  await db.createTable('slices', rows);
  expect(await rowsOf('slices', 't')).toEqual(['null', '"third"']);
  expect(await rowsOf('slices', 'l')).toEqual(['[null]', '[null,null]']);
  expect(await rowsOf('slices', 'n')).toEqual(['[]', '[null,null]']);
});

test('a large list written as bytes is one in the table', async () => {
  const schema = new arrow.Schema([field('c', new arrow.List(field('large_item', new arrow.Int64())))]);
  await db.createTable('large_bytes', toIpc(new arrow.Table(schema, []), 'stream'));
  const table = await db.openTable('large_bytes');
  await table.add([{ c: [1n, null] }]);
  expect(await rowsOf('large_bytes')).toEqual(['["1n",null]']);
});
