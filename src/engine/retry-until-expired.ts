import type { Clock } from '../base/clock.js'
import type { Awaitable } from './contract.js'

/** Delay before an operation that failed is sent to the engine again, in milliseconds. */
export const RETRY_DELAY = 200

/**
 * Removes an unused request or grant from the engine. Retries a failed attempt until the lease has expired, because the
 * request would block other callers until then, also the next attempt of its own caller.
 * @param attempt sends the cancellation or release; must not throw.
 * @param lease how long the engine keeps the request or grant without a renewal, in milliseconds.
 * @param hasEnded whether the session has ended.
 * @param afterwards delay between further attempts after that, in milliseconds; undefined for none.
 * @returns the outcome of the first attempt; retries run in the background
 */
export function retryUntilExpired(
  attempt: () => Awaitable<unknown>,
  lease: number,
  clock: Clock,
  hasEnded: () => boolean,
  afterwards?: number,
): Awaitable<unknown> {
  const until = clock.now() + lease
  const tryOnce = (): Awaitable<unknown> => {
    const outcome = attempt()
    if (outcome instanceof Promise) {
      outcome.catch(() => {
        const delay = clock.now() + RETRY_DELAY < until ? RETRY_DELAY : afterwards
        if (!hasEnded() && delay !== undefined) clock.after(delay, () => void tryOnce(), false)
      })
    }
    return outcome
  }
  return tryOnce()
}
