/** Directories, leases, turns, closing. */
import type { Store } from '../store';
import {
  tableIn,
  commitOf,
  leaseOf,
  taken,
  paths,
  bytes,
  text,
  pattern,
  same,
  equal,
  check,
  fails,
  NOW,
  SOON,
  MANIFEST,
  type ConformanceCase,
} from './scene';

export const DIRECTORY_CASES: readonly ConformanceCase[] = [
  {
    name: 'a directory takes objects and commits before it is published',
    async run({ open }) {
      const store = await open();
      const dir = await store.createDir(NOW, SOON);
      await store.put(dir, 'data/1.lance', bytes('rows'));
      equal(await store.commit(await commitOf(store, dir, MANIFEST)), { kind: 'committed' });
      equal(await store.tables(), []);
      equal(await store.lookup('t'), undefined);
      equal(await store.publishDir('t', dir), 'published');
      equal(await store.lookup('t'), dir);
      equal(await (await open()).tables(), [{ name: 't', id: dir }]);
      equal(text(await store.get(dir, 'data/1.lance')), 'rows');
      equal(text(await store.get(dir, MANIFEST)), 'manifest');
    },
  },
  {
    name: 'a name belongs to one directory',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const other = await store.createDir(NOW, SOON);
      equal(await store.publishDir('t', other), 'exists');
      equal(await store.publishDir('u', other), 'published');
      equal(await store.renameDir(other, 'u', 't'), 'exists');
      equal(await store.lookup('t'), dir);
      equal(await store.lookup('u'), other);
      equal(await store.publishDir('v', 'no such directory'), 'gone');
    },
  },
  {
    name: 'of directories published under one name exactly one wins',
    async run({ open }) {
      const handles = [await open(), await open()];
      const [store] = handles as [Store];
      const dirs = await Promise.all(Array.from({ length: 8 }, () => store.createDir(NOW, SOON)));
      await Promise.all(dirs.map((dir) => store.put(dir, MANIFEST, bytes(dir))));
      const outcomes = await Promise.all(dirs.map((dir, n) => (handles[n % 2] ?? store).publishDir('contended', dir)));
      equal(outcomes.filter((outcome) => outcome === 'published').length, 1);
      const winner = dirs[outcomes.indexOf('published')] ?? '';
      equal(await store.lookup('contended'), winner);
      equal(text(await store.get(winner, MANIFEST)), winner);
    },
  },
  {
    name: 'tables are listed in byte order of their names',
    async run({ open }) {
      const store = await open();
      for (const name of ['b', 'a-b', 'a', 'a.b', 'B', '\u{1f600}', '\uff5e']) await tableIn(store, name);
      equal(
        (await store.tables()).map(({ name }) => name),
        ['B', 'a', 'a-b', 'a.b', 'b', '\uff5e', '\u{1f600}'],
      );
    },
  },
  {
    name: 'rename moves the name and keeps the directory',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const other = await open();
      await other.put(dir, 'data/1', bytes('x'));
      equal(await store.renameDir(dir, 't', 'u'), 'renamed');
      equal(await store.renameDir(dir, 't', 'u'), 'renamed');
      equal(await store.renameDir(dir, 't', 'v'), 'gone');
      equal(await store.lookup('t'), undefined);
      equal(await other.lookup('u'), dir);
      await other.put(dir, 'data/2', bytes('y'));
      equal(await paths(store, dir, 'data'), ['data/1', 'data/2']);
      equal(await store.publishDir('t', dir), 'published');
      equal(await store.lookup('t'), undefined);
    },
  },
  {
    name: 'a dropped directory takes no writes',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const other = await open();
      await other.put(dir, 'data/1', bytes('x'));
      const request = await commitOf(store, dir, '_versions/2.manifest');
      const small = await other.writer(dir, 'data/small');
      const big = await other.writer(dir, 'data/big');
      await big.write(pattern(0, 200_000));
      await store.dropDir(dir);
      await store.dropDir(dir);
      equal(await store.lookup('t'), undefined);
      await fails('TABLE_NOT_FOUND', other.put(dir, 'data/2', bytes('x')));
      await fails('TABLE_NOT_FOUND', other.put(dir, 'data/3', pattern(0, 200_000)));
      await fails('TABLE_NOT_FOUND', other.putIfAbsent(dir, 'data/2', bytes('x')));
      await fails('TABLE_NOT_FOUND', other.writer(dir, 'data/2'));
      await fails('TABLE_NOT_FOUND', small.finish());
      await fails('TABLE_NOT_FOUND', big.finish());
      equal(await other.commit(request), { kind: 'gone' });
      equal(await other.lease(leaseOf(dir)), { kind: 'gone' });
      equal(await store.renameDir(dir, 't', 'u'), 'gone');
      equal(await store.publishDir('t', dir), 'published');
      equal(await store.lookup('t'), undefined);
    },
  },
  {
    name: 'a table made again under the same name is another directory',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const other = await open();
      await other.put(dir, 'data/old', bytes('x'));
      await store.dropDir(dir);
      const { dir: again } = await tableIn(store);
      check(again !== dir, 'an id was given twice');
      equal(await other.lookup('t'), again);
      equal(await paths(other, again), [MANIFEST]);
      await fails('TABLE_NOT_FOUND', other.put(dir, 'data/1', bytes('x')));
      await store.dropDir(dir);
      equal(await other.lookup('t'), again);
      await store.sweep(NOW);
      equal(text(await other.get(again, MANIFEST)), 'manifest');
      await fails('NOT_FOUND', other.get(dir, MANIFEST));
      equal(await paths(other, dir), []);
      equal(await store.publishDir('v', dir), 'gone');
      const ids = new Set([dir, again]);
      for (let n = 0; n < 5; n += 1) {
        const { dir: next } = await tableIn(store, 'again');
        ids.add(next);
        await store.dropDir(next);
        await store.sweep(NOW);
      }
      equal(ids.size, 7);
    },
  },
  {
    name: 'a directory in the making goes when its lease ran out',
    async run({ open }) {
      const store = await open();
      const dir = await store.createDir(NOW, SOON);
      await store.put(dir, 'data/1', pattern(0, 200_000));
      await store.sweep(SOON - 1);
      equal(await paths(store, dir), ['data/1']);
      equal(await store.renew(dir, SOON - 1, SOON + 1000), true);
      await store.sweep(SOON);
      equal(await paths(store, dir), ['data/1']);
      equal(await store.renew(dir, SOON + 1000, SOON + 2000), false);
      await store.sweep(SOON + 1000);
      equal(await paths(store, dir), []);
      equal(await store.publishDir('t', dir), 'gone');
      await fails('TABLE_NOT_FOUND', store.put(dir, 'data/1', bytes('x')));
      await fails('TABLE_NOT_FOUND', store.token(dir, 'data'));
      equal(await store.renew(dir, SOON, SOON + 5000), false);
    },
  },
  {
    name: 'a live lease keeps the files of a dropped directory',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      await store.put(dir, 'data/1', pattern(0, 200_000));
      const other = await open();
      const lease = await taken(other, dir);
      await store.dropDir(dir);
      await store.sweep(NOW);
      same(await other.get(dir, 'data/1'), pattern(0, 200_000));
      equal(await paths(other, dir), [MANIFEST, 'data/1']);
      equal(await other.renew(lease, NOW, SOON + 1000), true);
      await store.sweep(SOON);
      equal(await paths(other, dir), [MANIFEST, 'data/1']);
      await store.sweep(SOON + 1000);
      equal(await paths(other, dir), []);
      equal(await other.renew(lease, NOW, SOON), false);
    },
  },
  {
    name: 'a lease needs the manifest, and ends for good',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      equal(await store.lease({ ...leaseOf(dir), manifest: '_versions/2.manifest' }), { kind: 'missing' });
      equal(await store.lease(leaseOf('no such directory')), { kind: 'gone' });
      const unpublished = await store.createDir(NOW, SOON);
      await store.put(unpublished, MANIFEST, bytes('manifest'));
      equal(await store.lease(leaseOf(unpublished)), { kind: 'gone' });
      const first = await taken(store, dir);
      const second = await taken(store, dir);
      check(first !== second, 'two leases of one id');
      equal(await store.renew(first, SOON - 1, SOON + 1000), true);
      equal(await store.renew(first, SOON, SOON + 1000), true);
      equal(await store.renew(second, SOON, SOON + 1000), false);
      equal(await store.renew(second, NOW, SOON), false);
      await store.release(first);
      await store.release(first);
      equal(await store.renew(first, SOON, SOON + 1000), false);
      equal(await store.renew('no such lease', NOW, SOON), false);
    },
  },
  {
    name: 'a released lease keeps nothing',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const lease = await taken(store, dir);
      await store.dropDir(dir);
      await store.release(lease);
      await store.sweep(NOW);
      equal(await paths(store, dir), []);
    },
  },
  {
    name: 'sweep leaves live tables and writes under way alone',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const other = await open();
      const writer = await other.writer(dir, 'data/1');
      await writer.write(pattern(0, 200_000));
      await store.sweep(SOON * 2);
      await writer.write(pattern(200_000, 10));
      equal(await writer.finish(), 200_010);
      await store.sweep(SOON * 2);
      same(await other.get(dir, 'data/1'), pattern(0, 200_010));
      equal(await store.tables(), [{ name: 't', id: dir }]);
    },
  },
  {
    name: 'turns are given in the order asked, and waiting is bounded',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const { dir: otherDir } = await tableIn(store, 'other');
      const first = await store.turn(dir, 1000);
      check(first !== undefined, 'a free turn was not given');
      equal(await store.turn(dir, 5), undefined);
      const elsewhere = await store.turn(otherDir, 1000);
      check(elsewhere !== undefined, 'a turn on another directory was not given');
      elsewhere.release();
      const order: string[] = [];
      const waiting = ['second', 'third', 'fourth'].map(async (name) => {
        const turn = await store.turn(dir, 10_000);
        check(turn !== undefined, `${name} waited in vain`);
        order.push(name);
        turn.release();
        turn.release();
      });
      equal(order, []);
      first.release();
      await Promise.all(waiting);
      equal(order, ['second', 'third', 'fourth']);
    },
  },
  {
    name: 'an answer that was lost does not make a second deed',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const request = await commitOf(store, dir, '_versions/2.manifest');
      equal(await store.commit(request), { kind: 'committed' });
      equal(await store.commit(request), { kind: 'exists' });
      const next = await store.createDir(NOW, SOON);
      equal(await store.publishDir('u', next), 'published');
      equal(await store.publishDir('u', next), 'published');
      await store.renameDir(next, 'u', 'v');
      const { dir: stranger } = await tableIn(store, 'u');
      equal(await store.publishDir('u', next), 'published');
      equal(await store.renameDir(next, 'u', 'v'), 'renamed');
      await store.dropDir(next);
      equal(await store.publishDir('u', next), 'published');
      await store.dropDir(next);
      equal(await store.lookup('u'), stranger);
      equal(
        (await store.tables()).map(({ name }) => name),
        ['t', 'u'],
      );
    },
  },
  {
    name: 'what was written is there after close and reopen',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      await store.put(dir, 'small', bytes('x'));
      await store.put(dir, 'big', pattern(0, 200_000));
      const token = await store.token(dir, '_versions');
      await store.close();
      await store.close();
      await fails('CLOSED', store.get(dir, 'small'));
      await fails('CLOSED', store.put(dir, 'small', bytes('y')));
      const again = await open();
      equal(await again.lookup('t'), dir);
      equal(text(await again.get(dir, 'small')), 'x');
      same(await again.get(dir, 'big'), pattern(0, 200_000));
      equal(await again.token(dir, '_versions'), token);
    },
  },
  {
    name: 'a handle works on when another one is closed',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const other = await open();
      await other.put(dir, 'a', pattern(0, 200_000));
      same(await store.get(dir, 'a'), pattern(0, 200_000));
      await other.close();
      same(await store.get(dir, 'a'), pattern(0, 200_000));
      await store.put(dir, 'b', bytes('x'));
      equal(text(await store.get(dir, 'b')), 'x');
    },
  },
];
