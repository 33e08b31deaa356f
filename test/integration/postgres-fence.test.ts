import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { open, type Store } from '../../src/index.js'
import { pause, soFar, until } from '../../packages/conformance/src/time.js'
import { testCallersTransactions } from '../support/callers-transactions.js'
import { failure } from '../support/failure.js'
import { stopHolder, within, type Fate } from '../support/postgres/stopped-holders.js'
import { startPostgres } from '../support/servers/postgres.js'

const server = await startPostgres({ settings: { max_prepared_transactions: '10' } })
const pool = server.pool({ max: 20 })
afterAll(() => pool.end().then(() => server.kill()))

/** Returns the URL of a new schema. */
function place(): string {
  return `${server.url}?signalbox_schema=s${randomUUID().slice(0, 8)}`
}

describe.concurrent('a grant that is bound to a transaction', () => {
  testCallersTransactions(async () => {
    const url = place()
    const box = await open(url)
    const other = await open(url)
    const clients: pg.PoolClient[] = []
    return {
      box,
      other,
      client: async () => {
        const client = await pool.connect()
        clients.push(client)
        return client
      },
      pass: pause,
      [Symbol.asyncDispose]: async () => {
        for (const client of clients) client.release(true)
        await other.close()
        await box.close()
      },
    }
  })

  test('the holder renews its lease, and waiters queue up, while the transaction is open', async () => {
    const url = place()
    await using box = await open(url)
    await using other = await open(url)
    const { waits } = await within(pool, async client => {
      const grant = await box.mutex('key').acquire({ lease: 1500 })
      await grant.fence(client)
      const waits = other.mutex('key').acquire({ wait: '10s' })
      await pause(3000)
      grant.assertHeld()
      expect(await soFar(waits)).toBe('pending')
      await grant.release()
      return { waits }
    })
    await (await waits).release()
  })

  test('a row that gets another number while it is being bound is bound nevertheless', async () => {
    const url = place()
    const schema = url.split('=')[1]!
    await using box = await open(url)
    await using other = await open(url)
    const grant = await box.mutex('key').acquire()
    await within(pool, async mover => {
      await mover.query(
        `select ${schema}.move_rows(array(select id from ${schema}.keys where name = 'lock/key'))`,
      )
      const client = await pool.connect()
      await client.query('begin')
      const fenced = grant.fence(client)
      await until('the fence waits for the row', async () => {
        const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%${schema}%fence%'`
        return (await pool.query(waiting)).rows.length > 0
      })
      await mover.query('commit')
      await fenced
      await grant.release()
      expect(await other.mutex('key').tryAcquire()).toBeUndefined()
      await client.query('commit')
      client.release()
    })
    await (await other.mutex('key').acquire({ wait: '5s' })).release()
  })

  test.each<readonly [string, (result: pg.QueryResult<object>) => readonly unknown[]]>([
    ['nothing', () => []],
    ['the result in an array', result => [result]],
    ['the rows and more', result => [result.rows, result]],
    ['rows that were parsed', ({ rows }) => rows.map(row => Object.keys(row).map(() => true))],
  ])('an object whose query returns %s is refused, and the grant is kept', async (_, returned) => {
    await using box = await open(place())
    await box.mutex('key').run(grant =>
      within(pool, async client => {
        const query = async (text: string, values: string[]) => returned(await client.query(text, values))
        await expect(grant.fence({ query })).rejects.toMatchObject(
          failure('INVALID_ARGUMENT', 'does not return the rows'),
        )
        grant.assertHeld()
        await grant.fence({ query: (text, values) => client.query(text, values) })
      }),
    )
  })

  test('a transaction that keeps the key of a released grant is a holder, with its process and application', async () => {
    const url = place()
    await using box = await open(url)
    await using other = await open(url)
    const client = await pool.connect()
    await client.query('begin')
    await client.query("set local application_name = 'billing'")
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const grant = await box.mutex('a', 'key').acquire()
    await grant.fence(client)
    await grant.release()
    const mutex = other.mutex('key')
    expect(await mutex.isLocked()).toBe(true)
    for (const lock of [mutex, other.readWriteLock('key').read, other.semaphore('key', { max: 2 })])
      expect(await lock.tryAcquire()).toBeUndefined()
    const holder = { pid: rows[0]!.pid, label: 'an open transaction of billing' }
    await expect(mutex.acquire({ wait: 500 })).rejects.toMatchObject({ code: 'TIMED_OUT', holder })
    for await (const { key, holders } of other.inspect('', {}))
      expect([key, holders]).toMatchObject([expect.stringMatching(/^(a|key)$/), [holder]])
    await client.query('commit')
    client.release()
    await until('it is free', async () => !(await mutex.isLocked()))
  })

  test('a transaction that keeps a key is a holder also while an operation takes long to change the row', async () => {
    const url = place()
    const schema = url.split('=')[1]!
    await using box = await open(url)
    const client = await pool.connect()
    await client.query('begin')
    await box.mutex('key').run(grant => grant.fence(client))
    const isLocked = (): Promise<boolean> => box.mutex('key').isLocked()
    const lockRow = `select from ${schema}.data where name = 'lock/key' for no key update`
    await within(pool, async operation => {
      await operation.query(lockRow)
      expect(await isLocked()).toBe(true)
    })
    await client.query('commit')
    client.release()
    await within(pool, async operation => {
      await operation.query(lockRow)
      expect(await isLocked()).toBe(false)
    })
  })

  test.for([undefined, 'on duty'])(
    'a value that a store transaction has read, %s, stays unchanged until the caller’s transaction ends',
    async (before, { onTestFinished }) => {
      const url = place()
      await using box = await open(url)
      await using other = await open(url)
      let reads = 0
      const leave = (store: Store, own: string, beside: string, client: pg.PoolClient) => {
        let seen: string | undefined
        return store.transaction(
          async read => {
            seen = await read(beside)
            return [own]
          },
          tx => {
            reads++
            if (seen === before) tx.put(own, 'off duty')
            return seen
          },
          { in: client },
        )
      }
      const [one, two] = [box.store('s'), other.store('s')]
      if (before) for (const key of ['a', 'b', 'c']) await one.put(key, before)
      const clients = [await pool.connect(), await pool.connect(), await pool.connect()]
      onTestFinished(() => clients.forEach(client => client.release(true)))
      for (const client of clients) await client.query('begin')
      expect(await leave(one, 'a', 'b', clients[0]!)).toMatchObject({ applied: true, result: before })
      // Another transaction may read the same value.
      expect(await leave(two, 'c', 'b', clients[1]!)).toMatchObject({ applied: true, result: before })
      await clients[1]!.query('commit')
      const second = leave(two, 'b', 'a', clients[2]!)
      await until('the second one has read', () => reads === 3)
      expect(await soFar(second)).toBe('pending')
      await clients[0]!.query('commit')
      expect(await second).toMatchObject({ applied: true, result: 'off duty', attempts: 2 })
      await clients[2]!.query('commit')
      expect((await one.get('b'))?.value).toBe(before)
    },
  )

  test('a transaction that writes a watched value can be prepared, and its watchers see the value in time', async () => {
    const url = place()
    await using box = await open(url)
    await using other = await open(url)
    const store = box.store('s')
    await store.put('key', 'before')
    const seen: unknown[] = []
    const controller = new AbortController()
    const watching = (async () => {
      for await (const value of other.store('s').watch('key', controller.signal)) seen.push(value)
    })()
    await until('it watches', () => seen.length === 1)
    const client = await pool.connect()
    await client.query('begin')
    await box.mutex('lock').run(grant => grant.fence(client))
    await store.transaction(['key'], tx => tx.put('key', 'after'), { in: client })
    await client.query("prepare transaction 'watched'")
    await pause(200)
    expect(seen).toHaveLength(1)
    await client.query("commit prepared 'watched'")
    client.release()
    // Without a notification, only the next regular read would find the change, after ten seconds.
    await until('it has seen the change', () => seen.length === 2, 4000)
    controller.abort()
    await watching.catch(() => undefined)
    expect((await other.store('s').get('key'))?.value).toBe('after')
  })

  test.each<Fate>(['stopped before its fence', 'stopped after its fence', 'killed after its fence'])(
    'keeps the order of commits when its holder is %s',
    async fate => {
      const url = place()
      await using box = await open(url)
      await stopHolder({ box, pool, url, kind: 'pg' }, fate)
    },
  )
})
