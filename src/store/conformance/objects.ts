/** Objects: put, putIfAbsent, streams, ranges. */
import { emptyIn, paths, bytes, text, pattern, same, equal, check, fails, type ConformanceCase } from './scene';

export const OBJECT_CASES: readonly ConformanceCase[] = [
  {
    name: 'put replaces and get gives the bytes back',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      await store.put(dir, 'data/a.lance', bytes('old'));
      await store.put(dir, 'data/a.lance', bytes('new bytes'));
      await store.put(dir, 'empty', bytes(''));
      equal(text(await store.get(dir, 'data/a.lance')), 'new bytes');
      equal((await store.get(dir, 'empty')).length, 0);
      equal((await store.head(dir, 'data/a.lance'))?.sizeBytes, 9);
      equal(await store.head(dir, 'data/b.lance'), undefined);
      await fails('NOT_FOUND', store.get(dir, 'data/b.lance'));
      await fails('NOT_FOUND', store.getRanges(dir, 'data/b.lance', [0, 0]));
    },
  },
  {
    name: 'the caller keeps its buffer',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      const buffer = bytes('xxabcxx');
      const writing = store.put(dir, 'a', buffer.subarray(2, 5));
      buffer.fill(0);
      await writing;
      const writer = await store.writer(dir, 'b');
      const chunk = bytes('def');
      const written = writer.write(chunk);
      chunk.fill(0);
      await written;
      await writer.finish();
      equal(text(await store.get(dir, 'a')), 'abc');
      equal(text(await store.get(dir, 'b')), 'def');
      (await store.get(dir, 'a')).fill(0);
      equal(text(await store.get(dir, 'a')), 'abc');
    },
  },
  {
    name: 'a reader sees the old bytes or the new ones, never a part',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      const size = 300_000;
      await store.put(dir, 'hint', new Uint8Array(size).fill(1));
      const reads: Promise<Uint8Array>[] = [];
      const writes: Promise<void>[] = [];
      for (let value = 2; value < 8; value += 1) {
        writes.push(store.put(dir, 'hint', new Uint8Array(size + value).fill(value)));
        for (let n = 0; n < 4; n += 1) reads.push(store.get(dir, 'hint'));
      }
      for (const read of await Promise.all(reads)) {
        const value = read[0] ?? 0;
        equal(read.length, value === 1 ? size : size + value);
        check(
          read.every((byte) => byte === value),
          'bytes of two writes in one read',
        );
      }
      await Promise.all(writes);
    },
  },
  {
    name: 'putIfAbsent leaves what is there as it was',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      equal(await store.putIfAbsent(dir, 'a', bytes('first')), true);
      equal(await store.putIfAbsent(dir, 'a', bytes('second')), false);
      equal(text(await store.get(dir, 'a')), 'first');
      await store.delete(dir, 'a');
      equal(await store.putIfAbsent(dir, 'a', bytes('third')), true);
    },
  },
  {
    name: 'of many putIfAbsent exactly one wins',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      const other = await open();
      for (let round = 0; round < 5; round += 1) {
        const big = round === 4 ? 100_000 : 0;
        const tries = Array.from({ length: 16 }, (_, n) =>
          (n % 2 === 0 ? store : other).putIfAbsent(dir, `round-${round}`, bytes(`try ${n}${'x'.repeat(big)}`)),
        );
        const won = (await Promise.all(tries)).flatMap((isWon, n) => (isWon ? [n] : []));
        equal(won.length, 1);
        equal(text(await other.get(dir, `round-${round}`)).replace(/x+$/, ''), `try ${won[0]}`);
      }
    },
  },
  {
    name: 'paths that are not plain are refused',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      for (const path of ['', '/a', 'a/', 'a//b', '..', 'a/../b', './a', 'a\\b', 'a\nb', 'a\u0000', 'a\ud800']) {
        await fails('INVALID_INPUT', store.put(dir, path, bytes('x')));
        await fails('INVALID_INPUT', store.putIfAbsent(dir, path, bytes('x')));
        await fails('INVALID_INPUT', store.writer(dir, path));
        await fails('INVALID_INPUT', store.get(dir, path));
        if (path !== '') await fails('INVALID_INPUT', store.list(dir, path, {}));
      }
      equal(await paths(store, dir), []);
    },
  },
  {
    name: 'a streamed object is invisible before finish',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      for (const size of [10, 200_000]) {
        const path = `data/${size}.lance`;
        const writer = await store.writer(dir, path);
        await writer.write(pattern(0, size));
        equal(await store.head(dir, path), undefined);
        equal((await paths(store, dir)).includes(path), false);
        await fails('NOT_FOUND', store.get(dir, path));
        await writer.write(pattern(size, 7));
        equal(await writer.finish(), size + 7);
        same(await store.get(dir, path), pattern(0, size + 7));
        equal((await store.head(dir, path))?.sizeBytes, size + 7);
        await fails('CLOSED', writer.write(bytes('more')));
        await fails('CLOSED', writer.finish());
      }
      const empty = await store.writer(dir, 'data/empty.lance');
      equal(await empty.finish(), 0);
      equal((await store.get(dir, 'data/empty.lance')).length, 0);
    },
  },
  {
    name: 'a large object is written and read in pieces',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      const writer = await store.writer(dir, 'data/large.lance');
      const piece = 700_001;
      for (let n = 0; n < 8; n += 1) await writer.write(pattern(n * piece, piece));
      equal(await writer.finish(), 8 * piece);
      const ranges = [5 * piece - 3, 5 * piece + 4, 0, 5, 8 * piece - 2, 8 * piece];
      const read = await (await open()).getRanges(dir, 'data/large.lance', ranges);
      equal(
        read.map((part) => [...part]),
        [[...pattern(5 * piece - 3, 7)], [...pattern(0, 5)], [...pattern(8 * piece - 2, 2)]],
      );
    },
  },
  {
    name: 'a streamed object replaces what was there, at finish',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      await store.put(dir, 'a', bytes('old'));
      const writer = await store.writer(dir, 'a');
      await writer.write(pattern(0, 150_000));
      equal(text(await store.get(dir, 'a')), 'old');
      await writer.finish();
      same(await store.get(dir, 'a'), pattern(0, 150_000));
      await store.put(dir, 'a', bytes('small again'));
      equal(text(await store.get(dir, 'a')), 'small again');
    },
  },
  {
    name: 'abort leaves nothing',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      const before = await store.token(dir, 'data');
      for (const size of [10, 200_000]) {
        const writer = await store.writer(dir, 'data/a.lance');
        await writer.write(pattern(0, size));
        await writer.abort();
        await writer.abort();
        await fails('CLOSED', writer.finish());
      }
      equal(await paths(store, dir), []);
      equal((await store.list(dir, '', { shallow: true })).folders, []);
      equal(await store.token(dir, 'data'), before);
    },
  },
  {
    name: 'finish of a write that was cleaned away fails',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      const cleaner = await open();
      for (const size of [10, 200_000]) {
        const writer = await store.writer(dir, 'data/a.lance');
        await writer.write(pattern(0, size));
        await cleaner.delete(dir, 'data/a.lance');
        await fails('NOT_FOUND', writer.finish());
      }
      equal(await paths(store, dir), []);
    },
  },
  {
    name: 'a write that others finish side by side ends whole',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      const writers = await Promise.all([1, 2, 3, 4].map((n) => store.writer(dir, `data/${n}.lance`)));
      for (let round = 0; round < 5; round += 1) {
        await Promise.all(writers.map((writer, n) => writer.write(pattern(n * 1000 + round * 40_000, 40_000))));
      }
      equal(await Promise.all(writers.map((writer) => writer.finish())), [200_000, 200_000, 200_000, 200_000]);
      for (let n = 0; n < 4; n += 1) same(await store.get(dir, `data/${n + 1}.lance`), pattern(n * 1000, 200_000));
    },
  },
  {
    name: 'ranges come back in the order asked',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      await store.put(dir, 'small', pattern(0, 100));
      await store.put(dir, 'big', pattern(0, 500_000));
      for (const [path, size] of [
        ['small', 100],
        ['big', 500_000],
      ] as const) {
        const read = await store.getRanges(dir, path, [90, 95, 0, 3, 50, 50, size, size, 2, 4, size - 1, size]);
        equal(
          read.map((part) => [...part]),
          [[...pattern(90, 5)], [...pattern(0, 3)], [], [], [...pattern(2, 2)], [...pattern(size - 1, 1)]],
        );
        equal(await store.getRanges(dir, path, []), []);
        same((await store.getRanges(dir, path, [0, size]))[0] ?? bytes(''), pattern(0, size));
      }
    },
  },
  {
    name: 'ranges outside of the object are refused',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      await store.put(dir, 'small', pattern(0, 100));
      await store.put(dir, 'big', pattern(0, 500_000));
      for (const [path, size] of [
        ['small', 100],
        ['big', 500_000],
      ] as const) {
        const outside = [[0, size + 1], [size + 1, size + 1], [5, 4], [-1, 4], [0.5, 2], [0, NaN], [1], [0, 2 ** 53]];
        for (const ranges of outside) await fails('INVALID_INPUT', store.getRanges(dir, path, ranges));
        await fails('INVALID_INPUT', store.getRanges(dir, path, [0, 1, size, size + 1]));
      }
    },
  },
];
