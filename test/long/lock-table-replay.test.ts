import { expect, test } from 'vitest'
import { PostgresTablePorts } from '../support/postgres/table-port.js'
import { RedisTablePort, WAYS } from '../support/redis/table-port.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'
import { replay } from '../support/table-replay.js'
import { ALL_CLAIMS, searchTable, type Transition } from '../support/table-search.js'

/** The operations of two requests in all states, and those of three requests within four operations. */
const transitions: Transition[] = []
for (const [requests, maxDepth] of [
  [2, Infinity],
  [3, 4],
] as const)
  searchTable({ claims: ALL_CLAIMS, requests, maxDepth }, transition => transitions.push(transition))

test.each(Object.entries({ function: WAYS.function, script: WAYS.script }))(
  'the code in Redis decides each operation of the search: %s',
  async (_, way) => {
    await using server = await startRedis()
    const replayed = await replay(await RedisTablePort.over(server, way), transitions)
    console.info(`${replayed} of ${transitions.length} operations replayed`)
    expect(replayed).toBeGreaterThan(0.9 * transitions.length)
  },
)

test.each(['alone', 'together', 'again'] as const)(
  'the functions of PostgreSQL decide operations of the search that are sent %s',
  async way => {
    await using server = await startPostgres()
    await using ports = new PostgresTablePorts(server)
    const chosen = transitions.filter((_, place) => place % 3 === 0)
    const replayed = await replay(() => ports.take(way), chosen)
    console.info(`${replayed} of ${chosen.length} operations replayed`)
    expect(replayed).toBeGreaterThan(0.9 * chosen.length)
  },
)
