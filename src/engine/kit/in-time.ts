import type { Clock } from '../../clock.js'

/**
 * Returns what a promise resolves to, or rejects after `limit` milliseconds. The process stays alive until then.
 * @param late returns the error of the second case.
 */
export function inTime<T>(promise: Promise<T>, limit: number, clock: Clock, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(limit, () => reject(late()), true)
    void promise.then(resolve, reject).finally(() => timer.cancel())
  })
}
