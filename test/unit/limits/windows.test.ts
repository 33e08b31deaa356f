import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EqualPeriods, ZoneDays } from '../../../src/engine/limits/calendar-periods.js'
import { CalendarWindow } from '../../../src/engine/limits/calendar-window.js'
import { addRoundedUp } from '../../../src/engine/limits/sliding-window.js'
import { SlidingWindow } from '../../../src/engine/limits/sliding-window.js'
import { SmoothWindow } from '../../../src/engine/limits/smooth-window.js'
import type { Window } from '../../../src/engine/limits/window.js'
import { NaiveCount } from './naive-count.js'

const HOUR = 3_600_000

/** One request to a window: after some time, for some permits. It is answered at once or when the window is ready. */
interface Ask {
  readonly after: number
  readonly n: number
  readonly waits: boolean
  /** Refunds the permits of the request this many requests ago. */
  readonly refund: number | undefined
}

const ask = (limit: number): fc.Arbitrary<Ask> =>
  fc.record({
    after: fc.oneof(
      { weight: 4, arbitrary: fc.constant(0) },
      { weight: 4, arbitrary: fc.integer({ min: 1, max: 300 }) },
      { weight: 2, arbitrary: fc.double({ min: 0, max: 50, noNaN: true }) },
      { weight: 1, arbitrary: fc.integer({ min: 900, max: 3000 }) },
    ),
    n: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: limit })),
    waits: fc.boolean(),
    refund: fc.oneof({ weight: 8, arbitrary: fc.constant(undefined) }, fc.integer({ min: 1, max: 6 })),
  })

const asks = fc
  .integer({ min: 1, max: 12 })
  .chain(limit => fc.tuple(fc.constant(limit), fc.array(ask(limit), { maxLength: 80 })))

const permits = (n: number, refund?: number): Ask => ({ after: 0, n, waits: true, refund })

/** Requests that refund grants while others of exactly the same time stay. */
const AT_ONE_TIME: [number, Ask[]] = [
  5,
  [permits(5), permits(1), permits(1, 2), permits(2), permits(1), permits(1, 2)],
]

/** Requests whose next permit becomes free within the rounding of a time. */
const JUST_AFTER: [number, Ask[]] = [
  3,
  [permits(1), { ...permits(1), after: 5.820766091346742e-11 }, permits(1), permits(1), permits(1, 4)],
]

/** Plays requests with a window. The state is copied each time, as in an engine. */
function play(window: Window, all: readonly Ask[], check: (at: number, n: number) => void): NaiveCount {
  const count = new NaiveCount()
  const given: { at: number; n: number }[] = []
  let state = window.empty()
  let now = 1e6
  for (const { after, n, waits, refund } of all) {
    now += after
    state = structuredClone(state)
    const back = refund === undefined ? undefined : given.splice(-refund, 1)[0]
    if (back) {
      window.refund(state, back.n, back.at)
      count.remove(back.at, back.n)
    }
    const ready = window.readyAt(state, now, n, 0)
    expect(ready).toBeGreaterThanOrEqual(now)
    expect(window.allows(state, now, n, 0)).toBe(ready === now)
    expect(window.allows(state, ready, n, 0)).toBe(true)
    if (ready > now && !waits) continue
    now = ready
    check(now, n)
    window.take(state, n, now, 0)
    count.add(now, n)
    given.push({ at: now, n })
  }
  return count
}

describe('a sliding window', () => {
  test('no interval of its length has more than the limit, and what is refused would be too much', () => {
    fc.assert(
      fc.property(asks, ([limit, all]) => {
        const window = new SlidingWindow(limit, 1000, 0)
        const count = new NaiveCount()
        const given: { at: number; n: number }[] = []
        let state = window.empty()
        let now = 1e6
        for (const { after, n, waits, refund } of all) {
          now += after
          state = structuredClone(state)
          const back = refund === undefined ? undefined : given.splice(-refund, 1)[0]
          if (back) {
            window.refund(state, back.n, back.at)
            count.remove(back.at, back.n)
          }
          const used = count.within(1000, now)
          expect(window.used(state, now)).toBe(used)
          expect(window.allows(state, now, n, 0)).toBe(used + n <= limit)
          const ready = window.readyAt(state, now, n, 0)
          expect(ready === now).toBe(used + n <= limit)
          expect(count.within(1000, ready) + n).toBeLessThanOrEqual(limit)
          // `ready` is not later than needed: just before it, there were too few permits.
          if (ready - 1e-6 >= now) expect(count.within(1000, ready - 1e-6) + n).toBeGreaterThan(limit)
          if (ready > now && !waits) continue
          now = ready
          window.take(state, n, now, 0)
          count.add(now, n)
          given.push({ at: now, n })
        }
        expect(count.worst(1000)).toBeLessThanOrEqual(limit)
      }),
      { numRuns: 500, examples: [[AT_ONE_TIME], [JUST_AFTER]] },
    )
  })

  test('with others ahead it says when its turn would be if all came as early as possible', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 8 }),
        fc.integer({ min: 0, max: 40 }),
        (limit, gaps, ahead) => {
          const window = new SlidingWindow(limit, 1000, 0)
          const state = window.empty()
          let now = 0
          for (const gap of gaps) {
            now = window.readyAt(state, now + gap, 1, 0)
            window.take(state, 1, now, 0)
          }
          const told = window.readyAt(state, now, 1, ahead)
          expect(window.allows(state, now, 1, ahead)).toBe(told === now)
          let at = now
          for (let before = 0; before <= ahead; before++) {
            at = window.readyAt(state, at, 1, 0)
            if (before < ahead) window.take(state, 1, at, 0)
          }
          expect(told).toBe(at)
        },
      ),
    )
  })

  test('a huge limit costs bounded memory, keeps the bound, and loses no more than a thousandth of the rate', () => {
    const limit = 1_000_000
    const window = new SlidingWindow(limit, 1000, 0)
    const state = window.empty()
    const count = new NaiveCount()
    let now = 0
    let given = 0
    let random = 1
    while (now < 20_000) {
      random = (random * 48271) % 2147483647
      const n = 1 + (random % 2000)
      now = window.readyAt(state, now + (random % 7) / 4, n, 0)
      window.take(state, n, now, 0)
      count.add(now, n)
      given += n
    }
    expect(count.worst(1000)).toBeLessThanOrEqual(limit)
    expect(state.entries.length * 8).toBeLessThanOrEqual(32_768)
    // Demand is above the limit: 1000 permits in less than 0.75 ms.
    expect(given).toBeGreaterThan(20 * limit * 0.998)
  })

  test('calls that are taken back again and again take no memory', () => {
    const window = new SlidingWindow(100, 1000, 0)
    const state = window.empty()
    for (let time = 0; time < 900; time += 0.1) {
      window.take(state, 2, time, 0)
      window.take(state, 1, time + 0.05, 0)
      window.refund(state, 2, time)
      window.refund(state, 1, time + 0.05)
    }
    expect(window.used(state, 900)).toBe(0)
    expect(state.entries.length).toBeLessThanOrEqual(16)
  })

  test('who reserves ahead is not overtaken by who comes later', () => {
    const window = new SlidingWindow(2, 1000, 0)
    const state = window.empty()
    window.take(state, 2, 0, 0)
    window.take(state, 1, window.readyAt(state, 10, 1, 0), 0)
    expect(window.allows(state, 20, 1, 0)).toBe(false)
    expect(window.readyAt(state, 20, 1, 0)).toBe(1000)
    window.refund(state, 1, 1000)
    expect(window.allows(state, 20, 1, 0)).toBe(false)
    expect(window.readyAt(state, 20, 1, 0)).toBe(1000)
  })

  test('a returned reservation frees its time; earlier permits still count', () => {
    const window = new SlidingWindow(2, 1000, 0)
    const state = window.empty()
    const reserved: number[] = []
    window.take(state, 1, 0, 0)
    for (let ahead = 0; ahead < 9; ahead++) {
      const at = window.readyAt(state, 10, 1, 0)
      window.take(state, 1, at, 0, 10)
      reserved.push(at)
    }
    expect(reserved).toEqual([10, 1000, 1010, 2000, 2010, 3000, 3010, 4000, 4010])
    for (const at of reserved.slice(1).reverse()) window.refund(state, 1, at)
    expect(window.used(state, 20)).toBe(2)
    expect(window.readyAt(state, 20, 1, 0)).toBe(1000)
    expect(window.readyAt(state, 20, 2, 0)).toBe(1010)
  })

  test('a refund of what was never given, or was given back before, changes nothing', () => {
    const window = new SlidingWindow(3, 1000, 0)
    const state = window.empty()
    window.take(state, 2, 5, 0)
    window.take(state, 1, 6, 0)
    for (const [n, at] of [
      [3, 5],
      [2, 6],
      [1, 7],
    ] as const) {
      window.refund(state, n, at)
      expect(window.used(state, 10)).toBe(3)
    }
  })
})

describe('an even spacing', () => {
  test('no interval has more than the limit, and further permits come one interval after each full one', () => {
    fc.assert(
      fc.property(asks, ([limit, all]) => {
        let openAt = -Infinity
        const window = new SmoothWindow(limit, 1000, 0)
        const count = play(
          window,
          all.map(each => ({ ...each, refund: undefined })),
          (at, n) => {
            expect(at).toBeGreaterThanOrEqual(openAt)
            openAt = at + (n * 1000) / limit
          },
        )
        expect(count.worst(1000)).toBeLessThanOrEqual(limit)
      }),
      { numRuns: 300 },
    )
  })

  test('refunds never break the bound', () => {
    fc.assert(
      fc.property(asks, ([limit, all]) => {
        expect(play(new SmoothWindow(limit, 1000, 0), all, () => undefined).worst(1000)).toBeLessThanOrEqual(
          limit,
        )
      }),
      { numRuns: 300 },
    )
  })

  test('a late timer does not shift what follows', () => {
    const window = new SmoothWindow(10, 1000, 0)
    const state = window.empty()
    window.take(state, 1, 0, 0)
    window.take(state, 1, 103, 5)
    expect(window.readyAt(state, 103, 1, 0)).toBeCloseTo(200)
    // The next permits make up only for the lateness of a timer, up to 5 ms.
    window.take(state, 1, 290, 5)
    expect(window.readyAt(state, 290, 1, 0)).toBeCloseTo(385)
  })

  test('a permit that is taken back gives its interval back', () => {
    const window = new SmoothWindow(10, 1000, 0)
    const state = window.empty()
    window.take(state, 1, 0, 0)
    window.take(state, 3, 110, 0)
    window.refund(state, 3, 110)
    expect(window.readyAt(state, 120, 1, 0)).toBe(120)
    window.take(state, 1, 120, 0)
    window.refund(state, 1, 0)
    expect(window.readyAt(state, 120, 1, 0)).toBeCloseTo(220)
  })
})

describe('a calendar', () => {
  test('no period of the clock has more than the limit, and each can be used whole', () => {
    fc.assert(
      fc.property(asks, ([limit, all]) => {
        const window = new CalendarWindow(limit, 1000, 0, new EqualPeriods(1000))
        expect(play(window, all, () => undefined).worstPeriod(1000)).toBeLessThanOrEqual(limit)
      }),
      { numRuns: 300 },
    )
    const window = new CalendarWindow(5, 1000, 0, new EqualPeriods(1000))
    const state = window.empty()
    window.take(state, 3, 999, 0)
    expect(window.readyAt(state, 999, 2, 0)).toBe(999)
    expect(window.readyAt(state, 999, 3, 0)).toBe(1000)
    window.take(state, 5, 1000, 0)
    expect(window.readyAt(state, 1000, 1, 0)).toBe(2000)
    expect(window.readyAt(state, 1000, 5, 10)).toBe(4000)
    expect(window.readyAt(state, 1000, 1, 5)).toBe(3000)
  })

  test('with a guard against jitter nothing is given at the end of a period', () => {
    const window = new CalendarWindow(5, 1000, 100, new EqualPeriods(1000))
    const state = window.empty()
    expect(window.readyAt(state, 899, 1, 0)).toBe(899)
    expect(window.readyAt(state, 900, 1, 0)).toBe(1000)
    window.take(state, 1, 899, 0)
    expect(window.allows(state, 900, 1, 0)).toBe(false)
    expect(window.readyAt(state, 950, 1, 0)).toBe(1000)
    fc.assert(
      fc.property(asks, ([limit, all]) => {
        const guarded = new CalendarWindow(limit, 1000, 100, new EqualPeriods(1000))
        play(guarded, all, at => expect(at % 1000).toBeLessThan(900))
      }),
    )
  })

  test('a clock that was set back counts the period that it shows as used up', () => {
    const window = new CalendarWindow(5, 1000, 0, new EqualPeriods(1000))
    const state = window.empty()
    window.take(state, 1, 50_000, 0)
    // The clock was set back a little: the window waits for the period that it counted.
    expect(window.readyAt(state, 49_990, 1, 0)).toBe(50_000)
    expect(window.allows(state, 49_990, 1, 0)).toBe(false)
    window.rebase(state, 7500)
    expect(window.readyAt(state, 7500, 1, 0)).toBe(8000)
    expect(window.readyAt(state, 8000, 5, 0)).toBe(8000)
  })

  test('what was given ahead and is taken back is there for others, in any order of periods', () => {
    const window = new CalendarWindow(2, 1000, 0, new EqualPeriods(1000))
    const ahead = (now: number): ReturnType<typeof window.empty> => {
      const state = window.empty()
      for (const at of [now, now + 1000, now + 2000, now + 3000]) window.take(state, 2, at, 0, now)
      return state
    }
    for (const order of [
      [3500, 2500, 1500],
      [1500, 3500, 2500],
      [2500, 1500, 3500],
    ]) {
      const state = ahead(500)
      for (const at of order) {
        window.refund(state, 1, at)
        window.refund(state, 1, at)
      }
      expect(window.readyAt(state, 600, 1, 0)).toBe(1000)
      expect(window.readyAt(state, 600, 3, 0)).toBe(2000)
    }
    const state = ahead(500)
    window.refund(state, 2, 1500)
    window.refund(state, 1, 3500)
    expect(window.readyAt(state, 600, 1, 0)).toBe(3000)
    // The state keeps as many periods as can be given ahead.
    for (let at = 4500; at < 100_000; at += 1000) window.take(state, 1, at, 0, at - 3000)
    expect(state.before).toHaveLength(3 * 4)
  })
})

describe('the days of a time zone', () => {
  const lengthAt = (zone: string, time: string): [start: string, hours: number] => {
    const { start, end } = new ZoneDays(zone).at(Date.parse(time))
    return [new Date(start).toISOString(), (end - start) / HOUR]
  }

  test.each([
    ['Europe/Berlin', '2026-03-28T12:00:00.5Z', '2026-03-27T23:00:00.000Z', 24],
    ['Europe/Berlin', '2026-03-29T12:00:00Z', '2026-03-28T23:00:00.000Z', 23],
    ['Europe/Berlin', '2026-10-25T00:30:00Z', '2026-10-24T22:00:00.000Z', 25],
    ['America/New_York', '2026-11-01T12:00:00Z', '2026-11-01T04:00:00.000Z', 25],
    ['Asia/Kolkata', '2026-05-05T00:00:00Z', '2026-05-04T18:30:00.000Z', 24],
    // Lord Howe Island moves its clocks by half an hour.
    ['Australia/Lord_Howe', '2026-04-04T18:00:00Z', '2026-04-04T13:00:00.000Z', 24.5],
    // Here the clocks skipped the hour after midnight, so the day began at one o'clock.
    ['America/Sao_Paulo', '2018-11-04T12:00:00Z', '2018-11-04T03:00:00.000Z', 23],
    // Here the clocks skipped the 30th of December.
    ['Pacific/Apia', '2011-12-29T12:00:00Z', '2011-12-29T10:00:00.000Z', 24],
    ['UTC', '2026-06-01T00:00:00Z', '2026-06-01T00:00:00.000Z', 24],
    ['UTC', '2026-05-31T23:59:59.999Z', '2026-05-31T00:00:00.000Z', 24],
  ])('in %s at %s began at %s and has %d hours', (zone, time, start, hours) => {
    expect(lengthAt(zone, time)).toEqual([start, hours])
  })

  test('they follow each other without a gap, and any of them can be counted to', () => {
    for (const zone of ['Europe/Berlin', 'America/Sao_Paulo', 'Pacific/Apia', 'Asia/Kathmandu']) {
      const days = new ZoneDays(zone)
      const first = days.at(Date.UTC(2018, 0, 1))
      let day = first
      for (let count = 1; count <= 800; count++) {
        const next = days.after(day, 1)
        expect(next.start).toBe(day.end)
        day = next
        if (count % 100 === 0) expect(days.after(first, count)).toEqual(day)
      }
    }
  })
})

test('a sum that is rounded is never less than it is', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1e12, noNaN: true }),
      fc.double({ min: 0, max: 1e10, noNaN: true }),
      (time, duration) => {
        const sum = addRoundedUp(time, duration)
        // Compares integers, which are not rounded.
        expect(exact(sum) >= exact(time) + exact(duration)).toBe(true)
        expect(sum).toBeLessThanOrEqual((time + duration) * (1 + 2 ** -51))
      },
    ),
    { numRuns: 2000 },
  )
  expect(addRoundedUp(-Infinity, 1000)).toBe(-Infinity)
})

/**
 * Returns a double as an integer number of units. The unit is so small that this is exact for every double up to
 * 2^1024.
 */
function exact(value: number): bigint {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  const bits = view.getBigUint64(0)
  const exponent = Number((bits >> 52n) & 0x7ffn)
  const fraction = bits & 0xfffffffffffffn
  return exponent === 0 ? fraction : (fraction + 0x10000000000000n) << BigInt(exponent - 1)
}
