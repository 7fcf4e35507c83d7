/** Errors that every store gives in the same words. */
import { LanceError } from '../errors';

export function noDirectory(dir: string): LanceError {
  return new LanceError('TABLE_NOT_FOUND', `the table's directory ${dir} is not there any more`, { dir });
}

export function writerEnded(path: string): LanceError {
  return new LanceError('CLOSED', `the writer of ${path} was finished or aborted before`, { path });
}

/** Somebody deleted the path while it was being written: what was streamed must not come to life again. */
export function writeTakenAway(path: string): LanceError {
  return new LanceError('NOT_FOUND', `the unfinished ${path} was cleaned away`, { path });
}

export function noObject(path: string): LanceError {
  return new LanceError('NOT_FOUND', `file ${path} does not exist`, { path });
}

export function storeClosed(): LanceError {
  return new LanceError('CLOSED', 'the store is closed');
}
