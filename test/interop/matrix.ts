/** Type by version by operation: what LanceDB and this library do with each other's tables. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import * as arrow from 'apache-arrow';

import { LanceError } from '../../src/node';
import { buildTable, canonical, field, type Garbage, type Value } from './build';
import { garbageOf, makerOf } from './makers';
import type { Peer } from './peers';
import { Random } from './random';
import type { MatrixType } from './types';
import { columnTexts, firstDifference } from './values';

export const versions = ['2.0', '2.1', '2.2'] as const;
export type FormatVersion = (typeof versions)[number];

/** In the order of the printed marks. */
export const operations = {
  'read theirs': 'what LanceDB wrote is read here, whole and by offset and limit',
  'read ours': 'what was written here is read by LanceDB, and here',
  'they add to ours': 'LanceDB appends to a table of ours; both read it',
  'we add to theirs': 'we append to a table of LanceDB; both read it',
  nulls:
    'no value is null, all are, and arrays are slices with values under their nulls; written by each, read by both',
  empty: 'a table without rows, then one row; written by each, read by both',
  'one row': 'a table of one row; written by each, read by both',
  'many pages': 'many batches in one write; written by each, read by both',
} as const;
export type Operation = keyof typeof operations;

export type Cell =
  | { readonly state: 'passes' }
  /** LanceDB does not write the type in this version; `message` is what it says. */
  | { readonly state: 'refused'; readonly message: string }
  /** Not built here. */
  | { readonly state: 'missing'; readonly message: string }
  | { readonly state: 'fails'; readonly message: string };

/** One letter for each state, in the table of the documentation. */
export const marks: Readonly<Record<Cell['state'], string>> = { passes: '+', refused: '-', missing: 'n', fails: 'x' };

export interface Peers {
  readonly theirs: Peer;
  readonly ours: Peer;
  /** Where the tables lie. */
  readonly folder: string;
}

/** What a data file says in its last bytes. */
const FOOTERS: Readonly<Record<FormatVersion, string>> = { '2.0': '0.3', '2.1': '2.1', '2.2': '2.2' };

class OtherVersion extends Error {}

/** A table is of the version that was asked for, whoever wrote its files. */
function checkVersion(folder: string, name: string, version: FormatVersion): void {
  const data = join(folder, `${name}.lance`, 'data');
  for (const file of existsSync(data) ? readdirSync(data) : []) {
    const footer = readFileSync(join(data, file)).subarray(-8);
    const found = `${footer.readUInt16LE(0)}.${footer.readUInt16LE(2)}`;
    if (found !== FOOTERS[version])
      throw new OtherVersion(`${name}: a data file of ${found}, ${FOOTERS[version]} expected`);
  }
}

interface Dataset {
  readonly table: arrow.Table;
  /** The values of the column `c`. */
  readonly texts: readonly string[];
}

interface DatasetOptions {
  readonly version: FormatVersion;
  readonly seed: number;
  readonly batches: readonly number[];
  readonly nulls?: number;
  readonly lead?: number;
  readonly garbage?: Garbage;
}

/** Rows of a type: `id`, which counts from 0, and `c`. */
export function dataset(
  type: MatrixType,
  { version, seed, batches, nulls, lead = 0, garbage }: DatasetOptions,
): Dataset {
  const random = new Random(seed);
  const schema = new arrow.Schema([field('id', new arrow.Int32(), false), type.field]);
  let id = 0;
  const columns = batches.map((rows): Value[][] => {
    const make = makerOf(type.field, random, {
      hasNoNullStructs: version === '2.0',
      ...(nulls === undefined ? {} : { nulls }),
      ...(type.isLong === true ? { isLong: true } : {}),
    });
    return [Array.from({ length: rows }, () => id++), Array.from({ length: rows }, make)];
  });
  const table = buildTable(schema, columns, garbage, lead);
  return { table, texts: columnTexts(table, 'c') };
}

/** What LanceDB says of a type that it does not write in a version; `undefined` when it writes it. */
export async function refusal(
  type: MatrixType,
  version: FormatVersion,
  name: string,
  { theirs }: Peers,
): Promise<string | undefined> {
  const { table, texts } = dataset(type, { version, seed: 1, batches: [40], nulls: 0.3 });
  try {
    await theirs.create(name, table, version);
    const read = await theirs.read(name, { columns: ['c'] });
    const difference = firstDifference(columnTexts(read, 'c'), texts);
    return difference === undefined ? undefined : `reads back ${difference}`;
  } catch (error) {
    return theirWords(error);
  }
}

/** The part of an error's message that says what is refused, without places in source files. */
export function theirWords(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const first = message.split('\n').find((line) => line.trim() !== '') ?? message;
  const panic = /message: "([^"]*)"|panicked at .*?:\d+:\d+: ?(.*)$/.exec(message.replaceAll('\n', ' '));
  return (panic?.[1] ?? panic?.[2] ?? first)
    .replace(/,? ?\/(?:usr|root|home)\S*/g, '')
    .replace(/\s+Caused by.*$/, '')
    .replace(/^(?:Failed to get next batch from stream: |lance error: |LanceError\(\w+\): )+/, '')
    .trim()
    .slice(0, 160);
}

/** Runs one cell; tables are named after `prefix`. */
export async function runCell(
  type: MatrixType,
  version: FormatVersion,
  operation: Operation,
  prefix: string,
  peers: Peers,
): Promise<Cell> {
  try {
    await operate(type, version, operation, prefix, peers);
    return { state: 'passes' };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const isMissing = error instanceof OtherVersion || (error instanceof LanceError && error.code === 'NOT_SUPPORTED');
    return { state: isMissing ? 'missing' : 'fails', message };
  }
}

/** We, whose files are looked at after each write. */
function checked({ ours, folder }: Peers, version: FormatVersion): Peer {
  return {
    ...ours,
    async create(name, data, asked) {
      await ours.create(name, data, asked);
      checkVersion(folder, name, version);
    },
    async add(name, data) {
      await ours.add(name, data);
      checkVersion(folder, name, version);
    },
  };
}

async function operate(
  type: MatrixType,
  version: FormatVersion,
  operation: Operation,
  prefix: string,
  peers: Peers,
): Promise<void> {
  const { theirs } = peers;
  const ours = checked(peers, version);
  const mixed = dataset(type, {
    version,
    seed: 11,
    batches: type.isLong === true ? [30, 1, 20] : [300, 1, 150],
    nulls: 0.3,
  });
  const more = dataset(type, { version, seed: 12, batches: [90], nulls: 0.5 });
  const both = [...mixed.texts, ...more.texts];
  switch (operation) {
    case 'read theirs':
      await theirs.create(prefix, mixed.table, version);
      await expectRows('we read theirs', ours, prefix, mixed.texts);
      expectSameField(await ours.read(prefix, { columns: ['c'] }), await theirs.read(prefix, { columns: ['c'] }));
      return;
    case 'read ours':
      await ours.create(prefix, mixed.table, version);
      await expectRows('we read ours', ours, prefix, mixed.texts);
      await expectRows('they read ours', theirs, prefix, mixed.texts);
      return;
    case 'they add to ours':
      await ours.create(prefix, mixed.table, version);
      await theirs.add(prefix, more.table);
      await expectRows('we read ours and theirs', ours, prefix, both);
      await expectRows('they read ours and theirs', theirs, prefix, both);
      return;
    case 'we add to theirs':
      await theirs.create(prefix, mixed.table, version);
      await ours.add(prefix, more.table);
      await expectRows('we read theirs and ours', ours, prefix, both);
      await expectRows('they read theirs and ours', theirs, prefix, both);
      return;
    case 'nulls': {
      const cases: [string, Dataset][] = [
        ['none', dataset(type, { version, seed: 21, batches: [100], nulls: 0 })],
        ['all', dataset(type, { version, seed: 22, batches: [100], nulls: 1 })],
        ['half', dataset(type, { version, seed: 23, batches: [1500], nulls: 0.5 })],
        [
          'slices',
          dataset(type, {
            version,
            seed: 24,
            batches: [63, 64],
            nulls: 0.4,
            lead: 5,
            garbage: garbageOf(new Random(24)),
          }),
        ],
      ];
      for (const [name, data] of type.isLong === true ? cases.slice(0, 2) : cases) {
        await eachWrites(`${prefix}-${name}`, version, data, { theirs, ours });
      }
      return;
    }
    case 'empty': {
      const none: Dataset = { table: new arrow.Table(mixed.table.schema, []), texts: [] };
      await eachWrites(prefix, version, none, { theirs, ours });
      const one = dataset(type, { version, seed: 31, batches: [1] });
      await theirs.add(`${prefix}-ours`, one.table);
      await ours.add(`${prefix}-theirs`, one.table);
      for (const writer of ['ours', 'theirs']) {
        await expectRows(`we read a row in ${writer}`, ours, `${prefix}-${writer}`, one.texts);
        await expectRows(`they read a row in ${writer}`, theirs, `${prefix}-${writer}`, one.texts);
      }
      return;
    }
    case 'one row':
      await eachWrites(`${prefix}-value`, version, dataset(type, { version, seed: 41, batches: [1], nulls: 0 }), {
        theirs,
        ours,
      });
      if (type.field.nullable)
        await eachWrites(
          `${prefix}-null`,
          version,
          dataset(type, { version, seed: 42, batches: [1], nulls: 1 }),
          peers,
        );
      return;
    case 'many pages': {
      const batches = new Array<number>(type.isLong === true ? 4 : 25).fill(type.isLong === true ? 12 : 173);
      await eachWrites(prefix, version, dataset(type, { version, seed: 51, batches }), { theirs, ours });
    }
  }
}

/** Each library writes the rows as a table of its own, and both read both. */
async function eachWrites(
  prefix: string,
  version: string,
  data: Dataset,
  { theirs, ours }: Pick<Peers, 'theirs' | 'ours'>,
): Promise<void> {
  await theirs.create(`${prefix}-theirs`, data.table, version);
  await expectRows('we read theirs', ours, `${prefix}-theirs`, data.texts);
  await ours.create(`${prefix}-ours`, data.table, version);
  await expectRows('we read ours', ours, `${prefix}-ours`, data.texts);
  await expectRows('they read ours', theirs, `${prefix}-ours`, data.texts);
}

async function expectRows(what: string, reader: Peer, name: string, texts: readonly string[]): Promise<void> {
  const windows = [
    {},
    { offset: Math.floor(texts.length / 3), limit: Math.max(1, Math.floor(texts.length / 2)) },
    { offset: Math.max(0, texts.length - 2), limit: 2 },
  ];
  for (const window of texts.length === 0 ? [{}] : windows) {
    const { offset = 0, limit = texts.length }: { offset?: number; limit?: number } = window;
    let difference: string | undefined;
    try {
      const read = await reader.read(name, { columns: ['c'], ...window });
      difference = firstDifference(columnTexts(read, 'c'), texts.slice(offset, offset + limit));
    } catch (error) {
      if (error instanceof LanceError) throw error;
      difference =
        error instanceof Error ? error.message.split('\n').slice(0, 3).join(' ').slice(0, 300) : String(error);
    }
    if (difference !== undefined) throw new Error(`${what}${offset === 0 ? '' : ` from ${offset}`}: ${difference}`);
  }
}

/** The column is given in the type in which LanceDB gives it. */
function expectSameField(ours: arrow.Table, theirs: arrow.Table): void {
  const shown = ({ schema }: arrow.Table): string => canonical(schema.fields.map(describeField));
  if (shown(ours) !== shown(theirs)) throw new Error(`the column is ${shown(ours)}, from LanceDB ${shown(theirs)}`);
}

function describeField(of: arrow.Field): unknown {
  const children = (of.type.children ?? []) as arrow.Field[];
  return [of.name, String(of.type), of.nullable, [...of.metadata].sort(), children.map(describeField)];
}
