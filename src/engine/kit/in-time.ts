import type { Clock } from '../../base/clock.js'

/**
 * Settles as a promise does, or rejects after `limit` milliseconds.
 * @param late returns the error if the time is over.
 * @param keepsAlive whether the process stays alive until then.
 */
export function inTime<T>(
  promise: PromiseLike<T>,
  limit: number,
  clock: Clock,
  late: () => Error,
  keepsAlive = true,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(limit, () => reject(late()), keepsAlive)
    promise.then(
      result => {
        timer.cancel()
        resolve(result)
      },
      (error: unknown) => {
        timer.cancel()
        reject(error)
      },
    )
  })
}
