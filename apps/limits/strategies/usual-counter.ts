import { EVERYWHERE, FIRST, sharedWords, words } from './memory.js'
import type { Strategy } from './strategy.js'
import { nextSecond, secondOf } from './waiting.js'

const KNOWN_SECOND = FIRST
const COUNT = FIRST + 1

/**
 * One counter as it is usually written: a caller that sees a new second swaps it in and then sets the counter to zero,
 * and a caller above the limit sleeps to the next second and continues. Between the swap and the zero callers are
 * counted for nothing, and callers that have slept are not counted at all.
 */
export const usualCounter: Strategy = {
  name: 'counter, usual',
  modes: EVERYWHERE,
  simulated: true,
  prepare: sharedWords,
  join(shared, world) {
    const memory = words(shared)
    return {
      async pass() {
        const second = secondOf(world) | 0
        const known = Atomics.load(memory, KNOWN_SECOND)
        if (known !== second && Atomics.compareExchange(memory, KNOWN_SECOND, known, second) === known) {
          Atomics.store(memory, COUNT, 0)
        }
        if (Atomics.add(memory, COUNT, 1) < world.limit) return
        await nextSecond(world)
      },
    }
  },
}
