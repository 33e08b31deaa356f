import { afterAll, describe, expect, test } from 'vitest'
import type { Box } from '../../src/box.js'
import { LostError } from '../../src/base/errors.js'
import { open } from '../../src/open.js'
import { NoNodeError, ZooKeeper } from 'signalbox-zookeeper'
import { locks, queued } from '../../packages/conformance/src/time.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'

let places = 0

const server = await startZooKeeper()
const zk = await ZooKeeper.connect(server.address)

afterAll(async () => {
  await zk.close()
  await server.kill()
})

const nextPlace = (): string => `/place-${++places}`

function bridged(place: string, port = server.port): Promise<Box> {
  return open(`zookeeper://127.0.0.1:${port}${place}?sessionTimeout=20s&bridge=true`)
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
