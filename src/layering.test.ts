import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Parts of the facade, lowest first: each may import itself and what stands before it, as far as `MAY` does not say less. */
const PARTS: readonly (readonly [name: string, files: RegExp])[] = [
  ['errors', /^src\/errors$/],
  ['bytes', /^src\/bytes$/],
  ['store', /^src\/store\//],
  ['port', /^src\/engine\/port$/],
  ['pkg', /^wasm\/pkg\//],
  ['wasm', /^src\/engine\/wasm$/],
  ['direct', /^src\/engine\/direct$/],
  ['protocol', /^src\/worker\/(?:protocol|tabs)$/],
  ['open', /^src\/engine\/open$/],
  ['host', /^src\/worker\/host$/],
  ['client', /^src\/worker\/client$/],
  ['arrow', /^src\/arrow(?:\/|$)/],
  ['facade', /^src\/[^/]+$/],
  ['entry', /^src\/(?:index|node)$/],
  ['web', /^web\//],
];

/** What a part may import besides itself. */
const MAY: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  bytes: [],
  store: ['errors', 'bytes'],
  port: ['errors'],
  pkg: [],
  wasm: ['errors', 'store', 'pkg'],
  direct: ['errors', 'store', 'port', 'wasm'],
  protocol: ['errors', 'port'],
  open: ['errors', 'store', 'port', 'wasm', 'direct', 'client'],
  host: ['errors', 'port', 'protocol', 'open'],
  client: ['errors', 'port', 'protocol'],
  arrow: ['errors', 'bytes'],
  facade: ['errors', 'port', 'arrow'],
  entry: ['facade', 'arrow', 'errors'],
  web: ['entry'],
};

/** Single files that may import one thing more. */
const EXCEPTIONS = new Set(['src/connection -> src/engine/open']);

const partOf = (module: string): string | undefined => {
  if (/^src\/(?:index|node)$/.test(module)) return 'entry';
  return PARTS.find(([, files]) => files.test(module))?.[0];
};

/** Imports of one file that the rule forbids. */
function breaches(module: string, text: string): string[] {
  const own = partOf(module);
  if (own === undefined) return [`${module}: no part of the house`];
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+|lancelet)['"]/g)].map(
    (match) => match[1] ?? '',
  );
  return specifiers.flatMap((specifier) => {
    const path = specifier === 'lancelet' ? 'src/index' : relative(root, resolve(root, dirname(module), specifier));
    const target = path.replaceAll('\\', '/').replace(/\.(?:ts|js)$/, '');
    const other = partOf(target);
    if (other === undefined) return [];
    const isAllowed = other === own || (MAY[own] ?? []).includes(other) || EXCEPTIONS.has(`${module} -> ${target}`);
    return isAllowed ? [] : [`${module} -> ${target}`];
  });
}

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.ts$/.test(entry.name) && !/(?:\.test|fake-engine)\.ts$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll('\\', '/'));
}

it('lets imports go down only', () => {
  const files = sources('src');
  expect(files.length).toBeGreaterThan(20);
  const found = files.flatMap((file) => breaches(file.replace(/\.ts$/, ''), readFileSync(join(root, file), 'utf8')));
  expect(found).toEqual([]);
});

it('finds each kind of breach', () => {
  expect(breaches('src/table', "import { openStore } from './store/open';")).toEqual(['src/table -> src/store/open']);
  expect(breaches('src/query', "const x = await import('./engine/open');")).toEqual(['src/query -> src/engine/open']);
  expect(breaches('src/connection', "import { openEngine } from './engine/open';")).toEqual([]);
  expect(breaches('src/arrow/ipc', "import { Table } from '../table';")).toEqual(['src/arrow/ipc -> src/table']);
  expect(breaches('src/engine/direct', "import init from '../../wasm/pkg/lancelet.js';")).toHaveLength(1);
  expect(breaches('src/store/memory', "import type { Engine } from '../engine/port';")).toHaveLength(1);
  expect(breaches('web/main', "import { Table } from '../src/table';")).toHaveLength(1);
});
