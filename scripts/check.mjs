// Check: format, lints, docs and types of everything, native and wasm32. All of it runs, even when one part fails.
//
//   npm run check                  all
//   npm run check -- clippy tsc    those whose name has one of the words

import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { buildWasm, wasmRustFlags } from './build.mjs';
import { ensureSetup, toolEnv, wasmEnv } from './setup.mjs';
import { isMain, packageBin, root, run, runSteps, script } from './step.mjs';

const crate = join(root, 'wasm');
const formatted = ['src', 'web', 'e2e', 'scripts', 'bench', 'test', '*.{ts,json}'];

/** @returns {import('./step.mjs').Step[]} */
export function checkSteps() {
  const cargo = (args, env = {}) => run('cargo', args, { cwd: crate, env: { ...toolEnv(), ...env } });
  const node = (packageName, bin, args) => run(process.execPath, [packageBin(packageName, bin), ...args]);
  return [
    { name: 'check: rustfmt', run: () => cargo(['fmt', '--check']) },
    {
      name: 'check: prettier',
      run: () => {
        const there = formatted.filter((path) => path.includes('*') || existsSync(join(root, path)));
        return node('prettier', 'prettier', ['--check', '--log-level', 'warn', ...there]);
      },
    },
    {
      name: 'check: clippy',
      run: () => cargo(['clippy', '--locked', '--all-targets', '--all-features', '--', '-D', 'warnings']),
    },
    {
      name: 'check: cargo doc',
      run: () =>
        cargo(['doc', '--no-deps', '--document-private-items', '--all-features'], { RUSTDOCFLAGS: '-Dwarnings' }),
    },
    {
      // The native lints never see what is behind cfg(target_arch = "wasm32").
      name: 'check: wasm32',
      run: () =>
        cargo(['check', '--target', 'wasm32-unknown-unknown'], {
          ...wasmEnv(),
          RUSTFLAGS: `${wasmRustFlags} -Dwarnings`,
        }),
    },
    {
      name: 'check: tsc',
      run: async () => {
        // The facade's types rest on those that the engine's build writes.
        await buildWasm({ orAnyProfile: true });
        return node('typescript', 'tsc', ['--noEmit']);
      },
    },
  ];
}

if (isMain(import.meta.url)) {
  await script(async () => {
    const words = process.argv.slice(2);
    await ensureSetup({ browser: false });
    const steps = checkSteps().filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
    return runSteps(steps);
  });
}
