import type { Clock } from '../clock.js'
import type { Awaitable } from './contract.js'

/** What could not be given back is tried again after so many milliseconds. */
const PAUSE = 200

/**
 * Gives back what nobody uses. Where the engine is out of reach that is tried again, until the lease has ended it: what is
 * left of a request whose answer was lost would else keep others, and its own caller's next try, waiting.
 * @param attempt asks the engine to take it; must not throw.
 * @param lease how long it can be there without being heard of: milliseconds.
 * @param isOver whether nothing can be asked any more.
 * @returns what settles as the first attempt does; the others follow in the background
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
