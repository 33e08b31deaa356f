import { SECOND } from '../setting.js'
import { EVERYWHERE, sharedWords } from './memory.js'
import type { Strategy } from './strategy.js'
import { sleep } from './waiting.js'

/**
 * Index of the 64-bit word with the time of the next free permit, in microseconds. The bell uses the word before it.
 */
const NEXT_FREE = 1
const MICRO = 1000

/**
 * A token bucket: permits are evenly spaced, and it saves those of an idle second. Each caller reserves the next permit
 * and sleeps until its time. After an idle second, the bucket lets the permits of a whole second through at once, in
 * addition to the evenly spaced ones.
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
          // No permits are saved before the first use.
          const free = known === 0n ? now : known < now - saved ? now - saved : known
          if (Atomics.compareExchange(memory, NEXT_FREE, known, free + interval) !== known) continue
          if (free > now) await sleep(clock, Number(free - now) / MICRO)
          return
        }
      },
    }
  },
}
