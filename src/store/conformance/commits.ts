/** Tokens and commits. */
import { tableIn, commitOf, paths, bytes, text, equal, check, fails, MANIFEST, type ConformanceCase } from './scene';

export const COMMIT_CASES: readonly ConformanceCase[] = [
  {
    name: 'a token moves when an object appears or leaves, not when it is replaced',
    async run({ open, traits }) {
      const { store, dir } = await tableIn(await open());
      const other = await open();
      const empty = await store.token(dir, '_versions');
      await other.put(dir, '_versions/1', bytes('x'));
      const one = await store.token(dir, '_versions');
      check(one !== empty, 'the token did not move for an object that appeared');
      await store.put(dir, '_versions/1', bytes('replaced'));
      await store.put(dir, 'data/1', bytes('elsewhere'));
      await store.put(dir, '_versions/deeper/1', bytes('deeper'));
      await store.putIfAbsent(dir, '_versions/1', bytes('taken'));
      equal(await store.token(dir, '_versions'), one);
      const writer = await store.writer(dir, '_versions/2');
      await writer.write(bytes('x'));
      equal(await store.token(dir, '_versions'), one);
      await writer.finish();
      const two = await other.token(dir, '_versions');
      check(two !== one, 'the token did not move for a finished stream');
      await store.delete(dir, '_versions/2');
      const left = await store.token(dir, '_versions');
      check(left !== two, 'the token did not move for an object that left');
      equal(left !== one, traits.countsMoves);
      await store.delete(dir, '_versions/2');
      equal(await store.token(dir, '_versions'), left);
    },
  },
  {
    name: 'a commit makes its objects and its manifest visible together',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      await store.put(dir, 'data/1.lance', bytes('rows'));
      await store.put(dir, 'hint', bytes('old'));
      const request = await commitOf(store, dir, '_versions/2.manifest', {
        requires: ['data/1.lance', '_transactions/2'],
      });
      equal(await store.commit(request), { kind: 'committed' });
      equal(text(await store.get(dir, '_versions/2.manifest')), 'manifest');
      equal(text(await store.get(dir, '_transactions/2')), 'transaction');
      equal(text(await store.get(dir, 'hint')), 'new');
      check((await store.token(dir, '_versions')) !== request.token, 'the token did not move for a commit');
    },
  },
  {
    name: 'a commit that fails writes nothing',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      await store.put(dir, 'hint', bytes('old'));
      const path = '_versions/2.manifest';
      const good = await commitOf(store, dir, path);
      const before = await store.list(dir, '', {});
      equal(await store.commit({ ...good, publish: { path: MANIFEST, bytes: bytes('other') } }), { kind: 'exists' });
      equal(await store.commit({ ...good, token: `${good.token}-no` }), { kind: 'moved' });
      equal(await store.commit({ ...good, requires: ['hint', 'data/gone.lance'] }), {
        kind: 'missing',
        path: 'data/gone.lance',
      });
      equal(await store.commit({ ...good, dir: 'no such directory' }), { kind: 'gone' });
      await fails('INVALID_INPUT', store.commit({ ...good, objects: [{ path: '../x', bytes: bytes('x') }] }));
      equal(await store.list(dir, '', {}), before);
      equal(text(await store.get(dir, 'hint')), 'old');
      equal(text(await store.get(dir, MANIFEST)), 'manifest');
      equal(await store.commit(good), { kind: 'committed' });
    },
  },
  {
    name: 'a commit whose folder changed since the token is told so',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const second = await commitOf(store, dir, '_versions/2.manifest');
      const third = await commitOf(store, dir, '_versions/3.manifest');
      equal(await store.commit(second), { kind: 'committed' });
      equal(await store.commit(third), { kind: 'moved' });
      equal(await store.commit(second), { kind: 'exists' });
      // A manifest that left counts, too: what was read under it may be gone.
      const fresh = await commitOf(store, dir, '_versions/3.manifest');
      await store.delete(dir, MANIFEST);
      equal(await store.commit(fresh), { kind: 'moved' });
    },
  },
  {
    name: 'of commits that race exactly one takes each version',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const handles = [store, await open(), await open(), await open()];
      const landed: number[] = [];
      await Promise.all(
        handles.map(async (handle, writer) => {
          for (let done = 0; done < 5;) {
            const token = await handle.token(dir, '_versions');
            const count = (await handle.list(dir, '_versions', {})).objects.length;
            const path = `_versions/${count + 1}.manifest`;
            const note = bytes(`${writer}/${done}`);
            const objects = [{ path: `_transactions/${writer}-${done}`, bytes: note }];
            const outcome = await handle.commit({ dir, objects, publish: { path, bytes: note }, token, requires: [] });
            if (outcome.kind !== 'committed') {
              check(outcome.kind === 'exists' || outcome.kind === 'moved', `a race ended as ${outcome.kind}`);
              continue;
            }
            landed.push(count + 1);
            done += 1;
            equal(text(await handle.get(dir, path)), text(note));
          }
        }),
      );
      equal(
        landed.sort((a, b) => a - b),
        Array.from({ length: 20 }, (_, n) => n + 2),
      );
      equal((await paths(store, dir, '_transactions')).length, 20);
    },
  },
];
