/** A case: random columns and rows, who writes them, and what is asked. All of it follows from the seed. */

import * as arrow from 'apache-arrow';

import { buildTable, type Value } from '../interop/build';
import { garbageOf, makerOf } from '../interop/makers';
import { versions, type FormatVersion } from '../interop/matrix';
import { Random } from '../interop/random';
import { randomField } from './shapes';

export interface Case {
  readonly seed: number;
  readonly version: FormatVersion;
  readonly fields: readonly arrow.Field[];
  readonly writer: 'theirs' | 'ours';
  /** By batch, by column. The last are added by the other one, when there is an append. */
  readonly batches: readonly (readonly (readonly Value[])[])[];
  readonly appended: number;
  readonly hasGarbage: boolean;
  readonly lead: number;
}

export function makeCase(seed: number, writable: readonly FormatVersion[]): Case {
  const random = new Random(seed * 2_654_435_761);
  const writer = random.pick(['theirs', 'ours'] as const);
  const version = random.chance(0.5) ? '2.2' : random.pick(writer === 'theirs' ? versions : writable);
  const fields = Array.from({ length: random.between(1, 3) }, (_, i) => randomField(`c${i}`, version, random));
  const most = random.chance(0.04) ? 5000 : random.pick([3, 40, 300]);
  const appended = random.chance(0.3) && writable.includes(version) ? 1 : 0;
  const batches = Array.from({ length: random.between(1, 3) + appended }, () => {
    const rows = random.between(1, most);
    return fields.map((each) =>
      Array.from({ length: rows }, makerOf(each, random, random.chance(0.02) && rows < 50 ? { isLong: true } : {})),
    );
  });
  return {
    seed,
    version,
    fields,
    writer,
    batches,
    appended,
    hasGarbage: random.chance(0.4),
    lead: random.chance(0.3) ? random.between(1, 9) : 0,
  };
}

/** The rows of some batches as a table. */
export function tableOf(given: Case, from: number, to: number): arrow.Table {
  const schema = new arrow.Schema([...given.fields]);
  const garbage = given.hasGarbage ? garbageOf(new Random(given.seed)) : undefined;
  return buildTable(schema, given.batches.slice(from, to), garbage, given.lead);
}

/** Smaller cases that may fail in the same way: fewer columns, fewer batches, fewer rows. */
export function* smaller(given: Case): Generator<Case> {
  const { fields, batches, appended } = given;
  for (let i = 0; fields.length > 1 && i < fields.length; i++) {
    const without = <T>(items: readonly T[]): T[] => items.filter((_, k) => k !== i);
    yield { ...given, fields: without(fields), batches: batches.map(without) };
  }
  for (let i = 0; batches.length > 1 + appended && i < batches.length - appended; i++) {
    yield { ...given, batches: batches.filter((_, k) => k !== i) };
  }
  if (given.lead > 0) yield { ...given, lead: 0 };
  if (given.hasGarbage) yield { ...given, hasGarbage: false };
  if (appended > 0 && batches.length > appended) yield { ...given, appended: 0, batches: batches.slice(0, -appended) };
  for (let i = 0; i < batches.length; i++) {
    const rows = batches[i]?.[0]?.length ?? 0;
    const cuts =
      rows > 8
        ? [
            [0, rows >> 1],
            [rows >> 1, rows],
          ]
        : Array.from({ length: rows }, (_, k) => [k, k + 1]);
    for (const [start = 0, end = rows] of cuts) {
      if (rows < 2) break;
      const cut = (columns: readonly (readonly Value[])[]): Value[][] =>
        columns.map((values) => (rows > 8 ? values.slice(start, end) : values.filter((_, k) => k < start || k >= end)));
      yield { ...given, batches: batches.map((columns, k) => (k === i ? cut(columns) : columns)) };
    }
  }
}
