/**
 * LanceDB's methods that this build lacks: they are there, and say so with `NOT_SUPPORTED` and the method's name.
 *
 * A method whose result is a promise rejects; one that LanceDB answers at once, such as a builder, throws.
 */

import { notSupported } from './checks';

/** Methods that always reject. */
export type Rejecting<Names extends string> = { [N in Names]: (...args: readonly unknown[]) => Promise<never> };

/** Methods that always throw. */
export type Throwing<Names extends string> = { [N in Names]: (...args: readonly unknown[]) => never };

/** Adds the methods to a class. `label` is its public name, which a bundler may change. */
export function lacks(
  target: { prototype: object },
  label: string,
  rejecting: readonly string[],
  throwing: readonly string[],
): void {
  const define = (name: string, value: unknown): void => {
    Object.defineProperty(target.prototype, name, { value, configurable: true, writable: true });
  };
  for (const name of rejecting) define(name, () => Promise.reject(notSupported(`${label}.${name}`)));
  for (const name of throwing) {
    define(name, () => {
      throw notSupported(`${label}.${name}`);
    });
  }
}
