import { describe, expect, test } from 'vitest'
import { VirtualClock, type Clock, type Timer } from '../../../src/base/clock.js'
import type { PermitReservation } from '../../../src/engine/contract.js'
import {
  AbortedError,
  IndeterminateError,
  TimedOutError,
  UnavailableError,
} from '../../../src/base/errors.js'
import { BoxLimiters, type BoxLimiter } from '../../../src/limits/remote/box-limiter.js'
import type { BoxLimiterOptions } from '../../../src/limits/remote/box-limiter-options.js'
import { ClockOffset } from '../../../src/limits/remote/pace.js'
import type { Permit } from '../../../src/limits/permit.js'
import type { ReservePermits } from '../../../src/engine/limits/reservation.js'
import { memoryInUse } from '../../support/heap.js'
import { Random } from '../../../packages/conformance/src/random.js'
import { lock, Server } from './deciding-server.js'
import { DistantBox } from './distant-box.js'
import { NaiveCount } from './naive-count.js'
import { pass } from '../../support/passing.js'

/** A process that can be stopped. While it is stopped, no timer runs and no answer arrives. */
class Process implements Clock {
  stoppedUntil = -Infinity
  readonly limiter: BoxLimiter
  readonly #clock: VirtualClock
  readonly #server: Server
  readonly #random: Random

  constructor(clock: VirtualClock, server: Server, random: Random, options: BoxLimiterOptions) {
    this.#clock = clock
    this.#server = server
    this.#random = random
    const ask = (request: ReservePermits): Promise<PermitReservation> => this.#ask(request)
    const session = `process ${random.below(1e9)}`
    this.limiter = new BoxLimiters({ clock: this, engine: 'test:', session, ask, lock }).limiter(
      'api',
      options,
    )
  }

  now(): number {
    return this.#clock.now()
  }

  after(delay: number, task: () => void): Timer {
    let timer = this.#clock.after(delay, () => {
      if (this.now() >= this.stoppedUntil) task()
      else timer = this.after(this.stoppedUntil - this.now(), task)
    })
    return { cancel: () => timer.cancel() }
  }

  async #ask(request: ReservePermits): Promise<PermitReservation> {
    const earliest = this.now()
    await this.#way()
    const reserved = this.#server.decide(request)
    await this.#way()
    if (this.#random.below(40) === 0) throw new IndeterminateError('the answer was lost')
    return { reserved, earliest, latest: this.now() }
  }

  #way(): Promise<void> {
    const duration = [0, 0.3, 2, 9][this.#random.below(4)]!
    return new Promise(resolve => this.after(duration, resolve))
  }
}

const DEFINITIONS: readonly {
  options: BoxLimiterOptions
  bounds: readonly [limit: number, per: number][]
}[] = [
  { options: { limit: 5, per: 1000 }, bounds: [[5, 1000]] },
  { options: { limit: 40, per: 1000, batch: 8 }, bounds: [[40, 1000]] },
  {
    options: {
      limits: [
        { limit: 4, per: 500 },
        { limit: 10, per: 3000 },
      ],
    },
    bounds: [
      [4, 500],
      [10, 3000],
    ],
  },
  { options: { limit: 300, per: 1000, batch: 20 }, bounds: [[300, 1000]] },
  { options: { limit: 6, per: 900, window: 'smooth' }, bounds: [[6, 900]] },
]

describe('processes that are stopped, with slow and lost answers', () => {
  for (const [index, { options, bounds }] of DEFINITIONS.entries()) {
    test(`keep the bound of ${JSON.stringify(options)}, and all have their turn`, async () => {
      for (let seed = 1; seed <= 12; seed++) {
        const random = new Random(1000 * index + seed)
        const clock = new VirtualClock(5000)
        const server = new Server(clock)
        const processes = Array.from({ length: 4 }, () => new Process(clock, server, random, options))
        const count = new NaiveCount()
        const given: Permit[] = []
        const most = Math.min(...bounds.map(([limit]) => limit), 4)
        let open = 0
        let gaveUp = new AbortController()
        const call = async (process: Process): Promise<void> => {
          const n = random.below(3) === 0 ? 1 + random.below(most) : 1
          const controller = new AbortController()
          if (random.below(5) === 0) clock.after(random.below(2000), () => controller.abort())
          const wait = random.below(5) === 0 ? random.below(3000) : undefined
          open++
          try {
            const signal = AbortSignal.any([controller.signal, gaveUp.signal])
            const permit = await process.limiter.acquire(n, { signal, wait })
            expect(clock.now()).toBeGreaterThanOrEqual(process.stoppedUntil)
            count.add(clock.now(), n)
            given.push(permit)
          } catch {
            // The call was given up or rejected, or an answer was lost.
          } finally {
            open--
          }
        }
        for (let step = 0; step < 60; step++) {
          const process = processes[random.below(4)]!
          const callers = random.below(random.below(6) === 0 ? 30 : 4)
          for (let caller = 0; caller < callers; caller++) void call(process)
          if (random.below(4) === 0) process.stoppedUntil = clock.now() + random.below(700)
          if (random.below(30) === 0) {
            gaveUp.abort()
            gaveUp = new AbortController()
          }
          await pass(clock, random.below(300))
        }
        for (const [limit, per] of bounds) {
          expect(count.worst(per), `seed ${seed}: ${limit} in ${per} ms`).toBeLessThanOrEqual(limit)
        }
        await pass(clock, 400_000)
        expect(open, `seed ${seed}`).toBe(0)
        expect(count.total).toBeGreaterThan(5)
      }
    })
  }
})

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

  test('are refused at once when their wait can not be met, also behind others', async () => {
    const { clock, limiter, notes, call, asked } = scene({ limit: 1, per: 1000 })
    for (const name of 'abc') call(name)
    await pass(clock, 1)
    const late = (wait: number) =>
      limiter.acquire(1, { wait }).then(
        () => notes.push(`given ${clock.now()}`),
        (error: unknown) => notes.push(`${(error as Error).name} ${clock.now()}`),
      )
    // The turn of this caller comes after three windows of 1020 ms.
    void late(2900)
    void late(3500)
    await pass(clock, 1)
    expect(notes).toEqual(['a 0', 'TimedOutError 1'])
    const before = asked.length
    await pass(clock, 4000)
    expect(notes).toEqual(['a 0', 'TimedOutError 1', 'b 1020', 'c 2040', 'given 3060'])
    // Waiters ask only about a pause, or about returned permits that come before their own.
    const looks = asked.slice(before).flatMap(({ units }) => units)
    // The third caller asks again when the permit that was reserved for the second is used.
    expect(looks.filter(({ within }) => within >= 3060)).toHaveLength(1)
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

  test('a try does not delay waiters', async () => {
    const { clock, limiter } = scene({ limit: 3, per: 1000 })
    const tries = [limiter.tryAcquire(), limiter.tryAcquire(2)]
    const explaining = limiter.explain()
    await Promise.all(tries)
    expect(await explaining).toMatchObject({ waitsFor: 'nothing', place: 0, readyIn: 0 })
    void limiter.acquire()
    const tried = limiter.tryAcquire()
    expect(await limiter.explain()).toMatchObject({ waitsFor: 'limit', place: 1 })
    await tried
    await pass(clock, 2000)
  })

  test('a greater priority comes first, also before those for whom something is reserved', async () => {
    const { clock, notes, call } = scene({ limit: 1, per: 100 })
    for (const [name, priority] of [['a'], ['b'], ['c', 1]] as const) call(name, priority)
    await pass(clock, 50)
    call('d', 2)
    await pass(clock, 350)
    // The window is longer by the time for which a permit can be used.
    expect(notes).toEqual(['c 0', 'd 105', 'a 210', 'b 315'])
  })

  for (const window of ['sliding', 'smooth', 'calendar'] as const) {
    test.each([
      ['are aborted', async ({ controller }) => controller.abort()],
      ['are of a limiter that is closed', ({ limiter }) => limiter.close()],
      ['are of a box that is closed', ({ box }) => box.close()],
    ] satisfies [
      string,
      (of: { controller: AbortController; limiter: BoxLimiter; box: BoxLimiters }) => Promise<void>,
    ][])(`${window}: what was reserved for waiters that %s is there for others`, async (_, giveUp) => {
      const { clock, box, limiter, other } = scene({ limit: 2, per: 1000, window })
      const controller = new AbortController()
      for (let caller = 0; caller < 50; caller++)
        limiter.acquire(1, { signal: controller.signal }).catch(() => undefined)
      await pass(clock, 300)
      void giveUp({ controller, limiter, box })
      await pass(clock, 10)
      let given = 0
      for (let caller = 0; caller < 2; caller++) void other.acquire().then(() => given++)
      await pass(clock, 1600)
      expect(given).toBe(2)
    })
  }

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

  test('a new caller gets only returned permits while others hold later reservations', async () => {
    const { clock, limiter, other, third } = scene({ limit: 2, per: 1000 })
    const first = await limiter.acquire(2)
    const controller = new AbortController()
    limiter.acquire(2, { signal: controller.signal }).catch(() => undefined)
    await pass(clock, 1)
    let given = 0
    void other.acquire(2).then(() => (given = clock.now()))
    await pass(clock, 100)
    controller.abort()
    await pass(clock, 1)
    let taken = 0
    for (let caller = 0; caller < 2; caller++) void third.acquire(1).then(() => (taken = clock.now()))
    await pass(clock, 3000)
    expect(first.n).toBe(2)
    expect([taken, given]).toEqual([1020, 2040])
  })

  test('a limit that changes again and again does not keep waiters waiting', async () => {
    const { clock, limiter, notes, call } = scene({ limit: 2, per: 1000 })
    for (let caller = 0; caller < 12; caller++) call(String(caller))
    for (let limit = 3; limit < 15; limit++) {
      await pass(clock, 500)
      limiter.setLimit(limit)
    }
    await pass(clock, 10)
    expect(notes).toHaveLength(12)
  })

  for (const window of ['sliding', 'smooth'] as const) {
    test(`${window}: waiters get a limit as soon as all boxes have raised it`, async () => {
      const { clock, limiter, other } = scene({ limit: 2, per: 1000, window })
      const times: number[] = []
      const served: string[] = []
      for (let caller = 0; caller < 20; caller++) {
        for (const [name, one] of Object.entries({ limiter, other })) {
          void one.acquire().then(() => {
            times.push(clock.now())
            served.push(name + String(caller))
          })
        }
      }
      await pass(clock, 300)
      limiter.setLimit(50)
      await pass(clock, 100)
      other.setLimit(50)
      await pass(clock, 10_000)
      expect(times.filter(time => time < 400).length).toBeLessThanOrEqual(2)
      expect(times).toHaveLength(40)
      // Evenly spaced permits come after those that were already reserved.
      expect(times.at(-1)).toBeLessThan(window === 'sliding' ? 1100 : 5800)
      for (const name of ['limiter', 'other']) {
        const own = served.filter(each => each.startsWith(name))
        expect(own).toEqual(Array.from({ length: 20 }, (__, caller) => name + String(caller)))
      }
    })
  }

  test('raising a limit keeps existing reservations', async () => {
    const { clock, limiter, other } = scene({ limit: 1, per: 1000 })
    const served: string[] = []
    for (const [name, one] of Object.entries({ limiter, other, third: limiter, fourth: other })) {
      void one.acquire().then(() => served.push(`${name} ${clock.now()}`))
    }
    await pass(clock, 10)
    limiter.setLimit(2)
    await pass(clock, 2100)
    expect(served).toEqual(['limiter 0', 'other 1020', 'third 2040'])
    await pass(clock, 3000)
    expect(served).toHaveLength(4)
  })

  test('a close with drain lets the waiters have their turn', async () => {
    const { clock, limiter, notes, call } = scene({ limit: 1, per: 100 })
    for (const name of 'abc') call(name)
    let closed = false
    void limiter.close({ drain: true }).then(() => (closed = true))
    call('d')
    await pass(clock, 209)
    expect(closed).toBe(false)
    await pass(clock, 1)
    expect(notes).toEqual(['d ClosedError', 'a 0', 'b 105', 'c 210'])
    expect(closed).toBe(true)
  })

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

test('an answer to a question from before a limit was raised refuses no caller', async () => {
  const clock = new VirtualClock(5000)
  const server = new Server(clock)
  const box = new DistantBox(clock, server, 20, { limit: 1, per: 3_600_000 })
  void box.limiter.acquire()
  await pass(clock, 100)
  const waiting = box.limiter.acquire(1, { wait: 30_000 })
  await pass(clock, 5)
  box.limiter.setLimit(10)
  await pass(clock, 200)
  expect((await waiting).n).toBe(1)
})

test('of a batch a caller takes what is reserved for it, although one before it waits for more', async () => {
  const clock = new VirtualClock(5000)
  const server = new Server(clock)
  const limit = { limit: 12, per: 1000 }
  const box = new DistantBox(clock, server, 2, { ...limit, batch: 2 })
  const [other, third] = [1, 2].map(() => new DistantBox(clock, server, 2, limit)) as [DistantBox, DistantBox]
  const given: string[] = []
  const ask = (name: string, n: number): void => {
    void box.limiter.acquire(n).then(() => given.push(`${name} at ${Math.floor(clock.now() / 1000)} s`))
  }
  ask('first', 12)
  await pass(clock, 10)
  void third.limiter.acquire(11)
  await pass(clock, 10)
  const controller = new AbortController()
  const aborted = other.limiter.acquire(1, { signal: controller.signal })
  await pass(clock, 10)
  ask('many', 2)
  await pass(clock, 10)
  controller.abort()
  await expect(aborted).rejects.toThrow(AbortedError)
  await pass(clock, 10)
  ask('one', 1)
  await pass(clock, 3000)
  expect(given).toEqual(['first at 5 s', 'one at 6 s', 'many at 7 s'])
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
