import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, test } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { pause, queued, soFar, timed } from '../../packages/conformance/src/time.js'
import { open } from '../../src/index.js'
import { within } from '../support/postgres/stopped-holders.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { startPgBouncer } from '../support/servers/pgbouncer.js'
import { startPostgres } from '../support/servers/postgres.js'

const server = await startPostgres()
const pool = server.pool({ max: 20 })
afterAll(() => pool.end().then(() => server.kill()))

/** Returns a new schema and its URL. */
function place(): { readonly url: string; readonly schema: string } {
  const schema = `s${randomUUID().slice(0, 8)}`
  return { url: `${server.url}?signalbox_schema=${schema}`, schema }
}

describe.concurrent('a transaction of the caller’s', () => {
  test('that writes a value for the 200th time gives its row a new number', async () => {
    const { url, schema } = place()
    await using box = await open(url)
    const store = box.store('s')
    const write = (value: number) =>
      within(pool, client => store.transaction(['a'], tx => tx.put('a', value), { in: client }))
    await write(1)
    // Simulates years of such transactions, without other writes between them.
    await pool.query(`update ${schema}.data set changes = 2147483647 where name = 'value/s/a'`)
    await write(2)
    expect((await store.get('a'))?.value).toBe(2)
    const { rows } = await pool.query(`select changes from ${schema}.data where name = 'value/s/a'`)
    expect(rows).toEqual([{ changes: 1 }])
  })

  test('that locks the row of a key makes a caller wait as long as its option says', async () => {
    const { url } = place()
    await using box = await open(url)
    await using other = await open(url)
    const { waits } = await within(pool, async client => {
      await box.store('s').transaction(['a'], tx => tx.put('a', 1), { in: client })
      const waits = other
        .store('s')
        .transaction(['a'], tx => tx.put('a', tx.get<number>('a')! + 1), { wait: '30s' })
      await pause(3500)
      expect(await soFar(waits)).toBe('pending')
      return { waits }
    })
    await waits
    expect((await box.store('s').get('a'))?.value).toBe(2)
  })

  test('that locks many values delays only writers of these', async () => {
    const { url, schema } = place()
    await using box = await open(url)
    const store = box.store('s')
    const keys = Array.from({ length: 50 }, (_, index) => `key-${index}`)
    await Promise.all(keys.map(key => store.put(key, 0)))
    const held = await box.mutex('held').acquire({ lease: 1500 })
    const puts = await within(pool, async client => {
      await client.query(`select from ${schema}.data where name like 'value/%' for update`)
      const puts = keys.map(key => store.put(key, 1))
      for (let round = 0; round < 10; round++) {
        // Far less than 100 ms for each of the locked rows.
        expect(await timed(() => box.mutex(`other-${round}`).run(() => undefined))).toBeLessThan(1500)
        await store.put(`more-${round}`, 1)
        held.assertHeld()
      }
      return puts
    })
    await Promise.all(puts)
    await held.release()
    expect((await store.get('key-49'))?.value).toBe(1)
  })
})

test('a box that adds one row at a time deletes ids and keys that expire at the same moment', async () => {
  const clock = new FakeClock()
  await using clocked = await startPostgres({ clock })
  await using box = await open(clocked.url)
  const add = (id: string): Promise<unknown> =>
    box.store('s').transaction(['counter'], tx => tx.put('counter', id), { id, retention: '30s' })
  const names = Array.from({ length: 40 }, (_, index) => `${index}`)
  await Promise.all(names.map(add))
  await Promise.all(names.map(name => box.limiter(name, { limit: 1, per: '1s' }).acquire()))
  clock.set(61_000)
  for (let index = 0; index < 60; index++) {
    await add(`later ${index}`)
    await box.mutex(`later ${index}`).run(() => undefined)
  }
  const [left] = await clocked.query<{ ids: string; keys: string }>(
    `select (select count(*) from signalbox.recorded where until < clock_timestamp()) as ids,
      (select count(*) from signalbox.keys where name like 'limit/%') as keys`,
  )
  expect(left).toEqual({ ids: '0', keys: '0' })
})

test('waiters behind a pooler write almost nothing', async () => {
  await using pooler = await startPgBouncer(server)
  const { schema } = place()
  const url = `${pooler.url}?signalbox_schema=${schema}`
  await using one = await open(url)
  await using other = await open(url)
  const names = Array.from({ length: 20 }, (_, index) => `key-${index}`)
  const held = await Promise.all(names.map(name => one.mutex(name).acquire({ lease: '60s' })))
  const asked = names.map(name => other.mutex(name).acquire({ lease: '60s' }))
  await Promise.all(names.map(name => queued(one, name, 1)))
  const changes = async (): Promise<number> => {
    const { rows } = await pool.query<{ changes: string }>(
      `select sum(changes) as changes from ${schema}.data`,
    )
    return Number(rows[0]!.changes)
  }
  const before = await changes()
  await pause(3000)
  // Each sends a heartbeat every second or two.
  expect((await changes()) - before).toBeLessThan(4 * names.length)
  for (const grant of held) await grant.release()
  for (const grant of asked) await (await grant).release()
})

test('damaged rows make only operations on them fail, and can be overwritten', async () => {
  const { url, schema } = place()
  await using box = await open(url)
  const store = box.store('s')
  await store.put('bad', 1)
  await store.put('good', 1)
  await box.mutex('lost').run(() => undefined)
  await pool.query(`update ${schema}.data set value = '{' where name = 'value/s/bad'`)
  await pool.query(`
    update ${schema}.data set queue = array[row('a.1', 'lock/nothing', ${'null, '.repeat(9)}null)::${schema}.request]
      where name = 'lock/lost'`)
  await expect(box.mutex('lost').tryAcquire()).rejects.toMatchObject({
    message: expect.stringContaining('lock/lost') as string,
  })
  const [bad, ...others] = await Promise.allSettled([
    store.get('bad'),
    store.get('good'),
    box.mutex('lost').tryAcquire(),
    box.mutex('other').run(() => undefined),
    store.put('good', 2),
  ])
  expect(others.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
  expect(bad).toMatchObject({
    status: 'rejected',
    reason: { message: expect.stringContaining('bad') as string },
  })
  const shown: string[] = []
  await box.mutex('shown').run(async () => {
    for await (const { key } of box.inspect()) shown.push(key)
  })
  expect(shown).toEqual(['shown'])
  await store.put('bad', 3)
  expect((await store.get('bad'))?.value).toBe(3)
})

test.each(['0', '-15'])(
  'a role with extra_float_digits = %s keeps no permits from a distant box',
  { timeout: 30_000 },
  async digits => {
    const role = `r${randomUUID().slice(0, 8)}`
    await pool.query(
      `create role ${role} login superuser; alter role ${role} set extra_float_digits = ${digits}`,
    )
    await using network = await Proxy.start(server.address.port)
    const url = place().url.replace('tester', role)
    await using near = await open(url)
    await using far = await open(url.replace(`:${server.address.port}`, `:${network.port}`))
    const limit = { limit: 10, per: 100 } as const
    const controller = new AbortController()
    const busy = Array.from({ length: 5 }, async () => {
      while (!controller.signal.aborted) await near.limiter('api', limit).acquire()
    })
    network.delay = 150
    try {
      for (let count = 0; count < 3; count++) await far.limiter('api', limit).acquire(1, { wait: '5s' })
    } finally {
      network.delay = 0
      controller.abort()
      await Promise.all(busy)
    }
  },
)
