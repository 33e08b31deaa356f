import type { Clock } from '../../clock.js'

/** How long a call of a member may take: milliseconds. */
const CALL_TIMEOUT = 3000
/** The pause before a call that failed is made again: milliseconds. */
export const RETRY_PAUSE = 200

/** A member did not answer in time. It may still carry out the call. */
export class NoAnswerError extends Error {}

/**
 * The answer to a remote call, or a NoAnswerError after `limit` milliseconds. The client's own limits are two minutes
 * and more.
 * @param onLate is called with an answer that comes after that.
 * @param keepsAlive whether the process stays alive meanwhile.
 */
export function answered<T>(
  call: Promise<T>,
  clock: Clock,
  limit: number = CALL_TIMEOUT,
  onLate?: (answer: T) => void,
  keepsAlive = true,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isOver = false
    const timer = clock.after(
      limit,
      () => {
        isOver = true
        reject(new NoAnswerError(`no answer within ${Math.ceil(limit)} ms`))
      },
      keepsAlive,
    )
    call.then(
      answer => {
        timer.cancel()
        if (isOver) onLate?.(answer)
        else resolve(answer)
      },
      (error: unknown) => {
        timer.cancel()
        reject(error)
      },
    )
  })
}

/** Settles when a call that failed may be made again. @param keepsAlive whether the process stays alive meanwhile. */
export function pause(clock: Clock, keepsAlive: boolean): Promise<void> {
  return new Promise(resolve => void clock.after(RETRY_PAUSE, resolve, keepsAlive))
}
