import type { Clock } from '../../clock.js'

/** How long a call of a member may take: milliseconds. */
const CALL_TIMEOUT = 3000

/** A member did not answer in time: it may still carry out what it was asked. */
export class NoAnswerError extends Error {}

/**
 * The answer of a remote call, or a NoAnswerError after `limit` milliseconds. The client's own limits are two minutes and
 * more.
 * @param keepsAlive whether it keeps the process alive meanwhile
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
