import { SECOND } from '../setting.js'
import { EVERYWHERE, FIRST, sharedWords, takeOne, words } from './memory.js'
import type { Strategy } from './strategy.js'
import { every } from './waiting.js'

const PERMITS = FIRST

/**
 * A semaphore that a timer refills once a second. A caller without a permit waits for the next refill and competes
 * again.
 */
export const scheduledRefill: Strategy = {
  name: 'scheduled refill',
  modes: EVERYWHERE,
  simulated: true,
  prepare(limit) {
    const shared = sharedWords()
    words(shared)[PERMITS] = limit
    return shared
  },
  join(shared, { limit, keeper, bell }) {
    const memory = words(shared)
    if (keeper) {
      every(keeper, SECOND, () => {
        Atomics.store(memory, PERMITS, limit)
        bell.ring()
      })
    }
    return {
      async pass() {
        while (true) {
          const { rung } = bell
          if (takeOne(memory, PERMITS)) return
          await bell.after(rung)
        }
      },
    }
  },
}
