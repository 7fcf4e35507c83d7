/**
 * A campaign of random schemas: one library writes, the other reads, and every value is compared with what was given.
 *
 * Ours must give the source whatever wrote it, and LanceDB must give it for what we wrote. What LanceDB misreads of its own files is
 * counted; so is what it does not write.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import * as lancedb from '@lancedb/lancedb';

import * as lancelet from '../../src/node';
import { canonical } from '../interop/build';
import { theirWords, type FormatVersion, type Peers } from '../interop/matrix';
import { peerOfLanceDb, peerOfLancelet, type Peer } from '../interop/peers';
import { Random } from '../interop/random';
import { columnTexts, firstDifference } from '../interop/values';
import { makeCase, smaller, tableOf, type Case } from './cases';
import { describe, isReadApart, upstreamBugs } from './shapes';

export interface CampaignOptions {
  readonly from: number;
  readonly seeds: number;
  /** Where tables are made, and removed. */
  readonly folder: string;
  /** The formats that tables are created in here. */
  readonly writable: readonly FormatVersion[];
  readonly log: (line: string) => void;
  /** Both libraries over a folder. Default: the real ones. */
  readonly openPeers?: (folder: string) => Promise<OpenedPeers>;
  /** Failures after which it gives up. Default: 10. */
  readonly maxFailures?: number;
}

export interface OpenedPeers {
  readonly peers: Pick<Peers, 'theirs' | 'ours'>;
  close(): Promise<void>;
}

export interface CampaignResult {
  readonly passed: number;
  readonly failures: readonly string[];
  /** What LanceDB refuses to write, what we do, and what it misreads of its own: counts by reason. */
  readonly refused: ReadonlyMap<string, number>;
  readonly missing: ReadonlyMap<string, number>;
  readonly misread: ReadonlyMap<string, number>;
  readonly seconds: number;
}

type Outcome =
  | { readonly kind: 'passed' }
  | { readonly kind: 'refused' | 'missing' | 'misread' | 'failed'; readonly message: string };

const FOLDER_CASES = 200;

export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const { from, seeds, log, maxFailures = 10 } = options;
  const started = Date.now();
  const counts = {
    refused: new Map<string, number>(),
    missing: new Map<string, number>(),
    misread: new Map<string, number>(),
  };
  const failures: string[] = [];
  let passed = 0;
  let said = started;
  for (let start = from; start < from + seeds && failures.length < maxFailures; start += FOLDER_CASES) {
    const bench = await openBench(options.folder, options.openPeers ?? openPeers);
    for (let seed = start; seed < Math.min(start + FOLDER_CASES, from + seeds); seed++) {
      const given = makeCase(seed, options.writable);
      const outcome = await bench.run(given);
      if (outcome.kind === 'passed') passed += 1;
      else if (outcome.kind === 'failed') {
        failures.push(await report(given, outcome.message, bench));
        log(failures.at(-1) ?? '');
        if (failures.length >= maxFailures) break;
      } else {
        const known = counts[outcome.kind];
        if (outcome.kind === 'misread' || !known.has(outcome.message))
          log(`seed ${seed}: ${outcome.kind}: ${outcome.message}`);
        known.set(outcome.message, (known.get(outcome.message) ?? 0) + 1);
      }
      if (Date.now() - said > 10_000) {
        said = Date.now();
        log(
          `seed ${seed}: ${passed} passed, ${failures.length} failed, ${(((seed - from + 1) * 1000) / (said - started)).toFixed(1)} a second`,
        );
      }
    }
    await bench.close();
  }
  return { passed, failures, ...counts, seconds: (Date.now() - started) / 1000 };
}

interface Bench {
  run(given: Case): Promise<Outcome>;
  close(): Promise<void>;
}

async function openPeers(folder: string): Promise<OpenedPeers> {
  const [theirDb, ourDb] = await Promise.all([lancedb.connect(folder), lancelet.connect(folder)]);
  return {
    peers: { theirs: peerOfLanceDb(theirDb), ours: peerOfLancelet(ourDb) },
    async close() {
      await ourDb.close();
      theirDb.close();
    },
  };
}

async function openBench(folder: string, open: (folder: string) => Promise<OpenedPeers>): Promise<Bench> {
  const place = mkdtempSync(join(folder, 'lancelet-schemas-'));
  const { peers, close } = await open(place);
  let tables = 0;
  return {
    run: (given) => runCase(given, `t${tables++}`, peers),
    async close() {
      await close();
      rmSync(place, { recursive: true, force: true });
    },
  };
}

async function runCase(given: Case, name: string, { theirs, ours }: OpenedPeers['peers']): Promise<Outcome> {
  const { writer, appended, batches, fields } = given;
  const [first, second] = writer === 'theirs' ? [theirs, ours] : [ours, theirs];
  const all = tableOf(given, 0, batches.length);
  const expected = new Map(fields.map((field) => [field.name, columnTexts(all, field.name)]));
  let hasTheirs = writer === 'theirs';
  try {
    await first.create(name, tableOf(given, 0, batches.length - appended), given.version);
    if (appended > 0) {
      hasTheirs = true;
      await second.add(name, tableOf(given, batches.length - appended, batches.length));
    }
  } catch (error) {
    return writeOutcome(error, hasTheirs, given);
  }
  const random = new Random(given.seed + 1);
  const mine = await compare(ours, name, given, expected, random, false);
  if (mine !== undefined)
    return mine.isMissing
      ? { kind: 'missing', message: mine.message }
      : { kind: 'failed', message: `we read ${mine.message}` };
  const other = await compare(theirs, name, given, expected, random, true);
  if (other === undefined) return { kind: 'passed' };
  const field = fields.find(({ name: column }) => column === other.column);
  const bugs = [...(field === undefined ? [] : upstreamBugs(field))];
  if (!hasTheirs && !bugs.includes(3)) return { kind: 'failed', message: `LanceDB reads ours: ${other.message}` };
  // It wrote what it misreads: not for us to tell, unless it reads the same rows from a table of its own, made by the same writes.
  const control = `${name}-control`;
  await theirs.create(control, tableOf(given, 0, batches.length - appended), given.version);
  if (appended > 0) await theirs.add(control, tableOf(given, batches.length - appended, batches.length));
  const itself = await compare(theirs, control, given, expected, new Random(given.seed + 1), true);
  if (itself === undefined) return { kind: 'failed', message: `LanceDB reads ours and its own: ${other.message}` };
  const shape = field === undefined ? '' : describe(field);
  const reason = bugs.length > 0 ? `bug ${bugs.sort().join(' or ')}` : `another shape: ${shape}: ${itself.message}`;
  return { kind: 'misread', message: reason };
}

function writeOutcome(error: unknown, hasTheirs: boolean, { version }: Case): Outcome {
  if (error instanceof lancelet.LanceError) {
    const kind = error.code === 'NOT_SUPPORTED' ? 'missing' : 'failed';
    return {
      kind,
      message:
        kind === 'missing'
          ? error.message.replace(/column "[^"]*"/, 'a column').slice(0, 80)
          : `we write: ${error.message}`,
    };
  }
  const message = `${version}: ${theirWords(error)}`.replace(/'\w+'|field \w+/g, 'a field').slice(0, 100);
  return hasTheirs ? { kind: 'refused', message } : { kind: 'failed', message };
}

interface Difference {
  readonly column: string;
  readonly message: string;
  readonly isMissing: boolean;
}

/** The first difference between what a reader gives, whole and by a window, and what it should. */
async function compare(
  reader: Peer,
  name: string,
  { fields }: Case,
  expected: ReadonlyMap<string, readonly string[]>,
  random: Random,
  isTheirs: boolean,
): Promise<Difference | undefined> {
  const names = fields.map((field) => field.name);
  const rows = expected.get(names[0] ?? '')?.length ?? 0;
  const offset = random.below(rows);
  const windows = [{}, { offset, limit: random.between(1, rows - offset) }];
  const isApart = isTheirs && fields.some(({ type }) => isReadApart(type));
  const groups = isApart ? names.map((column) => [column]) : [names];
  for (const window of windows) {
    const { offset: start = 0, limit = rows }: { offset?: number; limit?: number } = window;
    for (const columns of groups) {
      let read;
      try {
        read = await reader.read(name, { columns, ...window });
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        const isMissing = error instanceof lancelet.LanceError && error.code === 'NOT_SUPPORTED';
        // Which column it is shows when each is read by itself.
        const column = columns.length === 1 ? columns[0] : await firstUnreadable(reader, name, columns, window);
        return {
          column: column ?? '',
          message: isMissing ? message.replace(/column "[^"]*"/, 'a column') : `${column}: ${theirWords(error)}`,
          isMissing,
        };
      }
      for (const column of columns) {
        const texts = (expected.get(column) ?? []).slice(start, start + limit);
        const difference = firstDifference(columnTexts(read, column), texts);
        if (difference !== undefined)
          return {
            column,
            message: `${column}${start === 0 ? '' : ` from ${start}`}: ${difference}`,
            isMissing: false,
          };
      }
    }
  }
  return undefined;
}

async function firstUnreadable(
  reader: Peer,
  name: string,
  columns: readonly string[],
  window: object,
): Promise<string | undefined> {
  for (const column of columns) {
    try {
      await reader.read(name, { columns: [column], ...window });
    } catch {
      return column;
    }
  }
  return undefined;
}

/** The smallest case found that still fails, as text. */
async function report(given: Case, message: string, bench: Bench): Promise<string> {
  let [least, said] = [given, message];
  let tries = 0;
  search: for (;;) {
    for (const candidate of smaller(least)) {
      if (++tries > 300) break search;
      const outcome = await bench.run(candidate);
      if (outcome.kind !== 'failed') continue;
      [least, said] = [candidate, outcome.message];
      continue search;
    }
    break;
  }
  const { seed, version, writer, fields, batches, appended, hasGarbage, lead } = least;
  return [
    `seed ${seed}: ${message}`,
    `  smallest: ${said}`,
    `  format ${version}, ${writer} wrote${appended > 0 ? ', the other added the last batch' : ''}${hasGarbage ? ', values under nulls' : ''}${lead > 0 ? `, slices from ${lead}` : ''}`,
    ...fields.map((field) => `  ${field.name}: ${describe(field)}`),
    ...batches.map((columns, i) => `  batch ${i}: ${canonical(columns).slice(0, 1500)}`),
  ].join('\n');
}

/** One line for a table of test results, and one for each thing that was counted. */
export function summary({ passed, failures, refused, missing, misread, seconds }: CampaignResult): string {
  const sum = (counts: ReadonlyMap<string, number>): number =>
    [...counts.values()].reduce((total, count) => total + count, 0);
  const lines = Object.entries({
    'LanceDB refuses': refused,
    'not supported here': missing,
    'LanceDB misreads its own': misread,
  }).flatMap(([what, counts]) => [...counts].map(([reason, count]) => `  ${what}: ${count} x ${reason}`));
  const total = passed + failures.length + sum(refused) + sum(missing) + sum(misread);
  return [
    ...lines,
    `${total} schemas: ${passed} without a difference, ${failures.length} failed, ${sum(missing)} not supported here; LanceDB refused ${sum(refused)} and misread ${sum(misread)} of its own; ${(total / seconds).toFixed(1)} a second`,
  ].join('\n');
}
