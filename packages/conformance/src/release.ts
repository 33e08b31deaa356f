import { describe } from './checks.js'
import { assert } from './assert.js'
import { IndeterminateError, LostError, type LostEvent } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { LAPSING, locks, pause, queued, NOTIFIED_BY_RENEWAL, until } from './time.js'

/** P7: releasing, renewing or retrying a release never touches another grant. */
export function release(fixture: EngineFixture): void {
  describe('P7 a release affects only its own grant', () => {
    const test = testOn(fixture)

    test('releasing a lost grant rejects with a LostError and does not affect the next holder', async boxes => {
      const [one, other, third] = await boxes.several(3)
      const lost = await one!.mutex('key').acquire({ lease: LAPSING, renew: false })
      const next = await other!.mutex('key').acquire()
      await assert.rejects(lost.release(), LostError)
      next.assertHeld()
      assert.equal(await third!.mutex('key').tryAcquire(), undefined)
      assert.equal(await one!.mutex('key').tryAcquire(), undefined)
      await next.release()
    })

    test('a release that finds the grant gone rejects with a LostError, and is published as a loss', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      const lost = boxes.events<LostEvent>('lock:lost', box)
      const released = boxes.events('lock:released', box)
      // No hint reports to the box that its grant was taken away.
      engine.delivers = () => false
      const grant = await box.mutex('key').acquire()
      await other.forceRelease('key', grant.token)
      await assert.rejects(grant.release(), LostError)
      assert.has(lost, [{ keys: ['key'], token: grant.token }])
      assert.deepEqual(released, [])
    })

    test('a second release does nothing, also when another box holds the lock by then', async boxes => {
      const [one, other] = await boxes.pair()
      const first = await one.mutex('key').acquire()
      await first.release()
      await first.release()
      const next = await other.mutex('key').acquire()
      await first.release()
      await first[Symbol.asyncDispose]()
      next.assertHeld()
      assert.equal(await one.mutex('key').tryAcquire(), undefined)
    })

    test('a second release does not affect the next caller of the same box', async boxes => {
      const [one, other] = await boxes.pair()
      const first = await one.mutex('key').acquire()
      const waiting = one.mutex('key').acquire()
      await first.release()
      const next = await waiting
      await first.release()
      next.assertHeld()
      assert.equal(await other.mutex('key').tryAcquire(), undefined)
      assert.throws(() => first.assertHeld(), LostError)
      assert.equal(first.expiresIn(), 0)
      await next.release()
    })

    test('a released grant is not held, and its signal does not abort', async boxes => {
      const box = await boxes.open()
      const grant = await box.mutex('key').acquire()
      const { signal } = grant
      await grant.release()
      assert.throws(() => grant.assertHeld(), LostError)
      assert.equal(grant.expiresIn(), 0)
      assert.equal(signal.aborted, false)
      await assert.rejects(box.readWriteLock('key').write.acquire().then(grantAndDowngrade), LostError)
    })

    test('a late renewal does not restore a lost grant', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      const grant = await box.mutex('key').acquire({ lease: 3300 })
      let sent: (() => Promise<unknown>) | undefined
      engine.intercept = (operation, execute) => {
        if (operation.type !== 'renew') return execute()
        sent ??= execute
        return new Promise(() => undefined)
      }
      await until('a renewal is under way', () => sent !== undefined)
      const next = await other.mutex('key').acquire()
      assert.equal(await sent!(), false)
      assert.throws(() => grant.assertHeld(), LostError)
      next.assertHeld()
      await pause(50)
      assert.hasLength((await locks(other))[0]!.holders, 1)
    })

    test('a release without an answer is repeated and does not affect the next holder', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      const grant = await box.mutex('key').acquire()
      const asked = other.mutex('key').acquire()
      await queued(other, 'key', 1)
      engine.intercept = async (operation, execute) => {
        const outcome = await execute()
        if (operation.type === 'release' && engine.count('release') === 1) {
          throw new IndeterminateError('the answer was lost')
        }
        return outcome
      }
      await assert.rejects(grant.release(), IndeterminateError)
      const next = await asked
      await until('it was tried again', () => engine.count('release') === 2)
      await pause(20)
      next.assertHeld()
      assert.equal(await box.mutex('key').tryAcquire(), undefined)
      await next.release()
    })

    test('a release that did not reach the engine is repeated', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.withFaults()
      const grant = await box.mutex('key').acquire()
      engine.intercept = async (operation, execute) => {
        if (operation.type === 'release' && engine.count('release') === 1) {
          throw new IndeterminateError('it may have been applied')
        }
        return execute()
      }
      await assert.rejects(grant.release(), IndeterminateError)
      await (await other.mutex('key').acquire({ wait: 10_000 })).release()
    })

    test('an operator can take a grant away by its token', async boxes => {
      const [one, other] = await boxes.pair()
      const grant = await one.mutex('key').acquire({ lease: NOTIFIED_BY_RENEWAL })
      const lost = new Promise(resolve => grant.signal.addEventListener('abort', resolve))
      const waiting = other.mutex('key').acquire()
      await queued(other, 'key', 1)
      assert.equal(await other.forceRelease('key', grant.token), true)
      const next = await waiting
      await lost
      assert.throws(() => grant.assertHeld(), LostError)
      await assert.rejects(grant.release(), LostError)
      next.assertHeld()
      await next.release()
    })

    test('an operator can take a grant away by the token that inspect shows', async boxes => {
      const [one, other] = await boxes.pair()
      const grant = await one.mutex('a', 'b').acquire({ lease: NOTIFIED_BY_RENEWAL })
      const { token } = (await locks(other, 'b'))[0]!.holders[0]!
      assert.equal(await other.forceRelease('b', token!), true)
      assert.deepEqual(await locks(other), [])
      await until('the holder knows', () => grant.signal.aborted)
    })

    test("a waiter in the holder's box gets the lock that an operator took away", async boxes => {
      const [one, other] = await boxes.pair()
      const stuck = await one.mutex('key').acquire({ lease: NOTIFIED_BY_RENEWAL })
      const waiting = one.mutex('key').acquire()
      assert.equal(await other.forceRelease('key', stuck.token), true)
      const next = await waiting
      assert.throws(() => stuck.assertHeld(), LostError)
      next.assertHeld()
      assert.above(next.token, stuck.token)
      await next.release()
    })

    test('a token that does not hold takes nothing away', async boxes => {
      const [one, other] = await boxes.pair()
      const gone = await one.mutex('key').acquire()
      await gone.release()
      assert.equal(await other.forceRelease('key', gone.token), false)
      const grant = await one.mutex('key').acquire({ label: 'another' })
      const second = await one.mutex('second').acquire()
      assert.equal(await other.forceRelease('key', gone.token), false)
      assert.equal(await other.forceRelease('key', second.token), false)
      assert.equal(await other.forceRelease('key', 0n), false)
      assert.equal(await other.forceRelease('absent', grant.token), false)
      grant.assertHeld()
      assert.equal(await other.mutex('key').tryAcquire(), undefined)
    })

    test('the token of an earlier holder takes nothing from the next holder in the same box', async boxes => {
      const box = await boxes.open()
      const first = await box.mutex('key').acquire({ lease: NOTIFIED_BY_RENEWAL })
      const waiting = box.mutex('key').acquire({ lease: NOTIFIED_BY_RENEWAL })
      await first.release()
      const second = await waiting
      assert.equal(await box.forceRelease('key', first.token), false)
      assert.equal(await box.forceRelease('key', second.token + 7n), false)
      second.assertHeld()
      const { token } = (await locks(box))[0]!.holders[0]!
      assert.equal(token, second.token)
      assert.equal(await box.forceRelease('key', token!), true)
      await until('the holder knows', () => second.signal.aborted)
    })

    test('taking away a grant that is just released does not affect the next holder', async boxes => {
      const [box, engine] = await boxes.withFaults()
      const first = await box.mutex('key').acquire()
      const waiting = box.mutex('key').acquire()
      engine.intercept = async (operation, execute) => {
        if (operation.type === 'forceRelease') await first.release()
        return execute()
      }
      assert.equal(await box.forceRelease('key', first.token), false)
      engine.restore()
      const second = await waiting
      second.assertHeld()
      assert.hasLength((await locks(box))[0]!.holders, 1)
      await second.release()
    })

    test('an operator can take away one of several readers', async boxes => {
      const [one, other] = await boxes.pair()
      const grants = [
        await one.readWriteLock('key').read.acquire({ lease: NOTIFIED_BY_RENEWAL }),
        await one.readWriteLock('key').read.acquire({ lease: NOTIFIED_BY_RENEWAL }),
      ]
      assert.equal(await other.forceRelease('key', grants[0]!.token), true)
      await until('its holder knows', () => grants[0]!.signal.aborted)
      grants[1]!.assertHeld()
      assert.hasLength((await locks(other, 'key'))[0]!.holders, 1)
    })

    test("run returns the task's result, and releases also when the task fails", async boxes => {
      const [one, other] = await boxes.pair()
      assert.equal(await one.mutex('key').run(() => 'given'), 'given')
      const failing = one.mutex('key').run(() => {
        throw new Error('of the task')
      })
      await assert.rejects(failing, /of the task/)
      await assert.rejects(
        one.mutex('key').run(() => Promise.reject(new Error('later'))),
        /later/,
      )
      assert.notEqual(await other.mutex('key').tryAcquire(), undefined)
    })

    test('`await using` releases a grant', async boxes => {
      const [one, other] = await boxes.pair()
      {
        await using grant = await one.mutex('key').acquire()
        grant.assertHeld()
        assert.equal(await other.mutex('key').tryAcquire(), undefined)
      }
      assert.notEqual(await other.mutex('key').tryAcquire(), undefined)
    })

    test('a second downgrade does nothing, and a lost grant cannot be downgraded', async boxes => {
      const [one, other] = await boxes.pair()
      const { write } = one.readWriteLock('key')
      const grant = await write.acquire()
      await grant.downgrade()
      await grant.downgrade()
      assert.notEqual(await other.readWriteLock('key').read.tryAcquire(), undefined)
      await grant.release()
      const lapsing = await one.readWriteLock('lapsing').write.acquire({ lease: LAPSING, renew: false })
      await until('it is lost', () => lapsing.expiresIn() === 0)
      await assert.rejects(lapsing.downgrade(), LostError)
    })
  })
}

async function grantAndDowngrade(grant: {
  release(): Promise<void>
  downgrade(): Promise<void>
}): Promise<void> {
  await grant.release()
  await grant.downgrade()
}
