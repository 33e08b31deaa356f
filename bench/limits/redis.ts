import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { open } from 'signalbox'
import { redisSupport } from '../lockers/redis-server.js'
import type { Work } from '../work.js'
import { CALLERS, LIMIT, permits, type Permits } from './permits.js'

/** @param batch maximum number of permits fetched together. */
async function signalbox(url: string, batch: number): Promise<Permits> {
  const box = await open(url)
  const limiter = box.limiter('partner', { limit: LIMIT, per: '1s', batch })
  return { take: () => limiter.acquire(), end: () => box.close() }
}

const OWN = 'signalbox'
const LEASES = 'signalbox, leases of permits'
const BY_IOREDIS = 'rate-limiter-flexible, by ioredis'
const BY_NODE_REDIS = 'rate-limiter-flexible, by node-redis'

/** Taking available permits, from a Redis server. */
export const redisPermits: Work = {
  part: 'limits',
  name: `permits from Redis for ${CALLERS} callers in one process`,
  seconds: 1,
  subjects: [
    permits(OWN, redisSupport, url => signalbox(url, 1)),
    permits(LEASES, redisSupport, url => signalbox(url, 10_000)),
    permits(BY_IOREDIS, redisSupport, url => {
      const storeClient = new Redis(url)
      const limiter = new RateLimiterRedis({ storeClient, points: LIMIT, duration: 1 })
      return Promise.resolve({ take: () => limiter.consume('partner'), end: () => storeClient.quit() })
    }),
    permits(BY_NODE_REDIS, redisSupport, async url => {
      const storeClient = await createClient({ url }).connect()
      const limiter = new RateLimiterRedis({
        storeClient,
        useRedisPackage: true,
        points: LIMIT,
        duration: 1,
      })
      return { take: () => limiter.consume('partner'), end: () => storeClient.close() }
    }),
  ],
  comparisons: [BY_IOREDIS, BY_NODE_REDIS].flatMap(to => [
    { measure: 'opsPerSecond' as const, of: OWN, to, goal: { atLeast: 4 } },
    { measure: 'opsPerSecond' as const, of: LEASES, to, goal: { atLeast: 20 } },
  ]),
}
