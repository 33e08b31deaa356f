import { describe, expect, test } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import { BusyError, TimedOutError } from '../../../src/base/errors.js'
import { limiter } from '../../../src/limits/local/local-limiter.js'
import type { AcquireOptions, LimiterOptions } from '../../../src/limits/limit-options.js'
import type { BoxLimiterOptions } from '../../../src/limits/remote/box-limiter-options.js'
import { sharedLimiter } from '../../../src/limits/threads/shared-limiter.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { pass, settled } from '../../support/passing.js'
import { Server } from './deciding-server.js'
import { DistantBox } from './distant-box.js'
import { NaiveCount } from './naive-count.js'

const MINUTE = 60_000

/** A limiter of this process, or of a box. */
interface Acquiring {
  acquire(n?: number, options?: AcquireOptions): Promise<unknown>
}

/** Some limiters that share one limit, and what their callers get. */
class Scene {
  readonly count = new NaiveCount()
  /** Number of permits of each tenant. */
  readonly given: Record<string, number> = {}

  constructor(
    readonly clock: VirtualClock,
    readonly limiters: readonly Acquiring[],
  ) {}

  static local(options: LimiterOptions): Scene {
    const clock = new VirtualClock()
    return new Scene(clock, [limiter({ ...options, clock })])
  }

  /** Boxes with these round trips, in milliseconds. */
  static boxes(options: BoxLimiterOptions, roundTrips: readonly number[]): Scene {
    const clock = new VirtualClock(5000)
    const server = new Server(clock)
    return new Scene(
      clock,
      roundTrips.map(trip => new DistantBox(clock, server, trip, options).limiter),
    )
  }

  /** Starts callers that acquire one permit after another. */
  work(at: number, callers: number, options: AcquireOptions, n = 1): void {
    const call = async (): Promise<void> => {
      await this.limiters[at]!.acquire(n, options)
      this.count.add(this.clock.now(), n)
      const tenant = options.tenant ?? '-'
      this.given[tenant] = (this.given[tenant] ?? 0) + n
      return call()
    }
    for (; callers > 0; callers--) void call()
  }

  /** Returns what each tenant gets in a time. */
  async during(duration: number): Promise<Record<string, number>> {
    const before = { ...this.given }
    await pass(this.clock, duration)
    const all = Object.entries(this.given).map(([tenant, given]) => [tenant, given - (before[tenant] ?? 0)])
    return Object.fromEntries(all) as Record<string, number>
  }

  /**
   * Lets 20 tenants call once a second each, at random times and limiters, for a minute. Returns the wait of the
   * 99th percent of their calls, in milliseconds.
   */
  async occasional(): Promise<number> {
    const random = new Random(1)
    const waits: number[] = []
    const call = async (tenant: string): Promise<void> => {
      const since = this.clock.now()
      await this.limiters[random.below(this.limiters.length)]!.acquire(1, { tenant })
      waits.push(this.clock.now() - since)
      this.count.add(this.clock.now(), 1)
    }
    const callSoon = (tenant: string): void => {
      const pause = -Math.log(1 - random.below(1e6) / 1e6) * 1000
      this.clock.after(pause, () => {
        void call(tenant)
        callSoon(tenant)
      })
    }
    for (let tenant = 0; tenant < 20; tenant++) callSoon(`occasional ${tenant}`)
    await pass(this.clock, MINUTE)
    return waits.sort((one, other) => one - other)[Math.floor(0.99 * waits.length)]!
  }
}

const SMOOTH = { limit: 50, per: 1000, window: 'smooth' } as const

const places: readonly (readonly [name: string, make: () => Scene])[] = [
  ['callers of this process', () => Scene.local(SMOOTH)],
  ['callers of eight boxes', () => Scene.boxes(SMOOTH, Array<number>(8).fill(2))],
  [
    'callers of eight boxes, for a limit of a minute',
    () => Scene.boxes({ ...SMOOTH, limit: 3000, per: MINUTE }, Array<number>(8).fill(2)),
  ],
]

describe.each(places)('%s', (_, make) => {
  test('wait little longer while another tenant floods the limiter, under one name or many of a group', async () => {
    const alone = await make().occasional()
    const beside = make()
    beside.work(0, 2000, { tenant: 'flood' })
    const many = make()
    for (let name = 0; name < 1000; name++) many.work(0, 2, { tenant: `flood ${name}`, group: 'flood' })
    for (const scene of [beside, many]) {
      // Each of them waits for the permit that is under way, and for one of the flood in each round.
      expect(await scene.occasional()).toBeLessThan(2 * alone + 60)
      const { total } = scene.count
      expect(total).toBeGreaterThan(0.97 * 50 * 60)
      expect(scene.count.worst(1000)).toBeLessThanOrEqual(50)
    }
  })
})

describe('tenants', () => {
  test('of a limiter of this process share by weights and by the number of permits', async () => {
    const scene = Scene.local({ limit: 20, per: 1000 })
    scene.work(0, 100, { tenant: 'one' })
    scene.work(0, 100, { tenant: 'heavy', weight: 2 })
    scene.work(0, 100, { tenant: 'large' }, 5)
    await pass(scene.clock, 5000)
    const given = await scene.during(40_000)
    expect(given['one']).toBeGreaterThan(190)
    expect(given['one']).toBeLessThan(210)
    expect(given['heavy']! / given['one']!).toBeCloseTo(2, 0)
    expect(given['large']! / given['one']!).toBeCloseTo(1, 0)
  })

  test('of several boxes share alike, wherever they are', async () => {
    const scene = Scene.boxes({ limit: 20, per: 1000 }, [2, 2, 2])
    for (const tenant of ['a', 'flood']) scene.work(0, 60, { tenant })
    for (const tenant of ['a', 'b', 'c', 'flood']) scene.work(1, 60, { tenant })
    scene.work(2, 60, { tenant: 'c' })
    await pass(scene.clock, 5000)
    const given = Object.values(await scene.during(MINUTE))
    expect(given).toHaveLength(4)
    for (const each of given) {
      expect(each).toBeGreaterThan(0.9 * 300)
      expect(each).toBeLessThan(1.1 * 300)
    }
    expect(scene.count.worst(1000)).toBeLessThanOrEqual(20)
  })

  test.each([
    ['a near box', 2, 2],
    ['a far box', 400, 2],
    ['the other box, which is far', 2, 400],
  ])('share although permits are rarer than requests, with one tenant in %s', async (_, first, second) => {
    for (const per of [5000, 12_500]) {
      const scene = Scene.boxes({ limit: 50, per, window: 'smooth' }, [first, second])
      scene.work(0, 10, { tenant: 'in both' })
      for (const tenant of ['in both', 'a', 'b']) scene.work(1, 10, { tenant })
      await pass(scene.clock, per)
      const given = Object.values(await scene.during(10 * per))
      expect(given).toHaveLength(3)
      for (const each of given) {
        expect(each).toBeGreaterThan(0.8 * (500 / 3))
        expect(each).toBeLessThan(1.2 * (500 / 3))
      }
    }
  })

  test('of a far box get half of their share at least', async () => {
    const scene = Scene.boxes({ limit: 20, per: 1000 }, [2, 400])
    scene.work(0, 60, { tenant: 'near' })
    for (const tenant of ['a', 'b', 'c']) scene.work(1, 60, { tenant })
    await pass(scene.clock, 5000)
    const given = await scene.during(MINUTE)
    for (const tenant of ['a', 'b', 'c']) expect(given[tenant]).toBeGreaterThan(150)
    // Each permit of the far box is away for at most 1.4 s.
    expect(scene.count.total / 65 / 20).toBeGreaterThan(0.7)
  })

  test('beside callers without a tenant count as many', async () => {
    const scene = Scene.boxes({ limit: 20, per: 1000 }, [2, 2])
    scene.work(0, 60, {})
    scene.work(1, 60, { tenant: 'a' })
    scene.work(1, 60, { tenant: 'b' })
    await pass(scene.clock, 5000)
    for (const each of Object.values(await scene.during(MINUTE))) {
      expect(each).toBeGreaterThan(0.9 * 400)
      expect(each).toBeLessThan(1.1 * 400)
    }
  })

  test('that are alone get everything', async () => {
    for (const scene of [
      Scene.local({ limit: 20, per: 1000 }),
      Scene.boxes({ limit: 20, per: 1000 }, [2, 2]),
    ]) {
      scene.work(0, 100, { tenant: 'alone', weight: 0.001, group: 'group' })
      await pass(scene.clock, 3000)
      expect((await scene.during(20_000))['alone']).toBeGreaterThan(0.98 * 400)
    }
  })

  test('take the turns of one that leaves with 10,000 waiters', async () => {
    const { clock, limiters } = Scene.local({ limit: 10, per: 1000 })
    const [it] = limiters
    const controller = new AbortController()
    const leaving = Array.from({ length: 10_000 }, () =>
      it!.acquire(1, { tenant: 'leaving', signal: controller.signal }).then(
        () => 1,
        () => 0,
      ),
    )
    const staying = Array.from({ length: 20 }, () => it!.acquire(1, { tenant: 'staying' }))
    await pass(clock, 100)
    controller.abort()
    await pass(clock, 2100)
    await Promise.all(staying)
    const given = await Promise.all(leaving)
    expect(given.filter(Boolean).length).toBe(5)
  })

  test('whose turn comes earlier, because of a caller that left or came, have it at once', async () => {
    for (const change of ['abort', 'weight'] as const) {
      const clock = new VirtualClock()
      const it = limiter({ limit: 100, per: '100s', clock })
      await it.acquire(99)
      const controller = new AbortController()
      const order: string[] = []
      const ask = (name: string, n: number, options: AcquireOptions) =>
        it.acquire(n, options).then(
          () => order.push(name),
          () => undefined,
        )
      if (change === 'abort') {
        void ask('large', 100, { tenant: 'a', signal: controller.signal })
        void ask('small', 1, { tenant: 'a' })
        void ask('other', 50, { tenant: 'b' })
      } else {
        void ask('other', 50, { tenant: 'b' })
        void ask('small', 1, { tenant: 'a', weight: 0.01 })
      }
      await settled()
      expect(order).toEqual([])
      if (change === 'abort') controller.abort()
      else void ask('late', 50, { tenant: 'b', weight: 0.001 })
      await settled()
      expect(order).toEqual(['small'])
      await it.close()
    }
  })

  test('with names of any length are told apart', async () => {
    const scene = Scene.boxes({ limit: 20, per: 1000 }, [2, 2])
    const long = 'x'.repeat(500)
    scene.work(0, 60, { tenant: `${long} 1` })
    scene.work(0, 60, { tenant: 'short' })
    scene.work(1, 60, { tenant: `${long} 2` })
    await pass(scene.clock, 5000)
    for (const each of Object.values(await scene.during(MINUTE))) {
      expect(each).toBeGreaterThan(0.9 * 400)
      expect(each).toBeLessThan(1.1 * 400)
    }
  })

  test('are not overtaken by a caller that does not wait', async () => {
    const { clock, limiters } = Scene.boxes({ limit: 3, per: 1000 }, [2])
    const [it] = limiters
    let given = 0
    for (let left = 5; left > 0; left--) void it!.acquire(1, { tenant: 'a' }).then(() => given++)
    const tried = it!.acquire(1, { wait: 0 }).catch((error: unknown) => error)
    await pass(clock, 100)
    expect(await tried).toBeInstanceOf(BusyError)
    expect(given).toBe(3)
  })

  test('each have a queue of their own, beside the one for all', async () => {
    const it = limiter({ limit: 1, per: 1000, queue: 4, tenantQueue: 2, clock: new VirtualClock() })
    await it.acquire(1, { tenant: 'flood' })
    const call = (tenant: string | undefined) =>
      it
        .acquire(1, { tenant, group: tenant?.startsWith('flood') ? 'group' : undefined })
        .catch((error: unknown) => (error as Error).message)
    const outcomes: unknown[] = []
    for (const tenant of ['flood 1', 'flood 2', 'flood 3', 'other', undefined, 'third'])
      void call(tenant).then(outcome => outcomes.push(outcome))
    await new Promise(resolve => setImmediate(resolve))
    expect(outcomes.sort()).toEqual([
      'no permit of a limiter of this process is available now, and 2 callers are waiting for group group, the maximum of its tenantQueue',
      'no permit of a limiter of this process is available now, and 4 callers are waiting, the maximum of its queue',
    ])
    const closed = it.close()
    await closed
    expect(outcomes).toHaveLength(6)
  })

  test('of a box each have a queue of their own, too', async () => {
    const { clock, limiters } = Scene.boxes({ limit: 1, per: 1000, tenantQueue: 2 }, [2])
    const [it] = limiters
    void it!.acquire()
    await pass(clock, 50)
    const outcomes = ['flood', 'flood', 'flood', 'other'].map(tenant =>
      it!.acquire(1, { tenant }).then(
        () => 'permit',
        (error: unknown) => (error instanceof BusyError ? 'busy' : error),
      ),
    )
    await pass(clock, 5000)
    expect(await Promise.all(outcomes)).toEqual(['permit', 'permit', 'busy', 'permit'])
  })

  test('learn their place among callers that want several permits', () => {
    const it = limiter({ limit: 10, per: MINUTE, clock: new VirtualClock() })
    it.tryAcquire(10)
    for (const tenant of ['a', 'a', 'b', 'b']) void it.acquire(4, { tenant })
    expect(it.explain(4, { tenant: 'c' })).toMatchObject({ place: 2, readyIn: 2 * MINUTE })
    expect(it.explain(4, { tenant: 'a' }).place).toBe(4)
  })

  test('learn their place and their time, and are refused early if these are too late', async () => {
    const clock = new VirtualClock()
    const it = limiter({ limit: 1, per: 1000, clock })
    await it.acquire()
    for (let left = 100; left > 0; left--) void it.acquire(1, { tenant: 'flood' })
    await new Promise(resolve => setImmediate(resolve))
    expect(it.explain(1, { tenant: 'flood' })).toMatchObject({ place: 100, readyIn: 101_000 })
    expect(it.explain(1, { tenant: 'other' })).toMatchObject({ place: 1, readyIn: 2000 })
    await expect(it.acquire(1, { tenant: 'flood', wait: '10s' })).rejects.toThrow(TimedOutError)
    const other = it.acquire(1, { tenant: 'other', wait: 2000 })
    await pass(clock, 2000)
    await other
    expect(it.decide().permit).toBeUndefined()
  })

  test('have names and weights that are checked', async () => {
    const it = limiter({ limit: 10, per: 1000 })
    const messages = await Promise.all(
      [
        { tenant: '' },
        { tenant: 'nul\0' },
        { tenant: 'a', weight: 0 },
        { tenant: 'a', weight: Number.NaN },
        { tenant: 'a', weight: '1' },
        { tenant: 'a', group: 5 },
        { weight: 2 },
        { group: 'g' },
      ].map(options =>
        it.acquire(1, options as AcquireOptions).catch((error: unknown) => (error as Error).message),
      ),
    )
    expect(messages).toEqual([
      expect.stringContaining('tenant must be a string of 1 to'),
      expect.stringContaining('tenant must be a string of 1 to'),
      'weight must be a number from 0.001 to 1000, not 0',
      'weight must be a number from 0.001 to 1000, not NaN',
      'weight must be a number from 0.001 to 1000, not "1"',
      expect.stringContaining('group must be a string of 1 to'),
      'weight needs tenant',
      'group needs tenant',
    ])
    for (const tenant of ['__proto__', 'constructor', '\u{1F600}', 'tenant ', ' ', 'x'.repeat(500)])
      await it.acquire(1, { tenant, group: tenant })
  })

  test('need a limiter that threads do not share', async () => {
    const it = sharedLimiter({ limit: 10, per: 1000 })
    await expect(it.acquire(1, { tenant: 'a' })).rejects.toThrow(
      'tenant needs a limiter of one thread or of a box, not one that threads share',
    )
    await it.close()
  })
})
