import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/base/clock.js'
import { open } from '../../src/open.js'
import { LostError } from '../../src/base/errors.js'
import { redisGuarantees } from '../../src/engines/redis/guarantees.js'
import { Names } from '../../src/engines/redis/names.js'
import { openRedis } from '../../src/engines/redis/open.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'
import { behindProxy } from './behind-proxy.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { FaultInjectingEngine } from '../../packages/conformance/src/fault-injecting-engine.js'
import { queued, until } from '../../packages/conformance/src/time.js'

const HOUR = 3_600_000

/** Counts the members of all keys with a prefix. Counts a string as one. */
const COUNT = `
  local count = 0
  local sizes = { hash = 'HLEN', zset = 'ZCARD', list = 'LLEN', set = 'SCARD' }
  for _, name in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
    local size = sizes[redis.call('TYPE', name).ok]
    count = count + (size and redis.call(size, name) or 1)
  end
  return count`

/** Returns the number of records in all keys with this prefix on these servers. */
export async function recordsOf(servers: readonly RedisServer[], prefix: string): Promise<number> {
  const counts = await Promise.all(servers.map(server => server.command('EVAL', COUNT, 0, prefix)))
  return counts.reduce<number>((sum, count) => sum + Number(count), 0)
}

/** Matches the data that a client sends on its connection for messages. */
export const HINTS = /subscribe/i

let shared: Promise<RedisServer> | undefined

/** The server of this test file; each test has a key prefix of its own on it. It ends with the test process. */
function server(): Promise<RedisServer> {
  return (shared ??= startRedis())
}

/** A master and its replica, and the network between them. */
interface Replicated extends AsyncDisposable {
  readonly master: RedisServer
  readonly replica: RedisServer
  /** Stops replication. Resolves when the replica has received all earlier writes. */
  cut(): Promise<void>
}

/** @param clock clock of the replica */
async function startReplicated(clock?: FakeClock): Promise<Replicated> {
  const master = await startRedis()
  const network = await Proxy.start(master.port)
  const config = [`replicaof 127.0.0.1 ${network.port}`]
  const replica = await startRedis({ config, ...(clock && { clock }) })
  await until('the replica follows', async () =>
    String(await master.command('INFO', 'replication')).includes('state=online'),
  )
  return {
    master,
    replica,
    async cut() {
      await master.copied()
      network.replies = 'lose'
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([master.kill(), replica.kill()])
      await network[Symbol.asyncDispose]()
    },
  }
}

/** Shows that a server that restarted without its data grants a lock a second time. */
async function forgottenGrant(): Promise<void> {
  await using server = await startRedis()
  await using one = await open(server.url)
  const held = await one.mutex('key').acquire()
  await server.restart()
  await using other = await open(server.url)
  const second = await other.mutex('key').acquire({ wait: '5s' })
  held.assertHeld()
  expect(second.token).toBeGreaterThan(held.token)
  await until('it is connected', () =>
    one
      .store('s')
      .get('key')
      .then(
        () => true,
        () => false,
      ),
  )
  await expect(held.release()).rejects.toThrow(LostError)
  second.assertHeld()
}

/**
 * Shows that a holder at the old master keeps renewing after the promoted replica has granted the lock to another box.
 */
async function splitBrain(): Promise<void> {
  // Two thirds of this lease are as long as the process may stall.
  const lease = 3000
  await using servers = await startReplicated()
  await using one = await open(servers.master.url)
  await using careful = await open(`${servers.master.url}?minReplicas=1`)
  const held = await one.mutex('key').acquire({ lease })
  const safe = await careful.mutex('safe').acquire({ lease: 600 })
  await servers.cut()
  await servers.replica.command('REPLICAOF', 'NO', 'ONE')
  await using other = await open(servers.replica.url)
  const second = await other.mutex('key').acquire()
  await other.mutex('safe').acquire()
  expect(() => safe.assertHeld()).toThrow(LostError)
  const ends = (): number => performance.now() + held.expiresIn()
  const before = ends()
  await until('it is renewed', () => ends() > before + 100)
  held.assertHeld()
  second.assertHeld()
}

/** Shows that a token is smaller if the server loses its data after its clock was set back. */
async function setBack(): Promise<void> {
  const clock = new FakeClock()
  await using server = await startRedis({ clock })
  const tokens: bigint[] = []
  for (const ahead of [0, -HOUR, 0]) {
    clock.set(ahead)
    await server.restart()
    await using box = await open(server.url)
    await using grant = await box.mutex('key').acquire()
    tokens.push(grant.token)
  }
  expect(tokens[1]).toBeLessThan(tokens[0]!)
  // Losing the data does not lower the next token if the clock is right.
  expect(tokens[2]).toBeGreaterThan(tokens[0]!)
}

/**
 * Shows that a token is smaller if a replica without the last grant takes over, and its clock is behind the master's.
 */
async function replicaBehind(): Promise<void> {
  const clock = new FakeClock()
  await using servers = await startReplicated(clock)
  clock.set(-HOUR)
  await using box = await open(servers.master.url)
  await using careful = await open(`${servers.master.url}?minReplicas=1`)
  const tokenAt = async (place: Box): Promise<bigint> => {
    await using grant = await place.mutex('key').acquire({ lease: 500 })
    return grant.token
  }
  const copied = await tokenAt(careful)
  await servers.cut()
  const lost = await tokenAt(box)
  await servers.replica.command('REPLICAOF', 'NO', 'ONE')
  await using other = await open(servers.replica.url)
  const next = await tokenAt(other)
  expect(next).toBeLessThan(lost)
  // The next token is greater than those that the replica has received.
  expect(next).toBeGreaterThan(copied)
}

/** The Redis engine on one server. */
export const redis: EngineFixture = {
  name: 'redis',
  guarantees: redisGuarantees,
  knowsChanges: true,
  noticesLossByRenewal: true,
  weaknesses: {
    async P1() {
      await Promise.all([forgottenGrant(), splitBrain()])
    },
    async P2() {
      await Promise.all([setBack(), replicaBehind()])
    },
    async P4() {
      await using server = await startRedis()
      await using one = await open(server.url)
      const engine = new FaultInjectingEngine(await openRedis(server.url))
      await using other = await Box.join(engine, systemClock)
      const held = await one.mutex('key').acquire()
      const asked = other.mutex('key').acquire()
      await queued(one, 'key', 1)
      // Between the release and the check-in of the woken waiter, any client can take the key.
      engine.delivers = () => false
      let goOn = (): void => undefined
      const taken = new Promise<void>(resolve => (goOn = resolve))
      engine.intercept = async ({ type }, execute) => {
        if (type === 'checkIn') await taken
        return execute()
      }
      await held.release()
      expect(await server.command('SET', 'key', 'foreign', 'NX', 'PX', 300)).toBe('OK')
      engine.delivers = () => true
      goOn()
      await (await asked).release()
    },
    async P11() {
      const clock = new FakeClock()
      await using server = await startRedis({ clock })
      await using one = await open(server.url)
      await using other = await open(server.url)
      const apply = async (): Promise<boolean> =>
        (await one.store('s').transaction(['id'], tx => tx.put('id', 1), { id: 'one' })).applied
      expect([await apply(), await apply()]).toEqual([true, false])
      const held = await one.mutex('key').acquire({ lease: '3s' })
      clock.set(400 * 24 * HOUR)
      expect(await apply()).toBe(true)
      const second = await other.mutex('key').acquire({ wait: '10s' })
      expect(second.token).toBeGreaterThan(held.token)
      // The first holder learns of its loss at its next renewal, after a third of the lease.
      await until('it is notified', () => held.signal.aborted)
      expect(() => held.assertHeld()).toThrow(LostError)
      second.assertHeld()
    },
    async P13() {
      await using server = await startRedis()
      await using box = await open(server.url)
      const store = box.store('s')
      await store.put('key', 1)
      await server.restart()
      await until(
        'the value is lost',
        async () => (await store.get('key').catch(() => 'not yet')) === undefined,
      )
    },
  },
  async start() {
    const redis = await server()
    const prefix = `${randomUUID().slice(0, 8)}:`
    const url = `${redis.url}?prefix=${prefix}`
    return {
      url,
      engine: () => openRedis(url),
      size: () => recordsOf([redis], prefix),
      spoil: async (store, key) => {
        await redis.command('SET', new Names(prefix, false).value(`${store}/${key}`), 'cut')
      },
      lockOutside: async key => {
        expect(await redis.command('SET', `${prefix}${key}`, 'foreign', 'NX', 'PX', 60_000)).toBe('OK')
        return () => redis.command('DEL', `${prefix}${key}`)
      },
      close: () => undefined,
    }
  },
  network: ({ url }) => behindProxy(url, openRedis, HINTS),
}
