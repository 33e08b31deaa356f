import { randomUUID } from 'node:crypto'
import { redisGuarantees } from '../../src/engines/redis/guarantees.js'
import { openRedis } from '../../src/engines/redis/open.js'
import { startRedis, type RedisServer } from '../servers/redis.js'
import type { EngineFixture } from './fixture.js'

let shared: Promise<RedisServer> | undefined

/** The server of this test file; each test has a key prefix of its own on it. It ends with the test process. */
function server(): Promise<RedisServer> {
  return (shared ??= startRedis())
}

/** The Redis engine on one server. */
export const redis: EngineFixture = {
  name: 'redis',
  guarantees: redisGuarantees(),
  weaknesses: {},
  async start() {
    const url = `${(await server()).url}?prefix=${randomUUID().slice(0, 8)}:`
    return { url, engine: () => openRedis(url), close: () => undefined }
  },
}
