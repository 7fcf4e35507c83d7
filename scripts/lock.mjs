// A lock file with its owner's process number: one set-up at a time.

import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';

const beatMs = 5_000;
/** A lock whose owner has not touched it for this long is left over from a process that died. */
const staleMs = 60_000;

/**
 * Take the lock file, waiting for the process that has it.
 *
 * @param {string} lockFile
 * @param {(owner: number) => void} onWait called once when another process has it
 * @returns {Promise<() => void>} gives it back
 */
export async function lock(lockFile, onWait) {
  const mine = `${lockFile}.${process.pid}`;
  const drop = () => rmSync(mine, { force: true });
  process.once('exit', drop);
  // Linked, not created: the lock never exists without its owner's number in it.
  writeFileSync(mine, String(process.pid));
  try {
    let isSaid = false;
    while (!tryLink(mine, lockFile)) {
      const owner = lockOwner(lockFile);
      if (owner !== undefined && isStale(lockFile, owner)) {
        breakLock(lockFile, owner);
        continue;
      }
      if (owner !== undefined && !isSaid) onWait(owner);
      isSaid ||= owner !== undefined;
      await new Promise((resolve) => setTimeout(resolve, 500));
      // The lock is this very file under another name: after a long wait it must not be born stale.
      utimesSync(mine, new Date(), new Date());
    }
  } finally {
    process.off('exit', drop);
    drop();
  }
  const beat = setInterval(() => {
    try {
      utimesSync(lockFile, new Date(), new Date());
    } catch {
      // Removed by hand: nothing to keep alive.
    }
  }, beatMs);
  beat.unref();
  const unlock = () => {
    clearInterval(beat);
    process.off('exit', unlock);
    if (lockOwner(lockFile) === process.pid) rmSync(lockFile, { force: true });
  };
  process.once('exit', unlock);
  return unlock;
}

function tryLink(from, to) {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function lockOwner(lockFile) {
  try {
    return Number(readFileSync(lockFile, 'utf8'));
  } catch {
    return undefined;
  }
}

function isStale(lockFile, owner) {
  const touched = statSync(lockFile, { throwIfNoEntry: false })?.mtimeMs;
  if (touched !== undefined && Date.now() - touched > staleMs) return true;
  try {
    process.kill(owner, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

/** Move a dead owner's lock away. Should another process have replaced it meanwhile, what was moved is put back. */
function breakLock(lockFile, owner) {
  const aside = `${lockFile}.${process.pid}.stale`;
  try {
    renameSync(lockFile, aside);
  } catch {
    return;
  }
  if (Number(readFileSync(aside, 'utf8')) !== owner) tryLink(aside, lockFile);
  rmSync(aside, { force: true });
}
