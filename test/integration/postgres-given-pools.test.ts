import type { EventEmitter } from 'node:events'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { until } from '../../packages/conformance/src/time.js'
import { open, type Box, type SqlTransaction } from '../../src/index.js'
import { failure } from '../support/failure.js'
import { within } from '../support/postgres/stopped-holders.js'
import { startPostgres } from '../support/servers/postgres.js'

const server = await startPostgres()
afterAll(() => server.kill())

/** A pool of the application that a box uses. */
interface Given {
  readonly client: object
  /** Commits a transaction over a connection of the pool. */
  within<T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T>
}

interface Kind {
  readonly name: string
  /** @param max maximum number of connections of the application */
  make(url: string, max: number): Given
}

/** Number of lent connections that a box keeps. */
const KEPT = 3

function pool(connectionString: string, max: number): pg.Pool {
  const made = new pg.Pool({ connectionString, max })
  made.on('error', () => undefined)
  onTestFinished(() => made.end())
  return made
}

const kinds: readonly Kind[] = [
  {
    name: 'a Pool of pg',
    make(url, max) {
      const client = pool(url, max)
      return { client, within: work => within(client, work) }
    },
  },
  {
    name: 'a lender of clients of pg',
    make(url, max) {
      const its = pool(url, max + KEPT)
      const client = {
        connect: () => its.connect(),
        release: (lent: pg.PoolClient) => lent.release(),
      }
      return { client, within: work => within(its, work) }
    },
  },
  {
    name: 'a sql of postgres',
    make(url, max) {
      const client = postgres(url, { max })
      onTestFinished(() => client.end({ timeout: 0 }))
      return { client, within: work => client.begin(work) as never }
    },
  },
]

async function openOver(postgres: object): Promise<Box> {
  const box = await open({ postgres })
  onTestFinished(() => box.close())
  return box
}

describe.each(kinds)('over $name', ({ make }) => {
  test('transactions of requests that use all its connections commit, with a fence or values', async () => {
    const given = make(server.url, 2)
    const box = await openOver(given.client)
    const store = box.store('requests')
    const requests = Array.from({ length: 20 }, (_, number) =>
      given.within(async transaction => {
        const key = `request ${number}`
        const grant = await box.mutex(key).acquire()
        await grant.fence(transaction)
        await store.transaction([key], state => state.put(key, number), { in: transaction })
        return grant
      }),
    )
    for (const grant of await Promise.all(requests)) await grant.release()
    expect((await store.get('request 19'))?.value).toBe(19)
  })
})

test('no connection of a given Pool is used, and its Client, password and handlers of connections are', async () => {
  let connected = 0
  const password = (): string => 'secret'
  class Client extends pg.Client {
    constructor(options: pg.ClientConfig) {
      super(options)
      expect(options.password).toBe(password)
    }
  }
  const given = new pg.Pool({ ...server.address, password, Client: Client as typeof pg.Client, max: 1 })
  onTestFinished(() => given.end())
  given.on('connect', client => {
    expect(client).toBeInstanceOf(Client)
    connected++
  })
  const before = listenerCounts(given)
  const box = await openOver(given)
  await box.mutex('own').run(() => undefined)
  expect(connected).toBeGreaterThan(0)
  expect(given.totalCount).toBe(0)
  expect(listenerCounts(given)).toEqual(before)
})

test('clients of a lender have their own listeners again when they are returned', async () => {
  await using proxy = await Proxy.start(server.address.port)
  const its = pool(server.url.replace(`:${server.address.port}`, `:${proxy.port}`), 5)
  const lent = new Map<pg.PoolClient, object>()
  let listened = 0
  const box = await openOver({
    async connect() {
      const client = await its.connect()
      lent.set(client, listenerCounts(client))
      const emitter: EventEmitter = client
      emitter.on('newListener', event => {
        if (event === 'notification') listened++
      })
      return client
    },
    release(client: pg.PoolClient) {
      ;(client as EventEmitter).removeAllListeners('newListener')
      expect(listenerCounts(client)).toEqual(lent.get(client))
      lent.delete(client)
      client.release()
    },
  })
  for (let round = 1; round <= 3; round++) {
    await until('it listens', () =>
      box
        .mutex('listened')
        .run(() => undefined)
        .then(
          () => listened >= round,
          () => false,
        ),
    )
    proxy.cut()
  }
  await box.close()
  await until('all are returned', () => lent.size === 0)
})

test('the HTTP client of Neon is rejected, and the error says what to give', async () => {
  // Properties of the client in version 1, and in earlier versions.
  const versions = [{ query() {}, unsafe() {}, transaction() {} }, { transaction() {} }]
  for (const properties of versions) {
    const sql = Object.assign(() => undefined, properties)
    await expect(open({ postgres: sql })).rejects.toMatchObject(
      failure('INVALID_ARGUMENT', /not the sql of neon\(\).*; give a Pool of @neondatabase/),
    )
    const box = await openOver(pool(server.url, 1))
    const grant = await box.mutex('neon').acquire()
    await expect(grant.fence(sql as never)).rejects.toMatchObject(
      failure('INVALID_ARGUMENT', /not the sql of neon\(\).*; use a transaction of a Pool/),
    )
    await grant.release()
  }
})

function listenerCounts(emitter: EventEmitter): Record<string, number> {
  return Object.fromEntries(emitter.eventNames().map(name => [String(name), emitter.listenerCount(name)]))
}
