/** The closed list of error codes; equal to the engine's list, held so by a test. */
export const ERROR_CODES = [
  'INVALID_INPUT',
  'SCHEMA',
  'TABLE_NOT_FOUND',
  'TABLE_EXISTS',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'NOT_SUPPORTED',
  'CONFLICT',
  'CONTENTION',
  'DRAINING',
  'FENCED',
  'CLAIM_LOST',
  'UNAVAILABLE',
  'TABLE_DROPPING',
  'NOT_LSM',
  'OUTCOME_UNKNOWN',
  'TIMEOUT',
  'ABORTED',
  'CLOSED',
  'CORRUPT',
  'QUOTA',
  'STORAGE',
  'INTERNAL',
] as const;

/** What kind of thing went wrong: the stable part of an error. */
export type ErrorCode = (typeof ERROR_CODES)[number];

const RETRYABLE: ReadonlySet<ErrorCode> = new Set(['CONFLICT', 'CONTENTION', 'UNAVAILABLE', 'TIMEOUT']);

/** Data of an error, such as `path` and `offset` of a `CORRUPT` one. */
export type ErrorDetails = Readonly<Record<string, string | number | null>>;

/** Every error of this library. Branch on `code`; the message is for people and may change. */
export class LanceError extends Error {
  override readonly name = 'LanceError';
  readonly code: ErrorCode;
  /** Whether the same call may succeed later without anything being changed. */
  readonly retryable: boolean;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.retryable = RETRYABLE.has(code);
    this.details = details;
  }
}

/** An error as it crosses a worker or the wasm edge. */
export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && (ERROR_CODES as readonly string[]).includes(value);
}

export function fromWire(wire: WireError): LanceError {
  return new LanceError(wire.code, wire.message, wire.details);
}

/** Anything that was thrown, as data; what is not ours is `INTERNAL`. */
export function toWire(error: unknown): WireError {
  if (error instanceof LanceError) return { code: error.code, message: error.message, details: error.details };
  const message = error instanceof Error ? error.message : String(error);
  return { code: 'INTERNAL', message: `internal error: ${message}`, details: {} };
}
