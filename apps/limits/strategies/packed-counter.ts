import { EVERYWHERE, sharedWords } from './memory.js'
import type { Strategy } from './strategy.js'
import { nextSecond, secondOf } from './waiting.js'

/** Index of the 64-bit word with second and count. The bell uses the word before it. */
const PACKED = 1
const COUNT_BITS = 32n

/** A correct counter. Second and count change together, and callers that have slept are counted, too. */
export const packedCounter: Strategy = {
  name: 'counter, packed',
  modes: EVERYWHERE,
  simulated: true,
  prepare: sharedWords,
  join(shared, world) {
    const memory = new BigInt64Array(shared as SharedArrayBuffer)
    const counted = (): boolean => {
      const fresh = BigInt(secondOf(world)) << COUNT_BITS
      while (true) {
        const known = Atomics.load(memory, PACKED)
        const current = known < fresh ? fresh : known
        if (current - fresh >= BigInt(world.limit)) return false
        if (Atomics.compareExchange(memory, PACKED, known, current + 1n) === known) return true
      }
    }
    return {
      async pass() {
        while (!counted()) await nextSecond(world)
      },
    }
  },
}
