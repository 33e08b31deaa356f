import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { InvalidArgumentError, LostError, open, type Box, type Claim } from '../../src/index.js'
import { pause, queued, soFar, until } from '../../packages/conformance/src/time.js'
import { makeLedger, stopHolder, within, type Fate } from '../support/postgres/stopped-holders.js'
import { startPgBouncer, type PgBouncer } from '../support/servers/pgbouncer.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

let server: PostgresServer
let pooler: PgBouncer
let pool: pg.Pool
beforeAll(async () => {
  server = await startPostgres()
  pooler = await startPgBouncer(server)
  pool = server.pool({ max: 20 })
})
afterAll(async () => {
  await pool.end()
  await pooler.kill()
  await server.kill()
})

/** A schema of its own. */
function place(): string {
  return `${server.url}?signalbox_schema=s${randomUUID().slice(0, 8)}`
}

/** Appends a name to the order while holding a key, and another one. */
async function lockInTurn(box: Box, name: string, order: string[]): Promise<void> {
  await box.mutex('b', `only ${name}`).run(() => void order.push(name))
}

/** Appends a name to the order by reading and writing it. */
async function writeInTurn(box: Box, name: string, order: string[]): Promise<void> {
  await box.store('s').put('key', name)
  order.push(name)
}

describe.concurrent('a grant that is bound to a transaction', () => {
  test('the next holder waits for the end of the transaction, not for the release', async () => {
    const url = place()
    await using box = await open(url)
    await using other = await open(url)
    const client = await pool.connect()
    await client.query('begin')
    const grant = await box.mutex('key').acquire()
    await grant.fence(client)
    await grant.release()
    expect(await other.mutex('key').tryAcquire()).toBeUndefined()
    const next = other.mutex('key').acquire({ wait: '10s' })
    await queued(other, 'key', 1)
    const local = box.mutex('key').acquire({ wait: '10s' })
    await pause(300)
    expect(await soFar(next)).toBe('pending')
    expect(await soFar(local)).toBe('pending')
    await client.query('commit')
    client.release()
    await (await next).release()
    await (await local).release()
  })

  test('a caller of the same box waits for the end of the transaction, too', async () => {
    const url = place()
    await using box = await open(url)
    const client = await pool.connect()
    const grant = await box.mutex('key').acquire()
    const local = box.mutex('key').acquire({ wait: '10s' })
    await client.query('begin')
    await grant.fence(client)
    await grant.release()
    await pause(300)
    expect(await soFar(local)).toBe('pending')
    await client.query('rollback')
    client.release()
    await (await local).release()
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

  test('keys of one request are bound together, and others stay free', async () => {
    const url = place()
    await using box = await open(url)
    await using other = await open(url)
    await within(pool, async client => {
      await using grant = await box.mutex('a', 'b').acquire()
      await grant.fence(client)
      await grant.release()
      expect(await other.mutex('b').tryAcquire()).toBeUndefined()
      expect(await other.mutex('a').tryAcquire()).toBeUndefined()
      await (await other.mutex('c').acquire()).release()
    })
    await (await other.mutex('a', 'b').acquire({ wait: '5s' })).release()
  })

  test.each([
    ['a', 'b'],
    ['b', 'a'],
  ])('the exclusive key %s of a grant is bound, and its permits of %s are not', async (key, permits) => {
    const url = place()
    await using box = await open(url)
    await using other = await open(url)
    await within(pool, async client => {
      const claims: Claim[] = [
        { key, mode: 'exclusive' },
        { key: permits, mode: 'permits', permits: 1, max: 2 },
      ]
      const grant = await box.lock(...claims).acquire()
      await grant.fence(client)
      const second = await other.semaphore(permits, { max: 2 }).tryAcquire()
      expect(second).toBeDefined()
      await second!.release()
      await grant.release()
      expect(await other.mutex(key).tryAcquire()).toBeUndefined()
      const both = await other.semaphore(permits, { max: 2 }).tryAcquire({ permits: 2 })
      expect(both).toBeDefined()
      await both!.release()
    })
    await (await other.lock({ key, mode: 'exclusive' }).acquire({ wait: '5s' })).release()
  })

  test('a lost grant of an exclusive key and permits is rejected', async () => {
    const url = place()
    await using box = await open(url)
    await using other = await open(url)
    const permits: Claim = { key: 'a', mode: 'permits', permits: 1, max: 2 }
    const grant = await box.lock(permits, { key: 'b', mode: 'exclusive' }).acquire()
    expect(await other.forceRelease('b', grant.token)).toBe(true)
    await expect(within(pool, client => grant.fence(client))).rejects.toThrow(LostError)
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

  test('a client that has begun no transaction is rejected', async () => {
    await using box = await open(place())
    const client = await pool.connect()
    const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('has begun none') }
    await box.mutex('key').run(async grant => {
      await expect(grant.fence(client)).rejects.toMatchObject(refused)
    })
    const store = box.store('s')
    await expect(store.transaction(['key'], tx => tx.put('key', 1), { in: client })).rejects.toMatchObject(
      refused,
    )
    expect(await store.get('key')).toBeUndefined()
    client.release()
  })

  test('an operation that waits for a row locked by a transaction delays no other operation', async () => {
    const url = place()
    await using box = await open(url)
    await using other = await open(url)
    const held = await other.mutex('unrelated').acquire({ lease: 1000 })
    await within(pool, async client => {
      await box.store('s').transaction(['key'], tx => tx.put('key', 1), { in: client })
      const blocked = other.store('s').put('key', 2)
      blocked.catch(() => undefined)
      const since = performance.now()
      while ((await soFar(blocked)) === 'pending') {
        await other.store('s').put('more', 1)
        held.assertHeld()
      }
      // It is rejected after two seconds.
      expect(performance.now() - since).toBeGreaterThan(1500)
      await expect(blocked).rejects.toMatchObject({
        code: 'UNAVAILABLE',
        message: expect.stringContaining('another transaction has locked the row'),
      })
    })
    await held.release()
    await other.store('s').put('key', 2)
  })

  test.each([
    ['locks', 'lock/b', lockInTurn],
    ['writes', 'value/s/key', writeInTurn],
  ] as const)(
    'calls of one box keep their order when they wait for a row that a transaction holds: %s',
    async (_, row, call) => {
      const url = place()
      const schema = new URL(url).searchParams.get('signalbox_schema')!
      await using box = await open(url)
      /** Whether a statement of the box waits for a row. */
      const waits = async (): Promise<boolean> => {
        const { rowCount } = await pool.query(
          `select from pg_stat_activity where wait_event_type = 'Lock' and position('${schema}' in query) > 0`,
        )
        return rowCount! > 0
      }
      const order: string[] = []
      await call(box, 'before', order)
      const first = await within(pool, async client => {
        await client.query(`select from ${schema}.data where name = $1 for update`, [row])
        const calling = call(box, 'first', order)
        await until('it waits for the row', waits)
        await until('the server has stopped waiting', async () => !(await waits()))
        return { calling }
      })
      await Promise.all([first.calling, call(box, 'second', order)])
      expect(order).toEqual(['before', 'first', 'second'])
    },
  )

  test('a lost grant is rejected', async () => {
    const url = place()
    await using box = await open(url)
    await using other = await open(url)
    const grant = await box.mutex('key').acquire()
    expect(await other.forceRelease('key', grant.token)).toBe(true)
    await expect(within(pool, client => grant.fence(client))).rejects.toThrow(LostError)
  })

  test('a pool, and a grant that is not exclusive, are rejected', async () => {
    const url = place()
    await using box = await open(url)
    const grant = await box.mutex('key').acquire()
    // @ts-expect-error The types reject it, too.
    await expect(grant.fence(pool)).rejects.toThrow(InvalidArgumentError)
    await expect(grant.fence('client' as never)).rejects.toThrow(InvalidArgumentError)
    await grant.release()
    const permit = await box.semaphore('permits', { max: 2 }).acquire()
    await expect(within(pool, client => permit.fence(client))).rejects.toThrow(InvalidArgumentError)
    await permit.release()
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
        await expect(grant.fence({ query })).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
          message: expect.stringContaining('does not return the rows'),
        })
        grant.assertHeld()
        await grant.fence({ query: (text, values) => client.query(text, values) })
      }),
    )
  })

  test('the values of a store transaction are written when the caller’s transaction commits', async () => {
    const url = place()
    const ledger = await makeLedger(pool)
    await using box = await open(url)
    await using other = await open(url)
    const store = box.store('accounts')
    await store.put('from', 10)
    const move = (client: pg.PoolClient) =>
      store.transaction(
        ['from', 'to'],
        tx => {
          tx.put('from', tx.get<number>('from')! - 3)
          tx.put('to', (tx.get<number>('to') ?? 0) + 3)
        },
        { in: client, id: 'move' },
      )
    const client = await pool.connect()
    await client.query('begin')
    await client.query(`update ${ledger} set last = 1`)
    await move(client)
    expect((await store.get('from'))?.value).toBe(10)
    expect(await other.mutex('accounts/from').tryAcquire()).toBeUndefined()
    await client.query('rollback')
    expect((await store.get('from'))?.value).toBe(10)
    await client.query('begin')
    expect(await move(client)).toMatchObject({ applied: true })
    await client.query('commit')
    expect((await other.store('accounts').get('from'))?.value).toBe(7)
    expect((await other.store('accounts').get('to'))?.value).toBe(3)
    await client.query('begin')
    expect(await move(client)).toMatchObject({ applied: false })
    await client.query('commit')
    client.release()
    expect((await store.get('from'))?.value).toBe(7)
  })

  describe.each(['pg', 'postgres', 'pg behind PgBouncer'] as const)('of %s', client => {
    const fates: Fate[] = ['stopped before its fence', 'stopped after its fence', 'killed after its fence']

    test.each(fates)('keeps the order of commits when its holder is %s', async fate => {
      const url = place()
      await using box = await open(url)
      const isPooled = client === 'pg behind PgBouncer'
      const kind = isPooled ? 'pg' : client
      await stopHolder({ box, pool, url: isPooled ? url.replace(server.url, pooler.url) : url, kind }, fate)
    })
  })
})
