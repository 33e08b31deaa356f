import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { expect } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/base/clock.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { FaultInjectingEngine } from '../../packages/conformance/src/fault-injecting-engine.js'
import { queued, until } from '../../packages/conformance/src/time.js'
import { postgresGuarantees } from '../../src/engines/postgres/guarantees.js'
import { openPostgres } from '../../src/engines/postgres/open.js'
import { LostError, TimedOutError } from '../../src/base/errors.js'
import type { Grant } from '../../src/index.js'
import { open } from '../../src/open.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { startPgBouncer } from '../support/servers/pgbouncer.js'
import { startPostgres, startStandby, type PostgresServer } from '../support/servers/postgres.js'
import { behindProxy } from './behind-proxy.js'

const HOUR = 3_600_000

/** The tables that have rows for keys and IDs. */
const TABLES = ['keys', 'data', 'recorded', 'watchers', 'permit_requests', 'signs']
/** Matches the data that a client sends on its connection for notifications. */
const HINTS = /\blisten\b/i
/** A lease that is not renewed during a test. */
const LONG = { lease: '60s' } as const
/**
 * Time in which a polling waiter checks in several times, in milliseconds. Other waiters only send signs of life in
 * that time.
 */
const POLLED = 8000

let shared: Promise<PostgresServer> | undefined

/** The server of this test file; each test has a schema of its own in it. It ends with the test process. */
function server(): Promise<PostgresServer> {
  return (shared ??= startPostgres())
}

/** Shows that a waiter polls for the end of the transaction that binds the last grant. */
async function boundIsPolled(): Promise<void> {
  const url = `${(await server()).url}?signalbox_schema=s${randomUUID().slice(0, 8)}`
  await using one = await open(url)
  const engine = new FaultInjectingEngine(await openPostgres(url))
  await using other = await Box.join(engine, systemClock)
  const pool = (await server()).pool()
  const client = await pool.connect()
  await client.query('begin')
  const held = await one.mutex('key').acquire(LONG)
  await held.fence(client)
  const asked = other.mutex('key').acquire(LONG)
  await queued(one, 'key', 1)
  await held.release()
  const checkIns = engine.count('checkIn')
  await until('it polls', () => engine.count('checkIn') - checkIns > 5, POLLED)
  await client.query('commit')
  client.release()
  await (await asked).release()
  await pool.end()
}

/** A primary and its standby. */
interface Replicated extends AsyncDisposable {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  /** URL of the server that is the primary now. */
  readonly url: string
  /** Stops replication. Resolves when the standby has received all earlier writes. */
  cut(): Promise<void>
  /** Kills the primary and promotes the standby. */
  failOver(): Promise<void>
}

/** @param clock clock of the standby */
async function startReplicated(clock?: FakeClock): Promise<Replicated> {
  const primary = await startPostgres()
  const link = await Proxy.start(primary.address.port)
  const network = await Proxy.start(primary.address.port)
  const standby = await startStandby(link.port, clock && { clock })
  return {
    primary,
    standby,
    url: through(network, primary),
    async cut() {
      await primary.copied()
      link.replies = 'lose'
    },
    async failOver() {
      await primary.kill()
      await standby.promote()
      network.target = standby.address.port
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([primary.kill(), standby.kill()])
      for (const proxy of [link, network]) await proxy[Symbol.asyncDispose]()
    },
  }
}

function through(network: Proxy, { url, address }: PostgresServer): string {
  return url.replace(`:${address.port}`, `:${network.port}`)
}

/** Waits until a box works again after losing its connections. */
function connected(box: Box): Promise<void> {
  return until('it is connected', () =>
    box
      .store('s')
      .get('key')
      .then(
        () => true,
        () => false,
      ),
  )
}

async function tokenAt(box: Box): Promise<bigint> {
  await using grant = await box.mutex('key').acquire()
  return grant.token
}

/**
 * Expects that a server that lost a grant gives the lock to another box, and that the first holder learns of its loss.
 */
async function grantedAgain(one: Box, held: Grant, url: string): Promise<void> {
  await using other = await open(url)
  const second = await other.mutex('key').acquire(LONG)
  held.assertHeld()
  expect(second.token).toBeGreaterThan(held.token)
  await connected(one)
  await expect(held.release()).rejects.toThrow(LostError)
  second.assertHeld()
}

/** Shows that a server that crashed grants a lock a second time. */
async function forgottenGrant(): Promise<void> {
  await using server = await startPostgres()
  await using one = await open(server.url)
  await server.stopWriter()
  const held = await one.mutex('key').acquire(LONG)
  await server.restart()
  await grantedAgain(one, held, server.url)
}

/** Shows that a standby that was promoted grants a lock a second time. */
async function grantNotReceived(): Promise<void> {
  await using servers = await startReplicated()
  await using one = await open(servers.url)
  await servers.cut()
  const held = await one.mutex('key').acquire(LONG)
  await servers.failOver()
  await grantedAgain(one, held, servers.url)
}

/**
 * Shows that a holder at the old primary keeps renewing after the promoted standby has granted the lock to another box.
 */
async function splitBrain(): Promise<void> {
  // Two thirds of this lease are longer than the process may stall.
  const lease = 3300
  await using servers = await startReplicated()
  await using one = await open(servers.primary.url)
  const held = await one.mutex('key').acquire({ lease })
  await servers.cut()
  await servers.standby.promote()
  await using other = await open(servers.standby.url)
  const second = await other.mutex('key').acquire({ wait: '15s' })
  const ends = (): number => performance.now() + held.expiresIn()
  const before = ends()
  await until('it is renewed', () => ends() > before + 100)
  held.assertHeld()
  second.assertHeld()
}

/** Shows that a token is smaller if the server loses a grant after its clock was set back. */
async function setBack(): Promise<void> {
  const clock = new FakeClock()
  await using server = await startPostgres({ clock })
  const tokens: bigint[] = []
  for (const ahead of [0, -HOUR, 0]) {
    clock.set(ahead)
    await server.restart()
    await using box = await open(server.url)
    await server.stopWriter()
    tokens.push(await tokenAt(box))
    // Kills the server before the box closes, because the server must also lose the last writes of the box.
    await server.kill()
  }
  expect(tokens[1]).toBeLessThan(tokens[0]!)
  // Losing a grant does not lower the next token if the clock is right.
  expect(tokens[2]).toBeGreaterThan(tokens[0]!)
}

/** Shows that a token is smaller if the unused row of the key was deleted and the server's clock was set back. */
async function deletedRow(): Promise<void> {
  const clock = new FakeClock()
  await using server = await startPostgres({ clock })
  await using box = await open(server.url)
  const first = await tokenAt(box)
  clock.set(-HOUR)
  // Tokens increase as long as the row exists.
  const second = await tokenAt(box)
  expect(second).toBeGreaterThan(first)
  clock.set(HOUR)
  await server.query(`select signalbox.sweep(1000, '{0,0}')`)
  clock.set(-HOUR)
  expect(await tokenAt(box)).toBeLessThan(second)
}

/**
 * Shows that a token is smaller if a standby without the last grant takes over, and its clock is behind the primary's.
 */
async function standbyBehind(): Promise<void> {
  const clock = new FakeClock()
  await using servers = await startReplicated(clock)
  clock.set(-HOUR)
  await using box = await open(servers.url)
  const copied = await tokenAt(box)
  await servers.cut()
  const lost = await tokenAt(box)
  await servers.failOver()
  await using other = await open(servers.url)
  const next = await tokenAt(other)
  expect(next).toBeLessThan(lost)
  // The next token is greater than those that the standby has received.
  expect(next).toBeGreaterThan(copied)
}

/** Shows that the server frees a held lock if its clock is set forward. */
async function freedEarly(): Promise<void> {
  const clock = new FakeClock()
  await using server = await startPostgres({ clock })
  await using one = await open(server.url)
  await using other = await open(server.url)
  const held = await one.mutex('key').acquire({ lease: '3s' })
  clock.set(HOUR)
  const second = await other.mutex('key').acquire({ wait: '10s' })
  expect(second.token).toBeGreaterThan(held.token)
  // The first holder learns of its loss at its next renewal, after a third of the lease.
  await until('it is notified', () => held.signal.aborted)
  second.assertHeld()
}

/** Shows that the server applies an ID again if its clock is set forward by more than the retention. */
async function forgottenId(): Promise<void> {
  const clock = new FakeClock()
  await using server = await startPostgres({ clock })
  await using box = await open(server.url)
  const apply = async (id: string): Promise<boolean> =>
    (await box.store('s').transaction(['key'], transaction => transaction.put('key', 1), { id })).applied
  expect([await apply('one'), await apply('one')]).toEqual([true, false])
  clock.set(400 * 24 * HOUR)
  // The server deletes expired IDs when it records another one.
  await apply('other')
  expect(await apply('one')).toBe(true)
}

/** Shows that the server keeps the lock of a dead box longer if its clock is set back. */
async function keptLonger(): Promise<void> {
  const lease = 500
  const clock = new FakeClock()
  await using server = await startPostgres({ clock })
  const engine = new FaultInjectingEngine(await openPostgres(server.url))
  const one = await Box.join(engine, systemClock)
  await using other = await open(server.url)
  await one.mutex('key').acquire({ lease })
  await engine.freeze()
  clock.set(-HOUR)
  await expect(other.mutex('key').acquire({ wait: 4 * lease })).rejects.toThrow(TimedOutError)
}

/** The PostgreSQL engine on one server. */
export const postgres: EngineFixture = {
  name: 'postgres',
  guarantees: postgresGuarantees,
  knowsChanges: true,
  weaknesses: {
    async P1() {
      await Promise.all([forgottenGrant(), grantNotReceived(), splitBrain()])
    },
    async P2() {
      await Promise.all([setBack(), deletedRow(), standbyBehind()])
    },
    async P5() {
      await using pooler = await startPgBouncer(await server())
      const schema = `s${randomUUID().slice(0, 8)}`
      const url = `${pooler.url}?signalbox_schema=${schema}`
      await using one = await open(url)
      const pool = new pg.Pool({ connectionString: pooler.url })
      let polls = 0
      pool.on('connect', client => {
        const query = client.query.bind(client) as (statement: { text?: string }) => unknown
        const counting = (statement: { text?: string }): unknown => {
          if (statement.text?.includes('.reserved_or_gone(')) polls++
          return query(statement)
        }
        Object.assign(client, { query: counting })
      })
      {
        await using other = await open({ postgres: pool, schema })
        const held = await one.mutex('key').acquire(LONG)
        const asked = other.mutex('key').acquire(LONG)
        await queued(one, 'key', 1)
        const before = polls
        await until('it polls', () => polls - before > 5, POLLED)
        await held.release()
        await (await asked).release()
      }
      await pool.end()
      await boundIsPolled()
    },
    async P11() {
      await Promise.all([freedEarly(), keptLonger(), forgottenId()])
    },
    async P13() {
      await using servers = await startReplicated()
      await using box = await open(servers.url)
      const store = box.store('s')
      await store.put('received', 1)
      await servers.cut()
      await store.put('key', 1)
      await servers.failOver()
      await connected(box)
      expect(await store.get('key')).toBeUndefined()
      expect((await store.get('received'))?.value).toBe(1)
    },
  },
  async start() {
    const postgres = await server()
    const schema = `s${randomUUID().slice(0, 8)}`
    const url = `${postgres.url}?signalbox_schema=${schema}`
    return {
      url,
      engine: () => openPostgres(url),
      async size() {
        const counts = TABLES.map(table => `(select count(*) from ${schema}.${table})`)
        const [row] = await postgres.query<{ rows: string }>(`select ${counts.join(' + ')} as rows`)
        return Number(row!.rows)
      },
      keeps: 60_000,
      async spoil(store, key) {
        await postgres.query(`update ${schema}.data set value = '{"cut' where name = 'value/${store}/${key}'`)
      },
      close: () => undefined,
    }
  },
  network: ({ url }) => behindProxy(url, openPostgres, HINTS),
}
