import { Redis } from 'ioredis'
import { RateLimiterQueue, RateLimiterRedis } from 'rate-limiter-flexible'
import type { Strategy } from './strategy.js'

/** The queue of rate-limiter-flexible over its limiter in Redis. */
export const rateLimiterFlexibleRedis: Strategy = {
  name: 'rate-limiter-flexible redis',
  modes: ['processes'],
  simulated: false,
  onRedis: true,
  prepare: () => undefined,
  join(_shared, { limit, engine, name }) {
    const storeClient = new Redis(engine)
    const counts = new RateLimiterRedis({ storeClient, keyPrefix: name, points: limit, duration: 1 })
    const own = new RateLimiterQueue(counts)
    return {
      async pass() {
        await own.removeTokens(1)
      },
    }
  },
}
