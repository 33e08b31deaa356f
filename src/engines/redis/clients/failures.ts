import { IndeterminateError, SignalboxError, UnavailableError } from '../../../base/errors.js'
import { RedisReplyError } from './connection.js'
import { runtimeTimers } from '../../../base/runtime-timers.js'

/** Nothing was sent, because of `cause`. */
export function unreachable(name: string, cause: unknown): UnavailableError {
  return new UnavailableError(`can't reach ${name}: ${wordsOf(cause)}`, { engine: name, cause })
}

/**
 * The rejection of what was not sent. It comes after a turn of the event loop, so that a caller that tries again at
 * once leaves others, and the next connection, their turns.
 */
export async function unsent(error: UnavailableError): Promise<never> {
  await new Promise(runtimeTimers.setImmediate)
  throw error
}

/** What node-redis says when it has refused a command of a client that was given a bound for its queue. */
const QUEUE_IS_FULL = 'The queue is full'

/** What a command that was sent rejects with when its answer is the rejection `error`. */
export function sentInVain(name: string, error: unknown): unknown {
  if (error instanceof Error && error.message === QUEUE_IS_FULL) return unreachable(name, error)
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

/** Whether the server says that it is not the master: another one has taken its place. */
export function isDemoted(error: unknown): boolean {
  return error instanceof RedisReplyError && (error.code === 'READONLY' || error.code === 'MASTERDOWN')
}

/** A command that was sent got no reply within `timeout` milliseconds. */
export function unanswered(name: string, timeout: number): IndeterminateError {
  return new IndeterminateError(`timed out after ${timeout} ms waiting for a reply of ${name}`, {
    engine: name,
  })
}

/** Some system errors, like those of hosts with several addresses, say nothing but a code. */
function wordsOf(cause: unknown): string {
  if (!(cause instanceof Error)) return 'not connected'
  return cause.message || ((cause as NodeJS.ErrnoException).code ?? cause.name)
}
