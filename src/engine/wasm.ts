/**
 * The engine's wasm instance of this thread, and its end: the only importer of generated code.
 *
 * After a trap (a panic, memory that cannot grow) an instance is never entered again: what waits for it is told, and the next
 * `enterWasm` begins with a new instance.
 */

import init, * as generated from '../../wasm/pkg/lancelet.js';

import { LanceError } from '../errors';
import type { Store } from '../store/store';

export type {
  Append,
  CreateTable,
  Database,
  Export,
  Import,
  MergeInsert,
  Scan,
  Table,
} from '../../wasm/pkg/lancelet.js';

/** One life of the wasm instance. */
export class WasmLife {
  #end: LanceError | undefined;
  readonly #waiting = new Set<(error: LanceError) => void>();

  /** Why the instance must not be entered any more. */
  get end(): LanceError | undefined {
    return this.#end;
  }

  /** Runs a call into the instance; a trap ends this life. */
  enter<T>(call: () => T): T {
    if (this.#end !== undefined) throw this.#end;
    try {
      return call();
    } catch (error) {
      if (isTrap(error)) this.fail(error.message);
      throw this.#end ?? error;
    }
  }

  /** Waits for a call's answer, which never comes once this life ended. */
  wait<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#end !== undefined) {
        reject(this.#end);
        return;
      }
      this.#waiting.add(reject);
      const settle = (): void => void this.#waiting.delete(reject);
      answer.then(resolve, reject).finally(settle);
    });
  }

  fail(reason: string): void {
    if (this.#end !== undefined) return;
    const details = { engine: 'stopped', reason };
    const error = new LanceError('INTERNAL', `internal error: the engine stopped: ${reason}`, details);
    this.#end = error;
    if (current?.life === this) current = undefined;
    for (const reject of this.#waiting) reject(error);
    this.#waiting.clear();
    try {
      generated.reset();
    } catch (cause) {
      // An instance too broken for this is broken for good: every later call says so.
      unusable = new LanceError('INTERNAL', 'internal error: the engine cannot be started again', {}, { cause });
    }
  }

  /** A database over `store`, whose promises reach the instance only as long as it lives. */
  openDatabase(store: Store): generated.Database {
    return this.enter(() => new generated.Database(this.#guard(store)));
  }

  #guard<T extends object>(target: T): T {
    const life = this;
    const never = new Promise<never>(() => undefined);
    const call =
      (method: (...args: unknown[]) => unknown) =>
      async (...args: unknown[]): Promise<unknown> => {
        try {
          const value = await method.apply(target, args);
          if (life.#end !== undefined) return await never;
          // Writers are called by the instance, too.
          return isWriter(value) ? life.#guard(value) : value;
        } catch (error) {
          return life.#end === undefined ? Promise.reject(error as Error) : never;
        }
      };
    return new Proxy(target, {
      get: (object, name) => {
        const value: unknown = Reflect.get(object, name, object);
        return typeof value === 'function' ? call(value as (...args: unknown[]) => unknown) : value;
      },
    });
  }
}

let current: { readonly life: WasmLife; readonly ready: Promise<WasmLife> } | undefined;
let unusable: LanceError | undefined;

/** The running instance; the first call loads it. */
export function enterWasm(): Promise<WasmLife> {
  if (unusable !== undefined) return Promise.reject(unusable);
  if (current === undefined) {
    const life = new WasmLife();
    const begun = { life, ready: begin(life) };
    current = begun;
    // A file that could not be fetched may be there next time.
    begun.ready.catch(() => {
      if (current === begun) current = undefined;
    });
  }
  return current.ready;
}

async function begin(life: WasmLife): Promise<WasmLife> {
  try {
    await init({ module_or_path: await wasmSource() });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LanceError('UNAVAILABLE', `the engine could not be loaded: ${reason}`, {}, { cause });
  }
  life.enter(() => {
    generated.start({
      schedule: () => {
        queueMicrotask(() => runTasks(life));
      },
      panicked: (message: string) => {
        panicMessage = message;
      },
    });
  });
  return life;
}

let panicMessage: string | undefined;

function runTasks(life: WasmLife): void {
  if (life.end !== undefined) return;
  try {
    life.enter(() => generated.runTasks());
  } catch (error) {
    // The callers were told by the life's end; anything else is not theirs to hear.
    if (life.end === undefined) life.fail(error instanceof Error ? error.message : String(error));
  }
}

/**
 * Whether what a call threw comes from inside the instance: a trap, an exhausted stack, a check of the generated code that failed there.
 * Errors of operations come as rejections, and an argument of the wrong type never gets in.
 */
function isTrap(error: unknown): error is Error {
  const isInside = error instanceof Error && !(error instanceof TypeError) && !(error instanceof LanceError);
  if (isInside && panicMessage !== undefined) {
    error.message = panicMessage;
    panicMessage = undefined;
  }
  return isInside;
}

function isWriter(value: unknown): value is object {
  return typeof value === 'object' && value !== null && 'finish' in value && 'abort' in value;
}

/** The file beside this module: fetched, or read where it is a file of this machine. */
async function wasmSource(): Promise<URL | BufferSource> {
  const url = new URL('../../wasm/pkg/lancelet_bg.wasm', import.meta.url);
  if (url.protocol !== 'file:') return url;
  const fs = globalThis.process?.getBuiltinModule?.('node:fs/promises');
  return fs === undefined ? url : fs.readFile(url);
}
