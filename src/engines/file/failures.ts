import { IndeterminateError, SignalboxError, UnavailableError } from '../../errors.js'
import { SqliteError } from './driver.js'
import { DATABASE } from './folder.js'

/** How long an operation waits for the database: milliseconds. */
export const PATIENCE = 10_000

/** What an error code of SQLite or of the system means here. */
const REASONS: Readonly<Record<string, string>> = {
  BUSY: `another process held the database for more than ${PATIENCE} ms`,
  FULL: 'the disk is full',
  READONLY: 'the database can not be written',
  CANTOPEN: 'the database can not be opened; is the folder there, and may it be written?',
  NOTADB: `${DATABASE} is no SQLite database`,
  CORRUPT: `${DATABASE} is damaged`,
  EACCES: 'the folder may not be written',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'the path is not a folder',
  EEXIST: 'the path is a file, not a folder',
  ENOSPC: 'the disk is full',
}

/**
 * The error of the API that says what failed and why.
 * @param what the name of an operation, `open` or `put on disk`.
 */
export function explained(engine: string, what: string, cause: unknown): SignalboxError {
  if (cause instanceof SignalboxError) return cause
  const { code, message } = cause as { code?: string; message: string }
  const reason = (code === undefined ? undefined : REASONS[code]) ?? message
  const text = `${what} failed on ${engine}: ${reason}`
  // A transaction that fails is rolled back. Only a failure between the log and the disk leaves it unclear.
  const isUnclear = what === 'put on disk' || (cause instanceof SqliteError && cause.code === 'IOERR')
  return isUnclear
    ? new IndeterminateError(text, { engine, cause })
    : new UnavailableError(text, { engine, cause })
}
