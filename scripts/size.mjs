// Size: what a user downloads. Fails when the engine is above its budget.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

import { root, script, StepError } from './step.mjs';

const files = ['lancelet_bg.wasm', 'index.js', 'node.js', 'worker.js'];
const budget = { file: 'lancelet_bg.wasm', rawKb: 3_500, brotliKb: 650 };

function measure(name) {
  const path = join(root, 'dist', name);
  if (!existsSync(path)) throw new StepError(`size: dist/${name} is missing: npm run build`);
  const bytes = readFileSync(path);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const sizes = [bytes.length, gzipSync(bytes, { level: 9 }).length, brotliCompressSync(bytes, { params }).length];
  return { name, kb: sizes.map((size) => size / 1000) };
}

await script(() => {
  const rows = files.map(measure);
  const line = (name, cells) => console.log(name.padEnd(20) + cells.map((cell) => cell.padStart(14)).join(''));
  line('KB (1000 bytes)', ['raw', 'gzip', 'brotli']);
  for (const { name, kb } of rows)
    line(
      name,
      kb.map((size) => size.toFixed(1)),
    );
  const engine = rows.find(({ name }) => name === budget.file);
  const [rawKb, , brotliKb] = engine.kb;
  const isOver = rawKb > budget.rawKb || brotliKb > budget.brotliKb;
  console.log(
    `budget of ${budget.file}: ${budget.rawKb} raw, ${budget.brotliKb} brotli: ${isOver ? 'EXCEEDED' : 'kept'}`,
  );
  return isOver ? 1 : 0;
});
