import { beforeEach, describe, expect, it } from 'vitest';

import { Connection } from './connection';
import { FakeEngine } from './engine/fake-engine';
import { cleanupToWire, type CleanupOptions } from './retention';
import type { Table } from './table';
import { Tags } from './tags';

const NOW = Date.UTC(2026, 10, 30);
const before = (ms: number) => ({ cleanupOlderThan: new Date(NOW - ms) });

let engine: FakeEngine;
let table: Table;

beforeEach(async () => {
  engine = new FakeEngine();
  table = await new Connection(engine, 'memory://t').createTable('t', [{ id: 1 }]);
});

describe('options of a cleanup', () => {
  it('are nothing by default, so that the engine decides', () => {
    expect(cleanupToWire({})).toEqual({});
    const unset: unknown = { cleanupOlderThan: undefined, deleteUnverified: null };
    expect(cleanupToWire(unset as CleanupOptions)).toEqual({});
  });

  it('turn a date into an age, once', () => {
    expect(cleanupToWire(before(600_000), NOW)).toEqual({ olderThanMs: 600_000 });
    expect(cleanupToWire(before(599_999), NOW)).toEqual({ olderThanMs: 599_999 });
    expect(cleanupToWire({ ...before(-5), deleteUnverified: true }, NOW)).toEqual({
      olderThanMs: -5,
      deleteUnverified: true,
    });
    expect(cleanupToWire({ errorIfTaggedOldVersions: false })).toEqual({ errorIfTagged: false });
  });

  it('take the time of the call itself for no age', () => {
    expect(cleanupToWire(before(0), NOW)).toEqual({ olderThanMs: 0 });
    expect(cleanupToWire(before(99), NOW)).toEqual({ olderThanMs: 0 });
    expect(cleanupToWire(before(100), NOW)).toEqual({ olderThanMs: 100 });
    expect(cleanupToWire({ cleanupOlderThan: new Date() })).toEqual({ olderThanMs: 0 });
  });

  it('c4: an invalid date is refused, and what is no date', () => {
    const refused = (options: unknown) => expect(() => cleanupToWire(options as CleanupOptions));
    refused({ cleanupOlderThan: new Date('x') }).toThrow(/invalid input, cleanupOlderThan is an invalid date/);
    refused({ cleanupOlderThan: NOW }).toThrow(/cleanupOlderThan must be a Date, found number/);
    refused({ cleanupOlderThan: '2026-11-30' }).toThrow(/must be a Date, found string/);
    refused({ deleteUnverified: 'yes' }).toThrow(/deleteUnverified must be true or false, found string/);
    refused({ errorIfTaggedOldVersions: 0 }).toThrow(/errorIfTaggedOldVersions must be true or false, found number/);
  });
});

describe('previewCleanup', () => {
  it('tells what would go and why the rest stays', async () => {
    const preview = await table.previewCleanup({ cleanupOlderThan: new Date(), deleteUnverified: true });
    expect(engine.cleanups).toEqual([{ olderThanMs: 0, deleteUnverified: true }]);
    expect(preview).toEqual({
      oldVersionsRemoved: 1,
      bytesRemoved: 7,
      removed: [{ version: 1, timestamp: new Date(5) }],
      kept: [
        { version: 2, timestamp: new Date(6.5), reasons: [{ kind: 'tag', name: 'old' }] },
        {
          version: 3,
          timestamp: new Date(7),
          reasons: [{ kind: 'age' }, { kind: 'tag', name: 'young' }, { kind: 'lease', name: 'scan' }],
        },
        { version: 4, timestamp: new Date(8), reasons: [{ kind: 'latest' }, { kind: 'branch', name: 'dev' }] },
      ],
      files: [
        { path: '_versions/1.manifest', size: 3 },
        { path: 'data/a.lance', size: 4 },
      ],
      blockingTags: ['old'],
    });
  });

  it('checks its options before the engine hears of them', async () => {
    await expect(table.previewCleanup({ cleanupOlderThan: new Date(NaN) })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    });
    expect(engine.cleanups).toEqual([]);
  });
});

describe('tags', () => {
  it('have the shape of LanceDB', async () => {
    const tags = await table.tags();
    expect(tags).toBeInstanceOf(Tags);
    await tags.create('a', 1);
    await tags.create('__proto__', 2);
    await tags.update('a', 3);
    expect(await tags.getVersion('a')).toBe(3);
    const list = await tags.list();
    expect(Object.entries(list)).toEqual([
      ['a', { version: 3, manifestSize: 9 }],
      ['__proto__', { version: 2, manifestSize: 9 }],
    ]);
    await tags.delete('a');
    expect(Object.keys(await tags.list())).toEqual(['__proto__']);
  });

  it('name a version to check out', async () => {
    await (await table.tags()).create('far', 101);
    await expect(table.checkout('far')).rejects.toThrow('version 101 was not found');
    await expect(table.checkout('zz')).rejects.toThrow('tag zz does not exist');
  });

  it('check what they are called with', async () => {
    const tags = await table.tags();
    await expect(tags.create(5 as never, 1)).rejects.toThrow(/the name of a tag must be a string, found number/);
    for (const version of [-1, 1.5, '1', NaN, undefined]) {
      await expect(tags.create('a', version as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
      await expect(tags.update('a', version as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    }
    expect(await tags.list()).toEqual({});
  });

  it('end with their table', async () => {
    const tags = await table.tags();
    await table.close();
    await expect(tags.list()).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(table.tags()).rejects.toMatchObject({ code: 'CLOSED' });
  });
});
