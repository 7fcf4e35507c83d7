/** A stream into a file of the scratch folder, which is renamed to its place at the end. The file itself is the row of the write. */
import type { FileHandle } from 'node:fs/promises';

import { LanceError } from '../errors';
import { asLanceError, discard, isThere, writeAll } from './node-files';
import { writerEnded, writeTakenAway } from './refusals';
import type { ObjectWriter } from './store';

export class NodeWriter implements ObjectWriter {
  readonly #path: string;
  readonly #staged: string;
  readonly #file: FileHandle;
  readonly #settle: () => Promise<void>;
  /** Writes go one after the other. */
  #last: Promise<void> = Promise.resolve();
  #sizeBytes = 0;
  #hasEnded = false;

  constructor(path: string, staged: string, file: FileHandle, settle: () => Promise<void>) {
    this.#path = path;
    this.#staged = staged;
    this.#file = file;
    this.#settle = settle;
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#hasEnded) throw writerEnded(this.#path);
    const kept = bytes.slice();
    this.#sizeBytes += kept.length;
    this.#last = this.#last.then(() => writeAll(this.#file, kept));
    await this.#mapped(this.#last);
  }

  async finish(): Promise<number> {
    if (this.#hasEnded) throw writerEnded(this.#path);
    this.#hasEnded = true;
    try {
      await this.#mapped(this.#last.then(() => this.#file.datasync()).finally(() => this.#file.close()));
      await this.#settle();
    } catch (error) {
      if (error instanceof LanceError && error.code === 'STORAGE' && !(await isThere(this.#staged))) {
        throw writeTakenAway(this.#path);
      }
      throw error;
    } finally {
      await discard(this.#staged);
    }
    return this.#sizeBytes;
  }

  async abort(): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    await this.#mapped(this.#last.catch(() => undefined).finally(() => this.#file.close()));
    await discard(this.#staged);
  }

  async #mapped(step: Promise<unknown>): Promise<void> {
    await step.catch((error: unknown) => {
      throw asLanceError(error, this.#path);
    });
  }
}
