import { SECOND } from '../setting.js'
import { EVERYWHERE, FIRST, sharedWords, takeOne, words } from './memory.js'
import type { Strategy } from './strategy.js'
import { every, nextSecond, secondOf } from './waiting.js'

const CELLS = 60
/** How often the cells are restored, in seconds. */
const RESTORED = 5
/** Cells so near to now, in seconds, are left alone. */
const SAFE_ZONE = 5

/**
 * A semaphore for each of sixty seconds. Every five seconds a thread restores all but those near to now, so it may be
 * late by most of a minute before a caller meets a spent cell. A caller waits for a permit until its second is over.
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
        // Nothing is given back within a second, so who finds no permit waits for its end.
        while (!takeOne(memory, cell(secondOf(world)))) await nextSecond(world)
      },
    }
  },
}
