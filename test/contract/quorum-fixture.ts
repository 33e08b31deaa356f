import { randomUUID } from 'node:crypto'
import { quorumGuarantees } from '../../src/engines/redis-quorum/guarantees.js'
import { openRedisQuorum } from '../../src/engines/redis-quorum/open.js'
import { startRedisServers, type RedisServer } from '../servers/redis.js'
import type { EngineFixture } from './fixture.js'

let shared: Promise<RedisServer[]> | undefined

/** The servers of this test file; each test has a key prefix of its own on them. They end with the test process. */
function servers(): Promise<RedisServer[]> {
  return (shared ??= startRedisServers(3))
}

/** Where several servers are, as one URL. */
export function quorumUrl(members: readonly RedisServer[], query = ''): string {
  return `redis-quorum://${members.map(({ host, port }) => `${host}:${port}`).join(',')}${query}`
}

/** Locks over three servers. */
export const quorum: EngineFixture = {
  name: 'redis quorum',
  guarantees: quorumGuarantees,
  weaknesses: {},
  async start() {
    const url = quorumUrl(await servers(), `?prefix=${randomUUID().slice(0, 8)}:`)
    return { url, engine: () => openRedisQuorum(url), close: () => undefined }
  },
}
