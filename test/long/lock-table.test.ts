import { expect, test } from 'vitest'
import { PostgresTablePorts } from '../support/postgres/table-port.js'
import { RedisTablePort, WAYS } from '../support/redis/table-port.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'
import { compareHistories, STEPS } from '../support/table-histories.js'

/** Number of operations for each way of running the code. */
const OPERATIONS = { redis: 50_000, postgres: 10_000 }
/** Seed of the first history. The short runs use other seeds. */
const FIRST = 1_000_001
const KINDS = ['any', 'crowded', 'together'] as const

test.each(Object.entries(WAYS))('the code in Redis decides as the lock table does: %s', async (_, way) => {
  await using server = await startRedis()
  const ports = await RedisTablePort.over(server, way)
  const groups = await RedisTablePort.over(server, way, 1)
  const count = OPERATIONS.redis / STEPS / 5
  await compareHistories(ports, FIRST, 3 * count)
  await compareHistories(ports, FIRST + 3 * count, count, 'crowded')
  await compareHistories(groups, FIRST + 4 * count, count, 'together')
  const { evalsha = 0, fcall = 0 } = await server.calls()
  expect(evalsha + fcall).toBeGreaterThanOrEqual(OPERATIONS.redis)
})

test.each(['alone', 'together', 'again'] as const)(
  'the functions of PostgreSQL decide as the lock table does: operations that are sent %s',
  async way => {
    await using server = await startPostgres()
    await using ports = new PostgresTablePorts(server)
    const count = OPERATIONS.postgres / STEPS / KINDS.length
    for (const kind of KINDS) await compareHistories(() => ports.take(way), FIRST, Math.ceil(count), kind)
  },
)
