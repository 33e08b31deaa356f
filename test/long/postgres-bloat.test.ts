import { expect, test } from 'vitest'
import { open, type Box } from '../../src/index.js'
import { until } from '../../packages/conformance/src/time.js'
import { startPostgres } from '../support/servers/postgres.js'

/** How often a second one caller takes and releases the lock, over so many milliseconds. */
async function rate(box: Box, duration: number): Promise<number> {
  const mutex = box.mutex('hot')
  const begun = performance.now()
  let cycles = 0
  for (; performance.now() - begun < duration; cycles++) await (await mutex.acquire()).release()
  return (cycles * 1000) / (performance.now() - begun)
}

test('a transaction elsewhere that is open for a minute does not slow locks down, and dead rows stay few', async () => {
  const server = await startPostgres()
  const pool = server.pool()
  try {
    await pool.query(`alter system set autovacuum_naptime = '1s'`)
    await pool.query('select pg_reload_conf()')
    await using box = await open(server.url)
    await rate(box, 3000)
    const before = await rate(box, 10_000)
    const elsewhere = await pool.connect()
    await elsewhere.query('begin isolation level repeatable read')
    await elsewhere.query('select count(*) from signalbox.data')
    await rate(box, 50_000)
    const during = await rate(box, 10_000)
    console.log({ before, during, share: during / before })
    expect(during).toBeGreaterThan(0.7 * before)
    await elsewhere.query('commit')
    elsewhere.release()
    const dead = async (): Promise<number> => {
      const { rows } = await pool.query<{ dead: string }>(
        `select n_dead_tup as dead from pg_stat_user_tables where schemaname = 'signalbox' and relname = 'data'`,
      )
      return Number(rows[0]!.dead)
    }
    await until('the dead rows are vacuumed', async () => {
      await rate(box, 500)
      return (await dead()) < 25_000
    })
    // Bounded from now on, however long the lock is in use.
    await rate(box, 20_000)
    expect(await dead()).toBeLessThan(100_000)
  } finally {
    await pool.end()
    await server.kill()
  }
})
