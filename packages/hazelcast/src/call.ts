import { inTime, type Clock } from 'signalbox/engine'

/** Maximum time of a call to a member, in milliseconds. */
const CALL_TIMEOUT = 3000
/** Minimum time of a call that follows others, in milliseconds: several round trips over a slow link. */
export const MIN_CALL_TIME = 2000
/** The pause before a failed call is retried, in milliseconds. */
export const RETRY_PAUSE = 200

/** A member did not reply in time. It may still execute the call. */
export class NoAnswerError extends Error {}

/**
 * Returns the reply to a remote call, or rejects with a NoAnswerError after `limit` milliseconds. The client's own
 * timeouts are two minutes and more.
 * @param onLate is called with a reply that comes later.
 * @param keepsAlive whether the process stays alive until then.
 */
export function answered<T>(
  call: Promise<T>,
  clock: Clock,
  limit: number = CALL_TIMEOUT,
  onLate?: (answer: T) => void,
  keepsAlive = true,
): Promise<T> {
  const tooLate = (): Error => {
    if (onLate) call.then(onLate, () => undefined)
    return new NoAnswerError(`no answer within ${Math.ceil(limit)} ms`)
  }
  return inTime(call, limit, clock, tooLate, keepsAlive)
}

/** Resolves when a failed call may be retried. @param keepsAlive whether the process stays alive until then. */
export function pause(clock: Clock, keepsAlive: boolean): Promise<void> {
  return new Promise(resolve => void clock.after(RETRY_PAUSE, resolve, keepsAlive))
}
