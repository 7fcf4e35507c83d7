/** Changes of columns, both ways: one side changes, the other opens the table, compares, goes on, and the first reads that again. */

import * as fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import * as os from 'node:os';
import * as path from 'node:path';

import * as lancedb from '@lancedb/lancedb';
import type * as Arrow from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import * as lancelet from '../../src/node';

/** LanceDB's own copy: it knows fields by their class. */
const arrow = createRequire(import.meta.url)('apache-arrow') as typeof Arrow;

const FORMATS = ['2.0', '2.1', '2.2'] as const;
type Format = (typeof FORMATS)[number];

/** What both libraries offer alike. */
interface Changes {
  addColumns(columns: never): Promise<unknown>;
  alterColumns(columns: never): Promise<unknown>;
  dropColumns(columns: string[]): Promise<unknown>;
  updateFieldMetadata(updates: never): Promise<unknown>;
  add(rows: never): Promise<unknown>;
  delete(predicate: string): Promise<unknown>;
  version(): Promise<number>;
  schema(): Promise<Arrow.Schema>;
}

interface Step {
  readonly name: string;
  run(table: Changes): Promise<unknown>;
  /** Formats that have it; default: all. */
  readonly formats?: readonly Format[];
}

const field = (name: string, type: Arrow.DataType, nullable = true): Arrow.Field =>
  new arrow.Field(name, type, nullable);
const item = (type: Arrow.DataType): Arrow.Field => field('item', type);
const structOf = (...members: Arrow.Field[]): Arrow.Struct => new arrow.Struct(members);

const SCHEMA = new arrow.Schema([
  field('id', new arrow.Int32(), false),
  field('x', new arrow.Int64()),
  field('s', new arrow.Utf8()),
  field('st', structOf(field('a', new arrow.Int32()), field('b', new arrow.Utf8()))),
  field('l', new arrow.List(item(new arrow.Int32()))),
  field('ls', new arrow.List(item(structOf(field('p', new arrow.Int32()), field('q', new arrow.Utf8()))))),
  field('v', new arrow.FixedSizeList(2, item(new arrow.Float32()))),
]);

function rows(first: number, count: number, format: Format): Record<string, unknown>[] {
  return Array.from({ length: count }, (_, at) => {
    const id = first + at;
    return {
      id,
      x: id % 3 === 1 ? null : BigInt(id * 12),
      s: id % 4 === 1 ? null : `s${id}`,
      st: format !== '2.0' && id % 5 === 2 ? null : { a: id % 2 === 0 ? id : null, b: `b${id}` },
      l: id % 6 === 5 ? null : [id, id + 1],
      ls: [{ p: id, q: `q${id}` }],
      v: [id, id + 0.5],
    };
  });
}

const alter = (...changes: object[]): ((table: Changes) => Promise<unknown>) => {
  return (table) => table.alterColumns(changes as never);
};
const add = (columns: unknown): ((table: Changes) => Promise<unknown>) => {
  return (table) => table.addColumns(columns as never);
};

const STEPS: readonly Step[] = [
  {
    name: 'add SQL',
    run: add([
      { name: 'd', valueSql: 'x + 1' },
      { name: 'e', valueSql: "'lit'" },
    ]),
  },
  {
    name: 'add a copy of nested columns',
    run: add([
      { name: 'l2', valueSql: 'l' },
      { name: 'st2', valueSql: 'st' },
    ]),
  },
  { name: 'add a field', run: add(field('d', new arrow.Float64())) },
  {
    name: 'add fields',
    run: add([field('d', new arrow.Utf8()), field('vv', new arrow.FixedSizeList(3, item(new arrow.Float32())))]),
  },
  { name: 'add a schema', run: add(new arrow.Schema([field('w', structOf(field('k', new arrow.Int8())))])) },
  { name: 'add members', run: add(field('st', structOf(field('z', new arrow.Int16())))), formats: ['2.2'] },
  { name: 'drop a column', run: (table) => table.dropColumns(['x']) },
  { name: 'drop columns', run: (table) => table.dropColumns(['s', 'v', 'ls']) },
  { name: 'drop a member', run: (table) => table.dropColumns(['st.a']) },
  { name: 'drop a member in a list', run: (table) => table.dropColumns(['ls.item.p']), formats: ['2.2'] },
  { name: 'rename', run: alter({ path: 'x', rename: 'y' }, { path: 'st', rename: 'box' }) },
  { name: 'rename a member', run: alter({ path: 'st.b', rename: 'label' }) },
  { name: 'take nulls', run: alter({ path: 'id', nullable: true }) },
  { name: 'take no nulls', run: alter({ path: 'v', nullable: false }) },
  { name: 'cast integers', run: alter({ path: 'x', dataType: new arrow.Int32() }, { path: 'id', dataType: 'int64' }) },
  { name: 'cast and rename', run: alter({ path: 'x', dataType: 'uint16', rename: 'y' }) },
  { name: 'cast text', run: alter({ path: 's', dataType: 'large_string' }) },
  { name: 'cast a vector', run: alter({ path: 'v', dataType: new arrow.FixedSizeList(2, item(new arrow.Float16())) }) },
  { name: 'cast a vector to a list', run: alter({ path: 'v', dataType: new arrow.List(item(new arrow.Float64())) }) },
  { name: 'cast a list', run: alter({ path: 'l', dataType: new arrow.List(item(new arrow.Int16())) }) },
  {
    name: 'cast a list to vectors',
    run: alter({ path: 'l', dataType: new arrow.FixedSizeList(2, item(new arrow.Int16())) }),
  },
  {
    name: 'describe',
    run: (table) =>
      table.updateFieldMetadata([
        { path: 'x', metadata: { unit: 'm', old: null } },
        { path: 'st.a', metadata: { k: 'v' } },
      ] as never),
  },
];

/** Of these LanceDB makes tables that it does not read, or takes away more than it was told: ours are read by both. */
const OURS: readonly Step[] = [
  { name: 'drop a member in an older list', run: (table) => table.dropColumns(['ls.item.p']), formats: ['2.0', '2.1'] },
  { name: 'cast a member', run: alter({ path: 'st.a', dataType: 'int64' }) },
  { name: 'cast a member in a list', run: alter({ path: 'ls.item.p', dataType: 'int64' }) },
  {
    name: 'cast members one after the other',
    run: async (table) => {
      await alter({ path: 'st.a', dataType: 'int16' })(table);
      await alter({ path: 'st.b', dataType: 'large_string' })(table);
      await alter({ path: 'st.a', dataType: 'int64' })(table);
    },
  },
  {
    name: 'leave only columns without values',
    run: async (table) => {
      await add(field('d', new arrow.Int32()))(table);
      await table.dropColumns(['x', 's', 'st', 'l', 'ls', 'v', 'id']);
    },
  },
  {
    name: 'leave only members without values',
    formats: ['2.2'],
    run: async (table) => {
      await add(field('st', structOf(field('z', new arrow.Int8()))))(table);
      await table.dropColumns(['st.a', 'st.b']);
    },
  },
];

let folder: string;
let ours: lancelet.Connection;
let theirs: lancedb.Connection;
beforeAll(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'columns-'));
  ours = await lancelet.connect(folder);
  theirs = await lancedb.connect(folder);
});
afterAll(async () => {
  await ours.close();
  await fs.rm(folder, { recursive: true, force: true });
});

const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? Number(each) : each)));

/** Text of a schema that both print alike. */
const shape = (schema: Arrow.Schema): string =>
  schema.fields.map((each) => `${each.name}: ${String(each.type)}${each.nullable ? '' : '!'}`).join(', ');

async function readBoth(name: string): Promise<{ rows: unknown; schema: string }> {
  const native = await theirs.openTable(name);
  const table = await ours.openTable(name);
  const [expected, found] = [plain((await native.query().toArrow()).toArray()), plain(await table.query().toArray())];
  expect(found).toEqual(expected);
  const schema = shape((await native.schema()) as unknown as Arrow.Schema);
  expect(shape(await table.schema())).toBe(schema);
  expect(await table.version()).toBe(await native.version());
  const columns = (await table.schema()).fields.map((each) => each.name);
  for (const column of columns) {
    const one = plain((await native.query().select([column]).toArrow()).toArray());
    expect(plain(await table.query().select([column]).toArray())).toEqual(one);
  }
  const [first] = columns;
  if (first !== undefined) {
    const filter = `${first} is not null`;
    expect(await table.countRows(filter)).toBe(await native.countRows(filter));
  }
  await table.close();
  return { rows: found, schema };
}

async function create(name: string, format: Format): Promise<void> {
  const options = { newTableDataStorageVersion: format };
  const table = await ours.createTable(name, rows(0, 8, format), { schema: SCHEMA, storageOptions: options });
  await table.add(rows(8, 5, format));
  await table.delete('id = 0 or id = 3 or id = 9');
  await table.close();
}

let number = 0;

async function change(step: Step, format: Format, by: 'ours' | 'theirs'): Promise<{ rows: unknown; schema: string }> {
  number += 1;
  const name = `t${number}`;
  await create(name, format);
  const open = async (who: 'ours' | 'theirs'): Promise<Changes> =>
    (who === 'ours' ? await ours.openTable(name) : await theirs.openTable(name)) as unknown as Changes;
  const other = by === 'ours' ? 'theirs' : 'ours';
  const changed = await open(by);
  const before = await changed.version();
  await step.run(changed);
  expect(await changed.version()).toBeGreaterThan(before);
  const result = await readBoth(name);
  // The other side deletes rows, adds a column, and takes it away; then the first goes on.
  const next = await open(other);
  const schema = await next.schema();
  const [first] = schema.fields;
  await next.delete(first?.name === 'id' ? 'id = 5' : 'false');
  await readBoth(name);
  await next.addColumns([{ name: 'extra', valueSql: "'e'" }] as never);
  await readBoth(name);
  const again = await open(by);
  await again.dropColumns(['extra']);
  await readBoth(name);
  return result;
}

describe.each(FORMATS)('columns of data format %s', (format) => {
  const of = (steps: readonly Step[]): readonly Step[] =>
    steps.filter((step) => step.formats === undefined || step.formats.includes(format));

  it.each(of(STEPS).map((step) => [step.name, step] as const))('%s', async (_, step) => {
    const mine = await change(step, format, 'ours');
    expect(mine).toEqual(await change(step, format, 'theirs'));
  });

  it.each(of(OURS).map((step) => [step.name, step] as const))('%s', async (_, step) => {
    await change(step, format, 'ours');
  });
});

describe('LanceDB refuses and so do we, with its words', () => {
  const refused: readonly (readonly [string, (table: Changes) => Promise<unknown>, lancelet.ErrorCode, string])[] = [
    [
      'a column that is there',
      add([{ name: 'x', valueSql: '1' }]),
      'ALREADY_EXISTS',
      'Column x already exists in the dataset',
    ],
    [
      'a name twice',
      add([
        { name: 'd', valueSql: '1' },
        { name: 'd', valueSql: '2' },
      ]),
      'SCHEMA',
      'Duplicate field name "d" in schema',
    ],
    ['a name with a dot', add([{ name: 'st.z', valueSql: '1' }]), 'SCHEMA', 'Top level field st.z cannot contain `.`'],
    [
      'a field that takes no nulls',
      add(field('d', new arrow.Int8(), false)),
      'INVALID_INPUT',
      "All-null columns must be nullable, but field 'd' is not.",
    ],
    [
      'a field of another type',
      add(field('x', new arrow.Float64())),
      'INVALID_INPUT',
      'Type conflicts between x(Int64) and x(Float64)',
    ],
    ['something else', add('x'), 'INVALID_INPUT', 'Invalid input type for addColumns'],
    ['a column without an expression', add([{ name: 'd' }]), 'INVALID_INPUT', 'Missing field `valueSql`'],
    ['no such column', (table) => table.dropColumns(['zz']), 'NOT_FOUND', 'Column zz does not exist in the dataset'],
    [
      'all columns',
      (table) => table.dropColumns(['id', 'x', 's', 'st', 'l', 'ls', 'v']),
      'INVALID_INPUT',
      'Cannot drop all columns from a dataset',
    ],
    ['a name that is taken', alter({ path: 'x', rename: 'id' }), 'SCHEMA', 'Duplicate field name "id" in schema'],
    [
      'no alteration',
      alter({ path: 'x' }),
      'INVALID_INPUT',
      "Alteration must have a 'rename', 'dataType', or 'nullable' field.",
    ],
    ['nothing to alter', alter({ path: 'zz', rename: 'y' }), 'NOT_FOUND', 'Column "zz" does not exist in the dataset'],
    [
      'nulls',
      alter({ path: 'x', nullable: false }),
      'INVALID_INPUT',
      'Column "x" contains NULL values and cannot be made non-nullable',
    ],
    [
      'another family',
      alter({ path: 's', dataType: new arrow.Int32() }),
      'INVALID_INPUT',
      'Cannot cast column "s" from Utf8 to Int32',
    ],
    ['no type', alter({ path: 's', dataType: 'foo' }), 'INVALID_INPUT', 'Invalid data type: {"type":"foo"}'],
    [
      'no such field',
      (table) => table.updateFieldMetadata([{ path: 'zz', metadata: { k: 'v' } }] as never),
      'NOT_FOUND',
      "Field 'zz' not found.",
    ],
  ];

  it.each(refused)('%s', async (name, run, code, text) => {
    const table = `refused ${name}`.replaceAll(' ', '_');
    await create(table, '2.2');
    const native = (await theirs.openTable(table)) as unknown as Changes;
    await expect(run(native)).rejects.toThrow(text);
    const mine = await ours.openTable(table);
    await expect(run(mine as unknown as Changes)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(text),
    });
    expect(await mine.version()).toBe(3);
    await mine.close();
  });

  it('a value that does not fit, which we name by column and row', async () => {
    await create('lossy', '2.2');
    const mine = await ours.openTable('lossy');
    await expect(mine.alterColumns([{ path: 'x', dataType: 'int8' }])).rejects.toMatchObject({
      code: 'SCHEMA',
      message: expect.stringContaining('column "x" at row 8'),
    });
    await mine.close();
  });
});

describe('stable row ids', () => {
  it('rows keep their ids through changes of columns', async () => {
    const native = await theirs.createTable('stable', rows(0, 6, '2.2'), {
      schema: SCHEMA,
      storageOptions: { new_table_enable_stable_row_ids: 'true' },
    });
    await native.delete('id = 2');
    const mine = await ours.openTable('stable');
    await mine.addColumns([{ name: 'd', valueSql: 'id * 2' }]);
    await mine.alterColumns([{ path: 'x', dataType: 'int32' }]);
    await mine.dropColumns(['s']);
    await native.checkoutLatest();
    const found = (await native.query().withRowId().select(['id', 'd']).toArrow()).toArray();
    expect(plain(found)).toEqual([0, 1, 3, 4, 5].map((id) => ({ id, d: id * 2, _rowid: id })));
    await native.update({ where: 'id = 4', valuesSql: { d: '0' } });
    await mine.checkoutLatest();
    const after = plain(await mine.query().select(['id', 'd']).toArray()) as { id: number; d: number }[];
    expect(after.sort((a, b) => a.id - b.id).map(({ d }) => d)).toEqual([0, 2, 6, 0, 10]);
    await mine.close();
  });
});

describe('rows under way while a column is dropped', () => {
  it.each(FORMATS)('bring no values into another column that gets its id, in %s', async (format) => {
    const name = `under_way_${format.replace('.', '_')}`;
    const mine = await ours.createTable(name, [{ id: 0, n: 1 }], {
      storageOptions: { newTableDataStorageVersion: format },
    });
    await mine.addColumns(new arrow.Schema([field('gone', new arrow.Float64())]));
    await mine.delete('true');
    let goOn = (): void => {};
    let reached = (): void => {};
    const gate = new Promise<void>((resolve) => (goOn = resolve));
    const isReached = new Promise<void>((resolve) => (reached = resolve));
    async function* batches(): AsyncGenerator<Record<string, unknown>[]> {
      yield [{ id: 1, n: 1, gone: 7 }];
      reached();
      await gate;
      yield [{ id: 2, n: 2, gone: 8 }];
    }
    const added = mine.add(batches());
    await isReached;
    // No file has the column, so that the next one gets its id.
    const other = await ours.openTable(name);
    await other.dropColumns(['gone']);
    await other.addColumns(new arrow.Schema([field('gone', new arrow.Float64())]));
    goOn();
    await added;

    const native = await theirs.openTable(name);
    const expected = [1, 2].map((id) => ({ id, n: id, gone: null }));
    const read = async (table: lancelet.Table | lancedb.Table) =>
      (plain(await table.query().toArray()) as { id: number }[]).sort((a, b) => a.id - b.id);
    expect(await read(native)).toEqual(expected);
    await native.add([{ id: 3, n: 3, gone: 9 }]);
    await native.optimize();
    await other.checkoutLatest();
    expect(await read(other)).toEqual([...expected, { id: 3, n: 3, gone: 9 }]);
    await mine.close();
    await other.close();
  });
});
