import { describe, expect, test } from 'vitest'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { queued, until } from '../../packages/conformance/src/time.js'
import type { Box } from '../../src/index.js'
import { open } from '../../src/open.js'
import { boxWays } from '../support/redis/box-ways.js'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedis, type RedisServer } from '../support/servers/redis.js'

/** A master and its replica behind one stable address, and the network between the two. */
class Pair implements AsyncDisposable {
  private constructor(
    readonly master: RedisServer,
    readonly replica: RedisServer,
    readonly address: Proxy,
    readonly replication: Proxy,
  ) {}

  static async start(): Promise<Pair> {
    const master = await startRedis()
    const replication = await Proxy.start(master.port)
    const replica = await startRedis({ config: [`replicaof 127.0.0.1 ${replication.port}`] })
    await master.copied()
    return new Pair(master, replica, await Proxy.start(master.port), replication)
  }

  get url(): string {
    return `redis://127.0.0.1:${this.address.port}`
  }

  /** Stops replication. The replica misses all later writes. */
  fallBehind(): void {
    this.replication.replies = 'lose'
  }

  /** Gives the address to the replica, and makes the master its replica. Connections to the old master stay open. */
  async failOver(): Promise<void> {
    await this.replica.command('REPLICAOF', 'NO', 'ONE')
    this.address.target = this.replica.port
    await this.master.command('REPLICAOF', '127.0.0.1', String(this.replica.port))
    await until('the old master has become a replica', async () =>
      String(await this.master.command('INFO', 'replication')).includes('master_link_status:up'),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.address[Symbol.asyncDispose]()
    await this.replication[Symbol.asyncDispose]()
    await this.replica.kill()
    await this.master.kill()
  }
}

/** Expects that a waiter gets its lock although the masters that know the holder and the waiter are demoted. */
async function waitsOn(one: Box, other: Box, pairs: readonly Pair[]): Promise<void> {
  const held = await one.mutex('key').acquire({ lease: '20s' })
  const waiting = other.mutex('key').acquire({ lease: '20s', wait: '30s' })
  await queued(one, 'key', 1)
  await Promise.all(pairs.map(pair => pair.failOver()))
  const next = await waiting
  expect(next.token).toBeGreaterThan(held.token)
  const texts = await Promise.all(pairs.map(({ replica }) => replica.command('GET', 'key')))
  // A grant of a quorum needs a majority of the servers. The client of another server may still be looking for its
  // master.
  const holding = texts.filter(text => String(text).startsWith('signalbox/1'))
  expect(holding.length).toBeGreaterThan(pairs.length / 2)
  await next.release()
}

describe.each(boxWays)('a master is demoted behind a stable address: $name', ({ open: openBox }) => {
  test('a waiter that the new master does not know waits on', async () => {
    await using pair = await Pair.start()
    await using one = await openBox(pair.url)
    await using other = await openBox(pair.url)
    pair.fallBehind()
    await waitsOn(one.box, other.box, [pair])
  })

  test('boxes that only read, or only wait, find the new master', async () => {
    await using pair = await Pair.start()
    await using reader = await openBox(pair.url)
    await using waiter = await openBox(pair.url)
    await reader.box.store('s').put('key', 'old')
    await pair.master.copied()
    const watched: unknown[] = []
    const stop = new AbortController()
    const watching = (async () => {
      for await (const entry of waiter.box.store('s').watch('key', stop.signal)) watched.push(entry?.value)
    })().catch(() => undefined)
    await until('it is watched', () => watched.includes('old'))
    await pair.failOver()
    // No more messages or changes reach the old master.
    await pair.master.command('REPLICAOF', '127.0.0.1', '1')
    await using writer = await open(pair.url)
    await writer.store('s').put('key', 'new')
    const read = (): Promise<unknown> =>
      reader.box
        .store('s')
        .get('key')
        .then(
          entry => entry?.value,
          () => undefined,
        )
    await until('the reader reads it', async () => (await read()) === 'new')
    // Any call of the box detects that its server was demoted.
    await until('the watcher is notified', async () => {
      await waiter.box.ping().catch(() => undefined)
      return watched.includes('new')
    })
    stop.abort()
    await watching
  })
})

test('a waiter on a quorum waits on when a majority of masters is demoted', async () => {
  const pairs = await Promise.all([Pair.start(), Pair.start(), Pair.start()])
  try {
    const url = quorumUrl(pairs.map(({ address }) => address))
    await using one = await open(url)
    await using other = await open(url)
    for (const pair of pairs) pair.fallBehind()
    await waitsOn(one, other, pairs)
  } finally {
    for (const pair of pairs) await pair[Symbol.asyncDispose]()
  }
})
