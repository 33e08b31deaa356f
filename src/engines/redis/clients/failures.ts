import { IndeterminateError, SignalboxError, UnavailableError } from '../../../base/errors.js'
import { RedisReplyError } from './connection.js'
import { runtimeTimers } from '../../../base/runtime-timers.js'

/** The error when nothing was sent, because of `cause`. */
export function unreachable(name: string, cause: unknown): UnavailableError {
  return new UnavailableError(`can't reach ${name}: ${wordsOf(cause)}`, { engine: name, cause })
}

/**
 * Rejects for a command that was not sent. It first waits for a turn of the event loop, so that a caller that retries
 * at once does not block others or the next connection.
 */
export async function unsent(error: UnavailableError): Promise<never> {
  await new Promise(runtimeTimers.setImmediate)
  throw error
}

/** Returns the error of a sent command whose answer was rejected with `error`. */
export function sendFailure(name: string, error: unknown): unknown {
  if (error instanceof RedisReplyError || error instanceof SignalboxError) return error
  return new ConnectionLostError(`lost the connection to ${name} before the reply`, {
    engine: name,
    cause: error,
  })
}

/** A command was sent, and its connection was lost before the reply. For callers it is an IndeterminateError. */
export class ConnectionLostError extends IndeterminateError {
  override readonly name = IndeterminateError.name
}

/** Whether the server reports that it is not the master, because another one has replaced it. */
export function isDemoted(error: unknown): boolean {
  return error instanceof RedisReplyError && (error.code === 'READONLY' || error.code === 'MASTERDOWN')
}

/** The error of a sent command that got no reply within `timeout` milliseconds. */
export function unanswered(name: string, timeout: number): IndeterminateError {
  return new IndeterminateError(`timed out after ${timeout} ms waiting for a reply from ${name}`, {
    engine: name,
  })
}

/** Some system errors, like those of hosts with several addresses, have only a code. */
function wordsOf(cause: unknown): string {
  if (!(cause instanceof Error)) return 'not connected'
  return cause.message || ((cause as NodeJS.ErrnoException).code ?? cause.name)
}
