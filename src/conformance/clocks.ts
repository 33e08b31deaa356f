import { describe } from './checks.js'
import { assert } from './assert.js'
import { LostError } from '../errors.js'
import { testOn } from './boxes.js'
import type { EngineFixture } from './fixture.js'
import { pause, timed } from './time.js'
import { shiftWallClock } from './wall-clock.js'

const DAY = 86_400_000

/** P11: wall-clock changes on a client never shorten or lengthen a grant. */
export function clocks(fixture: EngineFixture): void {
  describe('P11 clocks may jump', () => {
    const test = testOn(fixture)

    for (const [way, jump] of [
      ['ahead', DAY],
      ['back', -DAY],
    ] as const) {
      test.alone(`a wall clock that jumps ${way} neither ends nor prolongs a grant`, async boxes => {
        const [one, other] = await boxes.pair()
        boxes.atEnd(() => shiftWallClock(0))
        const renewed = await one.mutex('renewed').acquire({ lease: 900 })
        const lapsing = await one.mutex('lapsing').acquire({ lease: 400, renew: false })
        shiftWallClock(jump)
        assert.above(lapsing.expiresIn(), 0)
        assert.atMost(lapsing.expiresIn(), 400)
        lapsing.assertHeld()
        assert.equal(await other.mutex('lapsing').tryAcquire(), undefined)
        await pause(1200)
        assert.throws(() => lapsing.assertHeld(), LostError)
        renewed.assertHeld()
        assert.equal(await other.mutex('renewed').tryAcquire(), undefined)
        assert.above((await other.mutex('lapsing').acquire({ wait: 5000 })).token, lapsing.token)
        await renewed.release()
      })

      test.alone(`a wall clock that jumps ${way} does not change the length of a wait`, async boxes => {
        const [one, other] = await boxes.pair()
        boxes.atEnd(() => shiftWallClock(0))
        await one.mutex('key').acquire()
        const asked = other.mutex('key').acquire({ wait: 150 })
        const outcome = assert.rejects(asked)
        shiftWallClock(jump)
        const took = await timed(() => outcome)
        assert.below(took, 5000)
        assert.above(took, 50)
      })
    }
  })
}
