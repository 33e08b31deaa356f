import { describe } from './checks.js'
import { assert } from './assert.js'
import type { GrantedEvent, LockEvent, LockRefusedEvent, LostEvent, ReleasedEvent } from '../diagnostics.js'
import { AbortedError, LostError, TimedOutError, UnavailableError } from '../errors.js'
import { testOn } from './boxes.js'
import { keepsValues, type EngineFixture } from './fixture.js'
import { LAPSING, TOLD_BY_RENEWAL, locks, nothingHeld, pause, queued, until } from './time.js'

/** The channels of `node:diagnostics_channel`. */
export function diagnostics(fixture: EngineFixture): void {
  describe('diagnostics channels', () => {
    const test = testOn(fixture)

    test('a lock that waits is published as requested, granted and released', async boxes => {
      const [one, other] = await boxes.pair()
      const requested = boxes.heard<LockEvent>('lock:requested', other)
      const granted = boxes.heard<GrantedEvent>('lock:granted', other)
      const released = boxes.heard<ReleasedEvent>('lock:released', other)
      const held = await one.mutex('b', 'a').acquire()
      const asked = other.mutex('a', 'b').acquire()
      await queued(one, 'a', 1)
      await pause(40)
      assert.hasLength(requested, 1)
      assert.hasLength(granted, 0)
      await held.release()
      const grant = await asked
      await pause(40)
      await grant.release()
      const about = { session: other.session, keys: ['a', 'b'], engine: requested[0]!.engine }
      assert.deepEqual(requested, [about])
      assert.deepEqual(granted, [
        { ...about, token: grant.token, waited: granted[0]!.waited, request: about },
      ])
      assert.equal(granted[0]!.request, requested[0])
      assert.deepEqual(released, [{ ...about, token: grant.token, held: released[0]!.held }])
      assert.atLeast(granted[0]!.waited, 39)
      assert.below(granted[0]!.waited, 10_000)
      assert.atLeast(released[0]!.held, 39)
      assert.below(released[0]!.held, 10_000)
      assert.above(about.engine.length, 3)
    })

    test('every grant and every release is published once, also of local turns and by every verb', async boxes => {
      const box = await boxes.open()
      const granted = boxes.heard<GrantedEvent>('lock:granted', box)
      const released = boxes.heard<ReleasedEvent>('lock:released', box)
      const tokens: bigint[] = []
      await Promise.all(
        Array.from({ length: 20 }, () => box.mutex('key').run(grant => void tokens.push(grant.token))),
      )
      const tried = await box.mutex('key').tryAcquire()
      tokens.push(tried!.token)
      await tried!.release()
      await tried!.release()
      if (keepsValues(fixture)) {
        await box.store('s').transaction(['k'], transaction => void tokens.push(transaction.token))
      }
      assert.deepEqual(
        granted.map(({ token }) => token),
        tokens,
      )
      assert.deepEqual(
        released.map(({ token }) => token),
        tokens,
      )
    })

    test('a refused wait is published with its length and its error', async boxes => {
      const [one, other] = await boxes.pair()
      const timedOut = boxes.heard<LockRefusedEvent>('lock:refused', other)
      const granted = boxes.heard<LockEvent>('lock:granted', other)
      await one.mutex('key').acquire()
      await assert.rejects(other.mutex('key').acquire({ wait: 60 }), TimedOutError)
      assert.deepEqual(timedOut, [
        {
          session: other.session,
          keys: ['key'],
          engine: timedOut[0]!.engine,
          waited: timedOut[0]!.waited,
          error: timedOut[0]!.error,
          request: { session: other.session, keys: ['key'], engine: timedOut[0]!.engine },
        },
      ])
      assert.isA(timedOut[0]!.error, TimedOutError)
      assert.atLeast(timedOut[0]!.waited, 59)
      assert.deepEqual(granted, [])
    })

    test('every way to lose a grant is published once, with its token', async boxes => {
      const [one, other] = await boxes.pair()
      const lost = boxes.heard<LostEvent>('lock:lost', one)
      const lapsing = await one.mutex('lapsing').acquire({ lease: LAPSING, renew: false })
      await until('it is lost', () => lost.length === 1)
      await lapsing.release().catch(() => undefined)
      assert.deepEqual(
        lost.map(({ keys }) => keys),
        [['lapsing']],
      )
      const taken = await one.mutex('taken').acquire({ lease: TOLD_BY_RENEWAL })
      const told = new Promise(resolve => taken.signal.addEventListener('abort', resolve))
      await other.forceRelease('taken', (await locks(other, 'taken'))[0]!.holders[0]!.token!)
      await told
      await taken.release().catch(() => undefined)
      assert.deepEqual(
        lost.map(({ keys }) => keys),
        [['lapsing'], ['taken']],
      )
      const open = await one.mutex('open').acquire()
      await one.close()
      assert.deepEqual(
        lost.map(({ keys }) => keys),
        [['lapsing'], ['taken'], ['open']],
      )
      assert.deepEqual(
        lost.map(({ token }) => token),
        [lapsing, taken, open].map(({ token }) => token),
      )
      for (const { error } of lost) assert.isA(error, LostError)
    })

    test('a release is published once, after it is answered', async boxes => {
      const [box, engine] = await boxes.meddled()
      const ends = ['released', 'release-failed', 'lost'].map(end => boxes.heard(`lock:${end}`, box))
      const told = (): number[] => ends.map(({ length }) => length)
      const released = await box.mutex('key').acquire()
      let answer: (() => void) | undefined
      engine.meddle = async (operation, carryOut) => {
        const outcome = await carryOut()
        if (operation.type === 'release') await new Promise<void>(resolve => (answer = resolve))
        return outcome
      }
      const releasing = released.release()
      await until('the release was carried out', () => answer !== undefined)
      assert.deepEqual(told(), [0, 0, 0])
      answer!()
      await releasing
      assert.deepEqual(told(), [1, 0, 0])
      engine.restore()
      const failing = await box.mutex('key').acquire()
      engine.fail(['release'], new UnavailableError('the line is cut'))
      await assert.rejects(failing.release(), UnavailableError)
      assert.deepEqual(told(), [1, 1, 0])
      engine.restore()
      const lapsing = await box.mutex('lapsing').acquire({ lease: LAPSING, renew: false })
      await until('it is lost', () => ends[2]!.length === 1)
      await assert.rejects(lapsing.release(), LostError)
      assert.deepEqual(told(), [1, 1, 1])
      assert.has(
        ends.flat(),
        [released, failing, lapsing].map(({ token }) => ({ token })),
      )
    })

    test('a lease that was extended for a caller that gave up is not published', async boxes => {
      const [box, engine] = await boxes.meddled()
      const granted = boxes.heard<GrantedEvent>('lock:granted', box)
      const released = boxes.heard<ReleasedEvent>('lock:released', box)
      const grant = await box.mutex('key').acquire({ lease: 5000 })
      const controller = new AbortController()
      const waiting = box.mutex('key').acquire({ lease: 6000, signal: controller.signal })
      engine.meddle = async (operation, carryOut) => {
        const outcome = await carryOut()
        if (operation.type === 'extendOrYield') controller.abort()
        return outcome
      }
      await grant.release()
      await assert.rejects(waiting, AbortedError)
      await nothingHeld(box)
      assert.equal(engine.count('extendOrYield'), 1)
      assert.deepEqual(
        granted.map(({ token }) => token),
        [grant.token],
      )
      assert.deepEqual(
        released.map(({ token }) => token),
        [grant.token],
      )
    })

    test('a release that finds the grant gone is published as a loss', async boxes => {
      const other = await boxes.open()
      const [box, engine] = await boxes.meddled()
      const lost = boxes.heard<LostEvent>('lock:lost', box)
      const released = boxes.heard('lock:released', box)
      // No hint tells the box that its grant was taken away.
      engine.hears = () => false
      const grant = await box.mutex('key').acquire()
      await other.forceRelease('key', grant.token)
      await assert.rejects(grant.release(), LostError)
      assert.has(lost, [{ keys: ['key'], token: grant.token }])
      assert.deepEqual(released, [])
    })
  })
}
