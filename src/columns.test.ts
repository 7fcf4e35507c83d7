import * as arrow from 'apache-arrow';
import { beforeEach, describe, expect, it } from 'vitest';

import { decodeSchema } from './arrow/ipc';
import { FakeEngine } from './engine/fake-engine';
import { Table } from './table';

describe('changes of columns', () => {
  let engine: FakeEngine;
  let table: Table;
  beforeEach(async () => {
    engine = new FakeEngine();
    const handle = await engine.beginCreate('t', new Uint8Array(), '2.2', 'create');
    const origin = { display: 't', readConsistencyInterval: undefined, storageOptions: undefined };
    table = new Table(engine, await engine.finishCreate(handle, { kind: 'lazy' }), origin);
  });

  const last = (): { method: string; argument: unknown } => {
    const change = engine.columnChanges.at(-1);
    if (change === undefined) throw new Error('nothing was changed');
    return change;
  };
  const added = (): string[] => {
    const { method, argument } = last();
    expect(method).toBe('addNullColumns');
    return decodeSchema(argument as Uint8Array).fields.map(({ name, type }) => `${name}: ${String(type)}`);
  };

  it('takes a field, fields and a schema for columns without values', async () => {
    const [a, b] = [new arrow.Field('a', new arrow.Int8(), true), new arrow.Field('b', new arrow.Utf8(), true)];
    expect(await table.addColumns(a)).toEqual({ version: 2 });
    expect(added()).toEqual(['a: Int8']);
    await table.addColumns([a, b]);
    expect(added()).toEqual(['a: Int8', 'b: Utf8']);
    await table.addColumns(new arrow.Schema([b]));
    expect(added()).toEqual(['b: Utf8']);
  });

  it('takes expressions for columns of values', async () => {
    const columns = [{ name: 'a', valueSql: '1' }];
    await table.addColumns(columns);
    expect(last()).toEqual({ method: 'addComputedColumns', argument: columns });
    await table.addColumns([]);
    expect(last().argument).toEqual([]);
    await expect(table.addColumns({ computed: [] } as never)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    for (const wrong of ['x', undefined, [{ name: 'a' }], [1], [{ valueSql: '1' }]]) {
      await expect(table.addColumns(wrong as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    }
    expect(engine.columnChanges).toHaveLength(2);
  });

  it('sends types by name or as a schema', async () => {
    await table.alterColumns([
      { path: 'a', rename: 'b', nullable: true },
      { path: 'c', dataType: 'int64' },
      { path: 'd', dataType: new arrow.FixedSizeList(2, new arrow.Field('item', new arrow.Float16(), true)) },
    ]);
    const [first, second, third] = last().argument as { dataTypeIpc?: Uint8Array }[];
    expect(first).toEqual({ path: 'a', rename: 'b', nullable: true });
    expect(second).toEqual({ path: 'c', dataType: 'int64' });
    const type = decodeSchema(third?.dataTypeIpc ?? new Uint8Array()).fields[0]?.type;
    expect(String(type)).toBe('FixedSizeList[2]<Float16>');
    const wrong = [
      { path: 1 },
      { path: 'a', nullable: 'yes' },
      { path: 'a', dataType: {} },
      { path: 'a', rename: 3 },
      'a',
    ];
    for (const each of wrong) {
      await expect(table.alterColumns([each as never])).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    }
    await expect(table.alterColumns('a' as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  });

  it('checks paths and metadata', async () => {
    expect(await table.dropColumns(['a', 'b.c'])).toEqual({ version: 2 });
    expect(last()).toEqual({ method: 'dropColumns', argument: ['a', 'b.c'] });
    await expect(table.dropColumns([1 as never])).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await table.updateFieldMetadata([{ path: 'a', metadata: { k: 'v', old: null, gone: undefined }, replace: true }]);
    expect(last().argument).toEqual([{ path: 'a', metadata: { k: 'v', old: null, gone: null }, replace: true }]);
    const wrong = { path: 'a', metadata: { k: 1 } };
    await expect(table.updateFieldMetadata([wrong as never])).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await table.close();
    await expect(table.dropColumns(['a'])).rejects.toMatchObject({ code: 'CLOSED' });
  });
});
