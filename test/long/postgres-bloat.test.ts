import { expect, test } from 'vitest'
import { open, type Box } from '../../src/index.js'
import { pause, until } from '../../packages/conformance/src/time.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

/** Returns the number of times that one caller acquires and releases a lock within a duration, in milliseconds. */
async function cycles(box: Box, duration: number): Promise<number> {
  const mutex = box.mutex('hot')
  const begun = performance.now()
  let count = 0
  for (; performance.now() - begun < duration; count++) await (await mutex.acquire()).release()
  return count
}

/** Returns the number of index entries that the engine's queries have read in a database. */
async function entriesRead(server: PostgresServer, database: string): Promise<number> {
  // A server process reports its statistics at most once a second.
  await pause(1500)
  const pool = server.pool({ database })
  try {
    const { rows } = await pool.query<{ read: string }>(
      `select sum(idx_tup_read) as read from pg_stat_user_indexes where schemaname = 'signalbox'`,
    )
    return Number(rows[0]!.read)
  } finally {
    await pool.end()
  }
}

test('a transaction elsewhere that is open for a minute does not slow locks down, and dead rows stay few', async () => {
  await using server = await startPostgres({ settings: { autovacuum_naptime: '1s' } })
  await server.query('create database quiet')
  const pool = server.pool()
  await using box = await open(server.url)
  await using quiet = await open(server.url.replace(/postgres$/, 'quiet'))
  await cycles(box, 3000)
  const elsewhere = await pool.connect()
  await elsewhere.query('begin isolation level repeatable read')
  await elsewhere.query('select count(*) from signalbox.data')
  await cycles(box, 50_000)
  const before = await entriesRead(server, 'postgres')
  let done = 0
  let undisturbed = 0
  // The two boxes run alternately, so that other load on the machine slows both down.
  for (let turn = 0; turn < 20; turn++) {
    done += await cycles(box, 500)
    undisturbed += await cycles(quiet, 500)
  }
  const entries = ((await entriesRead(server, 'postgres')) - before) / done
  console.log({ done, undisturbed, entries })
  expect(done).toBeGreaterThan(0.7 * undisturbed)
  // A cycle has two calls. Each of them finds a row that was changed up to 200 times.
  expect(entries).toBeLessThan(400)
  await elsewhere.query('commit')
  elsewhere.release()
  const dead = async (): Promise<number> => {
    const { rows } = await pool.query<{ dead: string }>(
      `select n_dead_tup as dead from pg_stat_user_tables where schemaname = 'signalbox' and relname = 'data'`,
    )
    return Number(rows[0]!.dead)
  }
  await until('the dead rows are vacuumed', async () => {
    await cycles(box, 500)
    return (await dead()) < 25_000
  })
  // From now on the number of dead rows stays bounded, no matter how long the lock is in use.
  await cycles(box, 20_000)
  expect(await dead()).toBeLessThan(100_000)
  await pool.end()
})
