import { randomUUID } from 'node:crypto'
import { test } from 'vitest'
import { open } from '../../src/index.js'
import { stopHolder, type Fate } from '../support/postgres/stopped-holders.js'
import { startPgBouncer } from '../support/servers/pgbouncer.js'
import { startPostgres } from '../support/servers/postgres.js'

const ROUNDS = 200
const AT_ONCE = 8
const FATES: readonly Fate[] = [
  'stopped before its fence',
  'stopped after its fence',
  'killed after its fence',
]

test.each(['pg', 'postgres', 'pg behind PgBouncer'] as const)(
  `${ROUNDS} holders over %s are stopped at each point, and none commits after its successor`,
  async client => {
    await using server = await startPostgres()
    await using pooler = await startPgBouncer(server)
    const pool = server.pool({ max: 2 * AT_ONCE })
    const schema = `?signalbox_schema=s${randomUUID().slice(0, 8)}`
    const box = await open(`${server.url}${schema}`)
    const isPooled = client === 'pg behind PgBouncer'
    const url = `${isPooled ? pooler.url : server.url}${schema}`
    let round = 0
    const stopSome = async (): Promise<void> => {
      while (round < ROUNDS)
        await stopHolder({ box, pool, url, kind: isPooled ? 'pg' : client }, FATES[round++ % FATES.length]!)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, stopSome))
    await box.close()
    await pool.end()
  },
)
