import { EVERYWHERE, FIRST, sharedWords, words } from './memory.js'
import type { Strategy } from './strategy.js'
import { nextSecond, secondOf } from './waiting.js'

const KNOWN_SECOND = FIRST
const COUNT = FIRST + 1

/**
 * The counter that people usually write. A caller that sees a new second swaps it in and then resets the counter. A
 * caller above the limit sleeps until the next second and then continues. The counter forgets callers between the swap
 * and the reset, and does not count callers that have slept.
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
