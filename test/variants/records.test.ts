import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import type pg from 'pg'
import { afterAll, beforeAll, describe } from 'vitest'
import { memoryRecords, postgresRecords, redisRecords, type Records } from '../../src/store/records/index.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { distantMemory } from '../contract/memory-fixture.js'
import { contractParts } from '../contract/suite.js'
import { foundKeys } from '../../packages/conformance/src/found-keys.js'
import { keptIds } from '../../packages/conformance/src/kept-ids.js'
import { readNotWritten } from '../../packages/conformance/src/read-not-written.js'
import { safeState } from '../../packages/conformance/src/safe-state.js'

/** Returns a fixture with values in records, and locks from an engine that does not know the records. */
function recordsFixture(records: () => Records): EngineFixture {
  return {
    ...distantMemory,
    hasRecords: true,
    start: async () => ({ ...(await distantMemory.start()), records: records() }),
  }
}

describe('values in memory records', () =>
  contractParts(recordsFixture(memoryRecords), safeState, keptIds, foundKeys, readNotWritten))

describe('values in Redis records', () => {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    server = await startRedis()
    client = new Redis(server.port, server.host)
  })
  afterAll(async () => {
    client.disconnect()
    await server.kill()
  })
  contractParts(
    recordsFixture(() => redisRecords(client, { prefix: `${randomUUID()}:` })),
    safeState,
    keptIds,
    foundKeys,
    readNotWritten,
  )
})

describe('values in PostgreSQL records', () => {
  let server: PostgresServer
  let pool: pg.Pool
  let tables = 0
  beforeAll(async () => {
    server = await startPostgres()
    pool = server.pool()
  })
  afterAll(async () => {
    await pool.end()
    await server[Symbol.asyncDispose]()
  })
  contractParts(
    recordsFixture(() => postgresRecords(pool, { table: `records_${++tables}` })),
    safeState,
    keptIds,
    foundKeys,
    readNotWritten,
  )
})
