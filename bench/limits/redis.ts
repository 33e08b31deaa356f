import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { open } from 'signalbox'
import { now } from '../clock.js'
import { toldAddress } from '../lockers/address-file.js'
import { redisSupport } from '../lockers/redis-server.js'
import { busy } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Work } from '../work.js'

const CALLERS = 64
/** So many permits a second that no caller has to wait for one. */
const LIMIT = 1e7

interface Permits {
  take(): Promise<unknown>
  end(): Promise<unknown>
}

/** Callers of one process, each of which takes one permit after the other. */
function callers(name: string, start: (url: string) => Promise<Permits>): ForkedSubject {
  return forked(
    name,
    async ({ folder }) => {
      const permits = await start(await toldAddress(folder))
      const batch = async (count: number): Promise<void> => {
        for (let index = 0; index < count; index++) await permits.take()
      }
      const timed = async (): Promise<number> => {
        const since = now()
        await permits.take()
        return now() - since
      }
      return {
        perform: window => busy(window, CALLERS, { batch, timed }),
        stop: async () => {
          await permits.end()
        },
      }
    },
    { support: redisSupport },
  )
}

/** @param batch how many permits are fetched together at the most. */
async function signalbox(url: string, batch: number): Promise<Permits> {
  const box = await open(url)
  const limiter = box.limiter('partner', { limit: LIMIT, per: '1s', batch })
  return { take: () => limiter.acquire(), end: () => box.close() }
}

const OWN = 'signalbox'
const LEASES = 'signalbox, leases of permits'
const BY_IOREDIS = 'rate-limiter-flexible, by ioredis'
const BY_NODE_REDIS = 'rate-limiter-flexible, by node-redis'

/** Taking permits that are there, over a Redis server. */
export const redisPermits: Work = {
  part: 'limits',
  name: `permits from Redis for ${CALLERS} callers in one process`,
  seconds: 1,
  subjects: [
    callers(OWN, url => signalbox(url, 1)),
    callers(LEASES, url => signalbox(url, 10_000)),
    callers(BY_IOREDIS, url => {
      const storeClient = new Redis(url)
      const limiter = new RateLimiterRedis({ storeClient, points: LIMIT, duration: 1 })
      return Promise.resolve({ take: () => limiter.consume('partner'), end: () => storeClient.quit() })
    }),
    callers(BY_NODE_REDIS, async url => {
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
