import { SECOND } from '../setting.js'
import { EVERYWHERE, FIRST, sharedWords, takeOne, words } from './memory.js'
import type { Strategy } from './strategy.js'
import { every } from './waiting.js'

const PERMITS = FIRST
const REFILLED_AT = FIRST + 1

/**
 * A semaphore that callers refill. The first caller that sees that a second has passed wins a compare-and-set on the
 * time of the refill. While all callers sleep, none refills it.
 */
export const firstCallerRefill = refill('first caller refill', false)

/** The same, with a timer that also refills. */
export const eitherRefill = refill('first caller or scheduled refill', true)

function refill(name: string, scheduled: boolean): Strategy {
  return {
    name,
    modes: EVERYWHERE,
    simulated: true,
    prepare: sharedWords,
    join(shared, { limit, clock, keeper, bell }) {
      const memory = words(shared)
      const look = (): void => {
        // Zero means never.
        const now = Math.floor(clock.now() + 1) | 0
        const before = Atomics.load(memory, REFILLED_AT)
        if (before !== 0 && ((now - before) | 0) < SECOND) return
        if (Atomics.compareExchange(memory, REFILLED_AT, before, now) !== before) return
        Atomics.store(memory, PERMITS, limit)
        bell.ring()
      }
      if (scheduled && keeper) every(keeper, SECOND, look)
      return {
        async pass() {
          while (true) {
            const { rung } = bell
            look()
            if (takeOne(memory, PERMITS)) return
            await bell.after(rung)
          }
        },
      }
    },
  }
}
