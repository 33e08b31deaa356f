import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, expect, test } from 'vitest'
import { IndeterminateError, LostError, UnavailableError } from '../../src/base/errors.js'
import { open } from '../../src/index.js'
import { memoryRecords, postgresRecords, redisRecords, type Records } from '../../src/store/records/index.js'
import type { Transaction } from '../../src/store/transaction.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedis } from '../support/servers/redis.js'

const [redis, postgres] = await Promise.all([startRedis(), startPostgres()])
const client = new Redis(redis.port, redis.host)
const pool = postgres.pool()

afterAll(async () => {
  client.disconnect()
  await pool.end()
  await Promise.all([redis.kill(), postgres[Symbol.asyncDispose]()])
})

const kinds = {
  memory: () => memoryRecords() as Records,
  redis: () => redisRecords(client, { prefix: randomUUID() }) as Records,
  postgres: () => postgresRecords(pool) as Records,
}

/** Records that stop before one of their writes, as if the process of the holder were paused there. */
class PausedRecords implements Records {
  readonly #records: Records
  #writes: number
  readonly isPaused: Promise<void>
  #tell!: () => void
  resume!: () => void
  readonly #resumed: Promise<void>

  /** @param writes number of writes before the pause */
  constructor(records: Records, writes: number) {
    this.#records = records
    this.#writes = writes
    this.isPaused = new Promise(resolve => (this.#tell = resolve))
    this.#resumed = new Promise(resolve => (this.resume = resolve))
  }

  get(key: string): ReturnType<Records['get']> {
    return this.#records.get(key)
  }

  async compareAndSet(...args: Parameters<Records['compareAndSet']>): Promise<unknown> {
    if (this.#writes-- === 0) {
      this.#tell()
      await this.#resumed
    }
    return this.#records.compareAndSet(...args)
  }
}

const KINDS = Object.keys(kinds) as (keyof typeof kinds)[]

test.concurrent.each(KINDS.flatMap(kind => [0, 1, 2].map(writes => ({ kind, writes }))))(
  'of a commit that is paused after $writes writes in $kind records nothing remains once another box has committed',
  async ({ kind, writes }) => {
    const url = `memory:${randomUUID()}`
    await using one = await open(url)
    await using other = await open(url)
    const name = randomUUID()
    const records = kinds[kind]()
    const store = other.store(name, { records })
    await store.put('a', 1)
    const paused = new PausedRecords(records, writes)
    let early = 0n
    const late = one.store(name, { records: paused }).transaction(['a', 'b'], transaction => {
      early = transaction.token
      transaction.put('a', 'of the paused')
      transaction.put('b', 'of the paused')
    })
    const refused = expect(late).rejects.toThrow(/lost|written round|later holder/)
    await paused.isPaused
    // Simulates a supervisor that believes the process is dead and does not wait for the lease.
    expect(await other.revoke(one.session)).toBeGreaterThan(0)
    const outcome = await store.transaction(['a', 'b'], transaction => {
      transaction.put('a', Number(transaction.get('a')) + 1)
      transaction.put('b', transaction.get('b') ?? 'nothing')
    })
    expect(outcome.applied && outcome.token > early).toBe(true)
    paused.resume()
    await refused
    expect((await store.get('a'))?.value).toBe(2)
    expect((await store.get('b'))?.value).toBe('nothing')
  },
)

/** Longer than the retention in this test, which is the shortest one, in milliseconds. */
const FORGOTTEN = 1300

test.concurrent.each(KINDS)(
  'a late write does not restore a value that was made and deleted meanwhile, in %s records',
  async kind => {
    const url = `memory:${randomUUID()}`
    await using one = await open(url)
    await using other = await open(url)
    const name = randomUUID()
    const records = kinds[kind]()
    const store = other.store(name, { records })
    const paused = new PausedRecords(records, 0)
    const late = one
      .store(name, { records: paused })
      .transaction(['key'], transaction => transaction.put('key', 'late'))
    const refused = expect(late).rejects.toThrow(LostError)
    await paused.isPaused
    await other.revoke(one.session)
    const later = (task: (transaction: Transaction) => void) =>
      store.transaction(['key'], task, { retention: '1s' })
    await later(transaction => transaction.put('key', 'made'))
    await later(transaction => transaction.delete('key'))
    await new Promise(resolve => setTimeout(resolve, FORGOTTEN))
    // A store drops expired records at the next write at the latest.
    await store.put('other', 1)
    paused.resume()
    await refused
    expect(await store.get('key')).toBeUndefined()
  },
)

test('PostgreSQL is killed again and again: every message is applied once, to both accounts or to none', async () => {
  await using box = await open('memory:')
  const records = postgresRecords(pool)
  const accounts = box.store('accounts', { records })
  const messages = Array.from({ length: 60 }, (_, index) => `message ${index}`)
  const deliver = async (id: string): Promise<void> => {
    while (true) {
      try {
        await accounts.transaction(
          ['log', 'left', 'right'],
          transaction => {
            transaction.put('log', (transaction.get<number>('log') ?? 0) + 1)
            transaction.put('left', (transaction.get<number>('left') ?? 0) - 1)
            transaction.put('right', (transaction.get<number>('right') ?? 0) + 1)
          },
          { id },
        )
        return
      } catch (error) {
        if (!(error instanceof UnavailableError || error instanceof IndeterminateError)) throw error
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    }
  }
  const kills = { left: 3 }
  const killing = (async () => {
    for (; kills.left > 0; kills.left--) {
      await new Promise(resolve => setTimeout(resolve, 50))
      await postgres.restart()
    }
  })()
  const queue = [...messages, ...messages.slice(0, 20)]
  const worker = async (): Promise<void> => {
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) await deliver(id)
  }
  await Promise.all([killing, worker(), worker(), worker()])
  const values = await Promise.all(
    ['log', 'left', 'right'].map(async key => (await accounts.get(key))?.value),
  )
  expect(values).toEqual([60, -60, 60])
})
