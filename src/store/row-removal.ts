/** A cleanup's step in a store of rows. */
import type { Rows, Transaction } from './database';
import { bury, liveLeases, noteMoves, objectKey } from './object-rows';
import { leaseRefusal } from './removal';
import type { RemoveOutcome, RemoveRequest } from './store';

/** What a cleanup took: the rows as they were. */
export interface Taken {
  readonly objects: Rows['meta'][];
  readonly manifests: number;
}

/** Takes what a cleanup asks for, unless something stands against it. `earlier`: what an earlier run of this same work took, if it did. */
export async function takeRows(
  rows: Transaction,
  { dir, manifests, files, ...request }: RemoveRequest,
  earlier: Taken | undefined,
): Promise<Taken | RemoveOutcome> {
  const paths = [...manifests, ...files];
  const [row, live, count, ...found] = await Promise.all([
    rows.get('dirs', dir),
    liveLeases(rows, dir, request.nowMs),
    rows.get('tokens', objectKey(dir, request.folder ?? '')),
    ...paths.map((path) => rows.get('meta', objectKey(dir, path))),
  ]);
  if (row?.state !== 'live') return { kind: 'gone' };
  const objects = found.filter((meta) => meta !== undefined);
  if (earlier !== undefined && objects.length === 0) return earlier;
  const refusal = leaseRefusal({ dir, manifests, files, ...request }, live);
  if (refusal !== undefined) return refusal;
  const hasMoved = request.token !== undefined && String(count ?? 0) !== request.token;
  if (String(row.pins ?? 0) !== request.pins || hasMoved) return { kind: 'moved' };
  for (const { path } of objects) {
    rows.delete('meta', objectKey(dir, path));
    rows.delete('body', objectKey(dir, path));
  }
  bury(rows, objects);
  await noteMoves(
    rows,
    dir,
    objects.map(({ path }) => path),
  );
  return { objects, manifests: found.slice(0, manifests.length).filter((meta) => meta !== undefined).length };
}
