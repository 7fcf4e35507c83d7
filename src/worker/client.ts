/**
 * The engine in the page's worker.
 *
 * 1. The first connection starts the worker; all connections of the page share it. 2. A call is a message, its answer settles a promise.
 * 3. When the last connection is closed and its last table is gone, the worker ends, unless it holds a `memory://` store, which lives
 * as long as the page. 4. When the worker fails, every call that waits for it is rejected with `INTERNAL`, and the next connection
 * starts a new one. A worker that ends without an event (out of memory, `close()`) lets go of a Web Lock that it holds for life, which
 * is how the page finds out.
 */

import type { Engine } from '../engine/port';
import { fromWire, LanceError } from '../errors';
import { engineOf, packBytes, type Request, type Response } from './protocol';

/** The part of a `Worker` that is used here. */
export interface WorkerLike {
  postMessage(message: unknown, transfer: Transferable[]): void;
  terminate(): void;
  onmessage: ((event: MessageEvent) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
  /** Resolves when a worker that has answered once is gone; not there where nothing can tell. */
  whenGone?(): Promise<void>;
}

interface Call {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: LanceError) => void;
}

const pageWorker = { start: startWorker, client: undefined as WorkerClient | undefined };

/** An engine in the page's worker. */
export function connectWorker(
  uri: string,
  page: { start(): WorkerLike; client: WorkerClient | undefined } = pageWorker,
): Promise<Engine> {
  if (page.client === undefined || page.client.isOver) page.client = new WorkerClient(page.start());
  return page.client.connect(uri);
}

function startWorker(): WorkerLike {
  // The name is the worker's lock as well: no other page may have it.
  const name = `lancelet-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  const worker = new Worker(new URL('./host.ts', import.meta.url), { type: 'module', name });
  if (navigator.locks === undefined) return worker;
  return Object.assign(worker, { whenGone: () => navigator.locks.request(name, () => undefined) });
}

/** One worker and the calls that wait for it. */
export class WorkerClient {
  readonly #worker: WorkerLike;
  readonly #calls = new Map<number, Call>();
  readonly #connections = new Set<number>();
  #nextId = 1;
  #nextConnection = 1;
  #holdsMemory = false;
  #isWatching = false;
  #end: LanceError | undefined;

  constructor(worker: WorkerLike) {
    this.#worker = worker;
    worker.onmessage = (event) => this.#receive(event.data as Response);
    worker.onmessageerror = () => this.#fail('a message could not be read');
    worker.onerror = (event) => {
      // Reported by the calls that it rejects.
      event.preventDefault?.();
      this.#fail(event.message === undefined || event.message === '' ? 'it could not be started' : event.message);
    };
  }

  /** Whether the worker ended or failed. */
  get isOver(): boolean {
    return this.#end !== undefined;
  }

  async connect(uri: string): Promise<Engine> {
    const connection = this.#nextConnection++;
    this.#connections.add(connection);
    try {
      await this.#send((id) => ({ kind: 'connect', id, connection, uri }));
    } catch (error) {
      this.#connections.delete(connection);
      this.#endIfIdle();
      throw error;
    }
    if (uri.startsWith('memory:')) this.#holdsMemory = true;
    this.#watch();
    return engineOf((call) => this.#send((id) => ({ kind: 'call', id, connection, ...call })));
  }

  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    this.#worker.whenGone?.().then(
      () => this.#fail('it ended without a word'),
      // Without the lock the worker's events still tell.
      () => undefined,
    );
  }

  #send(request: (id: number) => Request): Promise<unknown> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      try {
        const { message, transfer } = packBytes(request(id));
        this.#worker.postMessage(message, transfer);
      } catch (cause) {
        this.#calls.delete(id);
        reject(new LanceError('INVALID_INPUT', 'invalid input, an argument cannot be sent to a worker', {}, { cause }));
      }
    });
  }

  #receive(response: Response): void {
    switch (response.kind) {
      case 'done':
        this.#settle(response.id)?.resolve(response.value);
        break;
      case 'failed':
        this.#settle(response.id)?.reject(fromWire(response.error));
        break;
      case 'idle':
        this.#connections.delete(response.connection);
        break;
      case 'crashed':
        this.#over(fromWire(response.error));
        return;
    }
    this.#endIfIdle();
  }

  #settle(id: number): Call | undefined {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    return call;
  }

  #endIfIdle(): void {
    if (this.#connections.size > 0 || this.#calls.size > 0 || this.#holdsMemory) return;
    this.#over(new LanceError('CLOSED', 'Connection is closed'));
  }

  #fail(reason: string): void {
    this.#over(new LanceError('INTERNAL', `internal error: the worker failed: ${reason}`, { reason }));
  }

  #over(error: LanceError): void {
    if (this.#end !== undefined) return;
    this.#end = error;
    this.#worker.terminate();
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }
}
