import { SECOND } from '../setting.js'
import { EVERYWHERE, FIRST, sharedWords, words } from './memory.js'
import type { Strategy } from './strategy.js'
import { every } from './waiting.js'

const COUNT = FIRST
const STARTED = FIRST + 1

/**
 * A counter that a timer resets once a second. The first caller starts the timer, and each reset wakes all waiting
 * callers.
 */
export const timedSemaphore: Strategy = {
  name: 'timed semaphore',
  modes: EVERYWHERE,
  simulated: true,
  prepare: sharedWords,
  join(shared, { limit, clock, keeper, bell }) {
    const memory = words(shared)
    const reset = (): void => {
      Atomics.store(memory, COUNT, 0)
      bell.ring()
    }
    return {
      async pass() {
        if (Atomics.compareExchange(memory, STARTED, 0, 1) === 0) every(keeper ?? clock, SECOND, reset)
        while (true) {
          const { rung } = bell
          if (Atomics.add(memory, COUNT, 1) < limit) return
          await bell.after(rung)
        }
      },
    }
  },
}
