import { SECOND } from '../setting.js'
import { EVERYWHERE, FIRST, sharedWords, words } from './memory.js'
import type { Strategy } from './strategy.js'
import { every, nextSecond, secondOf } from './waiting.js'

const CELLS = 60

/** A counter for each of sixty seconds. Once a second, one thread resets the counter of the previous second to zero. */
export const counterRing: Strategy = {
  name: 'ring of 60 counters',
  modes: EVERYWHERE,
  simulated: true,
  prepare: sharedWords,
  join(shared, world) {
    const memory = words(shared)
    const cell = (second: number): number => FIRST + (second % CELLS)
    if (world.keeper) {
      every(world.keeper, SECOND, () => Atomics.store(memory, cell(secondOf(world) - 1 + CELLS), 0))
    }
    return {
      async pass() {
        while (Atomics.add(memory, cell(secondOf(world)), 1) >= world.limit) await nextSecond(world)
      },
    }
  },
}
