/** Listings and deletes. */
import { emptyIn, paths, objectPaths, bytes, pattern, same, equal, check, fails, type ConformanceCase } from './scene';

export const LISTING_CASES: readonly ConformanceCase[] = [
  {
    name: 'list is in byte order of the path',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      // By UTF-16 code units the last two stand the other way round.
      const sorted = [
        'a',
        'a-b/x',
        'a.b',
        'a0',
        'aB',
        'ab',
        'data/1',
        'data/10',
        'data/2',
        'z',
        '\u00e9',
        '\uff5e',
        '\u{1f600}',
      ];
      for (const path of [...sorted].reverse()) await store.put(dir, path, bytes(path));
      equal(await paths(store, dir), sorted);
      equal(await paths(store, dir, 'data'), ['data/1', 'data/10', 'data/2']);
      equal(await paths(store, dir, 'dat'), []);
      equal(await paths(store, dir, 'data/1'), []);
      const all = await store.list(dir, '', {});
      equal(all.folders, []);
      equal(
        all.objects.map(({ sizeBytes }) => sizeBytes),
        sorted.map((path) => bytes(path).length),
      );
      check(
        all.objects.every(({ modifiedMs }) => Number.isInteger(modifiedMs) && modifiedMs > 0),
        'a time is missing',
      );
    },
  },
  {
    name: 'list goes on after a path, up to a limit',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      for (const path of [
        '_versions/1',
        '_versions/2',
        '_versions/3',
        '_versions/\uff5e',
        '_versions/\u{1f600}',
        'x',
      ]) {
        await store.put(dir, path, bytes(path));
      }
      equal(await paths(store, dir, '_versions', { after: '_versions/2' }), [
        '_versions/3',
        '_versions/\uff5e',
        '_versions/\u{1f600}',
      ]);
      equal(await paths(store, dir, '_versions', { after: '_versions/2', limit: 1 }), ['_versions/3']);
      equal(await paths(store, dir, '_versions', { after: '_versions/\uff5e' }), ['_versions/\u{1f600}']);
      equal(
        await paths(store, dir, '_versions', { after: '_versions/25' }),
        await paths(store, dir, '_versions', { after: '_versions/2' }),
      );
      equal(await paths(store, dir, '_versions', { after: 'x' }), []);
      equal(await paths(store, dir, '_versions', { after: '_a', limit: 2 }), ['_versions/1', '_versions/2']);
      equal(await paths(store, dir, '', { limit: 0 }), []);
      equal(await paths(store, dir, '', { limit: 100 }).then((all) => all.length), 6);
    },
  },
  {
    name: 'a shallow list folds what is deeper into folders',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      for (const path of [
        'a/x',
        'a/y/z',
        'a-b/x',
        'b',
        '_indices/1/index.idx',
        '_indices/2/index.idx',
        '_indices/top',
      ]) {
        await store.put(dir, path, bytes(path));
      }
      const root = await store.list(dir, '', { shallow: true });
      equal(objectPaths(root), ['b']);
      equal(root.folders, ['_indices', 'a', 'a-b']);
      const inside = await store.list(dir, '_indices', { shallow: true });
      equal(objectPaths(inside), ['_indices/top']);
      equal(inside.folders, ['_indices/1', '_indices/2']);
      const later = await store.list(dir, '', { shallow: true, after: 'a-b/x' });
      equal(objectPaths(later), ['b']);
      equal(later.folders, ['a']);
      const limited = await store.list(dir, '', { shallow: true, limit: 1 });
      equal(objectPaths(limited), ['b']);
    },
  },
  {
    name: 'a shallow list of many objects is whole',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      const puts: Promise<void>[] = [];
      for (let n = 0; n < 300; n += 1) puts.push(store.put(dir, `data/${String(n).padStart(4, '0')}`, bytes('x')));
      for (let n = 0; n < 5; n += 1) puts.push(store.put(dir, `z${n}`, bytes('x')));
      await Promise.all(puts);
      const root = await store.list(dir, '', { shallow: true });
      equal(root.folders, ['data']);
      equal(objectPaths(root), ['z0', 'z1', 'z2', 'z3', 'z4']);
      equal((await store.list(dir, 'data', { shallow: true })).objects.length, 300);
      equal((await store.list(dir, '', {})).objects.length, 305);
      equal(await paths(store, dir, '', { after: 'data/0298' }), ['data/0299', 'z0', 'z1', 'z2', 'z3', 'z4']);
    },
  },
  {
    name: 'list of another handle sees every write that resolved',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      const other = await open();
      for (let n = 0; n < 10; n += 1) {
        await store.put(dir, `data/${n}`, bytes('x'));
        equal((await paths(other, dir, 'data')).length, n + 1);
        const writer = await other.writer(dir, `streamed/${n}`);
        await writer.write(bytes('y'));
        await writer.finish();
        equal((await paths(store, dir, 'streamed')).length, n + 1);
      }
    },
  },
  {
    name: 'delete takes an object away once and for all',
    async run({ open }) {
      const { store, dir } = await emptyIn(await open());
      await store.put(dir, 'a/small', bytes('x'));
      await store.put(dir, 'a/big', pattern(0, 200_000));
      same(await store.get(dir, 'a/big'), pattern(0, 200_000));
      await store.delete(dir, 'a/small');
      await store.delete(dir, 'a/big');
      equal(await store.delete(dir, 'a/small'), 'deleted');
      equal(await store.delete(dir, 'never/there'), 'deleted');
      equal(await paths(store, dir), []);
      equal((await store.list(dir, '', { shallow: true })).folders, []);
      await fails('NOT_FOUND', store.get(dir, 'a/big'));
      equal(await store.head(dir, 'a/small'), undefined);
    },
  },
];
