import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { expect } from 'vitest'
import { pause, soFar } from '../../../packages/conformance/src/time.js'
import type { Box } from '../../../src/index.js'
import { startChild } from '../../contract/child.js'

/** Creates a ledger with the token that was last written, and the one that its writer found. */
async function makeLedger(pool: pg.Pool): Promise<string> {
  const ledger = `ledger_${randomUUID().slice(0, 8)}`
  await pool.query(`create table ${ledger} (before bigint, last bigint)`)
  await pool.query(`insert into ${ledger} values (0, 0)`)
  return ledger
}

/** Calls `work` in a transaction, with the client that has begun it. */
export async function within<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
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

/** The boxes and clients of a holder that is stopped, and of the next holder. */
export interface Setting {
  /** The box of the next holder. */
  readonly box: Box
  readonly pool: pg.Pool
  /** The URL and the client package of the holder that is stopped. */
  readonly url: string
  readonly kind: 'pg' | 'postgres'
}

/** Where the holder stops, and whether it continues. */
export type Fate = 'stopped before its fence' | 'stopped after its fence' | 'killed after its fence'

/** Stops a holder, lets the next holder write its own token over the one that it finds, and checks their order. */
export async function stopHolder({ box, pool, url, kind }: Setting, fate: Fate): Promise<void> {
  const ledger = await makeLedger(pool)
  const key = `key of ${ledger}`
  const point = fate === 'stopped before its fence' ? 'before' : 'after'
  using child = startChild('build/test/support/postgres/bound-holder', url, ledger, key, point, kind)
  await child.printed('stopped')
  const next = succeed(box, pool, key, ledger)
  if (fate === 'killed after its fence') {
    child.kill('SIGKILL')
    expect((await next).found).toBe(0n)
    return
  }
  if (fate === 'stopped before its fence') {
    const { token, found } = await next
    expect(found).toBe(0n)
    child.kill('SIGCONT')
    expect((await child.end()).stdout).toBe('stopped\nlost\n')
    const { rows } = await pool.query<{ last: string }>(`select last from ${ledger}`)
    expect(BigInt(rows[0]!.last)).toBe(token)
    return
  }
  // Longer than its lease.
  await pause(3000)
  expect(await soFar(next)).toBe('pending')
  child.kill('SIGCONT')
  expect((await child.end()).stdout).toBe('stopped\ncommitted\n')
  const { token, found } = await next
  expect(found).toBeGreaterThan(0n)
  expect(found).toBeLessThan(token)
}

/** Writes the token of the next holder over the one that it finds. */
function succeed(
  box: Box,
  pool: pg.Pool,
  key: string,
  ledger: string,
): Promise<{ token: bigint; found: bigint }> {
  return box.mutex(key).run(
    grant =>
      within(pool, async client => {
        await grant.fence(client)
        const { rows } = await client.query<{ last: string }>(`select last from ${ledger}`)
        await client.query(`update ${ledger} set before = last, last = $1`, [grant.token])
        return { token: grant.token, found: BigInt(rows[0]!.last) }
      }),
    { wait: '30s' },
  )
}
