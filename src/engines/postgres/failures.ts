import { IndeterminateError, SignalboxError, UnavailableError } from '../../errors.js'
import { SqlError } from './clients/sql-client.js'

/** What a SQLSTATE means here, and what to do. */
const REASONS: Readonly<Record<string, string>> = {
  '25006': 'the server is a standby, or read-only',
  '28P01': 'the password is wrong',
  '28000': 'the user may not connect',
  '3D000': 'there is no such database',
  '42501':
    'the user lacks rights; `signalbox schema postgres` prints the schema and the rights that are needed',
  '53100': 'the disk is full',
  '53300': 'the server has too many connections',
  '55P03': 'a transaction elsewhere holds the row',
  '57P03': 'the server is starting or stopping',
}

/** The error of the API that says what failed and why. @param what the name of an operation. */
export function explained(engine: string, what: string, cause: unknown): SignalboxError {
  if (cause instanceof SignalboxError) return cause
  const { message } = cause as Error
  const reason = (cause instanceof SqlError && REASONS[cause.code!]) || message
  const text = `${what} failed on ${engine}: ${reason}`
  const isUnclear = cause instanceof SqlError && cause.isUnclear
  return isUnclear
    ? new IndeterminateError(`${text}; it may have been carried out`, { engine, cause })
    : new UnavailableError(text, { engine, cause })
}
