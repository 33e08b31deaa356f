import type { Clock } from '../clock.js'
import type { Awaitable } from './contract.js'

/** Delay before a failed attempt is retried, in milliseconds. */
const PAUSE = 200

/**
 * Gives back a grant or a request that is not used. When the attempt fails, it is made again until the lease has ended
 * what is given back. Otherwise the rest of a request whose answer was lost would block other callers, and the next try
 * of its own caller.
 * @param attempt asks the engine to take it; must not throw.
 * @param lease how long the engine keeps it without a renewal, in milliseconds.
 * @param isOver whether the session has ended.
 * @returns the outcome of the first attempt; the others follow in the background
 */
export function giveBack(
  attempt: () => Awaitable<unknown>,
  lease: number,
  clock: Clock,
  isOver: () => boolean,
): Awaitable<unknown> {
  const until = clock.now() + lease
  const tryOnce = (): Awaitable<unknown> => {
    const outcome = attempt()
    if (outcome instanceof Promise) {
      outcome.catch(() => {
        if (!isOver() && clock.now() + PAUSE < until) clock.after(PAUSE, () => void tryOnce(), false)
      })
    }
    return outcome
  }
  return tryOnce()
}
