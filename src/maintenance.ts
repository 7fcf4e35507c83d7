/**
 * Automatic maintenance of a connection's tables, for `connect(uri, { maintenance: 'auto' })`.
 *
 * 1. A table that was written to through the connection is remembered by its name. 2. Once no call has been under way for a while, the
 * engine is asked to do what is due for each of them, on a handle of its own: it decides, and mostly nothing is. 3. What fails is let
 * be: the next write asks again. 4. Closing the connection ends it.
 */

import type { Engine, OpenedTable, TableHandle, WriteHandle } from './engine/port';

/** How long no call may have been under way. */
const IDLE_MS = 2_000;
/** A table is not looked at again before this time, however much is written. */
const PAUSE_MS = 30_000;

/** Timers, and the time that they go by. */
export interface IdleClock {
  now(): number;
  /** Runs `run` once, in so many milliseconds; what is returned stops it. */
  after(ms: number, run: () => void): () => void;
}

const systemClock: IdleClock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer: unknown = setTimeout(run, ms);
    // Node's would keep a process alive.
    if (typeof timer === 'object' && timer !== null && 'unref' in timer) (timer as { unref(): void }).unref();
    return () => clearTimeout(timer as number);
  },
};

/** What leaves more fragments or versions behind. */
const WRITES: ReadonlySet<string> = new Set<keyof Engine>([
  'delete',
  'finishAppend',
  'addNullColumns',
  'addComputedColumns',
  'alterColumns',
  'dropColumns',
  'updateFieldMetadata',
  'setUnenforcedPrimaryKey',
  'setLsmWriteSpec',
  'unsetLsmWriteSpec',
  'restore',
  'finishMerge',
  'update',
]);

/** What gives the handle of a write, and what takes it. */
const BEGINS: ReadonlySet<string> = new Set<keyof Engine>(['beginAppend', 'beginOverwrite', 'beginMerge']);
const ENDS: ReadonlySet<string> = new Set<keyof Engine>(['finishAppend', 'finishMerge', 'abortWrite']);

/** The engine of a connection, which from now on also looks after the tables that are written to through it. */
export function maintained(engine: Engine, clock: IdleClock = systemClock): Engine {
  const keeper = new Keeper(engine, clock);
  const calls = new Map<string | symbol, unknown>();
  return new Proxy(engine, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name, target);
      if (typeof method !== 'function') return method;
      let call = calls.get(name);
      if (call === undefined) {
        call = (...args: unknown[]) => keeper.call(String(name), args, () => Reflect.apply(method, target, args));
        calls.set(name, call);
      }
      return call;
    },
  });
}

class Keeper {
  readonly #engine: Engine;
  readonly #clock: IdleClock;
  readonly #names = new Map<TableHandle, string>();
  readonly #writes = new Map<WriteHandle, string>();
  /** Tables that were written to since they were last looked after. */
  readonly #due = new Set<string>();
  /** When each was last looked after. */
  readonly #last = new Map<string, number>();
  #pending = 0;
  #isOver = false;
  #isAtWork = false;
  #stop: (() => void) | undefined;

  constructor(engine: Engine, clock: IdleClock) {
    this.#engine = engine;
    this.#clock = clock;
  }

  async call(method: string, args: readonly unknown[], run: () => unknown): Promise<unknown> {
    if (method === 'close') this.#end();
    this.#pending += 1;
    this.#stop?.();
    this.#stop = undefined;
    try {
      const answer = await run();
      this.#heard(method, args, answer);
      return answer;
    } finally {
      this.#pending -= 1;
      this.#wait(IDLE_MS);
    }
  }

  #heard(method: string, args: readonly unknown[], answer: unknown): void {
    const [handle] = args as readonly [number];
    if (isOpenedTable(answer)) this.#names.set(answer.handle, answer.name);
    if (method === 'closeTable') this.#names.delete(handle);
    const table = this.#names.get(handle);
    if (BEGINS.has(method) && table !== undefined) this.#writes.set(answer as WriteHandle, table);
    const written = WRITES.has(method) ? (table ?? this.#writes.get(handle)) : undefined;
    if (ENDS.has(method)) this.#writes.delete(handle);
    if (written !== undefined) this.#due.add(written);
  }

  #wait(ms: number): void {
    const isIdle = this.#pending === 0 && !this.#isAtWork && this.#due.size > 0;
    if (this.#isOver || !isIdle) return;
    this.#stop?.();
    this.#stop = this.#clock.after(ms, () => {
      this.#stop = undefined;
      void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#isAtWork = true;
    let pause = IDLE_MS;
    for (const name of [...this.#due]) {
      const since = this.#clock.now() - (this.#last.get(name) ?? -Infinity);
      // A clock that went back says nothing about how long ago that was.
      if (since >= 0 && since < PAUSE_MS) {
        pause = Math.max(pause, PAUSE_MS - since);
        continue;
      }
      // Whoever calls goes first: what is left is done when it is quiet again.
      if (this.#isOver || this.#pending > 0) break;
      this.#due.delete(name);
      this.#last.set(name, this.#clock.now());
      await this.#lookAfter(name);
    }
    this.#isAtWork = false;
    this.#wait(pause);
  }

  async #lookAfter(name: string): Promise<void> {
    try {
      const { handle } = await this.#engine.openTable(name, { kind: 'lazy' });
      try {
        await this.#engine.maintain(handle);
      } finally {
        await this.#engine.closeTable(handle);
      }
    } catch {
      // Nobody asked for it, and nobody depends on it: a table that was dropped, a conflict, a full disk are told to who writes.
    }
  }

  #end(): void {
    this.#isOver = true;
    this.#stop?.();
    this.#stop = undefined;
    this.#due.clear();
  }
}

function isOpenedTable(answer: unknown): answer is OpenedTable {
  const isObject = typeof answer === 'object' && answer !== null;
  return isObject && 'handle' in answer && 'name' in answer && typeof answer.name === 'string';
}
