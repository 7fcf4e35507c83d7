/** Batches of a source to an engine's write: converted while the one before is being written. */

import { encodeBatch } from './arrow/ipc';
import type { Source } from './arrow/source';
import type { Engine, WriteHandle } from './engine/port';
import type { WriteProgress } from './types';

/** Starts the write with `begin` and writes everything; when anything fails, the write is aborted and the source closed. */
export async function writeAll(
  engine: Engine,
  source: Source,
  begin: () => Promise<WriteHandle>,
  progress?: (batchRows: number, batchBytes: number) => void,
): Promise<WriteHandle> {
  let handle: WriteHandle;
  try {
    handle = await begin();
  } catch (error) {
    await source.batches.return();
    throw error;
  }
  let written: Promise<void> = Promise.resolve();
  try {
    for await (const batch of source.batches) {
      const ipc = batch instanceof Uint8Array ? batch : encodeBatch(batch);
      const bytes = ipc.byteLength;
      await written;
      written = engine.write(handle, ipc).then((rows) => progress?.(rows, bytes));
      // Heard of at the next batch.
      written.catch(() => undefined);
    }
    await written;
    return handle;
  } catch (error) {
    // The first error is the one to report; what was written is in no version.
    await engine.abortWrite(handle).catch(() => undefined);
    throw error;
  }
}

/** Counts what is written and tells a caller's function, whose errors change nothing. */
export class ProgressReport {
  readonly #tell: ((progress: WriteProgress) => void) | undefined;
  readonly #expectedRows: number | undefined;
  readonly #start = performance.now();
  #rows = 0;
  #bytes = 0;

  constructor(tell: ((progress: WriteProgress) => void) | undefined, expectedRows: number | undefined) {
    this.#tell = tell;
    this.#expectedRows = expectedRows;
  }

  readonly add = (rows: number, bytes: number): void => {
    this.#rows += rows;
    this.#bytes += bytes;
    this.#report(this.#expectedRows, false);
  };

  end(): void {
    this.#report(this.#rows, true);
  }

  #report(totalRows: number | undefined, done: boolean): void {
    if (this.#tell === undefined) return;
    try {
      this.#tell({
        outputRows: this.#rows,
        outputBytes: this.#bytes,
        ...(totalRows === undefined ? {} : { totalRows }),
        elapsedSeconds: (performance.now() - this.#start) / 1000,
        activeTasks: done ? 0 : 1,
        totalTasks: 1,
        done,
      });
    } catch (error) {
      console.warn('the progress callback threw:', error);
    }
  }
}
