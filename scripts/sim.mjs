// Simulation: seeded tabs over one store, with crashes, lost answers and frozen tabs (wasm/tests/simulation).
//
//   npm run sim -- --seeds 1000              seeds 0 to 999
//   npm run sim -- --seeds 1000 --from 4711  and from another one on
//   SIM_SEED=42 npm run sim                  that seed, with a fault at every operation; a failure prints what led there
//
// Built with optimisations in a profile of its own: the first run compiles for some minutes.

import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import { ensureSetup, toolEnv } from './setup.mjs';
import { isMain, root, run, runSteps, script, StepError } from './step.mjs';

const crate = join(root, 'wasm');
const defaultSeeds = 1000;
/** Of `npm run test:full`. */
export const fullSeeds = 10_000;

const cargoTest = ['test', '--profile', 'sim', '--features', 'testing', '--test', 'simulation'];

/**
 * A step for the build, and one for each core's share of the seeds.
 *
 * @param {{ seeds?: number, from?: number }} [options]
 * @returns {import('./step.mjs').Step[]}
 */
export function simSteps({ seeds = defaultSeeds, from = 0 } = {}) {
  const cargo = (args, env) => run('cargo', args, { cwd: crate, env: { ...toolEnv(), ...env } });
  const shares = Math.max(1, Math.min(availableParallelism(), seeds));
  const share = (at) => {
    const [first, end] = [at, at + 1].map((n) => from + Math.floor((seeds * n) / shares));
    return cargo(cargoTest, { SIM_FROM: String(first), SIM_SEEDS: String(end - first), RUST_BACKTRACE: '0' });
  };
  return [
    { name: 'simulation: build', isNeeded: true, run: () => cargo([...cargoTest, '--no-run'], {}) },
    {
      name: `simulation: seeds ${from} to ${from + seeds - 1}`,
      run: async () => {
        const results = await Promise.all(Array.from({ length: shares }, (_, at) => share(at)));
        return results.find(({ code }) => code !== 0) ?? { code: 0, output: '' };
      },
    },
  ];
}

function number(args, name, fallback) {
  const at = args.indexOf(name);
  if (at < 0) return fallback;
  const value = Number(args[at + 1]);
  if (!Number.isSafeInteger(value) || value < 0) throw new StepError(`sim: ${name} takes a number`);
  return value;
}

if (isMain(import.meta.url)) {
  await script(async () => {
    const args = process.argv.slice(2);
    await ensureSetup({ browser: false });
    if (process.env.SIM_SEED !== undefined) {
      const env = { ...toolEnv(), RUST_BACKTRACE: '0' };
      return (await run('cargo', cargoTest, { cwd: crate, env, isShown: true })).code;
    }
    return runSteps(simSteps({ seeds: number(args, '--seeds', defaultSeeds), from: number(args, '--from', 0) }));
  });
}
