/** Tags: names for versions. A tagged version is not cleaned up. */

import { checkCount, checkText } from './checks';
import type { Engine, TableHandle } from './engine/port';

/** What a tag tells of its version. */
export interface TagContents {
  readonly version: number;
  /** Of the version's manifest, in bytes. */
  readonly manifestSize: number;
}

/**
 * The tags of a table.
 *
 * Names have letters and digits of ASCII, `.`, `-` and `_`; they begin and end with no dot, have no two in a row, and don't end with
 * `.lock`. Errors of every method: `INVALID_INPUT` for another name, `CORRUPT` for a tag that can't be read, and those of the table.
 */
export class Tags {
  readonly #engine: Engine;
  readonly #handle: () => TableHandle;

  /** @internal Use `Table.tags`. */
  constructor(engine: Engine, handle: () => TableHandle) {
    this.#engine = engine;
    this.#handle = handle;
  }

  /** All tags by name. */
  async list(): Promise<Record<string, TagContents>> {
    const tags = await this.#engine.tags(this.#handle());
    return Object.fromEntries(tags.map(({ name, version, manifestSize }) => [name, { version, manifestSize }]));
  }

  /** @throws `NOT_FOUND`. */
  async getVersion(tag: string): Promise<number> {
    return this.#engine.tagVersion(this.#handle(), checkTag(tag));
  }

  /** @throws `ALREADY_EXISTS`; `NOT_FOUND` for the version. */
  async create(tag: string, version: number): Promise<void> {
    await this.#engine.createTag(this.#handle(), checkTag(tag), checkCount('version', version));
  }

  /** Moves a tag to another version. @throws `NOT_FOUND` for the tag or the version. */
  async update(tag: string, version: number): Promise<void> {
    await this.#engine.updateTag(this.#handle(), checkTag(tag), checkCount('version', version));
  }

  /** @throws `NOT_FOUND`. */
  async delete(tag: string): Promise<void> {
    await this.#engine.deleteTag(this.#handle(), checkTag(tag));
  }
}

function checkTag(tag: unknown): string {
  return checkText('the name of a tag', tag);
}
