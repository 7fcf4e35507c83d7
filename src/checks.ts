/** Arguments of callers, checked once where they come in. */

import { LanceError } from './errors';

export function invalid(message: string): LanceError {
  return new LanceError('INVALID_INPUT', `invalid input, ${message}`);
}

export function notSupported(feature: string): LanceError {
  return new LanceError('NOT_SUPPORTED', `not supported: ${feature} in this build`, { feature });
}

/** A whole number from `least` on that JavaScript holds exactly. */
export function checkCount(name: string, value: unknown, least = 0): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value;
  throw invalid(`${name} must be a whole number of at least ${least}, found ${String(value)}`);
}

export function checkText(name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  throw invalid(`${name} must be a string, found ${value === null ? 'null' : typeof value}`);
}
