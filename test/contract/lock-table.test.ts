import { test } from 'vitest'
import { PostgresTablePorts } from '../support/postgres/table-port.js'
import { RedisTablePort, WAYS } from '../support/redis/table-port.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'
import { compareHistories } from '../support/table-histories.js'
import { replay } from '../support/table-replay.js'
import { ALL_CLAIMS, searchTable, type Transition } from '../support/table-search.js'

/** Transitions of the lock table with up to three requests. */
const transitions: Transition[] = []
searchTable({ claims: ALL_CLAIMS, requests: 3, maxDepth: 3 }, transition => transitions.push(transition))

/** Returns one in `every` transitions. */
function sample(every: number): Transition[] {
  return transitions.filter((_, place) => place % every === 0)
}

test('the code in Redis decides as the lock table does', async () => {
  await using server = await startRedis()
  for (const way of Object.values(WAYS)) {
    const ports = await RedisTablePort.over(server, way)
    await compareHistories(ports, 2001, 3)
    if (way !== WAYS.Redisson) await replay(ports, sample(16))
  }
})

test('the functions of PostgreSQL decide as the lock table does', async () => {
  await using server = await startPostgres()
  await using ports = new PostgresTablePorts(server)
  for (const way of ['alone', 'together', 'again'] as const) {
    await compareHistories(() => ports.take(way), 2001, 1)
    await replay(() => ports.take(way), sample(120))
  }
})
