import { Redis } from 'ioredis'
import { createClient } from 'redis'
import TheirRedlock, { Lock as TheirLock } from 'redlock'
import { getEventListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { Lock, Redlock, type Settings } from '../../src/redlock/index.js'
import { startRedis, startRedisServers } from '../support/servers/redis.js'

const lockers: Redlock[] = []

const servers = await startRedisServers(3)

afterAll(async () => {
  await Promise.all(lockers.map(locker => locker.quit()))
  await Promise.all(servers.map(server => server.kill()))
})

const theirs = TheirRedlock as unknown as typeof Redlock
const lockOf = (Kind: typeof Redlock): typeof Lock =>
  Kind === theirs ? (TheirLock as unknown as typeof Lock) : Lock
const oneTry = { retryCount: 0 }
/** Longer than any stall of a loaded machine, in milliseconds. */
const LONG = 60_000

/** Returns the part of a value that is the same on all servers. */
const sameOf = (value: unknown): string => String(value).replace(/^(signalbox\/1 \S+ ).*/, '$1')

/** Creates a client of the first few servers. */
function locker(Kind: typeof Redlock, count: number): Redlock {
  const redlock = new Kind(servers.slice(0, count).map(({ url }) => new Redis(url)))
  lockers.push(redlock)
  return redlock
}

let keys = 0
const resource = (): string => `{redlock}:${++keys}`

describe.concurrent.each([
  ['redlock itself', theirs, 1],
  ['ours', Redlock, 1],
  ['redlock itself over three servers', theirs, 3],
  ['ours over three servers', Redlock, 3],
] as const)('%s', (_, Kind, count) => {
  test('acquire, extend and release', async () => {
    const [one, other] = [locker(Kind, count), locker(Kind, count)]
    const [a, b] = [resource(), resource()]
    let lock = await one.acquire([a, b], LONG)
    expect(lock.resources).toEqual([a, b])
    expect(lock.expiration - Date.now()).toBeGreaterThan(LONG / 2)
    expect(lock.expiration - Date.now()).toBeLessThanOrEqual(LONG)
    await expect(other.acquire([b], LONG, oneTry)).rejects.toMatchObject({ name: 'ExecutionError' })
    const before = lock
    lock = await lock.extend(2 * LONG)
    expect(before.expiration).toBe(0)
    expect(lock.expiration - Date.now()).toBeGreaterThan(LONG)
    expect(lock.value).toBe(before.value)
    await expect(before.extend(1000)).rejects.toThrow('already-expired')
    const both = await Promise.all([lock.extend(2 * LONG), lock.extend(2 * LONG)])
    expect(both.map(({ value }) => value)).toEqual([lock.value, lock.value])
    for (const each of both) expect(each.expiration - Date.now()).toBeGreaterThan(LONG)
    lock = both[1]
    await lock.release()
    expect(lock.expiration).toBe(0)
    await (await other.acquire([b, a], LONG, oneTry)).release()
    await expect(one.release(lock, oneTry)).rejects.toMatchObject({ name: 'ExecutionError' })
  })

  test('a lock that is not extended ends, and then has no holder', async () => {
    const [one, other] = [locker(Kind, count), locker(Kind, count)]
    const key = resource()
    const held = await one.acquire([key], 300)
    const { expiration } = held
    const next = await other.acquire([key], LONG, { retryCount: 50 })
    // A timer may fire a little early.
    expect(Date.now()).toBeGreaterThanOrEqual(expiration - 5)
    await expect(held.extend(1000)).rejects.toMatchObject({ name: 'ExecutionError' })
    await expect(one.release(held, oneTry)).rejects.toMatchObject({ name: 'ExecutionError' })
    await next.release()
  })

  test('a lock has its value in Redis, by which another process can extend and release it', async () => {
    const [one, other] = [locker(Kind, count), locker(Kind, count)]
    const [a, b] = [resource(), resource()]
    const { value, expiration } = await one.acquire([a, b], LONG)
    await vi.waitFor(async () => expect(sameOf(await servers[0]!.command('GET', a))).toBe(sameOf(value)))
    const rebuilt = new (lockOf(Kind))(other, [a, b], value, [], expiration)
    const extended = await rebuilt.extend(5 * LONG)
    expect(rebuilt.expiration).toBe(0)
    // The last server may extend the lock later.
    await vi.waitFor(async () =>
      expect(Number(await servers[0]!.command('PTTL', b))).toBeGreaterThan(3 * LONG),
    )
    const wrong = new (lockOf(Kind))(other, [a, b], `x${value}`, [], expiration)
    await expect(other.release(wrong, oneTry)).rejects.toMatchObject({ name: 'ExecutionError' })
    await extended.release()
    await expect(other.release(extended, oneTry)).rejects.toMatchObject({ name: 'ExecutionError' })
    const next = await other.acquire([a], LONG, oneTry)
    await expect(other.release(rebuilt, oneTry)).rejects.toMatchObject({ name: 'ExecutionError' })
    await next.release()
  })

  test.each<Partial<Settings>>([
    { retryCount: Infinity, retryDelay: 20 },
    { retryCount: 1e6, retryDelay: 0 },
    { retryCount: 1e6, retryDelay: 0, retryJitter: 0 },
  ])('a waiter with %o gets the lock when it is released', async settings => {
    const [one] = [locker(Kind, count)]
    const other = new Kind(one.clients, settings)
    const key = resource()
    const held = await one.acquire([key], LONG)
    const waiting = other.acquire([key], LONG)
    await sleep(50)
    await held.release()
    await (await waiting).release()
  })

  test('using holds the lock while the routine runs, and returns its result', async () => {
    const [one, other] = [locker(Kind, count), locker(Kind, count)]
    const key = resource()
    const result = await one.using([key], LONG, { retryCount: 2 }, async signal => {
      await expect(other.acquire([key], LONG, oneTry)).rejects.toMatchObject({ name: 'ExecutionError' })
      expect(signal.aborted).toBe(false)
      return 'done'
    })
    expect(result).toBe('done')
    const failing = one.using([key], LONG, () => Promise.reject(new Error('of the routine')))
    await expect(failing).rejects.toThrow('of the routine')
    await (await other.acquire([key], LONG, oneTry)).release()
  })

  test.runIf(count > 1)('a lock needs no reply of a frozen server if most servers reply', async () => {
    const own = await startRedisServers(3)
    const open = (): Redlock => new Kind(own.map(({ url }) => new Redis(url)))
    const [one, other] = [open(), open()]
    await (await one.acquire([resource()], LONG)).release()
    own[0]!.pause()
    const key = resource()
    const { value, expiration } = await one.acquire([key], LONG)
    const extended = await new (lockOf(Kind))(other, [key], value, [], expiration).extend(LONG)
    await extended.release()
    own[0]!.resume()
    await Promise.all([one.quit(), other.quit()])
    await Promise.all(own.map(server => server.kill()))
  })

  test.runIf(count > 1)('the value of a lock is that of most servers', async () => {
    const redlock = locker(Kind, count)
    const key = resource()
    await servers[0]!.command('SET', key, 'of another client')
    const { value } = await redlock.acquire([key], LONG)
    await vi.waitFor(async () => expect(sameOf(await servers[1]!.command('GET', key))).toBe(sameOf(value)))
  })

  test('errors are published to listeners, bad durations are refused', async () => {
    const [one, other] = [locker(Kind, count), locker(Kind, count)]
    const key = resource()
    const heard: Error[] = []
    other.on('error', error => heard.push(error as Error))
    const held = await one.acquire([key], LONG)
    await expect(other.acquire([key], LONG, oneTry)).rejects.toThrow('unable to achieve a quorum')
    expect(heard[0]!.name).toBe('ResourceLockedError')
    await held.release()
    await expect(one.acquire([key], 0.5)).rejects.toThrow('integer')
    await expect(one.using([key], LONG, undefined as never)).rejects.toThrow('routine is not a function')
    expect(() => new Kind([])).toThrow('at least one redis client')
  })
})

test.each([1, 3])('instances with the same %i clients share their connections', async count => {
  const { clients } = locker(Redlock, count)
  const connections = async (): Promise<number> =>
    String(await servers[0]!.command('CLIENT', 'LIST')).split('id=').length - 1
  const use = async (): Promise<unknown> => (await new Redlock(clients).acquire([resource()], LONG)).release()
  await use()
  const before = await connections()
  await Promise.all(Array.from({ length: 80 }, use))
  expect(await connections()).toBe(before)
})

test.concurrent('a program that closes its clients leaves no connections', async () => {
  const server = await startRedis()
  const connections = async (): Promise<number> =>
    String(await server.command('CLIENT', 'LIST')).split('id=').length - 1
  const before = await connections()
  const holder = new Redis(server.url)
  for (const client of [new Redis(server.url), await createClient({ url: server.url }).connect()]) {
    const held = await new Redlock([holder]).acquire(['key'], LONG)
    const waiting = new Redlock([client]).acquire(['key'], LONG)
    await sleep(50)
    await held.release()
    await (await waiting).release()
    await client.quit()
  }
  await holder.quit()
  await vi.waitFor(async () => expect(await connections()).toBe(before), { timeout: 5000 })
  await server.kill()
})

test('quit ends the clients although their box could not be opened', async () => {
  const quit = vi.fn(() => Promise.resolve('OK'))
  const redlock = new Redlock([{ quit }])
  const failing = expect(redlock.acquire(['key'], LONG)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  await redlock.quit()
  expect(quit).toHaveBeenCalledOnce()
  await failing
})

test.concurrent('a client may return buffers', async () => {
  const client = createClient({ url: servers[0]!.url, commandOptions: { typeMapping: { 36: Buffer } } })
  await client.connect()
  const redlock = new Redlock([client])
  const locks = await Promise.all([redlock.acquire([resource()], LONG), redlock.acquire([resource()], LONG)])
  for (const { resources, value } of locks)
    expect(await servers[0]!.command('GET', resources[0]!)).toBe(value)
  await redlock.quit()
})

test.concurrent('a lock that is extended often has as many listeners as one that is not', async () => {
  const redlock = locker(Redlock, 1)
  let lock = await redlock.acquire([resource()], LONG)
  const before = getEventListeners(lock.grant.signal, 'abort').length
  for (let i = 0; i < 20; i++) lock = await lock.extend(LONG)
  expect(getEventListeners(lock.grant.signal, 'abort')).toHaveLength(before)
})

test.concurrent('a lock that is lost before its value is read is not acquired', async () => {
  const client = new Redis(servers[0]!.url)
  const redlock = new Redlock([client])
  lockers.push(redlock)
  const get = client.get.bind(client)
  client.get = async (key: string) => {
    await servers[0]!.command('DEL', key)
    return get(key)
  }
  const acquiring = redlock.acquire([resource()], LONG)
  await expect(acquiring).rejects.toMatchObject({
    name: 'ExecutionError',
    cause: { name: 'ResourceLockedError' },
  })
})

test.concurrent.each([1, 3])('ours and redlock itself exclude each other over %i servers', async count => {
  const [our, their] = [locker(Redlock, count), locker(theirs, count)]
  const key = resource()
  for (const [holder, asking] of [
    [our, their],
    [their, our],
  ] as const) {
    const held = await holder.acquire([key], LONG)
    await expect(asking.acquire([key], LONG, oneTry)).rejects.toMatchObject({ name: 'ExecutionError' })
    await held.release()
  }
  const before = await their.acquire([key], LONG)
  const waiting = our.acquire([key], LONG, { retryCount: -1 })
  await sleep(50)
  await before.release()
  await (await waiting).release()
})

test('using reports a lock that was taken away, and whether its routine ran', async () => {
  const [redlock, other] = [locker(Redlock, 1), locker(Redlock, 1)]
  const key = resource()
  const lost = redlock.using([key], 600, async signal => {
    await servers[0]!.command('DEL', key)
    while (!signal.aborted) await sleep(5)
    expect(signal.error).toMatchObject({ name: 'ExecutionError', cause: { code: 'LOST' } })
    return 'charged'
  })
  await expect(lost).rejects.toMatchObject({
    name: 'ExecutionError',
    cause: { code: 'LOST', taskEnded: true, result: 'charged' },
  })
  const held = await other.acquire([key], LONG)
  const busy = redlock.using([key], LONG, oneTry, () => Promise.resolve('charged'))
  await expect(busy).rejects.toMatchObject({ name: 'ExecutionError', cause: { cause: { taskBegan: false } } })
  await held.release()
})

test("using returns the routine's result, or its error, when the server is gone before the release", async () => {
  const results = [() => Promise.resolve('charged'), () => Promise.reject(new Error('of the routine'))].map(
    async end => {
      const server = await startRedis()
      const redlock = new Redlock([new Redis(server.url)])
      lockers.push(redlock)
      return redlock.using(['key'], LONG, async () => {
        await server.kill()
        return end()
      })
    },
  )
  const [given, failed] = await Promise.allSettled(results)
  expect(given).toEqual({ status: 'fulfilled', value: 'charged' })
  expect(failed).toMatchObject({ status: 'rejected', reason: { message: 'of the routine' } })
})
