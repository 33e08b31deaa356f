import { openRedis } from '../../src/engines/redis/open.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { behindProxy } from '../contract/behind-proxy.js'
import { HINTS, redis } from '../contract/redis-fixture.js'
import { concurrency } from '../../packages/conformance/src/concurrency.js'
import { limits } from '../../packages/conformance/src/limits.js'
import { lockParts } from '../contract/lock-parts.js'
import { contractPartsBut } from '../contract/suite.js'

/** One-way delay to the server, in milliseconds. */
const WAY = 20

/** Redis over a link with a round trip of 40 ms. Its weaknesses are shown on the server itself. */
const distantRedis: EngineFixture = {
  ...redis,
  name: 'redis, 40 ms away',
  weaknesses: {},
  async start() {
    const place = await redis.start()
    const url = new URL(place.url)
    const network = await Proxy.start(Number(url.port))
    network.delay = WAY
    url.port = String(network.port)
    return {
      ...place,
      url: url.href,
      engine: () => openRedis(url.href),
      async close() {
        await network[Symbol.asyncDispose]()
        await place.close()
      },
    }
  },
  network: ({ url }) => behindProxy(url, openRedis, HINTS),
}

/** Checks that make no sense at that distance, each with a reason. */
const EXCLUDED: Readonly<Record<string, string>> = {
  'tokens increase after every way in which a grant can end':
    'its lease of 30 ms has expired before the answer is there',
  'a signal that is first read after the loss is aborted':
    'its lease of 30 ms has expired before the answer is there',
  'a second downgrade does nothing, and a lost grant cannot be downgraded':
    'its lease of 30 ms has expired before the answer is there',
  'a release wakes only the first waiter': 'its preparation outlasts the time after which waiters check in',
  'a release wakes all readers at the head, and not the writer behind them':
    'its preparation outlasts the time after which waiters check in',
  'released permits wake as many waiters as they are enough for':
    'its preparation outlasts the time after which waiters check in',
}

contractPartsBut(distantRedis, Object.keys(EXCLUDED), limits, concurrency, ...lockParts)
