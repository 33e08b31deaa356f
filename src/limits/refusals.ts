import {
  AbortedError,
  BusyError,
  InvalidArgumentError,
  TimedOutError,
  UnavailableError,
  type ErrorContext,
} from '../errors.js'

/**
 * The error of a caller that does not wait, or must not. @param wait 0 in the first case. @param callers waiting ones.
 */
export function busy(wait: number, callers: number, context: ErrorContext): BusyError {
  return new BusyError(
    wait === 0 ? 'no permit is available now' : `no permit is available now: ${callers} callers are waiting`,
    context,
  )
}

export function aborted({ reason: cause }: AbortSignal, context: ErrorContext): AbortedError {
  return new AbortedError('waiting for a permit was aborted', { ...context, cause })
}

/** The error of a caller whose wait has passed. @param outage the engine's error, if it was out of reach. */
export function late(context: ErrorContext, outage?: Error): TimedOutError | UnavailableError {
  if (!outage) return new TimedOutError('timed out waiting for a permit', context)
  const why = `timed out waiting for a permit, because the engine can't be reached`
  return new UnavailableError(why, { ...context, cause: outage })
}

/** The error of a caller whose turn would come after its wait. @param turn the necessary wait, in milliseconds. */
export function tooLate(wait: number, turn: number, context: ErrorContext): TimedOutError {
  const earliest = `its turn would be in ${Math.ceil(turn)} ms at the earliest`
  return new TimedOutError(`timed out after ${Math.ceil(wait)} ms waiting for a permit: ${earliest}`, context)
}

/** The error of a waiter that wants more permits than a lowered limit allows. */
export function lowered(max: number, n: number, context: ErrorContext): InvalidArgumentError {
  return new InvalidArgumentError(
    `the limit was lowered to ${max} while a caller waited for ${n} permits`,
    context,
  )
}
