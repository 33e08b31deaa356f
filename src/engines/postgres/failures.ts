import { IndeterminateError, SignalboxError, UnavailableError } from '../../base/errors.js'
import { SqlError } from './clients/sql-client.js'

/** Reasons for failures by their SQLSTATEs, some with a fix. */
const REASONS: Readonly<Record<string, string>> = {
  '25006': 'the server is a standby, or read-only',
  '28P01': 'the password is wrong',
  '28000': 'the user may not connect',
  '3D000': 'the database does not exist',
  '42501': 'the user lacks rights; `signalbox schema postgres` prints the schema and the required rights',
  '53100': 'the disk is full',
  '53300': 'the server has too many connections',
  '55P03': 'another transaction has locked the row',
  '57P03': 'the server is starting or stopping',
}

/** Returns the error of the public API for a failure. @param what the action that failed, to follow "could not". */
export function explained(engine: string, what: string, cause: unknown): SignalboxError {
  if (cause instanceof SignalboxError) return cause
  const { message } = cause as Error
  const reason = (cause instanceof SqlError && REASONS[cause.code!]) || message
  const text = `could not ${what} on ${engine}: ${reason}`
  const isUnclear = cause instanceof SqlError && cause.isUnclear
  return isUnclear
    ? new IndeterminateError(`${text}; it may have been carried out`, { engine, cause })
    : new UnavailableError(text, { engine, cause })
}
