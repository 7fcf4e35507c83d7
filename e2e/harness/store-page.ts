import { runTask, type TaskName } from './store-tasks';

declare global {
  interface Window {
    /** Runs a task on the page itself or in its worker. */
    storeTask(where: 'page' | 'worker', name: TaskName, args: readonly unknown[]): Promise<unknown>;
  }
}

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

const worker = new Worker(new URL('./store-worker.ts', import.meta.url), { type: 'module' });
const waiting = new Map<number, { resolve(value: unknown): void; reject(reason: Error): void }>();
let lastId = 0;

worker.onmessage = ({ data: { id, value, error } }: MessageEvent<Answer>) => {
  if (error === undefined) waiting.get(id)?.resolve(value);
  else waiting.get(id)?.reject(new Error(error));
  waiting.delete(id);
};

window.storeTask = (where, name, args) => {
  if (where === 'page') return runTask(name, args);
  const id = (lastId += 1);
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, name, args });
  });
};
