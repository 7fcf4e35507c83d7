// Fuzz: bytes that nobody wrote, against what the readers promise (wasm/fuzz/src/lib.rs). Stable Rust is enough.
//
//   npm run fuzz -- <target|all> [--seconds N]    N seconds a target, 20 unless told
//   npm run fuzz -- seeds                         wasm/fuzz/seeds anew, of the golden files
//
// New inputs go to wasm/fuzz/corpus (not in git). A finding ends the run: its input lies in wasm/fuzz/artifacts; once it is fixed, move it
// to wasm/fuzz/crashers/<target>/<defect> and it is replayed by every `npm test`.

import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { ensureSetup, ensureCargoFuzz, toolEnv } from './setup.mjs';
import { isMain, root, run, runSteps, script, StepError } from './step.mjs';

const crate = join(root, 'wasm');
const folder = join(crate, 'fuzz');
const defaultSeconds = 20;
/** What one input may take: a hang is a finding. */
const secondsPerInput = 10;
/** The process as a whole; that one input takes too much is noticed by the targets' own allocator, far earlier. */
const memoryMb = 1024;
const inputBytes = 8192;

const targets = () =>
  readdirSync(join(folder, 'fuzz_targets'))
    .map((file) => file.replace(/\.rs$/, ''))
    .sort();

/**
 * A step for the build, and one for each target.
 *
 * @param {{ names?: string[], seconds?: number }} [options] Default: every target, 20 seconds each.
 * @returns {import('./step.mjs').Step[]}
 */
export function fuzzSteps({ names = targets(), seconds = defaultSeconds } = {}) {
  // No sanitizer: the engine has no unsafe code, and sanitizers need a nightly compiler.
  const cargoFuzz = (command, ...args) =>
    run('cargo', ['fuzz', command, '-s', 'none', ...args], { cwd: crate, env: toolEnv(), isShown: true });
  const fuzz = (name) => {
    const corpus = join(folder, 'corpus', name);
    mkdirSync(corpus, { recursive: true });
    const known = ['seeds', 'crashers'].map((kind) => join(folder, kind, name));
    known.forEach((path) => mkdirSync(path, { recursive: true }));
    const limits = [`-max_total_time=${seconds}`, `-timeout=${secondsPerInput}`, `-rss_limit_mb=${memoryMb}`];
    const quiet = ['-print_final_stats=1', '-verbosity=1', `-max_len=${inputBytes}`];
    return cargoFuzz('run', name, corpus, ...known, '--', ...limits, ...quiet);
  };
  return [
    {
      name: 'fuzz: build',
      isNeeded: true,
      run: async () => {
        await ensureCargoFuzz();
        return cargoFuzz('build');
      },
    },
    ...names.map((name) => ({ name: `fuzz: ${name}, ${seconds} s`, run: () => fuzz(name) })),
  ];
}

function parse(args) {
  const at = args.indexOf('--seconds');
  const seconds = at < 0 ? defaultSeconds : Number(args[at + 1]);
  const words = at < 0 ? args : args.filter((_, i) => i !== at && i !== at + 1);
  if (words.length !== 1 || !(seconds > 0)) {
    throw new StepError(`fuzz: npm run fuzz -- <${targets().join('|')}|all|seeds> [--seconds N]`);
  }
  return { word: words[0], seconds };
}

if (isMain(import.meta.url)) {
  await script(async () => {
    const { word, seconds } = parse(process.argv.slice(2));
    await ensureSetup({ browser: false });
    if (word === 'seeds') {
      const seeds = () => run('cargo', ['run', '--example', 'seeds'], { cwd: folder, env: toolEnv(), isShown: true });
      return runSteps([{ name: 'fuzz: seeds', run: seeds }]);
    }
    if (word !== 'all' && !targets().includes(word)) {
      throw new StepError(`fuzz: no target ${word}: ${targets().join(', ')} or all`);
    }
    return runSteps(fuzzSteps({ names: word === 'all' ? targets() : [word], seconds }));
  });
}
