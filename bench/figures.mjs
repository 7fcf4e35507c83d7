// What every table of figures says: the middle of its samples, and where they were taken.

import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';

import { root } from '../scripts/step.mjs';

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export const machine = () => `${cpus().length} cores, ${cpus()[0]?.model ?? 'unknown processor'}`;

export const commit = () =>
  execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
