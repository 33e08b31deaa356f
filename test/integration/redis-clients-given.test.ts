import { Cluster, Redis } from 'ioredis'
import { createClient, createClientPool, createSentinel } from 'redis'
import { afterAll, afterEach, expect, test } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { locks, queued } from '../../packages/conformance/src/time.js'
import { open, type Box, type Grant } from '../../src/index.js'
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

const unavailable = (reason: string) => ({ code: 'UNAVAILABLE', message: expect.stringContaining(reason) })
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

test('a lock that is handed over while `inspect` reads is shown with one holder', async () => {
  const client = kept(new Redis(server.port), () => client.disconnect())
  const send = client.sendCommand.bind(client)
  let scanned: (() => Promise<void>) | undefined
  client.sendCommand = command => {
    if (command.name.toUpperCase() !== 'SCAN' || !scanned) return send(command)
    const first = scanned
    scanned = undefined
    const reply = first().then(() => send(command))
    reply.then(command.resolve, command.reject)
    return command.promise
  }
  const [box, other] = [await openOver(client), await openOver(client)]
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

test('a client that sends a command again, to another server, finds all values', async () => {
  const standby = await startRedis()
  opened.push(() => standby.kill())
  const keys = Array.from({ length: 3000 }, (_, index) => `key ${index}`)
  for (const { url } of [server, standby]) {
    await using box = await open(url)
    await box.store('moved').transaction(keys, transaction => keys.forEach(key => transaction.put(key, 1)))
  }
  const proxy = await Proxy.start(server.port)
  opened.push(() => proxy[Symbol.asyncDispose]())
  const client = kept(new Redis(proxy.port), () => client.disconnect())
  const send = client.sendCommand.bind(client)
  let scans = 0
  client.sendCommand = command => {
    const reply = send(command)
    if (command.name.toUpperCase() === 'SCAN' && ++scans === 2) {
      proxy.target = standby.port
      proxy.cut()
    }
    return reply
  }
  const box = await openOver(client)
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

test('a client of node-redis need not be connected, because the box makes connections like it', async () => {
  const box = await openOver(createClient({ url: server.url }))
  expect(await box.mutex('train').run(() => 'done')).toBe('done')
})

test('a client that connects lazily is connected', async () => {
  const client = new Redis({ port: server.port, lazyConnect: true })
  kept(client, () => client.disconnect())
  const box = await openOver(client)
  expect(await box.mutex('train').run(() => 'done')).toBe('done')
})

test('a client that is closed is reported', async () => {
  const ended = new Redis({ port: server.port })
  kept(ended, () => {})
  await ended.ping()
  const gone = new Promise(resolve => ended.once('end', resolve))
  ended.disconnect()
  await gone
  await expect(openOver(ended)).rejects.toMatchObject(unavailable('connect it first'))
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
