import {
  ClosedError as ClientClosedError,
  ConnectionLossError,
  InvalidArgumentError as ClientArgumentError,
  NotSentError,
  SessionExpiredError,
  UnreachableError,
} from '../index.js'
import {
  ClosedError,
  IndeterminateError,
  InvalidArgumentError,
  SignalboxError,
  UnavailableError,
} from 'signalbox'

/**
 * Converts an error of the client into one of the contract, which names the keys instead of a node.
 * @param key the keys of the operation
 */
export function failureOf(cause: unknown, engine: string, key?: string): Error {
  if (cause instanceof SignalboxError) return cause
  const context = { key, engine, cause }
  if (cause instanceof ClientArgumentError) return new InvalidArgumentError(cause.message, context)
  // mutant: expired-session-not-sent
  if (cause instanceof SessionExpiredError)
    return new IndeterminateError(`the session of ${engine} expired in the meantime`, context)
  // mutant: lost-connection-not-sent
  if (cause instanceof ConnectionLossError) return new IndeterminateError(cause.message, context)
  if (cause instanceof NotSentError || cause instanceof UnreachableError)
    return new UnavailableError(cause.message, context)
  if (cause instanceof ClientClosedError) return new ClosedError('the box was closed', context)
  const why = cause instanceof Error ? cause.message : String(cause)
  return new UnavailableError(`${engine} rejected the request: ${why}`, context)
}
