/** The matrix as a section of `wasm/docs/format.md`, between two marks. */

import { readFileSync, writeFileSync } from 'node:fs';

import { marks, operations, versions, type Cell, type FormatVersion, type Operation } from './matrix';

const FILE = new URL('../../wasm/docs/format.md', import.meta.url);
const BEGIN = '<!-- matrix: npm run test:interop -- --matrix --write -->';
const END = '<!-- /matrix -->';

/** By type, by version: one cell for each operation. */
export type Results = ReadonlyMap<string, ReadonlyMap<FormatVersion, ReadonlyMap<Operation, Cell>>>;

export function render(results: Results): string {
  const names = Object.keys(operations) as Operation[];
  const refusals: string[] = [];
  const note = (message: string): number => {
    const text = message.replaceAll('|', '\\|');
    return refusals.includes(text) ? refusals.indexOf(text) + 1 : refusals.push(text);
  };
  const rows = [...results].map(([type, byVersion]) => {
    const cells = versions.map((version) => {
      const cell = byVersion.get(version) ?? new Map<Operation, Cell>();
      const refused = [...cell.values()].find((each) => each.state === 'refused');
      if (refused?.state === 'refused') return `refused (${note(refused.message)})`;
      return `\`${names.map((name) => marks[cell.get(name)?.state ?? 'missing']).join('')}\``;
    });
    return `| \`${type}\` | ${cells.join(' | ')} |`;
  });
  return [
    BEGIN,
    '',
    `| column | ${versions.join(' | ')} |`,
    `|--|${versions.map(() => '--|').join('')}`,
    ...rows,
    '',
    'The marks of a cell, in this order (`+` passes, `n` not built here):',
    '',
    ...names.map((name, i) => `${i + 1}. ${name}: ${operations[name]}`),
    '',
    'What LanceDB 0.39 says where it refuses; we refuse it, too:',
    '',
    ...refusals.map((message, i) => `${i + 1}. ${message}`),
    '',
    END,
  ].join('\n');
}

export function documented(): string {
  const text = readFileSync(FILE, 'utf8');
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`wasm/docs/format.md has no section between ${BEGIN} and ${END}`);
  return text.slice(begin, end + END.length);
}

export function writeDocumentation(section: string): void {
  writeFileSync(
    FILE,
    readFileSync(FILE, 'utf8').replace(documented(), () => section),
  );
}

/** The documented marks of a type in a version. */
export function documentedCell(type: string, version: FormatVersion): string | undefined {
  const row = documented()
    .split('\n')
    .find((line) => line.startsWith(`| \`${type}\` |`));
  return row?.split('|')[versions.indexOf(version) + 2]?.trim().replaceAll('`', '');
}
