import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { createClient } from 'redis'
import { createClient as createClient6 } from 'redis6'
import { describe, expect, onTestFinished, test } from 'vitest'
import { pause } from '../../packages/conformance/src/time.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { open, type Box } from '../../src/index.js'
import { redisRecords } from '../../src/store/records/redis-records.js'
import { builtProgram } from '../support/built-program.js'
import { boxWays } from '../support/redis/box-ways.js'
import { clientPackages } from '../support/redis/client-packages.js'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'
import { startRedisWithSentinel } from '../support/servers/redis-sentinel.js'
import { startRedis, startRedisServers, type RedisServer } from '../support/servers/redis.js'
import { until } from '../support/servers/until.js'

const LOCKS = ['acquire', 'tryAcquire', 'inspect']
const OTHERS = ['get', 'put', 'transaction', 'transaction with ID', 'limiter.acquire', 'limiter.tryAcquire']

/** Returns the output of the program if all its calls succeed. */
function allDone(sorts: readonly string[]): string[] {
  return ['at once', 'later'].flatMap(when => sorts.map(sort => `${sort} ${when}: done`))
}

/** Each transaction has added 1 to the key once: two at the start, and two in each round. */
const ALL_DONE = [...allDone([...LOCKS, ...OTHERS]), 'key: 6']

/** Runs the program, and cuts its connections whenever it is stopped. @returns its output about the calls */
async function thawed(
  [url, name, way]: readonly [url: string, name: string, way: 'own' | 'given' | 'quorum'],
  sever: () => unknown,
): Promise<string[]> {
  const program = builtProgram('test/support/redis/thawed.process.js')
  const child = spawn(process.execPath, [program, url, name, way], { stdio: ['ignore', 'pipe', 'inherit'] })
  const printed: string[] = []
  try {
    for await (const line of createInterface(child.stdout)) {
      if (line !== 'stopping') {
        printed.push(line)
        continue
      }
      await until(() => / T /.test(readFileSync(`/proc/${child.pid}/stat`, 'utf8')))
      await sever()
      // A box that received a reply a moment ago does not suspect that its connection has ended.
      await pause(100)
      child.kill('SIGCONT')
    }
  } finally {
    child.kill('SIGKILL')
  }
  return printed
}

/** Closes all client connections. */
function closeAll(servers: readonly RedisServer[]): Promise<unknown> {
  return Promise.all(servers.map(server => server.command('CLIENT', 'KILL', 'TYPE', 'normal')))
}

const ways = clientPackages.flatMap(({ name }) => [
  { name, way: 'own' as const },
  { name, way: 'given' as const },
])

describe.runIf(process.platform === 'linux')(
  'the first call of a process whose connections were lost while it was stopped succeeds',
  () => {
    test.concurrent.each(ways)('after a reset over $name, $way connections', async ({ name, way }) => {
      await using server = await startRedis()
      await using network = await Proxy.start(server.port)
      const url = `redis://127.0.0.1:${network.port}`
      expect(await thawed([url, name, way], () => network.reset())).toEqual(ALL_DONE)
    })

    test.concurrent.each(ways)('after a close over $name, $way connections', async ({ name, way }) => {
      await using server = await startRedis()
      expect(await thawed([server.url, name, way], () => closeAll([server]))).toEqual(ALL_DONE)
    })

    test.each(ways)('on a cluster over $name, $way connections', async ({ name, way }) => {
      await using cluster = await startRedisCluster()
      expect(await thawed([cluster.url, name, way], () => closeAll(cluster.nodes))).toEqual(ALL_DONE)
    })

    test.each(ways.filter(({ way }) => way === 'own'))('behind Sentinel over $name', async ({ name }) => {
      await using servers = await startRedisWithSentinel()
      const { master, sentinel, url } = servers
      expect(await thawed([url, name, 'own'], () => closeAll([master, sentinel]))).toEqual(ALL_DONE)
    })

    test('on a quorum', async () => {
      const servers = await startRedisServers(3)
      for (const server of servers) onTestFinished(() => server.stop())
      const printed = await thawed([quorumUrl(servers), 'node-redis 5', 'quorum'], () => closeAll(servers))
      expect(printed).toEqual(allDone(LOCKS))
    })
  },
)

describe('a call that was executed and whose reply was lost with the connection', () => {
  /**
   * Opens a box and returns a function that resets the connection after a call was executed and before its reply
   * arrives.
   */
  async function place(openBox: (typeof boxWays)[number]['open']) {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const network = await Proxy.start(server.port)
    const opened = await openBox(`redis://127.0.0.1:${network.port}`)
    onTestFinished(() => opened[Symbol.asyncDispose]())
    const { box } = opened
    async function withLostReply<Result>(call: () => Promise<Result>): Promise<Result> {
      network.replies = 'hold'
      const result = call()
      result.catch(() => undefined)
      await until(() => network.withheldReplies > 0)
      network.reset()
      network.replies = 'pass'
      return result
    }
    return { box, server, withLostReply }
  }

  test.each(boxWays)('has its effect once over $name', async ({ open: openBox }) => {
    const { box, withLostReply } = await place(openBox)
    const lock = box.mutex('key')
    const grant = await withLostReply(() => lock.acquire({ wait: 5000 }))
    expect(await lock.tryAcquire()).toBeUndefined()
    await grant.release()
    const tried = await withLostReply(() => lock.tryAcquire())
    await tried!.release()
    const store = box.store('store')
    await store.put('key', 1)
    expect(await withLostReply(() => store.get('key'))).toMatchObject({ value: 1 })
  })

  test.each(boxWays)('that wrote a value is not sent again over $name', async ({ open: openBox }) => {
    const { box, server, withLostReply } = await place(openBox)
    await using near = await open(server.url)
    // Loads the script into the server.
    await box.mutex('key').run(() => undefined)
    const written = withLostReply(() => box.store('store').put('key', 1))
    await expect(written).rejects.toMatchObject({ code: 'INDETERMINATE' })
    expect(await near.store('store').get('key')).toMatchObject({ value: 1 })
    await near.store('store').put('key', 2)
    await box.mutex('key').run(() => undefined)
    expect(await near.store('store').get('key')).toMatchObject({ value: 2 })
  })
})

describe('a given client of node-redis that mixes replies after a reset', () => {
  const packages = [
    ['node-redis 5', createClient],
    ['node-redis 6', createClient6 as unknown as typeof createClient],
  ] as const

  /**
   * Creates a client that sends nothing by itself when it reconnects, because such commands would reveal the mistake.
   */
  async function place(create: typeof createClient) {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const network = await Proxy.start(server.port)
    const client = create({ socket: { host: '127.0.0.1', port: network.port }, disableClientInfo: true })
    client.on('error', () => {})
    await client.connect()
    onTestFinished(() => client.destroy())
    const reconnected = () => new Promise(resolve => client.once('ready', resolve))
    return { client, network, reconnected, server }
  }

  test.each(packages)('never makes a lock look granted, %s', async (_, create) => {
    const { client, network, reconnected, server } = await place(create)
    const box: Box = await open({ redis: client })
    onTestFinished(() => box.close())
    await box.mutex('first').run(() => {})
    for (let round = 0; round < 5; round++) {
      const ready = reconnected()
      // The timer makes the client notice the loss before it writes.
      await new Promise(resolve => setTimeout(resolve, 5))
      network.reset()
      const attempt = box.mutex(`key ${round}`).acquire({ wait: 5000 })
      await ready
      void client.incr('numbers').catch(() => undefined)
      void client.incr('numbers').catch(() => undefined)
      await attempt
      expect(await server.command('EXISTS', `key ${round}`)).toBe(1)
    }
  })

  test.each(packages)('never makes a record look written, %s', async (_, create) => {
    const { client, network, reconnected, server } = await place(create)
    const records = redisRecords(client)
    await records.get('first')
    for (let round = 0; round < 5; round++) {
      const key = `key ${round}`
      const ready = reconnected()
      // The timer makes the client notice the loss before it writes.
      await new Promise(resolve => setTimeout(resolve, 5))
      network.reset()
      const writing = records.compareAndSet(key, undefined, 'text', undefined).catch(() => undefined)
      await ready
      for (let call = 0; call < 3; call++) void client.incr('numbers').catch(() => undefined)
      if ((await writing) !== undefined)
        expect(await server.command('EXISTS', `signalbox:records:${key}`)).toBe(1)
    }
  })
})
