import { expect, test } from 'vitest'
import { until } from '../../packages/conformance/src/time.js'
import { open } from '../../src/index.js'
import { startPostgres } from '../support/servers/postgres.js'

test('permits that are returned while another client has locked the row of the limiter are soon free again', async () => {
  await using server = await startPostgres()
  await using pool = server.pool({ max: 2 })
  const terms = { limit: 2, per: '1h' } as const
  await using box = await open(server.url)
  await using other = await open(server.url)
  const permits = [await box.limiter('api', terms).acquire(), await box.limiter('api', terms).acquire()]
  const client = await pool.connect()
  await client.query('begin')
  const { rowCount } = await client.query(`select from signalbox.data where name like 'limit/%' for update`)
  expect(rowCount).toBe(1)
  const isWaiting = async (): Promise<boolean> => {
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock'`
    return (await pool.query(waiting)).rowCount! > 0
  }
  for (const permit of permits) permit.refund()
  await until('the return waits for the row', isWaiting)
  await until('the return has failed', async () => !(await isWaiting()))
  await client.query('rollback')
  client.release()
  const limiter = other.limiter('api', terms)
  await until('they are free', async () => (await limiter.tryAcquire(2)) !== undefined)
})

test.each([
  [
    'another program has damaged',
    `update signalbox.data set value = 'no state', version = version + 1 where name like 'limit/%spoiled'`,
    /spoiled.* can't be read/,
  ],
  [
    'another client has locked',
    `begin; select from signalbox.data where name like 'limit/%spoiled' for update`,
    /locked the row/,
  ],
])('a limiter whose row %s fails no other one, of any box', async (_, spoil, message) => {
  await using server = await startPostgres()
  await using box = await open(server.url)
  await using other = await open(server.url)
  const terms = { limit: 10, per: '1h' } as const
  const [spoiled, sound] = [box.limiter('spoiled', terms), other.limiter('sound', terms)]
  await Promise.all([spoiled.acquire(), sound.acquire()])
  await using pool = server.pool({ max: 1 })
  await pool.query(spoil)
  const failing = expect(spoiled.acquire(1, { wait: 0 })).rejects.toThrow(message)
  await Promise.all(Array.from({ length: 9 }, () => sound.acquire(1, { wait: '10s' })))
  await failing
  expect(await sound.tryAcquire()).toBeUndefined()
})
