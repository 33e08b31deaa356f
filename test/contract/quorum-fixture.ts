import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/base/clock.js'
import { quorumGuarantees } from '../../packages/redis-quorum/src/guarantees.js'
import { NumberClock } from '../../packages/redis-quorum/src/number-clock.js'
import type { RedisServer as VotingServer } from 'signalbox/redis'
import { openRedisQuorum } from '../../packages/redis-quorum/src/open.js'
import { InvalidArgumentError, LostError } from '../../src/base/errors.js'
import { open } from '../../src/open.js'
import { FaultInjectingEngine } from '../../packages/conformance/src/fault-injecting-engine.js'
import { FakeClock } from '../support/servers/fake-clock.js'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { quorumEngine, quorumUrl } from '../support/servers/quorum.js'
import { behindProxy } from './behind-proxy.js'
import { HINTS, recordsOf } from './redis-fixture.js'
import { startRedis, startRedisServers, type RedisServer } from '../support/servers/redis.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { handOver, locks, pause, queued, soFar, until } from '../../packages/conformance/src/time.js'

const HOUR = 3_600_000

let shared: Promise<RedisServer[]> | undefined

/** The servers of this test file; each test has a key prefix of its own on them. They end with the test process. */
function servers(): Promise<RedisServer[]> {
  return (shared ??= startRedisServers(3))
}

async function killed(members: readonly RedisServer[]): Promise<void> {
  await Promise.all(members.map(server => server.kill()))
}

/** Opens a box in a process whose wall clock is an hour behind. */
async function lateBox(members: readonly RedisServer[]): Promise<Box> {
  const numbers = new NumberClock(() => (performance.timeOrigin + performance.now() - HOUR) * 1000)
  return Box.join(await quorumEngine(members, { numbers }), systemClock)
}

/** Waits until all servers know the same holders, and that the session listens. */
async function agreed(prefix: string, listener?: string): Promise<void> {
  const listened = async (server: RedisServer): Promise<boolean> =>
    ((await server.command('PUBSUB', 'CHANNELS', `${prefix}*:${listener}`)) as unknown[]).length > 0
  if (listener)
    await until(`all servers know that ${listener} listens`, async () =>
      (await Promise.all((await servers()).map(listened))).every(Boolean),
    )
  const watching = await Promise.all((await servers()).map(({ url }) => open(`${url}?prefix=${prefix}`)))
  const given = async (box: Box): Promise<string> =>
    (await locks(box))
      .map(({ key, holders }) => `${key} ${holders.length}`)
      .sort()
      .join()
  try {
    await until(
      'all servers know the same holders',
      async () => new Set(await Promise.all(watching.map(given))).size === 1,
    )
  } finally {
    await Promise.all(watching.map(box => box.close()))
  }
}

/** Shows that two holders can each have a majority after a server restarted without its data within a lease. */
async function votedTwice(): Promise<void> {
  const members = await startRedisServers(3)
  try {
    const [first, second, third] = members as [RedisServer, RedisServer, RedisServer]
    // For this box, the first server is missing.
    const nowhere = { host: first.host, port: await freePort() }
    await using one = await open(quorumUrl([nowhere, second, third]))
    // Long enough that the first renewal, at which the holder learns of its loss, comes after the next grant.
    const held = await one.mutex('key').acquire({ lease: '24s' })
    // The second server has lost its vote, and the first has never voted, so these two form a majority.
    await second.restart()
    await using other = await open(quorumUrl(members))
    const next = await other.mutex('key').acquire({ wait: '5s' })
    held.assertHeld()
    expect(next.token).toBeGreaterThan(held.token)
    await until('the holder is notified', () => held.signal.aborted)
    next.assertHeld()
  } finally {
    await killed(members)
  }
}

/** Shows that three clients can hold two permits if two of them can't reach some servers, and not the same ones. */
async function onePermitTooMany(): Promise<void> {
  const members = await startRedisServers(5)
  const cut: Proxy[] = []
  /** Opens a box whose network to some of the servers can be cut. */
  const boxFarFrom = async (indexes: readonly number[]): Promise<{ box: Box; cut: () => void }> => {
    const ways = await Promise.all(indexes.map(index => Proxy.start(members[index]!.port)))
    cut.push(...ways)
    const places = members.map((server, index) => ways[indexes.indexOf(index)] ?? server)
    const box = await open(quorumUrl(places))
    return {
      box,
      cut: () => {
        for (const way of ways) way.requests = 'lose'
      },
    }
  }
  const isThere = (index: number, count: number): Promise<boolean> =>
    locks(watching[index]!).then(([report]) => report?.holders.length === count)
  const watching = await Promise.all(members.map(({ url }) => open(url)))
  try {
    const near = await boxFarFrom([3, 4])
    const far = await boxFarFrom([0, 1])
    const options = { max: 2 }
    const first = await near.box.semaphore('key', options).acquire({ lease: 4500 })
    const second = await far.box.semaphore('key', options).acquire({ lease: 4500 })
    for (const index of members.keys()) await until('both are known', () => isThere(index, 2))
    near.cut()
    far.cut()
    // A grant expires on servers that its renewals do not reach. Each grant keeps a majority.
    for (const index of [0, 1, 3, 4]) await until('one is known', () => isThere(index, 1))
    await using third = await open(quorumUrl(members))
    await using grant = await third.semaphore('key', options).acquire({ wait: '10s' })
    for (const permit of [first, second, grant]) permit.assertHeld()
    await Promise.all([near.box.close(), far.box.close()])
  } finally {
    await Promise.all(watching.map(box => box.close()))
    await killed(members)
    await Promise.all(cut.map(way => way[Symbol.asyncDispose]()))
  }
}

/** The Redis engine on three servers that vote. */
export const quorum: EngineFixture = {
  name: 'redis quorum',
  noticesLossByRenewal: true,
  guarantees: quorumGuarantees,
  weaknesses: {
    async P1() {
      await Promise.all([votedTwice(), onePermitTooMany()])
    },
    async P2() {
      const members = await startRedisServers(3)
      try {
        await using one = await open(quorumUrl(members))
        const { token } = await one.mutex('key').acquire()
        await one.close()
        await Promise.all(members.slice(1).map(server => server.restart()))
        // The other two servers make the next grant. The one that kept its data does not help.
        await members[0]!.kill()
        await using late = await lateBox(members)
        expect((await late.mutex('key').acquire()).token).toBeLessThan(token)
      } finally {
        await killed(members)
      }
    },
    async P4() {
      const members = await servers()
      const prefix = `${randomUUID()}:`
      await using one = await open(quorumUrl(members, `?prefix=${prefix}`))
      await using other = await open(quorumUrl(members, `?prefix=${prefix}`))
      const numbers = new NumberClock(() => (performance.timeOrigin + performance.now() - HOUR) * 1000)
      await using late = await Box.join(await quorumEngine(members, { numbers, prefix }), systemClock)
      const held = await one.mutex('key').acquire()
      const served: string[] = []
      const tokens = [held.token]
      const waiting = [other, late].map(async (box, index) => {
        if (index === 1) await queued(one, 'key', 1)
        const grant = await box.mutex('key').acquire()
        served.push(box === late ? 'late' : 'other')
        tokens.push(grant.token)
        await grant.release()
      })
      await queued(one, 'key', 2)
      if (await handOver(held, waiting)) expect(served).toEqual(['late', 'other'])
      expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)))
    },
    async P5() {
      const members = await servers()
      const prefix = `${randomUUID()}:`
      /**
       * Lets requests of the first box reach only the servers whose votes it needs. The box asks the other servers with
       * a wait of 0.
       */
      const between = (server: VotingServer): VotingServer => {
        const submit = server.submit.bind(server)
        server.submit = async (operation, vote) =>
          operation.type === 'enqueue' && operation.wait === 0
            ? new Promise(() => undefined)
            : submit(operation, vote)
        return server
      }
      await using holder = await Box.join(await quorumEngine(members, { prefix, between }), systemClock)
      const engine = new FaultInjectingEngine(await quorumEngine(members, { prefix }))
      await using waiter = await Box.join(engine, systemClock)
      const key = await holder.mutex('key').acquire()
      const other = await holder.mutex('other').acquire()
      const asked = waiter.mutex('key', 'other').acquire()
      await queued(waiter, 'key', 1)
      // The waiter checks in once when its subscription begins.
      await pause(200)
      const checks = (): number => engine.count('checkIn') + engine.count('alive')
      const before = checks()
      await key.release()
      // The waiter has to check in by itself: if a server was late, the same servers know both grants, and none of them
      // wakes the waiter.
      await until('it has checked in', () => checks() > before)
      other.assertHeld()
      expect(await soFar(asked)).toBe('pending')
      await other.release()
      await (await asked).release()
    },
    async P11() {
      const clocks = [new FakeClock(), new FakeClock(), new FakeClock()]
      const members = await Promise.all(clocks.map(clock => startRedis({ clock })))
      try {
        await using one = await open(quorumUrl(members))
        await using other = await open(quorumUrl(members))
        const held = await one.mutex('key').acquire({ lease: 4500 })
        await pause(50)
        // A single wrong clock frees nothing.
        clocks[0]!.set(HOUR)
        await expect(other.mutex('key').acquire({ wait: 200 })).rejects.toThrow()
        clocks[1]!.set(HOUR)
        clocks[2]!.set(HOUR)
        const next = await other.mutex('key').acquire({ wait: '10s' })
        expect(next.token).toBeGreaterThan(held.token)
        // The first holder learns of its loss at its next renewal, after a third of the lease.
        await until('it is notified', () => held.signal.aborted)
        expect(() => held.assertHeld()).toThrow(LostError)
        next.assertHeld()
      } finally {
        await killed(members)
      }
    },
    async P13() {
      await using box = await open(quorumUrl(await servers()))
      const store = box.store('s')
      const refused = [
        () => store.get('key'),
        () => store.put('key', 1),
        () => store.delete('key'),
        () => store.compareAndSet('key', 0, 1),
        () => store.transaction(['key'], () => 1),
        () => store.watch('key').next(),
        () => box.election('e').campaign(),
        () => box.election('e').leader(),
      ]
      for (const refuse of refused) {
        const error: unknown = await refuse().catch((reason: unknown) => reason)
        expect(error).toBeInstanceOf(InvalidArgumentError)
        expect((error as Error).message).toContain('open a box on one server')
      }
    },
  },
  async start() {
    const prefix = `${randomUUID().slice(0, 8)}:`
    const url = quorumUrl(await servers(), `?prefix=${prefix}`)
    return {
      url,
      engine: () => openRedisQuorum(url),
      settled: listener => agreed(prefix, listener),
      size: async () => recordsOf(await servers(), prefix),
      lockOutside: async key => {
        const majority = (await servers()).slice(1)
        const all = (...command: string[]) => Promise.all(majority.map(server => server.command(...command)))
        expect(await all('SET', `${prefix}${key}`, 'foreign', 'NX', 'PX', '60000')).toEqual(['OK', 'OK'])
        return () => all('DEL', `${prefix}${key}`)
      },
      close: () => undefined,
    }
  },
  network: ({ url }) => behindProxy(url, openRedisQuorum, HINTS),
}
