import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { InvalidArgumentError, LostError, open, type Box } from '../../src/index.js'
import { pause, soFar } from '../../src/conformance/time.js'
import { startChild } from '../contract/child.js'
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js'

let server: PostgresServer
let pool: pg.Pool
beforeAll(async () => {
  server = await startPostgres()
  pool = server.pool({ max: 20 })
})
afterAll(async () => {
  await pool.end()
  await server.kill()
})

/** A schema and a ledger with the token that was last written, and the one that its writer found. */
async function place(): Promise<{ url: string; ledger: string }> {
  const schema = `s${randomUUID().slice(0, 8)}`
  const ledger = `ledger_${schema}`
  await pool.query(`create table ${ledger} (before bigint, last bigint)`)
  await pool.query(`insert into ${ledger} values (0, 0)`)
  return { url: `${server.url}?schema=${schema}`, ledger }
}

async function within<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

/** What the next holder finds, and writes its own token over. */
function succeed(box: Box, key: string, ledger: string): Promise<{ token: bigint; found: bigint }> {
  return box.mutex(key).run(
    grant =>
      within(async client => {
        await grant.fence(client)
        const { rows } = await client.query<{ last: string }>(`select last from ${ledger}`)
        await client.query(`update ${ledger} set before = last, last = $1`, [grant.token])
        return { token: grant.token, found: BigInt(rows[0]!.last) }
      }),
    { wait: '20s' },
  )
}

describe.concurrent('a grant that is bound to a transaction', () => {
  test('the next holder waits for the end of the transaction, not for the release', async () => {
    const { url } = await place()
    await using box = await open(url)
    await using other = await open(url)
    const client = await pool.connect()
    await client.query('begin')
    const grant = await box.mutex('key').acquire()
    await grant.fence(client)
    await grant.release()
    expect(await other.mutex('key').tryAcquire()).toBeUndefined()
    const next = other.mutex('key').acquire({ wait: '10s' })
    const local = box.mutex('key').acquire({ wait: '10s' })
    await pause(300)
    expect(await soFar(next)).toBe('pending')
    expect(await soFar(local)).toBe('pending')
    await client.query('commit')
    client.release()
    await (await next).release()
    await (await local).release()
  })

  test('a local caller waits for the end of the transaction, too', async () => {
    const { url } = await place()
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

  test('the holder renews its lease, and waiters queue up, while the transaction goes on', async () => {
    const { url } = await place()
    await using box = await open(url)
    await using other = await open(url)
    const { waits } = await within(async client => {
      const grant = await box.mutex('key').acquire({ lease: 600 })
      await grant.fence(client)
      const waits = other.mutex('key').acquire({ wait: '10s' })
      await pause(2000)
      grant.assertHeld()
      expect(await soFar(waits)).toBe('pending')
      await grant.release()
      return { waits }
    })
    await (await waits).release()
  })

  test('keys of one request are bound together, and others are free', async () => {
    const { url } = await place()
    await using box = await open(url)
    await using other = await open(url)
    await within(async client => {
      await using grant = await box.mutex('a', 'b').acquire()
      await grant.fence(client)
      await grant.release()
      expect(await other.mutex('b').tryAcquire()).toBeUndefined()
      expect(await other.mutex('a').tryAcquire()).toBeUndefined()
      await (await other.mutex('c').acquire()).release()
    })
    await (await other.mutex('a', 'b').acquire({ wait: '5s' })).release()
  })

  test('a grant that is lost is refused', async () => {
    const { url } = await place()
    await using box = await open(url)
    await using other = await open(url)
    const grant = await box.mutex('key').acquire()
    expect(await other.forceRelease('key', grant.token)).toBe(true)
    await expect(within(client => grant.fence(client))).rejects.toThrow(LostError)
  })

  test('a pool, and a grant that is not exclusive, are refused', async () => {
    const { url } = await place()
    await using box = await open(url)
    const grant = await box.mutex('key').acquire()
    await expect(grant.fence(pool)).rejects.toThrow(InvalidArgumentError)
    await expect(grant.fence('client' as never)).rejects.toThrow(InvalidArgumentError)
    await grant.release()
    const permit = await box.semaphore('permits', { permits: 2 }).acquire()
    await expect(within(client => permit.fence(client))).rejects.toThrow(InvalidArgumentError)
    await permit.release()
  })

  test('the values of a store transaction are written when the transaction of the caller commits', async () => {
    const { url, ledger } = await place()
    await using box = await open(url)
    await using other = await open(url)
    const store = box.store('accounts')
    await store.put('from', 10)
    const move = (client: object) =>
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

  test('a holder that was stopped before its fence finds out that the grant is lost', async () => {
    const { url, ledger } = await place()
    await using box = await open(url)
    using child = startChild('build/test/support/postgres/bound-holder', url, ledger, 'key', 'before')
    await child.printed('stopped')
    const next = await succeed(box, 'key', ledger)
    expect(next.found).toBe(0n)
    child.kill('SIGCONT')
    const { stdout } = await child.end()
    expect(stdout).toBe('stopped\nlost\n')
    const { rows } = await pool.query<{ last: string }>(`select last from ${ledger}`)
    expect(BigInt(rows[0]!.last)).toBe(next.token)
  })

  test('the next holder waits for a holder that was stopped between its fence and its commit', async () => {
    const { url, ledger } = await place()
    await using box = await open(url)
    using child = startChild('build/test/support/postgres/bound-holder', url, ledger, 'key', 'after')
    await child.printed('stopped')
    const next = succeed(box, 'key', ledger)
    await pause(1500)
    expect(await soFar(next)).toBe('pending')
    child.kill('SIGCONT')
    expect((await child.end()).stdout).toBe('stopped\ncommitted\n')
    const { token, found } = await next
    expect(found).toBeGreaterThan(0n)
    expect(found).toBeLessThan(token)
  })

  test('the next holder gets the key when a holder was killed between its fence and its commit', async () => {
    const { url, ledger } = await place()
    await using box = await open(url)
    using child = startChild('build/test/support/postgres/bound-holder', url, ledger, 'key', 'after')
    await child.printed('stopped')
    const next = succeed(box, 'key', ledger)
    child.kill('SIGKILL')
    expect((await next).found).toBe(0n)
  })
})
