import { describe } from './checks.js'
import { assert } from './assert.js'
import { ClosedError, LostError } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { locks, pause, queued, timed, until } from './time.js'

/** Close, at once or after a drain. Part of the checks of a box. */
export function closing(fixture: EngineFixture): void {
  const test = testOn(fixture)

  describe('close', () => {
    test('it rejects waiters and releases grants', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('held').acquire()
      const aborted = new Promise(resolve => {
        held.signal.addEventListener('abort', () => resolve(held.signal.reason))
      })
      const blocking = await other.mutex('waited').acquire()
      const waits = [
        one.mutex('waited').acquire(),
        one.mutex('waited').acquire({ wait: 60_000 }),
        one.mutex('held').acquire(),
        one.mutex('waited').run(() => 'inside'),
      ]
      const outcomes = Promise.all(waits.map(wait => assert.rejects(wait, ClosedError)))
      await queued(other, 'waited', 1)
      await one.close()
      await outcomes
      assert.isA(await aborted, LostError)
      assert.notEqual(await other.mutex('held').tryAcquire(), undefined)
      const [report] = await locks(other, 'waited')
      assert.deepEqual(report!.waiters, [])
      blocking.assertHeld()
    })

    test('closing again does nothing, also at the same time', async boxes => {
      const one = await boxes.open()
      await one.mutex('key').acquire()
      await Promise.all([one.close(), one.close(), one.close({ drain: true })])
      await one.close()
      await one[Symbol.asyncDispose]()
    })

    test('`await using` closes a box', async boxes => {
      const other = await boxes.open()
      {
        await using one = await boxes.open()
        await one.mutex('key').acquire()
      }
      assert.notEqual(await other.mutex('key').tryAcquire(), undefined)
    })

    test('draining waits until the grants in use are released', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('a').acquire()
      const read = await one.readWriteLock('b').read.acquire()
      let closed = false
      const closing = one.close({ drain: true }).then(() => (closed = true))
      await pause(20)
      held.assertHeld()
      await held.release()
      await pause(20)
      assert.equal(closed, false)
      read.assertHeld()
      assert.equal(await other.readWriteLock('b').write.tryAcquire(), undefined)
      await read.release()
      await closing
      await assert.rejects(one.mutex('a').acquire(), ClosedError)
    })

    test('draining refuses new callers and rejects waiters, but lets a running task acquire', async boxes => {
      const [one, other] = await boxes.pair()
      const blocking = await other.mutex('waited').acquire()
      const waiting = assert.rejects(one.mutex('waited').acquire(), ClosedError)
      await queued(other, 'waited', 1)
      let go = (): void => undefined
      const gate = new Promise<void>(resolve => (go = resolve))
      let isIn = false
      const task = one.mutex('outer').run(async () => {
        isIn = true
        await gate
        return one.mutex('inner').run(() => 'through')
      })
      await until('the task is in', () => isIn)
      const closing = one.close({ drain: '1m' })
      await waiting
      await assert.rejects(one.mutex('free').acquire(), ClosedError)
      await assert.rejects(one.mutex('free').tryAcquire(), ClosedError)
      go()
      assert.equal(await task, 'through')
      await closing
      blocking.assertHeld()
    })

    test('a waiter that draining rejected does not delay the waiters behind it', async boxes => {
      const [one, other, third] = await boxes.several(3)
      const held = await one!.mutex('held').acquire()
      const blocking = await other!.mutex('waited').acquire()
      const waiting = assert.rejects(one!.mutex('waited').acquire(), ClosedError)
      await queued(other!, 'waited', 1)
      const behind = third!.mutex('waited').acquire()
      await queued(other!, 'waited', 2)
      const closing = one!.close({ drain: true })
      await waiting
      await queued(other!, 'waited', 1)
      await blocking.release()
      assert.below(await timed(() => behind), 3500)
      await held.release()
      await closing
    })

    test('draining ends at its time limit', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('key').acquire()
      const start = performance.now()
      await one.close({ drain: 60 })
      assert.atLeast(performance.now() - start, 59)
      assert.throws(() => held.assertHeld(), LostError)
      assert.notEqual(await other.mutex('key').tryAcquire(), undefined)
    })

    test('a later close limits one that drains', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('key').acquire()
      const draining = one.close({ drain: true })
      const start = performance.now()
      await one.close({ drain: 60 })
      assert.atLeast(performance.now() - start, 59)
      await draining
      assert.throws(() => held.assertHeld(), LostError)
      assert.notEqual(await other.mutex('key').tryAcquire(), undefined)
    })

    test('draining does not wait for a grant that was lost', async boxes => {
      const one = await boxes.open()
      await one.mutex('key').acquire({ lease: 50, renew: false })
      assert.below(await timed(() => one.close({ drain: true })), 5000)
    })

    test('draining a box without grants closes it', async boxes => {
      const one = await boxes.open()
      await one.mutex('key').run(() => undefined)
      await one.close({ drain: true })
      await assert.rejects(one.mutex('key').acquire(), ClosedError)
    })

    test('close without drain ends a drain', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('key').acquire()
      const draining = one.close({ drain: true })
      await pause(20)
      held.assertHeld()
      await one.close()
      await draining
      assert.throws(() => held.assertHeld(), LostError)
      assert.notEqual(await other.mutex('key').tryAcquire(), undefined)
    })

    test('close can be called again after it refused its options', async boxes => {
      const [one, other] = await boxes.pair()
      await one.mutex('key').acquire()
      await assert.rejects(one.close({ drain: 'soon' as never }), {
        code: 'INVALID_ARGUMENT',
      })
      await one.close()
      assert.notEqual(await other.mutex('key').tryAcquire(), undefined)
    })

    test('closing a box does not affect another box', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await other.mutex('key').acquire()
      const asked = other.mutex('second').acquire()
      await one.close()
      held.assertHeld()
      await (await asked).release()
      await held.release()
    })
  })
}
