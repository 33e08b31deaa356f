import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { WindowDefinition } from '../../../src/engine/limits/definition.js'
import { LatencyEstimator } from '../../../src/limits/remote/latency-estimator.js'
import { reservePermits, type LimiterState } from '../../../src/engine/limits/reserve-permits.js'

describe('the hold that a process asks for', () => {
  test('is a little more than the longest but one of what was measured, in whole milliseconds', () => {
    const meter = new LatencyEstimator()
    expect(meter.hold()).toBe(0)
    for (const [taken, now] of [
      [3, 1000],
      [100, 1200],
      [50, 1300],
      [100.5, 1500],
    ] as const)
      meter.note(taken, now)
    expect(meter.hold()).toBe(115)
    meter.note(101, 1700)
    expect(meter.hold()).toBe(116)
  })

  test('takes delays that overlap for one', () => {
    const meter = new LatencyEstimator()
    meter.note(2, 1000)
    meter.note(3, 1010)
    // A stopped process uses several permits too late, and receives an answer late.
    for (const [taken, now] of [
      [1900, 3000],
      [1500, 3000],
      [1950, 3001],
    ] as const)
      meter.note(taken, now)
    expect(meter.hold()).toBe(4)
    meter.note(1000, 4001)
    expect(meter.hold()).toBe(1150)
  })

  test('follows what becomes shorter after two to four seconds, and not before', () => {
    const meter = new LatencyEstimator()
    for (const now of [800, 1000]) meter.note(200, now)
    for (let now = 1010; now <= 2800; now += 10) {
      meter.note(2, now)
      expect(meter.hold()).toBe(230)
    }
    for (let now = 2810; now <= 4800; now += 10) meter.note(2, now)
    expect(meter.hold()).toBe(230)
    for (let now = 4810; now <= 4900; now += 10) meter.note(2, now)
    expect(meter.hold()).toBe(3)
  })

  test('is at most two seconds, and no more than a limit bears', () => {
    const meter = new LatencyEstimator()
    meter.note(10_000, 1000)
    expect([meter.hold(), meter.hold(300)]).toEqual([2000, 300])
  })
})

function window(kind: WindowDefinition['kind'], limit: number, per: number): WindowDefinition {
  const hold = Math.max(per * 0.02, 5)
  return { kind, limit, per, hold, guard: hold, timeZone: '' }
}

/** A step of one process after some time: a request with its hold, a return of permits, or both. */
const step = fc.record({
  after: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 1, max: 400 }),
    fc.double({ min: 0, max: 900, noNaN: true }),
  ),
  hold: fc.oneof(
    fc.integer({ min: 0, max: 60 }),
    fc.integer({ min: 60, max: 2000 }),
    fc.double({ min: 0, max: 300, noNaN: true }),
  ),
  units: fc.array(fc.record({ n: fc.integer({ min: 1, max: 4 }), more: fc.integer({ min: 0, max: 3 }) }), {
    maxLength: 6,
  }),
  within: fc.constantFrom(0, 300, Infinity),
  /** Positions of the usable permits that it returns. */
  returns: fc.array(fc.nat(), { maxLength: 3 }),
})

/** Permits that may be used at any time within an interval. */
interface Usable {
  readonly n: number
  readonly at: number
  readonly from: number
  readonly until: number
}

/** Returns the maximum use in any window if each process uses its permits at the worst time. */
function worstUse(all: readonly Usable[], per: number): number {
  const meets =
    (end: number) =>
    (sum: number, { n, from, until }: Usable) =>
      until >= end && from < end + per ? sum + n : sum
  return Math.max(0, ...all.map(({ until }) => all.reduce(meets(until), 0)))
}

function worstPeriod(all: readonly Usable[], per: number): number {
  const periods = new Map<number, number>()
  for (const { n, from, until } of all) {
    for (let period = Math.floor(from / per); period <= Math.floor(until / per); period++)
      periods.set(period, (periods.get(period) ?? 0) + n)
  }
  return Math.max(0, ...periods.values())
}

const START = 1.7e12

describe('with any holds of processes, no window has more than its limit', () => {
  test.each<{ name: string; windows: readonly WindowDefinition[] }>([
    { name: 'sliding', windows: [window('sliding', 4, 500)] },
    { name: 'sliding, with shared entries', windows: [window('sliding', 300, 500)] },
    { name: 'smooth', windows: [window('smooth', 5, 500)] },
    { name: 'calendar', windows: [window('calendar', 4, 700)] },
    { name: 'sliding and calendar', windows: [window('sliding', 4, 300), window('calendar', 6, 1000)] },
    { name: 'smooth and sliding', windows: [window('smooth', 4, 300), window('sliding', 9, 2000)] },
  ])('$name', ({ windows }) => {
    let permits = 0
    const most = Math.min(...windows.map(({ limit }) => limit))
    // With a high limit, each request asks for more permits.
    const scale = Math.max(1, Math.floor(most / 8))
    const longest = Math.min(...windows.map(({ kind, per }) => (kind === 'calendar' ? per / 2 : Infinity)))
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), steps => {
        let state: LimiterState | undefined
        let now = START
        let usable: Usable[] = []
        for (const { after, hold: wanted, units, within, returns: indexes } of steps) {
          now += after
          const hold = Math.min(wanted, longest)
          const returns = []
          for (const index of indexes) {
            const open = usable.filter(({ until }) => until >= now)
            if (open.length === 0) break
            const back = open[index % open.length]!
            usable = usable.filter(each => each !== back)
            returns.push({ n: back.n, at: back.at, from: back.from })
          }
          returns.sort((one, other) => other.at - one.at)
          const decision = reservePermits(
            state,
            {
              limiter: 'api',
              session: 'one',
              windows,
              units: units.map(({ n, more }) => ({
                n: Math.min(n * scale, most),
                more: more * scale,
                within,
              })),
              horizon: 3000,
              hold,
              returns,
              pause: undefined,
              explain: undefined,
            },
            now,
            now,
          )
          state = decision.state
          const { units: given, hold: told } = decision.reserved
          for (const { n, at } of given) {
            if (n === 0) continue
            permits += n
            const from = at - Math.max(hold - told, 0)
            // Instants are rounded up, so no permit is usable before now.
            expect(from).toBeGreaterThanOrEqual(now)
            usable.push({ n, at, from, until: at + told })
          }
        }
        for (const { kind, limit, per } of windows) {
          if (kind === 'calendar') expect(worstPeriod(usable, per)).toBeLessThanOrEqual(limit)
          else expect(worstUse(usable, per)).toBeLessThanOrEqual(limit)
        }
      }),
      { numRuns: 400 },
    )
    expect(permits).toBeGreaterThan(1000)
  })
})
