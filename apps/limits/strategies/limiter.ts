import { RateLimiter } from 'limiter'
import type { Strategy } from './strategy.js'

/** The package limiter. */
export const limiterPackage: Strategy = {
  name: 'limiter',
  modes: ['tasks'],
  simulated: false,
  prepare: () => undefined,
  join(_shared, { limit }) {
    const own = new RateLimiter({ tokensPerInterval: limit, interval: 'second' })
    return {
      async pass() {
        await own.removeTokens(1)
      },
    }
  },
}
