/** Which engine a URI gets here: in a window the one in the page's worker, elsewhere one on this thread. */

import type { Engine } from './port';

export async function openEngine(uri: string): Promise<Engine> {
  if (typeof document !== 'undefined' && typeof Worker !== 'undefined') {
    const { connectWorker } = await import('../worker/client');
    return connectWorker(uri);
  }
  return openHere(uri);
}

/** An engine on this thread. `onIdle` is called once it is closed and its last object is gone. */
export async function openHere(uri: string, onIdle?: () => void): Promise<Engine> {
  const [{ openStore }, { enterWasm }, { openDirect }] = await Promise.all([
    import('../store/open'),
    import('./wasm'),
    import('./direct'),
  ]);
  const store = await openStore(uri);
  try {
    return openDirect(await enterWasm(), store, onIdle);
  } catch (error) {
    await store.close();
    throw error;
  }
}
