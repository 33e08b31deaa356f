import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { VirtualClock, type Clock, type Timer } from '../../../src/base/clock.js'
import { limiter, type LimitOptions, type Permit } from '../../../src/limits/index.js'
import { checkedOptions, type LimiterOptions } from '../../../src/limits/limit-options.js'
import { LocalLimiter } from '../../../src/limits/local/local-limiter.js'
import { NaiveCount } from './naive-count.js'
import { pass, settled } from '../../support/passing.js'

/** A clock with some readings that are too early. */
class UneasyClock implements Clock {
  /** The latest time that was read. */
  latest = -Infinity
  /** Offsets by which the next readings are too early, in milliseconds. The last one is used first. */
  glitches: number[] = []
  readonly #clock: VirtualClock

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  now(): number {
    const reading = this.#clock.now() - (this.glitches.pop() ?? 0)
    this.latest = Math.max(this.latest, reading)
    return reading
  }

  after(delay: number, task: () => void): Timer {
    return this.#clock.after(delay, task)
  }
}

type Step =
  | { readonly type: 'acquire'; readonly n: number; readonly count: number; readonly work: number }
  | { readonly type: 'try'; readonly n: number }
  | { readonly type: 'pass' | 'stall'; readonly duration: number }
  | { readonly type: 'glitch'; readonly by: number[] }
  | { readonly type: 'limit'; readonly limit: number }
  | { readonly type: 'refund' | 'abort' | 'release'; readonly which: number }
  | { readonly type: 'pause'; readonly duration: number }

const some = fc.integer({ min: 0, max: 20 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('acquire' as const),
      n: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 4 })),
      count: fc.integer({ min: 1, max: 12 }),
      // Work of a caller before the next one continues, in milliseconds.
      work: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 90 })),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant('try' as const), n: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constantFrom('pass' as const, 'stall' as const),
      duration: fc.oneof(
        fc.integer({ min: 0, max: 500 }),
        fc.double({ min: 0, max: 20, noNaN: true }),
        fc.integer({ min: 500, max: 2500 }),
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('glitch' as const),
      by: fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 6 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('limit' as const), limit: fc.integer({ min: 1, max: 8 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constantFrom('refund' as const, 'abort' as const, 'release' as const),
      which: some,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('pause' as const),
      duration: fc.integer({ min: 0, max: 1500 }),
    }),
  },
)

/** The outcome of a run of steps. */
interface Played {
  /** The permits by the wall clock. */
  readonly wallCount: NaiveCount
  /** Messages about permits beyond a limit. */
  readonly violations: readonly string[]
  /** The callers in the order of their calls, and in the order in which they were served. */
  readonly asked: readonly number[]
  readonly served: readonly number[]
}

/** A moment at which a permit was given. */
interface Moment {
  readonly count: NaiveCount
  readonly at: number
  /** The limit at that moment. */
  readonly limit: number
  readonly inUse: number
}

/** Plays steps with a limiter. @param fault returns a message if a moment breaks a promise, or false */
async function play(
  options: LimiterOptions,
  limit: number,
  steps: readonly Step[],
  fault: (moment: Moment) => string | false,
): Promise<Played> {
  const clock = new VirtualClock(1e7)
  const uneasy = new UneasyClock(clock)
  const tested = new LocalLimiter(checkedOptions(options), uneasy, () => clock.now())
  const count = new NaiveCount()
  const wallCount = new NaiveCount()
  const violations: string[] = []
  const permits: { permit: Permit; at: number; wallAt: number }[] = []
  const controllers: AbortController[] = []
  const asked: number[] = []
  const served: number[] = []
  let inUse = 0
  const given = (permit: Permit): void => {
    const at = uneasy.latest
    inUse++
    count.add(at, permit.n)
    wallCount.add(clock.now(), permit.n)
    const found = fault({ count, at, limit, inUse })
    if (found !== false) violations.push(found)
    permits.push({ permit, at, wallAt: clock.now() })
  }
  for (const each of steps) {
    switch (each.type) {
      case 'acquire':
        for (let index = 0; index < each.count; index++) {
          const controller = new AbortController()
          const caller = controllers.push(controller)
          asked.push(caller)
          tested.acquire(Math.min(each.n, limit), { signal: controller.signal }).then(
            permit => {
              served.push(caller)
              given(permit)
              clock.freeze(each.work)
            },
            () => asked.splice(asked.indexOf(caller), 1),
          )
        }
        break
      case 'try': {
        const permit = tested.tryAcquire(Math.min(each.n, limit))
        if (permit) given(permit)
        break
      }
      case 'pass':
        await pass(clock, each.duration)
        break
      case 'stall':
        clock.freeze(each.duration)
        break
      case 'glitch':
        uneasy.glitches = [...each.by]
        break
      case 'limit':
        limit = each.limit
        tested.setLimit(limit)
        break
      case 'refund': {
        const back = permits.splice(-1 - each.which, 1)[0]
        if (!back) break
        count.remove(back.at, back.permit.n)
        wallCount.remove(back.wallAt, back.permit.n)
        back.permit.refund()
        inUse--
        break
      }
      case 'release': {
        const back = permits.splice(-1 - each.which, 1)[0]
        if (!back) break
        back.permit.release()
        inUse--
        break
      }
      case 'abort':
        controllers.at(-1 - each.which)?.abort()
        break
      case 'pause':
        tested.pauseUntil(clock.now() + each.duration)
        break
    }
    await settled()
  }
  // All holders release their permits, so that every caller has its turn.
  for (let round = 0; round < 200 && served.length < asked.length; round++) {
    await pass(clock, 1000)
    for (const { permit } of permits.splice(0)) {
      permit.release()
      inUse--
    }
  }
  await settled()
  return { wallCount, violations, asked, served }
}

const limits = fc.integer({ min: 1, max: 8 })
const steps = fc.array(step, { maxLength: 60 })
const numRuns = 150

describe('in any schedule the bound is kept, every caller is served, and in call order', () => {
  const atMost = (sum: number, most: number): string | false => sum > most && `${sum} > ${most}`

  test.each(['sliding', 'smooth'] as const)(
    '%s',
    async window => {
      await fc.assert(
        fc.asyncProperty(limits, steps, async (limit, all) => {
          const { violations, asked, served } = await play({ limit, per: 1000, window }, limit, all, moment =>
            atMost(moment.count.within(1000, moment.at), moment.limit),
          )
          expect(violations).toEqual([])
          expect(served).toEqual(asked)
        }),
        { numRuns },
      )
    },
    60_000,
  )

  test('several limits and concurrency', async () => {
    await fc.assert(
      fc.asyncProperty(limits, steps, async (limit, all) => {
        const options = {
          limits: [
            { limit, per: 1000 },
            { limit: 10, per: 3500 },
            { limit: 12, per: 2000, window: 'calendar' as const },
          ],
          concurrency: 7,
        }
        const unchanged = all.filter(({ type }) => type !== 'limit')
        const { wallCount, violations, asked, served } = await play(
          options,
          limit,
          unchanged,
          ({ count, at, inUse }) =>
            atMost(count.within(1000, at), limit) || atMost(count.within(3500, at), 10) || atMost(inUse, 7),
        )
        expect(violations).toEqual([])
        expect(wallCount.worstPeriod(2000)).toBeLessThanOrEqual(12)
        expect(served).toEqual(asked)
      }),
      { numRuns },
    )
  }, 60_000)

  test('a limit so great that permits share an entry', () => {
    const great = fc.constantFrom(10_001, 17_000, 40_000)
    const event = fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({
          // Mostly short enough to share an entry, and sometimes about as long as a window.
          gap: fc.oneof(
            { weight: 4, arbitrary: fc.double({ min: 0, max: 0.5, noNaN: true }) },
            { weight: 2, arbitrary: fc.double({ min: 0, max: 3, noNaN: true }) },
            fc.double({ min: 990, max: 1010, noNaN: true }),
          ),
          weights: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 30 }),
          // Whether all remaining permits are taken, too.
          fill: fc.boolean(),
        }),
      },
      { weight: 1, arbitrary: fc.record({ refund: some }) },
      { weight: 1, arbitrary: fc.record({ limit: great }) },
      { weight: 1, arbitrary: fc.record({ back: fc.integer({ min: 0, max: 5000 }) }) },
    )
    fc.assert(
      fc.property(great, fc.array(event, { maxLength: 40 }), (first, events) => {
        const clock = new VirtualClock(1e7)
        const tested = limiter({ limit: first, per: 1000, clock })
        const count = new NaiveCount()
        const permits: { permit: Permit; at: number }[] = []
        let limit = first
        let setBack = 0
        const take = (n: number): boolean => {
          const permit = tested.tryAcquire(n)
          if (!permit) return false
          const at = clock.now() + setBack
          count.add(at, n)
          permits.push({ permit, at })
          expect(count.within(1000, at)).toBeLessThanOrEqual(limit)
          return true
        }
        for (const each of events) {
          if ('refund' in each) {
            const given = permits.splice(-1 - each.refund, 1)[0]
            if (!given) continue
            given.permit.refund()
            count.remove(given.at, given.permit.n)
          } else if ('limit' in each) {
            limit = each.limit
            tested.setLimit(limit)
          } else if ('back' in each) {
            clock.freeze(-each.back)
            setBack += each.back
          } else {
            clock.advance(each.gap)
            each.weights.forEach(take)
            if (each.fill) for (let n = 8192; n >= 1; n /= 8) while (take(n));
          }
        }
        // The last permit gets its time with the next reading of the clock, and expires a window later.
        tested.explain()
        clock.advance(2000 + setBack)
        expect(tested.explain().limits[0]).toMatchObject({ remaining: limit, resetIn: 0 })
      }),
      { numRuns },
    )
  })
})

describe('with demand above the limit nothing is left unused', () => {
  /** Returns the permits of half a minute when timers are up to 1.2 ms late. */
  async function used(options: LimitOptions, n = 1): Promise<NaiveCount> {
    const clock = new VirtualClock(500)
    const tested = limiter({ ...options, clock })
    const count = new NaiveCount()
    const work = async (): Promise<void> => {
      while (clock.now() < 30_500) {
        const permit = await tested.acquire(n)
        count.add(clock.now(), permit.n)
      }
    }
    const all = Array.from({ length: 50 }, work)
    let random = 7
    while (clock.now() < 30_500) {
      await settled()
      const next = clock.nextAt() ?? 30_500
      random = (random * 48271) % 2147483647
      clock.freeze(Math.max(next - clock.now(), 0) + (random % 1200) / 1000)
      clock.advance(0)
    }
    await tested.close()
    await Promise.allSettled(all)
    return count
  }

  test.each<[string, LimitOptions, number]>([
    ['sliding, 20 a second', { limit: 20, per: '1s' }, 20],
    ['sliding, 3000 a second', { limit: 3000, per: '1s' }, 3000],
    ['sliding, 20,000 a second', { limit: 20_000, per: '1s' }, 20_000],
    ['calendar', { limit: 20, per: '1s', window: 'calendar' }, 20],
    ['smooth, 20 a second', { limit: 20, per: '1s', window: 'smooth' }, 20],
    ['smooth, 1000 a second', { limit: 1000, per: '1s', window: 'smooth' }, 1000],
  ])(
    '%s',
    async (_, options, rate) => {
      const count = await used(options)
      expect(count.total).toBeGreaterThanOrEqual(30 * rate * 0.99)
      if (options.window === 'calendar') expect(count.worstPeriod(1000)).toBeLessThanOrEqual(rate)
      else expect(count.worst(1000)).toBeLessThanOrEqual(rate)
    },
    60_000,
  )

  test('with weights as much as fits', async () => {
    const count = await used({ limit: 21, per: '1s' }, 5)
    expect(count.total).toBeGreaterThanOrEqual(30 * 20 * 0.99)
    expect(count.worst(1000)).toBe(20)
  })
})
