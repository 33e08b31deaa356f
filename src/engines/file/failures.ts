import { IndeterminateError, SignalboxError, UnavailableError } from '../../base/errors.js'
import { DATABASE } from './folder.js'
import { UnclearCommitError } from './transactions.js'

/** How long an operation waits for the database, in milliseconds. */
export const PATIENCE = 10_000

/** The write of a commit to the disk, as in an error after "could not". */
export const SYNC = 'write a commit to the disk'

/** Reasons for an error, by the error codes of SQLite and of the system. */
const REASONS: Readonly<Record<string, string>> = {
  BUSY: `another process held the database for more than ${PATIENCE} ms`,
  FULL: 'the disk is full',
  READONLY: 'the database can not be written',
  CANTOPEN:
    'the database can not be opened: the folder is missing or may not be written, or too many files are open',
  NOTADB: `${DATABASE} is not a SQLite database`,
  CORRUPT: `${DATABASE} is damaged, or the disk can not read it`,
  EACCES: 'the folder may not be written',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'the path is not a folder',
  EEXIST: 'the path is a file, not a folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota of this user is used up',
  EMFILE: 'this process has too many open files',
  ENFILE: 'the system has too many open files',
}

/**
 * Returns the error of the API, which says what failed and why.
 * @param what the operation, as in an error after "could not": a `purposeText` or {@link SYNC}.
 */
export function explained(engine: string, what: string, cause: unknown): SignalboxError {
  if (cause instanceof SignalboxError) return cause
  const { code, message } = cause as { code?: string; message: string }
  const reason = (code === undefined ? undefined : REASONS[code]) ?? message
  const text = `could not ${what} on ${engine}: ${reason}`
  // The system reports a failed write only once. It stays unknown what was lost until the log is opened again.
  if (what === SYNC)
    return new IndeterminateError(`${text}; close the box and open it again`, { engine, cause })
  // A transaction that fails before its commit is rolled back.
  return cause instanceof UnclearCommitError
    ? new IndeterminateError(text, { engine, cause })
    : new UnavailableError(text, { engine, cause })
}
