/** Turns among the writers of one page or process: first come, first served. */
import type { Turn } from './store';

export class TurnQueue {
  /** Per key who waits, the holder first. */
  readonly #queues = new Map<string, (() => void)[]>();

  /** Waits for the turn, at most `waitMs`; `undefined` when the time ran out. */
  take(key: string, waitMs: number): Promise<Turn | undefined> {
    const queue = this.#queues.get(key) ?? [];
    this.#queues.set(key, queue);
    return new Promise((resolve) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const start = () => {
        if (timer !== undefined) clearTimeout(timer);
        resolve({ release: () => this.#leave(key, start) });
      };
      queue.push(start);
      if (queue[0] === start) {
        start();
        return;
      }
      timer = setTimeout(() => {
        this.#leave(key, start);
        resolve(undefined);
      }, waitMs);
    });
  }

  #leave(key: string, start: () => void): void {
    const queue = this.#queues.get(key) ?? [];
    const index = queue.indexOf(start);
    if (index < 0) return;
    queue.splice(index, 1);
    if (queue.length === 0) this.#queues.delete(key);
    else if (index === 0) queue[0]?.();
  }
}
