// A page that uses the library as an application does, and one worker that does.

import * as lancelet from 'lancelet';

import type { FacadeAnswer } from './facade-worker.ts';

declare global {
  interface Window {
    lancelet: typeof lancelet;
    /** Writes and reads a table inside a worker of this page's own. */
    inWorker(uri: string): Promise<FacadeAnswer>;
    /** Names of the dedicated workers that were started. */
    workers: string[];
    /** The last worker that was started. */
    lastWorker: Worker | undefined;
  }
}

window.workers = [];
window.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    super(url, options);
    window.workers.push(options?.name ?? '');
    window.lastWorker = this;
  }
};

window.inWorker = (uri) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./facade-worker.ts', import.meta.url), { type: 'module', name: 'own' });
    worker.onmessage = ({ data }) => resolve(data as FacadeAnswer);
    worker.onerror = ({ message }) => reject(new Error(message));
    worker.postMessage(uri);
  });

window.lancelet = lancelet;
