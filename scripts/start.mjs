// Start: the demo on localhost, with everything it needs installed and built before.
//
//   npm start                      further arguments go to Vite: -- --port 4000 --open

import { build } from './build.mjs';
import { ensureSetup, toolEnv } from './setup.mjs';
import { packageBin, run, script } from './step.mjs';

await script(async () => {
  await ensureSetup({ browser: false });
  await build({ wasm: true });
  const args = [packageBin('vite'), ...process.argv.slice(2)];
  const { code } = await run(process.execPath, args, { env: toolEnv(), isShown: true });
  return code;
});
