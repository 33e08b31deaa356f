import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { Box } from '../../src/box.js'
import {
  BusyError,
  IndeterminateError,
  LostError,
  TimedOutError,
  UnavailableError,
} from '../../src/base/errors.js'
import { open } from '../../src/open.js'
import type { Duration } from '../../src/base/duration.js'
import { rising, Section } from '../../packages/conformance/src/section.js'
import { pause, queued, soFar, timed, until } from '../../packages/conformance/src/time.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedisServers, type RedisServer } from '../support/servers/redis.js'

/**
 * Less than a second, in milliseconds. A server that does not reply counts as unreachable after a second, so callers
 * that wait for it take longer.
 */
const NOT_WAITED_FOR = 900

describe('a quorum of five servers', () => {
  let servers: RedisServer[] = []
  let url = ''

  beforeEach(async () => {
    if (servers.length === 0) servers = await startRedisServers(5)
    for (const server of servers) {
      server.resume()
      if (!(await isUp(server))) await server.start()
      await server.command('FLUSHALL')
    }
    url = quorumUrl(servers)
  })
  afterAll(() => Promise.all(servers.map(server => server.kill())))

  async function isUp(server: RedisServer): Promise<boolean> {
    return server.command('PING').then(
      () => true,
      () => false,
    )
  }

  /** Returns the number of these servers that have a key. */
  async function copies(key: string, among: readonly RedisServer[] = servers): Promise<number> {
    const found = await Promise.all(among.map(server => server.command('EXISTS', key)))
    return found.reduce<number>((sum, one) => sum + Number(one), 0)
  }

  function recovered(box: Box, wait: Duration): Promise<void> {
    const work = (): Promise<boolean> => box.mutex('key').run(() => true, { wait })
    return until('it gets a lock again', () => work().catch(() => false))
  }

  /** Acquires and releases a lock many times, and checks that the other box is excluded in the meantime. */
  async function works(one: Box, other: Box, rounds: number): Promise<void> {
    const tokens: bigint[] = []
    for (let round = 0; round < rounds; round++) {
      const [box, outside] = round % 2 === 0 ? [one, other] : [other, one]
      const grant = await box.mutex(`key ${round % 3}`).acquire()
      tokens.push(grant.token)
      expect(await outside.mutex(`key ${round % 3}`).tryAcquire()).toBeUndefined()
      grant.assertHeld()
      await grant.release()
    }
    expect(rising(tokens)).toBe(true)
  }

  test('two of five down: locks exclude, and the two are not waited for', async () => {
    await using one = await open(url)
    await using other = await open(url)
    await works(one, other, 6)
    for (const down of [1, 3]) await servers[down]!.kill()
    expect(await timed(() => works(one, other, 6))).toBeLessThan(6 * NOT_WAITED_FOR)
  })

  test('permits need more votes than a majority, and get them when the servers are there', async () => {
    await using one = await open(url)
    await using other = await open(url)
    const two = one.semaphore('two', { max: 2 })
    const five = one.semaphore('five', { max: 5 })
    const held = await five.acquire({ permits: 4 })
    await servers[1]!.kill()
    // Four of five servers are enough for two permits, but not for five.
    const grants = [await two.acquire(), await other.semaphore('two', { max: 2 }).acquire()]
    expect(await two.tryAcquire()).toBeUndefined()
    await expect(five.acquire()).rejects.toThrow(UnavailableError)
    held.assertHeld()
    await servers[1]!.start()
    await until('it takes part again', async () => {
      const grant = await five.tryAcquire().catch(() => undefined)
      await grant?.release()
      return grant !== undefined
    })
    await expect(other.semaphore('five', { max: 5 }).acquire({ permits: 2, wait: 0 })).rejects.toThrow(
      BusyError,
    )
    for (const grant of [...grants, held]) await grant.release()
  })

  test('three of five down: every call fails at once, and succeeds again when one is back', async () => {
    await using box = await open(url)
    const held = await box.mutex('held').acquire()
    await until('it is held everywhere', async () => (await copies('held')) === 5)
    for (const down of [0, 1, 2]) await servers[down]!.kill()
    await until('it knows', async () => (await servers[3]!.command('PING')) === 'PONG')
    for (const failing of [
      () => box.mutex('key').tryAcquire(),
      () => box.mutex('key').acquire({ wait: '20s' }),
      () => box.mutex('key').run(() => undefined),
    ]) {
      const took = await timed(() => expect(failing()).rejects.toThrow(UnavailableError))
      expect(took).toBeLessThan(NOT_WAITED_FOR)
    }
    // Two servers may have released the lock, which is not enough to know that it is released.
    await expect(held.release()).rejects.toThrow(IndeterminateError)
    await servers[0]!.start()
    await recovered(box, '1s')
  })

  test('all down: opening fails at once and names the servers', async () => {
    for (const server of servers) await server.kill()
    const took = await timed(async () => {
      const error: unknown = await open(url).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(UnavailableError)
      for (const { port } of servers.slice(0, 3)) expect((error as Error).message).toContain(String(port))
    })
    expect(took).toBeLessThan(NOT_WAITED_FOR)
  })

  test('a busy lock and servers that are down give different errors', async () => {
    await using one = await open(url)
    await using other = await open(url)
    const held = await one.mutex('key').acquire()
    for (const down of [1, 3]) await servers[down]!.kill()
    await expect(other.mutex('key').acquire({ wait: 0 })).rejects.toThrow(BusyError)
    await expect(other.mutex('key').acquire({ wait: 100 })).rejects.toThrow(TimedOutError)
    await servers[2]!.kill()
    await expect(other.mutex('key').acquire({ wait: 0 })).rejects.toThrow(UnavailableError)
    held.assertHeld()
  })

  test('an invalid name of a lock is refused', async () => {
    await using box = await open(url)
    const key = 'signalbox:1:{}:queues'
    await expect(box.mutex(key).acquire()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', key })
    await box.mutex('key').run(grant => grant.assertHeld())
  })

  test('a hot lock goes from box to box although a server has just frozen', async () => {
    const boxes = await Promise.all([1, 2, 3, 4].map(() => open(url)))
    const longest: number[] = []
    for (const server of servers) {
      const section = new Section()
      let last = performance.now()
      let gap = 0
      const stopped = new AbortController()
      const task = async (box: Box): Promise<void> => {
        while (!stopped.signal.aborted) {
          await box.mutex('hot').run(grant => {
            gap = Math.max(gap, performance.now() - last)
            last = performance.now()
            return section.visit(grant)
          })
        }
      }
      const tasks = Promise.all(boxes.map(task))
      await until('it is hot', () => section.tokens.length > 20)
      server.pause()
      gap = 0
      await pause(1500)
      stopped.abort()
      await tasks
      expect(section.most).toBe(1)
      expect(rising(section.tokens)).toBe(true)
      longest.push(gap)
      server.resume()
    }
    // Three of the servers have the votes for this key while all reply. Tolerates one stall of the machine.
    expect(longest.sort((one, other) => one - other)[2]).toBeLessThan(NOT_WAITED_FOR)
    await Promise.all(boxes.map(box => box.close()))
  })

  test('a waiter outlives one of its servers, although its lease ends while that is down', async () => {
    await using holder = await open(url)
    await using box = await open(url)
    const held = await holder.mutex('key').acquire({ lease: '30s' })
    const waiting = box.mutex('key').acquire({ lease: '1s' })
    await queued(holder, 'key', 1)
    const queues = await Promise.all(servers.map(each => each.command('EXISTS', 'signalbox:1:{}:queues')))
    await servers[queues.indexOf(1)]!.kill()
    await pause(2500)
    expect(await soFar(waiting)).toBe('pending')
    await held.release()
    await (await waiting).release()
  })

  test('three frozen for less than a lease lose no lock; for longer, it is lost at its own deadline', async () => {
    await using box = await open(url)
    const held = await box.mutex('key').acquire({ lease: '2s' })
    const freeze = async (duration: number): Promise<void> => {
      for (const index of [0, 2, 4]) servers[index]!.pause()
      await pause(duration)
    }
    const thaw = (): void => {
      for (const index of [0, 2, 4]) servers[index]!.resume()
    }
    await freeze(600)
    thaw()
    await pause(2500)
    held.assertHeld()
    const lost = new Promise(resolve => held.signal.addEventListener('abort', resolve))
    const frozen = freeze(0)
    const start = performance.now()
    const took = await timed(() => lost)
    expect(performance.now() - start).toBeGreaterThan(1000)
    await frozen
    expect(took).toBeLessThan(4000)
    expect(() => held.assertHeld()).toThrow(LostError)
    thaw()
    await recovered(box, '5s')
  })

  test('the votes of a refused try do not block the next try', async () => {
    await using one = await open(url)
    await using other = await open(url)
    for (let round = 0; round < 10; round++) {
      // A foreign client holds three of five servers, so `one` can get only a minority.
      for (const server of servers.slice(0, 3)) await server.command('SET', 'key', 'foreign', 'PX', 30_000)
      expect(await one.mutex('key').tryAcquire()).toBeUndefined()
      for (const server of servers.slice(0, 3)) await server.command('DEL', 'key')
      // The votes of the failed attempt are gone, so those two servers and one other are a majority.
      for (const server of servers.slice(0, 2)) await server.command('SET', 'key', 'foreign', 'PX', 30_000)
      const grant = await one.mutex('key').tryAcquire()
      expect(grant).toBeDefined()
      await grant!.release()
      const next = await other.mutex('key').tryAcquire()
      expect(next).toBeDefined()
      await next!.release()
      for (const server of servers.slice(0, 2)) await server.command('DEL', 'key')
    }
  })

  test('servers that restart empty within a lease admit no other holder, and vote again', async () => {
    await using one = await open(url)
    await using other = await open(url)
    const held = await one.mutex('key').acquire({ lease: '3s' })
    await until('it is held everywhere', async () => (await copies('key')) === 5)
    for (const index of [0, 1]) await servers[index]!.restart()
    expect(await other.mutex('key').tryAcquire()).toBeUndefined()
    held.assertHeld()
    await until('it is held everywhere again', async () => (await copies('key')) === 5)
    // With those two votes, the grant survives the loss of two others.
    for (const index of [2, 3]) await servers[index]!.restart()
    await pause(2000)
    held.assertHeld()
    const { token } = held
    await held.release()
    const next = await other.mutex('key').acquire()
    expect(next.token).toBeGreaterThan(token)
    await next.release()
  })

  test('tokens rise although the servers lose their data one after another', async () => {
    await using one = await open(url)
    await using other = await open(url)
    const tokens: bigint[] = []
    for (const server of [...servers, ...servers]) {
      for (const box of [one, other]) await box.mutex('key').run(grant => void tokens.push(grant.token))
      await pause(150)
      await server.restart()
    }
    expect(rising(tokens)).toBe(true)
  })

  test('a forced release reaches the holder although one server is silent and another votes only then', async () => {
    const three = servers.slice(0, 3)
    const [late, silent] = [await Proxy.start(three[0]!.port), await Proxy.start(three[1]!.port)]
    await using one = await open(quorumUrl([late, three[1]!, three[2]!]))
    await using other = await open(quorumUrl([three[0]!, silent, three[2]!]))
    for (const box of [one, other]) await box.mutex('practice').run(() => pause(50))
    late.requests = 'hold'
    const grant = await one.mutex('key').acquire({ lease: 1500 })
    silent.replies = 'hold'
    expect(await other.forceRelease('key', grant.token)).toBe(true)
    late.requests = 'pass'
    silent.replies = 'pass'
    await until('its holder knows', () => grant.signal.aborted)
    await (await other.mutex('key').acquire({ wait: '5s' })).release()
    for (const proxy of [late, silent]) await proxy[Symbol.asyncDispose]()
  })

  test('a revocation waits for a late server', async () => {
    const three = servers.slice(0, 3)
    const [late, ...deaf] = await Promise.all([0, 0, 1, 2].map(index => Proxy.start(three[index]!.port)))
    await using one = await open(quorumUrl(deaf))
    await using operator = await open(quorumUrl([late!, three[1]!, three[2]!]))
    for (const box of [one, operator]) await box.mutex('practice').run(() => pause(50))
    const held = await one.mutex('key').acquire({ lease: 10_000 })
    await until('all have voted', async () => (await copies('key', three)) === 3)
    // Prevents the box from releasing the lock itself.
    for (const proxy of deaf) proxy.replies = 'hold'
    late!.delay = 50
    expect(await operator.revoke(one.session)).toBe(1)
    expect(await copies('key', three)).toBe(0)
    for (const proxy of deaf) proxy.replies = 'pass'
    await until('it knows', () => held.signal.aborted)
    for (const proxy of [late!, ...deaf]) await proxy[Symbol.asyncDispose]()
  })
})
