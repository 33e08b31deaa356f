import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { describe, expect, test } from 'vitest'
import { InvalidArgumentError, UnavailableError } from '../../src/base/errors.js'
import { open } from '../../src/index.js'
import {
  checkRecords,
  memoryRecords,
  postgresRecords,
  redisRecords,
  type Records,
} from '../../src/store/records/index.js'
import { startPostgres } from '../support/servers/postgres.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'
import { startRedis } from '../support/servers/redis.js'

describe.concurrent('the adapters meet all demands on records', () => {
  test('memory', async () => {
    await checkRecords(memoryRecords())
  })

  test('Redis, over either client', async () => {
    await using server = await startRedis()
    const client = new Redis(server.port, server.host, { keyPrefix: 'app:' })
    const other = createClient({ url: server.url })
    await other.connect()
    try {
      await checkRecords(redisRecords(client), redisRecords(other, { prefix: 'app:signalbox:records:' }))
    } finally {
      client.disconnect()
      other.destroy()
    }
  })

  test('Redis Cluster, over either client', async () => {
    await using cluster = await startRedisCluster()
    const { port } = cluster.nodes[0]!
    const client = new Cluster([{ host: '127.0.0.1', port }], { scaleReads: 'slave' })
    const other = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] })
    await other.connect()
    try {
      await checkRecords(redisRecords(client), redisRecords(other))
    } finally {
      client.disconnect()
      other.destroy()
    }
  })

  test('PostgreSQL, also where every transaction is to be serializable', async () => {
    await using server = await startPostgres()
    await using pool = closing(server.pool())
    await using strict = closing(server.pool({ options: '-c default_transaction_isolation=serializable' }))
    await checkRecords(postgresRecords(pool.value), postgresRecords(strict.value))
    const { rows } = await pool.value.query('select count(*) from signalbox_records where keep_until is null')
    expect(rows).toEqual([{ count: '0' }])
  })

  test('PostgreSQL drops expired records when new ones are written', async () => {
    await using server = await startPostgres()
    await using pool = closing(server.pool())
    const records = postgresRecords(pool.value, { table: 'public.kept' })
    for (let index = 0; index < 6; index++) await records.compareAndSet(`short ${index}`, undefined, '{}', 1)
    await new Promise(resolve => setTimeout(resolve, 20))
    await records.compareAndSet('long', undefined, '{}', 60_000)
    const { rows } = await pool.value.query('select key from kept')
    expect(rows).toEqual([{ key: 'long' }])
  })

  test('PostgreSQL: a table that many clients create at the same moment is created once, and all continue', async () => {
    await using server = await startPostgres()
    await using pool = closing(server.pool())
    await using strict = closing(server.pool({ options: '-c default_transaction_isolation=serializable' }))
    for (let round = 0; round < 60; round++) {
      const options = { table: `made_${round}` }
      const makers = [pool, strict].flatMap(({ value }) =>
        Array.from({ length: 8 }, () => postgresRecords(value, options)),
      )
      const versions = await Promise.all(
        makers.map(maker => maker.compareAndSet('key', undefined, '{}', undefined)),
      )
      expect(versions.filter(version => version !== undefined)).toHaveLength(1)
    }
  })
})

describe('a check finds what is wrong', () => {
  const wrong: readonly (readonly [string, (records: Records<number>) => Records<number>])[] = [
    [
      'a record is created only where none exists',
      records => ({
        ...bound(records),
        compareAndSet: async (key, version, text, keep) =>
          records.compareAndSet(key, version ?? (await records.get(key))?.version, text, keep),
      }),
    ],
    [
      'a record is written over only in the version that is named',
      records => ({
        ...bound(records),
        compareAndSet: async (key, version, text, keep) =>
          records.compareAndSet(key, version && (await records.get(key))?.version, text, keep),
      }),
    ],
    [
      'a version comes again only with the very same text',
      records => ({
        get: async key => withVersion(await records.get(key), 1),
        compareAndSet: async (key, version, text, keep) => {
          const now = version && (await records.get(key))?.version
          return (await records.compareAndSet(key, now, text, keep)) && 1
        },
      }),
    ],
    [
      'no update is lost',
      records => ({
        ...bound(records),
        compareAndSet: async (key, version, text, keep) => {
          const found = (await records.get(key))?.version
          if (found !== version) return undefined
          // Simulates a writer that reads, compares and then writes.
          await new Promise(resolve => setImmediate(resolve))
          return records.compareAndSet(key, (await records.get(key))?.version, text, keep)
        },
      }),
    ],
    [
      'keys and texts are kept as they are',
      records => ({
        get: key => records.get(key.normalize()),
        compareAndSet: (key, ...rest) => records.compareAndSet(key.normalize(), ...rest),
      }),
    ],
    [
      'a record is kept until it expires, and for ever when it has no expiry',
      records => ({
        ...bound(records),
        compareAndSet: (key, version, text) => records.compareAndSet(key, version, text, 10),
      }),
    ],
  ]
  test.each(wrong)('%s', async (demand, wrongly) => {
    await expect(checkRecords(wrongly(memoryRecords()))).rejects.toThrow(demand)
  })
})

test('an invalid adapter and an invalid record are refused', async () => {
  await using box = await open('memory:')
  expect(() => box.store('s', { records: {} as Records })).toThrow(InvalidArgumentError)
  expect(() => redisRecords({})).toThrow(/ioredis or node-redis/)
  expect(() => postgresRecords({} as never)).toThrow(/Pool or a Client/)
  expect(() => postgresRecords({ query: () => Promise.reject(new Error()) }, { table: 'a"b' })).toThrow(
    /table/,
  )
  const records = memoryRecords()
  await records.compareAndSet('s/key', undefined, 'of another program', undefined)
  await expect(box.store('s', { records }).get('key')).rejects.toThrow(UnavailableError)
})

/** Returns the methods of an adapter without its class. */
function bound(records: Records<number>): Records<number> {
  return {
    get: key => records.get(key),
    compareAndSet: (...args) => records.compareAndSet(...args),
  }
}

function withVersion<T extends object>(
  found: T | undefined,
  version: number,
): (T & { version: number }) | undefined {
  return found && { ...found, version }
}

/** Disposes of a pool at the end of a block. */
function closing<T extends { end(): Promise<void> }>(value: T): { value: T } & AsyncDisposable {
  return { value, [Symbol.asyncDispose]: () => value.end() }
}
