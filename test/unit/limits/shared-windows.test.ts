import { afterEach, describe, expect, test, vi } from 'vitest'
import { sharedClock, VirtualClock, type Clock, type Timer } from '../../../src/base/clock.js'
import { Random } from '../../../packages/conformance/src/random.js'
import type { LimitOptions, Permit } from '../../../src/limits/index.js'
import { checkedOptions } from '../../../src/limits/limit-options.js'
import { LocalLimiter } from '../../../src/limits/local/local-limiter.js'
import {
  SharedLimiter,
  sharedLimiter,
  type SharedLimiterOptions,
} from '../../../src/limits/threads/shared-limiter.js'
import { SharedRing } from '../../../src/limits/threads/shared-ring.js'
import { NaiveCount } from './naive-count.js'
import { pass, settled } from '../../support/passing.js'

/** Start of the virtual clock. */
const START = 1e6
/** A Monday, on the hour. */
const MONDAY = Date.UTC(2026, 5, 1, 12)

/** Creates threads that share limits on one virtual clock, and their wall clock. */
function scene(options: SharedLimiterOptions, wallStart = MONDAY) {
  const clock = new VirtualClock(START)
  const wall = { offset: wallStart - START }
  const readWall = (): number => clock.now() + wall.offset
  const begun = vi.spyOn(sharedClock, 'now').mockReturnValue(START)
  const { handle } = sharedLimiter(options)
  begun.mockRestore()
  const thread = (of: Clock = clock, reading = readWall): SharedLimiter =>
    new SharedLimiter(structuredClone(handle), of, reading)
  return { clock, wall, readWall, handle, thread }
}

/** Returns a few limits of any kinds, with windows of about a second. */
function someLimits(random: Random, most = 8): LimitOptions[] {
  return Array.from({ length: 1 + random.below(3) }, () => ({
    limit: 1 + random.below(most),
    per: [500, 1000, 2500][random.below(3)]!,
    window: (['sliding', 'calendar', 'smooth'] as const)[random.below(3)]!,
  }))
}

/**
 * Returns messages about limits that the grants break.
 * @param grants in order, with times by the monotonic and by the wall clock
 */
function broken(limits: readonly LimitOptions[], jitter: number, grants: readonly Given[]): string[] {
  const count = new NaiveCount()
  const wallCount = new NaiveCount()
  for (const { at, wallAt, n } of grants) {
    count.add(at, n)
    wallCount.add(wallAt, n)
  }
  return limits.flatMap(({ limit, per, window }) => {
    const length = per as number
    if (window === 'calendar') {
      const inGuard = grants.some(({ wallAt }) => wallAt % length >= length - jitter)
      return wallCount.worstPeriod(length) > limit || inGuard ? [`calendar of ${limit} in ${length}`] : []
    }
    // The window, without rounding errors.
    const memory = length + jitter - 1e-4
    const tooMany = count.worst(memory) > limit
    const interval = memory / limit
    const tooNear = grants.some(
      ({ at }, index) => index > 0 && at - grants[index - 1]!.at < interval * grants[index - 1]!.n - 1e-3,
    )
    return tooMany || (window === 'smooth' && tooNear) ? [`${window!} of ${limit} in ${length}`] : []
  })
}

interface Given {
  readonly permit: Permit
  readonly at: number
  readonly wallAt: number
  readonly n: number
}

afterEach(() => vi.restoreAllMocks().unstubAllGlobals())

describe('threads that share windows of all kinds', () => {
  test('decide and explain like the limiter of one thread, over random arrivals, weights and refunds', () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = new Random(seed)
      const limits = someLimits(random)
      const jitter = random.below(3) === 0 ? random.below(200) : 0
      const { clock, readWall, thread } = scene({ limits, jitter })
      const threads = [thread(), thread(), thread()]
      const local = new LocalLimiter(checkedOptions({ limits, jitter }), clock, readWall)
      const most = Math.min(...limits.map(({ limit }) => limit))
      const held: (Given & { readonly own: Permit })[] = []
      const seen: Given[] = []
      for (let step = 0; step < 80; step++) {
        // Fractions, so that no permit comes back at exactly such a moment.
        clock.advance(random.fraction() * (random.below(8) === 0 ? 3000 : 200))
        const own = threads[random.below(3)]!
        const n = 1 + random.below(most)
        const label = `seed ${seed}, step ${step}`
        const expected = local.explain(n)
        const explained = own.explain(n)
        expect(explained.readyIn, label).toBeCloseTo(expected.readyIn, 2)
        // By the wall clock, the rest of a wait can be a rounding error.
        if (expected.readyIn === 0 || expected.readyIn > 0.01) {
          expect(explained.waitsFor, label).toBe(expected.waitsFor)
        }
        expected.limits.forEach((limit, index) => {
          const report = explained.limits[index]!
          expect(report.resetIn, label).toBeCloseTo(limit.resetIn, 2)
          expect({ ...report, resetIn: 0 }, label).toEqual({ ...limit, resetIn: 0 })
        })
        if (random.below(4) === 0 && held.length > 0) {
          const [back] = held.splice(random.below(held.length), 1)
          back!.permit.refund()
          back!.own.refund()
          seen.splice(seen.indexOf(back!), 1)
          continue
        }
        if (random.below(40) === 0) {
          const until = readWall() + random.below(800)
          own.pauseUntil(until)
          local.pauseUntil(until)
          // The threads store the pause with a resolution of a sixteenth of a second.
          clock.advance(Math.max(until - readWall(), 0) + 63)
        }
        const permit = own.tryAcquire(n)
        const other = local.tryAcquire(n)
        expect(permit !== undefined, label).toBe(other !== undefined)
        if (!permit) continue
        const given = { permit, own: other!, at: clock.now(), wallAt: readWall(), n }
        held.push(given)
        seen.push(given)
      }
      expect(broken(limits, jitter, seen), `seed ${seed}`).toEqual([])
    }
  })

  test('keep every bound with any steps of others between two steps of a decision', () => {
    let given = 0
    let interrupt = (): void => undefined
    betweenAtomics(() => interrupt())
    for (let seed = 1; seed <= 300; seed++) {
      const random = new Random(seed)
      const limits = someLimits(random, 4)
      const jitter = random.below(3) === 0 ? random.below(100) : 0
      const place = scene({ limits, jitter })
      const grants: (Given & { readonly own: Interrupted })[] = []
      const crowd = new Crowd(place, random, {
        size: 4,
        pauses: 1 / 3,
        pause: () => random.fraction() * [1, 100, 700][random.below(3)]!,
        act: own => {
          const back = grants.findLast(one => one.own === own)
          if (random.below(4) === 0 && back) {
            grants.splice(grants.indexOf(back), 1)
            own.while(() => back.permit.refund())
            return
          }
          const n = 1 + random.below(Math.min(...limits.map(({ limit }) => limit)))
          const permit = own.while(limiter => limiter.tryAcquire(n))
          if (permit) grants.push({ permit, at: own.readAt, wallAt: own.wallReadAt, n, own })
        },
      })
      interrupt = () => crowd.sometimes()
      for (let step = 0; step < 60; step++) {
        place.clock.freeze(random.fraction() * 150)
        crowd.act()
      }
      interrupt = () => undefined
      grants.sort((one, other) => one.at - other.at)
      given += grants.length
      expect(broken(limits, jitter, grants), `seed ${seed}: ${JSON.stringify({ limits, jitter })}`).toEqual(
        [],
      )
    }
    expect(given).toBeGreaterThan(500)
  })

  test('give all that the limits allow to the waiters, in their order', async () => {
    for (let seed = 1; seed <= 25; seed++) {
      const random = new Random(seed)
      const limits = someLimits(random)
      const most = Math.min(...limits.map(({ limit }) => limit))
      const { clock, thread, readWall } = scene({ limits })
      const shared = thread()
      const local = new LocalLimiter(checkedOptions({ limits }), clock, readWall)
      const served: [number, number][][] = [[], []]
      const all = Array.from({ length: 30 }, (_, index) => {
        const n = 1 + random.below(most)
        return [shared, local].map((limiter, which) =>
          limiter.acquire(n).then(() => served[which]!.push([index, clock.now() - START])),
        )
      })
      await pass(clock, 300_000)
      await Promise.all(all.flat())
      served[0]!.forEach(([index, at], place) => {
        expect(index, `seed ${seed}`).toBe(place)
        // A time is rounded up for each waiter that waits for another one.
        expect(Math.abs(at - served[1]![place]![1]), `seed ${seed}`).toBeLessThan(0.1)
      })
    }
  })

  test('serve callers of several threads in the order in which they came', async () => {
    for (const window of ['sliding', 'calendar', 'smooth'] as const) {
      const { clock, thread } = scene({ limit: 6, per: 120, window })
      const threads = [thread(), thread(), thread()]
      const order: number[] = []
      // The callers come in runs of different lengths, so that a thread has many callers before others have their
      // first.
      const callers = Array.from({ length: 24 }, (_, index) =>
        threads[Math.floor(index / (1 + (index % 4))) % 3]!.acquire().then(() => order.push(index)),
      )
      await pass(clock, 5000)
      await Promise.all(callers)
      // Callers whose turns come at the same time may be served in any order.
      const together = window === 'smooth' ? 1 : 6
      const runs = Array.from({ length: 24 / together }, (_, run) =>
        order.slice(together * run, together * (run + 1)).sort((a, b) => a - b),
      )
      expect(runs.flat()).toEqual(callers.map((_, index) => index))
    }
  })
})

describe('a calendar that threads share', () => {
  test('has the days of a time zone in every thread, that with 23 hours too', () => {
    const night = Date.UTC(2026, 2, 28, 22, 30)
    const limits = [{ limit: 2, per: '1d', window: 'calendar', timeZone: 'Europe/Berlin' }] as const
    const { clock, thread } = scene({ limits }, night)
    const [one, other] = [thread(), thread()]
    expect(one.tryAcquire(2)).toBeDefined()
    expect(other.explain()).toMatchObject({ readyIn: 1_800_000 })
    clock.advance(1_800_000)
    expect(other.tryAcquire(2)).toBeDefined()
    expect(one.explain()).toMatchObject({ readyIn: 23 * 3_600_000 })
    expect(one.explain(2).readyIn).toBe(23 * 3_600_000)
  })

  test('takes the period for used up that a clock shows which was set back, in every thread', () => {
    const { clock, wall, thread } = scene({ limit: 2, per: '1s', window: 'calendar' })
    const [one, other] = [thread(), thread()]
    expect(one.tryAcquire()).toBeDefined()
    wall.offset -= 3_600_000
    // One thread has seen the change of the clock. The other has never seen the time before it.
    expect(other.tryAcquire()).toBeUndefined()
    expect(one.tryAcquire()).toBeUndefined()
    expect(one.explain()).toMatchObject({ readyIn: 1000, limits: [{ remaining: 0, resetIn: 1000 }] })
    clock.advance(1000)
    expect(one.tryAcquire(2)).toBeDefined()
    expect(other.tryAcquire()).toBeUndefined()
  })

  test('is not disturbed by a thread that stood still at any step while it began a period', () => {
    let step = 0
    let task: (() => void) | undefined
    betweenAtomics(() => {
      if (step-- === 0) task?.()
    })
    for (let stop = 0; stop < 30; stop++) {
      const { clock, thread } = scene({ limit: 1, per: '1s', window: 'calendar' })
      const [slow, other] = [thread(), thread()]
      const given: boolean[] = []
      task = () => {
        task = undefined
        for (let period = 0; period < 3; period++) {
          clock.advance(1000)
          given.push(other.tryAcquire() !== undefined)
        }
        clock.advance(100)
      }
      step = stop
      const late = slow.tryAcquire() !== undefined
      task = undefined
      expect([late, ...given].filter(Boolean).length, `stop ${stop}`).toBeLessThanOrEqual(4)
      // In the last period, one caller got the only permit, no matter which caller asks next.
      expect(thread().tryAcquire(), `stop ${stop}`).toBeUndefined()
      clock.advance(1000)
      expect(thread().tryAcquire(), `stop ${stop}`).toBeDefined()
    }
  })

  test('does not need the thread that was ended while it began a period', () => {
    for (let reading = 1; reading <= 6; reading++) {
      const { clock, readWall, handle, thread } = scene({ limit: 2, per: '1s', window: 'calendar' })
      const one = thread()
      expect(one.tryAcquire(2)).toBeDefined()
      clock.advance(1000)
      let readings = 0
      const ended = new Interrupted(handle, clock, readWall, () => {
        if (++readings === reading) throw new Error('ended')
      })
      expect(() => ended.while(limiter => limiter.tryAcquire(2))).toThrow('ended')
      // The permits that the thread had claimed are lost for at most this period.
      one.tryAcquire()
      clock.advance(500)
      one.tryAcquire()
      clock.advance(500)
      one.tryAcquire()
      clock.advance(1000)
      expect(one.tryAcquire(2), `reading ${reading}`).toBeDefined()
      expect(one.tryAcquire()).toBeUndefined()
    }
  })
})

describe('even spacing that threads share', () => {
  test.each([127, 128, 129, 256])(
    'counts a permit for %i calls from the moment at which it is claimed',
    n => {
      let interrupt = (): void => undefined
      betweenAtomics(() => interrupt())
      for (let moment = 0; moment < 2000; moment += 13) {
        const { clock, readWall, handle } = scene({ limit: 1024, per: '1s', window: 'smooth' })
        const [one, other] = [0, 1].map(() => new Interrupted(handle, clock, readWall, () => undefined)) as [
          Interrupted,
          Interrupted,
        ]
        // Publishes the spacing first.
        expect(one.while(limiter => limiter.tryAcquire())).toBeDefined()
        clock.advance(10)
        let steps = 0
        let between: Permit | undefined
        interrupt = () => {
          if (steps++ === moment) between = other.while(limiter => limiter.tryAcquire())
        }
        const permit = one.while(limiter => limiter.tryAcquire(n))
        interrupt = () => undefined
        expect([permit, between].filter(Boolean), `moment ${moment}`).toHaveLength(1)
        if (!permit) continue
        clock.advance(1)
        expect(other.while(limiter => limiter.tryAcquire())).toBeUndefined()
      }
    },
  )

  test('admits no later caller while the first waiter is late', async () => {
    const { clock, thread } = scene({ limit: 10, per: '1s', window: 'smooth' })
    const [one, other] = [thread(), thread()]
    expect(one.tryAcquire()).toBeDefined()
    const waiting = one.acquire()
    await settled()
    // The thread of the first waiter stalls.
    clock.freeze(250)
    expect(other.tryAcquire()).toBeUndefined()
    clock.advance(0)
    await waiting
  })

  test('continues soon when a thread was ended before it wrote what it had claimed', () => {
    const { clock, handle, thread } = scene({ limit: 4, per: '1m', window: 'smooth' })
    const one = thread()
    expect(new SharedRing(handle.ring, 150).claim(0, 2)).toBe(true)
    expect(one.tryAcquire()).toBeUndefined()
    clock.advance(200)
    expect(one.tryAcquire()).toBeUndefined()
    expect(one.tryAcquire()).toBeUndefined()
    clock.advance(30_001)
    expect(one.tryAcquire()).toBeDefined()
  })
})

test('grants of several that are not written are written by others, whichever is looked at first', () => {
  const { clock, handle, thread } = scene({ limit: 2, per: '1s' })
  const one = thread()
  new SharedRing(handle.ring, 150).claim(0, 2)
  for (let look = 0; look < 4; look++) {
    expect(one.tryAcquire(2)).toBeUndefined()
    clock.advance(300)
  }
  clock.advance(1000)
  expect(one.tryAcquire(2)).toBeDefined()
})

/** Calls `task` before each access to shared memory. */
function betweenAtomics(task: () => void): void {
  const { load, store, compareExchange, sub } = Atomics
  // Avoids spies, which would keep the arguments of millions of calls.
  const interrupted =
    <Arguments extends unknown[], Result>(access: (...args: Arguments) => Result) =>
    (...args: Arguments): Result => {
      task()
      return access(...args)
    }
  const replaced = {
    load: interrupted(load),
    store: interrupted(store),
    compareExchange: interrupted(compareExchange),
    sub: interrupted(sub),
  }
  vi.stubGlobal('Atomics', Object.assign(Object.create(Atomics) as typeof Atomics, replaced))
}

/** A thread that the test interrupts at each reading of a clock. */
class Interrupted implements Clock {
  busy = false
  /** Its last reading of each clock. */
  readAt = 0
  wallReadAt = 0
  readonly #clock: VirtualClock
  readonly #between: () => void
  readonly #limiter: SharedLimiter

  constructor(
    handle: SharedLimiter['handle'],
    clock: VirtualClock,
    readWall: () => number,
    between: () => void,
  ) {
    this.#clock = clock
    this.#between = between
    this.#limiter = new SharedLimiter(handle, this, () => {
      between()
      return (this.wallReadAt = readWall())
    })
  }

  now(): number {
    this.#between()
    return (this.readAt = this.#clock.now())
  }

  after(delay: number, task: () => void): Timer {
    return this.#clock.after(delay, task)
  }

  /** Runs a task with the limiter of this thread. The thread is busy meanwhile. */
  while<T>(task: (limiter: SharedLimiter) => T): T {
    this.busy = true
    try {
      return task(this.#limiter)
    } finally {
      this.busy = false
    }
  }
}

/** Threads on one place. Between two steps of one thread, others may continue and time may pass. */
class Crowd {
  readonly #clock: VirtualClock
  readonly #random: Random
  readonly #life: CrowdLife
  readonly #threads: readonly Interrupted[]
  #depth = 0

  constructor({ clock, readWall, handle }: ReturnType<typeof scene>, random: Random, life: CrowdLife) {
    this.#clock = clock
    this.#random = random
    this.#life = life
    const between = (): void => this.#between()
    this.#threads = Array.from({ length: life.size }, () => new Interrupted(handle, clock, readWall, between))
  }

  /** Lets one of the idle threads act. */
  act(): void {
    const idle = this.#threads.filter(({ busy }) => !busy)
    if (idle.length > 0) this.#life.act(idle[this.#random.below(idle.length)]!)
  }

  /** Occasionally lets others continue. Call it between two steps. */
  sometimes(): void {
    if (this.#random.below(20) === 0) this.#between()
  }

  #between(): void {
    if (this.#depth >= 3) return
    this.#depth++
    while (this.#random.below(3) === 0) {
      if (this.#random.fraction() < this.#life.pauses) this.#clock.freeze(this.#life.pause())
      else this.act()
    }
    this.#depth--
  }
}

/**
 * A crowd: its size, the probability and the durations of pauses of all threads, in milliseconds, and the work of one
 * thread.
 */
interface CrowdLife {
  readonly size: number
  readonly pauses: number
  readonly pause: () => number
  readonly act: (own: Interrupted) => void
}
