import { describe, expect } from 'vitest'
import { locks, pause, queued, soFar, until } from '../../../packages/conformance/src/time.js'
import { DeadlockError, InvalidArgumentError, LostError, TimedOutError } from '../../../src/index.js'
import { test } from '../../support/memory-boxes.js'

describe.concurrent('deadlocks of nested locks', () => {
  test('a task that asks for a key it holds gets a DeadlockError at once', async ({ boxes }) => {
    const box = await boxes.open()
    await box.mutex('a', 'b').run(async () => {
      await expect(box.mutex('a').acquire()).rejects.toThrow(DeadlockError)
      await expect(box.mutex('b', 'c').run(() => undefined)).rejects.toThrow(DeadlockError)
      await expect(box.readWriteLock('a').read.acquire()).rejects.toThrow(DeadlockError)
      await expect(box.mutex('a').acquire({ wait: 5000 })).rejects.toThrow(DeadlockError)
      // A try never waits, so it cannot deadlock.
      expect(await box.mutex('a').tryAcquire()).toBe(undefined)
    })
    expect(await locks(box)).toStrictEqual([])
  })

  test('a lock that a task has released does not count', async ({ boxes }) => {
    const box = await boxes.open()
    await box.mutex('a').run(() => pause(1))
    await box.mutex('a').run(() => pause(1))
    let after: Promise<unknown> | undefined
    await box.mutex('a').run(() => {
      after = pause(20).then(() => box.mutex('a').run(() => 'free'))
    })
    expect(await after).toBe('free')
  })

  test.for([2, 4])('in a cycle of %i tasks, one gets a DeadlockError', async (count, { boxes }) => {
    const box = await boxes.open()
    const keys = ['a', 'b', 'c', 'd'].slice(0, count)
    const outcomes = await Promise.allSettled(
      keys.map((key, index) =>
        box.mutex(key).run(async () => {
          await pause(20)
          return box.mutex(keys[(index + 1) % count]!).run(() => 'through')
        }),
      ),
    )
    const failed = outcomes.filter(outcome => outcome.status === 'rejected')
    expect(failed).toHaveLength(1)
    expect(failed[0]!.reason).toBeInstanceOf(DeadlockError)
    expect(await locks(box)).toStrictEqual([])
  })

  test('a cycle through a waiter in the queue is found', async ({ boxes }) => {
    const box = await boxes.open()
    const { read, write } = box.readWriteLock('key')
    const reading = read.run(async () => {
      await queued(box, 'key', 1)
      // The writer waits for this task, and this read would wait behind the writer.
      await expect(read.acquire()).rejects.toThrow(DeadlockError)
    })
    const writing = write.run(() => 'written')
    await reading
    expect(await writing).toBe('written')
  })

  test('a reentrant task gets its lock again under the same token, until the outermost release', async ({
    boxes,
  }) => {
    const [box, other] = await boxes.pair()
    await box.mutex('a', 'b').run(async outer => {
      await box.mutex('a').run(
        async inner => {
          expect(inner.token).toBe(outer.token)
          inner.assertHeld()
          expect(inner.expiresIn()).toBeGreaterThan(0)
          expect(inner.signal).toBe(outer.signal)
          await inner.release()
          inner.assertHeld()
        },
        { reentrant: true },
      )
      await (await box.mutex('b', 'a').acquire({ reentrant: true })).release()
      const again = await box.readWriteLock('b').write.acquire({ reentrant: true })
      await expect(again.downgrade()).rejects.toThrow(InvalidArgumentError)
      await again.release()
      const read = await box.readWriteLock('a').read.tryAcquire({ reentrant: true })
      await read!.release()
      outer.assertHeld()
      expect(await other.mutex('a').tryAcquire()).toBe(undefined)
      // For a key that the task does not hold, it gets a separate grant.
      await box.mutex('c').run(grant => expect(grant.token).not.toBe(outer.token), { reentrant: true })
    })
    expect(await other.mutex('a').tryAcquire()).toBeDefined()
  })

  test('a downgraded grant does not allow a reentrant write', async ({ boxes }) => {
    const [box, other] = await boxes.pair()
    const { read, write } = box.readWriteLock('key')
    await write.run(async outer => {
      await outer.downgrade()
      const there = await other.readWriteLock('key').read.acquire()
      await expect(write.acquire({ reentrant: true, wait: 5000 })).rejects.toThrow(DeadlockError)
      await read.run(inner => inner.assertHeld(), { reentrant: true })
      await there.release()
    })
  })

  test('a reentrant grant is lost with the outer one', async ({ boxes }) => {
    const box = await boxes.open()
    const run = box.mutex('key').run(
      async () => {
        const inner = await box.mutex('key').acquire({ reentrant: true })
        await until('it is lost', () => inner.expiresIn() === 0)
        expect(() => inner.assertHeld()).toThrow(LostError)
      },
      // Long enough to acquire the inner grant.
      { lease: 2200, renew: false },
    )
    await expect(run).rejects.toThrow(LostError)
  })

  test('without deadlock detection, a task that waits for itself times out', async ({ boxes }) => {
    const box = await boxes.open({ detectDeadlocks: false })
    await box.mutex('key').run(async () => {
      const begun = performance.now()
      const asked = box.mutex('key').acquire({ wait: 500 })
      const state = await soFar(asked)
      if (performance.now() - begun < 500) expect(state).toBe('pending')
      await expect(asked).rejects.toThrow(TimedOutError)
    })
  })
})
