import { beforeEach, describe, expect, test } from 'vitest'
import { Box } from '../../../src/box.js'
import { systemClock } from '../../../src/base/clock.js'
import { MemoryEngine, MemorySpace } from '../../../src/engines/memory/memory-engine.js'
import { DeadlockError, LostError, TimedOutError } from '../../../src/base/errors.js'

let space: MemorySpace
let box: Box

const join = (where = space): Promise<Box> =>
  Box.join(new MemoryEngine('memory:', where, systemClock), systemClock)

beforeEach(async () => {
  space = new MemorySpace(systemClock)
  box = await join()
})

const pause = (duration: number): Promise<void> => new Promise(resolve => setTimeout(resolve, duration))

describe('the locks of a task', () => {
  test('they are known through timers, promises and events that the task started', async () => {
    await box.mutex('a').run(async () => {
      const told = expect(
        new Promise((_, reject) => {
          setTimeout(() => void box.mutex('a').acquire().catch(reject), 1)
        }),
      ).rejects.toThrow(DeadlockError)
      await Promise.all([
        expect(box.mutex('a').acquire()).rejects.toThrow(DeadlockError),
        expect(Promise.resolve().then(() => box.mutex('a').acquire())).rejects.toThrow(DeadlockError),
        told,
      ])
    })
  })

  test('a task that gave its grant back early may ask again', async () => {
    await box.mutex('a').run(async grant => {
      await grant.release()
      const again = await box.mutex('a').acquire({ wait: 1000 })
      expect(again.token).toBeGreaterThan(grant.token)
      await again.release()
      const nested = await box.mutex('a').acquire({ reentrant: true })
      expect(nested.token).not.toBe(grant.token)
      nested.assertHeld()
      await nested.release()
    })
  })

  test('a task that lost its grant may ask again', async () => {
    const run = box.mutex('a').run(
      async grant => {
        await pause(40)
        expect(() => grant.assertHeld()).toThrow(LostError)
        const again = await box.mutex('a').acquire({ wait: 1000, reentrant: true })
        again.assertHeld()
        await again.release()
      },
      { lease: 20, renew: false },
    )
    await expect(run).rejects.toThrow(LostError)
  })

  test('a grant from `acquire` belongs to no task', async () => {
    const held = await box.mutex('a').acquire()
    await box.mutex('b').run(async () => {
      await expect(box.mutex('a').acquire({ wait: 20 })).rejects.toThrow(TimedOutError)
    })
    await held.release()
  })

  test('the same key in another engine is another lock', async () => {
    const other = await join(new MemorySpace(systemClock))
    const outcome = await box
      .mutex('a')
      .run(() => other.mutex('a').run(() => box.mutex('b').run(() => 'inside')))
    expect(outcome).toBe('inside')
  })
})

describe('tasks that wait for each other', () => {
  test('a cycle through a third task that only waits is found', async () => {
    // The third task waits for both keys, before the second task in the queue. The pauses run one after another, even
    // if the process stalls.
    const thirdAsks = pause(5)
    const secondAsks = thirdAsks.then(() => pause(15))
    const firstAsks = secondAsks.then(() => pause(10))
    const first = box.mutex('a').run(async () => {
      await firstAsks
      return box.mutex('b').run(() => 'through')
    })
    const second = box.mutex('c').run(async () => {
      await secondAsks
      return box.mutex('b').run(async () => {
        await pause(30)
        return 'through'
      })
    })
    const third = thirdAsks.then(() => box.mutex('a', 'b').run(() => 'through'))
    // The second task waits for b behind the third. The third waits for a, which the first holds. The first then
    // requests b, too.
    const outcomes = await Promise.allSettled([first, second, third])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
    expect(outcomes[0]).toMatchObject({ reason: { code: 'DEADLOCK' } })
  })

  test('a waiter that gave up is not part of a cycle', async () => {
    const first = box.mutex('a').run(async () => {
      await expect(box.mutex('b').acquire({ wait: 10 })).rejects.toThrow(TimedOutError)
      await pause(30)
      return 'through'
    })
    const second = box.mutex('b').run(async () => {
      await pause(25)
      return box.mutex('a').run(() => 'through')
    })
    expect(await Promise.all([first, second])).toEqual(['through', 'through'])
  })
})
