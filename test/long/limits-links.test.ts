import { describe, expect, test } from 'vitest'
import type { Proxy } from '../../apps/chaos/servers/proxy.js'
import { systemClock } from '../../src/base/clock.js'
import { until } from '../../packages/conformance/src/time.js'
import type { BoxLimiterOptions } from '../../src/index.js'
import { holdFor, Work } from '../support/limits/work.js'
import { RedisPlace, through } from '../support/redis/place.js'

const LIMIT = 20
const PER = 1000

/** Opens a limiter over a network with this one-way delay, in milliseconds. */
async function distant(here: RedisPlace, delay: number, options: Partial<BoxLimiterOptions> = {}) {
  const network: Proxy = await here.network()
  const box = await here.box(through(network))
  network.delay = delay
  const limiter = box.limiter('api', { limit: LIMIT, per: PER, ...options } as BoxLimiterOptions)
  return { network, limiter }
}

/**
 * Returns the maximum length of a window of which this fraction is lost, in a process that was also this late, in
 * milliseconds.
 */
function longest(less: number, late: number): number {
  return PER / (1 - less) + holdFor(late)
}

describe('a limit of 20 in a second over a slow link to Redis', () => {
  test.concurrent.each([
    [25, 0.09],
    [100, 0.22],
  ])('of %i ms each way loses a part of %f at most, and no window has more', async (delay, less) => {
    await using here = await RedisPlace.start()
    const { limiter } = await distant(here, delay)
    await using work = new Work(limiter, LIMIT)
    const first = await work.during(3000)
    const then = await work.during(20 * PER)
    const late = Math.max(first.late, then.late)
    expect(then.perWindow).toBeLessThanOrEqual(longest(less, late))
    expect(work.worst(PER, late)).toBeLessThanOrEqual(LIMIT)
    expect(limiter.outage).toBeUndefined()
  })

  test.concurrent('that suddenly becomes slow loses a window, and is fast again when the link is', async () => {
    await using here = await RedisPlace.start()
    const { network, limiter } = await distant(here, 1)
    await using work = new Work(limiter, LIMIT)
    const before = await work.during(5000)
    network.delay = 100
    const slow = await work.during(12 * PER)
    expect(slow.perWindow).toBeLessThanOrEqual(longest(0.22, slow.late) + PER / slow.windows)
    network.delay = 1
    const between = await work.during(6000)
    const quick = await work.during(10 * PER)
    const late = Math.max(before.late, slow.late, between.late, quick.late)
    expect(quick.perWindow).toBeLessThanOrEqual(longest(0.04, Math.max(between.late, quick.late)))
    expect(work.worst(PER, late)).toBeLessThanOrEqual(LIMIT)
    expect(limiter.outage).toBeUndefined()
  })

  test.concurrent('that breaks leaves the process its own share only', async () => {
    await using here = await RedisPlace.start()
    const { network, limiter } = await distant(here, 100, { onUnavailable: 'open' })
    await using work = new Work(limiter, LIMIT)
    const before = await work.during(4000)
    expect(limiter.outage).toBeUndefined()
    expect(work.worst(PER, before.late)).toBeLessThanOrEqual(LIMIT)
    const cutAt = systemClock.now()
    network.target = undefined
    network.cut()
    await until('it is heard of', () => limiter.outage !== undefined)
    const away = await work.during(5 * PER)
    expect(limiter.outage).toBeDefined()
    expect(work.worst(PER, away.late, cutAt)).toBeLessThanOrEqual(LIMIT)
    expect(away.windows).toBeGreaterThanOrEqual(3)
    network.target = here.server.port
    await until('it is back', () => limiter.outage === undefined)
    const backAt = systemClock.now()
    const after = await work.during(4000)
    const late = Math.max(before.late, away.late, after.late)
    // Permits that the engine gave just before and just after the outage add to those that the process gave alone.
    expect(work.worst(PER, late)).toBeLessThanOrEqual(2 * LIMIT)
    expect(work.worst(PER, late, backAt + PER)).toBeLessThanOrEqual(LIMIT)
  })
})
