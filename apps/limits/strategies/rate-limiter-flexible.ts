import { RateLimiterMemory, RateLimiterQueue } from 'rate-limiter-flexible'
import type { Strategy } from './strategy.js'

/** The queue of rate-limiter-flexible over its limiter in memory. */
export const rateLimiterFlexible: Strategy = {
  name: 'rate-limiter-flexible',
  modes: ['tasks'],
  simulated: false,
  prepare: () => undefined,
  join(_shared, { limit }) {
    const own = new RateLimiterQueue(new RateLimiterMemory({ points: limit, duration: 1 }))
    return {
      async pass() {
        await own.removeTokens(1)
      },
    }
  },
}
