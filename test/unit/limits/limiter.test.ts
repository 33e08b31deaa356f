import { getEventListeners } from 'node:events'
import { describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import {
  AbortedError,
  BusyError,
  ClosedError,
  InvalidArgumentError,
  TimedOutError,
} from '../../../src/base/errors.js'
import { limiter, VirtualClock, type LimiterOptions, type Permit } from '../../../src/limits/index.js'
import { useFakeRuntime } from '../../support/fake-runtime.js'
import { pass, settled } from '../../support/passing.js'

/** Creates a limiter with its own clock, and records the name and time of each permit. */
function scene(options: LimiterOptions, start = 1000) {
  const clock = new VirtualClock(start)
  const limit = limiter({ ...options, clock })
  const notes: string[] = []
  const permits = new Map<string, Permit>()
  const ask = (name: string, ...args: Parameters<typeof limit.acquire>): Promise<Permit | undefined> =>
    limit.acquire(...args).then(
      permit => {
        notes.push(`${name} ${clock.now() - start}`)
        permits.set(name, permit)
        return permit
      },
      (error: unknown) => {
        notes.push(`${name} ${(error as Error).name} ${clock.now() - start}`)
        return undefined
      },
    )
  return { clock, limit, notes, permits, ask }
}

describe('tryAcquire', () => {
  test('never overtakes the waiters, but takes what they leave free', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 3, per: '1s' })
    void ask('a')
    // One of the three permits is reserved for the waiter.
    expect(limit.tryAcquire(3)).toBeUndefined()
    expect(limit.tryAcquire(2)).toBeDefined()
    expect(limit.tryAcquire()).toBeUndefined()
    await settled()
    void ask('b', 2)
    await pass(clock, 999)
    expect(limit.tryAcquire()).toBeUndefined()
    await pass(clock, 1)
    expect(notes).toEqual(['a 0', 'b 1000'])
    expect(limit.tryAcquire()).toBeDefined()
  })
})

describe('acquire', () => {
  test('a greater priority comes first, then call order', async () => {
    const { clock, notes, ask } = scene({ limit: 1, per: '1s' })
    void ask('a')
    await settled()
    void ask('b', 1, { priority: -1 })
    void ask('c')
    void ask('d', 1, { priority: 5 })
    void ask('e', 1, { priority: 5 })
    void ask('f')
    await pass(clock, 10_000)
    expect(notes).toEqual(['a 0', 'd 1000', 'e 2000', 'c 3000', 'f 4000', 'b 5000'])
  })

  test('has one timer, however many wait, and none when all have left', async () => {
    const { clock, limit } = scene({ limit: 1, per: '1s' })
    const after = vi.spyOn(clock, 'after')
    const controller = new AbortController()
    const all = Array.from({ length: 1000 }, (_, index) =>
      limit.acquire(1, {
        signal: controller.signal,
        wait: index % 2 === 0 ? Infinity : 5_000_000 - index,
      }),
    )
    await settled()
    expect(after).toHaveBeenCalledTimes(1)
    controller.abort()
    await Promise.allSettled(all)
    expect(clock.nextAt()).toBeUndefined()
  })
})

describe('a wait', () => {
  test('that can not be met is refused at once and leaves nothing behind', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 2, per: '1s' })
    for (const name of 'abcd') void ask(name)
    await settled()
    void ask('no', 1, { wait: 1999 })
    void ask('yes', 1, { wait: 2000 })
    await settled()
    expect(notes).toEqual(['a 0', 'b 0', 'no TimedOutError 0'])
    expect(limit.explain().place).toBe(3)
    await pass(clock, 3000)
    expect(notes.slice(3)).toEqual(['c 1000', 'd 1000', 'yes 2000'])
    limit.tryAcquire(2)
    const told = await limit.acquire(2, { wait: '500ms' }).catch((error: unknown) => error)
    expect(told).toBeInstanceOf(TimedOutError)
  })

  test('that can not be met is refused with the number of callers ahead', async () => {
    const { limit } = scene({ limit: 1, per: '1s' })
    limit.tryAcquire()
    const texts = [
      'within 500 ms: its turn would be in 1000 ms',
      'within 500 ms: 1 caller is ahead, its turn would be in 2000 ms',
      'within 500 ms: 2 callers are ahead, its turn would be in 3000 ms',
    ]
    for (const text of texts) {
      await expect(limit.acquire(1, { wait: 500 })).rejects.toThrow(text)
      void limit.acquire()
    }
  })

  test('ends at its time when others came first after all', async () => {
    const { clock, notes, ask } = scene({ limit: 1, per: '1s' })
    void ask('a')
    await settled()
    void ask('late', 1, { wait: 1500 })
    void ask('first', 1, { priority: 1 })
    await pass(clock, 5000)
    expect(notes).toEqual(['a 0', 'first 1000', 'late TimedOutError 1500'])
  })

  test('with a signal that has aborted before never begins, and rejects with the reason', async () => {
    const { limit } = scene({ limit: 1, per: '1s' })
    const reason = new Error('enough')
    const error: unknown = await limit
      .acquire(1, { signal: AbortSignal.abort(reason) })
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(AbortedError)
    expect((error as Error).cause).toBe(reason)
    expect(limit.tryAcquire()).toBeDefined()
  })

  test('that ends lets the next one continue at once, if it can', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 3, per: '1s' })
    limit.tryAcquire(2)
    const controller = new AbortController()
    void ask('a', 3, { signal: controller.signal })
    void ask('b')
    await pass(clock, 100)
    controller.abort()
    await settled()
    expect(notes.sort()).toEqual(['a AbortedError 100', 'b 100'])
  })

  test('that was over while nothing could run gets nothing any more', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 1, per: '1s' })
    limit.tryAcquire()
    void ask('late', 1, { wait: 1200 })
    void ask('patient')
    await settled()
    clock.freeze(1500)
    clock.advance(0)
    await settled()
    expect(notes.sort()).toEqual(['late TimedOutError 1500', 'patient 1500'])
  })

  test('shares the one listener of its signal with those of other limiters', async () => {
    const controller = new AbortController()
    const all = Array.from({ length: 12 }, () => {
      const { limit } = scene({ limit: 1, per: '1s' })
      limit.tryAcquire()
      return limit.acquire(1, { signal: controller.signal })
    })
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1)
    controller.abort()
    for (const { status } of await Promise.allSettled(all)) expect(status).toBe('rejected')
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })

  test('only callers that would have to wait count for the queue, also of those that come in one tick', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 3, per: '1s', queue: 2 })
    for (const name of 'abcdef') void ask(name)
    await settled()
    expect(notes).toEqual(['a 0', 'b 0', 'c 0', 'f BusyError 0'])
    await expect(limit.acquire()).rejects.toThrow('2 callers are waiting')
    await pass(clock, 1000)
    expect(notes.slice(4)).toEqual(['d 1000', 'e 1000'])
    const none = scene({ limit: 1, per: '1s', queue: 0 })
    expect(await none.limit.acquire()).toBeDefined()
    await expect(none.limit.acquire()).rejects.toThrow(BusyError)
  })
})

describe('concurrency', () => {
  test('with using, a permit is released at the end of the block', () => {
    const { limit } = scene({ limit: 10, per: '1s', concurrency: 1 })
    {
      using permit = limit.tryAcquire()
      expect(permit).toBeDefined()
      expect(limit.tryAcquire()).toBeUndefined()
    }
    expect(limit.tryAcquire()).toBeDefined()
  })

  test('run releases when its task has ended, well or badly', async () => {
    const { limit } = scene({ limit: 10, per: '1s', concurrency: 1 })
    expect(await limit.run(permit => permit.n + 1)).toBe(2)
    await expect(
      limit.run(() => {
        throw new Error('bad')
      }, 2),
    ).rejects.toThrow('bad')
    let goOn = (): void => undefined
    const running = limit.run(() => new Promise<void>(resolve => void (goOn = resolve)))
    await settled()
    expect(limit.tryAcquire()).toBeUndefined()
    goOn()
    await running
    expect(limit.tryAcquire()).toBeDefined()
    expect(limit.explain().limits[0]!.remaining).toBe(5)
  })
})

describe('a refund', () => {
  test('gives a permit back as if it had never been given, and lets the next one in', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 2, per: '1s' })
    const first = limit.tryAcquire()!
    await pass(clock, 300)
    const second = limit.tryAcquire()!
    void ask('a')
    await pass(clock, 100)
    second.refund()
    second.refund()
    await settled()
    expect(notes).toEqual(['a 400'])
    void ask('b')
    void ask('c')
    await pass(clock, 1900)
    expect(notes.slice(1)).toEqual(['b 1000', 'c 1400'])
    first.release()
    first.refund()
    expect(limit.explain().limits[0]!.remaining).toBe(1)
  })
})

describe('setLimit', () => {
  test.each([
    ['sliding', 0],
    ['calendar', 0],
    // A tenth of an hour after the first permit.
    ['smooth', 360_000],
  ] as const)(
    '%s: a raised limit lets callers in as if it had always been the limit',
    async (window, readyIn) => {
      const { clock, limit } = scene({ limit: 1, per: '1h', window })
      expect(limit.tryAcquire()).toBeDefined()
      limit.setLimit(10)
      expect(limit.explain().readyIn).toBeCloseTo(readyIn, 0)
      const given = limit.acquire(1, { wait: '7m' })
      await pass(clock, 420_000)
      expect((await given).n).toBe(1)
    },
  )

  test('a waiter for more than the present limit is rejected', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 3, per: '1s' })
    void ask('a', 3)
    await settled()
    void ask('b', 3)
    void ask('c')
    limit.setLimit(2)
    await pass(clock, 2000)
    expect(notes).toEqual(['a 0', 'b InvalidArgumentError 0', 'c 1000'])
    expect(() => limit.tryAcquire(3)).toThrow('n must be a whole number from 1 to 2, not 3')
  })

  test('of several limits the one with that period is meant', async () => {
    const { limit } = scene({
      limits: [
        { limit: 2, per: '1s' },
        { limit: 5, per: '10s' },
      ],
    })
    limit.setLimit(9, '10s')
    expect(limit.explain().limits.map(each => each.limit)).toEqual([2, 9])
    expect(() => limit.setLimit(9)).toThrow(
      'per must be that of one of these limits: 2 in 1000 ms, 9 in 10000 ms',
    )
    expect(() => limit.setLimit(9, '2s')).toThrow(InvalidArgumentError)
    expect(() => limit.setLimit(0, '1s')).toThrow(InvalidArgumentError)
  })
})

describe('pauseUntil', () => {
  test('nothing is given before; the latest of several counts', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 2, per: '1s' })
    void ask('a')
    await settled()
    limit.pauseUntil(new Date(4000))
    limit.pauseUntil(2500)
    void ask('b')
    void ask('no', 1, { wait: 2000 })
    await settled()
    expect(limit.tryAcquire()).toBeUndefined()
    expect(limit.explain()).toMatchObject({ waitsFor: 'pause', readyIn: 3000, place: 1 })
    expect(() => limit.pauseUntil(367 * 86_400_000)).toThrow('a time within the next 366 days')
    await pass(clock, 5000)
    expect(notes).toEqual(['a 0', 'no TimedOutError 0', 'b 3000'])
  })

  test('resume ends the pause for waiters and for callers that come later', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 2, per: '1s' })
    limit.pauseUntil(86_400_000)
    void ask('a')
    await pass(clock, 500)
    limit.resume()
    await settled()
    expect(notes).toEqual(['a 500'])
    expect(limit.tryAcquire()).toBeDefined()
    expect(limit.tryAcquire()).toBeUndefined()
  })
})

describe('close', () => {
  test('rejects all waiters and all later callers', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 1, per: '1s' })
    void ask('a')
    await settled()
    void ask('b')
    void ask('c', 1, { priority: 1, wait: 3000, signal: new AbortController().signal })
    await limit.close()
    await limit.close()
    void ask('d')
    await settled()
    expect(notes).toEqual(['a 0', 'c ClosedError 0', 'b ClosedError 0', 'd ClosedError 0'])
    expect(() => limit.tryAcquire()).toThrow(ClosedError)
    expect(() => limit.key('k').tryAcquire()).toThrow(ClosedError)
    expect(clock.nextAt()).toBeUndefined()
  })

  test('with drain lets the waiters have their turn', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 1, per: '1s' })
    for (const name of 'abc') void ask(name)
    let closed = false
    void limit.close({ drain: true }).then(() => (closed = true))
    void ask('d')
    await pass(clock, 1999)
    expect(closed).toBe(false)
    await pass(clock, 1)
    expect(notes).toEqual(['d ClosedError 0', 'a 0', 'b 1000', 'c 2000'])
    expect(closed).toBe(true)
  })

  test('drains for at most the given time', async () => {
    const { clock, limit, notes, ask } = scene({ limit: 1, per: '1s' })
    for (const name of 'abc') void ask(name)
    const key = limit.key('k')
    void key.acquire()
    void key.acquire()
    const waiting = key.acquire().catch((error: unknown) => (error as Error).name)
    const closing = limit.close({ drain: '1500ms' })
    await pass(clock, 3000)
    await closing
    expect(notes).toEqual(['a 0', 'b 1000', 'c ClosedError 1500'])
    expect(await waiting).toBe('ClosedError')
    expect(clock.nextAt()).toBeUndefined()
  })
})

describe('explain', () => {
  test('says which limit binds, the place in line and when the turn would come', async () => {
    const { clock, limit } = scene({
      limits: [
        { limit: 2, per: '1s' },
        { limit: 3, per: '10s' },
      ],
    })
    expect(limit.explain()).toEqual({
      waitsFor: 'nothing',
      binding: undefined,
      place: 0,
      readyIn: 0,
      running: 0,
      limits: [
        { limit: 2, per: 1000, window: 'sliding', remaining: 2, resetIn: 0 },
        { limit: 3, per: 10_000, window: 'sliding', remaining: 3, resetIn: 0 },
      ],
    })
    limit.tryAcquire(2)
    await pass(clock, 100)
    expect(limit.explain()).toMatchObject({ waitsFor: 'limit', readyIn: 900, binding: { per: 1000 } })
    expect(limit.explain(2)).toMatchObject({ waitsFor: 'limit', readyIn: 9900, binding: { per: 10_000 } })
    for (let index = 0; index < 3; index++) void limit.acquire()
    await pass(clock, 100)
    expect(limit.explain()).toMatchObject({ place: 3, waitsFor: 'limit', binding: { per: 10_000 } })
    expect(limit.explain().limits[0]).toMatchObject({ remaining: 0, resetIn: 800 })
  })
})

describe('bad input', () => {
  const made = (options: object) => () => limiter(options as LimiterOptions)

  test.each([
    [{ limit: 0, per: 1000 }, 'limit must be a whole number from 1 to 1000000000, not 0'],
    [{ limit: 1, per: 0 }, 'per must be from 1 ms to 31622400000 ms, not 0'],
    [
      { limit: 1, per: 1000, window: 'fixed' },
      `window must be one of 'sliding', 'calendar', 'smooth', not "fixed"`,
    ],
    [{ limit: 1, per: 1000, windows: 'sliding' }, 'unknown option "windows"'],
    [{ limit: 1, per: 1000, limits: [] }, 'give either limits or limit, not both'],
    [{ limits: [] }, 'limits must have at least one limit'],
    [{ limits: 5 }, 'limits must be an array of limits, not 5'],
    [{ limits: [1] }, 'options must be an object'],
    [{ limits: [{ limit: 1, per: 1000, queue: 1 }] }, 'unknown option "queue"'],
    [{ limit: 1, per: '1d', timeZone: 'UTC' }, 'timeZone needs window'],
    [{ limit: 1, per: '1d', window: 'calendar', timeZone: 'Mars/Olympus' }, 'timeZone must be a name like'],
    [{ limit: 1, per: 1.5, window: 'calendar' }, 'per must be whole milliseconds'],
    [{ limit: 1, per: 1000, window: 'calendar', jitter: 1000 }, 'jitter must be less than per'],
    [{ limit: 1, per: 1000, jitter: -1 }, 'jitter must be'],
    [{ limit: 1, per: 1000, concurrency: 0 }, 'concurrency must be'],
    [{ limit: 1, per: 1000, clock: { now: () => 0 } }, 'clock must be'],
  ])('%j is refused', (options, message) => {
    expect(made(options as object)).toThrow(InvalidArgumentError)
    expect(made(options as object)).toThrow(message)
  })
})

describe('keys', () => {
  test('each counts apart from all others', async () => {
    const { clock, limit } = scene({ limit: 1, per: '1s' })
    const ann = limit.key('ann')
    expect(ann.tryAcquire()).toBeDefined()
    expect(limit.key('ann').tryAcquire()).toBeUndefined()
    expect(limit.key('bob').tryAcquire()).toBeDefined()
    expect(limit.tryAcquire()).toBeDefined()
    const waiting = ann.acquire()
    expect(ann.explain()).toMatchObject({ place: 1, readyIn: 2000 })
    await pass(clock, 1000)
    expect((await waiting).n).toBe(1)
    ann.pauseUntil(4000)
    await pass(clock, 1000)
    expect(ann.tryAcquire()).toBeUndefined()
    await pass(clock, 1000)
    expect(await ann.run(() => 'done')).toBe('done')
  })

  test('a changed limit holds for all keys, those to come included', () => {
    const { limit } = scene({ limit: 1, per: '1s' })
    const ann = limit.key('ann')
    ann.tryAcquire()
    limit.setLimit(2)
    expect(ann.tryAcquire()).toBeDefined()
    expect(ann.tryAcquire()).toBeUndefined()
    expect(limit.key('bob').tryAcquire(2)).toBeDefined()
  })

  test('errors name the key', async () => {
    const { limit } = scene({ limit: 1, per: '1s' })
    const ann = limit.key('ann')
    ann.tryAcquire()
    await expect(ann.acquire(1, { wait: 10 })).rejects.toMatchObject({ key: 'ann', code: 'TIMED_OUT' })
  })
})

describe('a clock that was set back', () => {
  test.each(['sliding', 'calendar', 'smooth'] as const)(
    'by much, makes no caller wait for longer than a window: %s',
    async window => {
      const { clock, limit, ask, notes } = scene({ limit: 2, per: '1s', window }, 1e9)
      const old = limit.tryAcquire(2)!
      clock.freeze(-9e8)
      void ask('a')
      await pass(clock, 1001)
      expect(notes).toHaveLength(1)
      // The limiter no longer knows this permit.
      old.refund()
      expect(limit.tryAcquire(2)).toBeUndefined()
    },
  )
})

test('a wall clock that is set forward is noticed within a minute', async () => {
  useFakeRuntime({
    toFake: ['Date', 'setTimeout', 'clearTimeout', 'performance'],
    now: Date.UTC(2026, 0, 1, 12),
  })
  vi.spyOn(systemClock, 'now').mockImplementation(() => performance.now())
  try {
    const limit = limiter({ limit: 1, per: '1d', window: 'calendar' })
    expect(limit.tryAcquire()).toBeDefined()
    let given = false
    void limit.acquire().then(() => (given = true))
    await vi.advanceTimersByTimeAsync(90_000)
    expect(given).toBe(false)
    // The machine was suspended for a night.
    vi.setSystemTime(Date.UTC(2026, 0, 2, 7))
    await vi.advanceTimersByTimeAsync(61_000)
    expect(given).toBe(true)
  } finally {
    vi.useRealTimers()
  }
})
