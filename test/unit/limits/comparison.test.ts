import { describe, expect, test } from 'vitest'
import { compare, type Outcome } from '../../../apps/limits/comparison.js'
import { figures, orderKept, shortfall, spread, worstWindow } from '../../../apps/limits/figures.js'
import { scenarios, type Scenario } from '../../../apps/limits/scenarios.js'
import type { Service } from '../../../apps/limits/service.js'
import { simulate, type Trouble } from '../../../apps/limits/simulation.js'
import { strategies } from '../../../apps/limits/strategies/registry.js'
import { table } from '../../../apps/limits/table.js'

const setting = { workers: 50, limit: 20, seconds: 10, mode: 'tasks' } as const
const simulated = strategies.filter(strategy => strategy.simulated)

/** Returns the figures of all simulated strategies, by name. */
async function played(trouble: Trouble, seconds: number = setting.seconds) {
  const own = { ...setting, seconds }
  const all = await Promise.all(
    simulated.map(async one => figures(one.name, own, await simulate(one, own, trouble))),
  )
  return Object.fromEntries(all.map(one => [one.name, one]))
}

/** Returns a call that arrives at once. */
const call = (asked: number, sent: number) => ({ asked, sent, arrived: sent })

describe('figures', () => {
  test('the worst window is half open and lies anywhere', () => {
    expect(worstWindow([])).toBe(0)
    expect(worstWindow([0, 500, 1000, 1499, 1500])).toBe(3)
    expect(worstWindow([0, 999, 1000, 1998.9])).toBe(3)
  })

  test('order is kept unless a caller that asked clearly later goes clearly first', () => {
    expect(orderKept([call(0, 100), call(200, 300), call(100, 310)])).toBe(true)
    expect(orderKept([call(0, 100), call(200, 300), call(100, 400)])).toBe(false)
    expect(orderKept([])).toBe(true)
  })

  test('calendar seconds are those of the wall clock, and what comes after the end is not counted', () => {
    const calls = [400, 600, 700, 1700, 2100].map(time => call(time, time))
    const run = { calls, startedAt: 0, wallOffset: 500, guard: 60 }
    expect(figures('x', { ...setting, limit: 2, seconds: 2 }, run)).toEqual({
      name: 'x',
      calls: 4,
      ideal: 4,
      worstGranted: 3,
      worstWindow: 3,
      worstCalendarSecond: 2,
      idleSeconds: 1,
      orderKept: true,
      guard: 60,
    })
  })
  test('the guard is the missing window or the difference of delays', () => {
    const calls = [0, 10, 990, 1080].map((arrived, index) => ({
      asked: 0,
      sent: arrived - 2 * index,
      arrived,
    }))
    const run = { calls, startedAt: 0, wallOffset: 0, guard: 0 }
    expect(shortfall(run, 2)).toBe(10)
    expect(spread(run)).toBe(6)
  })
})

describe('strategies under the virtual clock', () => {
  test('calm: ours keep their bounds and leave nothing unused, others do one or the other', async () => {
    const all = await played({})
    const ours = ['sliding', 'calendar', 'smooth'].map(name => all[`signalbox ${name}`]!)
    for (const { calls, ideal, idleSeconds, orderKept: kept } of ours) {
      expect(calls).toBeGreaterThanOrEqual(0.98 * ideal)
      // Until all callers have come, a single one cannot use evenly spaced permits.
      expect(idleSeconds).toBeLessThanOrEqual(1)
      expect(kept).toBe(true)
    }
    expect(ours.map(one => one.worstWindow)).toEqual([20, 39, 20])
    expect(ours[1]!.worstCalendarSecond).toBe(20)
    // All callers sleep, so none of them notices that the second has passed.
    expect(all['first caller refill']!.calls).toBe(20)
    // This strategy does not count a caller that has slept.
    expect(all['counter, usual']!.worstCalendarSecond).toBeGreaterThan(20)
    expect(all['counter, packed']!.worstCalendarSecond).toBe(20)
    expect(all['scheduled refill']!.worstWindow).toBeGreaterThan(20)
  })

  test('ours keep the bound when their thread stands still', async () => {
    const all = await played({ stall: { every: 1700, length: 450 } })
    expect(all['signalbox sliding']).toMatchObject({ worstWindow: 20, orderKept: true })
    expect(all['signalbox smooth']!.worstWindow).toBeLessThanOrEqual(20)
    expect(all['signalbox calendar']!.worstCalendarSecond).toBe(20)
    expect(all['timed semaphore']!.worstWindow).toBeGreaterThan(20)
  })

  test('a restorer of semaphores may be 40 s late and not 60; one that zeroes counters may not', async () => {
    const late = await played({ late: { from: 30_000, by: 40_000 } }, 130)
    expect(late['ring of 60 semaphores']).toMatchObject({ idleSeconds: 0, worstCalendarSecond: 20 })
    expect(late['ring of 60 counters']!.idleSeconds).toBeGreaterThan(30)
    expect(late['scheduled refill']!.idleSeconds).toBeGreaterThan(30)
    const later = await played({ late: { from: 30_000, by: 60_000 } }, 130)
    expect(later['ring of 60 semaphores']!.idleSeconds).toBeGreaterThan(0)
    for (const all of [late, later]) {
      expect(all['signalbox sliding']).toMatchObject({ calls: 2600, idleSeconds: 0, worstWindow: 20 })
    }
  })
})

describe('the report', () => {
  const late = scenarios.find(({ name }) => name === 'late')!

  /** Returns the outcomes of a scenario that needs no service. */
  function outcomes(scenario: Scenario): Promise<readonly Outcome[]> {
    return compare(simulated, setting, scenario, undefined as unknown as Service)
  }

  test('marks what broke the bound', async () => {
    const all = (await outcomes(late)).map(one => one.figures)
    const lines = table('late', setting, all).split('\n')
    expect(lines.find(line => line.startsWith('signalbox sliding'))).toMatch(/ 100 % +20 +20 +20 +0 +kept$/)
    expect(lines.find(line => line.startsWith('counter, usual'))).toMatch(/\d+ ! +\d+ ! /)
  })
})
