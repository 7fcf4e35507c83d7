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

export function checkList(name: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw invalid(`${name} must be an array, found ${value === null ? 'null' : typeof value}`);
}

/** A row id, whose 64 bits a number does not always hold. */
export function checkRowId(value: unknown): bigint {
  if (typeof value !== 'bigint' && !(typeof value === 'number' && Number.isSafeInteger(value))) {
    throw invalid(`Row id must be an integer (or bigint), found ${String(value)}`);
  }
  if (value < 0) throw invalid(`Row id cannot be negative, found ${String(value)}`);
  if (value > 0xffff_ffff_ffff_ffffn) throw invalid(`Row id must fit into 64 bits, found ${String(value)}`);
  return BigInt(value);
}
