import { PGlite } from '@electric-sql/pglite'
import { afterAll, expect, test, vi } from 'vitest'
import { queued, until } from '../../packages/conformance/src/time.js'
import { open } from '../../src/index.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

const server = await startPostgres()
afterAll(() => server.kill())

/** Waits until this many statements wait for a row. */
async function waitingForLocks(on: PostgresServer, count: number): Promise<void> {
  await until('a statement waits for the row', async () => {
    const rows = await on.query("select from pg_stat_activity where wait_event_type = 'Lock'")
    return rows.length >= count
  })
}

/** Returns a box, and the functions of its schema that it calls from now on. */
async function counted(schema: string) {
  const pool = server.pool()
  const calls: string[] = []
  pool.on('connect', client => {
    const query = client.query.bind(client) as (statement: { text?: string }) => unknown
    const counting = (statement: { text?: string }): unknown => {
      const [, called] = /\.(\w+)\(/.exec(statement.text ?? '') ?? []
      // Ignores this function, which the box calls all the time.
      if (called && called !== 'send_notices') calls.push(called)
      return query(statement)
    }
    Object.assign(client, { query: counting })
  })
  const box = await open({ postgres: pool, schema })
  return { box, calls, close: () => box.close().then(() => pool.end()) }
}

test('a box reads all rows that it needs, and a waiter that is woken acquires its lock, with one statement', async () => {
  const { box, calls, close } = await counted('looks')
  await using other = await open(`${server.url}?signalbox_schema=looks`)
  const held = await other.mutex('hub').acquire()
  // The row of its first key contains all data of each of these requests.
  const waiters = Array.from({ length: 20 }, (_, index) => other.mutex(`a-${index}`, 'hub').acquire())
  await queued(other, 'hub', waiters.length)
  calls.length = 0
  expect(await box.mutex('hub').tryAcquire()).toBeUndefined()
  expect(calls).toEqual(['decide_one'])
  await held.release()
  for (const waiter of waiters) await (await waiter).release()
  const again = await other.mutex('key').acquire()
  const asked = box.mutex('key').acquire()
  await queued(other, 'key', 1)
  calls.length = 0
  await again.release()
  await asked
  expect(calls).toEqual(['decide_one'])
  await close()
})

test('a hand-over that waits for another operation on its row is decided without the lock table', async () => {
  const url = `${server.url}?signalbox_schema=contended`
  const [box, other] = [await open(url), await open(url)]
  await box.mutex('key').acquire()
  const waiting = other.mutex('key').acquire()
  await queued(box, 'key', 1)
  await using pool = server.pool({ max: 2 })
  const [writer, releaser] = [await pool.connect(), await pool.connect()]
  const { rows } = await writer.query<{ id: string; number: string }>(
    "select (d.queue[1]).id, (d.queue[1]).number from contended.data d where d.name = 'lock/key'",
  )
  await writer.query("begin; update contended.data set changes = changes where name = 'lock/key'")
  await server.query('alter function contended.decide_lock rename to no_lock_table')
  const released = releaser.query<{ decide_one: string }>(
    "select contended.decide_one('', '', 0, '', 10000, 2, 'lock/key', $1, '', $2, 0, 0, 0, '', '{0,0}')",
    [rows[0]!.id, rows[0]!.number],
  )
  await waitingForLocks(server, 1)
  await writer.query('commit')
  expect((await released).rows[0]!.decide_one).toMatch(/^\[\[1\],\[\["wake",/)
  await server.query('alter function contended.no_lock_table rename to decide_lock')
  await (await waiting).release()
  for (const client of [writer, releaser]) client.release()
  await box.close()
  await other.close()
})

test('an update that waits for another leaves a key whose last grant is bound to a transaction to nobody', async () => {
  const url = `${server.url}?signalbox_schema=bound`
  await using box = await open(url)
  await using other = await open(url)
  await using pool = server.pool({ max: 2 })
  const [fenced, writer] = [await pool.connect(), await pool.connect()]
  const held = await box.mutex('key').acquire()
  await fenced.query('begin')
  await held.fence(fenced)
  const asked = other.mutex('key').acquire()
  await queued(box, 'key', 1)
  await writer.query("begin; update bound.data set changes = changes where name = 'lock/key'")
  const released = held.release()
  await waitingForLocks(server, 1)
  await writer.query('commit')
  await released
  // The transaction counts as a holder.
  for await (const { holders, waiters } of box.inspect('key'))
    expect([holders.length, waiters.length]).toEqual([1, 1])
  await fenced.query('commit')
  await (await asked).release()
  for (const client of [fenced, writer]) client.release()
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
  let left = 300
  const work = async (box: (typeof boxes)[number]) => {
    while (left-- > 0) {
      const keys = Array.from({ length: 3 }, () => `key-${Math.floor(Math.random() * 30)}`)
      await box.mutex(...new Set(keys)).run(() => undefined)
    }
  }
  await Promise.all(boxes.flatMap(box => Array.from({ length: 16 }, () => work(box))))
  await Promise.all(boxes.map(box => box.close()))
  // The server updates this count when a connection ends.
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
  // One statement acquires the lock, and one releases it.
  expect(changes.length).toBeLessThanOrEqual(400)
  await box.close()
  await pglite.close()
})
