import { describe } from './checks.js'
import { expect } from './expect.js'
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
        expect(lapsing.expiresIn()).toBeGreaterThan(0)
        expect(lapsing.expiresIn()).toBeLessThanOrEqual(400)
        lapsing.assertHeld()
        expect(await other.mutex('lapsing').tryAcquire()).toBeUndefined()
        await pause(1200)
        expect(() => lapsing.assertHeld()).toThrow(LostError)
        renewed.assertHeld()
        expect(await other.mutex('renewed').tryAcquire()).toBeUndefined()
        expect((await other.mutex('lapsing').acquire({ wait: 5000 })).token).toBeGreaterThan(lapsing.token)
        await renewed.release()
      })

      test.alone(`a wait is as long as it is when the wall clock jumps ${way}`, async boxes => {
        const [one, other] = await boxes.pair()
        boxes.atEnd(() => shiftWallClock(0))
        await one.mutex('key').acquire()
        const asked = other.mutex('key').acquire({ wait: 150 })
        const outcome = expect(asked).rejects.toThrow()
        shiftWallClock(jump)
        const took = await timed(() => outcome)
        expect(took).toBeLessThan(5000)
        expect(took).toBeGreaterThan(50)
      })
    }
  })
}
