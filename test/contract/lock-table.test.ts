import { test } from 'vitest'
import { PostgresTablePorts } from '../support/postgres/table-port.js'
import { RedisTablePort, WAYS } from '../support/redis/table-port.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'
import { compareHistories } from '../support/table-histories.js'

test('the script in Redis decides as the lock table does', async () => {
  await using server = await startRedis()
  for (const text of Object.values(WAYS))
    await compareHistories(await RedisTablePort.over(server, text), 2001, 8)
})

test('the functions of PostgreSQL decide as the lock table does', async () => {
  const server = await startPostgres()
  const ports = new PostgresTablePorts(server)
  try {
    for (const way of ['alone', 'together', 'again'] as const)
      await compareHistories(() => ports.take(way), 2001, 2)
  } finally {
    await ports.close()
    await server.kill()
  }
})
