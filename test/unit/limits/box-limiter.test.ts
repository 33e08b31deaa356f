import { describe, expect, test } from 'vitest'
import { VirtualClock, type Clock, type Timer } from '../../../src/base/clock.js'
import type { PermitReservation } from '../../../src/engine/contract.js'
import { TimedOutError, UnavailableError } from '../../../src/base/errors.js'
import { BoxLimiters, type BoxLimiter } from '../../../src/limits/remote/box-limiter.js'
import type { BoxLimiterOptions } from '../../../src/limits/remote/box-limiter-options.js'
import { ClockOffset } from '../../../src/limits/remote/pace.js'
import type { ReservePermits } from '../../../src/engine/limits/reservation.js'
import { memoryInUse } from '../../support/heap.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { lock, Server } from './deciding-server.js'
import { DistantBox } from './distant-box.js'
import { NaiveCount } from './naive-count.js'
import { pass } from '../../support/passing.js'

/** The clock of a busy machine: time passes between any two readings, and timers come up to a millisecond early. */
class RestlessClock implements Clock {
  readonly #clock: VirtualClock
  readonly #random: Random

  constructor(clock: VirtualClock, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  now(): number {
    this.#clock.freeze(this.#random.below(50) === 0 ? this.#random.below(700) : this.#random.fraction() / 2)
    return this.#clock.now()
  }

  after(delay: number, task: () => void): Timer {
    return this.#clock.after(delay - this.#random.fraction(), task)
  }
}

describe('whenever time passes', () => {
  for (const onUnavailable of ['error', 'closed', 'share'] as const) {
    test(`no waiter is forgotten: onUnavailable ${onUnavailable}`, async () => {
      for (let seed = 1; seed <= 150; seed++) {
        const random = new Random(seed)
        const virtual = new VirtualClock(5000)
        const clock = new RestlessClock(virtual, random)
        const server = new Server(virtual)
        let awayUntil = 5000 + random.below(3) * 400
        const ask = async (request: ReservePermits): Promise<PermitReservation> => {
          const earliest = clock.now()
          if (earliest < awayUntil) throw new UnavailableError('it is away')
          const reserved = server.decide(request)
          return { reserved, earliest, latest: clock.now() }
        }
        const options = {
          limit: 2,
          per: 2000,
          onUnavailable,
          ...(onUnavailable === 'share' && { shares: 2 }),
        }
        const box = new BoxLimiters({ clock, engine: 'test:', session: 'one', ask, lock })
        const limiter = box.limiter('api', options)
        let open = 0
        const call = async (wait: number | undefined): Promise<void> => {
          open++
          await limiter.acquire(1, { wait }).catch(() => undefined)
          open--
        }
        for (let step = 0; step < 12; step++) {
          void call([undefined, undefined, 0, 50, 3000][random.below(5)])
          if (random.below(6) === 0) awayUntil = virtual.now() + random.below(1500)
          await pass(virtual, random.below(3) === 0 ? random.below(1200) : 0)
        }
        await pass(virtual, 60_000)
        expect(open, `seed ${seed}`).toBe(0)
      }
    })
  }
})

describe('callers of one process', () => {
  /** Creates a limiter whose engine answers at once, and records the name and time of each permit. */
  function scene(options: BoxLimiterOptions) {
    const clock = new VirtualClock()
    const server = new Server(clock)
    const asked: ReservePermits[] = []
    const ask = (request: ReservePermits): PermitReservation => {
      const now = clock.now()
      asked.push(request)
      return { reserved: server.decide(request), earliest: now, latest: now }
    }
    const box = new BoxLimiters({ clock, engine: 'test:', session: 'one', ask, lock })
    const limiter = box.limiter('api', options)
    const [other, third] = ['two', 'three'].map(session =>
      new BoxLimiters({ clock, engine: 'test:', session, ask, lock }).limiter('api', options),
    ) as [BoxLimiter, BoxLimiter]
    const notes: string[] = []
    const call = (name: string, priority = 0): void =>
      void limiter.acquire(1, { priority }).then(
        () => notes.push(`${name} ${clock.now()}`),
        (error: unknown) => notes.push(`${name} ${(error as Error).name}`),
      )
    return { clock, box, limiter, other, third, notes, call, asked }
  }

  test('share one call; callers during it share the next', async () => {
    const clock = new VirtualClock()
    const server = new Server(clock)
    const asked: number[] = []
    const ask = async (request: ReservePermits): Promise<PermitReservation> => {
      asked.push(request.units.length)
      const earliest = clock.now()
      await new Promise<void>(resolve => clock.after(3, resolve))
      return { reserved: server.decide(request), earliest, latest: clock.now() }
    }
    const limiter = new BoxLimiters({ clock, engine: 'test:', session: 'one', ask, lock }).limiter('api', {
      limit: 1000,
      per: 1000,
    })
    let given = 0
    const callers = (count: number): void => {
      for (let caller = 0; caller < count; caller++) void limiter.acquire().then(() => given++)
    }
    callers(1)
    await pass(clock, 10)
    // With its first call, a process measures the latency.
    expect([asked.splice(0), given]).toEqual([[0, 1], 1])
    given = 0
    callers(64)
    await pass(clock, 1)
    expect(asked).toEqual([64])
    for (const count of [10, 20, 6]) {
      callers(count)
      await pass(clock, 0.5)
    }
    expect(asked).toEqual([64])
    await pass(clock, 20)
    expect(asked).toEqual([64, 36])
    expect(given).toBe(100)
  })

  test('cost nothing once they are gone: no timer, no call, and no memory for their names', async () => {
    const { clock, limiter, asked } = scene({ limit: 2, per: 1000 })
    const before = (await memoryInUse()).heapUsed
    for (let key = 0; key < 5000; key++) await limiter.key(`key ${key}`).tryAcquire()
    const during = (await memoryInUse()).heapUsed
    asked.length = 0
    await pass(clock, 40_000)
    expect(asked).toEqual([])
    expect((await memoryInUse()).heapUsed - before).toBeLessThan((during - before) / 4)
    expect(clock.nextAt()).toBeUndefined()
  })

  for (const window of ['sliding', 'smooth', 'calendar'] as const) {
    test(`${window}: what is given back moves up the waiters of other boxes, in their order`, async () => {
      const { clock, limiter, other } = scene({ limit: 10, per: 1000, window })
      const controller = new AbortController()
      const times: number[] = []
      const served: number[] = []
      const count = new NaiveCount()
      for (let caller = 0; caller < 22; caller++) {
        for (const one of [limiter, limiter, other]) {
          const signal = one === limiter ? controller.signal : undefined
          const call = one.acquire(1, { signal }).then(() => {
            count.add(clock.now(), 1)
            if (one === limiter) return
            times.push(clock.now())
            served.push(caller)
          })
          call.catch(() => undefined)
        }
        await pass(clock, 1)
      }
      await pass(clock, 600)
      controller.abort()
      await pass(clock, 8000)
      expect(served).toEqual(Array.from({ length: 22 }, (_, caller) => caller))
      if (window !== 'calendar') expect(count.worst(1000)).toBeLessThanOrEqual(10)
      // If all 66 callers had stayed, the last one would come after six seconds.
      expect(times.at(-1)).toBeLessThan(window === 'smooth' ? 3000 : 2300)
    })
  }

  test('a close drains for at most the given time', async () => {
    const { clock, limiter, notes, call } = scene({ limit: 1, per: 100 })
    for (const name of 'abc') call(name)
    void limiter.close({ drain: 150 })
    await pass(clock, 1000)
    expect(notes).toEqual(['a 0', 'b 105', 'c ClosedError'])
  })
})

test('a clock is known better the quicker an answer is, and measured again when it was set', () => {
  const offset = new ClockOffset()
  expect(offset.learn(1000, 10, 30)).toEqual([10, 30])
  // Both clocks are 10 ms later, and this measurement is more precise.
  expect(offset.learn(1010, 24, 26)).toEqual([24, 26])
  const [earliest, latest] = offset.learn(1110, 100, 160)
  expect(earliest).toBeCloseTo(124 - 0.134)
  expect(latest).toBeCloseTo(126 + 0.134)
  expect(offset.learn(5000, 200, 210)).toEqual([200, 210])
})

test('of more tries at once than there are permits, fetched together, as many as there are succeed', async () => {
  const clock = new VirtualClock(5000)
  const server = new Server(clock)
  const box = new DistantBox(clock, server, 2, { limit: 30, per: 1000, batch: 8 })
  const first = box.limiter.tryAcquire()
  await pass(clock, 10)
  expect(await first).toBeDefined()
  await pass(clock, 3000)
  const tries = Array.from({ length: 60 }, () => box.limiter.tryAcquire())
  await pass(clock, 20)
  const permits = (await Promise.all(tries)).filter(permit => permit !== undefined)
  expect(permits).toHaveLength(30)
})

test('waiters for a share of this process alone go back to the engine when it is there again', async () => {
  const clock = new VirtualClock(5000)
  const server = new Server(clock)
  let isAway = true
  const ask = async (request: ReservePermits): Promise<PermitReservation> => {
    const earliest = clock.now()
    if (isAway) throw new UnavailableError('it is away')
    return { reserved: server.decide(request), earliest, latest: clock.now() }
  }
  const limiters = new BoxLimiters({ clock, engine: 'test:', session: 'one', ask, lock })
  const limiter = limiters.limiter('api', { limit: 5, per: 1000, onUnavailable: 'open' })
  const count = new NaiveCount()
  const order: number[] = []
  const late: unknown[] = []
  const call = (caller: number): void => {
    void limiter.acquire().then(() => {
      order.push(caller)
      count.add(clock.now(), 1)
    })
  }
  for (let caller = 0; caller < 60; caller++) call(caller)
  limiter.acquire(1, { wait: 4000, priority: -1 }).catch((error: unknown) => late.push(error))
  await pass(clock, 2500)
  expect(count.total).toBe(15)
  isAway = false
  // The next call notices that the engine is back.
  void limiter.tryAcquire()
  await pass(clock, 10)
  for (let caller = 60; caller < 90; caller++) call(caller)
  await pass(clock, 1100)
  const back = new NaiveCount()
  const known = count.grants.length
  await pass(clock, 20_000)
  for (const { at, n } of count.grants.slice(known)) back.add(at, n)
  expect(back.worst(1000)).toBeLessThanOrEqual(5)
  expect(count.worst(1000)).toBeLessThanOrEqual(10)
  expect(order).toEqual(Array.from({ length: 90 }, (_, caller) => caller))
  expect(late).toEqual([expect.any(TimedOutError)])
})
