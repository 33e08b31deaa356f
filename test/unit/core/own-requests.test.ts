import { describe, expect, test as onMemory } from 'vitest'
import { locks, queued, until } from '../../../packages/conformance/src/time.js'
import { InvalidArgumentError, LostError, open } from '../../../src/index.js'
import { test } from '../../support/memory-boxes.js'

describe.concurrent('requests of their own', () => {
  test('are all listed, and a try counts them', async ({ boxes }) => {
    const box = await boxes.open()
    const lock = box.mutex('a')
    const all = Array.from({ length: 4 }, () => lock.acquire({ ownRequest: true }))
    const first = await all[0]!
    await queued(box, 'a', 3)
    expect(await lock.tryAcquire({ ownRequest: true })).toBe(undefined)
    await first.release()
    for (const waiting of all.slice(1)) await (await waiting).release()
    expect(await locks(box)).toStrictEqual([])
    await (await lock.tryAcquire({ ownRequest: true }))!.release()
  })

  onMemory('leave nothing in the engine when they are released', async () => {
    await using box = await open('memory:')
    await (await box.mutex('a').acquire({ ownRequest: true })).release()
    expect(await locks(box)).toStrictEqual([])
  })
})

describe.concurrent('steal', () => {
  onMemory('takes the lock from a holder of the same box and passes its waiters', async () => {
    await using box = await open('memory:')
    const lock = box.mutex('a')
    const first = await lock.acquire()
    const waiting = lock.acquire()
    const grant = await lock.acquire({ steal: true })
    expect(grant.token).toBeGreaterThan(first.token)
    expect(first.signal.reason).toBeInstanceOf(LostError)
    await expect(first.release()).rejects.toThrow(LostError)
    grant.assertHeld()
    await grant.release()
    await (await waiting).release()
  })

  onMemory('does not wait for a task of its own', async () => {
    await using box = await open('memory:')
    await expect(
      box.mutex('a').run(() => box.mutex('a').run(() => 'stolen', { steal: true })),
    ).rejects.toMatchObject({ code: 'LOST', taskEnded: true, result: 'stolen' })
  })

  onMemory('needs exclusive claims', async () => {
    await using box = await open('memory:')
    await expect(box.readWriteLock('a').read.acquire({ steal: true })).rejects.toThrow(InvalidArgumentError)
    await expect(box.semaphore('a', { max: 2 }).tryAcquire({ steal: true })).rejects.toThrow(/exclusive/)
  })

  test('is noticed at once when it comes before the reply of the grant', async ({ boxes }) => {
    const other = await boxes.open()
    const [box, engine] = await boxes.withFaults()
    const lock = box.mutex('a')
    engine.intercept = async ({ type }, execute) => {
      const outcome = await execute()
      if (type !== 'enqueue') return outcome
      const lost = new Promise<void>(resolve => {
        engine.delivers = hint => {
          if (hint.type === 'lost') resolve()
          return true
        }
      })
      await (await other.mutex('a').acquire({ steal: true })).release()
      await lost
      return outcome
    }
    for (const ask of [() => lock.acquire(), () => lock.tryAcquire()]) {
      const grant = (await ask())!
      await until('it is lost', () => grant.signal.aborted, 3000)
    }
  })
})
