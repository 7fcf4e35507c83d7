import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

import { ERROR_CODES, fromWire, LanceError, toWire } from './errors';

it('has exactly the codes of the engine', () => {
  const rust = readFileSync(new URL('../wasm/src/error.rs', import.meta.url), 'utf8');
  const names = [...rust.matchAll(/ErrorCode::\w+ => "([A-Z_]+)"/g)].map((match) => match[1]);
  expect(names.length).toBeGreaterThan(10);
  expect([...ERROR_CODES]).toEqual(names);
});

it('calls the same codes retryable as the engine', () => {
  const rust = readFileSync(new URL('../wasm/src/error.rs', import.meta.url), 'utf8');
  const body = /fn is_retryable[^}]*/.exec(rust)?.[0] ?? '';
  const names = [...body.matchAll(/ErrorCode::(\w+)/g)].map((match) =>
    match[1]?.replace(/(?<=.)[A-Z]/g, '_$&').toUpperCase(),
  );
  expect(names.length).toBeGreaterThan(0);
  expect(ERROR_CODES.filter((code) => new LanceError(code, '').retryable).sort()).toEqual(names.sort());
});

it('crosses a wire with code, message and details', () => {
  const error = new LanceError('CORRUPT', 'corrupt data in x', { path: 'x', offset: 4 });
  const back = fromWire(structuredClone(toWire(error)));
  expect(back).toBeInstanceOf(LanceError);
  expect(back).toMatchObject({ code: 'CORRUPT', message: 'corrupt data in x', details: { path: 'x', offset: 4 } });
  expect(toWire(new TypeError('x is undefined'))).toMatchObject({
    code: 'INTERNAL',
    message: 'internal error: x is undefined',
  });
});
