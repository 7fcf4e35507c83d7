/** References, pins, and what a cleanup may take. */
import type { LeaseKind, RemoveRequest, Store } from '../store';
import { bytes, check, commitOf, equal, fails, NOW, pattern, paths, SOON, tableIn, text, MANIFEST } from './scene';
import type { ConformanceCase } from './scene';

const TAG = '_refs/tags/a.json';

/** A live table of versions 1 to 3, each with a file of 200,000 bytes and one of 4. */
async function historyIn(store: Store): Promise<{ store: Store; dir: string }> {
  const { dir } = await tableIn(store);
  for (const version of [1, 2, 3]) {
    await store.put(dir, `_versions/${version}.manifest`, bytes('manifest'));
    await store.put(dir, `data/${version}.lance`, pattern(0, 200_000));
    await store.put(dir, `_deletions/${version}.bin`, bytes('rows'));
  }
  return { store, dir };
}

async function removalOf(
  store: Store,
  dir: string,
  version: number,
  more: Partial<RemoveRequest> = {},
): Promise<RemoveRequest> {
  return {
    dir,
    versions: [version],
    manifests: [`_versions/${version}.manifest`],
    files: [`data/${version}.lance`, `_deletions/${version}.bin`, 'data/absent.lance'],
    pins: await store.pins(dir),
    folder: '_versions',
    token: await store.token(dir, '_versions'),
    needsNoWriter: false,
    nowMs: NOW,
    ...more,
  };
}

async function lease(store: Store, dir: string, kind: LeaseKind, version: number) {
  const manifest = `_versions/${version}.manifest`;
  const outcome = await store.lease({ dir, kind, version, manifest, nowMs: NOW, expiresMs: SOON });
  check(outcome.kind === 'taken', `the lease was not taken: ${outcome.kind}`);
  return outcome;
}

const REMOVED = { kind: 'removed', manifests: 1, bytes: 200_012, busy: 0 };

export const REMOVAL_CASES: readonly ConformanceCase[] = [
  {
    name: 'a reference needs the manifest that it refers to, and finds what it expects at its path',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const request = { dir, path: TAG, bytes: bytes('1'), manifest: MANIFEST, mode: 'create' } as const;
      equal(await store.putRef({ ...request, manifest: '_versions/2.manifest' }), 'missing');
      equal(await store.putRef({ ...request, mode: 'replace' }), 'absent');
      equal(await store.putRef({ ...request, dir: 'no such directory' }), 'gone');
      await fails('INVALID_INPUT', store.putRef({ ...request, path: '../a' }));
      equal(await paths(store, dir), [MANIFEST]);
      equal(await store.putRef(request), 'written');
      equal(await (await open()).putRef({ ...request, bytes: bytes('2') }), 'exists');
      equal(text(await store.get(dir, TAG)), '1');
      equal(await store.putRef({ ...request, bytes: bytes('3'), mode: 'replace' }), 'written');
      equal(text(await store.get(dir, TAG)), '3');
      await store.dropDir(dir);
      equal(await store.putRef({ ...request, path: '_refs/tags/b.json' }), 'gone');
    },
  },
  {
    name: 'of references created at once under one name exactly one is written',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const handles = [store, await open(), await open()];
      const outcomes = await Promise.all(
        handles.map((handle, n) =>
          handle.putRef({ dir, path: TAG, bytes: bytes(`${n}`), manifest: MANIFEST, mode: 'create' }),
        ),
      );
      equal([...outcomes].sort(), ['exists', 'exists', 'written']);
      equal(text(await store.get(dir, TAG)), String(outcomes.indexOf('written')));
    },
  },
  {
    name: 'pins move with every change of a reference, and with a commit that replaces',
    async run({ open }) {
      const { store, dir } = await tableIn(await open());
      const other = await open();
      let before = await store.pins(dir);
      const moves = async (what: string, change: Promise<unknown>) => {
        await change;
        const after = await store.pins(dir);
        check(after !== before, `the pins did not move for a reference ${what}`);
        equal(await other.pins(dir), after);
        before = after;
      };
      const request = { dir, path: TAG, manifest: MANIFEST } as const;
      await moves('created', other.putRef({ ...request, bytes: bytes('1'), mode: 'create' }));
      await moves('replaced', other.putRef({ ...request, bytes: bytes('2'), mode: 'replace' }));
      await moves('put', store.put(dir, '_refs/branches/b.json', bytes('b')));
      await moves('put again', store.put(dir, '_refs/branches/b.json', bytes('c')));
      await moves('put if absent', store.putIfAbsent(dir, '_refs/tags/c.json', bytes('c')));
      await moves('deleted', store.delete(dir, TAG));
      const commit = await commitOf(store, dir, '_versions/2.manifest', { replaces: 2 });
      equal((await lease(store, dir, 'scan', 1)).replaced, 0);
      equal(await store.commit({ ...commit, token: 'stale', replaces: 9 }), { kind: 'moved' });
      equal((await lease(store, dir, 'scan', 1)).replaced, 0);
      await moves('outlived by a replacement', store.commit(commit));
      equal((await lease(other, dir, 'scan', 1)).replaced, 2);
      equal(await store.commit(await commitOf(store, dir, '_versions/3.manifest')), { kind: 'committed' });
      await store.put(dir, 'data/1.lance', bytes('x'));
      await lease(store, dir, 'write', 1);
      equal(await store.pins(dir), before);
      equal(await store.renameDir(dir, 't', 'u'), 'renamed');
      equal(await store.pins(dir), before);
      equal((await lease(other, dir, 'scan', 1)).replaced, 2);
      await fails('TABLE_NOT_FOUND', store.pins('no such directory'));
    },
  },
  {
    name: 'removing takes manifests and files, and tells what went',
    async run({ open }) {
      const { store, dir } = await historyIn(await open());
      const { dir: bystander } = await tableIn(store, 'bystander');
      const request = await removalOf(store, dir, 1);
      equal(await (await open()).remove(request), REMOVED);
      equal(await paths(store, dir, '_versions'), ['_versions/2.manifest', '_versions/3.manifest']);
      equal(await paths(store, dir, 'data'), ['data/2.lance', 'data/3.lance']);
      await fails('NOT_FOUND', store.get(dir, 'data/1.lance'));
      check((await store.token(dir, '_versions')) !== request.token, 'the token did not move');
      const again = await removalOf(store, dir, 1);
      equal(await store.remove(again), { kind: 'removed', manifests: 0, bytes: 0, busy: 0 });
      equal(await store.token(dir, '_versions'), again.token);
      equal(await paths(store, bystander), [MANIFEST]);
      await fails('INVALID_INPUT', store.remove({ ...request, files: ['../x'] }));
      equal(await store.remove({ ...request, dir: 'no such directory' }), { kind: 'gone' });
      await store.dropDir(dir);
      equal(await store.remove(again), { kind: 'gone' });
    },
  },
  {
    name: 'a live lease keeps its version, a writer also what is newer',
    async run({ open }) {
      const { store, dir } = await historyIn(await open());
      const other = await open();
      const before = await store.list(dir, '', {});
      const scan = await lease(other, dir, 'scan', 1);
      const write = await lease(other, dir, 'write', 2);
      const { dir: elsewhere } = await tableIn(store, 'elsewhere');
      await lease(other, elsewhere, 'write', 1);
      const live = await store.leases(dir, SOON - 1);
      equal(
        [...live].sort((a, b) => a.version - b.version),
        [
          { kind: 'scan', version: 1 },
          { kind: 'write', version: 2 },
        ],
      );
      for (const version of [1, 2, 3])
        equal(await store.remove(await removalOf(store, dir, version)), { kind: 'moved' });
      const alone = await removalOf(store, dir, 1, { versions: [], manifests: [], needsNoWriter: true });
      equal(await store.remove(alone), { kind: 'contended' });
      equal(await store.list(dir, '', {}), before);
      await other.release(write.id);
      equal(await store.remove(await removalOf(store, dir, 3)), REMOVED);
      equal(await store.remove(await removalOf(store, dir, 1, { nowMs: SOON - 1 })), { kind: 'moved' });
      equal(await store.remove(await removalOf(store, dir, 1, { nowMs: SOON })), REMOVED);
      equal(await store.leases(dir, SOON), []);
      equal(await other.renew(scan.id, NOW, SOON), false);
    },
  },
  {
    name: 'a cleanup whose plan is old removes nothing',
    async run({ open }) {
      const { store, dir } = await historyIn(await open());
      const other = await open();
      const early = await removalOf(store, dir, 1);
      await other.put(dir, '_versions/4.manifest', bytes('manifest'));
      equal(await store.remove(early), { kind: 'moved' });
      const pinned = await removalOf(store, dir, 1);
      await other.put(dir, TAG, bytes('{}'));
      equal(await store.remove(pinned), { kind: 'moved' });
      equal((await paths(store, dir, 'data')).length, 3);
      // Without a token only the pins count.
      const { token: _, ...verified } = { ...early, pins: await store.pins(dir) };
      equal(await store.remove(verified), REMOVED);
    },
  },
];
