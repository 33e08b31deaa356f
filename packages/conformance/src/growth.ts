import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { testOn } from './boxes.js'
import { assert } from './assert.js'
import { describe } from './checks.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import { pause } from './time.js'
import type { Box } from 'signalbox'

/** Retention of the IDs and window of the limits, in milliseconds. */
const LASTING = 1000
/** Duration of a round, which uses new keys, in milliseconds. */
const ROUND = 10_000
/**
 * Time after which a box has freed the memory of unused keys and limiters, in milliseconds. It may remember a record
 * for as long as the engine keeps it.
 */
const FREED = 25_000
/** Maximum growth of the heap for other reasons than keys, such as compiled code, in bytes. */
const SLACK = 4_000_000
/** Number of calls at the same time. */
const TOGETHER = 32
/** Number of boxes that are opened and closed between two counts, one after another. */
const LIVES = 32

/** P12: nothing grows with each key or ID that was ever used. */
export function growth(fixture: EngineFixture): void {
  describe('keys and IDs that come and go', () => {
    const test = testOn(fixture)

    test.alone('leave nothing in memory by the thousand', async boxes => {
      const [one, other] = await boxes.pair()
      const freed = FREED + (boxes.place.keeps ?? 0)
      let used = 0
      const round = async (): Promise<void> => {
        const end = performance.now() + ROUND
        await Promise.all(
          Array.from({ length: TOGETHER }, async (_, place) => {
            while (performance.now() < end) await use(fixture, place % 2 === 0 ? one : other, `key ${used++}`)
          }),
        )
      }
      await round()
      await pause(freed)
      const before = await heapUsed()
      const usedBefore = used
      await round()
      await round()
      assert.atLeast(used - usedBefore, 500)
      const end = performance.now() + freed
      let grown = (await heapUsed()) - before
      while (grown > SLACK && performance.now() < end) {
        await pause(LASTING)
        grown = (await heapUsed()) - before
      }
      assert.atMost(grown, SLACK)
    })

    test.alone('of short-lived boxes leave no records', async boxes => {
      const { place } = boxes
      if (!place.size) return
      let lives = 0
      const live = async (): Promise<void> => {
        for (const end = lives + LIVES; lives < end; lives++) {
          const box = await boxes.open()
          await Promise.all(
            Array.from({ length: TOGETHER }, (_, place) => use(fixture, box, `key ${lives} ${place}`)),
          )
          await box.close()
        }
      }
      // An engine deletes expired records a few at a time, when it writes later ones.
      const swept = async (): Promise<number> => {
        await live()
        await pause(Math.max(2 * LASTING, place.keeps ?? 0))
        await live()
        return (await place.size?.()) ?? 0
      }
      const before = await swept()
      await live()
      const after = await swept()
      // Since then three times as many boxes have used new keys.
      assert.atMost(after - before, 2 * LIVES * TOGETHER)
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

/** Collects garbage, and returns the memory that is in use, in bytes. */
async function heapUsed(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // Settled promises and finished timers free their memory only in later turns of the event loop.
  for (let turn = 0; turn < 3; turn++) {
    await pause(5)
    collect()
  }
  return process.memoryUsage().heapUsed
}
