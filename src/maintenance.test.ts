import { describe, expect, it } from 'vitest';

import { connect } from './connection';
import { FakeEngine } from './engine/fake-engine';
import { LanceError } from './errors';
import { maintained, type IdleClock } from './maintenance';

const lazy = { kind: 'lazy' } as const;

/** A clock that moves when it is told, and the timers that stand. */
class Clock implements IdleClock {
  #now = 1_000_000;
  #timers = new Map<number, { at: number; run: () => void }>();
  #next = 1;

  now(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): () => void {
    const id = this.#next++;
    this.#timers.set(id, { at: this.#now + ms, run });
    return () => void this.#timers.delete(id);
  }

  get waiting(): number {
    return this.#timers.size;
  }

  async pass(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      const next = [...this.#timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers.delete(next[0]);
      this.#now = next[1].at;
      next[1].run();
      await settled();
    }
    this.#now = end;
    await settled();
  }
}

/** Everything that waits for promises alone has gone on. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}

async function scene(): Promise<{ fake: FakeEngine; engine: FakeEngine; clock: Clock; table: number }> {
  const fake = new FakeEngine();
  const clock = new Clock();
  const engine = maintained(fake, clock) as FakeEngine;
  const table = (await engine.finishCreate(await engine.beginCreate('t', new Uint8Array(), '2.2', 'create'), lazy))
    .handle;
  return { fake, engine, clock, table };
}

async function append(engine: FakeEngine, table: number): Promise<void> {
  await engine.finishAppend(await engine.beginAppend(table));
}

describe('automatic maintenance', () => {
  it('looks after a table once nothing was called for a while', async () => {
    const { fake, engine, clock, table } = await scene();
    await clock.pass(60_000);
    expect(fake.maintained).toEqual([]);
    await append(engine, table);
    await clock.pass(1_999);
    expect(fake.maintained).toEqual([]);
    await clock.pass(1);
    expect(fake.maintained).toEqual(['t']);
    await clock.pass(600_000);
    expect(fake.maintained).toEqual(['t']);
    expect(fake.liveKinds()).toEqual(['table']);
  });

  it('waits for the end of calls and starts to count again with each', async () => {
    const { fake, engine, clock, table } = await scene();
    let finish = (): void => undefined;
    fake.stalls = new Promise((resolve) => (finish = resolve));
    await engine.delete(table);
    const scan = await fake.scan(table, {});
    const reading = engine.nextBatches(scan.handle);
    await clock.pass(60_000);
    expect(fake.maintained).toEqual([]);
    finish();
    await reading;
    await clock.pass(1_500);
    await engine.version(table);
    await clock.pass(1_999);
    expect(fake.maintained).toEqual([]);
    await clock.pass(1);
    expect(fake.maintained).toEqual(['t']);
  });

  it('looks after no table twice within half a minute', async () => {
    const { fake, engine, clock, table } = await scene();
    await append(engine, table);
    await clock.pass(2_000);
    await append(engine, table);
    await clock.pass(27_999);
    expect(fake.maintained).toEqual(['t']);
    await clock.pass(10_000);
    expect(fake.maintained).toEqual(['t', 't']);
  });

  it('keeps errors to itself and asks again after the next write', async () => {
    const { fake, engine, clock, table } = await scene();
    fake.fails = { maintain: new LanceError('CONFLICT', 'conflict') };
    await append(engine, table);
    await clock.pass(5_000);
    expect(fake.maintained).toEqual([]);
    expect(fake.liveKinds()).toEqual(['table']);
    fake.fails = {};
    await clock.pass(60_000);
    expect(fake.maintained).toEqual([]);
    await engine.delete(table);
    await clock.pass(2_000);
    expect(fake.maintained).toEqual(['t']);
  });

  it('lets a failed write be and hands its error on', async () => {
    const { fake, engine, clock, table } = await scene();
    const write = await engine.beginAppend(table);
    await engine.abortWrite(write);
    await expect(engine.finishAppend(write)).rejects.toThrow('the write is closed');
    await clock.pass(60_000);
    expect(fake.maintained).toEqual([]);
  });

  it('ends with the connection, also while it waits', async () => {
    const { fake, engine, clock, table } = await scene();
    await append(engine, table);
    expect(clock.waiting).toBe(1);
    await engine.close();
    expect(clock.waiting).toBe(0);
    await append(engine, table);
    await clock.pass(60_000);
    expect(fake.maintained).toEqual([]);
  });

  it('is off, or asked for by its name', async () => {
    const wrong = { maintenance: 'always' as 'auto' };
    await expect(connect('memory://', wrong)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  });
});
