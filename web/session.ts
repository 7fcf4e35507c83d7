// Session: the connection of this page and the table that it shows. All calls of the library are here; the views only draw.

import type { Table as ArrowTable, Schema } from 'apache-arrow';
import { connect, type Connection, type ExportedFile, type Table } from 'lancelet';

import type { FoundTable } from './folder.ts';
import { RowPages } from './row-pages.ts';
import { inChunks, rowsFor, sightings, type Row } from './sample-rows.ts';

export interface TableEntry {
  readonly name: string;
  /** Not known while it is counted. */
  readonly rowCount: number | undefined;
}

export interface VersionEntry {
  readonly version: number;
  readonly time: Date;
}

/** One state of the shown table; replaced as a whole when anything of it changes. */
export interface Shown {
  readonly name: string;
  readonly schema: Schema;
  readonly version: number;
  /** Newest first. */
  readonly versions: readonly VersionEntry[];
  /** An old version is looked at, and nothing can be written. */
  readonly isOld: boolean;
  readonly rowCount: number;
  /** Empty: all rows. */
  readonly filter: string;
  readonly matchCount: number;
  readonly rows: RowPages<ArrowTable>;
}

/** A filter that the library refused, kept apart from other failures: it is shown beside the filter's text. */
export class FilterRefused extends Error {
  constructor(
    readonly filter: string,
    override readonly cause: unknown,
  ) {
    super(cause instanceof Error ? cause.message : String(cause));
  }
}

export class Session {
  readonly uri: string;
  tables: readonly TableEntry[] = [];
  shown: Shown | undefined;
  readonly #connection: Connection;
  #table: Table | undefined;
  /** Counts of the state that was drawn last, so that a list does not flicker when it is drawn anew. */
  readonly #counts = new Map<string, number>();
  /** Something to draw has changed. */
  onchange: () => void = () => {};

  private constructor(uri: string, connection: Connection) {
    this.uri = uri;
    this.#connection = connection;
  }

  static async open(uri: string): Promise<Session> {
    return new Session(uri, await connect(uri));
  }

  /** Names first, counts as they come. A table that another tab drops meanwhile is left out of the next list. */
  async listTables(): Promise<void> {
    const names = await this.#connection.tableNames();
    this.#publishTables(names);
    for (const name of names) {
      if (name === this.shown?.name && !this.shown.isOld) continue;
      try {
        const table = await this.#connection.openTable(name);
        this.#counts.set(name, await table.countRows());
        await table.close();
      } catch {
        // One broken or dropped table does not keep the others from being listed; opening it tells what is wrong.
        this.#counts.delete(name);
      }
      this.#publishTables(names);
    }
  }

  async show(name: string): Promise<void> {
    const table = await this.#connection.openTable(name);
    this.leave();
    this.#table = table;
    await this.#load({ name, filter: '' });
  }

  leave(): void {
    this.shown?.rows.close();
    this.shown = undefined;
    // The handle's end is nobody's concern: what fails is told by the next call.
    void this.#table?.close().catch(() => undefined);
    this.#table = undefined;
    this.onchange();
  }

  /** Throws `FilterRefused`, the rows shown before staying as they are. */
  async setFilter(filter: string): Promise<void> {
    const { name } = this.#needShown();
    await this.#load({ name, filter });
  }

  async countMatches(filter: string): Promise<number> {
    return countRows(this.#needTable(), filter);
  }

  async viewVersion(version: number): Promise<void> {
    const { name, filter } = this.#needShown();
    await this.#needTable().checkout(version);
    await this.#loadOrDropFilter(name, filter);
  }

  async viewLatest(): Promise<void> {
    const { name, filter } = this.#needShown();
    await this.#needTable().checkoutLatest();
    await this.#loadOrDropFilter(name, filter);
  }

  /** What other tabs did. The rows stay where nothing changed. */
  async refresh(): Promise<void> {
    const shown = this.shown;
    if (shown !== undefined && !shown.isOld) {
      const table = this.#needTable();
      await table.checkoutLatest();
      if ((await table.version()) !== shown.version) await this.#loadOrDropFilter(shown.name, shown.filter);
    }
    await this.listTables();
  }

  async createTable(name: string, rows: readonly Row[]): Promise<void> {
    await (await this.#connection.createTable(name, rows)).close();
    this.#counts.set(name, rows.length);
  }

  /** A table of sample rows, which are made as they are written. */
  async createSample(name: string, rowCount: number): Promise<void> {
    await (await this.#connection.createTable(name, inChunks(rowCount, sightings))).close();
    this.#counts.set(name, rowCount);
  }

  async addRows(count: number): Promise<void> {
    const { name, schema, filter, rowCount } = this.#needShown();
    await this.#needTable().add(inChunks(count, (length, first) => rowsFor(schema, length, rowCount + first)));
    await this.#loadOrDropFilter(name, filter);
  }

  /** The number of rows that were deleted. */
  async deleteRows(filter: string): Promise<number> {
    const shown = this.#needShown();
    const result = await this.#needTable().delete(filter);
    await this.#loadOrDropFilter(shown.name, shown.filter);
    return result.numDeletedRows;
  }

  async dropTable(name: string): Promise<void> {
    if (this.shown?.name === name) this.leave();
    await this.#connection.dropTable(name);
    this.#counts.delete(name);
  }

  async importTable(name: string, found: FoundTable): Promise<void> {
    const files = found.files.map(({ path, body }) => ({ path, blob: body }));
    await (await this.#connection.importTable(name, files)).close();
  }

  exportTable(name: string): AsyncIterable<ExportedFile> {
    return this.#connection.exportTable(name);
  }

  /** A filter may name a column that another version does not have: then all rows are shown. */
  async #loadOrDropFilter(name: string, filter: string): Promise<void> {
    try {
      await this.#load({ name, filter });
    } catch (error) {
      if (!(error instanceof FilterRefused)) throw error;
      await this.#load({ name, filter: '' });
    }
  }

  async #load({ name, filter }: { name: string; filter: string }): Promise<void> {
    const table = this.#needTable();
    const matching = filter === '' ? undefined : await countMatching(table, filter);
    const [schema, version, list, rowCount] = await Promise.all([
      table.schema(),
      table.version(),
      table.listVersions(),
      table.countRows(),
    ]);
    if (table !== this.#table) return;
    const versions = list.map((entry) => ({ version: entry.version, time: entry.timestamp })).reverse();
    const isOld = versions[0] !== undefined && versions[0].version > version;
    const rows = new RowPages<ArrowTable>((offset, limit) => {
      const query = table.query().offset(offset).limit(limit);
      return (filter === '' ? query : query.where(filter)).toArrow();
    });
    this.shown?.rows.close();
    this.shown = { name, schema, version, versions, isOld, rowCount, filter, matchCount: matching ?? rowCount, rows };
    if (!isOld) this.#counts.set(name, rowCount);
    this.#publishTables(this.tables.map((entry) => entry.name));
  }

  #publishTables(names: readonly string[]): void {
    this.tables = names.map((name) => ({ name, rowCount: this.#counts.get(name) }));
    this.onchange();
  }

  #needShown(): Shown {
    if (this.shown === undefined) throw new Error('no table is shown');
    return this.shown;
  }

  #needTable(): Table {
    if (this.#table === undefined) throw new Error('no table is open');
    return this.#table;
  }
}

async function countMatching(table: Table, filter: string): Promise<number> {
  try {
    return await countRows(table, filter);
  } catch (error) {
    throw new FilterRefused(filter, error);
  }
}

function countRows(table: Table, filter: string): Promise<number> {
  return filter === '' ? table.countRows() : table.countRows(filter);
}
