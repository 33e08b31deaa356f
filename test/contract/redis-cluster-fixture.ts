import { randomUUID } from 'node:crypto'
import { Cluster } from 'ioredis'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { redisGuarantees } from '../../src/engines/redis/guarantees.js'
import { openRedis } from '../../src/engines/redis/open.js'
import { startRedisCluster, type RedisCluster } from '../support/servers/redis-cluster.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { networkOf } from './behind-proxy.js'
import { HINTS, recordsOf, redis } from './redis-fixture.js'

let shared: Promise<RedisCluster> | undefined

/** The cluster of this test file. It ends with the test process. */
function cluster(): Promise<RedisCluster> {
  return (shared ??= startRedisCluster())
}

/** The Redis engine on a cluster. All keys of a test are in one hash slot. */
export const redisCluster: EngineFixture = {
  name: 'redis cluster',
  guarantees: redisGuarantees,
  knowsChanges: true,
  noticesLossByRenewal: true,
  weaknesses: redis.weaknesses,
  async start() {
    const { masters, url: nodes } = await cluster()
    const prefix = `{${randomUUID().slice(0, 8)}}:`
    const url = `${nodes}?prefix=${prefix}`
    return {
      url,
      engine: () => openRedis(url),
      size: () => recordsOf(masters, prefix),
      close: () => undefined,
    }
  },
  async network({ url }) {
    const { masters } = await cluster()
    const proxies = await Promise.all(masters.map(({ port }) => Proxy.start(port)))
    // The nodes report their own addresses, without the proxies.
    const places = masters.map(({ host, port }, index) => [`${host}:${port}`, proxies[index]!] as const)
    const redis = new Cluster([...proxies], {
      natMap: Object.fromEntries(places.map(([node, { host, port }]) => [node, { host, port }])),
    })
    redis.on('error', () => undefined)
    const engine = await openRedis({ redis, prefix: url.slice(url.indexOf('?prefix=') + 8) })
    const leave = engine.leave.bind(engine)
    engine.leave = async () => {
      await leave()
      redis.disconnect()
    }
    return networkOf(proxies, engine, HINTS)
  },
}
