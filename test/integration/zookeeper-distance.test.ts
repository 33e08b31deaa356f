import { afterAll, describe, test } from 'vitest'
import { ZooKeeper } from 'signalbox-zookeeper'
import type { Box } from '../../src/box.js'
import type { Grant } from '../../src/core/grant.js'
import { open } from '../../src/open.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'

/** Number of callers that may hold the key at the same time. */
const TOGETHER = 20

let places = 0

const server = await startZooKeeper()

afterAll(() => server.kill())

/** A box behind a network. A test executes its round trips one by one. */
interface Distant {
  readonly box: Box
  readonly proxy: Proxy
  /** A box that connects to the server directly. */
  readonly near: Box
  readonly zk: ZooKeeper
  /** Returns the number of nodes of requests for the key. */
  readonly nodes: () => Promise<number>
}

async function distant(check: (far: Distant) => Promise<void>): Promise<void> {
  const place = `/place-${++places}`
  await using proxy = await Proxy.start(server.port)
  await using near = await open(`zookeeper://${server.address}${place}?sessionTimeout=60s`)
  await using box = await open(`zookeeper://127.0.0.1:${proxy.port}${place}?sessionTimeout=60s`)
  await using zk = await ZooKeeper.connect(`${server.address}${place}`)
  const nodes = async (): Promise<number> => {
    const { children } = await zk.getChildren('/locks/key').catch(() => ({ children: [] }))
    return children.length
  }
  try {
    // Opens the connections.
    for (const each of [near, box]) await each.mutex('first').run(() => undefined)
    await check({ box, proxy, near, zk, nodes })
  } finally {
    proxy.requests = proxy.replies = 'pass'
  }
}

/** Returns the number of watches that the server keeps for all its connections. */
async function watches(): Promise<number> {
  return Number(/^zk_watch_count\t(\d+)$/m.exec(await server.say('mntr'))![1])
}

/**
 * Executes one round trip: lets the server reply to the requests of a box until `isDone`. Then the box receives the
 * replies, but its next requests are held back.
 */
async function roundTrip(proxy: Proxy, isDone: () => Promise<boolean> | boolean): Promise<void> {
  proxy.replies = 'hold'
  proxy.requests = 'pass'
  await until(isDone)
  proxy.requests = 'hold'
  proxy.replies = 'pass'
}

const kinds: Record<string, { readonly requests: number; readonly acquire: (box: Box) => Promise<Grant> }> = {
  mutex: { requests: 1, acquire: box => box.mutex('key').acquire() },
  // Readers of a box share a request.
  readers: { requests: 1, acquire: box => box.readWriteLock('key').read.acquire() },
  permits: { requests: TOGETHER, acquire: box => box.semaphore('key', { max: 2 * TOGETHER }).acquire() },
}

describe('round trips of a box far from ZooKeeper', () => {
  for (const [name, { requests, acquire }] of Object.entries(kinds)) {
    const callers = name === 'mutex' ? 1 : TOGETHER
    const enter = (box: Box): Promise<Grant>[] => Array.from({ length: callers }, () => acquire(box))
    const leave = async ({ proxy, nodes }: Distant, grants: readonly Grant[]): Promise<void> => {
      const releases = grants.map(grant => grant.release())
      await roundTrip(proxy, async () => (await nodes()) === 0)
      await Promise.all(releases)
    }

    test(`${name} of a key with a node: one to acquire, one to release`, () =>
      distant(async far => {
        await far.zk.create('/locks/key')
        const asked = enter(far.box)
        await roundTrip(far.proxy, async () => (await far.nodes()) === requests)
        await leave(far, await Promise.all(asked))
      }))

    test(`${name} of a new key: ${requests > 1 ? 'one' : 'two'} to acquire, one to release`, () =>
      distant(async far => {
        const asked = enter(far.box)
        if (requests === 1) {
          await roundTrip(far.proxy, () => far.proxy.withheldReplies > 0)
          await until(() => far.proxy.withheldRequests > 0)
        }
        await roundTrip(far.proxy, async () => (await far.nodes()) === requests)
        await leave(far, await Promise.all(asked))
      }))
  }

  test('a waiter: one after the node ahead of it is deleted', () =>
    distant(async ({ box, near, proxy }) => {
      const held = await near.mutex('key').acquire()
      const before = await watches()
      const asked = box.mutex('key').acquire()
      await until(async () => (await watches()) === before + 1)
      proxy.requests = 'hold'
      await held.release()
      await until(() => proxy.withheldRequests > 0)
      await roundTrip(proxy, () => proxy.withheldReplies > 0)
      const next = await asked
      proxy.requests = 'pass'
      await next.release()
    }))
})
