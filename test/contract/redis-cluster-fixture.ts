import { randomUUID } from 'node:crypto'
import { redisGuarantees } from '../../src/engines/redis/guarantees.js'
import { openRedis } from '../../src/engines/redis/open.js'
import { startRedisCluster, type RedisCluster } from '../servers/redis-cluster.js'
import type { EngineFixture } from './fixture.js'

let shared: Promise<RedisCluster> | undefined

/** The Redis engine on a cluster, with all keys of a test in one hash slot; it weakens what one server does. */
export const redisCluster: EngineFixture = {
  name: 'redis cluster',
  guarantees: { ...redisGuarantees(true), weaknesses: [] },
  weaknesses: {},
  async start() {
    const { url } = await (shared ??= startRedisCluster())
    const place = `${url}?prefix={${randomUUID().slice(0, 8)}}:`
    return { url: place, engine: () => openRedis(place), close: () => undefined }
  },
}
