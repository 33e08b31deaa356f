import { limiter } from 'signalbox/limits'
import type { Strategy } from './strategy.js'

/** Evenly spaced. */
export const signalboxSmooth: Strategy = {
  name: 'signalbox smooth',
  modes: ['tasks'],
  simulated: true,
  prepare: () => undefined,
  join(_shared, { limit, jitter, virtual }) {
    const own = limiter({ limit, per: '1s', window: 'smooth', jitter, clock: virtual })
    return {
      async pass() {
        await own.acquire()
      },
    }
  },
}
