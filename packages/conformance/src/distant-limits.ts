import type { Box, BoxLimiterOptions } from 'signalbox'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import type { Delays, EngineFixture } from './fixture.js'
import { halfShare } from './hot-key.js'
import { pause } from './time.js'

/** Callers of each box, so that each always has some waiting. */
const CALLERS = 20
/** Time in which permits are not counted yet, and the time after it in which they are, in milliseconds. */
const FIRST = 8000
const COUNTED = 30_000

const LINKS: readonly (readonly [name: string, delays: Delays])[] = [
  ['400 ms away', { way: 200 }],
  ['whose requests take 0 to 600 ms', { way: 0, requestJitter: 600 }],
  ['whose packets take 0 to 600 ms each way', { way: 0, requestJitter: 600, replyJitter: 600 }],
]

/** Windows that are shorter than a round trip, about as long, and with so few permits that boxes wait for each. */
const LIMITS: readonly BoxLimiterOptions[] = [
  { limit: 10, per: 100 },
  { limit: 20, per: '1s' },
  { limit: 1, per: '1s' },
]

/** A box far from the servers gets its share of a rate limit. */
export function distantLimits(fixture: EngineFixture): void {
  describe('limits over a slow network', () => {
    const test = testOn(fixture)
    for (const [name, delays] of LINKS) {
      test.alone(`a box ${name} gets at least half of its fair share of the permits`, async boxes => {
        const [far, network] = await boxes.overNetwork()
        const all = [far, ...(await boxes.pair())]
        network.slowDown(delays)
        await Promise.all(
          LIMITS.map(async (options, index) => {
            const shares = await sharesOf(all, `limit ${index}`, options)
            const message = `${JSON.stringify(options)}: ${shares.join(', ')}`
            assert.equal(shares[0]! >= halfShare(shares), true, message)
          }),
        )
      })
    }
  })
}

/** Returns the number of permits that each box gets while all have waiting callers, without the first permits. */
async function sharesOf(boxes: readonly Box[], name: string, options: BoxLimiterOptions): Promise<number[]> {
  const controller = new AbortController()
  const { signal } = controller
  const given = boxes.map(() => 0)
  const work = async (box: Box, index: number): Promise<void> => {
    while (!signal.aborted) {
      await box.limiter(name, options).acquire(1, { signal })
      given[index]!++
    }
  }
  const callers = Promise.all(
    boxes.flatMap((box, index) =>
      Array.from({ length: CALLERS }, () =>
        work(box, index).catch((error: unknown) => {
          if (!signal.aborted) throw error
        }),
      ),
    ),
  )
  await Promise.race([pause(FIRST), callers])
  const before = [...given]
  await Promise.race([pause(COUNTED), callers])
  const shares = given.map((count, index) => count - before[index]!)
  controller.abort()
  await callers
  return shares
}
