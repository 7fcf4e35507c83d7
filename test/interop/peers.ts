/** Both libraries behind one door: tables of one folder, given and asked as Arrow with large lists in it. */

import type * as lancedb from '@lancedb/lancedb';
import * as arrow from 'apache-arrow';

import type * as lancelet from '../../src/node';
import { LARGE_ITEM, fromIpc, toIpc } from './ipc';

/** What a reader is asked for. */
export interface Question {
  readonly columns?: readonly string[];
  readonly limit?: number;
  readonly offset?: number;
}

export interface Peer {
  create(name: string, data: arrow.Table, version: string): Promise<void>;
  add(name: string, data: arrow.Table): Promise<void>;
  read(name: string, question?: Question): Promise<arrow.Table>;
}

interface NativeIterator {
  next(): Promise<Buffer | undefined>;
}

/** The parts of LanceDB below its TypeScript that take and give IPC bytes. */
interface NativeConnection {
  createTable(
    name: string,
    file: Buffer,
    mode: string,
    path: string[],
    options: Record<string, string>,
  ): Promise<unknown>;
}
interface NativeTable {
  add(file: Buffer, mode: string): Promise<unknown>;
  schema(): Promise<Buffer>;
}

export function peerOfLanceDb(db: lancedb.Connection): Peer {
  const native = (db as unknown as { inner: NativeConnection }).inner;
  const open = async (name: string): Promise<{ table: lancedb.Table; inner: NativeTable }> => {
    const table = await db.openTable(name);
    return { table, inner: (table as unknown as { inner: NativeTable }).inner };
  };
  return {
    async create(name, data, version) {
      const file = Buffer.from(toIpc(data, 'file'));
      await native.createTable(name, file, 'create', [], { new_table_data_storage_version: version });
    },
    async add(name, data) {
      const { inner } = await open(name);
      await inner.add(Buffer.from(toIpc(data, 'file')), 'append');
    },
    async read(name, { columns, limit, offset } = {}) {
      const { table, inner } = await open(name);
      let query = table.query();
      if (columns !== undefined) query = query.select([...columns]);
      if (limit !== undefined) query = query.limit(limit);
      if (offset !== undefined) query = query.offset(offset);
      const running = query as unknown as { nativeExecute(): Promise<NativeIterator> };
      const batches: arrow.RecordBatch[] = [];
      const iterator = await running.nativeExecute();
      for (let bytes = await iterator.next(); bytes; bytes = await iterator.next()) {
        batches.push(...fromIpc(bytes).batches);
      }
      const [first] = batches;
      return first === undefined ? fromIpc(await inner.schema()) : new arrow.Table(first.schema, batches);
    },
  };
}

export function peerOfLancelet(db: lancelet.Connection): Peer {
  const given = (data: arrow.Table): arrow.Table | Uint8Array =>
    hasLargeLists(data.schema.fields) ? toIpc(data, 'stream') : data;
  return {
    async create(name, data, version) {
      const table = await db.createTable(name, given(data), {
        storageOptions: { newTableDataStorageVersion: version },
      });
      await table.close();
    },
    async add(name, data) {
      const table = await db.openTable(name);
      await table.add(given(data));
      await table.close();
    },
    async read(name, { columns, limit, offset } = {}) {
      const table = await db.openTable(name);
      let query = table.query();
      if (columns !== undefined) query = query.select(columns);
      if (limit !== undefined) query = query.limit(limit);
      if (offset !== undefined) query = query.offset(offset);
      const rows = await query.toArrow();
      await table.close();
      return rows;
    },
  };
}

function hasLargeLists(fields: readonly arrow.Field[]): boolean {
  return fields.some(({ type }) => {
    const children = (type.children ?? []) as arrow.Field[];
    return (arrow.DataType.isList(type) && children[0]?.name === LARGE_ITEM) || hasLargeLists(children);
  });
}
