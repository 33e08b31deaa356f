import { describe, expect, test } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import { Random } from '../../../packages/conformance/src/random.js'
import type { BoxLimiterOptions } from '../../../src/limits/remote/box-limiter-options.js'
import { Server } from './deciding-server.js'
import { DistantBox } from './distant-box.js'
import { NaiveCount } from './naive-count.js'
import { pass } from '../../support/passing.js'

/** Creates boxes with these round trips, in milliseconds, which share one limit. */
function scene(options: BoxLimiterOptions, ...roundTrips: number[]) {
  const clock = new VirtualClock(5000)
  const server = new Server(clock)
  const boxes = roundTrips.map(roundTrip => new DistantBox(clock, server, roundTrip, options))
  const count = new NaiveCount()
  /** Returns the number of permits given within a number of milliseconds from now on. */
  const during = async (duration: number): Promise<number> => {
    const before = count.total
    await pass(clock, duration)
    return count.total - before
  }
  return { clock, boxes, count, during }
}

describe('a permit can be used for as long as the way takes', () => {
  test.each([
    [20, 1000, 22, 0.04],
    [20, 1000, 200, 0.22],
    [5, 100, 100, 0.6],
  ])('%i in %i ms over a round trip of %i ms: less by a part of %f', async (limit, per, roundTrip, less) => {
    for (const window of ['sliding', 'smooth'] as const) {
      const { boxes, count, during } = scene({ limit, per, window }, roundTrip)
      boxes[0]!.work(3 * limit, count)
      await during(2000)
      const given = await during(20 * per)
      expect(given / (20 * limit), window).toBeGreaterThanOrEqual(1 - less)
      expect(count.worst(per)).toBeLessThanOrEqual(limit)
    }
  })

  test('a period of the calendar is used whole over a way of half of it', async () => {
    const { boxes, count, during } = scene({ limit: 20, per: 1000, window: 'calendar' }, 400)
    boxes[0]!.work(60, count)
    await during(2000)
    expect(await during(20_000)).toBe(400)
    expect(count.worstPeriod(1000)).toBeLessThanOrEqual(20)
  })

  test('a way that becomes longer costs one window, and one that becomes shorter is felt soon', async () => {
    const { boxes, count, during } = scene({ limit: 20, per: 1000 }, 2)
    boxes[0]!.work(60, count)
    await during(5000)
    boxes[0]!.roundTrip = 200
    expect(await during(11_000)).toBeGreaterThanOrEqual(0.78 * 200)
    boxes[0]!.roundTrip = 2
    await during(6000)
    expect(await during(10_000)).toBeGreaterThanOrEqual(0.96 * 200)
    expect(count.worst(1000)).toBeLessThanOrEqual(20)
  })

  test('a far box does not reduce the permits of a near box', async () => {
    const { boxes, count, during } = scene({ limit: 20, per: 1000 }, 1, 400)
    boxes[0]!.work(60, count)
    await during(3000)
    const far = boxes[1]!
    // One of the twenty permits is away for at most 1.4 s.
    far.work(1, count)
    await during(3000)
    const farBefore = far.given.length
    const all = await during(20_000)
    expect(far.given.length - farBefore).toBeGreaterThan(3)
    expect(all).toBeGreaterThanOrEqual(0.93 * 400)
    expect(count.worst(1000)).toBeLessThanOrEqual(20)
  })

  test('an answer that is late is no outage, however long the way is', async () => {
    const { boxes, count, during } = scene({ limit: 20, per: 1000, onUnavailable: 'open' }, 2500)
    boxes[0]!.work(60, count)
    await during(30_000)
    expect(boxes[0]!.limiter.outage).toBeUndefined()
    expect(count.worst(1000)).toBeLessThanOrEqual(20)
  })
})

describe('a far box beside two near ones gets at least half of its fair share, all with waiting callers', () => {
  const none = (): number => 0
  type Link = (random: Random) => { roundTrip: number; jitter: DistantBox['jitter'] }
  const jittery = (random: Random) => (): number => random.below(600)
  const links: Record<string, Link> = {
    '400 ms away': () => ({ roundTrip: 400, jitter: { request: none, answer: none } }),
    'requests take 0 to 600 ms': random => ({
      roundTrip: 0,
      jitter: { request: jittery(random), answer: none },
    }),
    'replies take 0 to 600 ms': random => ({
      roundTrip: 0,
      jitter: { request: none, answer: jittery(random) },
    }),
    'both take 0 to 600 ms': random => ({
      roundTrip: 0,
      jitter: { request: jittery(random), answer: jittery(random) },
    }),
  }
  /** Limits, each with the minimum part that the boxes use together. A hold of 600 ms makes short windows long. */
  const limits: readonly (readonly [BoxLimiterOptions, duration: number, used: number])[] = [
    [{ limit: 1, per: 10_000 }, 120_000, 0.9],
    [{ limit: 5, per: 10_000 }, 60_000, 0.9],
    [{ limit: 30, per: 10_000, window: 'smooth' }, 40_000, 0.9],
    [{ limit: 20, per: 1000 }, 20_000, 0.8],
    [{ limit: 20, per: 1000, window: 'smooth' }, 20_000, 0.65],
    [{ limit: 20, per: 1000, window: 'calendar' }, 20_000, 0.9],
    [{ limit: 10, per: 300 }, 10_000, 0.5],
    [{ limit: 10, per: 100 }, 10_000, 0.2],
  ]
  test.each(limits)('%j', async (options, duration, used) => {
    for (const [name, link] of Object.entries(links)) {
      const { boxes, count, during } = scene(options, 0, 1, 1)
      Object.assign(boxes[0]!, link(new Random(1)))
      for (const box of boxes) box.work(40, count)
      await during(5000)
      const before = boxes[0]!.given.length
      const all = await during(duration)
      const share = (boxes[0]!.given.length - before) / (all / 3)
      expect(share, name).toBeGreaterThanOrEqual(0.5)
      const { limit, per } = options as { limit: number; per: number }
      expect((all * per) / (limit * duration), name).toBeGreaterThanOrEqual(used)
      if (options.window === 'calendar') expect(count.worstPeriod(per)).toBeLessThanOrEqual(limit)
      else expect(count.worst(per)).toBeLessThanOrEqual(limit)
    }
  })
})

describe('boxes that have not asked before, over a round trip of 50 ms', () => {
  const far = (number: number): number[] => Array.from({ length: number }, () => 50)
  /** Starts ten callers in each box. */
  const join = (boxes: readonly DistantBox[], count: NaiveCount): void => {
    for (const box of boxes) box.work(10, count)
  }

  test.each([1, 2, 3, 4, 8])('%i of them start together: no permit is lost', async number => {
    for (const window of ['sliding', 'smooth'] as const) {
      const { clock, boxes, count, during } = scene({ limit: 20, per: 1000, window }, ...far(number))
      const start = clock.now()
      join(boxes, count)
      expect(await during(10_000), window).toBeGreaterThanOrEqual(0.92 * 200)
      // One round trip to measure the latency, and one for the permit.
      expect(count.grants[0]!.at - start, window).toBeLessThanOrEqual(110)
      expect(count.worst(1000)).toBeLessThanOrEqual(20)
    }
  })

  test('a try finds the permit that is there', async () => {
    const { clock, boxes } = scene({ limit: 1, per: 1000 }, 50)
    const permits: unknown[] = []
    void boxes[0]!.limiter.tryAcquire().then(permit => permits.push(permit))
    await pass(clock, 110)
    expect(permits).toMatchObject([{ n: 1 }])
  })
})
