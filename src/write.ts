/** Batches of a source to an engine's write: converted while the one before is being written. */

import { encodeBatch } from './arrow/ipc';
import type { Source } from './arrow/source';
import type { Engine, WriteHandle } from './engine/port';

/** Writes everything; when anything fails, the write is aborted and the source closed. */
export async function writeAll(engine: Engine, handle: WriteHandle, source: Source): Promise<void> {
  let written: Promise<void> = Promise.resolve();
  try {
    for await (const batch of source.batches) {
      const ipc = batch instanceof Uint8Array ? batch : encodeBatch(batch);
      await written;
      written = engine.write(handle, ipc);
      // Heard of at the next batch.
      written.catch(() => undefined);
    }
    await written;
  } catch (error) {
    // The first error is the one to report; what was written is in no version.
    await engine.abortWrite(handle).catch(() => undefined);
    throw error;
  }
}
