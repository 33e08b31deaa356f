import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { queued } from '../../packages/conformance/src/time.js'
import { open } from '../../src/index.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.kill())

/** A box, and the functions of its schema that it calls from now on. */
async function counted(schema: string) {
  const pool = server.pool()
  const calls: string[] = []
  pool.on('connect', client => {
    const query = client.query.bind(client) as (statement: { text?: string }) => unknown
    const counting = (statement: { text?: string }): unknown => {
      const [, called] = /\.(\w+)\(/.exec(statement.text ?? '') ?? []
      // Messages are tested all the time.
      if (called && called !== 'send_notices') calls.push(called)
      return query(statement)
    }
    Object.assign(client, { query: counting })
  })
  const box = await open({ postgres: pool, schema })
  return { box, calls, close: () => box.close().then(() => pool.end()) }
}

test('a box reads all rows that it needs with one statement', async () => {
  const { box, calls, close } = await counted('looks')
  await using other = await open(`${server.url}?signalbox_schema=looks`)
  const held = await other.mutex('hub').acquire()
  // Everything about each of these requests is in the row of its first key.
  const waiters = Array.from({ length: 20 }, (_, index) => other.mutex(`a-${index}`, 'hub').acquire())
  await queued(other, 'hub', waiters.length)
  calls.length = 0
  expect(await box.mutex('hub').tryAcquire()).toBeUndefined()
  expect(calls).toEqual(['decide_one'])
  await held.release()
  for (const waiter of waiters) await (await waiter).release()
  await close()
})

test('a waiter that is woken acquires its lock with one statement', async () => {
  const { box, calls, close } = await counted('woken')
  await using other = await open(`${server.url}?signalbox_schema=woken`)
  const held = await other.mutex('key').acquire()
  const asked = box.mutex('key').acquire()
  await queued(other, 'key', 1)
  calls.length = 0
  await held.release()
  await asked
  expect(calls).toEqual(['decide_one'])
  await close()
})

test('callers of one box pass a lock on with less than one statement for 16 turns', async () => {
  const { box, calls, close } = await counted('turns')
  const cycle = () => box.mutex('key').run(() => undefined)
  await cycle()
  calls.length = 0
  const since = performance.now()
  await Promise.all(Array.from({ length: 10_000 }, cycle))
  const asked = (performance.now() - since) / 2
  expect(calls.length).toBeLessThan(Math.min(asked + 3, 10_000 / 16))
  await close()
})

test('boxes that lock further rows while they decide do not wait for each other', async () => {
  const boxes = await Promise.all(
    Array.from({ length: 4 }, () => open(`${server.url}?signalbox_schema=crossed`)),
  )
  let left = 800
  const work = async (box: (typeof boxes)[number]) => {
    while (left-- > 0) {
      const keys = Array.from({ length: 3 }, () => `key-${Math.floor(Math.random() * 30)}`)
      await box.mutex(...new Set(keys)).run(() => undefined)
    }
  }
  await Promise.all(boxes.flatMap(box => Array.from({ length: 16 }, () => work(box))))
  await Promise.all(boxes.map(box => box.close()))
  // The server counts them when a connection ends.
  const [found] = await server.query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  )
  expect(found!.deadlocks).toBe('0')
})

test('a PGlite, whose clock has whole milliseconds, rejects no decision because of its time', async () => {
  const pglite = await PGlite.create()
  const query = vi.spyOn(pglite, 'query')
  const box = await open({ postgres: pglite })
  const cycle = () => box.mutex('key').run(() => undefined)
  await cycle()
  query.mockClear()
  for (let turn = 0; turn < 200; turn++) await cycle()
  const changes = query.mock.calls.filter(([text]) => text.includes('.decide_one('))
  // One statement to acquire the lock, and one to release it.
  expect(changes.length).toBeLessThanOrEqual(400)
  await box.close()
  await pglite.close()
})
