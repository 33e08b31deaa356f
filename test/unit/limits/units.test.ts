import { describe, expect, test } from 'vitest'
import { VirtualClock } from '../../../src/base/clock.js'
import { InvalidArgumentError } from '../../../src/base/errors.js'
import type { Costs } from '../../../src/limits/costs.js'
import {
  checkedOptions,
  rulesOf,
  type AcquireOptions,
  type LimiterOptions,
  type LimitOptions,
} from '../../../src/limits/limit-options.js'
import { limiter } from '../../../src/limits/local/local-limiter.js'
import type { Permit } from '../../../src/limits/permit.js'
import type { BoxLimiterOptions } from '../../../src/limits/remote/box-limiter-options.js'
import { sharedLimiter } from '../../../src/limits/threads/shared-limiter.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { pass, settled } from '../../support/passing.js'
import { Server } from './deciding-server.js'
import { DistantBox } from './distant-box.js'
import { NaiveCount } from './naive-count.js'

const MINUTE = 60_000
const BOTH = {
  limits: [
    { limit: 50, per: '1m' },
    { limit: 1000, per: '1m', unit: 'tokens' },
  ],
} as const

interface Acquiring {
  acquire(cost?: Costs, options?: AcquireOptions): Promise<Permit>
}

function local(options: LimiterOptions = BOTH) {
  const clock = new VirtualClock()
  return { clock, limiter: limiter({ ...options, clock }) }
}

function boxes(options: BoxLimiterOptions, roundTrips: readonly number[]) {
  const clock = new VirtualClock(5000)
  const server = new Server(clock)
  return { clock, all: roundTrips.map(trip => new DistantBox(clock, server, trip, options)) }
}

/** Returns the outcome of a promise so far. */
async function outcome<T>(promise: Promise<T>): Promise<T | 'pending'> {
  let known: T | 'pending' = 'pending'
  void promise.then(value => (known = value))
  await settled()
  return known
}

describe('a limiter with several units', () => {
  test('counts each of them by itself', async () => {
    const { clock, limiter: provider } = local()
    expect(provider.tryAcquire({ tokens: 900 })).toBeDefined()
    expect(provider.tryAcquire({ tokens: 101 })).toBeUndefined()
    expect(provider.tryAcquire({ tokens: 100, calls: 49 })).toBeDefined()
    expect(provider.tryAcquire({ tokens: 0 })).toBeUndefined()
    const { binding, limits, readyIn } = provider.explain({ tokens: 300 })
    expect(binding).toMatchObject({ limit: 50 })
    expect(limits).toMatchObject([{ remaining: 0 }, { unit: 'tokens', remaining: 0 }])
    expect(readyIn).toBe(MINUTE)
    await pass(clock, MINUTE)
    expect(provider.tryAcquire({ tokens: 1000 })).toBeDefined()
    expect(provider.explain({ tokens: 1 }).binding).toMatchObject({ unit: 'tokens', limit: 1000 })
  })

  test('requires an amount of each, which a limit can grant', () => {
    const { limiter: provider } = local()
    const wrong: [unknown, string][] = [
      [undefined, 'this limiter counts tokens: pass { tokens: 100 }'],
      [400, 'this limiter counts tokens: pass { tokens: 100 }'],
      [{}, 'tokens is missing: pass { tokens: 100 }; an amount may be 0'],
      [{ tokens: 1001 }, 'tokens must be a whole number from 0 to 1000, not 1001'],
      [{ tokens: -1 }, 'tokens must be a whole number from 0 to 1000, not -1'],
      [{ tokens: 1.5 }, 'tokens must be a whole number from 0 to 1000, not 1.5'],
      [{ tokens: 1, calls: 51 }, 'calls must be a whole number from 1 to 50, not 51'],
      [{ tokens: 1, calls: 0 }, 'calls must be a whole number from 1 to 50, not 0'],
      [{ tokens: 1, bytes: 1 }, 'unknown unit "bytes"; it must be one of calls, tokens'],
      [null, 'this limiter counts tokens: pass { tokens: 100 }'],
    ]
    for (const [cost, message] of wrong) {
      expect(() => provider.tryAcquire(cost as Costs), message).toThrow(new InvalidArgumentError(message))
      expect(() => provider.explain(cost as Costs), message).toThrow(InvalidArgumentError)
    }
    const { limiter: plain } = local({ limit: 5, per: '1s' })
    expect(plain.tryAcquire({ calls: 2 })?.n).toBe(2)
    const message = 'unknown unit "tokens"; this limiter counts only calls'
    expect(() => plain.tryAcquire({ tokens: 1 })).toThrow(new InvalidArgumentError(message))
    expect(() => plain.tryAcquire()!.settle({ tokens: 1 })).toThrow(new InvalidArgumentError(message))
    expect(() => local({ limit: 1, per: 1, unit: '' })).toThrow(InvalidArgumentError)
  })

  test('is refused by threads, and in batches', () => {
    expect(() => sharedLimiter(BOTH)).toThrow('a limit that threads share counts calls, not tokens')
    expect(() => boxes({ ...BOTH, batch: 2 }, [2])).toThrow('batch must be 1 for a limit of tokens, not 2')
  })

  test('estimates the time of a caller by the amounts of those ahead of it', async () => {
    const { limiter: provider } = local()
    provider.tryAcquire({ tokens: 1000 })
    const controller = new AbortController()
    const { signal } = controller
    const leaving = provider.acquire({ tokens: 400 }, { signal }).catch(() => 'left')
    void provider.acquire({ tokens: 400 })
    expect(provider.explain({ tokens: 500 }).readyIn).toBe(2 * MINUTE)
    controller.abort()
    expect(await leaving).toBe('left')
    expect(provider.explain({ tokens: 500 }).readyIn).toBe(MINUTE)
    const { limiter: shared } = local()
    shared.tryAcquire({ tokens: 1000 })
    for (const tenant of ['a', 'b', 'b', 'b']) void shared.acquire({ tokens: 300 }, { tenant })
    expect(shared.explain({ tokens: 300 }, { tenant: 'c' })).toMatchObject({ place: 2, readyIn: MINUTE })
  })

  test('waits at the end of a period for the next one, also for an amount of 0', async () => {
    const { clock, limiter: provider } = local({
      limit: 100,
      per: 1000,
      window: 'calendar',
      unit: 'tokens',
      jitter: 100,
    })
    await pass(clock, 950)
    const waiter = provider.acquire({ tokens: 0 })
    expect(await outcome(waiter)).toBe('pending')
    await pass(clock, 50)
    expect(await outcome(waiter)).not.toBe('pending')
  })

  test('changes one of them, and rejects waiters that want more', async () => {
    const { limiter: provider } = local()
    expect(provider.tryAcquire({ tokens: 1000 })).toBeDefined()
    const waiter = provider.acquire({ tokens: 600 })
    const failed = expect(waiter).rejects.toThrow(
      'the limit of a limiter of this process was lowered to 500 while a caller waited for 600 tokens',
    )
    expect(() => provider.setLimit(500, '1m')).toThrow(
      'per and unit must be that of one of these limits: 50 calls in 60000 ms, 1000 tokens in 60000 ms; not "1m", undefined',
    )
    provider.setLimit(500, '1m', 'tokens')
    await failed
    provider.setLimit(60, undefined, 'calls')
    expect(provider.explain({ tokens: 1 }).limits).toMatchObject([{ limit: 60 }, { limit: 500 }])
  })
})

describe('a permit that is settled', () => {
  test('gives the difference to a waiter at once', async () => {
    const { limiter: provider } = local()
    const permit = provider.tryAcquire({ tokens: 1000 })!
    const waiter = provider.acquire({ tokens: 400 })
    permit.settle({ tokens: 700 })
    expect(await outcome(waiter)).toBe('pending')
    permit.release()
    permit.settle({ tokens: 600 })
    expect(await outcome(waiter)).not.toBe('pending')
    expect(provider.explain({ tokens: 0 }).limits).toMatchObject([{ remaining: 48 }, { remaining: 0 }])
  })

  test('serves a caller whose wait would be too short without it', async () => {
    const { limiter: provider } = local()
    const permit = provider.tryAcquire({ tokens: 1000 })!
    const waiter = provider.acquire({ tokens: 500 }, { wait: '1s' })
    expect(await outcome(waiter)).toBe('pending')
    permit.settle({ tokens: 500 })
    expect(await outcome(waiter)).not.toBe('pending')
  })

  test('with more than its estimate delays the next permits, and no longer than a window', async () => {
    const { clock, limiter: provider } = local()
    const permit = provider.tryAcquire({ tokens: 100 })!
    await pass(clock, 10_000)
    permit.settle({ tokens: 5000 })
    expect(provider.tryAcquire({ tokens: 0 })).toBeUndefined()
    const waiter = provider.acquire({ tokens: 1000 })
    await pass(clock, MINUTE - 1)
    expect(await outcome(waiter)).toBe('pending')
    await pass(clock, 1)
    expect(await outcome(waiter)).not.toBe('pending')
  })

  test('can be settled again, keeps units that are left out, and counts nothing after a refund', () => {
    const { limiter: provider } = local({
      limits: [...BOTH.limits, { limit: 100, per: '1m', unit: 'bytes' }],
    })
    const remaining = (): number[] =>
      provider.explain({ tokens: 0, bytes: 0 }).limits.map(limit => limit.remaining)
    const permit = provider.tryAcquire({ tokens: 500, bytes: 50 })!
    permit.settle({ tokens: 100 })
    permit.settle({ tokens: 800 })
    expect(remaining()).toEqual([49, 200, 50])
    // Only what still counts at the time of the grant comes back: 100.
    permit.settle({ tokens: 0 })
    expect(remaining()).toEqual([49, 300, 50])
    permit.settle({ tokens: 800 })
    expect(remaining()).toEqual([49, 200, 50])
    permit.settle({ bytes: 0 })
    expect(remaining()).toEqual([49, 200, 100])
    permit.refund()
    expect(remaining()).toEqual([50, 200, 100])
    permit.settle({ tokens: 1000 })
    expect(remaining()).toEqual([50, 200, 100])
    // An excess takes nothing from the permits of others when it is corrected.
    const other = provider.tryAcquire({ tokens: 150, bytes: 0 })!
    const again = provider.tryAcquire({ tokens: 10, bytes: 0 })!
    again.settle({ tokens: 60 })
    again.settle({ tokens: 0 })
    expect(remaining()[1]).toBe(0)
    other.settle({ tokens: 0 })
    expect(remaining()[1]).toBe(150)
    for (const wrong of [{ calls: 2 }, { tokens: -1 }, { tokens: NaN }, { coins: 1 }, null]) {
      expect(() => permit.settle(wrong as never)).toThrow(InvalidArgumentError)
    }
  })

  test('counts its excess although the limiter of its key was dropped', async () => {
    const { clock, limiter: all } = local({ limit: 1000, per: '1s', unit: 'tokens' })
    const permit = all.key('one').tryAcquire({ tokens: 100 })!
    await pass(clock, 5000)
    all.key('two').tryAcquire({ tokens: 1 })
    permit.settle({ tokens: 1000 })
    expect(all.key('one').explain({ tokens: 0 }).limits).toMatchObject([{ remaining: 100 }])
  })

  test('keeps its excess when another limit changes', async () => {
    const { clock, limiter: provider } = local({
      limits: [
        { limit: 50, per: '1m' },
        { limit: 1000, per: '1m', unit: 'tokens', window: 'smooth' },
      ],
    })
    const permit = provider.tryAcquire({ tokens: 100 })!
    permit.settle({ tokens: 900 })
    await pass(clock, 100)
    permit.settle({ tokens: 901 })
    const { readyIn } = provider.explain({ tokens: 50 })
    provider.setLimit(60, undefined, 'calls')
    expect(provider.explain({ tokens: 50 }).readyIn).toBe(readyIn)
  })

  test('keeps the pace of evenly spaced permits', async () => {
    const { clock, limiter: provider } = local({ limit: 6000, per: '1m', window: 'smooth', unit: 'tokens' })
    let used = 0
    const call = async (): Promise<void> => {
      const permit = await provider.acquire({ tokens: 200 })
      clock.after(300, () => permit.settle({ tokens: 50 }))
      used += 50
      return call()
    }
    for (let caller = 0; caller < 20; caller++) void call()
    await pass(clock, 10 * MINUTE)
    expect(used).toBeGreaterThan(0.97 * 60_000)
    expect(used).toBeLessThan(60_000 + 6000)
    // One that exceeds its estimate by far delays the next by a window at most.
    const over = provider.acquire({ tokens: 0 }, { priority: 1 })
    await pass(clock, 3000)
    const before = used
    ;(await over).settle({ tokens: 1_000_000 })
    await pass(clock, MINUTE)
    expect(used - before).toBeLessThan(200)
    await pass(clock, MINUTE)
    expect(used - before).toBeGreaterThan(4000)
  })

  test.each<[string, LimitOptions]>([
    ['sliding', { limit: 100, per: 1000, unit: 'tokens' }],
    ['calendar', { limit: 100, per: 1000, unit: 'tokens', window: 'calendar' }],
    ['smooth', { limit: 100, per: 1000, unit: 'tokens', window: 'smooth' }],
  ])('keeps the %s limit over random estimates and uses, and wastes none', async (kind, limit) => {
    for (let seed = 1; seed <= 20; seed++) {
      const { clock, limiter: provider } = local({ limits: [limit, { limit: 30, per: 1000 }] })
      const random = new Random(seed)
      const use = new NaiveCount()
      const tooMany: string[] = []
      const call = async (): Promise<void> => {
        const estimate = random.below(40)
        const permit = await provider.acquire({ tokens: estimate })
        const now = clock.now()
        const entry = use.add(now, estimate)
        const used = use.within(kind === 'calendar' ? (now % 1000) + 1e-9 : 1000, now)
        if (used > 100) tooMany.push(`${used} at ${now}, seed ${seed}`)
        // Never at the time of a grant.
        clock.after(random.below(300) + 0.3, () => {
          const actual = random.below(8) === 0 ? estimate + random.below(20) : random.below(estimate + 1)
          if (actual > estimate) use.add(clock.now(), actual - estimate)
          else entry.n = actual
          permit.settle({ tokens: actual })
        })
        await new Promise<void>(resolve => clock.after(random.below(50) + 0.7, resolve))
        return call()
      }
      for (let caller = 0; caller < 10; caller++) void call()
      await pass(clock, 20_000)
      expect(tooMany).toEqual([])
      const total = use.total
      expect(total, `seed ${seed}`).toBeGreaterThan(0.6 * 20 * 100)
    }
  })
})

describe('boxes that share a limiter with several units', () => {
  test('get what others settle below their estimates, and wait for what they settle above', async () => {
    const { clock, all } = boxes(BOTH, [2, 2])
    const [one, other] = [all[0]!.limiter, all[1]!.limiter]
    const acquire = async (from: Acquiring, tokens: number): Promise<Permit> => {
      const permit = from.acquire({ tokens })
      await pass(clock, 1000)
      return permit
    }
    await acquire(one, 1)
    const permit = await acquire(one, 900)
    const waiter = other.acquire({ tokens: 400 })
    await pass(clock, 1000)
    expect(await outcome(waiter)).toBe('pending')
    permit.settle({ tokens: 500 })
    await pass(clock, 1000)
    const its = (await outcome(waiter)) as Permit
    expect(its.n).toBe(1)
    its.settle({ tokens: 2000 })
    await pass(clock, 1000)
    const late = one.acquire({ tokens: 0 })
    await pass(clock, MINUTE - 3000)
    expect(await outcome(late)).toBe('pending')
    await pass(clock, 6000)
    expect(await outcome(late)).not.toBe('pending')
  })

  test.each(['sliding', 'smooth'] as const)(
    'use a %s quota although estimates are twice the use',
    async window => {
      const limits = [
        { limit: 600, per: 2000, window },
        { limit: 4000, per: 2000, unit: 'tokens', window },
      ]
      for (const tenant of [undefined, 'acme']) {
        const { clock, all } = boxes({ limits }, [2, 2])
        let used = 0
        const call = async (box: DistantBox): Promise<void> => {
          const permit = await box.limiter.acquire({ tokens: 300 }, { tenant })
          clock.after(25, () => {
            permit.settle({ tokens: 135 })
            used += 135
          })
          return call(box)
        }
        for (const box of all) for (let caller = 0; caller < 50; caller++) void call(box)
        await pass(clock, 10_000)
        expect(used).toBeGreaterThan(0.9 * 20_000)
      }
    },
  )

  test('count a unit that is new apart from calls', async () => {
    const { clock, all } = boxes({ limit: 1000, per: '1m' }, [2])
    const calls = all[0]!.limiter.acquire(900)
    await pass(clock, 100)
    await calls
    const other = new DistantBox(clock, all[0]!.server, 2, BOTH)
    const explained = other.limiter.explain({ tokens: 1 })
    await pass(clock, 100)
    expect((await explained).limits[1]).toMatchObject({ unit: 'tokens', remaining: 1000 })
  })

  test('serve a waiter at once with what another caller settles during its request', async () => {
    const { clock, all } = boxes(BOTH, [400])
    const { limiter: here } = all[0]!
    const first = here.acquire({ tokens: 1000 })
    await pass(clock, 3000)
    const waiter = here.acquire({ tokens: 100 })
    await pass(clock, 200)
    ;(await first).settle({ tokens: 500 })
    await pass(clock, 601)
    expect(await outcome(waiter)).not.toBe('pending')
  })

  test('report a settlement after an outage', async () => {
    const { clock, all } = boxes(BOTH, [2, 2])
    const [one, other] = all as [DistantBox, DistantBox]
    const permit = one.limiter.acquire({ tokens: 100 })
    await pass(clock, 100)
    one.isAway = true
    ;(await permit).settle({ tokens: 1000 })
    await pass(clock, 1000)
    one.isAway = false
    await pass(clock, 1000)
    const explained = other.limiter.explain({ tokens: 1 })
    await pass(clock, 100)
    expect((await explained).limits).toMatchObject([{ remaining: 49 }, { unit: 'tokens', remaining: 0 }])
  })

  test('keep each limit together, also with a process that counts only calls', async () => {
    const limits = [
      { limit: 40, per: 1000 },
      { limit: 400, per: 1000, unit: 'tokens' },
    ] as const
    for (let seed = 1; seed <= 5; seed++) {
      const random = new Random(seed)
      const { clock, all } = boxes({ limits }, [2, 2, 90])
      const server = all[0]!.server
      all.push(new DistantBox(clock, server, 2, { limit: 40, per: 1000 }))
      const calls = new NaiveCount()
      const tokens = new NaiveCount()
      const tooMany: string[] = []
      const call = async (box: DistantBox, isPlain: boolean): Promise<void> => {
        const estimate = isPlain ? 0 : random.below(60)
        const permit = await box.limiter.acquire(isPlain ? 1 : { tokens: estimate })
        const now = clock.now()
        calls.add(now, 1)
        const entry = tokens.add(now, estimate)
        if (calls.within(1000, now) > 40) tooMany.push(`calls at ${now}`)
        if (tokens.within(1000, now) > 400) tooMany.push(`${tokens.within(1000, now)} tokens at ${now}`)
        if (!isPlain && random.below(2) === 0) {
          await new Promise<void>(resolve => clock.after(random.below(200) + 0.3, resolve))
          entry.n = random.below(estimate + 1)
          permit.settle({ tokens: entry.n })
        }
        return call(box, isPlain)
      }
      for (const [index, box] of all.entries()) for (let i = 0; i < 8; i++) void call(box, index === 3)
      await pass(clock, 20_000)
      expect(tooMany, `seed ${seed}`).toEqual([])
      const used = calls.within(10_000, clock.now())
      expect(used, `seed ${seed}`).toBeGreaterThan(200)
    }
  })
})

test('sums of shares are exact, in whatever order they come and go', () => {
  const { costs } = rulesOf(checkedOptions(BOTH))
  const random = new Random(1)
  const shares = Array.from({ length: 1000 }, () => costs.share(costs.cost({ tokens: random.below(1000) })))
  expect(new Set(shares).size).toBeGreaterThan(400)
  const sum = shares.reduce((all, share) => all + share)
  expect(shares.sort().reduce((left, share) => left - share, sum)).toBe(0)
})

test('tenants share by the unit that each of them needs most', async () => {
  for (const { clock, one } of [local(), boxes(BOTH, [2])].map(made => ({
    clock: made.clock,
    one: 'limiter' in made ? made.limiter : made.all[0]!.limiter,
  }))) {
    const given = { few: 0, many: 0 }
    const call = async (tenant: 'few' | 'many', tokens: number): Promise<void> => {
      await (one as Acquiring).acquire({ tokens }, { tenant })
      given[tenant]++
      return call(tenant, tokens)
    }
    for (let caller = 0; caller < 40; caller++) {
      // 1000 tokens and 50 calls a minute: both take a twentieth of what they need most in 10 s.
      void call('few', 100)
      void call('many', 4)
    }
    await pass(clock, 20 * MINUTE)
    // Each gets the same part of its unit: of n calls with 100 tokens and m with 4, 100n + 4m = 1000 and n/10 = m/50.
    expect(given.many / given.few).toBeGreaterThan(4)
    expect(given.many / given.few).toBeLessThan(6)
  }
})
