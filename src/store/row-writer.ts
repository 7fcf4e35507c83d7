/**
 * A stream into a store of rows: its bytes are gathered in memory or Blobs, or go to a file once they are many, and its `writing` row is
 * there before the first of them. `finish` needs that row, still there: somebody who deleted the path took it away.
 */
import { LanceError } from '../errors';
import { asStorageError, type Database, type Rows, type Transaction } from './database';
import { OBJECT_KINDS, SMALL_BYTES, checkWritable, objectKey, place, type Own } from './object-rows';
import { byteKey } from './path';
import { writerEnded, writeTakenAway } from './refusals';
import type { ObjectWriter } from './store';

/** A place for large bodies beside the rows. */
export interface BodyFiles {
  create(file: string): Promise<BodySink>;
  /** Rejects with a `NotFoundError` when the file is gone. */
  read(file: string, ranges: readonly { start: number; end: number }[]): Promise<Uint8Array[]>;
  /** Those of `files` that are gone; the others are still held open somewhere. */
  remove(files: readonly string[]): Promise<string[]>;
  close(): Promise<void>;
}

export interface BodySink {
  write(bytes: Uint8Array): void;
  /** Flushes and closes. */
  finish(): void;
  abort(): void;
}

/** A stream without files gathers its bytes into Blobs of about this size, which the browser may keep on disk. */
const BLOB_BYTES = 1024 * 1024;
/** One object being streamed. */
export class RowWriter implements ObjectWriter {
  readonly #database: Database;
  readonly #files: BodyFiles | undefined;
  readonly #own: Own;
  readonly #removeFiles: (files: readonly string[]) => Promise<unknown>;
  #pending: Uint8Array<ArrayBuffer>[] = [];
  #pendingBytes = 0;
  #blobs: Blob[] = [];
  #sizeBytes = 0;
  #opening: Promise<void> | undefined;
  #sink: BodySink | undefined;
  #hasEnded = false;

  constructor(
    database: Database,
    files: BodyFiles | undefined,
    own: Own,
    removeFiles: (files: readonly string[]) => Promise<unknown>,
  ) {
    this.#database = database;
    this.#files = files;
    this.#own = own;
    this.#removeFiles = removeFiles;
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#hasEnded) throw writerEnded(this.#own.path);
    this.#sizeBytes += bytes.length;
    try {
      if (this.#sink !== undefined) {
        this.#sink.write(bytes);
        return;
      }
      this.#pending.push(bytes.slice());
      this.#pendingBytes += bytes.length;
      if (this.#files !== undefined && this.#pendingBytes > SMALL_BYTES)
        await (this.#opening ??= this.#spill(this.#files));
      if (this.#files === undefined && this.#pendingBytes > BLOB_BYTES) this.#gather();
    } catch (error) {
      throw asStorageError(error, this.#own.path);
    }
  }

  async finish(): Promise<number> {
    await this.#finish('replace');
    return this.#sizeBytes;
  }

  finishIfAbsent(): Promise<boolean> {
    return this.#finish('ifAbsent');
  }

  async abort(): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    await this.#opening?.catch(() => undefined);
    this.#sink?.abort();
    await this.#clear();
  }

  async #finish(mode: 'replace' | 'ifAbsent'): Promise<boolean> {
    if (this.#hasEnded) throw writerEnded(this.#own.path);
    this.#hasEnded = true;
    let isPut: boolean;
    let buried: string[] = [];
    try {
      await this.#opening;
      this.#sink?.finish();
      const bytes = this.#sink === undefined ? { body: this.#body() } : { file: this.#own.by };
      [isPut, buried] = await this.#database.write(
        [...OBJECT_KINDS, 'writing'],
        (rows) => this.#publish(rows, mode, bytes),
        { settles: ([answer]) => answer },
      );
    } catch (error) {
      // An unknown outcome may have published the file: it stays, and so does the row if there still is one.
      const isKnown = !(error instanceof LanceError && error.code === 'OUTCOME_UNKNOWN');
      this.#sink?.abort();
      if (isKnown) await this.#clear().catch(() => undefined);
      throw asStorageError(error, this.#own.path);
    }
    if (isPut) await this.#removeFiles(buried);
    else await this.#clear();
    return isPut;
  }

  async #publish(
    rows: Transaction,
    mode: 'replace' | 'ifAbsent',
    bytes: { body: Rows['body'] } | { file: string },
  ): Promise<[boolean, string[]]> {
    const { dir, path, by } = this.#own;
    const key = [dir, byteKey(path), by];
    const [isUnderWay, old] = await Promise.all([rows.has('writing', key), rows.get('meta', objectKey(dir, path))]);
    if (old?.by === by) return [true, []];
    await checkWritable(rows, dir);
    if (!isUnderWay) throw writeTakenAway(path);
    if (mode === 'ifAbsent' && old !== undefined) return [false, []];
    rows.delete('writing', key);
    return [true, await place(rows, this.#own, this.#sizeBytes, bytes)];
  }

  /** Takes the row away, and the file if one was begun. */
  async #clear(): Promise<void> {
    this.#pending = [];
    this.#blobs = [];
    const { dir, path, by } = this.#own;
    const files = this.#opening === undefined ? [] : [by];
    const work = async (rows: Transaction) => {
      rows.delete('writing', [dir, byteKey(path), by]);
      for (const file of files) rows.put('tombstones', file, { file });
    };
    await this.#database.write(['writing', 'tombstones'], work, { durability: 'relaxed' });
    await this.#removeFiles(files);
  }

  /** From here on the bytes go to a file. What was written while it opened is written first. */
  async #spill(files: BodyFiles): Promise<void> {
    const sink = await files.create(this.#own.by);
    try {
      for (const chunk of this.#pending) sink.write(chunk);
    } catch (error) {
      sink.abort();
      throw error;
    }
    this.#pending = [];
    this.#sink = sink;
  }

  #gather(): void {
    this.#blobs.push(new Blob(this.#pending));
    this.#pending = [];
    this.#pendingBytes = 0;
  }

  #body(): Rows['body'] {
    if (this.#blobs.length > 0 || this.#pendingBytes > SMALL_BYTES) return new Blob([...this.#blobs, ...this.#pending]);
    const bytes = new Uint8Array(this.#pendingBytes);
    let offset = 0;
    for (const chunk of this.#pending) {
      bytes.set(chunk, offset);
      offset += chunk.length;
    }
    return bytes;
  }
}
