import { describe, expect, it } from 'vitest';

import { Connection } from '../connection';
import { FakeEngine } from '../engine/fake-engine';
import type { Engine } from '../engine/port';
import { LanceError } from '../errors';
import { connectWorker, WorkerClient, type WorkerLike } from './client';
import { serve, type HostPort } from './host';
import { packBytes, type Request } from './protocol';

interface Page {
  client: WorkerClient | undefined;
  starts: number;
  terminations: number;
  engines: { uri: string; engine: FakeEngine; becomeIdle: () => void }[];
  worker: WorkerLike | undefined;
  start(): WorkerLike;
}

/** A page whose workers are the other ends of message channels. */
function newPage(open?: (uri: string) => Promise<Engine>): Page {
  const page: Page = {
    client: undefined,
    starts: 0,
    terminations: 0,
    engines: [],
    worker: undefined,
    start() {
      const { port1, port2 } = new MessageChannel();
      page.starts += 1;
      serve(port2 as unknown as HostPort, async (uri, onIdle) => {
        if (open !== undefined) return open(uri);
        const engine = new FakeEngine();
        page.engines.push({ uri, engine, becomeIdle: onIdle });
        return engine;
      });
      port2.start();
      const worker: WorkerLike = {
        postMessage: (message, transfer) => port1.postMessage(message, transfer as never),
        terminate() {
          page.terminations += 1;
          port1.close();
          port2.close();
        },
        onmessage: null,
        onmessageerror: null,
        onerror: null,
      };
      port1.onmessage = (event) => worker.onmessage?.(event as never);
      page.worker = worker;
      return worker;
    },
  };
  return page;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the worker', () => {
  it('answers each call with its own result or error', async () => {
    const page = newPage();
    const engine = await connectWorker('memory://a', page);
    const handle = await engine.beginCreate('t', new Uint8Array([1, 2]), '2.2', 'create', false);
    await engine.write(handle, new Uint8Array([3]));
    const table = await engine.finishCreate(handle, { kind: 'lazy' });
    const [names, schema, missing] = await Promise.all([
      engine.tableNames(),
      engine.schema(table.handle),
      engine.openTable('zz', { kind: 'lazy' }).catch((error: unknown) => error),
    ]);
    expect(names).toEqual(['t']);
    expect(schema).toEqual(new Uint8Array([1, 2]));
    expect(missing).toBeInstanceOf(LanceError);
    expect(missing).toMatchObject({ code: 'TABLE_NOT_FOUND', details: { name: 'zz' } });
    await expect(engine.countRows(table.handle, undefined)).resolves.toBe(1);
    page.worker?.terminate();
  });

  it('is one for all connections of a page, until the last is idle', async () => {
    const page = newPage();
    const [a, b] = await Promise.all([connectWorker('opfs://a', page), connectWorker('opfs://b', page)]);
    expect([page.starts, page.engines.map(({ uri }) => uri)]).toEqual([1, ['opfs://a', 'opfs://b']]);
    await a.close();
    page.engines[0]?.becomeIdle();
    await turn();
    await turn();
    expect(page.terminations).toBe(0);
    expect(await b.tableNames()).toEqual([]);
    await b.close();
    // A table is open: closing the connection ends nothing yet.
    await turn();
    expect(page.terminations).toBe(0);
    page.engines[1]?.becomeIdle();
    await turn();
    await turn();
    expect(page.terminations).toBe(1);
    await expect(b.tableNames()).rejects.toMatchObject({ code: 'CLOSED' });
    await connectWorker('opfs://c', page);
    expect(page.starts).toBe(2);
    page.worker?.terminate();
  });

  it('lives as long as the page once it holds tables in memory', async () => {
    const page = newPage();
    const engine = await connectWorker('memory://a', page);
    await engine.close();
    page.engines[0]?.becomeIdle();
    await turn();
    await turn();
    await connectWorker('memory://a', page);
    expect([page.starts, page.terminations]).toEqual([1, 0]);
    page.worker?.terminate();
  });

  it('rejects every pending call when it fails, and the next connection starts another', async () => {
    const page = newPage(async () => new Stuck());
    const engine = await connectWorker('opfs://a', page);
    const pending = [engine.tableNames(), engine.version(1)];
    await turn();
    page.worker?.onerror?.({ message: 'out of memory', preventDefault: () => undefined } as ErrorEvent);
    for (const call of pending) {
      await expect(call).rejects.toMatchObject({ code: 'INTERNAL', message: /the worker failed: out of memory/ });
    }
    await expect(engine.close()).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(page.terminations).toBe(1);
    await connectWorker('opfs://a', page);
    expect(page.starts).toBe(2);
    page.worker?.terminate();
  });

  it('is given up when its engine traps', async () => {
    const trap = new LanceError('INTERNAL', 'internal error: the engine stopped: unreachable', {
      engine: 'stopped',
    });
    const page = newPage(async () => new Stuck(trap));
    const engine = await connectWorker('opfs://a', page);
    const stuck = engine.version(1);
    await expect(engine.dropTable('t')).rejects.toMatchObject({ code: 'INTERNAL' });
    await expect(stuck).rejects.toMatchObject({ code: 'INTERNAL', message: /unreachable/ });
    expect([page.terminations, page.client?.isOver]).toEqual([1, true]);
  });

  it('survives a connection that could not be opened', async () => {
    const page = newPage((uri) => Promise.reject(new LanceError('UNAVAILABLE', `no ${uri}`)));
    await expect(connectWorker('opfs://a', page)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: 'no opfs://a',
    });
    expect(page.terminations).toBe(1);
  });
});

describe('what is known without the engine', () => {
  it('e1.11 e1.12: is told while the worker is blocked, without a message to it', async () => {
    const page = newPage(async () => new Stuck());
    const db = new Connection(await connectWorker('opfs://a', page), 'opfs://a', { readConsistencyInterval: 2.5 });
    const stuck = db.tableNames();
    stuck.catch(() => undefined);
    let messages = 0;
    const { worker } = page;
    if (worker === undefined) throw new Error('no worker was started');
    worker.postMessage = () => void (messages += 1);
    expect([db.readConsistencyInterval, db.isOpen(), db.uri]).toEqual([2.5, true, 'opfs://a']);
    expect(db.display()).toBe('ListingDatabase(uri=opfs://a, read_consistency_interval=2.5s)');
    expect(messages).toBe(0);
    worker.terminate();
  });
});

describe('messages', () => {
  it('transfer bytes, but never a buffer that is not theirs alone', () => {
    const whole = new Uint8Array([1, 2, 3]);
    const part = new Uint8Array([9, 8, 7, 6]).subarray(1, 3);
    const pooled = Buffer.from('ab');
    const request = { kind: 'call', id: 1, connection: 1, method: 'write', args: [1, whole] } satisfies Request;
    expect(packBytes(request).transfer).toEqual([whole.buffer]);
    const packed = packBytes({ a: [part, pooled] });
    expect(packed.message).toEqual({ a: [new Uint8Array([8, 7]), new Uint8Array([97, 98])] });
    expect(packed.transfer.map((buffer) => buffer.byteLength)).toEqual([2, 2]);
    const { port1 } = new MessageChannel();
    port1.postMessage(packed.message, packed.transfer);
    port1.close();
    expect([part[0], pooled.toString()]).toEqual([8, 'ab']);
  });
});

/** Answers nothing, except a drop with an error. */
class Stuck extends FakeEngine {
  readonly #error: LanceError | undefined;
  constructor(error?: LanceError) {
    super();
    this.#error = error;
  }
  override tableNames(): Promise<string[]> {
    return new Promise(() => undefined);
  }
  override version(): Promise<number> {
    return new Promise(() => undefined);
  }
  override dropTable(): Promise<void> {
    return Promise.reject(this.#error);
  }
}
