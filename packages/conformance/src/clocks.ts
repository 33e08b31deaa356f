import { describe } from './checks.js'
import { assert } from './assert.js'
import { LostError } from 'signalbox'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { assertServed, handOver, LAPSING, queued, timed, until } from './time.js'
import { shiftWallClock } from './wall-clock.js'

const DAY = 86_400_000
/** A lease that must be renewed in time, in milliseconds. Two thirds of it are longer than a stall of the process. */
const RENEWED = 3300

/** P11: wall-clock changes on a client never shorten or lengthen a grant. */
export function clocks(fixture: EngineFixture): void {
  describe('P11 wall clocks may jump', () => {
    const test = testOn(fixture)

    test.alone('a wall clock that is set back puts no caller ahead of others', async boxes => {
      const [holder, one] = await boxes.pair()
      const other = await boxes.open()
      boxes.atEnd(() => shiftWallClock(0))
      const held = await holder.mutex('key').acquire()
      const served: string[] = []
      const earlier = one.mutex('key').run(() => void served.push('earlier'))
      await queued(holder, 'key', 1)
      shiftWallClock(-DAY)
      const later = other.mutex('key').run(() => void served.push('later'))
      await queued(holder, 'key', 2)
      assertServed(served, ['earlier', 'later'], await handOver(held, [earlier, later]))
    })

    for (const [way, jump] of [
      ['ahead', DAY],
      ['back', -DAY],
    ] as const) {
      test.alone(`a wall clock that jumps ${way} neither ends nor prolongs a grant`, async boxes => {
        const [one, other] = await boxes.pair()
        boxes.atEnd(() => shiftWallClock(0))
        const renewed = await one.mutex('renewed').acquire({ lease: RENEWED })
        const granted = performance.now()
        const lapsing = await one.mutex('lapsing').acquire({ lease: LAPSING, renew: false })
        // The lease ends a little later than this, because its request was sent after `granted`.
        const left = (): number => LAPSING - (performance.now() - granted)
        shiftWallClock(jump)
        assert.atLeast(lapsing.expiresIn(), left())
        assert.atMost(lapsing.expiresIn(), LAPSING)
        const taken = await other.mutex('lapsing').tryAcquire()
        if (left() > 0) assert.equal(taken, undefined)
        await taken?.release()
        const next = await other.mutex('lapsing').acquire({ wait: '10s' })
        assert.above(next.token, lapsing.token)
        assert.throws(() => lapsing.assertHeld(), LostError)
        await until('it is renewed', () => performance.now() - granted > RENEWED - renewed.expiresIn())
        renewed.assertHeld()
        assert.equal(await other.mutex('renewed').tryAcquire(), undefined)
        await renewed.release()
      })

      test.alone(`a wall clock that jumps ${way} does not change the length of a wait`, async boxes => {
        const [one, other] = await boxes.pair()
        boxes.atEnd(() => shiftWallClock(0))
        await one.mutex('key').acquire()
        const begun = performance.now()
        const asked = other.mutex('key').acquire({ wait: 150 })
        const outcome = assert.rejects(asked)
        shiftWallClock(jump)
        const took = await timed(() => outcome)
        assert.below(took, 5000)
        assert.above(performance.now() - begun, 50)
      })
    }
  })
}
