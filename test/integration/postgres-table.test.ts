import { afterAll, describe, expect, test } from 'vitest'
import type { Claim } from '../../src/engine/claim.js'
import type { Operation, RequestStatus } from '../../src/engine/contract.js'
import { open, type Grant } from '../../src/index.js'
import { until } from '../../packages/conformance/src/time.js'
import { lockRequest } from '../support/lock-request.js'
import { PostgresTablePorts } from '../support/postgres/table-port.js'
import { startPostgres } from '../support/servers/postgres.js'
import { compareHistories } from '../support/table-histories.js'
import type { Session, TablePort } from '../support/table-world.js'

const TERMS = { lease: 1_000_000, wait: Infinity }

const server = await startPostgres()
const ports = new PostgresTablePorts(server)
afterAll(() => ports[Symbol.asyncDispose]().then(() => server.kill()))

describe.each(['alone', 'together', 'again'] as const)('operations that are sent %s', way => {
  test.each([
    ['in any histories', 'any', 30],
    ['in queues with a tail', 'crowded', 12],
    ['for keys that many hold', 'together', 12],
  ] as const)('are decided as by the lock table %s', { timeout: 180_000 }, async (_, kind, count) => {
    await compareHistories(() => ports.take(way), 1, count, kind)
  })
})

/** Long keys. The names of their rows contain hashes, and sort before the row of `a`. */
const LONG_KEYS = ['t', 'u', 'v', 'w', 'x', 'y', 'z'].map(letter => letter.repeat(2000))

test('requests queue and are served in order while the clock is behind, on one key as on several', async () => {
  for (const keys of [['a'], ['a', ...LONG_KEYS]]) {
    const port = ports.take()
    const requests = Array.from({ length: 14 }, (_, step) => {
      const its = step % 2 === 0 ? keys : keys.slice(-1)
      return lockRequest(
        `amy.${step}`,
        its.map((key): Claim => ({ key, mode: 'exclusive' })),
      )
    })
    const decide = async (operation: Operation, now = 1000) =>
      (await port.decide('amy', operation, now)).answer as RequestStatus & { readonly number: number }
    let held = await decide({ type: 'enqueue', request: requests[0]!, ...TERMS }, 60_000)
    for (const request of requests.slice(1))
      expect(await decide({ type: 'enqueue', request, ...TERMS })).toMatchObject({ state: 'queued' })
    const next = lockRequest('amy.next', requests[0]!.claims)
    await decide({ type: 'extendOrYield', request: requests[0]!, number: held.number, next, ...TERMS })
    for (const request of [...requests.slice(1), next]) {
      held = await decide({ type: 'checkIn', request, ...TERMS })
      expect(held).toMatchObject({ state: 'held', id: request.id })
      await decide({ type: 'release', request, number: held.number })
    }
    port.end()
  }
})

test('readers and permits of a long key wait for its exclusive holder', async () => {
  const port = ports.take()
  const [key] = LONG_KEYS as [string]
  expect(await askedOf(port, [{ key, mode: 'exclusive' }])('enqueue', 'amy.1', 1000)).toMatchObject({
    state: 'held',
  })
  for (const [id, claim] of Object.entries<Claim>({
    'ben.1': { key, mode: 'shared' },
    'ben.2': { key, mode: 'permits', permits: 1, max: 3 },
  }))
    expect(await askedOf(port, [claim])('enqueue', id, 1000)).toMatchObject({ state: 'queued' })
  port.end()
})

test('a sign reads only its own requests of a tail, for each kind of holder', async () => {
  await using box = await open(`${server.url}?signalbox_schema=signs`)
  await using pool = server.pool({ max: 1 })
  const tails = async () =>
    (
      await pool.query<{ name: string; id: string; session: string }>(
        'select name, max(id) as id, max((request).session) as session from signs.tails group by name having count(*) = 93',
      )
    ).rows
  const read = async (): Promise<number> => {
    const { rows } = await pool.query<{ read: string }>(
      `select idx_tup_fetch + seq_tup_read as read from pg_stat_xact_user_tables where relid = 'signs.tails'::regclass`,
    )
    return Number(rows[0]!.read)
  }
  const held = [
    await box.mutex('exclusive').acquire(),
    await box.mutex('0', 'several').acquire(),
    await box.readWriteLock('shared').read.acquire(),
  ]
  const controller = new AbortController()
  const { signal } = controller
  for (const key of ['exclusive', 'several', 'shared'])
    for (let count = 0; count < 100; count++)
      box
        .mutex(key)
        .acquire({ ownRequest: true, signal })
        .catch(() => undefined)
  await until('they wait', async () => (await tails()).length === 3)
  for (const { name, id, session } of await tails()) {
    await pool.query('begin')
    const before = await read()
    await pool.query('select signs.alive($1, array[$2], array[$3], array[$3])', [session, id, name])
    const after = await read()
    await pool.query('rollback')
    expect(after - before, name).toBeLessThan(10)
  }
  controller.abort()
  for (const grant of held) await grant.release()
})

test('requests of dead processes are removed from a row and its tail, and others keep their places', async () => {
  const port = ports.take()
  const [one, several] = [['a'], ['a', 'b']].map(keys =>
    askedOf(
      port,
      keys.map(key => ({ key, mode: 'exclusive' })),
    ),
  )
  for (let step = 0; step < 20; step++) await (step % 3 > 0 ? one! : several!)('enqueue', `amy.${step}`, 1000)
  expect(await one!('enqueue', 'ben.1', 990_000)).toMatchObject({ state: 'queued' })
  // The holder's lease lasts longer. Each of its keys has an entry for it.
  expect(await port.sweep(1_000_000)).toBe(3)
  expect(await one!('checkIn', 'ben.1', 1_000_000)).toMatchObject({ state: 'queued', place: 1 })
  const later = 1_200_000
  expect(await port.sweep(later)).toBe(0)
  expect(await one!('enqueue', 'cat.1', later)).toMatchObject({ state: 'held' })
  port.end()
})

/** Returns a function that sends operations for requests with these claims. */
function askedOf(port: TablePort, claims: readonly Claim[]) {
  return async (type: 'enqueue' | 'checkIn', id: string, now: number): Promise<unknown> => {
    const request = lockRequest(id, claims)
    return (await port.decide(request.session as Session, { type, request, ...TERMS }, now)).answer
  }
}

test('of many operations in one call, those for another grant or another version are rejected', async () => {
  const port = ports.take()
  const requests = ['a', 'b', 'c', 'd', 'e'].map(key =>
    lockRequest(`amy.${key}`, [{ key, mode: 'exclusive' }]),
  )
  const enqueues = requests.map((request): Operation => ({ type: 'enqueue', request, ...TERMS }))
  const granted = (await port.together('amy', enqueues, 1000)).outcomes as { readonly number: number }[]
  const numbers = granted.map(({ number }) => number)
  const other = (key: string) => lockRequest(`ben.${key}`, [{ key, mode: 'exclusive' }])
  const commit = { guard: undefined, record: [], retention: 1000, release: false } as const
  const operations: Operation[] = [
    { type: 'release', request: requests[0]!, number: numbers[0]! - 1 },
    { type: 'release', request: other('b'), number: numbers[1]! },
    { type: 'renew', request: requests[2]!, number: numbers[2]! - 1, lease: 1000 },
    { type: 'renew', request: other('d'), number: numbers[3]!, lease: 1000 },
    {
      type: 'commit',
      ...commit,
      guard: { request: requests[4]!, number: numbers[4]! },
      expect: [{ key: 's/x', version: 7 }],
      writes: [{ key: 's/y', value: '1' }],
      release: true,
    },
  ]
  const { outcomes } = await port.together('ben', operations, 2000)
  expect(outcomes).toMatchObject([false, false, false, false, { state: 'conflict' }])
  const again = requests.map((request): Operation => ({ type: 'checkIn', request, ...TERMS }))
  const held = await port.together('amy', again, 3000)
  expect(held.outcomes).toMatchObject(numbers.map(number => ({ state: 'held', number })))
  port.end()
})

test.for([
  ['keys that a language orders in another way', 'B', 'a'],
  ['keys beyond 16 bits', '\u{ff5e}', '\u{1f600}'],
] as const)(
  'rows are locked in the order of the bytes of their names: %s',
  async ([, first, second], { skip }) => {
    const [version] = await server.query<{ server_version_num: string }>('show server_version_num')
    // Older servers can sort by a language only if the machine has its locale.
    skip(Number(version!.server_version_num) < 150_000)
    const name = `ordered_${first.length + second.length}`
    await server.query(
      `create database ${name} template template0 encoding utf8 locale_provider icu icu_locale 'en' locale 'C'`,
    )
    await using pool = server.pool({ max: 2, database: name })
    const url = new URL(server.url)
    url.pathname = name
    await using box = await open(url.href)
    await using other = await open(url.href, { label: 'other' })
    const rowOf = (key: string): string =>
      `select from signalbox.data where name = 'lock/${key}' for no key update`
    /** Makes calls in one tick. Returns whether they lock the second row while they wait for the first one. */
    const lockSecond = async <T>(call: (key: string) => Promise<T>): Promise<[boolean, Promise<T[]>]> => {
      const client = await pool.connect()
      await client.query('begin')
      await client.query(rowOf(first))
      const calls = Promise.all([second, first].map(call))
      await until('they wait for the row', async () => {
        const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = $1`
        return (await pool.query(waiting, [name])).rows.length > 0
      })
      const { rows } = await pool.query(`${rowOf(second)} skip locked`)
      await client.query('commit')
      client.release()
      return [rows.length === 0, calls]
    }
    const held = new Map<string, Grant>()
    for (const key of [first, second]) held.set(key, await box.mutex(key).acquire())
    const [enqueuesDo, grants] = await lockSecond(key => other.mutex(key).acquire({ wait: '10s' }))
    expect(enqueuesDo).toBe(false)
    await until('both wait', async () => {
      const { rows } = await pool.query('select from signalbox.data where cardinality(queue) = 2')
      return rows.length === 2
    })
    const [releasesDo, released] = await lockSecond(key => held.get(key)!.release())
    expect(releasesDo).toBe(false)
    await released
    for (const grant of await grants) await grant.release()
  },
)
