import { afterAll, describe, expect, test } from 'vitest'
import type { Box } from '../../src/box.js'
import { TimedOutError } from '../../src/base/errors.js'
import { open } from '../../src/open.js'
import { oneEvent, ZooKeeper, type WatchListener } from 'signalbox-zookeeper'
import { locks, queued } from '../../packages/conformance/src/time.js'
import { memoryInUse } from '../support/heap.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'

const server = await startZooKeeper()

afterAll(() => server.kill())

/** Checks an error without Vitest's assertions, which retain their arguments. */
function timedOut(error: unknown): void {
  if (!(error instanceof TimedOutError)) throw error
}

/** Returns the number of watches that the server keeps for all its connections. */
async function watches(): Promise<number> {
  return Number(/^zk_watch_count\t(\d+)$/m.exec(await server.say('mntr'))![1])
}

function box(place: string): Promise<Box> {
  return open(`zookeeper://${server.address}${place}?sessionTimeout=60s`)
}

// Run one after the other, because the server counts the watches of all clients.
describe('watches that no listener needs any more', () => {
  test('are removed on the client and the server, whether the read was answered or not', async () => {
    await using zk = await ZooKeeper.connect(server.address)
    await zk.create('/place')
    await using below = await ZooKeeper.connect(`${server.address}/place`)
    await below.create('/a')
    const events: string[] = []
    const watch: WatchListener = ({ type, path }) => void events.push(`${type} ${path}`)

    await below.getData('/a', { watch })
    await below.getChildren('/a', { watch })
    await below.exists('/none', { watch })
    expect([below.watched, await watches()]).toEqual([3, 3])
    below.unwatch('/a', watch)
    below.unwatch('/none', watch)
    expect(below.watched).toBe(0)
    await until(async () => (await watches()) === 0)

    const reading = below.getData('/a', { watch, linearizable: true })
    below.unwatch('/a', watch)
    await reading
    await until(async () => (await watches()) === 0)
    expect(below.watched).toBe(0)

    await below.create('/none')
    await below.setData('/a', 'changed')
    await below.create('/a/child')
    expect(events).toEqual([])
    // A missing watch, a deleted one, and one with an invalid path.
    below.unwatch('/a', watch)
    expect(() => below.unwatch('a', watch)).toThrow(/path must be/)
  })

  test('are removed without those of other listeners at the same path', async () => {
    await using zk = await ZooKeeper.connect(server.address)
    await zk.create('/shared')
    const events: string[] = []
    const watch: WatchListener = ({ type }) => void events.push(type)
    const other = oneEvent()
    await zk.getData('/shared', { watch })
    await zk.getData('/shared', { watch: other.listener })
    zk.unwatch('/shared', watch)
    await zk.setData('/shared', '1')
    expect(await other.event).toEqual({ type: 'changed', path: '/shared' })

    const late = oneEvent()
    await zk.getData('/shared', { watch })
    const reading = zk.getData('/shared', { watch: late.listener })
    zk.unwatch('/shared', watch)
    await reading
    await zk.setData('/shared', '2')
    await late.event
    expect(events).toEqual([])
    await until(async () => (await watches()) === 0)
  })
})

describe('a wait that ends behind a long holder', () => {
  test('removes its watches, and memory does not grow', async () => {
    const keys = Array.from({ length: 50 }, (_, index) => `key ${index}`)
    await using one = await box('/given-up')
    await using other = await box('/given-up')
    const held = await Promise.all(keys.map(key => one.mutex(key).acquire({ lease: '1h' })))
    const before = await watches()
    const giveUp = async (rounds: number): Promise<void> => {
      for (let round = 0; round < rounds; round++)
        await Promise.all(keys.map(key => other.mutex(key).acquire({ wait: 1 }).catch(timedOut)))
      await until(async () => (await locks(other)).every(({ waiters }) => waiters.length === 0))
    }
    await giveUp(10)
    await until(async () => (await watches()) === before)
    const { heapUsed } = await memoryInUse()
    await giveUp(50)
    await until(async () => (await watches()) === before)
    // A leaked listener would retain its request: some kilobytes for each of 2500 requests.
    expect((await memoryInUse()).heapUsed - heapUsed).toBeLessThan(1_500_000)
    for (const grant of held) grant.assertHeld()
    await Promise.all(held.map(grant => grant.release()))
  })

  test('for permits keeps no watch on the other holders after its grant', async () => {
    await using one = await box('/permits')
    await using other = await box('/permits')
    const semaphore = one.semaphore('key', { max: 3 })
    const held = await Promise.all([semaphore.acquire(), semaphore.acquire(), semaphore.acquire()])
    const before = await watches()
    const waiting = other.semaphore('key', { max: 3 }).acquire()
    await queued(one, 'key', 1)
    await until(async () => (await watches()) === before + 3)
    await held[0].release()
    const grant = await waiting
    await until(async () => (await watches()) === before)
    await grant.release()
    for (const each of held.slice(1)) await each.release()
  })
})
