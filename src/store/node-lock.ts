/**
 * The lock of a store's folder among processes: numbered files `lock.<n>`, of which the highest says who holds it.
 *
 * 1. Acquire: read the highest. If it says free, or its process is dead, link a complete file that names us as the next number: `link`
 *    fails when another was faster. If its process lives, wait: the lock of a living process is never broken, however long it sleeps.
 * 2. List again. A higher number means that our picture was old (the number was free because its file was taken away since): withdraw.
 * 3. Release: link a file that says free as the next number, then take the older ones away. So the highest number only grows, and
 *    there is no moment at which two processes can believe that they hold it.
 *
 * Callers of one process queue before it, first come, first served. Nothing here is flushed: after a power cut no holder is alive.
 */
import { createHash, randomUUID } from 'node:crypto';
import { link, readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

import { LanceError } from '../errors';
import { discard, isCode } from './node-files';
import { TurnQueue } from './turns';

export interface LockOptions {
  /** How long to wait for another process, in milliseconds. Default: 30 000. */
  readonly waitMs?: number;
}

/** A process, so that a later one of the same number is told from it. A field that the system doesn't tell is empty. */
interface Holder {
  readonly pid: number;
  /** When it started, in the system's ticks. */
  readonly started: string;
  readonly host: string;
  /** The machine's boot. */
  readonly boot: string;
  /** The namespace of process numbers. */
  readonly namespace: string;
}

const FREE = '{"free":true}';

/** Turns of this process, one queue per folder. */
const localTurns = new TurnQueue();

export class FolderLock {
  readonly #folder: string;
  readonly #scratch: string;
  readonly #waitMs: number;
  #files: Promise<{ readonly held: string; readonly free: string }> | undefined;

  /** `scratch` is a folder of the same file system. */
  constructor(folder: string, scratch: string, options: LockOptions) {
    this.#folder = folder;
    this.#scratch = scratch;
    this.#waitMs = options.waitMs ?? 30_000;
  }

  /**
   * Runs `critical` while no other process or caller does.
   *
   * @throws `CONTENTION` when a living process kept the lock for all of the wait.
   */
  async hold<T>(critical: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#waitMs;
    const turn = await localTurns.take(this.#folder, this.#waitMs);
    if (turn === undefined) {
      throw new LanceError('CONTENTION', `${this.#folder} is busy: waited ${this.#waitMs} ms for a turn`);
    }
    try {
      const { number, older } = await this.#acquire(deadline);
      try {
        return await critical();
      } finally {
        await this.#release(number, older);
      }
    } finally {
      turn.release();
    }
  }

  /** Takes this handle's own files away. */
  async close(): Promise<void> {
    const files = await this.#files;
    this.#files = undefined;
    if (files !== undefined) await Promise.all([discard(files.held), discard(files.free)]);
  }

  async #acquire(deadline: number): Promise<{ number: number; older: number[] }> {
    const { held } = await (this.#files ??= this.#writeFiles());
    for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 20)) {
      const highest = await this.#highest();
      const holder = highest === 0 ? undefined : await this.#holderOf(highest);
      if (holder === undefined || (await isDead(holder))) {
        const number = highest + 1;
        if (await this.#link(held, number)) {
          const numbers = await this.#numbers();
          if (Math.max(...numbers) === number) return { number, older: numbers.filter((other) => other < number) };
          await discard(this.#path(number));
        }
        // Another was faster, so there is progress; the deadline still holds.
      }
      if (performance.now() >= deadline) {
        const who = holder === undefined ? 'others' : `process ${holder.pid} of ${holder.host}`;
        const details = { path: this.#path(highest), pid: holder?.pid ?? null };
        throw new LanceError('CONTENTION', `${this.#folder} is locked by ${who} for ${this.#waitMs} ms`, details);
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random())));
    }
  }

  async #release(number: number, older: readonly number[]): Promise<void> {
    const { free } = await (this.#files ??= this.#writeFiles());
    if (!(await this.#link(free, number + 1))) {
      throw new LanceError('INTERNAL', `lock ${number} of ${this.#folder} was taken over while it was held`);
    }
    await Promise.all([...older, number].map((gone) => discard(this.#path(gone))));
  }

  /** Links count: a file system refuses more than some ten thousand of one file, but ours are taken away at once. */
  async #link(file: string, number: number): Promise<boolean> {
    try {
      await link(file, this.#path(number));
      return true;
    } catch (error) {
      if (isCode(error, 'EEXIST')) return false;
      throw error;
    }
  }

  /** Who holds the lock by file `number`; `undefined` when it says free or is gone, so that linking the next one decides. */
  async #holderOf(number: number): Promise<Holder | undefined> {
    const content = await readFile(this.#path(number), 'utf8').catch((error: unknown) => {
      if (isCode(error, 'ENOENT')) return FREE;
      throw error;
    });
    // Links are of complete files: one that isn't was cut by a loss of power, and nobody lives to hold it.
    return content.endsWith('}') && content !== FREE ? (JSON.parse(content) as Holder) : undefined;
  }

  async #highest(): Promise<number> {
    return Math.max(0, ...(await this.#numbers()));
  }

  async #numbers(): Promise<number[]> {
    const names = await readdir(this.#folder);
    return names.flatMap((name) => (/^lock\.\d{1,15}$/.test(name) ? [Number(name.slice(5))] : []));
  }

  #path(number: number): string {
    return join(this.#folder, `lock.${number}`);
  }

  async #writeFiles(): Promise<{ held: string; free: string }> {
    const held = join(this.#scratch, await scratchName('-held'));
    const free = join(this.#scratch, await scratchName('-free'));
    const files = { held, free };
    await writeFile(files.held, JSON.stringify(await ownHolder()), { flag: 'wx' });
    await writeFile(files.free, FREE, { flag: 'wx' });
    return files;
  }
}

let own: Promise<Holder> | undefined;

function ownHolder(): Promise<Holder> {
  return (own ??= (async () => {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '');
    const namespace = await readlink('/proc/self/ns/pid').catch(() => '');
    const started = (await statusOf(process.pid))?.started ?? '';
    return { pid: process.pid, started, host: hostname(), boot: digits(boot), namespace: digits(namespace) };
  })());
}

const digits = (value: string) => value.replace(/[^0-9a-f]/g, '');
const hostMark = (host: string) => createHash('sha256').update(host).digest('hex').slice(0, 12);

/** A new name for a scratch file; it tells of the process that made it, for `isLeftover`. */
export async function scratchName(suffix: string): Promise<string> {
  const { pid, started, host, boot, namespace } = await ownHolder();
  return `.tmp-${pid}.${started}.${hostMark(host)}.${boot}.${namespace}.${randomUUID()}${suffix}`;
}

/** Whether the process that made a scratch file of this name is certainly dead. */
export async function isLeftover(name: string): Promise<boolean> {
  const match = /^\.tmp-(\d+)\.(\w*)\.(\w+)\.(\w*)\.(\w*)\./.exec(name);
  if (match === null) return false;
  const [, pid, started = '', mark, boot = '', namespace = ''] = match;
  const { host } = await ownHolder();
  return mark === hostMark(host) && isDead({ pid: Number(pid), started, host, boot, namespace });
}

async function isDead(holder: Holder): Promise<boolean> {
  const self = await ownHolder();
  // A process elsewhere (a shared folder) can't be asked: it counts as alive.
  if (holder.host !== self.host) return false;
  if (holder.boot !== self.boot) return holder.boot !== '' && self.boot !== '';
  return holder.namespace === self.namespace && isDeadHere(holder.pid, holder.started);
}

async function isDeadHere(pid: number, started: string): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return isCode(error, 'ESRCH');
  }
  const status = await statusOf(pid);
  if (status === undefined) return false;
  // Killed, but its parent has not asked for its end yet.
  if (status.state === 'Z' || status.state === 'X') return true;
  return started !== '' && status.started !== started;
}

/** State and start of a process where the system has `/proc`. */
async function statusOf(pid: number): Promise<{ state: string; started: string } | undefined> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The second field is the command's name in parentheses and may itself hold any character.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const [state, started] = [fields[0], fields[19]];
  return state === undefined || started === undefined ? undefined : { state, started };
}
