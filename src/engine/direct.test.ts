import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Store } from '../store/store';
import { openDirect } from './direct';
import { enterWasm, type WasmLife } from './wasm';

/** The generated module, played: what a call answers is set by each test. */
const pkg = vi.hoisted(() => {
  const state = {
    starts: 0,
    resets: 0,
    freed: [] as string[],
    maintained: 0,
    holdsLeases: false,
    host: undefined as undefined | { schedule(): void; panicked(message: string): void },
    runTasks: () => undefined as void,
    table: {} as Record<string, (...args: unknown[]) => unknown>,
    store: undefined as unknown,
  };
  const object = (kind: string, methods: Record<string, unknown>): Record<string, unknown> => ({
    ...methods,
    free: () => state.freed.push(kind),
  });
  class Database {
    constructor(store: unknown) {
      state.store = store;
    }
    openTable = (name: string): Promise<unknown> =>
      Promise.resolve(object('table', { name, close: () => Promise.resolve(), ...state.table }));
    tableNames = (): Promise<unknown> => Promise.resolve(['t']);
    holdsLeases = (): boolean => state.holdsLeases;
    maintain = (): Promise<void> => {
      state.maintained += 1;
      return Promise.resolve();
    };
    free = (): void => void state.freed.push('database');
  }
  return { state, Database };
});

vi.mock('../../wasm/pkg/lancelet.js', () => ({
  default: () => Promise.resolve(),
  Database: pkg.Database,
  start: (host: typeof pkg.state.host) => {
    pkg.state.starts += 1;
    pkg.state.host = host;
  },
  runTasks: () => pkg.state.runTasks(),
  reset: () => {
    pkg.state.resets += 1;
  },
}));

let closed: number;
let store: Store;
let ticks: (() => void)[];
const clock = {
  every(_ms: number, run: () => void): () => void {
    ticks.push(run);
    return () => void ticks.splice(ticks.indexOf(run), 1);
  },
};
const tick = async (): Promise<void> => {
  for (const run of [...ticks]) run();
  await new Promise((resolve) => setImmediate(resolve));
};

beforeEach(() => {
  closed = 0;
  ticks = [];
  store = { close: async () => void (closed += 1), token: async () => 'x' } as unknown as Store;
  Object.assign(pkg.state, { freed: [], maintained: 0, holdsLeases: false, table: {}, runTasks: () => undefined });
});

afterEach(async () => {
  const life = await enterWasm();
  life.fail('end of the test');
});

const open = async (onIdle?: () => void): Promise<ReturnType<typeof openDirect>> =>
  openDirect(await enterWasm(), store, onIdle, clock);

describe('an engine on this thread', () => {
  it('ends when it is closed and its last object is gone', async () => {
    let isIdle = false;
    const engine = await open(() => (isIdle = true));
    const { handle } = await engine.openTable('t', { kind: 'lazy' });
    await engine.close();
    expect([isIdle, closed]).toEqual([false, 0]);
    await expect(engine.tableNames()).rejects.toMatchObject({ code: 'CLOSED' });
    await engine.closeTable(handle);
    expect([isIdle, closed, pkg.state.freed]).toEqual([true, 1, ['table', 'database']]);
    await expect(engine.closeTable(handle)).rejects.toMatchObject({ code: 'CLOSED' });
    expect(ticks).toEqual([]);
  });

  it('maintains leases while there are any', async () => {
    const engine = await open();
    await engine.tableNames();
    pkg.state.holdsLeases = true;
    await tick();
    await tick();
    expect([pkg.state.maintained, ticks.length]).toEqual([2, 1]);
    pkg.state.holdsLeases = false;
    await tick();
    expect([pkg.state.maintained, ticks.length]).toEqual([2, 0]);
    await engine.tableNames();
    expect(ticks.length).toBe(1);
  });

  it('answers the calls on one object in order', async () => {
    const order: number[] = [];
    let goOn = (): void => undefined;
    const first = new Promise<void>((resolve) => (goOn = resolve));
    let calls = 0;
    const next = async (): Promise<undefined> => {
      const call = ++calls;
      if (call === 1) await first;
      order.push(call);
      return undefined;
    };
    const scan = {
      schemaIpc: () => new Uint8Array(),
      next,
      close: async () => void order.push(9),
      free: () => undefined,
    };
    pkg.state.table = { scan: () => Promise.resolve(scan) };
    const engine = await open();
    const { handle } = await engine.openTable('t', { kind: 'lazy' });
    const opened = await engine.scan(handle, {});
    const all = [engine.nextBatches(opened.handle), engine.nextBatches(opened.handle), engine.closeScan(opened.handle)];
    goOn();
    await Promise.all(all);
    expect(order).toEqual([1, 2, 9]);
  });

  it('makes an error of the engine a LanceError, and of anything else an internal one', async () => {
    const wire = { code: 'CORRUPT', message: 'corrupt data in x', details: { path: 'x' } };
    pkg.state.table = { version: () => Promise.reject(wire), schema: () => Promise.reject(new TypeError('oops')) };
    const engine = await open();
    const { handle } = await engine.openTable('t', { kind: 'lazy' });
    await expect(engine.version(handle)).rejects.toMatchObject({ name: 'LanceError', ...wire });
    await expect(engine.schema(handle)).rejects.toMatchObject({ code: 'INTERNAL', message: 'internal error: oops' });
  });
});

describe('a trap', () => {
  it('rejects what waits with the message of the panic, and the next engine begins with a new instance', async () => {
    const starts = pkg.state.starts;
    pkg.state.table = { version: () => new Promise(() => undefined) };
    const engine = await open();
    const other = await open();
    const { handle } = await engine.openTable('t', { kind: 'lazy' });
    const stuck = [engine.version(handle), engine.version(handle)];
    pkg.state.runTasks = () => {
      pkg.state.host?.panicked('panicked at src/x.rs:1:2: boom');
      throw new WebAssembly.RuntimeError('unreachable');
    };
    pkg.state.host?.schedule();
    for (const call of stuck) {
      await expect(call).rejects.toMatchObject({ code: 'INTERNAL', message: /panicked at src\/x.rs:1:2: boom/ });
    }
    await expect(other.tableNames()).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(pkg.state.resets).toBeGreaterThan(0);
    pkg.state.runTasks = () => undefined;
    const again = await open();
    expect(await again.tableNames()).toEqual(['t']);
    expect(pkg.state.starts).toBe(starts + 2);
  });

  it('in a call is noticed there', async () => {
    pkg.state.table = {
      version: () => {
        throw new WebAssembly.RuntimeError('memory access out of bounds');
      },
    };
    const engine = await open();
    const { handle } = await engine.openTable('t', { kind: 'lazy' });
    await expect(engine.version(handle)).rejects.toMatchObject({ code: 'INTERNAL', message: /out of bounds/ });
    await expect(engine.tableNames()).rejects.toMatchObject({ code: 'INTERNAL' });
  });

  it('keeps the answers of the store away from an instance that ended', async () => {
    const life: WasmLife = await enterWasm();
    openDirect(life, store, undefined, clock);
    const guarded = pkg.state.store as Store;
    expect(await guarded.token('d', 'f')).toBe('x');
    const late = guarded.token('d', 'f');
    life.fail('trap');
    const winner = await Promise.race([late, new Promise((resolve) => setImmediate(() => resolve('nothing')))]);
    expect(winner).toBe('nothing');
  });
});
