import { Cluster, Redis } from 'ioredis'
import { createClient, createClientPool, createSentinel } from 'redis'
import { afterAll, afterEach, expect, test } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { locks, queued } from '../../packages/conformance/src/time.js'
import { systemClock } from '../../src/base/clock.js'
import { Box } from '../../src/box.js'
import type { Reply } from '../../src/engines/redis/clients/connection.js'
import { installedPackage } from '../../src/engines/redis/clients/installed-package.js'
import { linkTo } from '../../src/engines/redis/links.js'
import { RedisEngine } from '../../src/engines/redis/redis-engine.js'
import { parseRedisUrl } from '../../src/engines/redis/redis-url.js'
import { open, type Grant } from '../../src/index.js'
import { clientPackages } from '../support/redis/client-packages.js'
import { startRedis } from '../support/servers/redis.js'

const opened: (() => void | Promise<void>)[] = []

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})
const server = await startRedis()

afterAll(() => server.kill())

async function openOver(redis: object, options: { prefix?: string } = {}): Promise<Box> {
  const box = await open({ redis, ...options })
  opened.push(() => box.close())
  return box
}

/** Closes a client at the end of the test. */
function kept<Client extends { on: (event: 'error', listener: () => void) => unknown }>(
  client: Client,
  close: () => void,
): Client {
  client.on('error', () => {})
  opened.push(close)
  return client
}

const invalid = (reason: string) => ({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(reason) })

test.each(clientPackages)('a box over a client of $name, which its owner closes', async ({ client }) => {
  const given = await client(server.url)
  opened.push(given.close)
  const box = await openOver(given.client, { prefix: 'mine:' })
  await box.mutex('train').run(async () => {
    expect(await server.command('KEYS', 'mine:*')).toContain('mine:train')
  })
  await box.close()
  // The client still works, for its owner and for other boxes.
  const again = await openOver(given.client)
  expect(await again.mutex('train').run(() => 'done')).toBe('done')
})

/** Opens a box whose commands to single masters, such as SCAN, the test sends. */
async function openSending(
  url: string,
  sent: (args: readonly string[], send: () => Promise<Reply>) => Promise<Reply>,
): Promise<Box> {
  const { options, ...place } = parseRedisUrl(url)
  const makeLink = linkTo({ ...place, options }, await installedPackage())
  const engine = new RedisEngine(
    listener => {
      const link = makeLink(listener)
      const masters = link.masters.bind(link)
      link.masters = async () => (await masters()).map(send => args => sent(args, () => send(args)))
      return link
    },
    options,
    systemClock,
  )
  const box = await Box.join(engine, systemClock)
  opened.push(() => box.close())
  return box
}

test('a lock that is handed over while `inspect` reads is shown with one holder', async () => {
  let scanned: (() => Promise<void>) | undefined
  const box = await open(server.url)
  opened.push(() => box.close())
  const other = await openSending(server.url, async (_, send) => {
    const first = scanned
    scanned = undefined
    await first?.()
    return send()
  })
  const lock = box.mutex('handed')
  const handOvers: readonly ((held: Grant) => Promise<unknown>)[] = [
    // To a caller that was waiting when the queues were read,
    async held => {
      await held.release()
      return waiting
    },
    // and to one that came later.
    async held => {
      controller.abort()
      await waiting.catch(() => undefined)
      await held.release()
      return lock.acquire({ ownRequest: true })
    },
  ]
  let waiting: Promise<Grant>
  let controller: AbortController
  for (const handOver of handOvers) {
    const held = await lock.acquire({ ownRequest: true })
    controller = new AbortController()
    waiting = lock.acquire({ ownRequest: true, signal: controller.signal })
    await queued(box, 'handed', 1)
    let next: unknown
    scanned = async () => {
      next = await handOver(held)
    }
    expect((await locks(other, 'handed'))[0]!.holders).toHaveLength(1)
    await (next as Grant).release()
  }
})

test('a list that continues on another server has all values', async () => {
  const standby = await startRedis()
  opened.push(() => standby.kill())
  const keys = Array.from({ length: 3000 }, (_, index) => `key ${index}`)
  for (const { url } of [server, standby]) {
    await using box = await open(url)
    await box.store('moved').transaction(keys, transaction => keys.forEach(key => transaction.put(key, 1)))
  }
  const proxy = await Proxy.start(server.port)
  opened.push(() => proxy[Symbol.asyncDispose]())
  let scans = 0
  const box = await openSending(`redis://127.0.0.1:${proxy.port}`, (_, send) => {
    const reply = send()
    if (++scans === 2) {
      proxy.target = standby.port
      proxy.cut()
    }
    return reply
  })
  const listed: string[] = []
  for await (const { key } of box.store('moved').list()) listed.push(key)
  expect(listed).toEqual([...keys].sort())
})

test("the prefix of a client's keys applies to the library's keys", async () => {
  const client = new Redis({ port: server.port, keyPrefix: 'app:', enableAutoPipelining: true })
  kept(client, () => client.disconnect())
  const box = await openOver(client, { prefix: 'locks:' })
  await box.mutex('train').run(async () => {
    expect(await server.command('EXISTS', 'app:locks:train')).toBe(1)
    // The owner can still use the client as before.
    await client.set('k', 'v')
  })
  expect(await server.command('GET', 'app:k')).toBe('v')
})

test('a client need not be connected, because the box makes connections like it', async () => {
  const ended = new Redis({ port: server.port, lazyConnect: true })
  ended.disconnect()
  for (const client of [createClient({ url: server.url }), ended]) {
    const box = await openOver(client)
    expect(await box.mutex('train').run(() => 'done')).toBe('done')
  }
})

test('a client of a cluster that is closed is reported', async () => {
  const ended = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true })
  ended.disconnect()
  await expect(openOver(ended)).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringContaining('connect it first'),
  })
})

test('boxes over one client share their connections', async () => {
  const client = kept(new Redis(server.port), () => client.disconnect())
  await client.ping()
  const count = async (): Promise<number> => String(await server.command('CLIENT', 'LIST')).split('\n').length
  const before = await count()
  for (let boxes = 0; boxes < 3; boxes++) await (await openOver(client)).ping()
  expect(await count()).toBe(before + 1)
})

test('a value that is not a client is refused', async () => {
  for (const redis of [
    undefined,
    null,
    1,
    'redis://localhost',
    {},
    [],
    () => {},
    new Map(),
    { sendCommand: () => {} },
  ])
    await expect(open({ redis: redis as object })).rejects.toMatchObject(
      invalid('redis must be a client or a cluster'),
    )
  await expect(open({ redis: {}, perfix: 'a' } as never)).rejects.toMatchObject(
    invalid('unknown option "perfix"'),
  )
})

test('a client that can’t be used is refused with the reason', async () => {
  const numbers = new Redis({ port: server.port, stringNumbers: true, lazyConnect: true })
  kept(numbers, () => numbers.disconnect())
  await expect(openOver(numbers)).rejects.toMatchObject(invalid('stringNumbers'))
  const listening = new Redis({ port: server.port })
  kept(listening, () => listening.disconnect())
  await listening.subscribe('news')
  await expect(openOver(listening)).rejects.toMatchObject(invalid('subscriber mode'))
  const sentinel = createSentinel({ name: 'trains', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] })
  await expect(openOver(sentinel)).rejects.toMatchObject(invalid('redis+sentinel://'))
  const pool = createClientPool({ url: server.url })
  await expect(openOver(pool)).rejects.toMatchObject(invalid('a pool of clients'))
})

test('a cluster client that finds no cluster gives up in time', async () => {
  const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { clusterRetryStrategy: () => null })
  kept(cluster, () => cluster.disconnect())
  await expect(openOver(cluster)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})
