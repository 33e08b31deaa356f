import { SECOND } from '../setting.js'
import { EVERYWHERE, sharedWords } from './memory.js'
import type { Strategy } from './strategy.js'
import { sleep } from './waiting.js'

/** The 64-bit word of the time at which the next permit is free, in microseconds; the bell has the one before. */
const NEXT_FREE = 1
const MICRO = 1000

/**
 * A token bucket: permits come evenly spaced, and those of an idle second are saved. Each caller reserves the next one
 * and sleeps until then. After an idle second it lets a second's worth through at once, and continues with the even
 * ones beside it.
 */
export const tokenBucket: Strategy = {
  name: 'token bucket',
  modes: EVERYWHERE,
  simulated: true,
  prepare: sharedWords,
  join(shared, { limit, clock }) {
    const memory = new BigInt64Array(shared as SharedArrayBuffer)
    const interval = BigInt(Math.round((SECOND * MICRO) / limit))
    const saved = BigInt(SECOND * MICRO)
    return {
      async pass() {
        while (true) {
          const now = BigInt(Math.floor(clock.now() * MICRO))
          const known = Atomics.load(memory, NEXT_FREE)
          // Nothing is saved before it is used for the first time.
          const free = known === 0n ? now : known < now - saved ? now - saved : known
          if (Atomics.compareExchange(memory, NEXT_FREE, known, free + interval) !== known) continue
          if (free > now) await sleep(clock, Number(free - now) / MICRO)
          return
        }
      },
    }
  },
}
