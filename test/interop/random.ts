/** Random numbers that depend on their seed alone. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** A whole number of 32 bits (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    return this.next() % limit;
  }

  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + this.below(to - from + 1);
  }

  chance(part: number): boolean {
    return this.next() < part * 2 ** 32;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  bits(count: number): bigint {
    let value = 0n;
    for (let at = 0; at < count; at += 32) value = (value << 32n) | BigInt(this.next());
    return BigInt.asUintN(count, value);
  }
}
