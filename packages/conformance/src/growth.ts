import { testOn } from './boxes.js'
import { assert } from './assert.js'
import { describe } from './checks.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import { pause } from './time.js'
import type { Box } from 'signalbox'

/** How long ids and limits of the checks last: milliseconds. */
const LASTING = 1000
/** How many calls are under way together. */
const TOGETHER = 32
/** How many boxes are open one after the other between two looks. */
const LIVES = 40

/** P12: nothing grows with each key or id that was ever used. */
export function growth(fixture: EngineFixture): void {
  describe('keys and ids that come and go', () => {
    const test = testOn(fixture)

    test.alone('of boxes that are open for a moment each leave no records', async boxes => {
      const { place } = boxes
      const lives = async (from: number): Promise<number> => {
        for (let life = from; life < from + LIVES; life++) {
          const box = await boxes.open()
          await Promise.all(
            Array.from({ length: TOGETHER }, (_, place) => use(fixture, box, `key ${life} ${place}`)),
          )
          await box.close()
        }
        return (await place.size?.()) ?? 0
      }
      await lives(0)
      await pause(2 * LASTING)
      const before = await lives(LIVES)
      await pause(2 * LASTING)
      const after = await lives(2 * LIVES)
      // A life uses each key for an id and a limit.
      assert.atMost(after - before, LIVES * TOGETHER)
    })
  })
}

/** Uses a key once in each way that the engine has. */
async function use(fixture: EngineFixture, box: Box, key: string): Promise<void> {
  await box.mutex(key).run(() => undefined)
  await box.mutex(key, `${key}, too`).run(() => undefined)
  if (keepsValues(fixture)) {
    await box
      .store('s')
      .transaction([key], transaction => transaction.put(key, 1), { id: 'id', retention: LASTING })
    await box.store('s').delete(key)
  }
  if (hasLimits(fixture)) await box.limiter(key, { limit: 2, per: LASTING }).tryAcquire()
}
