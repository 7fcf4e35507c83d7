// Golden: the data that other writers of the format made, made anew. A reviewed change, never part of the tests.
//
//   npm run golden [-- case...]    by @lancedb/lancedb; with LANCELET_PYTHON=<a Python that has pylance> by pylance, too

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ask, root, run, runSteps, script } from './step.mjs';

const folder = join(root, 'wasm', 'tests', 'golden');

/** Why there is no pylance to write with, or undefined. */
function pylanceProblem(python, wanted) {
  if (python === undefined) return 'LANCELET_PYTHON does not name a Python that has it';
  const found = ask(python, ['-W', 'ignore', '-c', 'import lance; print(lance.__version__)']);
  if (found === undefined) return `${python} has no pylance`;
  return found === wanted ? undefined : `${python} has pylance ${found}`;
}

await script(async () => {
  const cases = process.argv.slice(2);
  const generate = (name, command, generator) => ({
    name,
    run: () => run(command, [join(folder, generator), ...cases], { isShown: true }),
  });
  const python = process.env.LANCELET_PYTHON;
  const wanted = /^pylance==(\S+)$/m.exec(readFileSync(join(folder, 'requirements.txt'), 'utf8'))[1];
  const problem = pylanceProblem(python, wanted);
  const steps = [
    generate('golden: lancedb', process.execPath, 'datagen.mjs'),
    ...(cases.length === 0 ? [generate('golden: lancedb tables', process.execPath, 'lancedb-0.39.0/tables.mjs')] : []),
    ...(problem === undefined ? [generate(`golden: pylance ${wanted}`, python, 'datagen.py')] : []),
  ];
  const code = await runSteps(steps);
  if (problem !== undefined) {
    console.log(`skipped: the files of pylance ${wanted}, ${problem}. How to get it: wasm/tests/golden/datagen.py`);
  }
  return code;
});
