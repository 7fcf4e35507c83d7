/**
 * Which store a URI means. Each backend is loaded when it is first asked for; the field `browser` of package.json keeps the one of folders
 * out of bundles for browsers.
 */
import { LanceError } from '../errors';
import type { Store } from './store';

const SCHEMES = ['memory', 'indexeddb', 'opfs'];

/**
 * Opens a store: `memory://name`, `indexeddb://name`, `opfs://name`, or, in Node, a path or a `file:` URL.
 *
 * @throws `INVALID_INPUT` for a scheme that is not known or an empty name, `UNAVAILABLE` where the backend can't be had.
 */
export async function openStore(uri: string): Promise<Store> {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(uri)?.[1]?.toLowerCase();
  if (scheme === undefined || scheme === 'file') return openFolder(uri);
  const name = uri.slice(scheme.length + 1).replace(/^\/\//, '');
  if (!SCHEMES.includes(scheme) || !uri.slice(scheme.length + 1).startsWith('//')) {
    throw new LanceError('INVALID_INPUT', `${uri}: unknown scheme ${scheme}:, known are ${known()}`);
  }
  if (name === '') throw new LanceError('INVALID_INPUT', `${uri}: the name of the store is empty`);
  if (scheme === 'memory') return (await import('./memory')).openMemoryStore(name);
  if (scheme === 'opfs') return (await import('./opfs')).openOpfsStore(name);
  return (await import('./indexeddb')).openIndexedDbStore(name);
}

async function openFolder(uri: string): Promise<Store> {
  if (uri === '') throw new LanceError('INVALID_INPUT', 'the path of the store is empty');
  const versions = (globalThis.process as Partial<NodeJS.Process> | undefined)?.versions;
  if (versions?.node === undefined) {
    throw new LanceError('INVALID_INPUT', `${uri}: folders are for Node, known here are ${known()}`);
  }
  const { openNodeStore } = await import('./node-fs');
  return openNodeStore(uri);
}

function known(): string {
  return `${SCHEMES.map((scheme) => `${scheme}://`).join(', ')} and, in Node, paths and file: URLs`;
}
