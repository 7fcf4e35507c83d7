/** The worker's entry: engines on this thread, called by messages. */

import { openHere } from '../engine/open';
import type { Engine } from '../engine/port';
import { LanceError, toWire } from '../errors';
import { isMethod, packBytes, type Request, type Response } from './protocol';

/** What a worker's global scope and a message port have in common. */
export interface HostPort {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
}

type Open = (uri: string, onIdle: () => void) => Promise<Engine>;

/** Answers the requests that come in at `port`. */
export function serve(port: HostPort, open: Open): void {
  const engines = new Map<number, Promise<Engine>>();

  const send = (response: Response): void => {
    const { message, transfer } = packBytes(response);
    port.postMessage(message, transfer);
  };

  const answer = async (request: Request): Promise<unknown> => {
    if (request.kind === 'connect') {
      const { connection } = request;
      const engine = open(request.uri, () => {
        engines.delete(connection);
        send({ kind: 'idle', connection });
      });
      engines.set(connection, engine);
      try {
        await engine;
      } catch (error) {
        engines.delete(connection);
        throw error;
      }
      return undefined;
    }
    const engine = await engines.get(request.connection);
    if (engine === undefined) throw new LanceError('CLOSED', 'Connection is closed');
    if (!isMethod(request.method))
      throw new LanceError('INTERNAL', `internal error: no method ${String(request.method)}`);
    const method = engine[request.method] as (...args: readonly unknown[]) => Promise<unknown>;
    return method.apply(engine, request.args);
  };

  port.addEventListener('message', (event: MessageEvent) => {
    const request = event.data as Request;
    answer(request).then(
      (value) => send({ kind: 'done', id: request.id, value }),
      (error: unknown) => {
        send({ kind: 'failed', id: request.id, error: toWire(error) });
        if (isCrash(error)) send({ kind: 'crashed', error: toWire(error) });
      },
    );
  });
}

/** A trap leaves the wasm instance unusable; a new worker is the clean way to a new one, since it lets go of every file handle. */
function isCrash(error: unknown): boolean {
  return error instanceof LanceError && error.code === 'INTERNAL' && error.details['engine'] === 'stopped';
}

/** Takes the lock of this worker's name and keeps it: who gets it next knows that the worker is gone. */
function holdForLife(name: string): Promise<void> {
  return new Promise((held) => {
    const keep = (): Promise<never> => {
      held();
      return new Promise(() => undefined);
    };
    // Where there are no locks nobody waits for one.
    if (navigator.locks === undefined) held();
    else navigator.locks.request(name, keep).catch(() => held());
  });
}

declare const WorkerGlobalScope: (new () => HostPort) | undefined;

if (typeof WorkerGlobalScope !== 'undefined' && globalThis instanceof WorkerGlobalScope) {
  const held = holdForLife(self.name);
  serve(globalThis, async (uri, onIdle) => {
    await held;
    return openHere(uri, onIdle);
  });
}
