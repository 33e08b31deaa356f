import { describe } from './checks.js'
import { assert } from './assert.js'
import { type Box, type Grant, LostError } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { block, LAPSING, nothingHeld, pause, queued, timed, until } from './time.js'

/**
 * A lease that must be renewed in time, in milliseconds. Half of it is longer than a stall of the process.
 */
const RENEWED = 4500
/** Delay of a packet to a far box, in milliseconds. */
const FAR = 150

/** P3: a grant's deadline is counted from before the request that set the lease was sent. */
export function deadline(fixture: EngineFixture): void {
  describe('P3 conservative deadlines', () => {
    const test = testOn(fixture)

    test('a grant that is not renewed is held for its lease and no longer', async boxes => {
      const box = await boxes.open()
      const start = performance.now()
      const grant = await box.mutex('key').acquire({ lease: LAPSING, renew: false })
      const granted = performance.now()
      // A grant that arrives after its lease is asked for again, so the lease may have begun later.
      const left = (): number => LAPSING - (performance.now() - start)
      assert.atLeast(grant.expiresIn(), left())
      assert.atMost(grant.expiresIn(), LAPSING)
      const counted = isHeld(grant)
      if (left() > 0) assert.equal(counted, true)
      await until('the grant is lost', () => grant.expiresIn() === 0)
      assert.below(performance.now() - granted, 5000)
      assert.throws(() => grant.assertHeld(), LostError)
    })

    test('the signal of a lost grant aborts with a LostError', async boxes => {
      const box = await boxes.open()
      const start = performance.now()
      const grant = await box.mutex('key').acquire({ lease: LAPSING, renew: false })
      const { signal } = grant
      const heard = new Promise(resolve => {
        if (signal.aborted) resolve(signal.reason)
        signal.addEventListener('abort', () => resolve(signal.reason))
      })
      const { aborted } = signal
      if (performance.now() - start < LAPSING) assert.equal(aborted, false)
      assert.isA(await heard, LostError)
      assert.throws(() => grant.assertHeld(), LostError)
    })

    test('a signal that is first read after the loss is aborted', async boxes => {
      const box = await boxes.open()
      const grant = await box.mutex('key').acquire({ lease: LAPSING, renew: false })
      await until('the grant is lost', () => grant.expiresIn() === 0)
      assert.equal(grant.signal.aborted, true)
      assert.isA(grant.signal.reason, LostError)
    })

    test.alone(
      'a grant is lost for a thread that stood still past the deadline, before any timer runs',
      async boxes => {
        const box = await boxes.open()
        const grant = await box.mutex('key').acquire({ lease: 500 })
        const { signal } = grant
        block(600)
        assert.equal(grant.expiresIn(), 0)
        assert.throws(() => grant.assertHeld(), LostError)
        assert.equal(signal.aborted, true)
      },
    )

    test.alone(
      'a release past the deadline rejects with a LostError, although no other caller came',
      async boxes => {
        const box = await boxes.open()
        for (const key of ['mutex', 'again']) {
          const grant = await box.mutex(key).acquire({ lease: 300, renew: false })
          block(350)
          await assert.rejects(grant.release(), LostError)
        }
        await assert.rejects(
          box.mutex('run').run(() => block(350), { lease: 300, renew: false }),
          LostError,
        )
      },
    )

    test('a grant is renewed until its release', async boxes => {
      const [one, other] = await boxes.pair()
      const grant = await one.mutex('key').acquire({ lease: RENEWED })
      const end = performance.now() + RENEWED + 1000
      while (performance.now() < end) {
        await pause(50)
        grant.assertHeld()
        assert.atMost(grant.expiresIn(), RENEWED)
        assert.equal(await other.mutex('key').tryAcquire(), undefined)
      }
      assert.equal(grant.signal.aborted, false)
      await grant.release()
    })

    test('a grant is renewed about three times a lease', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const grant = await box.mutex('key').acquire({ lease: RENEWED })
      await pause(RENEWED + 1000)
      grant.assertHeld()
      assert.atLeast(engine.count('renew'), 2)
      assert.atMost(engine.count('renew'), 6)
    })

    test('the deadline counts from before the request was sent', async boxes => {
      const [box, engine] = await boxes.withFaults()
      engine.intercept = async (_, execute) => {
        await pause(100)
        const outcome = await execute()
        await pause(100)
        return outcome
      }
      const grant = await box.mutex('key').acquire({ lease: 5000, renew: false })
      assert.atMost(grant.expiresIn(), 4805)
      grant.assertHeld()
    })

    test('the deadline of a waiter counts from before its check-in was sent', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      const held = await other.mutex('key').acquire()
      let isQueued = false
      engine.intercept = async (operation, execute) => {
        const outcome = await execute()
        if (operation.type === 'enqueue') isQueued = true
        if (operation.type === 'checkIn') await pause(200)
        return outcome
      }
      const asked = box.mutex('key').acquire({ lease: 5000, renew: false })
      await until('it learns that it waits', () => isQueued)
      await held.release()
      const grant = await asked
      assert.atMost(grant.expiresIn(), 4805)
      grant.assertHeld()
    })

    test.runIf(fixture.network !== 'none')(
      'the deadline of a far waiter has passed before the next caller gets the lock',
      async boxes => {
        const [holder, near] = await boxes.pair()
        const [far, network] = await boxes.overNetwork()
        const held = await holder.mutex('key').acquire()
        const asked = far.mutex('key').acquire({ lease: LAPSING, renew: false })
        await queued(holder, 'key', 1)
        network.slowDown({ way: FAR })
        await held.release()
        const grant = await asked
        await assertExcluded(grant, near)
      },
    )

    test.runIf(fixture.network !== 'none')(
      'the deadline of a box that is cut off has passed before the next caller gets the lock',
      async boxes => {
        const near = await boxes.open()
        const [far, network] = await boxes.overNetwork()
        const grant = await far.mutex('key').acquire({ lease: LAPSING })
        network.cut()
        await assertExcluded(grant, near)
        network.restore()
      },
    )

    test('a grant that arrives after its own deadline is released', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      engine.intercept = async (operation, execute) => {
        const outcome = await execute()
        if (operation.type === 'enqueue') await pause(150)
        return outcome
      }
      assert.equal(await box.mutex('tried').tryAcquire({ lease: 50 }), undefined)
      const asked = box.mutex('key').acquire({ lease: 50, wait: 400 })
      await assert.rejects(asked)
      await nothingHeld(other)
    })

    test('after a late answer the caller keeps waiting and gets a timely one', async boxes => {
      const [box, engine] = await boxes.withFaults()
      let late = true
      engine.intercept = async (_, execute) => {
        const outcome = await execute()
        if (late) await pause(2400)
        late = false
        return outcome
      }
      const grant = await box.mutex('key').acquire({ lease: 2300 })
      grant.assertHeld()
      await grant.release()
    })

    test('a renewal without an answer keeps the old deadline', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      const grant = await box.mutex('key').acquire({ lease: LAPSING })
      engine.intercept = (operation, execute) =>
        operation.type === 'renew' ? new Promise(() => undefined) : execute()
      const took = await timed(() => until('the grant is lost', () => grant.expiresIn() === 0))
      assert.below(took, 3000)
      assert.throws(() => grant.assertHeld(), LostError)
      const next = await other.mutex('key').acquire()
      await assert.rejects(grant.release(), LostError)
      next.assertHeld()
    })

    test('a failed renewal does not lose the grant if the next one succeeds', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const grant = await box.mutex('key').acquire({ lease: RENEWED })
      let failures = 1
      engine.intercept = async (operation, execute) => {
        if (operation.type === 'renew' && failures-- > 0) throw new Error('the line is cut')
        return execute()
      }
      await pause(RENEWED + 1000)
      assert.below(failures, 0)
      grant.assertHeld()
      await grant.release()
    })
  })
}

/** Asserts that another box does not get the lock `key` before the deadline of the grant has passed. */
async function assertExcluded(grant: Grant, near: Box): Promise<void> {
  // Some clients find another way to their servers. Then the box is not cut off, and renews its grant.
  const end = performance.now() + 3 * LAPSING
  while (grant.expiresIn() > 0 && performance.now() < end) {
    const next = await near.mutex('key').tryAcquire()
    if (next) assert.equal(grant.expiresIn(), 0)
    await pause(2)
  }
}

/** Whether `assertHeld` succeeds. */
function isHeld(grant: Grant): boolean {
  try {
    grant.assertHeld()
    return true
  } catch {
    return false
  }
}
