import type { Box } from 'signalbox'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import { pause, timed } from './time.js'

/** Delay of a packet that arrives after the end of the check, in milliseconds. */
const NEVER = 300_000
/** Times of the calls, counted from when the network stopped delivering, in milliseconds. */
const TIMES = [0, 1500, 3000, 4500]

/** P10: a network that delivers nothing, while connections are open and new ones can be made. */
export function deadNetwork(fixture: EngineFixture): void {
  describe('a network that delivers nothing', () => {
    const test = testOn(fixture)
    const { failsWithin = 8000 } = fixture

    function testCall(name: string, call: (box: Box) => Promise<unknown>): void {
      test(`${name} rejects in time`, async boxes => {
        const [box, network] = await boxes.overNetwork()
        await call(box)
        network.slowDown({ way: NEVER })
        const times = await Promise.all(
          TIMES.map(async time => {
            await pause(time)
            return timed(() => assert.rejects(call(box)))
          }),
        )
        for (const time of times) assert.below(time, failsWithin)
      })
    }

    testCall('a try for a lock', async box => {
      const grant = await box.mutex('key').tryAcquire()
      await grant?.release()
    })
    if (hasLimits(fixture)) {
      testCall('a try for a permit', box => box.limiter('l', { limit: 100, per: '1h' }).tryAcquire())
      testCall('a look at a limiter', box => box.limiter('l', { limit: 100, per: '1h' }).explain())
    }
    if (keepsValues(fixture)) testCall('a read', box => box.store('s').get('key'))
  })
}
