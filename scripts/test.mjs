// Test: the whole truth in one command.
//
//   npm test                       set-up where needed, check, Rust, build, TypeScript, browser
//   npm run test:rust -- <name>    a part, with an optional name filter; also test:ts and test:e2e
//   npm run test:full              everything, with the long runs
//
// A filter that holds a slash or ends in .ts chooses files (TypeScript and browser), any other chooses tests by name.

import { join } from 'node:path';

import { build } from './build.mjs';
import { checkSteps } from './check.mjs';
import { fuzzSteps } from './fuzz.mjs';
import { ensureSetup, toolEnv } from './setup.mjs';
import { fullSeeds, simSteps } from './sim.mjs';
import { packageBin, root, run, runSteps, script, StepError } from './step.mjs';

const parts = ['rust', 'ts', 'e2e'];
const fuzzScript = join(root, 'scripts', 'fuzz-schemas.mjs');

function parse(args) {
  const part = args[0] === '--part' ? args[1] : undefined;
  if (part !== undefined && !parts.includes(part)) throw new StepError(`test: parts are ${parts.join(', ')}`);
  const rest = part === undefined ? args : args.slice(2);
  const words = rest.filter((word) => word !== '--full');
  const options = words.filter((word) => word.startsWith('-'));
  if (part === undefined && options.length > 0) {
    throw new StepError(`test: ${options.join(' ')}: options belong to a part: npm run test:rust, test:ts or test:e2e`);
  }
  const isFile = (word) => word.includes('/') || word.endsWith('.ts');
  return {
    part,
    isFull: rest.includes('--full'),
    options,
    files: words.filter((word) => !word.startsWith('-') && isFile(word)),
    names: words.filter((word) => !word.startsWith('-') && !isFile(word)),
  };
}

function testSteps({ part, isFull, options, files, names }) {
  const env = { ...toolEnv(), ...(isFull ? { LANCELET_FULL: '1' } : {}) };
  const show = (command, args, cwd = root) => run(command, args, { cwd, env, isShown: true });
  const node = (packageName, bin, args) => show(process.execPath, [packageBin(packageName, bin), ...args]);
  const isFiltered = files.length + names.length > 0;
  const pattern = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  const emptyIsFine = isFiltered && part === undefined;

  const rust = {
    name: 'test: rust',
    run: () =>
      show(
        'cargo',
        ['test', '--no-fail-fast', '--features', 'testing', ...options, '--', ...names],
        join(root, 'wasm'),
      ),
  };
  const ts = {
    name: 'test: ts',
    run: () => {
      const args = [...(pattern ? ['-t', pattern] : []), ...(emptyIsFine ? ['--passWithNoTests'] : [])];
      return node('vitest', 'vitest', ['run', ...args, ...options, ...files]);
    },
  };
  const e2e = {
    name: 'test: e2e',
    run: () => {
      const args = [...(pattern ? ['-g', pattern] : []), ...(emptyIsFine ? ['--pass-with-no-tests'] : [])];
      return node('@playwright/test', 'playwright', ['test', '-c', 'e2e', ...args, ...options, ...files]);
    },
  };
  const built = (wanted) => ({
    name: `build: ${Object.keys(wanted).join(', ')}`,
    isNeeded: true,
    run: () => build(wanted).then(() => ({ code: 0, output: '' })),
  });

  if (part === 'rust') return [rust];
  if (part === 'ts') return [built({ wasm: true, dist: true }), ts];
  if (part === 'e2e') return [built({ wasm: true, dist: true, web: true }), e2e];
  return [
    ...checkSteps(),
    rust,
    built({ wasm: true, dist: true, web: true }),
    { name: 'size', run: () => show(process.execPath, [join(root, 'scripts', 'size.mjs')]) },
    ts,
    ...(isFull ? [{ name: 'fuzz: schemas', run: () => show(process.execPath, [fuzzScript, '--seeds', '400']) }] : []),
    e2e,
    ...(isFull ? [...simSteps({ seeds: fullSeeds }), ...fuzzSteps()] : []),
  ];
}

await script(async () => {
  const wanted = parse(process.argv.slice(2));
  await ensureSetup({ browser: wanted.part === undefined || wanted.part === 'e2e' });
  return runSteps(testSteps(wanted));
});
