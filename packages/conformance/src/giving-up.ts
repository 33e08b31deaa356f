import { getEventListeners } from 'node:events'
import { describe } from './checks.js'
import { assert } from './assert.js'
import { AbortedError, TimedOutError, UnavailableError } from 'signalbox'
import type { Box } from 'signalbox'
import { CLAIM_WINDOW } from 'signalbox/engine'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { Random } from './random.js'
import { locks, nothingHeld, pause, queued, soFar, timed, until } from './time.js'

/** P8: a timeout or an abort settles at once and leaves nothing behind. */
export function givingUp(fixture: EngineFixture): void {
  describe('P8 giving up leaves nothing behind', () => {
    const test = testOn(fixture)

    test('a wait ends at its time limit, not before, and leaves no request', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('key').acquire()
      for (const box of [one, other]) {
        const start = performance.now()
        const asked = box.mutex('key').acquire({ wait: 500 })
        // A stall of this process never shortens a wait, so it counts for the minimum and not for the maximum.
        const ended = asked.catch(() => performance.now() - start)
        const ending = timed(() => assert.rejects(asked, TimedOutError))
        // Otherwise a slow engine could enter the request after the check for its removal. The holder's own box waits
        // locally. A stall may end the wait before the check sees the request.
        if (box === other) await Promise.race([queued(box, 'key', 1).catch(() => undefined), ended])
        assert.below(await ending, 3000)
        assert.atLeast((await ended) as number, 499)
        await withdrawn(box)
      }
      held.assertHeld()
      await held.release()
      assert.deepEqual(await locks(one), [])
    })

    test('an abort ends the wait at once, and the error carries its reason', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('key').acquire()
      for (const box of [one, other]) {
        const controller = new AbortController()
        const { signal } = controller
        const asked = box.mutex('key').acquire({ signal })
        asked.catch(() => undefined)
        await pause(10)
        assert.hasLength(getEventListeners(signal, 'abort'), 1)
        controller.abort(new Error('changed my mind'))
        await assert.rejects(asked, AbortedError)
        await assert.rejects(asked, { cause: { message: 'changed my mind' } })
        assert.hasLength(getEventListeners(signal, 'abort'), 0)
        await withdrawn(box)
      }
      await held.release()
    })

    test('an aborted signal refuses every call before anything is sent', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const signal = AbortSignal.abort(new Error('too late'))
      const before = engine.operations.length
      await assert.rejects(box.mutex('key').acquire({ signal }), AbortedError)
      await assert.rejects(box.mutex('key').acquire({ signal, wait: 0 }), AbortedError)
      await assert.rejects(
        box.mutex('key').run(() => 'inside', { signal }),
        AbortedError,
      )
      await assert.rejects(box.semaphore('key', { max: 1 }).acquire({ signal }), AbortedError)
      await assert.rejects(box.election('key').campaign({ signal }), AbortedError)
      await assert.rejects(
        box.store('store').transaction(['key'], () => 1, { signal }),
        AbortedError,
      )
      assert.equal(engine.operations.length, before)
    })

    test('an abort after the grant does not affect it', async boxes => {
      const box = await boxes.open()
      const controller = new AbortController()
      const { signal } = controller
      const grant = await box.mutex('key').acquire({ signal })
      assert.hasLength(getEventListeners(signal, 'abort'), 0)
      controller.abort()
      grant.assertHeld()
      assert.equal(grant.signal.aborted, false)
      await grant.release()
    })

    test('after a grant the signal has no listener, and the end of the wait has no effect', async boxes => {
      const [one, other] = await boxes.pair()
      const { signal } = new AbortController()
      // A busy engine may not serve the request within a short wait, and then the wait rightly ends.
      for (const wait of [1500, 6000, 24_000]) {
        const held = await one.mutex('key').acquire()
        const end = performance.now() + wait + 100
        const asked = other.mutex('key').acquire({ wait, signal })
        const isGranted = asked.then(
          () => true,
          () => false,
        )
        await Promise.race([queued(other, 'key', 1).catch(() => undefined), isGranted])
        await held.release()
        if (!(await isGranted) && wait < 24_000) continue
        const grant = await asked
        assert.hasLength(getEventListeners(signal, 'abort'), 0)
        await pause(end - performance.now())
        grant.assertHeld()
        return grant.release()
      }
    })

    test('the waiter behind one that gave up is served in its place', async boxes => {
      const [one, other, third] = await boxes.several(3)
      const held = await one!.mutex('key').acquire()
      const controller = new AbortController()
      const leaving = other!.mutex('key').acquire({ signal: controller.signal })
      leaving.catch(() => undefined)
      await queued(other!, 'key', 1)
      const staying = third!.mutex('key').acquire()
      await queued(third!, 'key', 2)
      controller.abort()
      await assert.rejects(leaving, AbortedError)
      await held.release()
      assert.below(await timed(() => staying), 3500)
    })

    test('one of several waiters of a box can give up alone', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('key').acquire()
      const controller = new AbortController()
      const first = other.mutex('key').acquire({ signal: controller.signal })
      const second = other.mutex('key').acquire({ wait: 60 })
      // On a busy machine it may reject before it is awaited.
      second.catch(() => undefined)
      const third = other.mutex('key').acquire()
      await queued(other, 'key', 1)
      controller.abort()
      await assert.rejects(first, AbortedError)
      await assert.rejects(second, TimedOutError)
      assert.equal(await soFar(third), 'pending')
      await queued(other, 'key', 1)
      await held.release()
      await (await third).release()
      await nothingHeld(one)
    })

    test('an abort at the moment of the grant leaves nothing, in either order', async boxes => {
      const [one, other] = await boxes.pair()
      const random = new Random(29)
      for (let round = 0; round < 40; round++) {
        const held = await one.mutex('key', 'more').acquire()
        const controller = new AbortController()
        const asked = other.mutex('more', 'key').acquire({ signal: controller.signal })
        const outcome = asked.then(
          grant => grant.release(),
          (error: unknown) => error,
        )
        if (random.below(4) > 0) await queued(one, 'key', 1)
        const releasing = held.release()
        for (let turns = random.below(6); turns > 0; turns--) await new Promise(setImmediate)
        controller.abort()
        await releasing
        const error = await outcome
        if (error !== undefined) assert.isA(error, AbortedError)
        const next = await one.mutex('key').acquire({ wait: 10_000 })
        await next.release()
      }
      await nothingHeld(one)
    })

    test('many waiters that give up at once leave nothing', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.mutex('a').acquire()
      const asked = Array.from({ length: 40 }, (_, index) =>
        (index % 2 === 0 ? one : other).mutex('a', `b${index}`).acquire({ wait: 30 + (index % 7) }),
      )
      const outcomes = await Promise.allSettled(asked)
      for (const outcome of outcomes) assert.equal(outcome.status, 'rejected')
      await until('only the holder is left', async () => (await locks(one)).length === 1)
      await held.release()
    })

    test('a request that cannot be cancelled vanishes within a lease', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      const held = await other.mutex('key').acquire()
      const controller = new AbortController()
      const asked = box.mutex('key').acquire({ signal: controller.signal, lease: 500 })
      asked.catch(() => undefined)
      await queued(other, 'key', 1)
      engine.intercept = () => Promise.reject(new UnavailableError('the line is cut'))
      controller.abort()
      await assert.rejects(asked, AbortedError)
      await held.release()
      const grant = await other.mutex('key').acquire({ wait: 5000 })
      await grant.release()
    })

    test('a writer that gave up does not delay later readers', async boxes => {
      const [one, other] = await boxes.pair()
      const held = await one.readWriteLock('key').read.acquire()
      const writing = other.readWriteLock('key').write.acquire({ wait: 50 })
      await assert.rejects(writing, TimedOutError)
      assert.below(await timed(() => one.readWriteLock('key').read.acquire()), 3500)
      held.assertHeld()
    })
  })
}

/** Asserts that the request is removed before it expires, a claim window after its wait. */
async function withdrawn(box: Box): Promise<void> {
  assert.below(await timed(() => queued(box, 'key', 0)), CLAIM_WINDOW * 0.8)
}
