import {
  AbortedError,
  BusyError,
  InvalidArgumentError,
  TimedOutError,
  UnavailableError,
  type ErrorContext,
} from '../errors.js'

/** The error of a caller that may not wait. @param wait 0 when it did not want to. @param callers how many wait. */
export function busy(wait: number, callers: number, context: ErrorContext): BusyError {
  return new BusyError(
    wait === 0 ? 'no permit is available now' : `no permit is available now: ${callers} callers are waiting`,
    context,
  )
}

export function aborted({ reason: cause }: AbortSignal, context: ErrorContext): AbortedError {
  return new AbortedError('waiting for a permit was aborted', { ...context, cause })
}

/** The wait is over. @param outage why the engine could not be asked meanwhile, if that was so. */
export function late(context: ErrorContext, outage?: Error): TimedOutError | UnavailableError {
  if (!outage) return new TimedOutError('timed out waiting for a permit', context)
  const why = `timed out waiting for a permit, because the engine can't be reached`
  return new UnavailableError(why, { ...context, cause: outage })
}

/** The wait can't be met. @param turn the wait that would be needed, in milliseconds. */
export function tooLate(wait: number, turn: number, context: ErrorContext): TimedOutError {
  const earliest = `its turn would be in ${Math.ceil(turn)} ms at the earliest`
  return new TimedOutError(`timed out after ${Math.ceil(wait)} ms waiting for a permit: ${earliest}`, context)
}

/** The error of a waiter that wants more permits than there will ever be. */
export function lowered(max: number, n: number, context: ErrorContext): InvalidArgumentError {
  return new InvalidArgumentError(
    `the limit was lowered to ${max} while a caller waited for ${n} permits`,
    context,
  )
}
