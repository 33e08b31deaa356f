import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Box } from '../../src/box.js'
import { LostError } from '../../src/base/errors.js'
import { open } from '../../src/open.js'
import { NoNodeError, ZooKeeper } from 'signalbox-zookeeper'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { locks, queued } from '../../packages/conformance/src/time.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper, type ZooKeeperServer } from '../support/servers/zookeeper.js'

let server: ZooKeeperServer
let zk: ZooKeeper
let places = 0

beforeAll(async () => {
  server = await startZooKeeper()
  zk = await ZooKeeper.connect(server.address)
})
afterAll(async () => {
  await zk.close()
  await server.kill()
})

const nextPlace = (): string => `/place-${++places}`

function bridged(place: string, port = server.port): Promise<Box> {
  return open(`zookeeper://127.0.0.1:${port}${place}?sessionTimeout=20s&bridge=true`)
}

function plain(place: string): Promise<Box> {
  return open(`zookeeper://127.0.0.1:${server.port}${place}?sessionTimeout=20s`)
}

/**
 * Returns the nodes in the queue of a key, ordered by their numbers. Replaces the parts that differ between requests.
 */
async function queue(place: string, key: string): Promise<string[]> {
  let children: readonly string[]
  try {
    children = (await zk.getChildren(`${place}/locks/${key}`, { linearizable: true })).children
  } catch (error) {
    // The server has deleted the empty container.
    if (error instanceof NoNodeError) return []
    throw error
  }
  const digits = (name: string): string => name.slice(-10)
  return [...children]
    .sort((one, other) => digits(one).localeCompare(digits(other)))
    .map(name => name.slice(0, -10).replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, 'GUID'))
}

const WRITER = ['_c_GUID-lock-', '_c_GUID__lock__', '_c_GUID__WRIT__']
const READER = ['_c_GUID-__READ__', '_c_GUID__rlock__']

describe.concurrent('the ZooKeeper engine with a bridge', () => {
  test('each claim has a node and its twins, which are created, changed and deleted together', async () => {
    const place = nextPlace()
    await using one = await bridged(place)
    const both = await one.mutex('a', 'b').acquire()
    expect([await queue(place, 'a'), await queue(place, 'b')]).toEqual([WRITER, WRITER])
    const waiting = one.readWriteLock('a').read.acquire()
    await queued(one, 'a', 1)
    expect(await queue(place, 'a')).toEqual([...WRITER, ...READER])
    await both.release()
    const reading = await waiting
    await expect(one.mutex('a').tryAcquire()).resolves.toBeUndefined()
    await expect(one.mutex('a').acquire({ wait: 20 })).rejects.toThrow()
    await until(async () => (await queue(place, 'a')).length === 2)
    expect(await queue(place, 'a')).toEqual(READER)
    await reading.release()
    const some = await one.semaphore('b', { max: 4 }).acquire({ permits: 2 })
    expect(await queue(place, 'b')).toEqual(['_c_GUID-2of4-lock-', '_c_GUID__lock__', '_c_GUID__WRIT__'])
    await some.release()
    const writing = await one.readWriteLock('b').write.acquire()
    await writing.downgrade()
    expect(await queue(place, 'b')).toEqual(READER)
    await writing.release()
    expect(await zk.getEphemerals(`${place}/locks`)).toEqual([])
    expect(await locks(one)).toEqual([])
  })

  test('lost replies are found by all nodes, and nothing is left behind', async () => {
    const place = nextPlace()
    await using proxy = await Proxy.start(server.port)
    await using one = await bridged(place, proxy.port)
    await using other = await plain(place)
    for (const keys of [['a'], ['a', 'b']]) {
      await one.mutex(...keys).run(() => undefined)
      for (const lost of ['replies', 'requests'] as const) {
        const lose = async <T>(asked: Promise<T>): Promise<T> => {
          await until(() => proxy.withheldReplies + proxy.withheldRequests > 0)
          proxy[lost] = 'pass'
          proxy.cut()
          return asked
        }
        proxy[lost] = 'lose'
        const grant = await lose(one.mutex(...keys).acquire())
        for (const key of keys) expect(await queue(place, key)).toEqual(WRITER)
        const reports = await locks(other)
        expect(reports.map(({ holders }) => holders[0]!.token)).toEqual(keys.map(() => grant.token))
        proxy[lost] = 'lose'
        await lose(grant.release())
        expect(await zk.getEphemerals(`${place}/locks`)).toEqual([])
      }
    }
  })

  test('a claim that is revoked loses all its nodes', async () => {
    const place = nextPlace()
    await using proxy = await Proxy.start(server.port)
    await using one = await bridged(place, proxy.port)
    await using other = await plain(place)
    const held = await one.mutex('a', 'b').acquire()
    const [report] = await locks(other, 'a')
    expect(await other.forceRelease('a', report!.holders[0]!.token!)).toBe(true)
    await until(() => held.signal.aborted)
    expect(await zk.getEphemerals(`${place}/locks`)).toEqual([])

    const grants = await Promise.all([one.mutex('a').acquire(), one.mutex('b', 'c').acquire()])
    // This box can neither send nor receive anything.
    proxy.requests = proxy.replies = 'hold'
    expect(await other.revoke(one.session)).toBe(2)
    for (const key of ['a', 'b', 'c']) expect(await queue(place, key)).toEqual([])
    proxy.requests = proxy.replies = 'pass'
    await until(() => grants.every(({ signal }) => signal.aborted))
  })

  test.each(['__lock__', '__WRIT__'])(
    'a holder that has lost only %s has lost its grant, and can not commit',
    async kind => {
      const place = nextPlace()
      await using one = await bridged(place)
      const twinOf = async (key: string): Promise<string> => {
        const { children } = await zk.getChildren(`${place}/locks/${key}`, { linearizable: true })
        return `${place}/locks/${key}/${children.find(name => name.includes(kind))!}`
      }
      const held = await one.mutex('key').acquire({ lease: 900 })
      await zk.delete(await twinOf('key'))
      await until(() => held.signal.aborted)
      await expect(held.release()).rejects.toThrow(LostError)
      await until(async () => (await queue(place, 'key')).length === 0)

      const store = one.store('s')
      await store.put('key', 'before')
      const writing = store.transaction(['key'], async transaction => {
        transaction.put('key', 'late')
        const [report] = await locks(one)
        await zk.delete(await twinOf(encodeURIComponent(report!.key)))
      })
      await expect(writing).rejects.toThrow(LostError)
      expect((await store.get('key'))!.value).toBe('before')
      await until(async () => (await zk.getEphemerals(`${place}/locks`)).length === 0)
    },
  )
})
