import { describe, expect, test } from 'vitest'
import { Box } from '../../src/box.js'
import { systemClock } from '../../src/base/clock.js'
import { MemoryEngine, MemorySpace } from '../../src/engines/memory/memory-engine.js'
import { memoryInUse } from '../support/heap.js'

/** Returns the megabytes in use after a garbage collection. */
async function inUse(): Promise<number> {
  return (await memoryInUse()).heapUsed / 2 ** 20
}

async function start() {
  const space = new MemorySpace(systemClock)
  const box = await Box.join(new MemoryEngine('memory:', space, systemClock), systemClock)
  return { space, box }
}

/** Returns the growth of the memory in use by a task, in megabytes. */
async function growth(task: () => Promise<void>): Promise<number> {
  const before = await inUse()
  await task()
  return (await inUse()) - before
}

describe('nothing grows per key ever used', () => {
  test('permits, readers, sets of keys, waits and losses leave nothing behind', async () => {
    const { space, box } = await start()
    const grown = await growth(async () => {
      for (let index = 0; index < 8000; index++) {
        await box.semaphore(`permits ${index}`, { max: 3 }).run(() => undefined)
        await box.readWriteLock(`shared ${index}`).read.run(() => undefined)
        const held = await box.mutex(`a ${index}`, `b ${index}`).acquire()
        const waiting = box.mutex(`a ${index}`).acquire({ wait: 60_000 })
        await held.release()
        await (await waiting).release()
        const controller = new AbortController()
        const again = await box.mutex(`c ${index}`).acquire()
        const aborted = box.mutex(`c ${index}`).acquire({ signal: controller.signal })
        controller.abort()
        await aborted.catch(() => undefined)
        await box.forceRelease(`c ${index}`, again.token)
      }
    })
    expect(grown).toBeLessThan(8)
    for await (const report of box.inspect()) throw new Error(`${report.key} is left`)
    expect(space.state.keys('')).toEqual([])
  }, 60_000)

  test('transactions, deleted values and watches leave nothing behind', async () => {
    const { box } = await start()
    const grown = await growth(async () => {
      const store = box.store('s')
      const grouped = box.store('s', { group: { maxSize: 16, maxTime: 5 } })
      for (let index = 0; index < 2500; index++) {
        const key = `key ${index}`
        await store.put(key, { some: 'value' })
        const watch = store.watch(key)
        await watch.next()
        await watch.return()
        const outcomes = [store, grouped].map(each =>
          each.transaction([key, 'sum'], transaction => transaction.delete(key)),
        )
        await Promise.all(outcomes)
      }
    })
    expect(grown).toBeLessThan(8)
  }, 60_000)

  test('boxes that were closed leave nothing behind', async () => {
    const space = new MemorySpace(systemClock)
    const grown = await growth(async () => {
      for (let index = 0; index < 1500; index++) {
        const box = await Box.join(new MemoryEngine('memory:', space, systemClock), systemClock)
        await box.mutex(`held ${index}`).acquire()
        const watch = box.store('s').watch(`watched ${index}`)
        await watch.next()
        await box.close()
      }
    })
    expect(grown).toBeLessThan(8)
    expect(space.listeners.size).toBe(0)
    expect(space.state.keys('')).toEqual([])
  }, 60_000)
})
