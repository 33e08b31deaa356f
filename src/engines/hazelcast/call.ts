import type { Clock } from '../../clock.js'

/** How long a call of a member may take: milliseconds. */
const CALL_TIMEOUT = 3000

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
