import { SECOND } from '../setting.js'
import { EVERYWHERE, FIRST, sharedWords, takeOne, words } from './memory.js'
import type { Strategy } from './strategy.js'
import { every, nextSecond, secondOf } from './waiting.js'

const CELLS = 60
/** Interval between two refills of the cells, in seconds. */
const RESTORED = 5
/** Cells within this distance from the current one are not refilled, in seconds. */
const SAFE_ZONE = 5

/**
 * A semaphore for each of sixty seconds. Every five seconds, one thread refills all cells except those near the current
 * second. It can be late by most of a minute before a caller finds an empty cell. A caller without a permit waits until
 * the second is over.
 */
export const semaphoreRing: Strategy = {
  name: 'ring of 60 semaphores',
  modes: EVERYWHERE,
  simulated: true,
  prepare(limit) {
    const shared = sharedWords()
    words(shared).fill(limit, FIRST, FIRST + CELLS)
    return shared
  },
  join(shared, world) {
    const memory = words(shared)
    const cell = (second: number): number => FIRST + (second % CELLS)
    const restore = (): void => {
      const now = secondOf(world)
      for (let ahead = SAFE_ZONE + 1; ahead < CELLS - SAFE_ZONE; ahead++) {
        Atomics.store(memory, cell(now + ahead), world.limit)
      }
    }
    if (world.keeper) every(world.keeper, RESTORED * SECOND, restore)
    return {
      async pass() {
        // Permits are not returned within a second, so a caller without one waits until the second is over.
        while (!takeOne(memory, cell(secondOf(world)))) await nextSecond(world)
      },
    }
  },
}
