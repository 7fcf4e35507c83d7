// Interop: this library and LanceDB on one folder.
//
//   npm run test:interop                       every suite of test/interop
//   npm run test:interop -- --matrix           every type in every version by every operation, and print the table
//   npm run test:interop -- --matrix --write   and write it into wasm/docs/format.md

import { build } from './build.mjs';
import { ensureSetup, toolEnv } from './setup.mjs';
import { packageBin, root, run, script, StepError } from './step.mjs';

await script(async () => {
  const args = process.argv.slice(2);
  const isMatrix = args.includes('--matrix');
  const isWritten = args.includes('--write');
  if (isWritten && !isMatrix) throw new StepError('interop: --write belongs to --matrix');
  const rest = args.filter((arg) => arg !== '--matrix' && arg !== '--write');
  await ensureSetup({ browser: false });
  await build({ wasm: true });
  const env = {
    ...toolEnv(),
    ...(isMatrix ? { LANCELET_FULL: '1', LANCELET_MATRIX: isWritten ? 'write' : 'print' } : {}),
  };
  const files = isMatrix ? ['test/interop/matrix.test.ts'] : ['test/interop'];
  const vitest = [packageBin('vitest', 'vitest'), 'run', ...files, ...rest];
  const { code } = await run(process.execPath, vitest, { cwd: root, env, isShown: true });
  return code;
});
