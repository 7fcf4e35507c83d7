/** What stands against a cleanup: decided the same way by every store, within its transaction. */
import { isBelow } from './path';
import type { LiveLease, RemoveOutcome, RemoveRequest } from './store';

/** The folder of references to versions: what changes below it moves the pins. */
const REFS_FOLDER = '_refs';

export function isReference(path: string): boolean {
  return isBelow(path, REFS_FOLDER);
}

/** Why live leases forbid what is asked; `undefined` when they don't. */
export function leaseRefusal(request: RemoveRequest, live: readonly LiveLease[]): RemoveOutcome | undefined {
  if (request.needsNoWriter && live.some(({ kind }) => kind === 'write')) return { kind: 'contended' };
  const keeps = ({ kind, version }: LiveLease, other: number) =>
    version === other || (kind === 'write' && version < other);
  const isLeased = request.versions.some((version) => live.some((lease) => keeps(lease, version)));
  return isLeased ? { kind: 'moved' } : undefined;
}
