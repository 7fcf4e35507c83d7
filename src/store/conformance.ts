/**
 * The suite that every store must pass: one case per promise of the contract, each on a store of its own.
 *
 * It runs where a store runs (vitest, a page, a worker), so it brings its own assertions. Backends differ by `Traits`, never by a case
 * left out.
 */
import { COMMIT_CASES } from './conformance/commits';
import { DIRECTORY_CASES } from './conformance/directories';
import { LISTING_CASES } from './conformance/listings';
import { OBJECT_CASES } from './conformance/objects';
import { REMOVAL_CASES } from './conformance/removals';
import type { ConformanceCase, Scene } from './conformance/scene';
import type { Store } from './store';

export type { ConformanceCase, Scene, Traits } from './conformance/scene';

export const CASES: readonly ConformanceCase[] = [
  ...OBJECT_CASES,
  ...LISTING_CASES,
  ...COMMIT_CASES,
  ...DIRECTORY_CASES,
  ...REMOVAL_CASES,
];

/** Runs one case and closes every handle that it opened. */
export async function runCase(name: string, scene: Scene): Promise<void> {
  const found = CASES.find((candidate) => candidate.name === name);
  if (found === undefined) throw new Error(`no case is called ${name}`);
  const opened: Store[] = [];
  const open = async () => {
    const store = await scene.open();
    opened.push(store);
    return store;
  };
  try {
    await found.run({ traits: scene.traits, open });
  } finally {
    for (const store of opened) await store.close();
  }
}
